"""torch.lobpcg: eigenvalues and eigenvectors of large symmetric matrices, and their derivatives. Figures are torch's."""

from __future__ import annotations

import pytest

import mindtorch_v2 as torch


def matrix(rows: int = 30) -> torch.Tensor:
    return torch.diag(torch.arange(1.0, rows + 1)).double() + 0.01


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(0)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"k": 3}, [30, 29, 28]),
        ({"k": 3, "largest": False}, [1, 2, 3]),
        ({"k": 1, "method": "basic"}, [30]),
        ({"k": 2, "n": 4}, [30, 29]),
        ({"X": torch.arange(60.0).sin().reshape(30, 2).double()}, [30, 29]),
        ({"k": 2, "B": 2 * torch.eye(30).double()}, [15, 14.5]),
        ({"k": 2, "largest": False, "iK": torch.diag(1 / torch.arange(1.0, 31.0)).double()}, [1, 2]),
        ({"k": 2, "ortho_iparams": {"i_max": 3}, "ortho_fparams": {"tol_drop": 1e-12}}, [30, 29]),
    ],
)
def test_pairs_solve_the_problem(options, expected):
    A = torch.diag(torch.arange(1.0, 31.0)).double()
    values, vectors = torch.lobpcg(A, tol=1e-9, **options)
    torch.testing.assert_close(values, torch.tensor(expected).double(), atol=1e-6, rtol=0)
    metric = options.get("B", torch.eye(30).double())
    torch.testing.assert_close(A @ vectors, metric @ vectors * values, atol=1e-5, rtol=0)
    torch.testing.assert_close(vectors.mT @ metric @ vectors, torch.eye(len(values)).double(), atol=1e-8, rtol=0)


def test_agrees_with_the_whole_decomposition():
    noise = torch.randn(40, 40, dtype=torch.float64)
    values = torch.lobpcg(noise @ noise.mT, k=4, tol=1e-10)[0]
    torch.testing.assert_close(values, torch.linalg.eigvalsh(noise @ noise.mT)[-4:].flip(0))


def test_sparse_matrices_and_batches():
    A = matrix()
    expected = torch.linalg.eigvalsh(A)[-2:].flip(0)
    torch.testing.assert_close(torch.lobpcg(A.to_sparse(), k=2, tol=1e-9)[0], expected)
    values, vectors = torch.lobpcg(torch.stack([A, 2 * A]), k=2, tol=1e-9)
    torch.testing.assert_close(values, torch.stack([expected, 2 * expected]))
    assert vectors.shape == (2, 30, 2)


def test_derivative_of_eigenvalues():
    A = torch.diag(torch.arange(1.0, 31.0)).double().requires_grad_()
    values, _ = torch.lobpcg(A, k=2, tol=1e-10)
    (values * torch.tensor([1.0, 2.0])).sum().backward()
    torch.testing.assert_close(A.grad, torch.diag(torch.tensor([0.0] * 28 + [2.0, 1.0])).double(), atol=1e-6, rtol=0)


def test_derivative_of_eigenvectors():
    A = matrix().requires_grad_()
    _, vectors = torch.lobpcg(A, k=2, tol=1e-10, niter=2000)
    (vectors.abs() ** 3).sum().backward()
    expected = [[-0.0004, -0.0155, -0.0040], [-0.0155, -0.0003, -0.0306], [-0.0040, -0.0306, 0.0007]]
    torch.testing.assert_close(A.grad[-3:, -3:], torch.tensor(expected).double(), atol=6e-5, rtol=0)


@pytest.mark.parametrize("largest", [True, False])
def test_derivative_is_that_of_the_whole_decomposition(largest):
    weight = torch.randn(12, 3, dtype=torch.float64).abs()
    grads = []
    for whole in (False, True):
        A = (matrix(12) + 0.1).requires_grad_()
        if whole:
            values, vectors = torch.linalg.eigh((A + A.mT) / 2)
            chosen = slice(-3, None) if largest else slice(0, 3)
            values, vectors = values[chosen], vectors[:, chosen]
            values, vectors = (values.flip(0), vectors.flip(1)) if largest else (values, vectors)
        else:
            values, vectors = torch.lobpcg(A, k=3, tol=1e-13, largest=largest)
        (values.sum() + (vectors**2 * weight).sum()).backward()
        grads.append(A.grad)
    torch.testing.assert_close(*grads, atol=1e-7, rtol=1e-6)


def test_tracker_sees_every_step_and_can_stop():
    seen = []

    def track(worker):
        seen.append((worker.ivars["istep"], worker.tvars["rerr"].shape, worker.X.shape))
        worker.bvars["force_stop"] = len(seen) == 3

    torch.lobpcg(matrix(), k=2, tracker=track)
    assert seen == [(1, (2,), (30, 2)), (2, (2,), (30, 2)), (3, (2,), (30, 2))]


def test_number_of_steps():
    seen = []
    torch.lobpcg(matrix(), k=2, niter=4, tol=1e-15, tracker=lambda worker: seen.append(worker.ivars["istep"]))
    assert seen == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda: torch.lobpcg(matrix(), k=12), ValueError, r"A rows \(=30\) is smaller than 3 x .* eigenpairs \(=12\)$"),
        (lambda: torch.lobpcg(torch.ones(3, 4)), AssertionError, r"^A must be square, got shape torch\.Size\(\[3, 4\]\)$"),
        (lambda: torch.lobpcg(matrix().long(), k=2), RuntimeError, "^expected m1 and m2 to have the same dtype, but got: "),
        (lambda: torch.lobpcg(matrix() + 0j, k=2), RuntimeError, r"c10::complex<double> != float$"),
        (lambda: torch.lobpcg(matrix(), X=torch.ones(29, 2)), AssertionError, "^X shape mismatch: "),
        (lambda: torch.lobpcg(matrix(), k=0), ValueError, "at least 1"),
        (lambda: torch.lobpcg(matrix(), k=1, ortho_iparams={"j_max": 3}), NotImplementedError, r"^torch\.lobpcg: j_max: "),
    ],
)
def test_refusals(call, kind, words):
    with pytest.raises(kind, match=words):
        call()


def test_no_derivative_with_a_metric():
    A = matrix().requires_grad_()
    values, _ = torch.lobpcg(A, k=2, B=2 * torch.eye(30).double())
    with pytest.raises(ValueError, match=r"^lobpcg\.backward does not support backward with B != I yet\.$"):
        values.sum().backward()
