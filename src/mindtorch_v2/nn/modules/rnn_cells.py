"""One step of a recurrent network."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

from ..._core.tensor import Tensor
from ..._dispatch.registry import aten
from .. import init
from ..parameter import Parameter
from .module import Module

if TYPE_CHECKING:
    from ..._core.dtype import dtype as DType
    from ...types import Device

__all__ = ["GRUCell", "LSTMCell", "RNNCell", "RNNCellBase"]


class RNNCellBase(Module):
    """What the cells share: weights for the input and for the state."""

    __module__ = "mindtorch_v2.nn.modules.rnn"

    __constants__: ClassVar[list[str]] = ["input_size", "hidden_size", "bias"]

    input_size: int
    hidden_size: int
    bias: bool

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool, num_chunks: int, device: Device = None, dtype: DType | None = None
    ) -> None:
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        rows = num_chunks * hidden_size
        self.weight_ih = Parameter(aten.empty((rows, input_size), device=device, dtype=dtype))
        self.weight_hh = Parameter(aten.empty((rows, hidden_size), device=device, dtype=dtype))
        if bias:
            self.bias_ih = Parameter(aten.empty(rows, device=device, dtype=dtype))
            self.bias_hh = Parameter(aten.empty(rows, device=device, dtype=dtype))
        else:
            self.register_parameter("bias_ih", None)
            self.register_parameter("bias_hh", None)
        self.reset_parameters()

    def extra_repr(self) -> str:
        shown = [str(self.input_size), str(self.hidden_size)]
        if self.bias is not True:
            shown.append(f"bias={self.bias}")
        if self.__dict__.get("nonlinearity", "tanh") != "tanh":
            shown.append(f"nonlinearity={self.nonlinearity}")
        return ", ".join(shown)

    def reset_parameters(self) -> None:
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def _check(self, value: Tensor, what: str) -> None:
        if value.dim() not in (1, 2):
            raise ValueError(f"{self._get_name()}: Expected {what} to be 1D or 2D, got {value.dim()}D instead")

    def _weights(self) -> tuple[Any, ...]:
        return self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh

    def _zeros(self, input: Any) -> Any:
        return aten.zeros((input.size(0), self.hidden_size), dtype=input.dtype, device=input.device)

    def _step(self, op: Any, input: Any, hx: Any) -> Any:
        """One step of a cell with a single state, on a batch or on one sample."""
        self._check(input, "input")
        if hx is not None:
            self._check(hx, "hidden")
        batched = input.dim() == 2
        if not batched:
            input = aten.unsqueeze(input, 0)
        if hx is None:
            hx = self._zeros(input)
        elif not batched:
            hx = aten.unsqueeze(hx, 0)
        hidden = op(input, hx, *self._weights())
        return hidden if batched else aten.squeeze(hidden, 0)


class RNNCell(RNNCellBase):
    """h' = tanh(W_ih x + b_ih + W_hh h + b_hh), or relu of it."""

    __module__ = "mindtorch_v2.nn.modules.rnn"

    __constants__: ClassVar[list[str]] = ["input_size", "hidden_size", "bias", "nonlinearity"]

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Device = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, num_chunks=1, device=device, dtype=dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        return self._step(aten.rnn_tanh_cell if self.nonlinearity == "tanh" else aten.rnn_relu_cell, input, hx)


class GRUCell(RNNCellBase):
    """One step of a GRU."""

    __module__ = "mindtorch_v2.nn.modules.rnn"

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Device = None, dtype: DType | None = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, num_chunks=3, device=device, dtype=dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        return self._step(aten.gru_cell, input, hx)


class LSTMCell(RNNCellBase):
    """One step of an LSTM; its state is a pair (h, c)."""

    __module__ = "mindtorch_v2.nn.modules.rnn"

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Device = None, dtype: DType | None = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, num_chunks=4, device=device, dtype=dtype)

    def forward(self, input: Any, hx: Any = None) -> Any:
        self._check(input, "input")
        if hx is not None:
            for index, value in enumerate(hx):
                self._check(value, f"hx[{index}]")
        batched = input.dim() == 2
        if not batched:
            input = aten.unsqueeze(input, 0)
        if hx is None:
            zeros = self._zeros(input)
            hx = (zeros, zeros)
        elif not batched:
            hx = (aten.unsqueeze(hx[0], 0), aten.unsqueeze(hx[1], 0))
        h, c = aten.lstm_cell(input, hx, *self._weights())
        return (h, c) if batched else (aten.squeeze(h, 0), aten.squeeze(c, 0))
