"""Summaries: the values that TensorBoard shows, each as the bytes of a `Summary.Value` message."""

from __future__ import annotations

import struct
import zlib
from typing import Any

import numpy as np

from ..._core.tensor import Tensor
from ._records import double, doubles, integer, message, single

_STRING = 7  # the data type of text in a tensor message


def as_array(value: Any) -> np.ndarray:
    """A tensor, an array or numbers as an array."""
    if isinstance(value, Tensor):
        value = value.detach().to("cpu")
        if value.dtype.is_floating_point and value.dtype.itemsize < 4:
            value = value.float()
        return value.numpy()
    return np.asarray(value)


def scalar(tag: str, value: Any) -> bytes:
    """A Summary value that holds one number under `tag`."""
    array = as_array(value)
    if array.size != 1:
        raise AssertionError(
            f"Tensor should contain one element (0 dimensions). Was given size: {array.size} and {array.ndim} dimensions."
        )
    return message(1, tag) + single(2, float(array.reshape(()).item()))


def _default_bins() -> np.ndarray:
    positive = 1e-12 * 1.1 ** np.arange(775)
    positive = positive[positive < 1e20]
    return np.concatenate([-positive[::-1], [0.0], positive])


def histogram(tag: str, values: Any, bins: Any = "tensorflow", max_bins: int | None = None) -> bytes:
    """How often values fall into each bucket."""
    flat = as_array(values).astype(np.float64).reshape(-1)
    if not flat.size:
        raise ValueError("The input has no element.")
    if isinstance(bins, str) and bins == "tensorflow":
        bins = _default_bins()
    counts, limits = np.histogram(flat, bins=bins)
    if max_bins is not None and len(counts) > max_bins:
        step = -(-len(counts) // max_bins)
        padded = np.concatenate([counts, np.zeros(-len(counts) % step, counts.dtype)])
        counts, limits = padded.reshape(-1, step).sum(1), np.concatenate([limits[:-1:step], limits[-1:]])
    filled = np.nonzero(counts)[0]
    if not filled.size:
        raise ValueError("The histogram is empty, please file a bug report.")
    # One empty bucket goes before the first, whose upper limit is the first one's lower.
    first, last = filled[0], filled[-1]
    shown = np.concatenate([[0], counts[first : last + 1]])
    return message(1, tag) + message(
        5,
        double(1, flat.min())
        + double(2, flat.max())
        + double(3, float(flat.size))
        + double(4, flat.sum())
        + double(5, float(flat.dot(flat)))
        + doubles(6, limits[first : last + 2])
        + doubles(7, shown),
    )


def text(tag: str, words: str) -> bytes:
    """Text, which TensorBoard shows as Markdown."""
    metadata = message(1, message(1, "text"))
    shape = message(2, integer(1, 1))
    tensor = integer(1, _STRING) + message(2, shape) + message(8, words)
    return message(1, tag + "/text_summary") + message(8, tensor) + message(9, metadata)


# ---------------------------------------------------------------- images


def png(pixels: np.ndarray) -> bytes:
    """An (height, width, channels) array of uint8 as a PNG file."""
    height, width, channels = pixels.shape
    color = {1: 0, 2: 4, 3: 2, 4: 6}[channels]
    rows = np.concatenate([np.zeros((height, 1), np.uint8), pixels.reshape(height, -1)], 1)  # filter 0 before each row

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, color, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows.tobytes())) + chunk(b"IEND", b"")


def to_hwc(array: np.ndarray, formats: str) -> np.ndarray:
    """An image, or a batch of images as a grid, in the order height, width, channels."""
    letters = formats.upper()
    if len(letters) != array.ndim or len(set(letters)) != len(letters):
        raise AssertionError(
            f"size of input tensor and input format are different. tensor shape: {array.shape}, input_format: {formats}"
        )
    if "C" not in letters:
        array, letters = array[..., None], letters + "C"
    order = [letters.index(c) for c in ("NHWC" if "N" in letters else "HWC")]
    array = array.transpose(order)
    if "N" in letters:
        array = _grid(array)
    return np.repeat(array, 3, 2) if array.shape[2] == 1 else array


def _grid(images: np.ndarray, columns: int = 8) -> np.ndarray:
    count, height, width, channels = images.shape
    across = min(columns, count)
    down = -(-count // across)
    canvas = np.zeros((down * height, across * width, channels), images.dtype)
    for i, image in enumerate(images):
        y, x = i // across * height, i % across * width
        canvas[y : y + height, x : x + width] = image
    return canvas


def image(tag: str, value: Any, dataformats: str = "CHW") -> bytes:
    """An image: bytes from 0 to 255, or floats from 0 to 1."""
    array = to_hwc(as_array(value), dataformats)
    if array.dtype != np.uint8:
        array = np.clip(array.astype(np.float64) * 255, 0, 255).astype(np.uint8)
    height, width, channels = array.shape
    body = integer(1, height) + integer(2, width) + integer(3, channels) + message(4, png(np.ascontiguousarray(array)))
    return message(1, tag) + message(4, body)
