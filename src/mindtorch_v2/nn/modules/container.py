"""Sequential, ModuleList and ModuleDict: modules that hold modules."""

from __future__ import annotations

import operator
import warnings
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Any

from .module import Module, _addindent
from .parameter_container import ParameterDict, ParameterList

__all__ = ["Container", "ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"]


class Container(Module):
    """Holds modules given by name. Any Module does; this one is kept for old code."""

    def __init__(self, **kwargs: Any) -> None:
        warnings.warn(
            "nn.Container is deprecated. All of it's functionality is now implemented in nn.Module. Subclass that instead.",
            FutureWarning,
            stacklevel=2,
        )
        super().__init__()
        for name, module in kwargs.items():
            self.add_module(name, module)


def _position(length: int, index: Any) -> int:
    """An index counted from the front."""
    index = operator.index(index)
    if not -length <= index < length:
        raise IndexError(f"index {index} is out of range")
    return index % length


class _Numbered(Module):
    """Modules whose names are their positions."""

    _modules: dict[str, Module]  # type: ignore[assignment]

    def _name_at(self, index: Any) -> str:
        return next(islice(self._modules, _position(len(self._modules), index), None))

    def _module_at(self, index: Any) -> Any:
        return next(islice(self._modules.values(), _position(len(self._modules), index), None))

    def _renumber(self, modules: Iterable[Any]) -> None:
        self._modules = OrderedDict((str(i), module) for i, module in enumerate(modules))

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._modules.values())

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.isdigit()]

    def pop(self, key: int | slice) -> Any:
        """Take the module at a position out and return it."""
        module = self[key]  # type: ignore[index]
        del self[key]  # type: ignore[operator]
        return module


class Sequential(_Numbered):
    """Calls its modules one after the other, each with what the one before returned."""

    def __init__(self, *args: Any) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], OrderedDict):
            for name, module in args[0].items():
                self.add_module(name, module)
        else:
            for index, module in enumerate(args):
                self.add_module(str(index), module)

    def forward(self, input: Any) -> Any:
        for module in self._modules.values():
            input = module(input)
        return input

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(OrderedDict(list(self._modules.items())[index]))
        return self._module_at(index)

    def __setitem__(self, index: int, module: Module) -> None:
        setattr(self, self._name_at(index), module)

    def __delitem__(self, index: int | slice) -> None:
        for name in list(self._modules)[index] if isinstance(index, slice) else [self._name_at(index)]:
            delattr(self, name)
        self._renumber(list(self._modules.values()))

    def __add__(self, other: Any) -> Sequential:
        if not isinstance(other, Sequential):
            raise ValueError(f"add operator supports only objects of Sequential class, but {type(other)} is given.")
        return Sequential(*self, *other)

    def __iadd__(self, other: Any) -> Any:
        if not isinstance(other, Sequential):
            raise ValueError(f"add operator supports only objects of Sequential class, but {type(other)} is given.")
        return self.extend(list(other))

    def __mul__(self, other: int) -> Sequential:
        return Sequential(*_repeated(self, other))

    def __rmul__(self, other: int) -> Sequential:
        return self.__mul__(other)

    def __imul__(self, other: int) -> Any:
        return self.extend(_repeated(self, other)[len(self) :])

    def append(self, module: Module) -> Any:
        """Add a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def insert(self, index: int, module: Module) -> Any:
        """Add a module before the one at `index`."""
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        count = len(self._modules)
        if not -count <= index <= count:
            raise IndexError(f"Index out of range: {index}")
        modules = list(self._modules.values())
        modules.insert(index + count if index < 0 else index, module)
        self._renumber(modules)
        return self

    def extend(self, sequential: Iterable[Module]) -> Any:
        """Add several modules at the end."""
        for layer in sequential:
            self.append(layer)
        return self


def _repeated(modules: Any, times: Any) -> list[Module]:
    if not isinstance(times, int):
        raise TypeError(f"unsupported operand type(s) for *: {type(modules)} and {type(times)}")
    if times <= 0:
        raise ValueError(f"Non-positive multiplication factor {times} for {type(modules)}")
    return [module for _ in range(times) for module in modules]


class ModuleList(_Numbered):
    """A list of modules, which are registered like attributes. It has no forward of its own."""

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self += modules

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(list(self._modules.values())[index])
        return self._module_at(index)

    def __setitem__(self, index: int, module: Module) -> None:
        setattr(self, self._name_at(index), module)

    def __delitem__(self, index: int | slice) -> None:
        for name in list(self._modules)[index] if isinstance(index, slice) else [self._name_at(index)]:
            delattr(self, name)
        self._renumber(list(self._modules.values()))

    def __iadd__(self, modules: Iterable[Module]) -> Any:
        return self.extend(modules)

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList(chain(self, other))

    def insert(self, index: int, module: Module) -> None:
        """Add a module before the one at `index`."""
        modules = list(self._modules.values())
        modules.insert(index, module)
        self._renumber(modules)

    def append(self, module: Module) -> Any:
        """Add a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Module]) -> Any:
        """Add several modules at the end."""
        if not isinstance(modules, Iterable):
            raise TypeError(f"ModuleList.extend should be called with an iterable, but got {type(modules).__name__}")
        offset = len(self)
        for index, module in enumerate(modules):
            self.add_module(str(offset + index), module)
        return self

    def __repr__(self) -> str:
        """Equal neighbors are shown once, with their number."""
        shown = [repr(module) for module in self]
        if not shown:
            return self._get_name() + "()"
        groups: list[tuple[int, int, str]] = []
        for index, text in enumerate(shown):
            if groups and groups[-1][2] == text:
                groups[-1] = (groups[-1][0], index, text)
            else:
                groups.append((index, index, text))
        lines = [
            f"({first}): {text}" if first == last else f"({first}-{last}): {last - first + 1} x {text}"
            for first, last, text in groups
        ]
        body = "\n  ".join(_addindent(line, 2) for line in lines)
        return f"{self._get_name()}(\n  {body}\n)"


class ModuleDict(Module):
    """A dict of modules, which are registered like attributes. It has no forward of its own."""

    _modules: dict[str, Module]  # type: ignore[assignment]

    def __init__(self, modules: Mapping[str, Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Module:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: str) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Remove all modules; the container can be filled again."""
        self._modules.clear()

    def pop(self, key: str) -> Module:
        """Take a module out and return it."""
        return self._modules.pop(key)

    def keys(self) -> Any:
        return self._modules.keys()

    def items(self) -> Any:
        return self._modules.items()

    def values(self) -> Any:
        return self._modules.values()

    def update(self, modules: Any) -> None:
        """Add modules from a mapping or from pairs; existing names are replaced."""
        if not isinstance(modules, Iterable):
            raise TypeError(
                f"ModuleDict.update should be called with an iterable of key/value pairs, but got {type(modules).__name__}"
            )
        if isinstance(modules, OrderedDict | ModuleDict | Mapping):
            for key, module in modules.items():
                self[key] = module
            return
        for position, pair in enumerate(modules):
            if not isinstance(pair, Iterable):
                raise TypeError(f"ModuleDict update sequence element #{position} should be Iterable; is{type(pair).__name__}")
            key_and_value = tuple(pair)
            if len(key_and_value) != 2:
                raise ValueError(
                    f"ModuleDict update sequence element #{position} has length {len(key_and_value)}; 2 is required"
                )
            self[key_and_value[0]] = key_and_value[1]
