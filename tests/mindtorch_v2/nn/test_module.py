"""nn.Module: members, state, hooks, modes, copies, containers and parameters; texts are torch 2.13's."""

from __future__ import annotations

import copy
import gc
import pickle
import warnings
import weakref
from collections import OrderedDict

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import nn
from mindtorch_v2._core.threads import threads
from mindtorch_v2._dispatch import observer
from mindtorch_v2.nn.modules import module as module_room


def outcome(call) -> str:
    """What `call` returns, or the type and message of what it raises."""
    try:
        return str(call())
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def kinds(modules) -> list[str]:
    return [type(module).__name__ for module in modules]


def holder() -> nn.Module:
    made = nn.Module()
    made.p = nn.Parameter(torch.ones(1))
    made.c = nn.ReLU()
    made.register_buffer("b", torch.ones(1))
    made.plain = 1
    return made


class Scale(nn.Module):
    def forward(self, x, scale=1):
        if scale == 0:
            raise ValueError("zero")
        return x * scale


# ---------------------------------------------------------------- members

PARAMETER = nn.Parameter(torch.ones(1))
MEMBER_TEXTS = [
    (
        lambda m: setattr(m, "p", torch.ones(1)),
        "TypeError: cannot assign 'torch.FloatTensor' as parameter 'p' (torch.nn.Parameter or None expected)",
    ),
    (lambda m: setattr(m, "c", 3), "TypeError: cannot assign 'int' as child module 'c' (torch.nn.Module or None expected)"),
    (
        lambda m: setattr(m, "b", "x"),
        "TypeError: cannot assign 'str' as buffer 'b' (torch.nn.Buffer, torch.Tensor or None expected)",
    ),
    (lambda m: m.register_parameter("a.b", PARAMETER), "KeyError: 'parameter name can\\'t contain \".\"'"),
    (lambda m: m.register_parameter("", PARAMETER), "KeyError: 'parameter name can\\'t be empty string \"\"'"),
    (lambda m: m.register_parameter("plain", PARAMETER), "KeyError: \"attribute 'plain' already exists\""),
    (lambda m: m.register_parameter(3, PARAMETER), "TypeError: parameter name should be a string. Got int"),
    (
        lambda m: m.register_parameter("q", nn.ReLU()),
        "TypeError: cannot assign 'torch.nn.modules.activation.ReLU' object to parameter 'q' (torch.nn.Parameter or None "
        "required)",
    ),
    (lambda m: m.register_buffer("c", torch.ones(1)), "KeyError: \"attribute 'c' already exists\""),
    (
        lambda m: m.register_buffer("q", 3),
        "TypeError: cannot assign 'int' object to buffer 'q' (torch Tensor or None required)",
    ),
    (lambda m: m.add_module("a.b", nn.ReLU()), "KeyError: 'module name can\\'t contain \".\", got: a.b'"),
    (lambda m: m.add_module("q", 3), "TypeError: int is not a Module subclass"),
    (lambda m: m.nothing, "AttributeError: 'Module' object has no attribute 'nothing'"),
    (lambda m: delattr(m, "nothing"), "AttributeError: 'Module' object has no attribute 'nothing'"),
    (lambda m: m(1), 'NotImplementedError: Module [Module] is missing the required "forward" function'),
    (lambda m: nn.Module(3), "TypeError: Module.__init__() takes 1 positional argument but 2 were given"),
    (lambda m: nn.Module(a=3), "TypeError: Module.__init__() got an unexpected keyword argument 'a'"),
    (lambda m: m.get_submodule("c.x"), "AttributeError: ReLU has no attribute `x`"),
    (lambda m: m.get_submodule("p"), "AttributeError: `p` is not an nn.Module"),
    (lambda m: m.get_parameter("c"), "AttributeError: `c` is not an nn.Parameter"),
    (lambda m: m.get_buffer("p"), "AttributeError: `p` is not a buffer"),
    (lambda m: m.set_submodule("", nn.ReLU()), "ValueError: Cannot set the submodule without a target name!"),
    (lambda m: m.set_submodule("p", nn.ReLU()), "AttributeError: `p` is not an nn.Module"),
    (lambda m: m.train("yes"), "ValueError: training mode is expected to be boolean"),
    (
        lambda m: m.to(torch.int64),
        "TypeError: nn.Module.to only accepts floating point or complex dtypes, but got desired dtype=torch.int64",
    ),
]


