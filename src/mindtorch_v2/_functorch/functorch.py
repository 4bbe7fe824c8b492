"""The package `functorch` that PyTorch brings along: what `import functorch` gives while this package stands in for torch."""

from __future__ import annotations

from typing import Any, NoReturn

from ..func import functionalize, grad, grad_and_value, hessian, jacfwd, jacrev, jvp, vjp, vmap
from ..version import __version__
from .make_functional import (
    FunctionalModule,
    FunctionalModuleWithBuffers,
    combine_state_for_ensemble,
    make_functional,
    make_functional_with_buffers,
)

__all__ = [
    "FunctionalModule",
    "FunctionalModuleWithBuffers",
    "__version__",
    "combine_state_for_ensemble",
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "make_functional",
    "make_functional_with_buffers",
    "make_fx",
    "vjp",
    "vmap",
]


def make_fx(*args: Any, **kwargs: Any) -> NoReturn:
    """NotImplementedError: there is no tracing below autograd."""
    raise NotImplementedError("functorch.make_fx: use torch.fx.symbolic_trace. See docs/compatibility.md")
