"""Gradients for complex tensors, first and second, against differences: products, convolutions, distances, transforms."""

from __future__ import annotations

import numpy as np
import pytest

import mindtorch_v2 as torch

F = torch.nn.functional
BETA, ALPHA = 1 + 2j, 2 - 1j


def made(seed, *shape):
    number = np.arange(np.prod(shape)).reshape(shape)
    return torch.tensor(np.sin(number * 0.7 + seed) + 1j * np.cos(number * 1.3 + 2 * seed) + 0.1 * seed)


CASES = {
    "addmm": (lambda a, b, c: torch.addmm(a, b, c, beta=BETA, alpha=ALPHA), (2,), (3, 4), (4, 2)),
    "addbmm": (lambda a, b, c: torch.addbmm(a, b, c, beta=BETA, alpha=ALPHA), (2,), (2, 3, 4), (2, 4, 2)),
    "baddbmm": (lambda a, b, c: torch.baddbmm(a, b, c, beta=BETA, alpha=ALPHA), (2,), (2, 3, 4), (2, 4, 2)),
    "addmv": (lambda a, b, c: torch.addmv(a, b, c, beta=BETA, alpha=ALPHA), (3,), (3, 4), (4,)),
    "addr": (lambda a, b, c: torch.addr(a, b, c, beta=BETA, alpha=ALPHA), (3, 4), (3,), (4,)),
    "vdot": (torch.vdot, (4,), (4,)),
    "einsum": (lambda a, b, c: torch.einsum("ij,jk,kl->il", a, b, c), (2, 3), (3, 2), (2, 2)),
    "linalg.cross": (torch.linalg.cross, (2, 3), (2, 3)),
    "bilinear": (F.bilinear, (2, 3), (2, 2), (2, 3, 2), (2,)),
    "conv1d": (F.conv1d, (2, 2, 5), (3, 2, 2), (3,)),
    "conv1d of one kernel per channel": (lambda a, b: F.conv1d(a, b, groups=2, stride=2, padding=1), (1, 2, 5), (2, 1, 3)),
    "conv1d of single points": (F.conv1d, (2, 2, 4), (2, 2, 1)),
    "conv_transpose1d": (lambda a, b: F.conv_transpose1d(a, b, stride=2), (1, 2, 3), (2, 3, 2)),
    "conv2d": (lambda a, b: F.conv2d(a, b, padding=1), (1, 2, 3, 3), (2, 2, 2, 2)),
    "conv_tbc": (torch.conv_tbc, (4, 2, 3), (2, 3, 2), (2,)),
    "dist": (torch.dist, (3, 2), (3, 2)),
    "dist of the third power": (lambda a, b: torch.dist(a, b, 3), (3, 2), (2,)),
    "fft": (lambda a: torch.fft.fft(a, dim=0), (3, 4)),
    "irfftn": (lambda a: torch.fft.irfftn(a, s=(4, 5), norm="ortho"), (3, 4)),
    "hfftn": (torch.fft.hfftn, (3, 4)),
}


def loss(function, given):
    result = function(*given)
    return (result.abs() ** 2).sum() if result.is_complex() else (result * result).sum()


def scalar_of_gradients(function, given):
    """A number made of all gradients, whose own gradients are second derivatives."""
    gradients = torch.autograd.grad(loss(function, given), given, create_graph=True)
    return sum((g.real * 0.3 + g.imag * g.imag).sum() for g in gradients)


def by_differences(scalar, given, step=1e-6):
    made = []
    for which, tensor in enumerate(given):
        gradient = np.zeros(tensor.shape, complex)
        for at in np.ndindex(*tensor.shape):
            for way in (1, 1j):
                ends = []
                for sign in (step, -step):
                    array = tensor.detach().numpy().copy()
                    array[at] += sign * way
                    moved = [t.detach().requires_grad_() for t in given]
                    moved[which] = torch.tensor(array, requires_grad=True)
                    ends.append(scalar(moved).item())
                gradient[at] += way * (ends[0] - ends[1]) / (2 * step)
        made.append(gradient)
    return made


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("name", CASES)
def test_gradient_equals_differences(name, order):
    function, *shapes = CASES[name]
    given = [made(seed, *shape).requires_grad_() for seed, shape in enumerate(shapes)]

    def scalar(tensors):
        return loss(function, tensors) if order == 1 else scalar_of_gradients(function, tensors)

    got = torch.autograd.grad(scalar(given), given)
    for expected, gradient in zip(by_differences(scalar, given), got, strict=True):
        np.testing.assert_allclose(gradient.resolve_conj().numpy(), expected, rtol=2e-4, atol=2e-4 * np.abs(expected).max())


@pytest.mark.parametrize("part", [torch.real, torch.imag])
@pytest.mark.parametrize("shape", [(0,), (1, 0, 3)])
def test_parts_of_nothing_have_gradients(part, shape):
    x = torch.zeros(shape, dtype=torch.complex64, requires_grad=True)
    part(x).sum().backward()
    assert x.grad.shape == shape and x.grad.dtype == torch.complex64


def test_view_as_complex_refuses_numbers_that_begin_between_two():
    with pytest.raises(RuntimeError) as error:
        torch.view_as_complex(torch.zeros(4, 4)[:, 1:3])
    assert str(error.value) == "Tensor must have a storage_offset divisible by 2"
