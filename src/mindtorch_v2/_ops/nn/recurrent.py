"""Recurrent layers, composed step by step: lstm, gru, rnn_tanh, rnn_relu and their cells.

A layer projects its whole input at once and then steps through time. For sequences of different lengths the
input is packed: all first steps, then all second steps of those samples that have one, and so on, longest sample
first; `batch_sizes` says how many samples each step has.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..._dispatch.registry import aten, composite
from .lstm_layer import fused_lstm, is_fused

# ---------------------------------------------------------------- one step
#
# A step takes what the input contributes, the state and the weights, and returns the new state. A state is a list of
# tensors, (h,) or (h, c), of which the first is the output. The cells below are given the contribution as a function,
# since an LSTM's cell projects its state before its input, and a GRU's the other way round.

State = list[Any]
Weights = tuple[Any, ...]  # w_ih, w_hh, b_ih, b_hh, w_hr


def _lstm_step(contribution: Callable[[], Any], state: State, weights: Weights) -> State:
    h, c = state
    _, w_hh, _, b_hh, w_hr = weights
    gates = aten.linear(h, w_hh, b_hh)
    gates = aten.add_(gates, contribution())
    i, f, g, o = aten.unsafe_chunk(gates, 4, 1)
    i, f, g, o = aten.sigmoid_(i), aten.sigmoid_(f), aten.tanh_(g), aten.sigmoid_(o)
    kept = aten.mul(f, c)
    c = aten.add_(kept, aten.mul(i, g))
    h = aten.mul(o, aten.tanh(c))
    if w_hr is not None:
        h = aten.matmul(h, aten.t(w_hr))
    return [h, c]


def _gru_step(contribution: Callable[[], Any], state: State, weights: Weights) -> State:
    (h,) = state
    _, w_hh, _, b_hh, _ = weights
    ir, iz, in_ = aten.unsafe_chunk(contribution(), 3, 1)
    hr, hz, hn = aten.unsafe_chunk(aten.linear(h, w_hh, b_hh), 3, 1)
    reset = aten.sigmoid_(aten.add_(hr, ir))
    update = aten.sigmoid_(aten.add_(hz, iz))
    new = aten.tanh_(aten.add(in_, aten.mul_(hn, reset)))
    return [aten.add_(aten.mul_(aten.sub(h, new), update), new)]


def _simple_step(activation: str) -> Callable[[Callable[[], Any], State, Weights], State]:
    def step(contribution: Callable[[], Any], state: State, weights: Weights) -> State:
        _, w_hh, _, b_hh, _ = weights
        total = aten.add_(aten.linear(state[0], w_hh, b_hh), contribution())
        return [getattr(aten, activation)(total)]

    return step


_STEPS = {"lstm": _lstm_step, "gru": _gru_step, "rnn_tanh": _simple_step("tanh"), "rnn_relu": _simple_step("relu")}

# ---------------------------------------------------------------- one layer in one direction


def _padded_layer(step, input, state, weights, reverse):
    """All steps of a (T, N, features) input; returns the outputs as one tensor and the last state."""
    steps = aten.unbind(aten.linear(input, weights[0], weights[2]), 0)
    outputs = []
    for contribution in reversed(steps) if reverse else steps:
        state = step(lambda term=contribution: term, state, weights)
        outputs.append(state[0])
    if reverse:
        outputs.reverse()
    return aten.stack(outputs, 0), state


def _packed_layer(step, data, batch_sizes, state, weights):
    """As `_padded_layer` for packed data: samples that end leave the state, the shortest first."""
    data = aten.linear(data, weights[0], weights[2])
    outputs, ended = [], []
    offset, alive = 0, batch_sizes[0]
    for size in batch_sizes:
        contribution = aten.narrow(data, 0, offset, size)
        offset += size
        if size < alive:
            ended.append([aten.narrow(part, 0, size, alive - size) for part in state])
            state = [aten.narrow(part, 0, 0, size) for part in state]
            alive = size
        state = step(lambda term=contribution: term, state, weights)
        outputs.append(state[0])
    ended.append(state)
    ended.reverse()
    output = aten.cat(outputs, 0)
    return output, [aten.cat(list(parts), 0) for parts in zip(*ended, strict=True)]


def _packed_layer_reversed(step, data, batch_sizes, first, weights):
    """Backwards through packed data: samples join with their initial state at their last step."""
    data = aten.linear(data, weights[0], weights[2])
    outputs = []
    alive = batch_sizes[-1]
    state = [aten.narrow(part, 0, 0, alive) for part in first]
    offset = data._array.shape[0]
    for size in reversed(batch_sizes):
        if size > alive:
            state = [
                aten.cat([part, aten.narrow(whole, 0, alive, size - alive)], 0)
                for part, whole in zip(state, first, strict=True)
            ]
            alive = size
        offset -= size
        contribution = aten.narrow(data, 0, offset, size)
        state = step(lambda term=contribution: term, state, weights)
        outputs.append(state[0])
    outputs.reverse()
    return aten.cat(outputs, 0), state


# ---------------------------------------------------------------- all layers


def _weights(params, has_biases, projected):
    """The flat list of parameters by layer and direction."""
    per = 2 + 2 * has_biases + projected
    if len(params) % per:
        raise RuntimeError(f"got an incorrect number of RNN parameters: {len(params)} is no multiple of {per}")
    layers = []
    for at in range(0, len(params), per):
        w_ih, w_hh, *rest = params[at : at + per]
        w_hr = rest.pop() if projected else None
        b_ih, b_hh = rest if has_biases else (None, None)
        layers.append((w_ih, w_hh, b_ih, b_hh, w_hr))
    return layers


def _run(run_layer, input, states, weights, num_layers, dropout, train, bidirectional):
    """All layers, one on top of the other; `run_layer(input, state, weights, reverse)` runs one direction of one."""
    directions = 2 if bidirectional else 1
    if len(weights) != num_layers * directions:
        raise RuntimeError(
            f"got an incorrect number of RNN parameters: {len(weights)} sets for {num_layers} layers in "
            f"{directions} direction{'s' * bidirectional}"
        )
    final = []
    for layer in range(num_layers):
        outputs = []
        for direction in range(directions):
            at = layer * directions + direction
            output, state = run_layer(input, states[at], weights[at], direction == 1)
            outputs.append(output)
            final.append(state)
        input = outputs[0] if directions == 1 else aten.cat(outputs, outputs[0]._array.ndim - 1)
        if dropout != 0 and train and layer < num_layers - 1:
            input = aten.dropout(input, dropout, True)
    return input, final


def _states(hidden):
    """Per layer and direction the list of its state's parts."""
    return [list(parts) for parts in zip(*[aten.unbind(part, 0) for part in hidden], strict=True)]


