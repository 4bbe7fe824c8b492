"""gradcheck and gradgradcheck: gradients compared with finite differences."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from .._core.dtype import from_numpy
from .._core.keys import AUTOGRAD, SPARSE
from .._core.shape_only import MetaArray
from .._core.size import Size
from .._core.tensor import Tensor, make_external
from .._dispatch.registry import aten
from .backward import grad as _grad
from .graph import FLOATING, require_grad
from .real_vectors import array_of, flat_of, steps_of, unflat, unit_vector, width_of
from .undefined import UndefinedGrad


class GradcheckError(RuntimeError):
    """Raised by gradcheck and gradgradcheck where a gradient does not agree with finite differences."""


class _Batching:
    """`vmap`, which is above this package and is set from there."""

    vmap: Callable[..., Any]


_batching = _Batching()


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

    GradcheckError where they do not, or False if not `raise_exception`. `fast_mode` takes one random direction of each input,
    and one of each output, in place of all their elements.
    """
    if not (check_forward_ad or check_backward_ad):
        raise AssertionError("Expected at least one of check_forward_ad or check_backward_ad to be True")
    if check_batched_grad and not check_backward_ad:
        raise AssertionError("Setting check_batched_grad=True requires check_backward_ad to be True")
    if check_batched_forward_grad and not check_forward_ad:
        raise AssertionError("Setting check_batched_forward_grad=True requires check_forward_ad to be True")
    arguments = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    _check_sparse(arguments, bool(masked), check_forward_ad)
    try:
        _check_inputs(arguments)
        check = _Check(func, arguments, eps, atol, rtol, nondet_tol, fast_mode)
        if check_backward_ad:
            check.run()
        if check_forward_ad:
            check.forward_mode()
            _check_tangents(func, arguments, check_undefined_grad, check_batched_forward_grad)
        if check.outputs and check_backward_ad:
            check.zero_gradients()
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
        check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev,
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
    return isinstance(value, Tensor) and bool(_parameter(value)._keys & AUTOGRAD)


def _parameter(value: Tensor) -> Tensor:
    """What an input is differentiated by: of a sparse tensor its specified elements."""
    entries: Tensor = value._entries if value._keys & SPARSE else value  # type: ignore[attr-defined]
    return entries


def _check_sparse(inputs: Sequence[Any], masked: bool, forward: bool) -> None:
    """NotImplementedError for sparse inputs that need more than the gradients of their specified elements."""
    for value in inputs:
        if not isinstance(value, Tensor) or not value._keys & SPARSE:
            continue
        if forward:
            raise NotImplementedError("gradcheck(check_forward_ad=True): tangents of sparse inputs")
        if not masked and _parameter(value)._array.size != value._array.size:
            raise NotImplementedError("gradcheck(masked=False): gradients of elements that a sparse input does not specify")


def _check_tangents(func: Callable[..., Any], inputs: tuple[Any, ...], undefined: bool, batched: bool) -> None:
    """GradcheckError if tangents differ where some are undefined, or where they come as a batch."""
    if undefined or batched:
        from .gradcheck_tangents import batched_tangents, undefined_tangents  # forward mode is loaded when it is used

        if undefined:
            undefined_tangents(func, inputs)
        if batched:
            batched_tangents(func, inputs, _batching.vmap)


def _differentiable(outputs: Any) -> tuple[Tensor, ...]:
    """The outputs of a function that require grad. ValueError if one of them is sparse."""
    listed = outputs if isinstance(outputs, tuple | list) else (outputs,)
    if any(isinstance(o, Tensor) and o._keys & SPARSE for o in listed):
        raise ValueError(
            "Sparse output is not supported at gradcheck yet. Please call to_dense(masked_grad=...) on the output of fn for "
            "gradcheck."
        )
    return tuple(o for o in listed if o._keys & AUTOGRAD)


