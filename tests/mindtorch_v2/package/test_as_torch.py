"""`import torch` as this package."""

from __future__ import annotations

import importlib
import importlib.util
import io
import os
import pickle
import subprocess
import sys
from types import ModuleType

import pytest

import mindtorch_v2
from mindtorch_v2 import as_torch


@pytest.fixture
def alias():
    with as_torch.installed():
        yield
    assert "torch" not in sys.modules


def test_modules_are_the_same_objects(alias):
    import torch
    import torch.nn.functional as F
    import torch.optim.lr_scheduler as lr_scheduler
    from torch import nn
    from torch.utils.data import DataLoader

    assert torch is mindtorch_v2
    assert nn is mindtorch_v2.nn
    assert F is mindtorch_v2.nn.functional
    assert lr_scheduler is mindtorch_v2.optim.lr_scheduler
    assert DataLoader is mindtorch_v2.utils.data.DataLoader
    assert importlib.import_module("torch.nn.modules.conv") is importlib.import_module("mindtorch_v2.nn.modules.conv")


def test_modules_keep_their_own_names(alias):
    import torch.nn

    assert (torch.nn.__name__, torch.nn.__spec__.name, torch.nn.__package__) == ("mindtorch_v2.nn",) * 3


def test_the_package_answers_by_torchs_name_while_the_alias_is_installed():
    with as_torch.installed():
        import torch

        assert (torch.__name__, torch.__package__) == ("torch", "mindtorch_v2")
        from torch import hub  # from a module of this package that may not be loaded yet

        assert hub is mindtorch_v2.hub
    assert mindtorch_v2.__name__ == "mindtorch_v2"


def test_what_is_missing_is_missing_under_torchs_name(alias):
    with pytest.raises(ModuleNotFoundError, match=r"^No module named 'torch\.no_such_module'.*docs/compatibility") as caught:
        importlib.import_module("torch.no_such_module")
    assert caught.value.name == "torch.no_such_module"


def test_other_modules_are_left_alone(alias):
    assert importlib.util.find_spec("torchlike_that_is_not_there") is None
    assert importlib.util.find_spec("json").name == "json"


def test_install_twice_is_once():
    as_torch.install()
    as_torch.install()
    assert as_torch.is_installed()
    as_torch.uninstall()
    assert not as_torch.is_installed()
    as_torch.uninstall()


def test_installed_leaves_an_alias_that_was_there_before():
    as_torch.install()
    try:
        with as_torch.installed():
            import torch  # noqa: F401
        assert as_torch.is_installed()
    finally:
        as_torch.uninstall()
    assert "torch" not in sys.modules


def test_a_real_torch_is_refused(monkeypatch):
    real = ModuleType("torch")
    real.__file__ = "/elsewhere/torch/__init__.py"
    monkeypatch.setitem(sys.modules, "torch", real)
    with pytest.raises(ImportError, match="already imported from /elsewhere/torch/__init__.py"):
        as_torch.install()
    assert not as_torch.is_installed()


def test_uninstall_keeps_a_torch_that_is_not_ours(monkeypatch):
    as_torch.install()
    other = ModuleType("torch.extra")
    monkeypatch.setitem(sys.modules, "torch.extra", other)
    as_torch.uninstall()
    assert sys.modules["torch.extra"] is other


def test_checkpoints_name_torchs_classes(alias):
    import torch

    file = io.BytesIO()
    torch.save(torch.nn.Linear(2, 3), file)
    assert b"torch.nn.modules.linear" in file.getvalue()
    assert b"mindtorch_v2" not in file.getvalue()
    file.seek(0)
    assert isinstance(torch.load(file, weights_only=False), mindtorch_v2.nn.Linear)


def test_plain_pickles_that_name_torch(alias):
    # What pickle writes for torch.nn.Identity() and torch.float64 where torch is PyTorch.
    text = b"\x80\x04\x8c\x1ctorch.nn.modules.linear\x94\x8c\x08Identity\x94\x93\x94.".replace(
        b"\x1ctorch.nn.modules.linear", bytes([len("torch.nn.modules.linear")]) + b"torch.nn.modules.linear"
    )
    assert pickle.loads(text) is mindtorch_v2.nn.Identity


def test_memory_inside_plain_pickles():
    from mindtorch_v2.storage import _load_from_bytes

    file = io.BytesIO()
    mindtorch_v2.save(mindtorch_v2.arange(3), file)
    assert _load_from_bytes(file.getvalue()).tolist() == [0, 1, 2]


def test_a_whole_module_survives_the_old_names_of_the_standard_library():
    """Protocol 2 writes `__builtin__` for `builtins`."""
    file = io.BytesIO()
    module = mindtorch_v2.nn.Linear(1, 1)
    module.kind = getattr  # any builtin function
    mindtorch_v2.save(module, file)
    file.seek(0)
    assert mindtorch_v2.load(file, weights_only=False).kind is getattr


@pytest.mark.parametrize(
    "name, home",
    [
        ("Normal", "normal"),
        ("Categorical", "categorical"),
        ("MultivariateNormal", "multivariate_normal"),
        ("Beta", "beta"),
        ("StudentT", "studentT"),
        ("LogNormal", "log_normal"),
        ("Distribution", "distribution"),
        ("Uniform", "uniform"),
    ],
)
def test_distributions_are_found_where_torch_keeps_them(alias, name, home):
    module = importlib.import_module(f"torch.distributions.{home}")
    assert getattr(module, name) is getattr(mindtorch_v2.distributions, name)


