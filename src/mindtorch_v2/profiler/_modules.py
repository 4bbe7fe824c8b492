"""nn.Module calls while recording: which module, where it sits in its parents, from when to when."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

from .._core.storage import owner_of

WIDTH = 4  # module number, path number, start, end


class ModuleInfo(NamedTuple):
    """A module that was called. Only a weak reference is held."""

    number: int
    reference: weakref.ref[Any]
    label: str  # "Linear_0": the class, and how many of that class were called before it


class ModuleLog:
    """The module calls of one thread."""

    def __init__(self, clock: Callable[[], int], note_parameters: bool = False) -> None:
        """`note_parameters`: also note where the modules' parameters are in memory."""
        self.rows: list[int] = []
        self.infos: list[ModuleInfo] = []
        self.paths: list[str] = []
        self.parameters: set[int] = set()
        self._note_parameters = note_parameters
        self._clock = clock
        self._known: dict[int, ModuleInfo] = {}
        self._of_class: dict[str, int] = {}
        self._path_numbers: dict[tuple[int, int], int] = {}
        # (module number, path number, start) of the calls that have not ended, innermost last
        self._open: list[tuple[int, int, int]] = []

    def start(self) -> None:
        """Begin with nothing open: calls that are under way already are not ours."""
        self._open.clear()

    def stop(self, end: int) -> None:
        """End the calls that are still under way."""
        while self._open:
            self.rows.extend((*self._open.pop(), end))

    def open_calls(self) -> list[tuple[int, int, int]]:
        """(module number, path number, start) of the calls under way, outermost first."""
        return self._open[:]

    def enter(self, module: Any) -> None:
        """A module begins to run."""
        info = self._known.get(id(module))
        if info is None or info.reference() is not module:
            info = self._register(module)
        above = self._open[-1] if self._open else None
        key = (above[1] if above else -1, info.number)
        path = self._path_numbers.get(key)
        if path is None:
            path = self._path_numbers[key] = len(self.paths)
            self.paths.append(self._path(module, above))
        self._open.append((info.number, path, self._clock()))

    def leave(self, module: Any) -> None:
        """The module that entered last has ended."""
        if self._open:
            self.rows.extend((*self._open.pop(), self._clock()))

    def _register(self, module: Any) -> ModuleInfo:
        name = type(module).__name__
        count = self._of_class.get(name, 0)
        self._of_class[name] = count + 1
        info = ModuleInfo(len(self.infos), weakref.ref(module), f"{name}_{count}")
        self.infos.append(info)
        self._known[id(module)] = info
        if self._note_parameters:
            held = getattr(module, "_parameters", {}).values()
            self.parameters.update(id(owner_of(one._array)) for one in held if one is not None)
        return info

    def _path(self, module: Any, above: tuple[int, int, int] | None) -> str:
        """`Sequential.0.1`: the outermost module's class, then the names under which each holds the next."""
        if above is None:
            return type(module).__name__
        holder = self.infos[above[0]].reference()
        children = getattr(holder, "_modules", {})
        held_as = next((name for name, child in children.items() if child is module), type(module).__name__)
        return f"{self.paths[above[1]]}.{held_as}"
