"""Element types: the dtype singletons, the default dtype, type promotion, finfo and iinfo."""

from __future__ import annotations

from importlib import import_module
from typing import Any, NoReturn

import numpy as np


class dtype:
    """The type of a tensor's elements. Its instances are the singletons of this module; compare them with `is` or `==`.

    Beside torch's attributes, a dtype has those that the runtime looks up by it:
    `np`, the NumPy dtype of its arrays; `name`, its name without the prefix ("float32"); `scalar_name`, the name that
    error messages and tensor type names use ("Float"); `cpp_name`, the name that profiles show ("float").
    """

    __module__ = "mindtorch_v2"

    __slots__ = (
        "abbr",
        "cpp_name",
        "is_complex",
        "is_floating_point",
        "is_signed",
        "itemsize",
        "name",
        "np",
        "scalar_name",
    )

    abbr: str
    cpp_name: str
    is_complex: bool
    is_floating_point: bool
    is_signed: bool
    itemsize: int
    name: str
    np: np.dtype[Any]
    scalar_name: str

    def __new__(cls, *args: object, **kwargs: object) -> dtype:
        raise TypeError("cannot create 'torch.dtype' instances")

    def __getattr__(self, attribute: str) -> Any:
        if attribute == "np":  # the only slot that may be empty; reading it costs nothing more once it is filled
            if self is complex32:  # whose slot stays empty: each tensor of it is to be warned of
                on_complex_half()
                if complex32 in _OF_NUMPY.values():
                    return _COMPLEX_HALF[0]
            if self in QUANTIZED.values():
                raise NotImplementedError(
                    f"{self}: there are no quantized tensors. See docs/compatibility.md; torch.int8 with a scale of its own "
                    "holds the same numbers"
                )
            if self in PACKED.values():
                raise NotImplementedError(
                    f"{self}: there are no tensors of packed numbers. See docs/compatibility.md; torch.uint8 holds the bytes"
                )
            numpy_dtype = _numpy_dtypes_of_ml_dtypes().get(self)
            if numpy_dtype is None:
                raise NotImplementedError(f"{self} tensors need an ml_dtypes release that has {self.name}")
            return numpy_dtype
        if attribute == "is_signed":
            raise RuntimeError(
                "Bits types are undefined" if self in PACKED.values() else "isSignedType not supported for quantized types"
            )
        raise AttributeError(f"'torch.dtype' object has no attribute '{attribute}'")

    def __setattr__(self, attribute: str, value: object) -> NoReturn:
        if attribute in self.__slots__:
            raise AttributeError(f"attribute '{attribute}' of 'torch.dtype' objects is not writable")
        raise AttributeError(f"'torch.dtype' object has no attribute '{attribute}'")

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> tuple[Any, ...]:
        return by_name, (self.name,)

    def to_real(self) -> dtype:
        """The dtype of the real part: float32 for complex64, and itself for a type that is not complex."""
        return _REAL_OF.get(self, self)

    def to_complex(self) -> dtype:
        """The complex dtype that holds values of this floating point type."""
        try:
            return _COMPLEX_OF[self]
        except KeyError:
            raise RuntimeError(f"Unknown Complex ScalarType for {self.scalar_name}") from None


DTYPES: dict[str, dtype] = {}
"""Every dtype by its own name."""


def _declare(name: str, abbr: str, scalar_name: str, cpp_name: str, storage: Any, itemsize: int, kind: str) -> dtype:
    new: dtype = object.__new__(dtype)
    fields = {
        "abbr": abbr,
        "cpp_name": cpp_name,
        "is_complex": kind == "complex",
        "is_floating_point": kind == "float",
        "is_signed": kind != "unsigned" and name != "float8_e8m0fnu",  # e8m0 has an exponent and nothing else
        "itemsize": itemsize,
        "name": name,
        "scalar_name": scalar_name,
    }
    if storage is not None:  # None: ml_dtypes has it
        fields["np"] = np.dtype(storage)
    for attribute, value in fields.items():
        object.__setattr__(new, attribute, value)
    DTYPES[name] = new
    return new


