"""Modules of torch that can do nothing here: their names can be imported, and say so when they are used.

One table, one loader. A module of the table needs no file: `_lazy_imports` has it made when it is first imported.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import MappingProxyType, ModuleType, SimpleNamespace
from typing import Any, NamedTuple, NoReturn

from . import _refused_distributed
from ._lazy_imports import lazy_exports


class Refused(NamedTuple):
    """A module's names, each list separated by spaces."""

    reason: str  # why nothing of it works, and what to do instead
    functions: str = ""
    classes: str = ""
    # Names that mean something, and the module of this package that has them.
    home: str = ""
    same: str = ""
    modules: str = ""
    values: Mapping[str, Any] = MappingProxyType({})


_QUANTIZED = "nothing is quantized here. Train and run in floating point, or in bfloat16 under torch.autocast"
_EXTENSIONS = (
    "compiled extensions need PyTorch's C++ headers. Write the op in Python, with torch.library.custom_op or "
    "torch.autograd.Function"
)
_PACKAGES = "packages of code are neither written nor read. Save the state_dict() with torch.save, and install the code by pip"
_SCRIPT = "there are no TorchScript programs: torch.jit.script and torch.jit.trace run code eagerly"
_VENDOR = "the vendor's layouts are not there: every kernel computes on plain strided memory, which needs no conversion"
_CUDA = "there are no CUDA devices here: torch.cuda.is_available() says so"
_SPARSITY = "weights are not made sparse on a schedule. See torch.nn.utils.prune for masks of weights"
_COMPILER = "nothing is compiled: torch.compile runs code as it is"
_PROGRAM = "models are not captured as programs. Save the state_dict(), or trace with torch.fx.symbolic_trace"

_FUSED = (
    "BNReLU2d BNReLU3d ConvBn1d ConvBn2d ConvBn3d ConvBnReLU1d ConvBnReLU2d ConvBnReLU3d ConvReLU1d ConvReLU2d ConvReLU3d "
    "LinearBn1d LinearReLU"
)
_FUSED_QAT = (
    "ConvBn1d ConvBn2d ConvBn3d ConvBnReLU1d ConvBnReLU2d ConvBnReLU3d ConvReLU1d ConvReLU2d ConvReLU3d LinearBn1d LinearReLU"
)
_FUSED_QUANTIZED = "BNReLU2d BNReLU3d ConvReLU1d ConvReLU2d ConvReLU3d LinearReLU"
_QUANTIZED_LAYERS = (
    "BatchNorm2d BatchNorm3d Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d DeQuantize Dropout ELU "
    "Embedding EmbeddingBag FXFloatFunctional GroupNorm Hardswish InstanceNorm1d InstanceNorm2d InstanceNorm3d LSTM LayerNorm "
    "LeakyReLU Linear MultiheadAttention PReLU QFunctional Quantize ReLU6 Sigmoid Softmax"
)
_DYNAMIC_LAYERS = (
    "Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d GRU GRUCell LSTM LSTMCell Linear RNNCell"
)
_QUANTIZE = Refused(
    _QUANTIZED,
    "add_quant_dequant convert convert_dynamic_jit convert_jit default_eval_fn fuse_conv_bn fuse_conv_bn_relu "
    "fuse_linear_bn fuse_modules fuse_modules_qat get_default_compare_output_module_list "
    "get_default_dynamic_quant_module_mappings get_default_qat_module_mappings get_default_qat_qconfig "
    "get_default_qat_qconfig_mapping get_default_qconfig_mapping get_default_qconfig_propagation_list "
    "get_default_static_quant_module_mappings get_fuser_method get_observer_state_dict get_quantized_operator "
    "get_static_quant_module_class load_observer_state_dict prepare prepare_dynamic_jit prepare_jit prepare_qat "
    "propagate_qconfig_ quantize quantize_dynamic quantize_dynamic_jit quantize_jit quantize_qat swap_module "
    "default_dynamic_quant_observer",
    "FixedQParamsFakeQuantize FixedQParamsObserver FusedMovingAvgObsFakeQuantize NoopObserver PlaceholderObserver "
    "QConfigMapping QuantType RecordingObserver ReuseInputObserver default_debug_observer default_placeholder_observer",
    "ao.quantization._supported",
    "DeQuantStub FakeQuantize FakeQuantizeBase HistogramObserver MinMaxObserver MovingAverageMinMaxObserver "
    "MovingAveragePerChannelMinMaxObserver ObserverBase PerChannelMinMaxObserver QConfig QuantStub QuantWrapper "
    "UniformQuantizationObserverBase default_fake_quant default_histogram_observer default_observer "
    "default_per_channel_weight_fake_quant default_per_channel_weight_observer default_weight_fake_quant "
    "default_weight_observer disable_fake_quant disable_observer enable_fake_quant enable_observer get_default_qconfig",
    "fake_quantize observer qconfig qconfig_mapping quantize_fx",
)
# Its modules have all of its names: which of them torch has where makes no difference.
_QUANTIZE_AGAIN = Refused(
    _QUANTIZED, home="ao.quantization", same=f"{_QUANTIZE.functions} {_QUANTIZE.classes} {_QUANTIZE.same}"
)
_QUANTIZE_FX = Refused(_QUANTIZED, "convert_fx convert_to_reference_fx fuse_fx prepare_fx prepare_qat_fx")
_COMMUNICATION = "broadcast broadcast_coalesced gather reduce_add reduce_add_coalesced scatter"

