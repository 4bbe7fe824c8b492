"""torch.distributed.tensor._utils: where a process's part of a tensor lies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..device_mesh import DeviceMesh
from . import Shard, shard_bounds


def compute_local_shape_and_global_offset(
    global_shape: Sequence[int], mesh: DeviceMesh, placements: Sequence[Any]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The shape of this process's part, and where it begins; on meshes of one dim."""
    if mesh.ndim != 1:
        raise NotImplementedError("compute_local_shape_and_global_offset on a mesh of more than one dim")
    shape, offset = list(global_shape), [0] * len(global_shape)
    for placement in placements:
        if isinstance(placement, Shard):
            begin, end = shard_bounds(shape[placement.dim], mesh.size(), mesh.get_local_rank())
            shape[placement.dim], offset[placement.dim] = end - begin, begin
    return tuple(shape), tuple(offset)
