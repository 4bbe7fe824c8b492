"""torch.__future__: switches for how converting a module, or loading its state, replaces its parameters."""

from __future__ import annotations

_switches = {"overwrite": False, "swap": False}


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """Set whether converting a module gives it new parameters, instead of giving the old ones new data."""
    _switches["overwrite"] = value


def get_overwrite_module_params_on_conversion() -> bool:
    """Whether converting a module gives it new parameters; False unless it was set."""
    return _switches["overwrite"]


def set_swap_module_params_on_conversion(value: bool) -> None:
    """Set whether converting a module, or loading its state, swaps parameters with their new values by `swap_tensors`."""
    _switches["swap"] = value


def get_swap_module_params_on_conversion() -> bool:
    """Whether converting a module, or loading its state, swaps parameters; False unless it was set."""
    return _switches["swap"]
