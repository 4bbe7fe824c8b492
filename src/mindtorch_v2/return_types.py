"""torch.return_types: the kinds of tuples that ops with several named results return."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ._dispatch.registry import packets
from ._dispatch.result_types import result_type_of


def __getattr__(name: str) -> Any:
    if name == "histogramdd":  # an op that is declared when it is first asked for
        import_module("._ops.reduction.histogramdd", __package__)
    for form in ("", "_out"):
        for spec in packets.get(name.removesuffix(form)) or ():
            if len(spec.schema.returns) > 1 and all(spec.schema.return_names):
                return result_type_of(spec, form)
    raise AttributeError(f"module 'torch.return_types' has no attribute '{name}'")
