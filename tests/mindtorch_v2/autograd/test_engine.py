"""The engine alone: hand-made nodes, the order in which they run, and what it tells the observer."""

from __future__ import annotations

import pytest

import mindtorch_v2 as torch
from mindtorch_v2._autograd.engine import queue_callback
from mindtorch_v2._autograd.nodes.accumulate import AccumulateGrad
from mindtorch_v2._autograd.nodes.node import Node
from mindtorch_v2._autograd.nodes.saved import fresh_storage
from mindtorch_v2._core.storage import Storage
from mindtorch_v2._core.threads import threads
from mindtorch_v2._dispatch import observer


class Step(Node):
    """Hands its gradient on to every edge and notes that it ran."""

    log: list[str]

    def __init__(self, label, sequence, *targets, log):
        self.label, self.log = label, log
        self.edges = tuple((target, 0) for target in targets)
        self.inputs = ((), torch.ones(()).numpy().dtype)
        self.hooks = None
        self.sequence = sequence

    def apply(self, grads):
        self.log.append(self.label)
        return [grads[0]] * len(self.edges)


def root_of(node):
    made = torch.ones(())
    made._keys |= 1
    made._node, made._output_nr = node, 0
    return made


def test_newest_first_and_leaves_at_once():
    log: list[str] = []
    x = torch.zeros((), requires_grad=True)
    x.register_post_accumulate_grad_hook(lambda _: log.append("leaf"))
    old = Step("old", 1, x._node, log=log)
    middle = Step("middle", 5, old, log=log)
    new = Step("new", 7, old, log=log)
    y = torch.zeros((), requires_grad=True)
    y.register_post_accumulate_grad_hook(lambda _: log.append("other leaf"))
    root_of(Step("root", 9, middle, y._node, new, log=log)).backward()
    assert log == ["root", "other leaf", "new", "middle", "old", "leaf"]
    assert x.grad.item() == 2.0


def test_a_node_runs_once_however_often_it_is_reached():
    log: list[str] = []
    shared = Step("shared", 1, log=log)
    root_of(Step("root", 2, shared, shared, Step("side", 1, shared, log=log), log=log)).backward()
    assert log == ["root", "side", "shared"]


def test_callbacks_run_at_the_end():
    log: list[str] = []
    x = torch.zeros((), requires_grad=True)
    x.register_hook(lambda g: queue_callback(lambda: log.append("end")))
    root_of(Step("root", 1, Step("next", 0, x._node, log=log), log=log)).backward()
    assert log == ["root", "next", "end"]
    with pytest.raises(RuntimeError, match="Final callbacks can only be installed during backward pass"):
        queue_callback(lambda: None)


def test_grad_mode_inside_and_after():
    seen: list[bool] = []
    x = torch.zeros((), requires_grad=True)
    x.register_hook(lambda g: seen.append(torch.is_grad_enabled()))
    (x * 2).backward()
    torch.autograd.grad(x * x, x, create_graph=True)
    with torch.no_grad():
        pass
    assert seen == [False, True] and torch.is_grad_enabled()


