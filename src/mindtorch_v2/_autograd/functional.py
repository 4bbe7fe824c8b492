"""torch.autograd.functional: Jacobians, Hessians and their products with vectors, all from backward passes.

The functions that the user passes in may take and return a tensor or a tuple of tensors; inside, everything is a tuple.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._core.keys import AUTOGRAD
from .._core.tensor import Tensor
from .._dispatch.registry import aten
from .backward import grad as _grad
from .grad_mode import enable_grad, no_grad
from .graph import require_grad

Tensors = tuple[Tensor, ...]
_STRATEGY = 'Expected strategy to be either "forward-mode" or "reverse-mode".'
_OUTPUTS = "outputs of the user-provided function"


# ---------------------------------------------------------------- arguments


def _as_tuple(value: Any, what: str, where: str) -> tuple[bool, Tensors]:
    """Whether a value was a tuple of tensors, and the tensors."""
    is_tuple = isinstance(value, tuple)
    values = value if is_tuple else (value,)
    for index, each in enumerate(values):
        if not isinstance(each, Tensor):
            which = f"the value at index {index}" if is_tuple else f"the given {what}"
            raise TypeError(
                f"The {what} given to {where} must be either a Tensor or a tuple of Tensors but {which} has type {type(each)}."
            )
    return is_tuple, values


def _like(is_tuple: bool, values: Sequence[Any]) -> Any:
    """A tuple, or its only item where the user's function has no tuple."""
    return tuple(values) if is_tuple else values[0]


def _fresh(inputs: Tensors, create_graph: bool) -> Tensors:
    """Inputs to differentiate by: leaves, or with `create_graph` views of the inputs, which keep their history."""
    return tuple(aten.view_as(t, t) if create_graph and t._keys & AUTOGRAD else _leaf(t) for t in inputs)


def _leaf(tensor: Tensor) -> Tensor:
    """A leaf that requires grad on the memory of a tensor."""
    leaf: Tensor = aten.detach(tensor)
    require_grad(leaf)
    return leaf


def _plain(values: Any, create_graph: bool) -> Any:
    """Results as they are returned: detached, unless `create_graph`."""
    if create_graph:
        return values
    if isinstance(values, Tensor):
        return aten.detach(values)
    return tuple(_plain(value, False) for value in values)


def _vector(v: Any, like: Tensors, is_tuple: bool, where: str) -> Tensors:
    """The vector `v` of a product as a tuple; RuntimeError if its sizes are not those of `like`."""
    _, vector = _as_tuple(v, "v", where)
    if len(vector) != len(like):
        if is_tuple:
            raise RuntimeError(f"v is a tuple of invalid length: should be {len(like)} but got {len(vector)}.")
        raise RuntimeError("The given v should contain a single Tensor.")
    for index, (each, other) in enumerate(zip(vector, like, strict=True)):
        if each._array.shape != other._array.shape:
            entry = f"Entry {index} in " if is_tuple else ""
            raise RuntimeError(f"{entry}v has invalid size: should be {other.shape} but got {each.shape}.")
    return vector


def _single(values: Tensors) -> bool:
    return len(values) == 1 and values[0]._array.size == 1


# ---------------------------------------------------------------- derivatives


def _gradients(
    outputs: Tensors, inputs: Tensors, vector: Sequence[Tensor | None] | None, create_graph: bool
) -> list[Tensor | None]:
    """Gradients of those outputs that have history by all inputs; None where an input is not used."""
    vector = vector or [None] * len(outputs)
    used = [(o, v) for o, v in zip(outputs, vector, strict=True) if o._keys & AUTOGRAD]
    if not used:
        return [None] * len(inputs)
    return list(
        _grad(
            [o for o, _ in used], inputs, [v for _, v in used], retain_graph=True, create_graph=create_graph, allow_unused=True
        )
    )


