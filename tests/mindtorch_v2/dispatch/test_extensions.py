"""torch.ops.load_library: compiled libraries whose ops are written here, and those that are refused."""

from __future__ import annotations

import pytest

import mindtorch_v2 as torch

BOXES = [[6.37, 2.7, 14.28, 8.03], [0.41, 0.17, 3.81, 4.55], [8.13, 9.13, 9.36, 11.12], [6.07, 7.29, 12.43, 13.47]]
BOXES += [[5.44, 9.35, 11.36, 13.42], [8.16, 0.03, 17.14, 8.88], [8.57, 0.34, 15.05, 6.54], [7.3, 1.76, 13.81, 5.87]]
SCORES = [0.135, 0.721, 0.525, 0.31, 0.486, 0.889, 0.934, 0.358]
ROIS = [[0, 0.5, 0.5, 3.0, 2.5]]


@pytest.fixture(scope="module")
def vision():
    torch.ops.load_library("/site-packages/torchvision/_C.so")
    return torch.ops.torchvision


def maps():
    return torch.arange(40, dtype=torch.float32).reshape(1, 2, 4, 5).sin()


def test_other_libraries_are_refused():
    with pytest.raises(OSError, match=r"Could not load this library: /somewhere/other\.so"):
        torch.ops.load_library("/somewhere/other.so")
    with pytest.raises(NotImplementedError, match="compiled extensions"):
        torch.ops.load_library("/somewhere/_C.so")


def test_nms(vision):
    boxes, scores = torch.tensor(BOXES), torch.tensor(SCORES)
    assert vision.nms(boxes, scores, 0.3).tolist() == [6, 1, 2, 4]
    assert vision.nms(boxes[:0], scores[:0], 0.3).tolist() == []
    for arguments, message in (
        ((boxes[0], scores), "boxes should be a 2d tensor, got 1D"),
        ((boxes, scores[:3]), "same number of elements in dimension 0, got 8 and 3"),
        ((boxes, scores.double()), "dets should have the same type as scores"),
    ):
        with pytest.raises(RuntimeError, match=message):
            vision.nms(*arguments, 0.3)


@pytest.mark.parametrize(
    ("aligned", "expected"),
    [
        (False, [-0.11352, 0.64165, -0.7026, -0.14596, 0.59193, 0.57409, -0.20505, 0.59074]),
        (True, [-0.00416, 0.65288, -0.68162, -0.03247, 0.64612, 0.47366, -0.09803, 0.61709]),
    ],
)
def test_roi_align(vision, aligned, expected):
    result = vision.roi_align(maps(), torch.tensor(ROIS), 1.0, 2, 2, 2, aligned)
    assert result.flatten().tolist() == pytest.approx(expected, abs=1e-5)


def test_roi_align_backward(vision):
    grad = vision._roi_align_backward(torch.ones(1, 2, 2, 2), torch.tensor(ROIS), 1.0, 2, 2, 1, 2, 4, 5, 2, True)
    rows = [0.1875, 0.42188, 0.34375, 0.04688, 0.0, 0.375, 0.84375, 0.6875, 0.09375, 0.0]
    rows += [0.1875, 0.42188, 0.34375, 0.04688, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    assert grad[0, 0].flatten().tolist() == pytest.approx(rows, abs=1e-5)


def test_roi_align_wants_one_dtype(vision):
    with pytest.raises(RuntimeError, match="type torch.FloatTensor does not equal torch.DoubleTensor"):
        vision.roi_align(maps(), torch.tensor(ROIS).double(), 1.0, 2, 2, 2, False)


def test_roi_pool(vision):
    result, chosen = vision.roi_pool(maps(), torch.tensor(ROIS), 1.0, 2, 2)
    expected = [0.65699, 0.98936, -0.2879, 0.42017, 0.95638, 0.99991, 0.55143, 0.99991]
    assert result.flatten().tolist() == pytest.approx(expected, abs=1e-5)
    assert chosen.flatten().tolist() == [7, 8, 16, 13, 7, 13, 12, 13]
    assert chosen.dtype is torch.int32
    grad = vision._roi_pool_backward(torch.ones_like(result), torch.tensor(ROIS), chosen, 1.0, 2, 2, 1, 2, 4, 5)
    assert grad[0, 0].nonzero().tolist() == [[1, 2], [1, 3], [2, 3], [3, 1]]
    assert grad[0, 1, 2, 3].item() == 2


def test_ops_that_are_declared_only_name_themselves(vision):
    rois = torch.tensor(ROIS)
    with pytest.raises(NotImplementedError, match="torchvision::ps_roi_align"):
        vision.ps_roi_align(maps(), rois, 1.0, 1, 1, 2)


def test_autocast_rules_of_an_op_from_outside():
    torch.library.define("test_extensions::twice", "(Tensor x) -> Tensor")
    torch.library.impl("test_extensions::twice", "CPU", lambda x: x * 2)

    def in_autocast(x):
        keys = torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastCPU) | torch._C.DispatchKeySet(
            torch._C.DispatchKey.AutocastCUDA
        )
        with torch._C._ExcludeDispatchKeyGuard(keys):
            return torch.ops.test_extensions.twice(x.float())

    torch.library.Library("test_extensions", "IMPL").impl(torch.ops.test_extensions.twice.default, in_autocast, "AutocastCPU")
    x = torch.ones(2, dtype=torch.bfloat16)
    assert torch.ops.test_extensions.twice(x).dtype is torch.bfloat16
    with torch.autocast("cpu"):
        assert torch.ops.test_extensions.twice(x).dtype is torch.float32
    with pytest.raises(NotImplementedError, match="CPU"):
        torch._C._ExcludeDispatchKeyGuard(torch._C.DispatchKeySet(torch._C.DispatchKey.CPU))