@pytest.mark.parametrize(("call", "expected"), MEMBER_TEXTS, ids=[text[:70] for _, text in MEMBER_TEXTS])
def test_member_refusals(call, expected: str) -> None:
    assert outcome(lambda: call(holder())) == expected


@pytest.mark.parametrize(("value", "word"), [(PARAMETER, "parameters"), (nn.ReLU(), "module")])
def test_nothing_before_init(value, word: str) -> None:
    class Early(nn.Module):
        def __init__(self) -> None:
            self.x = value

    assert outcome(Early) == f"AttributeError: cannot assign {word} before Module.__init__() call"


def test_a_name_changes_its_kind() -> None:
    m = nn.Module()
    m.a = torch.ones(1)
    m.a = nn.Parameter(torch.zeros(1))
    assert (list(m._parameters), list(m._buffers)) == (["a"], [])
    del m.a
    m.register_buffer("a", torch.ones(2))
    m.a = nn.Parameter(torch.zeros(1))
    assert (list(m._parameters), list(m._buffers)) == (["a"], [])
    del m.a
    m.a = nn.ReLU()
    m.a = nn.Parameter(torch.zeros(3))
    assert (list(m._parameters), list(m._modules), m.a.numel()) == (["a"], [], 3)
    m.a = None
    assert m.a is None and list(m.parameters()) == []


def test_members_are_attributes_whichever_way_they_are_written() -> None:
    m = nn.Module()
    m._parameters["w"] = PARAMETER
    assert m.w is PARAMETER
    del m._parameters["w"]
    assert not hasattr(m, "w")
    m._modules.update(z=nn.ReLU())
    m._modules.setdefault("y", nn.Tanh())
    assert kinds([m.z, m.y]) == ["ReLU", "Tanh"]
    assert kinds([m._modules.pop("z")]) == ["ReLU"] and not hasattr(m, "z")
    m._modules.popitem()
    assert not hasattr(m, "y") and m._modules.pop("y", None) is None
    m.register_buffer("b", torch.ones(1))
    m._buffers = {"c": torch.zeros(1)}
    assert not hasattr(m, "b") and m.c.item() == 0.0
    m._buffers.clear()
    assert not hasattr(m, "c")


def test_buffers_by_class() -> None:
    m = nn.Module()
    m.kept = nn.Buffer(torch.ones(1))
    m.scratch = nn.Buffer(torch.ones(1), persistent=False)
    assert list(m.state_dict()) == ["kept"] and list(m._buffers) == ["kept", "scratch"]
    assert isinstance(m.kept, nn.Buffer) and type(m.kept) is torch.Tensor
    m.kept = torch.zeros(3)
    assert m.state_dict()["kept"].tolist() == [0.0, 0.0, 0.0]


def test_a_module_goes_with_its_last_reference() -> None:
    gc.disable()
    try:
        m = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
        gone = weakref.ref(m)
        del m
        assert gone() is None
    finally:
        gc.enable()


def test_walks() -> None:
    shared = nn.Linear(1, 1)
    m = nn.Module()
    m.a = shared
    m.b = nn.Sequential(shared, nn.ReLU())
    m.register_module("none", None)
    assert [name for name, _ in m.named_modules()] == ["", "a", "b", "b.1"]
    assert [name for name, _ in m.named_modules(remove_duplicate=False)] == ["", "a", "b", "b.0", "b.1"]
    assert [name for name, _ in m.named_children()] == ["a", "b"]
    assert [name for name, _ in m.named_parameters(prefix="x")] == ["x.a.weight", "x.a.bias"]
    assert len(list(m.named_parameters(remove_duplicate=False))) == 4
    assert list(m.parameters(recurse=False)) == []
    seen: list[str] = []
    assert m.apply(lambda each: seen.append(type(each).__name__)) is m
    assert seen == ["Linear", "Linear", "ReLU", "Sequential", "Module"]
    m.set_submodule("b.1", nn.Tanh())
    assert isinstance(m.get_submodule("b.1"), nn.Tanh) and m.get_parameter("b.0.bias") is shared.bias


