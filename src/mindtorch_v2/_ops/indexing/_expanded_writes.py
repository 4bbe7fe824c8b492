"""Writing into expanded tensors, where several elements share memory: torch warns and writes."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._support.warn import warn


def is_expanded(out: np.ndarray[Any, Any]) -> bool:
    """Whether an array is read-only because its elements share memory."""
    return not out.flags.writeable and out.size > 0 and 0 in out.strides


def writable(out: np.ndarray[Any, Any], name: str, form: str) -> np.ndarray[Any, Any]:
    """The same memory, to be written by the op `name`, which `form` calls as well."""
    warn(
        f"Use of {name} on expanded tensors is deprecated. Please clone() the tensor before performing this "
        f"operation. This also applies to advanced indexing e.g. {form}"
    )
    view = out.view()
    view.flags.writeable = True
    return view
