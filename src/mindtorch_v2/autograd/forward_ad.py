"""torch.autograd.forward_ad: forward-mode AD, which computes tangents along with values.

Tangents are not computed op by op. Ops on a dual tensor are recorded, and `unpack_dual` takes the tangent from two backward
passes (the double-backward trick): the gradient is linear in the gradient of the output, and its derivative by that is the
tangent. So every op with a second derivative has a forward one, and unpacking costs about three passes instead of none. The
few ops whose tangents do not follow from their gradients declare them (`op.jvp`). Two things show: inside a level results
have a `grad_fn` although no input requires grad, and code under `no_grad()` that begins inside a level has no tangents.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from .._autograd.backward import grad, pullback
from .._autograd.grad_mode import enable_grad
from .._autograd.graph import require_grad
from .._autograd.graph_search import nodes_behind, reaches_others
from .._autograd.nodes.saved import set_history
from .._core.cpython import without_signals_at_entry
from .._core.keys import AUTOGRAD
from .._core.tensor import Tensor
from .._core.threads import threads
from .._dispatch.registry import aten

__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual"]


class UnpackedDualTensor(NamedTuple):
    """The value (primal) and the tangent of a dual tensor; the tangent is None if the tensor is not dual."""

    primal: Tensor
    tangent: Tensor | None


class _Dual(NamedTuple):
    """One dual tensor of the level: the tensor whose node its computations go back to, and its tangent."""

    begin: Tensor
    tangent: Tensor
    # Whether the primal or the tangent required grad outside the level, so that results have to.
    has_history: bool


class _Level:
    """The dual tensors created since a level was entered, and the grad mode outside it."""

    def __init__(self) -> None:
        self.duals: list[_Dual] = []
        self.recorded = bool(threads.state.grad_enabled)


# The open level, of which there can be one.
_levels: list[_Level] = []


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
    threads.state.grad_enabled = _levels[-1].recorded
    del _levels[-1]


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
    has_history = level_state.recorded and bool((tensor._keys | tangent._keys) & AUTOGRAD)
    if tensor._keys & AUTOGRAD and level_state.recorded:
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
    level_state.duals.append(_Dual(begin, tangent, has_history))
    return dual


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """The value and the tangent of a tensor; the tangent is None where it was not computed from a dual tensor."""
    duals = _duals_behind(tensor)
    if not duals:
        return UnpackedDualTensor(aten.view_as(tensor, tensor), None)
    begins = [dual.begin for dual in duals]
    has_history = _levels[-1].recorded and (any(dual.has_history for dual in duals) or reaches_others([tensor], begins))
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
            tangent = grad(pulled_back, [seed], tangents, retain_graph=True, create_graph=has_history, allow_unused=True)[0]
    if tangent is None:
        tangent = aten.zeros_like(aten.detach(tensor))
    return UnpackedDualTensor(aten.view_as(tensor, tensor) if has_history else aten.detach(tensor), tangent)


def _duals_behind(tensor: Tensor) -> list[_Dual]:
    """The dual tensors of the level from which a tensor was computed."""
    if not _levels or not _levels[-1].duals:
        return []
    behind = {id(node) for node in nodes_behind([tensor])}
    return [dual for dual in _levels[-1].duals if id(dual.begin._node) in behind]
