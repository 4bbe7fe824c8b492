"""timm: small images through twenty models, and their gradients."""

import pytest
import torch
from weights import fill, normal

pytest.importorskip("torchvision")  # timm imports it
import timm

# With arguments that make them small, where they take some.
SMALL = dict(embed_dim=32, depth=2, num_heads=4)
MODELS = {
    "vit_tiny_patch16_224": SMALL | dict(img_size=32, patch_size=8),
    "deit_tiny_patch16_224": SMALL | dict(img_size=32, patch_size=8),
    "beit_base_patch16_224": SMALL | dict(img_size=32, patch_size=8),
    "eva02_tiny_patch14_224": SMALL | dict(img_size=32, patch_size=8),
    "cait_xxs24_224": SMALL | dict(img_size=32, patch_size=8),
    "xcit_nano_12_p16_224": SMALL | dict(img_size=32),
    "mixer_s16_224": dict(img_size=32),
    "resmlp_12_224": dict(img_size=32),
    "gmlp_ti16_224": dict(img_size=32),
    "lcnet_050": {},
    "convnext_atto": dict(depths=(1, 1, 1, 1), dims=(8, 16, 24, 32)),
    "convnextv2_atto": dict(depths=(1, 1, 1, 1), dims=(8, 16, 24, 32)),
    "resnet18": {},
    "regnetx_002": {},
    "mobilenetv3_small_050": {},
    "mobilenetv2_035": {},
    "efficientnet_lite0": {},
    "ghostnet_050": {},
    "repvgg_a0": {},
    "poolformer_s12": {},
}


@pytest.mark.parametrize("name", MODELS)
def test_model(figures, name):
    model = fill(timm.create_model(name, num_classes=5, **MODELS[name])).eval()
    output = model(normal("images", 2, 3, 32, 32))
    figures.check("output", output)
    output.pow(2).mean().backward()
    gradients = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
    figures.check("gradients", len(gradients))
    figures.check("first gradient", gradients[0])
    figures.check("gradient size", sum(g.double().pow(2).sum() for g in gradients).sqrt().item())
    assert torch.is_tensor(model.forward_features(normal("images", 1, 3, 32, 32)))
