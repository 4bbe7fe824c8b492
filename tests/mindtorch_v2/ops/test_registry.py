"""What holds for every op: checked for each one that is declared, on its own samples.

An op added to a family brings its tests along. Where an op cannot pass one of them, it stands in a table
below with the reason.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import op_sampling as sampling
import pytest

import mindtorch_v2 as torch
from mindtorch_v2._core.tensor import make_meta
from mindtorch_v2._dispatch.registry import OpSpec

Case, Make = sampling.Case, sampling.Make

pytestmark = pytest.mark.filterwarnings("ignore")

SPECS = list(sampling.all_specs())

# Results that depend on chance, or on what memory held before.
RANDOM = {
    "empty",
    "empty_like",
    "empty_strided",
    "empty_permuted",
    "new_empty",
    "new_empty_strided",
    "resize_",
    "resize_as_",
    "bernoulli",
    "bernoulli_",
    "multinomial",
    "normal",
    "normal_",
    "rand",
    "rand_like",
    "randint",
    "randint_like",
    "randn",
    "randn_like",
    "random_",
    "randperm",
    "uniform_",
    "exponential_",
    "geometric_",
    "cauchy_",
    "log_normal_",
    "poisson",
    "dropout",
    "dropout_",
    "native_dropout",
    "feature_dropout",
    "alpha_dropout",
    "feature_alpha_dropout",
    "rrelu",
    "rrelu_",
    "rrelu_with_noise",
    "rrelu_with_noise_",
}
# Shapes that depend on values, so that no rule can tell them.
DATA_DEPENDENT = {
    "nonzero",
    "masked_select",
    "bincount",
    "repeat_interleave",
    "_unique",
    "_unique2",
    "unique_dim",
    "unique_consecutive",
    "index.Tensor",
}
# Composites of those, and ops that read an argument's number.
OF_DATA = {
    "argwhere",
    "combinations",
    "istft",
    "narrow.Tensor",
    "nonzero_numpy",
    "tensor_split.tensor_indices_or_sections",
    "where",
}
# Without a second derivative in torch as well.
FIRST_ORDER_ONLY = {
    "_cdist_forward",
    "_cdist_backward",
    "cdist",
    "_pdist_forward",
    "_pdist_backward",
    "pdist",
    "_embedding_bag",
    "embedding_bag",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "multilabel_margin_loss_forward",
    "_scaled_dot_product_flash_attention_for_cpu",
}


def name_of(spec: OpSpec) -> str:
    return spec.schema.full_name


def has_derivative(spec: OpSpec) -> bool:
    source = getattr(spec, "_derivative_source", None)
    if source is None:
        functional = spec.inplace_of
        source = getattr(functional, "_derivative_source", None) if functional is not None else None
    return source is not None or (spec.composite and not spec.nondiff)


def returns_tensors(spec: OpSpec) -> bool:
    return bool(spec.schema.returns) and spec.schema.returns[0].startswith("Tensor")


def is_random(spec: OpSpec) -> bool:
    return spec.schema.name in RANDOM


def cases_of(spec: OpSpec) -> list[Any]:
    """The samples of an op; of an in-place form, those whose first operand has the result's shape."""
    cases = [Case(spec, index) for index in range(len(sampling.samples_of(spec, Make())))]
    functional = spec.inplace_of
    return cases if functional is None else [case for case in cases if _keeps_shape(functional, case)]


def _keeps_shape(functional: OpSpec, case: Any) -> bool:
    args, kwargs = case.arguments(Make())
    return bool(functional(*args, **kwargs).shape == args[0].shape)


def can_be_sampled(spec: OpSpec) -> bool:
    try:
        sampling.samples_of(spec, Make())
    except sampling.NoSamples:
        return False
    return True


SAMPLED = [spec for spec in SPECS if can_be_sampled(spec)]


def test_every_op_has_samples() -> None:
    missing = [name_of(spec) for spec in SPECS if spec not in SAMPLED]
    assert not missing, f"declare samples= for {', '.join(missing)}"


def each(chosen: Callable[[OpSpec], bool]) -> Any:
    return pytest.mark.parametrize("spec", [spec for spec in SAMPLED if chosen(spec)], ids=name_of)


