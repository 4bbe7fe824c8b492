"""In-place ops with history: through views, on leaves, and on what backward still needs."""

from __future__ import annotations

import pytest

import mindtorch_v2 as torch


def base(*shape: int) -> tuple[torch.Tensor, torch.Tensor]:
    """A leaf and a copy of it that may be written into."""
    x = torch.arange(6.0).view(2, 3).requires_grad_()
    return x, x * 1


def fn(t: torch.Tensor) -> str:
    return type(t.grad_fn).__name__


def weighted(t: torch.Tensor) -> torch.Tensor:
    return (t * torch.arange(1.0, t.numel() + 1).view(t.shape)).sum()


# Each writes into y, and says what the gradient of `weighted(y)` by x is then.
WRITES = {
    "whole": (lambda y: y.mul_(2), [[2, 4, 6], [8, 10, 12]], "MulBackward0"),
    "row": (lambda y: y[0].mul_(5), [[5, 10, 15], [4, 5, 6]], "CopySlices"),
    "column": (lambda y: y[:, 1].mul_(5), [[1, 10, 3], [4, 25, 6]], "CopySlices"),
    "view of a view": (lambda y: y.t()[0].mul_(5), [[5, 2, 3], [20, 5, 6]], "CopySlices"),
    "flat": (lambda y: y.view(6)[4:].zero_(), [[1, 2, 3], [4, 0, 0]], "CopySlices"),
    "a number": (lambda y: y.__setitem__(1, 3.0), [[1, 2, 3], [0, 0, 0]], "CopySlices"),
    "twice": (lambda y: (y[0].mul_(5), y[:, 0].mul_(2)), [[10, 10, 15], [8, 5, 6]], "CopySlices"),
    "saved result": (lambda y: y[1].mul_(0).exp_(), [[1, 2, 3], [0, 0, 0]], "CopySlices"),
    "nothing": (lambda y: y.add_(1), [[1, 2, 3], [4, 5, 6]], "AddBackward0"),
}


@pytest.mark.parametrize("name", WRITES)
def test_writing(name):
    write, expected, node = WRITES[name]
    x, y = base()
    write(y)
    weighted(y).backward()
    assert x.grad.tolist() == expected and fn(y) == node


def test_what_is_written_gets_a_gradient():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    buffer = torch.zeros(3)
    buffer[1:] = x * 3
    (buffer**2).sum().backward()
    assert x.grad.tolist() == [18.0, 36.0] and buffer.requires_grad and not buffer.is_leaf
    assert buffer.grad_fn.next_functions[0] == (None, 0)


def test_a_view_sees_what_was_written_into_its_base():
    x, y = base()
    row, untouched = y[0], y[1]
    y.mul_(2)
    assert fn(row) == fn(untouched) == "AsStridedBackward0"
    (row.sum() + untouched.sum() * 10).backward()
    assert x.grad.tolist() == [[2, 2, 2], [20, 20, 20]]


def test_a_view_sees_what_was_written_into_another_view():
    x, y = base()
    row, column = y[0], y[:, 0]
    row.mul_(3)
    column.sum().backward()
    assert x.grad.tolist() == [[3, 0, 0], [1, 0, 0]]


def test_a_view_of_a_plain_tensor_gets_history_from_its_base():
    w = torch.full((2, 3), 2.0, requires_grad=True)
    y = torch.ones(2, 3)
    row = y[0]
    y.mul_(w)
    assert row.requires_grad
    row.sum().backward()
    assert w.grad.tolist() == [[1, 1, 1], [0, 0, 0]]


def test_an_expanded_view_of_a_base_that_was_written():
    x, y = base()
    wide = y[0].expand(4, 3)
    y.mul_(2)
    wide.sum().backward()
    assert x.grad.tolist() == [[8, 8, 8], [0, 0, 0]]


def test_double_backward_through_a_written_view():
    x = torch.tensor([2.0, 3.0], dtype=torch.float64, requires_grad=True)

    def function(t):
        y = t * t
        y[0].mul_(t[1])
        return y

    assert torch.autograd.gradcheck(function, (x,)) and torch.autograd.gradgradcheck(function, (x,))


def test_the_original_is_kept_where_the_formula_wants_it():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    w = torch.tensor([3.0, 4.0], requires_grad=True)
    y = x * 1
    y.mul_(w)
    y.sum().backward()
    assert w.grad.tolist() == [1.0, 2.0] and x.grad.tolist() == [3.0, 4.0]


def test_a_gradient_to_be_kept_is_that_of_the_new_value():
    _x, y = base()
    y.retain_grad()
    y.mul_(2)
    y.sum().backward()
    assert y.grad.tolist() == [[1, 1, 1], [1, 1, 1]] and y.retains_grad


def test_a_hook_stays_with_the_value_it_was_set_on():
    _x, y = base()
    seen = []
    y.register_hook(lambda g: seen.append(g.sum().item()))
    y.mul_(2)
    y.sum().backward()
    assert seen == [12.0]


def test_versions():
    x = torch.zeros(2)
    view = x.view(2)
    counts = [x._version]
    for write in (lambda: x.add_(1), lambda: view.zero_(), lambda: x.detach().add_(1)):
        write()
        counts.append(view._version)
    torch.autograd.graph.increment_version(x)
    assert counts == [0, 1, 2, 3] and view._version == 4


def _changed_argument():
    _x, y = base()
    z = y * y
    y.add_(1)
    z.sum().backward()


