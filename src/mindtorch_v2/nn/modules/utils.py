"""One number as a tuple of them, under torch's address."""

from __future__ import annotations

from .._sizes import _list_with_default, _ntuple, _pair, _quadruple, _reverse_repeat_tuple, _single, _triple

__all__ = ["_list_with_default", "_ntuple", "_pair", "_quadruple", "_reverse_repeat_tuple", "_single", "_triple"]