# ---------------------------------------------------------------- state


def net() -> nn.Module:
    return nn.Sequential(nn.Linear(2, 1), nn.BatchNorm1d(1))


GOOD = net().state_dict()
ERRORS = "RuntimeError: Error(s) in loading state_dict for Sequential:\n\t"
REST = '"1.weight", "1.bias", "1.running_mean", "1.running_var". '
LOADS = [
    (GOOD, {}, "<All keys matched successfully>"),
    (3, {}, "TypeError: Expected state_dict to be dict-like, got <class 'int'>."),
    ({}, {}, ERRORS + 'Missing key(s) in state_dict: "0.weight", "0.bias", ' + REST),
    ({**GOOD, "x": torch.ones(1)}, {}, ERRORS + 'Unexpected key(s) in state_dict: "x". '),
    (
        {"0.weight": torch.ones(3), "0.zz": 1, "9.a": 1},
        {},
        ERRORS + 'Missing key(s) in state_dict: "0.bias", ' + REST + '\n\tUnexpected key(s) in state_dict: "9.a", "0.zz". '
        "\n\tsize mismatch for 0.weight: copying a param with shape torch.Size([3]) from checkpoint, the shape in "
        "current model is torch.Size([1, 2]).",
    ),
    (
        {**GOOD, "0.bias": torch.ones(2)},
        {"strict": False},
        ERRORS + "size mismatch for 0.bias: copying a param with shape torch.Size([2]) from checkpoint, the shape in "
        "current model is torch.Size([1]).",
    ),
    (
        {**GOOD, "0.weight": 3},
        {},
        ERRORS + 'While copying the parameter named "0.weight", expected torch.Tensor or Tensor-like object from '
        "checkpoint but received <class 'int'>",
    ),
    ({**GOOD, "q": torch.ones(1)}, {"strict": False}, "_IncompatibleKeys(missing_keys=[], unexpected_keys=['q'])"),
]


@pytest.mark.parametrize(("state", "options", "expected"), LOADS)
def test_loading(state, options: dict, expected: str) -> None:
    assert outcome(lambda: net().load_state_dict(state, **options)) == expected


def test_state_dict_shares_memory_and_casts_on_loading() -> None:
    m = nn.Linear(1, 1)
    state = m.state_dict()
    with torch.no_grad():
        m.weight.fill_(7)
    assert state["weight"].item() == 7.0 and not state["weight"].requires_grad
    assert m.state_dict(keep_vars=True)["weight"] is m.weight
    m.load_state_dict({"weight": torch.tensor([[2.0]], dtype=torch.float64), "bias": torch.tensor([3])})
    assert (m.weight.dtype, m.weight.item(), m.bias.item()) == (torch.float32, 2.0, 3.0)


def test_assigning_takes_the_tensors_themselves() -> None:
    m, new = nn.Linear(2, 1), torch.ones(1, 2)
    before = m.weight
    m.load_state_dict({"weight": new, "bias": torch.ones(1)}, assign=True)
    new.fill_(5)
    assert m.weight is not before and m.weight.tolist() == [[5.0, 5.0]] and m.weight.requires_grad


def test_old_batch_norm_files_have_no_counter() -> None:
    layer = nn.BatchNorm1d(2)
    state = layer.state_dict()
    assert state._metadata[""] == {"version": 2}
    del state["num_batches_tracked"]
    assert "num_batches_tracked" in outcome(lambda: layer.load_state_dict(state))
    state._metadata[""]["version"] = 1
    assert str(layer.load_state_dict(state)) == "<All keys matched successfully>"


