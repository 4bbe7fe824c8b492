"""Limiting gradients before an optimizer step."""

from __future__ import annotations

import types
import warnings
from collections.abc import Iterable
from typing import Any

from ..._autograd.grad_mode import no_grad
from ..._core.tensor import Tensor
from ..._dispatch.registry import aten
from ..._ops.creation.from_data import tensor

__all__ = ["clip_grad_norm", "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "get_total_norm"]


def _listed(parameters: Any) -> list[Any]:
    if isinstance(parameters, Tensor):
        return [parameters]
    from_generator = isinstance(parameters, types.GeneratorType)
    listed = list(parameters)
    if from_generator and not listed:
        warnings.warn("`parameters` is an empty generator, no gradient clipping will occur.", stacklevel=3)
    return listed


def _get_total_norm(tensors: Any, norm_type: float, error_if_nonfinite: bool, foreach: bool | None) -> Any:
    tensors = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    norm_type = float(norm_type)
    if not tensors:
        return tensor(0.0)
    if foreach is None or foreach:
        norms = aten._foreach_norm(tensors, norm_type)
    else:
        norms = [aten.linalg_vector_norm(g, norm_type) for g in tensors]
    device = tensors[0].device
    total = aten.linalg_vector_norm(aten.stack([norm.to(device) for norm in norms]), norm_type)
    if error_if_nonfinite and not bool(aten.isfinite(total)):
        raise RuntimeError(
            f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, so it "
            "cannot be clipped. To disable this error and scale the gradients by the non-finite norm "
            "anyway, set `error_if_nonfinite=False`"
        )
    return total


@no_grad()
def get_total_norm(tensors: Any, norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: bool | None = None) -> Any:
    """The norm of all elements of some tensors together."""
    return _get_total_norm(tensors, norm_type, error_if_nonfinite, foreach)


def _clip(grads: list[Any], max_norm: float, total_norm: Any, foreach: bool | None) -> None:
    if not grads:
        return
    # A factor of 1 is applied as well: looking at it first would wait for the result.
    factor = aten.clamp(max_norm / (total_norm + 1e-6), max=1.0)
    if foreach is None or foreach:
        aten._foreach_mul_(grads, factor.to(grads[0].device))
    else:
        for grad in grads:
            aten.mul_(grad, factor.to(grad.device))


@no_grad()
def clip_grads_with_norm_(parameters: Any, max_norm: float, total_norm: Any, foreach: bool | None = None) -> None:
    """Scale gradients whose total norm is already known, so that it does not exceed `max_norm`."""
    _clip([p.grad for p in _listed(parameters) if p.grad is not None], float(max_norm), total_norm, foreach)


@no_grad()
def clip_grad_norm_(
    parameters: Any, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: bool | None = None
) -> Any:
    """Scale gradients in place so that their total norm does not exceed `max_norm`; returns the norm before."""
    grads = [p.grad for p in _listed(parameters) if p.grad is not None]
    total = _get_total_norm(grads, norm_type, error_if_nonfinite, foreach)
    _clip(grads, float(max_norm), total, foreach)
    return total


def clip_grad_norm(
    parameters: Any, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: bool | None = None
) -> Any:
    """clip_grad_norm_ under an old name."""
    warnings.warn(
        "`torch.nn.utils.clip_grad_norm` is now deprecated in favor of `torch.nn.utils.clip_grad_norm_`.",
        FutureWarning,
        stacklevel=2,
    )
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


@no_grad()
def clip_grad_value_(parameters: Iterable[Any], clip_value: float, foreach: bool | None = None) -> None:
    """Hold every element of every gradient within [-clip_value, clip_value], in place."""
    clip_value = float(clip_value)
    grads = [p.grad for p in _listed(parameters) if p.grad is not None]
    if foreach is None or foreach:
        if grads:
            aten._foreach_clamp_min_(grads, -clip_value)
            aten._foreach_clamp_max_(grads, clip_value)
        return
    for grad in grads:
        aten.clamp_(grad, min=-clip_value, max=clip_value)
