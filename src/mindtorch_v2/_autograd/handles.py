"""The handles that registering a hook returns."""

from __future__ import annotations

import itertools
import weakref
from typing import Any

from .._core.cpython import without_signals_at_entry
from .._core.restoring import carry_out


class RemovableHandle:
    """Removes a hook, by `remove()` or at the end of a `with` block; refers to the table of hooks weakly."""

    __module__ = "mindtorch_v2.utils.hooks"

    id: int
    next_id: int = 0
    hooks_dict_ref: weakref.ref[Any]
    extra_dict_ref: tuple[weakref.ref[Any], ...]

    def __init__(self, hooks_dict: Any, *, extra_dict: Any = None) -> None:
        self.hooks_dict_ref = weakref.ref(hooks_dict)
        self.id = RemovableHandle.next_id
        RemovableHandle.next_id += 1
        extra = () if extra_dict is None else extra_dict if isinstance(extra_dict, list) else (extra_dict,)
        self.extra_dict_ref = tuple(map(weakref.ref, extra))

    def remove(self) -> None:
        """Remove the hook, if its table is still alive and holds it."""
        for reference in (self.hooks_dict_ref, *self.extra_dict_ref):
            hooks = reference()
            if hooks is not None and self.id in hooks:
                del hooks[self.id]

    def __getstate__(self) -> Any:
        return self.hooks_dict_ref(), self.id, tuple(reference() for reference in self.extra_dict_ref)

    def __setstate__(self, state: Any) -> None:
        hooks, self.id, extra = state
        # A table that was gone is replaced by an empty one, so that remove() still works.
        self.hooks_dict_ref = weakref.ref(_Hooks() if hooks is None else hooks)
        self.extra_dict_ref = tuple(weakref.ref(_Hooks() if table is None else table) for table in extra)
        RemovableHandle.next_id = max(RemovableHandle.next_id, self.id + 1)

    def __enter__(self) -> RemovableHandle:
        return self

    @without_signals_at_entry
    def __exit__(self, *exc: Any) -> None:
        carry_out([self.remove])


class _Hooks(dict[int, Any]):
    """A dict to which a weak reference is possible."""

    __slots__ = ("__weakref__",)


class Handle(RemovableHandle):
    """A RemovableHandle for a table of hooks that is a plain dict, to which no weak reference is possible."""

    id: int
    _ids = itertools.count()

    def __init__(self, hooks: dict[int, Any], hook: Any) -> None:
        self.id = next(Handle._ids)
        self._hooks = hooks
        hooks[self.id] = hook

    def remove(self) -> None:
        """Remove the hook; a second call does nothing."""
        self._hooks.pop(self.id, None)

    def __getstate__(self) -> Any:
        return {"id": self.id, "_hooks": self._hooks}

    def __setstate__(self, state: Any) -> None:
        self.__dict__.update(state)