def _check_inputs(inputs: Sequence[Any]) -> None:
    """ValueError if no input requires grad; warnings and errors for inputs that finite differences cannot work with."""
    if not any(map(_requires_grad, inputs)):
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of them have requires_grad=True."
        )
    for index, given in enumerate(inputs):
        if not _requires_grad(given):
            continue
        value = _parameter(given)
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
    """The checks of one function at one point. A complex number counts as a pair of real ones throughout.

    A Jacobian has a row for each element of an input and a column for each of an output; in fast mode one row, and one column
    or, of complex numbers, one for the real parts and one for the imaginary ones.
    """

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
        self.wanted: list[Tensor] = [_parameter(value) for value in inputs if _requires_grad(value)]
        outputs = func(*inputs)
        self.outputs = _differentiable(outputs)
        # Where these are among the floating point ones, which finite differences and forward mode see.
        self.floating = [o for o in (outputs if isinstance(outputs, tuple | list) else (outputs,)) if _is_floating(o)]
        self.places = [place for place, output in enumerate(self.floating) if output._keys & AUTOGRAD]

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
            numerical, analytical = self._numerical(value), self._forward(position)
            for number, place in enumerate(self.places):
                self._compare(number, position, numerical[number], analytical[place], forward=True)

    def _forward(self, position: int) -> list[np.ndarray]:
        """For each output the Jacobian by one input from forward-mode AD: a row per (real) element of the input."""
        value = self.wanted[position]
        rows = [self._pushed(value, make_external(direction)) for direction in self._directions(value)]
        outputs = self._arrays()
        return [
            np.stack([row[i] @ self._columns(o) for row in rows]) if rows else np.zeros((0, self._columns(o).shape[1]))
            for i, o in enumerate(outputs)
        ]

    def _directions(self, value: Tensor) -> Iterator[np.ndarray]:
        """What an input is changed by: each of its elements, or in fast mode all of them at once."""
        array = value._array
        if self.fast:
            yield unflat(unit_vector(width_of(array)), array)
            return
        for index in np.ndindex(array.shape):
            for unit in (1, 1j) if array.dtype.kind == "c" else (1,):
                direction = np.zeros(array.shape, array.dtype)
                direction[index] = unit
                yield direction

    def _columns(self, output: np.ndarray) -> Any:
        """What the flat changes of an output are multiplied by to get the columns of its Jacobians."""
        width = width_of(output)
        if not self.fast:
            return np.eye(width)
        weights = unit_vector(width)
        if output.dtype.kind != "c":
            return weights[:, None]
        parts = np.zeros((width, 2))
        parts[0::2, 0], parts[1::2, 1] = weights[0::2], weights[1::2]
        return parts

    def _pushed(self, value: Tensor, direction: Tensor) -> list[np.ndarray]:
        """The tangents of the outputs for one direction of an input, as flat real arrays."""
        from .forward_ad import dual_level, make_dual, unpack_dual  # forward mode is loaded when it is used

        with dual_level():
            arguments = [
                make_dual(aten.detach(each), direction if each is value else aten.zeros_like(aten.detach(each)))
                if _requires_grad(each)
                else each
                for each in self.inputs
            ]
            outputs = self.func(*arguments)
            outputs = outputs if isinstance(outputs, tuple | list) else (outputs,)
            pushed = []
            for output in outputs:
                if isinstance(output, Tensor) and output._array.dtype.kind in FLOATING:
                    tangent = unpack_dual(output).tangent
                    pushed.append(flat_of(array_of(output)) * 0 if tangent is None else flat_of(array_of(tangent)))
            return pushed

    def _arrays(self) -> list[np.ndarray]:
        """Copies of the differentiable outputs at the inputs as they are now."""
        outputs = self.func(*self.inputs)
        outputs = outputs if isinstance(outputs, tuple | list) else (outputs,)
        return [array_of(o).copy() for o in outputs if _is_floating(o)]

    def _difference(self, write: Callable[[float], None]) -> list[np.ndarray]:
        """What the outputs change by for each unit of one element of an input. AssertionError where they change shape or dtype,
        so that there is nothing to compare."""
        write(self.eps)
        above = self._arrays()
        write(-self.eps)
        below = self._arrays()
        write(0.0)
        for a, b in zip(above, below, strict=True):
            for word, one, other in (
                ("shape", Size(a.shape), Size(b.shape)),
                ("dtype", from_numpy(a.dtype), from_numpy(b.dtype)),
            ):
                if one != other:
                    raise AssertionError(
                        f"Expected `func` to return outputs with the same {word} when inputs are perturbed by {self.eps}, but "
                        f"got: {word}s {one} and {other}."
                    )
        return [(flat_of(a) - flat_of(b)) / (2 * self.eps) for a, b in zip(above, below, strict=True)]

    def _numerical(self, value: Tensor) -> list[np.ndarray]:
        """For each output the Jacobian by one input, from finite differences: a row per (real) element of the input."""
        rows = [self._difference(write) for write in self._steps(value)]
        columns = [self._columns(self.floating[place]._array) for place in self.places]
        return [
            np.stack([row[place] @ chosen for row in rows]) if rows else np.zeros((0, chosen.shape[1]))
            for place, chosen in zip(self.places, columns, strict=True)
        ]

    def _steps(self, value: Tensor) -> Any:
        """Functions that take a step from an input's values: one for each element, or in fast mode one for all."""
        if not self.fast:
            return steps_of(value)
        direction = unit_vector(width_of(value._array))
        if isinstance(value._array, MetaArray):
            each = list(steps_of(value))
            return [lambda step: [write(step * part) for write, part in zip(each, direction, strict=True)]]
        array = value._array
        before, way = array.copy(), unflat(direction, array)

        def write_all(step: float) -> None:
            array[...] = before + step * way if step else before

        return [write_all]

    def _analytical(self, number: int) -> list[np.ndarray]:
        """The Jacobian of one output by each input, from backward passes: a column per (real) element of the output."""
        output = self.outputs[number]
        array = output._array
        columns: list[list[np.ndarray]] = [[] for _ in self.wanted]
        for weights in self._columns(array).T:
            seed = make_external(unflat(weights, array))
            for column, value, grad in zip(columns, self.wanted, self._backward(output, seed), strict=True):
                column.append(np.asarray([unit_vector(width_of(value._array)) @ grad]) if self.fast else grad)
        return [
            np.stack(column, axis=1) if column else np.zeros((1 if self.fast else width_of(v._array), 0))
            for column, v in zip(columns, self.wanted, strict=True)
        ]

    def _backward(self, output: Tensor, seed: Tensor) -> list[np.ndarray]:
        """The gradients of one backward pass as flat real arrays, 0 where an input is not used."""
        grads = _grad(output, self.wanted, seed, retain_graph=True, allow_unused=True)
        flat = []
        for value, grad in zip(self.wanted, grads, strict=True):
            if grad is None:
                flat.append(np.zeros(flat_of(array_of(value)).size))
                continue
            if grad._array.shape != value._array.shape:
                raise GradcheckError("grad has incorrect size")
            flat.append(flat_of(array_of(grad)))
        return flat

    def _compare(
        self, number: int, position: int, numerical: np.ndarray, analytical: np.ndarray, forward: bool = False
    ) -> None:
        """GradcheckError if two Jacobians differ."""
        part = ""
        atol = self.atol
        if self.fast:  # what adds up in a combination of entries may add up in their tolerances
            atol *= float(unit_vector(width_of(self.wanted[position]._array)).sum())
            atol *= float(unit_vector(width_of(self.outputs[number]._array)).sum())
        if not forward and self.outputs[number]._array.dtype.kind == "c":
            for name, first in (("imaginary", 1), ("real", 0)):  # as torch has it, the imaginary part first
                if not np.allclose(analytical[:, first::2], numerical[:, first::2], self.rtol, atol, equal_nan=True):
                    part = f"While considering the {name} part of complex outputs only, "
                    break
        a, n = analytical, numerical
        if not np.allclose(a, n, self.rtol, atol, equal_nan=True):
            computed = "computed with forward mode " if forward else ""
            raise GradcheckError(
                f"{part}Jacobian {computed}mismatch for output {number} with respect to input {position},\n"
                f"numerical:{make_external(np.asarray(n))}\nanalytical:{make_external(np.asarray(a))}\n"
            )

    @staticmethod
    def _distance(first: list[np.ndarray], second: list[np.ndarray]) -> float:
        return max((float(np.abs(a - b).max()) for a, b in zip(first, second, strict=True) if a.size), default=0.0)

    def _expect_zero(self) -> None:
        """GradcheckError if outputs without history change with the inputs."""
        for value in self.wanted:
            for write in self._steps(value):
                if any(np.abs(change).max(initial=0) > self.atol for change in self._difference(write)):
                    raise GradcheckError("Numerical gradient for function expected to be zero")

    def zero_gradients(self) -> None:
        """GradcheckError if zero gradients of the outputs give gradients that are not zero."""
        seeds = [aten.zeros_like(output) for output in self.outputs]
        for grad in _grad(self.outputs, self.wanted, seeds, retain_graph=True, allow_unused=True):
            if grad is not None and bool(np.any(array_of(grad) != 0)):
                raise GradcheckError("backward not multiplied by grad_output")

    def undefined_gradients(self) -> None:
        """GradcheckError if undefined gradients of all outputs, or of one beside zeros of the others, are not passed on as
        nothing or as zeros."""
        count = len(self.outputs)
        for undefined in (range(count), *([i] for i in range(count) if count > 1)):
            outputs = [
                UndefinedGrad()(o) if i in undefined else o for i, o in enumerate(_differentiable(self.func(*self.inputs)))
            ]
            try:
                grads = _grad(outputs, self.wanted, [aten.zeros_like(o) for o in outputs], allow_unused=True)
            except RuntimeError as error:
                _warn_of_undefined()
                raise GradcheckError(
                    "Expected backward function to handle undefined output grads. Please look at "
                    '"Notes about undefined output gradients" in "tools/autograd/derivatives.yaml"'
                ) from error
            for grad in grads:
                if grad is not None and bool(np.any(array_of(grad) != 0)):
                    _warn_of_undefined()
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
                    if (a is None) != (b is None) or (a is not None and not np.allclose(array_of(a)[row], array_of(b))):
                        raise GradcheckError(
                            "While testing batched gradients, found that they differ from those computed one by one."
                        )


