"""What `import mindtorch_v2` loads, and that what it leaves for later is there all the same. Counted, not timed."""

from __future__ import annotations

import json
import pkgutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import mindtorch_v2 as torch
from mindtorch_v2._dispatch.schema import Schema, parse

SOURCE = str(Path(torch.__file__).parents[1])
# Ops, dispatcher and autograd, about 265; nothing that stands on them.
OUR_MODULES = 270
# Beyond what NumPy loads for itself: a handful of the standard library.
FOREIGN_MODULES = 20
# Modules of this package that no import of it may load.
LEFT_FOR_LATER = (
    "nn",
    "optim",
    "utils",
    "profiler",
    "autograd",
    "distributions",
    "func",
    "serialization",
    "jit",
    "masked",
    "special",
    "_ops.bessel",
    "_ops.histogramdd",
    "_ops.polynomials",
)
HEAVY = (
    "asyncio",
    "dataclasses",
    "hashlib",
    "html",
    "http",
    "importlib.metadata",
    "json",
    "logging",
    "ml_dtypes",
    "multiprocessing",
    "numpy.fft",
    "numpy.ma",
    "numpy.polynomial",
    "numpy.random",
    "numpy.testing",
    "numpy.typing",
    "orjson",
    "pathlib",
    "random",
    "secrets",
    "shutil",
    "socket",
    "ssl",
    "subprocess",
    "sysconfig",
    "tempfile",
    "unittest",
    "urllib",
    "uuid",
    "zipfile",
)
LIST_MODULES = "import sys, json; print(json.dumps(sorted(sys.modules)))"


