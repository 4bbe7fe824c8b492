"""Writing checkpoints: a zip archive with one pickle and one member per storage, as torch writes it."""

from __future__ import annotations

import io
import os
import pickle
import sys
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any, BinaryIO, ClassVar

import numpy as np

from .._core import dtype as dt
from .._core.device import device as Device
from .._core.keys import AUTOGRAD, CONJUGATED, LAZY, META, NEGATED, NPU, PYTHON
from .._core.memory_format import layout
from .._core.rng import Generator
from .._core.size import Size
from .._core.sparse import CompressedTensor, SparseTensor
from .._core.storage import owner_of
from .._core.tensor import Tensor
from .._core.untyped_storage import MemoryObject
from .._dispatch import backends
from .._dispatch.registry import aten
from .._typed_storage import TypedStorage, typed_storage
from ..nn.modules._members import Members
from ..nn.parameter import Parameter
from . import options
from .archive import ArchiveWriter
from .locations import has_own_taggers, location_tag
from .names import NN_OPS, NN_OPS_HOME, STORAGE_NAMES, UNTYPED, GlobalName, name_of

_REBUILD_TENSOR = GlobalName("torch._utils", "_rebuild_tensor_v2")
_REBUILD_TENSOR_V3 = GlobalName("torch._utils", "_rebuild_tensor_v3")
_REBUILD_PARAMETER = GlobalName("torch._utils", "_rebuild_parameter")
_REBUILD_PARAMETER_WITH_STATE = GlobalName("torch._utils", "_rebuild_parameter_with_state")
_REBUILD_FROM_TYPE = GlobalName("torch._tensor", "_rebuild_from_type_v2")
_REBUILD_SPARSE = GlobalName("torch._utils", "_rebuild_sparse_tensor")
_REBUILD_META = GlobalName("torch._utils", "_rebuild_meta_tensor_no_storage")
_GET_LAYOUT = GlobalName("torch.serialization", "_get_layout")
_GENERATOR = GlobalName("torch._C", "Generator")
_FUNCTIONS = GlobalName("torch._C", "_VariableFunctionsClass")


_PACKAGE = __name__.partition(".")[0]
# The pickler that is written in Python: its steps can be overridden.
_PythonPickler: Any = pickle._Pickler  # type: ignore[attr-defined]


def state_of(obj: Any) -> Any:
    """What a tensor has beside its elements: attributes, slots of its class, or what its own `__getstate__` gives."""
    own = getattr(type(obj), "__getstate__", None)
    if own is not None and own is not getattr(object, "__getstate__", None):
        return obj.__getstate__()
    attributes = {name: value for name, value in obj.__dict__.items() if name != "_backward_hooks"}
    slots = {
        name: getattr(obj, name)
        for kind in type(obj).__mro__
        if issubclass(kind, Tensor) and not kind.__module__.startswith(_PACKAGE)
        for name in _listed(vars(kind).get("__slots__", ()))
        if name not in ("__dict__", "__weakref__") and hasattr(obj, name)
    }
    return (attributes, slots) if slots else attributes or None


def _listed(names: Any) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


class StorageReference:
    """Stands for a storage inside the pickle."""

    __slots__ = ("key", "kind", "location", "numel")

    def __init__(self, kind: GlobalName, key: str, numel: int, location: str = "cpu") -> None:
        self.kind = kind
        self.key = key
        self.numel = numel
        self.location = location


