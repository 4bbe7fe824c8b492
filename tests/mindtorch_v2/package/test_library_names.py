"""Names that libraries ask torch for: checks, symbolic numbers, versions, devices, futures of torch.jit."""

from __future__ import annotations

import importlib.metadata
import typing

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import as_torch
from mindtorch_v2.torch_version import TorchVersion

UNSAID = "Expected cond to be True, but got False"


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("_check", RuntimeError),
        ("_check_index", IndexError),
        ("_check_value", ValueError),
        ("_check_type", TypeError),
        ("_check_not_implemented", NotImplementedError),
    ],
)
def test_checks(name, kind):
    check = getattr(torch, name)
    check(True, lambda: pytest.fail("a message that nobody needs"))
    with pytest.raises(kind, match=UNSAID):
        check(False)
    with pytest.raises(kind, match="^hello$"):
        check(False, lambda: "hello")
    with pytest.raises(TypeError, match="message must be a callable"):
        check(False, "hello")
    with pytest.raises(TypeError, match="cond must be a bool, but got <class 'int'>"):
        check(1)
    with pytest.raises(TypeError, match="use torch._check_tensor_all"):
        check(torch.tensor(True))


def test_checks_of_tensors_and_sizes():
    torch._check_tensor_all(torch.tensor([True, True]))
    with pytest.raises(RuntimeError, match=UNSAID):
        torch._check_tensor_all(torch.tensor([True, False]))
    with pytest.raises(TypeError, match=r"must have dtype torch\.bool, but got torch\.int64"):
        torch._check_tensor_all(torch.tensor([1]))
    with pytest.raises(TypeError, match="cond must be a tensor"):
        torch._check_tensor_all(True)
    with pytest.raises(KeyError, match="q"):
        torch._check_tensor_all_with(KeyError, torch.tensor([False]), lambda: "q")
    torch._check_is_size(0)
    torch._check_is_size(3, max=3)
    for bad in ((-1,), (4, None)):
        with pytest.raises(RuntimeError, match=UNSAID):
            torch._check_is_size(*bad, max=3)
    with pytest.raises(AssertionError, match="^m$"):
        torch._assert(torch.tensor(False), "m")


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda: torch.sym_int(-3.7), -3),
        (lambda: torch.sym_float(3), 3.0),
        (lambda: torch.sym_not(1), False),
        (lambda: torch.sym_max(3, 2.0), 3.0),
        (lambda: torch.sym_min(1, 2), 1),
        (lambda: torch.sym_sum([1, 2, 3]), 6),
        (lambda: torch.sym_sqrt(4), 2.0),
        (lambda: torch.sym_ite(False, 1, 2), 2),
    ],
)
def test_functions_of_symbolic_numbers_take_plain_ones(call, expected):
    result = call()
    assert result == expected and type(result) is type(expected)


def test_no_number_is_symbolic():
    assert not isinstance(torch.ones(2).shape[0], torch.SymInt)
    with pytest.raises(NotImplementedError, match="sizes are plain numbers"):
        torch.SymInt(3)
    with pytest.raises(AssertionError, match="type mismatch"):
        torch.sym_ite(True, 1, 2.0)
    traced = torch.fx.symbolic_trace(lambda x: torch.sym_int(x.shape[0]))
    assert traced(torch.ones(3)) == 3


# As PyTorch's TorchVersion("2.13.0") compares.
ORDER = [
    ("2.9", 1),
    ("2.13", 0),
    ("2.13.0", 0),
    ("2.13.1", -1),
    ("2.14", -1),
    ("2.13.0a0", 1),
    ("2.13.0.dev20260101", 1),
    ("2.13.0rc1", 1),
    ("2.13.0.post1", -1),
    ((2, 13), 0),
    ((2, 4), 1),
    ((3,), -1),
]


@pytest.mark.parametrize(("other", "order"), ORDER)
def test_versions_compare_as_versions(other, order):
    version = TorchVersion("2.13.0")
    found = (version > other, version == other, version < other, version >= other, version <= other, version != other)
    assert found == (order > 0, order == 0, order < 0, order >= 0, order <= 0, order != 0)


def test_the_version_is_text_as_well():
    assert isinstance(torch.__version__, TorchVersion) and torch.__version__.startswith("2.13")
    assert {torch.__version__: 1}[str(torch.__version__)] == 1
    assert not torch.__version__ > "parrot"


def test_the_alias_has_a_distribution():
    def version():
        try:
            return importlib.metadata.version("torch")
        except importlib.metadata.PackageNotFoundError:
            return None

    before = version()
    with as_torch.installed():
        assert version() == torch.__version__
        assert "torch" in [each.metadata["Name"] for each in importlib.metadata.distributions()]
        assert importlib.metadata.requires("torch") is None
    assert version() == before


