"""The global names in checkpoint files, and the objects of this package that they stand for."""

from __future__ import annotations

import _compat_pickle
import collections
import importlib
from collections.abc import Callable
from typing import Any

from .._core import dtype as dt
from .._core.device import device as Device
from .._core.size import Size
from .._core.tensor import Tensor
from .._dispatch.registry import aten
from .rebuild import REBUILDERS, LoadedGenerator, get_layout

_PACKAGE = __name__.partition(".")[0]


class GlobalName:
    """A name that a pickle refers to, e.g. `torch._utils _rebuild_tensor_v2`. Callable, since pickle insists."""

    __slots__ = ("module", "name")

    def __init__(self, module: str, name: str) -> None:
        self.module = module
        self.name = name

    def __call__(self, *args: Any) -> Any:
        raise TypeError(f"{self.module}.{self.name} is a name, not a function")


class StorageType:
    """`torch.FloatStorage` in a checkpoint: the dtype of what is stored."""

    __slots__ = ("dtype", "name")

    def __init__(self, name: str, dtype: dt.dtype | None) -> None:
        self.name = name
        self.dtype = dtype


# FloatStorage, LongStorage, ...; newer dtypes are stored as untyped bytes and rebuilt with their dtype.
_TYPED = (
    "float64",
    "float32",
    "float16",
    "bfloat16",
    "int64",
    "int32",
    "int16",
    "int8",
    "uint8",
    "bool",
    "complex64",
    "complex128",
)
STORAGE_TYPES: dict[str, StorageType] = {
    f"{d.scalar_name}Storage": StorageType(f"{d.scalar_name}Storage", d) for d in map(dt.by_name, _TYPED)
}
STORAGE_TYPES["UntypedStorage"] = StorageType("UntypedStorage", None)
STORAGE_NAMES: dict[dt.dtype, GlobalName] = {
    t.dtype: GlobalName("torch", name) for name, t in STORAGE_TYPES.items() if t.dtype is not None
}
UNTYPED = GlobalName("torch.storage", "UntypedStorage")


def latin_bytes(text: str, encoding: str) -> bytes:
    """What protocol 2 makes bytes of: `_codecs.encode(text, "latin1")`, and with no other encoding."""
    if encoding != "latin1":
        raise ValueError("bytes are written as latin1")
    return text.encode("latin1")


# Everything a checkpoint of weights may mention.
SAFE: dict[tuple[str, str], Any] = {
    ("collections", "OrderedDict"): collections.OrderedDict,
    ("collections", "Counter"): collections.Counter,
    ("collections", "defaultdict"): collections.defaultdict,
    ("builtins", "set"): set,
    ("builtins", "frozenset"): frozenset,
    ("builtins", "bytearray"): bytearray,
    ("builtins", "complex"): complex,
    ("builtins", "slice"): slice,
    ("__builtin__", "set"): set,
    ("__builtin__", "frozenset"): frozenset,
    ("__builtin__", "bytearray"): bytearray,
    ("__builtin__", "complex"): complex,
    ("_codecs", "encode"): latin_bytes,
    ("torch", "Size"): Size,
    ("torch", "device"): Device,
    ("torch.storage", "UntypedStorage"): STORAGE_TYPES["UntypedStorage"],
    ("torch.serialization", "_get_layout"): get_layout,
}
# Names that only a trusted file may mention, for objects that moved.
_ELSEWHERE: dict[tuple[str, str], Any] = {
    ("torch._C", "Generator"): LoadedGenerator,
    ("torch._C", "_VariableFunctionsClass"): aten,
}
# Ops that torch keeps there, of those that are functions of nn.functional.
NN_OPS_HOME = "torch._C._nn"
NN_OPS = frozenset(
    {
        "avg_pool2d",
        "avg_pool3d",
        "elu_",
        "gelu",
        "hardtanh_",
        "leaky_relu_",
        "linear",
        "log_sigmoid",
        "one_hot",
        "scaled_dot_product_attention",
        "softplus",
        "softshrink",
    }
)
SAFE |= {("torch", name): kind for name, kind in STORAGE_TYPES.items()}
SAFE |= {("torch", name): value for name, value in dt.DTYPES.items()}
SAFE |= {("torch._utils", name): function for name, function in REBUILDERS.items()}
SAFE |= {("torch._tensor", "_rebuild_from_type_v2"): REBUILDERS["_rebuild_from_type_v2"], ("torch", "Tensor"): Tensor}
SAFE |= {("torch.nn.parameter", "Parameter"): REBUILDERS["_parameter"], ("torch", "_parameter"): REBUILDERS["_parameter"]}


_REBUILDER_NAMES = {
    id(function): GlobalName("torch._utils", name) for name, function in REBUILDERS.items() if name.startswith("_rebuild")
}


def name_of(obj: Any) -> GlobalName | None:
    """What a checkpoint calls one of the package's own objects; None for everything else."""
    module = getattr(obj, "__module__", None) or ""
    if isinstance(obj, dt.dtype):
        return GlobalName("torch", obj.name)
    if module == _PACKAGE or module.startswith(_PACKAGE + "."):
        name = getattr(obj, "__qualname__", None)
        if callable(obj) and id(obj) in _REBUILDER_NAMES:
            return _REBUILDER_NAMES[id(obj)]
        if obj in (Size, Device):
            return GlobalName("torch", obj.__name__)
        return None if name is None else GlobalName("torch" + module[len(_PACKAGE) :], name)
    return None


def find(module: str, name: str, elsewhere: Callable[[str, str], Any] | None = None) -> Any:
    """The object that a checkpoint means: torch's names are this package's; others are what `elsewhere` makes of them."""
    known = SAFE.get((module, name)) or _ELSEWHERE.get((module, name))
    if known is not None:
        return known
    if module == NN_OPS_HOME:
        return getattr(aten, name)
    if module == "torch" or module.startswith("torch."):
        module = _PACKAGE + module[len("torch") :]
    elif elsewhere is not None:
        return elsewhere(module, name)
    # Protocol 2, which checkpoints are written with, calls the standard library by its names in Python 2.
    module, name = _compat_pickle.NAME_MAPPING.get((module, name), (_compat_pickle.IMPORT_MAPPING.get(module, module), name))
    target: Any = importlib.import_module(module)
    for part in name.split("."):
        target = getattr(target, part)
    return target
