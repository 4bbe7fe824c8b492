"""torch.backends.opt_einsum: contraction order is left to right."""

from __future__ import annotations

from ._flags import absent_backend

absent_backend(globals(), enabled=True, strategy="auto")
