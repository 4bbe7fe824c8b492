"""The user's stack of the node that is made or run: kept in `node.meta["stack_trace"]` by tracers that record stacks."""

from __future__ import annotations

import traceback
from typing import Any


def format_stack() -> list[str]:
    """The calling stack, innermost last."""
    return traceback.format_stack()[:-1]


def has_preserved_node_meta() -> bool:
    """Whether new nodes take over another one's metadata: never here."""
    return False


def get_current_meta() -> dict[str, Any]:
    """The metadata that new nodes take over: none."""
    return {}
