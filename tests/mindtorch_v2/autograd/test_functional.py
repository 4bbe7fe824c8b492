"""jacobian, hessian and products with vectors; gradcheck."""

from __future__ import annotations

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.autograd import gradcheck, gradgradcheck
from mindtorch_v2.autograd.functional import hessian, hvp, jacobian, jvp, vhp, vjp
from mindtorch_v2.autograd.gradcheck import GradcheckError

X = [1.0, 2.0]


def x2() -> torch.Tensor:
    return torch.tensor(X, dtype=torch.float64)


def three(v: torch.Tensor) -> torch.Tensor:
    return torch.stack([v[0] * v[1], v[0] ** 2, v[1] ** 3])


def cubes(v: torch.Tensor) -> torch.Tensor:
    return (v**3).sum() + v[0] * v[1]


def test_jacobian():
    assert jacobian(three, x2()).tolist() == [[2.0, 1.0], [2.0, 0.0], [0.0, 12.0]]


@pytest.mark.parametrize(
    "options", [{"vectorize": True}, {"create_graph": True}, {"vectorize": True, "strategy": "forward-mode"}]
)
def test_jacobian_options(options):
    x = x2().requires_grad_()
    found = jacobian(three, x, **options)
    assert found.tolist() == [[2.0, 1.0], [2.0, 0.0], [0.0, 12.0]]
    assert found.requires_grad == options.get("create_graph", False)


def test_jacobian_of_several_inputs_and_outputs():
    (aa, ab), (ba, bb) = jacobian(lambda a, b: (a * b, a.sum()), (x2(), x2()))
    assert (aa.tolist(), ab.tolist()) == ([[1.0, 0.0], [0.0, 2.0]],) * 2
    assert (ba.tolist(), bb.tolist()) == ([1.0, 1.0], [0.0, 0.0])


def test_hessian():
    assert hessian(cubes, x2()).tolist() == [[6.0, 1.0], [1.0, 12.0]]
    blocks = hessian(lambda a, b: (a * b).sum(), (x2(), x2()))
    assert [[block.tolist() for block in row] for row in blocks] == [
        [[[0.0, 0.0], [0.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]]],
        [[[1.0, 0.0], [0.0, 1.0]], [[0.0, 0.0], [0.0, 0.0]]],
    ]


def test_products():
    value, product = vjp(three, x2(), torch.ones(3, dtype=torch.float64))
    assert value.tolist() == [2.0, 1.0, 8.0] and product.tolist() == [4.0, 13.0]
    assert jvp(three, x2(), torch.ones(2, dtype=torch.float64))[1].tolist() == [3.0, 2.0, 12.0]
    v = torch.tensor([1.0, 10.0], dtype=torch.float64)
    for product_of in (vhp, hvp):
        assert product_of(cubes, x2(), v)[1].tolist() == [16.0, 121.0]


def test_products_without_a_vector():
    one = torch.tensor([3.0])
    assert vjp(lambda v: (v * v).sum(), one)[1].tolist() == [6.0]
    assert jvp(lambda v: v * v, one)[1].tolist() == [6.0]
    assert hvp(lambda v: (v**3).sum(), one)[1].tolist() == [18.0]


def test_products_with_a_graph():
    x = x2().requires_grad_()
    _, product = vjp(lambda v: v**3, x, torch.ones(2, dtype=torch.float64), create_graph=True)
    product.sum().backward()
    assert x.grad.tolist() == [6.0, 12.0]


STRICT = (
    "Output 0 of the user-provided function does not require gradients. The outputs must be computed in a "
    "differentiable manner from the input when running in strict mode."
)
ERRORS = [
    (
        lambda: jacobian(lambda v: 3, x2()),
        TypeError,
        "The outputs of the user-provided function given to jacobian must be either a Tensor or a tuple of Tensors but "
        "the given outputs of the user-provided function has type <class 'int'>.",
    ),
    (
        lambda: jacobian(lambda v: v, [x2()]),
        TypeError,
        "The inputs given to jacobian must be either a Tensor or a tuple of Tensors but the given inputs has type "
        "<class 'list'>.",
    ),
    (lambda: jacobian(lambda v: torch.ones(2), x2(), strict=True), RuntimeError, STRICT),
    (
        lambda: hessian(lambda v: v**2, x2()),
        RuntimeError,
        "The Tensor returned by the function given to hessian should contain a single element",
    ),
    (
        lambda: vjp(three, x2()),
        RuntimeError,
        "The vector v can only be None if the user-provided function returns a single Tensor with a single element.",
    ),
    (lambda: vjp(three, x2(), x2()), RuntimeError, "v has invalid size: should be torch.Size([3]) but got torch.Size([2])."),
    (lambda: vjp(three, x2(), (x2(), x2())), RuntimeError, "The given v should contain a single Tensor."),
    (
        lambda: jacobian(three, x2(), strategy="forward-mode"),
        NotImplementedError,
        "Computing Jacobian using forward-AD or forward-over-reverse Hessian isonly implemented for `vectorize=True`.",
    ),
]


