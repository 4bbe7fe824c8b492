"""torch._export: decorators that subclasses of Tensor carry. Models are not captured as programs here."""

from __future__ import annotations
