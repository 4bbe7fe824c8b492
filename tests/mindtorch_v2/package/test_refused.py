"""Modules that can do nothing here: they can be imported, and each name says so when it is used."""

from __future__ import annotations

from importlib import import_module

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import _refused


@pytest.mark.parametrize("path", _refused.MODULES)
def test_names_refuse_at_use(path):
    refused = _refused.MODULES[path]
    module = import_module(f"mindtorch_v2.{path}")
    for name in (*refused.functions.split(), *refused.classes.split()):
        with pytest.raises(NotImplementedError, match=rf"^torch\.[\w.]*\.{name}: .*See docs/compatibility\.md$"):
            getattr(module, name)(1)
    for name in refused.classes.split():
        assert not isinstance(torch.ones(1), getattr(module, name))
    for name in refused.same.split():
        assert getattr(module, name) is getattr(import_module(f"mindtorch_v2.{refused.home}"), name)
    for name in refused.modules.split():
        assert getattr(module, name) is import_module(f"mindtorch_v2.{path}.{name}")
    assert set(module.__all__) >= {*refused.functions.split(), *refused.classes.split(), *refused.same.split()} - {
        name for name in refused.functions.split() if name.startswith("_")
    }


def test_values_mean_what_they_say():
    extension = import_module("mindtorch_v2.utils.cpp_extension")
    assert extension.CUDA_HOME is None
    assert not extension.is_ninja_available()
    config = torch._inductor.config
    assert config.triton.unique_kernel_names
    before, config.max_autotune = config.max_autotune, True
    assert torch._inductor.config.max_autotune
    config.max_autotune = before


def test_other_modules_are_not_found():
    with pytest.raises(ModuleNotFoundError):
        import_module("mindtorch_v2.quantization.nothing")


NO_NVML = "ModuleNotFoundError: nvidia-ml-py does not seem to be installed or it can't be imported."
NO_CUDA = "AssertionError: Torch not compiled with CUDA enabled"
# By PyTorch 2.13 without CUDA.
OF_CUDA = {
    "caching_allocator_alloc(8)": NO_CUDA,
    "caching_allocator_delete(0)": "AttributeError: module 'torch._C' has no attribute '_cuda_cudaCachingAllocator_raw_delete'",
    "can_device_access_peer(0, 1)": NO_CUDA,
    "change_current_allocator(None)": "AttributeError: module 'torch._C' has no attribute '_cuda_changeCurrentAllocator'",
    "check_error(1)": "AttributeError: 'NoneType' object has no attribute 'cudaError'",
    "clock_rate()": NO_NVML,
    "cudart()": NO_CUDA,
    "current_blas_handle()": NO_CUDA,
    "current_solver_handle()": NO_CUDA,
    "device_memory_used()": NO_NVML,
    "get_allocator_backend()": "AttributeError: module 'torch._C' has no attribute '_cuda_getAllocatorBackend'",
    "get_per_process_memory_fraction()": NO_CUDA,
    "get_stream_from_external(0)": NO_CUDA,
    "get_sync_debug_mode()": NO_CUDA,
    "graph_pool_handle()": "RuntimeError: Tried to instantiate dummy base class _graph_pool_handle",
    "list_gpu_processes()": "'pynvml module not found, please install nvidia-ml-py'",
    "make_graphed_callables(abs, ())": "RuntimeError: Tried to instantiate dummy base class CUDAGraph",
    "memory_snapshot()": "AttributeError: module 'torch._C' has no attribute '_cuda_memorySnapshot'",
    "memory_stats()": "OrderedDict()",
    "memory_stats_as_nested_dict()": "{}",
    "memory_summary()": "KeyError: 'allocated_bytes.all.current'",
    "memory_usage()": NO_NVML,
    "power_draw(0)": NO_NVML,
    "set_per_process_memory_fraction(0.5)": NO_CUDA,
    "set_stream(None)": "None",
    "set_stream(0)": "AttributeError: 'int' object has no attribute 'stream_id'",
    "set_sync_debug_mode('warn')": NO_CUDA,
    "temperature()": NO_NVML,
    "use_mem_pool(None).__enter__()": NO_CUDA,
    "utilization()": NO_NVML,
    "Stream()": "RuntimeError: torch.cuda.Stream requires CUDA support",
    "Event()": "RuntimeError: Tried to instantiate dummy base class Event",
    "CUDAGraph()": "RuntimeError: Tried to instantiate dummy base class CUDAGraph",
    "MemPool()": "RuntimeError: Tried to instantiate dummy base class MemPool",
    "graph(None)": "RuntimeError: torch.cuda.Stream requires CUDA support",
    "memory.memory_snapshot()": "AttributeError: module 'torch._C' has no attribute '_cuda_memorySnapshot'",
}


@pytest.mark.parametrize("call", OF_CUDA)
def test_names_of_cuda_answer_as_without_it(call):
    try:
        answer = repr(eval(f"torch.cuda.{call}"))
    except Exception as error:
        answer = f"{type(error).__name__}: {error}"
    assert answer == OF_CUDA[call]


def test_names_of_cuda_for_except_and_statistics():
    with pytest.raises(RuntimeError, match="requires CUDA support"):
        torch.cuda.ExternalStream(0)
    assert torch.cuda.OutOfMemoryError is torch.OutOfMemoryError
    assert (torch.cuda.max_memory_cached(), torch.cuda.memory_stats_as_nested_dict()) == (0, {})
