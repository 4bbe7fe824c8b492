"""Reducer: gradients of a module that runs in several processes, averaged bucket by bucket while the backward pass goes on.

A bucket is a flat tensor with the gradients of some parameters, in the order in which they usually come. When the last of them
has come, its all-reduce begins; when the backward pass ends, the reducer waits for all buckets and hands the means on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import _surface as torch
from ..._autograd.engine import queue_callback
from ..._autograd.grad_mode import no_grad
from ..._core.tensor import Tensor
from ..._dispatch.observer import span
from ...futures import Future

FIRST_BUCKET_BYTES = 1 << 20


class GradBucket:
    """What a communication hook gets: the gradients of one bucket, summed up by it over the processes."""

    def __init__(self, index: int, buffer: Tensor, parameters: Sequence[Tensor], is_last: bool) -> None:
        self._index, self._buffer, self._parameters, self._is_last = index, buffer, list(parameters), is_last

    def index(self) -> int:
        """Which bucket it is; the first one is ready first."""
        return self._index

    def buffer(self) -> Tensor:
        """All gradients as one flat tensor."""
        return self._buffer

    def set_buffer(self, buffer: Tensor) -> None:
        """Put another flat tensor in its place."""
        self._buffer = buffer

    def gradients(self) -> list[Tensor]:
        """The gradients, as views of the buffer."""
        return _views(self._buffer, self._parameters)

    def parameters(self) -> list[Tensor]:
        """The parameters whose gradients they are."""
        return self._parameters

    def is_last(self) -> bool:
        """Whether no bucket of this backward pass comes after it."""
        return self._is_last


def _views(flat: Tensor, parameters: Sequence[Tensor]) -> list[Tensor]:
    views, at = [], 0
    for parameter in parameters:
        count = parameter.numel()
        views.append(flat.narrow(0, at, count).view(parameter.shape))
        at += count
    return views


class _Bucket:
    """Parameters of one dtype and device, and the flat tensor with their gradients."""

    def __init__(self, numbers: list[int], parameters: list[Tensor]) -> None:
        self.numbers, self.parameters = numbers, parameters
        like, count = parameters[0], sum(each.numel() for each in parameters)
        self.flat: Tensor = torch.zeros(count, dtype=like.dtype, device=like.device)
        self.views = _views(self.flat, parameters)
        self.pending: set[int] = set()
        self.future: Future[Any] | None = None


def assign_buckets(parameters: Sequence[Tensor], limits: Sequence[int]) -> list[list[int]]:
    """Numbers of parameters, bucket by bucket: each of one dtype and device, and closed when it has reached its limit of bytes.

    The first bucket of a dtype has the first limit, the next one the next, the last one stays.
    """
    open_buckets: dict[Any, list[int]] = {}
    sizes: dict[Any, int] = {}
    closed: dict[Any, int] = {}
    buckets: list[list[int]] = []
    for number, parameter in enumerate(parameters):
        kind = parameter.dtype, parameter.device
        bucket = open_buckets.setdefault(kind, [])
        bucket.append(number)
        sizes[kind] = sizes.get(kind, 0) + parameter.numel() * parameter.element_size()
        if sizes[kind] >= limits[min(closed.get(kind, 0), len(limits) - 1)]:
            buckets.append(open_buckets.pop(kind))
            sizes[kind] = 0
            closed[kind] = closed.get(kind, 0) + 1
    buckets += [bucket for bucket in open_buckets.values() if bucket]
    return sorted(buckets, key=min)


class Reducer:
    """Averages the gradients of parameters over a process group, from `prepare` before a backward pass to its end."""

    def __init__(
        self,
        parameters: list[Tensor],
        names: list[str],
        group: Any,
        bucket_bytes: int,
        *,
        find_unused: bool,
        as_views: bool,
        static_graph: bool,
    ) -> None:
        self._parameters, self._names, self._group = parameters, names, group
        self._bucket_bytes = bucket_bytes
        self._find_unused, self._as_views, self._static = find_unused, as_views, static_graph
        self._hook: tuple[Any, Any] | None = None
        self._unused: set[int] | None = None  # of a static graph, once known
        self._arrivals: list[int] = []
        self._ordered = False  # whether buckets are in the order in which gradients come
        self._has_reduced = False
        self.divisor = group.size()  # of the sum of gradients
        self.divides_by_all = True  # also where processes have no batches left
        self._expects = False
        self._begun = False
        self._make_buckets([FIRST_BUCKET_BYTES, bucket_bytes])
        for number, parameter in enumerate(parameters):
            parameter.register_post_accumulate_grad_hook(lambda _, number=number: self._ready(number))

    def set_hook(self, state: Any, hook: Any) -> None:
        """Have a communication hook reduce the buckets."""
        self._hook = state, hook

    def _make_buckets(self, limits: Sequence[int], order: Sequence[int] | None = None) -> None:
        # Gradients come in the reverse order of the parameters until it is known better.
        order = list(order) if order is not None else list(range(len(self._parameters)))[::-1]
        assigned = assign_buckets([self._parameters[number] for number in order], limits)
        with no_grad():
            self._buckets = [
                _Bucket([order[at] for at in bucket], [self._parameters[order[at]] for at in bucket]) for bucket in assigned
            ]
        self._bucket_of = {number: bucket for bucket in self._buckets for number in bucket.numbers}
        self._place = {number: at for bucket in self._buckets for at, number in enumerate(bucket.numbers)}

    # ------------------------------------------------------------------ one backward pass

    def prepare(self, outputs: Sequence[Tensor]) -> None:
        """Expect gradients of a backward pass from these outputs."""
        if self._expects and self._begun:
            self._raise_unfinished()
        if len(self._arrivals) == len(self._parameters):
            self._order_buckets()
        self._arrivals = []
        self._expects, self._begun = True, False
        self._next = 0
        self._used = [0] * len(self._parameters)
        for bucket in self._buckets:
            bucket.pending, bucket.future = set(bucket.numbers), None
        self._left_out: set[int] = set()
        if self._find_unused:
            with span("torch.distributed.ddp.reducer::search_unused_parameters"):
                self._left_out = _unused(outputs, self._parameters)
        elif self._static and self._unused is not None:
            self._left_out = set(self._unused)

    def _order_buckets(self) -> None:
        """Once: buckets in the order in which gradients came in the group's first process, which all must have."""
        from ...distributed import broadcast

        if self._ordered or self._find_unused or not self._has_reduced:
            return
        count = len(self._parameters)
        arrivals = self._arrivals if len(self._arrivals) == count else list(range(count))[::-1]
        order = torch.tensor(arrivals, dtype=torch.int32, device=self._parameters[0].device)
        broadcast(order, group=self._group, group_src=0)
        self._make_buckets([FIRST_BUCKET_BYTES, self._bucket_bytes], order.tolist())
        self._ordered = True

    # ------------------------------------------------------------------ processes without batches

    def count_active(self, work: Any, active: Tensor) -> None:
        """Take the number of processes that have a batch, as it is told, for the mean if this is wanted."""
        work.wait()
        self.divisor = self._group.size() if self.divides_by_all else int(active.item())

    def reduce_zeros(self) -> None:
        """Take part in the reductions of a batch that this process does not have."""
        self._order_buckets()
        with no_grad():
            for index, bucket in enumerate(self._buckets):
                bucket.flat.zero_()
                self._reduce(index)
            if self._find_unused:
                self._used = [0] * len(self._parameters)
                self._used_anywhere()
            for bucket in self._buckets:
                assert bucket.future is not None
                bucket.future.wait()
        self._has_reduced = True

    def _raise_unfinished(self) -> None:
        missing = sorted(number for bucket in self._buckets for number in bucket.pending)
        names = ", ".join(self._names[number] for number in missing)
        raise RuntimeError(
            "Expected to have finished reduction in the prior iteration before starting a new one. This error indicates that "
            "your module has parameters that were not used in producing loss. You can enable unused parameter detection by "
            "passing the keyword argument `find_unused_parameters=True` to `torch.nn.parallel.DistributedDataParallel`, and by "
            "making sure all `forward` function outputs participate in calculating loss.\n"
            f"Parameters which did not receive grad for rank {self._group.rank()}: {names}\n"
            f"Parameter indices which did not receive grad for rank {self._group.rank()}: {' '.join(map(str, missing))}"
        )

    def _ready(self, number: int) -> None:
        """A parameter's gradient has come."""
        if not self._expects:
            return
        if not self._begun:
            self._begun = True
            queue_callback(self._finish)
            for left_out in sorted(self._left_out):
                self._mark(left_out, used=False)
        if number in self._left_out:
            return
        if number not in self._bucket_of[number].pending:
            raise RuntimeError(
                "Expected to mark a variable ready only once. This error is caused by one of the following reasons: 1) Use of "
                "a module parameter outside the `forward` function. 2) Reused parameters in multiple reentrant backward "
                "passes. "
                f"Parameter at index {number} with name {self._names[number]} has been marked as ready twice."
            )
        self._arrivals.append(number)
        self._mark(number, used=True)

    def _mark(self, number: int, used: bool) -> None:
        bucket, gradient = self._bucket_of[number], self._parameters[number].grad
        view = bucket.views[self._place[number]]
        with no_grad():
            if not used or gradient is None:
                view.zero_()
            elif self._hook is None:
                with span("torch::distributed::reducer::mul_out", inputs=(gradient,)):
                    torch.mul(gradient, 1.0 / self.divisor, out=view)
            else:
                with span("torch::distributed::reducer::copy_", inputs=(gradient,)):
                    view.copy_(gradient)
        self._used[number] = int(used)
        bucket.pending.discard(number)
        while self._next < len(self._buckets) and not self._buckets[self._next].pending:
            self._reduce(self._next)
            self._next += 1

    def _reduce(self, index: int) -> None:
        from ...distributed import all_reduce

        bucket = self._buckets[index]
        if self._hook is None:
            work = all_reduce(bucket.flat, group=self._group, async_op=True)
            assert work is not None
            bucket.future = work.get_future()
        else:
            state, hook = self._hook
            given = GradBucket(index, bucket.flat, bucket.parameters, index == len(self._buckets) - 1)
            bucket.future = hook(state, given)
            if not isinstance(bucket.future, Future):
                raise RuntimeError(f"a communication hook must return a Future, not {type(bucket.future).__name__}")

    def _finish(self) -> None:
        """The backward pass has ended: wait for the buckets, and give the parameters their means."""
        if any(bucket.pending for bucket in self._buckets):
            if not self._static or self._unused is not None:
                return  # told at the next forward, as torch does
            self._unused = {number for bucket in self._buckets for number in bucket.pending}
            for number in sorted(self._unused):
                self._mark(number, used=False)
        used_anywhere = self._used_anywhere() if self._find_unused else None
        self._expects, self._has_reduced = False, True
        with no_grad():
            for bucket in self._buckets:
                assert bucket.future is not None
                self._hand_over(bucket, bucket.future.wait(), used_anywhere)

    def _used_anywhere(self) -> list[int]:
        """For each parameter how many processes have used it."""
        from ...distributed import all_reduce

        counts = torch.tensor(self._used, dtype=torch.int32, device=self._parameters[0].device)
        work = all_reduce(counts, group=self._group, async_op=True)
        assert work is not None
        work.wait()
        listed: list[int] = counts.tolist()
        return listed

    def _hand_over(self, bucket: _Bucket, result: Any, used_anywhere: list[int] | None) -> None:
        means = result[0] if isinstance(result, list | tuple) else result
        if means is not bucket.flat:
            bucket.flat.copy_(means.view(-1))
        for number, parameter, view in zip(bucket.numbers, bucket.parameters, bucket.views, strict=True):
            if used_anywhere is not None and not used_anywhere[number]:
                continue  # no process used it: its gradient stays as it is
            if self._static and self._unused is not None and number in self._unused:
                continue
            if self._as_views:
                parameter.grad = view
            elif parameter.grad is None:
                parameter.grad = view.clone()
            else:
                with span("torch.distributed.ddp.reducer::copy_bucket_to_grad", inputs=(parameter,)):
                    parameter.grad.copy_(view)


def _unused(outputs: Sequence[Tensor], parameters: Sequence[Tensor]) -> set[int]:
    """Numbers of the parameters that a backward pass from the outputs does not reach."""
    nodes = [output.grad_fn for output in outputs if output.grad_fn is not None]
    seen, reached = set(map(id, nodes)), {id(output) for output in outputs}
    while nodes:
        node = nodes.pop()
        variable = getattr(node, "variable", None)
        if variable is not None:
            reached.add(id(variable))
        for following, _ in node.next_functions:
            if following is not None and id(following) not in seen:
                seen.add(id(following))
                nodes.append(following)
    return {number for number, parameter in enumerate(parameters) if id(parameter) not in reached}
