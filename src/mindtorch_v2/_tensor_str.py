"""torch._tensor_str: the parts of a tensor's text, for classes that put their own around them."""

from __future__ import annotations

from functools import partial
from typing import Any

from ._core.printing import PRINT_OPTS, append_suffixes, contents_text, get_printoptions, set_printoptions
from ._core.restoring import Actions, restoring
from ._core.tensor import Tensor

__all__ = ["PRINT_OPTS", "_add_suffixes", "_str", "_tensor_str", "get_printoptions", "printoptions", "set_printoptions"]


@restoring
def printoptions(undo: Actions, **kwargs: Any) -> None:
    """Options of `torch.set_printoptions` for a block."""
    undo.append(partial(set_printoptions, **get_printoptions()))
    set_printoptions(**kwargs)


def _tensor_str(self: Tensor, indent: int) -> str:
    """The elements, in brackets, where the lines after the first begin at a column."""
    return contents_text(self.detach().resolve_conj().cpu()._array, indent)  # type: ignore[attr-defined]


def _add_suffixes(tensor_str: str, suffixes: list[str], indent: int, force_newline: bool) -> str:
    """A text with what a tensor says of itself after its elements, and the closing bracket."""
    if force_newline:
        raise NotImplementedError("_add_suffixes(force_newline=True): sparse tensors are printed otherwise")
    return append_suffixes(tensor_str, suffixes, indent)


def _str(self: Tensor, *, tensor_contents: Any = None) -> str:
    """The text of a tensor; with `tensor_contents` in place of its elements."""
    return self.__repr__(tensor_contents=tensor_contents)  # type: ignore[call-arg]


_str_intern = _str
