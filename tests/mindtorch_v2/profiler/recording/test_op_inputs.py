"""What a recording says of the inputs of factories, of custom functions and of the gradient that backward() starts from."""

from __future__ import annotations

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile

X = torch.ones(2, 3, requires_grad=True)


def recorded(call, name=None):
    """The events of one name, or all, of a call whose arguments are recorded."""
    with profile(record_shapes=True) as prof:
        call()
    return [event for event in prof.events() if name is None or event.name == name]


# What PyTorch 2.13 records: False for a pin_memory that was not given, the dtype of a default, no generator unless given.
@pytest.mark.parametrize(
    ("call", "concrete"),
    [
        (lambda: torch.zeros(2, 3), [[2, 3], None, None, None, False]),
        (lambda: torch.zeros(2, pin_memory=False), [[2], None, None, None, False]),
        (lambda: torch.ones(2, dtype=torch.float64), [[2], 7, None, None, False]),
        (lambda: torch.empty(2), [[2], None, None, None, False, None]),
        (lambda: torch.empty(1, 2, 3, 4, memory_format=torch.channels_last), [[1, 2, 3, 4], None, None, None, False, 2]),
        (lambda: torch.full((2,), 1.5), [[2], 1.5, None, None, None, False]),
        (lambda: torch.arange(3), [3, None, None, None, False]),
        (lambda: torch.arange(0, 3, 2, dtype=torch.float32), [0, 3, 2, 6, None, None, False]),
        (lambda: torch.eye(2, 3), [2, 3, None, None, None, False]),
        (lambda: torch.linspace(0, 1, 3), [0, 1, 3, None, None, None, False]),
        (lambda: torch.rand(2), [[2], None, None, None, False]),
        (lambda: torch.randn(2), [[2], None, None, None, False]),
        (lambda: torch.randn(2, generator=torch.Generator()), [[2], None, None, None, None, False]),
        (lambda: torch.randint(5, (2,)), [5, [2], 4, None, None, False]),
        (lambda: torch.randint(1, 5, (2,), dtype=torch.float32), [1, 5, [2], 6, None, None, False]),
        (lambda: torch.randint(5, (2,), generator=torch.Generator()), [5, [2], None, 4, None, None, False]),
        (lambda: torch.randperm(3), [3, 4, None, None, False]),
        (lambda: torch.tril_indices(2, 2), [2, 2, 0, 4, None, None, False]),
        (lambda: torch.normal(0.0, 1.0, (2,)), [0.0, 1.0, [2], None, None, None, None, False]),
        (lambda: torch.zeros_like(X), [None, None, None, None, False, None]),
        (lambda: torch.full_like(X, 2), [None, 2, None, None, None, False, None]),
        (lambda: X.new_zeros(2), [None, [2], None, None, None, False]),
    ],
)
def test_factories(call, concrete):
    event = recorded(call)[0]
    assert event.concrete_inputs == concrete
    assert len(event.input_shapes) == len(concrete)


LISTS = [[2, 3], (2, 3), torch.Size([2, 3]), [3, 2], [1000, 0], [1000, 0], [2, torch.tensor(3)], [2, 3], [6], [2, 3]]


@pytest.mark.parametrize("first", range(len(LISTS)))
def test_lists_are_recorded_as_each_call_had_them(first):
    """A list is compared with that of the op's first call, without asking what is in it whether it is equal."""
    given = LISTS[first:] + LISTS[:first]
    # Numbers that nobody keeps, so that later ones come to lie where they were.
    events = recorded(lambda: [torch.zeros([int(str(n)) if type(n) is int else n for n in sizes]) for sizes in given])
    sizes = [event.concrete_inputs[0] for event in events if event.name == "aten::zeros"]
    assert sizes == [None if any(map(torch.is_tensor, each)) else list(each) for each in given]
    assert "aten::eq" not in {event.name for event in events}


