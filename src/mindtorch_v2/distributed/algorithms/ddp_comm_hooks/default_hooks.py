"""Communication hooks: the mean as it is, or sent in 16 bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...._core.dtype import DTYPES
from ...._core.tensor import Tensor
from ....futures import Future
from ..._collectives import all_reduce
from ..._groups import group_or_default

__all__ = ["allreduce_hook", "bf16_compress_hook", "bf16_compress_wrapper", "fp16_compress_hook", "fp16_compress_wrapper"]

Hook = Callable[[Any, Any], Future[Tensor]]


def _mean(group: Any, tensor: Tensor) -> Future[Tensor]:
    """The mean of a tensor over the processes, in place."""
    group = group_or_default(group)
    work = all_reduce(tensor.div_(group.size()), group=group, async_op=True)
    assert work is not None
    return work.get_future().then(lambda done: done.value()[0])


def allreduce_hook(process_group: Any, bucket: Any) -> Future[Tensor]:
    """The mean: what is done without a hook."""
    return _mean(process_group, bucket.buffer())


def _compressed(process_group: Any, bucket: Any, dtype: str) -> Future[Tensor]:
    buffer = bucket.buffer()
    sent = buffer.to(DTYPES[dtype])
    return _mean(process_group, sent).then(lambda done: buffer.copy_(done.value()))


def fp16_compress_hook(process_group: Any, bucket: Any) -> Future[Tensor]:
    """The mean, sent as float16."""
    return _compressed(process_group, bucket, "float16")


def bf16_compress_hook(process_group: Any, bucket: Any) -> Future[Tensor]:
    """The mean, sent as bfloat16."""
    return _compressed(process_group, bucket, "bfloat16")


def _wrapped(hook: Hook, dtype: str) -> Hook:
    def compressed(state: Any, bucket: Any) -> Future[Tensor]:
        whole = bucket.buffer()
        bucket.set_buffer(whole.to(DTYPES[dtype]))
        return hook(state, bucket).then(lambda done: whole.copy_(done.value()))

    return compressed


def fp16_compress_wrapper(hook: Hook) -> Hook:
    """Another hook that gets and gives gradients as float16."""
    return _wrapped(hook, "float16")


def bf16_compress_wrapper(hook: Hook) -> Hook:
    """Another hook that gets and gives gradients as bfloat16."""
    return _wrapped(hook, "bfloat16")
