"""PowerSGD: gradients are sent as products of two narrow matrices, and what that leaves out is added the next time."""

# ruff: noqa: N999  torch's name of the module
from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .... import _surface as torch
from .... import linalg
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
        self.process_group = process_group
        self.matrix_approximation_rank = matrix_approximation_rank
        self.start_powerSGD_iter = start_powerSGD_iter
        self.min_compression_rate = min_compression_rate
        self.use_error_feedback, self.warm_start = use_error_feedback, warm_start
        self.orthogonalization_epsilon = orthogonalization_epsilon
        self.compression_stats_logging_frequency = max(1, compression_stats_logging_frequency)
        self.batch_tensors_with_same_shape = batch_tensors_with_same_shape
        self.rng = np.random.RandomState(random_seed)
        self.error_dict: dict[int, Tensor] = {}
        self.p_memory_dict: dict[int, Tensor] = {}
        self.q_memory_dict: dict[int, Tensor] = {}
        self.iter = 0
        self.total_numel_before_compression = self.total_numel_after_compression = 0
        self.next_stats_report = 0

    def maybe_increase_iter(self, bucket: Any) -> None:
        """Count a step with its last bucket."""
        self.iter += bucket.is_last()
        if self.iter == self.start_powerSGD_iter:
            _log.info("Start to apply PowerSGD after %s iterations.", self.iter)

    def report(self, bucket: Any) -> None:
        """Log how much was compressed, every so many steps."""
        if bucket.is_last() and self.iter >= self.next_stats_report:
            rate, before, after = self.compression_stats()
            _log.info(
                "Compression stats: iter %s, total before compression %s, total after compression %s, rate %s",
                *(self.iter, before, after, rate),
            )
            self.next_stats_report = self.iter + self.compression_stats_logging_frequency

    def compression_stats(self) -> tuple[float, int, int]:
        """The rate of compression so far, and the elements before and after."""
        after = self.total_numel_after_compression
        rate = self.total_numel_before_compression / after if after > 0 else 0
        return rate, self.total_numel_before_compression, after


def _orthogonalize(matrices: Tensor, epsilon: float) -> None:
    """Make the columns of each matrix orthogonal and of length one, in place."""
    rank = matrices.shape[-1]
    if rank > 2 and matrices.dtype not in (torch.float16, torch.bfloat16):
        matrices.copy_(linalg.qr(matrices)[0])
        return
    for at in range(rank):  # Gram and Schmidt, column by column
        column = matrices[..., at : at + 1]
        column.div_(torch.norm(column, dim=-2, keepdim=True) + epsilon)
        if at + 1 < rank:
            rest = matrices[..., at + 1 :]
            rest.sub_((column * rest).sum(dim=-2, keepdim=True) * column)


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
    before = _with_error(state, index, flat)
    by_shape: dict[tuple[int, ...], list[Tensor]] = {}
    vectors = []
    for gradient in bucket.gradients():
        matrix = gradient.view(gradient.shape[0], -1) if gradient.dim() else gradient.view(1, 1)
        worth, sent = _compressible(matrix.shape, _rank(state, matrix), state.min_compression_rate)
        state.total_numel_before_compression += gradient.numel()
        if worth:
            by_shape.setdefault(tuple(matrix.shape), []).append(matrix)
            state.total_numel_after_compression += sent
        else:
            vectors.append(gradient)
            state.total_numel_after_compression += gradient.numel()
    state.report(bucket)
    together = torch.cat([each.reshape(-1) for each in vectors]) if vectors else flat[:0].clone()
    all_reduce(together, group=group)
    _give_back(vectors, together.div_(group.size()))
    matrices = [matrix.unsqueeze(0) for alike in by_shape.values() for matrix in alike]
    if state.batch_tensors_with_same_shape:
        matrices = [torch.stack(alike) if len(alike) > 1 else alike[0].unsqueeze(0) for alike in by_shape.values()]
    _reduce_matrices(state, index, group, matrices)
    if state.batch_tensors_with_same_shape:
        for alike, stacked in zip(by_shape.values(), matrices, strict=True):
            for matrix, value in zip(alike, stacked, strict=True):
                matrix.copy_(value)
    _remember_error(state, index, before, flat)
    state.maybe_increase_iter(bucket)
    return _done(flat)


