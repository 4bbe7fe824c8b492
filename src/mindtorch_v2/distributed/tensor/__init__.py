"""torch.distributed.tensor: DTensor as a share of a parameter with its placement, which `fully_shard` makes; no sharding rules.

Ops run on the process's own part. `full_tensor()` gathers the whole, `to_local()` gives the part as a plain tensor.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

from ... import _surface as torch
from ..._core.tensor import Tensor
from ..._dispatch.interception import disabled_torch_function
from .._absent import absent_function
from .._collectives import all_gather
from ..device_mesh import DeviceMesh, init_device_mesh

__all__ = [
    "DTensor",
    "DeviceMesh",
    "Partial",
    "Placement",
    "Replicate",
    "Shard",
    "distribute_module",
    "distribute_tensor",
    "empty",
    "full",
    "init_device_mesh",
    "ones",
    "rand",
    "randn",
    "zeros",
]

_REASON = "there are no sharding rules of ops; fully_shard shards parameters"


class Placement:
    """How a tensor is spread along one dim of a mesh."""

    def is_shard(self, dim: int | None = None) -> bool:
        """Whether each process has a part, along `dim` if given."""
        return isinstance(self, Shard) and (dim is None or self.dim == dim)

    def is_replicate(self) -> bool:
        """Whether each process has all of it."""
        return isinstance(self, Replicate)

    def is_partial(self, reduce_op: str | None = None) -> bool:
        """Whether the processes' values have to be reduced first."""
        return isinstance(self, Partial) and (reduce_op is None or self.reduce_op == reduce_op)


