"""Memory that is left unset: what `use_deterministic_algorithms` fills it with, and `resize_` in memory formats."""

from __future__ import annotations

import pytest

import mindtorch_v2 as torch

MAKERS = [
    lambda d: torch.empty(3, 2, dtype=d),
    lambda d: torch.empty(1, 2, 3, 4, dtype=d, memory_format=torch.channels_last),
    lambda d: torch.empty_like(torch.zeros(3, 2, dtype=d).t()),
    lambda d: torch.empty_strided((2, 3), (1, 2), dtype=d),
    lambda d: torch.empty_permuted((2, 3), (1, 0), dtype=d),
    lambda d: torch.zeros(1, dtype=d).new_empty(4),
    lambda d: torch.empty(0, dtype=d).resize_(2, 3),
]
VALUES = {torch.float32: float("nan"), torch.bfloat16: float("nan"), torch.int8: 127, torch.uint16: 65535, torch.bool: True}


@pytest.fixture
def deterministic():
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)
    torch.utils.deterministic.fill_uninitialized_memory = True


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.usefixtures("deterministic")
def test_unset_memory_is_filled(make):
    for dtype, value in VALUES.items():
        made = make(dtype)
        assert made.isnan().all() if value != value else (made == value).all()
    assert make(torch.complex64).isnan().all()


@pytest.mark.usefixtures("deterministic")
def test_what_a_resized_tensor_held_stays():
    x = torch.tensor([1.0, 2.0]).resize_(4)
    assert x[:2].tolist() == [1.0, 2.0] and x[2:].isnan().all()
    torch.utils.deterministic.fill_uninitialized_memory = False
    assert torch._C._get_deterministic_fill_uninitialized_memory() is False
    assert torch.empty is not None and torch.zeros(2).new_empty(2).shape == (2,)


def test_the_switches():
    for mode, warn_only, debug in ((True, True, 1), (True, False, 2), (False, True, 0), (False, False, 0)):
        torch.use_deterministic_algorithms(mode, warn_only=warn_only)
        assert torch.are_deterministic_algorithms_enabled() is mode
        assert torch.is_deterministic_algorithms_warn_only_enabled() is warn_only
        assert torch.get_deterministic_debug_mode() == debug
    with pytest.raises(
        TypeError, match=r"_set_deterministic_algorithms\(\): argument 'mode' \(position 1\) must be bool, not int"
    ):
        torch.use_deterministic_algorithms(1)


def test_resize_in_memory_formats():
    x = torch.arange(24.0)
    assert x.resize_((1, 2, 3, 4), memory_format=torch.channels_last).stride() == (24, 1, 8, 2)
    assert x.resize_((1, 2, 3, 4), memory_format=torch.contiguous_format).stride() == (24, 12, 4, 1)
    template = torch.empty(1, 2, 3, 4, memory_format=torch.channels_last)
    assert torch.empty(0).resize_as_(template).stride() == (24, 12, 4, 1)
    assert torch.empty(0).resize_as_(template, memory_format=torch.preserve_format).stride() == (24, 1, 8, 2)
    with pytest.raises(RuntimeError, match="required rank 4 tensor to use channels_last format"):
        torch.empty(0).resize_((2, 3), memory_format=torch.channels_last)
