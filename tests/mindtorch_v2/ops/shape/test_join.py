"""Joining, repeating, rearranging and padding."""

from __future__ import annotations

import re

import numpy as np
import pytest

import mindtorch_v2 as torch


@pytest.mark.like_torch("join", "gradient_join")
def test_like_torch(compare, section, expression):
    compare(section, expression)


@pytest.mark.parametrize(
    ("join", "message"),
    [
        (
            lambda x: torch.cat([x, x[:, :2]]),
            "Sizes of tensors must match except in dimension 0. Expected size 4 but got size 2",
        ),
        (lambda x: torch.cat([x, x[0]]), "Tensors must have same number of dimensions: got 2 and 1"),
        (lambda x: torch.cat([x[0, 0], x]), "zero-dimensional tensor (at position 0) cannot be concatenated"),
        (lambda x: torch.stack([x, x[:1]]), "stack expects each tensor to be equal size, but got [3, 4] at entry 0 and [1, 4]"),
    ],
)
@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_parts_that_do_not_fit(join, message, device):
    with pytest.raises(RuntimeError, match=re.escape(message)):
        join(torch.zeros(3, 4, device=device))


def test_joined_tensors_are_contiguous_whatever_their_parts_are():
    x = torch.zeros(3, 4).t()
    for made in (torch.cat([x, x]), torch.cat([x, x], 1), torch.stack([x, x]), torch.stack([x, x], -1)):
        assert made.is_contiguous()


def test_meshgrid_asks_for_the_indexing():
    with pytest.warns(UserWarning, match="indexing argument"):
        rows, columns = torch.meshgrid(torch.arange(2), torch.arange(3))
    assert rows.tolist() == [[0, 0, 0], [1, 1, 1]]
    assert columns.tolist() == [[0, 1, 2], [0, 1, 2]]


@pytest.mark.parametrize(
    "kernel, stride, padding, dilation",
    [
        (2, 1, 0, 1),
        (3, 2, 1, 1),
        ((1, 2), (2, 1), (0, 1), (1, 2)),
    ],
)
def test_fold_adds_up_what_unfold_took_apart(kernel, stride, padding, dilation):
    options = {"kernel_size": kernel, "stride": stride, "padding": padding, "dilation": dilation}
    f = torch.nn.functional
    image = torch.from_numpy(np.random.default_rng(0).random((2, 3, 6, 5)))
    folded, count = (f.fold(f.unfold(x, **options), (6, 5), **options) for x in (image, torch.ones_like(image)))
    np.testing.assert_allclose(folded.numpy(), (image * count).numpy())


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
def test_borders_like_numpy(mode):
    array = np.random.default_rng(0).random((2, 3, 4, 5))
    known = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}[mode]
    made = torch.nn.functional.pad(torch.from_numpy(array), (2, 1, 3, 2), mode=mode)
    assert np.array_equal(made.numpy(), np.pad(array, ((0, 0), (0, 0), (3, 2), (2, 1)), known))


def test_padding_asks_for_what_it_can_do():
    pad = torch.nn.functional.pad
    with pytest.raises(NotImplementedError, match="Padding size 2 is not supported for 4D input"):
        pad(torch.zeros(1, 1, 2, 2), (1, 1), mode="reflect")
    with pytest.raises(RuntimeError, match="doesn't take in value argument"):
        pad(torch.zeros(1, 2, 2), (1, 1), mode="reflect", value=2)
    with pytest.raises(RuntimeError, match="length must be non-negative"):
        pad(torch.zeros(2, 2), (-3, 0))


def _last(*shape):
    return torch.zeros(*shape).contiguous(memory_format=torch.channels_last if len(shape) == 4 else torch.channels_last_3d)


@pytest.mark.parametrize(
    "join, stride",
    [
        (lambda x: torch.cat([x, x], 1), (120, 1, 30, 6)),
        (lambda x: torch.cat([x, x]), (60, 1, 15, 3)),
        (lambda x: torch.cat([x[:, :2], x], 1), (100, 1, 25, 5)),
        (lambda x: torch.cat([x[:, :, ::2], x], 2), (90, 1, 15, 3)),
        (lambda x: torch.cat([x.double(), x], 2), (120, 1, 15, 3)),
        (lambda x: torch.hstack([x, x]), (120, 1, 30, 6)),
        (lambda x: torch.cat([_last(1, 2, 3, 4, 5)] * 2), (120, 1, 40, 10, 2)),
        (lambda x: torch.cat([x, x.contiguous()]), (60, 20, 5, 1)),
        (lambda x: torch.cat([x, torch.zeros(0)]), (60, 20, 5, 1)),
        (lambda x: torch.cat([x.permute(1, 0, 2, 3)] * 2), (40, 20, 5, 1)),
    ],
)
def test_parts_with_their_channels_last_make_a_whole_with_its_channels_last(join, stride):
    assert join(_last(2, 3, 4, 5)).stride() == stride