@dataclass(frozen=True)
class Shard(Placement):
    """Each process has a part along a dim."""

    dim: int

    @staticmethod
    def local_shard_size_and_offset(curr_local_size: int, num_chunks: int, rank: int) -> tuple[int, int]:
        """How long the part of a rank is and where it begins, as `torch.chunk` divides."""
        longest = -(-curr_local_size // num_chunks)
        begin = min(longest * rank, curr_local_size)
        return min(longest, curr_local_size - begin), begin


@dataclass(frozen=True)
class Replicate(Placement):
    """Each process has all of it."""


@dataclass(frozen=True)
class Partial(Placement):
    """The processes' values have to be reduced first."""

    reduce_op: str = "sum"


class DTensor(Tensor):
    """A process's part of a tensor that is spread over a mesh. It holds the part: its shape is the part's.

    Made by `fully_shard` and `distribute_tensor`; `device_mesh`, `placements` and `full_shape` say what it is a part of.
    """

    device_mesh: DeviceMesh
    placements: tuple[Placement, ...]
    full_shape: tuple[int, ...]

    # Results of ops are plain tensors: they are computed from the part alone.
    __torch_function__ = disabled_torch_function  # type: ignore[assignment]

    @staticmethod
    def from_local(
        local_tensor: Tensor,
        device_mesh: DeviceMesh | None = None,
        placements: Any = None,
        *,
        run_check: bool = False,
        shape: Any = None,
        stride: Any = None,
    ) -> DTensor:
        """A part as a DTensor. Without `shape` all processes have parts of the same size."""
        if device_mesh is None or device_mesh.ndim != 1:
            raise NotImplementedError("DTensor.from_local: a mesh of one dim must be given")
        if run_check or stride is not None:
            raise NotImplementedError("DTensor.from_local(run_check=, stride=)")
        placement = _only(placements)
        if shape is None:
            shape = list(local_tensor.shape)
            if isinstance(placement, Shard):
                shape[placement.dim] *= device_mesh.size()
        return as_dtensor(local_tensor.detach(), device_mesh, placement, tuple(shape))

    def to_local(self, *, grad_placements: Any = None) -> Tensor:
        """This process's part as a plain tensor that shares its memory."""
        return super().detach().as_subclass(Tensor)  # type: ignore[no-any-return]

    def detach(self) -> Any:
        """The same part of the same whole, without history."""
        return as_dtensor(self.to_local(), self.device_mesh, self.placements[0], self.full_shape)

    def full_tensor(self, *, grad_placements: Any = None) -> Tensor:
        """The whole tensor, gathered from all processes, which call this together."""
        placement, group = self.placements[0], self.device_mesh.get_group()
        local = self.to_local()
        if isinstance(placement, Replicate):
            return local.clone()
        if not isinstance(placement, Shard):
            raise NotImplementedError("DTensor.full_tensor of a partial tensor")
        return gather_shards(local, placement.dim, self.full_shape, group)

    def redistribute(self, *args: Any, **kwargs: Any) -> NoReturn:
        """NotImplementedError: see full_tensor()."""
        raise NotImplementedError(f"DTensor.redistribute: {_REASON}")


def _only(placements: Any) -> Placement:
    listed = [Replicate()] if placements is None else list(placements)
    if len(listed) != 1:
        raise NotImplementedError("placements on a mesh of more than one dim")
    return listed[0]  # type: ignore[no-any-return]


def as_dtensor(local: Tensor, mesh: DeviceMesh, placement: Placement, shape: tuple[int, ...]) -> DTensor:
    """A part with what it is a part of."""
    made = local.as_subclass(DTensor)
    made.device_mesh, made.placements, made.full_shape = mesh, (placement,), tuple(shape)
    return made  # type: ignore[no-any-return]


def shard_bounds(size: int, parts: int, number: int) -> tuple[int, int]:
    """Where part `number` of a dim begins and ends, as torch.chunk cuts it: the last parts may be smaller or empty."""
    each = -(-size // parts)
    return min(each * number, size), min(each * (number + 1), size)


def gather_shards(local: Tensor, dim: int, shape: tuple[int, ...], group: Any) -> Tensor:
    """The whole of which every process of a group has a part along a dim."""
    each = -(-shape[dim] // group.size()) if shape[dim] else 0
    padded_shape = [*local.shape[:dim], each, *local.shape[dim + 1 :]]
    padded = torch.zeros(padded_shape, dtype=local.dtype)
    padded.narrow(dim, 0, local.shape[dim]).copy_(local)
    parts = [torch.empty(padded_shape, dtype=local.dtype) for _ in range(group.size())]
    all_gather(parts, padded, group=group)
    return torch.cat(parts, dim).narrow(dim, 0, shape[dim]).contiguous()


def distribute_tensor(
    tensor: Tensor, device_mesh: DeviceMesh | None = None, placements: Any = None, *, src_data_rank: int | None = 0
) -> DTensor:
    """This process's part of a tensor; with `src_data_rank` all take that process's values."""
    from .._collectives import broadcast

    if device_mesh is None or device_mesh.ndim != 1:
        raise NotImplementedError("distribute_tensor: a mesh of one dim must be given")
    placement, group = _only(placements), device_mesh.get_group()
    whole = tensor.detach().clone()
    if src_data_rank is not None:
        broadcast(whole, group=group, group_src=src_data_rank)
    if isinstance(placement, Partial):
        raise NotImplementedError("distribute_tensor to a partial tensor")
    if isinstance(placement, Shard):
        begin, end = shard_bounds(whole.shape[placement.dim], group.size(), group.rank())
        local = whole.narrow(placement.dim, begin, end - begin).clone()
        return as_dtensor(local, device_mesh, placement, tuple(whole.shape))
    return as_dtensor(whole, device_mesh, placement, tuple(whole.shape))


def distribute_module(*args: Any, **kwargs: Any) -> NoReturn:
    """NotImplementedError: ops have no sharding rules."""
    raise NotImplementedError(f"torch.distributed.tensor.distribute_module: {_REASON}")


# distribute_tensor makes a DTensor of a plain tensor.
empty = absent_function(__name__, "empty")
full = absent_function(__name__, "full")
ones = absent_function(__name__, "ones")
rand = absent_function(__name__, "rand")
randn = absent_function(__name__, "randn")
zeros = absent_function(__name__, "zeros")
