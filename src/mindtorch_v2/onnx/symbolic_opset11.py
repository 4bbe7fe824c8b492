"""torch.onnx.symbolic_opset11: rules of the export by name. There are none: models are not written as ONNX."""

from __future__ import annotations

from typing import NoReturn


def __getattr__(name: str) -> NoReturn:
    if name.startswith("__"):
        raise AttributeError(name)
    raise NotImplementedError(f"torch.onnx.symbolic_opset11.{name}: models are not written as ONNX")