def _warn_of_undefined() -> None:
    warnings.warn(
        "Backwards compatibility: New undefined gradient support checking feature is enabled by default, but it may break "
        "existing callers of this function. If this is true for you, you can call this function with "
        '"check_undefined_grad=False" to disable the feature',
        stacklevel=4,
    )


def _is_floating(value: Any) -> bool:
    return isinstance(value, Tensor) and value._array.dtype.kind in FLOATING


# ---------------------------------------------------------------- Jacobians as tensors


def numerical_jacobians(func: Callable[..., Any], inputs: Any, target: Tensor, eps: float) -> tuple[Tensor, ...]:
    """The Jacobian of each output by one tensor, from finite differences: a row per element of it."""
    check = _Check(func, (inputs,) if isinstance(inputs, Tensor) else tuple(inputs), eps, 0.0, 0.0, 0.0, False)
    check.places = list(range(len(check.floating)))  # whether they have a history does not matter
    if any(each._array.dtype.kind == "c" for each in (target, *check.floating)):
        raise NotImplementedError("get_numerical_jacobian: Jacobians of complex numbers")
    return tuple(make_external(jacobian.astype(target._array.dtype)) for jacobian in check._numerical(target))


def analytical_jacobians(inputs: list[Tensor], output: Tensor, tolerance: float) -> tuple[tuple[Tensor, ...], bool, bool, bool]:
    """The Jacobian of an output by each input, from backward passes, and whether a second run agrees, sizes and types are those
    of the inputs."""
    if any(each._array.dtype.kind == "c" for each in inputs):
        raise NotImplementedError("get_analytical_jacobian: Jacobians of complex numbers")
    sizes = types = True
    runs: list[list[np.ndarray]] = []
    for _ in range(2):
        jacobians = [np.zeros((value._array.size, output._array.size), value._array.dtype) for value in inputs]
        for column, index in enumerate(np.ndindex(output._array.shape)):
            seed = np.zeros(output._array.shape, output._array.dtype)
            seed[index] = 1
            grads = _grad(output, inputs, make_external(seed), retain_graph=True, allow_unused=True)
            for value, grad, jacobian in zip(inputs, grads, jacobians, strict=True):
                if grad is not None and grad._array.shape != value._array.shape:
                    sizes = False
                elif grad is not None:
                    types = types and grad._array.dtype == value._array.dtype
                    jacobian[:, column] = array_of(grad).reshape(-1)
        runs.append(jacobians)
    reentrant = _Check._distance(*runs) <= tolerance
    return tuple(make_external(jacobian) for jacobian in runs[0]), reentrant, sizes, types
