"""dtypes: attributes, the default dtype, promotion, limits. The tables were recorded from PyTorch 2.13."""

from __future__ import annotations

import copy
import pickle
import re
from itertools import product

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2._core import dtype as dtypes
from mindtorch_v2._core.dtype import DIM_TENSOR, NUMBER, ZERO_DIM_TENSOR, by_name

BY_ABBR = {each.abbr: each for each in dtypes.DTYPES.values()}
NUMBERS = {"bool": True, "int": 1, "float": 1.5, "complex": 1j}


def rows(table: str) -> list[list[str]]:
    """The rows of a table without its heading; only its last column may hold blanks."""
    head, *lines = table.strip("\n").splitlines()
    return [line.split(maxsplit=len(head.split()) - 1) for line in lines]


def cells(table: str) -> list[tuple[str, str, str]]:
    """(row, column, cell) of a table whose first line names the columns."""
    head, *lines = [line.split() for line in table.strip("\n").splitlines()]
    return [(line[0], column, cell) for line in lines for column, cell in zip(head, line[1:], strict=True)]


@pytest.fixture
def default_dtype():
    """set_default_dtype, undone after the test."""
    before = dtypes.get_default_dtype()
    yield dtypes.set_default_dtype
    dtypes.set_default_dtype(before)


# ---------------------------------------------------------------- attributes

# to_complex "-" is an error; cpp_name is what a profile's trace shows as the type of an input
ATTRIBUTES = """
name             abbr        floating  complex  signed  itemsize  real             to_complex  cpp_name
bool             b8          no        no       no      1         bool             -           bool
uint8            u8          no        no       no      1         uint8            -           unsigned char
int8             i8          no        no       yes     1         int8             -           signed char
int16            i16         no        no       yes     2         int16            -           short int
int32            i32         no        no       yes     4         int32            -           int
int64            i64         no        no       yes     8         int64            -           long int
uint16           u16         no        no       no      2         uint16           -           short unsigned int
uint32           u32         no        no       no      4         uint32           -           unsigned int
uint64           u64         no        no       no      8         uint64           -           long unsigned int
bfloat16         bf16        yes       no       yes     2         bfloat16         complex64   c10::BFloat16
float16          f16         yes       no       yes     2         float16          complex32   c10::Half
float32          f32         yes       no       yes     4         float32          complex64   float
float64          f64         yes       no       yes     8         float64          complex128  double
complex32        c32         no        yes      yes     4         float16          complex32   c10::complex<c10::Half>
complex64        c64         no        yes      yes     8         float32          complex64   c10::complex<float>
complex128       c128        no        yes      yes     16        float64          complex128  c10::complex<double>
float8_e4m3fn    f8e4m3fn    yes       no       yes     1         float8_e4m3fn    -           c10::Float8_e4m3fn
float8_e4m3fnuz  f8e4m3fnuz  yes       no       yes     1         float8_e4m3fnuz  -           c10::Float8_e4m3fnuz
float8_e5m2      f8e5m2      yes       no       yes     1         float8_e5m2      -           c10::Float8_e5m2
float8_e5m2fnuz  f8e5m2fnuz  yes       no       yes     1         float8_e5m2fnuz  -           c10::Float8_e5m2fnuz
float8_e8m0fnu   f8e8m0fnu   yes       no       no      1         float8_e8m0fnu   -           c10::Float8_e8m0fnu
"""


@pytest.mark.parametrize("row", rows(ATTRIBUTES), ids=lambda row: row[0])
def test_attributes(row):
    name, abbr, floating, is_complex, signed, itemsize, real, as_complex, cpp_name = row
    d = by_name(name)
    assert repr(d) == str(d) == f"torch.{name}"
    assert (d.name, d.abbr, d.itemsize, d.cpp_name) == (name, abbr, int(itemsize), cpp_name)
    flags = (floating, is_complex, signed)
    assert (d.is_floating_point, d.is_complex, d.is_signed) == tuple(flag == "yes" for flag in flags)
    assert d.to_real() is by_name(real)
    if as_complex == "-":
        with pytest.raises(RuntimeError, match=f"Unknown Complex ScalarType for {d.scalar_name}$"):
            d.to_complex()
    else:
        assert d.to_complex() is by_name(as_complex)


def test_the_table_names_every_dtype():
    assert {row[0] for row in rows(ATTRIBUTES)} == set(dtypes.DTYPES)


