"""gradcheck: what it refuses, in torch's words, and the Jacobians it compares."""

from __future__ import annotations

from typing import ClassVar

import pytest

import mindtorch_v2 as torch
from mindtorch_v2._autograd.gradcheck_tangents import undefined_tangents
from mindtorch_v2.autograd import forward_ad as fwAD
from mindtorch_v2.autograd import gradcheck, gradgradcheck
from mindtorch_v2.autograd.gradcheck import (
    GradcheckError,
    _get_numerical_jacobian,
    get_analytical_jacobian,
    get_numerical_jacobian,
)


def _hooked(hook):
    def func(x):
        y = x.clone()
        y.register_hook(hook)
        return y

    return func


def _point(*shape, dtype=torch.float64):
    return torch.ones(shape, dtype=dtype, requires_grad=True)


def _raise_for_nothing(grad):
    if grad is None:
        raise RuntimeError("no gradient")


@pytest.mark.parametrize(
    ("func", "dtype", "message"),
    [
        (_hooked(lambda g: g + 0.1), torch.float64, "^Jacobian mismatch for output 0 with respect to input 0"),
        (_hooked(lambda g: g + 0.1), torch.complex128, "^While considering the imaginary part of complex outputs only, Jac"),
        (_hooked(lambda g: g.real + 0j), torch.complex128, "imaginary part"),
        (lambda x: _hooked(lambda g: g + 0.1)(x.real), torch.complex128, "^Jacobian mismatch"),
        (_hooked(lambda g: g + 1e-7), torch.float64, "^backward not multiplied by grad_output$"),
    ],
)
@pytest.mark.parametrize("fast_mode", [False, True])
def test_what_is_wrong_is_told(func, dtype, message, fast_mode):
    with pytest.raises(GradcheckError, match=message):
        gradcheck(func, (_point(2, dtype=dtype),), fast_mode=fast_mode)
    assert gradcheck(func, (_point(2, dtype=dtype),), raise_exception=False, fast_mode=fast_mode) is False


@pytest.mark.parametrize(
    ("func", "dtypes"),
    [
        (lambda x, y: (x * y, x.sin()), (torch.float64, torch.float64)),
        (lambda x, y: (x.detach(), x * y), (torch.float64, torch.float64)),
        (lambda x, y: x * y.conj() + x.abs(), (torch.complex128, torch.complex128)),
        (lambda x, y: (torch.complex(x, y), x + 1), (torch.float64, torch.float64)),
        (lambda x, y: (x * y).real, (torch.complex128, torch.float64)),
    ],
)
@pytest.mark.parametrize("forward", [False, True])
def test_fast_mode_calls_the_function_a_few_times(func, dtypes, forward):
    calls = []

    def counted(*args):
        calls.append(args)
        return func(*args)

    torch.manual_seed(0)
    inputs = tuple(torch.rand(40, dtype=dtype, requires_grad=True) for dtype in dtypes)
    before = [each.tolist() for each in inputs]
    assert gradcheck(counted, inputs, fast_mode=True, check_forward_ad=forward)
    assert len(calls) < 25 and [each.tolist() for each in inputs] == before


def test_undefined_gradients_must_be_handled():
    with (
        pytest.warns(UserWarning, match="New undefined gradient support checking feature"),
        pytest.raises(GradcheckError, match="Expected backward function to handle undefined output grads"),
    ):
        gradcheck(_hooked(_raise_for_nothing), (_point(1),))
    assert gradcheck(_hooked(_raise_for_nothing), (_point(1),), check_undefined_grad=False)


@pytest.mark.parametrize(
    ("func", "word"),
    [
        (lambda x: torch.cat([x, x]) if bool((x >= 1).all()) else x, "shape"),
        (lambda x: x.to(torch.float32) if bool((x >= 1).all()) else x, "dtype"),
    ],
)
def test_outputs_keep_shape_and_dtype(func, word):
    with pytest.raises(AssertionError, match=f"return outputs with the same {word} when inputs are perturbed"):
        gradcheck(func, (_point(1),))


def test_an_output_may_be_the_input():
    assert gradcheck(lambda x: (x, x * 2), (_point(2),))


def test_jacobians_as_tensors():
    a, b = _point(2), _point(2)
    eye = torch.eye(2, dtype=torch.float64)
    with pytest.warns(FutureWarning, match="`get_numerical_jacobian` was part of PyTorch's private API"):
        by_a, by_b = get_numerical_jacobian(lambda ab: (2 * ab[0] + ab[1],), (a, b))
    assert torch.allclose(by_a, 2 * eye) and torch.allclose(by_b, eye)
    ((first, second),) = _get_numerical_jacobian(lambda x, y: (x * 3, x + y), (a, b), target=a)
    assert torch.allclose(first, 3 * eye) and torch.allclose(second, eye)
    with pytest.warns(FutureWarning):
        jacobians, reentrant, sizes, types = get_analytical_jacobian((a, b), 2 * a + b)
    assert torch.equal(jacobians[0], 2 * eye) and torch.equal(jacobians[1], eye)
    assert reentrant and sizes and types
    with pytest.warns(FutureWarning), pytest.raises(ValueError, match="Expected grad_out to be 1.0"):
        get_analytical_jacobian((a,), 2 * a, grad_out=2.0)