def _declare_float8(name: str, abbr: str) -> dtype:
    return _declare(name, abbr, name.capitalize(), f"c10::{name.capitalize()}", None, 1, "float")


uint8 = _declare("uint8", "u8", "Byte", "unsigned char", np.uint8, 1, "unsigned")
uint16 = _declare("uint16", "u16", "UInt16", "short unsigned int", np.uint16, 2, "unsigned")
uint32 = _declare("uint32", "u32", "UInt32", "unsigned int", np.uint32, 4, "unsigned")
uint64 = _declare("uint64", "u64", "UInt64", "long unsigned int", np.uint64, 8, "unsigned")
int8 = _declare("int8", "i8", "Char", "signed char", np.int8, 1, "signed")
int16 = _declare("int16", "i16", "Short", "short int", np.int16, 2, "signed")
int32 = _declare("int32", "i32", "Int", "int", np.int32, 4, "signed")
int64 = _declare("int64", "i64", "Long", "long int", np.int64, 8, "signed")
float16 = _declare("float16", "f16", "Half", "c10::Half", np.float16, 2, "float")
float32 = _declare("float32", "f32", "Float", "float", np.float32, 4, "float")
float64 = _declare("float64", "f64", "Double", "double", np.float64, 8, "float")
bfloat16 = _declare("bfloat16", "bf16", "BFloat16", "c10::BFloat16", None, 2, "float")
float8_e4m3fn = _declare_float8("float8_e4m3fn", "f8e4m3fn")
float8_e4m3fnuz = _declare_float8("float8_e4m3fnuz", "f8e4m3fnuz")
float8_e5m2 = _declare_float8("float8_e5m2", "f8e5m2")
float8_e5m2fnuz = _declare_float8("float8_e5m2fnuz", "f8e5m2fnuz")
float8_e8m0fnu = _declare_float8("float8_e8m0fnu", "f8e8m0fnu")
# ml_dtypes has complex32 since 0.6; with an older one the dtype still takes part in promotion but holds no data.
complex32 = _declare("complex32", "c32", "ComplexHalf", "c10::complex<c10::Half>", None, 4, "complex")
complex64 = _declare("complex64", "c64", "ComplexFloat", "c10::complex<float>", np.complex64, 8, "complex")
complex128 = _declare("complex128", "c128", "ComplexDouble", "c10::complex<double>", np.complex128, 16, "complex")


def _declare_quantized(name: str, scalar_name: str, itemsize: int) -> dtype:
    new = _declare(name, name, scalar_name, f"c10::{name}", None, itemsize, "quantized")
    object.__delattr__(new, "is_signed")
    return DTYPES.pop(name)


# Named in tables of dtypes; no tensor has one.
QUANTIZED = {
    "qint8": _declare_quantized("qint8", "QInt8", 1),
    "qint32": _declare_quantized("qint32", "QInt32", 4),
    "quint2x4": _declare_quantized("quint2x4", "QUInt2x4", 1),
    "quint4x2": _declare_quantized("quint4x2", "QUInt4x2", 1),
    "quint8": _declare_quantized("quint8", "QUInt8", 1),
}


def _declare_packed(name: str) -> dtype:
    kind = "float" if name.startswith("float") else "unsigned" if name.startswith("uint") else "signed"
    new = _declare(name, name, name.capitalize(), f"c10::{name}", None, 2 if name == "bits16" else 1, kind)
    if name.startswith("bit"):
        object.__delattr__(new, "is_signed")
    return DTYPES.pop(name)


# Several numbers in a byte, or bits without a meaning: named in tables of dtypes, and no tensor has one.
PACKED = {
    name: _declare_packed(name)
    for name in (
        "float4_e2m1fn_x2",
        *("bit", "bits1x8", "bits2x4", "bits4x2", "bits8", "bits16"),
        *(f"{kind}{bits}" for kind in ("int", "uint") for bits in range(1, 8)),
    )
}
# Named with an underscore, and the aliases kept in a table, because here `bool`, `int` and `float` are Python's own.
bool_ = _declare("bool", "b8", "Bool", "bool", np.bool_, 1, "unsigned")

