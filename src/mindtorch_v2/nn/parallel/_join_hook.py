"""What DistributedDataParallel does in a process that has no batches left, so that the others can go on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...distributed.algorithms.join import JoinHook

if TYPE_CHECKING:
    from .distributed import DistributedDataParallel


class DDPJoinHook(JoinHook):
    """Takes part in the reductions of the others' batches with zeros, and ends with the last process's buffers."""

    def __init__(self, model: DistributedDataParallel, divide_by_initial_world_size: bool) -> None:
        self._model = model
        model.reducer.divides_by_all = divide_by_initial_world_size

    def main_hook(self) -> None:
        """One batch of the others."""
        model = self._model
        will_average = model._share(0.0)
        if model.will_sync_module_buffers():
            model._sync_buffers(has_batch=False)
        if will_average:
            model.reducer.reduce_zeros()

    def post_hook(self, is_last_joiner: bool) -> None:
        """All have the parameters and buffers of a process with the most batches."""
        model = self._model
        model._broadcast([*model.module.parameters(), *model._buffers_to_sync()], model._common_rank(is_last_joiner))
