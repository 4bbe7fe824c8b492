"""Modules that watch tensors and say by which scales and zero points they would be quantized."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from functools import partial
from typing import Any

from ..._core import dtype as dt
from ..._core.memory_format import (
    per_channel_affine,
    per_channel_affine_float_qparams,
    per_channel_symmetric,
    per_tensor_affine,
    per_tensor_symmetric,
    qscheme,
)
from ..._dispatch.registry import aten
from ..._ops.creation.from_data import tensor
from ..._refused import refusing_function
from ...nn import factory_kwargs as _factory_kwargs
from ...nn.modules.module import Module

_PER_TENSOR = (per_tensor_affine, per_tensor_symmetric)
_PER_CHANNEL = (per_channel_affine, per_channel_symmetric, per_channel_affine_float_qparams)
_EPS = dt.finfo(dt.float32).eps
_INF = float("inf")
# The integers of a dtype, and those of half the range where torch has one.
_RANGES: dict[str, tuple[tuple[int, int], tuple[int, int]]] = {
    "qint8": ((-128, 127), (-64, 63)),
    "int8": ((-128, 127), (-64, 63)),
    "quint8": ((0, 255), (0, 127)),
    "uint8": ((0, 255), (0, 127)),
    "qint32": ((-(2**31), 2**31 - 1),) * 2,
    "int32": ((-(2**31), 2**31 - 1),) * 2,
    "uint16": ((0, 2**16 - 1),) * 2,
    "int16": ((-(2**15), 2**15 - 1),) * 2,
    "quint4x2": ((0, 15),) * 2,
    "float8_e5m2": ((0, 15),) * 2,
    "float8_e4m3fn": ((0, 15),) * 2,
}


class _PartialWrapper:
    """A class with some of its arguments; those in `callable_args` are computed when an object is made."""

    def __init__(self, p: partial[Any]) -> None:
        self.p = p
        self.callable_args: dict[str, Any] = {}

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        late = {name: make() for name, make in self.callable_args.items() if name not in keywords}
        return self.p(*args, **keywords, **late)

    def __repr__(self) -> str:
        return f"{self.p!r}{self.callable_args!r}"

    def with_args(self, **kwargs: Any) -> _PartialWrapper:
        """The same with further arguments."""
        return _PartialWrapper(partial(self, **kwargs))

    def with_callable_args(self, **kwargs: Any) -> _PartialWrapper:
        """The same with further arguments that are computed when an object is made."""
        wrapped = _PartialWrapper(self.p)
        wrapped.callable_args = {**self.callable_args, **kwargs}
        return wrapped


class ObserverBase(Module, ABC):
    """A module that returns its input and keeps what `calculate_qparams` needs."""

    def __init__(self, dtype: Any, is_dynamic: bool = False) -> None:
        super().__init__()
        self.dtype = dtype
        self.is_dynamic = is_dynamic

    @abstractmethod
    def forward(self, x: Any) -> Any:
        """Watch a tensor; returns it."""

    @abstractmethod
    def calculate_qparams(self, **kwargs: Any) -> Any:
        """(scales, zero points)."""

    @classmethod
    def with_args(cls, **kwargs: Any) -> _PartialWrapper:
        """The class with these arguments, which a `QConfig` holds."""
        return _PartialWrapper(partial(cls, **kwargs))

    @classmethod
    def with_callable_args(cls, **kwargs: Any) -> _PartialWrapper:
        """The class with arguments that are computed when an object is made."""
        return _PartialWrapper(partial(cls)).with_callable_args(**kwargs)


class UniformQuantizationObserverBase(ObserverBase):
    """What observers of smallest and largest elements share: the range of integers, and scales from it."""

    _version = 3
    min_val: Any
    max_val: Any
    eps: Any

    def __init__(
        self,
        dtype: Any = dt.QUANTIZED["quint8"],
        qscheme: qscheme = per_tensor_affine,
        reduce_range: bool = False,
        quant_min: int | None = None,
        quant_max: int | None = None,
        factory_kwargs: dict[str, Any] | None = None,
        eps: float = _EPS,
        is_dynamic: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(dtype=dtype, is_dynamic=is_dynamic, **kwargs)
        if qscheme not in (*_PER_TENSOR, *_PER_CHANNEL):
            raise AssertionError(f"{type(self).__name__}: qscheme must be one of torch.per_tensor_* and torch.per_channel_*")
        if dtype.name not in _RANGES:
            raise AssertionError(f"{type(self).__name__}: {dtype} is none of the dtypes {', '.join(_RANGES)}")
        if reduce_range:
            warnings.warn(
                "Please use quant_min and quant_max to specify the range for observers. reduce_range will be deprecated in a "
                "future release of PyTorch.",
                stacklevel=2,
            )
            if qscheme in (per_tensor_symmetric, per_channel_symmetric) and dtype.name == "quint8":
                raise NotImplementedError("Cannot reduce range for symmetric quantization for quint8")
        self.qscheme = qscheme
        self.reduce_range = reduce_range
        self._options = _factory_kwargs(factory_kwargs)
        self.register_buffer("eps", tensor([eps], **self._options))
        self.has_customized_qrange = quant_min is not None and quant_max is not None
        if quant_min is None or quant_max is None:
            self.quant_min, self.quant_max = _RANGES[dtype.name][bool(reduce_range)]
            return
        self._validate_qmin_qmax(quant_min, quant_max)
        if dtype.name in ("qint8", "int8") and quant_max - quant_min > 255:
            raise AssertionError("quantization range should be positive and not exceed the maximum bit range (=256).")
        self.quant_min, self.quant_max = (quant_min // 2, quant_max // 2) if reduce_range else (quant_min, quant_max)

    def _validate_qmin_qmax(self, quant_min: int, quant_max: int) -> None:
        if not quant_min <= 0 <= quant_max:
            raise AssertionError("Used-specified quantization range must include 0.")
        if quant_min >= quant_max:
            raise AssertionError("qmin must be strictly less than qmax for user-specified quantization range.")

    def _calculate_qparams(self, min_val: Any, max_val: Any) -> tuple[Any, Any]:
        """Scales and zero points for these extremes; 1 and 0 while nothing was watched."""
        if min_val.numel() == 0 or (min_val.dim() == 0 and min_val.item() == _INF and max_val.item() == -_INF):
            warnings.warn(
                "must run observer before calling calculate_qparams. Returning default values.",
                stacklevel=3,
            )
            return tensor([1.0]), tensor([0])
        if aten.any(aten.gt(min_val, max_val)).item():
            raise AssertionError(f"min {min_val} should be less than max {max_val}")
        low, high = aten.clamp(min_val, max=0), aten.clamp(max_val, min=0)
        steps = float(self.quant_max - self.quant_min)
        if self.qscheme in (per_tensor_symmetric, per_channel_symmetric):
            scale = aten.maximum(aten.div(aten.maximum(aten.neg(low), high), steps / 2), self.eps)
            zero_point = aten.full(scale.shape, self._middle(), dtype=dt.int64)
        elif self.qscheme is per_channel_affine_float_qparams:
            scale = aten.div(aten.sub(max_val, min_val), steps)
            scale = aten.where(aten.gt(scale, self.eps), scale, aten.ones_like(scale))
            zero_point = aten.div(aten.neg(min_val), scale)
        else:
            scale = aten.maximum(aten.div(aten.sub(high, low), steps), self.eps)
            places = aten.round(aten.div(low, scale)).to(dt.int32)
            zero_point = aten.clamp(aten.rsub(places, self.quant_min), self.quant_min, self.quant_max)
        return scale, zero_point

    def _middle(self) -> int:
        """The integer that stands for zero in a symmetric scheme."""
        if self.dtype.name in ("quint8", "uint8"):
            return (self.quant_min + self.quant_max) // 2 if self.has_customized_qrange else 128
        return 2**15 if self.dtype.name == "uint16" else 0

    def calculate_qparams(self) -> tuple[Any, Any]:  # type: ignore[override]
        """(scales, zero points) for what was watched so far."""
        return self._calculate_qparams(self.min_val, self.max_val)

    def extra_repr(self) -> str:
        """The extremes."""
        return f"min_val={self.min_val}, max_val={self.max_val}"

    def reset_min_max_vals(self) -> None:
        """Forget what was watched."""
        raise NotImplementedError("Cannot reset min/max values in the given observer.")


class MinMaxObserver(UniformQuantizationObserverBase):
    """Keeps the smallest and the largest element that it saw."""

    def __init__(
        self, dtype: Any = dt.QUANTIZED["quint8"], qscheme: qscheme = per_tensor_affine, *args: Any, **kwargs: Any
    ) -> None:
        if qscheme not in _PER_TENSOR:
            raise NotImplementedError(
                f"{type(self).__name__}'s qscheme only support torch.per_tensor_symmetric and torch.per_tensor_affine."
            )
        super().__init__(dtype, qscheme, *args, **kwargs)
        self.register_buffer("min_val", tensor(_INF, **self._options))
        self.register_buffer("max_val", tensor(-_INF, **self._options))

    def _joined(self, low: Any, high: Any) -> tuple[Any, Any]:
        return aten.minimum(low, self.min_val), aten.maximum(high, self.max_val)

    def forward(self, x_orig: Any) -> Any:
        """Watch a tensor; returns it."""
        if x_orig.numel():
            low, high = aten.aminmax(x_orig.detach().to(self.min_val.dtype))
            low, high = self._joined(low, high)
            self.min_val.copy_(low)
            self.max_val.copy_(high)
        return x_orig

    def reset_min_max_vals(self) -> None:
        """Forget what was watched."""
        self.min_val.fill_(_INF)
        self.max_val.fill_(-_INF)


class MovingAverageMinMaxObserver(MinMaxObserver):
    """Keeps moving averages of the smallest and the largest elements of the tensors that it saw."""

    def __init__(
        self,
        averaging_constant: float = 0.01,
        dtype: Any = dt.QUANTIZED["quint8"],
        qscheme: qscheme = per_tensor_affine,
        reduce_range: bool = False,
        quant_min: int | None = None,
        quant_max: int | None = None,
        eps: float = _EPS,
        is_dynamic: bool = False,
        **kwargs: Any,
    ) -> None:
        if is_dynamic and averaging_constant != 1:
            raise NotImplementedError(
                "MovingAverageMinMaxObserver doesn't support dynamic quantization for averaging constant of "
                f"{averaging_constant}"
            )
        super().__init__(dtype, qscheme, reduce_range, quant_min, quant_max, eps=eps, is_dynamic=is_dynamic, **kwargs)
        self.averaging_constant = averaging_constant

    def _joined(self, low: Any, high: Any) -> tuple[Any, Any]:
        if self.min_val.item() == _INF and self.max_val.item() == -_INF:
            return low, high
        return _moved(self.min_val, low, self.averaging_constant), _moved(self.max_val, high, self.averaging_constant)


def _moved(average: Any, value: Any, share: float) -> Any:
    return aten.add(average, aten.mul(aten.sub(value, average), share))


class PerChannelMinMaxObserver(UniformQuantizationObserverBase):
    """Keeps the smallest and the largest element of each channel that it saw."""

    def __init__(
        self,
        ch_axis: int = 0,
        dtype: Any = dt.QUANTIZED["quint8"],
        qscheme: qscheme = per_channel_affine,
        *args: Any,
        is_dynamic: bool = False,
        **kwargs: Any,
    ) -> None:
        if qscheme not in _PER_CHANNEL:
            raise NotImplementedError(
                f"{type(self).__name__}'s qscheme only support torch.per_channel_symmetric, torch.per_channel_affine and "
                "torch.per_channel_affine_float_qparams."
            )
        if is_dynamic:
            raise NotImplementedError(f"{type(self).__name__} doesn't support dynamic quantization")
        super().__init__(dtype, qscheme, *args, **kwargs)
        self.ch_axis = ch_axis
        self.register_buffer("min_val", tensor([], **self._options))
        self.register_buffer("max_val", tensor([], **self._options))

    def _joined(self, low: Any, high: Any) -> tuple[Any, Any]:
        return aten.minimum(low, self.min_val), aten.maximum(high, self.max_val)

    def forward(self, x_orig: Any) -> Any:
        """Watch a tensor; returns it."""
        if x_orig.numel():
            rows = x_orig.detach().transpose(0, self.ch_axis).to(self.min_val.dtype).flatten(1)
            low, high = aten.aminmax(rows, dim=1)
            if self.min_val.numel() == 0:
                self.min_val.resize_(low.shape)
                self.max_val.resize_(high.shape)
            else:
                low, high = self._joined(low, high)
            self.min_val.copy_(low)
            self.max_val.copy_(high)
        return x_orig

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *args: Any) -> None:
        # The buffers are empty until a tensor was watched.
        for name, buffer in (("min_val", self.min_val), ("max_val", self.max_val)):
            if prefix + name in state_dict:
                buffer.resize_(state_dict[prefix + name].shape)
        super()._load_from_state_dict(state_dict, prefix, *args)

    def reset_min_max_vals(self) -> None:
        """Forget what was watched."""
        self.min_val = aten.empty((0,))
        self.max_val = aten.empty((0,))


class MovingAveragePerChannelMinMaxObserver(PerChannelMinMaxObserver):
    """Keeps moving averages of the smallest and the largest elements of each channel."""

    def __init__(
        self,
        averaging_constant: float = 0.01,
        ch_axis: int = 0,
        dtype: Any = dt.QUANTIZED["quint8"],
        qscheme: qscheme = per_channel_affine,
        reduce_range: bool = False,
        quant_min: int | None = None,
        quant_max: int | None = None,
        eps: float = _EPS,
        is_dynamic: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(ch_axis, dtype, qscheme, reduce_range, quant_min, quant_max, eps=eps, is_dynamic=is_dynamic, **kwargs)
        self.averaging_constant = averaging_constant

    def _joined(self, low: Any, high: Any) -> tuple[Any, Any]:
        return _moved(self.min_val, low, self.averaging_constant), _moved(self.max_val, high, self.averaging_constant)


class HistogramObserver(UniformQuantizationObserverBase):
    """A `QConfig` can hold it; no object can be made."""

    __init__ = refusing_function(  # type: ignore[assignment]
        "ao.quantization.HistogramObserver",
        "histograms of activations are not searched for a range. Use MinMaxObserver or MovingAverageMinMaxObserver",
    )

    def forward(self, x_orig: Any) -> Any:
        """Never reached."""
        return x_orig


default_observer = MinMaxObserver.with_args(quant_min=0, quant_max=127)
default_weight_observer = MinMaxObserver.with_args(dtype=dt.QUANTIZED["qint8"], qscheme=per_tensor_symmetric)
default_per_channel_weight_observer = PerChannelMinMaxObserver.with_args(
    dtype=dt.QUANTIZED["qint8"], qscheme=per_channel_symmetric
)
default_histogram_observer = HistogramObserver.with_args(quant_min=0, quant_max=127)
