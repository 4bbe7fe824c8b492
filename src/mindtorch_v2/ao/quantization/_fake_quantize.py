"""Modules that compute as if a tensor were quantized, with gradients: for quantization-aware training."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial
from typing import Any

from ..._core import dtype as dt
from ..._core.memory_format import (
    per_channel_affine_float_qparams,
    per_channel_symmetric,
    per_tensor_affine,
    per_tensor_symmetric,
)
from ..._dispatch.registry import aten
from ..._ops.creation.from_data import tensor
from ...nn.modules.module import Module
from ._observers import (
    _PER_CHANNEL,
    MovingAverageMinMaxObserver,
    MovingAveragePerChannelMinMaxObserver,
    _PartialWrapper,
)


class FakeQuantizeBase(Module, ABC):
    """Switches of modules that watch tensors and round them."""

    fake_quant_enabled: Any
    observer_enabled: Any

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("fake_quant_enabled", tensor([1], dtype=dt.uint8))
        self.register_buffer("observer_enabled", tensor([1], dtype=dt.uint8))

    @abstractmethod
    def forward(self, x: Any) -> Any:
        """The tensor as if it were quantized."""

    @abstractmethod
    def calculate_qparams(self, **kwargs: Any) -> Any:
        """(scales, zero points)."""

    def enable_fake_quant(self, enabled: bool = True) -> None:
        """Switch rounding on or off."""
        self.fake_quant_enabled[0] = 1 if enabled else 0

    def disable_fake_quant(self) -> None:
        """Switch rounding off."""
        self.enable_fake_quant(False)

    def enable_observer(self, enabled: bool = True) -> None:
        """Switch watching on or off."""
        self.observer_enabled[0] = 1 if enabled else 0

    def disable_observer(self) -> None:
        """Switch watching off: scales and zero points stay."""
        self.enable_observer(False)

    @classmethod
    def with_args(cls, **kwargs: Any) -> _PartialWrapper:
        """The class with these arguments, which a `QConfig` holds."""
        return _PartialWrapper(partial(cls, **kwargs))


class FakeQuantize(FakeQuantizeBase):
    """Watches tensors by an observer and rounds them to what its scales and zero points can stand for."""

    scale: Any
    zero_point: Any

    def __init__(
        self,
        observer: Any = MovingAverageMinMaxObserver,
        quant_min: int | None = None,
        quant_max: int | None = None,
        is_dynamic: bool = False,
        **observer_kwargs: Any,
    ) -> None:
        super().__init__()
        if quant_min is not None and quant_max is not None:
            if quant_min > quant_max:
                raise AssertionError("quant_min must be less than or equal to quant_max")
            given = getattr(getattr(observer, "p", None), "keywords", {})
            limits = dt.iinfo(given.get("dtype", observer_kwargs.get("dtype", dt.QUANTIZED["quint8"])))
            if limits.min > quant_min:
                raise AssertionError("quant_min out of bound")
            if quant_max > limits.max:
                raise AssertionError("quant_max out of bound")
            observer_kwargs |= {"quant_min": quant_min, "quant_max": quant_max}
        self.activation_post_process = watching = observer(**observer_kwargs, is_dynamic=is_dynamic)
        self.quant_min, self.quant_max, self.is_dynamic = watching.quant_min, watching.quant_max, watching.is_dynamic
        self.dtype, self.qscheme = watching.dtype, watching.qscheme
        self.ch_axis = getattr(watching, "ch_axis", -1)
        self.is_per_channel = self.qscheme in _PER_CHANNEL
        kind = dt.float32 if self.qscheme is per_channel_affine_float_qparams else dt.int32
        self.register_buffer("scale", tensor([1.0], dtype=dt.float32))
        self.register_buffer("zero_point", tensor([0], dtype=kind))

    def calculate_qparams(self) -> Any:  # type: ignore[override]
        """(scales, zero points) of the observer."""
        return self.activation_post_process.calculate_qparams()

    def forward(self, X: Any) -> Any:  # noqa: N803  torch's name
        """The tensor as if it were quantized; its scales follow it while the observer is on."""
        if self.observer_enabled.item() == 1:
            self.activation_post_process(X.detach())
            scale, zero_point = self.calculate_qparams()
            if self.scale.shape != scale.shape:
                self.scale.resize_(scale.shape)
                self.zero_point.resize_(zero_point.shape)
            self.scale.copy_(scale)
            self.zero_point.copy_(zero_point)
        if self.fake_quant_enabled.item() != 1:
            return X
        limits = self.activation_post_process.quant_min, self.activation_post_process.quant_max
        if self.is_per_channel:
            return aten.fake_quantize_per_channel_affine(X, self.scale, self.zero_point, self.ch_axis, *limits)
        return aten.fake_quantize_per_tensor_affine(X, self.scale, self.zero_point, *limits)

    def extra_repr(self) -> str:
        """Switches, range, scales."""
        return (
            f"fake_quant_enabled={self.fake_quant_enabled}, observer_enabled={self.observer_enabled}, "
            f"quant_min={self.quant_min}, quant_max={self.quant_max}, dtype={self.dtype}, qscheme={self.qscheme}, "
            f"ch_axis={self.ch_axis}, scale={self.scale}, zero_point={self.zero_point}"
        )

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *args: Any) -> None:
        # There is one scale a channel once a tensor was watched.
        for name, buffer in (("scale", self.scale), ("zero_point", self.zero_point)):
            if prefix + name in state_dict:
                buffer.resize_(state_dict[prefix + name].shape)
        super()._load_from_state_dict(state_dict, prefix, *args)


default_fake_quant = FakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver,
    quant_min=0,
    quant_max=255,
    dtype=dt.QUANTIZED["quint8"],
    qscheme=per_tensor_affine,
    reduce_range=True,
)
default_weight_fake_quant = FakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver,
    quant_min=-128,
    quant_max=127,
    dtype=dt.QUANTIZED["qint8"],
    qscheme=per_tensor_symmetric,
    reduce_range=False,
)
default_per_channel_weight_fake_quant = FakeQuantize.with_args(
    observer=MovingAveragePerChannelMinMaxObserver,
    quant_min=-128,
    quant_max=127,
    dtype=dt.QUANTIZED["qint8"],
    qscheme=per_channel_symmetric,
    reduce_range=False,
    ch_axis=0,
)


def _each_fake_quantize(name: str) -> Any:
    def switch(mod: Any) -> None:
        if isinstance(mod, FakeQuantizeBase):
            getattr(mod, name)()

    switch.__name__ = switch.__qualname__ = name
    switch.__doc__ = f"For `model.apply`: `{name}()` of every module that rounds."
    return switch


disable_fake_quant = _each_fake_quantize("disable_fake_quant")
enable_fake_quant = _each_fake_quantize("enable_fake_quant")
disable_observer = _each_fake_quantize("disable_observer")
enable_observer = _each_fake_quantize("enable_observer")
