"""einops: rearranging by notation, and its layers."""

import pytest
import torch
from weights import fill, normal

pytest.importorskip("einops", reason="einops is not installed")
from einops import einsum, pack, rearrange, reduce, repeat, unpack
from einops.layers.torch import EinMix, Rearrange, Reduce


def test_functions_and_layers(figures):
    x = normal("x", 2, 3, 8, 8).requires_grad_()
    figures.check("patches", rearrange(x, "b c (h p) (w q) -> b (h w) (p q c)", p=4, q=4))
    figures.check("mean", reduce(x, "b c (h 2) (w 2) -> b c h w", "mean"))
    figures.check("max", reduce(x, "b c h w -> b c", "max"))
    figures.check("repeat", repeat(x, "b c h w -> b c (h two) w", two=2))
    figures.check("einsum", einsum(x, normal("w", 3, 5), "b c h w, c d -> b d h w"))
    packed, shapes = pack([x, normal("y", 2, 4)], "b *")
    figures.check("packed", packed)
    assert unpack(packed, shapes, "b *")[0].shape == x.shape
    mix = EinMix("b t c -> b t d", weight_shape="c d", bias_shape="d", c=8, d=4)
    layers = torch.nn.Sequential(Rearrange("b c h w -> b (c h) w"), mix, Reduce("b t d -> b d", "sum"))
    result = fill(layers)(x)
    result.square().sum().backward()
    figures.check("layers", result)
    figures.check("gradient", x.grad)
