"""Pack the published numbers of Sobol sequences into the file that `mindtorch_v2` reads.

    python tools/sobol_numbers.py new-joe-kuo-6.21201 src/mindtorch_v2/_ops/random/sobol_numbers.bin

The input is the table of S. Joe and F. Y. Kuo as they publish it: a line of titles, then for each dimension from the second on
its number, the degree s of its primitive polynomial, the coefficients between the first and the last as bits, and s odd
numbers.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

import numpy as np

DEGREES = 18


def packed(lines: Iterable[str]) -> bytes:
    """For each degree: a bit for every odd polynomial, whether it is primitive, and the numbers: k - 1 bits the k-th.

    The numbers are odd and the k-th is less than 2**k, so that its lowest bit is not kept, and the first, always 1, not at all.
    Raises ValueError for a table that is not so, or whose polynomials do not rise.
    """
    rows: dict[int, list[tuple[int, list[int]]]] = {degree: [] for degree in range(1, DEGREES + 1)}
    for line in lines:
        _, degree, between, *numbers = map(int, line.split())
        if len(numbers) != degree or any(number % 2 == 0 or number >> k + 1 for k, number in enumerate(numbers)):
            raise ValueError(f"not numbers of a Sobol sequence: {line!r}")
        rows[degree].append((between, numbers))
    parts = []
    for degree, listed in rows.items():
        polynomials = [between for between, _ in listed]
        if polynomials != sorted(set(polynomials)):
            raise ValueError(f"the polynomials of degree {degree} do not rise")
        primitive = np.zeros(1 << degree - 1, np.uint8)
        primitive[polynomials] = 1
        bits = [number >> place & 1 for _, numbers in listed for k, number in enumerate(numbers) for place in range(k, 0, -1)]
        parts += [np.packbits(primitive), np.packbits(np.array(bits, np.uint8))]
    return np.concatenate(parts).tobytes()


def main() -> None:
    source, target = map(Path, sys.argv[1:])
    target.write_bytes(packed(source.read_text().splitlines()[1:]))


if __name__ == "__main__":
    main()
