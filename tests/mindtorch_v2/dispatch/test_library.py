"""torch.library, torch.ops, torch.compile and torch.jit: ops and functions from outside."""

from __future__ import annotations

import pytest

import mindtorch_v2 as torch
from mindtorch_v2._core.threads import threads
from mindtorch_v2._dispatch import entry_globals


def test_custom_op_with_a_derivative():
    @torch.library.custom_op("test_library::scaled", mutates_args=())
    def scaled(x: torch.Tensor, factor: float = 2.0) -> torch.Tensor:
        """x * factor"""
        return x * factor

    def setup(ctx, inputs, output):
        ctx.factor = inputs[1]

    scaled.register_autograd(lambda ctx, g: (g * ctx.factor, None), setup_context=setup)
    x = torch.ones(2, requires_grad=True)
    y = torch.ops.test_library.scaled(x, 3.0)
    y.sum().backward()
    assert (y.tolist(), x.grad.tolist()) == ([3.0, 3.0], [3.0, 3.0])
    assert scaled(torch.ones(1)).tolist() == [2.0]
    assert scaled.__doc__ == "x * factor"


def test_fake_kernels_serve_meta_tensors():
    @torch.library.custom_op("test_library::doubled_rows", mutates_args=())
    def doubled_rows(x: torch.Tensor) -> torch.Tensor:
        return torch.cat([x, x])

    @doubled_rows.register_fake
    def _(x):
        return x.new_empty((x.shape[0] * 2, *x.shape[1:]))

    assert doubled_rows(torch.ones(2, 3, device="meta")).shape == (4, 3)


def test_define_and_impl():
    torch.library.define("test_library::plus", "(Tensor a, Tensor b) -> Tensor")
    with pytest.raises(NotImplementedError, match="test_library::plus"):
        torch.ops.test_library.plus(torch.ones(1), torch.ones(1))
    torch.library.impl("test_library::plus", "cpu")(lambda a, b: a + b)
    assert torch.ops.test_library.plus(torch.ones(1), torch.ones(1)).item() == 2.0
    library = torch.library.Library("test_library", "FRAGMENT")
    library.define("minus(Tensor a, Tensor b) -> Tensor")
    library.impl("minus", lambda a, b: a - b, "CompositeImplicitAutograd")
    assert torch.ops.test_library.minus(torch.ones(1), torch.ones(1)).item() == 0.0


def test_infer_schema():
    def f(x: torch.Tensor, n: int, scale: float = 1.0, *, names: list[int] | None = None) -> tuple[torch.Tensor, torch.Tensor]:
        raise NotImplementedError

    assert (
        torch.library.infer_schema(f, mutates_args=())
        == "(Tensor x, int n, float scale=1.0, *, int[]? names=None) -> (Tensor, Tensor)"
    )
    with pytest.raises(ValueError, match="must have a type annotation"):
        torch.library.infer_schema(lambda x: x, mutates_args=())


def test_bad_names():
    with pytest.raises(ValueError, match="namespace::name"):
        torch.library.custom_op("nospace", lambda x: x, mutates_args=())
    with pytest.raises(RuntimeError, match="was not defined"):
        torch.library.register_fake("test_library::nothing", lambda: None)
    with pytest.raises(ValueError, match="Unsupported kind"):
        torch.library.Library("x", "USE")
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = torch.ops.test_library.nothing


def test_ops_namespace():
    a = torch.tensor([1.0, 2.0])
    assert torch.ops.aten.add.Tensor(a, a).tolist() == [2.0, 4.0]
    assert torch.ops.aten.mul(a, 3).tolist() == [3.0, 6.0]
    assert str(torch.ops.aten.add.Tensor) == "aten.add.Tensor"
    assert "Tensor" in torch.ops.aten.add.overloads()


