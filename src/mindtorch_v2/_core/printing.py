"""The text of tensors, and the options that govern it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .device import device as Device
from .dtype import bool_, complex64, complex128, float64, get_default_dtype, int64
from .dtype import dtype as DType

# ---------------------------------------------------------------- options


class PrinterOptions:
    """How tensors are printed; `set_printoptions` explains the fields."""

    __slots__ = ("edgeitems", "linewidth", "precision", "sci_mode", "threshold")

    def __init__(self) -> None:
        self.precision = 4
        self.threshold: float = 1000
        self.edgeitems = 3
        self.linewidth: float = 80
        self.sci_mode: bool | None = None


PRINT_OPTS = PrinterOptions()
"""The options in force."""

_PROFILES: dict[str, dict[str, Any]] = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": math.inf, "edgeitems": 3, "linewidth": 80},
}


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: float | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Change how tensors are printed.

    `precision` digits follow the point; a tensor of more than `threshold` elements shows only `edgeitems` at either end
    of each dimension; lines wrap at `linewidth`; `profile` is "default", "short" or "full" and is applied first.
    `sci_mode` switches scientific notation on or off; unlike the others it returns to None, which lets each tensor
    decide for itself, when it is not given.
    """
    options = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    changes = {name: value for name, value in options.items() if value is not None}
    if profile is not None:
        if profile not in _PROFILES:
            raise ValueError(f"profile must be one of {', '.join(_PROFILES)}, not {profile!r}")
        changes = _PROFILES[profile] | changes
    for name, value in changes.items():
        if value < 0:
            raise ValueError(f"{name} must not be negative, got {value}")
    for name, value in changes.items():
        setattr(PRINT_OPTS, name, value)
    PRINT_OPTS.sci_mode = sci_mode


def get_printoptions() -> dict[str, Any]:
    """The options in force, by name."""
    return {name: getattr(PRINT_OPTS, name) for name in PRINT_OPTS.__slots__}


# ---------------------------------------------------------------- the text of a tensor


def tensor_repr(
    array: np.ndarray[Any, Any],
    *,
    dtype: DType,
    device: Device,
    requires_grad: bool = False,
    grad_fn_name: str | None = None,
    class_name: str = "tensor",
    contents: str | None = None,
    tangent: str | None = None,
) -> str:
    """The text of a tensor whose elements, in CPU memory, are `array`.

    `class_name` is what stands before the bracket. `contents`, if given, is printed instead of the elements, `tangent` after
    them. Of an array on the meta device only the shape is looked at.
    """
    prefix = f"{class_name}("
    if contents is None:
        contents = "..." if device.type == "meta" else contents_text(array, len(prefix))
    suffixes = _suffixes(array, dtype, device)
    if grad_fn_name is not None:
        suffixes.append(f"grad_fn=<{grad_fn_name}>")
    elif requires_grad:
        suffixes.append("requires_grad=True")
    if tangent is not None:
        suffixes.append(f"tangent={tangent}")
    return append_suffixes(prefix + contents, suffixes, len(prefix))


def _suffixes(array: np.ndarray[Any, Any], dtype: DType, device: Device) -> list[str]:
    """The texts of device, size and dtype, of those that the elements do not show."""
    suffixes = []
    default = get_default_dtype()
    if device.type != "cpu":
        suffixes.append(f"device='{device}'")
    if device.type == "meta" or array.size == 0:
        # No element shows what dtype this is, so only the default one goes without saying.
        if device.type == "meta" or array.ndim != 1:
            suffixes.append(f"size={array.shape}")
        shown_by_elements = dtype is default
    else:
        if PRINT_OPTS.edgeitems == 0:
            suffixes.append(f"size={array.shape}")
        default_complex = complex128 if default is float64 else complex64
        shown_by_elements = dtype in (default, default_complex, int64, bool_)
    if not shown_by_elements:
        suffixes.append(f"dtype={dtype}")
    return suffixes


def append_suffixes(text: str, suffixes: list[str], indent: int) -> str:
    """`text` with `suffixes` and the closing bracket; a suffix that would pass the line's end starts a new line."""
    parts = [text]
    line_length = len(text) - text.rfind("\n") + 1  # of the last line, and two more: the closing bracket and a spare
    for suffix in suffixes:
        if line_length + len(suffix) + 2 > PRINT_OPTS.linewidth:
            parts.append(",\n" + " " * indent + suffix)
            line_length = indent + len(suffix)
        else:
            parts.append(", " + suffix)
            line_length += len(suffix) + 2
    return "".join(parts) + ")"


