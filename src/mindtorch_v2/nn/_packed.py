"""Sequences of different lengths in one tensor, time step by time step."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from .._core import dtype as dt
from .._core.tensor import Tensor
from .._dispatch.registry import aten
from .._ops.creation.from_data import as_tensor


class PackedSequence_(NamedTuple):
    data: Any
    batch_sizes: Any
    sorted_indices: Any
    unsorted_indices: Any


class PackedSequence(PackedSequence_):
    """All sequences' first steps, then all second steps, and so on; `batch_sizes` counts the sequences at each step.

    Made by `pack_padded_sequence` and `pack_sequence`. `sorted_indices` says how the sequences were sorted by length.
    """

    __module__ = "mindtorch_v2.nn.utils.rnn"

    def __new__(cls, data: Any, batch_sizes: Any = None, sorted_indices: Any = None, unsorted_indices: Any = None) -> Any:
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        if batch_sizes is not None:
            if batch_sizes.device.type != "cpu":
                raise ValueError(
                    "batch_sizes should always be on CPU. Instances of PackedSequence should never be "
                    "created manually. They should be instantiated by functions like pack_sequence and "
                    "pack_padded_sequences in nn.utils.rnn."
                )
            return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)
        if not isinstance(data, list | tuple) or len(data) != 2:
            raise AssertionError("Expected data to be a (data, batch_sizes) tuple")
        return super().__new__(cls, data[0], data[1], sorted_indices, unsorted_indices)

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """The sequence with its data converted; itself if nothing changes."""
        data = self.data.to(*args, **kwargs)
        return self if data is self.data else type(self)(data, self.batch_sizes, self.sorted_indices, self.unsorted_indices)

    def pin_memory(self) -> PackedSequence:
        return type(self)(self.data.pin_memory(), self.batch_sizes, self.sorted_indices, self.unsorted_indices)

    def cuda(self, *args: Any, **kwargs: Any) -> PackedSequence:
        return self.to(*(args or ("cuda",)), **kwargs)

    def cpu(self, *args: Any, **kwargs: Any) -> PackedSequence:
        return self.to(*(args or ("cpu",)), **kwargs)

    def double(self) -> PackedSequence:
        return self.to(dtype=dt.float64)

    def float(self) -> PackedSequence:
        return self.to(dtype=dt.float32)

    def half(self) -> PackedSequence:
        return self.to(dtype=dt.float16)

    def long(self) -> PackedSequence:
        return self.to(dtype=dt.int64)

    def int(self) -> PackedSequence:
        return self.to(dtype=dt.int32)

    def short(self) -> PackedSequence:
        return self.to(dtype=dt.int16)

    def char(self) -> PackedSequence:
        return self.to(dtype=dt.int8)

    def byte(self) -> PackedSequence:
        return self.to(dtype=dt.uint8)

    @property
    def is_cuda(self) -> bool:
        return self.data.is_cuda

    def is_pinned(self) -> bool:
        return self.data.is_pinned()


def invert_permutation(permutation: Any) -> Any:
    """The permutation that undoes another one."""
    if permutation is None:
        return None
    output = aten.empty_like(permutation)
    return aten.scatter_(output, 0, permutation, aten.arange(0, permutation.numel(), device=permutation.device))


def pack_padded_sequence(input: Any, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True) -> PackedSequence:
    """Pack sequences that were padded to one length; unless `enforce_sorted`, they may come in any order."""
    lengths = lengths.to("cpu") if isinstance(lengths, Tensor) else as_tensor(lengths, dtype=dt.int64)
    if enforce_sorted:
        order = None
    else:
        lengths, order = aten.sort(lengths, descending=True)
        order = order.to(input.device)
        input = aten.index_select(input, 0 if batch_first else 1, order)
    data, batch_sizes = aten._pack_padded_sequence(input, lengths, batch_first)
    return PackedSequence(data, batch_sizes, order, None)


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
) -> tuple[Any, Any]:
    """The padded sequences and their lengths, in the order they had before packing."""
    length = sequence.batch_sizes.size(0)
    if total_length is not None:
        if total_length < length:
            raise ValueError(
                "Expected total_length to be at least the length of the longest sequence in input, but "
                f"got total_length={total_length} and max sequence length being {length}"
            )
        length = total_length
    padded, lengths = aten._pad_packed_sequence(sequence.data, sequence.batch_sizes, batch_first, padding_value, length)
    order = sequence.unsorted_indices
    if order is not None:
        return aten.index_select(padded, 0 if batch_first else 1, order), lengths[order.cpu()]
    return padded, lengths


def pad_sequence(sequences: Any, batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right") -> Any:
    """Stack tensors of different lengths, filled up at one side."""
    if not isinstance(sequences, Iterable):
        raise RuntimeError(f"pad_sequence: Expected iterable for input sequences, but got arg of type: {type(sequences)}")
    if isinstance(sequences, Tensor):
        sequences = aten.unbind(sequences, 0)
    return aten.pad_sequence(tuple(sequences), batch_first, padding_value, padding_side)


def unpad_sequence(padded_sequences: Any, lengths: Any, batch_first: bool = False) -> list[Any]:
    """The sequences without their padding."""
    if not batch_first:
        padded_sequences = aten.transpose(padded_sequences, 0, 1)
    positions = aten.arange(padded_sequences.shape[1], device=lengths.device)
    return [sequence[positions < length] for sequence, length in zip(padded_sequences, lengths, strict=True)]


def pack_sequence(sequences: Any, enforce_sorted: bool = True) -> PackedSequence:
    """Pack tensors of different lengths."""
    lengths = as_tensor([sequence.size(0) for sequence in sequences])
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Any]:
    """The sequences that were packed."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
