"""What real PyTorch answered to expressions of losses, layers and resampling: values and derivatives.

The answers are kept in network_values.json, by section. Run this file with a Python that has PyTorch to answer every
expression again: a new case is a new key with the value null.
"""

from __future__ import annotations

import json
import math
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

VALUES = Path(__file__).with_name("network_values.json")


class Space(dict):
    """The names that expressions use. `t(3, 4)` is a leaf that derivatives are taken for, the others are constants."""

    def __init__(self, torch: Any) -> None:
        super().__init__(
            torch=torch,
            A=torch.ops.aten,
            F=torch.nn.functional,
            t=self.leaf,
            c=self.constant,
            pos=self.positive,
            ints=self.ints,
            signs=self.signs,
        )
        self.torch = torch
        self.leaves: list[Any] = []

    def _wave(self, shape: tuple[int, ...], seed: int) -> np.ndarray:
        count = math.prod(shape)
        return np.sin(np.arange(count) * 1.7 + 0.3 + seed * 0.77).reshape(shape) * (1 + 0.1 * seed)

    def leaf(self, *shape: int, seed: int = 0, scale: float = 1.0, shift: float = 0.0) -> Any:
        made = self.torch.from_numpy(np.asarray(self._wave(shape, seed) * scale + shift)).requires_grad_()
        self.leaves.append(made)
        return made

    def positive(self, *shape: int, seed: int = 0) -> Any:
        """A leaf with values in (0.05, 0.95)."""
        return self.leaf(*shape, seed=seed, scale=0.4 / (1 + 0.1 * seed), shift=0.5)

    def constant(self, *shape: int, seed: int = 0) -> Any:
        return self.torch.from_numpy(np.asarray(self._wave(shape, seed)))

    def ints(self, below: int, *shape: int, seed: int = 0) -> Any:
        count = math.prod(shape)
        return self.torch.from_numpy((np.arange(count) * 7 + seed * 3 + 1).reshape(shape) % below)

    def signs(self, *shape: int) -> Any:
        return self.torch.from_numpy(np.where(self._wave(shape, 3) > 0, 1.0, -1.0))


def described(torch: Any, value: Any) -> Any:
    """A result as JSON: tensors as [dtype, shape, values], numbers to seven digits."""
    if isinstance(value, torch.Tensor):
        array = value.detach()
        kind = str(array.dtype).split(".")[-1]
        if array.is_floating_point():
            return [kind, list(array.shape), [_short(v) for v in array.double().reshape(-1).tolist()]]
        return [kind, list(array.shape), array.reshape(-1).tolist()]
    if isinstance(value, tuple | list):
        return [described(torch, item) for item in value]
    return value


def _short(value: float) -> Any:
    return repr(value) if value != value or value in (math.inf, -math.inf) else float(f"{value:.7g}")


def _flat(torch: Any, value: Any) -> list[Any]:
    if isinstance(value, torch.Tensor):
        return [value]
    return [t for item in value for t in _flat(torch, item)] if isinstance(value, tuple | list) else []


def _total(torch: Any, tensors: list[Any], phase: float) -> Any:
    """A number that depends on every element in a way of its own."""
    total = 0
    for tensor in tensors:
        weights = np.cos(np.arange(tensor.numel()) * 0.9 + phase).reshape(tuple(tensor.shape))
        total = total + (tensor * torch.from_numpy(np.asarray(weights)).to(tensor.dtype)).sum()
    return total


def answer(torch: Any, expression: str) -> dict[str, Any]:
    """Value and first and second derivatives of an expression, as far as there are any; or the error's type."""
    space = Space(torch)
    try:
        result = eval(expression, space)
    except Exception as error:
        return {"error": type(error).__name__}
    said = {"value": described(torch, result)}
    smooth = [t for t in _flat(torch, result) if t.is_floating_point() and t.requires_grad]
    if not smooth:
        return said
    # Squares, so that the second derivative of a linear function says something, too.
    total = _total(torch, [t * t for t in smooth], 0.3)
    first = torch.autograd.grad(total, space.leaves, create_graph=True, allow_unused=True)
    said["first"] = [None if g is None else described(torch, g) for g in first]
    further = [g for g in first if g is not None and g.requires_grad]
    if further and "once" not in expression:
        second = torch.autograd.grad(_total(torch, further, 0.8), space.leaves, allow_unused=True)
        # A derivative that is zero throughout may be left out by either side.
        said["second"] = [None if g is None or not bool((g != 0).any()) else described(torch, g) for g in second]
        if not any(said["second"]):
            del said["second"]
    return said


def main() -> None:
    """Answer every expression again, with PyTorch."""
    import torch

    warnings.simplefilter("ignore")
    recorded = json.loads(VALUES.read_text())
    for section, expressions in recorded.items():
        recorded[section] = {expression: answer(torch, expression) for expression in expressions}
    lines = []
    for section, expressions in recorded.items():
        rows = ",\n".join(f"  {json.dumps(e)}: {json.dumps(said)}" for e, said in expressions.items())
        lines.append(f" {json.dumps(section)}: {{\n{rows}\n }}")
    VALUES.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    sys.exit(main())
