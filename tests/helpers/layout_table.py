"""Strides of results for operands that lie in memory in several ways, as real PyTorch gave them: layout_table.json.

Run this file with a Python that has PyTorch to record the table again.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

TABLE = Path(__file__).with_name("layout_table.json")
SHAPE = (2, 3, 4, 5)


def operands(torch: Any) -> dict[str, Any]:
    """Tensors of one shape, or that broadcast to it."""
    plain = (torch.arange(120.0) / 60 + 0.25).reshape(SHAPE)

    def laid_out(*order: int) -> Any:
        """The same values; the dims lie in memory in this order, outermost first."""
        return plain.permute(order).contiguous().permute(*[order.index(dim) for dim in range(4)])

    return {
        "plain": plain,
        "reversed": laid_out(3, 2, 1, 0),
        "channels_last": laid_out(0, 2, 3, 1),
        "swapped": laid_out(1, 0, 2, 3),
        "turned": laid_out(2, 3, 0, 1),
        "fresh": laid_out(3, 2, 1, 0) * 2,
        "gaps": torch.zeros(5, 4, 3, 4)[..., ::2].permute(3, 2, 1, 0).copy_(plain),
        "expanded": plain[:1].expand(SHAPE),
        "expanded_inside": plain[:, :, :1].transpose(1, 3).contiguous().transpose(1, 3).expand(SHAPE),
        "row": plain[0, 0, 0],
        "matrix": plain[0, 0].t().contiguous().t(),
        "column": plain[:, :1, :, :1].transpose(0, 2).contiguous().transpose(0, 2),
        "whole": plain.permute(3, 2, 1, 0).contiguous().permute(3, 2, 1, 0).int(),
        "number": plain[0, 0, 0, 0],
    }


UNARY: dict[str, Callable[[Any, Any], Any]] = {
    "clone": lambda t, x: x.clone(),
    "double": lambda t, x: x.double(),
    "half": lambda t, x: x.half(),
    "long": lambda t, x: x.long(),
    "to copy": lambda t, x: x.to(x.dtype, copy=True),
    "to channels_last": lambda t, x: x.to(memory_format=t.channels_last),
    "contiguous": lambda t, x: x.contiguous(),
    "clone contiguous": lambda t, x: x.clone(memory_format=t.contiguous_format),
    "zeros_like": lambda t, x: t.zeros_like(x),
    "rand_like": lambda t, x: t.rand_like(x.float()),
    "neg": lambda t, x: -x,
    "exp": lambda t, x: x.exp(),
    "erf": lambda t, x: t.erf(x),
    "gelu": lambda t, x: t.nn.functional.gelu(x.float()),
    "relu": lambda t, x: x.relu(),
    "times": lambda t, x: x * 2,
    "power": lambda t, x: x**2,
    "clamp": lambda t, x: x.clamp(0.5, 1),
    "isnan": lambda t, x: x.isnan(),
    "threshold": lambda t, x: t.nn.functional.threshold(x.float(), 0.5, 0),
    "dropout": lambda t, x: t.nn.functional.dropout(x.float(), 0.0),
    "sum": lambda t, x: x.sum(1),
    "sum kept": lambda t, x: x.sum(2, keepdim=True),
    "mean": lambda t, x: x.float().mean((0, 2)),
    "prod": lambda t, x: x.prod(0),
    "amax": lambda t, x: x.amax(3),
    "max": lambda t, x: x.max(1),
    "argmax": lambda t, x: x.argmax(2),
    "any": lambda t, x: x.any(1),
    "var": lambda t, x: x.float().var(1),
    "var_mean": lambda t, x: t.var_mean(x.float(), 2),
    "norm": lambda t, x: x.float().norm(dim=1),
    "logsumexp": lambda t, x: x.float().logsumexp(1),
    "median": lambda t, x: x.median(1),
    "softmax": lambda t, x: x.float().softmax(1),
    "log_softmax": lambda t, x: x.float().log_softmax(2),
    "cumsum": lambda t, x: x.cumsum(1),
    "cumprod": lambda t, x: x.cumprod(2),
    "cummax": lambda t, x: x.cummax(0),
    "logcumsumexp": lambda t, x: x.float().logcumsumexp(1),
    "sort": lambda t, x: x.sort(1),
    "topk": lambda t, x: x.topk(2, 1),
    "flip": lambda t, x: x.flip(1),
    "roll": lambda t, x: x.roll(1, 2),
    "rot90": lambda t, x: x.rot90(4),
    "tril": lambda t, x: x.tril(),
    "cat": lambda t, x: t.cat([x, x], 1),
    "stack": lambda t, x: t.stack([x, x], 1),
    "repeat": lambda t, x: x.repeat(1, 2, 1, 1),
    "masked_fill": lambda t, x: x.masked_fill(x > 1, 0),
    "index": lambda t, x: x[t.tensor([1, 0])],
    "index middle": lambda t, x: x[:, t.tensor([1, 0])],
    "index apart": lambda t, x: x[t.tensor([1, 0]), :, t.tensor([1, 0])],
    "index_select": lambda t, x: x.index_select(1, t.tensor([1, 0])),
    "gather": lambda t, x: x.gather(1, t.zeros(2, 3, 4, 5).long()),
    "where": lambda t, x: t.where(x > 1, x, 0.0),
    "batch_norm": lambda t, x: t.nn.functional.batch_norm(x.float(), None, None, training=True),
    "layer_norm": lambda t, x: t.nn.functional.layer_norm(x.float(), (5,)),
    "avg_pool2d": lambda t, x: t.nn.functional.avg_pool2d(x.float(), 2, 1),
    "max_pool2d": lambda t, x: t.nn.functional.max_pool2d(x.float(), 2, 1),
    "adaptive_avg_pool2d": lambda t, x: t.nn.functional.adaptive_avg_pool2d(x.float(), 2),
    "adaptive_max_pool2d": lambda t, x: t.nn.functional.adaptive_max_pool2d(x.float(), 2),
    "pad": lambda t, x: t.nn.functional.pad(x, (1, 1)),
    "reflect": lambda t, x: t.nn.functional.pad(x.float(), (1, 1, 1, 1), mode="reflect"),
    "conv2d": lambda t, x: t.nn.functional.conv2d(x.float(), t.ones(2, 3, 2, 2)),
    "matmul": lambda t, x: x.float() @ t.ones(5, 6),
    "bmm": lambda t, x: x.float()[0] @ t.ones(3, 5, 2),
    "linear": lambda t, x: t.nn.functional.linear(x.float(), t.ones(6, 5)),
}
BINARY: dict[str, Callable[[Any, Any, Any], Any]] = {
    "add": lambda t, x, y: x + y,
    "add alpha": lambda t, x, y: t.add(x, y, alpha=2),
    "sub": lambda t, x, y: x - y,
    "mul": lambda t, x, y: x * y,
    "div": lambda t, x, y: x / y,
    "floor_divide": lambda t, x, y: x // y,
    "remainder": lambda t, x, y: x % y,
    "pow": lambda t, x, y: x.float() ** y,
    "lt": lambda t, x, y: x < y,
    "maximum": lambda t, x, y: t.maximum(x, y),
    "fmin": lambda t, x, y: t.fmin(x, y),
    "atan2": lambda t, x, y: t.atan2(x, y),
    "logical_and": lambda t, x, y: t.logical_and(x, y),
    "isclose": lambda t, x, y: t.isclose(x.double(), y.double()),
    "where": lambda t, x, y: t.where(x > y, x, y),
    "lerp": lambda t, x, y: t.lerp(x.float(), y.float(), 0.5),
    "addcmul": lambda t, x, y: t.addcmul(x, y, y),
    "clamp": lambda t, x, y: t.clamp(x, y, y),
    "complex": lambda t, x, y: t.complex(x.float(), y.float()),
    "hypot": lambda t, x, y: t.hypot(x.float(), y.float()),
    "xlogy": lambda t, x, y: t.xlogy(x, y),
    "copysign": lambda t, x, y: t.copysign(x, y),
    "heaviside": lambda t, x, y: t.heaviside(x.float(), y.float()),
    "mse_loss": lambda t, x, y: t.nn.functional.mse_loss(x.float().expand(SHAPE), y.float().expand(SHAPE), reduction="none"),
}


def strides(torch: Any, call: Callable[[], Any]) -> Any:
    """Strides of the dims that have more than one place, for each result; the name of the exception of a refused call."""
    try:
        result = call()
    except Exception as error:
        return type(error).__name__
    results = [result] if isinstance(result, torch.Tensor) else list(result)
    return [[step for step, n in zip(one.stride(), one.shape, strict=True) if n > 1] for one in results]


def rows(torch: Any) -> dict[str, dict[str, Callable[[], Any]]]:
    """The calls of each op by the names of their operands."""
    given = operands(torch)
    wide = [name for name, tensor in given.items() if tensor.shape == SHAPE]
    table: dict[str, dict[str, Callable[[], Any]]] = {}
    for op, function in UNARY.items():
        table[op] = {name: lambda f=function, x=given[name]: f(torch, x) for name in wide}
    for op, function in BINARY.items():
        table[f"{op} of two"] = {
            f"{a}, {b}": lambda f=function, x=given[a], y=given[b]: f(torch, x, y) for a, b in product(given, given)
        }
    return table


def record() -> None:
    import torch

    warnings.simplefilter("ignore")
    table = {op: {name: strides(torch, call) for name, call in calls.items()} for op, calls in rows(torch).items()}
    lines = [f"{json.dumps(op)}: {json.dumps(answers)}" for op, answers in table.items()]
    TABLE.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    record()