class CheckpointPickler(_PythonPickler):
    """Writes the package's own objects under torch's names and sets storages aside.

    The C pickler looks every global up in its module, and there is no module called torch; so this one, in Python.
    """

    # What a storage of a dtype without a storage type of its own is called.
    untyped = UNTYPED

    def __init__(self, file: BinaryIO, protocol: int) -> None:
        super().__init__(file, protocol)
        self.storages: dict[int, tuple[str, np.ndarray]] = {}
        self.kinds: dict[str, GlobalName] = {}
        self.on_devices: list[np.ndarray] = []

    def save(self, obj: Any, save_persistent_id: bool = True) -> None:
        if isinstance(obj, GlobalName):
            self._write_global(obj, obj)
        else:
            super().save(obj, save_persistent_id)

    def save_global(self, obj: Any, name: str | None = None) -> None:
        if isinstance(obj, FunctionType) and vars(aten).get(obj.__name__) is obj:
            self._write_op(obj)
            return
        known = name_of(obj)
        if known is None:
            super().save_global(obj, name)
        else:
            self._write_global(obj, known)

    # The base class has its own for functions in its table, whatever the method is. What a module keeps its members in is a
    # dict in the file, as torch has it: a call of `dict` would be refused with `weights_only`.
    dispatch: ClassVar = {**_PythonPickler.dispatch, FunctionType: save_global, Members: _PythonPickler.save_dict}

    def _write_op(self, function: FunctionType) -> None:
        """The function of an op: torch's are built in, and found in two places."""
        name = function.__name__
        if name in NN_OPS:
            self._write_global(function, GlobalName(NN_OPS_HOME, name))
        else:
            self.save_reduce(getattr, (_FUNCTIONS, name), obj=function)

    def _write_global(self, obj: Any, name: GlobalName) -> None:
        memo = self.memo.get(id(obj))
        if memo is not None:
            self.write(self.get(memo[0]))
            return
        self.write(pickle.GLOBAL + f"{name.module}\n{name.name}\n".encode())
        self.memoize(obj)

    def persistent_id(self, obj: Any) -> Any:
        if isinstance(obj, MemoryObject):
            obj = self._reference(obj)
        if isinstance(obj, StorageReference):
            if obj.numel and self.kinds.setdefault(obj.key, obj.kind) is not obj.kind:
                raise RuntimeError("Cannot save multiple tensors or storages that view the same data as different types")
            return "storage", obj.kind, obj.key, obj.location, obj.numel
        return None

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, Parameter):
            data = obj.detach()  # type: ignore[attr-defined]
            kept = state_of(obj)
            if kept:
                return _REBUILD_PARAMETER_WITH_STATE, (data, obj.requires_grad, OrderedDict(), kept)
            return _REBUILD_PARAMETER, (data, obj.requires_grad, OrderedDict())
        if isinstance(obj, CompressedTensor):
            return _REBUILD_SPARSE, (
                obj.layout,  # type: ignore[attr-defined]
                (obj._compressed, obj._plain, obj._entries.detach(), Size(obj._array.shape)),
            )
        if isinstance(obj, SparseTensor):
            return _REBUILD_SPARSE, (
                obj.layout,
                (  # type: ignore[attr-defined]
                    obj._coordinates,
                    obj._entries.detach(),
                    Size(obj._array.shape),
                    obj._coalesced,
                ),
            )
        if isinstance(obj, Tensor):
            if type(obj).__reduce_ex__ is not Tensor.__reduce_ex__:  # a subclass that says itself what it is made of
                return NotImplemented
            reduced = self._reduce_tensor(obj)
            kept = state_of(obj)
            if type(obj) is Tensor and not kept:
                return reduced
            return _REBUILD_FROM_TYPE, (reduced[0], type(obj), reduced[1], kept)
        if isinstance(obj, dt.dtype):
            return obj.name  # written as the global it is
        if isinstance(obj, layout):
            return _GET_LAYOUT, (str(obj),)
        if isinstance(obj, Generator):
            return _GENERATOR, (obj.device,), (obj.initial_seed(), None, obj.get_state())
        if isinstance(obj, Size):
            return Size, (tuple(obj),)
        if isinstance(obj, Device):
            return Device, ((obj.type,) if obj.index is None else (obj.type, obj.index))
        return NotImplemented

    def _reference(self, storage: Any) -> StorageReference:
        """A storage that is in the checkpoint as such."""
        if storage._storage.place != "cpu":
            raise NotImplementedError(f"torch.save: storages on {storage._storage.place}")
        owner = storage._storage.owner
        typed = STORAGE_NAMES.get(storage._dtype) if isinstance(storage, TypedStorage) else None
        item = 1 if typed is None else storage._element_size()
        place = location_tag(storage) if has_own_taggers() else "cpu"
        return StorageReference(self.untyped if typed is None else typed, self._key(owner, owner), owner.nbytes // item, place)

    def _key(self, owner: np.ndarray, host: np.ndarray) -> str:
        """The name of the member with the memory of `owner`."""
        if id(owner) not in self.storages:
            self.storages[id(owner)] = str(len(self.storages)), host
        return self.storages[id(owner)][0]

    def _reduce_tensor(self, tensor: Tensor) -> Any:
        if tensor._keys & META:
            shape, strides = tensor._array.shape, tensor.stride()
            return _REBUILD_META, (tensor.dtype, shape, strides, tensor.requires_grad)
        if tensor._keys & ~(AUTOGRAD | NPU | PYTHON | LAZY):
            raise NotImplementedError(f"torch.save: tensors on {tensor.device}")
        array = tensor._array
        owner = owner_of(array)
        dtype = tensor.dtype
        location = "cpu"
        if tensor._keys & NPU:
            location = str(tensor.device)
            self.on_devices.append(owner)  # so that its id stays its own
        elif has_own_taggers():
            location = location_tag(typed_storage(tensor))
        fetched = tensor._keys & NPU and id(owner) not in self.storages
        key = self._key(owner, backends.loaded["npu"].download(owner) if fetched else owner)
        typed = STORAGE_NAMES.get(dtype)
        numel = owner.nbytes // (array.itemsize if typed is not None else 1)
        place: tuple[Any, ...] = (tensor.storage_offset(), array.shape, tensor.stride(), tensor.requires_grad, OrderedDict())
        bits = {name: True for name, bit in (("conj", CONJUGATED), ("neg", NEGATED)) if tensor._keys & bit}
        metadata = (bits,) if bits else ()
        if typed is not None:
            return _REBUILD_TENSOR, (StorageReference(typed, key, numel, location), *place, *metadata)
        return _REBUILD_TENSOR_V3, (StorageReference(self.untyped, key, numel, location), *place, dtype, *metadata)


def raw_bytes(owner: np.ndarray) -> memoryview:
    """An array's memory as it lies there, whatever the order of its dims; without a copy where it has no gaps."""
    flat = owner.ravel("K") if not owner.flags.c_contiguous else owner.reshape(-1)
    return memoryview(flat.view(np.uint8)) if flat.size else memoryview(b"")  # type: ignore[arg-type]


def pickler_class(pickle_module: Any, legacy: bool = False) -> Any:
    """The pickler for a module that torch.save was given; NotImplementedError if that module's is not written in Python."""
    kind = _LegacyPickler if legacy else CheckpointPickler
    base = None if pickle_module is None else pickle_module.Pickler
    if base is None or base is pickle.Pickler:
        return kind
    if not (isinstance(base, type) and issubclass(base, _PythonPickler)):
        raise NotImplementedError(
            f"torch.save(pickle_module={pickle_module.__name__}): its Pickler is not one of those that are written in Python"
        )
    dispatch = {**getattr(base, "dispatch", {}), FunctionType: CheckpointPickler.save_global}
    return type(kind.__name__, (kind, base), {"dispatch": dispatch})


def write_zip(
    obj: Any,
    write: Callable[[Any], Any],
    folder: str,
    protocol: int,
    skip_data: bool = False,
    pickle_module: Any = None,
    byteorder: bool = True,
) -> None:
    """Write a checkpoint in the present format, piece by piece; with `skip_data`, zeros instead of the storages' bytes."""
    pickled = io.BytesIO()
    pickler = pickler_class(pickle_module)(pickled, protocol)
    pickler.dump(obj)
    alignment = options.save.storage_alignment
    archive = ArchiveWriter(write, folder, alignment, options.save.compute_crc32)
    archive.write_record("data.pkl", pickled.getbuffer())
    archive.write_record(".format_version", b"1")
    archive.write_record(".storage_alignment", str(alignment))
    if byteorder:
        if sys.byteorder not in ("little", "big"):
            raise ValueError("Unknown endianness type: " + sys.byteorder)
        archive.write_record("byteorder", sys.byteorder)
    for key, owner in pickler.storages.values():
        if skip_data:
            archive.write_record_metadata(f"data/{key}", owner.nbytes)
        else:
            archive.write_record(f"data/{key}", raw_bytes(owner))
    archive.write_end_of_file()


MAGIC_NUMBER = 0x1950A86A20F9469CFC6C
PROTOCOL_VERSION = 1001


def write_legacy(obj: Any, file: BinaryIO, protocol: int, pickle_module: Any = None) -> None:
    """Write a checkpoint in the format before zip files: a row of pickles, then the storages."""
    system = {
        "protocol_version": PROTOCOL_VERSION,
        "little_endian": sys.byteorder == "little",
        "type_sizes": {"short": 2, "int": 4, "long": 4},
    }
    for header in (MAGIC_NUMBER, PROTOCOL_VERSION, system):
        pickle.dump(header, file, protocol=protocol)
    pickler = pickler_class(pickle_module, legacy=True)(file, protocol)
    pickler.dump(obj)
    keys = sorted(key for key, _ in pickler.storages.values())
    pickle.dump(keys, file, protocol=protocol)
    by_key = dict(pickler.storages.values())
    for key in keys:
        owner = by_key[key]
        file.write((owner.nbytes // pickler.itemsizes.get(key, owner.itemsize)).to_bytes(8, "little"))
        file.write(raw_bytes(owner))


class _LegacyPickler(CheckpointPickler):
    untyped = STORAGE_NAMES[dt.uint8]  # torch asks every storage of this format for its dtype

    def __init__(self, file: BinaryIO, protocol: int) -> None:
        super().__init__(file, protocol)
        self.itemsizes: dict[str, int] = {}

    def persistent_id(self, obj: Any) -> Any:
        identity = super().persistent_id(obj)
        return None if identity is None else (*identity, None)

    def _reference(self, storage: Any) -> StorageReference:
        reference = super()._reference(storage)
        self.itemsizes.setdefault(reference.key, storage._element_size() if reference.kind is not self.untyped else 1)
        return reference

    def _reduce_tensor(self, tensor: Tensor) -> Any:
        reduced = super()._reduce_tensor(tensor)
        if isinstance(reduced[1][0], StorageReference):
            self.itemsizes.setdefault(reduced[1][0].key, tensor.itemsize if reduced[0] is _REBUILD_TENSOR else 1)
        return reduced


def folder_name(target: Any) -> str:
    """The folder inside the archive: the file's name without its ending, or `archive`."""
    return Path(os.fspath(target)).stem if isinstance(target, str | os.PathLike) else "archive"
