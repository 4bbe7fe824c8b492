"""Tensors on the meta device: what ops tell of shapes and dtypes, and what they refuse."""

from __future__ import annotations

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.nn import functional as F


def meta(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.empty(shape, dtype=dtype, device="meta")


def whole(*shape: int) -> torch.Tensor:
    return meta(*shape, dtype=torch.int64)


SHAPES = {
    "quantile": (lambda: torch.quantile(meta(3, 4), meta(2), 0), (2, 4)),
    "quantile of a number": (lambda: torch.quantile(meta(3, 4), 0.5), ()),
    "nanquantile": (lambda: torch.nanquantile(meta(3, 4), 0.5, 1), (3,)),
    "cumprod_backward": (lambda: torch.ops.aten.cumprod_backward(meta(3, 4), meta(3, 4), 0, meta(3, 4)), (3, 4)),
    "cross_entropy": (lambda: F.cross_entropy(meta(3, 4), whole(3), meta(4), label_smoothing=0.1), ()),
    "repeat_interleave": (lambda: torch.repeat_interleave(meta(3), whole(3), output_size=7), (7,)),
    "repeat_interleave by known counts": (lambda: torch.repeat_interleave(meta(3), torch.tensor([1, 2, 3])), (6,)),
    "packed": (lambda: torch._pack_padded_sequence(meta(3, 2, 4), torch.tensor([3, 2]), False)[0], (5, 4)),
    "packed, batch first": (lambda: torch._pack_padded_sequence(meta(2, 3), torch.tensor([3, 1]), True)[0], (4,)),
}


@pytest.mark.parametrize("name", SHAPES)
def test_shapes(name):
    call, shape = SHAPES[name]
    result = call()
    assert result.is_meta and result.shape == shape


def test_range():
    with pytest.warns(UserWarning, match="torch.range is deprecated") as caught:
        assert torch.range(1, 5, device="meta").shape == (5,)
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: meta(3).add_(meta(4)), RuntimeError, "The size of tensor a .3. must match the size of tensor b .4."),
        (lambda: meta(3).mul_(meta(2, 3)), RuntimeError, r"output with shape \[3\] doesn't match the broadcast shape \[2, 3\]"),
        (lambda: whole(3).div_(meta(3)), RuntimeError, "result type Float can't be cast to the desired output type Long"),
        (lambda: meta(3, 4).addmm_(meta(3, 2), meta(3, 4)), RuntimeError, "mat1 and mat2 shapes cannot be multiplied"),
        (lambda: meta(3).masked_fill_(meta(4) > 0, 1), RuntimeError, "must match"),
        (lambda: torch.quantile(meta(3), torch.tensor([0.5])), RuntimeError, "q tensor must be on the same device"),
        (lambda: torch.repeat_interleave(meta(3), whole(3)), RuntimeError, "without output_size"),
        (lambda: torch._pack_padded_sequence(meta(3, 2), whole(2), False), RuntimeError, "1D CPU int64 tensor"),
        (lambda: torch.nonzero(meta(3)), NotImplementedError, "aten::nonzero: what it returns depends on the values"),
    ],
)
def test_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_in_place_ops_return_their_tensor():
    x = meta(3, 4)
    assert x.add_(meta(4)) is x and x.clamp_(0, 1) is x and x.copy_(meta(1, 4)) is x


IMAGES = {
    "add": (lambda t, plain: t + 1, (192, 1, 24, 3)),
    "the first decides": (lambda t, plain: t * plain, (192, 1, 24, 3)),
    "of a view": (lambda t, plain: t[:, :2] * 2, (128, 1, 16, 2)),
    "clone": (lambda t, plain: t.clone(), (192, 1, 24, 3)),
    "clone, row-major": (lambda t, plain: t.clone(memory_format=torch.contiguous_format), (192, 64, 8, 1)),
    "contiguous": (lambda t, plain: t.contiguous(), (192, 64, 8, 1)),
    "to": (lambda t, plain: plain.to(memory_format=torch.channels_last), (192, 1, 24, 3)),
    "cast": (lambda t, plain: t.double(), (192, 1, 24, 3)),
    "zeros_like": (lambda t, plain: torch.zeros_like(t), (192, 1, 24, 3)),
    "ones_like, row-major": (lambda t, plain: torch.ones_like(t, memory_format=torch.contiguous_format), (192, 64, 8, 1)),
    "randn_like": (lambda t, plain: torch.randn_like(plain, memory_format=torch.channels_last), (192, 1, 24, 3)),
    "max_pool2d": (lambda t, plain: F.max_pool2d(t, 2), (48, 1, 12, 3)),
    "interpolate": (lambda t, plain: F.interpolate(t, scale_factor=2), (768, 1, 48, 3)),
    "permuted": (lambda t, plain: t.permute(3, 2, 1, 0) * 2, (3, 24, 1, 192)),
}


@pytest.mark.parametrize("device", ["cpu", "meta"])
@pytest.mark.parametrize("name", IMAGES)
def test_results_lie_as_with_memory(name, device):
    call, strides = IMAGES[name]
    plain = torch.empty(4, 3, 8, 8, device=device)
    images = torch.empty(4, 3, 8, 8, device=device, memory_format=torch.channels_last)
    assert call(images, plain).stride() == strides


def test_out_keeps_its_strides_unless_it_is_resized():
    plain, images = meta(4, 3, 8, 8), torch.empty(4, 3, 8, 8, device="meta", memory_format=torch.channels_last)
    kept = torch.empty(4, 3, 16, 16, device="meta", memory_format=torch.channels_last)
    assert torch._C._nn.upsample_nearest2d(plain, (16, 16), out=kept).stride() == (768, 1, 48, 3)
    assert torch._C._nn.upsample_nearest2d(images, (16, 16), out=meta(4, 3, 16, 16)).stride() == (768, 256, 16, 1)
    assert torch._C._nn.upsample_nearest2d(images, (16, 16), out=meta(0)).stride() == (768, 1, 48, 3)
