"""Record functions that are given values: ranges whose inputs a profile shows like those of an op.

torch has three ways in: `_RecordFunctionFast`, which counts as an op, `autograd._record_function_with_args_enter`, and
`ops.profiler._record_function_enter`, which counts as a label.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

from ..._core.cpython import without_signals_at_entry
from ..._dispatch import observer
from ..store.store import InputInfo
from .op_inputs import inputs_of
from .record_function import record_function
from .recorder import SHAPES_WIDTH


class RangeWithArguments(record_function):
    """A label with values; they are looked at when it is entered, and only where a recording asks for inputs."""

    __slots__ = ("_inputs", "_keywords", "_values")

    def __init__(self, name: str, values: Sequence[Any] = (), keywords: Mapping[str, Any] | None = None) -> None:
        super().__init__(name)
        self._values = tuple(values)
        self._keywords = dict(keywords or {})
        self._inputs: InputInfo | None = None

    @property
    def inputs(self) -> InputInfo | None:  # type: ignore[override]
        """The values as they were when the range was entered."""
        return self._inputs

    def __reduce__(self) -> Any:
        """A copy or a pickle has the same values and was not entered."""
        return type(self), (self.name, self._values, self._keywords)

    def __enter__(self) -> RangeWithArguments:
        super().__enter__()
        if self.recorders is not None and (self._values or self._keywords):
            if any(recording.width == SHAPES_WIDTH for recording in self.recorders.recordings):
                self._inputs = inputs_of(self._values, self._keywords)
            observer.tell_range_inputs(self._values)
        return self


class _RecordFunctionFast(RangeWithArguments):
    """A range that counts as an op: `with _RecordFunctionFast("name", [tensor, 2], {"stream": 0}): ...`.

    `input_values` show as inputs and `keyword_values` as kwinputs of its event, if the profile records shapes.
    """

    __slots__ = ()

    kind = observer.OP

    def __init__(
        self,
        name: str,
        input_values: list[Any] | tuple[Any, ...] | None = None,
        keyword_values: dict[str, Any] | None = None,
    ) -> None:
        if not isinstance(name, str):
            raise RuntimeError("The name passed to RecordFunctionFast must be a string")
        if input_values is not None and not isinstance(input_values, list | tuple):
            raise RuntimeError("input_values must be a list or tuple")
        if keyword_values is not None and not isinstance(keyword_values, dict):
            raise RuntimeError("keyword_values must be dict")
        keywords = keyword_values or {}
        if not all(isinstance(key, str) for key in keywords):
            raise RuntimeError("keyword_values must have keys that are strings")
        for key in [key for key, value in keywords.items() if not _is_plain(value)]:
            warnings.warn(f"Unable to infer type of value for keyword: {key}", stacklevel=2)
            keywords = {**keywords, key: "NULL"}
        super().__init__(name, input_values or (), keywords)

    @without_signals_at_entry
    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        if self.recorders is not None:
            self._close()


def _is_plain(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, bool | int | float | str)


def enter_with_arguments(name: str, *args: Any) -> RangeWithArguments:
    """torch.autograd._record_function_with_args_enter: begin a label with values; the result goes to the exit."""
    return RangeWithArguments(name, args).__enter__()


def enter(name: str, args: str | None = None) -> record_function:
    """torch.ops.profiler._record_function_enter: begin a label; the result goes to the exit."""
    return record_function(name, args).__enter__()


def leave(handle: record_function) -> None:
    """End the label of a handle; a handle of something else raises TypeError."""
    if not isinstance(handle, record_function):
        raise TypeError(f"expected what entering a record function returned, not {type(handle).__name__}")
    handle.__exit__(None, None, None)
