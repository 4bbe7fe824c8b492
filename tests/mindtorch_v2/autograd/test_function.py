"""Function: ops with a derivative written by the user."""

from __future__ import annotations

import warnings

import pytest

import mindtorch_v2 as torch
from mindtorch_v2._core.threads import threads
from mindtorch_v2.autograd.function import InplaceFunction, once_differentiable


def function(forward, backward=None, name="F", **more):
    """A Function of two lambdas."""
    body = {"forward": staticmethod(forward), **more}
    if backward is not None:
        body["backward"] = staticmethod(backward)
    return type(name, (torch.autograd.Function,), body)


def x2() -> torch.Tensor:
    return torch.tensor([1.0, -2.0], requires_grad=True)


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(x)
        ctx.scale = scale
        return scale * x**3

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * ctx.scale * 3 * x**2, None


def test_a_function_with_a_number():
    x = x2()
    y = Cube.apply(x, 2.0)
    y.sum().backward()
    assert y.tolist() == [2.0, -16.0] and x.grad.tolist() == [6.0, 24.0]
    assert type(y.grad_fn).__name__ == y.grad_fn.name() == "CubeBackward" and y.grad_fn.scale == 2.0
    assert len(y.grad_fn.next_functions) == 1


def test_it_can_be_differentiated_twice():
    x = torch.tensor([1.0, -2.0], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradgradcheck(lambda t: Cube.apply(t, 1.5), (x,))


def test_arguments_by_name_and_defaults():
    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(x, k=3.0):
            return x * k

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.k = inputs[1]

        @staticmethod
        def backward(ctx, g):
            return g * ctx.k, None

    for call, expected in ((lambda x: Scale.apply(x), 3.0), (lambda x: Scale.apply(x, k=4.0), 4.0)):
        x = x2()
        call(x).sum().backward()
        assert x.grad.tolist() == [expected, expected]


def test_needs_input_grad():
    seen = []
    F = function(lambda ctx, a, b: a * b, lambda ctx, g: (seen.append(ctx.needs_input_grad), (g, None))[1])
    F.apply(x2(), torch.ones(2)).sum().backward()
    assert seen == [(True, False)]


def test_several_outputs():
    def forward(ctx, x):
        index = x.argmax().view(1)
        ctx.mark_non_differentiable(index)
        return x * 2, x * 3, index

    x = x2()
    a, b, index = function(forward, lambda ctx, ga, gb, gi: ga * 2 + gb * 3).apply(x)
    (a.sum() + 10 * b.sum()).backward()
    assert x.grad.tolist() == [32.0, 32.0] and a.requires_grad and not index.requires_grad


@pytest.mark.parametrize(("materialize", "expected"), [(True, [0.0, 0.0]), (False, None)])
def test_gradients_of_unused_outputs(materialize, expected):
    seen = []

    def forward(ctx, x):
        ctx.set_materialize_grads(materialize)
        return x * 1, x * 2

    def backward(ctx, g, h):
        seen.append(h if h is None else h.tolist())
        return g

    function(forward, backward).apply(x2())[0].sum().backward()
    assert seen == [expected]


def test_no_gradient_at_all():
    x = x2()
    (function(lambda ctx, x: x * 2, lambda ctx, g: None).apply(x.exp()) * 3).sum().backward()
    assert x.grad is None


def test_other_results_pass_through():
    x = x2()
    a, b = function(lambda ctx, x: (x * 1, "text"), lambda ctx, g, h: g).apply(x)
    assert b == "text" and a.requires_grad
    assert function(lambda ctx, x: None).apply(x) is None


def test_an_input_that_is_returned_becomes_a_view():
    x = x2()
    y = function(lambda ctx, x: x, lambda ctx, g: g * 2).apply(x)
    y.sum().backward()
    assert y is not x and x.is_leaf and x.grad.tolist() == [2.0, 2.0]


def test_mark_dirty():
    def forward(ctx, x):
        x.add_(1)
        ctx.mark_dirty(x)
        return x

    x = x2()
    y = x * 1
    assert function(forward, lambda ctx, g: g * 7).apply(y) is y
    y.sum().backward()
    assert x.grad.tolist() == [7.0, 7.0] and type(y.grad_fn).__name__ == "FBackward"


def test_mark_dirty_on_a_view():
    def forward(ctx, x):
        x.add_(1)
        ctx.mark_dirty(x)
        return x

    x = x2()
    y = x * 1
    function(forward, lambda ctx, g: g * 7).apply(y[:1])
    y.sum().backward()
    assert x.grad.tolist() == [7.0, 1.0] and type(y.grad_fn).__name__ == "CopySlices"


def test_a_saved_output_has_history():
    def forward(ctx, x):
        result = x.exp()
        ctx.save_for_backward(result)
        return result

    x = torch.tensor([0.5], dtype=torch.float64, requires_grad=True)
    F = function(forward, lambda ctx, g: g * ctx.saved_tensors[0])
    assert torch.autograd.gradgradcheck(F.apply, (x,))


def test_saved_tensors_are_freed_and_checked():
    F = function(lambda ctx, x: (ctx.save_for_backward(x), x * 1)[1], lambda ctx, g: g * ctx.saved_tensors[0])
    y = F.apply(x2() * 1).sum()
    y.backward()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        y.backward()
    z = x2() * 1
    y = F.apply(z).sum()
    z.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


def test_forward_runs_without_history():
    seen = []
    function(lambda ctx, x: (seen.append(torch.is_grad_enabled()), x * 1)[1], lambda ctx, g: g).apply(x2())
    assert seen == [False] and torch.is_grad_enabled()


def test_under_no_grad():
    with torch.no_grad():
        assert not Cube.apply(x2(), 1.0).requires_grad


def test_a_number_of_the_sequence_is_taken_in_any_case():
    before = threads.state.sequence
    with torch.no_grad():
        Cube.apply(x2(), 1.0)
    assert threads.state.sequence == before + 1


def test_once_differentiable():
    F = function(lambda ctx, x: x * 2, once_differentiable(lambda ctx, g: g * 2))
    x = x2()
    (g,) = torch.autograd.grad((F.apply(x) * x).sum(), x, create_graph=True)
    with pytest.raises(
        RuntimeError, match="trying to differentiate twice a function that was marked with @once_differentiable"
    ):
        g.sum().backward()


def test_attributes_of_the_context_may_have_any_name():
    def forward(ctx, x):
        ctx.inputs, ctx.edges, ctx.hooks, ctx.sequence, ctx.plan = 1, 2, 3, 4, 5
        return x * 1

    x = x2()
    function(forward, lambda ctx, g: g * (ctx.inputs + ctx.edges + ctx.hooks + ctx.sequence + ctx.plan)).apply(
        x
    ).sum().backward()
    assert x.grad.tolist() == [15.0, 15.0]


def test_hooks_on_its_node():
    seen = []
    y = Cube.apply(x2(), 1.0)
    y.grad_fn.register_hook(lambda gi, go: seen.append((gi[0].tolist(), go[0].tolist())))
    y.sum().backward()
    assert seen == [([3.0, 12.0], [1.0, 1.0])]


def test_an_error_in_backward_comes_out():
    def backward(ctx, g):
        raise KeyError("inside")

    with pytest.raises(KeyError):
        function(lambda ctx, x: x * 1, backward).apply(x2()).sum().backward()


def test_vjp_is_another_name_of_backward():
    x = x2()
    function(lambda ctx, x: x * 1, vjp=staticmethod(lambda ctx, g: g * 5)).apply(x).sum().backward()
    assert x.grad.tolist() == [5.0, 5.0]


def test_instances():
    with pytest.warns(DeprecationWarning, match="should not be instantiated"):
        made = InplaceFunction(inplace=True)
    assert made.inplace
    with pytest.raises(RuntimeError, match="Legacy autograd function with non-static forward method"):
        made(x2())


def _dirty(returned):
    def forward(ctx, x):
        x.add_(1)
        ctx.mark_dirty(x)
        return x if returned else x * 1

    return forward


def _view_then_write():
    y = function(lambda ctx, x: x.view(2, 1), lambda ctx, g: g.view(2)).apply(x2() * 1)
    y.mul_(2)


def run(F, *args):
    return lambda: F.apply(*args).sum().backward()


ERRORS = [
    (
        run(function(lambda ctx, a, b: a + b, lambda ctx, g: g), x2(), x2()),
        RuntimeError,
        "function FBackward returned an incorrect number of gradients (expected 2, got 1)",
    ),
    (
        run(function(lambda ctx, a: a * 1, lambda ctx, g: (g, g)), x2()),
        RuntimeError,
        "function FBackward returned an incorrect number of gradients (expected 1, got 2)",
    ),
    (
        run(function(lambda ctx, a, k: a * k, lambda ctx, g: (g, g)), x2(), 2.0),
        RuntimeError,
        "function FBackward returned a gradient different than None at position 2, but the corresponding forward input "
        "was not a Variable",
    ),
    (run(function(lambda ctx, a: a * 1, lambda ctx, g: 3), x2()), RuntimeError, "expected Variable or None (got int)"),
    (
        run(function(lambda ctx, a: a * 1), x2()),
        NotImplementedError,
        "You must implement either the backward or vjp method for your custom autograd.Function to use it with backward "
        "mode AD.",
    ),
    (
        lambda: torch.autograd.Function.apply(x2()),
        NotImplementedError,
        "You must implement the forward function for custom autograd.Function.",
    ),
    (
        lambda: function(_dirty(True), lambda ctx, g: g).apply(x2()),
        RuntimeError,
        "a leaf Variable that requires grad has been used in an in-place operation.",
    ),
    (
        lambda: function(_dirty(False), lambda ctx, g: g).apply(x2() * 1),
        RuntimeError,
        "Some elements marked as dirty during the forward method were not returned as output. The inputs that are "
        "modified inplace must all be outputs of the Function.",
    ),
    (
        lambda: function(lambda ctx, a: (ctx.save_for_backward(3), a * 1)[1]).apply(x2()),
        TypeError,
        "save_for_backward can only save variables, but argument 0 is of type int",
    ),
    (
        _view_then_write,
        RuntimeError,
        "Output 0 of F is a view and is being modified inplace. This view was created inside a custom Function (or "
        "because an input was returned as-is) and the autograd logic to handle view+inplace would override the custom "
        "backward associated with the custom Function, leading to incorrect gradients. This behavior is forbidden. You "
        "can fix this by cloning the output of the custom Function.",
    ),
]


@pytest.mark.parametrize(("call", "kind", "message"), ERRORS, ids=[message[:50] for _, _, message in ERRORS])
def test_errors(call, kind, message):
    with warnings.catch_warnings(), pytest.raises(kind) as caught:
        warnings.simplefilter("ignore")
        call()
    assert str(caught.value) == message


def test_too_many_gradients_are_fine_if_they_are_none():
    x = x2()
    function(lambda ctx, a: a * 1, lambda ctx, g: (g, None, None)).apply(x).sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]
