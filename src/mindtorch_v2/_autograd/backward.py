"""backward() and grad(): check the arguments, find the roots and targets, and start the engine."""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Mapping, Sequence
from typing import Any

from .._core import dtype as dt
from .._core.cpython import stack_level
from .._core.keys import AUTOGRAD, SPARSE
from .._core.memory_format import preserve_format
from .._core.sparse import SparseTensor, with_entries
from .._core.tensor import Tensor
from .._core.warn_always import Always
from .._dispatch.observer import call_untraced
from .._dispatch.registry import aten
from .engine import GraphRoot, GraphTask, Root, run_task
from .graph import require_grad
from .nodes.accumulate import AccumulateGrad
from .nodes.edges import GradientEdge, edge_of
from .nodes.grad_form import to_form
from .nodes.node import Edge
from .observed_engine import walk_for

# Whether `_warn_of_cycle` has warned in this process; a list, so that it is changed in place.
_warned: list[bool] = []


def _sequence(value: Any) -> list[Any]:
    """An argument that may be one tensor, a sequence or a mapping of them, as a list."""
    if value is None or isinstance(value, Tensor | GradientEdge):
        return [value]
    return list(value.values()) if isinstance(value, Mapping) else list(value)


def _entries(value: Any) -> Any:
    """The values of a sparse tensor, which have its history; anything else as it is."""
    return value._entries if isinstance(value, SparseTensor) else value


def _entry_gradient(output: Any, grad: Any) -> Any:
    """The gradient of a sparse output's values, at its places; of any other output as it is."""
    if not isinstance(output, SparseTensor) or not isinstance(grad, Tensor):
        return grad
    if type(grad) is type(output) and grad._entries._array.shape == output._entries._array.shape:
        return grad._entries
    if type(output) is not SparseTensor:
        raise NotImplementedError(f"a gradient of a compressed sparse output that has other places: {grad.layout}")
    dense: Any = grad.to_dense() if grad._keys & SPARSE else grad
    return dense.sparse_mask(output)._entries


def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Any = None,
) -> None:
    """Compute the gradients of `tensors` with respect to the leaves and add them to their `.grad`.

    With `inputs`, only those tensors (leaves or not) get a gradient.
    """
    if grad_variables is not None:
        warnings.warn("`grad_variables` is deprecated. Use `grad_tensors` instead.", FutureWarning, stacklevel=2)
        if grad_tensors is not None:
            raise RuntimeError(
                "`grad_tensors` and `grad_variables` (deprecated) arguments both passed to "
                "`backward()`. Please only use `grad_tensors`."
            )
        grad_tensors = grad_variables
    outputs = _sequence(tensors)
    targets: list[Edge] | None = None
    if inputs is not None:
        wanted = _sequence(inputs)
        if not wanted:
            raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
        targets = _edges(wanted)
        for tensor in wanted:
            if isinstance(tensor, Tensor):
                retain_grad(tensor)
    if create_graph:
        _warn_of_cycle()
    task = GraphTask(create_graph if retain_graph is None else bool(retain_graph), create_graph, targets)
    _run(task, outputs, _gradients(outputs, grad_tensors))


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> Any:
    """The gradients of `outputs` with respect to `inputs`, as a tuple, or a dict if that is one; no `.grad` changes."""
    if not only_inputs:
        warnings.warn(
            "only_inputs argument is deprecated and is ignored now (defaults to True). To accumulate "
            "gradient for other parts of the graph, please use "
            "torch.autograd.backward.",
            FutureWarning,
            stacklevel=2,
        )
    if materialize_grads:
        if allow_unused is False:
            raise ValueError(
                "Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False."
            )
        allow_unused = True
    results, sources = _sequence(outputs), _sequence(inputs)
    wanted = list(map(_entries, sources))
    if not wanted:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    if any(isinstance(each, SparseTensor) for each in results):
        grad_outputs = [_entry_gradient(o, g) for o, g in zip(results, _sequence(grad_outputs), strict=False)]
        results = list(map(_entries, results))
    retain = create_graph if retain_graph is None else bool(retain_graph)
    if is_grads_batched:
        captured = _grad_of_batch(results, wanted, grad_outputs, retain, create_graph, bool(allow_unused))
    else:
        captured = _grad(results, wanted, _gradients(results, grad_outputs), retain, create_graph, bool(allow_unused))
    if materialize_grads:
        if any(isinstance(t, GradientEdge) and g is None for t, g in zip(wanted, captured, strict=True)):
            raise RuntimeError("materialize_grads cannot be used when the given input is a GradientEdge")
        captured = [_zeros(t, create_graph) if g is None else g for t, g in zip(wanted, captured, strict=True)]
    captured = [
        with_entries(source, each) if isinstance(source, SparseTensor) and each is not None else each
        for source, each in zip(sources, captured, strict=True)
    ]
    return dict(zip(inputs, captured, strict=True)) if isinstance(inputs, Mapping) else tuple(captured)


