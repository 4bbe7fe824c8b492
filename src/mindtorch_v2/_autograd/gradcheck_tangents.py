"""What gradcheck asks of forward-mode AD besides Jacobians: undefined tangents count as zeros, batches as one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .._core.keys import AUTOGRAD
from .._core.tensor import Tensor, make_external
from .._dispatch.registry import aten
from .forward_ad import dual_level, make_dual, unpack_dual
from .gradcheck import GradcheckError
from .graph import FLOATING


def undefined_tangents(func: Callable[..., Any], inputs: tuple[Any, ...]) -> None:
    """GradcheckError if an input without a tangent gives other tangents than one whose tangent is zeros."""
    values = [_detached(value) for value in inputs]
    with dual_level():
        duals = [make_dual(plain, _random(plain)) if wanted else plain for plain, wanted in values]
        for place, (plain, wanted) in enumerate(values):
            if not wanted:
                continue
            zeros = make_dual(plain, aten.zeros_like(plain))
            first = _tangents(func(*duals[:place], zeros, *duals[place + 1 :]))
            second = _tangents(func(*duals[:place], plain, *duals[place + 1 :]))
            for number, (one, other) in enumerate(zip(first, second, strict=True)):
                if one is not None and other is not None and not aten.allclose(one, other):
                    raise GradcheckError(
                        "Mismatch in tangent values for output with index: ",
                        number,
                        " when input: ",
                        inputs[place],
                        " has an undefined tangent value. ",
                        " Got: ",
                        one,
                        " but expected: ",
                        other,
                    )


def batched_tangents(func: Callable[..., Any], inputs: tuple[Any, ...], vmap: Callable[..., Any]) -> None:
    """GradcheckError if a batch of tangents gives something else than they give one by one."""
    values = [_detached(value) for value in inputs]
    for place, (plain, wanted) in enumerate(values):
        if not wanted:
            continue
        before = [value for value, _ in values[:place]]
        after = [value for value, _ in values[place + 1 :]]

        def push(tangent: Tensor, plain: Tensor = plain, before: list[Any] = before, after: list[Any] = after) -> Any:
            with dual_level():
                outputs = _outputs(func(*before, make_dual(plain, tangent), *after))
                unpacked = [unpack_dual(output) for output in outputs]
                return tuple(aten.zeros_like(primal) if one is None else one for primal, one in unpacked)

        tangents = [_random(plain, seed) for seed in (0, 1)]
        alone = [push(tangent) for tangent in tangents]
        try:
            together = vmap(push)(aten.stack(tangents))
        except RuntimeError as error:
            raise GradcheckError(f"While computing batched gradients, got: {error}\n\n{_FAILED}") from error
        for number, one in enumerate(together):
            expected = aten.stack([each[number] for each in alone])
            if not aten.allclose(one, expected):
                raise GradcheckError(
                    f"For output {number} and input {place}:\n\n{_FAILED}\n\nGot:\n{one}\n\nExpected:\n{expected}"
                )


_FAILED = (
    "gradcheck failed while testing batched gradient computation with forward-mode AD. To leave this out, pass "
    "`check_batched_forward_grad=False`."
)


def _detached(value: Any) -> tuple[Any, bool]:
    """A value as the function gets it, and whether it is differentiated by."""
    if not isinstance(value, Tensor) or not value._keys & AUTOGRAD:
        return value, False
    return aten.detach(value), True


def _random(like: Tensor, seed: int = 0) -> Tensor:
    rng = np.random.default_rng(seed)
    array = rng.standard_normal(like._array.shape).astype(like._array.dtype)
    if array.dtype.kind == "c":
        array = array + 1j * rng.standard_normal(array.shape).astype(array.real.dtype)
    return make_external(array)


def _outputs(returned: Any) -> Iterator[Tensor]:
    for output in returned if isinstance(returned, tuple | list) else (returned,):
        if isinstance(output, Tensor) and output._array.dtype.kind in FLOATING:
            yield output


def _tangents(returned: Any) -> list[Tensor | None]:
    return [unpack_dual(output).tangent for output in _outputs(returned)]