def _stacked(final):
    return [aten.stack(list(parts), 0) for parts in zip(*final, strict=True)]


def _padded(kind, input, hidden, params, has_biases, num_layers, dropout, train, bidirectional, projected=False):
    step = _STEPS[kind]
    output, final = _run(
        lambda sequence, state, weights, reverse: _padded_layer(step, sequence, state, weights, reverse),
        input,
        _states(hidden),
        _weights(params, has_biases, projected),
        num_layers,
        dropout,
        train,
        bidirectional,
    )
    return output, *_stacked(final)


def _packed(kind, data, batch_sizes, hidden, params, has_biases, num_layers, dropout, train, bidirectional, projected=False):
    step = _STEPS[kind]
    sizes = batch_sizes._array.tolist()

    def run_layer(sequence, state, weights, reverse):
        layer = _packed_layer_reversed if reverse else _packed_layer
        return layer(step, sequence, sizes, state, weights)

    output, final = _run(
        run_layer, data, _states(hidden), _weights(params, has_biases, projected), num_layers, dropout, train, bidirectional
    )
    return output, *_stacked(final)


_PADDED = "Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional, bool batch_first"
_PACKED = "Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional"


def _check_lstm(hx):
    if len(hx) != 2:
        raise RuntimeError("lstm expects two hidden states")
    return hx[0]._array.shape[2] != hx[1]._array.shape[2]