def _filled(grads: Sequence[Tensor | None], like: Tensors, strict: bool, create_graph: bool, stage: str) -> Tensors:
    """The gradients, with zeros where there is none; RuntimeError for those in strict mode. `stage` chooses its message."""
    filled: list[Tensor] = []
    for index, (grad, other) in enumerate(zip(grads, like, strict=True)):
        if grad is None:
            if strict:
                raise RuntimeError(_UNUSED[stage].format(index))
            filled.append(aten.zeros_like(other))
            continue
        if strict and create_graph and not grad._keys & AUTOGRAD and "double" not in stage:
            raise RuntimeError(_INDEPENDENT[stage].format(index))
        filled.append(grad)
    return tuple(filled)


_UNUSED = {
    "back": "The output of the user-provided function is independent of input {}. This is not allowed in strict mode.",
    "back_trick": "The gradient with respect to the input is independent of entry {} in the grad_outputs when using "
    "the double backward trick to compute forward mode gradients. This is not allowed in strict mode.",
    "double_back": "The jacobian of the user-provided function is independent of input {}. This is not allowed in strict mode.",
    "double_back_trick": "The hessian of the user-provided function is independent of entry {} in the grad_jacobian. "
    "This is not allowed in strict mode as it prevents from using the double backward trick to "
    "replace forward mode AD.",
}
_INDEPENDENT = dict.fromkeys(
    ("back", "back_trick"),
    "The jacobian of the user-provided function is independent of input {}. This is not allowed in strict mode "
    "when create_graph=True.",
)


def _require(values: Tensors, strict: bool, what: str) -> None:
    """RuntimeError if a value has no history, which strict mode asks of everything that is differentiated."""
    if not strict:
        return
    for index, each in enumerate(values):
        if not each._keys & AUTOGRAD:
            raise RuntimeError(_NO_HISTORY[what].format(index))


_NO_HISTORY = {
    "outputs": "Output {} of the user-provided function does not require gradients. The outputs must be computed in a "
    "differentiable manner from the input when running in strict mode.",
    "grad_inputs": "The gradient with respect to input {} is independent of the inputs of the user-provided function. "
    "This is not allowed in strict mode.",
    "jacobian": "While computing the hessian, found that the jacobian of the user-provided function with respect to "
    "input {} is independent of the input. This is not allowed in strict mode. You should ensure that your "
    "function is twice differentiable and that the jacobian depends on the inputs (this would be violated "
    "by a linear function for example).",
    "hessian": "While computing the hessian, found that the hessian of the user-provided function with respect to "
    "input {} is independent of the input.",
}


def vjp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """(func(inputs), the product of `v` with the Jacobian there)."""
    with enable_grad():
        is_inputs_tuple, primals = _as_tuple(inputs, "inputs", "vjp")
        inner = _fresh(primals, create_graph)
        is_outputs_tuple, outputs = _as_tuple(func(*inner), _OUTPUTS, "vjp")
        _require(outputs, strict, "outputs")
        if v is None and not _single(outputs):
            raise RuntimeError(
                "The vector v can only be None if the user-provided function returns a single Tensor with a single element."
            )
        vector = None if v is None else _vector(v, outputs, is_outputs_tuple, "vjp")
    with enable_grad() if create_graph else no_grad():
        grads = _gradients(outputs, inner, vector, create_graph)
        product = _filled(grads, primals, strict, create_graph, "back")
    return _like(is_outputs_tuple, _plain(outputs, create_graph)), _like(is_inputs_tuple, _plain(product, create_graph))


def jvp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """(func(inputs), the product of the Jacobian there with `v`), from the derivative of the vjp by its vector."""
    with enable_grad():
        is_inputs_tuple, primals = _as_tuple(inputs, "inputs", "jvp")
        inner = _fresh(primals, create_graph)
        if v is None and not _single(primals):
            raise RuntimeError(
                "The vector v can only be None if the input to the user-provided function is a single "
                "Tensor with a single element."
            )
        vector = None if v is None else _vector(v, primals, is_inputs_tuple, "jvp")
        is_outputs_tuple, outputs = _as_tuple(func(*inner), _OUTPUTS, "jvp")
        _require(outputs, strict, "outputs")
        # The vjp is linear in its vector, so its derivative by that vector is the Jacobian itself.
        probes = tuple(_leaf(aten.zeros_like(output)) for output in outputs)
        gradients = _filled(_gradients(outputs, inner, probes, True), primals, strict, False, "back")
        _require(gradients, strict, "grad_inputs")
    with enable_grad() if create_graph else no_grad():
        ones = tuple(aten.ones_like(g) for g in gradients) if vector is None else vector
        tangents = _gradients(gradients, probes, ones, create_graph)
        product = _filled(tangents, outputs, strict, create_graph, "back_trick")
    return (_like(is_outputs_tuple, _plain(outputs, create_graph)), _like(is_outputs_tuple, _plain(product, create_graph)))