def test_aliases():
    shown = {alias: d.name for alias, d in dtypes.ALIASES.items()}
    assert shown == {
        "half": "float16",
        "float": "float32",
        "double": "float64",
        "chalf": "complex32",
        "cfloat": "complex64",
        "cdouble": "complex128",
        "short": "int16",
        "int": "int32",
        "long": "int64",
    }
    assert by_name("long") is dtypes.int64
    with pytest.raises(KeyError):
        by_name("nonsense")


@pytest.mark.parametrize("d", dtypes.DTYPES.values(), ids=str)
def test_copies_and_pickles_are_the_same_object(d):
    assert copy.copy(d) is copy.deepcopy(d) is pickle.loads(pickle.dumps(d)) is d


def test_dtypes_are_read_only_and_cannot_be_made():
    with pytest.raises(TypeError, match=r"cannot create 'torch.dtype' instances"):
        dtypes.dtype()
    with pytest.raises(AttributeError, match=r"attribute 'itemsize' of 'torch.dtype' objects is not writable"):
        dtypes.float32.itemsize = 1
    with pytest.raises(AttributeError, match=r"'torch.dtype' object has no attribute 'x'"):
        dtypes.float32.x = 1
    with pytest.raises(AttributeError, match=r"'torch.dtype' object has no attribute 'x'"):
        _ = dtypes.float32.x


# ---------------------------------------------------------------- NumPy


@pytest.mark.parametrize("d", [d for d in dtypes.DTYPES.values() if d is not dtypes.complex32], ids=str)
def test_numpy_round_trip(d):
    array = np.zeros(2, d.np)
    assert array.itemsize == d.itemsize
    assert dtypes.from_numpy(array.dtype) is d


def test_complex32_holds_data_only_where_ml_dtypes_has_it():
    bare = object.__new__(dtypes.dtype)  # what an older ml_dtypes leaves: no `np`
    object.__setattr__(bare, "name", "complex32")
    with pytest.raises(NotImplementedError, match=r"torch.complex32 tensors need an ml_dtypes release"):
        _ = bare.np


@pytest.mark.parametrize(
    "given, error, message",
    [
        (object, TypeError, "can't convert np.ndarray of type numpy.object_. The only supported types are: float64, "),
        ("U1", TypeError, "can't convert np.ndarray of type numpy.str_. The only supported types are: float64, "),
        (np.longdouble, TypeError, "can't convert np.ndarray of type numpy.longdouble. The only supported "),
        (">f4", ValueError, "given numpy array has byte order different from the native byte order."),
    ],
)
def test_numpy_dtypes_without_a_counterpart(given, error, message):
    with pytest.raises(error, match=message):
        dtypes.from_numpy(np.dtype(given))


# ---------------------------------------------------------------- the default dtype


def test_default_dtype_decides_what_numbers_are(default_dtype):
    assert dtypes.get_default_dtype() is dtypes.float32
    seen = []
    for d in (dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64):
        default_dtype(d)
        seen.append([dtypes.number_dtype(number).abbr for number in NUMBERS.values()])
    assert seen == [
        ["b8", "i64", "f16", "c32"],
        ["b8", "i64", "bf16", "c64"],
        ["b8", "i64", "f32", "c64"],
        ["b8", "i64", "f64", "c128"],
    ]


@pytest.mark.parametrize(
    "given, message",
    [
        (dtypes.int32, "only floating-point types are supported as the default type"),
        (dtypes.complex64, "only floating-point types are supported as the default type"),
        ("float32", "invalid dtype object: only floating-point types are supported as the default type"),
        (None, "invalid dtype object: only floating-point types are supported as the default type"),
        (dtypes.float8_e5m2, "couldn't find storage object Float8_e5m2Storage"),
    ],
)
def test_default_dtype_must_be_floating(default_dtype, given, message):
    with pytest.raises(TypeError, match=message):
        default_dtype(given)
    assert dtypes.get_default_dtype() is dtypes.float32


def test_number_dtype_takes_numbers_only():
    with pytest.raises(TypeError, match="expected a Python number, not str"):
        dtypes.number_dtype("1")


# ---------------------------------------------------------------- promotion; "-" is an error