def _changed_result():
    _x, y = base()
    z = y.exp()
    z.mul_(2)
    z.sum().backward()


def _changed_leaf():
    x, w = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    z = x * w
    with torch.no_grad():
        w.add_(1)
    z.sum().backward()


def _changed_alias():
    _x, y = base()
    z = y.tanh()
    z.detach().zero_()
    z.sum().backward()


@pytest.mark.parametrize(
    ("call", "what"),
    [
        (_changed_argument, "[torch.FloatTensor [2, 3]], which is output 0 of Add, is at version 1; expected version 0"),
        (_changed_result, "[torch.FloatTensor [2, 3]], which is output 0 of Exp, is at version 1; expected version 0"),
        (_changed_leaf, "[torch.FloatTensor [2]] is at version 1; expected version 0"),
        (_changed_alias, "[torch.FloatTensor [2, 3]], which is output 0 of Tanh, is at version 1; expected version 0"),
    ],
)
def test_a_saved_value_that_was_written_into(call, what):
    with pytest.raises(RuntimeError) as caught:
        call()
    assert str(caught.value) == (
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        + what
        + " instead. Hint: enable anomaly detection to find the operation that failed to compute its gradient, with "
        "torch.autograd.set_detect_anomaly(True, check_nan=False)."
    )


def test_writing_is_fine_where_the_value_is_not_saved():
    x = torch.ones(2, requires_grad=True)
    y = x + 1
    y.mul_(3)
    y.sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]


def _leaf():
    torch.ones(2, requires_grad=True).add_(1)


def _view_of_leaf():
    torch.ones(2, requires_grad=True).view(2).mul_(2)


def _view_made_without_grad():
    x, y = base()
    with torch.no_grad():
        row = y[0]
    row.mul_(x[0])


def _one_of_several_views():
    _x, y = base()
    y.unbind(0)[1].mul_(2)


def _view_of_one_of_several():
    _x, y = base()
    y.unbind(0)[1][0].mul_(2)


def _stale_view():
    _x, y = base()
    rows = y.unbind(0)
    y.mul_(2)
    rows[0].sum().backward()


MANY = (
    "This view is the output of a function that returns multiple views. Such functions do not allow the output "
    "views to be modified inplace. You should replace the inplace operation by an out-of-place one."
)
FORBIDDEN = [
    (_leaf, "a leaf Variable that requires grad is being used in an in-place operation."),
    (_view_of_leaf, "a view of a leaf Variable that requires grad is being used in an in-place operation."),
    (_view_made_without_grad, "A view was created in no_grad mode and is being modified inplace with grad mode enabled."),
    (_one_of_several_views, f"Output 1 of Unbind is a view and is being modified inplace. {MANY}"),
    (_view_of_one_of_several, f"Output 0 of Select is a view and is being modified inplace. {MANY}"),
    (_stale_view, f"Output 0 of Unbind is a view and its base or another view of its base has been modified inplace. {MANY}"),
]


@pytest.mark.parametrize(("call", "message"), FORBIDDEN, ids=[call.__name__ for call, _ in FORBIDDEN])
def test_forbidden_writes(call, message):
    with pytest.raises(RuntimeError) as caught:
        call()
    assert str(caught.value).startswith(message)


def test_a_leaf_may_be_written_without_grad():
    x = torch.ones(2, requires_grad=True)
    with torch.no_grad():
        x.sub_(0.25)
    assert x.tolist() == [0.75, 0.75] and x.is_leaf and x.requires_grad


@pytest.mark.parametrize(
    "view",
    [
        torch.view_as_complex,
        lambda b: torch.view_as_complex(b).reshape(4),
        lambda b: torch.view_as_complex(b)[0],
        lambda b: torch.view_as_complex(b).real,
        lambda b: torch.view_as_complex(b).conj(),
        lambda b: torch.view_as_real(torch.view_as_complex(b)).view(8),
    ],
)
def test_writing_through_a_complex_view_of_real_numbers(view):
    x = torch.randn(2, 2, 2, dtype=torch.float64, requires_grad=True)

    def scaled(values):
        values.mul_(2)
        return values

    def weighted(values):
        return (values * (3 + 4j if values.is_complex() else 3)).abs().pow(2).sum()

    (written,) = torch.autograd.grad(weighted(scaled(view(x.clone()))), x)
    (computed,) = torch.autograd.grad(weighted(view(x.clone()) * 2), x)
    assert torch.allclose(written, computed)


VIEWS = [
    "x.t()",
    "x.T",
    "x.chunk(2)[0]",
    "x.split(1)[0]",
    "x[0]",
    "x.view(4)",
    "x.reshape(4)",
    "x.unbind()[1]",
    "x.movedim(0, 1)",
]


@pytest.mark.parametrize("taken", VIEWS)
def test_a_view_taken_in_no_grad_requires_grad_and_leads_nowhere(taken):
    x = torch.ones(2, 2, requires_grad=True)
    with torch.no_grad():
        view = eval(taken)
    assert view.requires_grad and view.is_leaf and view._base is x
    with pytest.raises(RuntimeError, match="element 0 of tensors does not require grad and does not have a grad_fn"):
        view.sum().detach()  # computing with it is no error
        view.backward(torch.ones_like(view))
    result = (view * 2).sum()
    assert torch.autograd.grad(result, [view], allow_unused=True, retain_graph=True) == (None,)
    with pytest.raises(RuntimeError, match="appears to not have been used"):
        torch.autograd.grad(result, [view])
