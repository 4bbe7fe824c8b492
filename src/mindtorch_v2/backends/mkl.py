"""torch.backends.mkl: MKL is not used here."""

from __future__ import annotations

from ._flags import absent_backend

absent_backend(globals(), enabled=True)
