"""Process-wide switches that scripts set before their first op, and small questions about values."""

from __future__ import annotations

import os
import warnings
from importlib import import_module
from typing import Any

from ._core import dtype as dt
from ._core.blas import get_num_threads, set_num_threads
from ._core.determinism import Determinism, set_filled
from ._core.tensor import Tensor
from ._core.untyped_storage import MemoryObject
from ._core.warn_always import Always
from ._dispatch.errors import need_tensor
from ._dispatch.promotion import rank

__all__ = [
    "are_deterministic_algorithms_enabled",
    "get_deterministic_debug_mode",
    "get_float32_matmul_precision",
    "get_num_interop_threads",
    "get_num_threads",
    "is_complex",
    "is_deterministic_algorithms_warn_only_enabled",
    "is_floating_point",
    "is_storage",
    "is_tensor",
    "is_warn_always_enabled",
    "numel",
    "result_type",
    "set_deterministic_debug_mode",
    "set_float32_matmul_precision",
    "set_flush_denormal",
    "set_num_interop_threads",
    "set_num_threads",
    "set_warn_always",
    "typename",
    "use_deterministic_algorithms",
]

_PRECISIONS = ("highest", "high", "medium")
_DEBUG_MODES = {"default": 0, "warn": 1, "error": 2}


class _Switches:
    fill_memory = True
    matmul_precision = "highest"
    interop_threads = os.cpu_count() or 1


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Every kernel here is deterministic. Switched on, memory that `empty` and `resize_` leave unset is filled as well: with
    nan, or the largest integer, unless `torch.utils.deterministic.fill_uninitialized_memory` is off.
    """
    for value, place in ((mode, "'mode' (position 1)"), (warn_only, "'warn_only'")):
        if not isinstance(value, bool):
            raise TypeError(f"_set_deterministic_algorithms(): argument {place} must be bool, not {type(value).__name__}")
    Determinism.wanted, Determinism.warns = mode, warn_only
    _apply_deterministic()


def _apply_deterministic() -> None:
    set_filled(Determinism.wanted and _Switches.fill_memory)


def get_fill_uninitialized_memory() -> bool:
    """What `torch.utils.deterministic.fill_uninitialized_memory` is."""
    return _Switches.fill_memory


def set_fill_uninitialized_memory(mode: bool) -> None:
    """Whether deterministic algorithms fill the memory that is left unset."""
    if not isinstance(mode, bool):
        raise TypeError(
            "_set_deterministic_fill_uninitialized_memory(): argument 'mode' (position 1) must be bool, not "
            f"{type(mode).__name__}"
        )
    _Switches.fill_memory = mode
    _apply_deterministic()


def are_deterministic_algorithms_enabled() -> bool:
    """Whether `use_deterministic_algorithms` is on."""
    return Determinism.wanted


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Whether it was last set with warn_only."""
    return Determinism.warns


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """0 or "default", 1 or "warn", 2 or "error"."""
    value = _DEBUG_MODES.get(debug_mode) if isinstance(debug_mode, str) else debug_mode
    if value not in (0, 1, 2):
        raise RuntimeError(f"invalid value of debug_mode, expected one of `default`, `warn`, `error`, but got {debug_mode}")
    use_deterministic_algorithms(value > 0, warn_only=value == 1)


def get_deterministic_debug_mode() -> int:
    """0, 1 or 2, as set_deterministic_debug_mode() has them: default, warn, error."""
    return (1 if Determinism.warns else 2) if Determinism.wanted else 0


def set_float32_matmul_precision(precision: str) -> None:
    """Matrix products are always computed in full float32 here; the setting is kept."""
    if precision not in _PRECISIONS:
        warnings.warn(
            f"{precision} is not one of 'highest', 'high', or 'medium'; the currentsetFloat32MatmulPrecision call "
            "has no effect.",
            UserWarning,
            stacklevel=2,
        )
        return
    _Switches.matmul_precision = precision


def get_float32_matmul_precision() -> str:
    """What set_float32_matmul_precision() was told: "highest", "high" or "medium"."""
    return _Switches.matmul_precision


def get_num_interop_threads() -> int:
    """How many ops torch would run side by side."""
    return _Switches.interop_threads


def set_num_interop_threads(threads: int) -> None:
    """Ops run one after the other here; the figure is kept."""
    if threads <= 0:
        raise RuntimeError("set_num_interop_threads expects a positive integer")
    _Switches.interop_threads = threads


def set_flush_denormal(mode: bool) -> bool:
    """Take denormal numbers for zero on the calling thread, where the machine allows it; whether it does."""
    if not isinstance(mode, bool):
        raise RuntimeError(f"flush_denormal expects a bool, but got {type(mode).__name__}")
    done: bool = import_module("._core.denormals", __package__).set_flushed(mode)  # few programs ask for it
    return done


def set_warn_always(enabled: bool) -> None:
    """Whether warnings that torch gives once are given every time."""
    Always.on = bool(enabled)


def is_warn_always_enabled() -> bool:
    """Whether set_warn_always(True) makes warnings come more than once."""
    return Always.on


def is_tensor(obj: Any) -> bool:
    """Whether `obj` is a tensor."""
    return isinstance(obj, Tensor)


def is_storage(obj: Any) -> bool:
    """Whether `obj` is a storage, typed or untyped."""
    return isinstance(obj, MemoryObject)


def is_floating_point(input: Tensor) -> bool:
    """Whether a tensor's dtype is a floating point type."""
    need_tensor("is_floating_point", input)
    return input.is_floating_point()


def is_complex(input: Tensor) -> bool:
    """Whether a tensor's dtype is complex."""
    need_tensor("is_complex", input)
    return input.is_complex()


def numel(input: Tensor) -> int:
    """How many elements a tensor has."""
    need_tensor("numel", input)
    return input.numel()


def typename(obj: Any) -> str:
    """The name of a value's type, with its module; a tensor's says its dtype."""
    if isinstance(obj, Tensor):
        return obj.type()  # type: ignore[attr-defined, no-any-return]
    module = getattr(obj, "__module__", "") or ""
    name = getattr(obj, "__qualname__", None) or type(obj).__qualname__
    if not hasattr(obj, "__qualname__"):
        module = type(obj).__module__
    return name if module in ("", "builtins") else f"{module}.{name}"


def result_type(tensor1: Any, tensor2: Any) -> dt.dtype:
    """The dtype of an arithmetic result of two tensors or numbers."""
    return dt.result_type(rank(tensor1), rank(tensor2))
