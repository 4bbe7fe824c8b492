"""ZeroRedundancyOptimizer: each process has the optimizer's state for a share of the parameters, and sends what it updated."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable
from itertools import chain
from typing import Any

from ..._autograd.grad_mode import no_grad
from ..._core.device import device as Device
from ..._core.tensor import Tensor
from ...optim import Optimizer
from ...serialization import load, save
from .._collectives import broadcast
from .._groups import get_rank, get_world_size, group_or_default
from .._objects import broadcast_object_list
from ..algorithms.join import Join, Joinable, JoinHook

__all__ = ["ZeroRedundancyOptimizer"]


class _JoinHook(JoinHook):
    """For processes without batches: step along with the others, which need this process's share."""

    def __init__(self, zero: ZeroRedundancyOptimizer) -> None:
        self._zero = zero

    def main_hook(self) -> None:
        """One step."""
        self._zero.step()


class ZeroRedundancyOptimizer(Optimizer, Joinable):
    """Wraps an optimizer class: every process updates its share of the parameters, and gets the others' by broadcast.

    All gradients must be the same in all processes, as DistributedDataParallel leaves them.
    """

    def __init__(
        self,
        params: Iterable[Any],
        optimizer_class: type[Optimizer],
        process_group: Any | None = None,
        parameters_as_bucket_view: bool = False,
        overlap_with_ddp: bool = False,
        **defaults: Any,
    ) -> None:
        if overlap_with_ddp:
            raise NotImplementedError("ZeroRedundancyOptimizer(overlap_with_ddp=True)")
        if parameters_as_bucket_view:
            raise NotImplementedError("ZeroRedundancyOptimizer(parameters_as_bucket_view=True)")
        given = list(params)
        if not given:
            raise ValueError("params argument given to the optimizer should be an iterable of Tensors or dicts")
        self.process_group = group_or_default(process_group)
        self.rank: int = get_rank(self.process_group)
        self.world_size: int = get_world_size(self.process_group)
        self._optim_constructor, self._optim_defaults = optimizer_class, defaults
        self._shares: list[list[dict[str, Any]]] | None = None
        self._states: list[dict[str, Any]] = []
        self._is_complete = False
        Optimizer.__init__(self, given, defaults)
        Joinable.__init__(self)
        self._is_complete = True
        self._make_share()

    def _make_share(self) -> None:
        """The optimizer of this process's share."""
        mine = self._partition_parameters()[self.rank]
        self.optim: Optimizer = self._optim_constructor(mine, **self._optim_defaults)
        for own, whole in zip(self.optim.param_groups, self.param_groups, strict=True):
            for key, value in own.items():
                if key != "params":
                    whole.setdefault(key, value)
                    if key in self._optim_defaults or whole.get(key) is None:
                        whole[key] = value

    def _partition_parameters(self) -> list[list[dict[str, Any]]]:
        """The parameter groups of each process: the largest tensors first, each to the process with the least so far."""
        if self._shares is None:
            sizes = [0] * self.world_size
            self._shares = [[] for _ in range(self.world_size)]
            for group in self.param_groups:
                lists: list[list[Tensor]] = [[] for _ in range(self.world_size)]
                for parameter in sorted(group["params"], key=lambda each: each.numel(), reverse=True):
                    least = sizes.index(min(sizes))
                    lists[least].append(parameter)
                    sizes[least] += parameter.numel()
                for share, parameters in zip(self._shares, lists, strict=True):
                    share.append({**group, "params": parameters})
        return self._shares

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters, which are shared out anew."""
        super().add_param_group(param_group)
        if self._is_complete:
            self._shares = None
            state = self.optim.state
            self._make_share()
            for parameters in self.optim.param_groups:
                for parameter in parameters["params"]:
                    if parameter in state:
                        self.optim.state[parameter] = state[parameter]

    # ------------------------------------------------------------------ a step

    def step(self, closure: Callable[[], float] | None = None, **kwargs: Any) -> float | None:  # type: ignore[override]
        """Update this process's share, and get the others'."""
        Join.notify_join_context(self)
        for own, whole in zip(self.optim.param_groups, self.param_groups, strict=True):
            own.update({key: value for key, value in whole.items() if key != "params"})
        loss = self.optim.step(closure=closure, **kwargs) if closure is not None else self.optim.step(**kwargs)
        self._broadcast_parameters()
        for own, whole in zip(self.optim.param_groups, self.param_groups, strict=True):
            whole.update({key: value for key, value in own.items() if key != "params"})
        return loss

    def _broadcast_parameters(self) -> None:
        works = []
        with no_grad():
            for rank, share in enumerate(self._partition_parameters()):
                for group in share:
                    for parameter in group["params"]:
                        work = broadcast(parameter.detach(), group=self.process_group, async_op=True, group_src=rank)
                        works.append(work)
        for work in works:
            if work is not None:
                work.wait()

    # ------------------------------------------------------------------ state

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Gather the state of all shares in the process `to`, for state_dict(). All processes call it."""
        self._states = []
        for rank in range(self.world_size):
            sent = [_packed(self.optim.state_dict()) if rank == self.rank else None]
            broadcast_object_list(sent, group=self.process_group, group_src=rank)
            if self.rank == to:
                assert sent[0] is not None
                self._states.append(_unpacked(sent[0]))

    def state_dict(self) -> dict[str, Any]:
        """The state of all parameters, as the wrapped optimizer would give it; consolidate_state_dict() comes first."""
        if not self._states:
            raise RuntimeError(
                f"Optimizer state has not been consolidated on this rank. Please call "
                f"`consolidate_state_dict(to={self.rank})` on all ranks beforehand if you meant to save the global state."
            )
        whole = super().state_dict()
        numbers = self._numbers()
        state: dict[int, Any] = {}
        for share, partial in zip(self._partition_parameters(), self._states, strict=True):
            ordered = list(chain.from_iterable(group["params"] for group in share))
            for at, parameter in enumerate(ordered):
                if at in partial["state"]:
                    state[numbers[id(parameter)]] = partial["state"][at]
        whole["state"] = dict(sorted(state.items()))
        return whole

    def _numbers(self) -> dict[int, int]:
        every = chain.from_iterable(group["params"] for group in self.param_groups)
        return {id(parameter): number for number, parameter in enumerate(every)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take this process's share of a state of all parameters."""
        numbers = self._numbers()
        ordered = list(chain.from_iterable(group["params"] for group in self._partition_parameters()[self.rank]))
        own = self.optim.state_dict()
        own["state"] = {
            at: state_dict["state"][numbers[id(parameter)]]
            for at, parameter in enumerate(ordered)
            if numbers[id(parameter)] in state_dict["state"]
        }
        self.optim.load_state_dict(own)
        for group, saved in zip(self.param_groups, state_dict["param_groups"], strict=True):
            group.update({key: value for key, value in saved.items() if key != "params"})

    # ------------------------------------------------------------------ Join

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """What a process without batches does."""
        return _JoinHook(self)

    @property
    def join_device(self) -> Any:
        """The CPU."""
        return Device("cpu")

    @property
    def join_process_group(self) -> Any:
        """The processes among which the state is shared."""
        return self.process_group


def _packed(state: dict[str, Any]) -> bytes:
    stream = io.BytesIO()
    save(state, stream)
    return stream.getvalue()


def _unpacked(data: bytes) -> dict[str, Any]:
    loaded: dict[str, Any] = load(io.BytesIO(data), weights_only=False)
    return loaded