PROMOTE_TYPES = """
        b8    u8    i8   i16   i32   i64   u16   u32   u64  bf16   f16   f32   f64   c32   c64  c128
b8      b8    u8    i8   i16   i32   i64     -     -     -  bf16   f16   f32   f64   c32   c64  c128
u8      u8    u8   i16   i16   i32   i64     -     -     -  bf16   f16   f32   f64   c32   c64  c128
i8      i8   i16    i8   i16   i32   i64     -     -     -  bf16   f16   f32   f64   c32   c64  c128
i16    i16   i16   i16   i16   i32   i64     -     -     -  bf16   f16   f32   f64   c32   c64  c128
i32    i32   i32   i32   i32   i32   i64     -     -     -  bf16   f16   f32   f64   c32   c64  c128
i64    i64   i64   i64   i64   i64   i64     -     -     -  bf16   f16   f32   f64   c32   c64  c128
u16      -     -     -     -     -     -   u16     -     -  bf16   f16   f32   f64     -     -     -
u32      -     -     -     -     -     -     -   u32     -  bf16   f16   f32   f64     -     -     -
u64      -     -     -     -     -     -     -     -   u64  bf16   f16   f32   f64     -     -     -
bf16  bf16  bf16  bf16  bf16  bf16  bf16  bf16  bf16  bf16  bf16   f32   f32   f64   c64   c64  c128
f16    f16   f16   f16   f16   f16   f16   f16   f16   f16   f32   f16   f32   f64   c32   c64  c128
f32    f32   f32   f32   f32   f32   f32   f32   f32   f32   f32   f32   f32   f64   c64   c64  c128
f64    f64   f64   f64   f64   f64   f64   f64   f64   f64   f64   f64   f64   f64  c128  c128  c128
c32    c32   c32   c32   c32   c32   c32     -     -     -   c64   c32   c64  c128   c32   c64  c128
c64    c64   c64   c64   c64   c64   c64     -     -     -   c64   c64   c64  c128   c64   c64  c128
c128  c128  c128  c128  c128  c128  c128     -     -     -  c128  c128  c128  c128  c128  c128  c128
"""

# rows: a tensor with dimensions; columns: a tensor without
WITH_ZERO_DIM_TENSOR = """
        b8    u8    i8   i16   i32   i64   u16   u32   u64  bf16   f16   f32   f64   c32   c64  c128
b8      b8    u8    i8   i16   i32   i64     -     -     -  bf16   f16   f32   f64   c32   c64  c128
u8      u8    u8    u8    u8    u8    u8    u8    u8    u8  bf16   f16   f32   f64   c32   c64  c128
i8      i8    i8    i8    i8    i8    i8    i8    i8    i8  bf16   f16   f32   f64   c32   c64  c128
i16    i16   i16   i16   i16   i16   i16   i16   i16   i16  bf16   f16   f32   f64   c32   c64  c128
i32    i32   i32   i32   i32   i32   i32   i32   i32   i32  bf16   f16   f32   f64   c32   c64  c128
i64    i64   i64   i64   i64   i64   i64   i64   i64   i64  bf16   f16   f32   f64   c32   c64  c128
u16    u16   u16   u16   u16   u16   u16   u16   u16   u16  bf16   f16   f32   f64   c32   c64  c128
u32    u32   u32   u32   u32   u32   u32   u32   u32   u32  bf16   f16   f32   f64   c32   c64  c128
u64    u64   u64   u64   u64   u64   u64   u64   u64   u64  bf16   f16   f32   f64   c32   c64  c128
bf16  bf16  bf16  bf16  bf16  bf16  bf16  bf16  bf16  bf16  bf16  bf16  bf16  bf16   c64   c64   c64
f16    f16   f16   f16   f16   f16   f16   f16   f16   f16   f16   f16   f16   f16   c32   c32   c32
f32    f32   f32   f32   f32   f32   f32   f32   f32   f32   f32   f32   f32   f32   c64   c64   c64
f64    f64   f64   f64   f64   f64   f64   f64   f64   f64   f64   f64   f64   f64  c128  c128  c128
c32    c32   c32   c32   c32   c32   c32   c32   c32   c32   c32   c32   c32   c32   c32   c32   c32
c64    c64   c64   c64   c64   c64   c64   c64   c64   c64   c64   c64   c64   c64   c64   c64   c64
c128  c128  c128  c128  c128  c128  c128  c128  c128  c128  c128  c128  c128  c128  c128  c128  c128
"""

