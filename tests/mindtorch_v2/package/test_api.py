"""The API as tools see it: stubs, types, signatures, docstrings; and a surface on which no name is set twice."""

from __future__ import annotations

import importlib.util
import inspect
import os
import pickle
import re
import subprocess
import sys
from pathlib import Path

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import _surface, as_torch
from mindtorch_v2._dispatch import registry
from mindtorch_v2._dispatch.facts import Surface

ROOT = Path(__file__).parents[3]
CASES = Path(__file__).parent / "typing_cases"


# ---------------------------------------------------------------- stubs and types


def test_stubs_are_those_that_the_registry_gives():
    """They are the snapshot of the public API, too: a name or a signature that changes changes a file under review.

    In a process of its own: other tests set names of the package.
    """
    said = subprocess.run([sys.executable, ROOT / "tools" / "stubs.py", "--check"], capture_output=True, text=True)
    assert said.returncode == 0, said.stdout + said.stderr


def test_package_says_that_it_is_typed():
    assert (Path(torch.__file__).parent / "py.typed").exists()


@pytest.fixture(scope="module")
def mypy_lines():
    pytest.importorskip("mypy")
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--follow-imports=silent",
        "--no-error-summary",
        "--hide-error-context",
        "--no-color-output",  # also where FORCE_COLOR is set
    ]
    cache = ["--cache-dir", str(ROOT / ".mypy_cache" / "typing_cases")]
    done = subprocess.run(
        [*command, *cache, str(CASES / "train.py"), str(CASES / "wrong.py")],
        cwd=ROOT,
        env=os.environ | {"MYPYPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert not done.stderr, done.stderr
    return done.stdout.splitlines()


def test_a_training_script_is_well_typed(mypy_lines):
    assert [line for line in mypy_lines if "train.py" in line] == []


def test_mistakes_are_found_line_by_line(mypy_lines):
    expected = {
        number: line.rpartition("# ")[2]
        for number, line in enumerate((CASES / "wrong.py").read_text().splitlines(), 1)
        if "  # " in line
    }
    reported = {}
    for line in mypy_lines:
        match = re.search(r"wrong\.py:(\d+): error: .*\[([\w-]+)\]$", line)
        if match:
            reported.setdefault(int(match[1]), []).append(match[2])
    assert reported == {number: [code] for number, code in expected.items()}


def test_the_training_script_runs(tmp_path):
    spec = importlib.util.spec_from_file_location("typing_case_train", CASES / "train.py")
    assert spec is not None and spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    assert script.train(tmp_path) > 0
    assert script.tensors().ndim == 0


# ---------------------------------------------------------------- signatures and docstrings


def signature_in_a_fresh_process(expression):
    code = f"import inspect, mindtorch_v2 as torch; print(inspect.signature({expression}))"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_signature_is_right_before_the_first_call():
    assert signature_in_a_fresh_process("torch.neg") == "(input, *, out=None)"


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (torch.neg, "(input, *, out=None)"),
        (torch.softmax, "(input, dim, dtype=None, *, axis=None, out=None)"),
        (torch.add, "(input, other, *, alpha=1, out=None)"),
        (torch.Tensor.view, "(input, *size)"),
        (torch.linalg.qr, "(A, mode='reduced', *, out=None)"),
        (torch.ones(2).neg, "(*, out=None)"),
    ],
)
def test_signatures(function, expected):
    assert str(inspect.signature(function)) == expected


def test_every_op_has_a_signature_and_a_docstring():
    for packet in registry.packets.values():
        assert inspect.signature(packet.function).parameters is not None
        assert packet.function.__doc__
        for spec in packet:
            inspect.signature(spec.call)


def test_signature_stays_after_the_call_and_survives_pickling():
    before = inspect.signature(torch.asinh)
    torch.asinh(torch.ones(2))
    assert inspect.signature(torch.asinh) == before == pickle.loads(pickle.dumps(before))
    assert before.replace(parameters=()) == inspect.Signature()


