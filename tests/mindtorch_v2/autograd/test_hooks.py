"""Hooks on tensors, nodes and leaves, and on what is saved."""

from __future__ import annotations

import gc
import threading
import weakref

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.autograd.graph import (
    allow_mutation_on_saved_tensors,
    disable_saved_tensors_hooks,
    register_multi_grad_hook,
    save_on_cpu,
    saved_tensors_hooks,
)


def x2() -> torch.Tensor:
    return torch.tensor([1.0, 2.0], requires_grad=True)


# ---------------------------------------------------------------- tensors


def test_hooks_see_and_replace_gradients_in_order():
    x, seen = x2(), []
    y = x * 2
    first = y.register_hook(lambda g: seen.append(g.tolist()))
    y.register_hook(lambda g: g * 10)
    y.register_hook(lambda g: seen.append(g.tolist()))
    y.sum().backward()
    first.remove()
    first.remove()
    assert seen == [[1.0, 1.0], [10.0, 10.0]] and x.grad.tolist() == [20.0, 20.0]


def test_a_handle_is_a_context():
    x = x2()
    with x.register_hook(lambda g: g * 10):
        (x * 1).sum().backward()
    (x * 1).sum().backward()
    assert x.grad.tolist() == [11.0, 11.0]


def test_a_hook_on_a_leaf_runs_once_with_the_sum():
    x, seen = x2(), []
    x.register_hook(lambda g: seen.append(g.tolist()))
    (x * 2 + x * 3).sum().backward()
    assert seen == [[5.0, 5.0]]


def test_retain_grad_keeps_what_hooks_left():
    y = x2() * 3
    y.retain_grad()
    y.register_hook(lambda g: g * 10)
    y.sum().backward()
    assert y.grad.tolist() == [10.0, 10.0] and y.retains_grad


def test_retain_grad_on_a_leaf_changes_nothing():
    x = x2()
    x.retain_grad()
    assert not x.retains_grad


def test_post_accumulate_grad_hooks():
    x, seen = x2(), []
    handle = x.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.tolist()))
    (x * 4).sum().backward()
    (x * 1).sum().backward()
    handle.remove()
    (x * 1).sum().backward()
    assert seen == [[4.0, 4.0], [5.0, 5.0]]


def test_hooks_run_where_gradients_are_only_caught():
    x = x2()
    y = x * 2
    y.register_hook(lambda g: g * 10)
    assert torch.autograd.grad((y * 3).sum(), y)[0].tolist() == [30.0, 30.0]


# ---------------------------------------------------------------- nodes


def test_hooks_before_and_after_a_node():
    x, seen = x2(), []
    y = x * 2
    y.grad_fn.register_prehook(lambda go: (go[0] * 3,))
    y.grad_fn.register_hook(lambda gi, go: seen.append((gi[0].tolist(), gi[1], go[0].tolist())))
    y.grad_fn.register_hook(lambda gi, go: (gi[0] * 5, None))
    y.sum().backward()
    assert seen == [([6.0, 6.0], None, [3.0, 3.0])] and x.grad.tolist() == [30.0, 30.0]


def test_hooks_on_an_accumulator():
    x, seen = x2(), []
    node = (x * 1).grad_fn.next_functions[0][0]
    node.register_hook(lambda gi, go: seen.append((gi, go[0].tolist(), x.grad.tolist())))
    node.register_prehook(lambda go: (go[0] * 2,))
    (x * 1).sum().backward()
    assert seen == [((), [2.0, 2.0], [2.0, 2.0])]


def test_metadata():
    node = (x2() * 1).grad_fn
    node.metadata["note"] = 1
    assert node.metadata == {"note": 1}


BAD = [
    (lambda y: y.register_hook(lambda g: g[:1]), RuntimeError, "hook '<lambda>' has changed the size of value"),
    (lambda y: y.register_hook(lambda g: 3), TypeError, "expected Variable, but hook returned 'int'"),
    (
        lambda y: y.register_hook(lambda g: g.double()),
        RuntimeError,
        "hook '<lambda>' has changed the type of value (was torch.FloatTensor got torch.DoubleTensor)",
    ),
    (
        lambda y: y.grad_fn.register_hook(lambda a, b: a + a),
        RuntimeError,
        "hook '<lambda>' has returned an incorrect number of values (got 4, but expected 2)",
    ),
    (lambda y: y.grad_fn.register_prehook(lambda a: a[0] * 3), TypeError, "expected tuple, but hook returned 'Tensor'"),
]


