"""func: vmap against a loop for every op there is, and the derivative transforms."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2._dispatch.facts import Batching
from mindtorch_v2._dispatch.registry import packets
from mindtorch_v2._dispatch.schema import REQUIRED
from mindtorch_v2.func import (
    functional_call,
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    stack_module_state,
    vjp,
    vmap,
)

# ---------------------------------------------------------------- vmap of every op

# Ops whose results have no values or draw random numbers, and families that write where their tensors are.
RANDOM = {
    name
    for name, packet in packets.items()
    if any(spec.batching in (Batching.RANDOM, Batching.RANDOM_BY_SAMPLE) for spec in packet)
}
_SKIPPED = {"rrelu", "empty_like", "new_empty", "new_empty_strided", *RANDOM}
_DATA_DEPENDENT = "depend on their data|reads the elements|calling"


class _Make:
    """Arguments as ops' `samples` ask for them."""

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)

    def __call__(self, *shape: int):
        return torch.tensor(self._random.uniform(0.1, 0.9, shape))

    constant = __call__

    def ints(self, high: int, *shape: int):
        return torch.tensor(self._random.integers(0, high, shape))

    def bools(self, *shape: int):
        return torch.tensor(self._random.integers(0, 2, shape).astype(bool))


def _samples(spec, seed: int) -> list:
    make = _Make(seed)
    if spec.samples is not None:
        return list(spec.samples(make))
    arguments = []
    for argument in spec.schema.arguments:
        if argument.is_tensor and not argument.optional:
            arguments.append(make(3, 4))
        elif argument.default is REQUIRED:
            return []
        else:
            break
    return [tuple(arguments)]


def _ops() -> list:
    return [
        spec
        for name, packet in packets.items()
        for spec in packet
        if "::" not in name
        and name not in _SKIPPED
        and not name.startswith(("_foreach", "_fused"))
        and not spec.schema.mutates
        and spec.schema.returns
        and spec.schema.returns[0].startswith("Tensor")
    ]


def _tensors(value) -> bool:
    return isinstance(value, torch.Tensor) or (
        isinstance(value, list | tuple) and len(value) > 0 and all(isinstance(v, torch.Tensor) for v in value)
    )


def _flat(value) -> list:
    return [value] if isinstance(value, torch.Tensor) else list(value)


def _stacked(rows: list):
    if isinstance(rows[0], torch.Tensor):
        return torch.stack(rows)
    return [torch.stack(list(column)) for column in zip(*rows, strict=True)]


@pytest.mark.parametrize("spec", _ops(), ids=lambda spec: spec.schema.full_name)
def test_vmap_of_an_op_is_the_op_on_every_sample(spec):
    sets = [_samples(spec, seed) for seed in range(3)]
    for k in range(len(sets[0])):
        rows = [list(s[k]) for s in sets]
        keywords = next(row.pop() if row and isinstance(row[-1], dict) else {} for row in rows)
        batchable = [i for i, value in enumerate(rows[0]) if _tensors(value)]
        for mapped in [batchable, *([i] for i in batchable if len(batchable) > 1)] if batchable else ():
            _check_vmap(spec, rows, keywords, mapped)


def _check_vmap(spec, rows: list, keywords: dict, mapped: list) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            expected = [
                _flat(spec(*[row[i] if i in mapped else rows[0][i] for i in range(len(row))], **keywords)) for row in rows
            ]
            arguments = [_stacked([row[i] for row in rows]) if i in mapped else rows[0][i] for i in range(len(rows[0]))]
            expected = [torch.stack(list(column)) for column in zip(*expected, strict=True)]
        except (RuntimeError, TypeError, ValueError, IndexError):
            return  # the samples do not fit together, or the results' shapes depend on the data
        dims = tuple(0 if i in mapped else None for i in range(len(arguments)))
        try:
            made = vmap(lambda *a: _flat(spec(*a, **keywords)), in_dims=dims)(*arguments)
        except RuntimeError as error:
            assert any(part in str(error) for part in _DATA_DEPENDENT.split("|")), error
            return
    for one, other in zip(made, expected, strict=True):
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
        np.testing.assert_allclose(one.resolve_conj().numpy(), other.resolve_conj().numpy(), rtol=1e-9, atol=1e-12)


# ---------------------------------------------------------------- vmap itself


