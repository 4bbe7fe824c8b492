"""Layers for quantization-aware training: their weights are rounded as if they were quantized."""

from __future__ import annotations

from typing import Any, ClassVar

from .._dispatch.registry import aten
from ..nn.modules import linear
from ..nn.utils.parametrize import is_parametrized, transfer_parametrizations_and_params, type_before_parametrizations


class _RoundedWeight:
    """Gives a layer `weight_fake_quant`, of which it computes with the result."""

    _FLOAT_MODULE: ClassVar[type]

    def __init__(self, *args: Any, qconfig: Any = None, device: Any = None, dtype: Any = None, **kwargs: Any) -> None:
        options = {"device": device, "dtype": dtype}
        super().__init__(*args, **kwargs, **options)
        if not qconfig:
            raise AssertionError("qconfig must be provided for QAT module")
        self.qconfig = qconfig
        self.weight_fake_quant = qconfig.weight(factory_kwargs=options)

    def _take(self, mod: Any) -> Any:
        """Take the parameters of a layer, with what computes them."""
        for name in ("weight", "bias"):
            if is_parametrized(mod, name):
                transfer_parametrizations_and_params(mod, self, name)  # type: ignore[arg-type]
            else:
                setattr(self, name, getattr(mod, name))
        return self

    @classmethod
    def _check(cls, mod: Any) -> None:
        if type_before_parametrizations(mod) is not cls._FLOAT_MODULE:
            raise AssertionError(
                f"qat.{cls.__name__}.from_float only works for {cls._FLOAT_MODULE.__name__}, got "
                f"{type_before_parametrizations(mod).__name__}"
            )
        if not hasattr(mod, "qconfig"):
            raise AssertionError("Input float module must have qconfig defined")
        if not mod.qconfig:
            raise AssertionError("Input float module must have a valid qconfig")


class Linear(_RoundedWeight, linear.Linear):
    """nn.Linear whose weight is rounded by `qconfig.weight`."""

    __module__ = "torch.ao.nn.qat.modules.linear"
    _FLOAT_MODULE = linear.Linear

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        qconfig: Any = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(in_features, out_features, bias, qconfig=qconfig, device=device, dtype=dtype)

    def forward(self, input: Any) -> Any:
        """`F.linear` with the rounded weight."""
        return aten.linear(input, self.weight_fake_quant(self.weight), self.bias)

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Linear:
        """A layer with the parameters of an nn.Linear that has a `qconfig`.

        `use_precomputed_fake_quant` is an option of quantized layers: torch's layers for training do not read it either.
        """
        cls._check(mod)
        made: Linear = cls(mod.in_features, mod.out_features, mod.bias is not None, mod.qconfig)._take(mod)
        return made

    def to_float(self) -> Any:
        """An nn.Linear with the parameters as they are."""
        made = linear.Linear(self.in_features, self.out_features, self.bias is not None)
        made.weight.data.copy_(self.weight)
        if self.bias is not None:
            made.bias.data.copy_(self.bias)
        return made.train(self.training)
