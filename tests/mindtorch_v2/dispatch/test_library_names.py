"""Private names of torch that libraries use: what they do, and what they refuse."""

from __future__ import annotations

import importlib
import pickle

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import as_torch, nn
from mindtorch_v2._C import _functorch, _is_alias_of
from mindtorch_v2._functorch import vmap as vmap_steps
from mindtorch_v2.nn.utils._named_member_accessor import swap_tensor
from mindtorch_v2.utils._contextlib import _DecoratorContextManager
from mindtorch_v2.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode, is_traceable_wrapper_subclass


class Named(torch.Tensor):
    """A subclass without anything of its own."""


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        (lambda: Named(torch.ones(2, 2)), "Named([[1., 1.],\n       [1., 1.]])"),
        (lambda: Named(torch.arange(3)), "Named([0, 1, 2])"),
        (lambda: nn.Parameter(Named(torch.ones(2))), "Parameter(Named([1., 1.], requires_grad=True))"),
        (lambda: nn.Parameter(torch.ones(1)), "Parameter containing:\ntensor([1.], requires_grad=True)"),
        (lambda: torch.Tensor(torch.arange(2)), "tensor([0, 1])"),
        (lambda: torch.Tensor(torch.ones(1, requires_grad=True)), "tensor([1.], grad_fn=<AliasBackward0>)"),
    ],
)
def test_subclasses_show_their_name_and_tensors_keep_their_dtype(shown, text):
    assert repr(shown()) == text


def test_quantized_dtypes_are_named_and_refused():
    assert str(torch.qint8) == "torch.qint8" and torch.quint4x2.itemsize == 1 and not torch.qint32.is_floating_point
    assert pickle.loads(pickle.dumps(torch.quint8)) is torch.quint8
    with pytest.raises(RuntimeError, match="isSignedType not supported for quantized types"):
        _ = torch.qint8.is_signed
    with pytest.raises(NotImplementedError, match=r"torch.qint8: there are no quantized tensors. See docs/compatibility.md"):
        torch.empty(2, dtype=torch.qint8)


def test_functorch_is_importable_under_the_alias():
    with as_torch.installed():
        functorch = importlib.import_module("functorch")
        assert functorch.vmap is torch.func.vmap
        with pytest.raises(ImportError):
            importlib.import_module("functorch.dim")
    model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3)).eval()
    function, parameters, buffers = functorch.make_functional_with_buffers(model)
    x = torch.ones(4, 2)
    assert torch.equal(function(parameters, buffers, x), model(x))
    assert torch.equal(function([p * 0 for p in parameters], buffers, x), torch.zeros(4, 3))
    linear, (weight, bias) = functorch.make_functional(nn.Linear(2, 3))
    assert torch.equal(linear((weight, bias), x), x @ weight.t() + bias)
    with pytest.raises(ValueError, match="has buffers"):
        functorch.make_functional(model)
    ensemble, stacked, stacked_buffers = functorch.combine_state_for_ensemble([model, model])
    assert functorch.vmap(ensemble, (0, 0, None))(stacked, stacked_buffers, x).shape == (2, 4, 3)
    with pytest.raises(NotImplementedError, match="make_fx"):
        functorch.make_fx(model)


def test_steps_of_vmap_can_be_replaced(monkeypatch):
    class Pair:
        def __init__(self, first, second):
            self.first, self.second = first, second

    def process(in_dims, args, func):
        return 2, [0, 0], [args[0].first, args[0].second], None

    def create(dims, leaves, level, spec):
        return (Pair(*[_functorch._add_batch_dim(leaf, dim, level) for leaf, dim in zip(leaves, dims, strict=True)]),)

    monkeypatch.setattr(vmap_steps, "_process_batched_inputs", process)
    monkeypatch.setattr(vmap_steps, "_create_batched_inputs", create)
    mapped = torch.vmap(lambda pair, scale: pair.first.sum() * pair.second, out_dims=0)
    pair = Pair(torch.ones(2, 3), torch.tensor([1.0, 2.0]))
    assert torch.equal(mapped(pair, scale=torch.ones(2)), torch.tensor([3.0, 6.0]))