def same(ours: Any, theirs: Any, tolerance: float) -> bool:
    """Whether two results have the same tensors, as nearly as the tolerance allows."""
    ours, theirs = sampling.tensors_in(ours), sampling.tensors_in(theirs)
    return len(ours) == len(theirs) and all(
        a.shape == b.shape
        and np.allclose(
            sampling.array_of(a).astype(complex),
            sampling.array_of(b).astype(complex),
            rtol=tolerance,
            atol=tolerance,
            equal_nan=True,
        )
        for a, b in zip(ours, theirs, strict=True)
    )


# ---------------------------------------------------------------- values


@each(lambda spec: returns_tensors(spec) and not is_random(spec))
def test_float32_agrees_with_float64(spec: OpSpec) -> None:
    for case in cases_of(spec):
        wide, narrow = case.run(Make(torch.float64)), case.run(Make(torch.float32))
        assert same(wide, narrow, 2e-4), f"sample {case.index}: {wide} in float64, {narrow} in float32"


@each(lambda spec: spec.inplace_of is not None and not is_random(spec))
def test_in_place_equals_out_of_place(spec: OpSpec) -> None:
    functional = spec.inplace_of
    assert functional is not None
    for case in cases_of(spec):
        args, kwargs = case.arguments(Make())
        expected = functional(*args, **kwargs)
        target = args[0].clone()
        result = spec(target, *args[1:], **kwargs)
        assert result is target
        assert target.dtype == args[0].dtype
        assert same(target, expected.to(target.dtype), 1e-12), f"sample {case.index}: {target}, expected {expected}"


def takes_out(spec: OpSpec) -> bool:
    return spec.out_keyword and returns_tensors(spec) and not spec.composite and not is_random(spec)


@each(takes_out)
def test_out_receives_the_result(spec: OpSpec) -> None:
    for case in cases_of(spec):
        args, kwargs = case.arguments(Make())
        expected = spec(*args, **kwargs)
        results = expected if isinstance(expected, tuple) else (expected,)
        out = tuple(torch.empty(tuple(t.shape), dtype=t.dtype) for t in results)
        made = spec(*args, **kwargs, out=out if isinstance(expected, tuple) else out[0])
        assert all(one is given for one, given in zip(made if isinstance(made, tuple) else (made,), out, strict=True))
        assert same(out, results, 0), f"sample {case.index}"


# ---------------------------------------------------------------- shapes without values


