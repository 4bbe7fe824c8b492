"""torch.return_types: the kinds of tuples that ops with several named results return."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

from ._dispatch.facts import Surface
from ._dispatch.registry import OpSpec, packets
from ._dispatch.result_types import result_type_of
from .utils._pytree import SequenceKey, register_pytree_node

__all__ = ["all_return_types", "pytree_register_structseq"]  # noqa: F822  the first is made when it is asked for


def pytree_register_structseq(cls: Any) -> None:
    """Let pytrees take tuples of a class apart, and put them together again as such."""
    make = getattr(cls, "_make", cls)
    register_pytree_node(
        cls,
        lambda results: (list(results), None),
        lambda values, context: make(values),
        flatten_with_keys_fn=lambda results: ([(SequenceKey(i), value) for i, value in enumerate(results)], None),
    )


def _is_named(spec: OpSpec) -> bool:
    return len(spec.schema.returns) > 1 and all(spec.schema.return_names)


@cache
def _all() -> list[Any]:
    import_module("._ops.reduction.histogramdd", __package__)  # an op that is declared when it is first asked for
    kinds = []
    for packet in packets.values():
        named = next(filter(_is_named, packet), None)
        if named is not None and named.surface & (Surface.BOTH | Surface.MODULE) and not named.schema.name.startswith("_"):
            kinds += [result_type_of(named), *([result_type_of(named, "_out")] if named.out_keyword else [])]
    return sorted(kinds, key=lambda kind: kind.__name__)


def __getattr__(name: str) -> Any:
    if name == "all_return_types":
        return _all()
    if name == "histogramdd":
        import_module("._ops.reduction.histogramdd", __package__)
    for form in ("", "_out"):
        for spec in packets.get(name.removesuffix(form)) or ():
            if _is_named(spec):
                return result_type_of(spec, form)
    raise AttributeError(f"module 'torch.return_types' has no attribute '{name}'")
