"""Recurrent networks: RNN, LSTM and GRU."""

from __future__ import annotations

import math
import numbers
import warnings
from typing import TYPE_CHECKING, Any, ClassVar

from ..._dispatch.registry import aten
from .. import init
from .._packed import PackedSequence
from ..parameter import Parameter
from .module import Module
from .rnn_cells import GRUCell, LSTMCell, RNNCell, RNNCellBase

if TYPE_CHECKING:
    from ..._core.dtype import dtype as DType
    from ...types import Device

__all__ = ["GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNBase", "RNNCell", "RNNCellBase"]

# How many times the hidden size the gates of one layer take.
_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


class RNNBase(Module):
    """What RNN, LSTM and GRU share: parameters per layer and direction, and checks."""

    __constants__: ClassVar[list[str]] = [
        "mode",
        "input_size",
        "hidden_size",
        "num_layers",
        "bias",
        "batch_first",
        "dropout",
        "bidirectional",
        "proj_size",
    ]

    mode: str
    input_size: int
    hidden_size: int
    num_layers: int
    bias: bool
    batch_first: bool
    dropout: float
    bidirectional: bool
    proj_size: int

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Device = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        _check_options(dropout, hidden_size, num_layers, proj_size)
        if mode not in _GATES:
            raise ValueError("Unrecognized RNN mode: " + mode)
        gate_size = _GATES[mode] * hidden_size
        output_size = proj_size if proj_size > 0 else hidden_size
        directions = 2 if bidirectional else 1
        self._all_weights: list[list[str]] = []
        for layer in range(num_layers):
            width = input_size if layer == 0 else output_size * directions
            for direction in range(directions):
                suffix = f"_l{layer}{'_reverse' if direction else ''}"
                shapes: dict[str, Any] = {"weight_ih": (gate_size, width), "weight_hh": (gate_size, output_size)}
                if bias:
                    shapes |= {"bias_ih": gate_size, "bias_hh": gate_size}
                if proj_size > 0:
                    shapes["weight_hr"] = (proj_size, hidden_size)
                names = [name + suffix for name in shapes]
                for name, shape in zip(names, shapes.values(), strict=True):
                    setattr(self, name, Parameter(aten.empty(shape, device=device, dtype=dtype)))
                self._all_weights.append(names)
        self.reset_parameters()

    @property
    def _flat_weights_names(self) -> list[str]:
        return [name for names in self._all_weights for name in names]

    @property
    def _flat_weights(self) -> list[Any]:
        return [getattr(self, name) for names in self._all_weights for name in names]

    @property
    def all_weights(self) -> list[list[Any]]:
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def __getstate__(self) -> dict[str, Any]:
        """What is pickled: with the lists of weights that torch keeps, so that it can run what was saved here."""
        names = self._flat_weights_names
        return {**self.__dict__, "_flat_weights_names": names, "_flat_weights": [getattr(self, n, None) for n in names]}

    def __setstate__(self, state: dict[str, Any]) -> None:
        # The lists of weights are made when they are asked for.
        super().__setstate__(
            {
                name: value
                for name, value in state.items()
                if name not in ("_flat_weights", "_flat_weights_names", "all_weights")
            }
        )
        if "all_weights" in state:  # the name of old for the names of the weights
            self._all_weights = state["all_weights"]
        self.__dict__.setdefault("proj_size", 0)

    def flatten_parameters(self) -> None:
        """Put all weights into one block of memory, where a device wants that; the CPU does not."""

    def reset_parameters(self) -> None:
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    # ------------------------------------------------------------------ checks

    def check_input(self, input: Any, batch_sizes: Any) -> None:
        if input.dtype != self._flat_weights[0].dtype:
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype "
                f"({self._flat_weights[0].dtype}). Convert input: "
                f"input.to({self._flat_weights[0].dtype}), or convert model: model.to({input.dtype})"
            )
        dims = 3 if batch_sizes is None else 2
        if input.dim() != dims:
            raise RuntimeError(f"input must have {dims} dimensions, got {input.dim()}")
        if self.input_size != input.size(-1):
            raise RuntimeError(f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.size(-1)}")

    def _batch_of(self, input: Any, batch_sizes: Any) -> int:
        if batch_sizes is not None:
            return int(batch_sizes[0])
        return input.size(0) if self.batch_first else input.size(1)

    def _states(self) -> int:
        return self.num_layers * (2 if self.bidirectional else 1)

    def get_expected_hidden_size(self, input: Any, batch_sizes: Any) -> tuple[int, int, int]:
        size = self.proj_size if self.proj_size > 0 else self.hidden_size
        return self._states(), self._batch_of(input, batch_sizes), size

    def check_hidden_size(
        self, hx: Any, expected_hidden_size: tuple[int, int, int], msg: str = "Expected hidden size {}, got {}"
    ) -> None:
        if tuple(hx.size()) != expected_hidden_size:
            raise RuntimeError(msg.format(expected_hidden_size, list(hx.size())))

    def check_forward_args(self, input: Any, hidden: Any, batch_sizes: Any) -> None:
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))

    def permute_hidden(self, hx: Any, permutation: Any) -> Any:
        return hx if permutation is None else aten.index_select(hx, 1, permutation)

    # ------------------------------------------------------------------ forward

    def _initial_state(self, input: Any, batch_sizes: Any) -> Any:
        states, batch, size = self.get_expected_hidden_size(input, batch_sizes)
        return aten.zeros((states, batch, size), dtype=input.dtype, device=input.device)

    def _run(self, input: Any, batch_sizes: Any, hx: Any) -> Any:
        """(output, final state) of the op."""
        op = getattr(aten, self.mode.lower())
        options = (self._flat_weights, self.bias, self.num_layers, self.dropout, self.training, self.bidirectional)
        if batch_sizes is None:
            return op(input, hx, *options, self.batch_first)
        return op(input, batch_sizes, hx, *options)

    def _add_batch(self, hx: Any) -> Any:
        if hx.dim() != 2:
            raise RuntimeError(f"For unbatched 2-D input, hx should also be 2-D but got {hx.dim()}-D tensor")
        return aten.unsqueeze(hx, 1)

    def _check_batched_state(self, hx: Any) -> None:
        if hx.dim() != 3:
            raise RuntimeError(f"For batched 3-D input, hx should also be 3-D but got {hx.dim()}-D tensor")

    def _without_batch(self, hidden: Any) -> Any:
        return aten.squeeze(hidden, 1)

    def forward(self, input: Any, hx: Any = None) -> Any:
        packed = input if isinstance(input, PackedSequence) else None
        batched, batch_dim = True, 0 if self.batch_first else 1
        if packed is not None:
            input, batch_sizes, order, back = packed
            if hx is not None:
                hx = self.permute_hidden(hx, order)
        else:
            batch_sizes = order = back = None
            if input.dim() not in (2, 3):
                raise ValueError(f"{self._get_name()}: Expected input to be 2D or 3D, got {input.dim()}D instead")
            batched = input.dim() == 3
            if not batched:
                input = aten.unsqueeze(input, batch_dim)
                hx = None if hx is None else self._add_batch(hx)
            elif hx is not None:
                self._check_batched_state(hx)
        if hx is None:
            hx = self._initial_state(input, batch_sizes)
        self.check_forward_args(input, hx, batch_sizes)
        output, hidden = self._run(input, batch_sizes, hx)
        if packed is not None:
            return PackedSequence(output, batch_sizes, order, back), self.permute_hidden(hidden, back)
        if not batched:
            output, hidden = aten.squeeze(output, batch_dim), self._without_batch(hidden)
        return output, hidden

    def extra_repr(self) -> str:
        shown = [str(self.input_size), str(self.hidden_size)]
        if self.proj_size != 0:
            shown.append(f"proj_size={self.proj_size}")
        if self.num_layers != 1:
            shown.append(f"num_layers={self.num_layers}")
        if self.bias is not True:
            shown.append(f"bias={self.bias}")
        if self.batch_first is not False:
            shown.append(f"batch_first={self.batch_first}")
        if self.dropout != 0:
            shown.append(f"dropout={self.dropout}")
        if self.bidirectional is not False:
            shown.append(f"bidirectional={self.bidirectional}")
        return ", ".join(shown)


