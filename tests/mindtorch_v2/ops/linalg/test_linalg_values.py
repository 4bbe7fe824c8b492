"""Factors, solutions and their gradients, and how they lie in memory: the numbers are PyTorch 2.13's."""

from __future__ import annotations

import pytest

import mindtorch_v2 as torch

linalg = torch.linalg


def matrix(*rows):
    return torch.tensor(rows)


SYMMETRIC = matrix([4.0, 1.0, 2.0], [1.0, 3.0, 0.0], [2.0, 0.0, 5.0])
LOWER = matrix([2.0, 0.0, 0.0], [1.0, 3.0, 0.0], [-1.0, 0.5, 1.0])
UPPER = LOWER.mT.contiguous()
TALL = matrix([1.0, 2.0], [3.0, 4.0], [5.0, 7.0])
TALL_COMPLEX = TALL + 1j * matrix([0.0, 1.0], [2.0, 0.0], [1.0, 1.0])
RIGHT = matrix([1.0, 0.0], [2.0, 1.0], [2.0, 3.0])
WEIGHTS = matrix([1.0, 2.0], [3.0, 5.0], [-1.0, 4.0])
SKEWED = matrix([4.0, 1.0, 2.0], [-1.0, 3.0, 0.5], [7.0, 0.0, 5.0])
WIDE, WIDE_TAU, SQUARE = matrix([1.0, 2.0, 3.0], [0.5, 4.0, 1.0]), torch.tensor([1.2, 0.3]), matrix([1.0, 2.0], [3.0, 4.0])
REFLECTORS, REFLECTOR_TAU = matrix([1 + 1j, 2], [0.5j, 4], [1, 2 - 1j]), torch.tensor([1.2 - 0.5j, 0.3j])
INDEFINITE = matrix([1.0, 4.0, 2.0], [4.0, 2.0, 1.0], [2.0, 1.0, 3.0])
HERMITIAN = matrix([1, 2 - 1j, 3j], [2 + 1j, 0, 1], [-3j, 1, 2])
PIVOTED = matrix([3 + 0j, 1], [2 + 2j, 1j], [1 + 2.7j, 2])


def same(tensor, wanted):
    assert tensor.flatten().tolist() == pytest.approx(wanted, abs=2e-4)


def counted(*tensors):
    """A number that every entry of the results has a weight of its own in."""
    return sum((t * torch.arange(1.0, 1 + t.numel()).reshape(t.shape)).sum() for t in tensors)


def ramp(tensor):
    return (tensor * torch.arange(9.0).reshape(3, 3)).sum()


def gradients(function, *inputs):
    leaves = [t.detach().clone().requires_grad_() for t in inputs]
    return torch.autograd.grad(function(*leaves), leaves, allow_unused=True)


