"""Names of torch.autograd.profiler that scripts still use: EnforceUnique, and marks for tools that are not part of this."""

from __future__ import annotations

from types import TracebackType
from typing import Any, NoReturn

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

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        self.enabled = enabled
        self.entered = False
        self.record_shapes = record_shapes

    def __enter__(self) -> None:
        if self.enabled:
            self._fail()

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        return None

    def _fail(self) -> NoReturn:
        raise NotImplementedError


class emit_itt(_Emitter):
    """Marks for Intel's VTune. It is not part of this runtime: entering raises RuntimeError unless enabled=False."""

    def _fail(self) -> NoReturn:
        itt._fail()


class emit_nvtx(_Emitter):
    """Marks for NVIDIA's Nsight. There is no CUDA here: entering raises AssertionError unless enabled=False."""

    def _fail(self) -> NoReturn:
        raise AssertionError("Torch not compiled with CUDA enabled")


def parse_nvprof_trace(path: str) -> NoReturn:
    """Raises NotImplementedError: databases of nvprof are not supported."""
    raise NotImplementedError("reading nvprof databases is not supported")


def load_nvprof(path: str) -> NoReturn:
    """Raises NotImplementedError: traces of nvprof are not supported."""
    raise NotImplementedError("reading nvprof databases is not supported")
