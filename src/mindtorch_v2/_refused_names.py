"""Names of torch that can do nothing here, in modules that are here: they can be imported, and say so when they are used.

`_refused` has whole modules of that kind; its words are used here. A module takes its names of this table with
`__getattr__, __dir__ = lazy_exports(__name__)`, so that the table is read when a name is asked for that nothing else has.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from importlib import import_module
from typing import Any

from ._refused import (
    _COMPILER,
    _CUDA,
    _EXTENSIONS,
    _PROGRAM,
    _QUANTIZED,
    _SCRIPT,
    _SPARSITY,
    _VENDOR,
    Refused,
    names_of,
)

_XPU = "there are no XPU devices here: torch.xpu.is_available() says so"
_MPS = "there are no MPS devices here: torch.mps.is_available() says so"
_MTIA = "there are no MTIA devices here: torch.mtia.is_available() says so"
_ACCELERATOR = "memory and graphs of accelerators are asked for by torch.npu, where there is one"
_KERNELS = "there is one kernel of attention, in NumPy: torch.nn.functional.scaled_dot_product_attention computes with it"
_MASKED = "there are no masked tensors. The functions of torch.masked take `mask=`"
_NESTED = "there are no nested tensors. Pad sequences with nn.utils.rnn.pad_sequence"
_ONNX = "models are not exported: see torch.onnx.export"
_FRAMES = "there are no C++ frames. torch.utils.tensorboard and the profiler tell of Python's"
_PIPES = "only data pipes of streams and maps without files, groups and shards are here. Use a Dataset with a DataLoader"
_DTYPES = "no tensor has this dtype. Keep such numbers in torch.uint8 and unpack them"
_CALLGRIND = "instructions are not counted. Measure with torch.utils.benchmark.Timer or torch.profiler"
_SYNC = "statistics of batches are combined on the CPU by nn.SyncBatchNorm. The functions of its CUDA kernels are not there"
_INSIDES = "a part of PyTorch's C++ runtime that Python sees: nothing here has one"

_ONNX_TYPES = (
    "UNDEFINED FLOAT UINT8 INT8 UINT16 INT16 INT32 INT64 STRING BOOL FLOAT16 DOUBLE UINT32 UINT64 COMPLEX64 COMPLEX128 "
    "BFLOAT16 FLOAT8E4M3FN FLOAT8E4M3FNUZ FLOAT8E5M2 FLOAT8E5M2FNUZ"
)
_TYPES = (
    "AliasDb AnyType Argument ArgumentSpec AwaitType Block BoolType BufferDict CallStack ClassType Code "
    "CompilationUnit CompleteArgumentSpec ComplexType ConcreteModuleType ConcreteModuleTypeBuilder DeepCopyMemoTable "
    "DeviceObjType DictType EnumType ErrorReport ExecutionPlan FileCheck FloatType FunctionSchema FutureType Gradient "
    "Graph GraphExecutorState IODescriptor InferredType IntType InterfaceType ListType LiteScriptModule LockingLogger "
    "LoggerBase ModuleDict Node NoneType NoopLogger NumberType OperatorInfo OptionalType ParameterDict PyObjectType "
    "RRefType ScriptClass ScriptClassFunction ScriptDict ScriptDictIterator ScriptDictKeyIterator ScriptList "
    "ScriptListIterator ScriptMethod ScriptModuleSerializer ScriptObject ScriptObjectProperty StaticModule "
    "StreamObjType StringType SymBoolType SymIntType TensorType TracingState TupleType Type UnionType Use Value"
)
_TYPE_FUNCTIONS = (
    "import_ir_module import_ir_module_from_buffer merge_type_from_type_comment parse_ir parse_schema parse_type_comment "
    "unify_type_list"
)
_QUANTIZED_FUNCTIONS = (
    "choose_qparams_optimized empty_quantized fbgemm_linear_fp16_weight fbgemm_linear_fp16_weight_fp32_activation "
    "fbgemm_linear_int8_weight fbgemm_linear_int8_weight_fp32_activation fbgemm_linear_quantize_weight "
    "fbgemm_pack_gemm_matrix_fp16 fbgemm_pack_quantized_matrix fused_moving_avg_obs_fake_quant int_repr q_per_channel_axis "
    "q_per_channel_scales q_per_channel_zero_points q_scale q_zero_point quantize_per_channel quantize_per_tensor "
    "quantize_per_tensor_dynamic quantized_batch_norm quantized_gru quantized_gru_cell quantized_lstm quantized_lstm_cell "
    "quantized_max_pool1d quantized_max_pool2d quantized_max_pool3d quantized_rnn_relu_cell quantized_rnn_tanh_cell"
)
_VENDOR_FUNCTIONS = (
    "miopen_batch_norm miopen_convolution miopen_convolution_add_relu miopen_convolution_relu miopen_convolution_transpose "
    "miopen_ctc_loss miopen_depthwise_convolution miopen_rnn mkldnn_adaptive_avg_pool2d mkldnn_convolution "
    "mkldnn_linear_backward_weights mkldnn_max_pool2d mkldnn_max_pool3d"
)
_CUDNN_FUNCTIONS = (
    "cudnn_affine_grid_generator cudnn_batch_norm cudnn_convolution cudnn_convolution_add_relu cudnn_convolution_relu "
    "cudnn_convolution_transpose cudnn_grid_sampler profiler_allow_cudagraph_cupti_lazy_reinit_cuda12"
)
_GUARDS = (
    "keep_portable_guards_unsafe keep_tensor_guards_unsafe skip_all_guards_unsafe skip_guard_on_all_nn_modules_unsafe "
    "skip_guard_on_globals_unsafe skip_guard_on_inbuilt_nn_modules_unsafe"
)
_TORCH = (
    Refused(_SCRIPT, _TYPE_FUNCTIONS, _TYPES),
    Refused(_QUANTIZED, _QUANTIZED_FUNCTIONS, "QInt32Storage QInt8Storage QUInt2x4Storage QUInt4x2Storage QUInt8Storage"),
    Refused(
        "subclasses and modes are not switched off together. Use torch._C.DisableTorchFunctionSubclass, and leave the modes",
        classes="DisableTorchFunction",
    ),
    Refused(_VENDOR, _VENDOR_FUNCTIONS),
    Refused(_CUDA, _CUDNN_FUNCTIONS),
    Refused(
        _SYNC,
        "batch_norm_backward_elemt batch_norm_backward_reduce batch_norm_elemt batch_norm_gather_stats "
        "batch_norm_gather_stats_with_counts batch_norm_stats",
    ),
    Refused(
        _INSIDES,
        "resize_as_sparse_ saddmm slice_inverse",
        "BenchmarkConfig BenchmarkExecutionStats Capsule DeserializationStorageContext ExcludeDispatchKeyGuard "
        "PyTorchFileWriter SerializationStorageContext ThroughputBenchmark",
        modules="cpp",
    ),
)

# By the path below this package; "" is the package itself.
NAMES: Mapping[str, tuple[Refused, ...]] = {
    "": _TORCH,
    "accelerator": (
        Refused(
            _ACCELERATOR,
            "empty_cache empty_host_cache get_device_capability get_memory_info max_memory_allocated max_memory_reserved "
            "memory_allocated memory_reserved memory_stats reset_accumulated_memory_stats reset_peak_memory_stats",
            "Graph device_index",
        ),
    ),
    "autograd": (Refused(_INSIDES, classes="NestedIOFunction enforce_grad_layout_policy"),),
    "autograd.function": (Refused(_INSIDES, classes="NestedIOFunction"),),
    "autograd.grad_mode": (Refused(_INSIDES, classes="enforce_grad_layout_policy"),),
    "autograd.gradcheck": (Refused(_INSIDES, "get_numerical_jacobian_wrt_specific_input"),),
    "autograd.graph": (
        Refused(
            _COMPILER,
            "region_activation_memory_budget set_override_stale_capture_stream set_warn_on_accumulate_grad_stream_mismatch",
        ),
    ),
    "backends": (Refused(_VENDOR, modules="cusparselt kleidiai miopen python_native xnnpack"),),
    "backends.cuda": (
        Refused(
            _CUDA,
            "allow_fp16_bf16_reduction_math_sdp blas_workspace_size cublas_workspace_size cublaslt_workspace_size "
            "preferred_blas_library preferred_linalg_library preferred_rocm_fa_library",
            "cuBLASModule cuFFTPlanCache cuFFTPlanCacheAttrContextProp cuFFTPlanCacheManager SDPAParams",
            values={
                **dict.fromkeys(
                    ["can_use_cudnn_attention", "can_use_efficient_attention", "can_use_flash_attention"],
                    lambda params, debug=False: False,
                ),
                **dict.fromkeys(
                    ["fp16_bf16_reduction_math_sdp_allowed", "is_ck_sdpa_available", "is_flash_attention_available"],
                    lambda: False,
                ),
            },
        ),
    ),
    "backends.mkl": (Refused(_VENDOR, classes="verbose", values={"VERBOSE_OFF": 0, "VERBOSE_ON": 1}),),
    "backends.mps": (Refused(_MPS, "get_core_count get_name is_macos13_or_newer"),),
    "compiler": (
        Refused(
            _COMPILER,
            "load_cache_artifacts load_compiled_function set_default_backend set_enable_guard_collectives wrap_numpy "
            + _GUARDS,
            values={
                "get_default_backend": lambda: "eager",
                "save_cache_artifacts": lambda: None,
            },
        ),
    ),
    "cuda": (
        Refused(
            _CUDA,
            "caching_allocator_disabled caching_allocator_enable reset_accumulated_host_memory_stats "
            "reset_peak_host_memory_stats",
            "GreenContext cudaStatus",
            modules="sparse tunable",
        ),
    ),
    "export": (
        Refused(
            _PROGRAM,
            "default_decompositions dims draft_export",
            "AdditionalInputs Constraint CustomDecompTable ExportBackwardSignature ExportGraphSignature FlatArgsAdapter "
            "ModuleCallEntry ModuleCallSignature ShapesCollection UnflattenedModule",
        ),
    ),
    "fx.graph_module": (Refused(_EXTENSIONS, "reduce_package_graph_module"),),
    "fx.proxy": (Refused(_INSIDES, classes="MetaProxy Scope ScopeContextManager"),),
    "jit": (
        Refused(
            _SCRIPT,
            "enable_onednn_fusion export_opnames optimize_for_inference set_fusion_strategy",
            "CompilationUnit strict_fusion",
            values={"onednn_fusion_enabled": lambda: False},
        ),
    ),
    "library": (
        Refused(_EXTENSIONS, "fallthrough_kernel get_kernel register_torch_dispatch triton_op wrap_triton"),
        Refused("custom ops run sample by sample under vmap, by their kernel", "register_vmap"),
        Refused("sizes of fake tensors are plain numbers: there are none to make in a fake kernel", "get_ctx"),
    ),
    "masked": (
        Refused(_MASKED, "as_masked_tensor masked_tensor", "MaskedTensor", values={"is_masked_tensor": lambda obj: False}),
    ),
    "mps": (
        Refused(
            _MPS,
            "compile_shader current_allocated_memory driver_allocated_memory load_metallib recommended_max_memory "
            "set_per_process_memory_fraction",
            "Event",
            modules="profiler",
        ),
    ),
    "mtia": (
        Refused(
            _MTIA,
            "attach_out_of_memory_observer graph_pool_handle record_memory_history set_stream snapshot stream",
            "MTIAGraph device graph",
            values={"memory_stats": lambda device=None: {}},
        ),
    ),
    "nn": (Refused(_QUANTIZED, modules="intrinsic qat quantizable"),),
    "nn.attention": (
        Refused(
            _KERNELS,
            "activate_flash_attention_impl register_flash_attention_impl restore_flash_attention_impl",
            values={
                "WARN_FOR_UNFUSED_KERNELS": False,
                "current_flash_attention_impl": lambda: None,
                "list_flash_attention_impls": list,
            },
        ),
    ),
    "nn.functional": (
        Refused(_QUANTIZED, "scaled_grouped_mm scaled_mm", "ScalingType SwizzleType"),
        Refused(_SCRIPT, "boolean_dispatch", "BroadcastingList1 BroadcastingList2 BroadcastingList3"),
    ),
    "nn.parallel": (Refused(_CUDA, "parallel_apply replicate"),),
    "onnx": (
        Refused(
            _ONNX,
            classes="ExportableModule InputObserver ONNXProgram",
            modules="ops",
            values={
                "OperatorExportTypes": IntEnum(
                    "OperatorExportTypes", "ONNX ONNX_ATEN ONNX_ATEN_FALLBACK ONNX_FALLTHROUGH", start=0
                ),
                "TensorProtoDataType": IntEnum("TensorProtoDataType", _ONNX_TYPES, start=0),
                "TrainingMode": IntEnum("TrainingMode", "EVAL PRESERVE TRAINING", start=0),
            },
        ),
    ),
    "sparse": (
        Refused(
            _SPARSITY,
            "solve to_sparse_semi_structured",
            "SparseSemiStructuredTensor SparseSemiStructuredTensorCUSPARSELT SparseSemiStructuredTensorCUTLASS",
        ),
    ),
    "testing": (Refused(_SCRIPT, classes="FileCheck"),),
    "utils": (
        Refused(
            _EXTENSIONS,
            "generate_methods_for_privateuse1_backend rename_privateuse1_backend",
            modules="backcompat backend_registration file_baton",
        ),
        Refused(_FRAMES, "get_cpp_backtrace"),
    ),
    "utils.benchmark": (
        Refused(
            _CALLGRIND,
            "CopyIfCallgrind",
            "CallgrindStats FunctionCount FunctionCounts FuzzedParameter FuzzedSparseTensor FuzzedTensor Fuzzer Language "
            "ParameterAlias",
        ),
    ),
    "utils.data": (
        Refused(
            _PIPES,
            "argument_validation guaranteed_datapipes_determinism non_deterministic runtime_validation "
            "runtime_validation_disabled",
            "DFIterDataPipe DataChunk",
        ),
    ),
    "utils.data.datapipes.iter": (
        Refused(_PIPES, classes="FileLister FileOpener Grouper RoutedDecoder Sampler ShardingFilter StreamReader"),
    ),
    "utils.data.datapipes.iter.combinatorics": (Refused(_PIPES, classes="SamplerIterDataPipe"),),
    "utils.data.datapipes.map": (Refused(_PIPES, classes="Batcher Shuffler"),),
    "xpu": (
        Refused(
            _XPU,
            "can_device_access_peer change_current_allocator clock_rate device_memory_used get_per_process_memory_fraction "
            "get_stream_from_external graph_pool_handle make_graphed_callables memory_snapshot memory_usage power_draw "
            "set_per_process_memory_fraction set_stream stream temperature use_mem_pool utilization",
            "Event MemPool Stream StreamContext XPUGraph XPUPluggableAllocator device device_of graph",
            values={
                "get_arch_list": list,
                "get_gencode_flags": str,
                "is_tf32_supported": lambda: False,
                "memory_stats": lambda device=None: {},
                "memory_stats_as_nested_dict": lambda device=None: {},
            },
            modules="streams",
        ),
    ),
}


def _path(module: str) -> str:
    return module.partition(".")[2]


def find(module: str, name: str) -> Any:
    """The value of a name in a module of this package; AttributeError where the table has none."""
    path = _path(module)
    for refused in NAMES.get(path, ()):
        if name in refused.modules.split():
            return import_module(f"{module}.{name}")
        found = names_of(refused, path)
        if name in found:
            return found[name]
    raise AttributeError(f"module '{module}' has no attribute '{name}'")


def listed(module: str) -> list[str]:
    """The names that a module has of the table."""
    return [
        name
        for refused in NAMES.get(_path(module), ())
        for name in (
            *refused.functions.split(),
            *refused.classes.split(),
            *refused.same.split(),
            *refused.modules.split(),
            *refused.values,
        )
    ]
