"""Forward-mode AD, which computes tangents along with values.

Tangents are not computed op by op. Ops on a dual tensor are recorded, and `unpack_dual` takes the tangent from two backward
passes (the double-backward trick): the gradient is linear in the gradient of the output, and its derivative by that is the
tangent. So every op with a second derivative has a forward one, and unpacking costs about three passes instead of none. The
few ops whose tangents do not follow from their gradients declare them (`op.jvp`). Two things show: inside a level results
have a `grad_fn` although no input requires grad, and code under `no_grad()` that begins inside a level has no tangents.
"""

from __future__ import annotations

import weakref
from typing import Any, NamedTuple

from .._core.cpython import without_signals_at_entry
from .._core.keys import AUTOGRAD, LAZY
from .._core.restoring import carry_out
from .._core.storage import owner_of
from .._core.tensor import Tensor
from .._core.threads import threads
from .._dispatch.registry import aten
from .backward import grad, pullback
from .grad_mode import enable_grad
from .graph import require_grad
from .nodes.edges import GradientEdge
from .nodes.node import Node
from .nodes.saved import set_history
from .running import forward_levels


class UnpackedDualTensor(NamedTuple):
    """The value (primal) and the tangent of a dual tensor; the tangent is None if the tensor is not dual."""

    primal: Tensor
    tangent: Tensor | None


class _Dual:
    """What a dual tensor's node keeps: the tangent, until the level ends."""

    __slots__ = ("__weakref__", "has_history", "tangent")

    def __init__(self, tangent: Tensor, has_history: bool) -> None:
        self.tangent: Tensor | None = tangent
        # Whether the primal or the tangent required grad outside the level, so that results have to.
        self.has_history = has_history


class _Level:
    """The dual tensors created since a level was entered, and the grad mode outside it."""

    def __init__(self) -> None:
        self.duals: weakref.WeakSet[_Dual] = weakref.WeakSet()
        self.recorded = bool(threads.state.grad_enabled)

    def end(self) -> None:
        """Drop the tangents."""
        for dual in list(self.duals):
            dual.tangent = None


# Where a dual tensor's node has its `_Dual`.
_KEY = "forward_ad"

# The open level, of which there can be one.
_levels: list[_Level] = forward_levels


class _FwdGrad:
    """Whether tangents are computed: `_set_fwd_grad_enabled`."""

    enabled = True


def _is_fwd_grad_enabled() -> bool:
    """Whether duals may be made and tangents are computed."""
    return _FwdGrad.enabled


class _set_fwd_grad_enabled:
    """Switches the computation of tangents on or off; as a context manager, restores the setting at the end."""

    def __init__(self, mode: bool) -> None:
        self._before = _FwdGrad.enabled
        _FwdGrad.enabled = bool(mode)

    def __enter__(self) -> None:
        pass

    @without_signals_at_entry
    def __exit__(self, *exc: Any) -> None:
        _FwdGrad.enabled = self._before


def current_level() -> int:
    """The number of the open level, 0; -1 where there is none."""
    return len(_levels) - 1


def enter_dual_level() -> int:
    """Open the level and return its number, 0; RuntimeError inside another one."""
    if _levels:
        raise RuntimeError("Nested forward mode AD is not supported at the moment")
    state, levels, level = threads.state, _levels, _Level()
    levels += (level,)
    state.grad_enabled = True  # tangents are computed from the recorded graph
    return 0


@without_signals_at_entry
def exit_dual_level(*, level: int | None = None) -> None:
    """Close the level and drop its tangents."""
    if not _levels:
        raise RuntimeError(
            "Dual level must be a positive number."
            if level is None
            else "Trying to exit a forward AD level that was not the last one that was created. This is not supported."
        )
    if level not in (None, 0):
        raise RuntimeError(
            "Trying to exit a forward AD level that was not the last one that was created. This is not supported."
        )
    level_state = _levels[-1]
    threads.state.grad_enabled = level_state.recorded
    del _levels[-1]
    carry_out([level_state.end])


