"""Joining, repeating, rearranging and padding."""

from __future__ import annotations

import re

import numpy as np
import pytest

import mindtorch_v2 as torch


@pytest.mark.like_torch("join", "gradient_join")
def test_like_torch(compare, section, expression):
    compare(section, expression)


@pytest.mark.parametrize(("join", "message"), [
    (lambda x: torch.cat([x, x[:, :2]]), "Sizes of tensors must match except in dimension 0. Expected size 4 but got size 2"),
    (lambda x: torch.cat([x, x[0]]), "Tensors must have same number of dimensions: got 2 and 1"),
    (lambda x: torch.cat([x[0, 0], x]), "zero-dimensional tensor (at position 0) cannot be concatenated"),
    (lambda x: torch.stack([x, x[:1]]), "stack expects each tensor to be equal size, but got [3, 4] at entry 0 and [1, 4]"),
])
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


@pytest.mark.parametrize("kernel, stride, padding, dilation", [
    (2, 1, 0, 1), (3, 2, 1, 1), ((1, 2), (2, 1), (0, 1), (1, 2)),
])
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
    with pytest.raises(RuntimeError, match="negative output size"):
        pad(torch.zeros(2, 2), (-3, 0))
