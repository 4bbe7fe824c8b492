"""What a recording consists of, in units that each cost the recorder some time: `units` counts them by row.

Calibration measures nanoseconds a unit with programs whose units it counts here; an estimate multiplies the two.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..._dispatch import observer
from ..store.store import EventStore, InputInfo

Counts = NDArray[np.float64]

# How the names of ranges begin that the runtime records itself, in one call as an op does: a user's ranges take several.
OWN_SPANS = ("Optimizer.", "enumerate(DataLoader)", "DataParallel.", "DistributedDataParallel.")

_KINDS = {
    "op": (observer.OP,),
    "scope": (observer.SCOPE, observer.STEP),
    "engine": (observer.BACKWARD, observer.ENGINE),
    "module": (observer.MODULE,),
    "python": (observer.PYTHON,),
}


def units(store: EventStore) -> dict[str, Counts]:
    """How many units of each kind each row has.

    op        an op, or a range of the runtime's own; `nested`: one inside of another op
    scope     a range of the user's
    engine    a row of the backward pass
    module    a call of a module, with a row of its own or noted by the op that follows
    python    a call of a function; `builtin`: of a builtin one; `method`: of a method of a builtin type
    first     the first row of an op on its thread, for which functions are made and specialized

    Where inputs are recorded, on top of those:

    argument  a tensor among the arguments, but for the first
    numbers   a list of numbers among the arguments
    inputs    an op whose arguments are not those of its first call; `inputs_argument`: each tensor of it but for the first
    noted     an op with a number in place of a tensor, whose arguments are noted one by one
    listed    a tensor in a list, which is noted
    tensor    a tensor among the arguments, in lists too, for recordings that tell tensors apart
    """
    counts = {unit: np.isin(store.kind, kinds).astype(np.float64) for unit, kinds in _KINDS.items()}
    _move(counts, "scope", "op", own_spans(store))
    is_op = store.kind == observer.OP
    _move(counts, "op", "nested", is_op & np.append(is_op, False)[store.parent])
    _move(counts, "python", "builtin", _calls_named(store, "<built-in function "))
    _move(counts, "python", "method", _calls_named(store, "<built-in method "))
    if not counts["module"].any():
        counts["module"] = _enters_module(store)
    return counts | _input_units(store)


def _move(counts: dict[str, Counts], source: str, target: str, rows: NDArray[np.bool_]) -> None:
    counts.setdefault(target, np.zeros(len(rows)))[rows] += counts[source][rows]
    counts[source][rows] = 0


def own_spans(store: EventStore) -> NDArray[np.bool_]:
    """Whether each row is a range of the runtime's own, such as a step of an optimizer."""
    named = [number for number, name in enumerate(store.names) if name.startswith(OWN_SPANS)]
    spans: NDArray[np.bool_] = (store.kind == observer.SCOPE) & np.isin(store.name, named)
    return spans


def hidden_calls(store: EventStore) -> int:
    """How many Python calls were recorded without a row: those inside of the runtime but for the profiler's own."""
    return int(store.options.get("hidden_calls", 0))


def _calls_named(store: EventStore, beginning: str) -> NDArray[np.bool_]:
    names = np.array([name.startswith(beginning) for name in store.names], np.bool_)
    calls: NDArray[np.bool_] = (store.kind == observer.PYTHON) & names[store.name] if len(names) else store.kind < 0
    return calls


def _enters_module(store: EventStore) -> Counts:
    """Whether a row is in another module than the row before it."""
    enters = np.zeros(len(store))
    enters[1:] = (store.module[1:] != store.module[:-1]) & (store.module[1:] >= 0)
    return enters


# ------------------------------------------------------------------------------ inputs of ops


def _input_units(store: EventStore) -> dict[str, Counts]:
    names = ("first", "argument", "numbers", "inputs", "inputs_argument", "noted", "listed", "tensor")
    counts = {name: np.zeros(len(store)) for name in names}
    ops = np.flatnonzero(store.kind == observer.OP)
    if not len(ops):
        return counts
    _, first, group = np.unique(store.name[ops] + store.tid[ops] * len(store.names), return_index=True, return_inverse=True)
    counts["first"][ops[first]] = 1
    described = store.shapes[ops] >= 0
    rows, inputs, first_inputs = ops[described], store.shapes[ops][described], store.shapes[ops[first]][group][described]
    if not len(rows):
        return counts
    infos = store.input_infos
    tensors, listed, lists = (
        np.array([count(info) for info in infos], np.float64) for count in (_tensors, _listed_tensors, _number_lists)
    )
    noted = np.array([_is_noted(info) for info in infos], np.bool_)[inputs]
    anew = ~noted & (listed[inputs] == 0) & (inputs != first_inputs)
    counts["argument"][rows] = np.where(noted, 0, np.maximum(tensors - 1, 0)[inputs])
    counts["numbers"][rows] = lists[inputs]
    counts["inputs"][rows] = anew
    counts["inputs_argument"][rows] = np.where(anew, np.maximum(tensors - 1, 0)[inputs], 0)
    counts["noted"][rows] = noted
    counts["listed"][rows] = listed[inputs]
    counts["tensor"][rows] = (tensors + listed)[inputs]
    return counts


def _tensors(info: InputInfo) -> int:
    """How many arguments are tensors; a number in place of a tensor is one."""
    return sum(kind not in ("", "Scalar", "ScalarList", "TensorList") for kind in info.types)


def _listed_tensors(info: InputInfo) -> int:
    return sum(len(dims) for kind, dims in zip(info.types, info.dims, strict=True) if kind == "TensorList")


def _number_lists(info: InputInfo) -> int:
    return info.types.count("ScalarList")


def _is_noted(info: InputInfo) -> bool:
    """Whether an argument is a number in place of a tensor."""
    return any(
        kind in ("double", "long int") and dims == () and value is None
        for kind, dims, value in zip(info.types, info.dims, info.concrete, strict=False)
    )