def contents_text(array: np.ndarray[Any, Any], indent: int) -> str:
    """The elements in brackets; lines after the first begin at column `indent`."""
    if array.size == 0:
        return "[]"
    # Which dimensions are cut, so that no more than the corners of a big array are ever copied or formatted.
    edge = PRINT_OPTS.edgeitems
    cut = [array.size > PRINT_OPTS.threshold and size > 2 * edge for size in array.shape]
    if edge == 0 and any(cut):
        return "[...]"
    if any(cut):
        shape = zip(array.shape, cut, strict=True)
        array = array[np.ix_(*(np.r_[:edge, size - edge : size] if is_cut else range(size) for size, is_cut in shape))]
    texts, width = _format_elements(array.reshape(-1))
    if not array.ndim:
        return texts[0]
    return _Layout(texts, array.shape, cut, width).block(0, 0, indent)


class _Layout:
    """Arranges the texts of elements, in C order, in rows and nested brackets."""

    def __init__(self, texts: list[str], shape: tuple[int, ...], cut: list[bool], width: int) -> None:
        self.texts = texts
        self.shape = shape
        self.cut = cut
        self.width = width

    def block(self, dim: int, start: int, indent: int) -> str:
        """The text of the sub-array of dimensions `dim` and up whose first element is `texts[start]`."""
        if dim == len(self.shape) - 1:
            return self._row(self.texts[start : start + self.shape[dim]], self.cut[dim], indent)
        step = math.prod(self.shape[dim + 1 :])
        blocks = [self.block(dim + 1, start + i * step, indent + 1) for i in range(self.shape[dim])]
        if self.cut[dim]:
            blocks.insert(PRINT_OPTS.edgeitems, "...")
        separator = "," + "\n" * (len(self.shape) - dim - 1) + " " * (indent + 1)
        return "[" + separator.join(blocks) + "]"

    def _row(self, texts: list[str], is_cut: bool, indent: int) -> str:
        if is_cut:
            texts.insert(PRINT_OPTS.edgeitems, " ...")
        per_line = max(1, int(min(len(texts), (PRINT_OPTS.linewidth - indent) / (self.width + 2))))
        lines = [", ".join(texts[i : i + per_line]) for i in range(0, len(texts), per_line)]
        return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"


# ---------------------------------------------------------------- the text of elements


def _format_elements(flat: np.ndarray[Any, Any]) -> tuple[list[str], int]:
    """The aligned texts of the elements, and the width to count for each where lines are broken."""
    kind = flat.dtype.kind
    if kind in "biu":
        texts = [str(value) for value in flat.tolist()]
        width = max(map(len, texts))
        return [text.rjust(width) for text in texts], width
    if kind == "c" or flat.dtype.name == "complex32":
        wide = flat.astype(np.complex128)
        reals, real_width = _format_floats(wide.real)
        imags, imag_width = _format_floats(wide.imag)
        texts = [real + _signed(imag.lstrip()) + "j" for real, imag in zip(reals, imags, strict=True)]
        return texts, real_width + imag_width + 1  # 1 for the j, none for the sign
    return _format_floats(flat.astype(np.float64))


def _signed(text: str) -> str:
    return text if text[0] in "+-" else "+" + text


def _format_floats(values: np.ndarray[Any, Any]) -> tuple[list[str], int]:
    """The texts of float64 `values`, padded to the widest finite one that is not zero."""
    is_telling = np.isfinite(values) & (values != 0)
    format_one = _notation(values[is_telling])
    texts = [format_one(value) for value in values.tolist()]
    width = max((len(text) for text, counts in zip(texts, is_telling.tolist(), strict=True) if counts), default=1)
    return [text.rjust(width) for text in texts], width


def _notation(telling: np.ndarray[Any, Any]) -> Callable[[float], str]:
    """How to write floats of which `telling` are the finite ones that are not zero: "5.", "5.2500" or "5.2500e+00"."""
    if not telling.size:
        return _as_integer
    magnitudes = np.abs(telling)
    smallest, largest = float(magnitudes.min()), float(magnitudes.max())
    integral = bool((telling == np.ceil(telling)).all())
    scientific = PRINT_OPTS.sci_mode
    if scientific is None:
        spread = largest / smallest > 1000.0 or largest > 1.0e8
        scientific = spread or (not integral and smallest < 1.0e-4)
    if scientific:
        return f"{{:.{PRINT_OPTS.precision}e}}".format
    return _as_integer if integral else f"{{:.{PRINT_OPTS.precision}f}}".format


def _as_integer(value: float) -> str:
    text = f"{value:.0f}"
    return text + "." if math.isfinite(value) else text
