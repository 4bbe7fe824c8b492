"""The dtype of every binary op for every pair of operands, beside what PyTorch gave: see tests/helpers/promotion_table.py."""

from __future__ import annotations

import json
import warnings

import promotion_table
import pytest

import mindtorch_v2 as torch

_WANTED = json.loads(promotion_table.TABLE.read_text())
_NAMES = {letter: name for name, letter in promotion_table.LETTERS.items()} | {promotion_table.REFUSED: "refused"}
_PAIRS = list(promotion_table.pairs(torch))
# torch has few kernels for these, and refuses what can be computed.
_RARE = ("uint16", "uint32", "uint64", "complex32")
# Other calls that torch refuses and that are computed here, or the other way round: see docs/compatibility.md.
_MORE = {"ldexp", "addcdiv"}


def _differences(name: str, row: str) -> list[str]:
    texts = []
    for pair, got, wanted in zip(_PAIRS, row, _WANTED[name], strict=True):
        text = f"{name}({pair}): {_NAMES[got]}, not {_NAMES[wanted]}"
        allowed = any(rare in text for rare in _RARE) and promotion_table.REFUSED in (got, wanted)
        half_of_complex = wanted == promotion_table.REFUSED and "float16" in pair and ("j)" in pair or "complex" in pair)
        if got != wanted and not allowed and not half_of_complex:
            texts.append(text)
    return texts


@pytest.mark.parametrize("name", sorted(promotion_table.ops(torch)))
def test_results_have_the_dtype_that_torch_gives_them(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        row = promotion_table.row(torch, promotion_table.ops(torch)[name])
    wrong = _differences(name, row)
    if name in _MORE:
        wrong = [text for text in wrong if not text.endswith("not refused")]
    if name == "clamp":  # a complex bound: torch takes its real part without a word
        wrong = [text for text in wrong if not ("0-d torch.complex" in text and ": refused" in text)]
    assert not wrong


@pytest.mark.parametrize("function", ["can_cast", "promote_types"])
def test_dtypes_are_cast_and_promoted_as_in_torch(function):
    assert promotion_table.casts(torch, function) == _WANTED[function]


def test_numbers_and_tensors_without_dims_keep_the_dtype():
    half = torch.tensor(2.0, dtype=torch.float16)
    assert (-1.1 // half).dtype == torch.float16
    assert (0 // torch.tensor(3, dtype=torch.int8)).dtype == torch.int8
    assert (half + 1j).dtype == torch.complex32
    assert torch.logsumexp(torch.ones(0, 2, dtype=torch.float16), 0).dtype == torch.float16
    vector = torch.ones(2, dtype=torch.float16)
    assert torch.addr(torch.tensor(1.0, dtype=torch.float64), vector, vector).dtype == torch.float64


def test_what_is_close_broadcasts():
    x = torch.tensor([1.0, float("nan")])
    assert torch.isclose(x, x[:, None], equal_nan=True).tolist() == [[True, False], [False, True]]
    assert torch.allclose(torch.ones(2, 3), torch.ones(3), equal_nan=True)


def test_a_number_is_copied():
    assert torch.zeros(2, dtype=torch.int32).copy_(2.5).tolist() == [2, 2]
    with pytest.raises(TypeError, match="must be Tensor, not str"):
        torch.zeros(2).copy_("2")
