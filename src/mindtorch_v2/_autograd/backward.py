"""backward() and grad(): the calls that start the engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._core.keys import AUTOGRAD
from .._core.tensor import Tensor
from .._dispatch.registry import aten
from .engine import GraphTask
from .node import Node

_NO_GRAD_FN = "element {} of tensors does not require grad and does not have a grad_fn"


def _sequence(value: Any) -> list[Any]:
    return [value] if isinstance(value, Tensor) or value is None else list(value)


def _seeds(outputs: list[Tensor], grads: list[Any]) -> list[tuple[Node, int, Tensor]]:
    """The engine's starting points: each output's node with the gradient to start from."""
    if len(grads) != len(outputs):
        raise RuntimeError(f"got {len(outputs)} tensors and {len(grads)} gradients")
    roots = []
    for index, (output, grad) in enumerate(zip(outputs, grads, strict=True)):
        if not output._keys & AUTOGRAD:
            raise RuntimeError(_NO_GRAD_FN.format(index))
        if grad is None:
            if output._array.size != 1:
                raise RuntimeError("grad can be implicitly created only for scalar outputs")
            if output._array.dtype.kind == "c":
                raise RuntimeError("grad can be implicitly created only for real scalar outputs but got "
                                   f"{output.dtype}")
            grad = aten.ones_like(output)
        elif not isinstance(grad, Tensor):
            raise TypeError(f"gradients can be either Tensors or None, but got {type(grad).__name__}")
        elif grad._array.shape != output._array.shape:
            raise RuntimeError(f"Mismatch in shape: grad_output[{index}] has a shape of {grad.shape} and output[{index}] "
                               f"has a shape of {output.shape}.")
        roots.append((output._node, output._output_nr, grad))
    return roots


def backward(tensors: Any, grad_tensors: Any = None, retain_graph: bool | None = None, create_graph: bool = False,
             grad_variables: Any = None, inputs: Any = None) -> None:
    """Compute the gradients of `tensors` with respect to the leaves and add them to their `.grad`."""
    if grad_variables is not None:
        if grad_tensors is not None:
            raise RuntimeError("`grad_tensors` and `grad_variables` (deprecated) arguments both passed to `backward()`. "
                               "Please only use `grad_tensors`.")
        grad_tensors = grad_variables
    outputs = _sequence(tensors)
    if not outputs:
        raise RuntimeError("`tensors` argument to `backward()` cannot be empty.")
    grads = [None] * len(outputs) if grad_tensors is None else _sequence(grad_tensors)
    retain = create_graph if retain_graph is None else retain_graph
    if inputs is None:
        GraphTask(retain, create_graph, None).run(_seeds(outputs, grads))
        return
    wanted = _sequence(inputs)
    if not wanted:
        raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    task = GraphTask(retain, create_graph, _targets(wanted))
    task.run(_seeds(outputs, grads))
    for tensor, grad in zip(wanted, _captured(task, wanted), strict=True):
        if grad is not None:
            held = tensor._grad
            tensor._grad = grad if held is None else held + grad


def grad(outputs: Any, inputs: Any, grad_outputs: Any = None, retain_graph: bool | None = None,
         create_graph: bool = False, only_inputs: bool = True, allow_unused: bool | None = None,
         is_grads_batched: bool = False, materialize_grads: bool = False) -> tuple[Any, ...]:
    """The gradients of `outputs` with respect to `inputs`; no `.grad` changes."""
    if is_grads_batched:
        raise NotImplementedError("autograd.grad(is_grads_batched=True)")
    if not only_inputs:
        raise NotImplementedError("autograd.grad(only_inputs=False)")
    if materialize_grads:
        if allow_unused is False:
            raise ValueError("Expected allow_unused to be True or not passed when materialize_grads=True, but got: "
                             "allow_unused=False.")
        allow_unused = True
    results, wanted = _sequence(outputs), _sequence(inputs)
    grads = [None] * len(results) if grad_outputs is None else _sequence(grad_outputs)
    retain = create_graph if retain_graph is None else retain_graph
    task = GraphTask(retain, create_graph, _targets(wanted))
    task.run(_seeds(results, grads))
    captured = _captured(task, wanted)
    if materialize_grads:
        captured = [aten.zeros_like(t) if g is None else g for t, g in zip(wanted, captured, strict=True)]
    if not allow_unused and any(g is None for g in captured):
        raise RuntimeError("One of the differentiated Tensors appears to not have been used in the graph. Set "
                           "allow_unused=True if this is the desired behavior.")
    return tuple(captured)


def _targets(inputs: Sequence[Tensor]) -> dict[tuple[Node, int], int]:
    targets: dict[tuple[Node, int], int] = {}
    for index, tensor in enumerate(inputs):
        if not isinstance(tensor, Tensor) or not tensor._keys & AUTOGRAD:
            raise RuntimeError("One of the differentiated Tensors does not require grad")
        targets.setdefault((tensor._node, tensor._output_nr), index)
    return targets


def _captured(task: GraphTask, inputs: Sequence[Tensor]) -> list[Tensor | None]:
    assert task.targets is not None
    return [task.captured.get(task.targets[t._node, t._output_nr]) for t in inputs]
