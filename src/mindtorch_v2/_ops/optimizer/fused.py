"""Whole optimizer steps as one op, and the ops of automatic mixed precision."""

from __future__ import annotations

import math

import numpy as np

from ..._core.parallel import splits
from ..._core.tensor import storage_of
from ..._dispatch.registry import composite
from .._support.blockwise import BLOCK, in_blocks
from .._support.common import no_kernel

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


def _check_dtypes(name, params, *lists):
    """torch's words for parameters that are no real floats, and for gradients or states of another dtype than theirs."""
    for each in lists:
        if len(each) != len(params):
            raise RuntimeError(f"{name}: {len(params)} parameters, and {len(each)} gradients or states for them")
    for param, *others in zip(params, *lists, strict=True):
        kind = param.dtype
        if not kind.is_floating_point:
            raise no_kernel(f"{name}_kernel", param._array)
        for other in others:
            if other.dtype is not kind:
                raise RuntimeError(f"expected scalar type {kind.scalar_name} but found {other.dtype.scalar_name}")


def _written(*tensors):
    for tensor in tensors:
        storage_of(tensor).version += 1


def in_place(update, weights, *others):
    """Call `update` with arrays that it changes in place, block by block where they are large."""
    if weights.size > BLOCK and splits(weights, *others):
        in_blocks(update, weights, *others)
    else:
        update(weights, *others)


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
    _check_dtypes("fused_sgd", self, grads, *([momentum_buffer_list] if momentum != 0 else []))
    rate = _number(lr)

    def update(weights, grad, buffer=None):
        if maximize:
            grad = -grad
        if weight_decay != 0:
            grad = grad + weights * weight_decay
        if buffer is not None:
            if is_first_step:
                buffer[...] = grad
            else:
                buffer *= momentum
                buffer += grad * (1 - dampening)
            grad = grad + buffer * momentum if nesterov else buffer
        weights -= grad * rate

    for i, param in enumerate(self):
        states = [momentum_buffer_list[i]] if momentum != 0 else []
        in_place(update, param._array, _unscaled(grads[i], grad_scale), *[state._array for state in states])
        _written(param, *states)


_with_tensor_rate(
    "_fused_sgd_(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] momentum_buffer_list, *, "
    "float weight_decay, float momentum, float lr, float dampening, bool nesterov, bool maximize, "
    f"bool is_first_step, {_SCALING}",
    _fused_sgd,
)


# ---------------------------------------------------------------- Adam


class _AdamUpdate:
    """A step of Adam or, decoupled, AdamW: called with a block of the weights, the gradient and the states."""

    def __init__(self, rate, beta1, beta2, weight_decay, eps, maximize, decoupled, step):
        self.rate, self.beta1, self.beta2, self.eps = rate, beta1, beta2, eps
        self.weight_decay, self.maximize, self.decoupled = weight_decay, maximize, decoupled
        self.root = math.sqrt(1 - beta2**step)
        self.step_size = rate / (1 - beta1**step)

    def __call__(self, weights, grad, mean, square, largest=None):
        if self.maximize:
            grad = -grad
        if self.weight_decay != 0:
            if self.decoupled:
                weights *= 1 - self.rate * self.weight_decay
            else:
                grad = grad + weights * self.weight_decay
        scratch = np.asarray(np.subtract(grad, mean))
        scratch *= 1 - self.beta1
        mean += scratch
        square *= self.beta2
        np.multiply(grad, grad, out=scratch)
        scratch *= 1 - self.beta2
        square += scratch
        if largest is not None:
            np.maximum(largest, square, out=largest)
            square = largest
        np.sqrt(square, out=scratch)
        scratch /= self.root
        scratch += self.eps
        np.divide(mean, scratch, out=scratch)
        scratch *= self.step_size
        weights -= scratch


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
        _check_dtypes("fused_adam", self, grads, exp_avgs, exp_avg_sqs, *([max_exp_avg_sqs] if amsgrad else []))
        rate = _number(lr)
        for i, param in enumerate(self):
            grad = _unscaled(grads[i], grad_scale)
            states = [exp_avgs[i], exp_avg_sqs[i], *([max_exp_avg_sqs[i]] if amsgrad else [])]
            step = state_steps[i]._array.item()
            update = _AdamUpdate(rate, beta1, beta2, weight_decay, eps, maximize, decoupled, step)
            in_place(update, param._array, grad, *[state._array for state in states])
            _written(param, *states)

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
    _check_dtypes("fused_adagrad", self, grads, state_sums)
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
