"""torch.utils.weak: dictionaries with weak references as keys, compared by identity: tensors cannot be compared by `==`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from copy import deepcopy
from typing import Any
from weakref import ref

from .._core.tensor import Tensor

__all__ = ["TensorWeakRef", "WeakIdKeyDictionary", "WeakIdRef", "WeakTensorKeyDictionary"]

WeakRef = ref


class WeakIdRef(ref):  # type: ignore[type-arg]
    """A weak reference that equals another to the same object; it keeps its hash when the object is gone."""

    __slots__ = ("_id",)

    def __init__(self, key: Any, callback: Any = None) -> None:
        self._id = id(key)
        super().__init__(key, callback)  # type: ignore[call-arg]

    def __hash__(self) -> int:
        return self._id

    def __eq__(self, other: object) -> bool:
        mine, theirs = self(), other() if isinstance(other, ref) else None
        return self is other if mine is None or theirs is None else mine is theirs


class _WeakHashRef(WeakIdRef):
    """A weak reference with the hash of its object that equals another to an equal object."""

    __slots__ = ()

    def __init__(self, key: Any, callback: Any = None) -> None:
        super().__init__(key, callback)
        self._id = hash(key)

    __hash__ = WeakIdRef.__hash__

    def __eq__(self, other: object) -> bool:
        mine, theirs = self(), other() if isinstance(other, ref) else None
        return self is other if mine is None or theirs is None else bool(mine == theirs)


class WeakIdKeyDictionary(MutableMapping[Any, Any]):
    """A dictionary that forgets a key, compared by identity, when nothing else holds it."""

    def __init__(self, dict: Mapping[Any, Any] | None = None, ref_type: type = WeakIdRef) -> None:
        self.data: Any = {}
        self.ref_type = ref_type
        own = ref(self)  # the callbacks of keys that live longer must not keep the dictionary

        def forget(reference: Any) -> None:
            dictionary = own()
            if dictionary is not None:
                dictionary.data.pop(reference, None)

        self._forget = forget
        if dict is not None:
            self.update(dict)

    def __getitem__(self, key: Any) -> Any:
        return self.data[self.ref_type(key)]

    def __setitem__(self, key: Any, value: Any) -> None:
        self.data[self.ref_type(key, self._forget)] = value

    def __delitem__(self, key: Any) -> None:
        del self.data[self.ref_type(key)]

    def __contains__(self, key: object) -> bool:
        try:
            return self.ref_type(key) in self.data
        except TypeError:  # of a kind that has no weak references
            return False

    def __len__(self) -> int:
        return len(self.data)

    def __iter__(self) -> Iterator[Any]:
        for reference in tuple(self.data):  # keys may end meanwhile
            key = reference()
            if key is not None:
                yield key

    def keys(self) -> Any:
        """The keys that live."""
        return iter(self)

    def items(self) -> Any:
        """Pairs of a key that lives and its value."""
        for reference, value in tuple(self.data.items()):
            key = reference()
            if key is not None:
                yield key, value

    def values(self) -> Any:
        """The values of keys that live."""
        return (pair[1] for pair in self.items())

    def keyrefs(self) -> list[Any]:
        """The weak references to the keys, also to those that are gone."""
        return list(self.data)

    def popitem(self) -> tuple[Any, Any]:
        """Remove the newest key that lives and return it with its value; KeyError if there is none."""
        while True:
            reference, value = self.data.popitem()
            key = reference()
            if key is not None:
                return key, value

    def copy(self) -> WeakIdKeyDictionary:
        """Another dictionary with the same keys and values."""
        return type(self)(self, self.ref_type)

    __copy__ = copy

    def __deepcopy__(self, memo: Any) -> WeakIdKeyDictionary:
        new = type(self)(None, self.ref_type)
        for key, value in self.items():
            new[key] = deepcopy(value, memo)
        return new

    def __or__(self, other: Any) -> Any:
        if not isinstance(other, Mapping):
            return NotImplemented
        new = self.copy()
        new.update(other)
        return new

    def __ror__(self, other: Any) -> Any:
        if not isinstance(other, Mapping):
            return NotImplemented
        new = type(self)(other, self.ref_type)
        new.update(self)
        return new

    def __ior__(self, other: Any) -> Any:
        self.update(other)
        return self

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mapping):
            return NotImplemented
        return {id(key): value for key, value in self.items()} == {id(key): value for key, value in other.items()}

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {id(self):#x}>"


# Tensors are the usual keys.
WeakTensorKeyDictionary = WeakIdKeyDictionary


class TensorWeakRef:
    """A weak reference to a tensor: called, it returns the tensor, or None once that is gone."""

    ref: ref[Tensor]

    def __init__(self, tensor: Tensor) -> None:
        if not isinstance(tensor, Tensor):
            raise AssertionError(f"expected torch.Tensor, got {type(tensor)}.")
        self.ref = ref(tensor)

    def __call__(self) -> Tensor | None:
        """The tensor, as long as it lives."""
        return self.ref()
