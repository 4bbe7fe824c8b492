"""Arithmetic as a module, in floating point."""

from __future__ import annotations

from typing import Any, NoReturn

from ... import _surface as torch
from ..._core.tensor import Tensor
from ..modules.linear import Identity
from ..modules.module import Module


class FloatFunctional(Module):
    """Operations whose results a quantizer could observe: each goes through `activation_post_process`."""

    def __init__(self) -> None:
        super().__init__()
        self.activation_post_process = Identity()

    def forward(self, x: Any) -> NoReturn:
        """RuntimeError: the operations are methods."""
        raise RuntimeError("FloatFunctional is not intended to use the 'forward'. Please use the underlying operation")

    def add(self, x: Tensor, y: Tensor) -> Tensor:
        """`torch.add`."""
        return self.activation_post_process(torch.add(x, y))  # type: ignore[no-any-return]

    def add_scalar(self, x: Tensor, y: float) -> Tensor:
        """`torch.add` of a number, which is not observed."""
        return torch.add(x, y)  # type: ignore[no-any-return]

    def mul(self, x: Tensor, y: Tensor) -> Tensor:
        """`torch.mul`."""
        return self.activation_post_process(torch.mul(x, y))  # type: ignore[no-any-return]

    def mul_scalar(self, x: Tensor, y: float) -> Tensor:
        """`torch.mul` by a number, which is not observed."""
        return torch.mul(x, y)  # type: ignore[no-any-return]

    def cat(self, x: list[Tensor], dim: int = 0) -> Tensor:
        """`torch.cat`."""
        return self.activation_post_process(torch.cat(x, dim))  # type: ignore[no-any-return]

    def add_relu(self, x: Tensor, y: Tensor) -> Tensor:
        """`torch.add`, then `relu`."""
        return self.activation_post_process(torch.relu(torch.add(x, y)))  # type: ignore[no-any-return]

    def matmul(self, x: Tensor, y: Tensor) -> Tensor:
        """`torch.matmul`."""
        return self.activation_post_process(torch.matmul(x, y))  # type: ignore[no-any-return]
