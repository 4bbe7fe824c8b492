"""torch.distributed.device_mesh: names for annotations; there are no process groups to make a mesh of."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = ["DeviceMesh", "init_device_mesh"]

_REASON = "there are no communication backends"


class DeviceMesh:
    """Devices of several processes as an array: none can be made."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(f"torch.distributed.device_mesh.DeviceMesh: {_REASON}")


def init_device_mesh(*args: Any, **kwargs: Any) -> NoReturn:
    """NotImplementedError: processes cannot form groups."""
    raise NotImplementedError(f"torch.distributed.device_mesh.init_device_mesh: {_REASON}")