def test_own_steps_of_vmap_do_what_vmap_does():
    x = torch.arange(6.0).view(2, 3)
    size, dims, leaves, spec = vmap_steps._process_batched_inputs(1, (x,), torch.sum)
    assert (size, dims) == (3, [1])
    (sample,) = vmap_steps._create_batched_inputs(dims, leaves, 0, spec)
    assert _functorch.is_batchedtensor(sample) and sample.shape == (2,)
    assert torch.equal(vmap_steps._unwrap_batched(sample, 1, 0, size, torch.sum), x)
    assert vmap_steps._unwrap_batched(torch.ones(2), 0, 0, 3, torch.sum).shape == (3, 2)
    with pytest.raises(ValueError, match="must only return Tensors"):
        vmap_steps._maybe_remove_batch_dim("f", 3, 0, 2, 0)


@pytest.mark.parametrize("name", ["as_nested_tensor", "nested_tensor", "nested_tensor_from_jagged", "to_padded_tensor"])
def test_nested_tensors_are_refused_at_use(name):
    with pytest.raises(NotImplementedError, match=rf"torch.nested.{name}: .* See docs/compatibility.md"):
        getattr(torch.nested, name)([torch.ones(2)])


def test_members_of_a_module_are_swapped():
    layer = nn.Linear(2, 2)
    bias = layer.bias
    assert swap_tensor(layer, "bias", torch.ones(2)) is bias and type(layer.bias) is torch.Tensor
    missing = swap_tensor(layer, "extra", torch.ones(1), allow_missing=True)
    swap_tensor(layer, "extra", missing, allow_missing=True)
    assert not hasattr(layer, "extra")
    for error, name, value in ((AttributeError, "nope", bias), (KeyError, "a.b", bias), (TypeError, "weight", 3)):
        with pytest.raises(error):
            swap_tensor(layer, name, value)


def test_blocks_decorate_functions():
    class Counting(_DecoratorContextManager):
        entered = 0

        def __enter__(self):
            Counting.entered += 1

        def __exit__(self, *exc):
            pass

    @Counting()
    def generate():
        yield 1
        yield 2

    assert list(generate()) == [1, 2] and Counting.entered == 3
    assert Counting()(lambda: 5)() == 5


def test_questions():
    class Seen(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    assert _get_current_dispatch_mode() is None
    with Seen() as mode:
        assert _get_current_dispatch_mode() is mode
    x = torch.ones(4)
    assert _is_alias_of(x, x[1:]) and not _is_alias_of(x, x.clone())
    assert not is_traceable_wrapper_subclass(x) and issubclass(torch.UntypedStorage, torch.StorageBase)
    assert torch._guards.active_fake_mode() is None and torch._utils._get_device_module("cpu") is torch.cpu


@pytest.mark.parametrize(
    ("name", "refused"),
    [
        ("torch.jit.save", lambda: torch.jit.save(torch.jit.script(nn.Linear(2, 2)), "x.pt")),
        ("torch.jit.load", lambda: torch.jit.load("x.pt")),
        ("torch.export.export", lambda: torch.export.export(nn.Linear(2, 2), (torch.ones(1, 2),))),
        ("torch.export.load", lambda: torch.export.load("x.pt2")),
        ("torch.onnx.export", lambda: torch.onnx.export(nn.Linear(2, 2), (torch.ones(1, 2),), "x.onnx")),
        ("torch.SymInt", lambda: torch.SymInt(3)),
        ("make_fx", lambda: importlib.import_module("mindtorch_v2.fx.experimental.proxy_tensor").make_fx(torch.sin)),
        ("x.so", lambda: torch.ops.load_library("x.so")),
    ],
)
def test_refusals_name_themselves_and_the_page(name, refused):
    with pytest.raises(NotImplementedError, match=name) as raised:
        refused()
    assert str(raised.value).endswith("See docs/compatibility.md")


def test_compile_refuses_names_that_torch_does_not_know():
    with pytest.raises(RuntimeError, match=r"Invalid backend: 'nope', see `torch._dynamo.list_backends\(\)`"):
        torch.compile(nn.Linear(2, 2), backend="nope")
    with pytest.raises(RuntimeError, match="Unrecognized mode=nope, should be one of: default, lite, reduce-overhead"):
        torch.compile(torch.sin, mode="nope")
    assert torch.equal(torch.compile(torch.sin, backend="aot_eager", mode="max-autotune")(torch.ones(2)), torch.ones(2).sin())