# rows: a tensor with or without dimensions; columns: a Python number
WITH_NUMBER = """
      bool   int float complex
b8      b8   i64   f32   c64
u8      u8    u8   f32   c64
i8      i8    i8   f32   c64
i16    i16   i16   f32   c64
i32    i32   i32   f32   c64
i64    i64   i64   f32   c64
u16    u16   u16   f32   c64
u32    u32   u32   f32   c64
u64    u64   u64   f32   c64
bf16  bf16  bf16  bf16   c64
f16    f16   f16   f16   c32
f32    f32   f32   f32   c64
f64    f64   f64   f64  c128
c32    c32   c32   c32   c32
c64    c64   c64   c64   c64
c128  c128  c128  c128  c128
"""

WITH_NUMBER_WHEN_DEFAULT_IS_FLOAT64 = """
      bool   int float complex
b8      b8   i64   f64  c128
u8      u8    u8   f64  c128
i8      i8    i8   f64  c128
i16    i16   i16   f64  c128
i32    i32   i32   f64  c128
i64    i64   i64   f64  c128
u16    u16   u16   f64  c128
u32    u32   u32   f64  c128
u64    u64   u64   f64  c128
bf16  bf16  bf16  bf16   c64
f16    f16   f16   f16   c32
f32    f32   f32   f32   c64
f64    f64   f64   f64  c128
c32    c32   c32   c32   c32
c64    c64   c64   c64   c64
c128  c128  c128  c128  c128
"""

CAN_CAST = """
        b8    u8    i8   i16   i32   i64   u16   u32   u64  bf16   f16   f32   f64   c32   c64  c128
b8     yes   yes   yes   yes   yes   yes   yes   yes   yes   yes   yes   yes   yes   yes   yes   yes
u8      no   yes   yes   yes   yes   yes   yes   yes   yes   yes   yes   yes   yes   yes   yes   yes
i8      no   yes   yes   yes   yes   yes   yes   yes   yes   yes   yes   yes   yes   yes   yes   yes
i16     no   yes   yes   yes   yes   yes   yes   yes   yes   yes   yes   yes   yes   yes   yes   yes
i32     no   yes   yes   yes   yes   yes   yes   yes   yes   yes   yes   yes   yes   yes   yes   yes
i64     no   yes   yes   yes   yes   yes   yes   yes   yes   yes   yes   yes   yes   yes   yes   yes
u16     no   yes   yes   yes   yes   yes   yes   yes   yes   yes   yes   yes   yes   yes   yes   yes
u32     no   yes   yes   yes   yes   yes   yes   yes   yes   yes   yes   yes   yes   yes   yes   yes
u64     no   yes   yes   yes   yes   yes   yes   yes   yes   yes   yes   yes   yes   yes   yes   yes
bf16    no    no    no    no    no    no    no    no    no   yes   yes   yes   yes   yes   yes   yes
f16     no    no    no    no    no    no    no    no    no   yes   yes   yes   yes   yes   yes   yes
f32     no    no    no    no    no    no    no    no    no   yes   yes   yes   yes   yes   yes   yes
f64     no    no    no    no    no    no    no    no    no   yes   yes   yes   yes   yes   yes   yes
c32     no    no    no    no    no    no    no    no    no    no    no    no    no   yes   yes   yes
c64     no    no    no    no    no    no    no    no    no    no    no    no    no   yes   yes   yes
c128    no    no    no    no    no    no    no    no    no    no    no    no    no   yes   yes   yes
"""


def abbr_or_dash(call) -> str:
    try:
        return call().abbr
    except RuntimeError:
        return "-"


def check_results(table: str, rank: int, operand_of_column) -> None:
    for row, column, expected in cells(table):
        a, b = (BY_ABBR[row], rank), operand_of_column(column)
        assert abbr_or_dash(lambda: dtypes.result_type(a, b)) == expected, (row, column)  # noqa: B023
        assert abbr_or_dash(lambda: dtypes.result_type(b, a)) == expected, (column, row)  # noqa: B023


def test_promote_types():
    for row, column, expected in cells(PROMOTE_TYPES):
        assert abbr_or_dash(lambda: dtypes.promote_types(BY_ABBR[row], BY_ABBR[column])) == expected  # noqa: B023


@pytest.mark.parametrize("rank", [DIM_TENSOR, ZERO_DIM_TENSOR])
def test_result_type_of_operands_of_one_rank_promotes(rank):
    check_results(PROMOTE_TYPES, rank, lambda column: (BY_ABBR[column], rank))


