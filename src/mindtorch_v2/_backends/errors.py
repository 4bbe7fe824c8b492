"""The exceptions that every device's backend raises, under torch's names."""

from __future__ import annotations


class AcceleratorError(RuntimeError):
    """A call of a device's driver failed; `error_code` is the driver's number for it."""

    def __init__(self, message: str, error_code: int = 0) -> None:
        super().__init__(message)
        self.error_code = error_code


class OutOfMemoryError(RuntimeError):
    """A device has no room for an allocation, not even after its cache was given back."""


for _shown in (AcceleratorError, OutOfMemoryError):
    _shown.__module__ = "torch"