def without_memory(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        array = value._array
        return make_meta(array.shape, array.dtype, array.strides)
    return type(value)(map(without_memory, value)) if isinstance(value, list | tuple) else value


def takes_meta(spec: OpSpec) -> bool:
    arguments = spec.schema.arguments
    return returns_tensors(spec) and any(a.is_tensor or a.is_tensor_list or a.type_text == "Device?" for a in arguments)


@each(lambda spec: takes_meta(spec) and not {spec.schema.name, name_of(spec)} & DATA_DEPENDENT and name_of(spec) not in OF_DATA)
def test_shape_rule_equals_the_result(spec: OpSpec) -> None:
    for case in cases_of(spec):
        args, kwargs = case.arguments(Make())
        if not any(isinstance(a, torch.Tensor) for a in sampling.tensors_in(list(args))):
            kwargs = {**kwargs, "device": "meta"}
            args_meta, kwargs_meta = args, kwargs
            kwargs = {k: v for k, v in kwargs.items() if k != "device"}
        else:
            args_meta = tuple(without_memory(a) for a in args)
            kwargs_meta = {k: without_memory(v) for k, v in kwargs.items()}
        try:
            expected = sampling.tensors_in(spec(*args, **kwargs))
        except RuntimeError:  # in-place forms of samples that broadcast
            assert spec.schema.mutates
            continue
        told = sampling.tensors_in(spec(*args_meta, **kwargs_meta))
        assert all(t.is_meta for t in told)
        assert [(tuple(t.shape), t.dtype) for t in told] == [(tuple(t.shape), t.dtype) for t in expected], (
            f"sample {case.index}"
        )


# ---------------------------------------------------------------- derivatives


def results_with_gradient(spec: OpSpec) -> int | None:
    """How many of an op's results, from the first, its derivative accounts for; None for all of them."""
    if spec.differentiable_results is not None:
        return spec.differentiable_results
    return None if (spec.composite and not spec.below_autograd) or spec.takes_all_grads else 1


def differentiable_case(case: Any) -> tuple[list[np.ndarray], list[np.ndarray]] | None:
    """The leaves' values, and weights for the result; None where no gradient flows."""
    make = Make(grad=True)
    outputs = sampling.differentiable(case.run(make), results_with_gradient(case.spec))
    if not outputs or not any(t.requires_grad for t in outputs):
        return None
    values = [sampling.array_of(leaf).copy() for leaf in make.leaves]
    return values, sampling.weights_for(outputs)


def gradients(case: Any, values: list[np.ndarray], weights: list[Any], create_graph: bool = False) -> Any:
    make = Make(grad=True, values=values)
    total = case.scalar(make, weights, results_with_gradient(case.spec))
    extra = [w for w in weights if isinstance(w, torch.Tensor)]
    inputs = [*make.leaves, *extra]
    return inputs, torch.autograd.grad(total, inputs, create_graph=create_graph, allow_unused=True)


@each(lambda spec: returns_tensors(spec) and has_derivative(spec) and not is_random(spec))
def test_gradient(spec: OpSpec) -> None:
    for case in cases_of(spec):
        prepared = differentiable_case(case)
        if prepared is None:
            continue
        values, weights = prepared
        _, found = gradients(case, values, weights)

        def function(at: list[np.ndarray], case: Any = case, weights: Any = weights) -> float:
            return float(case.scalar(Make(values=at), weights, results_with_gradient(case.spec)).item())

        for i, gradient in enumerate(found):
            if gradient is None:
                continue
            assert gradient.shape == values[i].shape
            ways = [way if j == i else np.zeros_like(way) for j, way in enumerate(sampling.directions_for(values))]
            expected = sampling.slope(function, values, ways, 1e-6)
            ours = float((sampling.array_of(gradient) * ways[i]).sum())
            assert ours == pytest.approx(expected, rel=1e-5, abs=1e-6), f"sample {case.index}, leaf {i}"


@each(
    lambda spec: (
        returns_tensors(spec) and has_derivative(spec) and not is_random(spec) and spec.schema.name not in FIRST_ORDER_ONLY
    )
)
def test_second_derivative(spec: OpSpec) -> None:
    for case in cases_of(spec):
        prepared = differentiable_case(case)
        if prepared is None:
            continue
        values, weights = prepared
        directions = sampling.directions_for(values, 55)

        def slope_along(
            at: list[np.ndarray], create: bool, case: Any = case, ways: Any = directions, count: int = len(values)
        ) -> Any:
            """The first derivative along a direction, as a function of the leaves and of the weights."""
            heavy = [torch.tensor(w, requires_grad=True) for w in at[count:]]
            inputs, found = gradients(case, at[:count], heavy, create_graph=create)
            total = None
            for gradient, way in zip(found[:count], ways, strict=True):
                if gradient is not None:
                    part = (gradient * torch.tensor(way)).sum()
                    total = part if total is None else total + part
            return inputs, total

        everything = [*values, *weights]
        inputs, total = slope_along(everything, True)
        if total is None or not total.requires_grad:
            continue
        second = torch.autograd.grad(total, inputs, allow_unused=True)
        # All inputs that have a gradient are moved at once.
        turns = [
            turn if g is not None else np.zeros_like(turn)
            for turn, g in zip(sampling.directions_for(everything, 33), second, strict=True)
        ]
        expected = sampling.slope(lambda at: float(slope_along(at, False)[1].item()), everything, turns, 1e-5)
        ours = sum(float((sampling.array_of(g) * turn).sum()) for g, turn in zip(second, turns, strict=True) if g is not None)
        assert ours == pytest.approx(expected, rel=1e-4, abs=1e-5), f"sample {case.index}"


@each(lambda spec: spec.inplace_of is not None and has_derivative(spec) and not is_random(spec))
def test_in_place_gradient_equals_out_of_place(spec: OpSpec) -> None:
    functional = spec.inplace_of
    assert functional is not None
    for case in cases_of(spec):
        expected = differentiable_case(Case(functional, case.index))
        if expected is None or differentiable_case(case) is None:
            continue
        _, ours = gradients(case, *expected)
        _, theirs = gradients(Case(functional, case.index), *expected)
        for a, b in zip(ours, theirs, strict=True):
            assert (a is None) == (b is None) and (a is None or same(a, b, 1e-9)), f"sample {case.index}"
