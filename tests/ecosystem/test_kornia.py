"""kornia: color, filters, geometry, augmentation, losses and features of images."""

import pytest
import torch
from weights import normal

pytest.importorskip("kornia", reason="kornia is not installed")
import kornia as K
import kornia.augmentation as A


def image(name="image", *shape):
    return normal(name, *(shape or (2, 3, 24, 32))).sigmoid()


COLOR = ["rgb_to_grayscale", "rgb_to_hsv", "rgb_to_lab", "rgb_to_luv", "rgb_to_xyz", "rgb_to_ycbcr", "rgb_to_yuv", "rgb_to_hls"]


@pytest.mark.parametrize("name", COLOR)
def test_color(figures, name):
    x = image().requires_grad_()
    result = getattr(K.color, name)(x)
    result.square().sum().backward()
    figures.check("result", result)
    figures.check("gradient", x.grad, tolerance=1e-3)


FILTERS = {
    "bilateral": lambda x: K.filters.bilateral_blur(x, (3, 3), 0.1, (1.5, 1.5)),
    "box": lambda x: K.filters.box_blur(x, (3, 3)),
    "canny": lambda x: K.filters.canny(x)[0],
    "gaussian": lambda x: K.filters.gaussian_blur2d(x, (5, 5), (1.5, 1.5)),
    "laplacian": lambda x: K.filters.laplacian(x, 3),
    "median": lambda x: K.filters.median_blur(x, (3, 3)),
    "motion": lambda x: K.filters.motion_blur(x, 5, 35.0, 0.5),
    "sobel": K.filters.sobel,
    "unsharp": lambda x: K.filters.unsharp_mask(x, (3, 3), (1.5, 1.5)),
}


@pytest.mark.parametrize("name", FILTERS)
def test_filters(figures, name):
    x = image().requires_grad_()
    result = FILTERS[name](x)
    figures.check("result", result)
    if name not in ("canny", "median"):
        result.square().sum().backward()
        figures.check("gradient", x.grad, tolerance=1e-3)


def test_geometry(figures):
    x = image()
    matrix = K.geometry.get_rotation_matrix2d(torch.tensor([[16.0, 12.0]] * 2), torch.tensor([30.0, -15.0]), torch.ones(2, 2))
    figures.check("warp", K.geometry.warp_affine(x, matrix, (24, 32)))
    points = torch.tensor([[[0.0, 0], [31, 0], [31, 23], [0, 23]]] * 2)
    moved = points + normal("moved", 2, 4, 2)
    homography = K.geometry.get_perspective_transform(points, moved)
    figures.check("homography", homography, tolerance=1e-3)
    figures.check("perspective", K.geometry.warp_perspective(x, homography, (24, 32)), tolerance=1e-3)
    figures.check("resize", K.geometry.resize(x, (12, 16)))
    figures.check("rotate", K.geometry.rotate(x, torch.tensor([20.0, 40.0])))
    axis = normal("axis", 3, 3)
    rotation = K.geometry.axis_angle_to_rotation_matrix(axis)
    figures.check("rotation", rotation)
    figures.check("quaternion", K.geometry.rotation_matrix_to_quaternion(rotation))
    first, second = normal("p", 1, 12, 2), normal("q", 1, 12, 2)
    figures.check("direct linear transform", K.geometry.find_homography_dlt(first, second).abs(), tolerance=1e-2)


def test_augmentation_keeps_torch_numbers(figures):
    chain = A.AugmentationSequential(
        A.RandomHorizontalFlip(p=0.5),
        A.RandomAffine(20.0, (0.1, 0.1), p=1.0),
        A.ColorJitter(0.1, 0.1, 0.1, 0.1, p=1.0),
        A.RandomErasing(p=0.5),
        data_keys=["input", "mask"],
    )
    torch.manual_seed(5)
    x, mask = chain(image(), (image("mask", 2, 1, 24, 32) > 0.5).float())
    figures.check("image", x, tolerance=1e-3)
    figures.check("mask", mask, tolerance=1e-3)
    figures.check("matrix", chain.transform_matrix, tolerance=1e-3)


def test_losses_and_morphology(figures):
    x, y = image(), image("other")
    labels = (image("labels", 2, 24, 32) * 3).long()
    figures.check("ssim", K.losses.ssim_loss(x, y, 5))
    figures.check("psnr", K.losses.psnr_loss(x, y, 1.0))
    figures.check("dice", K.losses.dice_loss(normal("logits", 2, 3, 24, 32), labels))
    figures.check("focal", K.losses.focal_loss(normal("logits", 2, 3, 24, 32), labels, 0.5, reduction="mean"))
    figures.check("tv", K.losses.total_variation(x))
    figures.check("opened", K.morphology.opening(x, torch.ones(3, 3)))
    figures.check("distance", K.contrib.distance_transform((x > 0.5).float()), tolerance=1e-3)
    figures.check("equalized", K.enhance.equalize(x), tolerance=1e-3)
    figures.check("gamma", K.enhance.adjust_gamma(x, 1.5))


def test_features(figures):
    x = image("corners", 1, 1, 32, 32)
    figures.check("harris", K.feature.harris_response(x))
    figures.check("sift", K.feature.SIFTDescriptor(16, 4, 4)(image("patches", 3, 1, 16, 16)), tolerance=1e-3)
    figures.check("matches", K.feature.match_nn(normal("a", 5, 8), normal("b", 6, 8)))
