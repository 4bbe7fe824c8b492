"""Names of torch.autograd.profiler that scripts still use: EnforceUnique, and marks for tools that are not part of this."""

from __future__ import annotations

from types import TracebackType
from typing import Any, ClassVar, NoReturn, Self

from .. import itt


class EnforceUnique:
    """Raises RuntimeError when a key is seen a second time."""

    def __init__(self) -> None:
        self.seen: set[tuple[Any, ...]] = set()

    def see(self, *key: Any) -> None:
        """Remember a key; RuntimeError if it was seen before."""
        if key in self.seen:
            raise RuntimeError("duplicate key: " + str(key))
        self.seen.add(key)


class _Emitter:
    """Marks every op for a vendor's tool while the block runs."""

    _tool: ClassVar[str]

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        self.enabled = enabled
        self.entered = False
        self.record_shapes = record_shapes

    def __enter__(self) -> Self | None:
        if not self.enabled:
            return None
        if self.entered:
            raise RuntimeError(f"{self._tool} annotation context manager is not reentrant")
        self._begin()
        self.entered = True
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        return None

    def _begin(self) -> None:
        raise NotImplementedError


class emit_itt(_Emitter):
    """Marks for Intel's VTune: see `profiler.itt`. Where a collector waits for them, entering raises RuntimeError unless
    enabled=False."""

    _tool = "ITT"

    def _begin(self) -> None:
        itt.check_available()


class emit_nvtx(_Emitter):
    """Marks for NVIDIA's Nsight. There is no CUDA here: entering raises AssertionError unless enabled=False."""

    _tool = "NVTX"

    def _begin(self) -> NoReturn:
        raise AssertionError("Torch not compiled with CUDA enabled")


def parse_nvprof_trace(path: str) -> NoReturn:
    """Raises NotImplementedError: databases of nvprof are not supported."""
    raise NotImplementedError("reading nvprof databases is not supported")


def load_nvprof(path: str) -> NoReturn:
    """Raises NotImplementedError: traces of nvprof are not supported."""
    raise NotImplementedError("reading nvprof databases is not supported")