def test_state_hooks() -> None:
    log: list = []
    m = nn.Sequential(nn.Linear(1, 1))
    handles = [
        m.register_state_dict_pre_hook(lambda mod, prefix, keep: log.append(["pre", prefix, keep])),
        m[0].register_state_dict_post_hook(lambda mod, state, prefix, meta: log.append(["post", list(state), prefix])),
        m._register_state_dict_hook(lambda mod, state, prefix, meta: {**state, "extra": 1}),
        m.register_load_state_dict_pre_hook(lambda mod, state, *rest: state.pop("extra", None) and None),
        m.register_load_state_dict_post_hook(lambda mod, keys: keys.missing_keys.clear()),
    ]
    state = m.state_dict(prefix="p.")
    assert log == [["pre", "p.", False], ["post", ["p.0.weight", "p.0.bias"], "p.0."]]
    assert list(state) == ["p.0.weight", "p.0.bias", "extra"]
    state = m.state_dict()
    del state["0.bias"]
    assert str(m.load_state_dict(state)) == "<All keys matched successfully>"
    for handle in handles:
        handle.remove()
    assert "0.bias" in outcome(lambda: m.load_state_dict(state)) and list(m.state_dict()) == ["0.weight", "0.bias"]


def test_extra_state() -> None:
    class Noted(nn.Module):
        note = "x"

        def get_extra_state(self):
            return self.note

        def set_extra_state(self, state):
            self.note = state

    a, b = Noted(), Noted()
    a.note = "changed"
    b.load_state_dict(a.state_dict())
    assert list(a.state_dict()) == ["_extra_state"] and b.note == "changed"
    assert 'Missing key(s) in state_dict: "_extra_state"' in outcome(lambda: b.load_state_dict({}))


# ---------------------------------------------------------------- calls and hooks


def test_forward_hooks() -> None:
    m, log, x = Scale(), [], torch.ones(1)
    m.register_forward_pre_hook(lambda mod, args, kwargs: (args, {"scale": kwargs.get("scale", 1) * 2}), with_kwargs=True)
    m.register_forward_pre_hook(lambda mod, args: args[0] + 1)
    m.register_forward_hook(
        lambda mod, args, kwargs, out: log.append([out is None, kwargs]), with_kwargs=True, always_call=True
    )
    m.register_forward_hook(lambda mod, args, out: out * 10)
    assert (m(x).item(), m(x, scale=3).item()) == (40.0, 120.0)
    assert outcome(lambda: m(x, scale=0)) == "ValueError: zero"
    assert [failed for failed, _ in log] == [False, False, True]


def test_hooks_leave_no_trace_when_removed() -> None:
    m = Scale()
    first = m.register_forward_hook(lambda mod, args, out: out + 1)
    with m.register_forward_hook(lambda mod, args, out: out * 10, prepend=True):
        assert m(torch.ones(1)).item() == 11.0
    first.remove()
    assert m(torch.ones(1)).item() == 1.0 and "_hooked" not in m.__dict__


def test_a_pre_hook_with_kwargs_returns_both() -> None:
    m = Scale()
    m.register_forward_pre_hook(lambda mod, args, kwargs: 5, with_kwargs=True)
    assert outcome(lambda: m(1)) == (
        "RuntimeError: forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got 5."
    )


def test_full_backward_hooks() -> None:
    m = nn.Linear(2, 1, bias=False)
    m.weight.data.copy_(torch.tensor([[2.0, 3.0]]))
    log: list = []
    m.register_full_backward_hook(lambda mod, gi, go: log.append([gi[0].tolist(), go[0].tolist()]))
    m.register_full_backward_pre_hook(lambda mod, go: (go[0] * 2,))
    x = torch.ones(1, 2, requires_grad=True)
    m(x).sum().backward()
    assert log == [[[[4.0, 6.0]], [[2.0]]]] and x.grad.tolist() == [[4.0, 6.0]]
    m.register_full_backward_hook(lambda mod, gi, go: (gi[0] * 0,))
    x.grad = None
    m(x).sum().backward()
    assert x.grad.tolist() == [[0.0, 0.0]]
    assert "Cannot use both regular backward hooks" in outcome(lambda: m.register_backward_hook(print))


