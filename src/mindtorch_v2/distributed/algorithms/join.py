"""torch.distributed.algorithms.join: processes with fewer batches than others go on to take part in their collectives."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Any, NamedTuple

from ... import _surface as torch
from ..._core.cpython import without_signals_at_entry
from ..._core.tensor import Tensor

__all__ = ["Join", "JoinHook", "Joinable"]


class JoinHook:
    """What a process that has no batches left does in place of a batch, and when all have none."""

    def main_hook(self) -> None:
        """Once for each batch that other processes still have: the collectives of one batch."""

    def post_hook(self, is_last_joiner: bool) -> None:
        """When no process has a batch left."""


class Joinable(ABC):
    """Something whose batches need collectives, such as DistributedDataParallel."""

    @abstractmethod
    def __init__(self) -> None:
        super().__init__()
        self._join_config = _JoinConfig.construct_disabled_join_config()

    @abstractmethod
    def join_hook(self, **kwargs: Any) -> JoinHook:
        """The hook for processes that have no batches left."""

    @property
    @abstractmethod
    def join_device(self) -> Any:
        """The device of the tensors by which processes tell each other that they go on."""

    @property
    @abstractmethod
    def join_process_group(self) -> Any:
        """The processes that take part."""


class _JoinConfig(NamedTuple):
    """Set in a Joinable by the block that it is used in."""

    enable: bool
    throw_on_early_termination: bool
    is_first_joinable: bool

    @staticmethod
    def construct_disabled_join_config() -> _JoinConfig:
        return _JoinConfig(enable=False, throw_on_early_termination=False, is_first_joinable=False)


class Join:
    """`with Join([model]):` around the loop over batches, which may have another number of them in each process."""

    def __init__(
        self, joinables: list[Joinable], enable: bool = True, throw_on_early_termination: bool = False, **kwargs: Any
    ) -> None:
        if not joinables:
            raise ValueError("The join context manager requires at least one joinable")
        self._joinables = joinables
        self._hooks = [joinable.join_hook(**kwargs) for joinable in joinables]
        self._enable, self._throw = enable, throw_on_early_termination
        for at, joinable in enumerate(joinables):
            joinable._join_config = _JoinConfig(enable, throw_on_early_termination, is_first_joinable=at == 0)
        if len({id(joinable.join_process_group) for joinable in joinables}) > 1:
            raise ValueError("Using join context manager with multiple process groups")
        self._group = joinables[0].join_process_group
        self._rank: int = self._group.rank()

    def __enter__(self) -> Join:
        """As a block."""
        return self

    @without_signals_at_entry
    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        """Take part in the others' collectives until no process has a batch left."""
        if not self._enable or kind is not None:
            return
        is_last = True
        warned = 0
        while True:
            left = self._count_that_go_on()
            if left == 0:
                break
            if self._throw:
                self._tell_early_end()
            is_last = False
            for hook in self._hooks:
                hook.main_hook()
            warned += 1
            if warned == 1001:
                warnings.warn(
                    "Detected uneven input skew of greater than 1000. This means that rank "
                    f"{self._rank} has at least 1000 fewer inputs than other currently-active ranks. This level of skew could "
                    "lead to performance degradation during training.",
                    stacklevel=2,
                )
        for hook in self._hooks:
            hook.post_hook(is_last)

    def _count_that_go_on(self) -> int:
        counts = torch.zeros(1)
        _all_reduce(counts, self._group)
        return int(counts.item())

    def _tell_early_end(self) -> None:
        ones = torch.ones(1)
        _all_reduce(ones, self._group)
        raise RuntimeError(f"Rank {self._rank} exhausted all inputs.")

    @staticmethod
    def notify_join_context(joinable: Joinable) -> Any:
        """Tell the processes without batches that this one has another; called by a Joinable before its collectives."""
        config = joinable._join_config
        if not config.is_first_joinable or not config.enable:
            return None
        ones = torch.ones(1)
        work = _all_reduce(ones, joinable.join_process_group, async_op=True)
        if config.throw_on_early_termination:
            zeros: Tensor = torch.zeros(1)
            _all_reduce(zeros, joinable.join_process_group)
            if zeros.item() != 0:
                raise RuntimeError("Detected at least one rank that exhausted inputs. Throwing across all ranks.")
        return _Notified(work, ones)


class _Notified:
    """The counting of processes that have a batch: its work, and the tensor that has the count when it is done."""

    def __init__(self, work: Any, active: Tensor) -> None:
        self.work, self.active = work, active

    def wait(self) -> bool:
        """Return when the count is known."""
        return bool(self.work.wait())


def _all_reduce(tensor: Tensor, group: Any, async_op: bool = False) -> Any:
    # Not at import: nn imports this module, and a program of one process needs no collectives.
    from .._collectives import all_reduce

    return all_reduce(tensor, group=group, async_op=async_op)
