"""torch.autograd as its users see it: backward, grad, leaves, modes and their errors."""

from __future__ import annotations

import copy
import gc
import pickle
import threading
import warnings
import weakref
from contextlib import nullcontext

import pytest

import mindtorch_v2 as torch


def leaf(*values: float, dtype=torch.float32) -> torch.Tensor:
    return torch.tensor(list(values), dtype=dtype, requires_grad=True)


# ---------------------------------------------------------------- gradients


def test_backward_adds_to_grad():
    x = leaf(1.0, 2.0)
    for _ in range(2):
        (x * x).sum().backward()
    assert x.grad.tolist() == [4.0, 8.0]


def test_backward_takes_a_gradient():
    x = leaf(1.0, 2.0)
    (x * 3).backward(torch.tensor([1.0, 10.0]))
    assert x.grad.tolist() == [3.0, 30.0]


def test_a_second_gradient_is_added_to_the_same_tensor():
    x = leaf(1.0)
    (x * 2).sum().backward()
    kept = x.grad
    (x * 2).sum().backward()
    assert x.grad is kept and kept.tolist() == [4.0]


def test_gradients_of_several_roots():
    x = leaf(2.0)
    torch.autograd.backward([x * 2, x * x], [torch.ones(1), torch.full((1,), 10.0)])
    assert x.grad.tolist() == [42.0]


def test_grad_leaves_dot_grad_alone():
    x, w = leaf(2.0), leaf(5.0)
    gx, gw = torch.autograd.grad((x * x * w).sum(), [x, w])
    assert (gx.item(), gw.item(), x.grad, w.grad) == (20.0, 4.0, None, None)


def test_grad_of_what_is_not_a_leaf():
    x = leaf(2.0)
    y = x * 3
    assert torch.autograd.grad((y * y).sum(), [x, y])[1].item() == 12.0


def test_grad_by_name():
    x = leaf(2.0)
    assert torch.autograd.grad((x * x).sum(), {"x": x})["x"].item() == 4.0


def test_only_what_leads_to_the_inputs_is_computed():
    """The gradient of `w` is not asked for, so its formula must not run."""
    x, w = leaf(2.0), leaf(5.0)
    (x * w).sum().backward(inputs=[x])
    assert x.grad.item() == 5.0 and w.grad is None


def test_backward_to_an_input_that_is_not_a_leaf():
    x = leaf(2.0)
    y = x * 3
    (y * y).sum().backward(inputs=[y])
    assert y.grad.item() == 12.0 and x.grad is None


def test_unused_inputs():
    x, w = leaf(2.0), leaf(5.0)
    assert torch.autograd.grad((x * 2).sum(), [x, w], allow_unused=True)[1] is None
    assert torch.autograd.grad((x * 2).sum(), w, materialize_grads=True)[0].tolist() == [0.0]


def test_batched_gradients():
    x = leaf(1.0, 2.0)
    (jacobian,) = torch.autograd.grad(x * x, x, torch.eye(2), is_grads_batched=True)
    assert jacobian.tolist() == [[2.0, 0.0], [0.0, 4.0]]


def test_an_edge_stands_for_its_tensor():
    x = leaf(2.0, 3.0)
    edge = torch.autograd.graph.get_gradient_edge(x * x)
    assert torch.autograd.grad(edge, torch.autograd.graph.get_gradient_edge(x), torch.ones(2))[0].tolist() == [4.0, 6.0]


@pytest.mark.parametrize("order", [1, 2, 3])
def test_higher_derivatives(order):
    x = leaf(2.0)
    y = (x**3).sum()
    for _ in range(order):
        (y,) = torch.autograd.grad(y, x, create_graph=True)
    assert y.item() == {1: 12.0, 2: 12.0, 3: 6.0}[order]


def test_the_derivative_of_a_saved_result_has_history():
    x = leaf(0.5)
    (g,) = torch.autograd.grad(x.exp().sum(), x, create_graph=True)
    (h,) = torch.autograd.grad(g.sum(), x)
    assert h.item() == pytest.approx(x.exp().item())


