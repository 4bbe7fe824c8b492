"""What a layer is to be quantized with: classes of observers for its activations and its weights."""

from __future__ import annotations

from typing import Any, NamedTuple

from ...nn.modules.module import Module
from ._observers import HistogramObserver, default_per_channel_weight_observer, default_weight_observer

_BACKENDS = ["fbgemm", "x86", "qnnpack", "onednn"]


class _Pair(NamedTuple):
    activation: Any
    weight: Any


class QConfig(_Pair):
    """Classes of observers, or of modules that round, for activations and for weights."""

    __slots__ = ()

    def __new__(cls, activation: Any, weight: Any) -> QConfig:
        """Objects are refused: each layer makes its own."""
        if isinstance(activation, Module) or isinstance(weight, Module):
            raise ValueError(
                "QConfig received observer instance, please pass observer class instead. Use MyObserver.with_args(x=1) to "
                "override arguments to constructor if needed"
            )
        return super().__new__(cls, activation, weight)


def get_default_qconfig(backend: str = "x86", version: int = 0) -> QConfig:
    """What torch quantizes layers of a trained model with on a kind of machine."""
    if backend not in _BACKENDS:
        raise AssertionError(f"backend: {backend} not supported. backend must be one of {_BACKENDS}")
    if version != 0:
        raise AssertionError(f"Version number: {version} in get_default_qconfig is not supported. Version number must be 0")
    return QConfig(
        activation=HistogramObserver.with_args(reduce_range=backend in ("fbgemm", "x86")),
        weight=default_weight_observer if backend == "qnnpack" else default_per_channel_weight_observer,
    )
