"""`checkpoint(debug=True)`: the ops of both computations with their places, for an error that says how they differ."""

from __future__ import annotations

import os
import traceback
from typing import Any

from .._core.tensor import Tensor
from .._dispatch.interception import TorchDispatchMode

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_HEADER = f"+{'~' * 78}+\n| {{:<76}} |\n+{'-' * 78}+\n"


class OpLog(TorchDispatchMode):
    """Writes down each op as `$2: float32[3] = torch.ops.aten.sin.default($1)`, with the program lines that led to it."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.places: list[list[str]] = []
        self._names: dict[int, str] = {}
        self._alive: list[Tensor] = []  # so that no id is used twice

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        shown = [self._text(each) for each in args] + [f"{name}={self._text(each)}" for name, each in kwargs.items()]
        result = func(*args, **kwargs)
        results = result if isinstance(result, tuple | list) else (result,)
        named = ", ".join(f"{self._text(each)}{_form(each)}" for each in results)
        self.lines.append(f"{named} = torch.ops.{func}({', '.join(shown)})")
        self.places.append(
            [
                f"{frame.filename}:{frame.lineno}:{frame.name}"
                for frame in traceback.extract_stack()
                if not frame.filename.startswith(_PACKAGE)
            ]
        )
        return result

    def _text(self, value: Any) -> str:
        if isinstance(value, Tensor):
            if id(value) not in self._names:
                self._names[id(value)] = f"${len(self._names)}"
                self._alive.append(value)
            return self._names[id(value)]
        if type(value) in (list, tuple):
            inside = ", ".join(map(self._text, value))
            return f"[{inside}]" if isinstance(value, list) else f"({inside})"
        return repr(value)

    def traces(self, label: str) -> str:
        """Each op with its place among all, and the lines of the program that called it."""
        count = len(self.lines)
        return "".join(
            f"{line}   ({number} of {count} in {label})\n\n" + "\n".join(places) + "\n\n\n"
            for number, (line, places) in enumerate(zip(self.lines, self.places, strict=True), 1)
        )


def _form(value: Any) -> str:
    if not isinstance(value, Tensor):
        return ""
    return f": {str(value.dtype).rpartition('.')[2]}[{', '.join(map(str, value.shape))}]"


def difference(first: OpLog, second: OpLog) -> str:
    """The text of the error for two computations that did not save the same."""
    return (
        "An error happened while unpacking tensors; dumping logs of latest computation\n"
        "because you passed `debug=True` to `torch.utils.checkpoint.checkpoint()`.\n"
        "Scroll all the way down for guidance on how to navigate these logs.\n\n"
        + _HEADER.format("1. Stack traces of the operators that ran in the original forward")
        + f"\n{first.traces('original')}"
        + _HEADER.format("2. Stack traces of the operators that ran during recomputation")
        + f"\n{second.traces('recompute')}"
        + _HEADER.format("3. Log of operators in the original forward and recomputation")
        + "\nOperations executed during the original forward:\n\n"
        + "\n".join(first.lines)
        + "\n\nOperations executed during recomputation:\n\n"
        + "\n".join(second.lines)
        + f"\n\n+{'-' * 78}+\n ERROR: Detected non-determinism while running activation checkpointing\n\n"
        " You are seeing this error because you passed `debug=True` to checkpoint and\n"
        " tensors to be saved during the original forward and differ between those saved\n"
        " during recomputation. This can happen if different operators were ran in the\n"
        " original forward and in the recomputation.\n\n"
        " Compare the two lists above to see where they differ; the stack trace of each\n"
        " operator says where the program called it.\n"
    )
