"""torch.utils.collect_env: what a bug report says."""

from __future__ import annotations

import sys

import pytest

from mindtorch_v2.utils import collect_env

# PyTorch 2.13's.
FIELDS = """
    torch_version is_debug_build cuda_compiled_version gcc_version clang_version cmake_version os libc_version python_version
    python_platform is_cuda_available cuda_runtime_version cuda_module_loading nvidia_driver_version nvidia_gpu_models
    cudnn_version is_xpu_available pip_version pip_packages conda_packages hip_compiled_version hip_runtime_version
    miopen_runtime_version caching_allocator_config is_xnnpack_available cpu_info
"""


def test_fields_are_those_of_torch():
    assert list(collect_env.SystemEnv._fields) == FIELDS.split()


def test_the_text_has_every_field_once():
    found = collect_env.SystemEnv(*(f"<{name}>" for name in FIELDS.split()))
    text = collect_env.pretty_str(found._replace(pip_version="pip3", pip_packages="numpy==1\ntorch==2", gcc_version=None))
    for name in set(FIELDS.split()) - {"pip_version", "pip_packages", "gcc_version"}:
        assert text.count(f"<{name}>") == 1
    assert text.startswith("PyTorch version: <torch_version>\n") and "GCC version: Could not collect\n" in text
    assert text.endswith("[pip3] numpy==1\n[pip3] torch==2\n[conda] <conda_packages>")


def test_the_machine_is_described(capsys):
    collect_env.main()
    printed = capsys.readouterr().out
    assert "PyTorch version: 2.13.0, as mindtorch_v2 " in printed and "(not installed)" not in printed
    assert f"Python version: {sys.version.split()[0]}" in printed and "[pip3] numpy==" in printed
    assert "Computing with:\nNumPy: " in printed and "Is NPU available: False" in printed


@pytest.mark.parametrize(
    "command, expected",
    [
        ([sys.executable, "-c", "print(' out ')"], (0, "out", "")),
        ([sys.executable, "-c", "import sys; sys.exit('wrong')"], (1, "", "wrong")),
    ],
)
def test_run_tells_how_a_command_ended(command, expected):
    assert collect_env.run(command) == expected


def test_a_command_that_is_not_there_is_no_error():
    code, output, error = collect_env.run("no-such-command --version")
    assert (code, output) == (127, "") and "no-such-command" in error


def test_what_a_command_prints_is_searched():
    def answer(command):
        return (0, "tool version 1.2\nmore", "") if command == "tool" else (1, "tool version 3", "")

    assert collect_env.run_and_parse_first_match(answer, "tool", "version (.*)") == "1.2"
    assert collect_env.run_and_parse_first_match(answer, "other", "version (.*)") is None
    assert collect_env.run_and_return_first_line(answer, "tool") == "tool version 1.2"
    assert collect_env.run_and_read_all(answer, "other") is None
