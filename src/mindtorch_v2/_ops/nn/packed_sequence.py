"""Packing padded sequences step by step, and back."""

from __future__ import annotations

import numpy as np

from ..._core.keys import META
from ..._core.tensor import make_meta, make_tensor
from ..._dispatch.registry import aten, op
from .._support.common import scalar_name

_INT64 = np.dtype(np.int64)


def _places(batch_sizes, batch):
    """Where packed rows stand in a (T, N) grid, flattened."""
    steps = np.repeat(np.arange(len(batch_sizes)), batch_sizes)
    starts = np.cumsum(batch_sizes) - batch_sizes
    return steps * batch + np.arange(len(steps)) - np.repeat(starts, batch_sizes)


def _lengths(batch_sizes):
    """How many steps each sample has."""
    batch = int(batch_sizes[0]) if batch_sizes.size else 0
    return np.add.reduce(batch_sizes[:, None] > np.arange(batch), 0, _INT64)


def _check_lengths(lengths, batch):
    if lengths.ndim != 1 or len(lengths) != batch:
        raise RuntimeError(f"Expected `len(lengths)` to be equal to batch_size, but got {lengths.size} (batch_size={batch})")
    if lengths.min() <= 0:
        raise RuntimeError("Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0")
    if (lengths[1:] > lengths[:-1]).any():
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You "
            "can pass `enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep "
            "this requirement if you do not need ONNX exportability."
        )


def _packed_sizes(grid, lengths):
    """How many samples have each step."""
    steps, batch = grid.shape[:2]
    _check_lengths(lengths, batch)
    if lengths[0] > steps:
        raise RuntimeError(f"start (0) + length ({lengths[0]}) exceeds dimension size ({steps}).")
    return np.add.reduce(np.arange(int(lengths[0]))[:, None] < lengths, 1, _INT64)


@op("_pack_padded_sequence(Tensor input, Tensor lengths, bool batch_first) -> (Tensor, Tensor)", samples=lambda make: [])
def pack_padded_sequence(input, lengths, batch_first):
    if not input.size:
        raise RuntimeError("Cannot pack empty tensors.")
    if lengths.dtype != _INT64:
        raise RuntimeError(
            f"'lengths' argument should be a 1D CPU int64 tensor, but got {lengths.ndim}D cpu {lengths.dtype.name} tensor"
        )
    grid = input.swapaxes(0, 1) if batch_first else input
    steps, batch = grid.shape[:2]
    batch_sizes = _packed_sizes(grid, lengths)
    flat = np.ascontiguousarray(grid).reshape(steps * batch, *grid.shape[2:])
    return flat.take(_places(batch_sizes, batch), 0), batch_sizes


@pack_padded_sequence.kernel_for("meta")
def _pack_meta(input, lengths, batch_first):
    """The lengths have memory all the same: the sizes follow from them."""
    if lengths._keys & META:
        raise RuntimeError("'lengths' argument should be a 1D CPU int64 tensor, but got a tensor on the meta device")
    sizes = input._array.shape[:2]
    placeholder = np.empty((*sizes, 0) if input._array.ndim > 2 else sizes, np.bool_)
    batch_sizes = _packed_sizes(placeholder.swapaxes(0, 1) if batch_first else placeholder, lengths._array)
    return make_meta((int(batch_sizes.sum()), *input._array.shape[2:]), input._array.dtype), make_tensor(batch_sizes)


@pack_padded_sequence.vjp
def _(g, input_shape, batch_first, result1):
    return aten._pack_padded_sequence_backward(g, input_shape, result1, batch_first), None


@op(
    "_pack_padded_sequence_backward(Tensor grad, int[] input_size, Tensor batch_sizes, bool batch_first) -> Tensor",
    shape=lambda grad, input_size, *_: (tuple(input_size), grad._array.dtype),
    samples=lambda make: [],
)
def pack_padded_sequence_backward(grad, input_size, batch_sizes, batch_first):
    grad_input = np.zeros(input_size, grad.dtype)
    _scatter(grad_input, grad, batch_sizes, batch_first)
    return grad_input


pack_padded_sequence_backward.vjp(
    grad=lambda g, batch_sizes, batch_first: aten._pack_padded_sequence(
        g, make_tensor(_lengths(batch_sizes._array)), batch_first
    )[0]
)


def _scatter(padded, rows, batch_sizes, batch_first):
    """Write packed rows to their places in a padded array."""
    grid = padded.swapaxes(0, 1) if batch_first else padded
    batch = grid.shape[1]
    at = _places(batch_sizes, batch)
    grid[at // batch, at % batch] = rows


@op(
    "_pad_packed_sequence(Tensor data, Tensor batch_sizes, bool batch_first, Scalar padding_value, int total_length) "
    "-> (Tensor, Tensor)",
    samples=lambda make: [],
)
def pad_packed_sequence(data, batch_sizes, batch_first, padding_value, total_length):
    if batch_sizes.ndim != 1 or batch_sizes.dtype != np.int64:
        raise RuntimeError(
            f"'lengths' argument should be a 1D CPU int64 tensor, but got {batch_sizes.ndim}D cpu "
            f"{scalar_name(batch_sizes)} tensor"
        )
    steps, batch = len(batch_sizes), int(batch_sizes[0])
    if total_length > 0:
        if total_length < steps:
            raise RuntimeError(
                "Expected total_length to be at least the length of the longest sequence in input, "
                f"but got total_length={total_length} and max sequence length being {steps}"
            )
        steps = total_length
    shape = (batch, steps) if batch_first else (steps, batch)
    padded = np.full((*shape, *data.shape[1:]), padding_value, data.dtype)
    _scatter(padded, data, batch_sizes, batch_first)
    return padded, _lengths(batch_sizes)


@pad_packed_sequence.vjp
def _(g, batch_first, result1):
    return aten._pack_padded_sequence(g, result1, batch_first)[0], None
