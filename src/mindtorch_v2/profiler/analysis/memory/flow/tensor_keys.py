"""Keys of memory, and what modules and optimizers say of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ....._core.device import device as Device
from ....config import RecordScope
from ....views.event_tree import _EventType, _ExtraFields_Allocation, _TensorMetadata

_ACCUMULATE = "torch::autograd::AccumulateGrad"


@dataclass(frozen=True)
class Key:
    """Memory of which only the device is known."""

    device: Device


@dataclass(frozen=True)
class _Storage:
    """A piece of memory from its allocation to its free; two of one allocation_id are equal."""

    ptr: int
    allocation_id: int

    def __repr__(self) -> str:
        return f"{hex(self.ptr):>18} ({self.allocation_id})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Storage) and self.allocation_id == other.allocation_id

    def __hash__(self) -> int:
        return hash(self.allocation_id)


@dataclass(frozen=True)
class TensorKey(Key):
    """Memory that a tensor was seen with. Keys are in the order of their ids, then of their allocations."""

    id: int
    storage: _Storage

    def __repr__(self) -> str:
        return f"id={self.id}: {self.storage!r:<24} ({self.device})"

    def __lt__(self, other: TensorKey) -> bool:
        return self._order < other._order

    @property
    def _order(self) -> tuple[int, int, str]:
        return self.id, self.storage.allocation_id, str(self.device)

    @classmethod
    def from_allocation(cls, alloc: _ExtraFields_Allocation) -> TensorKey | None:
        """The key of an allocation or a free, None if no tensor was seen with the memory."""
        return cls._of(alloc.id, alloc.ptr, alloc.allocation_id, alloc.device)

    @classmethod
    def from_tensor(cls, t: _TensorMetadata | None) -> TensorKey | None:
        """The key of a tensor's memory, None for a tensor that has no numbers."""
        return None if t is None else cls._of(t.id, t.storage_data_ptr, t.allocation_id, t.device)

    @classmethod
    def _of(cls, ident: int | None, ptr: int | None, allocation_id: int | None, device: Device | None) -> TensorKey | None:
        if ident is None or ptr is None or allocation_id is None or device is None:
            return None
        return cls(device, ident, _Storage(ptr, allocation_id))


TensorAndID = tuple[TensorKey, int]  # the int is a version


def extract_parameters(node: Any) -> Iterator[TensorKey]:
    """The parameters that an event shows: those of the module or optimizer of a Python call."""
    for parameter, _ in _parameters_and_gradients(node):
        if parameter is not None:
            yield parameter


def extract_gradients(node: Any) -> Iterator[tuple[TensorKey | None, TensorKey]]:
    """(parameter or None, gradient) of the gradients that an event shows."""
    for parameter, gradient in _parameters_and_gradients(node):
        if gradient is not None:
            yield parameter, gradient


def _parameters_and_gradients(node: Any) -> Iterator[tuple[TensorKey | None, TensorKey | None]]:
    tag, fields = node.typed
    key = TensorKey.from_tensor
    if tag is _EventType.PyCall:
        if fields.module is not None:
            yield from ((key(parameter), key(gradient)) for _, parameter, gradient in fields.module.parameters)
        if fields.optimizer is not None:
            yield from ((key(parameter), key(gradient)) for parameter, gradient, _ in fields.optimizer.parameters)
    elif tag is _EventType.TorchOp and fields.scope == RecordScope.BACKWARD_FUNCTION and node.name == _ACCUMULATE:
        # A new gradient is detached, and one that is there is added to in place.
        first = next(iter(node.children), None)
        if first is not None and first.tag is _EventType.TorchOp and first.name in ("aten::detach", "aten::add_"):
            inputs = first.extra_fields.inputs
            if inputs and isinstance(inputs[0], _TensorMetadata):
                yield None, key(inputs[0])


def scopes_around(event: Any) -> set[RecordScope]:
    """The scopes of an event and of all ops and labels around it."""
    scopes: set[RecordScope] = set()
    while event is not None:
        tag, fields = event.typed
        if tag is _EventType.TorchOp:
            scopes.add(fields.scope)
        event = event.parent
    return scopes
