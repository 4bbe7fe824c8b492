"""torch.distributed.checkpoint.hf_storage: names that transformers imports; folders of safetensors are not read in parts."""

from __future__ import annotations

from .._absent import absent_class

__all__ = ["HuggingFaceStorageReader", "HuggingFaceStorageWriter"]

HuggingFaceStorageReader = absent_class(__name__, "HuggingFaceStorageReader")
HuggingFaceStorageWriter = absent_class(__name__, "HuggingFaceStorageWriter")
