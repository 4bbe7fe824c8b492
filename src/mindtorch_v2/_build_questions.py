"""Questions about the build, old names and small helpers of `torch` itself, each under torch's name."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from pathlib import Path
from typing import Any, NoReturn

from ._autograd.anomaly import set_detect_anomaly
from ._core import dtype as dt
from ._core.rng import Generator
from ._core.tensor import Tensor
from ._dispatch.registry import aten

# Linear algebra and Fourier transforms are NumPy's; MKL and OpenMP are not used.
has_lapack, has_spectral, has_mkl, has_openmp = True, True, False, False
PRIVATE_OPS = ("unique_dim",)
USE_GLOBAL_DEPS = False


class Tag(IntEnum):
    """What an op may be marked with where it is defined; `torch.library` keeps no marks."""

    core = 0
    cudagraph_unsafe = 1
    data_dependent_output = 2
    dynamic_output_shape = 3
    flexible_layout = 4
    generated = 5
    inplace = 6
    inplace_view = 7
    maybe_aliasing_or_mutating = 8
    needs_contiguous_strides = 9
    needs_exact_strides = 10
    needs_fixed_stride_order = 11
    nondeterministic_bitwise = 12
    nondeterministic_seeded = 13
    out = 14
    out_variant = 15
    pointwise = 16
    pt2_compliant_tag = 17
    reduction = 18
    view_copy = 19


class AggregationType(IntEnum):
    """How a counter of torch's monitor sums up."""

    SUM = 0
    AVG = 1


SUM, AVG = AggregationType.SUM, AggregationType.AVG


class FatalError(Exception):
    """What torch raises where the process cannot go on."""


class classproperty:
    """A property of a class: `@classproperty` above a function of the class."""

    def __init__(self, func: Callable[[Any], Any]) -> None:
        self._function = func

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self._function(type(instance) if owner is None else owner)


class _Classes:
    """`torch.classes`: classes of compiled extensions. There are none."""

    __file__ = "_classes.py"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _ClassNamespace(name)

    def load_library(self, path: str) -> NoReturn:
        """OSError: what is compiled for PyTorch cannot be loaded."""
        raise OSError(f"{path}: compiled extensions need PyTorch itself. See docs/compatibility.md")


class _ClassNamespace:
    """The classes of one extension."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> NoReturn:
        raise RuntimeError(
            f"Tried to instantiate class '{self._name}.{name}', but it does not exist! Ensure that it is registered via "
            "torch::class_"
        )


classes = _Classes()


def compiled_with_cxx11_abi() -> bool:
    """True, as for every PyTorch of today; nothing here is compiled."""
    return True


def is_vulkan_available() -> bool:
    """False: no op runs on Vulkan."""
    return False


def cudnn_is_acceptable(tensor: Tensor) -> bool:
    """False: no tensor is one that cuDNN computes with."""
    return False


def get_device(input: Tensor) -> int:
    """The number of a tensor's device, -1 for the CPU."""
    if not isinstance(input, Tensor):
        raise TypeError(f"get_device(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")
    return input.get_device()


def is_distributed(input: Tensor) -> bool:
    """False: no tensor lies on several processes."""
    return False


def dequantize(tensor: Tensor) -> Tensor:
    """A float32 tensor of the numbers that a quantized one stands for; tensors here stand for themselves."""
    if not isinstance(tensor, Tensor):
        got = type(tensor).__name__
        unlike = f"      didn't match because some of the arguments have invalid types: (!{got}!)\n"
        raise TypeError(
            f"dequantize() received an invalid combination of arguments - got ({got}), but expected one of:\n"
            f" * (Tensor input)\n{unlike} * (tuple of Tensors tensors)\n{unlike}"
        )
    return tensor.to(dt.float32)


def get_file_path(*path_components: str) -> str:
    """A path below the folder that the package is installed in."""
    return str(Path(__file__).parents[1].joinpath(*path_components))


def init_num_threads() -> None:
    """Choose the number of threads, as it is when the package is imported: nothing is left to do."""


def prepare_multiprocessing_environment(path: str) -> None:
    """Where builds of PyTorch for one company prepare child processes; nothing is to be prepared."""


def thread_safe_generator() -> Generator | None:
    """The random numbers of a DataLoader's worker thread, None outside of one. Workers here are processes: always None."""
    return None


def set_anomaly_enabled(enabled: bool, check_nan: bool = True) -> None:
    """Turn anomaly mode of autograd on or off."""
    set_detect_anomaly(enabled, check_nan)


def sym_constrain_range(size: Any, *, min: int | None = None, max: int | None = None) -> None:
    """RuntimeError for a number outside of a range."""
    if (min is not None and size < min) or (max is not None and size > max):
        raise RuntimeError(f"Invalid value range for {size} between [{min}, {max}].")


def sym_constrain_range_for_size(size: Any, *, min: int | None = None, max: int | None = None) -> None:
    """`sym_constrain_range`, of a number that is the size of a dim."""
    sym_constrain_range(size, min=min, max=max)


# ---------------------------------------------------------------- old names of products of sparse matrices


def spmm(input: Tensor, mat2: Tensor) -> Tensor:
    """`torch.mm`, of a sparse matrix and a dense one."""
    return aten.mm(input, mat2)


def dsmm(input: Tensor, mat2: Tensor) -> Tensor:
    """`spmm` under another name."""
    return spmm(input, mat2)


def hsmm(mat1: Tensor, mat2: Tensor) -> Tensor:
    """`hspmm` under another name."""
    return aten.hspmm(mat1, mat2)


# ---------------------------------------------------------------- what torch has removed


def _removed(name: str, instead: str) -> Callable[..., NoReturn]:
    def refuse(*args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError(f"This function was deprecated since version 1.9 and is now removed. {instead}")

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = f"RuntimeError: torch has removed it. {instead}"
    return refuse


eig = _removed(
    "eig", "`torch.linalg.eig` returns complex tensors of dtype `cfloat` or `cdouble` rather than pairs of real ones."
)
lstsq = _removed("lstsq", "`torch.lstsq` is deprecated in favor of `torch.linalg.lstsq`, which has its arguments reversed.")
matrix_rank = _removed("matrix_rank", "Please use the `torch.linalg.matrix_rank` function instead.")
solve = _removed("solve", "`torch.solve` is deprecated in favor of `torch.linalg.solve`, which has its arguments reversed.")
symeig = _removed("symeig", "Please use `torch.linalg.eigh`, which reads the lower triangle unless UPLO says 'U'.")
