"""The bases of data pipes, their methods by name, and the ranges that profiles show of them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sized
from typing import Any, ClassVar, TypeVar

from ...._dispatch import observer
from ..dataset import Dataset, IterableDataset

_Pipe = TypeVar("_Pipe", bound=type)
_SUFFIXES = ("IterDataPipe", "MapDataPipe")


class _Methods:
    """Steps that are registered by name are methods of every pipe: `pipe.map(f)` is `Mapper(pipe, f)`."""

    functions: ClassVar[dict[str, Callable[..., Any]]]

    def __getattr__(self, name: str) -> Any:
        function = type(self).functions.get(name)
        if function is None:
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        return functools.partial(function, self)

    @classmethod
    def register_function(cls, function_name: str, function: Callable[..., Any]) -> None:
        """Offer a function of a pipe as a method of that name."""
        cls.functions[function_name] = function

    @classmethod
    def register_datapipe_as_function(cls, function_name: str, cls_to_register: Callable[..., Any]) -> None:
        """Offer a class of pipes as a method of that name; Exception if the name is taken."""
        if function_name in cls.functions:
            raise Exception(f"Unable to add DataPipe function name {function_name} as it is already taken")
        cls.functions[function_name] = cls_to_register

    def __repr__(self) -> str:
        return type(self).__qualname__.rpartition(".")[2]

    __str__ = __repr__

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *type(self).functions]


class IterDataPipe(_Methods, IterableDataset[Any]):
    """A stream of samples; subclasses write `__iter__`. While a profile records, each sample is a range of it."""

    functions: ClassVar[dict[str, Callable[..., Any]]] = {}

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "__iter__" in cls.__dict__:
            cls.__iter__ = _shown(cls.__dict__["__iter__"])  # type: ignore[method-assign]
        if "__next__" in cls.__dict__:
            cls.__next__ = _shown_next(cls.__dict__["__next__"])  # type: ignore[attr-defined]

    def reset(self) -> None:
        """Called when an iteration begins; pipes with state begin anew."""


class MapDataPipe(_Methods, Dataset[Any]):
    """A map from keys to samples; subclasses write `__getitem__` and, if they can, `__len__`."""

    functions: ClassVar[dict[str, Callable[..., Any]]] = {}


class DataChunk(list[Any]):
    """A batch of samples."""

    def raw_iterator(self) -> Iterator[Any]:
        """The samples as they are."""
        return iter(list(self))


class functional_datapipe:
    """Decorator that registers a class of pipes as a method of all pipes of its kind."""

    def __init__(self, name: str, enable_df_api_tracing: bool = False) -> None:
        if enable_df_api_tracing:
            raise NotImplementedError("functional_datapipe(enable_df_api_tracing=True): there are no data frames here")
        self.name = name

    def __call__(self, cls: _Pipe) -> _Pipe:
        """Register the class and return it."""
        base = next((each for each in (IterDataPipe, MapDataPipe) if issubclass(cls, each)), None)
        if base is None:
            raise TypeError("`functional_datapipe` can only decorate IterDataPipe or MapDataPipe")
        base.register_datapipe_as_function(self.name, cls)  # type: ignore[attr-defined]
        return cls


def label(pipe: Any) -> str:
    """The name of a pipe's ranges: its class and its attributes, other pipes by their class alone."""
    shown = ", ".join(f"{name}={_text(value)}" for name, value in sorted(vars(pipe).items()) if not name.startswith("_"))
    return f"{_short(pipe)}({shown})" if shown else _short(pipe)


def _short(value: Any) -> str:
    name = type(value).__name__
    return next((name.removesuffix(suffix) for suffix in _SUFFIXES if name.endswith(suffix)), name)


def _text(value: Any) -> str:
    if isinstance(value, _Methods):
        return _short(value)
    if isinstance(value, tuple | list) and any(isinstance(item, _Methods) for item in value):
        texts = ", ".join(map(_text, value))
        return f"[{texts}]" if isinstance(value, list) else f"({texts})"
    if callable(value) and not isinstance(value, type) and hasattr(value, "__name__"):
        return str(value.__name__)
    text = str(value)
    return text if len(text) < 100 else type(value).__name__


class _Samples:
    """An iterator with a range around each sample; other attributes are those of the iterator."""

    def __init__(self, pipe: Any, samples: Iterator[Any]) -> None:
        self._pipe = pipe
        self._samples = samples

    def __iter__(self) -> _Samples:
        return self

    def __next__(self) -> Any:
        if not observer.is_active():
            return next(self._samples)
        with observer.span(label(self._pipe)):
            return next(self._samples)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._samples, name)


def _shown(iterate: Callable[[Any], Iterator[Any]]) -> Callable[[Any], Iterator[Any]]:
    @functools.wraps(iterate)
    def samples_of(self: Any) -> Iterator[Any]:
        self.reset()
        samples = iterate(self)
        # An object that is its own iterator, or another pipe, shows its ranges itself.
        return samples if samples is self or isinstance(samples, _Samples | IterDataPipe) else _Samples(self, samples)

    return samples_of


def _shown_next(advance: Callable[[Any], Any]) -> Callable[[Any], Any]:
    @functools.wraps(advance)
    def next_sample(self: Any) -> Any:
        if not observer.is_active():
            return advance(self)
        with observer.span(label(self)):
            return advance(self)

    return next_sample


def stream_length(pipe: IterDataPipe, source: Any) -> int:
    """How many samples a source has, for `len(pipe)`; TypeError if it does not know."""
    if not isinstance(source, Sized):
        raise TypeError(f"{type(pipe).__name__} instance doesn't have valid length")
    return len(source)
