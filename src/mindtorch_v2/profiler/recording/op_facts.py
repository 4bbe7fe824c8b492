"""What the registry tells the profiler of an op: FLOP formula, number form, overload with `out=`. The only door to it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from ..._dispatch import observer
from ..._dispatch.registry import packets, usual_out_overload
from ..._whole import load_runtime


def flop_formula(op: int) -> Callable[..., int] | None:
    """The formula that an op declares: it takes the op's arguments with shapes in place of tensors."""
    schema = observer.op_schemas[op]
    packet = packets.get(schema.name) if schema is not None else None
    return None if packet is None else packet.overloads[schema.overload].flops


def has_number_form(name: str) -> bool:
    """Whether torch has an overload of its own for a number as the second operand of an op."""
    return name in packets and any(spec.number_form for spec in packets[name])


def has_generator_after_size(name: str) -> bool:
    """Whether torch has an overload without a generator, and one where it follows the size."""
    return name in packets and any(spec.generator_after_size for spec in packets[name])


def keeps_pin_memory_open(name: str) -> bool:
    """Whether torch passes None on for `pin_memory`, where other ops get False."""
    return name in packets and any(spec.pin_memory_stays_open for spec in packets[name])


def function(name: str) -> Callable[..., Any]:
    """The Python function of an op."""
    found = packets[name].function
    assert found is not None
    return found


def out_overload(name: str, overload: str) -> str:
    """torch's name of the overload with `out=` that belongs to a plain one. The op need not exist here."""
    spec = packets[name].overloads.get(overload) if name in packets else None
    return usual_out_overload(name, overload) if spec is None else spec.out_overload


@cache
def counted_by_torch() -> frozenset[str]:
    """Names of the ops that torch's own profiler counts FLOPs of."""
    load_runtime()  # here and below: what reads files may have come without the ops
    return frozenset(spec.name for packet in packets.values() for spec in packet if spec.torch_counts_flops)


@cache
def data_moves(name: str) -> tuple[bool, tuple[bool, ...]]:
    """Whether an op only makes a view, and which of its arguments it writes to, by torch's name of the op ("aten::add_").

    An op that is not known here makes no view, and writes to its first argument if its name ends as those in place do.
    """
    load_runtime()
    packet = packets.get(name.rpartition("::")[2])
    if packet is None:
        return False, (True,) if name.endswith("_") and not name.endswith("__") else ()
    schemas = [observer.op_schemas[spec.id] for spec in packet]
    longest = max(schemas, key=lambda schema: len(schema.arguments))
    return all(schema.is_view for schema in schemas), tuple(argument.written for argument in longest.arguments)
