"""Optimizers: the numbers, the ops they call in their order, their state and their complaints, as PyTorch has them.

recorded_optim.json holds what PyTorch did. Run this file with a Python that has PyTorch to record it again.
"""

from __future__ import annotations

import copy
import importlib
import inspect
import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

RECORDED = Path(__file__).with_name("recorded_optim.json")
HOST = "torch" if __name__ == "__main__" else "mindtorch_v2"
torch = importlib.import_module(HOST)
optim = importlib.import_module(HOST + ".optim")
nn = importlib.import_module(HOST + ".nn")
swa_utils = importlib.import_module(HOST + ".optim.swa_utils")

STEPS = 7
WATCHED = (0, 1, STEPS - 1)
# Marks on new tensors, which are none of our business.
BOOKKEEPING = {"lift_fresh", "detach_"}

# optimizer: its options; each is run once as it is and once with foreach=True
WITH_FOREACH: dict[str, list[dict[str, Any]]] = {
    "SGD": [
        {"lr": 0.05},
        {"lr": 0.05, "momentum": 0.9},
        {"lr": 0.05, "momentum": 0.9, "dampening": 0.3},
        {"lr": 0.05, "momentum": 0.9, "nesterov": True},
        {"lr": 0.05, "weight_decay": 0.1},
        {"lr": 0.01, "maximize": True},
        {"lr": "tensor", "momentum": 0.9},
        {"lr": 0.002, "momentum": 0.8, "weight_decay": 0.1, "nesterov": True, "maximize": True},
    ],
    "Adam": [
        {},
        {"lr": 0.1, "betas": (0.5, 0.9), "eps": 1e-3},
        {"lr": 0.1, "weight_decay": 0.1},
        {"lr": 0.1, "amsgrad": True},
        {"lr": 0.1, "amsgrad": True, "weight_decay": 0.1, "maximize": True},
    ],
    "AdamW": [
        {"lr": 0.1},
        {"lr": 0.1, "weight_decay": 0.5},
        {"lr": 0.1, "amsgrad": True, "weight_decay": 0.0},
        {"lr": 0.1, "maximize": True},
    ],
    "Adagrad": [
        {"lr": 0.1},
        {"lr": 0.1, "lr_decay": 0.1, "weight_decay": 0.1, "initial_accumulator_value": 0.5},
        {"lr": 0.1, "maximize": True},
    ],
    "Adadelta": [{}, {"lr": 0.5, "rho": 0.8, "weight_decay": 0.1}, {"maximize": True}],
    "Adamax": [{"lr": 0.1}, {"lr": 0.1, "betas": (0.8, 0.9), "weight_decay": 0.1}, {"lr": 0.1, "maximize": True}],
    "NAdam": [
        {"lr": 0.1},
        {"lr": 0.1, "weight_decay": 0.1, "momentum_decay": 0.01},
        {"lr": 0.1, "weight_decay": 0.1, "decoupled_weight_decay": True},
        {"lr": 0.1, "maximize": True},
    ],
    "RAdam": [
        {"lr": 0.1},
        {"lr": 0.1, "weight_decay": 0.1},
        {"lr": 0.1, "weight_decay": 0.1, "decoupled_weight_decay": True},
        {"lr": 0.001, "maximize": True},
    ],
    "RMSprop": [
        {"lr": 0.05},
        {"lr": 0.05, "momentum": 0.5},
        {"lr": 0.05, "centered": True},
        {"lr": 0.05, "alpha": 0.8, "weight_decay": 0.1, "eps": 1e-4},
        {"lr": 0.01, "centered": True, "momentum": 0.9, "maximize": True},
    ],
    "Rprop": [{}, {"lr": 0.1, "etas": (0.4, 1.3), "step_sizes": (1e-3, 0.5)}, {"maximize": True}],
    "ASGD": [
        {"lr": 0.05},
        {"lr": 0.05, "lambd": 0.01, "alpha": 0.6, "t0": 2, "weight_decay": 0.1},
        {"lr": 0.005, "maximize": True},
    ],
}
# Without a second form, or one that reads its step count more often than we do.
ALONE: dict[str, list[dict[str, Any]]] = {
    "Adafactor": [{"lr": 0.1}, {"lr": 0.1, "weight_decay": 0.1, "d": 2.0}, {"lr": 0.1, "maximize": True}],
    "Adam": [{"lr": "tensor"}, {"lr": 0.1, "fused": True}, {"lr": 0.1, "fused": True, "amsgrad": True, "weight_decay": 0.1}],
    "AdamW": [{"lr": 0.1, "fused": True, "weight_decay": 0.1}],
    "Adagrad": [{"lr": 0.1, "fused": True, "lr_decay": 0.1, "weight_decay": 0.1}],
    "SGD": [
        {"lr": 0.05, "fused": True},
        {"lr": 0.05, "momentum": 0.9, "fused": True},
        {"lr": 0.002, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1, "fused": True, "maximize": True},
    ],
    "LBFGS": [{"lr": 0.5}, {"lr": 1.0, "line_search_fn": "strong_wolfe"}, {"lr": 0.5, "max_iter": 3, "history_size": 2}],
}
WALKS = {
    f"{name} {options}": (name, options)
    for table, forms in ((WITH_FOREACH, ({}, {"foreach": True})), (ALONE, ({},)))
    for name, each in table.items()
    for given in each
    for options in [{**given, **form} for form in forms]
}


