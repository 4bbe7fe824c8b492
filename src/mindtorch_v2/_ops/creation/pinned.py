"""Page-locked memory, which needs an accelerator."""

from __future__ import annotations

from typing import Any

from ..._core.tensor import Tensor, make_external
from ..._dispatch import backends
from ..._dispatch.registry import composite


def is_pinned(tensor: Tensor) -> bool:
    """Whether the memory is page-locked, so that a device copies from it while the program goes on."""
    return any(backend.is_pinned(tensor._array) for backend in backends.loaded.values())


@composite("_pin_memory(Tensor self, Device? device=None) -> Tensor", nondiff=True, samples=lambda make: [])
def pin_memory(self: Tensor, device: Any) -> Tensor:
    """A copy in page-locked memory; RuntimeError where there is no accelerator."""
    if self.device.type != "cpu":
        kind = f"torch.{self.device.type}.{self.dtype.scalar_name}Tensor"
        raise RuntimeError(f"cannot pin '{kind}' only dense CPU tensors can be pinned")
    if not backends.available("npu"):
        raise RuntimeError("Cannot access accelerator device when none is available.")
    return make_external(backends.loaded["npu"].pin(self._array))
