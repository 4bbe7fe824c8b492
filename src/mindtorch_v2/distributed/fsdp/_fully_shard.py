"""fully_shard: each process keeps its part of a module's parameters, and gathers the whole for forward and backward.

A module's parameters are one group: gathered before its forward pass, freed after it, gathered again when the backward pass
needs what was saved of them, and their gradients are reduced to parts when the last of them has come.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from ... import _surface as torch
from ..._autograd.engine import queue_callback
from ..._autograd.grad_mode import is_grad_enabled, no_grad
from ..._core.tensor import Tensor
from ..._dispatch.observer import span
from ...autograd.graph import saved_tensors_hooks
from ...nn import Module, Parameter
from .._collectives import all_gather_single, reduce_scatter_single
from .._groups import get_world_size
from ..device_mesh import DeviceMesh, init_device_mesh
from ..tensor import DTensor, Shard, as_dtensor, shard_bounds

__all__ = ["CPUOffloadPolicy", "FSDPModule", "MixedPrecisionPolicy", "OffloadPolicy", "UnshardHandle", "fully_shard"]


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """Dtypes of the gathered parameters and of the reduction; None is that of the parameters."""

    param_dtype: Any = None
    reduce_dtype: Any = None
    output_dtype: Any = None
    cast_forward_inputs: bool = True


@dataclass
class OffloadPolicy:
    """Parts stay where they are."""


@dataclass
class CPUOffloadPolicy(OffloadPolicy):
    """Parts are on the CPU, which they are anyway."""

    pin_memory: bool = True


class UnshardHandle:
    """What `unshard(async_op=True)` returns."""

    def wait(self) -> None:
        """Nothing is left to wait for."""


class _Sharded:
    """One parameter: its part, where it is used, and the whole while it is gathered."""

    def __init__(self, parameter: Parameter, places: list[tuple[Module, str]], mesh: DeviceMesh) -> None:
        group = mesh.get_group()
        self.places, self.shape, self.dtype = places, tuple(parameter.shape), parameter.dtype
        if not self.shape:
            raise ValueError("fully_shard doesn't support scalar parameters. Change it to a 1D tensor with numel equal to 1.")
        begin, end = shard_bounds(self.shape[0], group.size(), group.rank())
        self.rows = -(-self.shape[0] // group.size())
        local = as_dtensor(parameter.detach()[begin:end].clone(), mesh, Shard(0), self.shape)
        self.part: Any = Parameter(local, requires_grad=parameter.requires_grad)
        for name in ("device_mesh", "placements", "full_shape"):
            setattr(self.part, name, getattr(local, name))
        self.data: Any = None  # the whole, while it is gathered
        self.leaf: Any = None  # what the forward pass uses, and gradients come to
        self.put(self.part)

    @property
    def padded(self) -> tuple[int, ...]:
        """The shape of every process's part, filled up to the same size."""
        return (self.rows, *self.shape[1:])

    def put(self, parameter: Any) -> None:
        """Have the modules use the part or the whole."""
        for module, name in self.places:
            module._parameters[name] = parameter


