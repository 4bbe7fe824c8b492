"""gradcheck and gradgradcheck: gradients compared with finite differences."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._core.keys import AUTOGRAD, SPARSE
from .._core.shape_only import MetaArray
from .._core.tensor import Tensor, make_external
from .._dispatch.lazy_values import resolved
from .._dispatch.registry import aten
from .backward import grad as _grad
from .graph import FLOATING, require_grad


class GradcheckError(RuntimeError):
    """Raised by gradcheck and gradgradcheck where a gradient does not agree with finite differences."""


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Whether the gradients of `func` by those of `inputs` that require grad agree with finite differences.

    GradcheckError where they do not, or False if not `raise_exception`. `fast_mode` compares only one random combination of
    each Jacobian's entries.
    """
    if not (check_forward_ad or check_backward_ad):
        raise AssertionError("Expected at least one of check_forward_ad or check_backward_ad to be True")
    if check_batched_grad and not check_backward_ad:
        raise AssertionError("Setting check_batched_grad=True requires check_backward_ad to be True")
    if check_batched_forward_grad and not check_forward_ad:
        raise AssertionError("Setting check_batched_forward_grad=True requires check_forward_ad to be True")
    if check_batched_forward_grad:
        raise NotImplementedError("gradcheck(check_batched_forward_grad=True): tangents are not batched")
    arguments = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    if masked and any(isinstance(value, Tensor) and value._keys & SPARSE for value in arguments):
        raise NotImplementedError("gradcheck(masked=True): gradients of sparse inputs by their specified elements")
    try:
        _check_inputs(arguments)
        check = _Check(func, arguments, eps, atol, rtol, nondet_tol, fast_mode)
        if check_backward_ad:
            check.run()
        if check_forward_ad:
            check.forward_mode()
        if check.outputs and check_backward_ad:
            if check_undefined_grad:
                check.undefined_gradients()
            if check_grad_dtypes:
                check.dtypes()
            if check_batched_grad:
                check.batched()
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """Whether the second derivatives of `func` agree with finite differences of its gradients."""
    if not (check_fwd_over_rev or check_rev_over_rev):
        raise AssertionError("Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True")
    if check_fwd_over_rev:
        raise NotImplementedError("gradgradcheck(check_fwd_over_rev=True): there is no forward-mode AD")
    arguments = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    if grad_outputs is None:
        outputs = _differentiable(func(*arguments))
        weights = tuple(_random_weight(o, gen_non_contig_grad_outputs) for o in outputs)
    else:
        weights = (grad_outputs,) if isinstance(grad_outputs, Tensor) else tuple(grad_outputs)
    count = len(weights)
    wanted = [index for index, value in enumerate(arguments) if _requires_grad(value)]

    def gradients(*args: Any) -> tuple[Tensor, ...]:
        own, vector = args[:-count], args[-count:]
        own = tuple(_tracked(value) if index in wanted else value for index, value in enumerate(own))
        chosen = [own[index] for index in wanted]
        grads = _grad(_differentiable(func(*own)), chosen, vector, create_graph=True, allow_unused=True)
        return tuple(g for g in grads if g is not None)

    return gradcheck(
        gradients,
        arguments + weights,
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad,
        fast_mode=fast_mode,
        masked=masked,
    )


def _tracked(tensor: Tensor) -> Tensor:
    """The tensor itself if it requires grad, else a leaf on the same memory that does."""
    if tensor._keys & AUTOGRAD:
        return tensor
    leaf: Tensor = aten.detach(tensor)
    require_grad(leaf)
    return leaf


def _random_weight(output: Tensor, non_contiguous: bool) -> Tensor:
    """A random gradient of an output, which requires grad itself."""
    rng = np.random.default_rng(0)
    values = rng.standard_normal((*output._array.shape, 2 if non_contiguous else 1)).astype(output._array.dtype)
    if output._array.dtype.kind == "c":
        values = values + 1j * rng.standard_normal(values.shape).astype(values.real.dtype)
    weight = make_external(values[..., 0] if non_contiguous else values[..., 0].copy())
    require_grad(weight)
    return weight


