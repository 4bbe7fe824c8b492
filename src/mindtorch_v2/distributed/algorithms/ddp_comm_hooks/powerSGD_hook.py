"""PowerSGD: gradients are sent as products of two narrow matrices, and what that leaves out is added the next time."""

# ruff: noqa: N999  torch's name of the module
from __future__ import annotations

import logging
import math
from typing import Any

from .... import _surface as torch
from ...._core.tensor import Tensor
from ....futures import Future
from ..._collectives import all_reduce
from ..._groups import group_or_default
from . import default_hooks

_log = logging.getLogger(__name__)

__all__ = ["PowerSGDState", "batched_powerSGD_hook", "powerSGD_hook"]


class PowerSGDState:
    """How narrow the matrices are, when compression begins, and the errors of the last step by bucket."""

    def __init__(
        self,
        process_group: Any,
        matrix_approximation_rank: int = 1,
        start_powerSGD_iter: int = 1_000,  # noqa: N803  torch's name
        min_compression_rate: float = 2,
        use_error_feedback: bool = True,
        warm_start: bool = True,
        orthogonalization_epsilon: float = 0,
        random_seed: int = 0,
        compression_stats_logging_frequency: int = 10_000,
        batch_tensors_with_same_shape: bool = False,
    ) -> None:
        if (use_error_feedback or warm_start) and start_powerSGD_iter <= 1:
            raise ValueError(
                "Expect `start_powerSGD_iter` > 1 if `use_error_feedback` or `warm_start` is enabled, because PowerSGD can "
                "only be applied after the first two iterations in DDP."
            )
        if batch_tensors_with_same_shape:
            raise NotImplementedError("PowerSGDState(batch_tensors_with_same_shape=True)")
        self.process_group = process_group
        self.matrix_approximation_rank = matrix_approximation_rank
        self.start_powerSGD_iter = start_powerSGD_iter
        self.min_compression_rate = min_compression_rate
        self.use_error_feedback, self.warm_start = use_error_feedback, warm_start
        self.orthogonalization_epsilon = orthogonalization_epsilon
        self.compression_stats_logging_frequency = max(1, compression_stats_logging_frequency)
        self.batch_tensors_with_same_shape = False
        self.generator = torch.Generator().manual_seed(random_seed)
        self.error_dict: dict[int, Tensor] = {}
        self.p_memory_dict: dict[int, Tensor] = {}
        self.q_memory_dict: dict[int, Tensor] = {}
        self.iter = 0
        self.total_numel_before_compression = self.total_numel_after_compression = 0
        self.next_stats_report = 0

    def maybe_increase_iter(self, bucket: Any) -> None:
        """Count a step with its last bucket."""
        if not bucket.is_last():
            return
        self.iter += 1
        if self.iter >= self.start_powerSGD_iter and self.iter >= self.next_stats_report:
            self.next_stats_report = self.iter + self.compression_stats_logging_frequency
            _log.info("Compression stats: iter %s, rate %s, total before %s, after %s", self.iter, *self.compression_stats())

    def compression_stats(self) -> tuple[float, int, int]:
        """The rate of compression so far, and the elements before and after."""
        after = self.total_numel_after_compression
        rate = self.total_numel_before_compression / after if after > 0 else 0
        return rate, self.total_numel_before_compression, after


def _orthogonalize(matrix: Tensor, epsilon: float) -> None:
    """Make the columns orthogonal and of length one, in place: Gram and Schmidt, column by column."""
    for at in range(matrix.shape[-1]):
        column = matrix[..., at : at + 1]
        length = (column * column).sum(dim=-2, keepdim=True).sqrt()
        column.div_(torch.where(length == 0, torch.ones_like(length), length) if epsilon == 0 else length + epsilon)
        if at + 1 < matrix.shape[-1]:
            rest = matrix[..., at + 1 :]
            rest.sub_((column * rest).sum(dim=-2, keepdim=True) * column)


def _mean(group: Any, tensor: Tensor) -> Tensor:
    all_reduce(tensor, group=group)
    return tensor.div_(group.size())


def _compressible(shape: tuple[int, ...], rank: int, least: float) -> tuple[bool, int]:
    """Whether a matrix is worth it, and the elements that are sent then."""
    rows, columns = shape
    sent = (rows + columns) * rank
    return sent * least < rows * columns, sent


def _done(tensor: Tensor) -> Future[Tensor]:
    future: Future[Tensor] = Future()
    future.set_result(tensor)
    return future