class _Group:
    """The parameters of one module that are gathered and reduced together."""

    def __init__(
        self, sharded: list[_Sharded], mesh: DeviceMesh, reshard: bool, policy: MixedPrecisionPolicy, name: str
    ) -> None:
        self.sharded, self.mesh, self.reshard_after_forward, self.policy, self.name = sharded, mesh, reshard, policy, name
        self.group = mesh.get_group()
        self.syncs = True
        self.divide_by: float | None = None
        self._pending: set[int] = set()
        self._queued = False
        self._storages: dict[int, int] = {}  # number of the parameter, by the address of a whole that was gathered

    # ------------------------------------------------------------------ parameters

    def unshard(self) -> None:
        """Gather the whole parameters, if they are not there."""
        if not self.sharded or self.sharded[0].data is not None:
            return
        with no_grad(), span(f"FSDP::all_gather ({self.name})"):
            dtype = self.policy.param_dtype
            flat = torch.cat([self._filled(each, each.part.to_local()).reshape(-1) for each in self.sharded])
            flat = flat if dtype is None else flat.to(dtype)
            every = torch.empty(flat.numel() * self.group.size(), dtype=flat.dtype)
            all_gather_single(every, flat, group=self.group)
            rows = every.view(self.group.size(), -1)
            at = 0
            for number, each in enumerate(self.sharded):
                count = each.rows * _width(each.shape)
                each.data = rows[:, at : at + count].reshape(-1, *each.shape[1:])[: each.shape[0]].contiguous()
                self._storages[each.data.untyped_storage().data_ptr()] = number
                at += count

    @staticmethod
    def _filled(each: _Sharded, part: Tensor) -> Tensor:
        if part.shape[0] == each.rows:
            return part
        filled = torch.zeros(each.padded, dtype=part.dtype)
        filled[: part.shape[0]] = part
        return filled

    def use_whole(self) -> None:
        """Have the modules use the gathered parameters."""
        for number, each in enumerate(self.sharded):
            each.leaf = Parameter(each.data, requires_grad=each.part.requires_grad)
            if each.leaf.requires_grad:
                each.leaf.register_post_accumulate_grad_hook(lambda _, number=number: self._ready(number))
            each.put(each.leaf)

    def use_parts(self) -> None:
        """Have the modules use the parts."""
        for each in self.sharded:
            each.put(each.part)

    def reshard(self) -> None:
        """Drop the memory of the gathered parameters; gradients may still come to them."""
        self.use_parts()
        for each in self.sharded:
            each.data = None
            if each.leaf is not None:
                each.leaf.data = torch.zeros(1, dtype=each.leaf.dtype).expand(each.shape)
        self._storages.clear()

    # ------------------------------------------------------------------ what the backward pass saves of them

    def pack(self, tensor: Tensor) -> Any:
        """Keep of a whole parameter which one it is, in place of its memory."""
        number = self._storages.get(tensor.untyped_storage().data_ptr()) if self._storages else None
        if number is None:
            return tensor
        return self, number, tuple(tensor.shape), tuple(tensor.stride()), tensor.storage_offset()

    # ------------------------------------------------------------------ gradients

    def expect(self) -> None:
        """A backward pass will come for what runs now."""
        self._pending = {number for number, each in enumerate(self.sharded) if each.part.requires_grad}
        self._queued = False

    def _ready(self, number: int) -> None:
        if not self._queued:
            self._queued = True
            queue_callback(self._end)
        self._pending.discard(number)
        if not self._pending:
            self._reduce()

    def _end(self) -> None:
        """The backward pass has ended: reduce what has come of parameters of which not all were used."""
        if self._pending:
            self._reduce()
        if self.sharded and self.sharded[0].data is not None:
            self.reshard()

    def _reduce(self) -> None:
        if not self.syncs:
            return
        with no_grad(), span(f"FSDP::post_backward_reduce ({self.name})"):
            given = [each for each in self.sharded if each.leaf is not None and each.leaf.grad is not None]
            if not given:
                return
            size = self.group.size()
            blocks = []
            for each in given:
                gradient = each.leaf.grad
                filled = torch.zeros((each.rows * size, *each.shape[1:]), dtype=gradient.dtype)
                filled[: each.shape[0]] = gradient
                blocks.append(filled.view(size, -1))
            flat = torch.cat(blocks, 1).reshape(-1)
            flat = flat if self.policy.reduce_dtype is None else flat.to(self.policy.reduce_dtype)
            mine = torch.empty(flat.numel() // size, dtype=flat.dtype)
            reduce_scatter_single(mine, flat, group=self.group)
            mine.div_(size if self.divide_by is None else self.divide_by)
            at = 0
            for each in given:
                count = each.rows * _width(each.shape)
                part = mine[at : at + count].view(each.padded)[: each.part.shape[0]].to(each.dtype)
                each.part.grad = part.clone() if each.part.grad is None else each.part.grad + part
                each.leaf = None
                at += count
        self._pending = set()
        self.reshard()


def _width(shape: tuple[int, ...]) -> int:
    width = 1
    for size in shape[1:]:
        width *= size
    return width


def _unpack(kept: Any) -> Tensor:
    if isinstance(kept, Tensor):
        return kept
    group, number, shape, strides, offset = kept
    if group.sharded[number].data is None:
        with span(f"FSDP::pre_backward ({group.name})"):
            group.unshard()
    whole: Tensor = group.sharded[number].data
    return whole.as_strided(shape, strides, offset)


class FSDPModule:
    """What `fully_shard` makes a module, beside its own class."""

    _fsdp: _Group

    def unshard(self, async_op: bool = False) -> UnshardHandle | None:
        """Gather the module's own parameters, and use them."""
        self._fsdp.unshard()
        self._fsdp.use_whole()
        return UnshardHandle() if async_op else None

    def reshard(self) -> None:
        """Drop the gathered parameters."""
        self._fsdp.reshard()

    def _below(self, recurse: bool) -> Iterator[_Group]:
        modules = self.modules() if recurse else [self]  # type: ignore[attr-defined]
        return (module._fsdp for module in modules if isinstance(module, FSDPModule))

    def set_requires_gradient_sync(self, requires_gradient_sync: bool, *, recurse: bool = True) -> None:
        """Whether backward passes reduce gradients; those that do not must keep the parameters gathered."""
        for group in self._below(recurse):
            if not requires_gradient_sync:
                raise NotImplementedError("FSDPModule.set_requires_gradient_sync(False)")
            group.syncs = requires_gradient_sync

    def set_reshard_after_forward(self, reshard_after_forward: bool, recurse: bool = True) -> None:
        """Whether parameters are dropped after the forward pass."""
        for group in self._below(recurse):
            group.reshard_after_forward = reshard_after_forward

    def set_gradient_divide_factor(self, factor: float) -> None:
        """What the sum of gradients is divided by; without it, the number of processes."""
        self._fsdp.divide_by = factor


def fully_shard(
    module: Any,
    *,
    mesh: DeviceMesh | None = None,
    reshard_after_forward: bool | int | None = None,
    shard_placement_fn: Callable[[Parameter], Any] | None = None,
    mp_policy: MixedPrecisionPolicy | None = None,
    offload_policy: OffloadPolicy | None = None,
    ignored_params: set[Parameter] | None = None,
) -> Any:
    """Shard a module's parameters over a mesh of one dim; those of modules inside that were sharded before stay with these.

    Call it on inner modules first, and make the optimizer afterwards.
    """
    if isinstance(module, list | tuple):
        raise NotImplementedError("fully_shard of several modules as one")
    if shard_placement_fn is not None:
        raise NotImplementedError("fully_shard(shard_placement_fn=): parameters are cut along their first dim")
    if isinstance(reshard_after_forward, int) and not isinstance(reshard_after_forward, bool):
        raise NotImplementedError("fully_shard(reshard_after_forward=<number>)")
    if isinstance(module, FSDPModule):
        raise AssertionError("Each distinct composable distributed API can only be applied to a module once.")
    mesh = init_device_mesh("cpu", (get_world_size(),)) if mesh is None else mesh
    if mesh.ndim != 1:
        raise NotImplementedError("fully_shard(mesh=) of more than one dim")
    policy = mp_policy or MixedPrecisionPolicy()
    places: dict[int, tuple[Parameter, list[tuple[Module, str]]]] = {}
    ignored = set(map(id, ignored_params or ()))
    for inner in module.modules():
        for name, parameter in inner._parameters.items():
            if parameter is not None and not isinstance(parameter, DTensor) and id(parameter) not in ignored:
                places.setdefault(id(parameter), (parameter, []))[1].append((inner, name))
    sharded = [_Sharded(parameter, where, mesh) for parameter, where in places.values()]
    reshard = True if reshard_after_forward is None else bool(reshard_after_forward)
    group = _Group(sharded, mesh, reshard, policy, type(module).__name__)
    plain = type(module)
    module.__class__ = type(f"FSDP{plain.__name__}", (FSDPModule, plain), {})
    module._fsdp = group
    own_forward = module.forward

    def forward(*args: Any, **kwargs: Any) -> Any:
        with span(f"FSDP::pre_forward ({group.name})"):
            group.unshard()
            group.use_whole()
            group.expect()
        if policy.param_dtype is not None and policy.cast_forward_inputs:
            args = tuple(_cast(each, policy.param_dtype) for each in args)
            kwargs = {key: _cast(each, policy.param_dtype) for key, each in kwargs.items()}
        try:
            with saved_tensors_hooks(group.pack, _unpack):
                output = own_forward(*args, **kwargs)
        finally:
            with span(f"FSDP::post_forward ({group.name})"):
                group.use_parts()
                if group.reshard_after_forward or not is_grad_enabled():
                    group.reshard()
        return output if policy.output_dtype is None else _cast(output, policy.output_dtype)

    module.forward = forward
    return module


def _cast(value: Any, dtype: Any) -> Any:
    return value.to(dtype) if isinstance(value, Tensor) and value.is_floating_point() else value