def test_full_backward_hook_without_inputs_that_need_gradients() -> None:
    m, log = nn.Linear(2, 1), []
    m.register_full_backward_hook(lambda mod, gi, go: log.append([gi, go[0].tolist()]))
    with pytest.warns(UserWarning, match="Full backward hook is firing when gradients are computed"):
        m(torch.ones(1, 2)).sum().backward()
    assert log == [[(None,), [[1.0]]]]


def test_hooks_of_all_modules() -> None:
    log: list = []
    handles = [
        module_room.register_module_forward_pre_hook(lambda m, args: log.append("pre " + type(m).__name__)),
        module_room.register_module_forward_hook(lambda m, args, out: log.append("post " + type(m).__name__)),
        module_room.register_module_parameter_registration_hook(lambda m, name, p: log.append("param " + name)),
        module_room.register_module_buffer_registration_hook(lambda m, name, b: log.append("buffer " + name)),
        module_room.register_module_module_registration_hook(lambda m, name, c: log.append("module " + name)),
    ]
    s = nn.Sequential(nn.Linear(1, 1), nn.Tanh())
    s.register_buffer("q", torch.ones(1))
    s(torch.ones(1, 1))
    for handle in handles:
        handle.remove()
    assert log == [
        "param weight",
        "param bias",
        "module 0",
        "module 1",
        "buffer q",
        "pre Sequential",
        "pre Linear",
        "post Linear",
        "pre Tanh",
        "post Tanh",
        "post Sequential",
    ]
    s(torch.ones(1, 1))
    assert len(log) == 11 and not nn.Module._hooked


def test_calls_tell_who_watches() -> None:
    log: list[str] = []
    state, m = threads.state, nn.Sequential(nn.ReLU(), Scale())
    state.module_enter = lambda module: log.append("enter " + type(module).__name__)
    state.module_exit = lambda module: log.append("exit " + type(module).__name__)
    try:
        m(torch.ones(1))
        assert log == []
        observer.acquire()
        try:
            m(torch.ones(1))
            assert outcome(lambda: m[1](torch.ones(1), scale=0)) == "ValueError: zero"
        finally:
            observer.release()
    finally:
        state.module_enter = state.module_exit = None
    assert log == [
        "enter Sequential",
        "enter ReLU",
        "exit ReLU",
        "enter Scale",
        "exit Scale",
        "exit Sequential",
        "enter Scale",
        "exit Scale",
    ]


# ---------------------------------------------------------------- modes, conversions, copies


def test_training_and_gradients() -> None:
    m = nn.Sequential(nn.Dropout(), nn.Linear(1, 1))
    assert m.eval() is m and not any(each.training for each in m.modules())
    m.train()[0].train(False)
    assert [each.training for each in m.modules()] == [True, False, True]
    m(torch.ones(1, 1)).sum().backward()
    grad = m[1].weight.grad
    m.zero_grad(set_to_none=False)
    assert m[1].weight.grad is grad and grad.tolist() == [[0.0]]
    m.zero_grad()
    assert m[1].weight.grad is None
    assert not any(p.requires_grad for p in m.requires_grad_(False).parameters())


def test_conversions_keep_parameters_and_convert_gradients() -> None:
    m = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    weight = m[0].weight
    m(torch.ones(3, 2)).sum().backward()
    for call, dtype in (
        (m.double, torch.float64),
        (m.half, torch.float16),
        (m.bfloat16, torch.bfloat16),
        (m.float, torch.float32),
        (lambda: m.to(torch.float64), torch.float64),
        (lambda: m.to("cpu", torch.float32), torch.float32),
        (lambda: m.to(torch.ones(1, dtype=torch.float64)), torch.float64),
    ):
        assert call() is m and m[0].weight is weight
        assert weight.dtype == weight.grad.dtype == m[1].running_mean.dtype == dtype
        assert m[1].num_batches_tracked.dtype == torch.int64


def test_moving_to_meta_makes_new_parameters() -> None:
    m = nn.Linear(2, 3)
    weight = m.weight
    m.to("meta")
    assert m.weight is not weight and m.weight.is_meta and m.weight.requires_grad
    assert m._parameters["weight"] is m.weight
    assert "Cannot copy out of meta tensor" in outcome(lambda: m.to("cpu"))


