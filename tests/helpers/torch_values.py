"""What real PyTorch answered to the expressions of these tests, kept as data in torch_values.json.

Run this file with a Python that has PyTorch to answer every expression of the data file again:
a new case is a new key with the value null.
"""

from __future__ import annotations

import json
import re
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

VALUES = Path(__file__).with_name("torch_values.json")


def spread(*shape: int, step: int = 7, start: int = 1) -> np.ndarray:
    """Distinct multiples of 1/8 in no particular order, exact in every float dtype."""
    count = int(np.prod(shape))
    return (((np.arange(count) * step + start) % (count + (count % step == 0))) / 8 + 0.125).reshape(shape)


@cache
def inputs() -> dict[str, np.ndarray]:
    """The names that expressions use."""
    return {
        "a": spread(3, 4).astype(np.float32),
        "b": spread(2, 3, 4),
        "c": spread(2, 3, 4, 5).astype(np.float32),
        "v": spread(4).astype(np.float32),
        "s": np.array(1.5, np.float32),
        "q": spread(3, 3, step=5),
        "w": spread(2, 4, step=5).astype(np.float32),
        "l": spread(8, step=5),
        "u": spread(3, 1, 4, 1).astype(np.float32),
        "e": np.zeros((0, 3), np.float32),
        "x5": spread(5, 7, step=3).astype(np.float32),
        "im": spread(1, 4, 6, 6, step=11).astype(np.float32),
        "h16": spread(3, 4).astype(np.float16),
        "n": np.array([[3, -5, 8, 2], [0, 7, -2, 4], [3, 1, -4, 6]]),
        "z": (spread(3, 4) + 1j * spread(3, 4, step=5)).astype(np.complex64),
        "m": np.array([[True, False, True, False], [False, False, True, True], [True, True, False, False]]),
        "mv": np.array([True, False, True]),
        "i": np.array([0, 2]),
        "j": np.array([[0, 1], [2, 0]]),
        "g": np.array([[0, 2, 1, 0], [2, 2, 0, 1]]),
        "h": np.array([[0, 3], [1, 1], [2, 0]]),
        "i32": np.array([1, 0], np.int32),
        "b8": np.array([1, 0, 1], np.uint8),
        "nan": np.array([3.0, np.nan, 1.0, np.nan, 2.0], np.float32),
        "dup": np.array([3, 1, 3, 2, 1]),
        "dm": np.array([[1, 2], [1, 2], [0, 3], [1, 2]]),
    }


def names(torch: Any, make: Any, expression: str, grad: bool) -> dict[str, Any]:
    """A namespace with fresh tensors for the names of an expression."""
    used = set(re.findall(r"\w+", expression))
    made = {name: make(array.copy()) for name, array in inputs().items() if name in used}
    if grad:
        for tensor in made.values():
            if tensor.is_floating_point() or tensor.is_complex():
                tensor.requires_grad_()
    return {**made, "torch": torch, "np": np}


def described(torch: Any, value: Any) -> Any:
    """A result as JSON: [dtype, shape, stride, values] of a tensor, a list for a tuple, else the value itself."""
    if isinstance(value, torch.Tensor):
        value = value.detach()
        shown = torch.view_as_real(value.clone()) if value.is_complex() else value
        stride = list(value.stride()) if value.numel() > 1 else None
        return {"tensor": [str(value.dtype).split(".")[-1], list(value.shape), stride, shown.tolist()]}
    if isinstance(value, tuple | list):
        return [type(value).__name__, *[described(torch, item) for item in value]]
    return value


def answer(torch: Any, make: Any, section: str, expression: str) -> Any:
    """What a package answers to one expression: its result, what it changed, the gradients, or the error."""
    space = names(torch, make, expression, section.startswith("gradient") or section == "error")
    try:
        if section.startswith("assignment"):
            exec(expression, space)
            return {
                name: described(torch, space[name])
                for name in ("a", "b", "n", "z", "m")
                if name in space and not np.array_equal(space[name].numpy(), inputs()[name])
            }
        result = eval(expression, space)
        if not section.startswith("gradient"):
            return described(torch, result)
        node = None if result.grad_fn is None else result.grad_fn.name()
        result = torch.view_as_real(result) if result.is_complex() else result
        weight = make(spread(*result.shape, step=3)).to(result.dtype)
        (result * weight).sum().backward()
        return {
            "node": node,
            **{
                name: described(torch, t.grad)
                for name, t in space.items()
                if isinstance(t, torch.Tensor) and t.grad is not None
            },
        }
    except Exception as error:
        if "error" not in section:
            raise
        return {"raises": type(error).__name__, "message": str(error)}


def record() -> None:
    import torch

    warnings.simplefilter("ignore")
    sections = json.loads(VALUES.read_text())
    lines = []
    for name, expressions in sections.items():
        answers = {e: json.dumps(answer(torch, torch.from_numpy, name, e)) for e in expressions}
        body = ",\n".join(f"{json.dumps(e)}: {text}" for e, text in answers.items())
        lines.append(f"{json.dumps(name)}: {{\n{body}\n}}")
    VALUES.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    record()