def test_in_dims_and_out_dims():
    a = torch.arange(6.0).view(3, 2)
    assert vmap(lambda x: x * 2, in_dims=1, out_dims=1)(a).tolist() == (a * 2).tolist()
    assert vmap(lambda x, k: x * k, in_dims=(0, None))(a, torch.tensor(2.0)).tolist() == (a * 2).tolist()
    assert vmap(lambda d: d["x"].sum() + d["k"], in_dims=({"x": 0, "k": None},))({"x": a, "k": 1.0}).tolist() == [
        2.0,
        6.0,
        10.0,
    ]
    made, total = vmap(lambda x: (x, x.sum()), out_dims=(1, 0))(a)
    assert made.shape == (2, 3)
    assert total.tolist() == [1.0, 5.0, 9.0]
    assert vmap(lambda x, *, k: x + k)(a[:, 0], k=a[:, 1]).tolist() == [1.0, 5.0, 9.0]


def test_vmaps_nest():
    a, b = torch.arange(6.0).view(3, 2), torch.arange(8.0).view(4, 2)
    pairs = vmap(lambda x: vmap(lambda y: torch.dot(x, y))(b))(a)
    assert pairs.tolist() == (a @ b.t()).tolist()


def test_an_output_that_is_not_batched_is_repeated():
    assert vmap(lambda x: torch.ones(2))(torch.zeros(3)).shape == (3, 2)
    assert vmap(lambda x: torch.ones(2), out_dims=None)(torch.zeros(3)).shape == (2,)


@pytest.mark.parametrize("size", [1, 2, 5, 9])
def test_chunks_give_the_same(size):
    a = torch.arange(10.0).view(5, 2)
    assert vmap(lambda x: x.sum(), chunk_size=size)(a).tolist() == a.sum(1).tolist()


@pytest.mark.parametrize(
    ("call", "kind", "match"),
    [
        (lambda: vmap(torch.dot)(torch.ones(3, 2), torch.ones(4, 2)), ValueError, "same size in the mapped dimension"),
        (lambda: vmap(lambda x: x.item())(torch.ones(2)), RuntimeError, r"\.item\(\)"),
        (lambda: vmap(lambda x: x if x > 0 else -x)(torch.ones(2)), RuntimeError, "data-dependent control flow"),
        (lambda: vmap(lambda x: x.tolist())(torch.ones(2)), RuntimeError, "tolist"),
        (lambda: vmap(lambda x: 3)(torch.ones(2)), ValueError, "must only return Tensors"),
        (lambda: vmap(lambda x: x)(), ValueError, "got no inputs"),
        (lambda: vmap(lambda x: x, in_dims=2)(torch.ones(2)), ValueError, "Got in_dim=2"),
        (lambda: vmap(lambda x: x, in_dims=None)(torch.ones(2)), ValueError, "expected `in_dims` to be int"),
        (lambda: vmap(lambda x: x, in_dims=(0, 0))(torch.ones(2)), ValueError, "not compatible with the structure"),
        (lambda: vmap(lambda x: x, randomness="maybe"), RuntimeError, "Only allowed values for randomness"),
        (lambda: vmap(lambda x: x, chunk_size=0), ValueError, "chunk_size"),
        (lambda: vmap(lambda x: torch.zeros(()).add_(x))(torch.ones(2)), RuntimeError, "is not possible because"),
    ],
)
def test_errors(call, kind, match):
    with pytest.raises(kind, match=match):
        call()


def test_in_place_ops_write_every_sample():
    def f(x):
        y = x.clone()
        y[0] = x.sum()
        y.mul_(2)
        return y

    assert vmap(f)(torch.arange(4.0).view(2, 2)).tolist() == [[2.0, 2.0], [10.0, 6.0]]


def test_randomness():
    x = torch.zeros(3)
    with pytest.raises(RuntimeError, match="randomness error mode"):
        vmap(lambda x: x + torch.rand(()))(x)
    with pytest.raises(RuntimeError, match="randomness error mode"):
        vmap(lambda x: torch.rand_like(x))(x)
    for draw in (
        lambda x: x + torch.rand(()),
        lambda x: torch.rand_like(x),
        lambda x: torch.dropout(x + 1, 0.5, True) + torch.rand(()),
    ):
        assert len(set(vmap(draw, randomness="different")(x).tolist())) > 1
        assert len(set(vmap(draw, randomness="same")(x).tolist())) == 1


def test_vmap_leaves_history_underneath():
    w = torch.ones(2, requires_grad=True)
    vmap(lambda x: (x * w).sum())(torch.arange(6.0).view(3, 2)).sum().backward()
    assert w.grad.tolist() == [6.0, 9.0]


# ---------------------------------------------------------------- derivatives


def cube(x):
    return (x**3).sum()