def test_modules_of_devices():
    assert torch.get_device_module("cpu") is torch.cpu is torch.get_device_module(torch.device("cpu"))
    with pytest.raises(RuntimeError, match="Invalid value of device '3'"):
        torch.get_device_module(3)
    assert not torch.mtia.is_available() and torch.mtia.device_count() == 0
    assert not torch.onnx.is_in_onnx_export()
    with pytest.raises(NotImplementedError, match="state_dict"):
        torch.onnx.export(None, None)


@pytest.mark.filterwarnings("ignore:`torch.jit.(fork|wait)` is deprecated:DeprecationWarning")
def test_forked_calls():
    assert torch.jit.wait(torch.jit.fork(lambda a, b=1: a + b, 1, b=5)) == 6
    failed = torch.jit.fork(lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        torch.jit.wait(failed)
    for name in ("fork", "wait"):
        with pytest.warns(DeprecationWarning, match=f"`torch.jit.{name}` is deprecated. Please use `torch.compile` instead."):
            torch.jit._wait(torch.jit._fork(int))
    assert torch.jit.script_if_tracing(len)([1]) == 1 and issubclass(torch.jit.TracerWarning, Warning)


def test_build_information():
    assert torch.__config__.show().startswith("PyTorch 2.13")
    assert str(torch.get_num_threads()) in torch.__config__.parallel_info()


def test_functions_have_the_name_they_are_found_by():
    functions = {name: value for name, value in vars(torch).items() if type(value) is type(lambda: 0) and name[0] != "_"}
    assert {name: value.__name__ for name, value in functions.items() if value.__name__ != name} == {}


def test_type_hints_of_modules_can_be_evaluated():
    class Net(torch.nn.Module):
        size: int

    hints = typing.get_type_hints(Net)
    assert hints["size"] is int and hints["_modules"] == dict[str, torch.nn.Module | None]


def test_marks_for_the_compiler_change_nothing():
    x = torch.ones(2)
    for mark in (torch._dynamo.mark_dynamic, torch._dynamo.maybe_mark_dynamic, torch._dynamo.mark_static):
        assert mark(x, 0) is None
    assert torch._dynamo.mark_static_address(x) is None and torch._dynamo.graph_break() is None
    assert torch._dynamo.assume_constant_result(len) is len is torch._dynamo.disallow_in_graph(len)
    model = torch.nn.Linear(2, 2)
    assert isinstance(torch.compile(model), torch._dynamo.eval_frame.OptimizedModule)
    assert not isinstance(model, torch._dynamo.OptimizedModule)
    assert issubclass(torch._dynamo.exc.Unsupported, RuntimeError)
    with torch.compiler.set_stance("force_eager"):
        assert torch.compiler.compile(abs)(-1) == 1
    with pytest.raises(RuntimeError, match="invalid torch.compile stance 'fast'"):
        torch.compiler.set_stance("fast")


def test_mask_functions_run_under_the_mode_of_vmap():
    from mindtorch_v2._dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex

    table = torch.tensor([[True, False], [False, True]])
    with TransformGetItemToIndex():
        answers = torch.vmap(lambda i: table[i, 1])(torch.tensor([0, 1]))
    assert answers.tolist() == [False, True]


def test_cuda_without_devices():
    assert torch.cuda.get_rng_state_all() == [] and torch.cuda.random.set_rng_state_all([]) is None
    assert torch.cuda.default_generators == () and not torch.xpu.is_bf16_supported()
    with torch.cuda.StreamContext(None) as stream:
        assert stream is None
    with pytest.raises(RuntimeError, match="requires CUDA support"):
        torch.cuda.graph(None)
    with pytest.raises(AssertionError, match="Torch not compiled with CUDA enabled"):
        torch.cuda.initial_seed()


def test_names_of_distributed_tensors():
    from mindtorch_v2.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor

    assert not isinstance(torch.ones(2), DTensor)
    assert Shard(1) == Shard(1) != Shard(0) and Shard(1).is_shard(1) and not Shard(1).is_shard(0)
    assert Replicate().is_replicate() and Partial().is_partial("sum") and repr(Shard(0)) == "Shard(dim=0)"
    with pytest.raises(NotImplementedError, match="a mesh of one dim must be given"):
        distribute_tensor(torch.ones(2))
    with pytest.raises(NotImplementedError, match="exchange tensors of the CPU"):
        torch.distributed.device_mesh.DeviceMesh("cuda", [0])


def test_states_of_generators_around_checkpoints():
    from mindtorch_v2.utils.checkpoint import get_device_states, set_device_states

    assert get_device_states(torch.ones(2), 3) == ([], [])
    set_device_states([], [])
    with pytest.raises(NotImplementedError, match="NPUs"):
        set_device_states([0], [torch.get_rng_state()])


@pytest.mark.parametrize("length", [1, 2, 5, 8])
@pytest.mark.parametrize("reverse", [False, True])
def test_associative_scan(length, reverse):
    from mindtorch_v2._higher_order_ops.associative_scan import associative_scan

    x = torch.arange(1.0, 3 * length + 1).reshape(3, length).requires_grad_()
    expected = x.flip(1).cumsum(1).flip(1) if reverse else x.cumsum(1)
    result = associative_scan(torch.add, x, 1, reverse=reverse)
    assert torch.equal(result, expected)
    result[:, 0].sum().backward()
    assert x.grad.sum() == (3 * length if reverse else 3)

    # y[i] = a[i] * y[i - 1] + b[i], as state space models compute it.
    a, b = torch.rand(2, length), torch.rand(2, length)
    _, y = associative_scan(lambda i, j: (i[0] * j[0], j[0] * i[1] + j[1]), (a, b), -1, combine_mode="generic")
    state, states = torch.zeros(2), []
    for i in range(length):
        state = a[:, i] * state + b[:, i]
        states.append(state)
    torch.testing.assert_close(y, torch.stack(states, 1))


def test_programs_are_not_exported():
    assert not isinstance(len, torch.export.ExportedProgram)
    for call in (torch.export.export, torch.export.save, torch.export.load, torch.export.ExportedProgram):
        with pytest.raises(NotImplementedError, match="torch.export"):
            call(None)
    assert torch.export.Dim("batch", min=2).min == 2
    with pytest.raises(AssertionError, match="inconsistent min=3, max=2"):
        torch.export.Dim("batch", min=3, max=2)


def test_names_that_libraries_take_from_where_torch_uses_them():
    from mindtorch_v2.hub import urlparse
    from mindtorch_v2.jit.annotations import List, Tuple

    assert urlparse("a://b/c").path == "/c" and List[int] == typing.List[int] and Tuple is typing.Tuple  # noqa: UP006


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        ([1, 2], list[int], True),
        ([1, "a"], list[int], False),
        ({"a": 1}, dict[str, int], True),
        ({"a": "b"}, dict[str, int], False),
        ((1, 2), tuple[int, int], True),
        ((1, 2), tuple[int], False),
        (None, typing.Optional[int], True),  # noqa: UP045  the older form, too
        (1.0, int | str, False),
        ([[1]], list[list[int]], True),
        (1, (int, str), True),
    ],
)
def test_isinstance_of_contents(value, kind, expected):
    assert torch.jit.isinstance(value, kind) is expected


