"""torch.onnx: models are not written as ONNX; libraries ask whether they are being."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = ["export", "is_in_onnx_export"]


def is_in_onnx_export() -> bool:
    """Whether a model is being exported: never."""
    return False


def export(*args: Any, **kwargs: Any) -> NoReturn:
    """NotImplementedError: a model is saved by `torch.save(model.state_dict(), path)` or as safetensors."""
    raise NotImplementedError("torch.onnx.export: save the state_dict(), and export it where PyTorch is installed")