def _requires_grad(value: Any) -> bool:
    return isinstance(value, Tensor) and bool(value._keys & AUTOGRAD)


def _differentiable(outputs: Any) -> tuple[Tensor, ...]:
    """The outputs of a function that require grad."""
    return tuple(o for o in ((outputs,) if not isinstance(outputs, tuple | list) else outputs) if o.requires_grad)


def _check_inputs(inputs: Sequence[Any]) -> None:
    """ValueError if no input requires grad; warnings and errors for inputs that finite differences cannot work with."""
    if not any(map(_requires_grad, inputs)):
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of them have requires_grad=True."
        )
    for index, value in enumerate(inputs):
        if not _requires_grad(value):
            continue
        array = value._array
        if array.dtype.str[1:] not in ("f8", "c16"):
            warnings.warn(
                f"Input #{index} requires gradient and is not a double precision floating point or complex. "
                "This check will likely fail if all the inputs are not of double precision floating point or "
                "complex. ",
                stacklevel=3,
            )
        if any(stride == 0 and size > 1 for stride, size in zip(value.stride(), array.shape, strict=True)):
            raise RuntimeError(
                f"The {index}th input has a dimension with stride 0. gradcheck only supports inputs "
                "that are non-overlapping to be able to compute the numerical gradients correctly. You "
                "should call .contiguous on the input before passing it to gradcheck."
            )


