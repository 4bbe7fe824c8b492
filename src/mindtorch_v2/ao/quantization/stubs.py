"""Where a model's tensors would become quantized, and floating point again."""

from __future__ import annotations

from typing import Any

from ...nn.modules.module import Module


class QuantStub(Module):
    """Where tensors would be quantized: in a model that is not, the identity."""

    def __init__(self, qconfig: Any = None) -> None:
        super().__init__()
        if qconfig:
            self.qconfig = qconfig

    def forward(self, x: Any) -> Any:
        """The tensor itself."""
        return x


class DeQuantStub(QuantStub):
    """Where tensors would become floating point again: in a model that is not quantized, the identity."""


class QuantWrapper(Module):
    """A module between a QuantStub and a DeQuantStub."""

    def __init__(self, module: Module) -> None:
        super().__init__()
        qconfig = getattr(module, "qconfig", None)
        self.quant, self.dequant, self.module = QuantStub(qconfig), DeQuantStub(qconfig), module
        self.train(module.training)

    def forward(self, X: Any) -> Any:  # noqa: N803  torch's name
        """The module's result."""
        return self.dequant(self.module(self.quant(X)))