def powerSGD_hook(state: PowerSGDState, bucket: Any) -> Future[Tensor]:  # noqa: N802  torch's name
    """Send each matrix of a bucket as two narrow ones, and the rest, vectors, as they are."""
    group = group_or_default(state.process_group)
    flat = bucket.buffer()
    if state.iter < state.start_powerSGD_iter:
        state.maybe_increase_iter(bucket)
        return default_hooks.allreduce_hook(group, bucket)
    index = bucket.index()
    before = None
    if state.use_error_feedback:
        if index in state.error_dict:
            flat.add_(state.error_dict[index])
        before = flat.clone()
    matrices, vectors = [], []
    for gradient in bucket.gradients():
        matrix = gradient.view(gradient.shape[0], -1) if gradient.dim() else gradient.view(1, 1)
        rank = min(*matrix.shape, state.matrix_approximation_rank)
        worth, sent = _compressible(tuple(matrix.shape), rank, state.min_compression_rate)
        state.total_numel_before_compression += gradient.numel()
        if worth:
            matrices.append((matrix, rank))
            state.total_numel_after_compression += sent
        else:
            vectors.append(gradient)
            state.total_numel_after_compression += gradient.numel()
    if vectors:
        together = _mean(group, torch.cat([each.reshape(-1) for each in vectors]))
        _give_back(vectors, together)
    if matrices:
        _reduce_matrices(state, index, group, matrices, flat.dtype)
    if before is not None:
        state.error_dict[index] = before - flat
    state.maybe_increase_iter(bucket)
    return _done(flat)


def _give_back(tensors: list[Tensor], flat: Tensor) -> None:
    at = 0
    for each in tensors:
        each.copy_(flat[at : at + each.numel()].view(each.shape))
        at += each.numel()


def _reduce_matrices(state: PowerSGDState, index: int, group: Any, matrices: list[tuple[Tensor, int]], dtype: Any) -> None:
    """M is replaced by P Q^T: P is the mean of M Q made orthogonal, Q the mean of M^T P."""
    rows = [matrix.shape[0] * rank for matrix, rank in matrices]
    columns = [matrix.shape[1] * rank for matrix, rank in matrices]
    kept = state.warm_start and index in state.p_memory_dict and state.p_memory_dict[index].numel() == sum(rows)
    if not kept:
        state.p_memory_dict[index] = torch.empty(sum(rows), dtype=dtype)
        state.q_memory_dict[index] = torch.randn(sum(columns), generator=state.generator, dtype=dtype)
    p_flat, q_flat = state.p_memory_dict[index], state.q_memory_dict[index]
    ps = _views(p_flat, [(matrix.shape[0], rank) for matrix, rank in matrices])
    qs = _views(q_flat, [(matrix.shape[1], rank) for matrix, rank in matrices])
    for q in qs:
        _orthogonalize(q, state.orthogonalization_epsilon)
    for (matrix, _), p, q in zip(matrices, ps, qs, strict=True):
        torch.matmul(matrix, q, out=p)
    _mean(group, p_flat)
    for p in ps:
        _orthogonalize(p, state.orthogonalization_epsilon)
    for (matrix, _), p, q in zip(matrices, ps, qs, strict=True):
        torch.matmul(matrix.t(), p, out=q)
    _mean(group, q_flat)
    for (matrix, _), p, q in zip(matrices, ps, qs, strict=True):
        torch.matmul(p, q.t(), out=matrix)


def _views(flat: Tensor, shapes: list[tuple[int, int]]) -> list[Tensor]:
    views, at = [], 0
    for shape in shapes:
        count = math.prod(shape)
        views.append(flat[at : at + count].view(shape))
        at += count
    return views


def batched_powerSGD_hook(state: PowerSGDState, bucket: Any) -> Future[Tensor]:  # noqa: N802
    """The same for a whole bucket as one square matrix."""
    group = group_or_default(state.process_group)
    flat = bucket.buffer()
    if state.iter < state.start_powerSGD_iter:
        state.maybe_increase_iter(bucket)
        return default_hooks.allreduce_hook(group, bucket)
    index, count = bucket.index(), flat.numel()
    side = math.ceil(math.sqrt(count))
    padded = torch.zeros(side * side, dtype=flat.dtype)
    padded[:count] = flat
    before = None
    if state.use_error_feedback:
        if index in state.error_dict:
            padded.add_(state.error_dict[index])
        before = padded.clone()
    matrix = padded.view(side, side)
    _reduce_matrices(state, index, group, [(matrix, min(side, state.matrix_approximation_rank))], flat.dtype)
    if before is not None:
        state.error_dict[index] = before - padded
    flat.copy_(padded[:count])
    state.maybe_increase_iter(bucket)
    return _done(flat)
