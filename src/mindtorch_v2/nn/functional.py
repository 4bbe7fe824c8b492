"""torch.nn.functional: layers and losses as functions."""

from __future__ import annotations

from .._dispatch.registry import aten
from ._functional.activation import *  # noqa: F403
from ._functional.loss import *  # noqa: F403

# Functions that are an op and nothing more.
_OPS = {
    "linear": "linear", "logsigmoid": "log_sigmoid", "gelu": "gelu", "softplus": "softplus",
}
globals().update({name: getattr(aten, op) for name, op in _OPS.items() if hasattr(aten, op)})
