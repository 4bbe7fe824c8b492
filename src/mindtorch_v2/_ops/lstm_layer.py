"""One LSTM layer in one direction as a single op, forward and backward, in place of a dozen ops per step.

`lstm` uses it where torch hands the layer to oneDNN: float32, not packed, without a projection. The op keeps
oneDNN's name, and the switch that turns it off in torch, `torch.backends.mkldnn`, turns it off here.
"""

from __future__ import annotations

import numpy as np

from .._dispatch.registry import aten, op

_F32 = np.dtype(np.float32)
_LSTM = 2  # the mode's number in the op's arguments


class _Switch:
    on = True


def set_mkldnn_enabled(on: bool) -> None:
    """Whether layers that can be a single op are one; off, they are composed of small ops."""
    _Switch.on = bool(on)


def get_mkldnn_enabled() -> bool:
    """What `set_mkldnn_enabled` was told last."""
    return _Switch.on


def is_fused(input, hx, params, projected):
    """Whether a layer may be a single op."""
    return (_Switch.on and not projected and input._array.size > 0
            and all(t._array.dtype is _F32 for t in (input, *hx, *params)))


def fused_lstm(input, state, weights, reverse, train):
    """One layer, one direction: (outputs, [h, c])."""
    w_ih, w_hh, b_ih, b_hh, _ = weights
    h, c = state
    has_biases = b_ih is not None
    if not has_biases:
        b_ih = b_hh = aten.zeros((w_ih._array.shape[0],), dtype=w_ih.dtype)
    output, h, c, _ = aten.mkldnn_rnn_layer(input, w_ih, w_hh, b_ih, b_hh, h, c, reverse, [], _LSTM,
                                            w_hh._array.shape[1], 1, has_biases, False, False, train)
    return output, [h, c]


# Inside, samples are the last dim: gates are (4 H, N) with each gate one contiguous block, and states (H, N).


def _workspace(steps, batch, size, dtype):
    """Gates of every step and the cells before every step and after the last, in one buffer that backward gets back."""
    buffer = np.empty(steps * batch * 4 * size + (steps + 1) * batch * size, dtype)
    return buffer, *_parts(buffer, steps, batch, size)


def _parts(buffer, steps, batch, size):
    split = steps * batch * 4 * size
    return buffer[:split].reshape(steps, 4 * size, batch), buffer[split:].reshape(steps + 1, size, batch)


def _check(mode, num_layers, bidirectional, batch_first, batch_sizes):
    if mode != _LSTM or num_layers != 1 or bidirectional or batch_first or len(batch_sizes):
        raise NotImplementedError("mkldnn_rnn_layer: only a single unpacked LSTM layer in one direction, time first")


def _shape(input, weight0, weight1, weight2, weight3, hx_, cx_, reverse, batch_sizes, mode, hidden_size, *_):
    steps, batch, _features = input._array.shape
    kind = input._array.dtype
    total = (steps * batch * 4 * hidden_size + (steps + 1) * batch * hidden_size) * kind.itemsize
    return [((steps, batch, hidden_size), kind), (hx_._array.shape, kind), (cx_._array.shape, kind),
            ((total,), np.dtype(np.uint8))]


@op("mkldnn_rnn_layer(Tensor input, Tensor weight0, Tensor weight1, Tensor weight2, Tensor weight3, Tensor hx_, "
    "Tensor cx_, bool reverse, int[] batch_sizes, int mode, int hidden_size, int num_layers, bool has_biases, "
    "bool bidirectional, bool batch_first, bool train) -> (Tensor, Tensor, Tensor, Tensor)", tags=("all_grads",),
    shape=_shape, samples=lambda make: [])
def mkldnn_rnn_layer(input, weight0, weight1, weight2, weight3, hx_, cx_, reverse, batch_sizes, mode, hidden_size,
                     num_layers, has_biases, bidirectional, batch_first, train):
    _check(mode, num_layers, bidirectional, batch_first, batch_sizes)
    steps, batch, _ = input.shape
    size = hidden_size
    buffer, gates, cells = _workspace(steps, batch, size, input.dtype)
    np.matmul(weight0, input.swapaxes(1, 2), gates)
    bias = weight2 + weight3
    # sigmoid(x) is (1 + tanh(x / 2)) / 2: with the sigmoid gates halved, one tanh does all four gates.
    half = np.full((4 * size, 1), 0.5, input.dtype)
    half[2 * size:3 * size] = 1
    gates += bias[:, None]
    gates *= half
    recurrent = weight1 * half
    h = np.ascontiguousarray(hx_.reshape(batch, size).T)
    cells[0] = cx_.reshape(batch, size).T
    outputs = np.empty((steps, size, batch), input.dtype)
    product = np.empty((4 * size, batch), input.dtype)
    squashed = np.empty((size, batch), input.dtype)
    order = range(steps - 1, -1, -1) if reverse else range(steps)
    for at, t in enumerate(order):
        now = gates[t]
        np.dot(recurrent, h, product)
        np.add(now, product, now)
        np.tanh(now, now)
        for part in (now[:2 * size], now[3 * size:]):
            np.multiply(part, 0.5, part)
            np.add(part, 0.5, part)
        c = cells[at + 1]
        np.multiply(now[size:2 * size], cells[at], c)
        np.multiply(now[:size], now[2 * size:3 * size], squashed)
        np.add(c, squashed, c)
        np.tanh(c, squashed)
        h = outputs[t]
        np.multiply(now[3 * size:], squashed, h)
    made = np.ascontiguousarray(outputs.swapaxes(1, 2))
    return made, h.T.reshape(hx_.shape), cells[steps].T.reshape(cx_.shape), buffer.view(np.uint8)