def _check_options(dropout: Any, hidden_size: Any, num_layers: int, proj_size: int) -> None:
    if not isinstance(dropout, numbers.Number) or isinstance(dropout, bool) or not 0 <= dropout <= 1:  # type: ignore[operator]
        raise ValueError("dropout should be a number in range [0, 1] representing the probability of an element being zeroed")
    if dropout > 0 and num_layers == 1:  # type: ignore[operator]
        warnings.warn(
            "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects "
            f"num_layers greater than 1, but got dropout={dropout} and num_layers={num_layers}",
            stacklevel=4,
        )
    if not isinstance(hidden_size, int):
        raise TypeError(f"hidden_size should be of type int, got: {type(hidden_size).__name__}")
    if hidden_size <= 0:
        raise ValueError("hidden_size must be greater than zero")
    if num_layers <= 0:
        raise ValueError("num_layers must be greater than zero")
    if proj_size < 0:
        raise ValueError("proj_size should be a positive integer or zero to disable projections")
    if proj_size >= hidden_size:
        raise ValueError("proj_size has to be smaller than hidden_size")


class RNN(RNNBase):
    """h' = tanh(W_ih x + b_ih + W_hh h + b_hh), or relu of it."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Device = None,
        dtype: DType | None = None,
        **kwargs: Any,
    ) -> None:
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
        super().__init__(
            f"RNN_{nonlinearity.upper()}",
            input_size,
            hidden_size,
            num_layers,
            bias,
            batch_first,
            dropout,
            bidirectional,
            device=device,
            dtype=dtype,
            **kwargs,
        )
        self.nonlinearity = nonlinearity


class GRU(RNNBase):
    """Gated recurrent units."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        super().__init__("GRU", *args, **kwargs)