@pytest.mark.parametrize(
    ("function", "inputs", "wanted"),
    [
        # one triangle is read and stands for both
        (
            lambda a: ramp(linalg.eigh(a, UPLO="L")[1].abs()),
            (SKEWED,),
            [[0.0645, -0.7577, -0.1159, -0.7577, -0.0857, 0.0697, -0.1159, 0.0697, 0.0212]],
        ),
        (
            lambda a: ramp(linalg.eigh(a, UPLO="U")[1].abs()),
            (SKEWED,),
            [[0.3269, 0.3231, -0.098, 0.3231, 0.0562, 0.1851, -0.098, 0.1851, -0.383]],
        ),
        (
            lambda a: (linalg.eigh(a)[1].abs() * SQUARE).sum(),
            (matrix([4, 1 - 2j], [1 + 2j, 3]),),
            [[-0.0827, 0.0083 - 0.0165j, 0.0083 + 0.0165j, 0.0827]],
        ),
        # the other triangle of a factor has a gradient as well
        (
            lambda b, l: (torch.cholesky_solve(b, l) * WEIGHTS).sum(),
            (WEIGHTS, LOWER),
            [
                [-0.4236, 2.8056, 0.4306, -0.2778, -0.9167, 4.3333],
                [-5.1875, -6.7755, -25.0914, 0.125, 0.0231, 3.1968, -7.75, -10.0278, -39.2361],
            ],
        ),
        (
            lambda b, u: (torch.cholesky_solve(b, u, upper=True) * WEIGHTS).sum(),
            (WEIGHTS, UPPER),
            [
                [-0.4236, 2.8056, 0.4306, -0.2778, -0.9167, 4.3333],
                [-5.1875, 0.125, -7.75, -6.7755, 0.0231, -10.0278, -25.0914, 3.1968, -39.2361],
            ],
        ),
        (
            lambda l: ramp(torch.cholesky_inverse(l)),
            (LOWER,),
            [[-2.0278, -2.0741, -13.4352, 0.3889, 0.3704, 2.4259, -3.6667, -3.1111, -20.7778]],
        ),
        (
            lambda u: ramp(torch.cholesky_inverse(u, True)),
            (UPPER,),
            [[-2.0278, 0.3889, -3.6667, -2.0741, 0.3704, -3.1111, -13.4352, 2.4259, -20.7778]],
        ),
        # solutions and residuals of least squares
        (
            lambda a, b: counted(*linalg.lstsq(a, b, driver="gels")[:2]),
            (TALL, RIGHT),
            [[-0.9081, -0.7143, 2.8469, -1.1429, -1.9694, 0.9286], [2.8571, 1.0, 0.5714, -3.0, -0.7143, 2.0]],
        ),
        (
            lambda a, b: counted(*linalg.lstsq(a, b, driver="gelsd")[:2]),
            (TALL, RIGHT),
            [[-0.9081, -0.7143, 2.8469, -1.1429, -1.9694, 0.9286], [2.8571, 1.0, 0.5714, -3.0, -0.7143, 2.0]],
        ),
        (
            lambda a, b: linalg.lstsq(a, b, driver="gels").residuals.sum(),
            (TALL, RIGHT[:, 0]),
            [[0.0918, -0.2143, 0.2755, -0.6429, -0.1837, 0.4286], [0.4286, 1.2857, -0.8571]],
        ),
        # reflections
        (
            lambda a, t: (linalg.householder_product(a, t).abs() * WEIGHTS).sum(),
            (REFLECTORS, REFLECTOR_TAU),
            [[0, 0, 2.2638 + 8.2424j, 0, 9.4397 + 1.1319j, 0.7449 - 0.9384j], [5.006 - 7.1065j, -2.9272 + 8.9722j]],
        ),
        (lambda a, t: linalg.householder_product(a, t).sum(), (LOWER, torch.zeros(0)), [None, None]),
        # triangular systems, and the copy of the coefficients that comes with the solution
        (
            lambda b, a: counted(*torch.triangular_solve(b, a, transpose=True)),
            (WEIGHTS, SYMMETRIC),
            [[-0.5, -0.4333, 1.0, 1.3333, 1.0, 1.2], [1.3417, 1.0833, 2.15, 4.0, 2.0833, 3.2833, 7.0, 8.0, 8.58]],
        ),
        (
            lambda b, a: counted(*torch.triangular_solve(b, a, unitriangular=True)),
            (torch.stack([WEIGHTS, WEIGHTS]), SYMMETRIC),
            [
                [1.0, 2.0, 2.0, 2.0, 3.0, 2.0, 7.0, 8.0, 2.0, 2.0, -3.0, -4.0],
                [11.0, -61.0, -17.0, 17.0, 19.0, 9.0, 23.0, 25.0, 27.0],
            ],
        ),
    ],
)
def test_gradients(function, inputs, wanted):
    for gradient, numbers in zip(gradients(function, *inputs), wanted, strict=True):
        if numbers is None:
            assert gradient is None
        else:
            same(gradient, numbers)


