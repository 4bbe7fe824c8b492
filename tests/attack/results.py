"""Attacks on what ops return: values and memory of results, for operands that lie in memory in every way."""

from __future__ import annotations

import random
from typing import Any

from attacks import attack

import mindtorch_v2 as torch
from mindtorch_v2._core.strides import is_dense

_SHAPE = (2, 3, 4)
_CALLS: dict[str, Any] = {
    "+": lambda x, y: x + y,
    "*": lambda x, y: x * y,
    "<": lambda x, y: x < y,
    "maximum": torch.maximum,
    "where": lambda x, y: torch.where(x > y, x, y),
    "lerp": lambda x, y: torch.lerp(x.float(), y.float(), 0.25),
    "sum": lambda x, y: (x + y).sum(1),
    "cumsum": lambda x, y: (x * y).cumsum(2),
    "softmax": lambda x, y: (x - y).float().softmax(0),
    "sort": lambda x, y: (x + y).sort(1).values,
    "double": lambda x, y: (x + y).double(),
    "clone": lambda x, y: x.clone() + y.clone(),
    "index": lambda x, y: (x + y)[:, torch.tensor([2, 0])],
    "gelu": lambda x, y: torch.nn.functional.gelu((x + y).float()),
}


def _laid_out(chance: random.Random, plain: torch.Tensor) -> torch.Tensor:
    """The same elements, in another order of dims, with gaps, or with dims that repeat what was equal anyway."""
    order = chance.sample(range(3), 3)
    back = [order.index(dim) for dim in range(3)]
    gaps = chance.choice((1, 1, 2))
    sizes = [plain.shape[dim] for dim in order]
    room = torch.zeros([*sizes[:-1], sizes[-1] * gaps], dtype=plain.dtype)[..., ::gaps].permute(back)
    room.copy_(plain)
    return room if chance.random() < 0.7 else room[:1].expand(_SHAPE)


@attack(
    "operands that lie in memory in any order, with gaps or repeated give the same values, in memory without gaps",
    small=300,
    large=20_000,
)
def layouts(size: int) -> str:
    chance = random.Random(1)
    for _ in range(size):
        name = chance.choice(list(_CALLS))
        pair = []
        for _ in range(2):
            dtype = chance.choice((torch.float32, torch.float64, torch.int32))
            pair.append(_laid_out(chance, torch.randint(1, 9, _SHAPE).to(dtype)))
        result = _CALLS[name](*pair)
        plain = _CALLS[name](*(one.clone(memory_format=torch.contiguous_format) for one in pair))
        assert result.dtype == plain.dtype
        assert torch.equal(result, plain), (name, [one.stride() for one in pair])
        assert is_dense(result._array), (name, result.stride())
    return f"{size:,} calls of {len(_CALLS)} ops"