class _Check:
    """The checks of one function at one point. A complex number counts as a pair of real ones throughout."""

    def __init__(
        self,
        func: Callable[..., Any],
        inputs: tuple[Any, ...],
        eps: float,
        atol: float,
        rtol: float,
        nondet_tol: float,
        fast: bool,
    ) -> None:
        self.func = func
        self.inputs = inputs
        self.eps, self.atol, self.rtol, self.nondet_tol, self.fast = eps, atol, rtol, nondet_tol, fast
        self.wanted: list[Tensor] = [value for value in inputs if _requires_grad(value)]
        self.outputs = _differentiable(func(*inputs))

    def run(self) -> None:
        """GradcheckError if a Jacobian differs from finite differences, or from run to run by more than `nondet_tol`."""
        if not self.outputs:
            self._expect_zero()
            return
        numerical = {position: self._numerical(value) for position, value in enumerate(self.wanted)}
        for number in range(len(self.outputs)):
            first = self._analytical(number)
            if self._distance(first, self._analytical(number)) > self.nondet_tol:
                raise GradcheckError(
                    "Backward is not reentrant, i.e., running backward with same input and "
                    "grad_output multiple times gives different values, although analytical gradient "
                    "matches numerical gradient.The tolerance for nondeterminism was "
                    f"{self.nondet_tol}."
                )
            for position in range(len(self.wanted)):
                self._compare(number, position, numerical[position][number], first[position])

    def forward_mode(self) -> None:
        """GradcheckError if a Jacobian by forward-mode AD differs from finite differences."""
        for position, value in enumerate(self.wanted):
            numerical = self._numerical(value)
            for number, analytical in enumerate(self._forward(position)):
                self._compare(number, position, numerical[number], analytical, forward=True)

    def _forward(self, position: int) -> list[np.ndarray]:
        """For each output the Jacobian by one input from forward-mode AD: a row per (real) element of the input."""
        value = self.wanted[position]
        array = value._array
        rows: list[list[np.ndarray]] = []
        for index in np.ndindex(array.shape):
            for unit in (1, 1j) if array.dtype.kind == "c" else (1,):
                direction = np.zeros(array.shape, array.dtype)
                direction[index] = unit
                rows.append(self._pushed(value, make_external(direction)))
        outputs = self._values()
        return [np.stack([row[i] for row in rows]) if rows else np.zeros((0, o.size)) for i, o in enumerate(outputs)]

    def _pushed(self, value: Tensor, direction: Tensor) -> list[np.ndarray]:
        """The tangents of the outputs for one direction of an input, as flat real arrays."""
        from .forward_ad import dual_level, make_dual, unpack_dual  # forward mode is loaded when it is used

        with dual_level():
            arguments = [make_dual(aten.detach(each), direction) if each is value else each for each in self.inputs]
            outputs = self.func(*arguments)
            outputs = outputs if isinstance(outputs, tuple | list) else (outputs,)
            pushed = []
            for output in outputs:
                if isinstance(output, Tensor) and output._array.dtype.kind in FLOATING:
                    tangent = unpack_dual(output).tangent
                    pushed.append(_flat(_array_of(output)) * 0 if tangent is None else _flat(_array_of(tangent)))
            return pushed

    def _values(self) -> list[np.ndarray]:
        """The differentiable outputs at the inputs as they are now, as flat real arrays."""
        outputs = self.func(*self.inputs)
        outputs = outputs if isinstance(outputs, tuple | list) else (outputs,)
        return [_flat(_array_of(o)) for o in outputs if isinstance(o, Tensor) and o._array.dtype.kind in FLOATING]

    def _numerical(self, value: Tensor) -> list[np.ndarray]:
        """For each output the Jacobian by one input, from finite differences: a row per (real) element of the input."""
        rows: list[list[np.ndarray]] = []
        for write in _steps(value):
            write(self.eps)
            above = self._values()
            write(-self.eps)
            below = self._values()
            write(0.0)
            rows.append([(a - b) / (2 * self.eps) for a, b in zip(above, below, strict=True)])
        sizes = [_flat(_array_of(o)).size for o in self.outputs]
        return [np.stack([row[i] for row in rows]) if rows else np.zeros((0, n)) for i, n in enumerate(sizes)]

    def _analytical(self, number: int) -> list[np.ndarray]:
        """The Jacobian of one output by each input, from backward passes: a column per (real) element of the output."""
        output = self.outputs[number]
        array = output._array
        columns: list[list[np.ndarray]] = [[] for _ in self.wanted]
        for index in np.ndindex(array.shape):
            for unit in (1, 1j) if array.dtype.kind == "c" else (1,):
                seed = np.zeros(array.shape, array.dtype)
                seed[index] = unit
                for column, grad in zip(columns, self._backward(output, make_external(seed)), strict=True):
                    column.append(grad)
        return [
            np.stack(column, axis=1) if column else np.zeros((_flat(_array_of(v)).size, 0))
            for column, v in zip(columns, self.wanted, strict=True)
        ]

    def _backward(self, output: Tensor, seed: Tensor) -> list[np.ndarray]:
        """The gradients of one backward pass as flat real arrays, 0 where an input is not used."""
        grads = _grad(output, self.wanted, seed, retain_graph=True, allow_unused=True)
        flat = []
        for value, grad in zip(self.wanted, grads, strict=True):
            if grad is None:
                flat.append(np.zeros(_flat(_array_of(value)).size))
                continue
            if grad._array.shape != value._array.shape:
                raise GradcheckError("grad has incorrect size")
            flat.append(_flat(_array_of(grad)))
        return flat

    def _compare(
        self, number: int, position: int, numerical: np.ndarray, analytical: np.ndarray, forward: bool = False
    ) -> None:
        """GradcheckError if two Jacobians differ; in fast mode, if a random combination of their entries does."""
        a, n = analytical, numerical
        if self.fast:
            rng = np.random.default_rng(0)
            left, right = rng.random(a.shape[0]), rng.random(a.shape[1])
            a, n = np.asarray(left @ a @ right), np.asarray(left @ n @ right)
        if not np.allclose(a, n, self.rtol, self.atol, equal_nan=True):
            computed = "computed with forward mode " if forward else ""
            raise GradcheckError(
                f"Jacobian {computed}mismatch for output {number} with respect to input {position},\n"
                f"numerical:{make_external(np.asarray(n))}\nanalytical:{make_external(np.asarray(a))}\n"
            )

    @staticmethod
    def _distance(first: list[np.ndarray], second: list[np.ndarray]) -> float:
        return max((float(np.abs(a - b).max()) for a, b in zip(first, second, strict=True) if a.size), default=0.0)

    def _expect_zero(self) -> None:
        """GradcheckError if outputs without history change with the inputs."""
        for value in self.wanted:
            for write in _steps(value):
                write(self.eps)
                above = self._values()
                write(-self.eps)
                below = self._values()
                write(0.0)
                if any(np.abs(a - b).max(initial=0) / (2 * self.eps) > self.atol for a, b in zip(above, below, strict=True)):
                    raise GradcheckError("Numerical gradient for function expected to be zero")

    def undefined_gradients(self) -> None:
        """GradcheckError if a zero gradient, with another output's left undefined, gives a gradient that is not zero."""
        if len(self.outputs) == 1:
            return
        for undefined in range(len(self.outputs)):
            kept = [o for i, o in enumerate(_differentiable(self.func(*self.inputs))) if i != undefined]
            seeds = [aten.zeros_like(o) for o in kept]
            for grad in _grad(kept, self.wanted, seeds, allow_unused=True):
                if grad is not None and bool(np.any(grad._array != 0)):
                    raise GradcheckError(
                        "Expected all input grads to be undefined or zero when all output grads are "
                        'undefined or zero. Please look at "Notes about undefined output gradients" '
                        'in "tools/autograd/derivatives.yaml"'
                    )

    def dtypes(self) -> None:
        """GradcheckError if a gradient has another dtype than its input."""
        for output in self.outputs:
            grads = _grad(output, self.wanted, aten.ones_like(output), retain_graph=True, allow_unused=True)
            for value, grad in zip(self.wanted, grads, strict=True):
                if grad is not None and grad._array.dtype != value._array.dtype:
                    raise GradcheckError("Gradient has dtype mismatch.")

    def batched(self) -> None:
        """GradcheckError if a batch of gradients gives something else than they give one by one."""
        for output in self.outputs:
            seeds = aten.stack([aten.ones_like(output), aten.full_like(output, 2.0)])
            together = _grad(output, self.wanted, seeds, retain_graph=True, allow_unused=True, is_grads_batched=True)
            for row in range(2):
                alone = _grad(output, self.wanted, aten.select(seeds, 0, row), retain_graph=True, allow_unused=True)
                for a, b in zip(together, alone, strict=True):
                    if (a is None) != (b is None) or (
                        a is not None and not np.allclose(resolved(a)._array[row], resolved(b)._array)
                    ):
                        raise GradcheckError(
                            "While testing batched gradients, found that they differ from those computed one by one."
                        )