@pytest.mark.parametrize(
    ("call", "counted"),
    [
        (lambda: torch.ones(2), False),
        (lambda: torch.arange(3), False),
        (lambda: torch.randn(2), False),
        (lambda: torch.zeros_like(X), False),
        (lambda: torch.randn_like(X), False),
        (lambda: X.new_zeros(2), True),
        (lambda: X + 1, True),
    ],
)
def test_only_what_autograd_sees_has_a_sequence_number(call, counted):
    assert (recorded(call)[0].sequence_nr >= 0) is counted


def test_the_gradient_to_start_from():
    total = (X * 2).sum()
    (event,) = recorded(total.backward, "aten::ones_like")
    assert event.sequence_nr == -1
    assert event.input_shapes == [[], [], [], [], [], []]
    assert event.concrete_inputs == [None, None, None, None, False, 1]


class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, *more):
        ctx.count = len(more)
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return (grad * 2, *(None,) * ctx.count)


class Apart(torch.autograd.Function):
    @staticmethod
    def forward(x, factor=2):
        return x * factor

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.factor = inputs[1]

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.factor, None


@pytest.mark.parametrize(
    ("args", "shapes", "concrete"),
    [
        ((), [[2, 3]], [None]),
        ((torch.ones(3), X.t()), [[2, 3], [3], [3, 2]], [None, None, None]),
        ((3, 2.5, True, 1j), [[2, 3], [], [], [], []], [None, 3, 2.5, True, 1j]),
        (([1, 2], [True]), [[2, 3], [], []], [None, [1, 2], [True]]),
        ((None, (1, 2), {1: 2}), [[2, 3], [], [], []], [None, None, None, None]),
        (("text", object(), torch.float32, [], ["a"]), [[2, 3]], [None]),
    ],
)
def test_custom_functions(args, shapes, concrete):
    (event,) = recorded(lambda: Twice.apply(X, *args), "Twice")
    assert event.input_shapes == shapes
    assert event.concrete_inputs == concrete and [*map(type, event.concrete_inputs)] == [*map(type, concrete)]


def test_arguments_left_out_of_a_custom_function_count_as_given():
    (event,) = recorded(lambda: Apart.apply(X), "Apart")
    assert (event.input_shapes, event.concrete_inputs) == ([[2, 3], []], [None, 2])


def test_types_of_a_custom_functions_inputs():
    with profile(record_shapes=True) as prof:
        Twice.apply(X, 3, [1, 2], None)
    (event,) = [e for e in prof.profiler.kineto_results.events() if e.name() == "Twice"]
    assert event.dtypes() == ["float", "Scalar", "ScalarList", ""]


def test_without_shapes_nothing_is_kept_of_a_custom_function():
    with profile() as prof:
        Twice.apply(X, 3)
    (event,) = [e for e in prof.events() if e.name == "Twice"]
    assert event.input_shapes == [] and event.concrete_inputs == []


def test_optional_tensors_that_come_and_go():
    """A capture compares with the op's first call: what differs from it, and what is no tensor, is looked up."""
    weight, bias, wide = torch.ones((3, 4)), torch.ones(3), torch.ones((3, 4), dtype=torch.float64)
    calls = [(weight, bias), (weight, None), (weight, bias), (wide, wide[:, 0]), (weight, None), (weight, bias)]
    with profile(record_shapes=True) as prof:
        for first, second in calls:
            torch.nn.functional.linear(torch.ones((2, 4), dtype=first.dtype), first, second)
    shown = [event.input_shapes for event in prof.events() if event.name == "aten::linear"]
    assert shown == [[[2, 4], [3, 4], [] if second is None else [3]] for _, second in calls]


def test_a_warning_in_a_recorded_backward_pass_names_the_users_line():
    x = torch.ones(2, requires_grad=True)
    with profile(with_stack=True):
        torch.set_warn_always(True)
        try:
            with pytest.warns(UserWarning, match="reference cycle") as warned:
                (x * x).sum().backward(create_graph=True)
        finally:
            torch.set_warn_always(False)
    x.grad = None
    assert [each.filename for each in warned] == [__file__]