def start(dtype: Any = None) -> list[Any]:
    return [nn.Parameter(torch.tensor(v, dtype=dtype or torch.float32)) for v in ([1.0, -2.0, 0.5], [[0.3, -0.7]])]


def objective(params: list[Any], i: int = 0) -> Any:
    a, b = params
    weights = torch.tensor([1.0, 0.5, 3.0], dtype=a.dtype)
    return (a**2 * weights).sum() + torch.cosh(b * 2).sum() + a[0] * b[0, 1] * (1 + 0.1 * i)


def build(name: str, options: dict[str, Any], params: list[Any]) -> Any:
    lr = {"lr": torch.tensor(0.05)} if options.get("lr") == "tensor" else {}
    return getattr(optim, name)(params, **{**options, **lr})


def plain(value: Any) -> Any:
    """Tensors as lists, numbers with as many digits as float32 has."""
    if isinstance(value, torch.Tensor):
        value = value.tolist()
    if isinstance(value, list):
        return [plain(v) for v in value]
    return float(f"{value:.9g}") if isinstance(value, float) else value


def walk(name: str, options: dict[str, Any], ops_of: Callable[[Callable[[], Any]], list[str]]) -> dict[str, Any]:
    """Parameters after some steps, the ops of these, and state and text at the end."""
    params = start(torch.float64 if name == "LBFGS" else None)
    optimizer = build(name, options, params)
    values, ops = [], []

    def closure() -> Any:
        optimizer.zero_grad()
        loss = objective(params)
        loss.backward()
        return loss

    for i in range(3 if name == "LBFGS" else STEPS):
        if name == "LBFGS":
            optimizer.step(closure)
        else:
            optimizer.zero_grad()
            objective(params, i).backward()
            if i in WATCHED:
                ops.append(" ".join(op for op in ops_of(optimizer.step) if op not in BOOKKEEPING))
            else:
                optimizer.step()
        if i in WATCHED or name == "LBFGS":
            values.append([plain(p.detach()) for p in params])
    state = {} if name == "LBFGS" else {k: plain(v) for k, v in optimizer.state[params[0]].items()}
    return {"values": values, "ops": ops, "state": state, "text": repr(optimizer)}


def two() -> list[Any]:
    return start()