@pytest.mark.parametrize("make", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))], ids=["deepcopy", "pickle"])
def test_copies_stand_alone(make) -> None:
    m = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    m.also = m[0]
    c = make(m)
    assert c.also is c[0] and c[0].weight is not m[0].weight and torch.equal(c[0].weight, m[0].weight)
    assert type(c[0].weight) is nn.Parameter and c[0].weight.requires_grad
    assert list(c.state_dict()) == list(m.state_dict())
    c[0]._parameters["weight"] = None
    assert c[0].weight is None and m[0].weight is not None
    c.add_module("2", nn.Tanh())
    assert len(c) == len(m) + 1


def test_shallow_copies_share_parameters_only() -> None:
    m = nn.Linear(1, 1)
    c = copy.copy(m)
    assert c.weight is m.weight
    c.weight = nn.Parameter(torch.ones(1, 1))
    assert c.weight is not m.weight


# ---------------------------------------------------------------- containers


def test_sequential() -> None:
    s, t = nn.Sequential(nn.ReLU(), nn.Tanh()), nn.Sequential(nn.Sigmoid())
    assert kinds(s + t) == ["ReLU", "Tanh", "Sigmoid"] and kinds(t * 2) == kinds(2 * t) == ["Sigmoid", "Sigmoid"]
    s += t
    assert isinstance(s.pop(0), nn.ReLU) and list(s._modules) == ["0", "1"]
    s.append(nn.ELU()).insert(0, nn.GELU())
    s.extend([nn.SELU()])
    del s[1:3]
    assert kinds(s) == ["GELU", "ELU", "SELU"] and kinds(s[1:]) == ["ELU", "SELU"]
    assert list(s._modules) == ["0", "1", "2"]
    s[-1] = nn.Mish()
    assert isinstance(s[2], nn.Mish) and len(s) == 3
    named = nn.Sequential(OrderedDict(a=nn.ReLU(), b=nn.Tanh()))
    assert list(named._modules) == ["a", "b"] and isinstance(named.b, nn.Tanh)
    assert outcome(lambda: s[5]) == "IndexError: index 5 is out of range"
    assert outcome(lambda: nn.Sequential(3)) == "TypeError: int is not a Module subclass"


def test_module_list() -> None:
    m = nn.ModuleList([nn.Linear(1, 1)])
    m += [nn.ReLU(), nn.ReLU()]
    m.insert(0, nn.Identity())
    assert kinds(m) == ["Identity", "Linear", "ReLU", "ReLU"] and kinds(m[::-1])[0] == "ReLU"
    assert list(m.state_dict()) == ["1.weight", "1.bias"] and kinds(m + [nn.Tanh()])[-1] == "Tanh"
    del m[0]
    assert isinstance(m.pop(-1), nn.ReLU) and len(m) == 2 and isinstance(m[-1], nn.ReLU)
    assert 'Module [ModuleList] is missing the required "forward" function' in outcome(lambda: m(1))


def test_module_dict() -> None:
    m = nn.ModuleDict({"x": nn.ReLU(), "y": nn.Linear(1, 1)})
    m.update([("z", nn.Tanh())])
    assert isinstance(m.pop("x"), nn.ReLU) and list(m) == list(m.keys()) == ["y", "z"] and "y" in m
    assert kinds(m.values()) == ["Linear", "Tanh"] and list(m.state_dict()) == ["y.weight", "y.bias"]
    assert outcome(lambda: nn.ModuleDict({"keys": nn.ReLU()})) == "KeyError: \"attribute 'keys' already exists\""
    m.clear()
    assert len(m) == 0 and not hasattr(m, "y")


