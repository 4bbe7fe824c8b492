"""One LSTM layer in one direction as a single op, forward and backward, in place of a dozen ops per step.

`lstm` uses it where torch hands the layer to oneDNN: float32, not packed, without a projection. The op keeps
oneDNN's name, and the switch that turns it off in torch, `torch.backends.mkldnn`, turns it off here.
"""

from __future__ import annotations

import math

import numpy as np

from ..._core.blas import one_blas_thread
from ..._dispatch.facts import Autocast
from ..._dispatch.registry import aten, op
from .._support.common import home_of
from .._support.double_backward import backward_of_backward
from .._support.split_products import dot

_F32 = np.dtype(np.float32)
_LSTM = 2  # the mode's number in the op's arguments


class _Switch:
    on = True


def set_mkldnn_enabled(on: bool) -> None:
    """Whether layers that can be a single op are one; off, they are composed of small ops."""
    _Switch.on = bool(on)


def get_mkldnn_enabled() -> bool:
    """Whether a layer may run as a single op; True unless `set_mkldnn_enabled(False)` was called."""
    return _Switch.on


def is_fused(input, hx, params, projected):
    """Whether a layer may be a single op."""
    return _Switch.on and not projected and input._array.size > 0 and all(t._array.dtype is _F32 for t in (input, *hx, *params))


def fused_lstm(input, state, weights, reverse, train):
    """One layer, one direction: (outputs, [h, c])."""
    w_ih, w_hh, b_ih, b_hh, _ = weights
    h, c = state
    has_biases = b_ih is not None
    if not has_biases:
        b_ih = b_hh = aten.zeros((w_ih._array.shape[0],), dtype=w_ih.dtype, device=home_of(w_ih))
    output, h, c, _ = aten.mkldnn_rnn_layer(
        input, w_ih, w_hh, b_ih, b_hh, h, c, reverse, [], _LSTM, w_hh._array.shape[1], 1, has_biases, False, False, train
    )
    return output, [h, c]


# Inside, samples are the last dim, so that each gate of a step is one contiguous (H, N) block. A step's product is
# [w_ih | w_hh | bias] with [x; h; 1]: the operands of all steps stand in one array, into which each step writes its h
# for the next. Steps are in the order in which they are taken; `reverse` concerns input and output only.


class _Workspace:
    """The intermediate arrays that forward saves for backward, as views of one buffer."""

    def __init__(self, steps, batch, features, size, dtype, buffer=None):
        shapes = (
            (steps + 1, features + size + 1, batch),
            (steps, 4, size, batch),
            (steps + 1, size, batch),
            (steps, size, batch),
        )
        counts = [math.prod(shape) for shape in shapes]
        self.buffer = np.empty(sum(counts), dtype) if buffer is None else buffer
        ends = np.cumsum(counts)
        # Operands of the products, gates after their activations, cells before each step and after the last, and the
        # tanh of the cells after each step.
        self.operands, self.gates, self.cells, self.squashed = (
            self.buffer[end - count : end].reshape(shape) for end, count, shape in zip(ends, counts, shapes, strict=True)
        )


def _check(mode, num_layers, bidirectional, batch_first, batch_sizes):
    if mode != _LSTM or num_layers != 1 or bidirectional or batch_first or len(batch_sizes):
        raise NotImplementedError("mkldnn_rnn_layer: only a single unpacked LSTM layer in one direction, time first")


def _shape(input, weight0, weight1, weight2, weight3, hx_, cx_, reverse, batch_sizes, mode, hidden_size, *_):
    steps, batch, features = input._array.shape
    kind = input._array.dtype
    kept = ((steps + 1) * (features + 2 * hidden_size + 1) + steps * 5 * hidden_size) * batch * kind.itemsize
    return [
        ((steps, batch, hidden_size), kind),
        (hx_._array.shape, kind),
        (cx_._array.shape, kind),
        ((kept,), np.dtype(np.uint8)),
    ]