@pytest.mark.parametrize("fast_mode", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
def test_second_derivatives_by_forward_mode(fast_mode, reverse):
    x = torch.rand(3, dtype=torch.float64, requires_grad=True)
    options = {"fast_mode": fast_mode, "check_fwd_over_rev": True, "check_rev_over_rev": reverse}
    assert gradgradcheck(lambda v: v.sin() * v, (x,), **options)

    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(ctx, v):
            ctx.save_for_backward(v)
            ctx.save_for_forward(v)
            return v**3

        @staticmethod
        def jvp(ctx, tangent):
            (v,) = ctx.saved_tensors
            return tangent * 3 * v * v

        @staticmethod
        def backward(ctx, g):
            (v,) = ctx.saved_tensors
            return g * 3 * v.detach() * v

    with pytest.raises(GradcheckError, match="Jacobian" if reverse else "Jacobian computed with forward mode mismatch"):
        gradgradcheck(Wrong.apply, (x,), **options)


_MATRIX = [[1.0, 2.0], [3.0, 4.0]]


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr, torch.sparse_csc])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("fast_mode", [False, True])
def test_sparse_inputs_are_differentiated_by_their_specified_elements(layout, masked, fast_mode):
    sparse = torch.tensor(_MATRIX, dtype=torch.float64).to_sparse(layout=layout).requires_grad_()
    weight = _point(2, 2)
    assert gradcheck(lambda x, w: (x.to_dense() * w).sin(), (sparse, weight), masked=masked, fast_mode=fast_mode)


def test_sparse_inputs_that_differ_are_found_and_refused():
    sparse = torch.tensor([0.0, 2.0], dtype=torch.float64).to_sparse().requires_grad_()
    assert gradcheck(lambda x: x.to_dense() ** 2, (sparse,), masked=True)
    with pytest.raises(GradcheckError, match="Jacobian mismatch"):
        gradcheck(lambda x: x.to_dense() * x.to_dense().detach(), (sparse,), masked=True)
    with pytest.raises(NotImplementedError, match="does not specify"):
        gradcheck(lambda x: x.to_dense(), (sparse,))
    with pytest.raises(NotImplementedError, match="tangents of sparse inputs"):
        gradcheck(lambda x: x.to_dense(), (sparse,), masked=True, check_forward_ad=True)
    with pytest.raises(ValueError, match="Sparse output is not supported at gradcheck yet"):
        gradcheck(lambda x: x * 2, (sparse,), masked=True)


class _Counted(torch.autograd.Function):
    """Two outputs; how often their tangents are computed is counted."""

    calls = 0
    required: ClassVar[list[bool]] = []

    @staticmethod
    def forward(ctx, x, y):
        if fwAD._current_level >= 0:
            _Counted.required += [x.requires_grad, y.requires_grad]
        return x.clone(), y.clone()

    @staticmethod
    def jvp(ctx, x_t, y_t):
        _Counted.calls += 1
        return x_t, y_t


@pytest.mark.parametrize(("undefined", "batched", "calls"), [(False, False, 2), (True, False, 6), (True, True, 12)])
def test_tangents_are_checked_undefined_and_in_batches(undefined, batched, calls):
    _Counted.calls = 0
    _Counted.required.clear()
    options = {"check_forward_ad": True, "check_backward_ad": False}
    inputs = (_point(1), _point(1))
    assert gradcheck(_Counted.apply, inputs, check_undefined_grad=undefined, check_batched_forward_grad=batched, **options)
    assert _Counted.calls == calls
    assert not any(_Counted.required)  # inputs are not tracked inside a level


def test_tangents_that_depend_on_zeros_being_there_are_found():
    class Counting(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.set_materialize_grads(False)
            return x + y

        @staticmethod
        def jvp(ctx, x_t, y_t):
            return x_t + 5 if y_t is None else x_t + 2 * y_t

    with pytest.raises(GradcheckError, match="Mismatch in tangent values for output with index"):
        undefined_tangents(lambda y: Counting.apply(fwAD.make_dual(torch.ones(1), torch.ones(1)), y), (_point(1),))


def test_random_operations_cannot_be_batched_by_the_older_vmap():
    with pytest.raises(RuntimeError, match="vmap: We do not yet support calling random operations inside of vmap"):
        torch._vmap_internals._vmap(lambda x: x + torch.rand_like(x))(torch.ones(3))
    with pytest.warns(FutureWarning, match=r"Please use `torch.vmap`"):
        mapped = torch._vmap_internals.vmap(lambda x: x * 2)
    assert mapped(torch.ones(2)).tolist() == [2, 2]
    with pytest.raises(NotImplementedError, match="allow_none_pass_through"):
        torch._vmap_internals._vmap(lambda x: None, allow_none_pass_through=True)


def test_numerical_jacobians_of_outputs_without_history():
    x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
    ((jacobian,),) = _get_numerical_jacobian(lambda x: (x * 3).detach(), (x,), target=x)
    assert torch.allclose(jacobian, torch.eye(2, dtype=torch.float64) * 3)
