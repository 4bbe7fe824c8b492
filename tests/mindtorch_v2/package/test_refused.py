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


def test_names_of_cuda_raise_as_without_it():
    for name in ("memory_summary", "cudart", "set_sync_debug_mode", "make_graphed_callables", "use_mem_pool"):
        with pytest.raises(AssertionError, match="^Torch not compiled with CUDA enabled$"):
            getattr(torch.cuda, name)(0)
    for kind in (torch.cuda.MemPool, torch.cuda.ExternalStream):
        with pytest.raises(RuntimeError, match="requires CUDA support"):
            kind(0)
    assert torch.cuda.OutOfMemoryError is torch.OutOfMemoryError
    assert (torch.cuda.max_memory_cached(), torch.cuda.memory_stats_as_nested_dict()) == (0, {})
