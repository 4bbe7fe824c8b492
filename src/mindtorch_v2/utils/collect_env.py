"""torch.utils.collect_env: what a bug report should say. `python -m mindtorch_v2.utils.collect_env` prints it.

Fields and layout are torch's, so that tools which read them go on working; what concerns devices that are not there says so.
"""

from __future__ import annotations

import os
import platform
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from importlib import import_module, metadata
from pathlib import Path
from typing import NamedTuple

from ..version import __version__

TORCH_AVAILABLE = True
NOT_FOUND, NOT_HERE = "Could not collect", "N/A"
# Packages whose names contain one of these are listed.
PIP_PATTERNS = ["mindtorch", "torch", "numpy", "mypy", "flake8", "onnx", "triton", "optree", "mpi4py", "mpich"]

Run = Callable[[str], tuple[int, str, str]]


class SystemEnv(NamedTuple):
    """What `get_env_info` found."""

    torch_version: str
    is_debug_build: str
    cuda_compiled_version: str
    gcc_version: str | None
    clang_version: str | None
    cmake_version: str | None
    os: str
    libc_version: str
    python_version: str
    python_platform: str
    is_cuda_available: str
    cuda_runtime_version: str | None
    cuda_module_loading: str
    nvidia_driver_version: str | None
    nvidia_gpu_models: str | None
    cudnn_version: str | None
    is_xpu_available: str
    pip_version: str
    pip_packages: str
    conda_packages: str | None
    hip_compiled_version: str
    hip_runtime_version: str
    miopen_runtime_version: str
    caching_allocator_config: str
    is_xnnpack_available: str
    cpu_info: str


