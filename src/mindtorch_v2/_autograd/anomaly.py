"""Anomaly mode: each node remembers the stack of its forward call, and NaN in a gradient is an error."""

from __future__ import annotations

import sys
import threading
import traceback
import warnings
from collections.abc import Sequence
from typing import Any

from .._core.cpython import without_signals_at_entry
from .._core.restoring import carry_out
from .._core.tensor import Tensor
from .._dispatch.registry import aten
from .graph import add_node_listener, remove_node_listener, without_history
from .nodes import saved
from .nodes.node import Node

_TRACEBACK = "traceback_"
_PARENT = "parent_"


class _State:
    enabled = False
    check_nan = True


state = _State()


class _Current(threading.local):
    """The node whose backward runs on this thread: the parent of the nodes that this backward creates."""

    node: Node | None = None


_current = _Current()


def remember(node: Node) -> None:
    """Store in a new node's metadata the stack that created it and, inside a backward pass, its parent node."""
    node.metadata[_TRACEBACK] = traceback.format_stack()[:-3]
    if _current.node is not None:
        node.metadata[_PARENT] = _current.node


class parent_of_new_nodes:
    """Inside the block, `node` becomes the parent of every new node."""

    __slots__ = ("before", "node")

    def __init__(self, node: Node) -> None:
        self.node = node

    def __enter__(self) -> None:
        self.before = _current.node
        _current.node = self.node

    @without_signals_at_entry
    def __exit__(self, *exc: Any) -> None:
        _current.node = self.before


def check(node: Node, results: Sequence[Tensor | None]) -> None:
    """RuntimeError if one of the gradients that a node returned has NaN in it."""
    if not state.check_nan:
        return
    for position, grad in enumerate(results):
        if grad is not None and without_history(_has_nan, (grad,), {}):
            raise RuntimeError(f"Function '{node.name()}' returned nan values in its {position}th output.")


def _has_nan(grad: Tensor) -> bool:
    return bool(aten.any(aten.isnan(grad)))


def report(node: Node) -> None:
    """Warn with the stack of the forward call whose backward failed, and with those of the nodes that led to it."""
    if _TRACEBACK not in node.metadata:
        _tell(
            f"Error detected in {node.name()}. No forward pass information available. Enable detect anomaly "
            "during forward pass for more information."
        )
        return
    _tell(
        f"Error detected in {node.name()}. Traceback of forward call that caused the error:\n"
        + "".join(node.metadata[_TRACEBACK])
    )
    child = node
    while (parent := child.metadata.get(_PARENT)) is not None:
        text = parent.metadata.get(_TRACEBACK)
        if text is None:
            _tell(
                f"\n\nPrevious calculation was induced by {parent.name()}. No forward pass information "
                "available. Enable detect anomaly during forward pass for more information."
            )
        else:
            _tell(
                f"\n\nPrevious calculation was induced by {parent.name()}. Traceback of forward call that "
                "induced the previous calculation:\n" + "".join(text)
            )
        child = parent


def _tell(text: str) -> None:
    """Warn. Where warnings are errors the text goes to sys.stderr, so that the error which is told about stays the one that is
    raised."""
    try:
        warnings.warn(text, stacklevel=3)
    except UserWarning:
        print(text, file=sys.stderr)


def is_anomaly_enabled() -> bool:
    """Whether anomaly mode is on."""
    return state.enabled


def is_anomaly_check_nan_enabled() -> bool:
    """Whether anomaly mode raises at NaN in a gradient."""
    return state.check_nan


class set_detect_anomaly:
    """Turns anomaly mode on or off at once; as a context manager, restores the previous setting at the end."""

    __module__ = "mindtorch_v2.autograd.anomaly_mode"

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self.prev = state.enabled
        self.prev_check_nan = state.check_nan
        _set(mode, check_nan)

    def __enter__(self) -> None:
        pass

    @without_signals_at_entry
    def __exit__(self, *exc: Any) -> None:
        state.enabled, state.check_nan = self.prev, self.prev_check_nan
        carry_out([_follow])


class detect_anomaly:
    """A block in which anomaly mode is on; `check_nan=False` leaves only the stacks."""

    __module__ = "mindtorch_v2.autograd.anomaly_mode"

    def __init__(self, check_nan: bool = True) -> None:
        self.prev = state.enabled
        self.check_nan = check_nan
        self.prev_check_nan = state.check_nan
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for debugging.",
            stacklevel=2,
        )

    def __enter__(self) -> None:
        self.prev, self.prev_check_nan = state.enabled, state.check_nan
        _set(True, self.check_nan)

    @without_signals_at_entry
    def __exit__(self, *exc: Any) -> None:
        state.enabled, state.check_nan = self.prev, self.prev_check_nan
        carry_out([_follow])


def _set(mode: bool, check_nan: bool) -> None:
    before = state.enabled, state.check_nan
    mode, check_nan = bool(mode), bool(check_nan)
    try:
        state.enabled, state.check_nan = mode, check_nan
        _follow()
    except BaseException:
        state.enabled, state.check_nan = before
        carry_out([_follow])
        raise


def _follow() -> None:
    """Have new nodes remembered while the mode is on, and saved values checked."""
    saved.state.anomaly = state.enabled
    if state.enabled:
        add_node_listener(state, remember)
    else:
        remove_node_listener(state)
