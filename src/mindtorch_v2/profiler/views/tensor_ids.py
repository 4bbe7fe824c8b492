"""Numbers of tensors and of their memory in the event tree, as torch numbers them.

In: allocations and frees of a store, and the tensors that ops, modules and optimizers had. Out: for each the `allocation_id`
of its memory, which begins with an allocation and ends with a free, and the `id`, which all memory that one tensor ever had
shares. Memory that no tensor was seen with has no `id`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from ..recording.tensor_notes import MOST_ARGUMENTS, ModuleNote, OptimizerNote, TensorNote, TensorNotes
from ..store.store import EventStore

_TOUCH, _NOTE, _MEMORY = range(3)  # at equal times, what an op was given comes before what it allocates


class Identity(NamedTuple):
    """What tells a tensor from others: its own address, where its memory is, and the numbers of both."""

    impl_ptr: int | None
    storage_data_ptr: int | None
    id: int | None
    allocation_id: int | None
    layout: int = 0


NOBODY = Identity(None, None, None, None)


class _Sight(NamedTuple):
    """One moment at which a piece of memory was seen: allocated, freed, or with a tensor."""

    time: int
    kind: int
    at: int  # row of `touched`, number of a note, or memory row
    address: int
    tensor: int | None
    is_start: bool = False
    is_end: bool = False


class TensorIds:
    """The numbers of all tensors and allocations of a recording."""

    def __init__(self, store: EventStore, notes: TensorNotes) -> None:
        self._store = store
        self._notes = notes

    def inputs(self, start: int, op: int, position: int) -> list[Identity]:
        """The tensors that the op of a row was given as one argument, in order."""
        return [self._of_touch(row) for row in self._touches.get((start, op * MOST_ARGUMENTS + position), ())]

    def of_memory(self, row: int) -> tuple[int, int | None, int]:
        """allocation_id, id and address of an allocation or a free."""
        number = self._allocations[_MEMORY, row]
        address = int(self._store.mem_addr[row])
        return number, self._ids.get(number), self._pointers.get(number, address)

    def of_note(self, note: TensorNote) -> Identity:
        """A tensor of a module or an optimizer."""
        place = self._note_numbers[id(note)]
        number = self._allocations.get((_NOTE, place))
        tensor = self._ends.address(note.tensor, self._tensor_notes[place][0])
        return Identity(tensor, note.pointer, None if number is None else self._ids.get(number), number, note.layout)

    def _of_touch(self, row: int) -> Identity:
        number = self._allocations[_TOUCH, row]
        start, _, _, _, tensor, pointer, layout = self._touched[row]
        return Identity(self._ends.address(tensor, start), pointer, self._ids.get(number), number, layout)

    @cached_property
    def _touched(self) -> list[list[int]]:
        """The rows of tensors that ops were given, with the memory that each had when its op began. They are recorded when the
        op has ended; one that gave a tensor other memory is found by its time. Memory of no bytes is one place for all."""
        rows: list[list[int]] = self._notes.touched.tolist()
        for row in rows:
            if not row[2] and not row[6]:
                row[1] = row[5] = 0
        moves = self._notes.moves.tolist()
        if moves:
            store = self._store
            ends = dict(zip(store.start.tolist(), store.end.tolist(), strict=True))
            by_tensor: dict[int, list[list[int]]] = {}
            for row in rows:
                by_tensor.setdefault(row[4], []).append(row)
            for time, tensor, address, size, pointer in sorted(moves, reverse=True):  # the first move of an op counts
                for row in by_tensor.get(tensor, ()):
                    if row[0] <= time <= ends.get(row[0], 0):
                        row[1:3] = (address, size) if size else (0, 0)
                        row[5] = pointer if size else 0
        return rows

    @cached_property
    def _touches(self) -> dict[tuple[int, int], list[int]]:
        touches: dict[tuple[int, int], list[int]] = {}
        for number, row in enumerate(self._touched):
            touches.setdefault((row[0], row[3]), []).append(number)
        return touches

    @cached_property
    def _tensor_notes(self) -> list[tuple[int, TensorNote]]:
        """Time and note of every tensor of modules and optimizers."""
        holders: list[ModuleNote | OptimizerNote] = [note for of_thread in self._notes.modules for note in of_thread.values()]
        holders += [note for of_thread in self._notes.optimizers for note in of_thread]
        return [(holder.time, note) for holder in holders for note in holder.tensors()]

    @cached_property
    def _note_numbers(self) -> dict[int, int]:
        return {id(note): number for number, (_, note) in enumerate(self._tensor_notes)}

    @cached_property
    def _sights(self) -> list[_Sight]:
        """Everything that was seen of memory, in order of time."""
        store, ends = self._store, self._ends
        sights = [
            _Sight(start, _TOUCH, row, address, ends.tensor(tensor, start))
            for row, (start, address, _, _, tensor, _, _) in enumerate(self._touched)
        ]
        sights += [
            _Sight(time, _NOTE, number, note.address, ends.tensor(note.tensor, time))
            for number, (time, note) in enumerate(self._tensor_notes)
        ]
        columns = (store.mem_time, store.mem_addr, store.mem_bytes, store.mem_device_type, store.mem_device_index)
        for row, (time, address, size, kind, index) in enumerate(zip(*(each.tolist() for each in columns), strict=True)):
            # Addresses of devices are told from those of the host.
            place = address if kind == 0 else -(((address << 16) + index + 2) << 8) - kind
            sights.append(_Sight(time, _MEMORY, row, place, None, size >= 0, size < 0))
        sights.sort(key=lambda each: each[:3])
        return sights

    @cached_property
    def _ends(self) -> _Ends:
        return _Ends(self._notes.ends.tolist())

    @cached_property
    def _allocations(self) -> dict[tuple[int, int], int]:
        """By what was seen: the number of its memory, from 1 in order of appearance."""
        numbers: dict[tuple[int, int], int] = {}
        alive: dict[int, int] = {}
        last = 0
        for sight in self._sights:
            if sight.is_start or sight.address not in alive:
                last += 1
                alive[sight.address] = last
            numbers[sight.kind, sight.at] = alive[sight.address]
            if sight.is_end:
                del alive[sight.address]
        return numbers

    @cached_property
    def _ids(self) -> dict[int, int]:
        """By number of memory: the number of the tensors that had it. A tensor that got other memory joins the two."""
        first_of: dict[int, int] = {}
        pairs: set[tuple[int, int]] = set()
        for sight in self._sights:
            if sight.tensor is not None:
                number = self._allocations[sight.kind, sight.at]
                first = first_of.setdefault(sight.tensor, number)
                pairs.add((min(first, number), max(first, number)))
        ids: dict[int, int] = {}
        count = 0
        for lower, upper in sorted(pairs):
            if lower not in ids:
                ids[lower] = count
                count += 1
            ids.setdefault(upper, ids[lower])
        return ids

    @cached_property
    def _pointers(self) -> dict[int, int]:
        """By number of memory: where it begins, as far as a tensor was seen with it."""
        pointers = {
            self._allocations[_NOTE, number]: note.pointer
            for number, (_, note) in enumerate(self._tensor_notes)
            if note.pointer
        }
        for number, row in enumerate(self._touched):
            if row[5]:
                pointers[self._allocations[_TOUCH, number]] = row[5]
        return pointers


class _Ends:
    """Tells tensors apart that had one id() one after another."""

    def __init__(self, ends: Iterator[list[int]] | list[list[int]]) -> None:
        self._times: dict[int, list[int]] = {}
        for time, tensor in ends:
            self._times.setdefault(tensor, []).append(time)
        for times in self._times.values():
            times.sort()
        self._numbers: dict[tuple[int, int], int] = {}

    def tensor(self, ident: int, time: int) -> int:
        """A number that no other tensor has."""
        return self._numbers.setdefault((ident, self._before(ident, time)), len(self._numbers))

    def address(self, ident: int, time: int) -> int:
        """The id() of a tensor. Where further tensors were seen with it, their number stands above its 48 bits: no two have one
        address. To be asked once all have been seen."""
        seen = self._seen[ident]
        return ident + (len(seen) - bisect_right(seen, self._before(ident, time)) << 48)

    @cached_property
    def _seen(self) -> dict[int, list[int]]:
        """By id(): for each tensor that was seen with it how many had ended before, in order."""
        seen: dict[int, list[int]] = {}
        for ident, before in self._numbers:
            seen.setdefault(ident, []).append(before)
        for numbers in seen.values():
            numbers.sort()
        return seen

    def _before(self, ident: int, time: int) -> int:
        return bisect_right(self._times.get(ident, []), time)
