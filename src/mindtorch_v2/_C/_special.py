"""torch._C._special: the functions of torch.special by the names of their ops."""

from __future__ import annotations

from ._prefixed import prefixed

__getattr__, __dir__ = prefixed("special")