ALIASES: dict[str, dtype] = {
    "half": float16,
    "float": float32,
    "double": float64,
    "chalf": complex32,
    "cfloat": complex64,
    "cdouble": complex128,
    "short": int16,
    "int": int32,
    "long": int64,
}
"""torch's second names."""

_REAL_OF = {complex32: float16, complex64: float32, complex128: float64}
_COMPLEX_OF = {
    float16: complex32,
    bfloat16: complex64,
    float32: complex64,
    float64: complex128,
    complex32: complex32,
    complex64: complex64,
    complex128: complex128,
}


def by_name(name: str) -> dtype:
    """The dtype called `name` ("float32", "long", ...); KeyError when there is none."""
    return DTYPES.get(name) or QUANTIZED.get(name) or PACKED.get(name) or ALIASES[name]


# ---------------------------------------------------------------- NumPy

_OF_ML_DTYPES = (bfloat16, float8_e4m3fn, float8_e4m3fnuz, float8_e5m2, float8_e5m2fnuz, float8_e8m0fnu, complex32)
_OF_NUMPY = {each.np: each for each in DTYPES.values() if each not in _OF_ML_DTYPES}


_COMPLEX_HALF: list[np.dtype[Any]] = []


def on_complex_half() -> None:
    """Called where a tensor of complex32 is about to be made. The ops put the function here that warns of it."""


def _numpy_dtypes_of_ml_dtypes() -> dict[dtype, np.dtype[Any]]:
    """Load the types that NumPy itself lacks. At the first use of one, since many programs use none."""
    module = import_module("ml_dtypes")
    loaded = {each: np.dtype(getattr(module, each.name)) for each in _OF_ML_DTYPES if hasattr(module, each.name)}
    for each, numpy_dtype in loaded.items():
        if each is complex32:
            _COMPLEX_HALF[:] = [numpy_dtype]
        else:
            object.__setattr__(each, "np", numpy_dtype)
        _OF_NUMPY[numpy_dtype] = each
    return loaded


def from_numpy(numpy_dtype: np.dtype[Any]) -> dtype:
    """The dtype of arrays of `numpy_dtype`."""
    try:
        return _OF_NUMPY[numpy_dtype]
    except KeyError:
        pass
    if numpy_dtype in _numpy_dtypes_of_ml_dtypes().values():
        return _OF_NUMPY[numpy_dtype]
    if not numpy_dtype.isnative:
        raise ValueError(
            "given numpy array has byte order different from the native byte order. "
            "Conversion between byte orders is currently not supported."
        )
    module, name = numpy_dtype.type.__module__, numpy_dtype.type.__name__
    raise TypeError(
        f"can't convert np.ndarray of type {module}.{name}. The only supported types are: "
        "float64, float32, float16, complex64, complex128, int64, int32, int16, int8, uint64, uint32, uint16, uint8, "
        "and bool."
    )


# ---------------------------------------------------------------- the default dtype

_default = float32


def get_default_dtype() -> dtype:
    """The floating point dtype that Python floats become."""
    return _default


def set_default_dtype(d: dtype) -> None:
    """Make `d`, a floating point dtype, the one that Python floats become."""
    global _default  # noqa: PLW0603  one setting of the process
    if not isinstance(d, dtype):
        raise TypeError("invalid dtype object: only floating-point types are supported as the default type")
    if not d.is_floating_point:
        raise TypeError("only floating-point types are supported as the default type")
    if d in _FLOAT8:
        raise TypeError(f"couldn't find storage object {d.scalar_name}Storage")
    _default = d


def number_dtype(number: complex) -> dtype:
    """The dtype that a Python number stands for: bool, int64, the default dtype, or the complex type of the default."""
    if isinstance(number, bool):
        return bool_
    if isinstance(number, int):
        return int64
    if isinstance(number, float):
        return _default
    if isinstance(number, complex):
        return _COMPLEX_OF[_default]
    raise TypeError(f"expected a Python number, not {type(number).__name__}")