# What raises, and in which words.
COMPLAINTS: dict[str, Callable[[], Any]] = {
    "no params": lambda: optim.SGD([], lr=0.1),
    "a tensor": lambda: optim.SGD(torch.ones(1), lr=0.1),
    "rate": lambda: optim.SGD(two(), lr=-1),
    "momentum": lambda: optim.SGD(two(), lr=0.1, momentum=-1),
    "nesterov": lambda: optim.SGD(two(), lr=0.1, nesterov=True),
    "decay": lambda: optim.SGD(two(), lr=0.1, weight_decay=-1),
    "no tensor": lambda: optim.SGD(["x"], lr=0.1),
    "no leaf": lambda: optim.SGD([two()[0] * 2], lr=0.1),
    "a set": lambda: optim.SGD([{"params": set(two())}], lr=0.1),
    "no dict": lambda: optim.SGD([{"params": two()}, 5], lr=0.1),
    "in two groups": lambda: (lambda p: optim.SGD([{"params": p}, {"params": p[:1]}], lr=0.1))(two()),
    "some names": lambda: optim.SGD([("a", two()[0]), two()[1]], lr=0.1),
    "names in one group": lambda: optim.SGD([{"params": [("a", two()[0])]}, {"params": two()}], lr=0.1),
    "beta1": lambda: optim.Adam(two(), betas=(1.5, 0.9)),
    "beta2": lambda: optim.Adam(two(), betas=(0.5, 1.9)),
    "eps": lambda: optim.Adam(two(), eps=-1),
    "foreach and fused": lambda: optim.Adam(two(), foreach=True, fused=True),
    "fused and differentiable": lambda: optim.Adam(two(), fused=True, differentiable=True),
    "tensor rate and foreach": lambda: optim.Adam(two(), lr=torch.tensor(0.1), foreach=True),
    "rates": lambda: optim.Adam(two(), lr=torch.tensor([0.1, 0.2])),
    "one tensor beta": lambda: optim.Adam(two(), betas=(0.9, torch.tensor(0.99))),
    "groups of LBFGS": lambda: optim.LBFGS([{"params": two()[:1]}, {"params": two()[1:]}]),
    "etas": lambda: optim.Rprop(two(), etas=(1.5, 1)),
    "alpha": lambda: optim.RMSprop(two(), alpha=-1),
    "lr_decay": lambda: optim.Adagrad(two(), lr_decay=-1),
    "rho": lambda: optim.Adadelta(two(), rho=2),
    "momentum_decay": lambda: optim.NAdam(two(), momentum_decay=-1),
    "accumulator": lambda: optim.Adagrad(two(), initial_accumulator_value=-1),
    "eps1": lambda: optim.Adafactor(two(), eps=(-1, 1e-3)),
    "clipping": lambda: optim.Adafactor(two(), d=0.5),
    "beta2_decay": lambda: optim.Adafactor(two(), beta2_decay=1),
    "no matrix": lambda: optim.Muon(two()),
    "adjustment": lambda: optim.Muon(two()[1:], adjust_lr_fn="x"),
    "the base": lambda: optim.Optimizer(two(), {}).step(),
    "group sizes": lambda: optim.SGD(two()[:1], lr=0.1).load_state_dict(optim.SGD(two(), lr=0.1).state_dict()),
    "group count": lambda: optim.SGD(two(), lr=0.1).load_state_dict(
        optim.SGD([{"params": p} for p in two()], lr=0.1).state_dict()
    ),
    "ema decay": lambda: swa_utils.get_ema_multi_avg_fn(1.5),
    "two averages": lambda: swa_utils.AveragedModel(nn.Linear(1, 1), avg_fn=max, multi_avg_fn=max),
}


def complaint(call: Callable[[], Any]) -> str:
    try:
        call()
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:150]}"
    return "none"


def defaults() -> dict[str, Any]:
    names = [*WITH_FOREACH, "Adafactor", "LBFGS", "SparseAdam"]
    return json.loads(json.dumps({n: getattr(optim, n)(two()).defaults for n in names}))


def record() -> None:
    profiler = importlib.import_module("torch.profiler")

    def ops_of(body: Callable[[], Any]) -> list[str]:
        with profiler.profile() as prof:
            body()
        events = [e for e in prof.events() if e.cpu_parent is not None and e.cpu_parent.name.startswith("Optimizer.")]
        return [e.name.removeprefix("aten::") for e in sorted(events, key=lambda e: e.time_range.start)]

    recorded = {
        "walks": {name: walk(*what, ops_of) for name, what in WALKS.items()},
        "complaints": {name: complaint(call) for name, call in COMPLAINTS.items()},
        "defaults": defaults(),
    }
    parts = [f"{json.dumps(part)}: {{\n{lines(each)}\n}}" for part, each in recorded.items()]
    RECORDED.write_text("{\n" + ",\n".join(parts) + "\n}\n")


def lines(each: dict[str, Any]) -> str:
    return ",\n".join(f"{json.dumps(name)}: {json.dumps(seen)}" for name, seen in each.items())


