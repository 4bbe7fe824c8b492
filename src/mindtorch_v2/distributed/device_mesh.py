"""torch.distributed.device_mesh: processes as an array, with a process group for each of its dims."""

from __future__ import annotations

import math
import threading
from types import TracebackType
from typing import Any

import numpy as np

from .. import _surface as torch
from .._core.cpython import without_signals_at_entry
from .._core.tensor import Tensor
from ._groups import (
    default_group,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    init_process_group,
    is_initialized,
    new_group,
)

__all__ = ["DeviceMesh", "init_device_mesh"]


class _Current(threading.local):
    """The meshes of the `with` blocks that a thread is in."""

    def __init__(self) -> None:
        self.meshes: list[DeviceMesh] = []


_current = _Current()


class DeviceMesh:
    """Ranks as an array. Each process is in one group for every dim: those that differ from it in that dim alone.

    All processes make a mesh together. `mesh["dp"]` is the part of a mesh along a dim that this process is in.
    """

    def __init__(
        self,
        device_type: str,
        mesh: Any = None,
        *,
        mesh_dim_names: tuple[str, ...] | None = None,
        backend_override: Any = None,
        _init_backend: bool = True,
        _rank: int | None = None,
        _layout: Any = None,
        _rank_map: Any = None,
        _root_mesh: Any = None,
    ) -> None:
        if backend_override is not None or _layout is not None:
            raise NotImplementedError("DeviceMesh(backend_override=): one backend carries all groups")
        if mesh is None:
            raise ValueError("Must provide either mesh or both of _layout and _rank_map to DeviceMesh constructor.")
        if device_type != "cpu":
            raise NotImplementedError(f"DeviceMesh({device_type!r}): processes exchange tensors of the CPU")
        ranks = mesh._array if isinstance(mesh, Tensor) else np.array(mesh)
        self.device_type, self._ranks = device_type, np.asarray(ranks, np.int64)
        names = None if mesh_dim_names is None else tuple(mesh_dim_names)
        if names is not None and len(names) != self._ranks.ndim:
            raise ValueError(f"mesh_dim_names has {len(names)} names for a mesh of {self._ranks.ndim} dims")
        self.mesh_dim_names = names
        self._root: DeviceMesh | None = None
        self._groups: list[Any] = []
        self._flattened: dict[str, DeviceMesh] = {}
        if _init_backend:
            if not is_initialized():
                init_process_group()
            self._check_ranks()
            self._make_groups()
        rank = get_rank() if _rank is None and is_initialized() else _rank
        place = np.argwhere(self._ranks == rank)
        self._coordinate = place[0].tolist() if len(place) else None

    def _check_ranks(self) -> None:
        size = get_world_size()
        if self._ranks.size > size:
            raise RuntimeError(f"Mesh should not be bigger than default world size {size}, but found {self._ranks.size} ranks!")
        if len(set(self._ranks.reshape(-1).tolist())) != self._ranks.size:
            raise RuntimeError(f"a rank is twice in the mesh {self._ranks.tolist()}")

    def _make_groups(self) -> None:
        """A group for each dim; every process calls new_group for all of them, in the same order."""
        for dim in range(self._ranks.ndim):
            rows = np.moveaxis(self._ranks, dim, -1).reshape(-1, self._ranks.shape[dim]).tolist()
            name = self.mesh_dim_names[dim] if self.mesh_dim_names else f"dim_{dim}"
            mine = None
            for row in rows:
                if sorted(row) == list(range(get_world_size())) and len(rows) == 1:
                    made = default_group()
                else:
                    made = new_group(row, group_desc=f"mesh_{name}")
                if get_rank() in row:
                    mine = made
            self._groups.append(mine)

    # ------------------------------------------------------------------ what it is

    @property
    def mesh(self) -> Tensor:
        """The ranks."""
        return torch.tensor(self._ranks.tolist(), dtype=torch.int64)

    @property
    def ndim(self) -> int:
        """The number of dims."""
        return self._ranks.ndim

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of processes along each dim."""
        return tuple(self._ranks.shape)

    def size(self, mesh_dim: int | None = None) -> int:
        """The number of processes, along a dim or in all."""
        return int(self._ranks.size) if mesh_dim is None else int(self._ranks.shape[mesh_dim])

    def get_rank(self) -> int:
        """This process's rank among all."""
        return get_rank()

    def get_coordinate(self) -> list[int] | None:
        """Where this process is in the mesh; None if it is not in it."""
        return self._coordinate

    def get_local_rank(self, mesh_dim: int | str | None = None) -> int:
        """Where this process is along a dim."""
        if self.ndim > 1 and mesh_dim is None:
            raise RuntimeError(
                f"Found the DeviceMesh have {self.ndim} dimensions. Optional kwarg `mesh_dim` needs to be specified when "
                "device_mesh.ndim > 1."
            )
        if self._coordinate is None:
            raise RuntimeError("this process is not in the mesh")
        return int(self._coordinate[self._dim(mesh_dim)])

    def _dim(self, dim: int | str | None) -> int:
        if dim is None:
            return 0
        if isinstance(dim, int):
            return dim
        if self.mesh_dim_names is None or dim not in self.mesh_dim_names:
            raise KeyError(f"Invalid mesh_dim_name {dim!r}: the dims are {self.mesh_dim_names}")
        return self.mesh_dim_names.index(dim)

    def get_group(self, mesh_dim: int | str | None = None) -> Any:
        """The process group of a dim."""
        if self.ndim > 1 and mesh_dim is None:
            raise RuntimeError(
                f"Found the DeviceMesh have {self.ndim} dimensions. Optional kwarg `mesh_dim` needs to be specified when "
                "device_mesh.ndim > 1. If you want to get the list of all the ProcessGroups in the DeviceMesh, please use "
                "`get_all_groups()` instead."
            )
        if not self._groups:
            raise RuntimeError("DeviceMesh process groups not initialized!")
        return self._groups[self._dim(mesh_dim)]

    def get_all_groups(self) -> list[Any]:
        """The process groups of all dims."""
        return list(self._groups)

    # ------------------------------------------------------------------ parts

    def __getitem__(self, mesh_dim_names: str | tuple[str, ...]) -> DeviceMesh:
        """The part along one dim or some, in their order in the mesh, that this process is in."""
        if not self.mesh_dim_names:
            raise RuntimeError("Cannot slice a DeviceMesh without mesh_dim_names!")
        names = (mesh_dim_names,) if isinstance(mesh_dim_names, str) else tuple(mesh_dim_names)
        if names == self.mesh_dim_names:
            return self
        if len(names) == 1 and names[0] in self._flattened:
            return self._flattened[names[0]]
        unknown = [name for name in names if name not in self.mesh_dim_names]
        if unknown:
            known = (*self.mesh_dim_names, *self._flattened)
            raise KeyError(f"Invalid mesh_dim_names {names} specified. Valid mesh_dim_names are {known}.")
        dims = [self.mesh_dim_names.index(name) for name in names]
        if dims != sorted(dims):
            raise KeyError(f"Invalid mesh_dim_names {names} specified. Mesh dim indices should be in ascending order.")
        if self._coordinate is None:
            raise RuntimeError("this process is not in the mesh")
        chosen = tuple(slice(None) if dim in dims else at for dim, at in enumerate(self._coordinate))
        return self._part(self._ranks[chosen], names, [self._groups[dim] for dim in dims])

    def _part(self, ranks: Any, names: tuple[str, ...], groups: list[Any]) -> DeviceMesh:
        part = DeviceMesh(self.device_type, ranks, mesh_dim_names=names, _init_backend=False)
        part._groups, part._root = groups, self._root or self
        return part

    def _flatten(self, mesh_dim_name: str | None = None, backend_override: Any = None) -> DeviceMesh:
        """All dims as one, under a name by which the whole mesh knows it from then on."""
        if backend_override is not None:
            raise NotImplementedError("DeviceMesh._flatten(backend_override=)")
        root = self._root or self
        name = mesh_dim_name or "_".join(self.mesh_dim_names or ())
        if self.ndim == 1 and (mesh_dim_name is None or (name,) == self.mesh_dim_names):
            return self
        if name in root._flattened:
            return root._flattened[name]
        mine = None
        for ranks in root._parts_like(self):
            made = new_group(sorted(ranks), group_desc=f"mesh_{name}")
            if get_rank() in ranks:
                mine = made
        flat = root._part(self._ranks.reshape(-1), (name,), [mine])
        root._flattened[name] = flat
        return flat

    def _parts_like(self, part: DeviceMesh) -> list[list[int]]:
        """The ranks of every part of this mesh that has the dims of `part`."""
        names, wanted = self.mesh_dim_names or (), part.mesh_dim_names or ()
        kept = [at for at, name in enumerate(names) if name in wanted] if part is not self else list(range(self.ndim))
        others = [at for at in range(self.ndim) if at not in kept]
        moved = np.transpose(self._ranks, [*others, *kept])
        listed: list[list[int]] = moved.reshape(-1, math.prod(self._ranks.shape[at] for at in kept)).tolist()
        return listed

    @staticmethod
    def from_group(
        group: Any, device_type: str, mesh: Any = None, *, mesh_dim_names: tuple[str, ...] | None = None
    ) -> DeviceMesh:
        """A mesh of groups that exist: of one, or with `mesh` of one for each dim."""
        groups = list(group) if isinstance(group, list | tuple) else [group]
        if len(groups) > 1 and mesh is None:
            raise ValueError("Must pass mesh if passing multiple ProcessGroups")
        ranks = get_process_group_ranks(groups[0]) if mesh is None else mesh
        made = DeviceMesh(device_type, ranks, mesh_dim_names=mesh_dim_names, _init_backend=False)
        if len(groups) != made.ndim:
            raise ValueError(f"a mesh of {made.ndim} dims has as many groups, not {len(groups)}")
        made._groups = groups
        return made

    # ------------------------------------------------------------------ as a value

    def __enter__(self) -> DeviceMesh:
        _current.meshes.append(self)
        return self

    @without_signals_at_entry
    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        _current.meshes.pop()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DeviceMesh) and (
            self.device_type == other.device_type
            and self.mesh_dim_names == other.mesh_dim_names
            and np.array_equal(self._ranks, other._ranks)
        )

    def __hash__(self) -> int:
        return hash((self.device_type, self.mesh_dim_names, self.shape, tuple(self._ranks.reshape(-1).tolist())))

    def __repr__(self) -> str:
        names = self.mesh_dim_names
        shape = (
            str(self.shape) if names is None else f"({', '.join(f'{n}={s}' for n, s in zip(names, self.shape, strict=True))})"
        )
        strides = tuple(step // self._ranks.itemsize for step in np.ascontiguousarray(self._ranks).strides)
        return f"DeviceMesh({shape}, '{self.device_type}', stride={strides})"


def init_device_mesh(
    device_type: str,
    mesh_shape: tuple[int, ...],
    *,
    mesh_dim_names: tuple[str, ...] | None = None,
    backend_override: Any = None,
) -> DeviceMesh:
    """A mesh of a shape over all processes by rank; makes the default group from the environment if there is none."""
    shape = (mesh_shape,) if isinstance(mesh_shape, int) else tuple(mesh_shape)
    if mesh_dim_names is not None:
        if len(set(mesh_dim_names)) != len(mesh_dim_names):
            raise RuntimeError(
                "Each mesh_dim_name must be unique.",
                f"Found repeated mesh_dim_name in mesh_dim_names {mesh_dim_names}",
            )
        if len(shape) != len(mesh_dim_names):
            raise RuntimeError(
                "mesh_shape and mesh_dim_names should have same length!",
                f"Found len(mesh_dim_names): {len(mesh_dim_names)} and len(mesh_shape):{len(shape)}.",
            )
    if device_type and not device_type.isalpha():
        raise RuntimeError(
            f"Device type with index is not supported but got {device_type}. ",
            "If you maintained a 'torch.device' object, it's recommended to pass in 'device.type'.",
        )
    ranks = np.arange(math.prod(shape)).reshape(shape)
    return DeviceMesh(device_type, ranks, mesh_dim_names=mesh_dim_names, backend_override=backend_override)
