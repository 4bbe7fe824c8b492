"""The names of torch, module by module, as `tools/torch_names.py` recorded them: which are here, and that no others are."""

from __future__ import annotations

import importlib
import json
import operator
import pickle
import re
from pathlib import Path
from types import ModuleType

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import _refused_names

PACKAGE = torch.__name__
RECORDED = {
    place: names.split() for place, names in json.loads(Path(__file__).with_name("recorded_names.json").read_text()).items()
}
# What is not here. A name that is added leaves this list.
MISSING = {
    "TypedStorage": "cuda hpu",
    "UntypedStorage": "cuda hpu mps",
    "autograd.Function": (
        "boxed_grads_call clear_saved_tensors_on_access maybe_clear_saved_tensors metadata name next_functions "
        "register_hook register_prehook requires_grad saved_tensors saved_variables"
    ),
    "compiler": "config",
    "cpu": "get_capabilities",
    "cuda.Event": "elapsed_time from_ipc_handle ipc_handle query record synchronize wait",
    "cuda.Stream": "query record_event synchronize wait_event wait_stream",
    "func": "debug_unwrap",
    "overrides": "enable_reentrant_dispatch",
    "sparse": "as_sparse_gradcheck",
    "utils": "cmake_prefix_path cpp_backtrace",
    "utils._python_dispatch": ("DispatchKey autograd_would_have_decomposed set_is_in_mode_without_ignore_compile_internals"),
    "utils.benchmark": "utils",
    "utils.collect_env": (
        "COMMON_PATTERNS CONDA_PATTERNS NVIDIA_PATTERNS ONEAPI_PATTERNS check_release_file get_cachingallocator_config "
        "get_cuda_module_loading_config get_cudnn_version get_gpu_info get_intel_gpu_detected "
        "get_intel_gpu_driver_version get_intel_gpu_onboard get_linux_pkg_version get_lsb_version get_mac_version "
        "get_nvidia_driver_version get_nvidia_smi get_running_cuda_version get_windows_version is_xnnpack_available"
    ),
    "utils.checkpoint": "DefaultDeviceType",
}
# Names beyond torch's: devices. Modules of the package are left out, since importing one makes it a name.
BEYOND = {"torch": "", "Tensor": "hpu is_hpu is_npu is_ve npu"}


def value_at(place):
    if place == "torch":
        return torch
    try:
        return importlib.import_module(f"{PACKAGE}.{place}")
    except ModuleNotFoundError:
        return operator.attrgetter(place)(torch)


@pytest.mark.parametrize("place", sorted(RECORDED))
def test_names_of_torch_are_here(place):
    value = value_at(place)
    absent = [name for name in RECORDED[place] if not hasattr(value, name)]
    assert absent == MISSING.get(place, "").split()


@pytest.mark.parametrize("place", sorted(BEYOND))
def test_no_other_names_are(place):
    """A program that asks `hasattr(torch, name)`, or completes a name, must get torch's answer."""
    value = value_at(place)
    public = {name for name in dir(value) if name.isidentifier() and not name.startswith("_")}
    unknown = public - {*RECORDED[place], "TYPE_CHECKING", "annotations"}
    assert sorted(name for name in unknown if not isinstance(getattr(value, name), ModuleType)) == BEYOND[place].split()


@pytest.mark.parametrize("path", sorted(_refused_names.NAMES))
def test_names_that_can_do_nothing_say_so_when_used(path):
    module = value_at(path or "torch")
    for refused in _refused_names.NAMES[path]:
        for name in [*refused.functions.split(), *refused.classes.split()]:
            assert name in dir(module)
            with pytest.raises(NotImplementedError, match=rf"^torch\..*{name}: .*docs/compatibility.md$"):
                getattr(module, name)()
        for name in refused.modules.split():
            assert getattr(module, name).__name__.endswith(f".{name}")
    assert not hasattr(module, "no_such_name")


