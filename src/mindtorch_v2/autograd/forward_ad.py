"""torch.autograd.forward_ad: derivatives along with values, in the direction of tangents that are given to the inputs.

Tangents are not carried along op by op. A dual tensor begins a recorded computation, and `unpack_dual` differentiates what
was recorded twice backwards: the gradient is linear in the gradient of the output, and its derivative is the tangent. So
every op with a second derivative has a forward one, and unpacking costs about three passes instead of none. The few ops
whose tangents do not follow from their gradients declare them (`op.jvp`). Two things show: inside a level results have a
`grad_fn` although no input requires grad, and code under `no_grad()` that begins inside a level has no tangents.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from .._autograd.backward import grad, pullback
from .._autograd.grad_mode import enable_grad
from .._autograd.graph import require_grad
from .._autograd.graph_search import nodes_behind, reaches_others
from .._autograd.saved import set_history
from .._core.keys import AUTOGRAD
from .._core.tensor import Tensor
from .._core.threads import threads
from .._dispatch.registry import aten

__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual"]


class UnpackedDualTensor(NamedTuple):
    """A dual tensor's parts."""

    primal: Tensor
    tangent: Tensor | None


class _Level:
    """Where duals made since a level was entered begin, and whether gradients were recorded outside."""

    def __init__(self) -> None:
        self.duals: list[tuple[Tensor, Tensor, bool]] = []  # what a dual goes back to, its tangent, whether either had history
        self.recorded = bool(threads.state.grad_enabled)


_level: _Level | None = None


def enter_dual_level() -> int:
    """Open the level, of which there can be one; returns its number."""
    global _level
    if _level is not None:
        raise RuntimeError("Nested forward mode AD is not supported at the moment")
    _level = _Level()
    threads.state.grad_enabled = True  # the way back is what tangents are computed from
    return 0


def exit_dual_level(*, level: int | None = None) -> None:
    """Close the level: its tangents are gone."""
    global _level
    if _level is None:
        raise RuntimeError(
            "Dual level must be a positive number."
            if level is None
            else "Trying to exit a forward AD level that was not the last one that was created. This is not supported."
        )
    if level not in (None, 0):
        raise RuntimeError(
            "Trying to exit a forward AD level that was not the last one that was created. This is not supported."
        )
    threads.state.grad_enabled = _level.recorded
    _level = None


class dual_level:
    """A block inside which tensors may have tangents."""

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, *exc: Any) -> None:
        exit_dual_level()


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """A tensor with a direction: what is computed from it has the derivative in that direction as its tangent."""
    if _level is None:
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first."
        )
    for name, given in (("primal", tensor), ("tangent", tangent)):
        if not (given.is_floating_point() or given.is_complex()):
            raise ValueError(f"Expected {name} to be floating point or complex, but got: {given.dtype}")
    if tensor._array.shape != tangent._array.shape:
        raise RuntimeError(
            "Trying to set a forward gradient that has a different size than that of the original Tensor, "
            f"this is not supported. Tensor is of size {list(tensor.shape)} while the given forward gradient "
            f"is of size {list(tangent.shape)}."
        )
    if _reached([tensor]):
        raise RuntimeError(
            "Making a dual Tensor based on a Tensor that already has a forward gradient at the same level 0 is not supported."
        )
    tied = _level.recorded and bool((tensor._keys | tangent._keys) & AUTOGRAD)
    if tensor._keys & AUTOGRAD and _level.recorded:
        with enable_grad():
            dual: Tensor = aten.view_as(tensor, tensor)
        begin = dual
    else:
        begin = aten.detach(tensor)
        require_grad(begin)
        # No leaf and no view, since a dual may be written in place.
        dual = aten.detach(tensor)
        with enable_grad():
            set_history(dual, aten.view_as(begin, begin)._node, 0)
    _level.duals.append((begin, tangent, tied))
    return dual


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """The value and the tangent of a tensor; the tangent is None where no dual had a part in it."""
    if _level is None:
        return UnpackedDualTensor(aten.view_as(tensor, tensor), None)
    found = _reached([tensor])
    if not found:
        return UnpackedDualTensor(aten.view_as(tensor, tensor), None)
    duals = [dual for dual, _, _ in found]
    tied = _level.recorded and (any(had for _, _, had in found) or reaches_others([tensor], duals))
    with enable_grad():
        seed: Tensor = aten.zeros_like(aten.detach(tensor))
        require_grad(seed)
        pulled = pullback([tensor], duals, [seed])
        used = [
            (p, aten.to(t, p.dtype)) for p, (_, t, _) in zip(pulled, found, strict=True) if p is not None and p._keys & AUTOGRAD
        ]
        tangent = (
            grad([p for p, _ in used], [seed], [t for _, t in used], retain_graph=True, create_graph=tied, allow_unused=True)[0]
            if used
            else None
        )
    if tangent is None:
        tangent = aten.zeros_like(aten.detach(tensor))
    return UnpackedDualTensor(aten.view_as(tensor, tensor) if tied else aten.detach(tensor), tangent)


def _reached(tensors: list[Tensor]) -> list[tuple[Tensor, Tensor, bool]]:
    """The duals of the level that had a part in some tensors."""
    assert _level is not None
    if not _level.duals:
        return []
    behind = {id(node) for node in nodes_behind(tensors)}
    return [entry for entry in _level.duals if id(entry[0]._node) in behind]
