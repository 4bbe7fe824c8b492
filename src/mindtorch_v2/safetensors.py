"""Weights in the safetensors format, with the functions of `safetensors.torch`; needs the extra `safetensors`.

Where `import torch` means this package (see `as_torch`), `safetensors.torch` itself works as well.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from types import TracebackType
from typing import Any

import numpy as np
import safetensors as _format

from ._core import dtype as dt
from ._core.device import device as Device
from ._core.storage import owner_of
from ._core.tensor import Tensor, make_external
from .nn import Module

__all__ = ["load", "load_file", "load_model", "safe_open", "save", "save_file", "save_model"]

_DTYPES = {
    "F64": dt.float64,
    "F32": dt.float32,
    "F16": dt.float16,
    "BF16": dt.bfloat16,
    "I64": dt.int64,
    "I32": dt.int32,
    "I16": dt.int16,
    "I8": dt.int8,
    "U64": dt.uint64,
    "U32": dt.uint32,
    "U16": dt.uint16,
    "U8": dt.uint8,
    "BOOL": dt.bool_,
    "C64": dt.complex64,
    "F8_E4M3": dt.by_name("float8_e4m3fn"),
    "F8_E5M2": dt.by_name("float8_e5m2"),
}


def _tensor(data: Any, dtype: str, shape: list[int], device: Any) -> Tensor:
    """A tensor that shares the memory of some bytes, moved to the device."""
    if dtype not in _DTYPES:
        raise NotImplementedError(f"safetensors: there is no dtype for {dtype}")
    array = np.frombuffer(data, _DTYPES[dtype].np).reshape(shape)
    tensor: Tensor = make_external(array)
    return tensor.to(device)  # type: ignore[attr-defined, no-any-return]


def _specs(tensors: Mapping[str, Tensor]) -> tuple[dict[str, Any], list[Tensor]]:
    """What the format's writer takes, and the tensors whose memory it reads, which must live until it has.

    ValueError and RuntimeError where it would not write what is meant.
    """
    owners: dict[int, list[str]] = {}
    specs = {}
    read: list[Tensor] = []
    for name, tensor in tensors.items():
        if not isinstance(tensor, Tensor):
            raise ValueError(f"Key `{name}` is invalid, expected torch.Tensor but received {type(tensor)}")
        array = tensor._array
        if not array.flags.c_contiguous:
            raise ValueError(
                f"You are trying to save a non contiguous tensor: `{name}` which is not allowed. It either means "
                "you are trying to save tensors which are reference of each other in which case it's recommended "
                "to save only the full tensors, and reslice at load time, or simply call `.contiguous()` on your "
                "tensor to pack it before saving."
            )
        if array.size:
            owners.setdefault(id(owner_of(array)), []).append(name)
        on_cpu: Tensor = tensor if tensor.is_cpu else tensor.cpu()  # type: ignore[attr-defined]
        read.append(on_cpu)
        array = on_cpu._array
        specs[name] = _format.TensorSpec(
            dtype=tensor.dtype.name, shape=list(array.shape), data_ptr=array.ctypes.data, data_len=array.nbytes
        )
    shared = [names for names in owners.values() if len(names) > 1]
    if shared:
        raise RuntimeError(
            "Some tensors share memory, this will lead to duplicate memory on disk and potential differences "
            f"when loading them again: {shared}. A potential way to correctly save your model is to use "
            "`save_model`."
        )
    return specs, read


def save(tensors: Mapping[str, Tensor], metadata: dict[str, str] | None = None) -> bytes:
    """Tensors as the bytes of a file."""
    specs, _read = _specs(tensors)
    return bytes(_format.serialize(specs, metadata=metadata))


def save_file(tensors: Mapping[str, Tensor], filename: str | os.PathLike[str], metadata: dict[str, str] | None = None) -> None:
    """Write tensors to a file."""
    specs, _read = _specs(tensors)
    _format.serialize_file(specs, filename, metadata=metadata)


def load(data: bytes) -> dict[str, Tensor]:
    """The tensors in the bytes of a file."""
    return {name: _tensor(part["data"], part["dtype"], part["shape"], "cpu") for name, part in _format.deserialize(data)}


def load_file(filename: str | os.PathLike[str], device: str | int | Device = "cpu") -> dict[str, Tensor]:
    """The tensors of a file. Their memory is the file's, mapped: pages are read when they are used, and copied when written."""
    with safe_open(filename, framework="pt", device=device) as file:
        return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  not a mapping