# ---------------------------------------------------------------- small names that do something


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda: torch.get_device(torch.ones(2)), -1),
        (lambda: torch.is_distributed(torch.ones(2)), False),
        (lambda: torch.ones(2).is_distributed(), False),
        (lambda: torch.ones(2).name, None),
        (lambda: torch.cudnn_is_acceptable(torch.ones(2)), False),
        (lambda: torch.dequantize(torch.tensor([1, 2])).tolist(), [1.0, 2.0]),
        (lambda: torch.Tag.pointwise, 16),
        (lambda: torch.get_file_path("torch", "x").endswith("torch/x"), True),
        (lambda: torch.sym_constrain_range(3, min=1, max=5), None),
        (lambda: torch.get_autocast_xla_dtype(), torch.bfloat16),
        (lambda: torch.is_autocast_ipu_enabled(), False),
        (lambda: torch.backends.xnnpack.enabled, False),
        (lambda: torch.utils.dlpack.DLDeviceType(torch.ones(1).__dlpack_device__()[0]).name, "kDLCPU"),
        (lambda: issubclass(torch.onnx.errors.UnsupportedOperatorError, torch.onnx.OnnxExporterError), True),
        (lambda: str(torch.nn.ReLU().xpu().mtia().ipu()), "ReLU()"),
        (lambda: torch.backends.cuda.is_flash_attention_available(), False),
        (lambda: torch.jit.Attribute(3, int), (3, int)),
        (lambda: torch.windows is torch.signal.windows, True),
        (lambda: torch.float4_e2m1fn_x2.itemsize, 1),
        (lambda: (torch.int4.is_signed, torch.uint4.is_signed, torch.int4.is_floating_point), (True, False, False)),
        (lambda: torch.native_norm(torch.tensor([3.0, 0.0, 4.0]).to_sparse()).item(), 5.0),
        (lambda: torch.crow_indices_copy(torch.eye(2).to_sparse_csr()).tolist(), [0, 1, 2]),
        (lambda: pickle.loads(pickle.dumps(torch.uint3)), torch.uint3),
    ],
)
def test_answers_are_those_of_torch_on_a_cpu(call, expected):
    assert call() == expected


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda: torch.sym_constrain_range(7, min=1, max=5), RuntimeError, r"^Invalid value range for 7 between \[1, 5\]\.$"),
        (lambda: torch.eig(torch.eye(2)), RuntimeError, "is now removed"),
        (lambda: torch.eye(2).solve(torch.eye(2)), RuntimeError, "is now removed"),
        (lambda: torch.ones(2).reinforce(1), RuntimeError, r"^reinforce\(\) was removed"),
        (lambda: torch.ones(2).q_scale(), NotImplementedError, r"^Tensor\.q_scale: there are no quantized tensors"),
        (
            lambda: torch.empty(2, dtype=torch.int4),
            NotImplementedError,
            r"^torch\.int4: there are no tensors of packed",
        ),
        (lambda: torch.bits8.is_signed, RuntimeError, "^Bits types are undefined$"),
        (lambda: torch.Generator().get_offset(), RuntimeError, "^CPU Generator does not use offset$"),
        (lambda: torch.native_norm(torch.ones(3)), NotImplementedError, "aten::native_norm"),
        (lambda: torch.classes.lib.Kind, RuntimeError, r"^Tried to instantiate class 'lib\.Kind', but it does not exist!"),
        (lambda: torch.classes.load_library("x.so"), OSError, "compiled extensions"),
        (lambda: torch.nn.Linear(1, 1).xpu(), AssertionError, "^Torch not compiled with XPU enabled$"),
    ],
)
def test_refusals_are_those_of_torch_on_a_cpu(call, kind, words):
    with pytest.raises(kind, match=words):
        call()


def test_anomaly_mode_by_its_function():
    torch.set_anomaly_enabled(True, False)
    assert (torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()) == (True, False)
    torch.set_anomaly_enabled(False)
    assert not torch.is_anomaly_enabled()


def test_classproperty():
    class Named:
        called = torch.classproperty(lambda cls: cls.__name__)

    assert Named.called == Named().called == "Named"


def test_resize_out_of_place_warns_and_reshapes():
    with pytest.warns(UserWarning, match="^non-inplace resize is deprecated$"):
        assert torch.arange(4).resize(2, 2).tolist() == [[0, 1], [2, 3]]
    with pytest.warns(UserWarning, match="^non-inplace resize_as is deprecated$"):
        assert torch.arange(4).resize_as(torch.ones(2, 2)).shape == (2, 2)


def test_statistics_of_batches_move_the_running_ones():
    mean, var = torch.zeros(3), torch.ones(3)
    found = torch.batch_norm_update_stats(torch.arange(12.0).view(2, 3, 2), mean, var, 0.1)
    assert [part.tolist() for part in found] == [[3.5, 5.5, 7.5], [9.25, 9.25, 9.25]]
    torch.testing.assert_close(mean, torch.tensor([0.35, 0.55, 0.75]))
    torch.testing.assert_close(var, torch.full((3,), 2.1333334))


# ---------------------------------------------------------------- products of sparse matrices under their old names


def test_products_of_sparse_matrices():
    sparse = torch.tensor([[0.0, 2.0], [0.0, 0.0], [1.0, 3.0]]).to_sparse()
    dense = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    product = [[6.0, 8.0], [0.0, 0.0], [10.0, 14.0]]
    for name in ("spmm", "dsmm"):
        assert getattr(torch, name)(sparse, dense).tolist() == product
    for name in ("hspmm", "hsmm"):
        rows = getattr(torch, name)(sparse, dense)
        assert (rows.sparse_dim(), rows.dense_dim(), rows._indices().tolist()) == (1, 1, [[0, 2]])
        assert rows.to_dense().tolist() == product
    alone = torch.smm(sparse, dense)
    assert alone._indices().tolist() == [[0, 0, 2, 2], [0, 1, 0, 1]] and alone.to_dense().tolist() == product


def test_product_added_to_a_sparse_matrix():
    """The figures are torch's."""
    eye = torch.eye(2).to_sparse()
    added = torch.sspaddmm(eye, eye, torch.ones(2, 2), beta=2, alpha=3)
    assert added._indices().tolist() == [[0, 1, 0, 0, 1, 1], [0, 1, 0, 1, 0, 1]]
    assert added._values().tolist() == [2.0, 2.0, 3.0, 3.0, 3.0, 3.0]
    assert not added.is_coalesced()
    assert eye.sspaddmm(eye, torch.ones(2, 2)).to_dense().tolist() == [[2.0, 1.0], [1.0, 2.0]]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: torch.get_device(0), "get_device(): argument 'input' (position 1) must be Tensor, not int"),
        (lambda: torch.spmm(0, 0), "mm(): argument 'input' (position 1) must be Tensor, not int"),
        (lambda: torch.dsmm(0, 0), "mm(): argument 'input' (position 1) must be Tensor, not int"),
        (lambda: torch.dequantize(0), "dequantize() received an invalid combination of arguments - got (int), but"),
    ],
)
def test_what_is_no_tensor_is_refused_in_torchs_words(call, said):
    with pytest.raises(TypeError, match=re.escape(said)):
        call()
