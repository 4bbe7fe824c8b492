"""What torch.save and torch.load do where their arguments leave it open."""

from __future__ import annotations

import mmap
from functools import partial
from typing import Any

from .._core.restoring import Actions, restoring


class Section:
    """Options by name; AttributeError for a name that is none."""

    def __init__(self, path: str, **values: Any) -> None:
        self.__dict__["_path"] = path
        self.__dict__["_values"] = values

    def __getattr__(self, name: str) -> Any:
        values = self.__dict__["_values"]
        if name not in values:
            raise AttributeError(f"{self.__dict__['_path']}.{name} does not exist")
        return values[name]

    def __setattr__(self, name: str, value: Any) -> None:
        getattr(self, name)
        if name == "use_pinned_memory_for_d2h" and value:
            raise NotImplementedError(
                "use_pinned_memory_for_d2h: saving copies from no device that pinned memory would speed up"
            )
        self.__dict__["_values"][name] = value

    def __dir__(self) -> list[str]:
        return list(self.__dict__["_values"])


_HOME = "torch.utils.serialization.config"
save = Section(f"{_HOME}.save", compute_crc32=True, use_pinned_memory_for_d2h=False, storage_alignment=64)
load = Section(
    f"{_HOME}.load",
    mmap=False,
    endianness=None,
    mmap_flags=getattr(mmap, "MAP_PRIVATE", None),
    calculate_storage_offsets=False,
)
_SECTIONS = {"save": save, "load": load}


def get_config_copy() -> dict[str, Any]:
    """All options, by "section.name"."""
    return {f"{part}.{name}": getattr(section, name) for part, section in _SECTIONS.items() for name in dir(section)}


def load_config(values: dict[str, Any]) -> None:
    """Set options by "section.name"."""
    for path, value in values.items():
        part, _, name = path.partition(".")
        if part not in _SECTIONS:
            raise AttributeError(f"{_HOME}.{path} does not exist")
        setattr(_SECTIONS[part], name, value)


@restoring
def patch(undo: Actions, changes: dict[str, Any] | str | None = None, value: Any = None, **more: Any) -> None:
    """Inside, options have other values: `patch({"load.mmap": True})` or `patch("load.mmap", True)`."""
    wanted = {changes: value} if isinstance(changes, str) else dict(changes or {})
    wanted.update(more)
    before = {path: kept for path, kept in get_config_copy().items() if path in wanted}
    undo.append(partial(load_config, before))
    load_config(wanted)
