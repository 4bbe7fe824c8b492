"""A program runs the same code whether or not it is recorded: values, nodes and derivatives are the same both ways."""

from __future__ import annotations

import ast
import math
from pathlib import Path

import pytest

import mindtorch_v2 as torch
import mindtorch_v2.nn.functional as F
from mindtorch_v2.autograd.graph import saved_tensors_hooks

OPS = Path(torch.__file__).parent / "_ops"
# (file below _ops, function): why it may ask whether something records. The dispatcher asks for every op; a kernel that
# asks as well may do something else in a recording than outside.
MAY_ASK: dict[tuple[str, str], str] = {
    ("creation/from_data.py", "_from_python"): "whether there is a mode, which sees a tensor of data when it is whole",
    ("indexing/subscripts.py", "_sequence_tensor"): "the same, of a list of positions",
}

LABELS = torch.tensor([0, 2, 1, 3])
MASK = torch.arange(16).view(4, 4) % 3 == 0
WEIGHT, BIAS = torch.linspace(0.5, 2, 4), torch.linspace(-1, 1, 4)
CASES = {
    "softmax": lambda x: F.softmax(x, -1),
    "softmax of columns": lambda x: F.softmax(x, 0),
    "log_softmax": lambda x: F.log_softmax(x, 1),
    "layer_norm": lambda x: F.layer_norm(x, (4,)),
    "layer_norm of a list": lambda x: F.layer_norm(x, [4]),
    "layer_norm of all dims": lambda x: F.layer_norm(x, (4, 4)),
    "layer_norm with weight": lambda x: F.layer_norm(x, (4,), WEIGHT.to(x.dtype), BIAS.to(x.dtype)),
    "layer_norm without bias": lambda x: F.layer_norm(x, (4,), WEIGHT.to(x.dtype)),
    "cross_entropy": lambda x: F.cross_entropy(x, LABELS),
    "cross_entropy, sum": lambda x: F.cross_entropy(x, LABELS, reduction="sum"),
    "cross_entropy, none": lambda x: F.cross_entropy(x, LABELS, reduction="none"),
    "cross_entropy, ignored": lambda x: F.cross_entropy(x, LABELS, ignore_index=2),
    "nll_loss": lambda x: F.nll_loss(x, LABELS),
    "split": lambda x: x.split(3)[1],
    "chunk of columns": lambda x: x.chunk(2, -1)[0],
    "where with a number": lambda x: torch.where(MASK, 0.5, x),
    "to": lambda x: x.to(x.dtype) * 1,
}
cases = pytest.mark.parametrize("function", CASES.values(), ids=CASES.keys())


def scores(dtype=torch.float32, scale=1.0):
    return (torch.sin(torch.arange(16.0, dtype=dtype) * 1.7) * scale).view(4, 4)


def places_that_ask(tree, function="<module>"):
    """The functions of a syntax tree that read `observers_active`."""
    for node in ast.iter_child_nodes(tree):
        inner = node.name if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) else function
        name = getattr(node, "attr", None) or getattr(node, "id", None) or getattr(node, "value", None)
        if name == "observers_active" or (isinstance(node, ast.alias) and node.name == "observers_active"):
            yield inner
        yield from places_that_ask(node, inner)


def test_kernels_do_not_ask_whether_something_records():
    asking = {
        (path.relative_to(OPS).as_posix(), function)
        for path in OPS.rglob("*.py")
        for function in places_that_ask(ast.parse(path.read_text("utf-8")))
    }
    assert asking == set(MAY_ASK)


@pytest.mark.parametrize(
    "text",
    [
        "def f():\n    return entry_globals.observers_active",
        "def f():\n    from x import observers_active",
        "def f():\n    g = lambda: observers_active",
        "def f():\n    getattr(entry_globals, 'observers_active')",
    ],
)
def test_what_counts_as_asking(text):
    assert list(places_that_ask(ast.parse(text))) == ["f"]


@pytest.mark.parametrize("call", [lambda x: x[1, 2].item(), lambda x: float(x[0, 1]), lambda x: bool(x[1, 1])])
def test_numbers(call):
    assert call(scores()) == recorded(call, scores())


def recorded(function, x):
    with torch.profiler.profile():
        return function(x)


def graph_of(tensor):
    """Names of the nodes behind a tensor, outermost first."""
    names, node = [], tensor.grad_fn
    while node is not None:
        names.append(node.name())
        node = next((inner for inner, _ in node.next_functions if inner is not None), None)
    return names


def same(a, b):
    return torch.allclose(a, b, rtol=1e-5, atol=1e-6) and a.dtype == b.dtype and a.shape == b.shape


@cases
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("scale", [1.0, 100.0])
def test_values(function, dtype, scale):
    x = scores(dtype, scale)
    assert same(function(x), recorded(function, x))