def _lstm_samples(make):
    params = [make(20, 4), make(20, 5), make(20), make(20)]
    return [(make(2, 3, 4), [make(1, 3, 5), make(1, 3, 5)], params, True, 1, 0.0, True, False, False)]


@composite(f"lstm.input(Tensor input, Tensor[] hx, {_PADDED}) -> (Tensor, Tensor, Tensor)", samples=_lstm_samples)
def lstm(input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first):
    """A long short-term memory network over whole sequences.

    >>> weights, state = [torch.ones(4, 1), torch.ones(4, 1)], torch.zeros(1, 1, 1)
    >>> torch.lstm(torch.ones(1, 1, 1), [state, state], weights, False, 1, 0.0, False, False, False)[0]
    tensor([[[0.3696]]])
    """
    projected = _check_lstm(hx)
    if batch_first:
        input = aten.transpose(input, 0, 1)
    if is_fused(input, hx, params, projected):
        input = input.contiguous()
        hidden = [[aten.select(part, 0, i) for part in hx] for i in range(hx[0]._array.shape[0])]
        output, final = _run(
            lambda sequence, state, weights, reverse: fused_lstm(sequence, state, weights, reverse, train),
            input,
            hidden,
            _weights(params, has_biases, False),
            num_layers,
            dropout,
            train,
            bidirectional,
        )
        result = (output, *_stacked(final))
    else:
        result = _padded("lstm", input, hx, params, has_biases, num_layers, dropout, train, bidirectional, projected)
    return (aten.transpose(result[0], 0, 1), *result[1:]) if batch_first else result


@composite(
    f"lstm.data(Tensor data, Tensor batch_sizes, Tensor[] hx, {_PACKED}) -> (Tensor, Tensor, Tensor)", samples=lambda make: []
)
def lstm_packed(data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional):
    return _packed(
        "lstm", data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional, _check_lstm(hx)
    )


def _declare(kind, gates, *, doc=None):
    @composite(
        f"{kind}.input(Tensor input, Tensor hx, {_PADDED}) -> (Tensor, Tensor)",
        samples=lambda make: [
            (make(2, 3, 4), make(1, 3, 5), [make(5 * gates, 4), make(5 * gates, 5)], False, 1, 0.0, True, False, False)
        ],
        doc=doc,
    )
    def padded(input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first):
        if batch_first:
            input = aten.transpose(input, 0, 1)
        output, h = _padded(kind, input, [hx], params, has_biases, num_layers, dropout, train, bidirectional)
        return aten.transpose_(output, 0, 1) if batch_first else output, h

    @composite(
        f"{kind}.data(Tensor data, Tensor batch_sizes, Tensor hx, {_PACKED}) -> (Tensor, Tensor)", samples=lambda make: []
    )
    def packed(data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional):
        return _packed(kind, data, batch_sizes, [hx], params, has_biases, num_layers, dropout, train, bidirectional)


_declare(
    "gru",
    3,
    doc="""A gated recurrent network over whole sequences.

    >>> weights = [torch.ones(3, 1), torch.ones(3, 1)]
    >>> torch.gru(torch.ones(2, 1, 1), torch.zeros(1, 1, 1), weights, False, 1, 0.0, False, False, False)[0].flatten()
    tensor([0.2048, 0.3468])
    """,
)
_declare(
    "rnn_tanh",
    1,
    doc="""A recurrent network with `tanh` over whole sequences.

    >>> weights = [torch.ones(1, 1), torch.ones(1, 1)]
    >>> torch.rnn_tanh(torch.ones(1, 1, 1), torch.zeros(1, 1, 1), weights, False, 1, 0.0, False, False, False)[0]
    tensor([[[0.7616]]])
    """,
)
_declare(
    "rnn_relu",
    1,
    doc="""A recurrent network with `relu` over whole sequences.

    >>> weights = [torch.ones(1, 1), torch.ones(1, 1)]
    >>> torch.rnn_relu(torch.ones(2, 1, 1), torch.zeros(1, 1, 1), weights, False, 1, 0.0, False, False, False)[0].flatten()
    tensor([1., 2.])
    """,
)