@op(
    "mkldnn_rnn_layer(Tensor input, Tensor weight0, Tensor weight1, Tensor weight2, Tensor weight3, Tensor hx_, "
    "Tensor cx_, bool reverse, int[] batch_sizes, int mode, int hidden_size, int num_layers, bool has_biases, "
    "bool bidirectional, bool batch_first, bool train) -> (Tensor, Tensor, Tensor, Tensor)",
    takes_all_grads=True,
    shape=_shape,
    samples=lambda make: [],
    autocast=Autocast.LOWER,
)
def mkldnn_rnn_layer(
    input,
    weight0,
    weight1,
    weight2,
    weight3,
    hx_,
    cx_,
    reverse,
    batch_sizes,
    mode,
    hidden_size,
    num_layers,
    has_biases,
    bidirectional,
    batch_first,
    train,
):
    """One LSTM layer in one direction as a single op.

    >>> callable(torch.mkldnn_rnn_layer)
    True
    """
    _check(mode, num_layers, bidirectional, batch_first, batch_sizes)
    steps, batch, features = input.shape
    size, kind = hidden_size, input.dtype
    kept = _Workspace(steps, batch, features, size, kind)
    operands, cells = kept.operands, kept.cells
    hidden = operands[:, features : features + size]
    operands[:steps, :features] = (input[::-1] if reverse else input).swapaxes(1, 2)
    operands[:, -1] = 1
    hidden[0] = hx_.reshape(batch, size).T
    cells[0] = cx_.reshape(batch, size).T
    # sigmoid(x) is (1 + tanh(x / 2)) / 2: with the sigmoid gates halved, one tanh does all four gates.
    half = np.array([0.5, 0.5, 1, 0.5], kind).reshape(4, 1)
    shift = np.array([0.5, 0.5, 0, 0.5], kind).reshape(4, 1)
    weights = np.concatenate([weight0, weight1, (weight2 + weight3)[:, None]], 1)
    weights *= np.repeat(half, size, 0)
    flat_gates = kept.gates.reshape(steps, 4 * size, batch)
    by_gate = kept.gates.reshape(steps, 4, size * batch)
    entering = np.empty((size, batch), kind)
    with one_blas_thread():
        for t in range(steps):
            np.dot(weights, operands[t], flat_gates[t])
            gates = by_gate[t]
            np.tanh(gates, gates)
            np.multiply(gates, half, gates)
            np.add(gates, shift, gates)
            i, f, g, o = kept.gates[t]
            cell = cells[t + 1]
            np.multiply(f, cells[t], cell)
            np.multiply(i, g, entering)
            np.add(cell, entering, cell)
            np.multiply(o, np.tanh(cell, kept.squashed[t]), hidden[t + 1])
    output = np.empty((steps, batch, size), kind)
    output[:: -1 if reverse else 1] = hidden[1:].swapaxes(1, 2)
    return output, hidden[steps].T.reshape(hx_.shape), cells[steps].T.reshape(cx_.shape), kept.buffer.view(np.uint8)


@mkldnn_rnn_layer.vjp
def _(
    grads,
    input,
    weight0,
    weight1,
    weight2,
    weight3,
    hx_,
    cx_,
    reverse,
    batch_sizes,
    mode,
    hidden_size,
    num_layers,
    has_biases,
    bidirectional,
    batch_first,
    train,
    result0,
    result1,
    result2,
    result3,
):
    return aten.mkldnn_rnn_layer_backward(
        input,
        weight0,
        weight1,
        weight2,
        weight3,
        hx_,
        cx_,
        result0,
        result1,
        result2,
        *grads[:3],
        reverse,
        mode,
        hidden_size,
        num_layers,
        has_biases,
        train,
        bidirectional,
        batch_sizes,
        batch_first,
        result3,
    )


def _slopes(kept):
    """For all steps: the derivatives of c and h by each gate's input, and of h by c."""
    slopes = np.empty_like(kept.gates)
    i, g, o = (kept.gates[:, k] for k in (0, 2, 3))
    si, sf, sg, so = (slopes[:, k] for k in range(4))
    # Of all gates at once, although it is not the slope of g: that takes less time than three gates one by one.
    np.subtract(1, kept.gates, slopes)
    np.multiply(slopes, kept.gates, slopes)
    for slope, factor in ((si, g), (sf, kept.cells[:-1]), (so, kept.squashed)):
        np.multiply(slope, factor, slope)
    np.multiply(g, g, sg)
    np.subtract(1, sg, sg)
    np.multiply(sg, i, sg)
    through = np.multiply(kept.squashed, kept.squashed)
    np.subtract(1, through, through)
    return slopes, np.multiply(through, o, through)