@pytest.mark.parametrize(("register", "kind", "message"), BAD, ids=[message[-30:] for _, _, message in BAD])
def test_what_hooks_may_not_return(register, kind, message):
    y = x2() * 2
    register(y)
    with pytest.raises(kind) as caught:
        y.sum().backward()
    assert str(caught.value) == message


# ---------------------------------------------------------------- several tensors


def test_one_hook_for_all_gradients():
    a, b, unused = x2(), x2(), x2()
    seen = []
    handle = register_multi_grad_hook(
        (a, b, unused), lambda grads: seen.append([g if g is None else g.tolist() for g in grads])
    )
    (a * 2 + b * 3).sum().backward()
    handle.remove()
    (a * 2).sum().backward()
    assert seen == [[[2.0, 2.0], [3.0, 3.0], None]]


def test_one_hook_for_any_gradient():
    a, b = x2(), x2()
    seen = []
    register_multi_grad_hook((a, b), lambda grad: seen.append(grad.tolist()), mode="any")
    for _ in range(2):
        (a * 2 + b * 2).sum().backward()
    assert seen == [[2.0, 2.0]] * 2
    with pytest.raises(ValueError):
        register_multi_grad_hook((a,), print, mode="some")


# ---------------------------------------------------------------- saved tensors


def test_pack_and_unpack():
    packed = []
    x = torch.tensor([2.0, 3.0], requires_grad=True)
    with saved_tensors_hooks(lambda t: (packed.append((list(t.shape), t.requires_grad)), t * 1)[1], lambda t: t * 10):
        y = x * x
    y.sum().backward()
    assert packed == [([2], True)] * 2 and x.grad.tolist() == [40.0, 60.0]


class _Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        made = x * 2
        ctx.save_for_backward(x, made)
        return made

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda x, y: y * x, [(True, None), (True, "MulBackward0")]),
        (lambda x, y: y.exp(), [(True, "ExpBackward0")]),
        (lambda x, y: x * torch.ones(2), [(False, None)]),
        (lambda x, y: (y * 1).sigmoid_(), [(True, "SigmoidBackward0")]),
        (lambda x, y: y.max(0), [(False, None)]),
        (lambda x, y: _Doubled.apply(y), [(True, "MulBackward0"), (True, "_DoubledBackward")]),
    ],
)
def test_packing_sees_where_a_tensor_came_from(make, expected):
    seen = []

    def pack(tensor):
        seen.append((tensor.requires_grad, None if tensor.grad_fn is None else tensor.grad_fn.name()))
        assert not torch.is_grad_enabled()
        return tensor

    x = x2()
    y = x * 2
    with saved_tensors_hooks(pack, lambda tensor: tensor):
        make(x, y)
    assert seen == expected


@pytest.mark.parametrize("pair", [(lambda t: t, lambda t: t), (lambda t: (t.shape, [t * 1, t]), lambda held: held[1][1])])
def test_what_is_packed_keeps_no_result_alive(pair):
    x = x2()
    with saved_tensors_hooks(*pair):
        y = x.exp()
    node = weakref.ref(y)
    gc.disable()
    try:
        del y
        assert node() is None
    finally:
        gc.enable()


def test_a_handle_of_several_hooks_has_torchs_name():
    assert type(register_multi_grad_hook((x2(),), print)) is torch.autograd.graph._MultiHandle


@pytest.mark.parametrize(
    "make",
    [
        lambda x: x.exp(),
        lambda x: x * x,
        lambda x: torch.cat((x, x)) * x.repeat(2),
        lambda x: (x * 1).exp_(),
        lambda x: torch.nn.functional.layer_norm(x, (2,), x, x),
        lambda x: x.max(0).values * x[0],
    ],
)
def test_packing_changes_no_gradient(make):
    def grads(order):
        x = torch.tensor([0.5, 2.0], dtype=torch.float64, requires_grad=True)
        (g,) = torch.autograd.grad(make(x).sum(), x, create_graph=True)
        return g if order == 1 else torch.autograd.grad(g.sum(), x, allow_unused=True, materialize_grads=True)[0]

    store: list[torch.Tensor] = []
    for order in (1, 2):
        plain = grads(order)
        with saved_tensors_hooks(lambda t: (store.append(t), len(store) - 1)[1], lambda i: store[i].clone()):
            packed = grads(order)
        assert torch.allclose(plain, packed)
    assert store


