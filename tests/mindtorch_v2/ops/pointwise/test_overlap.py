"""Writing in place where one must not: into memory that is read at the same time, and into inference tensors."""

from __future__ import annotations

import pytest

import mindtorch_v2 as torch

OVERLAP = (
    "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory "
    "location. Please clone() the tensor before performing the operation."
)
OUTSIDE = "Inplace update to inference tensor outside InferenceMode is not allowed."


def _assign(target, source):
    target[:] = source


def _line():
    return torch.arange(6.0)


def _square():
    return torch.arange(9.0).view(3, 3)


def _tracked():
    return _square().requires_grad_().clone()


@pytest.mark.parametrize(
    ("make", "write"),
    [
        (_line, lambda x: x[1:].add_(x[:-1])),
        (_line, lambda x: _assign(x[1:], x[:-1])),
        (_line, lambda x: x[1:].copy_(x[:-1])),
        (_line, lambda x: x.mul_(x[2])),
        (_line, lambda x: torch.exp(x[:-1], out=x[1:])),
        (_square, lambda x: x.add_(x.t())),
        (_square, lambda x: x.copy_(x.t())),
        (_square, lambda x: x.add_(x[0])),
        (_square, lambda x: x.addcmul_(x.t(), x)),
        (_square, lambda x: x[1:].sub_(x[:2])),
        (_tracked, lambda x: x.mul_(x.t())),
    ],
)
def test_partial_overlap_is_refused(make, write):
    with pytest.raises(RuntimeError) as raised:
        write(make())
    assert str(raised.value) == OVERLAP


@pytest.mark.parametrize(
    ("make", "write", "expected"),
    [
        (_line, lambda x: x.add_(x), [0, 2, 4, 6, 8, 10]),
        (_line, lambda x: x[:3].add_(x[3:]), [3, 5, 7]),
        (_line, lambda x: x[::2].add_(x[1::2]), [1, 5, 9]),
        (_square, lambda x: x.mul_(x.expand(3, 3))[1], [9, 16, 25]),
        (_square, lambda x: x.add_(x[0].clone())[1], [3, 5, 7]),
    ],
)
def test_the_same_elements_and_others_are_fine(make, write, expected):
    assert write(make()).tolist() == expected


@pytest.mark.parametrize(
    "write",
    [
        lambda t: t.add_(1),
        lambda t: t.zero_(),
        lambda t: t.copy_(torch.ones(2)),
        lambda t: t.view(2, 1).mul_(2),
        lambda t: t.__setitem__(0, 1.0),
        lambda t: torch.add(torch.ones(2), 1, out=t),
    ],
)
@pytest.mark.parametrize("used_inside", [False, True])
def test_inference_tensors_are_written_inside_the_mode_only(write, used_inside):
    with torch.inference_mode():
        t = torch.ones(2)
        if used_inside:
            t.view(1, 2).add_(1)
            t.add_(1)
    for mode in (torch.no_grad, torch.enable_grad):
        with mode(), pytest.raises(RuntimeError, match=OUTSIDE):
            write(t)
    with torch.inference_mode():
        write(t)


def test_other_tensors_stay_writable_in_and_out_of_the_mode():
    plain = torch.ones(2)
    with torch.inference_mode():
        plain.add_(1)
        kept = torch.ones(2)
    plain.add_(1)
    torch.ones(2).add_(kept)
    kept.clone().add_(1)
    assert plain.tolist() == [3, 3]