if __name__ == "__main__":
    record()
    raise SystemExit

import pytest  # noqa: E402  the recording needs PyTorch and nothing else

from mindtorch_v2._dispatch import observer  # noqa: E402

KNOWN = json.loads(RECORDED.read_text())


def ops_of(body: Callable[[], Any]) -> list[str]:
    """The ops that a call runs, without those inside of others."""
    state, rows = observer.thread_state(), []
    state.append_row = rows.append
    observer.acquire()
    try:
        body()
    finally:
        state.append_row = None
        observer.release()
    outermost, end = [], -1
    for op, begin, stop, _ in sorted(rows, key=lambda row: (row[1], -row[2])):
        if begin >= end:
            outermost.append(observer.op_names[op].removeprefix("aten::"))
            end = stop
    return outermost


def spans_of(body: Callable[[], Any]) -> list[str]:
    state, seen = observer.thread_state(), []
    state.span = lambda name, kind, *rest: kind == observer.FIRST_USE or seen.append(name)
    observer.acquire()
    try:
        body()
    finally:
        state.span = None
        observer.release()
    return seen


def near(got: Any, want: Any) -> bool:
    if isinstance(want, list):
        return len(got) == len(want) and all(map(near, got, want))
    if isinstance(want, dict):
        return list(got) == list(want) and all(near(got[k], want[k]) for k in want)
    if isinstance(want, float):
        return abs(got - want) <= 1e-6 + 3e-6 * abs(want)
    return got == want


@pytest.mark.parametrize("name", WALKS)
def test_walk(name: str) -> None:
    got, want = walk(*WALKS[name], ops_of), KNOWN["walks"][name]
    assert near(got["values"], want["values"])
    assert got["ops"] == want["ops"]
    assert near(got["state"], want["state"])
    assert got["text"] == want["text"]


@pytest.mark.parametrize("name", COMPLAINTS)
def test_complaints(name: str) -> None:
    assert complaint(COMPLAINTS[name]) == KNOWN["complaints"][name]


def test_defaults() -> None:
    assert defaults() == KNOWN["defaults"]


@pytest.mark.parametrize("name", [n for n in WITH_FOREACH if n not in ("SGD", "Adagrad")])
def test_capturable_needs_a_device_with_graphs(name: str) -> None:
    params = start()
    optimizer = getattr(optim, name)(params, capturable=True)
    objective(params).backward()
    with pytest.raises(AssertionError, match="must be on supported devices"):
        optimizer.step()


def test_steps_and_zero_grad_are_spans() -> None:
    params = start()
    optimizer = optim.AdamW(params)
    objective(params).backward()
    assert spans_of(optimizer.step) == ["Optimizer.step#AdamW.step"]
    assert spans_of(optimizer.zero_grad) == ["Optimizer.zero_grad#AdamW.zero_grad"]


def test_a_subclass_of_one_s_own_is_watched_once() -> None:
    class Mine(optim.SGD):
        def step(self, closure: Any = None) -> Any:
            return super().step(closure)

    class Base(optim.Optimizer):
        def __init__(self, params: Any) -> None:
            super().__init__(params, {"lr": 0.1})

        def step(self, closure: Any = None) -> str:
            return "stepped"

    made = Base(start())
    assert made.step() == "stepped"
    assert spans_of(made.step) == ["Optimizer.step#Base.step"]
    assert spans_of(Mine(start(), lr=0.1).step)[-1] == "Optimizer.step#Mine.step"


def test_hooks_around_a_step_may_change_its_arguments() -> None:
    params = start()
    optimizer, seen = optim.SGD(params, lr=0.1), []
    optimizer.register_step_pre_hook(lambda o, args, kwargs: ((*args, lambda: torch.tensor(5.0)), kwargs))
    handle = optimizer.register_step_post_hook(lambda o, args, kwargs: seen.append("post"))
    everywhere = optim.optimizer.register_optimizer_step_pre_hook(lambda o, args, kwargs: seen.append("any"))
    assert float(optimizer.step()) == 5
    handle.remove()
    everywhere.remove()
    optimizer.step()
    assert seen == ["any", "post"]
    optimizer.register_step_pre_hook(lambda o, args, kwargs: 3)
    with pytest.raises(RuntimeError, match="must return None or a tuple"):
        optimizer.step()


