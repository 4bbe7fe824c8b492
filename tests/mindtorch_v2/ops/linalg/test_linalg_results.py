"""Linear systems that do not fit, and the names of results: what PyTorch 2.13 answered."""

from __future__ import annotations

import pytest

import mindtorch_v2 as torch

A = torch.tensor([[4.0, 1.0], [1.0, 3.0]])
B = torch.tensor([[1.0], [2.0]])
THREE = torch.stack([A, A, A + 1])


@pytest.mark.parametrize("solve", [torch.linalg.solve, lambda *args, **named: torch.linalg.solve_ex(*args, **named).result])
@pytest.mark.parametrize(
    ("matrix", "right", "left", "words"),
    [
        (A, torch.ones(3), True, "linalg.solve: Incompatible shapes of A and B for the equation AX = B (2x2 and 3x1)"),
        (A, torch.ones(4), True, "linalg.solve: Incompatible shapes of A and B for the equation AX = B (2x2 and 4x1)"),
        (A, torch.ones(0), True, "linalg.solve: Incompatible shapes of A and B for the equation AX = B (2x2 and 0x1)"),
        (A, torch.ones(2), False, "linalg.solve: Incompatible shapes of A and B for the equation XA = B (2x2 and 2x1)"),
        (THREE, torch.ones(3), True, "linalg.solve: Incompatible shapes of A and B for the equation AX = B (2x2 and 3x1)"),
        (THREE, torch.ones(3, 2), False, "linalg.solve: Incompatible shapes of A and B for the equation XA = B (2x2 and 2x1)"),
        (THREE, torch.ones(3, 3), True, "linalg.solve: Incompatible shapes of A and B for the equation AX = B (2x2 and 3x3)"),
        (
            THREE,
            torch.ones(4, 2, 1),
            True,
            "The size of tensor a (4) must match the size of tensor b (3) at non-singleton dimension 0",
        ),
        (A, torch.tensor(1.0), True, "linalg.solve: The input tensor B must have at least 2 dimensions."),
    ],
)
def test_systems_that_do_not_fit(solve, matrix, right, left, words):
    with pytest.raises(RuntimeError) as raised:
        solve(matrix, right, left=left)
    assert words in str(raised.value)


def test_a_system_of_tensors_without_memory_is_checked_too():
    matrices = torch.ones(4, 2, 2, device="meta")
    assert torch.linalg.solve(matrices, torch.ones(2, device="meta")).shape == (4, 2)
    with pytest.raises(RuntimeError, match="Incompatible shapes"):
        torch.linalg.solve(matrices, torch.ones(3, device="meta"))


def test_systems_that_fit():
    assert torch.linalg.solve(A, torch.ones(2)).tolist() == pytest.approx([0.1818, 0.2727], abs=1e-4)
    assert torch.linalg.solve(THREE, torch.ones(2))[2].tolist() == pytest.approx([0.125, 0.1875])
    assert torch.linalg.solve(A, torch.ones(3, 2), left=False).shape == (3, 2)


@pytest.mark.parametrize(
    ("call", "kind", "names"),
    [
        (lambda: torch.linalg.slogdet(A), "linalg_slogdet", ("sign", "logabsdet")),
        (lambda: torch.slogdet(A), "slogdet", ("sign", "logabsdet")),
        (lambda: A.slogdet(), "slogdet", ("sign", "logabsdet")),
        (lambda: torch.linalg.svd(A), "linalg_svd", ("U", "S", "Vh")),
        (lambda: torch.svd(A), "svd", ("U", "S", "V")),
        (lambda: torch.svd(A, compute_uv=False), "svd", ("U", "S", "V")),
        (lambda: torch.linalg.lu_factor(A), "linalg_lu_factor", ("LU", "pivots")),
        (lambda: torch.triangular_solve(B, A), "triangular_solve", ("solution", "cloned_coefficient")),
        (lambda: torch.linalg.solve_ex(A, B), "linalg_solve_ex", ("result", "info")),
        (lambda: torch.linalg.eigh(A), "linalg_eigh", ("eigenvalues", "eigenvectors")),
        (lambda: torch.linalg.qr(A), "linalg_qr", ("Q", "R")),
        (lambda: torch.qr(A), "qr", ("Q", "R")),
    ],
)
def test_results_have_names(call, kind, names):
    made = call()
    assert type(made) is getattr(torch.return_types, kind)
    assert type(made).__name__ == kind and type(made)._fields == names
    assert all(getattr(made, name) is part for name, part in zip(names, made, strict=True))


def test_results_are_printed_with_their_names():
    assert repr(torch.linalg.slogdet(A)) == "torch.return_types.linalg_slogdet(\nsign=tensor(1.),\nlogabsdet=tensor(2.3979))"
    assert repr(torch.linalg.lu_factor(A)) == (
        "torch.return_types.linalg_lu_factor(\nLU=tensor([[4.0000, 1.0000],\n        [0.2500, 2.7500]]),\n"
        "pivots=tensor([1, 2], dtype=torch.int32))"
    )
    assert repr(torch.linalg.solve_ex(A, B)) == (
        "torch.return_types.linalg_solve_ex(\nresult=tensor([[0.0909],\n        [0.6364]]),\ninfo=tensor(0, dtype=torch.int32))"
    )


def test_names_lead_to_gradients():
    x = A.clone().requires_grad_()
    torch.linalg.slogdet(x).logabsdet.backward()
    assert x.grad.flatten().tolist() == pytest.approx([0.2727, -0.0909, -0.0909, 0.3636], abs=1e-4)
