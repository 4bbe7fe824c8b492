"""torch.distributed.utils: private helpers that libraries import."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._autograd.grad_mode import no_grad
from ._collectives import broadcast


def _sync_module_states(
    module: Any,
    process_group: Any,
    broadcast_bucket_size: int,
    src: int,
    params_and_buffers_to_ignore: Sequence[str],
    broadcast_buffers: bool = True,
) -> None:
    """Give a module's parameters and buffers the values of one process, a tensor at a time whatever the bucket's size."""
    named = [*module.named_parameters(), *(module.named_buffers() if broadcast_buffers else ())]
    with no_grad():
        for name, tensor in named:
            if name not in params_and_buffers_to_ignore:
                broadcast(tensor.detach(), src, group=process_group)