# ---------------------------------------------------------------- promotion

_FLOAT8 = frozenset((float8_e4m3fn, float8_e4m3fnuz, float8_e5m2, float8_e5m2fnuz, float8_e8m0fnu))
_WIDE_UNSIGNED = frozenset((uint16, uint32, uint64))


def _category(d: dtype) -> int:
    """0 for bool, 1 for integers, 2 for floating point, 3 for complex: the higher one wins a promotion."""
    if d.is_complex:
        return 3
    if d.is_floating_point:
        return 2
    return 0 if d is bool_ else 1


def _promote(a: dtype, b: dtype) -> dtype:
    if a is b:
        return a
    if a in _FLOAT8 or b in _FLOAT8:
        raise RuntimeError(
            f"Promotion for Float8 Types is not supported, attempted to promote {a.scalar_name} and {b.scalar_name}"
        )
    if a in _WIDE_UNSIGNED or b in _WIDE_UNSIGNED:
        if a.is_floating_point or b.is_floating_point:
            return a if a.is_floating_point else b
        raise RuntimeError(
            "Promotion for uint16, uint32, uint64 types is not supported, "
            f"attempted to promote {a.scalar_name} and {b.scalar_name}"
        )
    low, high = sorted((a, b), key=lambda d: (_category(d), d.itemsize))
    if high.is_complex and _category(low) >= 2:
        return _promote(low.to_real(), high.to_real()).to_complex()
    if _category(low) == _category(high) and low.itemsize == high.itemsize:
        # Neither holds the other's values: uint8 and int8, or float16 and bfloat16.
        return float32 if low.is_floating_point else int16
    return high


_promoted: dict[tuple[dtype, dtype], dtype] = {}


def promote_types(type1: dtype, type2: dtype) -> dtype:
    """The smallest dtype of the higher kind that holds values of both."""
    try:
        return _promoted[type1, type2]
    except (KeyError, TypeError):  # TypeError: an argument that cannot be hashed is no dtype
        pass
    for position, (name, argument) in enumerate((("type1", type1), ("type2", type2)), 1):
        _check_is_dtype(argument, "promote_types", name, position)
    result = _promoted[type1, type2] = _promote(type1, type2)
    return result


DIM_TENSOR, ZERO_DIM_TENSOR, NUMBER = 0, 1, 2
"""The ranks of operands: the dtype of a lower number decides over one of the same kind and a higher number."""

_results: dict[tuple[tuple[dtype, int], ...], dtype] = {}


def result_type(*operands: tuple[dtype, int]) -> dtype:
    """The dtype of an arithmetic result of `operands`, each a dtype and one of DIM_TENSOR, ZERO_DIM_TENSOR, NUMBER.

    Pass `number_dtype(x)` for a Python number. A lower-ranked operand changes the result only when its kind (bool,
    integer, floating point, complex) is higher, and then only the kind.
    """
    try:
        return _results[operands]
    except KeyError:
        pass
    if not operands:
        raise ValueError("result_type needs at least one operand")
    by_rank: dict[int, dtype] = {}
    for kind, rank in operands:
        by_rank[rank] = promote_types(by_rank[rank], kind) if rank in by_rank else kind
    ranks = sorted(by_rank, reverse=True)
    result = by_rank[ranks[0]]
    for rank in ranks[1:]:
        result = _combine(by_rank[rank], result)
    _results[operands] = result
    return result


def _combine(higher: dtype, lower: dtype) -> dtype:
    if higher.is_complex:
        return higher
    if higher.is_floating_point:
        return higher.to_complex() if lower.is_complex else higher
    if lower.is_complex:
        return lower
    if higher is bool_ or lower.is_floating_point:
        return promote_types(higher, lower)
    return higher


def can_cast(from_: dtype, to: dtype) -> bool:
    """Whether storing a result of dtype `from_` in a tensor of dtype `to` keeps its kind."""
    _check_is_dtype(from_, "can_cast", "from_", 1)
    _check_is_dtype(to, "can_cast", "to", 2)
    return _category(from_) <= _category(to)


