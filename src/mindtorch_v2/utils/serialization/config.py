"""torch.utils.serialization.config: `config.save.compute_crc32`, `config.load.mmap` and the others, read when they matter."""

from __future__ import annotations

from ..._serialization.options import get_config_copy, load, load_config, patch, save

__all__ = ["get_config_copy", "load", "load_config", "patch", "save"]