def test_chunks_are_joined_chunk_by_chunk():
    x = torch.arange(6.0).view(3, 2)
    assert torch._chunk_cat([x, torch.ones(3)], 0, 2).tolist() == [[0, 1, 2, 3, 1, 1], [4, 5, 0, 0, 1, 0]]
    assert torch._chunk_cat([x, x], 1, 2).tolist() == [[[0, 0], [1, 1]], [[2, 2], [3, 3]], [[4, 4], [5, 5]]]
    out = torch.zeros(0)
    assert torch._chunk_cat([x], 0, 2, out=out) is out and out.tolist() == [[0, 1, 2, 3], [4, 5, 0, 0]]


@pytest.mark.parametrize(
    "tensors, dim, chunks, message",
    [
        ([], 0, 2, "expects a non-empty input tensor list"),
        ([torch.ones(3)], 0, 0, "expects positive num_chunks"),
        ([torch.ones(3, 2), torch.ones(3)], -1, 2, "expects non-negative dim when input tensors have different ndims"),
        ([torch.ones(3, 2), torch.ones(3)], 1, 2, "expects dim < ndim for all input tensors"),
        ([torch.ones(3, 2), torch.ones(2, 2)], 1, 2, "expects same sizes of 0,...,dim-1 dimensions for all tensors"),
        ([torch.ones(3), torch.ones(3, dtype=torch.float64)], 0, 2, "expects all input tensors with the same dtype"),
        ([torch.ones(0)], 0, 2, "expects non-empty tensor"),
    ],
)
def test_chunks_that_cannot_be_joined(tensors, dim, chunks, message):
    with pytest.raises(RuntimeError, match=f"_chunk_cat {re.escape(message)}"):
        torch._chunk_cat(tensors, dim, chunks)


@pytest.mark.parametrize(
    "call, kind, message",
    [
        (lambda: torch.roll(torch.tensor(1.0), 0, 0), IndexError, "Dimension specified as 0 but tensor has no dimensions"),
        (lambda: torch.zeros(2, 3).movedim((0, -2), (0, 1)), RuntimeError, "movedim: repeated dim in `source` ([0, -2])"),
        (lambda: torch.zeros(2, 3).movedim((0, 1), (0, -2)), RuntimeError, "movedim: repeated dim in `destination` ([0, -2])"),
        (
            lambda: torch.zeros(2, 4).narrow(1, 5, 0),
            IndexError,
            "start out of range (expected to be in range of [-4, 4], but got 5)",
        ),
        (
            lambda: torch.zeros(2, 4).narrow(1, -5, 0),
            IndexError,
            "start out of range (expected to be in range of [-4, 4], but got -5)",
        ),
        (lambda: torch.zeros(2, 4).narrow(1, -2, 3), RuntimeError, "start (2) + length (3) exceeds dimension size (4)."),
        (lambda: torch.zeros(2, 4).narrow(1, 9, -1), RuntimeError, "narrow(): length must be non-negative."),
        (lambda: torch.zeros(2, 4).narrow_copy(1, 2, 3), RuntimeError, "start (2) + length (3) exceeds dimension size (4)."),
    ],
)
def test_dims_and_starts_that_there_are_not(call, kind, message):
    with pytest.raises(kind) as error:
        call()
    assert str(error.value) == message


def test_split_takes_torchs_keywords():
    x = torch.arange(4)
    halves = [[0, 1], [2, 3]]
    assert [part.tolist() for part in x.split(split_size=2, dim=0)] == halves
    assert [part.tolist() for part in torch.split(tensor=x, split_size_or_sections=[2, 2])] == halves
    with pytest.raises(TypeError, match="unexpected keyword argument 'split_size_or_sections'"):
        x.split(split_size_or_sections=2)
