"""torch.PyTorchFileReader: the records of a checkpoint, one by one, for loaders that take only what they need."""

from __future__ import annotations

import os
import weakref
from typing import Any

from .. import _surface as torch
from .._core import dtype as dt
from .._core.tensor import Tensor
from .archive import ArchiveReader


class PyTorchFileReader(ArchiveReader):
    """A checkpoint's records by name, without the name of the folder that they are in; of a path or an open file."""

    __module__ = "torch"

    def __init__(self, file: str | os.PathLike[str] | Any) -> None:
        if not hasattr(file, "read"):
            try:
                file = open(file, "rb")  # noqa: SIM115  open as long as the reader is
            except FileNotFoundError as error:
                raise RuntimeError(
                    f"open file failed because of errno 2 on fopen: {error.strerror}, file path: {file}"
                ) from None
            weakref.finalize(self, file.close)
        super().__init__(file)

    def get_storage_from_record(self, name: str, numel: int, dtype: Any) -> Tensor:
        """An empty tensor on a storage with the record's bytes; of bytes if `dtype` is no dtype but a class of storages."""
        kind = dtype if isinstance(dtype, dt.dtype) else dt.uint8
        storage = torch.from_numpy(self.array(name)[: numel * kind.itemsize]).untyped_storage()
        return torch.empty(0, dtype=kind).set_(storage, 0, (0,), (1,))  # type: ignore[no-any-return]
