"""torchvision's compiled ops: boxes that are kept (nms) and regions cut from feature maps (roi_align, roi_pool).

torchvision itself registers their derivatives, shape rules and autocast rules, in terms of the `_..._backward` ops. The others
are declared, so that torchvision can be imported, and raise NotImplementedError when they are called.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _surface as torch
from ..library import define, impl

_ROI = "float spatial_scale, SymInt pooled_height, SymInt pooled_width"
_MAP = "SymInt batch_size, SymInt channels, SymInt height, SymInt width"
_CONVOLUTION = (
    "Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, SymInt stride_h, SymInt stride_w, SymInt pad_h, "
    "SymInt pad_w, SymInt dilation_h, SymInt dilation_w, SymInt groups, SymInt offset_groups, bool use_mask"
)


def _op(name: str, schema: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    define(f"torchvision::{name}", schema)
    return lambda function: impl(f"torchvision::{name}", "CPU", function)  # type: ignore[no-any-return]


def _same_dtype(name: str, input: Any, rois: Any) -> None:
    if input.dtype is not rois.dtype:
        raise RuntimeError(
            f"Expected tensor for argument #1 'input' to have the same type as tensor for argument #2 "
            f"'rois'; but type torch.{input.type().rpartition('.')[2]} does not equal torch.{rois.type().rpartition('.')[2]} "
            f"(while checking arguments for {name})"
        )


def _computed(tensor: Any) -> np.ndarray[Any, Any]:
    """The elements, halves as float32: sums of many of them would lose too much."""
    array = tensor._array
    return array if array.dtype in (np.float32, np.float64) else array.astype(np.float32)


@_op("_cuda_version", "() -> int")
def _cuda_version() -> int:
    return -1


@_op("nms", "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
def _nms(dets: Any, scores: Any, iou_threshold: float) -> Any:
    if dets.ndim != 2:
        raise RuntimeError(f"boxes should be a 2d tensor, got {dets.ndim}D")
    if dets.shape[1] != 4:
        raise RuntimeError(f"boxes should have 4 elements in dimension 1, got {dets.shape[1]}")
    if scores.ndim != 1:
        raise RuntimeError(f"scores should be a 1d tensor, got {scores.ndim}D")
    if dets.shape[0] != scores.shape[0]:
        raise RuntimeError(
            f"boxes and scores should have same number of elements in dimension 0, got {dets.shape[0]} and {scores.shape[0]}"
        )
    if dets.dtype is not scores.dtype:
        raise RuntimeError("dets should have the same type as scores")
    boxes = _computed(dets)
    order = np.argsort(-_computed(scores), kind="stable")
    x1, y1, x2, y2 = boxes[order].T
    areas = (x2 - x1) * (y2 - y1)
    left = np.ones(len(order), bool)
    for i in range(len(order)):
        if left[i]:
            rest = slice(i + 1, None)
            width = np.maximum(np.minimum(x2[i], x2[rest]) - np.maximum(x1[i], x1[rest]), 0)
            height = np.maximum(np.minimum(y2[i], y2[rest]) - np.maximum(y1[i], y1[rest]), 0)
            overlap = width * height
            with np.errstate(divide="ignore", invalid="ignore"):
                left[rest] &= ~(overlap / (areas[i] + areas[rest] - overlap) > iou_threshold)
    return torch.from_numpy(order[left])


# ---------------------------------------------------------------- regions of interest


def _sampling_matrix(start: Any, length: Any, bins: int, samples: int, size: int) -> np.ndarray[Any, Any]:
    """(bins, size): the weight of every element along one dim in the mean of each bin's samples, taken linearly in between."""
    kind = type(start)
    matrix = np.zeros((bins, size), kind)
    step = kind(length / kind(bins))
    count = samples if samples > 0 else int(np.ceil(length / kind(bins)))
    if count <= 0:
        return matrix
    places = (
        np.arange(bins, dtype=kind)[:, None] * step + (np.arange(count, dtype=kind) + kind(0.5)) * (step / kind(count)) + start
    )
    row, column = np.nonzero((places >= -1) & (places <= size))
    place = np.maximum(places[row, column], 0)
    low = np.minimum(place.astype(np.int64), size - 1)
    high = np.minimum(low + 1, size - 1)
    rest = np.where(low >= size - 1, 0, place - low).astype(kind)
    np.add.at(matrix, (row, low), 1 - rest)
    np.add.at(matrix, (row, high), rest)
    return matrix / kind(count)


def _regions(rois: Any, scale: float, height: int, width: int, pooled: tuple[int, int], samples: int, aligned: bool) -> Any:
    """Of each region: its image and the matrices that its rows and columns are sampled by."""
    array = _computed(rois)
    kind = array.dtype.type
    offset = kind(0.5 if aligned else 0.0)
    for region in array:
        x1, y1, x2, y2 = (kind(edge * kind(scale)) - offset for edge in region[1:])
        tall, wide = y2 - y1, x2 - x1
        if not aligned:
            tall, wide = max(tall, kind(1)), max(wide, kind(1))
        rows = _sampling_matrix(y1, tall, pooled[0], samples, height)
        columns = _sampling_matrix(x1, wide, pooled[1], samples, width)
        yield int(region[0]), rows, columns


def _check_rois(rois: Any) -> None:
    if rois.ndim != 2 or rois.shape[1] != 5:
        raise RuntimeError("rois must have shape as Tensor[K, 5]")