class LSTM(RNNBase):
    """Long short-term memory; its state is a pair (h, c)."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("LSTM", *args, **kwargs)

    def get_expected_cell_size(self, input: Any, batch_sizes: Any) -> tuple[int, int, int]:
        return self._states(), self._batch_of(input, batch_sizes), self.hidden_size

    def check_forward_args(self, input: Any, hidden: Any, batch_sizes: Any) -> None:
        self.check_input(input, batch_sizes)
        self.check_hidden_size(
            hidden[0], self.get_expected_hidden_size(input, batch_sizes), "Expected hidden[0] size {}, got {}"
        )
        self.check_hidden_size(hidden[1], self.get_expected_cell_size(input, batch_sizes), "Expected hidden[1] size {}, got {}")

    def permute_hidden(self, hx: Any, permutation: Any) -> Any:
        if permutation is None:
            return hx
        return aten.index_select(hx[0], 1, permutation), aten.index_select(hx[1], 1, permutation)

    def _initial_state(self, input: Any, batch_sizes: Any) -> Any:
        cell = self.get_expected_cell_size(input, batch_sizes)
        return (super()._initial_state(input, batch_sizes), aten.zeros(cell, dtype=input.dtype, device=input.device))

    def _add_batch(self, hx: Any) -> Any:
        if hx[0].dim() != 2 or hx[1].dim() != 2:
            raise RuntimeError(
                f"For unbatched 2-D input, hx and cx should also be 2-D but got ({hx[0].dim()}-D, {hx[1].dim()}-D) tensors"
            )
        return aten.unsqueeze(hx[0], 1), aten.unsqueeze(hx[1], 1)

    def _check_batched_state(self, hx: Any) -> None:
        if hx[0].dim() != 3 or hx[1].dim() != 3:
            raise RuntimeError(
                f"For batched 3-D input, hx and cx should also be 3-D but got ({hx[0].dim()}-D, {hx[1].dim()}-D) tensors"
            )

    def _without_batch(self, hidden: Any) -> Any:
        return aten.squeeze(hidden[0], 1), aten.squeeze(hidden[1], 1)

    def _run(self, input: Any, batch_sizes: Any, hx: Any) -> Any:
        output, h, c = super()._run(input, batch_sizes, hx)
        return output, (h, c)
