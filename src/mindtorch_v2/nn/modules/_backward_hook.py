"""How hooks see the gradients at a module's borders."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from ..._core.keys import AUTOGRAD
from ..._core.tensor import Tensor
from ..._core.threads import threads
from ._functions import BackwardHookFunction


class BackwardHook:
    """Calls a module's full backward hooks once the gradients of its outputs and of its inputs are known."""

    def __init__(self, module: Any, user_hooks: list[Callable[..., Any]], user_pre_hooks: list[Callable[..., Any]]) -> None:
        self.user_hooks = user_hooks
        self.user_pre_hooks = user_pre_hooks
        self.module = module
        self.grad_outputs: tuple[Any, ...] | None = None
        self.n_outputs = -1
        self.output_tensors_index: list[int] = []
        self.n_inputs = -1
        # None: no input requires grad, so the hooks run when the outputs' gradients are known.
        self.input_tensors_index: list[int] | None = None

    @staticmethod
    def _spread(indices: list[int], values: Sequence[Any], length: int) -> tuple[Any, ...]:
        """Values at their places among `length` arguments, None at the others."""
        spread: list[Any] = [None] * length
        for index, value in zip(indices, values, strict=True):
            spread[index] = value
        return tuple(spread)

    def _seen(self, args: tuple[Any, ...], on_node: Callable[[Any], Any]) -> tuple[tuple[Any, ...], list[int] | None]:
        """The arguments with their tensors taken across a border; None for the indices if none requires grad."""
        indices = [i for i, value in enumerate(args) if isinstance(value, Tensor)]
        if not any(args[i]._keys & AUTOGRAD for i in indices) or not threads.state.grad_enabled:
            return args, None
        seen = BackwardHookFunction.apply(*[args[i] for i in indices])
        on_node(next(tensor.grad_fn for tensor in seen if tensor.grad_fn is not None))
        changed = list(args)
        for index, tensor in zip(indices, seen, strict=True):
            changed[index] = tensor
        return (tuple(changed) if type(args) is tuple else type(args)(*changed)), indices

    def setup_input_hook(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The module's inputs, arranged so that the user's hooks run when their gradients are known."""
        args, indices = self._seen(args, lambda node: node.register_hook(self._on_input_gradients))
        self.n_inputs = len(args)
        self.input_tensors_index = indices
        return args

    def _on_input_gradients(self, grad_inputs: tuple[Any, ...], _: Any) -> Any:
        if self.grad_outputs is None:
            # The inputs were used in a way that leaves the outputs out: there is nothing to report.
            return None
        assert self.input_tensors_index is not None
        spread = self._spread(self.input_tensors_index, grad_inputs, self.n_inputs)
        result: tuple[Any, ...] | None = None
        for hook in self.user_hooks:
            changed = hook(self.module, spread, self.grad_outputs)
            if changed is not None:
                changed = changed if isinstance(changed, tuple) else (changed,)
                _check_count("hook", "grad_input", changed, spread)
                spread = result = changed
        self.grad_outputs = None
        return None if result is None else tuple(result[i] for i in self.input_tensors_index)

    def setup_output_hook(self, args: Any) -> Any:
        """The module's outputs, arranged so that their gradients are noted (or reported, if no input needs one)."""
        if not isinstance(args, tuple | Tensor):
            warnings.warn(
                "For backward hooks to be called, module output should be a Tensor or a tuple of Tensors but "
                f"received {type(args)}",
                stacklevel=5,
            )
            return args
        single = isinstance(args, Tensor)
        outputs, indices = self._seen(
            (args,) if isinstance(args, Tensor) else args, lambda node: node.register_prehook(self._on_output_gradients)
        )
        self.n_outputs = len(outputs)
        self.output_tensors_index = indices or []
        return outputs[0] if single else outputs

    def _on_output_gradients(self, grad_outputs: tuple[Any, ...]) -> Any:
        self.grad_outputs = self._spread(self.output_tensors_index, grad_outputs, self.n_outputs)
        for hook in self.user_pre_hooks:
            changed = hook(self.module, self.grad_outputs)
            if changed is not None:
                changed = changed if isinstance(changed, tuple) else (changed,)
                _check_count("pre hook", "grad_output", changed, self.grad_outputs)
                self.grad_outputs = changed
        noted = self.grad_outputs
        if self.input_tensors_index is None:
            self._report_outputs_only()
        if not self.user_pre_hooks:
            return None
        return tuple(noted[i] for i in self.output_tensors_index)

    def _report_outputs_only(self) -> None:
        if self.user_hooks:
            warnings.warn(
                "Full backward hook is firing when gradients are computed with respect to module outputs "
                "since no inputs require gradients. See torch.nn.Module.register_full_backward_hook for more "
                "details.",
                stacklevel=5,
            )
        inputs = (None,) * self.n_inputs
        for hook in self.user_hooks:
            changed = hook(self.module, inputs, self.grad_outputs)
            if changed is not None and not (isinstance(changed, tuple) and all(grad is None for grad in changed)):
                raise RuntimeError(
                    "Backward hook for Modules where no input requires gradient should always return "
                    "None or None for all gradients."
                )
        self.grad_outputs = None


def _check_count(kind: str, what: str, got: tuple[Any, ...], expected: tuple[Any, ...]) -> None:
    if len(got) != len(expected):
        raise RuntimeError(
            f"Backward {kind} returned an invalid number of {what}, got {len(got)}, but expected {len(expected)}"
        )
