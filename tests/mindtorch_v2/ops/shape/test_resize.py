"""resize_ with memory formats, and set_ on tensors that autograd follows; answers are torch 2.13's."""

from __future__ import annotations

import pytest

import mindtorch_v2 as torch

_FORMATS = {
    "grows": (lambda: torch.zeros(0).resize_(2, 3, 4, 5, memory_format=torch.channels_last), (60, 1, 15, 3)),
    "in 3d": (lambda: torch.zeros(0).resize_(1, 2, 3, 4, 5, memory_format=torch.channels_last_3d), (120, 1, 40, 10, 2)),
    "keeps its shape": (lambda: images().resize_(2, 3, 2, 2, memory_format=torch.channels_last), (12, 1, 6, 3)),
    "back": (
        lambda: images().to(memory_format=torch.channels_last).resize_(2, 3, 2, 2, memory_format=torch.contiguous_format),
        (12, 4, 2, 1),
    ),
    "as another": (
        lambda: torch.zeros(0).resize_as_(images().to(memory_format=torch.channels_last), memory_format=torch.preserve_format),
        (12, 1, 6, 3),
    ),
    "as another's shape": (lambda: torch.zeros(0).resize_as_(images().to(memory_format=torch.channels_last)), (12, 4, 2, 1)),
}


def images() -> torch.Tensor:
    return torch.arange(24.0).reshape(2, 3, 2, 2)


@pytest.mark.parametrize("name", _FORMATS)
def test_resize_to_a_memory_format(name: str) -> None:
    make, strides = _FORMATS[name]
    assert make().stride() == strides


def test_resizing_to_a_memory_format_moves_no_element() -> None:
    resized = images().resize_(2, 3, 2, 2, memory_format=torch.channels_last)
    assert resized.flatten()[:6].tolist() == [0, 3, 6, 9, 1, 4]


@pytest.mark.parametrize(
    ("shape", "memory_format", "message"),
    [
        ((2, 3, 4), torch.channels_last, "required rank 4 tensor to use channels_last format"),
        ((2, 3, 4), torch.channels_last_3d, "required rank 5 tensor to use channels_last_3d format"),
        ((2, 12), torch.preserve_format, "Unsupported memory formatPreserve"),
    ],
)
def test_formats_that_resize_refuses(shape, memory_format, message: str) -> None:
    with pytest.raises(RuntimeError, match=f"^{message}$"):
        images().resize_(*shape, memory_format=memory_format)


def test_a_leaf_may_be_set_without_grad_mode() -> None:
    parameter, other = torch.nn.Parameter(torch.ones(3)), torch.zeros(2)
    with pytest.raises(RuntimeError, match="^a leaf Variable that requires grad is being used in an in-place operation.$"):
        parameter.set_(other)
    with torch.no_grad():
        parameter.set_(other)
    assert (parameter.data_ptr() == other.data_ptr(), parameter.requires_grad, parameter.is_leaf) == (True, True, True)
