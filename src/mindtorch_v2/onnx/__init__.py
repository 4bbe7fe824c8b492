"""torch.onnx: models are not written as ONNX; libraries ask whether they are being."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from .._lazy_imports import lazy_exports as _lazy_exports
from ..version import __version__
from . import errors, operators, symbolic_helper
from .errors import OnnxExporterError

__all__ = [
    "OnnxExporterError",
    "errors",
    "export",
    "is_in_onnx_export",
    "operators",
    "producer_name",
    "producer_version",
    "register_custom_op_symbolic",
    "symbolic_helper",
]

# What torch's exporter writes into a model.
producer_name = "pytorch"
producer_version = __version__

_symbolic_rules: dict[tuple[str, int], Callable[..., Any]] = {}


def register_custom_op_symbolic(symbolic_name: str, symbolic_fn: Callable[..., Any], opset_version: int) -> None:
    """Keep a rule for an op from outside; the export that would use it is not supported."""
    if symbolic_name.startswith("::"):
        symbolic_name = f"aten{symbolic_name}"
    if "::" not in symbolic_name:
        raise ValueError(f"Failed to register operator {symbolic_name}. The symbolic name must match the format domain::name.")
    _symbolic_rules[symbolic_name, opset_version] = symbolic_fn


def is_in_onnx_export() -> bool:
    """Whether a model is being exported: never."""
    return False


def export(*args: Any, **kwargs: Any) -> NoReturn:
    """NotImplementedError: a model is saved by `torch.save(model.state_dict(), path)` or as safetensors."""
    raise NotImplementedError(
        "torch.onnx.export: save the state_dict(), and export it where PyTorch is installed. See docs/compatibility.md"
    )


__getattr__, __dir__ = _lazy_exports(__name__)  # names that refuse their use
