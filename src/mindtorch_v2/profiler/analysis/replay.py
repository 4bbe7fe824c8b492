"""One recorded call of an op as a script that calls it again, with tensors of the same shapes, strides and types."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._core.dtype import DTYPES
from ..._dispatch import observer
from .._io.terminal import shown
from ..recording.op_inputs import SCALAR_TYPES
from ..store.store import EventStore, InputInfo
from .findings import duration
from .source.places import user_frame

_SCRIPT = '''\
"""{title}

{origin}
Its tensors have the recorded shapes, strides and types; their values are random, and zero where they are whole numbers.
Recordings have neither texts nor the types of tensors in lists: such arguments have their defaults, such tensors are float32.
Run it with the name of a package to call the op of that one:

    python replay.py mindtorch_v2
    python replay.py torch
"""

import importlib
import sys
import time

torch = importlib.import_module(sys.argv[1] if len(sys.argv) > 1 else "mindtorch_v2")
torch.manual_seed(0)


def tensor(shape, strides, dtype):
    """A tensor of this layout: a view of as many elements as it reaches."""
    reach = 1 + sum((size - 1) * stride for size, stride in zip(shape, strides)) if 0 not in shape else 0
    if dtype.is_floating_point or dtype.is_complex:
        memory = torch.randn(reach, dtype=torch.float32).to(dtype)
    else:
        memory = torch.zeros(reach, dtype=dtype)
    return memory.as_strided(shape, strides)


def call():
    return {op}(
{arguments}    )


{inputs}
call()  # the first call does what is done once
times = []
for _ in range({runs}):
    start = time.perf_counter()
    result = call()
    times.append(time.perf_counter() - start)
times.sort()
shapes = [tuple(one.shape) for one in (result if isinstance(result, (tuple, list)) else [result]) if hasattr(one, "shape")]
median, best = times[len(times) // 2] * 1e6, times[0] * 1e6
print(f"{name} of {{torch.__name__}}: {{median:.1f}} us, at best {{best:.1f}} us; results {{shapes}}")
'''


class ReplayError(ValueError):
    """Why a call cannot be replayed."""


def find_call(store: EventStore, event: str) -> int:
    """The row of an event: of that id, which counts rows from 1, or the longest call of that name."""
    if event.removeprefix("#").isdecimal():
        rows = np.flatnonzero(np.arange(len(store)) + 1 == int(event.removeprefix("#")))
        missing = f"there is no event {event}: ids are 1 to {len(store)}"
    else:
        rows = np.flatnonzero(np.isin(store.name, [n for n, name in enumerate(store.names) if name == event]))
        missing = f"no event is named {event!r}"
    if not len(rows):
        raise ReplayError(missing)
    ops = rows[store.kind[rows] == observer.OP]
    if not len(ops):
        raise ReplayError(f"{event} is no op: only ops can be called again")
    known = ops[store.shapes[ops] >= 0]
    if not len(known):
        raise ReplayError("no inputs were recorded: profile(record_shapes=True), or `mtprof run --shapes`")
    return int(known[np.argmax(store.duration[known])])


def script(store: EventStore, row: int, source: str = "", runs: int = 20) -> str:
    """The script that calls the op of a row again. ReplayError: an input that it needs was not recorded."""
    name = store.names[store.name[row]]
    inputs = store.input_infos[store.shapes[row]]
    overload = store.overloads[store.op[row]] if 0 <= store.op[row] < len(store.overloads) else ""
    namespace, _, op = name.partition("::")
    if not (namespace.isidentifier() and op.isidentifier()):
        raise ReplayError(f"{name!r} is not the name of an op")
    arguments, made = _arguments(_schema(name, overload, len(inputs.dims)), inputs)
    stack = store.call_stack[row]
    frames = store.stacks[stack] if stack >= 0 else ()
    where = f", called at {user_frame(frames) or frames[0]}" if frames else ""
    origin = f"Recorded{' in ' + source if source else ''}: {duration(int(store.duration[row]))}{where}."
    return _SCRIPT.format(
        title=f"{name}, event {row + 1}.",
        origin=_plain_text(origin),
        op=f"torch.ops.{namespace}.{op}",
        arguments="".join(f"        {text},\n" for text in arguments),
        inputs="\n".join(made),
        name=name,
        runs=runs,
    )


def _plain_text(text: str) -> str:
    """Text that may stand in a docstring."""
    return shown(text).encode("ascii", "backslashreplace").decode().replace("\\", "/").replace('"', "'")


def _schema(name: str, overload: str, count: int) -> Any:
    """The schema of the overload, else of one with as many arguments; None if the op is not known here."""
    known = [observer.op_schemas[op] for op, known_name in enumerate(observer.op_names) if known_name == name]
    fitting = [schema for schema in known if schema is not None and len(schema.arguments) == count]
    return next((schema for schema in fitting if schema.overload == overload), fitting[0] if fitting else None)


def _arguments(schema: Any, inputs: InputInfo) -> tuple[list[str], list[str]]:
    """The arguments of the call as code, and the lines that make the tensors."""
    arguments: list[str] = []
    made: list[str] = []
    for at, (dims, kind, strides, concrete) in enumerate(zip(*inputs[:4], strict=True)):
        argument = None if schema is None else schema.arguments[at]
        name = f"input{at}" if argument is None or not argument.name.isidentifier() else argument.name
        name = f"{name}_" if name in ("self", "input", "call", "time", "torch", "sys", "tensor", "times") else name
        dtype = _dtype(kind)
        if dtype is None and argument is not None and argument.is_tensor_list and dims:
            dtype = "torch.float32"  # traces have no types of tensors in lists
        if dtype is not None:
            made.append(f"{name} = {_tensors(dims, strides, dtype)}")
            code = name
        else:
            code = _value(argument, kind, concrete)
        if argument is not None and argument.keyword_only:
            if code != "None":
                arguments.append(f"{argument.name}={code}")
        else:
            arguments.append(code)
    return arguments, made


def _tensors(dims: Any, strides: Any, dtype: str) -> str:
    if any(isinstance(one, tuple) for one in dims):
        return f"[{', '.join(_tensors(one, steps, dtype) for one, steps in zip(dims, strides, strict=True))}]"
    if len(strides) != len(dims):
        raise ReplayError("the strides of its inputs were not recorded, as in traces of old versions")
    return f"tensor({tuple(dims)!r}, {tuple(strides)!r}, {dtype})"


def _dtype(kind: str) -> str | None:
    return next((f"torch.{name}" for name, one in DTYPES.items() if one.cpp_name == kind), None)


def _value(argument: Any, kind: str, concrete: Any) -> str:
    """A value that is no tensor, as code."""
    wanted = "" if argument is None else argument.type_text
    if concrete is None:
        if argument is None or wanted.endswith("?") or wanted.startswith("Tensor?"):
            return "None"
        if isinstance(argument.default, str | int | float | list | tuple):  # a required one has something else
            return repr(argument.default)
        raise ReplayError(f"the value of its argument {argument.name!r} was not recorded")
    if wanted.startswith("ScalarType") and isinstance(concrete, int) and 0 <= concrete < len(SCALAR_TYPES):
        return f"torch.{SCALAR_TYPES[concrete]}"
    if wanted.startswith(("Layout", "Device", "MemoryFormat", "Generator")):
        return "None"
    if isinstance(concrete, tuple | list):
        return repr(list(concrete))
    return repr(concrete) if isinstance(concrete, int | float | bool | complex | str) else "None"
