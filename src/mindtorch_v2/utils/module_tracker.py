"""torch.utils.module_tracker: which modules are being executed, forward or backward."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable
from typing import Any

from .._autograd.engine import queue_callback
from .._autograd.multi_hooks import _MultiHandle, register_multi_grad_hook
from .._autograd.running import current_task_id
from .._core.cpython import without_signals_at_entry
from .._core.restoring import carry_out
from .._core.tensor import Tensor
from ..nn.modules.module import Module, register_module_forward_hook, register_module_forward_pre_hook
from ._pytree import tree_leaves

__all__ = ["ModuleTracker"]

logger = logging.getLogger(__name__)


class ModuleTracker:
    """Inside `with ModuleTracker() as tracker:`, `tracker.parents` names the modules that are being executed.

    Names are paths that start at the class of the outermost module, "ResNet.layer1.0"; "Global" is always there.
    In backward a module is entered when the gradients of its outputs are there and left with those of its inputs; one
    whose inputs need no gradient is left when the pass ends.
    """

    parents: set[str]

    def __init__(self) -> None:
        self.parents = {"Global"}
        self._names: weakref.WeakKeyDictionary[Module, str] = weakref.WeakKeyDictionary()
        self._named_below: weakref.WeakSet[Module] = weakref.WeakSet()
        self._ends_with_pass = False
        self._handles: list[Any] = []
        self._gradient_handles: list[_MultiHandle] = []

    @property
    def is_bw(self) -> bool:
        """Whether a backward pass is under way on this thread."""
        return current_task_id() != -1

    def __enter__(self) -> ModuleTracker:
        try:
            self._handles += (register_module_forward_pre_hook(self._before_forward),)
            self._handles += (register_module_forward_hook(self._after_forward),)
        except BaseException:
            carry_out([self._remove_hooks])
            raise
        return self

    @without_signals_at_entry
    def __exit__(self, *exc: Any) -> None:
        carry_out([self._remove_hooks])

    def _remove_hooks(self) -> None:
        for handles in (self._handles, self._gradient_handles):
            while handles:
                handles[-1].remove()
                del handles[-1]

    def _name_of(self, module: Module) -> str:
        """A module's path: a module that is called before any parent of it is a root, and its name begins all paths below."""
        name = self._names.setdefault(module, type(module).__name__)
        if module not in self._named_below:
            for child_name, child in module.named_children():
                self._names[child] = f"{name}.{child_name}"
                self._name_of(child)
            self._named_below.add(module)
        return name

    def _before_forward(self, module: Module, args: Any) -> None:
        name = self._name_of(module)
        self._enter(name, "forward")
        self._at_gradients(args, lambda _: self._leave(name, "backward"))

    def _after_forward(self, module: Module, args: Any, output: Any) -> None:
        name = self._name_of(module)
        self._leave(name, "forward")

        def enter(_: Any) -> None:
            self._forget_after_pass()
            self._enter(name, "backward")

        self._at_gradients(output, enter)

    def _at_gradients(self, values: Any, hook: Callable[[Any], None]) -> None:
        tensors = [leaf for leaf in tree_leaves(values) if isinstance(leaf, Tensor) and leaf.requires_grad]
        if tensors:
            self._gradient_handles.append(register_multi_grad_hook(tensors, hook))

    def _enter(self, name: str, direction: str) -> None:
        if name in self.parents:
            logger.info("%s is entered in %s while it is being executed: its parts cannot be told apart", name, direction)
        self.parents.add(name)

    def _leave(self, name: str, direction: str) -> None:
        if name not in self.parents:
            logger.info("%s is left in %s, but was not entered", name, direction)
        self.parents.discard(name)

    def _forget_after_pass(self) -> None:
        """Leave what is still being executed when the backward pass ends."""
        if self._ends_with_pass:
            return

        def end() -> None:
            self.parents = {"Global"}
            self._ends_with_pass = False

        queue_callback(end)
        self._ends_with_pass = True