def _zeros(tensor: Tensor, create_graph: bool) -> Tensor:
    """The gradient of an unused input; a leaf that requires grad where the result is to be differentiated again."""
    zeros: Tensor = aten.zeros_like(tensor)
    if create_graph:
        require_grad(zeros)
    return zeros


def _grad(
    outputs: list[Any], inputs: list[Any], grads: list[Any], retain: bool, create_graph: bool, allow_unused: bool
) -> list[Tensor | None]:
    """The gradients of `inputs` from one backward pass; RuntimeError for an unused one, unless `allow_unused`."""
    targets = _edges(inputs)
    task = GraphTask(retain, create_graph, targets, capture=True)
    _run(task, outputs, grads)
    captured = [task.captured.get(edge) for edge in targets]
    if not allow_unused:
        for index, each in enumerate(captured):
            if each is None:
                raise RuntimeError(
                    f"The differentiated Tensor at index {index} appears to not have been used in the "
                    "graph. Set allow_unused=True if this is the desired behavior."
                )
    return captured


def pullback(
    outputs: Sequence[Tensor], inputs: Sequence[Tensor | GradientEdge], seeds: Sequence[Tensor]
) -> list[Tensor | None]:
    """Gradients of `inputs` that are linear in `seeds`, the gradients of `outputs`, which are 0 and require grad.

    Differentiated by the seeds they give tangents (double-backward trick); an op that declares a jvp takes part with that.
    """
    targets = _edges(inputs)
    task = GraphTask(True, True, targets, capture=True)
    task.linear = True
    _run(task, outputs, seeds)
    return [task.captured.get(edge) for edge in targets]


def _grad_of_batch(
    outputs: list[Any], inputs: list[Any], grad_outputs: Any, retain: bool, create_graph: bool, allow_unused: bool
) -> list[Tensor | None]:
    """grad() with `is_grads_batched`: one backward pass per row of `grad_outputs`, whose results are stacked."""
    batches = _sequence(grad_outputs)
    for index, (output, batch) in enumerate(zip(outputs, batches, strict=False)):
        if isinstance(batch, Tensor) and batch._array.shape[1:] != _form(output)[0]:
            raise RuntimeError(
                "If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the batch "
                "dimension. The sizes of the remaining dimensions are expected to match the shape of corresponding "
                f"output, but a mismatch was detected: grad_output[{index}] has a shape of {batch.shape} and "
                f"output[{index}] has a shape of torch.Size({list(_form(output)[0])}). If you only want some tensors "
                "in `grad_output` to be considered batched, consider using vmap."
            )
    sizes = {batch._array.shape[0] for batch in batches if isinstance(batch, Tensor)}
    if len(sizes) != 1:
        raise ValueError(
            "vmap: Expected all tensors to have the same size in the mapped dimension, got sizes "
            f"{sorted(sizes)} for the mapped dimension"
            if sizes
            else "vmap(wrapped_fn, in_dims, ...)(<inputs>): got no inputs."
        )
    count = sizes.pop()
    rows = []
    for row in range(count):
        grads = [batch if batch is None else aten.select(batch, 0, row) for batch in batches]
        rows.append(_grad(outputs, inputs, _gradients(outputs, grads), retain or row + 1 < count, create_graph, allow_unused))
    return [None if column[0] is None else aten.stack(list(column)) for column in zip(*rows, strict=True)]


def retain_grad(tensor: Tensor) -> None:
    """Have backward passes store the gradient of a tensor that is no leaf in its `.grad`."""
    node = tensor._node
    if not node.is_accumulator:
        node.own_hooks().retain[tensor._output_nr] = weakref.ref(tensor)


def _warn_of_cycle() -> None:
    """torch's warning about backward(create_graph=True), once in a process unless `torch.set_warn_always` says otherwise."""
    if Always.on or not _warned:
        _warned.append(True)
        warnings.warn(
            "Using backward() with create_graph=True will create a reference cycle between the parameter and "
            "its gradient which can cause a memory leak. We recommend using autograd.grad when creating the "
            "graph to avoid this. If you have to use this function, make sure to reset the .grad fields of "
            "your parameters to None after use to break the cycle and avoid the leak.",
            stacklevel=stack_level(__name__.partition(".")[0]),
        )


