"""allow_mutation_on_saved_tensors: saved tensors may be written into; they are copied when that happens."""

from __future__ import annotations

import weakref
from typing import Any

from ..._core.restoring import Actions, enter, restoring
from ..._core.tensor import Tensor, storage_of
from ..._core.threads import threads
from ..._dispatch.interception import Mode, proceed, run_composed
from ..._dispatch.registry import OpSpec, aten
from ..graph import without_history
from .saved_hooks import saved_tensors_hooks

# What tells one saved tensor from another: its memory, version, sizes, strides and dtype.
Identity = tuple[Any, ...]


class _Handle:
    """What a node saves in place of a tensor."""

    __slots__ = ("__weakref__", "owner")

    def __init__(self, owner: _MutationContext) -> None:
        self.owner = weakref.ref(owner)


class _MutationContext:
    """What allow_mutation_on_saved_tensors yields: the tensors that nodes have saved, and the copies of those written since."""

    def __init__(self) -> None:
        self.cloned: weakref.WeakKeyDictionary[_Handle, Tensor] = weakref.WeakKeyDictionary()
        self.original: weakref.WeakKeyDictionary[_Handle, Tensor] = weakref.WeakKeyDictionary()
        self.tid_to_weakhandle: weakref.WeakValueDictionary[Identity, _Handle] = weakref.WeakValueDictionary()
        # The identities of the tensors saved on one storage in one version.
        self.sid_to_tid: dict[tuple[int, int], set[Identity]] = {}

    def clear(self) -> None:
        """Forget all tensors."""
        self.cloned.clear()
        self.original.clear()
        self.tid_to_weakhandle.clear()
        self.sid_to_tid.clear()

    def pack(self, tensor: Tensor) -> _Handle:
        """The handle of a tensor that a node saves."""
        array, memory = tensor._array, _memory(tensor)
        identity = (*memory, array.__array_interface__["data"][0], array.shape, array.strides, array.dtype)
        handle = self.tid_to_weakhandle.get(identity)
        if handle is None:
            handle = self.tid_to_weakhandle[identity] = _Handle(self)
            self.original[handle] = tensor
            self.sid_to_tid.setdefault(memory, set()).add(identity)
        return handle

    def unpack(self, handle: _Handle) -> Tensor:
        """The tensor of a handle, as it was when it was saved."""
        if handle.owner() is not self or _open.get(id(threads.state)) is not self:
            raise AssertionError(
                "Trying to backward outside of the 'allow_mutation_on_saved_tensors' context"
                "in which the graph was originally recorded."
            )
        return self.cloned[handle] if handle in self.cloned else self.original[handle]

    def copy_before_write(self, tensor: Tensor) -> None:
        """Copy what nodes have saved of the memory that is about to be written into."""
        for identity in self.sid_to_tid.pop(_memory(tensor), ()):
            handle = self.tid_to_weakhandle.get(identity)
            if handle is not None and handle in self.original:
                self.cloned[handle] = without_history(aten.clone, (self.original.pop(handle),), {})


def _memory(tensor: Tensor) -> tuple[int, int]:
    storage = storage_of(tensor)
    return id(storage.owner), storage.version


class _CopyOnWrite(Mode):
    """Copies saved tensors before an op writes into them."""

    def __init__(self, context: _MutationContext) -> None:
        self.context = context

    def run(self, op: OpSpec, args: tuple[Any, ...]) -> Any:
        if op.composite and not op.below_autograd and not op.schema.mutates:
            return run_composed(self, op, args)
        for argument, value in zip(op.schema.arguments, args, strict=True):
            if argument.written:
                for tensor in (value,) if isinstance(value, Tensor) else value or ():
                    self.context.copy_before_write(tensor)
        return proceed(op, args)

    def before_out(self, targets: Any) -> None:
        """Called with the tensors that an op writes its result into."""
        for tensor in (targets,) if isinstance(targets, Tensor) else targets:
            if isinstance(tensor, Tensor):
                self.context.copy_before_write(tensor)


# The open context of each thread, by the id of its state.
_open: dict[int, _MutationContext] = {}


@restoring
def allow_mutation_on_saved_tensors(undo: Actions) -> _MutationContext:
    """A block in which tensors that nodes have saved may be written into: the nodes then keep copies."""
    thread = id(threads.state)
    if thread in _open:
        raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
    context = _MutationContext()
    _open[thread] = context
    undo.append(context.clear)
    undo.append(lambda: _open.pop(thread, None))
    enter(undo, saved_tensors_hooks(context.pack, context.unpack))
    enter(undo, _CopyOnWrite(context))
    return context