@pytest.mark.parametrize(
    ("left", "transpose", "product", "wanted"),
    [
        (True, True, [-2.0, -2.8, 1.05, 1.12], [[0, 0, 0, -48.48, 0, 0], [-20.125, -12.5], [-1.46, -2.5, 0.87, 1.25]]),
        (True, False, [-1.46, -2.08, 0.87, 0.76], [[0, 0, 0, -49.2, 0, 0], [-20.425, -13.7], [-2.0, -3.4, 1.05, 1.61]]),
        (False, True, [-1.04, 0.38, -2.28, 0.16], [[0, 0, 0, -52.32, 0, 0], [-27.6, -8.4], [-1.4, 0.56, -3.6, 1.19]]),
        (False, False, [-1.4, 0.56, -3.0, 0.7], [[0, 0, 0, -51.24, 0, 0], [-27.15, -6.6], [-1.04, 0.38, -2.7, 0.65]]),
    ],
)
def test_products_with_more_columns_than_reflections(left, transpose, product, wanted):
    same(torch.ormqr(WIDE, WIDE_TAU, SQUARE, left=left, transpose=transpose), product)
    made = gradients(
        lambda a, t, x: (torch.ormqr(a, t, x, left=left, transpose=transpose) * matrix([1.0, 2.0], [3.0, 5.0])).sum(),
        WIDE,
        WIDE_TAU,
        SQUARE,
    )
    for gradient, numbers in zip(made, wanted, strict=True):
        same(gradient, numbers)


@pytest.mark.parametrize(
    ("function", "wanted"),
    [
        (
            lambda: linalg.lu_factor(PIVOTED),
            [[2 + 2j, 1j, 0.925 + 0.425j, 2.425 - 0.925j, 0.75 - 0.75j, 0.193 - 0.2357j], [2, 3]],
        ),
        (lambda: linalg.lu(PIVOTED)[0], [[0, 0, 1, 1, 0, 0, 0, 1, 0]]),
        (lambda: torch.lu(SYMMETRIC), [[4.0, 1.0, 2.0, 0.25, 2.75, -0.5, 0.5, -0.1818, 3.9091], [1, 2, 3]]),
        (lambda: torch.lu(matrix([1.0, 2.0], [2.0, 4.0]), get_infos=True), [[2.0, 4.0, 0.5, 0.0], [2, 2], [2]]),
        (lambda: SYMMETRIC.lu(get_infos=True)[1:], [[1, 2, 3], [0]]),
        (
            lambda: linalg.lstsq(TALL, RIGHT, driver="gelsd"),
            [[-0.2143, 1.2143, 0.5, -0.5], [0.6429, 0.6429], [2], [10.1914, 0.3671]],
        ),
        (
            lambda: linalg.lstsq(TALL_COMPLEX, RIGHT + 0j, driver="gels"),
            [[0.1313 - 0.2317j, 0.2124 + 0.0772j, 0.2162 + 0.1042j, 0.2124 - 0.1236j], [0.5019, 0.8842], [], []],
        ),
        (lambda: linalg.lstsq(torch.ones(4, 2), torch.ones(4, 1), driver="gelss")[1:3], [[], [1]]),
        (lambda: torch.geqrf(TALL), [[-5.9161, -8.2825, 0.4338, 0.6325, 0.723, 0.397], [1.169, 1.7277]]),
        (
            lambda: linalg.householder_product(REFLECTORS, REFLECTOR_TAU),
            [[-0.2 + 0.5j, 1.09 + 1.095j, -0.25 - 0.6j, 0.4525 + 0.245j, -1.2 + 0.5j, 0.79 + 0.495j]],
        ),
        (lambda: torch.triangular_solve(WEIGHTS, SYMMETRIC, transpose=True)[0], [[0.25, 0.5, 0.9167, 1.5, -0.3, 0.6]]),
        (lambda: linalg.vander(torch.tensor(2.0), N=3), [[1.0, 2.0, 4.0]]),
        (lambda: torch.matrix_power(matrix([1, 2], [3, 4]), 3), [[37, 54, 81, 118]]),
        (lambda: linalg.matrix_power(torch.ones(2, 2, dtype=torch.float16), 3), [[4.0, 4.0, 4.0, 4.0]]),
        (lambda: linalg.cond(torch.zeros(2, 0, 0)), [[0.0, 0.0]]),
        (
            lambda: linalg.cholesky_ex(matrix([4.0, 9.0, 9.0], [1.0, -3.0, 9.0], [2.0, 0.0, 5.0])),
            [[2.0, 0.0, 0.0, 0.5, -3.25, 0.0, 1.0, 0.0, 5.0], [2]],
        ),
        (
            lambda: linalg.cholesky_ex(matrix([4.0, 1.0, 2.0], [9.0, -3.0, 9.0], [9.0, 9.0, 5.0]), upper=True),
            [[2.0, 0.5, 1.0, 0.0, -3.25, 9.0, 0.0, 0.0, 5.0], [2]],
        ),
        (lambda: linalg.ldl_factor(INDEFINITE), [[1.0, 0.0, 0.0, 4.0, 2.0, 0.0, 0.0, 0.5, 2.5], [-2, -2, 3]]),
        (
            lambda: linalg.ldl_factor(HERMITIAN, hermitian=True),
            [[1, 0, 0, 2 + 1j, 0, 0, 0.4 + 0.2j, -0.8 - 1.2j, 3.4], [-2, -2, 3]],
        ),
        (lambda: linalg.ldl_factor(HERMITIAN), [[1, 0, 0, 2 + 1j, 0, 0, 0.4 - 0.2j, -0.72 - 1.04j, 3.32 + 2.24j], [-2, -2, 3]]),
        (
            lambda: linalg.ldl_factor_ex(matrix([0.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 1.0, 0.0])),
            [[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0], [1, -3, -3], [1]],
        ),
        (lambda: linalg.ldl_solve(*linalg.ldl_factor(INDEFINITE), WEIGHTS), [[0.7143, 1.1429, 0.5714, -0.0857, -1.0, 0.6]]),
        (
            lambda: linalg.ldl_solve(*linalg.ldl_factor(HERMITIAN, hermitian=True), WEIGHTS + 0j, hermitian=True),
            [[0.8824 - 0.9412j, 0.8235 - 1.2353j, 1.2353 + 0.6471j, 3.4706 - 0.8235j, 0.2941 + 1j, 2.1176 + 1.6471j]],
        ),
        (
            lambda: linalg.ldl_solve(*linalg.ldl_factor(HERMITIAN), WEIGHTS + 0j),
            [[0.8354 - 0.7082j, 1.0823 - 0.6459j, -0.1172 + 1.3441j, 1.5586 + 2.8279j, 0.6209 + 0.581j, 2.1895 + 0.2095j]],
        ),
    ],
)
def test_values(function, wanted):
    made = function()
    parts = made if isinstance(made, tuple) else (made,)
    assert len(parts) == len(wanted)
    for part, numbers in zip(parts, wanted, strict=True):
        same(part, numbers)


