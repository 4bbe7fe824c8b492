"""torch._C._fft: the functions of torch.fft by the names of their ops."""

from __future__ import annotations

from ._prefixed import prefixed

__getattr__, __dir__ = prefixed("fft")
