"""torch._C._linalg: the functions of torch.linalg by the names of their ops."""

from __future__ import annotations

from ._prefixed import prefixed

__getattr__, __dir__ = prefixed("linalg")
