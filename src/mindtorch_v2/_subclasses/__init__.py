"""torch._subclasses: tensors of programs that are traced without data, of which there are none."""

from __future__ import annotations

from .fake_tensor import FakeTensor, FakeTensorMode

__all__ = ["FakeTensor", "FakeTensorMode"]
