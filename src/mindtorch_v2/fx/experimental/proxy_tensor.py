"""torch.fx.experimental.proxy_tensor: what libraries ask about tracing by tensors, which is not supported."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = ["get_proxy_mode", "make_fx"]


def get_proxy_mode() -> None:
    """The mode that traces this thread's ops: there is none."""


def make_fx(f: Any, *args: Any, **kwargs: Any) -> NoReturn:
    """NotImplementedError: `torch.fx.symbolic_trace` makes graphs of functions and modules."""
    raise NotImplementedError(
        "torch.fx.experimental.proxy_tensor.make_fx: use torch.fx.symbolic_trace. See docs/compatibility.md"
    )
