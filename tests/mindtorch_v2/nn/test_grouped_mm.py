"""F.grouped_mm: products group by group. Figures are torch's."""

from __future__ import annotations

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.nn.functional import grouped_mm

A = torch.arange(32.0).reshape(4, 8) / 10
B = torch.arange(96.0).reshape(3, 8, 4) / 50


def ends(*offs):
    return torch.tensor(offs, dtype=torch.int32)


def test_rows_in_groups_and_gradients():
    a, b = A.clone().requires_grad_(), B.clone().requires_grad_()
    product = grouped_mm(a, b, offs=ends(1, 1, 4))
    expected = [[1.12, 1.176, 1.232, 1.288], [14.688, 14.872, 15.056, 15.24]]
    torch.testing.assert_close(product[:2], torch.tensor(expected))
    product.pow(2).sum().backward()
    torch.testing.assert_close(b.grad.sum((1, 2)), torch.tensor([26.9696, 0.0, 10454.4385]))
    torch.testing.assert_close(a.grad[1, :3], torch.tensor([156.86, 166.44, 176.01]), atol=5e-3, rtol=0)


def test_rows_behind_the_last_group_are_zero():
    assert grouped_mm(A, B, offs=ends(1, 1, 2))[2:].tolist() == [[0.0] * 4] * 2


def test_columns_and_sums_in_groups():
    assert grouped_mm(torch.ones(3, 4, 8), B).shape == (3, 4, 4)
    wide = grouped_mm(torch.ones(3, 4, 8), torch.ones(8, 12), offs=ends(4, 8, 12))
    assert wide.tolist() == [[8.0] * 12] * 4
    sums = grouped_mm(torch.arange(48.0).reshape(4, 12), torch.ones(12, 8), offs=ends(4, 8, 12))
    assert sums[:, :, 0].tolist() == [[6, 54, 102, 150], [22, 70, 118, 166], [38, 86, 134, 182]]


@pytest.mark.parametrize(
    ("args", "options", "words"),
    [
        ((A, B), {}, "^Have to provide offsets if there is a 2d matrix, or no offset if both matrices are 3d$"),
        ((torch.ones(3, 4, 8), B), {"offs": ends(1, 1, 4)}, "^Have to provide offsets"),
        ((A, B[:, :4]), {"offs": ends(1, 1, 4)}, "^contraction dimension of mat_a and mat_b must match$"),
        ((A.long(), B.long()), {"offs": ends(1, 1, 4)}, "^Expected mat_a to be Float32, BFloat16 or Float16 matrix, got Long$"),
        ((A[0], B), {"offs": ends(1, 1, 4)}, "^mat_a has to be 2 or 3d$"),
        ((A, B), {"offs": ends(1, 1, 4).long()}, "^Offsets have to be int32$"),
        ((A, B), {"offs": ends(1, 4)}, "^matrix batch sizes have to match$"),
        ((A, B), {"offs": ends(1, 1, 4), "bias": torch.ones(4)}, "^Bias not supported yet$"),
        ((A, B), {"offs": ends(1, 1, 4), "out_dtype": torch.bfloat16}, "output dtype must match"),
        ((A, B.half()), {"offs": ends(1, 1, 4)}, "same dtype"),
    ],
)
def test_refusals(args, options, words):
    with pytest.raises(RuntimeError, match=words):
        grouped_mm(*args, **options)
