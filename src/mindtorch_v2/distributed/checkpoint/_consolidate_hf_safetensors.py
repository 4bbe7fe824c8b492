"""torch.distributed.checkpoint._consolidate_hf_safetensors: a name that transformers imports."""

from __future__ import annotations

from .._absent import absent_function

consolidate_safetensors_files = absent_function(__name__, "consolidate_safetensors_files")
consolidate_safetensors_files_on_every_rank = absent_function(__name__, "consolidate_safetensors_files_on_every_rank")