def _flat(array: np.ndarray) -> np.ndarray:
    """An array's elements as float64, real and imaginary parts one after the other."""
    if array.dtype.kind == "c":
        return np.stack([array.real, array.imag], axis=-1).reshape(-1).astype(np.float64)
    return array.reshape(-1).astype(np.float64)


def _array_of(tensor: Tensor) -> np.ndarray:
    """The elements of a tensor; those of one without memory of its own are read one by one."""
    array = tensor._array
    if not isinstance(array, MetaArray):
        resolved_array: np.ndarray = resolved(tensor)._array
        return resolved_array
    flat = aten.reshape(aten.detach(tensor), (-1,))
    values = [aten.item(aten.select(flat, 0, index)) for index in range(array.size)]
    return np.array(values, array.dtype).reshape(array.shape)


def _steps(tensor: Tensor) -> Any:
    """For each (real) element of a tensor a function that sets it to its first value plus a step."""
    array = tensor._array
    if isinstance(array, MetaArray):
        yield from _steps_without_memory(tensor)
        return
    for index in np.ndindex(array.shape):
        value = array[index]
        for unit in (1, 1j) if array.dtype.kind == "c" else (1,):

            def write(step: float, index: Any = index, value: Any = value, unit: Any = unit) -> None:
                array[index] = value + step * unit

            yield write


def _steps_without_memory(tensor: Tensor) -> Any:
    """`_steps` for a tensor of a subclass that has its elements elsewhere: its ops write them."""
    alias = aten.detach(tensor)
    values = _array_of(tensor)
    for index in np.ndindex(values.shape):
        place = alias
        for position in index:
            place = aten.select(place, 0, position)
        for unit in (1, 1j) if values.dtype.kind == "c" else (1,):

            def write(step: float, place: Tensor = place, index: Any = index, unit: Any = unit) -> None:
                aten.fill_(place, values[index].item() + step * unit)

            yield write