def run(command: str | list[str]) -> tuple[int, str, str]:
    """The exit code, output and errors of a command; 127 for one that is not there."""
    words = shlex.split(command) if isinstance(command, str) else command
    environment = {**os.environ, "LC_ALL": "C"}
    try:
        done = subprocess.run(words, capture_output=True, env=environment, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return 127, "", str(error)
    return done.returncode, done.stdout.decode(errors="replace").strip(), done.stderr.decode(errors="replace").strip()


def run_and_read_all(run_lambda: Run, command: str) -> str | None:
    """What a command prints; None if it fails."""
    code, output, _ = run_lambda(command)
    return None if code else output


def run_and_parse_first_match(run_lambda: Run, command: str, regex: str) -> str | None:
    """The first group of an expression in what a command prints; None if it fails or there is none."""
    match = re.search(regex, run_and_read_all(run_lambda, command) or "")
    return match[1] if match else None


def run_and_return_first_line(run_lambda: Run, command: str) -> str | None:
    """The first line that a command prints; None if it fails."""
    output = run_and_read_all(run_lambda, command)
    return None if output is None else output.split("\n", 1)[0]


def get_gcc_version(run_lambda: Run) -> str | None:
    """The version of gcc."""
    return run_and_parse_first_match(run_lambda, "gcc --version", r"gcc (.*)")


def get_clang_version(run_lambda: Run) -> str | None:
    """The version of clang."""
    return run_and_parse_first_match(run_lambda, "clang --version", r"clang version (.*)")


def get_cmake_version(run_lambda: Run) -> str | None:
    """The version of cmake."""
    return run_and_parse_first_match(run_lambda, "cmake --version", r"cmake (.*)")


def get_platform() -> str:
    """linux, darwin, win32 or cygwin."""
    return next((name for name in ("linux", "win32", "cygwin", "darwin") if sys.platform.startswith(name)), sys.platform)


def get_os(run_lambda: Run) -> str:
    """The operating system, its release, and the machine's architecture."""
    name = f"macOS {platform.mac_ver()[0]}" if get_platform() == "darwin" else platform.platform(terse=True)
    if get_platform() == "linux":
        with suppress(OSError):  # a system without the file
            name = platform.freedesktop_os_release()["PRETTY_NAME"]
    return f"{name} ({platform.machine()})"


def get_python_platform() -> str:
    """The platform as Python names it."""
    return platform.platform()


def get_libc_version() -> str:
    """The C library of Linux and its version; N/A elsewhere."""
    return "-".join(platform.libc_ver()) if get_platform() == "linux" else NOT_HERE


def get_cpu_info(run_lambda: Run) -> str:
    """What the system tells of its processors."""
    command = {"linux": "lscpu", "darwin": "sysctl -n machdep.cpu.brand_string"}.get(get_platform())
    told = run_and_read_all(run_lambda, command) if command else None
    return told or platform.processor() or NOT_FOUND


def get_pip_packages(run_lambda: Run, patterns: Iterable[str] | None = None) -> tuple[str, str]:
    """The name of pip, and `name==version` of the installed packages that matter, or whose names contain a pattern."""
    wanted = tuple(PIP_PATTERNS if patterns is None else patterns)
    names = {
        f"{each.name}=={each.version}" for each in metadata.distributions() if any(pattern in each.name for pattern in wanted)
    }
    return f"pip{sys.version_info.major}", "\n".join(sorted(names))


def get_conda_packages(run_lambda: Run, patterns: Iterable[str] | None = None) -> str | None:
    """The packages of the conda environment that matter; None where there is no conda."""
    wanted = tuple(PIP_PATTERNS if patterns is None else patterns)
    output = run_and_read_all(run_lambda, f"{os.environ.get('CONDA_EXE', 'conda')} list")
    if output is None:
        return None
    return "\n".join(line for line in output.splitlines() if line[:1] != "#" and any(pattern in line for pattern in wanted))


def get_env_info() -> SystemEnv:
    """Everything, asked of the system now."""
    pip_version, packages = get_pip_packages(run)
    bits = "64-bit" if sys.maxsize > 2**32 else "32-bit"
    return SystemEnv(
        torch_version=f"{__version__}, as mindtorch_v2 {_own_version()}",
        is_debug_build="False",
        cuda_compiled_version="None",
        gcc_version=get_gcc_version(run),
        clang_version=get_clang_version(run),
        cmake_version=get_cmake_version(run),
        os=get_os(run),
        libc_version=get_libc_version(),
        python_version=f"{sys.version} ({bits} runtime)".replace("\n", ""),
        python_platform=get_python_platform(),
        is_cuda_available="False",
        cuda_runtime_version=NOT_HERE,
        cuda_module_loading=NOT_HERE,
        nvidia_driver_version=NOT_HERE,
        nvidia_gpu_models=NOT_HERE,
        cudnn_version=NOT_HERE,
        is_xpu_available="False",
        pip_version=pip_version,
        pip_packages=packages,
        conda_packages=get_conda_packages(run),
        hip_compiled_version=NOT_HERE,
        hip_runtime_version=NOT_HERE,
        miopen_runtime_version=NOT_HERE,
        caching_allocator_config=NOT_HERE,
        is_xnnpack_available="False",
        cpu_info=get_cpu_info(run),
    )


def _own_version() -> str:
    try:
        return metadata.version((__package__ or "").partition(".")[0])
    except metadata.PackageNotFoundError:  # a source folder on the path
        return "(not installed)"


def _computing() -> str:
    """What computes: NumPy, its BLAS, threads, and the NPU if there is one."""
    import numpy as np

    from .._core import blas

    blas_name = np.show_config(mode="dicts")["Build Dependencies"]["blas"]  # type: ignore[call-overload, index]
    npu = import_module("..npu", __package__)
    lines = [
        f"NumPy: {np.__version__}, {Path(np.__file__).parent}",
        f"BLAS: {blas_name.get('name')} {blas_name.get('version')}",
        f"Threads: {blas.get_num_threads()}",
        f"Is NPU available: {npu.is_available()}",
    ]
    return "\n".join(lines)


env_info_fmt = """
PyTorch version: {torch_version}
Is debug build: {is_debug_build}
CUDA used to build PyTorch: {cuda_compiled_version}
ROCM used to build PyTorch: {hip_compiled_version}

OS: {os}
GCC version: {gcc_version}
Clang version: {clang_version}
CMake version: {cmake_version}
Libc version: {libc_version}

Python version: {python_version}
Python platform: {python_platform}
Is CUDA available: {is_cuda_available}
CUDA runtime version: {cuda_runtime_version}
CUDA_MODULE_LOADING set to: {cuda_module_loading}
GPU models and configuration: {nvidia_gpu_models}
Nvidia driver version: {nvidia_driver_version}
cuDNN version: {cudnn_version}
Is XPU available: {is_xpu_available}
HIP runtime version: {hip_runtime_version}
MIOpen runtime version: {miopen_runtime_version}
Is XNNPACK available: {is_xnnpack_available}
Caching allocator config: {caching_allocator_config}

CPU:
{cpu_info}

Versions of relevant libraries:
{pip_packages}
{conda_packages}
""".strip()


def pretty_str(envinfo: SystemEnv) -> str:
    """The fields as text, a line each."""
    fields = {name: NOT_FOUND if value is None else value for name, value in envinfo._asdict().items()}
    for name, label in (("pip_packages", envinfo.pip_version), ("conda_packages", "conda")):
        fields[name] = "\n".join(f"[{label}] {line}" for line in (fields[name] or "No relevant packages").splitlines())
    return env_info_fmt.format(**fields)


def get_pretty_env_info() -> str:
    """The text that a bug report should have."""
    return f"{pretty_str(get_env_info())}\n\nComputing with:\n{_computing()}"


def main() -> None:
    """Print it."""
    print("Collecting environment information...")
    print(get_pretty_env_info())


if __name__ == "__main__":
    main()
