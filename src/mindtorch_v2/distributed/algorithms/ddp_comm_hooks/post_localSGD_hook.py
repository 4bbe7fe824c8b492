"""Post-local SGD: gradients are averaged over all processes at first, later over those of a machine alone."""

# ruff: noqa: N999  torch's name of the module
from __future__ import annotations

from typing import Any

from ...._core.tensor import Tensor
from ....futures import Future
from ..._groups import new_subgroups
from .debugging_hooks import noop_hook
from .default_hooks import allreduce_hook

__all__ = ["PostLocalSGDState", "post_localSGD_hook"]


class PostLocalSGDState:
    """The state of `post_localSGD_hook`. A model averager keeps the parameters together after `start_localSGD_iter` steps."""

    def __init__(
        self,
        process_group: Any,
        subgroup: Any,
        start_localSGD_iter: int,  # noqa: N803
        post_local_gradient_allreduce: bool = True,
    ) -> None:
        """`subgroup` None: the processes of each machine. Without the last, gradients stay in their process later."""
        self.process_group, self.subgroup = process_group, subgroup
        self.start_localSGD_iter = start_localSGD_iter
        self.post_local_gradient_allreduce = post_local_gradient_allreduce
        self.iter = 0

    def maybe_increase_iter(self, bucket: Any) -> None:
        """Count a step: at its last bucket."""
        if bucket.is_last():
            self.iter += 1


def post_localSGD_hook(state: PostLocalSGDState, bucket: Any) -> Future[Tensor]:  # noqa: N802
    """The mean over all processes in the first steps, over the subgroup from then on."""
    if state.iter < state.start_localSGD_iter:
        state.maybe_increase_iter(bucket)
        return allreduce_hook(state.process_group, bucket)
    if not state.post_local_gradient_allreduce:
        return noop_hook(None, bucket)
    if state.subgroup is None:
        state.subgroup, _ = new_subgroups()
    return allreduce_hook(state.subgroup, bucket)
