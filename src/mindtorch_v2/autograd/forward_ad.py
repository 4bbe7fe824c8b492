"""torch.autograd.forward_ad: forward-mode derivatives, which this runtime does not have.

`torch.autograd.functional.jvp` computes the same products by differentiating twice backwards.
"""

from __future__ import annotations

from typing import Any, NamedTuple, NoReturn

from .._core.tensor import Tensor

__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual"]


class UnpackedDualTensor(NamedTuple):
    """A dual tensor's parts."""

    primal: Tensor
    tangent: Tensor | None


def _missing(name: str) -> NoReturn:
    raise NotImplementedError(f"torch.autograd.forward_ad.{name}: there is no forward-mode AD; "
                              "torch.autograd.functional.jvp computes Jacobian-vector products")


def enter_dual_level() -> int:
    _missing("enter_dual_level")


def exit_dual_level(*, level: int | None = None) -> None:
    _missing("exit_dual_level")


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Any:
    _missing("make_dual")


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """The parts of a tensor; without forward mode no tensor has a tangent."""
    return UnpackedDualTensor(tensor, None)


class dual_level:
    """Would open a level of forward-mode AD."""

    def __enter__(self) -> int:
        _missing("dual_level")

    def __exit__(self, *exc: Any) -> None:
        pass