@op(
    "mkldnn_rnn_layer_backward(Tensor input, Tensor weight1, Tensor weight2, Tensor weight3, Tensor weight4, Tensor "
    "hx_, Tensor cx_tmp, Tensor output, Tensor hy_, Tensor cy_, Tensor? grad_output, Tensor? grad_hy, Tensor? grad_cy, "
    "bool reverse, int mode, int hidden_size, int num_layers, bool has_biases, bool train, bool bidirectional, "
    "int[] batch_sizes, bool batch_first, Tensor workspace) "
    "-> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)",
    takes_all_grads=True,
    samples=lambda make: [],
    shape=lambda *args: [(t._array.shape, t._array.dtype) for t in args[:7]],
)
def mkldnn_rnn_layer_backward(
    input,
    weight1,
    weight2,
    weight3,
    weight4,
    hx_,
    cx_tmp,
    output,
    hy_,
    cy_,
    grad_output,
    grad_hy,
    grad_cy,
    reverse,
    mode,
    hidden_size,
    num_layers,
    has_biases,
    train,
    bidirectional,
    batch_sizes,
    batch_first,
    workspace,
):
    steps, batch, features = input.shape
    size, kind = hidden_size, input.dtype
    kept = _Workspace(steps, batch, features, size, kind, workspace.view(kind))
    slopes, through = _slopes(kept)
    outer = None
    if grad_output is not None:
        outer = np.ascontiguousarray((grad_output[::-1] if reverse else grad_output).swapaxes(1, 2))
    gh = np.zeros((size, batch), kind) if grad_hy is None else grad_hy.reshape(batch, size).T.copy()
    gc = np.zeros((size, batch), kind) if grad_cy is None else grad_cy.reshape(batch, size).T.copy()
    back = np.concatenate([weight1, weight2], 1).T.copy()
    # Gradients of the operands [x; h] of each product.
    reached = np.empty((steps, features + size, batch), kind)
    part = np.empty((size, batch), kind)
    with one_blas_thread():
        for t in reversed(range(steps)):
            if outer is not None:
                gh = np.add(gh, outer[t], part)
            at = through[t]
            np.multiply(at, gh, at)
            np.add(gc, at, gc)
            slope = slopes[t]
            np.multiply(slope[:3], gc, slope[:3])
            np.multiply(slope[3], gh, slope[3])
            np.multiply(gc, kept.gates[t, 1], gc)
            gh = np.dot(back, slope.reshape(4 * size, batch), reached[t])[features:]
    # One product for all steps: (4 H, T N) with (T N, operands).
    flat = np.ascontiguousarray(slopes.reshape(steps, 4 * size, batch).swapaxes(0, 1)).reshape(4 * size, -1)
    operands = np.ascontiguousarray(kept.operands[:steps].swapaxes(1, 2)).reshape(steps * batch, -1)
    grads = dot(flat, operands)
    grad_input = np.empty(input.shape, kind)
    grad_input[:: -1 if reverse else 1] = reached[:, :features].swapaxes(1, 2)
    grad_bias = grads[:, -1].copy()
    return (
        grad_input,
        grads[:, :features].copy(),
        grads[:, features:-1].copy(),
        grad_bias,
        grad_bias.copy(),
        gh.T.reshape(hx_.shape).copy(),
        gc.T.reshape(cx_tmp.shape).copy(),
    )


def _layer_in_ops(input, w_ih, w_hh, b_ih, b_hh, h, c, reverse):
    """Outputs of all steps, the last h and the last c, one after another in a flat tensor."""
    batch, size = input._array.shape[1], w_hh._array.shape[1]
    h, c = aten.reshape(h, (batch, size)), aten.reshape(c, (batch, size))
    steps = aten.unbind(aten.linear(input, w_ih, b_ih + b_hh), 0)
    outputs = []
    for entering in reversed(steps) if reverse else steps:
        i, f, g, o = aten.chunk(entering + aten.linear(h, w_hh), 4, 1)
        c = aten.sigmoid(f) * c + aten.sigmoid(i) * aten.tanh(g)
        h = aten.sigmoid(o) * aten.tanh(c)
        outputs.append(h)
    if reverse:
        outputs.reverse()
    return aten.cat([aten.reshape(each, (-1,)) for each in (*outputs, h, c)], 0)


@mkldnn_rnn_layer_backward.vjp
def _(grads, input, weight1, weight2, weight3, weight4, hx_, cx_tmp, output, grad_output, grad_hy, grad_cy, reverse):
    inputs = (input, weight1, weight2, weight3, weight4, hx_, cx_tmp)
    seeds = ((grad_output, output), (grad_hy, hx_), (grad_cy, cx_tmp))
    flat = [aten.reshape(aten.zeros_like(like) if seed is None else seed, (-1,)) for seed, like in seeds]
    to_inputs, to_seed = backward_of_backward(lambda *leaves: _layer_in_ops(*leaves, reverse), inputs, aten.cat(flat, 0), grads)
    to_seeds = [None] * 3
    if to_seed is not None:
        parts = aten.split_with_sizes(to_seed, [each._array.size for each in flat])
        to_seeds = [
            None if seed is None else aten.reshape(part, seed._array.shape)
            for part, (seed, _) in zip(parts, seeds, strict=True)
        ]
    return *to_inputs, None, None, None, *to_seeds, None