# By the path below this package.
MODULES = {
    "_inductor": Refused(
        _COMPILER,
        "aot_compile compile compile_fx list_mode_options list_options",
        home="compiler",
        same="cudagraph_mark_step_begin",
        modules="config",
    ),
    # Switches, kept and read back.
    "_inductor.config": Refused(
        _COMPILER,
        values={
            **dict.fromkeys(
                [
                    "benchmark_kernel",
                    "conv_1x1_as_mm",
                    "coordinate_descent_tuning",
                    "cpp_wrapper",
                    "debug",
                    "emulate_precision_casts",
                    "fallback_random",
                    "force_fuse_int_mm_with_mul",
                    "freezing",
                    "max_autotune",
                    "max_autotune_gemm",
                    "permute_fusion",
                    "verbose_progress",
                ],
                False,
            ),
            **dict.fromkeys(
                [
                    "disable_progress",
                    "epilogue_fusion",
                    "fx_graph_cache",
                    "layout_optimization",
                    "shape_padding",
                    "split_reductions",
                ],
                True,
            ),
            "compile_threads": 1,
            "cpp": SimpleNamespace(simdlen=None, threads=-1),
            "max_fusion_size": 64,
            "triton": SimpleNamespace(cudagraphs=False, unique_kernel_names=True),
        },
    ),
    "ao.nn": Refused(_QUANTIZED, modules="intrinsic qat quantizable quantized"),
    "ao.nn.intrinsic": Refused(_QUANTIZED, classes=_FUSED, modules="qat quantized"),
    "ao.nn.intrinsic.qat": Refused(_QUANTIZED, "freeze_bn_stats update_bn_stats", _FUSED_QAT),
    "ao.nn.intrinsic.quantized": Refused(_QUANTIZED, classes=_FUSED_QUANTIZED),
    "ao.nn.qat": Refused(_QUANTIZED, classes="Conv1d Conv2d Conv3d Embedding EmbeddingBag", home="ao._qat", same="Linear"),
    "ao.nn.quantizable": Refused(_QUANTIZED, classes="LSTM LSTMCell MultiheadAttention"),
    "ao.nn.quantized": Refused(
        _QUANTIZED, classes=_QUANTIZED_LAYERS, home="nn.quantized.functional_modules", same="FloatFunctional", modules="dynamic"
    ),
    "ao.nn.quantized.dynamic": Refused(_QUANTIZED, classes=_DYNAMIC_LAYERS),
    "ao.ns": Refused(_QUANTIZED),
    "ao.pruning": Refused(
        _SPARSITY,
        "fqn_to_module get_arg_info_from_tensor_fqn get_dynamic_sparse_quantized_mapping get_static_sparse_quantized_mapping "
        "module_to_fqn",
        "BaseScheduler BaseSparsifier CubicSL FakeSparsity LambdaSL NearlyDiagonalSparsifier WeightNormSparsifier",
    ),
    "ao.quantization": _QUANTIZE,
    **{f"ao.quantization.{name}": _QUANTIZE_AGAIN for name in ("fake_quantize", "observer", "qconfig", "qconfig_mapping")},
    "ao.quantization.quantize_fx": _QUANTIZE_FX,
    "backends.cusparselt": Refused(
        _VENDOR, values={"get_max_alg_id": lambda: None, "is_available": lambda: False, "version": lambda: None}
    ),
    "backends.kleidiai": Refused(_VENDOR, values={"is_available": lambda: False}),
    "backends.miopen": Refused(_VENDOR, "flags set_flags", values={"immediate": False}),
    "backends.python_native": Refused(
        _VENDOR,
        "disable_dispatch_keys disable_operations enable_dispatch_keys enable_operations get_dsl_operations "
        "operations_disabled",
        values={
            "all_dsls": [],
            "available_dsls": [],
            "is_dsl_disabled": lambda name: True,
            "is_operation_disabled": lambda name: True,
        },
    ),
    "backends.xnnpack": Refused(_VENDOR, values={"enabled": False}),
    "contrib": Refused("nothing of torch.contrib is here"),
    "cpp": Refused(_EXTENSIONS),
    "cuda.comm": Refused(_CUDA, _COMMUNICATION),
    "cuda.gds": Refused(_CUDA, "gds_deregister_buffer gds_register_buffer", "GdsFile"),
    "cuda.graphs": Refused(
        _CUDA, home="cuda", same="CUDAGraph graph graph_pool_handle is_current_stream_capturing make_graphed_callables"
    ),
    "cuda.memory": Refused(
        _CUDA,
        "caching_allocator_disabled caching_allocator_enable host_memory_stats_as_nested_dict "
        "reset_accumulated_host_memory_stats reset_peak_host_memory_stats",
        home="cuda",
        same="CUDAPluggableAllocator MemPool caching_allocator_alloc caching_allocator_delete change_current_allocator "
        "empty_cache get_allocator_backend get_per_process_memory_fraction host_memory_stats list_gpu_processes "
        "max_memory_allocated max_memory_cached max_memory_reserved mem_get_info memory_allocated memory_cached "
        "memory_reserved memory_snapshot memory_stats memory_stats_as_nested_dict memory_summary "
        "reset_accumulated_memory_stats reset_max_memory_allocated reset_max_memory_cached reset_peak_memory_stats "
        "set_per_process_memory_fraction use_mem_pool",
    ),
    "cuda.nccl": Refused(
        _CUDA,
        "all_gather all_reduce broadcast reduce reduce_scatter",
        values={"is_available": lambda tensors: False, "version": lambda: None},
    ),
    "cuda.profiler": Refused(_CUDA, "init profile start stop"),
    "cuda.sparse": Refused(_CUDA),
    "cuda.tunable": Refused(
        _CUDA,
        "enable get_filename get_max_tuning_duration get_max_tuning_iterations get_results get_validators read_file "
        "record_untuned_enable set_filename set_max_tuning_duration set_max_tuning_iterations tune_gemm_in_file tuning_enable "
        "write_file",
        values={
            "is_enabled": lambda: False,
            "record_untuned_is_enabled": lambda: False,
            "tuning_is_enabled": lambda: False,
        },
    ),
    "cuda.streams": Refused(_CUDA, home="cuda", same="Event ExternalStream Stream"),
    "distributed.autograd": Refused(
        "no gradient passes through functions of other processes. Use torch.distributed.nn.functional",
        classes="context",
        values={"is_available": lambda: False},
    ),
    "distributed.tensor.device_mesh": Refused(
        "torch.distributed.device_mesh has it", home="distributed.device_mesh", same="DeviceMesh init_device_mesh"
    ),
    **{path: Refused(*names) for path, names in _refused_distributed.MODULES.items()},
    "export.dynamic_shapes": Refused(_PROGRAM, "refine_dynamic_shapes_from_suggested_fixes", home="export", same="Dim"),
    "export.exported_program": Refused(
        _PROGRAM, "default_decompositions", "ModuleCallEntry ModuleCallSignature", "export", "ExportedProgram"
    ),
    "export.graph_signature": Refused(
        _PROGRAM,
        classes="ConstantArgument CustomObjArgument ExportBackwardSignature ExportGraphSignature InputKind InputSpec "
        "OutputKind OutputSpec SymIntArgument TensorArgument",
    ),
    "export.unflatten": Refused(_PROGRAM, "unflatten", "FlatArgsAdapter InterpreterModule UnflattenedModule"),
    "jit._script": Refused(
        _SCRIPT,
        "create_script_dict create_script_list",
        "RecursiveScriptClass",
        "jit",
        "RecursiveScriptModule ScriptFunction ScriptModule script",
    ),
    "jit._trace": Refused(
        _SCRIPT,
        "verify",
        "TopLevelTracedModule TracingCheckError",
        "jit",
        "ScriptModule TracerWarning is_tracing trace trace_module",
    ),
    "jit.mobile": Refused(_SCRIPT, "_load_for_lite_interpreter", "LiteScriptModule"),
    "monitor": Refused(
        "no events are sent to monitors. torch.profiler records what runs",
        "log_event register_event_handler unregister_event_handler",
        "Aggregation Event EventHandlerHandle Stat TensorboardEventHandler data_value_t",
    ),
    "mps.profiler": Refused(
        "there are no MPS devices here. torch.profiler records what runs",
        "metal_capture profile start stop",
        values={"is_capturing_metal": lambda: False, "is_metal_capture_enabled": lambda: False},
    ),
    "nn.attention.varlen": Refused(
        "there is no kernel for sequences of several lengths in one tensor. Pad them with nn.utils.rnn.pad_sequence and give "
        "scaled_dot_product_attention a mask",
        "varlen_attn varlen_attn_out",
        "AuxRequest",
    ),
    "nn.intrinsic": Refused(_QUANTIZED, classes=_FUSED, modules="qat quantized"),
    "nn.intrinsic.qat": Refused(_QUANTIZED, "freeze_bn_stats update_bn_stats", _FUSED_QAT),
    "nn.intrinsic.quantized": Refused(_QUANTIZED, classes=_FUSED_QUANTIZED),
    "nn.parallel.comm": Refused(_CUDA, _COMMUNICATION),
    "nn.parallel.parallel_apply": Refused(_CUDA, "get_a_var parallel_apply"),
    "nn.parallel.replicate": Refused(_CUDA, "replicate"),
    "nn.qat": Refused(_QUANTIZED, classes="Conv1d Conv2d Conv3d Embedding EmbeddingBag Linear"),
    "nn.quantizable": Refused(_QUANTIZED, classes="LSTM LSTMCell MultiheadAttention"),
    "nn.quantized.dynamic": Refused(_QUANTIZED, classes=_DYNAMIC_LAYERS),
    "onnx.ops": Refused(
        "models are not exported: see torch.onnx.export", "attention rotary_embedding symbolic symbolic_multi_out"
    ),
    "package": Refused(
        _PACKAGES,
        "is_from_package",
        "Directory EmptyMatchError GlobGroup Importer ObjMismatchError ObjNotFoundError OrderedImporter PackageExporter "
        "PackageImporter PackagingError",
    ),
    "quantization": _QUANTIZE_AGAIN._replace(modules=_QUANTIZE.modules),
    **{f"quantization.{name}": _QUANTIZE_AGAIN for name in ("fake_quantize", "observer", "qconfig", "qconfig_mapping")},
    "quantization.quantize_fx": _QUANTIZE_FX,
    "utils.backcompat": Refused(
        "results that torch changed long ago are as they are since then",
        values=dict.fromkeys(["keepdim_warning", "broadcast_warning"]),
    ),
    "utils.backend_registration": Refused(_EXTENSIONS, "generate_methods_for_privateuse1_backend rename_privateuse1_backend"),
    "utils.file_baton": Refused(_EXTENSIONS, classes="FileBaton"),
    "utils.bundled_inputs": Refused(
        _SCRIPT,
        "augment_many_model_functions_with_bundled_inputs augment_model_with_bundled_inputs bundle_inputs bundle_large_tensor "
        "bundle_randn",
        "InflatableArg",
    ),
    "utils.cpp_extension": Refused(
        _EXTENSIONS,
        "CUDAExtension CppExtension SyclExtension get_compiler_abi_compatibility_and_version get_cxx_compiler "
        "get_default_build_root include_paths library_paths load load_inline remove_extension_h_precompiler_headers "
        "verify_ninja_availability",
        "BuildExtension",
        values={
            "CUDA_HOME": None,
            "CUDNN_HOME": None,
            "ROCM_HOME": None,
            "SYCL_HOME": None,
            "IS_HIP_EXTENSION": False,
            "is_ninja_available": lambda: False,
        },
    ),
    "utils.mkldnn": Refused(
        _VENDOR, "to_mkldnn", "MkldnnBatchNorm MkldnnConv1d MkldnnConv2d MkldnnConv3d MkldnnLinear MkldnnPrelu"
    ),
    "utils.mobile_optimizer": Refused(
        _SCRIPT, "generate_mobile_module_lints optimize_for_mobile", "LintCode MobileOptimizerType"
    ),
    "utils.throughput_benchmark": Refused(
        "models are not called from many native threads. Measure with torch.utils.benchmark.Timer or torch.profiler",
        "format_time",
        "ExecutionStats ThroughputBenchmark",
    ),
    "xpu.streams": Refused("there are no XPU devices here: torch.xpu.is_available() says so", classes="Event Stream"),
}