def test_dtypes_and_shapes_of_least_squares():
    made = linalg.lstsq(TALL_COMPLEX, RIGHT + 0j, driver="gelsd")
    assert [part.dtype for part in made] == [torch.complex64, torch.float32, torch.int64, torch.float32]
    assert linalg.lstsq(TALL, RIGHT + 0.0).residuals.shape == (0,)
    assert linalg.lstsq(TALL.expand(1, 3, 2), RIGHT.expand(4, 3, 2)).solution.shape == (4, 2, 2)


def test_matrix_exp_of_half_floats():
    assert torch.matrix_exp(torch.zeros(2, 2, dtype=torch.bfloat16)).tolist() == [[1.0, 0.0], [0.0, 1.0]]


@pytest.mark.parametrize("size", [1, 2, 33, 70])
@pytest.mark.parametrize("complex_", [False, True])
def test_factors_of_larger_matrices_multiply_to_them(size, complex_):
    torch.manual_seed(size)
    a = torch.randn(size, size + 3, dtype=torch.complex128 if complex_ else torch.float64)
    p, l, u = linalg.lu(a)
    assert torch.allclose(p @ l @ u, a) and l.abs().max() <= 1.5
    assert torch.equal(linalg.lu_factor(a).pivots, linalg.lu_factor(a[None]).pivots[0])
    square = a[:, :size]
    for hermitian in (False, True):
        both = square + (square.mH if hermitian else square.mT)
        x = linalg.ldl_solve(*linalg.ldl_factor(both, hermitian=hermitian), a, hermitian=hermitian)
        assert torch.allclose(both @ x, a)