def test_hooks_around_saving_and_loading() -> None:
    optimizer, seen = optim.SGD(start(), lr=0.1), []
    optimizer.register_state_dict_pre_hook(lambda o: seen.append("before saving"))
    optimizer.register_state_dict_post_hook(lambda o, state: {**state, "more": 1})
    optimizer.register_load_state_dict_pre_hook(lambda o, state: {**state, "param_groups": changed(state)})
    optimizer.register_load_state_dict_post_hook(lambda o: seen.append("after loading"))
    optimizer.register_load_state_dict_post_hook(lambda o: seen.append("first"), prepend=True)

    def changed(state: dict[str, Any]) -> list[Any]:
        return [{**group, "lr": 0.7} for group in state["param_groups"]]

    state = optimizer.state_dict()
    assert state["more"] == 1
    optimizer.load_state_dict(state)
    assert optimizer.param_groups[0]["lr"] == 0.7
    assert seen == ["before saving", "first", "after loading"]


@pytest.mark.parametrize("name", [*WITH_FOREACH, "Adafactor"])
def test_a_loaded_optimizer_goes_on_as_the_saved_one(name: str) -> None:
    params = start()
    optimizer = getattr(optim, name)(params, lr=0.01)
    copies, others = None, None
    for i in range(5):
        for chosen, o in ((params, optimizer), (copies, others)):
            if o is not None:
                o.zero_grad()
                objective(chosen, i).backward()
                o.step()
        if i == 2:
            copies = [nn.Parameter(p.detach().clone()) for p in params]
            others = getattr(optim, name)(copies, lr=0.5)
            others.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    assert all(a.equal(b) for a, b in zip(params, copies, strict=True))


def test_loaded_state_takes_the_parameters_dtype_and_steps_keep_theirs() -> None:
    params = start()
    optimizer = optim.Adam(params)
    objective(params).backward()
    optimizer.step()
    doubles = start(torch.float64)
    other = optim.Adam(doubles)
    other.load_state_dict(optimizer.state_dict())
    state = other.state[doubles[0]]
    assert (state["exp_avg"].dtype, state["step"].dtype) == (torch.float64, torch.float32)


def test_pickling_keeps_groups_and_state() -> None:
    params = start()
    optimizer = optim.SGD(params, lr=0.1, momentum=0.9)
    objective(params).backward()
    optimizer.step()
    again = pickle.loads(pickle.dumps(optimizer))
    assert again.param_groups[0]["lr"] == 0.1
    assert len(again.state) == 2 and spans_of(again.step) == ["Optimizer.step#SGD.step"]


def test_group_options_and_names() -> None:
    model = nn.Linear(2, 1)
    optimizer = optim.SGD(model.named_parameters(), lr=0.1)
    assert optimizer.param_groups[0]["param_names"] == ["weight", "bias"]
    a, b = start()
    grouped = optim.SGD([{"params": [a], "lr": 0.5}, {"params": b}], lr=0.1, momentum=0.5)
    assert [(g["lr"], g["momentum"]) for g in grouped.param_groups] == [(0.5, 0.5), (0.1, 0.5)]
    with pytest.warns(UserWarning, match="duplicate parameters"):
        optim.SGD([a, a], lr=0.1)


@pytest.mark.parametrize("name", WITH_FOREACH)
def test_checkpoints_that_lack_later_options_get_their_defaults(name: str) -> None:
    optimizer = getattr(optim, name)(start(), lr=0.01)
    saved = optimizer.state_dict()
    later = optimizer._later_options
    for group in saved["param_groups"]:
        for option in later:
            del group[option]
    optimizer.load_state_dict(saved)
    (group,) = optimizer.param_groups
    assert {option: group[option] for option in later} == {
        **later,
        **({"decoupled_weight_decay": True} if name == "AdamW" else {}),
    }


