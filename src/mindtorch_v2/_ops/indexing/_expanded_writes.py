"""Writing into expanded tensors, where one element stands in several places: torch warns about it and writes."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np


def is_expanded(out: np.ndarray[Any, Any]) -> bool:
    """Whether an array may not be written because its elements stand in several places."""
    return not out.flags.writeable and out.size > 0 and 0 in out.strides


def writable(out: np.ndarray[Any, Any], name: str, form: str, depth: int) -> np.ndarray[Any, Any]:
    """The same memory, to be written by the op `name`, which `form` calls as well; `depth` frames lie above the caller's."""
    warnings.warn(
        f"Use of {name} on expanded tensors is deprecated. Please clone() the tensor before performing this "
        f"operation. This also applies to advanced indexing e.g. {form}",
        UserWarning,
        stacklevel=depth,
    )
    view = out.view()
    view.flags.writeable = True
    return view