def test_result_type_with_zero_dim_tensors():
    check_results(WITH_ZERO_DIM_TENSOR, DIM_TENSOR, lambda column: (BY_ABBR[column], ZERO_DIM_TENSOR))


@pytest.mark.parametrize("rank", [DIM_TENSOR, ZERO_DIM_TENSOR])
def test_result_type_with_numbers(default_dtype, rank):
    check_results(WITH_NUMBER, rank, lambda column: (dtypes.number_dtype(NUMBERS[column]), NUMBER))
    default_dtype(dtypes.float64)
    check_results(WITH_NUMBER_WHEN_DEFAULT_IS_FLOAT64, rank, lambda column: (dtypes.number_dtype(NUMBERS[column]), NUMBER))


def test_result_type_of_many_operands():
    i8, f16, f64, c64 = dtypes.int8, dtypes.float16, dtypes.float64, dtypes.complex64
    assert dtypes.result_type((i8, DIM_TENSOR)) is i8
    assert dtypes.result_type((i8, DIM_TENSOR), (f16, ZERO_DIM_TENSOR), (f64, NUMBER)) is f16
    assert dtypes.result_type((f16, DIM_TENSOR), (f64, ZERO_DIM_TENSOR), (c64, NUMBER)) is dtypes.complex32
    assert dtypes.result_type((i8, DIM_TENSOR), (f16, DIM_TENSOR), (f64, DIM_TENSOR)) is f64
    with pytest.raises(ValueError, match="at least one operand"):
        dtypes.result_type()


def test_can_cast():
    for row, column, expected in cells(CAN_CAST):
        assert dtypes.can_cast(BY_ABBR[row], BY_ABBR[column]) is (expected == "yes"), (row, column)


def test_float8_does_not_promote():
    float8 = [d for name, d in dtypes.DTYPES.items() if name.startswith("float8")]
    assert len(float8) == 5
    for a, b in [*product(float8, dtypes.DTYPES.values()), *product(dtypes.DTYPES.values(), float8)]:
        if a is b:
            assert dtypes.promote_types(a, b) is a
            continue
        names = f"{a.scalar_name} and {b.scalar_name}"
        with pytest.raises(RuntimeError, match=f"Promotion for Float8 Types is not supported, .* promote {names}$"):
            dtypes.promote_types(a, b)


@pytest.mark.parametrize(
    "call, error, message",
    [
        (
            lambda: dtypes.promote_types(dtypes.uint8, dtypes.uint16),
            RuntimeError,
            "Promotion for uint16, uint32, uint64 types is not supported, attempted to promote Byte and UInt16",
        ),
        (
            lambda: dtypes.promote_types(1, dtypes.float32),
            TypeError,
            "promote_types(): argument 'type1' (position 1) must be torch.dtype, not int",
        ),
        (
            lambda: dtypes.promote_types(dtypes.float32, []),
            TypeError,
            "promote_types(): argument 'type2' (position 2) must be torch.dtype, not list",
        ),
        (
            lambda: dtypes.can_cast(dtypes.int8, "int8"),
            TypeError,
            "can_cast(): argument 'to' (position 2) must be torch.dtype, not str",
        ),
    ],
)
def test_promotion_errors_name_what_was_given(call, error, message):
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        call()


# ---------------------------------------------------------------- limits

FINFO = """
name             bits  eps                     max                      tiny                     resolution
bfloat16         16    0.0078125               3.3895313892515355e+38   1.1754943508222875e-38   0.01
float16          16    0.0009765625            65504.0                  6.103515625e-05          0.001
float32          32    1.1920928955078125e-07  3.4028234663852886e+38   1.1754943508222875e-38   1e-06
float64          64    2.220446049250313e-16   1.7976931348623157e+308  2.2250738585072014e-308  1e-15
float8_e4m3fn    8     0.125                   448.0                    0.015625                 1.0
float8_e4m3fnuz  8     0.125                   240.0                    0.0078125                1.0
float8_e5m2      8     0.25                    57344.0                  6.103515625e-05          1.0
float8_e5m2fnuz  8     0.125                   57344.0                  3.0517578125e-05         1.0
float8_e8m0fnu   8     1.0                     1.7014118346046923e+38   5.877471754111438e-39    1.0
"""

IINFO = """
name    bits  max                   min
uint8   8     255                   0
int8    8     127                   -128
int16   16    32767                 -32768
int32   32    2147483647            -2147483648
int64   64    9223372036854775807   -9223372036854775808
uint16  16    65535                 0
uint32  32    4294967295            0
uint64  64    18446744073709551615  0
"""


