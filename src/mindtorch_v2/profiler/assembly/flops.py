"""FLOPs of a call, from the formula that its op declares and the shapes of its inputs."""

from __future__ import annotations

import numpy as np

from ..._dispatch import observer
from ..recording.op_facts import flop_formula
from ..store import tree
from ..store.distinct import distinct_values
from ..store.store import EventStore, InputInfo


def ops_without_formula(store: EventStore) -> list[str]:
    """Names of the recorded ops for which no FLOPs were counted because they declare no formula, sorted.

    Most of them do no arithmetic: views, copies, comparisons. An op that leaves its work to other ops is not among
    them: those are counted.
    """
    called = distinct_values(store.op[store.op >= 0])
    counted = [op for op in called.tolist() if flop_formula(op) is not None]
    leaf = store.op >= 0
    inner = store.parent[leaf]
    leaf[inner[inner >= 0]] = False
    # What an op with a formula has others do is in its count already.
    within = tree.nearest_ancestor(store.parent, np.isin(store.op, counted)) >= 0
    rest = distinct_values(store.op[leaf & ~within])
    return sorted({observer.op_names[op] for op in rest.tolist() if op not in counted})


def flops_of(op: int, inputs: InputInfo) -> int:
    """FLOPs of one call of an op; 0 where it has no formula or the formula does not apply to these inputs.

    A formula takes the op's arguments with shapes in place of tensors.
    """
    formula = flop_formula(op)
    if formula is None:
        return 0
    arguments = observer.op_schemas[op].arguments
    values = [
        dims if argument.is_tensor or argument.is_tensor_list else concrete
        for argument, dims, concrete in zip(arguments, inputs.dims, inputs.concrete, strict=True)
    ]
    try:
        return int(formula(*values))
    except (IndexError, TypeError, ValueError, ZeroDivisionError):
        return 0  # inputs that the op itself refused