@cases
def test_gradients_and_nodes(function):
    x, y = scores().requires_grad_(), scores().requires_grad_()
    plain, seen = function(x), recorded(function, y)
    assert graph_of(plain) == graph_of(seen) and len(graph_of(plain)) >= 2
    assert same(plain.detach(), seen.detach())
    for result in (plain, seen):
        (result * torch.linspace(1, 2, result.numel()).view(result.shape)).sum().backward()
    assert same(x.grad, y.grad) and x.grad.abs().sum() > 0


@cases
def test_second_derivatives(function):
    x = scores(torch.float64).requires_grad_()
    assert torch.autograd.gradcheck(function, (x,)) and torch.autograd.gradgradcheck(function, (x,))


@cases
def test_no_history_without_grad_mode(function):
    with torch.no_grad():
        assert not function(scores().requires_grad_()).requires_grad


@pytest.mark.parametrize("weight", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_gradients_of_layer_norm_parameters(weight, bias):
    grads = []
    for call in (lambda f, *args: f(*args), lambda f, *args: recorded(lambda _: f(*args), None)):
        w, b = WEIGHT.clone().requires_grad_(weight), BIAS.clone().requires_grad_(bias)
        normal = call(F.layer_norm, scores(), (4,), w, b)
        assert normal.requires_grad is (weight or bias)
        if weight or bias:
            (normal * normal).sum().backward()
        grads.append((w.grad, b.grad))
    for plain, seen in zip(*grads, strict=True):
        assert (plain is None) == (seen is None)
        assert plain is None or same(plain, seen)


def test_results_that_a_composite_drops_are_saved():
    x = scores().requires_grad_()
    node = F.layer_norm(x, (4,)).grad_fn
    mean, rstd = node._saved_result1, node._saved_result2
    assert same(mean, x.detach().mean(1, True)) and mean.shape == rstd.shape == (4, 1)
    loss = F.cross_entropy(x, LABELS)
    assert loss.grad_fn._saved_result1.item() == 4
    loss.backward()
    with pytest.raises(RuntimeError, match="second time"):
        loss.backward()


def test_hooks_see_what_is_saved():
    packed = []

    def pack(tensor):
        packed.append(tuple(tensor.shape))
        return tensor

    x = scores().requires_grad_()
    with saved_tensors_hooks(pack, lambda tensor: tensor):
        normal, loss = F.layer_norm(x, (4,)), F.cross_entropy(x, LABELS)
    assert sorted(packed) == sorted([(4, 4), (4, 1), (4, 1), (4, 4), (4, 4), (4,), ()])
    (normal.sum() + loss).backward()
    plain = scores().requires_grad_()
    (F.layer_norm(plain, (4,)).sum() + F.cross_entropy(plain, LABELS)).backward()
    assert same(x.grad, plain.grad)


@pytest.mark.parametrize("name", ["layer_norm", "cross_entropy"])
def test_anomaly_mode_names_the_call(name):
    x = torch.full((4, 4), math.nan, requires_grad=True)
    with pytest.warns(UserWarning, match="Anomaly Detection has been enabled"):
        anomaly_mode = torch.autograd.detect_anomaly()
    with (
        anomaly_mode,
        pytest.raises(RuntimeError, match="returned nan values"),
        pytest.warns(UserWarning, match="Traceback of forward call"),
    ):
        CASES[name](x).sum().backward()


def test_an_input_changed_in_place_is_noticed():
    x = scores().requires_grad_()
    leaf = x * 1
    normal = F.layer_norm(leaf, (4,))
    leaf.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        normal.sum().backward()
    shares = F.softmax(x * 1, -1)
    shares.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        shares.sum().backward()


@cases
def test_forward_mode(function):
    x = scores()
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(x, torch.ones(4, 4))
        primal, tangent = torch.autograd.forward_ad.unpack_dual(function(dual))
    assert same(primal, function(x)) and tangent.shape == primal.shape


@pytest.mark.parametrize(
    "name, row",
    [("large", [88.0, 89.0, 87.5, 88.5]), ("tiny", [-104.0, -103.0, -120.0, -200.0]), ("edge", [32.0, -32.0, 31.999, 0.0])],
)
@pytest.mark.parametrize("grad", [False, True])
def test_cross_entropy_where_exp_overflows_or_vanishes(name, row, grad):
    x = torch.tensor([row, [0.5, -1.0, 31.0, 2.0]], requires_grad=grad)
    labels = torch.tensor([1, 3])
    want = F.cross_entropy(x.detach().double(), labels).item()
    assert F.cross_entropy(x, labels).item() == pytest.approx(want, rel=1e-5)


@pytest.mark.parametrize("shape", [(16, 2), (17, 1), (32, 1), (1, 32), (2, 17)])
def test_cross_entropy_of_equal_scores(shape):
    x = torch.full(shape, 31.5)
    labels = torch.zeros(shape[0], dtype=torch.int64)
    assert F.cross_entropy(x, labels, reduction="sum").item() == pytest.approx(shape[0] * math.log(shape[1]), abs=1e-3)
