"""LAPACK and the code that stands in for it give the same factors and solutions, for all layouts and dtypes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import mindtorch_v2 as torch
import mindtorch_v2.linalg
from mindtorch_v2._core import blas
from mindtorch_v2._ops.linalg import _lapack, _math

DTYPES = ("float32", "float64", "complex64", "complex128")
TOLERANCE = {"float32": 2e-3, "complex64": 2e-3, "float64": 1e-9, "complex128": 1e-9}
BATCHES = ((), (3,), (2, 3), (1,), (0,), (2, 0))

pytestmark = pytest.mark.skipif(not _lapack.has("getrf", np.dtype(np.float64)), reason="NumPy has no OpenBLAS here")


@pytest.fixture
def hide(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """A switch that hides all routines."""
    return lambda: monkeypatch.setattr(_lapack, "has", lambda name, dtype: False)


@pytest.fixture
def fresh_lookup() -> Iterator[None]:
    """Lookups of the library's routines start over, before the test and after it."""
    caches: list[Any] = [_lapack._find, _lapack._integer, _lapack._passes_self_test]
    for cache in caches:
        cache.cache_clear()
    yield
    for cache in caches:
        cache.cache_clear()


def draw(seed: int, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    random = np.random.default_rng(seed)
    numbers = random.normal(size=shape)
    if dtype.startswith("complex"):
        numbers = numbers + 1j * random.normal(size=shape)
    return numbers.astype(dtype)


def regular(seed: int, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    return draw(seed, shape, dtype) + 3 * np.eye(shape[-1], dtype=dtype)


def positive(seed: int, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    a = draw(seed, shape, dtype)
    return a @ np.conjugate(a).swapaxes(-1, -2) + np.eye(shape[-1], dtype=dtype)


def layouts(a: np.ndarray) -> Iterator[np.ndarray]:
    """The same matrices row-major, column-major, with gaps between columns, with gaps between entries, and backwards."""
    yield a
    yield _math.column_major(a)
    m, n = a.shape[-2:]
    wide = np.zeros((*a.shape[:-2], m, n + 3), a.dtype)
    wide[..., :n] = a
    yield wide[..., :n]
    sparse = np.zeros((*a.shape[:-2], 2 * m, 2 * n), a.dtype)
    sparse[..., ::2, ::2] = a
    yield sparse[..., ::2, ::2]
    yield a[..., ::-1, ::-1].copy()[..., ::-1, ::-1]


def same(first: Any, second: Any, tolerance: float) -> bool:
    pairs = zip(first, second, strict=True) if isinstance(first, tuple) else [(first, second)]
    return all(
        a.shape == b.shape
        and a.dtype == b.dtype
        and a.strides == b.strides
        and np.allclose(a, b, rtol=tolerance, atol=tolerance, equal_nan=True)
        for a, b in pairs
    )


def lu_solve(a: np.ndarray, b: np.ndarray, adjoint: bool) -> np.ndarray:
    lu, pivots, _ = _math.lu_factor(a)
    return _math.lu_solve(lu, pivots, b, adjoint)


def ldl_solve(a: np.ndarray, b: np.ndarray, hermitian: bool) -> np.ndarray:
    ld, pivots, _ = _math.ldl_factor(a, hermitian)
    return _math.ldl_solve(ld, pivots, b, hermitian)


# Functions of square matrices and right-hand sides.
SYSTEMS: dict[str, Callable[[np.ndarray, np.ndarray], Any]] = {
    "lu_factor": lambda a, b: _math.lu_factor(a),
    "lu_factor_tall": lambda a, b: _math.lu_factor(np.concatenate([a, a[..., :1, :] + 1], -2)),
    "lu_factor_wide": lambda a, b: _math.lu_factor(np.concatenate([a, a[..., :1] + 1], -1)),
    "lu_solve": lambda a, b: lu_solve(a, b, False),
    "lu_solve_adjoint": lambda a, b: lu_solve(a, b, True),
    "lower": lambda a, b: _math.solve_triangular(a, b, False),
    "upper": lambda a, b: _math.solve_triangular(a, b, True),
    "unitriangular": lambda a, b: _math.solve_triangular(a / 8, b, True, True),
    "lower_rows": lambda a, b: _math.solve_triangular(a, b, False, rows=True),
    "upper_rows": lambda a, b: _math.solve_triangular(a, b, True, rows=True),
    "cholesky_solve": lambda a, b: _math.cholesky_solve(b, a, False),
    "cholesky_solve_upper": lambda a, b: _math.cholesky_solve(b, a, True),
    "ldl_factor": lambda a, b: _math.ldl_factor(a, False),
    "ldl_factor_hermitian": lambda a, b: _math.ldl_factor(a, True),
    "ldl_solve": lambda a, b: ldl_solve(a, b, False),
    "ldl_solve_hermitian": lambda a, b: ldl_solve(a, b, True),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", SYSTEMS)
def test_systems_by_both_ways(name: str, dtype: str, hide: Callable[[], None]) -> None:
    function = SYSTEMS[name]
    cases = []
    for batch in BATCHES:
        for n, width in ((5, 3), (1, 2), (33, 1), (70, 70), (0, 2), (4, 0)):
            if n * len(batch) > 60:
                continue
            cases.append((regular(n, (*batch, n, n), dtype), draw(1, (*batch, n, width), dtype)))
    cases += [(a, b) for a in layouts(regular(7, (2, 6, 6), dtype)) for b in layouts(draw(8, (2, 6, 4), dtype))]
    cases += [
        (regular(5, (6, 6), dtype), draw(2, (2, 3, 6, 2), dtype)),
        (regular(5, (2, 1, 6, 6), dtype), draw(2, (6, 2), dtype)),
    ]
    by_lapack = [function(a, b) for a, b in cases]
    hide()
    for (a, b), result in zip(cases, by_lapack, strict=True):
        assert same(result, function(a, b), TOLERANCE[dtype]), (a.shape, b.shape)


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_cholesky_by_both_ways(dtype: str, upper: bool, hide: Callable[[], None]) -> None:
    good = positive(0, (150, 150), dtype) / 150
    bad = good.copy()
    bad[140, 140] = -1
    cases = (good, bad, np.stack([good, bad]), np.stack([good, good]), bad[:0, :0], good.T[::-1, ::-1])
    by_lapack = [_math.cholesky(a, upper) for a in cases]
    hide()
    for a, result in zip(cases, by_lapack, strict=True):
        assert same(result, _math.cholesky(a, upper), TOLERANCE[dtype])
    assert by_lapack[2][1].tolist() == [0, 141]


@pytest.mark.parametrize("dtype", DTYPES)
def test_reflections_by_both_ways(dtype: str, hide: Callable[[], None]) -> None:
    def results() -> list[np.ndarray]:
        out = []
        for batch in BATCHES:
            for m, n in ((5, 3), (4, 4), (70, 66), (3, 0)):
                vectors, weights = draw(0, (*batch, m, n), dtype) / 8, draw(1, (*batch, n), dtype)
                out.append(_math.reflection_product(vectors, weights))
                for adjoint in (False, True):
                    out.append(_math.reflected(vectors, weights, draw(2, (*batch, m, 3), dtype), True, adjoint))
                    out.append(_math.reflected(vectors, weights, draw(2, (*batch, 3, m), dtype), False, adjoint))
        return out

    by_lapack = results()
    hide()
    for first, second in zip(by_lapack, results(), strict=True):
        assert first.shape == second.shape
        assert np.allclose(first, second, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype] * np.abs(second).max(initial=1))


@pytest.mark.parametrize("hidden", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_failures_are_reported_by_both_ways(dtype: str, hidden: bool, hide: Callable[[], None]) -> None:
    if hidden:
        hide()
    singular = torch.tensor([[1, 2, 3], [2, 4, 6], [1, 0, 1]], dtype=getattr(torch, dtype))
    batch = torch.stack([torch.eye(3, dtype=singular.dtype), singular])
    assert torch.linalg.lu_factor_ex(batch).info.tolist() == [0, 3]
    with pytest.raises(RuntimeError, match=r"^torch.linalg.lu_factor: \(Batch element 1\): U\[3,3\] is zero and using it"):
        torch.linalg.lu_factor(batch)
    with pytest.raises(
        torch.linalg.LinAlgError, match=r"^torch.linalg.solve: The solver failed because the input matrix is sing"
    ):
        torch.linalg.solve(singular, singular)
    with pytest.raises(torch.linalg.LinAlgError, match=r"^linalg.cholesky: \(Batch element 1\).*minor of order 2 is not pos"):
        torch.linalg.cholesky(torch.stack([torch.eye(3, dtype=singular.dtype), 2 - torch.eye(3, dtype=singular.dtype)]))
    zero_block = torch.zeros(2, 2, dtype=singular.dtype)
    assert torch.linalg.ldl_factor_ex(zero_block).info.tolist() == 1
    assert torch.linalg.det(singular).abs().item() < 1e-6
    assert torch.linalg.solve_triangular(zero_block, torch.ones(2, 1, dtype=singular.dtype), upper=True).isfinite().sum() == 0


@pytest.mark.parametrize("hidden", [False, True])
def test_nan_stays_inside(hidden: bool, hide: Callable[[], None]) -> None:
    if hidden:
        hide()
    for n in (3, 20, 100):
        a = np.full((n, n), np.nan)
        lu, pivots, _ = _math.lu_factor(a)
        assert np.isnan(lu).all()
        assert ((pivots >= 1) & (pivots <= n)).all()
        assert np.isnan(_math.lu_solve(lu, pivots, np.ones((n, 2)), False)).all()


def test_pivots_out_of_range_do_not_reach_lapack(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_lapack, "getrs", lambda *args: pytest.fail("LAPACK follows pivots unchecked"))
    monkeypatch.setattr(_lapack, "sytrs", lambda *args: pytest.fail("LAPACK follows pivots unchecked"))
    a, b = np.eye(3), np.ones((3, 1))
    for pivots in ([0, 2, 3], [1, 2, -1]):
        _math.lu_solve(a, np.array(pivots, np.int32), b, False)
    for pivots in ([1, 2, 0], [1, 7, 3], [1, 2, -3]):
        with pytest.raises(IndexError):
            _math.ldl_solve(a, np.array(pivots, np.int32), b, False)


# ---------------------------------------------------------------- finding the routines


@pytest.mark.usefixtures("fresh_lookup")
def test_without_a_library_there_are_no_routines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_lapack, "openblas", lambda: None)
    assert not _lapack.has("getrf", np.dtype(np.float64))
    a = regular(0, (4, 4), "float64")
    lu, pivots, _ = _math.lu_factor(a)
    assert np.allclose(_math.permutation_matrix(pivots, 4, a.dtype) @ np.matmul(*_math.unpack(lu)), a)


@pytest.mark.usefixtures("fresh_lookup")
def test_a_missing_routine_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    lookup = blas.OpenBlas.routine
    monkeypatch.setattr(blas.OpenBlas, "routine", lambda self, name: None if name.endswith("trf") else lookup(self, name))
    assert not _lapack.has("sytrf", np.dtype(np.float64))
    assert not _lapack.has("trsm", np.dtype(np.float64))  # the self-test needs LU factors


@pytest.mark.usefixtures("fresh_lookup")
def test_a_library_that_fails_the_self_test_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    class Idle:
        def __call__(self, *args: object) -> None:
            """Leave all arguments as they are."""

    monkeypatch.setattr(blas.OpenBlas, "routine", lambda self, name: Idle())
    assert not _lapack.has("getrf", np.dtype(np.float64))


def test_dtypes_that_lapack_has_not() -> None:
    assert not _lapack.has("getrf", np.dtype(np.float16))
    assert not _lapack.has("hetrf", np.dtype(np.float64))


def test_operands_are_copied_only_where_neither_rows_nor_columns_are_contiguous() -> None:
    copied = [not np.shares_memory(_lapack.operand(a).array, a) for a in layouts(draw(0, (2, 4, 4), "float64"))]
    assert copied == [False, False, False, True, True]


@pytest.mark.parametrize(
    ("pivots", "whole"),
    [([1, 2, 3], True), ([-1, -1, 3], True), ([1, 2, -3], False), ([-1, 2, 3], False), ([0, 2, 3], False), ([1, 2, 4], False)]
    + [([-1, 2, -3, 1], False), ([-1, -1, -3, -3], True)],
)
def test_pivots_of_ldl_are_followed_only_where_blocks_are_whole_from_either_end(pivots, whole):
    assert _math._are_ldl_pivots(np.array(pivots, np.int32)) is whole
