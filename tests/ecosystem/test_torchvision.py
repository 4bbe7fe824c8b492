"""torchvision: models, transforms and ops. Its compiled ops are written in Python here; images are decoded by Pillow."""

import numpy as np
import pytest
import torch
from weights import fill, generator, normal

pytest.importorskip("torchvision", reason="torchvision is not installed")
import torchvision
from PIL import Image
from torchvision import ops, tv_tensors
from torchvision.models.feature_extraction import create_feature_extractor
from torchvision.transforms import functional as TF
from torchvision.transforms import v2


def picture(name="picture", height=24, width=32):
    return Image.fromarray(generator(name).integers(0, 256, (height, width, 3), dtype=np.uint8))


@pytest.mark.parametrize("name", ["resnet18", "mobilenet_v3_small", "shufflenet_v2_x0_5", "squeezenet1_1", "efficientnet_b0"])
def test_models(figures, name):
    model = fill(torchvision.models.get_model(name, weights=None, num_classes=10)).train()
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    for module in model.modules():
        if type(module).__name__ == "StochasticDepth":
            module.p = 0.0
    x, y = normal("x", 2, 3, 64, 64), torch.tensor([1, 7])
    loss = torch.nn.functional.cross_entropy(model(x), y)
    loss.backward()
    figures.check("loss", loss.item())
    figures.check("gradient", next(iter(model.parameters())).grad, tolerance=1e-3)
    figures.check("output", model.eval()(x), tolerance=1e-3)


def test_vision_transformer(figures):
    model = torchvision.models.VisionTransformer(
        image_size=32, patch_size=8, num_layers=2, num_heads=2, hidden_dim=16, mlp_dim=32, num_classes=5
    )
    figures.check("output", fill(model).eval()(normal("x", 2, 3, 32, 32)))


def test_boxes(figures):
    boxes = normal("boxes", 40, 4).abs() * 10
    boxes = torch.cat([boxes[:, :2], boxes[:, :2] + boxes[:, 2:] + 1], 1)
    values = normal("scores", 40).sigmoid()
    figures.check("nms", ops.nms(boxes, values, 0.4))
    figures.check("batched", ops.batched_nms(boxes, values, torch.arange(40) % 3, 0.4))
    figures.check("iou", ops.box_iou(boxes[:5], boxes[5:9]))
    figures.check("giou", ops.generalized_box_iou_loss(boxes[:5], boxes[5:10], reduction="mean"))
    figures.check("convert", ops.box_convert(boxes[:4], "xyxy", "cxcywh"))


@pytest.mark.parametrize("aligned", [False, True])
@pytest.mark.parametrize("ratio", [-1, 2])
def test_roi_align(figures, aligned, ratio):
    maps = normal("maps", 2, 3, 12, 16).requires_grad_()
    rois = torch.tensor([[0, 1.0, 2.0, 9.0, 8.0], [1, -2.0, 3.5, 20.0, 30.0], [1, 4.0, 4.0, 4.2, 4.1]])
    result = ops.roi_align(maps, rois, (3, 4), spatial_scale=0.5, sampling_ratio=ratio, aligned=aligned)
    (result * normal("g", *result.shape)).sum().backward()
    figures.check("result", result)
    figures.check("gradient", maps.grad)


def test_roi_pool(figures):
    maps = normal("maps", 2, 3, 12, 16).requires_grad_()
    rois = torch.tensor([[0, 1.0, 2.0, 9.0, 8.0], [1, 3.0, 3.5, 20.0, 30.0]])
    result = ops.roi_pool(maps, rois, (3, 2), spatial_scale=0.5)
    (result * normal("g", *result.shape)).sum().backward()
    figures.check("result", result)
    figures.check("gradient", maps.grad)


def test_faster_rcnn(figures):
    model = torchvision.models.detection.fasterrcnn_mobilenet_v3_large_320_fpn(
        weights=None, weights_backbone=None, num_classes=4, min_size=64, max_size=96
    )
    fill(model)
    target = {"boxes": torch.tensor([[5.0, 8.0, 40.0, 44.0]]), "labels": torch.tensor([2])}
    losses = model.train()([normal("x", 3, 64, 80).sigmoid()], [target])
    figures.check("losses", {name: value.item() for name, value in losses.items()}, tolerance=1e-2)


def test_transforms_of_pictures(figures):
    chain = v2.Compose(
        [
            v2.Resize(20),
            v2.CenterCrop(16),
            v2.ToImage(),
            v2.ToDtype(torch.float32, scale=True),
            v2.Normalize([0.5, 0.4, 0.3], [0.2, 0.2, 0.2]),
        ]
    )
    figures.check("chain", chain(picture()))
    torch.manual_seed(3)
    random = v2.Compose([v2.PILToTensor(), v2.RandomCrop(12), v2.RandomHorizontalFlip(), v2.ColorJitter(0.2, 0.2, 0.2)])
    figures.check("random", [random(picture()) for _ in range(3)])


def test_transforms_of_tensors(figures):
    image = normal("image", 3, 20, 24).sigmoid()
    figures.check("resize", TF.resize(image, [10, 12], antialias=True))
    figures.check("rotate", TF.rotate(image, 30.0))
    figures.check("blur", TF.gaussian_blur(image, [3, 5]))
    figures.check("hue", TF.adjust_hue(image, 0.2))
    figures.check("contrast", TF.autocontrast(image))
    figures.check("affine", TF.affine(image, 15.0, [2, 3], 1.2, [4.0]))
    figures.check(
        "perspective", TF.perspective(image, [[0, 0], [23, 0], [23, 19], [0, 19]], [[2, 1], [20, 3], [22, 18], [1, 17]])
    )


def test_boxes_follow_the_picture(figures):
    boxes = tv_tensors.BoundingBoxes(torch.tensor([[2, 3, 10, 12.0]]), format="XYXY", canvas_size=(20, 24))
    image = tv_tensors.Image(normal("image", 3, 20, 24))
    image, boxes = v2.Compose([v2.RandomHorizontalFlip(1.0), v2.Resize((10, 12))])(image, boxes)
    assert isinstance(boxes, tv_tensors.BoundingBoxes)
    assert boxes.canvas_size == (10, 12)
    figures.check("boxes", boxes.as_subclass(torch.Tensor))
    figures.check("image", image.as_subclass(torch.Tensor))


def test_grids_and_features(figures):
    figures.check("grid", torchvision.utils.make_grid(normal("x", 5, 3, 6, 6), nrow=3, normalize=True))
    drawn = torchvision.utils.draw_bounding_boxes(torch.zeros(3, 20, 20, dtype=torch.uint8), torch.tensor([[2, 2, 9, 9]]))
    figures.check("drawn", drawn)
    model = fill(torchvision.models.resnet18(weights=None)).eval()
    extractor = create_feature_extractor(model, {"layer2": "mid", "avgpool": "end"})
    figures.check("features", extractor(normal("y", 1, 3, 48, 48)), tolerance=1e-3)
