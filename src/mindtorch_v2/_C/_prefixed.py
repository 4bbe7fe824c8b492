"""Names of torch._C's modules: the functions of a public module, with its name before theirs (`linalg_det`)."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any


def prefixed(name: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of `torch._C._<name>`, from the functions of `torch.<name>`."""
    start = name + "_"

    def functions() -> dict[str, Any]:
        public = import_module(f"...{name}", __name__)
        return {start + key: getattr(public, key) for key in dir(public) if not key.startswith("_") and _is_op(public, key)}

    def load(attribute: str) -> Any:
        found = functions().get(attribute) if attribute.startswith(start) else None
        if found is None:
            raise AttributeError(f"module 'torch._C._{name}' has no attribute '{attribute}'")
        return found

    return load, lambda: sorted(functions())


def _is_op(public: Any, key: str) -> bool:
    value = getattr(public, key)
    return callable(value) and not isinstance(value, type)