def test_compile_runs_eagerly():
    @torch.compile
    def f(x, k=2):
        return x * k if k > 1 else x

    assert f(torch.ones(2)).tolist() == [2.0, 2.0]
    module = torch.nn.Linear(2, 1)
    compiled = torch.compile(module, backend="eager")
    assert compiled.weight is module.weight
    assert torch.equal(compiled(torch.ones(1, 2)), module(torch.ones(1, 2)))
    with pytest.raises(RuntimeError, match="mode or options"):
        torch.compile(f, mode="default", options={})


def test_jit_runs_eagerly():
    module = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Dropout())
    scripted = torch.jit.script(module)
    assert isinstance(scripted, torch.jit.ScriptModule)
    scripted.eval()
    assert not module.training
    x = torch.ones(1, 2)
    assert torch.equal(scripted(x), module(x))
    assert list(scripted.state_dict()) == list(module.state_dict())
    assert torch.jit.trace(lambda a: a * 2, x)(x).tolist() == [[2.0, 2.0]]
    with pytest.raises(RuntimeError, match="example_inputs"):
        torch.jit.trace(module)


def test_results_that_a_derivative_does_not_keep_may_be_written_into():
    @torch.library.custom_op("mylib::doubled_and_kept_nothing", mutates_args=())
    def doubled(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    def keeps_nothing(ctx, inputs, output):
        ctx.factor = 2

    doubled.register_autograd(lambda ctx, g: g * ctx.factor, setup_context=keeps_nothing)
    x = torch.ones(3, requires_grad=True)
    y = doubled(x)
    y.add_(1)
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0, 2.0]

    @torch.library.custom_op("mylib::exponential_kept", mutates_args=())
    def exponential(x: torch.Tensor) -> torch.Tensor:
        return x.exp()

    exponential.register_autograd(
        lambda ctx, g: g * ctx.saved_tensors[0], setup_context=lambda ctx, inputs, output: ctx.save_for_backward(output)
    )
    y = exponential(x)
    y.sum().backward()
    assert torch.allclose(x.grad, 2 + torch.ones(3).exp())
    y = exponential(x)
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_a_scoped_library_takes_its_ops_away():
    with torch.library._scoped_library("scoped_ops", "FRAGMENT") as lib:
        lib.define("twice(Tensor x) -> Tensor")
        lib.impl("twice", lambda x: x * 2)
        assert torch.ops.scoped_ops.twice(torch.ones(1)).item() == 2
    with pytest.raises(AttributeError, match="twice"):
        torch.ops.scoped_ops.twice  # noqa: B018


def test_an_op_may_return_a_number_beside_a_tensor():
    @torch.library.custom_op("numbers::sin_and_two", mutates_args=())
    def sin_and_two(x: torch.Tensor) -> tuple[torch.Tensor, int]:
        return x.sin(), 2

    sin_and_two.register_autograd(
        lambda ctx, grad, number: grad * ctx.saved_tensors[0].cos(),
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
    )
    x = torch.tensor(0.5, requires_grad=True)
    result, number = sin_and_two(x)
    result.backward()
    assert number == 2 and x.grad == torch.tensor(0.5).cos()


def test_autocast_of_an_op_from_outside():
    seen = []

    @torch.library.custom_op("test_library::twice_cast", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        seen.append(torch.is_autocast_enabled("cpu"))
        return x * 2

    torch.library.register_autocast("test_library::twice_cast", "cpu", torch.float16)
    x = torch.ones(3)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert twice(x).dtype is torch.ops.test_library.twice_cast(x).dtype is torch.float16
        assert len(threads.state.modes) == 1  # the block inside the op leaves what it found
    assert twice(x).dtype is torch.float32
    assert seen == [False, False, False] and not threads.state.modes and not entry_globals.observers_active
    with pytest.raises(RuntimeError, match="at start of device string: nowhere$"):
        torch.library.register_autocast("test_library::twice_cast", "nowhere", torch.float16)


def test_impl_abstract_is_the_old_name_of_register_fake():
    @torch.library.custom_op("test_library::shaped", mutates_args=())
    def shaped(x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    torch.library.impl_abstract("test_library::shaped", lambda x: x.new_empty(x.shape))
    assert shaped(torch.ones(2, 3, device="meta")).shape == (2, 3)