def test_modules_of_distributions_have_what_torchs_files_import(alias):
    from torch.distributions.multivariate_normal import Distribution, _standard_normal, lazy_property
    from torch.distributions.normal import ExponentialFamily, broadcast_all

    assert issubclass(ExponentialFamily, Distribution)
    assert all(map(callable, (_standard_normal, lazy_property, broadcast_all)))
    with pytest.raises(ImportError, match="cannot import name 'no_such_name'"):
        from torch.distributions.normal import no_such_name  # noqa: F401


@pytest.mark.parametrize(
    "module, names",
    [
        ("torch", ("pi", "e", "inf", "nan", "newaxis", "UntypedStorage")),
        ("torch.functional", ("einsum", "norm", "meshgrid", "stft")),
        ("torch._dynamo", ("config", "disable", "allow_in_graph")),
        ("torch.cuda", ("FloatTensor", "amp", "stream", "device")),
        ("torch.distributed", ("Backend", "ProcessGroup", "group")),
        ("torch.distributed.optim", ("ZeroRedundancyOptimizer",)),
        ("torch.utils._foreach_utils", ("_group_tensors_by_device_and_dtype",)),
        ("torch._C", ("_log_api_usage_once",)),
    ],
)
def test_names_that_public_scripts_ask_for(alias, module, names):
    found = importlib.import_module(module)
    assert [name for name in names if not hasattr(found, name)] == []


def test_tensors_are_grouped_by_dtype():
    from mindtorch_v2.utils._foreach_utils import _group_tensors_by_device_and_dtype as grouped

    a, b, c = mindtorch_v2.ones(1), mindtorch_v2.ones(1).double(), mindtorch_v2.zeros(1)
    groups = grouped([[a, b, c], [c, b, a]], with_indices=True)
    assert {key[1]: [len(lists[0]), indices] for key, (lists, indices) in groups.items()} == {
        mindtorch_v2.float32: [2, [0, 2]],
        mindtorch_v2.float64: [1, [1]],
    }
    assert groups[(a.device, a.dtype)][0][1][0] is c


def test_a_script_sees_its_own_path_as_python_has_it(tmp_path, monkeypatch):
    (tmp_path / "beside.py").write_text("value = 3\n")
    (tmp_path / "script.py").write_text(
        "import pickle, sys\nimport beside\nimport torch\n\n\nclass Own: pass\n\n\n"
        "again = type(pickle.loads(pickle.dumps(Own()))) is Own\n"
        "seen = (__file__, sys.argv, __name__, torch.__package__, beside.value)\n"
    )
    monkeypatch.chdir(tmp_path)
    before = sys.argv, sys.path[0], sys.modules["__main__"]
    found = as_torch.run("script.py", ["--x", "1"])
    assert found["seen"] == (str(tmp_path / "script.py"), ["script.py", "--x", "1"], "__main__", "mindtorch_v2", 3)
    assert found["again"]
    assert (sys.argv, sys.path[0], sys.modules["__main__"]) == before
    sys.modules.pop("beside")


def _python(*arguments, environment=None):
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_module_is_run_with_its_arguments(tmp_path):
    (tmp_path / "tool").mkdir()
    (tmp_path / "tool" / "__init__.py").touch()
    (tmp_path / "tool" / "__main__.py").write_text("import sys, torch; print(torch.__package__, sys.argv[1:], __name__)")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}
    assert _python("-m", "mindtorch_v2.as_torch", "-m", "tool", "-x", "1", environment=environment) == (
        "mindtorch_v2 ['-x', '1'] __main__\n"
    )


def test_processes_of_a_script_have_the_alias(tmp_path):
    (tmp_path / "child.py").write_text("import importlib.metadata as m, torch; print(m.version('torch'), torch.__package__)")
    script = tmp_path / "launch.py"
    script.write_text("import subprocess, sys; subprocess.run([sys.executable, sys.argv[1]], check=True)")
    printed = _python("-m", "mindtorch_v2.as_torch", str(script), str(tmp_path / "child.py"))
    assert printed == f"{mindtorch_v2.__version__} mindtorch_v2\n"


def test_the_environment_loads_nothing_before_torch(tmp_path):
    (tmp_path / "sitecustomize.py").write_text("print('the other one')")
    base = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}
    environment = as_torch.environment(base)
    check = "import sys; print('mindtorch_v2' in sys.modules); import torch.nn; print(torch.nn.__name__)"
    assert _python("-c", check, environment=environment) == "the other one\nFalse\nmindtorch_v2.nn\n"
    assert as_torch.environment(environment) == environment
    off = {**environment, "MINDTORCH_AS_TORCH": "0"}
    assert "_OnDemand" not in _python("-c", "import sys; print(sys.meta_path)", environment=off)


def test_running_a_script_restores_the_environment(tmp_path):
    (tmp_path / "script.py").write_text("import os; seen = os.environ['MINDTORCH_AS_TORCH']")
    before = dict(os.environ)
    assert as_torch.run(tmp_path / "script.py")["seen"] == "1"
    assert dict(os.environ) == before
