"""torch.npu: Ascend devices. Available only where a driver library was found, loaded, and reports a device."""

from __future__ import annotations

from .._absent_device import absent

# No driver binding is part of the package yet, so no device can be found.
globals().update(absent("NPU"))
