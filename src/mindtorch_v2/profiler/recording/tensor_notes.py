"""Which tensors ops, modules and optimizers had: what the event tree and the memory profile tell tensors apart by.

In: tensors, while a recording runs that asks for both shapes and memory. Out: rows of numbers for the inputs of ops, and notes
for what modules and optimizers hold. No tensor is kept alive; that an address is used again shows by the ends of tensors, which
`allocations` records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._core.cpython import data_address
from ..._core.dtype import dtype as Dtype
from ..._core.sparse import SparseTensor
from ..._core.storage import owner_of
from ..._dispatch.observer import call_untraced
from .allocations import MOVE_WIDTH

TOUCH_WIDTH = 7  # start of the op, address, bytes, op id and position of the argument, tensor, where its data is, layout
MOST_ARGUMENTS = 64
STRIDED, SPARSE = 0, 1  # layouts


class TensorNote(NamedTuple):
    """A tensor that a module or an optimizer had."""

    tensor: int  # its id()
    address: int  # of the array that owns its memory, which the rows of allocations have, too
    pointer: int  # where its memory begins
    nbytes: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: Dtype
    device: str
    layout: int


class ModuleNote(NamedTuple):
    """A module at its first call: parameters with their gradients."""

    time: int
    ident: int
    class_ident: int
    class_name: str
    parameters: tuple[tuple[str, TensorNote, TensorNote | None], ...]

    def tensors(self) -> Iterator[TensorNote]:
        """All tensors, in order."""
        for _, parameter, gradient in self.parameters:
            yield parameter
            if gradient is not None:
                yield gradient


class OptimizerNote(NamedTuple):
    """An optimizer after its first step: parameters with their gradients and their state."""

    time: int
    ident: int
    parameters: tuple[tuple[TensorNote, TensorNote | None, tuple[tuple[str, TensorNote], ...]], ...]

    def tensors(self) -> Iterator[TensorNote]:
        """All tensors, in order."""
        for parameter, gradient, state in self.parameters:
            yield parameter
            if gradient is not None:
                yield gradient
            for _, value in state:
                yield value


class TensorNotes(NamedTuple):
    """All that was noted of tensors in a recording. The lists have an entry for each thread, in the store's order."""

    touched: NDArray[np.int64]  # rows of TOUCH_WIDTH numbers
    ends: NDArray[np.int64]  # time and id() of the tensors that ended
    moves: NDArray[np.int64]  # rows of MOVE_WIDTH numbers: tensors that got other memory, and which they had before
    modules: list[dict[str, ModuleNote]]  # by label, as `Linear_0`
    optimizers: list[list[OptimizerNote]]
    steps: list[list[tuple[int, int]]]  # time of each optimizer's step, and which of the thread's optimizers it was


NO_NOTES = TensorNotes(
    np.empty((0, TOUCH_WIDTH), np.int64), np.empty((0, 2), np.int64), np.empty((0, MOVE_WIDTH), np.int64), [], [], []
)


def touch_all(touch: Callable[[tuple[int, ...]], None], op: int, args: tuple[Any, ...], start: int) -> None:
    """Append rows for all tensors among the arguments of an op."""
    for position, value in enumerate(args):
        touch_one(touch, op * MOST_ARGUMENTS + position, value, start)


def touch_one(touch: Callable[[tuple[int, ...]], None], place: int, value: Any, start: int) -> None:
    """Append a row for an argument that is a tensor, or for each tensor in a list."""
    try:
        array = value._array
    except AttributeError:
        for item in value if isinstance(value, list | tuple) else ():
            touch_one(touch, place, item, start)
        return
    owner = array if array.base is None else owner_of(array)
    if array.__class__ is not np.ndarray and isinstance(value, SparseTensor):
        touch((start, id(owner), owner.nbytes, place, id(value), 0, SPARSE))
    else:
        touch((start, id(owner), owner.nbytes, place, id(value), data_address(owner), STRIDED))


def note_of(tensor: Any) -> TensorNote | None:
    """The note of a tensor, None for anything else."""
    array = getattr(tensor, "_array", None)
    if array is None:
        return None
    owner, sparse = owner_of(array), isinstance(tensor, SparseTensor)
    return TensorNote(
        id(tensor),
        id(owner),
        0 if sparse else data_address(owner),
        owner.nbytes,
        tuple(array.shape),
        () if sparse else tuple(stride // array.itemsize for stride in array.strides),
        tensor.dtype,
        str(tensor.device),
        SPARSE if sparse else STRIDED,
    )


def note_module(module: Any, now: int) -> ModuleNote:
    """The note of a module that is called for the first time."""
    held = []
    for name, parameter in getattr(module, "_parameters", {}).items():
        note = note_of(parameter)
        if note is not None:
            held.append((name, note, note_of(parameter.grad)))
    return ModuleNote(now, id(module), id(type(module)), type(module).__name__, tuple(held))


def note_optimizer(optimizer: Any, now: int) -> OptimizerNote:
    """The note of an optimizer that has made its first step."""
    held = []
    for group in optimizer.param_groups:
        for parameter in group.get("params", ()):
            note = note_of(parameter)
            if note is not None:
                state = optimizer.state.get(parameter, {})
                noted = ((str(name), note_of(value)) for name, value in state.items())
                held.append((note, note_of(parameter.grad), tuple((name, each) for name, each in noted if each is not None)))
    return OptimizerNote(now, id(optimizer), tuple(held))


class OptimizerLog:
    """The optimizers that made a step on a thread while it was recorded, each at its first step."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self.notes: list[OptimizerNote] = []
        self.steps: list[tuple[int, int]] = []  # time and number of the note, for every step
        # Partials: Python calls are traced where steps are noted, and calling one is no event for the tracer.
        self._clock, self._id = partial(clock), partial(id)
        self._known: dict[int, int] = {}

    def stepped(self, optimizer: Any) -> None:
        """Note a step that has just been made."""
        now = self._clock()
        ident, known = self._id(optimizer), self._known
        if ident not in known:
            known[ident] = len(self.notes)
            self.notes.append(call_untraced(note_optimizer, optimizer, now))
        self.steps += ((now, known[ident]),)

    def forget(self, until: int) -> None:
        """Drop the steps up to a time."""
        self.steps[:] = [step for step in self.steps if step[0] > until]
