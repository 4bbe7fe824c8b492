"""torch.autograd.gradcheck: gradients compared with finite differences, and the Jacobians of both as tensors."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from .._autograd.gradcheck import (
    GradcheckError,
    _batching,
    analytical_jacobians,
    gradcheck,
    gradgradcheck,
    numerical_jacobians,
)
from .._core.tensor import Tensor
from .._lazy_imports import lazy_exports as _lazy_exports

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]


def _load_vmap(func: Callable[..., Any]) -> Callable[..., Any]:
    """The older `vmap`, as torch takes it here; loaded when it is used."""
    from .._vmap_internals import _vmap

    return _vmap(func)


_batching.vmap = _load_vmap


def _iter_tensors(x: Any, only_requiring_grad: bool = False) -> Iterator[Tensor]:
    """The tensors in a tensor, or in lists and other iterables of them."""
    if isinstance(x, Tensor):
        if x.requires_grad or not only_requiring_grad:
            yield x
    elif isinstance(x, Iterable) and not isinstance(x, str):
        for each in x:
            yield from _iter_tensors(each, only_requiring_grad)


def _check_call(name: str, grad_out: float) -> None:
    warnings.warn(
        f"`{name}` was part of PyTorch's private API and not meant to be exposed. We are deprecating it and it will be removed "
        "in a future version of PyTorch. If you have a specific use for this or feature request for this to be a stable API, "
        "please file us an issue at https://github.com/pytorch/pytorch/issues/new",
        FutureWarning,
        stacklevel=3,
    )
    if grad_out != 1.0:
        raise ValueError(f"Expected grad_out to be 1.0. {name} no longer supports values of grad_out != 1.0.")


def _get_numerical_jacobian(
    fn: Callable[..., Any], inputs: Any, outputs: Any = None, target: Any = None, eps: float = 1e-3
) -> list[tuple[Tensor, ...]]:
    """By finite differences, for each target that requires grad: the Jacobian of every output, a row for each element of the
    target. NotImplementedError for complex numbers."""
    return [numerical_jacobians(fn, inputs, each, eps) for each in _iter_tensors(inputs if target is None else target, True)]


def get_numerical_jacobian(
    fn: Callable[..., Any], inputs: Any, target: Any = None, eps: float = 1e-3, grad_out: float = 1.0
) -> tuple[Tensor, ...]:
    """The Jacobians of the first output of `fn`, which takes all inputs as one tuple. Deprecated."""
    _check_call("get_numerical_jacobian", grad_out)
    return tuple(each[0] for each in _get_numerical_jacobian(lambda *values: fn(values), inputs, None, target, eps))


def get_analytical_jacobian(
    inputs: Any, output: Tensor, nondet_tol: float = 0.0, grad_out: float = 1.0
) -> tuple[tuple[Tensor, ...], bool, bool, bool]:
    """By backward passes, the Jacobians of an output, and whether a second run gives the same, the gradients have the sizes
    and the types of their inputs. Deprecated."""
    _check_call("get_analytical_jacobian", grad_out)
    if output.is_complex():
        raise ValueError(
            "Expected output to be non-complex. get_analytical_jacobian no longer supports functions that return complex "
            "outputs."
        )
    return analytical_jacobians(list(_iter_tensors(inputs, True)), output, nondet_tol)


__getattr__, __dir__ = _lazy_exports(__name__)  # names that refuse their use
