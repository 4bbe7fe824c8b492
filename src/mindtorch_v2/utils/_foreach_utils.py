"""torch.utils._foreach_utils: tensors in groups that one foreach op can take."""

from __future__ import annotations

from ..optim._extension_helpers import _get_foreach_kernels_supported_devices, _group_tensors_by_device_and_dtype

__all__ = ["_get_foreach_kernels_supported_devices", "_group_tensors_by_device_and_dtype"]