def jacobian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """The Jacobian of `func` at `inputs`: for each pair of output and input a tensor of the dims of both.

    `vectorize` and `strategy` choose how torch computes it; here each is one backward pass per row.
    """
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError(
            _STRATEGY + ' Hint: If your function has more outputs than inputs, "forward-mode" tends '
            'to be more performant. Otherwise, prefer to use "reverse-mode".'
        )
    if strategy == "forward-mode" and create_graph:
        raise NotImplementedError(
            "torch.autograd.functional.jacobian: `create_graph=True` and "
            '`strategy="forward-mode"` are not supported together (yet). Please either set '
            '`create_graph=False` or `strategy="reverse-mode"`.'
        )
    if strategy == "forward-mode" and not vectorize:
        raise NotImplementedError(
            "Computing Jacobian using forward-AD or forward-over-reverse Hessian isonly implemented for `vectorize=True`."
        )
    if strict and vectorize:
        raise RuntimeError(
            "torch.autograd.functional.jacobian: `strict=True` and `vectorized=True` are not supported "
            "together. Please either set `strict=False` or `vectorize=False`."
        )
    with enable_grad():
        is_inputs_tuple, primals = _as_tuple(inputs, "inputs", "jacobian")
        inner = _fresh(primals, create_graph)
        is_outputs_tuple, outputs = _as_tuple(func(*inner), _OUTPUTS, "jacobian")
        _require(outputs, strict, "outputs")
        rows = tuple(
            _like(is_inputs_tuple, _jacobian_of(number, output, inner, create_graph, strict))
            for number, output in enumerate(outputs)
        )
    return _like(is_outputs_tuple, _plain(rows, create_graph))


def _jacobian_of(number: int, output: Tensor, inputs: Tensors, create_graph: bool, strict: bool) -> Tensors:
    """The Jacobian of output `number` by each input, from one backward pass per element of the output."""
    columns: list[list[Tensor]] = [[] for _ in inputs]
    flat = aten.reshape(output, (-1,))
    for i in range(output._array.size):
        grads = _gradients((aten.select(flat, 0, i),), inputs, None, create_graph)
        for position, (column, grad, like) in enumerate(zip(columns, grads, inputs, strict=True)):
            if grad is None and strict:
                raise RuntimeError(
                    f"Output {number} of the user-provided function is independent of input {position}. This is not "
                    "allowed in strict mode."
                )
            if grad is not None and strict and create_graph and not grad._keys & AUTOGRAD:
                raise RuntimeError(_INDEPENDENT["back"].format(position))
            column.append(aten.zeros_like(like) if grad is None else grad)
    shape = output._array.shape
    return tuple(
        aten.view(aten.stack(column), (*shape, *t._array.shape))
        if column
        else aten.zeros((*shape, *t._array.shape), dtype=t.dtype)
        for column, t in zip(columns, inputs, strict=True)
    )


def hessian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """The Hessian of a function that returns one element: for each pair of inputs a tensor of the dims of both."""
    is_inputs_tuple, primals = _as_tuple(inputs, "inputs", "hessian")
    if outer_jacobian_strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError(_STRATEGY)

    def scalar(*args: Tensor) -> Tensor:
        is_tuple, outputs = _as_tuple(func(*args), _OUTPUTS, "hessian")
        _check_scalar(is_tuple, outputs, "hessian")
        _require(outputs, strict, "outputs")
        return outputs[0]

    def gradient(*args: Tensor) -> Tensors:
        if outer_jacobian_strategy == "forward-mode":
            args = tuple(_leaf(t) if not t._keys & AUTOGRAD else t for t in args)
        rows = jacobian(scalar, args, create_graph=True)
        grads = tuple(aten.reshape(row, t._array.shape) for row, t in zip(rows, args, strict=True))
        _require(grads, strict, "jacobian")
        return grads

    blocks = jacobian(gradient, primals, create_graph=create_graph, strict=strict, vectorize=vectorize, strategy="reverse-mode")
    return tuple(blocks) if is_inputs_tuple else blocks[0][0]