@pytest.mark.parametrize("row", rows(FINFO), ids=lambda row: row[0])
def test_finfo(row):
    name, *figures = row
    bits, eps, top, tiny, resolution = map(float, figures)
    info = dtypes.finfo(by_name(name))
    assert (info.dtype, info.bits, info.eps, info.max, info.resolution) == (name, bits, eps, top, resolution)
    assert info.tiny == info.smallest_normal == tiny
    assert info.min == (tiny if name == "float8_e8m0fnu" else -top)  # e8m0 has no sign


def test_finfo_of_a_complex_dtype_is_that_of_its_parts():
    assert [dtypes.finfo(d).dtype for d in (dtypes.complex32, dtypes.complex64, dtypes.complex128)] == [
        "float16",
        "float32",
        "float64",
    ]


@pytest.mark.parametrize("row", rows(IINFO), ids=lambda row: row[0])
def test_iinfo(row):
    name, *figures = row
    info = dtypes.iinfo(by_name(name))
    assert (info.bits, info.max, info.min) == tuple(map(int, figures))
    assert info.dtype == name


def test_text_of_limits():
    assert repr(dtypes.finfo(dtypes.float32)) == (
        "finfo(resolution=1e-06, min=-3.40282e+38, max=3.40282e+38, eps=1.19209e-07, smallest_normal=1.17549e-38, "
        "tiny=1.17549e-38, dtype=float32)"
    )
    assert repr(dtypes.finfo(dtypes.float16)) == (
        "finfo(resolution=0.001, min=-65504, max=65504, eps=0.000976562, smallest_normal=6.10352e-05, "
        "tiny=6.10352e-05, dtype=float16)"
    )
    assert repr(dtypes.iinfo(dtypes.int8)) == "iinfo(min=-128, max=127, dtype=int8)"
    assert repr(dtypes.iinfo(dtypes.int64)) == "iinfo(min=-9.22337e+18, max=9.22337e+18, dtype=int64)"


def test_finfo_without_a_dtype_is_that_of_the_default(default_dtype):
    assert dtypes.finfo().dtype == "float32"
    default_dtype(dtypes.float64)
    assert dtypes.finfo().dtype == "float64"


def test_limits_compare_by_dtype_and_are_read_only():
    f32, f64, i8 = dtypes.finfo(dtypes.float32), dtypes.finfo(dtypes.float64), dtypes.iinfo(dtypes.int8)
    assert f32 == dtypes.finfo(dtypes.complex64) and f32 != f64 and f32 != i8
    assert i8 == dtypes.iinfo(dtypes.int8) and i8 != dtypes.iinfo(dtypes.uint8)
    with pytest.raises(AttributeError, match=r"attribute 'bits' of 'torch.finfo' objects is not writable"):
        f32.bits = 3
    with pytest.raises(TypeError, match="unhashable type"):
        hash(i8)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: dtypes.finfo(dtypes.int32), "finfo.* requires a floating point input type. Use torch.iinfo"),
        (lambda: dtypes.finfo(dtypes.bool_), "finfo.* requires a floating point input type. Use torch.iinfo"),
        (lambda: dtypes.iinfo(dtypes.float32), "iinfo.* requires an integer input type. Use torch.finfo"),
        (lambda: dtypes.iinfo(dtypes.complex64), "iinfo.* requires an integer input type. Use torch.finfo"),
        (lambda: dtypes.iinfo(dtypes.bool_), "torch.bool is not supported by torch.iinfo"),
        (lambda: dtypes.finfo(1), r"finfo\(\): argument 'type' \(position 1\) must be torch.dtype, not int"),
        (lambda: dtypes.iinfo("int8"), r"iinfo\(\): argument 'type' \(position 1\) must be torch.dtype, not str"),
    ],
)
def test_limits_of_the_wrong_kind(call, message):
    with pytest.raises(TypeError, match=message):
        call()


def test_subclasses_show_their_memory_unless_they_take_over_ops():
    class Named(torch.Tensor):
        pass

    class Taking(torch.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    plain = torch.ones(2)
    shown = plain.as_subclass(Named).numpy()
    shown[0] = 5
    assert plain.tolist() == [5, 1]
    with pytest.raises(RuntimeError, match=r"\.numpy\(\) is not supported for tensor subclasses"):
        plain.as_subclass(Taking).numpy()
