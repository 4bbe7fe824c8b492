"""What real PyTorch answered to expressions of arithmetic, reductions, statistics and linear algebra.

The answers are kept in math_values.json. Run this file with a Python that has PyTorch to answer every
expression again: a new case is a new key with the value null.
"""

from __future__ import annotations

import json
import math
import re
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

VALUES = Path(__file__).with_name("math_values.json")


@cache
def inputs() -> dict[str, np.ndarray]:
    """The names that expressions use: a letter for the dtype, p for positive ones, u for those below 1, e for edges."""
    random = np.random.RandomState(0)
    edges = [0.0, -0.0, 1.0, -1.0, 2.5, -2.5, 0.5, -0.5, 1e-30, 1e30, -1e30, np.inf, -np.inf, np.nan, 100.3, -100.3]
    others = [1.0, -0.0, 0.0, -1.0, 2.0, -2.0, np.nan, 0.5, np.inf, 1e30, 3.0, np.inf, 2.0, np.nan, -np.inf, 7.0]
    f, g, d, d2 = (random.randn(3, 4) for _ in range(4))
    sq = random.randn(3, 3)
    return {
        "f": f.astype(np.float32),
        "g": g.astype(np.float32),
        "d": d,
        "d2": d2,
        "h": f.astype(np.float16),
        "h2": g.astype(np.float16),
        "p": (np.abs(g) + 0.1).astype(np.float32),
        "dp": np.abs(d2) + 0.1,
        "u": random.uniform(0.1, 0.9, (3, 4)).astype(np.float32),
        "du": random.uniform(0.05, 0.95, (3, 4)),
        "e": np.array(edges, np.float32),
        "e2": np.array(others, np.float32),
        "i": random.randint(-9, 9, (3, 4)),
        "j": random.choice([-3, -2, -1, 1, 2, 3, 5], (3, 4)),
        "k": random.randint(0, 6, (3, 4)),
        "i32": random.randint(-9, 9, (3, 4)).astype(np.int32),
        "i8": random.randint(-100, 100, (3, 4)).astype(np.int8),
        "u8": random.randint(0, 255, (3, 4)).astype(np.uint8),
        "b": random.rand(3, 4) > 0.5,
        "b2": random.rand(3, 4) > 0.5,
        "iv": random.randint(0, 6, 12),
        "c": (random.randn(3, 4) + 1j * random.randn(3, 4)).astype(np.complex64),
        "c2": (random.randn(3, 4) + 1j * random.randn(3, 4)).astype(np.complex64),
        "cd": random.randn(3, 4) + 1j * random.randn(3, 4),
        "s": np.array(1.5, np.float32),
        "si": np.array(3),
        "sd": np.array(2.5),
        "z": np.zeros(0, np.float32),
        "z3": np.zeros((0, 3), np.float32),
        "sq": sq,
        "bsq": random.randn(2, 3, 3),
        "spd": sq @ sq.T + np.eye(3),
        "v3": random.randn(3),
        "v4": random.randn(4),
        "m34": random.randn(3, 4),
        "m45": random.randn(4, 5),
        "b3": random.randn(2, 3, 4),
        "b4": random.randn(2, 4, 5),
        "v": random.randn(7).astype(np.float32),
        "t": random.randn(64).astype(np.float32),
        "big": random.randn(3, 4, 5).astype(np.float32),
        "ramp": np.array([*np.linspace(-12, 12, 25), *np.linspace(-2, 2, 17), 1e-300, 1e-10, 40.5, -0.5]),
        "pramp": np.array([*np.linspace(1e-6, 5, 21), *np.linspace(5, 400, 11), 1e-300, 1e-10, 1e5, 1e15]),
        "unit": np.array([*np.linspace(-0.999, 0.999, 31), 1 - 1e-12, 1e-15, -1e-9, 1.0, -1.0, 0.0, 1.5]),
    }


def names(torch: Any, make: Callable[[np.ndarray], Any], expression: str) -> dict[str, Any]:
    """A namespace with fresh tensors for the names of an expression."""
    used = set(re.findall(r"\w+", expression))
    space = {name: make(array.copy()) for name, array in inputs().items() if name in used}
    if used & {"bf", "bf2"}:
        space["bf"], space["bf2"] = (make(inputs()[name].copy()).to(torch.bfloat16) for name in ("f", "g"))

    def grad(function: Callable[..., Any], *tensors: Any) -> list[Any]:
        """The gradients of a weighted sum of a function's results."""
        leaves = [t.detach().clone().requires_grad_() for t in tensors]
        result = function(*leaves)
        results = [r for r in (result if isinstance(result, tuple | list) else [result]) if r.requires_grad]
        weights = [make(np.linspace(0.5, 1.5, r.numel()).reshape(tuple(r.shape))).to(r.dtype) for r in results]
        return list(torch.autograd.grad(results, leaves, weights, allow_unused=True))

    return {**space, "torch": torch, "math": math, "inf": math.inf, "nan": math.nan, "grad": grad}


def described(torch: Any, value: Any) -> Any:
    """A result as JSON: [dtype, shape, values] of a tensor, a list for a tuple, else the value itself."""
    if isinstance(value, torch.Tensor):
        value = value.detach()
        dtype = str(value.dtype).split(".")[-1]
        shown = torch.view_as_real(value.clone()) if value.is_complex() else value
        if dtype in ("float16", "bfloat16"):
            shown = shown.to(torch.float32)
        return {"tensor": [dtype, list(value.shape), shown.tolist()]}
    if isinstance(value, tuple | list):
        return [described(torch, item) for item in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def answer(torch: Any, make: Callable[[np.ndarray], Any], expression: str) -> Any:
    """What a package answers to one expression: its result, or the error."""
    try:
        return described(torch, eval(expression, names(torch, make, expression)))
    except Exception as error:
        return {"raises": type(error).__name__}


def _shortened(value: Any, digits: int = 13) -> Any:
    """Without digits that no comparison looks at."""
    if isinstance(value, float):
        return float(f"{value:.{digits}g}")
    if isinstance(value, dict):
        inner = value.get("tensor")
        return (
            value
            if inner is None
            else {"tensor": [inner[0], inner[1], _shortened(inner[2], 13 if inner[0] in ("float64", "complex128") else 9)]}
        )
    return [_shortened(item, digits) for item in value] if isinstance(value, list) else value


def record() -> None:
    import torch

    warnings.simplefilter("ignore")
    lines = []
    for name, expressions in json.loads(VALUES.read_text()).items():
        answers = {e: json.dumps(_shortened(answer(torch, torch.from_numpy, e))) for e in expressions}
        body = ",\n".join(f"{json.dumps(e)}: {text}" for e, text in answers.items())
        lines.append(f"{json.dumps(name)}: {{\n{body}\n}}")
    VALUES.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    record()
