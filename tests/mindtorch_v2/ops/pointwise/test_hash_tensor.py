"""`hash_tensor`: what PyTorch 2.13 answered."""

from __future__ import annotations

from typing import Any

import pytest

import mindtorch_v2 as torch

GRID = [[0.0, 1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0], [8.0, 9.0, 10.0, 11.0]]
COLUMNS = [13510798882111488, 4595360469778169856, 4628574517030027264, 4625759767262920704]


@pytest.mark.parametrize(
    ("dtype", "values", "expected"),
    [
        (torch.float64, [1, 3, -5], 0xBFEC000000000000),
        (torch.float32, [1, 3, -5], 0xBFEC000000000000),
        (torch.float16, [1, 3, -5], 0xBFEC000000000000),
        (torch.bfloat16, [1, 3, -5], 0xBFEC000000000000),
        (torch.int64, [1, 3, -5], 0xFFFFFFFFFFFFFFF9),
        (torch.int8, [1, 3, -5], 0xFFFFFFFFFFFFFFF9),
        (torch.uint8, [1, 3, 0], 2),
        (torch.bool, [True, True, False], 0),
        (torch.float32, [0.0, -0.0], 1 << 63),
    ],
)
def test_all_elements(dtype: torch.dtype, values: list[Any], expected: int) -> None:
    made = torch.hash_tensor(torch.tensor(values, dtype=dtype))
    assert (made.dtype, tuple(made.shape), made.item()) == (torch.uint64, (), expected)


@pytest.mark.parametrize(
    ("args", "kwargs", "expected"),
    [
        ((), {}, 4609434218613702656),
        ((0,), {}, COLUMNS),
        ((-2,), {"keepdim": True}, [COLUMNS]),
        ((1,), {"keepdim": True}, [[4609434218613702656], [0], [0]]),
        (((0, 1),), {"mode": 0}, 4609434218613702656),
        (([],), {}, 4609434218613702656),
    ],
)
def test_dims(args: tuple[Any, ...], kwargs: dict[str, Any], expected: Any) -> None:
    assert torch.hash_tensor(torch.tensor(GRID), *args, **kwargs).tolist() == expected
    assert torch.tensor(GRID).hash_tensor(*args, **kwargs).tolist() == expected


def test_other_layouts_and_no_elements() -> None:
    grid = torch.tensor(GRID)
    assert torch.hash_tensor(grid.t(), 1).tolist() == COLUMNS
    assert torch.hash_tensor(grid[:, ::2], 0).tolist() == COLUMNS[::2]
    assert torch.hash_tensor(torch.empty(2, 0, 3), 2).shape == (2, 0)


@pytest.mark.parametrize(
    ("tensor", "args", "kwargs", "error", "message"),
    [
        (torch.ones(3), (0,), {"mode": 1}, RuntimeError, "Unknown hash_tensor mode: 1"),
        (torch.ones(3), (2,), {}, IndexError, "Dimension out of range"),
        (torch.ones(3, 3), ((0, 0),), {}, RuntimeError, "dim 0 appears multiple times in the list of dims"),
        (torch.empty(0), (), {}, RuntimeError, "Expected reduction dim to be specified for input.numel"),
        (torch.empty(3, 0), (1,), {}, IndexError, "hash_tensor: Expected reduction dim 1 to have non-zero size."),
        (
            torch.ones(1, dtype=torch.complex64),
            (),
            {},
            NotImplementedError,
            "\"xor_sum_cpu\" not implemented for 'ComplexFloat'",
        ),
        (torch.ones(1, dtype=torch.uint16), (), {}, NotImplementedError, "\"xor_sum_cpu\" not implemented for 'UInt16'"),
    ],
)
def test_refusals(
    tensor: torch.Tensor, args: tuple[Any, ...], kwargs: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        torch.hash_tensor(tensor, *args, **kwargs)