def _form(output: Any) -> tuple[tuple[int, ...], Any]:
    """Shape and NumPy dtype of the gradient that a root takes."""
    if isinstance(output, GradientEdge):
        form: Any = output.node.inputs
        return form[output.output_nr] if form.__class__ is list else form  # type: ignore[no-any-return]
    return output._array.shape, output._array.dtype


def _gradients(outputs: Sequence[Any], grad_outputs: Any) -> list[Tensor | None]:
    """The gradients that a pass starts from: `grad_outputs`, and 1 for a scalar output that has none there."""
    grads = [None] * len(outputs) if grad_outputs is None else _sequence(grad_outputs)
    seeds: list[Tensor | None] = []
    for index, (output, grad) in enumerate(zip(outputs, grads, strict=False)):
        if grad is None:
            seeds.append(_implicit_gradient(output))
        elif isinstance(grad, Tensor):
            _check_gradient(index, output, grad)
            seeds.append(grad)
        else:
            raise TypeError(f"gradients can be either Tensors or None, but got {type(grad).__name__}")
    return seeds


def _implicit_gradient(output: Any) -> Tensor | None:
    """1 for a real scalar, RuntimeError for another output with history, None for one without."""
    is_edge = isinstance(output, GradientEdge)
    if not is_edge and not output._keys & AUTOGRAD:
        return None
    shape, np_dtype = _form(output)
    if any(n != 1 for n in shape):
        raise RuntimeError("grad can be implicitly created only for scalar outputs")
    if np_dtype.kind == "c":
        raise RuntimeError(f"grad can be implicitly created only for real scalar outputs but got {dt.from_numpy(np_dtype)}")
    ones: Tensor = (
        aten.ones(shape, dtype=dt.from_numpy(np_dtype)) if is_edge else aten.ones_like(output, memory_format=preserve_format)
    )
    return ones


def _check_gradient(index: int, output: Any, grad: Tensor) -> None:
    """RuntimeError if the shape of a gradient is not that of its output, or only one of them is complex."""
    shape, np_dtype = _form(output)
    if grad._array.shape != shape:
        raise RuntimeError(
            f"Mismatch in shape: grad_output[{index}] has a shape of {grad.shape} and output[{index}] "
            f"has a shape of torch.Size({list(shape)})."
        )
    if (grad._array.dtype.kind == "c") != (np_dtype.kind == "c"):
        raise RuntimeError(
            "For complex Tensors, both grad_output and output are required to have the same dtype. "
            f"Mismatch in dtype: grad_output[{index}] has a dtype of {grad.dtype} and output[{index}] "
            f"has a dtype of {dt.from_numpy(np_dtype)}."
        )


def _run(task: GraphTask, outputs: Sequence[Any], grads: Sequence[Tensor | None]) -> None:
    """Run a backward pass from several roots; no op in it shows as a Python call in a profile."""
    roots: list[Root] = []
    for index, (output, grad) in enumerate(zip(outputs, grads, strict=False)):
        if isinstance(output, Tensor) and (not output._keys & AUTOGRAD or _is_end(output)):
            raise RuntimeError(f"element {index} of tensors does not require grad and does not have a grad_fn")
        node, number = edge_of(output)
        form: Any = node.inputs
        if form.__class__ is list:
            form = form[number]
        roots.append((node, number, None if grad is None else to_form(None, index, grad, form)))
    if not roots:
        return
    if len(roots) > 1:
        call_untraced(run_task, task, GraphRoot(roots), 0, None, walk_for(task))
        return
    node, number, grad = roots[0]
    call_untraced(run_task, task, node, number, grad, walk_for(task))


def _edges(inputs: Sequence[Any]) -> list[Edge]:
    """The edges at which a pass with targets ends; RuntimeError where an input does not require grad."""
    edges: list[Edge] = []
    for tensor in inputs:
        if not isinstance(tensor, GradientEdge | Tensor):
            raise RuntimeError(f"all inputs have to be Tensors or GradientEdges, but got {type(tensor).__name__}")
        if not isinstance(tensor, GradientEdge) and not tensor._keys & AUTOGRAD:
            raise RuntimeError("One of the differentiated Tensors does not require grad")
        # No path of a graph leads to a view that was taken in no_grad mode: its edge is one of its own.
        if isinstance(tensor, Tensor) and _is_end(tensor):
            edges.append((AccumulateGrad(tensor), 0))
        else:
            edges.append(edge_of(tensor))
    return edges


def _is_end(tensor: Tensor) -> bool:
    """Whether a tensor requires grad only since its base does: it was taken in no_grad mode, and nothing leads to it."""
    node = tensor._node
    return isinstance(node, AccumulateGrad) and node.is_end
