"""Whole optimizer steps as one op, and the ops of automatic mixed precision."""

from __future__ import annotations

import math

import numpy as np

from ..._core.tensor import storage_of
from ..._dispatch.registry import composite

_SCALING = "Tensor? grad_scale=None, Tensor? found_inf=None) -> ()"


def _skipped(found_inf):
    """Whether a gradient scaler found infinite gradients, in which case nothing may change."""
    return found_inf is not None and found_inf._array.item() == 1


def _unscaled(grad, grad_scale):
    """A gradient's array without the scaler's factor, which is also taken out of the gradient itself."""
    array = grad._array
    if grad_scale is not None:
        np.divide(array, grad_scale._array, out=array)
        _written(grad)
    return array


def _written(*tensors):
    for tensor in tensors:
        storage_of(tensor).version += 1


def _number(value):
    return value._array.item() if hasattr(value, "_array") else value


def _with_tensor_rate(schema, body):
    """Declare a fused step twice: with a number and with a tensor as its learning rate."""
    name, _, rest = schema.partition("(")
    composite(f"{name}({rest}", body, samples=lambda make: [])
    composite(f"{name}.tensor_lr({rest.replace('float lr,', 'Tensor lr,')}", body, samples=lambda make: [])


# ---------------------------------------------------------------- SGD


def _fused_sgd(
    self,
    grads,
    momentum_buffer_list,
    weight_decay,
    momentum,
    lr,
    dampening,
    nesterov,
    maximize,
    is_first_step,
    grad_scale,
    found_inf,
):
    if _skipped(found_inf):
        return
    rate = _number(lr)
    for i, param in enumerate(self):
        grad = _unscaled(grads[i], grad_scale)
        if maximize:
            grad = -grad
        if weight_decay != 0:
            grad = grad + param._array * weight_decay
        if momentum != 0:
            buffer = momentum_buffer_list[i]._array
            if is_first_step:
                buffer[...] = grad
            else:
                buffer *= momentum
                buffer += grad * (1 - dampening)
            grad = grad + buffer * momentum if nesterov else buffer
            _written(momentum_buffer_list[i])
        param._array[...] -= grad * rate
        _written(param)


_with_tensor_rate(
    "_fused_sgd_(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] momentum_buffer_list, *, "
    "float weight_decay, float momentum, float lr, float dampening, bool nesterov, bool maximize, "
    f"bool is_first_step, {_SCALING}",
    _fused_sgd,
)


# ---------------------------------------------------------------- Adam


def _fused_adam(decoupled):
    def run(
        self,
        grads,
        exp_avgs,
        exp_avg_sqs,
        max_exp_avg_sqs,
        state_steps,
        lr,
        beta1,
        beta2,
        weight_decay,
        eps,
        amsgrad,
        maximize,
        grad_scale,
        found_inf,
    ):
        if _skipped(found_inf):
            return
        rate = _number(lr)
        for i, param in enumerate(self):
            weights = param._array
            grad = _unscaled(grads[i], grad_scale)
            if maximize:
                grad = -grad
            if weight_decay != 0:
                if decoupled:
                    weights *= 1 - rate * weight_decay
                else:
                    grad = grad + weights * weight_decay
            step = state_steps[i]._array.item()
            mean, square = exp_avgs[i]._array, exp_avg_sqs[i]._array
            mean += (grad - mean) * (1 - beta1)
            square *= beta2
            square += grad * grad * (1 - beta2)
            if amsgrad:
                largest = max_exp_avg_sqs[i]._array
                np.maximum(largest, square, out=largest)
                _written(max_exp_avg_sqs[i])
                square = largest
            scale = np.sqrt(square)
            scale /= math.sqrt(1 - beta2**step)
            scale += eps
            np.divide(mean, scale, out=scale)
            scale *= rate / (1 - beta1**step)
            weights -= scale
            _written(param, exp_avgs[i], exp_avg_sqs[i])

    return run


_ADAM = (
    "(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] exp_avgs, Tensor(d!)[] exp_avg_sqs, "
    "Tensor(e!)[] max_exp_avg_sqs, Tensor[] state_steps, *, float lr, float beta1, float beta2, "
    f"float weight_decay, float eps, bool amsgrad, bool maximize, {_SCALING}"
)
_with_tensor_rate("_fused_adam_" + _ADAM, _fused_adam(decoupled=False))
_with_tensor_rate("_fused_adamw_" + _ADAM, _fused_adam(decoupled=True))


# ---------------------------------------------------------------- Adagrad


def _fused_adagrad(self, grads, state_sums, state_steps, lr, lr_decay, weight_decay, eps, maximize, grad_scale, found_inf):
    if _skipped(found_inf):
        return
    rate = _number(lr)
    for i, param in enumerate(self):
        grad = _unscaled(grads[i], grad_scale)
        if maximize:
            grad = -grad
        if weight_decay != 0:
            grad = grad + param._array * weight_decay
        total = state_sums[i]._array
        total += grad * grad
        scale = np.sqrt(total)
        scale += eps
        np.divide(grad, scale, out=scale)
        scale *= rate / (1 + (state_steps[i]._array.item() - 1) * lr_decay)
        param._array[...] -= scale
        _written(param, state_sums[i])


_with_tensor_rate(
    "_fused_adagrad_(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] state_sums, "
    "Tensor(d!)[] state_steps, *, float lr, float lr_decay, float weight_decay, float eps, "
    f"bool maximize, {_SCALING}",
    _fused_adagrad,
)


# ---------------------------------------------------------------- mixed precision


@composite(
    "_amp_foreach_non_finite_check_and_unscale_(Tensor(a!)[] self, Tensor(b!) found_inf, Tensor inv_scale) -> ()",
    samples=lambda make: [],
)
def amp_check_and_unscale_(self, found_inf, inv_scale):
    """Multiply gradients by the inverse scale, and note in `found_inf` whether one of them is not finite."""
    factor = inv_scale._array
    if factor.size != 1 or factor.dtype.kind != "f":
        raise RuntimeError("inv_scale must be a 1-element tensor." if factor.size != 1 else "inv_scale must be a float tensor.")
    for tensor in self:
        array = tensor._array
        if not np.isfinite(array).all():
            found_inf._array[...] = 1
        np.multiply(array, factor.astype(array.dtype), out=array)
        _written(tensor)
    _written(found_inf)


@composite(
    "_amp_update_scale_(Tensor(a!) self, Tensor(b!) growth_tracker, Tensor found_inf, "
    "float scale_growth_factor, float scale_backoff_factor, int growth_interval) -> Tensor(a!)",
    samples=lambda make: [],
)
def amp_update_scale_(self, growth_tracker, found_inf, scale_growth_factor, scale_backoff_factor, growth_interval):
    """Back off after infinite gradients; grow after `growth_interval` steps without any."""
    scale, tracker = self._array, growth_tracker._array
    if found_inf._array.item():
        scale[...] = scale * scale_backoff_factor
        tracker[...] = 0
    else:
        successful = int(tracker.item()) + 1
        if successful == growth_interval:
            grown = scale * scale_growth_factor
            if np.isfinite(grown).all():
                scale[...] = grown
            tracker[...] = 0
        else:
            tracker[...] = successful
    _written(self, growth_tracker)
    return self