def test_isinstance_of_contents_needs_to_know_them():
    with pytest.warns(UserWarning, match="inner type of a container is lost"):
        assert torch.jit.isinstance([], list[int])
    for kind, example in ((list, r"a contained type, e\.g\. list\[int\]"), (dict, r"contained type, e\.g\. dict\[int, int\]")):
        with pytest.raises(RuntimeError, match=f"Attempted to use {kind.__name__} without .*{example}"):
            torch.jit.isinstance(kind(), kind)


def test_while_loop():
    count, doubled = torch.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (torch.tensor(0), torch.ones(2)))
    assert (count.item(), doubled.tolist()) == (3, [8, 8])
    zero = torch.tensor(0)
    from mindtorch_v2._dynamo.exc import TorchDynamoException, UncapturedHigherOrderOpError

    assert UncapturedHigherOrderOpError.__bases__ == (TorchDynamoException,)
    for cond, body, state, kind, message in (
        (1, lambda i: (i,), (zero,), RuntimeError, "Expect cond_fn and body_fn to be callable"),
        (lambda i: True, lambda i: (i, i), (zero,), UncapturedHigherOrderOpError, "same number of outputs"),
        (lambda i: True, lambda i: i, (zero,), UncapturedHigherOrderOpError, "body_fn should return a tuple"),
        (
            lambda i: True,
            lambda i: (i + 0.5,),
            (zero,),
            UncapturedHigherOrderOpError,
            r"same metadata but found:\npair\[0\] differ in 'dtype: torch.float32 vs torch.int64'",
        ),
        (
            lambda i: True,
            lambda i: (torch.stack([i, i]),),
            (zero,),
            UncapturedHigherOrderOpError,
            r"pair\[0\] differ in 'shape: torch.Size\(\[2\]\) vs torch.Size\(\[\]\)'",
        ),
        (lambda i: True, lambda i: (1,), (zero,), UncapturedHigherOrderOpError, "same metadata"),
        (lambda i: torch.ones(2), lambda i: (i,), (zero,), UncapturedHigherOrderOpError, "a boolean scalar tensor"),
        (lambda i: True, lambda i: (i,), zero, RuntimeError, "Expect carried_inputs to be a tuple"),
    ):
        with pytest.raises(RuntimeError, match=message) as raised:
            torch.while_loop(cond, body, state)
        assert raised.type is kind


