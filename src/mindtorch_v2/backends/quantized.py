"""torch.backends.quantized: no engine is there."""

from __future__ import annotations

engine = "none"
supported_engines = ["none"]
