"""Private and rare names of torch that libraries use: `_C`, `_tensor_str`, `ao`, `onnx`, `hub`, `distributed` ..."""

from __future__ import annotations

import importlib
import sys
import typing

import pytest

import mindtorch_v2 as torch


@pytest.mark.parametrize(
    "name",
    [
        "_C._functorch",
        "_custom_ops",
        "_subclasses.fake_tensor",
        "_tensor_str",
        "ao.quantization",
        "backends.cpu",
        "backends.nnpack",
        "distributed.constants",
        "distributed.rpc",
        "fx.experimental.proxy_tensor",
        "jit.annotations",
        "nn.parallel.parallel_apply",
        "nn.parallel.replicate",
        "nn.parallel.scatter_gather",
        "nn.quantized",
        "onnx.operators",
        "onnx.symbolic_helper",
        "onnx.symbolic_opset11",
        "utils.model_zoo",
    ],
)
def test_modules_can_be_imported(name):
    importlib.import_module(f"mindtorch_v2.{name}")


def test_ops_are_those_of_the_private_module():
    assert importlib.import_module("mindtorch_v2._ops").ops is torch.ops


class Named(torch.Tensor):
    """A subclass that takes part in interception."""


def test_subclasses_are_plain_tensors_inside_a_block():
    x = torch.ones(2).as_subclass(Named)
    assert type(x + 1) is Named
    with torch._C.DisableTorchFunctionSubclass():
        assert type(x + 1) is torch.Tensor
        assert type(torch.nn.functional.linear(x, torch.ones(3, 2))) is torch.Tensor
        assert x.add_(1) is x
    assert type(x + 1) is Named
    assert x.tolist() == [2, 2]


def test_a_class_that_opts_out():
    class Opaque(torch.Tensor):
        __torch_function__ = torch._C._disabled_torch_function_impl

    assert type(torch.ones(2).as_subclass(Opaque) + 1) is torch.Tensor


def test_questions_about_modes_and_vmap():
    assert torch._C._get_tracing_state() is None
    assert not torch._C._is_torch_function_mode_enabled()
    with torch.overrides.TorchFunctionMode():
        assert torch._C._is_torch_function_mode_enabled()
    seen = []

    def function(x):
        functorch = torch._C._functorch
        seen.append((torch._C._are_functorch_transforms_active(), functorch.is_batchedtensor(x), functorch.maybe_get_bdim(x)))
        assert functorch.get_unwrapped(x).shape == (3, 2)
        assert functorch.maybe_get_level(x) == functorch.current_level() == functorch.maybe_current_level()
        return x

    torch.vmap(function)(torch.ones(3, 2))
    assert seen == [(True, True, 0)]
    assert not torch._C._are_functorch_transforms_active()
    assert not torch._C._functorch.is_batchedtensor(torch.ones(2))
    assert (torch._C._functorch.maybe_get_level(torch.ones(2)), torch._C._functorch.maybe_current_level()) == (-1, None)


def test_assert_async():
    assert torch._assert_async(torch.tensor(True)) is None
    with pytest.raises(RuntimeError, match="^Expected Tensor with single nonzero value, but got zero$"):
        torch._assert_async(torch.tensor(0.0))
    with pytest.raises(RuntimeError, match="^oh$"):
        torch._assert_async(torch.tensor(False), "oh")
    with pytest.raises(RuntimeError, match="more than one value is ambiguous"):
        torch._assert_async(torch.tensor([0, 1]))


def test_parts_of_a_tensors_text():
    text = torch._tensor_str._tensor_str(torch.arange(3), 7)
    assert text == "[0, 1, 2]"
    whole = torch._tensor_str._add_suffixes("Index(" + text, ["dim_size=3"], 6, force_newline=False)
    assert whole == "Index([0, 1, 2], dim_size=3)"


def test_modules_for_quantization_pass_tensors_on():
    x, y = torch.tensor([1.0, -3.0]), torch.tensor([2.0, 1.0])
    wrapped = torch.ao.quantization.QuantWrapper(torch.nn.ReLU())
    assert wrapped(x).tolist() == [1, 0]
    functional = torch.nn.quantized.FloatFunctional()
    assert functional.add_relu(x, y).tolist() == [3, 0]
    assert functional.cat([x, y]).tolist() == [1, -3, 2, 1]
    assert functional.mul_scalar(x, 2).tolist() == [2, -6]
    with pytest.raises(RuntimeError, match="not intended to use the 'forward'"):
        functional(x)
    assert repr(functional) == "FloatFunctional(\n  (activation_post_process): Identity()\n)"


def test_rules_of_an_export_that_does_not_exist():
    assert torch.onnx.operators.shape_as_tensor(torch.ones(2, 3)).tolist() == [2, 3]
    assert torch.onnx.operators.reshape_from_tensor_shape(torch.ones(6), torch.tensor([2, 3])).shape == (2, 3)

    @torch.onnx.symbolic_helper.parse_args("v", "i")
    def rule(g, x, n):
        return x

    torch.onnx.register_custom_op_symbolic("mine::op", rule, 11)
    with pytest.raises(ValueError, match="must match the format domain::name"):
        torch.onnx.register_custom_op_symbolic("op", rule, 11)
    opset = importlib.import_module("mindtorch_v2.onnx.symbolic_opset11")
    with pytest.raises(NotImplementedError, match="symbolic_opset11.squeeze"):
        opset.squeeze(None, None)


