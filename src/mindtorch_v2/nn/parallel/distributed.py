"""DistributedDataParallel: a module whose gradients are averaged over the processes of a group."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from ... import _surface as torch
from ..._autograd.grad_mode import is_grad_enabled, no_grad
from ..._core.restoring import Actions, RestoringScope, restoring
from ..._core.tensor import Tensor
from ..._dispatch.observer import span
from ...distributed.algorithms.join import Join, Joinable
from ..modules.module import Module
from ._join_hook import DDPJoinHook
from ._reducer import Reducer

__all__ = ["DistributedDataParallel"]

_BUCKET_CAP_MB = 25
_BROADCAST_BYTES = 250 << 20


class DistributedDataParallel(Module, Joinable):
    """Runs a module on this process's part of a batch; after backward() every process has the mean of all gradients.

    Parameters and buffers are those of the group's first process from the start. `no_sync()` leaves the averaging to a later
    backward pass, which then averages all that has been added up.
    """

    def __init__(
        self,
        module: Module,
        device_ids: Any = None,
        output_device: Any = None,
        dim: int = 0,
        broadcast_buffers: bool | None = None,
        init_sync: bool = True,
        process_group: Any = None,
        bucket_cap_mb: float | None = None,
        find_unused_parameters: bool = False,
        check_reduction: bool = False,
        gradient_as_bucket_view: bool = False,
        static_graph: bool = False,
        delay_all_reduce_named_params: Any = None,
        param_to_hook_all_reduce: Any = None,
        mixed_precision: Any = None,
        device_mesh: Any = None,
        skip_all_reduce_unused_params: bool = False,
        bucket_cap_mb_list: list[int] | None = None,
        batched_grad_copy: bool = False,
        forward_sync_buffers: bool | None = None,
    ) -> None:
        from ...distributed._groups import group_or_default

        Module.__init__(self)
        Joinable.__init__(self)
        _refuse(
            delay_all_reduce_named_params=delay_all_reduce_named_params,
            param_to_hook_all_reduce=param_to_hook_all_reduce,
            mixed_precision=mixed_precision,
            device_mesh=device_mesh,
            skip_all_reduce_unused_params=skip_all_reduce_unused_params,
            bucket_cap_mb_list=bucket_cap_mb_list,
            batched_grad_copy=batched_grad_copy,
            forward_sync_buffers=forward_sync_buffers,
        )
        self.process_group = group_or_default(process_group)
        devices = {parameter.device for parameter in module.parameters()}
        is_on_npu = len(devices) == 1 and next(iter(devices)).type == "npu"
        if (device_ids or output_device is not None) and not is_on_npu:
            raise ValueError(
                "DistributedDataParallel device_ids and output_device arguments only work with single-device/multiple-device "
                f"GPU modules or CPU modules, but got device_ids {device_ids}, output_device {output_device}, and module "
                f"parameters {devices}."
            )
        if bucket_cap_mb is not None and bucket_cap_mb <= 0:
            raise ValueError("bucket_cap_mb must be positive")
        ignored = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
        named = [(name, each) for name, each in module.named_parameters() if name not in ignored]
        trained = [(name, each) for name, each in named if each.requires_grad]
        if not trained:
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any parameter that requires a gradient."
            )
        self.dim = dim
        self.module = module
        self.device = trained[0][1].device
        self.device_ids, self.output_device = _devices(self.device, device_ids, output_device)
        self.broadcast_buffers = True if broadcast_buffers is None else broadcast_buffers
        self.find_unused_parameters = find_unused_parameters
        self.gradient_as_bucket_view, self.static_graph = gradient_as_bucket_view, static_graph
        self.require_backward_grad_sync = self.require_forward_param_sync = True
        self.parameters_to_ignore = ignored
        if init_sync:
            self._broadcast([each for _, each in named] + self._buffers_to_sync())
        self.reducer = Reducer(
            [each for _, each in trained],
            [name for name, _ in trained],
            self.process_group,
            round((bucket_cap_mb or _BUCKET_CAP_MB) * (1 << 20)),
            find_unused=find_unused_parameters and not static_graph,
            as_views=gradient_as_bucket_view,
            static_graph=static_graph,
        )

    # ------------------------------------------------------------------ forward

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Run the module; where gradients will be averaged, its backward pass does it."""
        with span("DistributedDataParallel.forward"):
            notified = Join.notify_join_context(self)
            if notified is not None:
                self.reducer.count_active(notified, notified.active)
                self._share(float(is_grad_enabled() and self.require_backward_grad_sync))
            trains = is_grad_enabled() and self.require_backward_grad_sync
            if self.will_sync_module_buffers():
                self._sync_buffers(has_batch=True)
            if self.device_ids:
                inputs, kwargs = _moved((inputs, kwargs), self.device)
            output = self.module(*inputs, **kwargs)
            if trains:
                self.require_forward_param_sync = True
                self.reducer.prepare(list(_tensors(output)))
            else:
                self.require_forward_param_sync = False
            return output

    def will_sync_module_buffers(self) -> bool:
        """Whether the next forward pass begins with the buffers of the group's first process."""
        return self.require_forward_param_sync and self.broadcast_buffers and bool(self._buffers_to_sync())

    def _buffers_to_sync(self) -> list[Tensor]:
        return [each for name, each in self.module.named_buffers() if name not in self.parameters_to_ignore]

    def _sync_buffers(self, has_batch: bool) -> None:
        """Give buffers the values of the group's first process, or of one that has a batch where some have none."""
        source = self._common_rank(has_batch) if self._join_config.enable else 0
        self._broadcast(self._buffers_to_sync(), source)

    def _common_rank(self, is_candidate: bool) -> int:
        """The highest rank that says it is a candidate."""
        return int(self._share(float(self.process_group.rank()) if is_candidate else -1.0, "MAX"))

    def _share(self, number: float, op: str = "SUM") -> float:
        """The sum of a number over all processes, or another reduction."""
        from ...distributed import ReduceOp, all_reduce

        shared = torch.tensor([number], device=self.device)
        all_reduce(shared, getattr(ReduceOp, op), group=self.process_group)
        return float(shared.item())

    def _broadcast(self, tensors: list[Tensor], source: int = 0) -> None:
        """Give tensors the values of one of the group's processes, some of one dtype at a time."""
        # Not at import: torch.save() imports nn for parameters, and _utils imports how they are loaded.
        from ..._utils import _flatten_dense_tensors, _unflatten_dense_tensors
        from ...distributed import broadcast

        with no_grad():
            parts = list(_parts(tensors))
            works = []
            for part in parts:
                flat = _flatten_dense_tensors(part)
                works.append((flat, broadcast(flat, group=self.process_group, async_op=True, group_src=source)))
            for part, (flat, work) in zip(parts, works, strict=True):
                work.wait()
                for tensor, value in zip(part, _unflatten_dense_tensors(flat, part), strict=True):
                    tensor.copy_(value)

    # ------------------------------------------------------------------ averaging

    def no_sync(self) -> RestoringScope[None]:
        """Gradients of forward passes in this block are added up here, and averaged by the first backward pass after it."""
        return _without_averaging(self)

    def register_comm_hook(self, state: object, hook: Callable[..., Any]) -> None:
        """Have `hook(state, bucket)` reduce each bucket: it returns a future of a tensor like `bucket.buffer()`."""
        if not callable(hook):
            raise TypeError("Communication hook must be callable.")
        if self.reducer._hook is not None:
            raise RuntimeError("register_comm_hook or register_builtin_comm_hook can only be called once.")
        self.reducer.set_hook(state, hook)

    def _set_static_graph(self) -> None:
        self.static_graph = self.reducer._static = True
        self.reducer._find_unused = False

    def _get_ddp_logging_data(self) -> dict[str, Any]:
        """What the module is, for tools; whether a static graph would do is not found out, so the answer is no."""
        return {
            "world_size": self.process_group.size(),
            "rank": self.process_group.rank(),
            "module_name": type(self.module).__name__,
            "backend_name": self.process_group.name(),
            "find_unused_parameters": self.find_unused_parameters,
            "gradient_as_bucket_view": self.gradient_as_bucket_view,
            "can_set_static_graph": False,
        }

    def join(
        self, divide_by_initial_world_size: bool = True, enable: bool = True, throw_on_early_termination: bool = False
    ) -> Join:
        """`with model.join():` around a loop that has another number of batches in each process."""
        return Join([self], enable, throw_on_early_termination, divide_by_initial_world_size=divide_by_initial_world_size)

    def join_hook(self, **kwargs: Any) -> DDPJoinHook:
        """What a process without batches does in place of one."""
        return DDPJoinHook(self, kwargs.get("divide_by_initial_world_size", True))

    @property
    def join_device(self) -> Any:
        """The device of the parameters."""
        return self.device

    @property
    def join_process_group(self) -> Any:
        """The group over which gradients are averaged."""
        return self.process_group

    @staticmethod
    def _set_params_and_buffers_to_ignore_for_model(module: Module, params_and_buffers_to_ignore: Any) -> None:
        module._ddp_params_and_buffers_to_ignore = set(params_and_buffers_to_ignore)

    def __getstate__(self) -> dict[str, Any]:
        """A copy or a pickle is made without the group and the reducer, which belong to this process."""
        state = copy.copy(self.__dict__)
        del state["process_group"], state["reducer"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        raise NotImplementedError("a DistributedDataParallel is not unpickled: wrap its module again")


def _moved(value: Any, device: Any) -> Any:
    """Tensors on a device, and containers of them anew; anything else as it is."""
    if isinstance(value, Tensor):
        return value.to(device)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_moved(each, device) for each in value))
    if isinstance(value, tuple | list):
        return type(value)(_moved(each, device) for each in value)
    if isinstance(value, dict):
        return type(value)((key, _moved(each, device)) for key, each in value.items())
    return value


