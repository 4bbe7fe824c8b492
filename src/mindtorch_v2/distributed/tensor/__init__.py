"""torch.distributed.tensor: the class for `isinstance` and the kinds of placement; no tensor is spread over processes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

from ..._core.tensor import Tensor

__all__ = ["DTensor", "Partial", "Placement", "Replicate", "Shard", "distribute_module", "distribute_tensor"]

_REASON = "there are no communication backends"


class DTensor(Tensor):
    """A tensor spread over processes, of which no tensor is one."""

    def __new__(cls, *args: Any, **kwargs: Any) -> NoReturn:  # type: ignore[misc]
        """NotImplementedError: there is no mesh to spread a tensor over."""
        raise NotImplementedError(f"torch.distributed.tensor.DTensor: {_REASON}")

    @staticmethod
    def from_local(*args: Any, **kwargs: Any) -> NoReturn:
        """NotImplementedError: there is no mesh to spread a tensor over."""
        raise NotImplementedError(f"torch.distributed.tensor.DTensor.from_local: {_REASON}")


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


@dataclass(frozen=True)
class Replicate(Placement):
    """Each process has all of it."""


@dataclass(frozen=True)
class Partial(Placement):
    """The processes' values have to be reduced first."""

    reduce_op: str = "sum"


def distribute_tensor(*args: Any, **kwargs: Any) -> NoReturn:
    """NotImplementedError: there is no mesh to spread a tensor over."""
    raise NotImplementedError(f"torch.distributed.tensor.distribute_tensor: {_REASON}")


def distribute_module(*args: Any, **kwargs: Any) -> NoReturn:
    """NotImplementedError: there is no mesh to spread a module over."""
    raise NotImplementedError(f"torch.distributed.tensor.distribute_module: {_REASON}")