def test_grad_and_its_options():
    x, y = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])
    f = lambda x, y: (x**2 * y).sum()  # noqa: E731
    assert grad(f)(x, y).tolist() == [6.0, 16.0]
    assert [g.tolist() for g in grad(f, argnums=(0, 1))(x, y)] == [[6.0, 16.0], [1.0, 4.0]]
    made, value = grad_and_value(f)(x, y)
    assert (made.tolist(), value.item()) == ([6.0, 16.0], 19.0)
    made, aux = grad(lambda x: (cube(x), x + 1), has_aux=True)(x)
    assert (made.tolist(), aux.tolist()) == ([3.0, 12.0], [2.0, 3.0])
    assert grad(lambda d: cube(d["w"]))({"w": x})["w"].tolist() == [3.0, 12.0]
    assert not made.requires_grad
    assert not aux.requires_grad


def test_grads_nest():
    f = lambda x: x**4  # noqa: E731
    assert grad(grad(grad(f)))(torch.tensor(2.0)).item() == 48.0


def test_outer_gradients_go_through():
    w = torch.tensor(3.0, requires_grad=True)
    inner = grad(lambda x: w * x**2)(torch.tensor(2.0))
    inner.backward()
    assert w.grad.item() == 4.0


def test_grad_needs_a_scalar():
    with pytest.raises(RuntimeError, match="scalar tensor, got tensor with 1 dims"):
        grad(lambda x: x * 2)(torch.ones(2))
    with pytest.raises(RuntimeError, match="only 1 positional inputs"):
        grad(cube, argnums=1)(torch.ones(2))


def test_no_grad_outside_does_not_matter():
    with torch.no_grad():
        assert grad(cube)(torch.tensor([1.0])).tolist() == [3.0]


def test_per_sample_gradients():
    model = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 2), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(8, 3))
    parameters = {name: p.detach() for name, p in model.named_parameters()}
    x, y = torch.randn(4, 1, 3, 3), torch.tensor([0, 2, 1, 1])

    def loss(parameters, x, y):
        return torch.nn.functional.cross_entropy(functional_call(model, parameters, (x[None],)), y[None])

    made = vmap(grad(loss), in_dims=(None, 0, 0))(parameters, x, y)
    for i in range(4):
        for name, value in grad(loss)(parameters, x[i], y[i]).items():
            torch.testing.assert_close(made[name][i], value)


def test_vjp_and_batched_cotangents():
    x = torch.tensor([0.5, 1.0])
    out, pull = vjp(torch.exp, x)
    torch.testing.assert_close(pull(torch.tensor([1.0, 2.0]))[0], out * torch.tensor([1.0, 2.0]))
    torch.testing.assert_close(vmap(pull)(torch.eye(2))[0], torch.diag(out))
    with pytest.raises(RuntimeError, match="structure of cotangents"):
        pull((out, out))


def test_jvp_and_linearize():
    x, v = torch.tensor([0.5, 1.0]), torch.tensor([1.0, -1.0])
    value, tangent = jvp(torch.sin, (x,), (v,))
    torch.testing.assert_close(tangent, torch.cos(x) * v)
    torch.testing.assert_close(value, torch.sin(x))
    same, push = linearize(torch.sin, x)
    torch.testing.assert_close(push(v), tangent)
    torch.testing.assert_close(vmap(lambda v: jvp(torch.sin, (x,), (v,))[1])(torch.eye(2)), torch.diag(torch.cos(x)))


def test_jacobians_and_hessians():
    x = torch.tensor([0.5, 1.0], dtype=torch.float64)
    f = lambda v: torch.stack([v[0] * v[1], v.sin().sum(), v[1] ** 3])  # noqa: E731
    expected = torch.tensor([[1.0, 0.5], [x[0].cos().item(), x[1].cos().item()], [0.0, 3.0]], dtype=torch.float64)
    torch.testing.assert_close(jacrev(f)(x), expected)
    torch.testing.assert_close(jacfwd(f)(x), expected)
    torch.testing.assert_close(hessian(cube)(x), torch.diag(6 * x))
    torch.testing.assert_close(vmap(jacrev(f))(torch.stack([x, x])), torch.stack([expected, expected]))
    torch.testing.assert_close(vmap(hessian(cube))(torch.stack([x, x])), torch.stack([torch.diag(6 * x)] * 2))


def test_an_ensemble():
    nets = [torch.nn.Linear(2, 1) for _ in range(3)]
    parameters, buffers = stack_module_state(nets)
    x = torch.ones(2)
    made = vmap(lambda p: functional_call(nets[0], p, (x,)))(parameters)
    torch.testing.assert_close(made, torch.stack([n(x) for n in nets]))
    assert parameters["weight"].requires_grad
    assert buffers == {}
    with pytest.raises(RuntimeError, match="same class"):
        stack_module_state([nets[0], torch.nn.ReLU()])