def run(code: str) -> Any:
    """What a new process prints, read as JSON."""
    start = f"import sys; sys.path.insert(0, {SOURCE!r})\n"
    done = subprocess.run([sys.executable, "-I", "-c", start + code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def loaded() -> set[str]:
    """The modules that the import adds to those of Python and NumPy."""
    before, after = run(
        "import sys, json, numpy; before = sorted(sys.modules); import mindtorch_v2\n"
        "print(json.dumps([before, sorted(sys.modules)]))"
    )
    return set(after) - set(before)


def test_few_modules_are_loaded(loaded: set[str]) -> None:
    ours = {name for name in loaded if name.partition(".")[0] == "mindtorch_v2"}
    assert len(ours) <= OUR_MODULES, sorted(ours)
    assert len(loaded - ours) <= FOREIGN_MODULES, sorted(loaded - ours)


def test_heavy_modules_are_not_loaded(loaded: set[str]) -> None:
    assert not loaded & {*HEAVY, *(f"mindtorch_v2.{name}" for name in LEFT_FOR_LATER)}


def test_a_first_profile_loads_no_heavy_modules() -> None:
    names = run(
        "import mindtorch_v2 as torch\n"
        "from mindtorch_v2.profiler import profile\n"
        "x = torch.ones(4, 4)\n"
        "with profile() as recorded: x + x\n"
        "recorded.key_averages().table()\n" + LIST_MODULES
    )
    heavy = {
        "asyncio",
        "html",
        "multiprocessing",
        "numpy.ma",
        "numpy.random",
        "orjson",
        "shutil",
        "socket",
        "sysconfig",
        "tempfile",
        "uuid",
        "mindtorch_v2.nn",
        "mindtorch_v2.optim",
        "mindtorch_v2.profiler.analysis.overhead",
        "mindtorch_v2.profiler.recording.device",
        "mindtorch_v2.profiler.session.calibration",
        "mindtorch_v2.profiler.store.memory_profile",
    }
    assert not heavy & set(names)


def test_the_functions_are_listed_once_for_their_old_home() -> None:
    calls = run(
        "import mindtorch_v2._surface as surface\n"
        "calls, functions = [], surface.functions\n"
        "surface.functions = lambda: calls.append(1) or functions()\n"
        "import mindtorch_v2.functional\n"
        "print(len(calls))"
    )
    assert calls == 1


def test_types_that_numpy_lacks_are_loaded_when_asked_for() -> None:
    before, name, known, after = run(
        "import json, sys\n"
        "import mindtorch_v2 as torch\n"
        "before = 'ml_dtypes' in sys.modules\n"
        "name = str(torch.promote_types(torch.bfloat16, torch.float16))\n"
        "import ml_dtypes, numpy\n"
        "known = str(torch.from_numpy(numpy.ones(2, ml_dtypes.bfloat16)).dtype)\n"
        "print(json.dumps([before, name, known, torch.ones(2, dtype=torch.float8_e5m2).tolist()]))"
    )
    assert (before, name, known, after) == (False, "torch.float32", "torch.bfloat16", [1.0, 1.0])


def test_schemas_are_parsed_when_an_op_is_used() -> None:
    declared, parsed = run(
        "import json\n"
        "import mindtorch_v2\n"
        "from mindtorch_v2._dispatch.observer import op_schemas\n"
        "filled = type(op_schemas[0]).__dict__['arguments']\n"
        "def is_parsed(schema):\n"
        "    try: filled.__get__(schema)\n"
        "    except AttributeError: return False\n"
        "    return True\n"
        "print(json.dumps([len(op_schemas), sum(map(is_parsed, op_schemas))]))"
    )
    assert declared > 1000
    assert parsed < declared / 10


def test_a_schema_is_the_same_however_it_is_read() -> None:
    text = " mul.Tensor(Tensor(a!) self, Tensor other, *, int[2] dim=[1, 0]) -> (Tensor values, Tensor indices) "
    later, at_once = Schema(text), parse(text)
    assert (later.name, later.overload, later.text) == ("mul", "Tensor", text.strip())
    assert later.is_method and later.mutates
    assert later.returns == at_once.returns == ("Tensor", "Tensor")
    assert later.return_names == ("values", "indices") and later.returns_alias == ""
    assert repr(later.arguments) == repr(at_once.arguments)
    assert later.arguments is later.arguments  # every reader gets the same objects
    with pytest.raises(AttributeError, match="no attribute 'argument'"):
        _ = later.argument
    with pytest.raises(ValueError, match="bad schema"):
        parse("mul(Tensor self")


def test_is_method_agrees_with_the_arguments() -> None:
    from mindtorch_v2._dispatch.observer import op_schemas

    for schema in op_schemas:
        first = schema.arguments[0] if schema.arguments else None
        expected = first is not None and first.is_tensor and first.name in ("self", "input")
        assert schema.is_method == expected, schema.text


def test_a_malformed_schema_of_a_custom_op_is_told_at_once() -> None:
    with pytest.raises(ValueError, match="bad"):
        torch.library.custom_op("importtest::broken", lambda x: x, mutates_args=(), schema="(Tensor x -> Tensor")


# ---------------------------------------------------------------- what is left for later


# Modules that torch has not: they are imported by their full name.
BESIDE_TORCH = ("as_torch", "safetensors")


def public_modules() -> list[str]:
    return [
        found.name
        for found in pkgutil.iter_modules(torch.__path__)
        if not found.name.startswith("_") and found.name not in BESIDE_TORCH
    ]


@pytest.mark.parametrize("name", public_modules())
def test_every_public_module_is_an_attribute(name: str) -> None:
    assert name in dir(torch)
    assert getattr(torch, name).__name__ == f"mindtorch_v2.{name}"


def test_all_names_exist() -> None:
    for name in {*torch.__all__, *dir(torch), *dir(torch.autograd), *dir(torch.utils)}:
        home = next(m for m in (torch, torch.autograd, torch.utils) if name in dir(m))
        assert getattr(home, name) is getattr(home, name), name


def test_star_import_brings_modules_and_functions() -> None:
    names: dict[str, Any] = {}
    exec("from mindtorch_v2 import *", names)
    assert names["nn"] is torch.nn and names["load"] is torch.load and names["add"] is torch.add
    assert not {"annotations", "TYPE_CHECKING", "types", "multiprocessing"} & set(names)


@pytest.mark.parametrize(
    "code",
    [
        "import mindtorch_v2.distributions as it",
        "from mindtorch_v2 import fft as it",
        "import mindtorch_v2; it = mindtorch_v2.utils.data",
        "import mindtorch_v2.nn.functional as it",
        "import mindtorch_v2; it = mindtorch_v2.nn.utils.weight_norm; it.__call__",
        "import mindtorch_v2; it = mindtorch_v2.nn.attention.sdpa_kernel",
        "from mindtorch_v2.nn import quantized as it",
        "import mindtorch_v2; it = mindtorch_v2.autograd.profiler",
        "from mindtorch_v2.autograd import ProfilerState as it",
        "from mindtorch_v2.utils.data import DataLoader as it",
        "import mindtorch_v2; it = mindtorch_v2.compile",
        "import mindtorch_v2; it = mindtorch_v2._C._profiler.ProfilerActivity",
        "import mindtorch_v2, mindtorch_v2.autograd.gradcheck; it = mindtorch_v2.autograd.gradcheck; it.__call__",
        "import pickle, mindtorch_v2; it = pickle.loads(b'cmindtorch_v2.nn.modules.linear\\nLinear\\n.')",
    ],
)
def test_first_use_in_a_new_process(code: str) -> None:
    assert run(code + "\nprint('true' if it is not None else 'false')") is True


def test_an_unknown_name_is_an_attribute_error() -> None:
    for module in (torch, torch.autograd, torch.utils):
        with pytest.raises(AttributeError, match=f"module '{module.__name__}' has no attribute 'nonesuch'"):
            _ = module.nonesuch
    with pytest.raises(ImportError):
        exec("from mindtorch_v2 import nonesuch")


def test_layers_and_optimizers_load_nothing_for_several_processes() -> None:
    names = set(run("from mindtorch_v2 import nn, optim\n" + LIST_MODULES))
    assert not names & {"importlib.abc", "logging", "tempfile", "mindtorch_v2.distributed", "mindtorch_v2.futures"}


def test_layers_and_optimizers_load_none_of_what_few_networks_use() -> None:
    names = set(run("from mindtorch_v2 import nn, optim\n" + LIST_MODULES))
    later = ("backends", "fft", "linalg", "special", "nn.attention", "nn.quantized", "nn.utils")
    assert not names & {f"mindtorch_v2.{name}" for name in later}


def test_data_parallel_of_several_processes_is_loaded_when_asked_for() -> None:
    names = run(
        "from mindtorch_v2 import nn\n"
        "assert nn.parallel.DistributedDataParallel is nn.parallel.distributed.DistributedDataParallel\n"
        "assert 'DistributedDataParallel' in dir(nn.parallel)\n" + LIST_MODULES
    )
    assert "mindtorch_v2.distributed" in names