@_op("roi_align", f"(Tensor input, Tensor rois, {_ROI}, int sampling_ratio, bool aligned) -> Tensor")
def _roi_align(input: Any, rois: Any, scale: float, rows: int, columns: int, samples: int, aligned: bool) -> Any:
    _check_rois(rois)
    _same_dtype("roi_align_forward_kernel", input, rois)
    maps = _computed(input)
    result = np.empty((rois.shape[0], maps.shape[1], rows, columns), maps.dtype)
    regions = _regions(rois, scale, maps.shape[2], maps.shape[3], (rows, columns), samples, aligned)
    for i, (image, across, along) in enumerate(regions):
        result[i] = across @ maps[image] @ along.T
    return torch.from_numpy(result.astype(input._array.dtype, copy=False))


@_op("_roi_align_backward", f"(Tensor grad, Tensor rois, {_ROI}, {_MAP}, int sampling_ratio, bool aligned) -> Tensor")
def _roi_align_backward(
    grad: Any,
    rois: Any,
    scale: float,
    rows: int,
    columns: int,
    batch: int,
    channels: int,
    height: int,
    width: int,
    samples: int,
    aligned: bool,
) -> Any:
    grads = _computed(grad)
    result = np.zeros((batch, channels, height, width), grads.dtype)
    regions = _regions(rois, scale, height, width, (rows, columns), samples, aligned)
    for i, (image, across, along) in enumerate(regions):
        result[image] += across.T @ grads[i] @ along
    return torch.from_numpy(result.astype(grad._array.dtype, copy=False))


def _rounded(value: Any) -> int:
    """To the nearest, halves away from zero."""
    return int(np.floor(abs(value) + 0.5) * np.sign(value))


def _bins(first: int, last: int, bins: int, size: int) -> list[tuple[int, int]]:
    """The elements of each bin along one dim, as start and end, cut at the map's edges."""
    step = np.float32(max(last - first + 1, 1)) / np.float32(bins)
    ends = [(int(np.floor(i * step)) + first, int(np.ceil((i + 1) * step)) + first) for i in range(bins)]
    return [(min(max(start, 0), size), min(max(end, 0), size)) for start, end in ends]


@_op("roi_pool", f"(Tensor input, Tensor rois, {_ROI}) -> (Tensor, Tensor)")
def _roi_pool(input: Any, rois: Any, scale: float, rows: int, columns: int) -> Any:
    _check_rois(rois)
    _same_dtype("roi_pool_forward_kernel", input, rois)
    maps = _computed(input)
    height, width = maps.shape[2:]
    result = np.zeros((rois.shape[0], maps.shape[1], rows, columns), maps.dtype)
    chosen = np.full(result.shape, -1, np.int32)
    for k, region in enumerate(_computed(rois)):
        image = maps[int(region[0])]
        x1, y1, x2, y2 = (_rounded(edge * type(edge)(scale)) for edge in region[1:])
        for i, (top, bottom) in enumerate(_bins(y1, y2, rows, height)):
            for j, (left, right) in enumerate(_bins(x1, x2, columns, width)):
                if top < bottom and left < right:
                    cells = image[:, top:bottom, left:right].reshape(len(image), -1)
                    best = cells.argmax(1)
                    result[k, :, i, j] = cells.max(1)
                    chosen[k, :, i, j] = (top + best // (right - left)) * width + left + best % (right - left)
    return torch.from_numpy(result.astype(input._array.dtype, copy=False)), torch.from_numpy(chosen)


@_op("_roi_pool_backward", f"(Tensor grad, Tensor rois, Tensor argmax, {_ROI}, {_MAP}) -> Tensor")
def _roi_pool_backward(
    grad: Any,
    rois: Any,
    argmax: Any,
    scale: float,
    rows: int,
    columns: int,
    batch: int,
    channels: int,
    height: int,
    width: int,
) -> Any:
    grads, chosen = _computed(grad), argmax._array
    result = np.zeros((batch, channels, height * width), grads.dtype)
    region, channel, row, column = np.nonzero(chosen >= 0)
    image = _computed(rois)[region, 0].astype(np.int64)
    np.add.at(result, (image, channel, chosen[region, channel, row, column]), grads[region, channel, row, column])
    return torch.from_numpy(result.reshape(batch, channels, height, width).astype(grad._array.dtype, copy=False))


# ---------------------------------------------------------------- declared only

for _name, _schema in {
    "qnms": "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qroi_align": "(Tensor input, Tensor rois, float input_scale, int input_zero_point, float rois_scale, int rois_zero_point, "
    f"{_ROI}, int sampling_ratio, bool aligned) -> Tensor",
    "ps_roi_align": f"(Tensor input, Tensor rois, {_ROI}, int sampling_ratio) -> (Tensor, Tensor)",
    "_ps_roi_align_backward": "(Tensor grad, Tensor rois, Tensor channel_mapping, "
    f"{_ROI}, int sampling_ratio, {_MAP}) -> Tensor",
    "ps_roi_pool": f"(Tensor input, Tensor rois, {_ROI}) -> (Tensor, Tensor)",
    "_ps_roi_pool_backward": f"(Tensor grad, Tensor rois, Tensor channel_mapping, {_ROI}, {_MAP}) -> Tensor",
    "deform_conv2d": f"({_CONVOLUTION}) -> Tensor",
    "_deform_conv2d_backward": f"(Tensor grad, {_CONVOLUTION}) -> (Tensor, Tensor, Tensor, Tensor, Tensor)",
    "box_iou_rotated": "(Tensor boxes1, Tensor boxes2) -> Tensor",
}.items():
    define(f"torchvision::{_name}", _schema)