def test_functional_call_leaves_the_module_alone():
    model = torch.nn.Linear(2, 1)
    before = model.weight.detach().clone()
    made = functional_call(model, ({"weight": torch.ones(1, 2)}, {"bias": torch.zeros(1)}), torch.ones(1, 2))
    assert made.tolist() == [[2.0]]
    assert torch.equal(model.weight, before)
    with pytest.raises(ValueError, match="multiple dictionaries"):
        functional_call(model, ({"bias": torch.zeros(1)}, {"bias": torch.zeros(1)}), torch.ones(1, 2))


# ---------------------------------------------------------------- rearrange

# (pattern, lengths, shape, first elements) of arange(120) in (2, 3, 4, 5), as torch 2.13 gives them
REARRANGED = [
    ("b h w c -> b h w c", {}, (2, 3, 4, 5), [0, 1, 2, 3]),
    ("b h w c -> (b h) w c", {}, (6, 4, 5), [0, 1, 2, 3]),
    ("b h w c -> b (c h w)", {}, (2, 60), [0, 5, 10, 15]),
    ("b (h1 h) w c -> (b h1) h w c", {"h1": 3}, (6, 1, 4, 5), [0, 1, 2, 3]),
    ("b h (w w1) c -> b h w (c w1)", {"w1": 2}, (2, 3, 2, 10), [0, 5, 1, 6]),
    ("b ... -> ... b", {}, (3, 4, 5, 2), [0, 60, 1, 61]),
    ("b ... c -> (b ...) c", {}, (24, 5), [0, 1, 2, 3]),
    ("b ... c -> b (...) c", {}, (2, 12, 5), [0, 1, 2, 3]),
    ("b h w c -> b 1 h () w c", {}, (2, 1, 3, 1, 4, 5), [0, 1, 2, 3]),
    ("b h w c->c w h b", {}, (5, 4, 3, 2), [0, 60, 20, 80]),
    ("b (h h1) w c -> b h h1 w c", {"h": 1, "h1": 3}, (2, 1, 3, 4, 5), [0, 1, 2, 3]),
]


@pytest.mark.parametrize(("pattern", "lengths", "shape", "first"), REARRANGED)
def test_rearrange(pattern, lengths, shape, first):
    x = torch.arange(120.0).reshape(2, 3, 4, 5)
    made = torch.func.rearrange(x, pattern, **lengths)
    assert made.shape == shape and made.flatten()[:4].tolist() == first
    assert torch.func.rearrange(list(x), pattern, **lengths).equal(made)


def test_rearrange_of_small_things():
    assert torch.func.rearrange(torch.ones(1, 3, 1), "1 h () -> h").shape == (3,)
    assert torch.func.rearrange(torch.tensor(1.0), " -> ").shape == ()


@pytest.mark.parametrize(
    ("pattern", "lengths", "message"),
    [
        ("b h w c", {}, "Pattern must contain a single '->' separator"),
        ("b h w c -> b h w", {}, r"Identifiers only on one side of rearrange expression \(should be on both\): {'c'}"),
        ("b h w -> b h w", {}, r"Number of dimensions in pattern \(3\) must be equal to the number of dimensions"),
        ("b h w b -> b h w", {}, "Indexing expression contains duplicate dimension 'b'"),
        ("b h w c -> b h w c", {"q": 2}, "Identifiers not found in rearrange expression: {'q'}"),
        ("b h (w c -> b h w c", {}, "Imbalanced parentheses in expression"),
        ("b h (w (c)) -> b h w c", {}, "Axis composition is one-level"),
        ("b h w 2 -> b h w", {}, "rearrange only supports unnamed axes of size 1"),
        ("_b h w c -> h _b w c", {}, "Invalid axis identifier: _b"),
        ("b h w c -> b h w ...", {}, "Ellipsis found in right side, but not left side"),
        ("b (h1 h2) w c -> b h1 h2 w c", {}, "cannot infer the sizes of two dimensions at once"),
        ("b (h1 h2) w c -> b h1 h2 w c", {"h1": 2}, "do not match"),
        ("b h w c -> b h w c", {"h": 4}, r"do not match \(3 != 4\)"),
        ("1 h w c -> h w c", {}, r"do not match \(2 != 1\)"),
    ],
)
def test_patterns_that_do_not_fit(pattern, lengths, message):
    with pytest.raises(ValueError, match=message):
        torch.func.rearrange(torch.zeros(2, 3, 4, 5), pattern, **lengths)
