"""What `torch.cuda`, `torch.mps` and `torch.xpu` have in common here: they exist and say that nothing is there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any


def refuses(function: str, kind: type[Exception], message: str) -> Callable[..., Any]:
    """A function of that name that takes anything and raises."""

    def call(*args: Any, **kwargs: Any) -> Any:
        raise kind(message)

    call.__name__ = function
    return call


def absent(name: str, refused: Sequence[str] = ()) -> dict[str, Any]:
    """The functions of a device module for a device this package never has; `refused` are those that others have not."""
    message = f"Torch not compiled with {name} enabled"

    def does_nothing(function: str) -> Callable[..., None]:
        def call(*args: Any, **kwargs: Any) -> None:
            return None

        call.__name__ = function
        return call

    def constant(function: str, value: Any) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            return value

        call.__name__ = function
        return call

    functions: dict[str, Any] = {
        f: refuses(f, AssertionError, message)
        for f in (
            "current_device",
            "current_stream",
            "default_stream",
            "get_device_capability",
            "get_device_name",
            "get_device_properties",
            "get_rng_state",
            "mem_get_info",
            "set_device",
            "set_rng_state",
            "synchronize",
            "init",
            "initial_seed",
            *refused,
        )
    }
    # Scripts seed every device and tidy up before they know whether it exists; torch lets them.
    functions |= {
        f: does_nothing(f)
        for f in (
            "empty_cache",
            "ipc_collect",
            "manual_seed",
            "manual_seed_all",
            "seed",
            "seed_all",
            "reset_peak_memory_stats",
            "reset_max_memory_allocated",
            "reset_max_memory_cached",
            "reset_accumulated_memory_stats",
        )
    }
    functions |= {
        "is_available": constant("is_available", False),
        "is_initialized": constant("is_initialized", False),
        "device_count": constant("device_count", 0),
    }

    def get_rng_state_all() -> list[Any]:
        """The states of all devices' generators: none."""
        return []

    def set_rng_state_all(new_states: Any) -> None:
        """Set the generators of all devices, one state for each; AssertionError for more than none."""
        if len(list(new_states)):
            raise AssertionError(message)

    functions |= {
        "get_rng_state_all": get_rng_state_all,
        "set_rng_state_all": set_rng_state_all,
        "is_bf16_supported": constant("is_bf16_supported", False),
        "is_current_stream_capturing": constant("is_current_stream_capturing", False),
        "default_generators": (),
    }
    functions |= {
        f: constant(f, 0)
        for f in (
            "max_memory_allocated",
            "max_memory_cached",
            "max_memory_reserved",
            "memory_allocated",
            "memory_cached",
            "memory_reserved",
        )
    }
    return functions