def test_create_graph_gives_dot_grad_a_history():
    x = leaf(3.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (x * x).sum().backward(create_graph=True)
    assert x.grad.grad_fn.name() == "torch::autograd::CopyBackwards"
    assert torch.autograd.grad(x.grad.sum(), x)[0].item() == 2.0
    x.grad = None


def test_gradients_take_the_shape_and_dtype_of_the_input():
    x, h = torch.ones(3, 1, requires_grad=True), torch.ones(2, dtype=torch.float64, requires_grad=True)
    (x + torch.ones(2, 3, 4)).sum().backward()
    (h.float() * 2).sum().backward()
    assert x.grad.tolist() == [[8.0]] * 3 and h.grad.dtype is torch.float64


def test_gradients_of_two_leaves_never_share_memory():
    a, b = torch.ones(2, 2, requires_grad=True), torch.ones(2, 2, requires_grad=True)
    ((a.view(4) + b.view(4)) * 2).sum().backward()
    a.grad.zero_()
    assert b.grad.tolist() == [[2.0, 2.0], [2.0, 2.0]]


def test_the_gradient_of_a_leaf_is_laid_out_like_it():
    x = torch.ones(2, 3).t().requires_grad_()
    (x * torch.ones(3, 2)).sum().backward()
    assert x.grad.stride() == x.stride()


# ---------------------------------------------------------------- the graph


def test_a_graph_is_freed_by_backward():
    x = leaf(2.0)
    y = (x * x).sum()
    y.backward()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        y.backward()


def test_retain_graph():
    x = leaf(2.0)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.item() == 8.0


def test_a_graph_that_saved_nothing_can_be_walked_again():
    x = leaf(2.0)
    y = (x + 1).sum()
    y.backward()
    y.backward()
    assert x.grad.item() == 2.0


def test_nodes_and_their_names():
    x = torch.ones(2, requires_grad=True)
    node = (x * 2).sum().grad_fn
    inner = node.next_functions[0][0]
    assert [node.name(), inner.name(), type(inner).__name__] == ["SumBackward0", "MulBackward0", "MulBackward0"]
    assert inner.next_functions[0][0].variable is x and inner.next_functions[1] == (None, 0)
    assert x.grad_fn is None and type(inner.next_functions[0][0]).__name__ == "AccumulateGrad"


def test_a_node_can_be_called():
    x = torch.tensor([2.0, 3.0], requires_grad=True)
    gx, gy = (x * (x * 1)).grad_fn(torch.ones(2))
    assert gx.tolist() == gy.tolist() == [2.0, 3.0] and x.exp().grad_fn(torch.zeros(2)).tolist() == [0.0, 0.0]


def test_what_a_node_saved():
    x = torch.ones(2, requires_grad=True)
    node = x.exp().grad_fn
    assert torch.allclose(node._saved_result, x.exp()) and "_saved_result" in dir(node)
    assert (x * 2).grad_fn._saved_self is None
    with pytest.raises(AttributeError, match="'ExpBackward0' object has no attribute '_saved_other'"):
        _ = node._saved_other


def test_results_go_without_the_collector():
    """A node holds its own result, and that holds the node: no cycle may come of it."""
    x = torch.ones(2, requires_grad=True)
    gc.collect()
    gc.disable()
    try:
        for make in (lambda: x.exp(), lambda: x * x, lambda: (x * 1).exp_(), lambda: (x * 1)[0].exp_(), lambda: x.softmax(0)):
            made = make()
            gone = weakref.ref(made)
            del made
            assert gone() is None
    finally:
        gc.enable()


def test_a_deep_graph_neither_recurses_nor_overflows_when_it_goes():
    def work():
        x = leaf(1.0)
        for run in (True, False):
            y = x
            for _ in range(100_000):
                y = y + 1
            if run:
                y.sum().backward()
        done.append(x.grad.item())

    done: list[float] = []
    # CPython 3.13 nests up to 10,000 deallocations, which a smaller stack cannot hold whatever the graph's depth.
    before = threading.stack_size(1024 * 1024)
    try:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    assert done == [1.0]


def test_backward_from_several_threads_into_one_leaf():
    x = torch.zeros(2000, requires_grad=True)

    def work():
        for _ in range(50):
            (x * 1).sum().backward()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert x.grad.min().item() == x.grad.max().item() == 200.0


# ---------------------------------------------------------------- leaves


def test_leaf_rules():
    x = torch.ones(2, requires_grad=True)
    y = x + 1
    assert (x.is_leaf, y.is_leaf, torch.ones(1).is_leaf, y.requires_grad) == (True, False, True, True)


def test_detach():
    x = leaf(3.0)
    (x * x.detach()).sum().backward()
    y = x * 2
    y.detach_()
    assert x.grad.item() == 3.0 and y.is_leaf and not y.requires_grad


def test_data_shares_memory_and_not_the_version():
    x = torch.ones(2, requires_grad=True)
    version = x._version
    x.data.add_(1)
    assert x.tolist() == [2.0, 2.0] and x._version == version and not x.data.requires_grad
    x.detach().add_(1)
    assert x._version == version + 1


def test_setting_data_of_another_form_gives_a_gradient_of_that_form():
    x = torch.ones(2, requires_grad=True)
    x.data = torch.ones(3, dtype=torch.float64)
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0, 2.0] and x.grad.dtype is torch.float64


