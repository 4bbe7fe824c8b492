"""torch.types: names for annotations."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import IO, Any

from ._core.device import device
from ._core.dtype import dtype
from ._core.memory_format import layout
from ._core.size import Size
from ._core.tensor import Tensor
from ._core.untyped_storage import UntypedStorage as Storage

__all__ = ["Device", "FileLike", "Number", "Storage"]

Number = int | float | bool
Device = device | str | int | None
FileLike = str | os.PathLike[str] | IO[bytes]
_TensorOrTensors = Tensor | Sequence[Tensor]
_dtype, _device, _layout = dtype, device, layout
_size = Size | list[int] | tuple[int, ...]
_int, _float, _bool, _complex = int, float, bool, complex
PySymType = Any