def _rank(state: PowerSGDState, matrix: Tensor) -> int:
    return min(*matrix.shape[-2:], state.matrix_approximation_rank)


def _with_error(state: PowerSGDState, index: int, flat: Tensor) -> Tensor | None:
    """Add what the last step left out; what is to be sent, None where errors are not kept."""
    if not state.use_error_feedback:
        return None
    if index in state.error_dict:
        flat.add_(state.error_dict[index])
    return flat.clone()


def _remember_error(state: PowerSGDState, index: int, before: Tensor | None, flat: Tensor) -> None:
    if before is not None:
        state.error_dict[index] = before - flat


def _give_back(tensors: list[Tensor], flat: Tensor) -> None:
    for each, part in zip(tensors, flat.split([each.numel() for each in tensors]), strict=True):
        each.copy_(part.view(each.shape))


def _reduce_matrices(state: PowerSGDState, index: int, group: Any, matrices: list[Tensor]) -> None:
    """M is replaced by P Q^T: P is the sum of M Q over the processes made orthogonal, Q the mean of M^T P."""
    ranks = [_rank(state, matrix) for matrix in matrices]
    p_shapes = [(matrix.shape[0], matrix.shape[1], rank) for matrix, rank in zip(matrices, ranks, strict=True)]
    q_shapes = [(matrix.shape[0], matrix.shape[2], rank) for matrix, rank in zip(matrices, ranks, strict=True)]
    begins = not state.warm_start or index not in state.p_memory_dict
    if begins:
        dtype = matrices[0].dtype if matrices else torch.float32
        for memory, shapes in ((state.p_memory_dict, p_shapes), (state.q_memory_dict, q_shapes)):
            memory[index] = torch.empty(sum(map(math.prod, shapes)), dtype=dtype)
    p_flat, q_flat = state.p_memory_dict[index], state.q_memory_dict[index]
    ps, qs = _views(p_flat, p_shapes), _views(q_flat, q_shapes)
    if begins:  # with the same numbers in every process
        generator = torch.Generator().manual_seed(state.rng.randint(1_000_000_000))
        for q in qs:
            q.copy_(torch.randn(*q.shape, dtype=q.dtype, generator=generator))
    for q in qs:
        _orthogonalize(q, state.orthogonalization_epsilon)
    for matrix, p, q in zip(matrices, ps, qs, strict=True):
        torch.bmm(matrix, q, out=p)
    all_reduce(p_flat, group=group)
    for p in ps:
        _orthogonalize(p, state.orthogonalization_epsilon)
    for matrix, p, q in zip(matrices, ps, qs, strict=True):
        torch.bmm(matrix.transpose(1, 2), p, out=q)
    all_reduce(q_flat, group=group)
    q_flat.div_(group.size())
    for matrix, p, q in zip(matrices, ps, qs, strict=True):
        torch.bmm(p, q.transpose(1, 2), out=matrix)
    if not state.warm_start:
        state.p_memory_dict.clear()
        state.q_memory_dict.clear()


def _views(flat: Tensor, shapes: Sequence[tuple[int, ...]]) -> list[Tensor]:
    parts = flat.split([math.prod(shape) for shape in shapes])
    return [part.view(shape) for part, shape in zip(parts, shapes, strict=True)]


def batched_powerSGD_hook(state: PowerSGDState, bucket: Any) -> Future[Tensor]:  # noqa: N802
    """The same for a whole bucket as one square matrix."""
    group = group_or_default(state.process_group)
    flat = bucket.buffer()
    if state.iter < state.start_powerSGD_iter:
        state.maybe_increase_iter(bucket)
        return default_hooks.allreduce_hook(group, bucket)
    index, count = bucket.index(), flat.numel()
    side = math.ceil(math.sqrt(count))
    state.total_numel_before_compression += count
    state.total_numel_after_compression += side * state.matrix_approximation_rank * 2
    state.report(bucket)
    padded = torch.zeros(side * side, dtype=flat.dtype)
    padded[:count] = flat
    before = _with_error(state, index, padded)
    _reduce_matrices(state, index, group, [padded.view(1, side, side)])
    _remember_error(state, index, before, padded)
    flat.copy_(padded[:count])
    state.maybe_increase_iter(bucket)
    return _done(flat)
