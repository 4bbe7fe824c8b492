"""Positions and shapes that are refused, in torch 2.13's words and order."""

from __future__ import annotations

import re

import pytest

import mindtorch_v2 as torch


def _assign(target, mask, values):
    target[mask] = values


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: torch.empty(10, 0)[:, [0, 1]], IndexError, "index is out of bounds for dimension with size 0"),
        (lambda: torch.empty(0, 3)[torch.tensor([0])], IndexError, "index is out of bounds for dimension with size 0"),
        (
            lambda: _assign(torch.arange(4), torch.arange(4) > -1, torch.tensor([])),
            RuntimeError,
            "shape mismatch: value tensor of shape [0] cannot be broadcast to indexing result of shape [4]",
        ),
        (
            lambda: _assign(torch.arange(4), torch.arange(4) > -1, torch.ones(4)),
            RuntimeError,
            "Index put requires the source and destination dtypes match, got Long for the destination and Float for the "
            "source.",
        ),
        (
            lambda: torch.unravel_index(torch.tensor([0]), torch.tensor([2.0, 3.0])),
            TypeError,
            "expected 'shape' to be int or sequence of ints, but got <class 'torch.Tensor'>",
        ),
    ],
)
def test_refusals(call, error, message: str) -> None:
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        call()


def test_dims_of_strided_tensors_are_dense() -> None:
    x = torch.ones(2, 3)
    assert (x.sparse_dim(), x.dense_dim(), x.to_sparse().sparse_dim(), x.to_sparse().dense_dim()) == (0, 2, 2, 0)


@pytest.mark.parametrize(
    "write",
    [
        lambda places, mask: places.index_fill_(0, places, 0),
        lambda places, mask: mask[1:].masked_fill_(mask[:-1], False),
        lambda places, mask: mask[1:].masked_fill_(mask[:-1], torch.tensor(False)),
    ],
)
def test_writes_into_what_says_where_to_write(write):
    places, mask = torch.tensor([2, 1, 0]), torch.tensor([True, False, True])
    with pytest.raises(
        RuntimeError, match="some elements of the input tensor and the written-to tensor refer to a single memory"
    ):
        write(places, mask)
    assert mask.masked_fill_(mask, False).any().item() is False  # the very same elements are read first


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: x.topk(1, True), r"topk\(\): argument 'dim' \(position 2\) must be int, not bool"),
        (lambda x: x.topk(True), r"topk\(\): argument 'k' \(position 1\) must be int, not bool"),
        (lambda x: x.argmax(True), r"argmax\(\): argument 'dim' \(position 1\) must be int, not bool"),
    ],
)
def test_bools_are_no_dims(call, message):
    with pytest.raises(TypeError, match=message):
        call(torch.rand(3, 3))