# ---------------------------------------------------------------- cells


def _check_cell(name, input, states, w_ih, w_hh, gates):
    (batch, features), size = input._array.shape, w_hh._array.shape[1]
    if features != w_ih._array.shape[1]:
        raise RuntimeError(f"input has inconsistent input_size: got {features} expected {w_ih._array.shape[1]}")
    for number, state in enumerate(states):
        rows, columns = state._array.shape
        if rows != batch:
            raise RuntimeError(f"Input batch size {batch} doesn't match hidden{number} batch size {rows}")
        if columns != size:
            raise RuntimeError(f"hidden{number} has inconsistent hidden_size: got {columns}, expected {size}")
    if w_hh._array.shape[0] != gates * size:
        raise RuntimeError(f"{name}: weight_hh has {w_hh._array.shape[0]} rows, expected {gates} x {size}")


@composite(
    "lstm_cell(Tensor input, Tensor[] hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> (Tensor, Tensor)",
    samples=lambda make: [(make(3, 4), [make(3, 5), make(3, 5)], make(20, 4), make(20, 5), make(20), make(20))],
)
def lstm_cell(input, hx, w_ih, w_hh, b_ih, b_hh):
    """One step of a long short-term memory network.

    >>> torch.lstm_cell(torch.ones(1, 1), [torch.zeros(1, 1), torch.zeros(1, 1)], torch.ones(4, 1), torch.ones(4, 1))[0]
    tensor([[0.3696]])
    """
    if len(hx) != 2:
        raise RuntimeError("lstm_cell expects two hidden states")
    _check_cell("lstm_cell", input, hx, w_ih, w_hh, 4)
    h, c = _lstm_step(lambda: aten.linear(input, w_ih, b_ih), list(hx), (w_ih, w_hh, b_ih, b_hh, None))
    return h, c


def _declare_cell(kind, gates, *, doc=None):
    @composite(
        f"{kind}_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> Tensor",
        samples=lambda make: [
            (make(3, 4), make(3, 5), make(5 * gates, 4), make(5 * gates, 5), make(5 * gates), make(5 * gates))
        ],
        doc=doc,
    )
    def cell(input, hx, w_ih, w_hh, b_ih, b_hh):
        _check_cell(f"{kind}_cell", input, [hx], w_ih, w_hh, gates)
        return _STEPS[kind](lambda: aten.linear(input, w_ih, b_ih), [hx], (w_ih, w_hh, b_ih, b_hh, None))[0]


_declare_cell(
    "gru",
    3,
    doc="""One step of a gated recurrent network.

    >>> torch.gru_cell(torch.ones(1, 1), torch.zeros(1, 1), torch.ones(3, 1), torch.ones(3, 1))
    tensor([[0.2048]])
    """,
)
_declare_cell(
    "rnn_tanh",
    1,
    doc="""One step of a recurrent network with `tanh`.

    >>> torch.rnn_tanh_cell(torch.ones(1, 1), torch.zeros(1, 1), torch.ones(1, 1), torch.ones(1, 1))
    tensor([[0.7616]])
    """,
)
_declare_cell(
    "rnn_relu",
    1,
    doc="""One step of a recurrent network with `relu`.

    >>> torch.rnn_relu_cell(torch.ones(1, 1), torch.ones(1, 1), torch.ones(1, 1), torch.ones(1, 1))
    tensor([[2.]])
    """,
)