def test_requires_grad_off_and_on_keeps_grad_and_hooks():
    x = leaf(1.0)
    x.register_hook(lambda g: g * 10)
    (x * 1).sum().backward()
    x.requires_grad_(False)
    assert not (x * 2).requires_grad
    x.requires_grad_()
    (x * 1).sum().backward()
    assert x.grad.item() == 20.0


def test_grad_of_a_non_leaf_warns():
    y = torch.ones(1, requires_grad=True) * 2
    with pytest.warns(UserWarning, match="not a leaf Tensor is being accessed"):
        assert y.grad is None


def test_variable():
    assert isinstance(torch.ones(1), torch.autograd.Variable)
    assert torch.autograd.Variable(torch.ones(1), requires_grad=True).requires_grad


# ---------------------------------------------------------------- modes


def test_grad_modes():
    x = torch.ones(1, requires_grad=True)
    with torch.no_grad():
        off = (x * 2).requires_grad
        with torch.enable_grad():
            on = (x * 2).requires_grad
    with torch.set_grad_enabled(False):
        also_off = (x * 2).requires_grad
    assert (off, on, also_off, torch.is_grad_enabled()) == (False, True, False, True)


def test_no_grad_as_a_decorator():
    @torch.no_grad()
    def plain():
        return torch.is_grad_enabled()

    @torch.no_grad
    def rows():
        for _ in range(2):
            yield torch.is_grad_enabled()

    assert plain() is False and [(inside, torch.is_grad_enabled()) for inside in rows()] == [(False, True)] * 2


def test_inference_tensors_stay_out_of_autograd():
    x = torch.ones(2, requires_grad=True)
    with torch.inference_mode():
        y = x * 2
        assert torch.is_inference_mode_enabled() and not torch.ones(1).requires_grad
    assert y.is_inference() and y.view(2).is_inference() and not (y + 1).is_inference()
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        y * x
    with pytest.raises(RuntimeError, match="Setting requires_grad=True on inference tensor outside InferenceMode"):
        y.requires_grad_()
    assert (y.clone() * x).requires_grad and (y + x).requires_grad
    assert torch.stack([x[0], x[1]]).requires_grad  # its node saves the shapes of numbers, which are empty


def _inference_tensor() -> torch.Tensor:
    with torch.inference_mode():
        return torch.tensor([[4.0, 1.0], [3.0, 2.0]])


@pytest.mark.parametrize(
    "write",
    [
        lambda x: x.add_(1),
        lambda x: x.mul_(torch.ones(2)),
        lambda x: x.zero_(),
        lambda x: x.fill_(5),
        lambda x: x.neg_(),
        lambda x: x.copy_(torch.zeros(2)),
        lambda x: x.__setitem__(0, 9.0),
        lambda x: x[0].add_(2),
        lambda x: x.uniform_(),
        lambda x: x.masked_fill_(x > 0, 3.0),
        lambda x: x.index_put_((torch.tensor([0]),), torch.tensor(8.0)),
        lambda x: torch.add(torch.ones(2, 2), 1, out=x),
        lambda x: torch._foreach_add_([x], 1.0),
        lambda x: x.detach().add_(1),
        lambda x: x.unsqueeze_(0),
        lambda x: x.t_(),
        lambda x: x.resize_(5),
        lambda x: x.double().copy_(x).add_(x.add_(1)),
        lambda x: torch.nn.functional.dropout(x, 0.5, inplace=True),
        lambda x: x.add_(torch.ones(2, dtype=torch.float64)),
    ],
)
def test_inference_tensors_are_not_written_outside(write):
    x = _inference_tensor()
    for block in (torch.enable_grad, torch.no_grad):
        with block(), pytest.raises(RuntimeError, match="Inplace update to inference tensor outside InferenceMode"):
            write(x)
    assert x.tolist() == [[4.0, 1.0], [3.0, 2.0]]
    with torch.inference_mode():
        write(x)


