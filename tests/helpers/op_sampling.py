"""Arguments to test any declared op with, and the numerical derivatives to compare its own with.

An op's samples are built from leaves that `make` hands out, and can be built again with other values in the
leaves. So a derivative is checked with respect to the leaves, whatever a sample makes of them: a symmetric
matrix stays symmetric while an entry of what it was made from moves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import mindtorch_v2 as torch
import mindtorch_v2._ops.reduction.histogramdd
import mindtorch_v2.special
from mindtorch_v2._dispatch import registry
from mindtorch_v2._dispatch.registry import OpSpec
from mindtorch_v2._dispatch.schema import REQUIRED

Tensor = torch.Tensor


class NoSamples(Exception):
    """An op that has neither samples nor arguments that could be made up."""


class Make:
    """Hands out the tensors of samples: `make(3, 4)` floats in (0.1, 0.9), `make.ints(5, 3, 4)`,
    `make.bools(3, 4)`, and `make.constant(4)` where no derivative is wanted.
    """

    def __init__(self, dtype: Any = torch.float64, grad: bool = False, values: list[np.ndarray] | None = None) -> None:
        self._dtype = dtype
        self._grad = grad
        self._values = values
        self._count = 0
        self.leaves: list[Tensor] = []

    def _random(self) -> np.random.RandomState:
        self._count += 1
        return np.random.RandomState(self._count)

    def __call__(self, *shape: int) -> Tensor:
        random = self._random()
        value = random.uniform(0.1, 0.9, shape) if self._values is None else self._values[len(self.leaves)]
        leaf = torch.tensor(value, dtype=self._dtype)
        if self._grad:
            leaf.requires_grad_()
        self.leaves.append(leaf)
        return leaf

    def constant(self, *shape: int) -> Tensor:
        """Floats for an argument that has no derivative, as the weights of a loss."""
        return torch.tensor(self._random().uniform(0.1, 0.9, shape), dtype=self._dtype)

    def ints(self, below: int, *shape: int) -> Tensor:
        return torch.tensor(self._random().randint(0, below, shape))

    def bools(self, *shape: int) -> Tensor:
        return torch.tensor(self._random().rand(*shape) > 0.5)


def _default_arguments(spec: OpSpec, make: Make) -> tuple[Any, ...]:
    positional: list[Any] = []
    keywords: dict[str, Any] = {}
    for argument in spec.schema.arguments:
        if argument.is_tensor and (not argument.optional or argument.default is REQUIRED):
            value: Any = None if argument.optional else make(3, 4)
        elif argument.is_tensor_list and argument.default is REQUIRED:
            value = [make(3, 4), make(3, 4)]
        elif argument.default is REQUIRED:
            raise NoSamples(f"{spec.schema.full_name} needs samples=: nothing stands for `{argument.name}`")
        else:
            continue
        if argument.keyword_only:
            keywords[argument.python_name] = value
        else:
            # What lies between keeps its default.
            before = [a for a in spec.schema.arguments if not a.keyword_only]
            positional.extend(skipped.default for skipped in before[len(positional) : before.index(argument)])
            positional.append(value)
    return (*positional, keywords) if keywords else tuple(positional)


def samples_of(spec: OpSpec, make: Make) -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Positional and keyword arguments of every sample of an op."""
    listed = [_default_arguments(spec, make)] if spec.samples is None else spec.samples(make)
    return [(sample[:-1], sample[-1]) if sample and isinstance(sample[-1], dict) else (sample, {}) for sample in listed]


def all_specs() -> Iterator[OpSpec]:
    """Every overload of every op of torch's, as declared when this is called."""
    for name, packet in sorted(registry.packets.items()):
        if "::" not in name:
            yield from packet


def tensors_in(value: Any) -> list[Tensor]:
    """The tensors of a result: one, several, or none."""
    if isinstance(value, Tensor):
        return [value]
    return [t for item in value for t in tensors_in(item)] if isinstance(value, list | tuple) else []


def array_of(tensor: Tensor) -> np.ndarray:
    return tensor.detach().resolve_conj().resolve_neg().numpy()


class Case:
    """One sample of one op, to be run as often as needed."""

    def __init__(self, spec: OpSpec, index: int) -> None:
        self.spec = spec
        self.index = index

    def arguments(self, make: Make) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return samples_of(self.spec, make)[self.index]

    def run(self, make: Make, call: Callable[..., Any] | None = None) -> Any:
        """The op's result; an op that writes gets something to write into that is no leaf."""
        torch.manual_seed(0)
        args, kwargs = self.arguments(make)
        if self.spec.schema.mutates:
            args = (_writable(args[0]), *args[1:])
        return (call or self.spec)(*args, **kwargs)

    def scalar(self, make: Make, weights: list[np.ndarray] | list[Tensor], count: int | None) -> Tensor:
        """A weighted sum of the result's first `count` tensors, as a function of the leaves."""
        parts = [
            (output * (weight if isinstance(weight, Tensor) else torch.tensor(weight))).sum()
            for output, weight in zip(differentiable(self.run(make), count), weights, strict=True)
        ]
        total = parts[0]
        for part in parts[1:]:
            total = total + part
        return total


def _writable(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.clone()
    return [t.clone() for t in value] if isinstance(value, list | tuple) else value


def differentiable(result: Any, count: int | None) -> list[Tensor]:
    """The real ones of a result's first `count` tensors; complex ones as their two parts."""
    found: list[Tensor] = []
    for tensor in tensors_in(result)[:count]:
        if tensor.is_complex():
            found += [torch.real(tensor), torch.imag(tensor)]
        elif tensor.is_floating_point():
            found.append(tensor)
    return found


def weights_for(outputs: list[Tensor], seed: int = 77) -> list[np.ndarray]:
    random = np.random.RandomState(seed)
    return [random.uniform(0.5, 1.5, tuple(output.shape)) for output in outputs]


def directions_for(values: list[np.ndarray], seed: int = 99) -> list[np.ndarray]:
    random = np.random.RandomState(seed)
    return [random.uniform(-1, 1, value.shape) for value in values]


def slope(
    function: Callable[[list[np.ndarray]], float], values: list[np.ndarray], directions: list[np.ndarray], step: float
) -> float:
    """The derivative along a direction, by central differences."""

    def at(distance: float) -> float:
        return function([value + distance * way for value, way in zip(values, directions, strict=True)])

    return (at(step) - at(-step)) / (2 * step)