@pytest.mark.parametrize("form", [{}, {"foreach": True}])
@pytest.mark.parametrize("name", [name for name in WITH_FOREACH if name != "AdamW"])
def test_the_functional_form_does_what_a_step_does(name: str, form: dict[str, Any]) -> None:
    """The function gets the state as lists, in the order of torch's signature, and updates it in place."""
    stepped, params = start(), start()
    options = {"lr": 0.01, **form, **({} if name == "Rprop" else {"weight_decay": 0.1})}
    optimizer, twin = (getattr(optim, name)(chosen, **options) for chosen in (stepped, params))
    function = getattr(importlib.import_module(f"mindtorch_v2.optim.{name.lower()}"), name.lower())
    for i in range(3):
        for chosen, each in ((stepped, optimizer), (params, twin)):
            each.zero_grad()
            objective(chosen, i).backward()
            if each is optimizer or i == 0:
                each.step()
                continue
            (group,) = each.param_groups
            grads = [param.grad for param in chosen]
            lists = each._state_lists([each.state[param] for param in chosen], group) if each._rule_state else [[]]
            known = vars(each._hyperparameters(group, chosen, grads))
            names = [*inspect.signature(function).parameters][2 + len(lists) :]
            with torch.no_grad():
                function(chosen, grads, *lists, **{name: known[name] for name in names if name in known})
    assert all(a.equal(b) for a, b in zip(stepped, params, strict=True))


def test_zero_grad_forgets_or_clears() -> None:
    params = start()
    optimizer = optim.SGD(params, lr=0.1)
    objective(params).backward()
    optimizer.zero_grad(set_to_none=False)
    assert params[0].grad.tolist() == [0, 0, 0]
    optimizer.zero_grad()
    assert params[0].grad is None


def test_a_class_with_a_grad_of_its_own_is_asked_for_it() -> None:
    class Watched(torch.Tensor):
        seen: list[str] = []

        @property
        def grad(self) -> Any:
            self.seen.append("read")
            return torch.Tensor.grad.__get__(self)

        @grad.setter
        def grad(self, value: Any) -> None:
            self.seen.append("set")
            torch.Tensor.grad.__set__(self, value)

    param = torch.ones(2).as_subclass(Watched).requires_grad_()
    bare = torch.ones(2)  # has never had a gradient
    optimizer = torch.optim.SGD([param, bare], lr=1.0)
    param.grad = torch.ones(2)
    Watched.seen.clear()
    optimizer.step()
    optimizer.zero_grad()
    assert param.tolist() == [0, 0] and bare.tolist() == [1, 1]
    assert set(Watched.seen) == {"read", "set"} and param.grad is None


def test_parameters_of_several_dtypes_step_together() -> None:
    params = [start()[0], start(torch.float64)[1]]
    alone = [nn.Parameter(p.detach().clone()) for p in params]
    for chosen, foreach in ((params, True), (alone, False)):
        optimizer = optim.Adam(chosen, lr=0.1, foreach=foreach)
        (chosen[0].sum() + chosen[1].float().sum()).backward()
        optimizer.step()
    assert all(near(plain(a.detach()), plain(b.detach())) for a, b in zip(params, alone, strict=True))


@pytest.mark.parametrize("foreach", [False, True])
@pytest.mark.parametrize("name", [n for n in WITH_FOREACH if n not in ("SGD", "Rprop")])
def test_complex_parameters_step_like_pairs_of_real_ones(name: str, foreach: bool) -> None:
    number = nn.Parameter(torch.tensor([1.0 + 2.0j, -0.5 + 0.25j]))
    pair = nn.Parameter(torch.view_as_real(number.detach()).clone())
    for param in (number, pair):
        optimizer = getattr(optim, name)([param], foreach=foreach)
        for _ in range(3):
            optimizer.zero_grad()
            value = torch.view_as_real(param) if param.is_complex() else param
            (value**2 * torch.tensor([1.0, 3.0])).sum().backward()
            optimizer.step()
    assert near(torch.view_as_real(number.detach()).tolist(), pair.tolist())


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("SGD", {"weight_decay": 0.1}),
        ("Adam", {}),
        ("AdamW", {"amsgrad": True}),
        ("Adagrad", {}),
        ("RMSprop", {}),
        ("Adadelta", {}),
        ("NAdam", {}),
        ("RAdam", {}),
        ("ASGD", {}),
    ],
)
def test_differentiable_steps(name: str, options: dict[str, Any]) -> None:
    """The gradient through two steps, against differences."""

    def after(weight: float) -> Any:
        start_at = torch.tensor([1.0, -2.0], dtype=torch.float64)
        factor = torch.tensor(weight, dtype=torch.float64, requires_grad=True)
        param = (start_at * 1).requires_grad_()
        moving = param.clone()
        optimizer = (
            getattr(optim, name)([moving], lr=0.1, eps=0.1, differentiable=True, **options)
            if name not in ("SGD", "ASGD")
            else getattr(optim, name)([moving], lr=0.1, differentiable=True, **options)
        )
        for _ in range(2):
            moving.grad = start_at * factor
            optimizer.step()
        return moving.sum(), factor

    value, factor = after(0.7)
    value.backward()
    step = 1e-5
    slope = (after(0.7 + step)[0].item() - after(0.7 - step)[0].item()) / (2 * step)
    assert abs(factor.grad.item() - slope) < 1e-4 * max(1.0, abs(slope))