def test_the_inner_pair_counts():
    x = torch.tensor([2.0], requires_grad=True)
    with saved_tensors_hooks(lambda t: t, lambda t: t * 10):
        with saved_tensors_hooks(lambda t: t, lambda t: t * 100):
            y = x * x
        z = x * x
    y.sum().backward()
    assert x.grad.item() == 400.0
    x.grad = None
    z.sum().backward()
    assert x.grad.item() == 40.0


def test_hooks_are_the_threads_own():
    x, seen = x2(), []
    with saved_tensors_hooks(lambda t: (seen.append(1), t)[1], lambda t: t):
        thread = threading.Thread(target=lambda: x * x)
        thread.start()
        thread.join()
    assert not seen


def test_what_pack_and_unpack_may_not_do():
    x = x2()
    with pytest.raises(RuntimeError, match="A saved tensor pack hook is modifying its input in place"):
        with saved_tensors_hooks(lambda t: t.mul_(2), lambda t: t):
            x * x
    with saved_tensors_hooks(lambda t: t, lambda t: 3):
        y = x.exp()
    with pytest.raises(TypeError, match="Output of saved tensor unpack_hook expected to be a Tensor"):
        y.sum().backward()


def test_disabling():
    with disable_saved_tensors_hooks("not here"), pytest.raises(RuntimeError, match="not here"):
        with saved_tensors_hooks(lambda t: t, lambda t: t):
            pass


@pytest.mark.parametrize("pin", [False, True])
def test_save_on_cpu(pin):
    x = x2()
    with save_on_cpu(pin_memory=pin):
        y = x * x
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 4.0]


def test_saved_tensors_may_be_changed_where_that_is_allowed():
    x = x2()
    y = x * 1
    with allow_mutation_on_saved_tensors():
        z = y * y
        y.zero_()
        z.sum().backward()
    assert x.grad.tolist() == [2.0, 4.0]


def test_hooks_of_a_leafs_node_share_memory_with_its_gradient():
    x = torch.zeros(2, requires_grad=True)
    node = x.view_as(x).grad_fn.next_functions[0][0]

    def add_half(leaf):
        leaf.grad.add_(0.5)

    x.register_post_accumulate_grad_hook(add_half)
    seen = []
    node.register_hook(lambda inputs, outputs: seen.append(outputs[0].tolist()))
    (x * 2).sum().backward()
    assert seen == [[2.5, 2.5]] and x.grad.tolist() == [2.5, 2.5]


def test_private_attributes_of_torch():
    x = torch.zeros(2, requires_grad=True)
    y = x * 2
    assert x._grad_fn is None and y._grad_fn is y.grad_fn
    assert y._backward_hooks is None and torch.zeros(1)._backward_hooks is None
    y.register_hook(print)
    assert list(y._backward_hooks.values()) == [print]
    called = []
    for tensor in (y, torch.zeros(1)):
        tensor._backward_hooks = {}
        tensor._backward_hooks["mine"] = called.append
    y.sum().backward()
    assert [grad.tolist() for grad in called] == [[1, 1]]
    y._backward_hooks = None
    assert y._backward_hooks is None
    for name, words in (
        ("requires_grad", "requires_grad must be a bool"),
        ("_grad_fn", "Deletion of _grad_fn not allowed. Detach tensor instead!"),
        ("_backward_hooks", "Deletion of _backwards_hooks not allowed!"),
        ("data", "Deleting tensor data is not allowed. Delete tensor instead!"),
    ):
        with pytest.raises(RuntimeError, match=words):
            delattr(y, name)
    with pytest.raises(RuntimeError, match="_grad_fn can be only set to None"):
        y._grad_fn = x.grad_fn or 1
    y._grad_fn = None
    assert y.grad_fn is None and not y.requires_grad
