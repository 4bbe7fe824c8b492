"""Sobol sequences: the state of an engine, scrambling it, drawing points and passing over them.

A state has a row of direction numbers for each dim. Point g + 1 is point g, as an integer, xor the direction number of the
lowest zero bit of g; hence point g is the xor of those that the bits of g's Gray code, `g ^ g >> 1`, choose.
"""

from __future__ import annotations

import functools
import os

import numpy as np

from ..._core.dtype import float32
from ..._dispatch.registry import op
from .._support.common import no_kernel, np_dtype

MAXBIT = 30
MAXDIM = 21201
_DEGREES = 18


@functools.cache
def _published() -> list[tuple[np.ndarray, np.ndarray]]:
    """For each degree from 1 on its primitive polynomials and, one row for each, the numbers they begin with.

    `tools/sobol_numbers.py` tells how the file keeps them.
    """
    content = np.fromfile(os.path.join(os.path.dirname(__file__), "sobol_numbers.bin"), np.uint8)
    tables, position = [], 0
    for degree in range(1, _DEGREES + 1):
        candidates = 1 << degree - 1
        size = -(-candidates // 8)
        between = np.flatnonzero(np.unpackbits(content[position : position + size], count=candidates))
        position += size
        width = degree * (degree - 1) // 2
        size = -(-len(between) * width // 8)
        bits = np.unpackbits(content[position : position + size], count=len(between) * width).reshape(len(between), width)
        position += size
        numbers = np.ones((len(between), degree), np.int64)
        first = 0
        for k in range(1, degree):
            numbers[:, k] += bits[:, first : first + k] @ (2 << np.arange(k)[::-1])
            first += k
        tables.append((between * 2 + 1 + (1 << degree), numbers))
    return tables


def _direction_numbers(dimension: int) -> np.ndarray:
    """The rows of the first dims, `MAXBIT` numbers each, the leading bit of all at the same place."""
    rows = np.ones((dimension, MAXBIT), np.int64)
    done = 1
    for degree, (polynomials, numbers) in enumerate(_published(), 1):
        part = rows[done : done + len(polynomials)]
        polynomials = polynomials[: len(part)]
        part[:, :degree] = numbers[: len(part)]
        for k in range(degree, MAXBIT):
            part[:, k] = part[:, k - degree]
            for back in range(1, degree + 1):
                part[:, k] ^= (polynomials >> degree - back & 1) * (part[:, k - back] << back)
        done += len(part)
    return rows << np.arange(MAXBIT)[::-1]


def _check(dimension, sobolstate, quasi=None):
    if quasi is not None and quasi.dtype != np.int64:
        raise RuntimeError("quasi needs to be of type Long")
    if sobolstate.dtype != np.int64:
        raise RuntimeError("sobolstate needs to be of type Long")
    if not 1 <= dimension <= MAXDIM:
        raise RuntimeError(f"dimension must be in [1, {MAXDIM}], not {dimension}")
    if sobolstate.shape != (dimension, MAXBIT) or (quasi is not None and quasi.shape != (dimension,)):
        raise RuntimeError(f"the state of {dimension} dims has the shape [{dimension}, {MAXBIT}], and a point [{dimension}]")


def _check_points(num_generated, n):
    if num_generated < 0 or num_generated + n >= 1 << MAXBIT:
        raise RuntimeError(f"a Sobol sequence of {MAXBIT} bits has {1 << MAXBIT} points")


_PRIVATE = {"nondiff": True, "samples": lambda make: []}


@op("_sobol_engine_initialize_state_(Tensor(a!) self, int dimension) -> Tensor(a!)", **_PRIVATE)
def _sobol_engine_initialize_state_(self, dimension):
    """Fills a state with the direction numbers of Joe and Kuo."""
    _check(dimension, self)
    self[...] = _direction_numbers(dimension)


@op("_sobol_engine_scramble_(Tensor(a!) self, Tensor ltm, int dimension) -> Tensor(a!)", **_PRIVATE)
def _sobol_engine_scramble_(self, ltm, dimension):
    """Multiplies the bits of a state, leading bit first, by a lower triangular matrix for each dim, 1 on the diagonal."""
    _check(dimension, self)
    if ltm.shape != (dimension, MAXBIT, MAXBIT):
        raise RuntimeError(f"scrambling {dimension} dims takes matrices of shape [{dimension}, {MAXBIT}, {MAXBIT}]")
    places = np.arange(MAXBIT)[::-1]
    matrices = np.tril(ltm, -1) + np.eye(MAXBIT, dtype=np.int64)
    bits = self[:, None, :] >> places[:, None] & 1
    self[...] = ((matrices @ bits & 1) << places[:, None]).sum(1)


@op("_sobol_engine_ff_(Tensor(a!) self, int n, Tensor sobolstate, int dimension, int num_generated) -> Tensor(a!)", **_PRIVATE)
def _sobol_engine_ff_(self, n, sobolstate, dimension, num_generated):
    """Takes a point to the one that comes `n` later."""
    _check(dimension, sobolstate, self)
    if n <= 0:
        return
    _check_points(num_generated, n)
    later = num_generated + n
    changed = num_generated ^ num_generated >> 1 ^ later ^ later >> 1
    chosen = [bit for bit in range(MAXBIT) if changed >> bit & 1]
    self ^= np.bitwise_xor.reduce(sobolstate[:, chosen], axis=1)


@op(
    "_sobol_engine_draw(Tensor quasi, int n, Tensor sobolstate, int dimension, int num_generated, ScalarType? dtype) "
    "-> (Tensor, Tensor)",
    **_PRIVATE,
)
def _sobol_engine_draw(quasi, n, sobolstate, dimension, num_generated, dtype):
    """The next `n` points as fractions of one, and the last of them as integers."""
    _check(dimension, sobolstate, quasi)
    if n < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {n}: [{n}, {dimension}]")
    _check_points(num_generated, n)
    kind = np_dtype(float32 if dtype is None else dtype)
    if kind not in (np.float32, np.float64):
        raise no_kernel("_sobol_engine_draw", np.empty(0, kind))
    earlier = np.arange(num_generated, num_generated + n)
    lowest_zero = np.bitwise_count(earlier & ~(earlier + 1))
    points = np.concatenate([quasi[None], sobolstate.T[lowest_zero]])
    np.bitwise_xor.accumulate(points, axis=0, out=points)
    return points[1:].astype(kind) * kind.type(0.5**MAXBIT), points[-1].copy()