def test_differentiable_adam_reaches_its_rate() -> None:
    rate = torch.tensor(0.1, dtype=torch.float64, requires_grad=True)
    moving = torch.tensor([1.0, -2.0], dtype=torch.float64, requires_grad=True).clone()
    moving.grad = torch.tensor([0.5, 0.25], dtype=torch.float64)
    optim.Adam([moving], lr=rate, differentiable=True).step()
    moving.sum().backward()
    assert abs(rate.grad.item() + 2) < 1e-3


def test_a_scaler_that_found_infinity_stops_a_fused_step() -> None:
    params = start()
    optimizer = optim.Adam(params, fused=True)
    objective(params).backward()
    before = [p.tolist() for p in params]
    optimizer.grad_scale, optimizer.found_inf = torch.tensor(2.0), torch.tensor(1.0)
    optimizer.step()
    assert [p.tolist() for p in params] == before
    assert optimizer.state[params[0]]["step"].item() == 0
    optimizer.found_inf = torch.tensor(0.0)
    grad = params[0].grad.clone()
    optimizer.step()
    assert params[0].grad.tolist() == (grad / 2).tolist()


def test_averaged_models() -> None:
    model = nn.Linear(1, 1, bias=False)
    mean = swa_utils.AveragedModel(model)
    one_by_one = swa_utils.AveragedModel(model, avg_fn=swa_utils.get_swa_avg_fn())
    moving = swa_utils.AveragedModel(model, multi_avg_fn=swa_utils.get_ema_multi_avg_fn(0.9))
    also_moving = swa_utils.AveragedModel(model, avg_fn=swa_utils.get_ema_avg_fn(0.9))
    for value in (1.0, 2.0, 6.0):
        with torch.no_grad():
            model.weight.fill_(value)
        for averaged in (mean, one_by_one, moving, also_moving):
            averaged.update_parameters(model)
    assert mean.n_averaged.item() == 3
    assert near([m.module.weight.item() for m in (mean, one_by_one, moving, also_moving)], [3.0, 3.0, 1.59, 1.59])
    assert near(mean(torch.ones(1, 1)).tolist(), [[3.0]])


def test_update_bn_takes_the_mean_over_all_batches() -> None:
    model = nn.Sequential(nn.BatchNorm1d(1))
    model.eval()
    swa_utils.update_bn([torch.tensor([[0.0], [2.0]]), [torch.tensor([[4.0], [6.0]]), "label"]], model)
    assert model[0].running_mean.tolist() == [3.0]
    assert model[0].momentum == 0.1 and not model.training


def test_swapped_in_parameters_step_and_the_own_ones_come_back() -> None:
    params = start()
    optimizer = optim.SGD(params, lr=0.1, momentum=0.9)
    objective(params).backward()
    optimizer.step()
    before, state = [p.tolist() for p in params], copy.deepcopy(optimizer.state_dict())
    others = {str(i): p for i, p in enumerate(start())}
    for param in others.values():
        param.grad = torch.ones_like(param)
    with optim.swap_in_optimizer_params_and_state(optimizer, others, state):
        optimizer.step()
    assert [p.tolist() for p in params] == before
    assert others["0"].tolist() != start()[0].tolist()
    assert optimizer.param_groups[0]["params"][0] is params[0]
