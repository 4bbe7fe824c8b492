"""Names of backends, and which engine each of them means.

`gloo` and `mpi` both name the engine on MPI: programs are written with either, and run alike. A process alone needs none.
`hccl` serves tensors of NPUs, by CANN.
"""

from __future__ import annotations

import importlib.util
import warnings
from typing import ClassVar

from ._engines import hccl
from ._engines.mpi import NEEDED

_ON_MPI = ("gloo", "mpi")


class Backend(str):
    """The name of a backend, in lower case."""

    UNDEFINED = "undefined"
    GLOO = "gloo"
    NCCL = "nccl"
    UCC = "ucc"
    MPI = "mpi"
    XCCL = "xccl"
    FAKE = "fake"
    HCCL = "hccl"
    backend_list: ClassVar[list[str]] = [UNDEFINED, GLOO, NCCL, XCCL, UCC, MPI, FAKE, HCCL]
    default_device_backend_map: ClassVar[dict[str, str]] = {"cpu": GLOO, "cuda": NCCL, "xpu": XCCL, "mps": GLOO, "npu": HCCL}
    backend_capability: ClassVar[dict[str, list[str]]] = {
        GLOO: ["cpu", "cuda"],
        NCCL: ["cuda"],
        XCCL: ["xpu"],
        UCC: ["cpu", "cuda"],
        MPI: ["cpu", "cuda"],
        FAKE: ["cpu", "cuda", "hpu", "xpu"],
        HCCL: ["npu"],
    }

    def __new__(cls, name: str) -> Backend:
        """The name as torch writes it."""
        if not isinstance(name, str):
            raise ValueError("Backend constructor parameter must be string-ish")
        return super().__new__(cls, name.lower())


class BackendConfig:
    """A backend for each kind of device: "cpu:gloo,npu:hccl", or one name for all that it serves."""

    def __init__(self, backend: str) -> None:
        self.device_backend_map: dict[str, str] = {}
        if backend == Backend.UNDEFINED:
            self.device_backend_map = {"cpu": Backend.GLOO}
        elif ":" in backend:
            for pair in backend.split(","):
                device, colon, name = pair.partition(":")
                if not colon or device in self.device_backend_map:
                    raise ValueError(
                        f"The custom backend string argument is invalid: {backend}. Custom backend string must be in the form "
                        "of '<device_type1>:<backend1>,<device_type2>:<backend2>...'"
                    )
                self.device_backend_map[device] = Backend(name)
        else:
            devices = Backend.backend_capability.get(backend.lower())
            if devices is None:
                warnings.warn(
                    f"Device capability of {backend} unknown, assuming `cpu` and `cuda`. You can specify it in "
                    "`device:backend` format in `init_process_group` call.",
                    stacklevel=4,
                )
                devices = ["cpu", "cuda"]
            self.device_backend_map = dict.fromkeys(devices, Backend(backend))

    def __repr__(self) -> str:
        return ",".join(f"{device}:{name}" for device, name in self.device_backend_map.items())

    def get_device_backend_map(self) -> dict[str, str]:
        """The backend of each kind of device."""
        return self.device_backend_map

    @property
    def has_hccl(self) -> bool:
        """Whether tensors of NPUs are served."""
        return self.device_backend_map.get("npu") == Backend.HCCL

    def main(self) -> str:
        """The backend that serves tensors of the CPU, or that of NPUs alone; RuntimeError if there is none that can."""
        name = self.device_backend_map.get("cpu", "")
        if name in _ON_MPI or name == Backend.FAKE:
            return name
        if self.has_hccl and not name:
            return Backend.HCCL
        for each in (name, *self.device_backend_map.values()):
            if each in (Backend.NCCL, Backend.XCCL, Backend.UCC):
                raise RuntimeError(f"Distributed package doesn't have {each.upper()} built in")
        raise AssertionError(f"Unknown backend type {name or self}")


def has_engine() -> bool:
    """Whether mpi4py is installed."""
    return importlib.util.find_spec("mpi4py") is not None


def require_engine() -> None:
    """ImportError that names the extra, if there is no engine for several processes."""
    if not has_engine():
        raise ImportError(NEEDED)


def is_gloo_available() -> bool:
    """Whether `gloo` can be used; with one process it always can."""
    return True


def is_mpi_available() -> bool:
    """Whether `mpi` can be used: whether mpi4py is installed."""
    return has_engine()


def is_hccl_available() -> bool:
    """Whether `hccl` can be used: whether CANN has its library, and there is an NPU."""
    return hccl.why_unavailable() is None


def is_nccl_available() -> bool:
    """Whether the NCCL backend exists."""
    return False


def is_ucc_available() -> bool:
    """Whether the UCC backend exists."""
    return False


def is_xccl_available() -> bool:
    """Whether the XCCL backend exists."""
    return False


def is_backend_available(backend: str) -> bool:
    """Whether a backend, or each of several in the form "cpu:gloo,npu:hccl", can be used."""
    names = [part.partition(":")[2] or part for part in backend.lower().split(",")]
    available = {"gloo": is_gloo_available, "mpi": is_mpi_available, "hccl": is_hccl_available, "fake": lambda: True}
    return all(name in available and available[name]() for name in names)


def get_default_backend_for_device(device: object) -> str:
    """The backend that serves a kind of device."""
    name = str(getattr(device, "type", device)).partition(":")[0]
    if name not in Backend.default_device_backend_map:
        raise ValueError(f"Default backend not registered for device : {device}")
    return Backend.default_device_backend_map[name]