def test_parameter_containers() -> None:
    listed = nn.ParameterList([torch.ones(1), 3, nn.Parameter(torch.zeros(2))])
    listed.append(torch.ones(3))
    assert kinds(listed) == ["Parameter", "int", "Parameter", "Parameter"]
    assert list(listed.state_dict()) == ["0", "2", "3"]
    listed[0] = torch.full((2,), 7.0)
    assert listed[0].tolist() == [7.0, 7.0] and kinds(listed[1:3]) == ["int", "Parameter"]
    named = nn.ParameterDict({"b": torch.ones(1), "a": 3})
    named["c"] = torch.zeros(1)
    assert list(named) == ["a", "b", "c"] and list(named.state_dict()) == ["b", "c"] and named.get("zz", 4) == 4
    assert list(named | nn.ParameterDict({"q": torch.ones(1)})) == ["a", "b", "c", "q"]
    assert named.pop("a") == 3 and named.popitem()[0] == "c" and len(list(named.parameters())) == 1
    assert outcome(lambda: listed(1)) == "RuntimeError: ParameterList should not be called."


# ---------------------------------------------------------------- parameters


def test_parameters_are_leaves_whose_results_are_tensors() -> None:
    data = torch.ones(2)
    p = nn.Parameter(data)
    assert isinstance(p, torch.Tensor) and p.is_leaf and p.requires_grad and p.data_ptr() == data.data_ptr()
    assert {type(t) for t in (p + 1, p.detach(), p.data, p.clone())} == {torch.Tensor}
    assert repr(p) == "Parameter containing:\ntensor([1., 1.], requires_grad=True)"
    assert not nn.Parameter(torch.tensor([1]), requires_grad=False).requires_grad
    assert outcome(lambda: nn.Parameter(torch.tensor([1]))) == (
        "RuntimeError: Only Tensors of floating point and complex dtype can require gradients"
    )
    twice = copy.deepcopy([p, p])
    assert twice[0] is twice[1] is not p


def test_uninitialized_parameters() -> None:
    p = nn.UninitializedParameter(dtype=torch.float64)
    assert repr(p) == "<UninitializedParameter>" and nn.parameter.is_lazy(p)
    assert "Can't access the shape of an uninitialized parameter" in outcome(lambda: p.shape)
    assert "Attempted to use an uninitialized parameter in" in outcome(lambda: p + 1)
    p.materialize((2, 3))
    assert type(p) is nn.Parameter and list((p * 1).shape) == [2, 3] and p.dtype == torch.float64 and p.requires_grad


@pytest.mark.parametrize(
    ("make", "shape", "became"),
    [
        (lambda: nn.LazyLinear(3), (2, 5), "Linear(in_features=5, out_features=3, bias=True)"),
        (lambda: nn.LazyConv2d(4, 3), (1, 2, 5, 5), "Conv2d(2, 4, kernel_size=(3, 3), stride=(1, 1))"),
        (lambda: nn.LazyConvTranspose1d(4, 3), (2, 5), "ConvTranspose1d(2, 4, kernel_size=(3,), stride=(1,))"),
        (
            lambda: nn.LazyBatchNorm1d(),
            (4, 3),
            "BatchNorm1d(3, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)",
        ),
    ],
    ids=["linear", "conv", "transposed", "norm"],
)
def test_lazy_modules(make, shape: tuple[int, ...], became: str) -> None:
    m = make()
    assert m.has_uninitialized_params()
    m(torch.zeros(*shape))
    assert repr(m) == became and not m._forward_pre_hooks and not any(map(nn.parameter.is_lazy, m.parameters()))


def test_lazy_modules_load_shapes() -> None:
    m = nn.LazyLinear(3)
    m.load_state_dict(nn.Linear(5, 3).state_dict())
    assert list(m.weight.shape) == [3, 5]
    assert "Can't access the shape" in outcome(lambda: nn.Linear(5, 3).load_state_dict(nn.LazyLinear(3).state_dict()))


def test_compiled_modules_run_as_they_are() -> None:
    m = Scale()
    m.compile(backend="eager")
    assert m(torch.ones(1), scale=2).item() == 2.0
    assert outcome(lambda: m.compile(backend=print)).startswith("NotImplementedError: nn.Module.compile")


# ---------------------------------------------------------------- how modules print

