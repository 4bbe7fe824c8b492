"""torch._vmap_internals: the older names of `torch.func.vmap`."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

from .func import vmap as _func_vmap
from .func._rules import RandomOperation


def vmap(func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0) -> Callable[..., Any]:
    """`torch.vmap` by its older name. Deprecated."""
    warnings.warn("Please use `torch.vmap` instead of `torch._vmap_internals.vmap`.", FutureWarning, stacklevel=2)
    return _vmap(func, in_dims, out_dims)


def _vmap(
    func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0, allow_none_pass_through: bool = False
) -> Callable[..., Any]:
    """`torch.vmap`. NotImplementedError for outputs that are None."""
    if allow_none_pass_through:
        raise NotImplementedError("torch._vmap_internals._vmap(allow_none_pass_through=True)")

    @functools.wraps(func)
    def mapped(*args: Any) -> Any:
        try:
            return _func_vmap(func, in_dims, out_dims)(*args)
        except RandomOperation as error:
            raise RuntimeError(
                "vmap: We do not yet support calling random operations inside of vmap. Please perform random operations "
                "outside of vmap as a workaround"
            ) from error

    return mapped
