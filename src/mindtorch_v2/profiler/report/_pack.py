"""Encodes columns of whole numbers as text for a page: offsets from the least, split into byte planes, deflated, base64."""

from __future__ import annotations

import base64
import zlib
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

# Measured on a million events: 6 takes a third longer than 5 and writes 1 % less.
_LEVEL = 5
_RAW = -15  # zlib's window bits for deflate without header, which browsers call deflate-raw


def deflated(data: bytes) -> bytes:
    """Compress bytes to base64 of raw deflate, which browsers can decompress."""
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, _RAW)
    return base64.b64encode(packer.compress(data) + packer.flush())


def inflated(text: bytes) -> bytes:
    """Decompress what `deflated` returned."""
    return zlib.decompress(base64.b64decode(text), _RAW)


def pack(values: ArrayLike, kind: str, *, delta: bool = False) -> tuple[dict[str, Any], bytes]:
    """Encode a column as (spec for `unpack`, text); the text is empty if all numbers are equal.

    `kind` is the type of the array that the page makes of it: u8, i32 or f64. `delta` encodes differences from row to row.
    Bytes of equal weight lie together: the upper ones are mostly zero and compress well.
    """
    numbers = np.asarray(values, np.int64)
    spec: dict[str, Any] = {"kind": kind, "count": len(numbers)}
    if delta and len(numbers):
        numbers = np.diff(numbers, prepend=np.int64(0))
        spec["delta"] = True
    least = int(numbers.min()) if len(numbers) else 0
    spec["least"] = least
    offsets = (numbers - least).astype("<u8")
    most = int(offsets.max()) if len(offsets) else 0
    width = (most.bit_length() + 7) // 8
    spec["width"] = width
    if not width:
        return spec, b""
    planes = offsets.view(np.uint8).reshape(len(offsets), 8)[:, :width]
    return spec, deflated(planes.T.tobytes())


def unpack(spec: dict[str, Any], text: bytes) -> NDArray[np.int64]:
    """Decode what `pack` returned, as the page does."""
    count, width = spec["count"], spec["width"]
    numbers = np.full(count, spec["least"], np.int64)
    if width:
        planes = np.frombuffer(inflated(text), np.uint8).reshape(width, count)
        for power, plane in enumerate(planes):
            numbers += plane.astype(np.int64) << (8 * power)
    return np.cumsum(numbers) if spec.get("delta") else numbers
