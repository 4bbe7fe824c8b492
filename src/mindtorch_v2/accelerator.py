"""torch.accelerator: whichever accelerator is there. Here: none."""

from __future__ import annotations

from typing import Any

from ._core.device import device as Device


def is_available() -> bool:
    """Whether an accelerator can be used."""
    return False


def current_accelerator(check_available: bool = False) -> Device | None:
    """The accelerator's device, or None without one."""
    return None


def device_count() -> int:
    """How many accelerators there are."""
    return 0


def synchronize(device: Any = None) -> None:
    """Wait for the accelerator: an error where there is none."""
    raise RuntimeError("Cannot access accelerator device when none is available.")


def current_device_index() -> int:
    """The current accelerator's index: an error where there is none."""
    raise RuntimeError("Cannot access accelerator device when none is available.")


def set_device_index(device: Any) -> None:
    """Choose an accelerator: an error where there is none."""
    raise RuntimeError("Cannot access accelerator device when none is available.")
