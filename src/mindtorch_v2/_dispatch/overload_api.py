"""`torch.ops`: namespaces, packets and overloads as objects, on top of the registry."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

from .dispatcher import dispatch_with_keyset
from .registry import OpSpec, Packet, packets


class OpOverload:
    """`torch.ops.aten.add.Tensor`: one overload. Calling it runs the op."""

    def __init__(self, packet: OpOverloadPacket, spec: OpSpec) -> None:
        self._packet = packet
        self._op = spec
        self._schema = spec.schema
        self._overloadname = spec.schema.overload or "default"
        self.__name__ = f"{packet.__name__}.{self._overloadname}"
        self.__qualname__ = self.__name__

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        if "self" in kwargs:
            kwargs["input"] = kwargs.pop("self")
        return self._op(*args, **kwargs)

    def redispatch(self, /, keyset: int, *args: Any, **kwargs: Any) -> Any:
        """Pass a call on below the caller's own key: see `dispatcher.dispatch_with_keyset`, which says what the keys mean."""
        return dispatch_with_keyset(keyset, f"{self._op.name}.{self._overloadname}", *args, **kwargs)

    @property
    def overloadpacket(self) -> OpOverloadPacket:
        return self._packet

    @property
    def namespace(self) -> str:
        return self._packet._namespace

    @property
    def is_view(self) -> bool:
        return self._schema.is_view

    def name(self) -> str:
        base = self._op.name
        return f"{base}.{self._schema.overload}" if self._schema.overload else base

    def __repr__(self) -> str:
        return f"<OpOverload(op='{self._packet._namespace}.{self._packet.__name__}', overload='{self._overloadname}')>"

    def __str__(self) -> str:
        return f"{self._packet._namespace}.{self.__name__}"

    def __deepcopy__(self, memo: Any = None) -> OpOverload:
        return self

    def __hash__(self) -> int:
        return hash(self._op)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OpOverload) and other._op is self._op


class OpOverloadPacket:
    """`torch.ops.aten.add`: all overloads of a name; calling it picks one."""

    def __init__(self, namespace: str, name: str, packet: Packet) -> None:
        self._namespace = namespace
        self._packet = packet
        self.__name__ = name
        self._qualified_op_name = f"{namespace}::{name}"

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        if "self" in kwargs:
            kwargs["input"] = kwargs.pop("self")
        assert self._packet.function is not None
        return self._packet.function(*args, **kwargs)

    def __deepcopy__(self, memo: Any = None) -> OpOverloadPacket:
        return self

    __copy__ = __deepcopy__

    def overloads(self) -> list[str]:
        return [name or "default" for name in self._packet.overloads]

    def __getattr__(self, name: str) -> OpOverload:
        spec = self._packet.overloads.get("" if name == "default" else name)
        if spec is None:
            raise AttributeError(f"The underlying op of '{self._namespace}.{self.__name__}' has no overload name '{name}'")
        overload = OpOverload(self, spec)
        setattr(self, name, overload)
        return overload

    def __dir__(self) -> list[str]:
        return self.overloads()

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self._namespace}.{self.__name__}')>"

    def __str__(self) -> str:
        return f"{self._namespace}.{self.__name__}"


class OpNamespace:
    """`torch.ops.aten`: the ops of one namespace; an attribute is the packet of that name, made at its first use."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getattr__(self, op: str) -> OpOverloadPacket:
        packet = packets.get(op if self.name == "aten" else f"{self.name}::{op}")
        if packet is None:
            raise AttributeError(f"'_OpNamespace' '{self.name}' object has no attribute '{op}'")
        overloads = OpOverloadPacket(self.name, op, packet)
        setattr(self, op, overloads)
        return overloads

    def __dir__(self) -> list[str]:
        prefix = self.name + "::"
        return (
            [name for name in packets if "::" not in name]
            if self.name == "aten"
            else [name[len(prefix) :] for name in packets if name.startswith(prefix)]
        )


class HigherOrderOperator:
    """An op of functions: a class of its own, so that `__torch_function__` can tell such calls. A subclass computes."""

    def __init__(self, name: str) -> None:
        self.__name__ = self._name = name

    def name(self) -> str:
        """The name it was made with."""
        return self._name

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"{self._name}: the class of this higher-order op has no __call__")

    def __str__(self) -> str:
        return self._name


# Compiled libraries, by folder and name, whose ops are written in Python here.
_EXTENSIONS = {"torchvision/_C": "mindtorch_v2._extensions.torchvision"}


class ExtensionNotSupported(OSError, NotImplementedError):
    """A compiled extension: torch raises OSError for a library that was built for another release, and libraries expect it."""


class Ops:
    """`torch.ops`: the namespaces, of which aten holds torch's own ops."""

    def __init__(self) -> None:
        self.aten = OpNamespace("aten")

    def __getattr__(self, name: str) -> OpNamespace:
        if name.startswith("__"):
            raise AttributeError(name)
        namespace = OpNamespace(name)
        setattr(self, name, namespace)
        return namespace

    def load_library(self, path: str | os.PathLike[str]) -> None:
        """Declare the ops of a compiled library, if this runtime has them; else OSError, as for one that cannot be loaded."""
        module = _EXTENSIONS.get("/".join(os.fspath(path).replace(os.sep, "/").split("/")[-2:]).partition(".")[0])
        if module is None:
            raise ExtensionNotSupported(
                f"Could not load this library: {path}: compiled extensions cannot be loaded. See docs/compatibility.md"
            )
        import_module(module)


ops = Ops()


def overload_of(spec: OpSpec) -> OpOverload:
    """The `torch.ops` object of an op."""
    namespace, _, name = spec.name.partition("::")
    packet = getattr(getattr(ops, namespace), name)
    overload: OpOverload = getattr(packet, spec.schema.overload or "default")
    return overload
