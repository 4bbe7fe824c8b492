"""Names that libraries import and that do not exist here: they raise at use, and are classes that no object is one of."""

from __future__ import annotations

from typing import Any, NoReturn


def absent_class(module: str, name: str) -> type:
    """A class for `isinstance`, of which no object can be made."""

    def refuse(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(f"{module.replace('mindtorch_v2', 'torch', 1)}.{name}")

    return type(name, (), {"__init__": refuse, "__doc__": "Not supported: making one raises.", "__module__": module})


def absent_function(module: str, name: str) -> Any:
    """A function that raises NotImplementedError, which names it."""

    def refuse(*args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(f"{module.replace('mindtorch_v2', 'torch', 1)}.{name}")

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = "Not supported: calling it raises."
    return refuse