def test_inference_tensors_have_no_version():
    x = _inference_tensor()
    with torch.inference_mode():
        x.add_(1)
        part = x[0]
    for each in (x, part, x.detach(), x.view(4)):
        assert each.is_inference()
        with pytest.raises(RuntimeError, match=r"Inference tensors do not track version counter\."):
            _ = each._version
    assert copy.deepcopy(x)._version == pickle.loads(pickle.dumps(x))._version == x.clone()._version == 0
    assert not copy.deepcopy(x).is_inference()
    assert copy.deepcopy(x).add_(1)._version == pickle.loads(pickle.dumps(x)).add_(1)._version == 1
    torch.autograd.graph.increment_version(x)


def test_versions_count_writes_that_happen():
    x = torch.zeros(2)
    with pytest.raises(RuntimeError):
        x.add_(torch.ones(3))
    assert x._version == 0
    x.add_(1).mul_(torch.ones(2, dtype=torch.float64))
    x[0] = 1
    assert x._version == 3


@pytest.mark.parametrize(
    "save",
    [
        lambda w, x: w * x,
        lambda w, x: x[0] * w,
        lambda w, x: torch.nn.functional.linear(x, w),
        lambda w, x: _Saving.apply(w, x),
        lambda w, x: torch.einsum("ij,jk->ik", w, x),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_inference_tensors_are_not_saved(save, packed):
    w, x = torch.ones(2, 2, requires_grad=True), _inference_tensor()
    hooks = torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t) if packed else nullcontext()
    with hooks, pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        save(w, x)


class _Saving(torch.autograd.Function):
    @staticmethod
    def forward(ctx, *tensors):
        ctx.save_for_backward(*tensors)
        return tensors[0] * 2

    @staticmethod
    def backward(ctx, grad):
        return grad, None


def test_a_leafs_gradient_may_have_another_dtype():
    x = torch.ones(2, requires_grad=True)
    assert x.grad_dtype is torch.float32
    x.grad_dtype = torch.float64
    (x * 2).sum().backward()
    (x * 2).sum().backward()
    assert x.grad.dtype is torch.float64 and x.grad.tolist() == [4.0, 4.0]
    with pytest.raises(RuntimeError, match="Cannot set grad_dtype to 'Half' because there is already a gradient with dtype"):
        x.grad_dtype = torch.float16
    x.grad = torch.zeros(2, dtype=torch.float64)
    with pytest.raises(RuntimeError, match="to a tensor with grad_dtype 'Double'"):
        x.grad = torch.zeros(2)
    y = torch.ones(2)
    y.grad_dtype = torch.float16
    y.requires_grad_().sum().backward()
    assert y.grad.dtype is torch.float16
    for wrong, message in ((3, "grad_dtype must be a torch.dtype or None, but got int"),):
        with pytest.raises(RuntimeError, match=message):
            y.grad_dtype = wrong
    with pytest.raises(RuntimeError, match="grad_dtype can only be accessed on leaf tensors"):
        _ = (x * 2).grad_dtype
    with pytest.raises(RuntimeError, match="grad_dtype can only be set on leaf tensors"):
        (x * 2).grad_dtype = torch.float32


def test_inference_mode_off_is_grad_mode_on():
    with torch.inference_mode(), torch.inference_mode(False):
        assert torch.is_grad_enabled() and not torch.is_inference_mode_enabled() and not torch.ones(1).is_inference()


def test_other_threads_are_not_in_inference_mode():
    made: list[torch.Tensor] = []
    with torch.inference_mode():
        thread = threading.Thread(target=lambda: made.append(torch.ones(1) * 1))
        thread.start()
        thread.join()
    assert not made[0].is_inference()


# ---------------------------------------------------------------- errors


def _x() -> torch.Tensor:
    return torch.ones(2, requires_grad=True)


def _assign(name, value):
    return lambda: setattr(_x(), name, value)


def _own_grad():
    x = _x()
    x.grad = x


ERRORS = [
    (lambda: (_x() * 2).backward(), RuntimeError, "grad can be implicitly created only for scalar outputs"),
    (
        lambda: (_x() * 2).backward(torch.ones(3)),
        RuntimeError,
        "Mismatch in shape: grad_output[0] has a shape of torch.Size([3]) and output[0] has a shape of torch.Size([2]).",
    ),
    (lambda: torch.ones(1).backward(), RuntimeError, "element 0 of tensors does not require grad and does not have a grad_fn"),
    (
        lambda: torch.autograd.grad(_x().sum(), [torch.ones(1)]),
        RuntimeError,
        "One of the differentiated Tensors does not require grad",
    ),
    (
        lambda: torch.autograd.grad(_x().sum(), [_x()]),
        RuntimeError,
        "The differentiated Tensor at index 0 appears to not have been used in the graph. Set allow_unused=True if this "
        "is the desired behavior.",
    ),
    (lambda: torch.autograd.grad(_x().sum(), []), RuntimeError, "`inputs` argument to `grad()` cannot be empty."),
    (lambda: _x().sum().backward(inputs=[]), RuntimeError, "`inputs` argument to `backward()` cannot be empty."),
    (lambda: torch.autograd.backward([_x().sum()], ["a"]), TypeError, "gradients can be either Tensors or None, but got str"),
    (
        lambda: torch.autograd.grad(_x().sum(), _x(), allow_unused=False, materialize_grads=True),
        ValueError,
        "Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False.",
    ),
    (lambda: torch.ones(2).retain_grad(), RuntimeError, "can't retain_grad on Tensor that has requires_grad=False"),
    (
        lambda: torch.ones(2).register_hook(print),
        RuntimeError,
        "cannot register a hook on a tensor that doesn't require gradient",
    ),
    (
        lambda: (_x() * 2).register_post_accumulate_grad_hook(print),
        RuntimeError,
        "post accumulate grad hooks cannot be registered on non-leaf tensors",
    ),
    (
        lambda: (_x() * 2).requires_grad_(False),
        RuntimeError,
        "you can only change requires_grad flags of leaf variables. If you want to use a computed variable in a subgraph "
        "that doesn't require differentiation use var_no_grad = var.detach().",
    ),
    (
        lambda: torch.ones(2, dtype=torch.int64).requires_grad_(),
        RuntimeError,
        "only Tensors of floating point dtype can require gradients",
    ),
    (
        _assign("grad", torch.ones(3)),
        RuntimeError,
        "attempting to assign a gradient of size '[3]' to a tensor of size '[2]'. Please ensure that the gradient and the "
        "tensor are the same size",
    ),
    (_assign("grad", 3), TypeError, "assigned grad expected to be a Tensor or None but got grad of type int"),
    (_own_grad, RuntimeError, "can't assign Variable as its own grad"),
]


@pytest.mark.parametrize(("call", "kind", "message"), ERRORS, ids=[message[:40] for _, _, message in ERRORS])
def test_errors(call, kind, message):
    with pytest.raises(kind) as caught:
        call()
    assert str(caught.value) == message


def test_an_op_without_a_derivative_says_so_when_asked():
    x = torch.ones(2, requires_grad=True)
    y = x.round()  # known: its gradient is zero
    assert torch.autograd.grad(y.sum(), x)[0].tolist() == [0.0, 0.0]


# ---------------------------------------------------------------- anomaly mode


def test_anomaly_mode_names_the_forward_call():
    x = torch.tensor(0.0, requires_grad=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with torch.autograd.detect_anomaly(), pytest.raises(RuntimeError) as error:
            (torch.sqrt(x) * 0).backward()
    assert str(error.value) == "Function 'SqrtBackward0' returned nan values in its 0th output."
    told = [str(w.message) for w in caught if "Error detected in SqrtBackward0" in str(w.message)]
    assert len(told) == 1 and "torch.sqrt(x) * 0" in told[0]
    assert not torch.is_anomaly_enabled()


def test_anomaly_mode_can_leave_nan_alone():
    x = torch.tensor(0.0, requires_grad=True)
    with torch.autograd.set_detect_anomaly(True, check_nan=False):
        (torch.sqrt(x) * 0).backward()
    assert x.grad.isnan().item()