class _Slice:
    """A tensor of a file that was not read yet: `file.get_slice("w")[:, 2:]`."""

    def __init__(self, file: safe_open, entry: dict[str, Any]) -> None:
        self._file, self._entry = file, entry

    def get_shape(self) -> list[int]:
        return list(self._entry["shape"])

    def get_dtype(self) -> str:
        return str(self._entry["dtype"])

    def __getitem__(self, index: Any) -> Tensor:
        return self._file._read(self._entry)[index]  # type: ignore[index, no-any-return]


class safe_open:
    """A file whose tensors are read one by one, as `safetensors.safe_open(filename, framework="pt")` gives it."""

    def __init__(self, filename: str | os.PathLike[str], framework: str = "pt", device: str | int | Device = "cpu") -> None:
        if framework not in ("pt", "torch", "pytorch"):
            raise NotImplementedError(f"safe_open(framework={framework!r}): tensors of this package are asked for by 'pt'")
        # The package checks the header: sizes that fit, no holes, no overlaps.
        with _format.safe_open(filename, framework="np") as checked:
            self._metadata = checked.metadata()
        self._device = device
        with open(filename, "rb") as file:
            length = int.from_bytes(file.read(8), "little")
            header = json.loads(file.read(length))
        header.pop("__metadata__", None)
        self._entries: dict[str, dict[str, Any]] = header
        self._begin = 8 + length
        # Changes to tensors stay in memory.
        self._bytes: Any = np.memmap(filename, np.uint8, "c")

    def __enter__(self) -> safe_open:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._entries, self._bytes = {}, None  # tensors that were read keep the file mapped

    def keys(self) -> list[str]:
        """The names of the tensors, in the order of their names."""
        return sorted(self._entries)

    def offset_keys(self) -> list[str]:
        """The names of the tensors, in the order in which they lie in the file."""
        return sorted(self._entries, key=lambda name: self._entries[name]["data_offsets"][0])

    def metadata(self) -> dict[str, str] | None:
        """The texts that were saved along."""
        return self._metadata

    def _entry(self, name: str) -> dict[str, Any]:
        if name not in self._entries:
            raise _format.SafetensorError(f"File does not contain tensor {name}")
        return self._entries[name]

    def _read(self, entry: dict[str, Any]) -> Tensor:
        begin, end = entry["data_offsets"]
        if begin == end:
            return _tensor(bytearray(), entry["dtype"], entry["shape"], self._device)
        return _tensor(self._bytes[self._begin + begin : self._begin + end], entry["dtype"], entry["shape"], self._device)

    def get_tensor(self, name: str) -> Tensor:
        """The tensor of that name, read now; SafetensorError for an unknown one."""
        return self._read(self._entry(name))

    def get_slice(self, name: str) -> _Slice:
        """A tensor to take a part of."""
        return _Slice(self, self._entry(name))


def save_model(
    model: Module, filename: str | os.PathLike[str], metadata: dict[str, str] | None = None, force_contiguous: bool = True
) -> None:
    """Write a module's parameters and buffers; what several names share is written once, under the first name."""
    texts = dict(metadata or {})
    kept: dict[str, Tensor] = {}
    first: dict[tuple[int, int], str] = {}
    for name, tensor in sorted(model.state_dict().items()):
        place = (tensor.data_ptr(), tensor.numel())
        if tensor.numel() and place in first:
            texts.setdefault(name, first[place])
            continue
        first[place] = name
        kept[name] = tensor.contiguous() if force_contiguous else tensor
    save_file(kept, filename, texts or None)


def load_model(
    model: Module, filename: str | os.PathLike[str], strict: bool = True, device: str | int | Device = "cpu"
) -> tuple[set[str], list[str]]:
    """Read what `save_model` wrote into a module; returns names that were missing and names that were unexpected."""
    state = load_file(filename, device)
    own_state = model.state_dict()
    missing, unexpected = model.load_state_dict(state, strict=False)
    loaded_places = {(own_state[name].data_ptr(), own_state[name].numel()) for name in state if name in own_state}
    absent = {name for name in missing if (own_state[name].data_ptr(), own_state[name].numel()) not in loaded_places}
    if strict and (absent or unexpected):
        lines = [f"Error(s) in loading state_dict for {type(model).__name__}:"]
        if absent:
            lines.append("    Missing key(s) in state_dict: " + ", ".join(f'"{name}"' for name in sorted(absent)))
        if unexpected:
            lines.append("    Unexpected key(s) in state_dict: " + ", ".join(f'"{name}"' for name in sorted(unexpected)))
        raise RuntimeError("\n".join(lines))
    return absent, list(unexpected)
