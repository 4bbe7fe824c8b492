"""One number as a tuple of them, and names of state dicts, under torch's address."""

from __future__ import annotations

from typing import Any

from .._sizes import _list_with_default, _ntuple, _pair, _quadruple, _reverse_repeat_tuple, _single, _triple

__all__ = ["consume_prefix_in_state_dict_if_present"]


def consume_prefix_in_state_dict_if_present(state_dict: dict[str, Any], prefix: str) -> None:
    """Take a prefix such as "module." off all names of a state dict and of its metadata, in place."""
    for key in list(state_dict):
        if key.startswith(prefix):
            state_dict[key[len(prefix) :]] = state_dict.pop(key)
    metadata: dict[str, Any] = getattr(state_dict, "_metadata", None) or {}
    for key in list(metadata):
        if key == "":
            continue
        # The entry of the wrapping module has the prefix without its dot.
        if key == prefix.replace(".", "") or key.startswith(prefix):
            metadata[key[len(prefix) :]] = metadata.pop(key)