REPRS = [
    (
        lambda: nn.Conv2d(1, 2, 3, padding="same", padding_mode="reflect"),
        "Conv2d(1, 2, kernel_size=(3, 3), stride=(1, 1), padding=same, padding_mode=reflect)",
    ),
    (lambda: nn.Conv2d(4, 4, 1, groups=2, bias=False), "Conv2d(4, 4, kernel_size=(1, 1), stride=(1, 1), groups=2, bias=False)"),
    (lambda: nn.MaxPool2d(2), "MaxPool2d(kernel_size=2, stride=2, padding=0, dilation=1, ceil_mode=False)"),
    (
        lambda: nn.LSTM(2, 3, 2, proj_size=2, bias=False, dropout=0.1),
        "LSTM(2, 3, proj_size=2, num_layers=2, bias=False, dropout=0.1)",
    ),
    (lambda: nn.RNNCell(2, 3, bias=False, nonlinearity="relu"), "RNNCell(2, 3, bias=False, nonlinearity=relu)"),
    (lambda: nn.GroupNorm(2, 4), "GroupNorm(2, 4, eps=1e-05, affine=True, bias=True)"),
    (
        lambda: nn.Embedding(3, 4, padding_idx=1, max_norm=1.0, sparse=True),
        "Embedding(3, 4, padding_idx=1, max_norm=1.0, sparse=True)",
    ),
    (lambda: nn.EmbeddingBag(3, 4, padding_idx=1), "EmbeddingBag(3, 4, mode='mean', padding_idx=1)"),
    (lambda: nn.Upsample(scale_factor=(2, 3), mode="bilinear"), "Upsample(scale_factor=(2.0, 3.0), mode='bilinear')"),
    (lambda: nn.ZeroPad2d(1), "ZeroPad2d((1, 1, 1, 1))"),
    (lambda: nn.RReLU(inplace=True), "RReLU(lower=0.125, upper=0.3333333333333333, inplace=True)"),
    (lambda: nn.ReLU6(), "ReLU6()"),
    (lambda: nn.LazyLinear(3), "LazyLinear(in_features=0, out_features=3, bias=True)"),
    (lambda: nn.ModuleList(), "ModuleList()"),
    (
        lambda: nn.Sequential(nn.Sequential(nn.ReLU()), nn.ModuleList([nn.Tanh()] * 3 + [nn.ReLU()])),
        "Sequential(\n  (0): Sequential(\n    (0): ReLU()\n  )\n  (1): ModuleList(\n    (0-2): 3 x Tanh()\n"
        "    (3): ReLU()\n  )\n)",
    ),
    (
        lambda: nn.ParameterList([torch.ones(2, 3), 5]),
        "ParameterList(\n    (0): Parameter containing: [torch.float32 of size 2x3]\n    (1): Object of type: int\n)",
    ),
]


@pytest.mark.parametrize(("make", "expected"), REPRS, ids=[text.partition("(")[0] for _, text in REPRS])
def test_repr(make, expected: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert repr(make()) == expected


def test_all_layers_are_listed():
    found = {name for name, value in vars(torch.nn.modules).items() if isinstance(value, type) and not name.startswith("_")}
    assert found == set(torch.nn.modules.__all__)


def test_a_class_with_its_own_getattr_is_asked_for_its_members():
    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.asked = []
            self.weight = nn.Parameter(torch.ones(1))
            self.inner = nn.Linear(1, 1)
            self.register_buffer("seen", torch.zeros(1))

        def __getattr__(self, name):
            if name in ("weight", "inner", "seen"):
                self.__dict__["asked"].append(name)
            return super().__getattr__(name)

    module = Counting()
    module.double()
    module.asked.clear()
    assert (module.weight.dtype, module.inner.weight.dtype, module.seen.dtype) == (torch.float64,) * 3
    assert module.asked == ["weight", "inner", "seen"]
    replacement = nn.Parameter(torch.zeros(1))
    module._parameters["weight"] = replacement  # as libraries write that keep parameters elsewhere
    assert module.weight is replacement


def test_a_method_goes_before_a_submodule_of_its_name():
    class Shadowed(nn.Module):
        def __init__(self):
            super().__init__()
            self.double = nn.Linear(1, 1)

    module = Shadowed()
    assert module.double() is module
    assert [name for name, _ in module.named_parameters()] == ["double.weight", "double.bias"]
