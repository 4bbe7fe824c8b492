"""torch.utils._foreach_utils: tensors in groups that one foreach op can take."""

from __future__ import annotations

from typing import Any

__all__ = ["_group_tensors_by_device_and_dtype"]


def _group_tensors_by_device_and_dtype(tensorlistlist: list[list[Any]], with_indices: bool = False) -> dict[Any, Any]:
    """Columns of several lists of tensors, grouped by device and dtype of the first list's tensors.

    The value of a group is `(lists, indices)`; the indices are empty unless asked for.
    """
    groups: dict[Any, Any] = {}
    for index, column in enumerate(zip(*tensorlistlist, strict=True)):
        first = column[0]
        lists, indices = groups.setdefault((first.device, first.dtype), ([[] for _ in tensorlistlist], []))
        for group, tensor in zip(lists, column, strict=True):
            group.append(tensor)
        if with_indices:
            indices.append(index)
    return groups
