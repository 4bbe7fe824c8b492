"""Layers on tensors without elements: only the batch may be empty. Texts are torch 2.13's."""

from __future__ import annotations

import re

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import nn

_WORDS = (
    "Expected {}D or {}D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, but got: {}"
)
_FOLD_WORDS = (
    "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero dimensions for input, but got: {}"
)


@pytest.mark.parametrize("kind", ["Reflection", "Replication"])
@pytest.mark.parametrize("dims", [1, 2, 3])
def test_pads_by_the_border(kind: str, dims: int) -> None:
    pad = getattr(nn, f"{kind}Pad{dims}d")(2)
    space = (10,) * dims
    assert pad(torch.zeros(0, 3, *space)).shape == (0, 3, *(14,) * dims)
    for shape in ((3, 0, *space), (0, *space), (0, 3, 0, *space[1:]), (3, 0, *space[1:])):
        words = _WORDS.format(dims + 1, dims + 2, list(shape))
        with pytest.raises(RuntimeError, match=f"^{re.escape(words)}$"):
            pad(torch.zeros(shape))


def test_windows() -> None:
    unfold, fold = nn.Unfold((2, 3)), nn.Fold((2, 4), (2, 2))
    assert unfold(torch.zeros(0, 3, 3, 4)).shape == (0, 18, 4)
    assert fold(torch.zeros(0, 12, 3)).shape == (0, 3, 2, 4)
    for shape in ((3, 0, 3, 4), (0, 3, 4), (3, 3, 0), (2, 3, 0, 4)):
        with pytest.raises(RuntimeError, match=f"^{re.escape(_WORDS.format(3, 4, list(shape)))}$"):
            unfold(torch.zeros(shape))
    for shape in ((3, 0, 3), (12, 0), (0, 3), (2, 12, 0)):
        with pytest.raises(RuntimeError, match=f"^{re.escape(_FOLD_WORDS.format(list(shape)))}$"):
            fold(torch.zeros(shape))


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("count", [0, 1, 7])
def test_pads_want_two_numbers_for_each_dim(dims: int, count: int) -> None:
    message = f"^padding size is expected to be {2 * dims}"
    with pytest.raises(RuntimeError, match=f"{message}$"):
        getattr(torch.ops.aten, f"replication_pad{dims}d")(torch.zeros(2, 3, *(4,) * dims), [1] * count)
    with pytest.raises(RuntimeError, match=f"{message}, but got: {count}$"):
        getattr(torch.ops.aten, f"reflection_pad{dims}d")(torch.zeros(2, 3, *(4,) * dims), [1] * count)