def test_an_error_leaves_grad_mode_as_it_was():
    x = torch.zeros((), requires_grad=True)
    y = x * 2
    y.register_hook(lambda g: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        y.backward()
    assert torch.is_grad_enabled()


def test_backward_inside_backward():
    x = torch.tensor(3.0, requires_grad=True)

    def inner(_):
        w = torch.tensor(2.0, requires_grad=True)
        with torch.enable_grad():
            (w * w).backward()
        seen.append(w.grad.item())

    seen: list[float] = []
    y = x * 2
    y.register_hook(inner)
    (y * y).backward()
    assert seen == [4.0] and x.grad.item() == 24.0


def test_a_wrong_gradient_names_the_node():
    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return g[:1].expand(3)

    with pytest.raises(RuntimeError) as caught:
        Wrong.apply(torch.ones(2, requires_grad=True)).sum().backward()
    assert str(caught.value) == (
        "Function WrongBackward returned an invalid gradient at index 0 - got [3] but expected shape compatible with [2]"
    )


# ---------------------------------------------------------------- what a profile sees


class Watcher:
    """Notes ops and spans of this thread in order of their end."""

    def __enter__(self):
        state = threads.state
        self.rows: list[tuple] = []

        def span(name, kind, start, end, seq, inputs=()):
            if kind != observer.FIRST_USE:  # of ops that no test used before
                self.rows.append((name, kind, seq))

        state.span = span
        state.append_row = lambda row: self.rows.append((observer.op_names[row[0]], observer.OP, row[3]))
        observer.acquire()
        return self

    def __exit__(self, *exc):
        observer.release()
        threads.state.span = threads.state.append_row = None

    def names(self):
        return [
            name.replace("autograd::engine::evaluate_function: ", "> ").replace("torch::autograd::", "")
            for name, _, _ in self.rows
        ]


def test_spans_of_a_backward_pass():
    x = torch.ones(3, requires_grad=True)
    first = threads.state.sequence
    with Watcher() as seen:
        (x * x).sum().backward()
    assert seen.names() == [
        "aten::mul",
        "aten::sum",
        "aten::empty_strided",
        "aten::empty_like",
        "aten::fill_",
        "aten::ones_like",
        "aten::expand",
        "SumBackward0",
        "> SumBackward0",
        "aten::mul",
        "aten::mul",
        "MulBackward0",
        "aten::add_",
        "> MulBackward0",
        "aten::detach",
        "AccumulateGrad",
        "> AccumulateGrad",
    ]
    numbers = {name: (kind, seq) for name, kind, seq in seen.rows}
    assert numbers["MulBackward0"] == (observer.BACKWARD, first)
    assert numbers["autograd::engine::evaluate_function: SumBackward0"] == (observer.ENGINE, first + 1)
    assert numbers["torch::autograd::AccumulateGrad"] == (observer.BACKWARD, -1)


COPIED = ["aten::empty_strided", "aten::new_empty_strided", "aten::copy_"]


@pytest.mark.parametrize(
    ("make", "inside"),
    [
        (lambda a, b: (a + b).sum(), [COPIED] * 2),
        (lambda a, b: ((a + b) * 2).sum(), [COPIED, ["aten::detach"]]),
        (lambda a, b: (a.t() * 2).sum(), [COPIED]),
        (lambda a, b: (a * 2).sum(), [["aten::detach"]]),
    ],
    ids=["expanded", "given twice", "other strides", "alone"],
)
def test_the_first_gradient_is_taken_over_or_copied(make, inside):
    a, b = torch.ones(2, 3, requires_grad=True), torch.ones(2, 3, requires_grad=True)
    with Watcher() as seen:
        make(a, b).backward()
    names = seen.names()
    ends = [i for i, name in enumerate(names) if name == "AccumulateGrad"]
    starts = [max(i for i, name in enumerate(names[:end]) if name.startswith(">")) for end in ends]
    assert [names[start + 1 : end] for start, end in zip(starts, ends, strict=True)] == inside


def test_several_gradients_are_added_up_first_in_a_new_tensor_then_in_place():
    a = torch.ones(3, requires_grad=True)
    with Watcher() as seen:
        (a * a + a).sum().backward()
    names = seen.names()
    end = names.index("> MulBackward0")
    assert names[end - 3 : end] == ["MulBackward0", "aten::add", "aten::add_"]


def test_autograd_grad_shows_leaves_that_do_not_run():
    x = torch.ones(3, requires_grad=True)
    with Watcher() as seen:
        torch.autograd.grad((x * 2).sum(), x)
    assert seen.names()[-2:] == ["> MulBackward0", "> AccumulateGrad"]


def test_unwanted_gradients_are_not_computed():
    x, w = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
    y = (x * w).sum()
    with Watcher() as seen:
        torch.autograd.grad(y, x)
    assert seen.names().count("aten::mul") == 1


def test_formulas_run_in_the_order_of_their_inputs_names():
    a, b = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
    y = (a / b).sum()
    with Watcher() as seen:
        y.backward()
    names = seen.names()
    end = names.index("DivBackward0")
    assert names[end - 5 : end] == ["aten::div", "aten::div", "aten::neg", "aten::mul", "aten::div"]


def test_several_roots_start_at_one_node():
    x = torch.ones(3, requires_grad=True)
    with Watcher() as seen:
        torch.autograd.backward([(x * 2).sum(), (x * 3).sum()])
    assert [n for n in seen.names() if n.startswith(">")] == [
        "> GraphRoot",
        "> SumBackward0",
        "> MulBackward0",
        "> SumBackward0",
        "> MulBackward0",
        "> AccumulateGrad",
    ]


def test_sums_come_before_additions():
    """All gradients of a node take their final form before any is added up."""
    a, b = torch.ones(3, 4, requires_grad=True), torch.ones(4, requires_grad=True)
    with Watcher() as seen:
        (a * b + a).sum().backward()
    names = seen.names()
    end = names.index("> MulBackward0")
    assert names[names.index("MulBackward0") + 1 : end] == ["aten::sum", "aten::view", "aten::add"]


def test_a_leaf_keeps_its_accumulator():
    x = torch.ones(2, requires_grad=True)
    node = (x * 2).grad_fn.next_functions[0][0]
    assert isinstance(node, AccumulateGrad) and (x + 1).grad_fn.next_functions[0][0] is node


def test_the_short_way_to_a_storage_leaves_nothing_out():
    tensor = torch.ones(2)
    made, expected = fresh_storage(tensor), Storage(tensor._array)
    assert tensor._storage is made
    for name in Storage.__slots__:
        if not name.startswith("__"):
            assert getattr(made, name) is getattr(expected, name)


@pytest.mark.parametrize("contiguous", [True, False])
def test_a_leaf_takes_a_sparse_gradient_over(contiguous):
    values = torch.ones(2, 3) if contiguous else torch.ones(1, 3).expand(2, 3)
    addresses = []

    class Sparse(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.sum()

        @staticmethod
        def backward(ctx, grad):
            sparse = torch.sparse_coo_tensor([[0, 1]], values.clone() if contiguous else values, (4, 3))
            addresses.append(sparse._values().data_ptr())
            return sparse

    x = torch.zeros(4, 3, requires_grad=True)
    Sparse.apply(x).backward()
    assert (x.grad._values().data_ptr() == addresses[0]) is contiguous
