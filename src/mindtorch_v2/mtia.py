"""torch.mtia: never available here, and it says so."""

from __future__ import annotations

from ._absent_device import absent

globals().update(absent("MTIA"))