def refusing_function(name: str, reason: str) -> Callable[..., NoReturn]:
    """A function that raises NotImplementedError; `name` is its path below torch."""

    def refuse(*args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(f"torch.{name}: {reason}. See docs/compatibility.md")

    refuse.__name__ = refuse.__qualname__ = name.rpartition(".")[2]
    refuse.__module__ = f"torch.{name}".rpartition(".")[0]
    refuse.__doc__ = f"NotImplementedError: {reason}."
    return refuse


def refusing_class(name: str, reason: str) -> type:
    """A class for `isinstance` and as a base, of which no object can be made; `name` is its path below torch."""
    module, _, own = f"torch.{name}".rpartition(".")
    return type(
        own,
        (),
        {"__module__": module, "__doc__": f"No object can be made: {reason}.", "__init__": refusing_function(name, reason)},
    )


def names_of(refused: Refused, path: str) -> dict[str, Any]:
    """The names of a line of the table, for the module at `path`; its modules are left out."""
    before = f"{path}." if path else ""
    names: dict[str, Any] = dict(refused.values)
    names |= {name: refusing_function(before + name, refused.reason) for name in refused.functions.split()}
    names |= {name: refusing_class(before + name, refused.reason) for name in refused.classes.split()}
    if refused.same:
        home = import_module(f".{refused.home}", __package__)
        names |= {name: getattr(home, name) for name in refused.same.split()}
    return names


def fill(module: ModuleType, path: str) -> None:
    """Give a module the names that stand in the table under its path."""
    refused = MODULES[path]
    names = names_of(refused, path)
    if refused.modules:
        names["__getattr__"], names["__dir__"] = lazy_exports(module.__name__, tuple(refused.modules.split()))
    module.__dict__.update(names)
    module.__doc__ = f"torch.{path}: {refused.reason}."
    module.__dict__["__all__"] = sorted(name for name in names if not name.startswith("_"))


class _TableLoader:
    """Makes a module of the table. Not an importlib.abc.Loader: that import takes a tenth of the time of importing nn."""

    def __init__(self, path: str) -> None:
        self.path = path

    def create_module(self, spec: ModuleSpec) -> None:
        """None: the module is made as usual."""

    def exec_module(self, module: ModuleType) -> None:
        fill(module, self.path)


def find_spec(name: str) -> ModuleSpec | None:
    """How the import system makes a module of the table; None for other names."""
    path = name.partition(".")[2]
    loader: Any = _TableLoader(path)
    return ModuleSpec(name, loader, is_package=True) if path in MODULES else None