def _check_scalar(is_tuple: bool, outputs: Tensors, where: str) -> None:
    if is_tuple:
        raise RuntimeError(f"The function given to {where} should return a single Tensor")
    if outputs[0]._array.size != 1:
        raise RuntimeError(f"The Tensor returned by the function given to {where} should contain a single element")


def _scalar_gradient(
    func: Callable[..., Any], primals: Tensors, create_graph: bool, strict: bool, where: str
) -> tuple[Tensors, Tensor, Tensors]:
    """The inputs used, the value, and the gradient of a function with one element, which can be differentiated again."""
    inner = _fresh(primals, create_graph)
    is_tuple, outputs = _as_tuple(func(*inner), _OUTPUTS, where)
    _check_scalar(is_tuple, outputs, where)
    _require(outputs, strict, "outputs")
    gradient = _filled(_gradients(outputs, inner, None, True), primals, strict, False, "back")
    _require(gradient, strict, "jacobian")
    return inner, outputs[0], gradient


def _hessian_vector(v: Any, primals: Tensors, is_tuple: bool, where: str) -> Tensors | None:
    """The vector of a product with the Hessian; None, which stands for 1, only for an input of one element."""
    if v is None:
        if not _single(primals):
            raise RuntimeError(
                "The vector v can only be None if the input to the user-provided function is a single "
                "Tensor with a single element."
            )
        return None
    return _vector(v, primals, is_tuple, where)


def vhp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """(func(inputs), the product of `v` with the Hessian there)."""
    with enable_grad():
        is_tuple, primals = _as_tuple(inputs, "inputs", "vhp")
        vector = _hessian_vector(v, primals, is_tuple, "vhp")
        inner, value, gradient = _scalar_gradient(func, primals, create_graph, strict, "vhp")
    with enable_grad() if create_graph else no_grad():
        product = _filled(_gradients(gradient, inner, vector, create_graph), primals, strict, create_graph, "double_back")
    return _plain(value, create_graph), _like(is_tuple, _plain(product, create_graph))


def hvp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """(func(inputs), the product of the Hessian there with `v`)."""
    with enable_grad():
        is_tuple, primals = _as_tuple(inputs, "inputs", "hvp")
        vector = _hessian_vector(v, primals, is_tuple, "hvp")
        inner, value, gradient = _scalar_gradient(func, primals, create_graph, strict, "hvp")
        probes = tuple(_leaf(aten.zeros_like(g)) for g in gradient)
        double = _filled(_gradients(gradient, inner, probes, True), primals, strict, False, "double_back")
        _require(double, strict, "hessian")
    with enable_grad() if create_graph else no_grad():
        ones = tuple(aten.ones_like(g) for g in double) if vector is None else vector
        tangents = _gradients(double, probes, ones, create_graph)
        product = _filled(tangents, primals, strict, create_graph, "double_back_trick")
    return _plain(value, create_graph), _like(is_tuple, _plain(product, create_graph))


def _construct_standard_basis_for(tensors: Sequence[Tensor], tensor_numels: Sequence[int]) -> tuple[Tensor, ...]:
    """The rows of an identity matrix with a column for each element of all tensors, cut into a piece for each tensor."""
    total = sum(tensor_numels)
    pieces: list[Tensor] = []
    start = 0
    for tensor, count in zip(tensors, tensor_numels, strict=True):
        piece: Tensor = aten.zeros((total, count), dtype=tensor.dtype, device=tensor.device)
        aten.fill_(aten.diagonal(piece, -start), 1)
        pieces.append(piece)
        start += count
    return tuple(pieces)