class dual_level:
    """A block inside which tensors may have tangents."""

    def __enter__(self) -> int:
        return enter_dual_level()

    @without_signals_at_entry
    def __exit__(self, *exc: Any) -> None:
        exit_dual_level()


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """A dual tensor: what is computed from it has the derivative in the direction of `tangent` as its tangent."""
    if not _levels:
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first."
        )
    level_state = _levels[-1]
    for name, part in (("primal", tensor), ("tangent", tangent)):
        if not (part.is_floating_point() or part.is_complex()):
            raise ValueError(f"Expected {name} to be floating point or complex, but got: {part.dtype}")
    if tensor._array.shape != tangent._array.shape:
        raise RuntimeError(
            "Trying to set a forward gradient that has a different size than that of the original Tensor, "
            f"this is not supported. Tensor is of size {list(tensor.shape)} while the given forward gradient "
            f"is of size {list(tangent.shape)}."
        )
    if _duals_behind(tensor):
        raise RuntimeError(
            "Making a dual Tensor based on a Tensor that already has a forward gradient at the same level 0 is not supported."
        )
    if _duals_behind(tangent):
        raise RuntimeError("Setting a forward grad that itself has a forward gradient at the same level0 is not supported.")
    if not _FwdGrad.enabled:
        plain: Tensor = aten.view_as(tensor, tensor)
        return plain
    has_history = level_state.recorded and bool((tensor._keys | tangent._keys) & AUTOGRAD)
    if tensor._keys & AUTOGRAD and level_state.recorded:
        with enable_grad():
            dual: Tensor = aten.view_as(tensor, tensor)
    else:
        begin = aten.detach(tensor)
        require_grad(begin)
        # No leaf and no view, since a dual may be written in place.
        dual = aten.detach(tensor)
        with enable_grad():
            set_history(dual, aten.view_as(begin, begin)._node, 0)
    kept = _Dual(tangent, has_history)
    dual._node.own_hooks().metadata[_KEY] = kept
    level_state.duals.add(kept)
    return dual


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """The value and the tangent of a tensor; the tangent is None where it was not computed from a dual tensor."""
    if level is None and not _levels:
        return UnpackedDualTensor(tensor, None)
    behind = _duals_behind(tensor) if _FwdGrad.enabled else []
    if not behind:
        return UnpackedDualTensor(aten.view_as(tensor, tensor), None)
    begins = [GradientEdge(node, 0) for node, _ in behind]
    duals = [dual for _, dual in behind]
    differentiable = _has_history(tensor, behind)
    if len(behind) == 1 and behind[0][0] is tensor._node and _alike(tensor, duals[0].tangent):
        return UnpackedDualTensor(aten.view_as(tensor, tensor) if differentiable else aten.detach(tensor), duals[0].tangent)
    with enable_grad():
        seed: Tensor = aten.zeros_like(aten.detach(tensor))
        require_grad(seed)
        pairs = [
            (pulled, aten.to(dual.tangent, pulled.dtype))
            for pulled, dual in zip(pullback([tensor], begins, [seed]), duals, strict=True)
            if pulled is not None and pulled._keys & AUTOGRAD
        ]
        tangent = None
        if pairs:
            pulled_back, tangents = zip(*pairs, strict=True)
            tangent = grad(pulled_back, [seed], tangents, retain_graph=True, create_graph=differentiable, allow_unused=True)[0]
    if tangent is None:
        tangent = aten.zeros_like(aten.detach(tensor))
    elif any(tangent is dual.tangent for dual in duals):
        tangent = aten.clone(tangent)  # a copy of a dual, or a dual that lies in memory otherwise, has a tangent of its own
    return UnpackedDualTensor(aten.view_as(tensor, tensor) if differentiable else aten.detach(tensor), tangent)


def has_history(tensor: Tensor) -> bool:
    """Whether a tensor that is recorded requires grad, not for its tangent alone."""
    behind = _duals_behind(tensor)
    return not behind or _has_history(tensor, behind)


def _has_history(tensor: Tensor, behind: list[tuple[Node, _Dual]]) -> bool:
    return _levels[-1].recorded and (
        any(dual.has_history for _, dual in behind) or _reaches_others(tensor, [node for node, _ in behind])
    )


def is_dual(tensor: Tensor) -> bool:
    """Whether a tensor has a tangent at the open level."""
    return bool(_FwdGrad.enabled and _duals_behind(tensor))


def tangent_of(tensor: Tensor) -> Tensor | None:
    """The tangent of a tensor at the open level, None if it has none."""
    return unpack_dual(tensor).tangent


def attach(tensor: Tensor, tangent: Tensor) -> None:
    """Give a computed tensor a tangent that does not follow from those of the tensors it was computed from."""
    level_state = _levels[-1]
    if tensor._keys & AUTOGRAD:
        with enable_grad():
            node = aten.view_as(tensor, tensor)._node
    else:
        begin = aten.detach(tensor)
        require_grad(begin)
        with enable_grad():
            node = aten.view_as(begin, begin)._node
    set_history(tensor, node, 0)
    kept = _Dual(tangent, level_state.recorded and bool((tensor._keys | tangent._keys) & AUTOGRAD))
    node.own_hooks().metadata[_KEY] = kept
    level_state.duals.add(kept)


def _alike(primal: Tensor, tangent: Tensor | None) -> bool:
    """Whether a tangent has the dtype of its primal and lies in memory as that does."""
    if tangent is None:
        return False
    own, other = primal._array, tangent._array
    return bool(
        own.dtype == other.dtype
        and own.strides == other.strides
        and owner_of(own).nbytes == owner_of(other).nbytes
        and not (primal._keys ^ tangent._keys) & LAZY
    )


def _duals_behind(tensor: Tensor) -> list[tuple[Node, _Dual]]:
    """The dual tensors of the level from which a tensor was computed, each with its node."""
    if not _levels or not _levels[-1].duals:
        return []
    if not tensor._keys & AUTOGRAD:
        return []
    found: list[tuple[Node, _Dual]] = []
    todo, seen = [tensor._node], {id(tensor._node)}
    while todo:
        node = todo.pop()
        dual = None if node.hooks is None else node.hooks.metadata.get(_KEY)
        if dual is not None and dual.tangent is not None:
            found.append((node, dual))  # what is behind a dual does not matter
            continue
        for edge in node.edges:
            if edge is not None and id(edge[0]) not in seen:
                seen.add(id(edge[0]))
                todo.append(edge[0])
    return found


def _reaches_others(tensor: Tensor, begins: list[Node]) -> bool:
    """Whether a tensor was computed from a leaf otherwise than through the duals, whose nodes are `begins`."""
    todo = [tensor._node]
    seen = {id(node) for node in begins}
    while todo:
        node = todo.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if node.is_accumulator:
            return True
        todo += [edge[0] for edge in node.edges if edge is not None]
    return False
