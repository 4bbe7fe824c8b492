"""torch.ops with the namespaces whose functions are no ops: `profiler`, which begins and ends labels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ._dispatch.overload_api import ops

__all__ = ["ops"]


class _LabelFunction:
    """`torch.ops.profiler._record_function_enter` and its kind; an overload of it is the function itself."""

    def __init__(self, name: str, function: Callable[..., Any], overload: str) -> None:
        self.__name__ = name
        self._function = function
        setattr(self, overload, self)

    def __call__(self, *args: Any) -> Any:
        return self._function(*args)

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='profiler.{self.__name__}')>"


class _ProfilerNamespace:
    """`torch.ops.profiler`; the profiler is imported at the first use of a function."""

    name = "profiler"
    _NAMES = ("_record_function_enter", "_record_function_enter_new", "_record_function_exit")

    def __getattr__(self, name: str) -> _LabelFunction:
        if name not in self._NAMES:
            raise AttributeError(f"'_OpNamespace' 'profiler' object has no attribute '{name}'")
        from .profiler.recording.functions_with_arguments import enter, leave  # here, because few programs use it

        leaves = name.endswith("exit")
        function = _LabelFunction(name, leave if leaves else enter, "_RecordFunction" if leaves else "default")
        setattr(self, name, function)
        return function

    def __dir__(self) -> list[str]:
        return list(self._NAMES)


ops.__dict__["profiler"] = _ProfilerNamespace()