COLUMNS = torch.stack([SYMMETRIC, SYMMETRIC + torch.eye(3)])


@pytest.mark.parametrize(
    ("function", "strides"),
    [
        (lambda a: linalg.inv(a), [(9, 1, 3)]),
        (lambda a: linalg.lu_factor(a), [(9, 1, 3), (3, 1)]),
        (lambda a: linalg.lu(a), [(9, 3, 1)] * 3),
        (lambda a: linalg.qr(a), [(9, 1, 3)] * 2),
        (lambda a: linalg.svd(a), [(9, 1, 3), (3, 1), (9, 1, 3)]),
        (lambda a: torch.svd(a), [(9, 1, 3), (3, 1), (9, 3, 1)]),
        (lambda a: linalg.eigh(a), [(3, 1), (9, 1, 3)]),
        (lambda a: linalg.eig(a), [(3, 1), (9, 1, 3)]),
        (lambda a: linalg.cholesky(a), [(9, 1, 3)]),
        (lambda a: linalg.cholesky(a, upper=True), [(9, 1, 3)]),
        (lambda a: torch.cholesky_inverse(a), [(9, 1, 3)]),
        (lambda a: torch.cholesky_solve(WEIGHTS, a), [(6, 1, 3)]),
        (lambda a: linalg.solve(a, WEIGHTS), [(6, 1, 3)]),
        (lambda a: linalg.solve(a, torch.ones(2, 3)), [(1, 2)]),
        (lambda a: linalg.solve(a, torch.ones(4, 3), left=False), [(12, 3, 1)]),
        (lambda a: linalg.solve_triangular(a, WEIGHTS, upper=True), [(6, 1, 3)]),
        (lambda a: linalg.solve_triangular(a, WEIGHTS.mT, upper=True, left=False), [(6, 1, 2)]),
        (lambda a: torch.triangular_solve(WEIGHTS, a), [(6, 1, 3), (9, 1, 3)]),
        (lambda a: linalg.lu_solve(*linalg.lu_factor(a), WEIGHTS[:, :1], adjoint=True), [(3, 1, 3)]),
        (lambda a: torch.geqrf(a), [(9, 1, 3), (3, 1)]),
        (lambda a: linalg.householder_product(*torch.geqrf(a)), [(9, 1, 3)]),
        (lambda a: torch.ormqr(*torch.geqrf(a), a, left=False), [(9, 1, 3)]),
        (lambda a: linalg.ldl_factor(a), [(9, 1, 3), (3, 1)]),
        (lambda a: linalg.lstsq(a[:, :, :2], a), [(9, 1, 3), (1,), (1,), (1,)]),
        (lambda a: linalg.pinv(a), [(9, 3, 1)]),
        (lambda a: linalg.matrix_power(a, -1), [(9, 1, 3)]),
    ],
)
def test_results_are_column_major(function, strides):
    made = function(COLUMNS)
    assert [part.stride() for part in (made if isinstance(made, tuple) else (made,))] == strides


# ---------------------------------------------------------------- low rank

WAVES = torch.arange(20.0).reshape(5, 4).sin()


@pytest.mark.parametrize(
    ("function", "values", "left"),
    [
        (
            lambda: torch.svd_lowrank(WAVES, q=2),
            [2.2183, 2.1314],
            [0.4339, 0.3719, 0.6092, 0.1967, 0.3625, 0.6291, 0.1353, 0.6257, 0.5394, 0.1889],
        ),
        (
            lambda: torch.svd_lowrank(WAVES.mT, q=2),
            [2.2183, 2.1314],
            [0.4068, 0.4939, 0.7547, 0.1452, 0.4087, 0.6508, 0.313, 0.5581],
        ),
        (
            lambda: torch.pca_lowrank(WAVES, q=2),
            [2.2107, 2.098],
            [0.5187, 0.2162, 0.5415, 0.2181, 0.2926, 0.7754, 0.2624, 0.5215, 0.5322, 0.1804],
        ),
        (
            lambda: torch.svd_lowrank(WAVES, q=2, M=WAVES.mean(0, keepdim=True)),
            [2.2107, 2.098],
            [0.5187, 0.2162, 0.5415, 0.2181, 0.2926, 0.7754, 0.2624, 0.5215, 0.5322, 0.1804],
        ),
        (
            lambda: torch.pca_lowrank(WAVES, q=2, center=False),
            [2.2183, 2.1314],
            [0.4339, 0.3719, 0.6092, 0.1967, 0.3625, 0.6291, 0.1353, 0.6257, 0.5394, 0.1889],
        ),
    ],
)
def test_largest_singular_values(function, values, left):
    torch.manual_seed(0)
    u, s, _ = function()
    same(s, values)
    same(u.abs(), left)