def _devices(device: Any, device_ids: Any, output_device: Any) -> tuple[list[int] | None, int | None]:
    """The indices of the module's device and of the outputs' one, which must be the same; None of the CPU."""
    if device.type == "cpu":
        return None, None
    wanted = [torch.device(each) if isinstance(each, str) else each for each in device_ids or [device]]
    indices = [getattr(each, "index", each) for each in wanted]
    output = getattr(output_device, "index", output_device)
    if indices != [device.index] or output not in (None, device.index):
        raise ValueError(
            f"device_ids can only be None or contain the module's own device {device}, but got device_ids {device_ids} and "
            f"output_device {output_device}"
        )
    return indices, device.index


@restoring
def _without_averaging(undo: Actions, module: DistributedDataParallel) -> None:
    undo.append(partial(setattr, module, "require_backward_grad_sync", module.require_backward_grad_sync))
    module.require_backward_grad_sync = False


def _tensors(value: Any) -> Iterator[Tensor]:
    """The tensors in a module's output: in lists, tuples, dicts and objects with fields, as libraries return."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _tensors(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _tensors(each)
    elif hasattr(value, "__dataclass_fields__"):
        for name in value.__dataclass_fields__:
            yield from _tensors(getattr(value, name))


def _refuse(**arguments: Any) -> None:
    for name, value in arguments.items():
        if value:
            raise NotImplementedError(f"DistributedDataParallel({name}=)")


def _parts(tensors: list[Tensor]) -> Iterator[list[Tensor]]:
    """Tensors of one dtype at a time, and not too many bytes."""
    by_dtype: dict[Any, list[Tensor]] = {}
    for tensor in tensors:
        by_dtype.setdefault(tensor.dtype, []).append(tensor)
    for group in by_dtype.values():
        part, size = [], 0
        for tensor in group:
            part.append(tensor)
            size += tensor.numel() * tensor.element_size()
            if size >= _BROADCAST_BYTES:
                yield part
                part, size = [], 0
        if part:
            yield part
