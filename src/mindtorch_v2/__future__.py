"""torch.__future__: switches for how Module.to() replaces parameters."""

from __future__ import annotations

_switches = {"overwrite": False, "swap": False}


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """Whether converting a module gives it new parameters. Only the default, False, is there: it changes their data."""
    _set("overwrite", value)


def get_overwrite_module_params_on_conversion() -> bool:
    """Whether converting a module gives it new parameters: never."""
    return _switches["overwrite"]


def set_swap_module_params_on_conversion(value: bool) -> None:
    """Whether converting a module swaps its parameters' contents. Only the default, False, is there."""
    _set("swap", value)


def get_swap_module_params_on_conversion() -> bool:
    """Whether converting a module swaps its parameters' contents: never."""
    return _switches["swap"]


def _set(name: str, value: bool) -> None:
    if value:
        raise NotImplementedError(f"torch.__future__.set_{name}_module_params_on_conversion(True)")
    _switches[name] = value