def test_low_rank_is_found_whole():
    torch.manual_seed(0)
    for a in (torch.randn(2, 9, 3) @ torch.randn(2, 3, 7), torch.randn(7, 2).cfloat() @ (1j * torch.randn(2, 9))):
        u, s, v = torch.svd_lowrank(a, q=3)
        assert torch.allclose((u * s.unsqueeze(-2)) @ v.mH, a, atol=1e-4)
    assert [part.shape for part in torch.pca_lowrank(torch.ones(8, 7))] == [(8, 6), (6,), (7, 6)]


@pytest.mark.parametrize(
    ("named", "words"),
    [
        ({"q": 5}, "q(=5) must be non-negative integer and not greater than min(m, n)=4"),
        ({"q": -1}, "q(=-1) must be non-negative integer and not greater than min(m, n)=4"),
        ({"q": 2, "niter": -1}, "niter(=-1) must be non-negative integer"),
    ],
)
def test_ranks_that_cannot_be(named, words):
    with pytest.raises(ValueError) as raised:
        torch.pca_lowrank(WAVES, **named)
    assert str(raised.value) == words


# ---------------------------------------------------------------- the older function for LU factors


def test_lu_writes_into_what_it_is_given():
    out = (torch.empty(0), torch.empty(0, dtype=torch.int32))
    assert torch.lu(SYMMETRIC, out=out) is out
    assert torch.equal(out[0], linalg.lu_factor(SYMMETRIC).LU) and out[1].tolist() == [1, 2, 3]
    with pytest.raises(TypeError, match="expected tuple of 2 elements but got 1"):
        torch.lu(SYMMETRIC, out=out[:1])
    with pytest.raises(TypeError, match="argument 'out' must be tuple of Tensors, not Tensor"):
        torch.lu(SYMMETRIC, out=torch.empty(2))


def test_lu_says_what_it_returns():
    assert type(torch.lu(SYMMETRIC)) is tuple and type(SYMMETRIC.lu(get_infos=True)) is tuple
    assert torch.lu(SYMMETRIC, get_infos=True)._fields == ("LU", "pivots", "info")
    x = SYMMETRIC.clone().requires_grad_()
    torch.lu(x)[0].diagonal().log().sum().backward()
    same(x.grad, linalg.inv(SYMMETRIC).mT.flatten().tolist())


def test_ldl_has_no_gradient():
    x = SYMMETRIC.clone().requires_grad_()
    with pytest.raises(RuntimeError, match="derivative for aten::linalg_ldl_factor_ex is not implemented"):
        linalg.ldl_factor(x).LD.sum().backward()
    with pytest.raises(RuntimeError, match="derivative for aten::linalg_ldl_solve is not implemented"):
        linalg.ldl_solve(*linalg.ldl_factor(SYMMETRIC), x).sum().backward()


@pytest.mark.parametrize("order", [2, 1.5, 3, -1])
@pytest.mark.parametrize(("shape", "dim"), [((1,), None), ((), None), ((1, 1), (1,)), ((3, 1), (1,)), ((1, 2), (0,))])
def test_norm_of_one_element_is_its_size(shape, dim, order):
    x = torch.full(shape, -1e30)  # whose square is not finite
    assert torch.linalg.vector_norm(x, order, dim).eq(1e30).all()
    assert torch.linalg.vector_norm(x, order, dim, keepdim=True).dim() == len(shape)
