"""Signatures and docstrings of the functions of ops, for `inspect`, `help()` and editors."""

from __future__ import annotations

import inspect
import math
from typing import Any

from .entry_codegen import entry_source
from .overloads import varargs
from .registry import OpSpec, Packet
from .schema import REQUIRED


def parameters_of(spec: OpSpec) -> list[inspect.Parameter]:
    """The parameters of an op's function: the schema's arguments, and `axis`, `out` or `requires_grad` where it takes them.

    They are read from the entry's own text, so that they cannot differ from what a call accepts.
    """
    head = next(line for line in entry_source(spec).splitlines() if line.lstrip().startswith("def entry("))
    space: dict[str, Any] = {"REQUIRED": REQUIRED, "inf": math.inf}
    exec(head.strip() + " ...", space)
    spread = varargs(spec.schema)
    parameters: list[inspect.Parameter] = []
    optional = False  # once a parameter has a default, those after it need one too
    for parameter in inspect.signature(space["entry"]).parameters.values():
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            if spread is not None:  # else what is left over of a deprecated order
                parameters.append(parameter.replace(name=spread.python_name))
            continue
        if spread is not None and parameter.name == spread.python_name:
            continue  # the same sizes by keyword; a signature has one parameter of a name
        if parameter.default is REQUIRED and not optional:
            parameters.append(parameter.replace(default=inspect.Parameter.empty))
            continue
        optional = optional or parameter.default is not inspect.Parameter.empty
        parameters.append(parameter)
    return parameters


class OpSignature(inspect.Signature):
    """The signature of an overload, worked out at the first look: declaring a thousand ops parses none of their schemas.

    `inspect.signature` reads `__signature__` of a function, and wants an instance of Signature there up to Python 3.12.
    """

    __slots__ = ("_spec",)

    def __init__(self, spec: OpSpec) -> None:
        self._spec = spec

    def __getattr__(self, attribute: str) -> Any:
        # Reached while the base class's slots are empty.
        if attribute not in ("_parameters", "_return_annotation"):
            raise AttributeError(f"'OpSignature' object has no attribute '{attribute}'")
        super().__init__(parameters_of(self._spec))
        return object.__getattribute__(self, attribute)

    def _plain(self) -> inspect.Signature:
        return inspect.Signature(tuple(self.parameters.values()))

    def replace(self, **changes: Any) -> inspect.Signature:  # type: ignore[override]
        """A changed copy, as the base class has it: bound methods ask for one without the first parameter."""
        return self._plain().replace(**changes)

    __replace__ = replace  # type: ignore[assignment]  # copy.replace() of Python 3.13

    def __reduce__(self) -> Any:
        return self._plain().__reduce__()


def describe(packet: Packet) -> None:
    """Give a packet's function its docstring: the schema of every overload, then the text that the op was declared with.

    A name with several overloads has the signature of the first.
    """
    function: Any = packet.function
    specs = packet.overloads.values()
    (first, *others) = specs
    doc = first.schema.text
    if others or function is not first.call:
        function.__signature__ = OpSignature(first)
        doc = "\n".join([spec.schema.text for spec in specs])
    text = packet.doc
    function.__doc__ = doc if text is None else f"{doc}\n\n{_dedented(text)}"


def _dedented(text: str) -> str:
    """A docstring at the depth of its first line: `inspect.cleandoc` of a thousand of them would be felt at import."""
    example = text.find(">>>")
    depth = example - text.rfind("\n", 0, example) - 1
    return text.replace("\n" + " " * depth, "\n").rstrip() if example > 0 and depth else text
