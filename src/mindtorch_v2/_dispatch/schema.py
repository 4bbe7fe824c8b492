"""Op schemas in torch's notation: `mul.Tensor(Tensor self, Tensor other) -> Tensor`, parsed at their first use."""

from __future__ import annotations

import re
import threading
from typing import Any

# The default of an argument that a call must not leave out.
REQUIRED: Any = type("Required", (), {"__repr__": lambda self: "<required>"})()

_HEAD = re.compile(r"\s*(?P<name>[\w:]+)(?:\.(?P<overload>\w+))?\((?P<arguments>.*)\)\s*->\s*(?P<returns>.*)$", re.S)
_TYPE = re.compile(r"(?P<base>[\w.]+)(?:\((?P<alias>[^)]*)\))?(?P<suffix>(?:\[\d*\]|\?)*)$")
_METHOD = re.compile(r"\(\s*Tensor(?:\([^)]*\))?\??\s+(?:self|input)\b")
_KEYWORDS = {"from": "from_", "lambda": "lambda_", "global": "global_"}
_CONSTANTS = {
    "None": None,
    "True": True,
    "False": False,
    "inf": float("inf"),
    "contiguous_format": None,
    "Mean": 1,
    "long": "int64",
}
_parse_lock = threading.Lock()  # every reader of a schema gets the same Argument objects


class Argument:
    """An argument of a schema: `type_text` is its type as written (`Tensor?`, `int[2]`), the flags follow from it."""

    __slots__ = (
        "alias",
        "default",
        "int_count",
        "is_int_list",
        "is_tensor",
        "is_tensor_list",
        "keyword_only",
        "name",
        "optional",
        "python_name",
        "type_text",
    )

    def __init__(self, name: str, type_text: str, default: Any = REQUIRED, keyword_only: bool = False, alias: str = "") -> None:
        self.name = name
        self.type_text = type_text
        self.default = default
        self.keyword_only = keyword_only
        self.alias = alias
        bare = type_text.replace("?", "")
        self.optional = type_text.endswith("?")
        self.is_tensor = bare == "Tensor"
        self.is_tensor_list = bare.startswith("Tensor[")
        self.is_int_list = bare.startswith("int[")
        # How many integers one stands for that is given in place of a list: three for `int[3]`.
        self.int_count = int(bare[4:-1] or 1) if self.is_int_list else 0
        # torch's Python functions call the first tensor `input`; schemas call it `self`.
        self.python_name = "input" if name == "self" else _KEYWORDS.get(name, name)

    def __repr__(self) -> str:
        default = "" if self.default is REQUIRED else f"={self.default!r}"
        return f"Argument({self.type_text} {self.name}{default})"

    @property
    def written(self) -> bool:
        """Whether the op changes this tensor in place."""
        return self.alias.endswith("!")


class Schema:
    """An op's signature. Its name is known at once; arguments and results are parsed when one of them is first read.

    A process declares more than a thousand ops and calls few of them, so most schemas are never parsed.
    """

    __slots__ = ("arguments", "name", "overload", "return_aliases", "return_names", "returns", "returns_alias", "text")

    arguments: tuple[Argument, ...]
    returns: tuple[str, ...]
    return_names: tuple[str, ...]
    return_aliases: tuple[str, ...]
    returns_alias: str  # the first of these that says something

    def __init__(self, text: str) -> None:
        self.text = text = text.strip()
        self.name, _, self.overload = text.partition("(")[0].partition(".")

    def __getattr__(self, attribute: str) -> Any:
        # Called for slots that are still empty, so that reading one costs nothing more once it is filled.
        if attribute not in ("arguments", "returns", "return_names", "return_aliases", "returns_alias"):
            raise AttributeError(f"'Schema' object has no attribute '{attribute}'")
        with _parse_lock:
            try:
                return object.__getattribute__(self, attribute)
            except AttributeError:
                self._parse()
        return object.__getattribute__(self, attribute)

    def __repr__(self) -> str:
        return f"Schema({self.text!r})"

    @property
    def full_name(self) -> str:
        return f"{self.name}.{self.overload}" if self.overload else self.name

    @property
    def is_method(self) -> bool:
        """Whether the first argument is a tensor called `self` or `input`; does not parse the schema."""
        return _METHOD.match(self.text, self.text.find("(")) is not None

    @property
    def mutates(self) -> bool:
        return any(a.written for a in self.arguments)

    @property
    def is_view(self) -> bool:
        """Whether the result shares the memory of an argument."""
        return bool(self.returns_alias) and not self.mutates

    @property
    def returns_list(self) -> bool:
        return len(self.returns) == 1 and self.returns[0].startswith("Tensor[")

    def _parse(self) -> None:
        head = _HEAD.match(self.text)
        if head is None:
            raise ValueError(f"bad schema: {self.text!r}")
        arguments = []
        keyword_only = False
        for part in _split(head["arguments"]):
            if part == "*":
                keyword_only = True
                continue
            declaration, _, default = part.partition("=")
            kind, _, name = declaration.strip().rpartition(" ")
            type_text, alias = _type(kind.strip())
            arguments.append(Argument(name, type_text, _default(default) if default else REQUIRED, keyword_only, alias))
        returned = head["returns"].strip()
        if returned.startswith("("):
            returned = returned[1:-1]
        types, names, aliases = [], [], []
        for part in _split(returned):
            kind, _, name = part.partition(" ")
            type_text, result_alias = _type(kind)
            types.append(type_text)
            names.append(name.strip())
            aliases.append(result_alias)
        self.returns, self.return_names, self.return_aliases = tuple(types), tuple(names), tuple(aliases)
        self.returns_alias = next(filter(None, aliases), "")
        self.arguments = tuple(arguments)


def _split(text: str) -> list[str]:
    """Split at commas that are not inside brackets."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        if c in "([":
            depth += 1
        elif c in ")]":
            depth -= 1
        elif c == "," and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    parts.append(text[start:])
    return [part.strip() for part in parts if part.strip()]


def _default(text: str) -> Any:
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if text.startswith("["):
        return tuple(_default(part) for part in _split(text[1:-1]))
    if text[0] in "\"'":
        return text[1:-1]
    try:
        return int(text)
    except ValueError:
        return float(text)


def _type(text: str) -> tuple[str, str]:
    """(`Tensor[]?`, alias) of a type as written, e.g. of `Tensor(a!)[]?`."""
    match = _TYPE.match(text.replace("SymInt", "int"))
    if match is None:
        raise ValueError(f"bad type in schema: {text!r}")
    return match["base"] + match["suffix"], match["alias"] or ""


def parse(text: str) -> Schema:
    """The schema written as `text`, parsed at once; ValueError where it is malformed."""
    schema = Schema(text)
    schema._parse()
    return schema