def test_hub(monkeypatch):
    monkeypatch.setenv("TORCH_HOME", "/somewhere")
    assert torch.hub._get_torch_home() == "/somewhere"
    assert torch.hub.HASH_REGEX.search("resnet18-f37072fd.pth").group(1) == "f37072fd"
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    with torch.hub.tqdm(total=3) as bar:
        bar.update(2)
    assert bar.n == 2


def test_distributed_before_any_group():
    d = torch.distributed
    assert repr(d.ReduceOp.SUM) == "<RedOpType.SUM: 0>"
    assert isinstance(d.ReduceOp.MAX, d.ReduceOp.RedOpType)
    assert d.GroupMember.NON_GROUP_MEMBER == -100
    for function in (d.new_group, d.gather_object, d.monitored_barrier):
        with pytest.raises(ValueError, match="Default process group has not been initialized"):
            function(None)
    assert not d.rpc.is_available()
    with pytest.raises(NotImplementedError, match="init_rpc"):
        d.rpc.init_rpc("worker")

    @d.rpc.api._require_initialized
    def gather_everywhere():
        """Never runs."""

    assert gather_everywhere.__name__ == "gather_everywhere"
    for function in (gather_everywhere, d.rpc.api._all_gather):
        with pytest.raises(RuntimeError, match="RPC has not been initialized"):
            function()


def test_scatter_and_gather_on_the_cpu():
    sg = torch.nn.parallel.scatter_gather
    parts = sg.scatter((torch.arange(4), {"a": torch.arange(2)}, "s"), ["cpu", "cpu"])
    assert [[p[0].tolist(), p[1]["a"].tolist(), p[2]] for p in parts] == [[[0, 1], [0], "s"], [[2, 3], [1], "s"]]
    assert sg.gather([p[0] for p in parts], "cpu").tolist() == [0, 1, 2, 3]
    assert sg.gather([{"a": torch.ones(1)}, {"a": torch.zeros(1)}], "cpu")["a"].tolist() == [1, 0]
    with pytest.raises(NotImplementedError, match="scatter"):
        sg.scatter(torch.ones(2), ["cuda:0"])


def test_records_of_a_file(tmp_path):
    path = tmp_path / "model.pt"
    torch.save({"a": torch.arange(3.0)}, path)
    reader = torch.PyTorchFileReader(str(path))
    assert {"data.pkl", "data/0", "byteorder"} <= set(reader.get_all_records())
    assert reader.get_record("byteorder") == b"little"
    assert reader.has_record("data/0")
    assert not reader.has_record("data/1")
    assert reader.get_record_size("data/0") == 12
    with path.open("rb") as file:
        file.seek(reader.get_record_offset("data/0"))
        assert file.read(12) == reader.get_record("data/0")
    tensor = reader.get_storage_from_record("data/0", 3, torch.float32)
    assert (tensor.numel(), tensor.dtype, tensor.untyped_storage().nbytes()) == (0, torch.float32, 12)
    with pytest.raises(RuntimeError, match="failed locating file data/7: file not found"):
        reader.get_record("data/7")
    (tmp_path / "bad").write_bytes(b"none")
    with pytest.raises(RuntimeError, match="failed finding central directory"):
        torch.PyTorchFileReader(str(tmp_path / "bad"))


def test_what_needs_an_accelerator_and_what_multiplies_sparse():
    with pytest.raises(RuntimeError, match="Cannot access accelerator device when none is available"):
        torch.ops.aten._pin_memory(torch.ones(2))
    sparse = torch.eye(2).to_sparse()
    result = torch.ops.aten._sparse_addmm(torch.ones(2, 2), sparse, torch.full((2, 2), 3.0), beta=2, alpha=1)
    assert result.tolist() == [[5, 5], [5, 5]]


def test_graph_modules_without_their_graph():
    graph_module = torch.fx.symbolic_trace(torch.nn.ReLU())
    bare = importlib.import_module("mindtorch_v2.fx.graph_module")._CodeOnlyModule(dict(graph_module.__dict__))
    assert bare.training is graph_module.training
    assert torch.torch is torch
    assert "torch" not in torch.__all__


def test_annotations_of_instances_are_types():
    hints = typing.get_type_hints(torch.nn.CrossEntropyLoss(), globalns={}, localns={})
    assert not any(isinstance(kind, str) for kind in hints.values())
    assert typing.get_type_hints(torch.nn.Module(), globalns={}, localns={})["training"] is bool
    assert torch.serialization.MAP_LOCATION is not None


def test_marks_for_an_exporter_run_what_they_mark():
    from mindtorch_v2._export import wrappers

    class Marked:
        @wrappers.mark_subclass_constructor_exportable_experimental
        def __init__(self, value, *, more=0):
            self.value = value + more

    assert Marked(1, more=2).value == 3
    assert wrappers.allow_in_pre_dispatch_graph(Marked.__init__).__name__ == "__init__"
    for mark in (wrappers.mark_subclass_constructor_exportable_experimental, wrappers.allow_in_pre_dispatch_graph):
        with pytest.raises(RuntimeError, match="can only be applied on"):
            mark(len)


@pytest.mark.parametrize(
    ("module", "name", "public"),
    [
        ("_linalg", "linalg_det", "linalg.det"),
        ("_special", "special_gammaln", "special.gammaln"),
        ("_fft", "fft_fft", "fft.fft"),
    ],
)
def test_functions_of_modules_by_the_names_of_their_ops(module, name, public):
    home, _, own = public.partition(".")
    private = getattr(torch._C, module)
    assert getattr(private, name) is getattr(getattr(torch, home), own)
    assert name in dir(private)
    for absent in (own, f"{home}_nothing"):
        with pytest.raises(AttributeError, match=f"'torch._C.{module}' has no attribute '{absent}'"):
            getattr(private, absent)
