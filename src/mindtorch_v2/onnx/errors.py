"""torch.onnx.errors: what the exporter raises, for programs that catch it. Models are not exported here."""

from __future__ import annotations

__all__ = ["OnnxExporterError", "OnnxExporterWarning", "SymbolicValueError", "UnsupportedOperatorError"]


class OnnxExporterWarning(UserWarning):
    """Something in an exported model may not be meant."""


class OnnxExporterError(RuntimeError):
    """A model cannot be exported."""


class UnsupportedOperatorError(OnnxExporterError):
    """ONNX has no such operator."""


class SymbolicValueError(OnnxExporterError):
    """A value of a graph is not what a rule expects."""
