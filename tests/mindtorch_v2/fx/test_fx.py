"""torch.fx: tracing, generated code, graphs that are changed, interpreters, patterns. CODE is what PyTorch 2.13 writes."""

from __future__ import annotations

import copy
import importlib
import inspect
import operator
import pickle
import sys

import pytest

import mindtorch_v2 as torch
import mindtorch_v2.nn.functional as F
from mindtorch_v2 import as_torch, fx, nn
from mindtorch_v2.fx.immutable_collections import immutable_dict, immutable_list
from mindtorch_v2.fx.passes.shape_prop import ShapeProp
from mindtorch_v2.fx.proxy import TraceError


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(4, 4)
        self.p = nn.Parameter(torch.ones(4))
        self.register_buffer("b", torch.ones(4))
        self.seq = nn.Sequential(nn.Linear(4, 2), nn.ReLU())

    def forward(self, x, y=None, *, k=3):
        z = self.l(x) + self.p - self.b
        z = F.relu(z).view(z.size(0), -1)
        z = torch.cat([z[:, 1:], z], dim=1) * 2
        return self.seq(z[..., :4]), {"a": z.sum(dim=(0, 1)), "n": -z, "f": 2**z, "g": z @ z.t()}


class Reused(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(2, 2)

    def forward(self, x):
        return self.fc(F.dropout(self.fc(x), 0.5, training=self.training))


def annotated(x: torch.Tensor, n: int = 2) -> torch.Tensor:
    x += 1
    return x * n


def unpacked(x):
    a, b = x.chunk(2)
    return a + b


def in_place(x):
    return x.add_(1), x.shape[0], x.dtype


CASES = {
    "module": Net,
    "module used twice": Reused,
    "annotated": annotated,
    "unpacked": unpacked,
    "methods and attributes": in_place,
    "control flow": lambda x: x if x.sum() > 0 else -x,
    "loop": lambda x: list(x),
    "len": lambda x: len(x),
    "starred": lambda *a, **k: a[0] + k["q"],
    "max": lambda x: torch.max(x, 1)[0].clamp(min=0.0),
    "conversion": lambda x: x.to(torch.device("cpu"), torch.half),
    "properties": lambda x: x.T + x.mT,
    "factory": lambda x: torch.zeros(x.shape[0], device=x.device),
    "index": lambda x: x[0:2:1, None, [1]],
    "infinite": lambda x: x.clamp(max=float("inf")) + float("nan"),
    "layer norm": lambda x: F.layer_norm(x, (2,), eps=1e-6),
    "softmax": lambda x: F.softmax(x, dim=-1),
    "cross entropy": lambda x, y: F.cross_entropy(x, y, ignore_index=0),
    "stack": lambda x, y: torch.stack((x, y), 0).mean(0, keepdim=True),
    "reflected": lambda x: 1 - 2 / x + 3 // x,
    "comparison": lambda x: (x == 1) & (x < 2) | ~(x >= 3),
}

CODE = {
    "module": "def forward(self, x, y = None, k = 3):\n"
    "    l = self.l(x);  x = None\n"
    "    p = self.p\n"
    "    add = l + p;  l = p = None\n"
    "    b = self.b\n"
    "    sub = add - b;  add = b = None\n"
    "    relu = torch.nn.functional.relu(sub, inplace = False)\n"
    "    size = sub.size(0);  sub = None\n"
    "    view = relu.view(size, -1);  relu = size = None\n"
    "    getitem = view[(slice(None, None, None), slice(1, None, None))]\n"
    "    cat = torch.cat([getitem, view], dim = 1);  getitem = view = None\n"
    "    mul = cat * 2;  cat = None\n"
    "    getitem_1 = mul[(Ellipsis, slice(None, 4, None))]\n"
    '    seq_0 = getattr(self.seq, "0")(getitem_1);  getitem_1 = None\n'
    '    seq_1 = getattr(self.seq, "1")(seq_0);  seq_0 = None\n'
    "    sum_1 = mul.sum(dim = (0, 1))\n"
    "    neg = -mul\n"
    "    pow_1 = 2 ** mul\n"
    "    t = mul.t()\n"
    "    matmul = mul @ t;  mul = t = None\n"
    "    return (seq_1, {'a': sum_1, 'n': neg, 'f': pow_1, 'g': matmul})",
    "module used twice": "def forward(self, x):\n"
    "    fc = self.fc(x);  x = None\n"
    "    dropout = torch.nn.functional.dropout(fc, p = 0.5, training = True, inplace = False);  fc = "
    "None\n"
    "    fc_1 = self.fc(dropout);  dropout = None\n"
    "    return fc_1",
    "annotated": "def forward(self, x : torch.Tensor, n : int = 2) -> torch.Tensor:\n"
    "    add = x + 1;  x = None\n"
    "    mul = add * n;  add = n = None\n"
    "    return mul",
    "unpacked": "def forward(self, x):\n"
    "    chunk = x.chunk(2);  x = None\n"
    "    getitem = chunk[0]\n"
    "    getitem_1 = chunk[1];  chunk = None\n"
    "    add = getitem + getitem_1;  getitem = getitem_1 = None\n"
    "    return add",
    "methods and attributes": "def forward(self, x):\n"
    "    add_ = x.add_(1)\n"
    "    getattr_1 = x.shape\n"
    "    getitem = getattr_1[0];  getattr_1 = None\n"
    "    getattr_2 = x.dtype;  x = None\n"
    "    return (add_, getitem, getattr_2)",
    "control flow": "TraceError: symbolically traced variables cannot be used as inputs to control flow",
    "loop": "TraceError: Proxy object cannot be iterated. This can be attempted when the Proxy is used in a loop or as a "
    "*args or **kwargs function argument. See the torch.fx docs on pytorch.org for a more detailed explanation of "
    "what types of control flow can be traced, and check out the Proxy docstring for help troubleshooting Proxy "
    "iteration errors",
    "len": "RuntimeError: 'len' is not supported in symbolic tracing by default. If you want this call to be recorded, "
    "please call torch.fx.wrap('len') at module scope",
    "starred": "def forward(self, *a, **k):\n"
    "    _a = a\n"
    "    _k = k\n"
    "    getitem = _a[0];  _a = None\n"
    "    getitem_1 = _k['q'];  _k = None\n"
    "    add = getitem + getitem_1;  getitem = getitem_1 = None\n"
    "    return add",
    "max": "def forward(self, x):\n"
    "    max_1 = torch.max(x, 1);  x = None\n"
    "    getitem = max_1[0];  max_1 = None\n"
    "    clamp = getitem.clamp(min = 0.0);  getitem = None\n"
    "    return clamp",
    "conversion": "def forward(self, x):\n    to = x.to(device(type='cpu'), torch.float16);  x = None\n    return to",
    "properties": "def forward(self, x):\n"
    "    getattr_1 = x.T\n"
    "    getattr_2 = x.mT;  x = None\n"
    "    add = getattr_1 + getattr_2;  getattr_1 = getattr_2 = None\n"
    "    return add",
    "factory": "def forward(self, x):\n"
    "    getattr_1 = x.shape\n"
    "    getitem = getattr_1[0];  getattr_1 = None\n"
    "    getattr_2 = x.device;  x = None\n"
    "    zeros = torch.zeros(getitem, device = getattr_2);  getitem = getattr_2 = None\n"
    "    return zeros",
    "index": "def forward(self, x):\n    getitem = x[(slice(0, 2, 1), None, [1])];  x = None\n    return getitem",
    "infinite": "def forward(self, x):\n"
    "    clamp = x.clamp(max = inf);  x = None\n"
    "    add = clamp + nan;  clamp = None\n"
    "    return add",
    "layer norm": "def forward(self, x):\n"
    "    layer_norm = torch.nn.functional.layer_norm(x, (2,), weight = None, bias = None, eps = 1e-06);  x "
    "= None\n"
    "    return layer_norm",
    "softmax": "def forward(self, x):\n"
    "    softmax = torch.nn.functional.softmax(x, dim = -1, _stacklevel = 3, dtype = None);  x = None\n"
    "    return softmax",
    "cross entropy": "def forward(self, x, y):\n"
    "    cross_entropy = torch.nn.functional.cross_entropy(x, y, weight = None, size_average = None, "
    "ignore_index = 0, reduce = None, reduction = 'mean', label_smoothing = 0.0);  x = y = None\n"
    "    return cross_entropy",
    "stack": "def forward(self, x, y):\n"
    "    stack = torch.stack((x, y), 0);  x = y = None\n"
    "    mean = stack.mean(0, keepdim = True);  stack = None\n"
    "    return mean",
    "reflected": "def forward(self, x):\n"
    "    truediv = 2 / x\n"
    "    sub = 1 - truediv;  truediv = None\n"
    "    floordiv = 3 // x;  x = None\n"
    "    add = sub + floordiv;  sub = floordiv = None\n"
    "    return add",
    "comparison": "def forward(self, x):\n"
    "    eq = x == 1\n"
    "    lt = x < 2\n"
    "    and_ = eq & lt;  eq = lt = None\n"
    "    ge = x >= 3;  x = None\n"
    "    invert = ~ge;  ge = None\n"
    "    or_ = and_ | invert;  and_ = invert = None\n"
    "    return or_",
}


def traced_code(case):
    try:
        return fx.symbolic_trace(case() if isinstance(case, type) else case).code.strip("\n").rstrip()
    except (TraceError, RuntimeError) as error:
        return f"{type(error).__name__}: {error}"


@pytest.mark.parametrize("name", CASES)
def test_code_as_in_torch(name):
    assert traced_code(CASES[name]) == CODE[name]


def test_the_same_code_while_the_package_answers_by_torchs_name():
    with as_torch.installed():
        assert importlib.import_module("torch").__name__ == "torch"
        assert traced_code(Net) == CODE["module"]


def test_a_traced_module_computes_the_same_and_shares_parameters():
    net, x = Net(), torch.randn(2, 4)
    traced = fx.symbolic_trace(net)
    assert torch.equal(traced(x)[0], net(x)[0])
    assert traced.l.weight is net.l.weight and dict(traced.named_parameters()).keys() == dict(net.named_parameters()).keys()
    traced(x)[0].sum().backward()
    assert net.l.weight.grad is not None
    assert type(traced).__name__ == "Net" and "l = self.l(x)" in inspect.getsource(type(traced).forward)


def test_nothing_stays_patched():
    before = (nn.Module.__call__, F.relu, torch.cat, "__getattribute__" in vars(nn.Module))
    with pytest.raises(TraceError):
        fx.symbolic_trace(lambda x: F.relu(x) if x else torch.cat([x]))
    assert (nn.Module.__call__, F.relu, torch.cat, "__getattribute__" in vars(nn.Module)) == before
    assert not fx.is_fx_tracing()


def test_concrete_arguments():
    traced = fx.symbolic_trace(lambda x, y: x + 1 if y else x, concrete_args={"y": True})
    assert traced(torch.zeros(1), True).item() == 1
    with pytest.raises(AssertionError, match="y has been specialized to have value True"):
        traced(torch.zeros(1), False)
    with pytest.raises(RuntimeError, match="names no argument"):
        fx.symbolic_trace(lambda x: x, concrete_args={"z": 1})


def test_tensors_of_a_function_become_constants():
    constant = torch.arange(2.0)
    traced = fx.symbolic_trace(lambda x: x + constant)
    assert torch.equal(traced(torch.ones(2)), constant + 1)
    assert [n.target for n in traced.graph.nodes if n.op == "get_attr"] == ["_tensor_constant0"]


def test_default_leaves_and_own_leaves():
    class Inside(fx.Tracer):
        def is_leaf_module(self, m, module_qualified_name):
            return False

    seq = nn.Sequential(nn.ReLU())
    assert [n.op for n in fx.Tracer().trace(seq).nodes] == ["placeholder", "call_module", "output"]
    assert [n.op for n in Inside().trace(seq).nodes] == ["placeholder", "call_function", "output"]


@pytest.mark.parametrize("shapes", [False, True])
def test_a_tracer_whose_proxies_take_no_factory(shapes):
    class Named(fx.Tracer):
        def create_proxy(self, kind, target, args, kwargs, name=None, type_expr=None, *_):
            kinds.append(kind)
            return super().create_proxy(kind, target, args, kwargs, name, type_expr)

    kinds = []
    Named(param_shapes_constant=shapes).trace(Net())
    assert kinds.count("get_attr") == 1  # the parameter; the buffer becomes a node when it is an argument


# ---------------------------------------------------------------- graphs by hand


def small_graph():
    graph = fx.Graph()
    x = graph.placeholder("x")
    relu = graph.call_function(torch.relu, (x,))
    graph.output(relu)
    return graph, x, relu


def test_a_graph_by_hand():
    graph, x, relu = small_graph()
    assert str(graph) == (
        "graph():\n    %x : [num_users=1] = placeholder[target=x]\n"
        "    %relu : [num_users=1] = call_function[target=torch.relu](args = (%x,), kwargs = {})\n    return relu"
    )
    with graph.inserting_before(relu):
        neg = graph.call_method("neg", (x,))
    relu.args = (neg,)
    assert list(x.users) == [neg] and relu.all_input_nodes == [neg] and x < neg < relu
    graph.lint()
    module = fx.GraphModule(nn.Module(), graph)
    assert module(torch.tensor([-2.0])).item() == 2
    assert relu.replace_all_uses_with(neg) == [graph.output_node()]
    graph.erase_node(relu)
    assert module.recompile().src == module.code and module(torch.tensor([-2.0])).item() == 2
    assert len(graph.nodes) == 3 and [n.name for n in reversed(graph.nodes)] == ["output", "neg", "x"]


def test_what_a_graph_refuses():
    graph, x, relu = small_graph()
    with pytest.raises(RuntimeError, match=r"Tried to erase Node x but it still had 1 users in the graph: {relu: None}!"):
        graph.erase_node(x)
    with pytest.raises(AssertionError, match="op 'bad' is not in _legal_ops"):
        graph.create_node("bad", "x")
    with pytest.raises(ValueError, match="but a Callable is expected"):
        graph.call_function("relu")
    with pytest.raises(TypeError, match="does not support mutation"):
        relu.kwargs["inplace"] = True
    fx.GraphModule(nn.Module(), graph)
    with pytest.raises(AttributeError, match="has no attribute `nope`"):
        graph.call_module("nope")
    relu.args = (graph.output_node(),)
    with pytest.raises(RuntimeError, match="used before it has been defined"):
        graph.lint()
    relu.args = (small_graph()[1],)
    with pytest.raises(RuntimeError, match="does not belong to this Graph"):
        graph.lint()


def test_nodes_go_where_the_block_says():
    graph, x, relu = small_graph()
    with graph.inserting_after(x):
        first, second = graph.call_method("abs", (x,)), graph.call_method("abs", (x,))
    with graph.inserting_before():
        begin = graph.get_attr("w")
    assert [n.name for n in graph.nodes] == ["w", "x", "abs_1", "abs_2", "relu", "output"]
    assert begin.next is x and first.next is second
    relu.append(first)
    assert second.next is relu and relu.next is first
    relu.insert_arg(1, 5)
    relu.update_arg(0, second)
    relu.update_kwarg("k", first)
    assert relu.args == (second, 5) and relu.kwargs == {"k": first} and list(first.users) == [relu]


def test_dead_code_goes_and_effects_stay():
    def function(x):
        x.neg()
        x.add_(1)
        return x.abs()

    traced = fx.symbolic_trace(function)
    assert traced.graph.eliminate_dead_code()
    assert [n.target for n in traced.graph.nodes] == ["x", "add_", "abs", "output"]
    assert not traced.graph.eliminate_dead_code()


def test_names_and_find_nodes():
    graph = fx.Graph()
    x = graph.placeholder("x")
    nodes = [graph.call_function(operator.add, (x, i)) for i in range(3)]
    assert [n.name for n in nodes] == ["add", "add_1", "add_2"]
    assert graph.create_node("call_function", sum, (x,)).name == "sum_1"  # not Python's own name
    assert graph.find_nodes(op="call_function", target=operator.add) == nodes
    assert graph.get_attr("layers.0.BatchNorm").name == "layers_0_batch_norm"


# ---------------------------------------------------------------- modules


def test_copies_and_pickles():
    net, x = Net(), torch.randn(2, 4)
    traced = fx.symbolic_trace(net)
    for copied in (copy.deepcopy(traced), copy.copy(traced), pickle.loads(pickle.dumps(traced))):
        assert copied.code == traced.code
        assert torch.equal(copied(x)[0], net(x)[0])
    assert copy.deepcopy(traced).l.weight is not traced.l.weight


def test_submodules_come_and_go():
    traced = fx.symbolic_trace(Net())
    assert traced.add_submodule("extra.inner", nn.ReLU())
    assert isinstance(traced.extra.inner, nn.ReLU)
    traced.delete_all_unused_submodules()
    assert not hasattr(traced, "extra") and hasattr(traced.seq, "1")
    assert not traced.delete_submodule("nope.x")
    with pytest.raises(RuntimeError, match="was not provided in ``root``"):
        graph = fx.Graph()
        graph.get_attr("missing")
        fx.GraphModule({}, graph)


def test_module_from_a_dict_and_to_a_folder(tmp_path, monkeypatch):
    graph = fx.Graph()
    x = graph.placeholder("x")
    graph.output(graph.call_function(operator.add, (graph.call_module("a.lin", (x,)), graph.get_attr("w"))))
    linear = nn.Linear(2, 2)
    module = fx.GraphModule({"a.lin": linear, "w": nn.Parameter(torch.ones(2))}, graph, "Made")
    value = torch.randn(3, 2)
    assert torch.equal(module(value), linear(value) + 1)
    assert module.print_readable(print_output=False).startswith("class Made(torch.nn.Module):\n    def forward(self, x):\n")
    module.to_folder(tmp_path / "made", "Made")
    monkeypatch.syspath_prepend(tmp_path)
    from mindtorch_v2 import as_torch

    with as_torch.installed():
        from made import Made
    assert torch.equal(Made()(value), module(value))
    sys.modules.pop("made"), sys.modules.pop("made.module")


# ---------------------------------------------------------------- interpreters and patterns


def test_interpreter_runs_nodes_and_says_where_it_failed():
    class Doubled(fx.Interpreter):
        def call_method(self, target, args, kwargs):
            return super().call_method(target, args, kwargs) * 2

    traced = fx.symbolic_trace(lambda x, y=2: x.neg() + y)
    assert Doubled(traced).run(torch.ones(1)).item() == 0
    with pytest.raises(RuntimeError, match="While executing %add"):
        fx.Interpreter(traced).run(torch.ones(2), torch.ones(3))
    with pytest.raises(RuntimeError, match="Expected positional argument for parameter x"):
        fx.Interpreter(traced).run()


def test_transformer_gives_a_new_module():
    class Swap(fx.Transformer):
        def call_function(self, target, args, kwargs):
            return super().call_function(torch.sigmoid if target is torch.relu else target, args, kwargs)

    traced = fx.symbolic_trace(lambda x: torch.relu(x) + 1)
    swapped = Swap(traced).transform()
    x = torch.randn(3)
    assert torch.equal(swapped(x), torch.sigmoid(x) + 1)
    assert torch.equal(traced(x), torch.relu(x) + 1)


def test_patterns_are_replaced():
    traced = fx.symbolic_trace(lambda x: torch.relu(torch.relu(x + 1) + 1).sum())
    matches = fx.replace_pattern(traced, lambda a: torch.relu(a + 1), lambda a: torch.sigmoid(a))
    assert len(matches) == 2
    x = torch.randn(3)
    assert torch.equal(traced(x), torch.sigmoid(torch.sigmoid(x)).sum())
    traced.graph.lint()
    used_outside = fx.symbolic_trace(lambda x: torch.relu(y := x + 1) + y)
    assert fx.replace_pattern(used_outside, lambda a: torch.relu(a + 1), lambda a: a) == []


def test_shapes():
    traced = fx.symbolic_trace(nn.Sequential(nn.Linear(4, 3), nn.ReLU()))
    ShapeProp(traced).propagate(torch.ones(2, 4))
    shapes = {n.name: tuple(n.meta["tensor_meta"].shape) for n in traced.graph.nodes if "tensor_meta" in n.meta}
    assert shapes == {"input_1": (2, 4), "_0": (2, 3), "_1": (2, 3), "output": (2, 3)}


def test_collections_that_cannot_change():
    values, named = immutable_list([1, 2]), immutable_dict(a=1)
    for change in (lambda: values.append(3), lambda: values.sort(), lambda: named.update(b=2), lambda: named.pop("a")):
        with pytest.raises(TypeError, match="does not support mutation"):
            change()
    assert pickle.loads(pickle.dumps((values, named))) == (values, named) and hash(values) == hash((1, 2))
    assert torch.utils._pytree.tree_map(lambda v: v + 1, values) == [2, 3]


@fx.wrap
def times(x, n):
    return x * n if n > 1 else x  # would decide by a value that is not known


def recorded_call(x, n):
    return times(x, n) + 1


def test_wrapped_functions_are_one_node():
    traced = fx.symbolic_trace(recorded_call)
    assert [n.target for n in traced.graph.nodes if n.op == "call_function"] == [times, operator.add]
    assert traced(torch.ones(1), 3).item() == 4
    # As well when what was generated is traced in its turn, which is how it is copied by pickle, too.
    assert f'torch.fx._symbolic_trace.wrap("{__name__.replace(".", "_")}_times")' in traced.code
    for again in (fx.symbolic_trace(traced), pickle.loads(pickle.dumps(traced))):
        assert [n.target for n in again.graph.nodes if n.op == "call_function"] == [times, operator.add]
        assert again.code == traced.code
    with pytest.raises(NotImplementedError, match="top level of a module"):
        fx.wrap("len")