@pytest.mark.parametrize(("call", "kind", "message"), ERRORS, ids=[message[:40] for _, _, message in ERRORS])
def test_errors(call, kind, message):
    with pytest.raises(kind) as caught:
        call()
    assert str(caught.value) == message


def test_strict_mode_refuses_a_constant_gradient():
    for call in (
        lambda: hessian(lambda v: v.sum(), x2(), strict=True),
        lambda: vhp(lambda v: v.sum(), x2(), x2(), strict=True),
    ):
        with pytest.raises(RuntimeError, match="found that the jacobian of the user-provided function with respect to input 0"):
            call()
    assert hessian(lambda v: v.sum(), x2()).tolist() == [[0.0, 0.0], [0.0, 0.0]]


# ---------------------------------------------------------------- gradcheck


class Wrong(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 3


class WrongSecond(torch.autograd.Function):
    """Right once, wrong twice."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        return 2 * ctx.saved_tensors[0].detach() * g


@pytest.mark.parametrize("fast", [False, True])
def test_gradcheck(fast):
    x = x2().requires_grad_()
    assert gradcheck(lambda v: (v * v, v.sin()), (x,), fast_mode=fast)
    assert gradgradcheck(torch.sin, (x,), fast_mode=fast)
    assert gradgradcheck(lambda t: torch.sin(t).sum(), (x,), fast_mode=fast)
    assert not gradcheck(Wrong.apply, (x,), raise_exception=False, fast_mode=fast)
    with pytest.raises(GradcheckError, match="Jacobian mismatch for output 0 with respect to input 0,\nnumerical:"):
        gradcheck(Wrong.apply, (x,), fast_mode=fast)
    assert gradcheck(WrongSecond.apply, (x,), fast_mode=fast)
    assert not gradgradcheck(WrongSecond.apply, (x,), raise_exception=False, fast_mode=fast)


def test_gradcheck_of_complex_numbers():
    z = torch.tensor([1.0 + 2.0j, -0.5 + 0.25j], dtype=torch.complex128, requires_grad=True)
    assert gradcheck(lambda v: v * v, (z,)) and gradcheck(lambda v: (v * v.conj()).real, (z,))


def test_gradcheck_of_a_function_without_gradient():
    x = x2().requires_grad_()
    with pytest.raises(GradcheckError, match="Numerical gradient for function expected to be zero"):
        gradcheck(lambda v: v.detach() * 2, (x,))
    assert gradcheck(lambda v: v.detach() * 0, (x,))


def test_gradcheck_of_what_is_not_reproducible():
    calls = []

    class Drifting(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            calls.append(1)
            return g * (1 + 1e-7 * len(calls))

    x = x2().requires_grad_()
    with pytest.raises(GradcheckError, match="Backward is not reentrant"):
        gradcheck(Drifting.apply, (x,))
    assert gradcheck(Drifting.apply, (x,), nondet_tol=1e-3)


def test_gradcheck_wants_fitting_inputs():
    with pytest.raises(ValueError, match="gradcheck expects at least one input tensor to require gradient"):
        gradcheck(torch.sin, (x2(),))
    with pytest.raises(RuntimeError, match="The 0th input has a dimension with stride 0"):
        gradcheck(torch.sin, (x2().expand(2, 2).requires_grad_(),))
    with pytest.warns(UserWarning, match="is not a double precision floating point"):
        gradcheck(lambda v: v * 0, (torch.ones(1, requires_grad=True),))


def test_gradcheck_takes_tensors_without_elements():
    empty = torch.zeros(0, 4, dtype=torch.float64, requires_grad=True)
    assert gradcheck(lambda x: x * 2, (empty,))


def test_gradcheck_checks_more_where_asked():
    x = x2().requires_grad_()
    assert gradcheck(torch.sin, (x,), check_grad_dtypes=True, check_batched_grad=True)
    assert gradcheck(torch.sin, (x,), check_forward_ad=True, check_batched_forward_grad=True)


class WrongTangent(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2

    @staticmethod
    def jvp(ctx, t):
        return t * 3


def test_gradcheck_of_tangents():
    x = x2().requires_grad_()
    assert gradcheck(lambda a: (a.sin() * a).sum(), (x,), check_forward_ad=True)
    assert gradcheck(torch.view_as_complex, (torch.eye(2, dtype=torch.float64).requires_grad_(),), check_forward_ad=True)
    assert gradcheck(WrongTangent.apply, (x,))
    with pytest.raises(GradcheckError, match="Jacobian computed with forward mode mismatch for output 0"):
        gradcheck(WrongTangent.apply, (x,), check_forward_ad=True)
    with pytest.raises(AssertionError, match="requires check_forward_ad"):
        gradcheck(torch.sin, (x,), check_batched_forward_grad=True)