def test_docstring_lists_the_overloads_and_then_the_text():
    specs = list(registry.packets["sum"])
    schemas = [spec.schema.text for spec in specs]
    text = inspect.cleandoc(registry.packets["sum"].doc)
    assert len(schemas) > 1
    assert torch.sum.__doc__ == "\n".join([*schemas, "", text])


# ---------------------------------------------------------------- the surface


@pytest.mark.parametrize("name", ["gelu", "add_", "linalg_det", "tanh_backward", "alias", "view", "fft_fft"])
def test_torch_has_no_function_where_pytorch_has_none(name):
    assert not hasattr(torch, name) and name not in dir(torch)
    assert getattr(torch.ops.aten, name) is not None


def test_tensors_have_no_method_where_pytorch_has_none():
    assert not {"gelu", "conv2d", "layer_norm", "zeros_like", "alias", "view_copy"} & {*dir(torch.Tensor)}
    assert hasattr(torch, "conv2d") and hasattr(torch, "view_copy")


def test_layers_are_in_their_module_of_the_compiled_one():
    assert torch._C._nn.gelu is torch.nn.functional.gelu and "gelu" in dir(torch._C._nn)
    for name in ("add", "tanh_backward", "nothing"):
        with pytest.raises(AttributeError, match=f"module 'torch._C._nn' has no attribute '{name}'"):
            getattr(torch._C._nn, name)
    assert torch._VF.conv2d is torch.conv2d and not hasattr(torch._VF, "gelu")


@pytest.mark.parametrize(
    ("function", "path"),
    [
        (torch.nn.functional.gelu, "torch._C._nn.gelu"),
        (torch.linalg.det, "torch._C._linalg.linalg_det"),
        (torch.special.erf, "torch._C._special.special_erf"),
        (torch.Tensor.add_, "torch.Tensor.add_"),
        (torch.Tensor.view, "torch.Tensor.view"),
        (torch.add, "torch.add"),
    ],
)
def test_functions_are_pickled_by_the_place_where_torch_has_them(function, path):
    assert f"{function.__module__}.{function.__qualname__}" == path
    with as_torch.installed():
        assert pickle.loads(pickle.dumps(function)) is function


def test_ops_of_modules_are_no_methods():
    assert not [name for name in dir(torch.Tensor) if name.startswith(("fft_", "linalg_", "special_"))]
    assert torch.linalg.det(torch.eye(2)) == 1


def test_a_name_that_two_tables_set_is_refused(monkeypatch):
    monkeypatch.setattr(_surface._tensor_methods, "FUNCTIONS", {"einsum": None}, raising=False)
    with pytest.raises(ValueError, match=r"_tensor_methods.FUNCTIONS sets einsum: set before"):
        _surface.functions()


def test_a_handwritten_name_does_not_silently_replace_an_op(monkeypatch):
    monkeypatch.setattr(_surface._tensor_methods, "FUNCTIONS", {"neg": None}, raising=False)
    with pytest.raises(ValueError, match="sets neg"):
        _surface.functions()


@pytest.mark.parametrize("name", ["neg", "shape", "tolist"])
def test_a_method_is_set_once(monkeypatch, name):
    """Whether the first is an op's, of the class body or of another table."""
    monkeypatch.setitem(_surface._tensor_methods.METHODS, name, None)
    with pytest.raises(ValueError, match=f"sets {name}"):
        _surface.tensor_attributes({"shape": None})


def test_what_is_declared_as_written_by_hand_is():
    functions, attributes = _surface.functions(), _surface.tensor_attributes({})
    hidden = {"numpy_T", "size"}  # properties and methods of another name
    for name, packet in registry.packets.items():
        places = next(iter(packet)).handwritten
        if Surface.FUNCTION in places:
            assert functions[name] is not packet.function, name
        if Surface.METHOD in places and name not in hidden:
            assert attributes[name] is not packet.function, name


def test_commands_stand_in_a_group():
    """A module beside the groups would be no command: `mtprof` looks for them in `record`, `read` and so on only."""
    folder = Path(torch.__file__).parent / "profiler" / "cli" / "commands"
    assert [path.name for path in folder.glob("*.py")] == ["__init__.py"]