@mkldnn_rnn_layer.vjp
def _(grads, input, weight0, weight1, weight2, weight3, hx_, cx_, reverse, batch_sizes, mode, hidden_size, num_layers,
      has_biases, bidirectional, batch_first, train, result0, result1, result2, result3):
    return aten.mkldnn_rnn_layer_backward(
        input, weight0, weight1, weight2, weight3, hx_, cx_, result0, result1, result2, *grads[:3], reverse, mode,
        hidden_size, num_layers, has_biases, train, bidirectional, batch_sizes, batch_first, result3)


@op("mkldnn_rnn_layer_backward(Tensor input, Tensor weight1, Tensor weight2, Tensor weight3, Tensor weight4, Tensor hx_, "
    "Tensor cx_tmp, Tensor output, Tensor hy_, Tensor cy_, Tensor? grad_output, Tensor? grad_hy, Tensor? grad_cy, "
    "bool reverse, int mode, int hidden_size, int num_layers, bool has_biases, bool train, bool bidirectional, "
    "int[] batch_sizes, bool batch_first, Tensor workspace) "
    "-> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)", samples=lambda make: [],
    shape=lambda *given: [(t._array.shape, t._array.dtype) for t in given[:7]])
def mkldnn_rnn_layer_backward(input, weight1, weight2, weight3, weight4, hx_, cx_tmp, output, hy_, cy_, grad_output,
                              grad_hy, grad_cy, reverse, mode, hidden_size, num_layers, has_biases, train,
                              bidirectional, batch_sizes, batch_first, workspace):
    steps, batch, features = input.shape
    size = hidden_size
    gates, cells = _parts(workspace.view(input.dtype), steps, batch, size)
    slopes = np.empty((steps, 4 * size, batch), input.dtype)
    outer = None if grad_output is None else np.ascontiguousarray(grad_output.swapaxes(1, 2))
    gh = np.zeros((size, batch), input.dtype) if grad_hy is None else grad_hy.reshape(batch, size).T.copy()
    gc = np.zeros((size, batch), input.dtype) if grad_cy is None else grad_cy.reshape(batch, size).T.copy()
    back = np.ascontiguousarray(weight2.T)
    squashed = np.empty((size, batch), input.dtype)
    bend = np.empty((size, batch), input.dtype)
    order = range(steps) if reverse else range(steps - 1, -1, -1)
    for at, t in enumerate(order):
        now, slope = gates[t], slopes[t]
        i, f, g, o = (now[k * size:(k + 1) * size] for k in range(4))
        si, sf, sg, so = (slope[k * size:(k + 1) * size] for k in range(4))
        place = steps - at
        if outer is not None:
            np.add(gh, outer[t], gh)
        np.tanh(cells[place], squashed)
        # d h = o tanh(c): into c through 1 - tanh², into o directly.
        np.multiply(squashed, squashed, bend)
        np.subtract(1, bend, bend)
        np.multiply(bend, o, bend)
        np.multiply(bend, gh, bend)
        np.add(gc, bend, gc)
        np.multiply(gh, squashed, so)
        np.multiply(gc, g, si)
        np.multiply(gc, cells[place - 1], sf)
        np.multiply(gc, i, sg)
        np.multiply(gc, f, gc)
        # Through the activations, from what they returned: s (1 - s) and 1 - t².
        np.multiply(g, g, bend)
        np.subtract(1, bend, bend)
        np.multiply(sg, bend, sg)
        for first, last in ((0, 2 * size), (3 * size, 4 * size)):
            part, value = slope[first:last], now[first:last]
            np.multiply(part, value, part)
            np.multiply(part, 1 - value, part)
        np.dot(back, slope, gh)
    # (4 H, T N) and friends: one product for all steps.
    flat = np.ascontiguousarray(slopes.swapaxes(0, 1)).reshape(4 * size, steps * batch)
    before = np.empty((steps, batch, size), input.dtype)
    first, rest = (steps - 1, slice(0, steps - 1)) if reverse else (0, slice(1, steps))
    before[first] = hx_.reshape(batch, size)
    before[rest] = output[1:] if reverse else output[:-1]
    grad_bias = np.add.reduce(flat, 1)
    return (np.dot(flat.T, weight1).reshape(input.shape), np.dot(flat, input.reshape(-1, features)),
            np.dot(flat, before.reshape(-1, size)), grad_bias, grad_bias.copy(), gh.T.reshape(hx_.shape),
            gc.T.reshape(cx_tmp.shape))