# ---------------------------------------------------------------- limits

# eps, max, min, smallest normal, decimal resolution; as torch states them, float8_e5m2fnuz's eps included.
_FLOAT_LIMITS: dict[dtype, tuple[float, float, float, float, float]] = {
    float16: (2.0**-10, 65504.0, -65504.0, 2.0**-14, 1e-3),
    bfloat16: (2.0**-7, (2 - 2.0**-7) * 2.0**127, -(2 - 2.0**-7) * 2.0**127, 2.0**-126, 1e-2),
    float32: (2.0**-23, (2 - 2.0**-23) * 2.0**127, -(2 - 2.0**-23) * 2.0**127, 2.0**-126, 1e-6),
    float64: (2.0**-52, (2 - 2.0**-52) * 2.0**1023, -(2 - 2.0**-52) * 2.0**1023, 2.0**-1022, 1e-15),
    float8_e4m3fn: (2.0**-3, 448.0, -448.0, 2.0**-6, 1.0),
    float8_e4m3fnuz: (2.0**-3, 240.0, -240.0, 2.0**-7, 1.0),
    float8_e5m2: (2.0**-2, 57344.0, -57344.0, 2.0**-14, 1.0),
    float8_e5m2fnuz: (2.0**-3, 57344.0, -57344.0, 2.0**-15, 1.0),
    float8_e8m0fnu: (1.0, 2.0**127, 2.0**-127, 2.0**-127, 1.0),
}


def _check_is_dtype(value: object, function: str, argument: str, position: int) -> None:
    if not isinstance(value, dtype):
        raise TypeError(
            f"{function}(): argument '{argument}' (position {position}) must be torch.dtype, not {type(value).__name__}"
        )


class _Limits:
    """What finfo and iinfo share: read-only fields, equality by dtype, no hash."""

    __slots__ = ("bits", "dtype", "max", "min")
    bits: int
    dtype: str

    def _fill(self, **fields: object) -> None:
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"attribute '{name}' of 'torch.{type(self).__name__}' objects is not writable")

    def __eq__(self, other: object) -> bool:
        return self.dtype == other.dtype if type(other) is type(self) else NotImplemented

    __hash__ = None  # type: ignore[assignment]


class finfo(_Limits):
    """The limits of a floating point dtype; of a complex dtype, those of its parts; without a dtype, of the default."""

    __module__ = "mindtorch_v2"

    __slots__ = ("eps", "resolution", "smallest_normal", "tiny")
    eps: float
    max: float
    min: float
    resolution: float
    smallest_normal: float
    tiny: float

    def __init__(self, type: dtype | None = None) -> None:
        of = _default if type is None else type
        _check_is_dtype(of, "finfo", "type", 1)
        of = of.to_real()
        if not of.is_floating_point:
            raise TypeError("torch.finfo() requires a floating point input type. Use torch.iinfo to handle 'torch.finfo'")
        eps, top, bottom, tiny, resolution = _FLOAT_LIMITS[of]
        self._fill(bits=of.itemsize * 8, dtype=of.name, eps=eps, max=top, min=bottom)
        self._fill(resolution=resolution, smallest_normal=tiny, tiny=tiny)

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, eps={self.eps:g}, "
            f"smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, dtype={self.dtype})"
        )


class iinfo(_Limits):
    """The limits of an integer dtype."""

    __module__ = "mindtorch_v2"

    __slots__ = ()
    max: int
    min: int

    def __init__(self, type: dtype) -> None:
        _check_is_dtype(type, "iinfo", "type", 1)
        if type.is_floating_point or type.is_complex:
            raise TypeError("torch.iinfo() requires an integer input type. Use torch.finfo to handle 'torch.iinfo'")
        if type is bool_:
            raise TypeError("torch.bool is not supported by torch.iinfo")
        bits = type.itemsize * 8
        signed = not type.name.startswith("quint") if type in QUANTIZED.values() else type.is_signed
        low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
        self._fill(bits=bits, dtype=type.name, max=high, min=low)

    def __repr__(self) -> str:
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype})"