def test_default_device_as_a_context():
    from mindtorch_v2.utils import _device

    assert _device.CURRENT_DEVICE is None
    with _device.DeviceContext("meta"):
        assert torch.ones(1).device.type == "meta"
        assert torch.device("meta") == _device.CURRENT_DEVICE
    assert _device.set_device("meta")(lambda: torch.ones(1).device.type)() == "meta"
    assert torch.ones(1).device.type == "cpu"


# ---------------------------------------------------------------- what modules of libraries take from torch's insides


def test_options_of_printing_for_a_block():
    with torch._tensor_str.printoptions(precision=2, sci_mode=False):
        assert str(torch.tensor([1.2345])) == "tensor([1.23])"
    assert str(torch.tensor([1.2345])) == "tensor([1.2345])"


def test_index_of_a_device():
    index = torch._utils._get_device_index
    assert [index(3), index("cuda:1"), index(torch.device("cuda", 2)), index("cpu", allow_cpu=True)] == [3, 1, 2, -1]
    with pytest.raises(ValueError, match="Expected a non cpu device, but got: cpu"):
        index("cpu")
    for nothing in (None, "cuda"):
        with pytest.raises(ValueError, match="Expected a torch.device with a specified index or an integer, but got"):
            index(nothing)


def test_switches_of_the_compiler_for_a_block_and_a_function():
    config = importlib.import_module("mindtorch_v2._dynamo.config")
    for block in (config.patch(verbose=True), config.patch("verbose", True), config.patch({"verbose": True})):
        with block:
            assert config.verbose
        assert not config.verbose

    @config.patch(cache_size_limit=3)
    def limit(again=True):
        return (config.cache_size_limit, limit(False) if again else None)

    assert limit() == (3, (3, None))
    assert config.cache_size_limit == 8
    with pytest.raises(AttributeError, match="torch._dynamo.config.nope does not exist"):
        config.patch(nope=True)


def test_helpers_of_initialization_and_transformers():
    init, transformer = torch.nn.init, torch.nn.modules.transformer
    assert 1 <= init._no_grad_uniform_(torch.zeros(1, requires_grad=True), 1, 2).item() <= 2
    assert transformer._get_activation_fn("gelu") is torch.nn.functional.gelu
    with pytest.raises(RuntimeError, match="activation should be relu/gelu, not tanh"):
        transformer._get_activation_fn("tanh")


def test_what_is_known_of_sizes_that_are_numbers():
    shapes = importlib.import_module("mindtorch_v2.fx.experimental.symbolic_shapes")
    assert shapes.guard_or_false(3 > 2)
    assert not shapes.guard_or_true(3 < 2)
    assert shapes.statically_known_true(1 == 1)
    assert not shapes.statically_known_false(1 == 1)
    assert (shapes.free_symbols(torch.ones(2)), shapes.is_symbolic(3), shapes.sym_eq([1, 2], [1, 2])) == (set(), False, True)


def test_devices_shapes_and_getters():
    assert torch._C._get_accelerator(True) == (torch.accelerator.current_accelerator() or torch.device("cpu"))
    assert torch._C._get_default_device() == "cpu"
    assert torch._shape_as_tensor(torch.ones(2, 3)).tolist() == [2, 3]
    assert vars(torch.Tensor)["grad"].__get__ in torch.overrides.get_default_nowrap_functions()
    assert not importlib.import_module("mindtorch_v2.utils._triton").has_triton()
    assert torch.backends.fp32_precision == "none"
    assert (torch.onnx.TrainingMode.TRAINING, torch.onnx.OperatorExportTypes.ONNX, torch.onnx.TensorProtoDataType.BOOL) == (
        2,
        0,
        9,
    )


@pytest.mark.filterwarnings("ignore:TypedStorage")
def test_bytes_as_a_tensor():
    storage = torch.ByteStorage._from_buffer(b"abc")
    assert torch.ByteTensor(storage).tolist() == [97, 98, 99]


def test_a_tensor_of_a_subclass_is_made_again_with_its_attributes():
    class Named(torch.Tensor):
        pass

    rebuild = importlib.import_module("mindtorch_v2._tensor")._rebuild_from_type_v2
    found = rebuild(lambda: torch.ones(2), Named, (), {"label": "x"})
    assert (type(found), found.label, found.tolist()) == (Named, "x", [1, 1])
