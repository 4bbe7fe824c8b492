"""Schedulers: every rate, momentum, saved state, warning and error as PyTorch has it.

recorded_lr_scheduler.json holds what PyTorch did. Run this file with a Python that has PyTorch to record it again.
"""

from __future__ import annotations

import importlib
import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

RECORDED = Path(__file__).with_name("recorded_lr_scheduler.json")
HOST = "torch" if __name__ == "__main__" else "mindtorch_v2"
torch = importlib.import_module(HOST)
optim = importlib.import_module(HOST + ".optim")
nn = importlib.import_module(HOST + ".nn")
swa_utils = importlib.import_module(HOST + ".optim.swa_utils")
s = importlib.import_module(HOST + ".optim.lr_scheduler")

Make = Callable[[Any], Any]
METRICS = [1.0, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.5, 0.6, 0.6, 0.6, 0.6]
EPOCHS = [0, 1, 3, 3, 7, 2, 9, 10, 4]


class Inverse:
    """A callable object, whose attributes are saved."""

    def __init__(self) -> None:
        self.offset = 2

    def __call__(self, epoch: int) -> float:
        return 1 / (self.offset + epoch)


def optimizer(lr: float = 0.1, groups: int = 2, kind: str = "SGD", **options: Any) -> Any:
    params = [{"params": [nn.Parameter(torch.ones(1))], "lr": lr * (i + 1)} for i in range(groups)]
    return getattr(optim, kind)(params, lr=lr, **options)


def halves(x: float) -> float:
    return 0.9**x


# name: (what to make, options: steps, the epochs or metrics to step with, and those of the optimizer)
RUNS: dict[str, tuple[Make, dict[str, Any]]] = {
    "step 3": (lambda o: s.StepLR(o, 3), {}),
    "step 2": (lambda o: s.StepLR(o, 2, gamma=0.5), {}),
    "step, tensor rates": (lambda o: s.StepLR(o, 2, gamma=0.5), {"tensor_lr": True}),
    "multistep": (lambda o: s.MultiStepLR(o, [2, 5, 5], gamma=0.5), {}),
    "constant": (lambda o: s.ConstantLR(o, factor=0.5, total_iters=3), {}),
    "constant, at once": (lambda o: s.ConstantLR(o, total_iters=0), {}),
    "linear": (lambda o: s.LinearLR(o, start_factor=0.25, total_iters=4), {}),
    "linear down": (lambda o: s.LinearLR(o, start_factor=0.5, end_factor=0.1, total_iters=3), {}),
    "exponential": (lambda o: s.ExponentialLR(o, 0.8), {}),
    "polynomial": (lambda o: s.PolynomialLR(o, total_iters=5, power=2.0), {}),
    "polynomial default": (lambda o: s.PolynomialLR(o), {}),
    "cosine": (lambda o: s.CosineAnnealingLR(o, T_max=4), {"steps": 14}),
    "cosine above": (lambda o: s.CosineAnnealingLR(o, T_max=5, eta_min=0.01), {"steps": 14}),
    "warm restarts": (lambda o: s.CosineAnnealingWarmRestarts(o, 3), {}),
    "warm restarts growing": (lambda o: s.CosineAnnealingWarmRestarts(o, 2, T_mult=2, eta_min=0.02), {"steps": 16}),
    "warm restarts by fractions": (
        lambda o: s.CosineAnnealingWarmRestarts(o, 3, T_mult=2),
        {"epochs": [0, 0.5, 1, 2.5, 3, 5.5, 9, 10.2, 2]},
    ),
    "lambda": (lambda o: s.LambdaLR(o, lambda e: 1 / (e + 1)), {}),
    "lambdas": (lambda o: s.LambdaLR(o, [lambda e: 0.5**e, Inverse()]), {}),
    "multiplicative": (lambda o: s.MultiplicativeLR(o, [lambda e: 0.9, lambda e: 1 / (e + 1)]), {}),
    "cyclic": (lambda o: s.CyclicLR(o, 0.01, 0.1, step_size_up=2, cycle_momentum=False), {}),
    "cyclic triangular2": (
        lambda o: s.CyclicLR(o, 0.01, 0.1, step_size_up=2, mode="triangular2"),
        {"momentum": 0.9, "steps": 14},
    ),
    "cyclic exp_range": (
        lambda o: s.CyclicLR(o, 0.01, 0.1, step_size_up=1, step_size_down=2, mode="exp_range", gamma=0.9, cycle_momentum=False),
        {},
    ),
    "cyclic per group": (
        lambda o: s.CyclicLR(
            o, [0.01, 0.02], [0.1, 0.3], step_size_up=3, scale_fn=halves, scale_mode="cycle", cycle_momentum=False
        ),
        {},
    ),
    "cyclic beta1": (
        lambda o: s.CyclicLR(o, 0.01, 0.1, step_size_up=2, base_momentum=0.5, max_momentum=0.95),
        {"kind": "Adam"},
    ),
    "cyclic by iterations": (
        lambda o: s.CyclicLR(o, 0.01, 0.1, step_size_up=2, scale_fn=halves, scale_mode="iterations"),
        {"momentum": 0.9},
    ),
    "one cycle": (lambda o: s.OneCycleLR(o, max_lr=1.0, total_steps=10), {"momentum": 0.9}),
    "one cycle linear": (
        lambda o: s.OneCycleLR(o, max_lr=[1.0, 2.0], epochs=3, steps_per_epoch=4, pct_start=0.5, anneal_strategy="linear"),
        {"momentum": 0.9},
    ),
    "one cycle three phases": (lambda o: s.OneCycleLR(o, max_lr=1.0, total_steps=10, three_phase=True), {"kind": "Adam"}),
    "one cycle, rate only": (
        lambda o: s.OneCycleLR(o, max_lr=1.0, total_steps=10, cycle_momentum=False, div_factor=10, final_div_factor=100),
        {},
    ),
    "plateau": (
        lambda o: s.ReduceLROnPlateau(o, factor=0.5, patience=1, cooldown=1, min_lr=0.02),
        {"metrics": METRICS, "steps": 12},
    ),
    "plateau max abs": (
        lambda o: s.ReduceLROnPlateau(o, mode="max", patience=0, threshold=0.1, threshold_mode="abs"),
        {"metrics": METRICS, "steps": 12},
    ),
    "plateau max rel": (
        lambda o: s.ReduceLROnPlateau(o, mode="max", patience=0, threshold=0.1, min_lr=[0.01, 0.05]),
        {"metrics": METRICS, "steps": 12},
    ),
    "plateau min abs": (
        lambda o: s.ReduceLROnPlateau(o, patience=0, threshold_mode="abs", threshold=0.05, eps=0.05),
        {"metrics": METRICS, "steps": 12},
    ),
    "sequential": (
        lambda o: s.SequentialLR(o, [s.LinearLR(o, 0.1, total_iters=3), s.ExponentialLR(o, 0.5)], milestones=[3]),
        {},
    ),
    "sequential of three": (
        lambda o: s.SequentialLR(
            o, [s.ConstantLR(o, 0.1, total_iters=2), s.ExponentialLR(o, 0.9), s.StepLR(o, 2, gamma=0.5)], milestones=[2, 5]
        ),
        {"steps": 12},
    ),
    "sequential warm restarts": (
        lambda o: s.SequentialLR(o, [s.LinearLR(o, 0.1, total_iters=3), s.CosineAnnealingWarmRestarts(o, 3)], milestones=[3]),
        {"steps": 12},
    ),
    "chained": (lambda o: s.ChainedScheduler([s.ConstantLR(o, 0.1, total_iters=2), s.ExponentialLR(o, 0.9)]), {}),
    "chained given optimizer": (lambda o: s.ChainedScheduler([s.StepLR(o, 2), s.LinearLR(o)], optimizer=o), {}),
    "swa": (lambda o: swa_utils.SWALR(o, swa_lr=0.01, anneal_epochs=4), {}),
    "swa linear": (lambda o: swa_utils.SWALR(o, swa_lr=0.01, anneal_epochs=4, anneal_strategy="linear"), {}),
    "swa at once": (lambda o: swa_utils.SWALR(o, swa_lr=[0.01, 0.02], anneal_epochs=0), {}),
    "step by epoch": (lambda o: s.StepLR(o, 3), {"epochs": EPOCHS}),
    "multistep by epoch": (lambda o: s.MultiStepLR(o, [2, 5, 5], gamma=0.5), {"epochs": EPOCHS}),
    "constant by epoch": (lambda o: s.ConstantLR(o, factor=0.5, total_iters=3), {"epochs": EPOCHS}),
    "linear by epoch": (lambda o: s.LinearLR(o, start_factor=0.25, total_iters=4), {"epochs": EPOCHS}),
    "exponential by epoch": (lambda o: s.ExponentialLR(o, 0.8), {"epochs": EPOCHS}),
    "polynomial by epoch": (lambda o: s.PolynomialLR(o, total_iters=5, power=2.0), {"epochs": EPOCHS}),
    "cosine by epoch": (lambda o: s.CosineAnnealingLR(o, T_max=4), {"epochs": EPOCHS}),
    "lambda by epoch": (lambda o: s.LambdaLR(o, lambda e: 1 / (e + 1)), {"epochs": EPOCHS}),
}


def too_many_steps() -> None:
    o = optimizer(momentum=0.9)
    scheduler = s.OneCycleLR(o, 1.0, total_steps=3)
    for _ in range(5):
        o.step()
        scheduler.step()


def step_overridden() -> None:
    o = optimizer()
    scheduler = s.StepLR(o, 1)
    o.step = lambda *args: None
    scheduler.step()


def two_optimizers(combine: Callable[[Any, list[Any]], Any]) -> Any:
    o = optimizer()
    return combine(o, [s.StepLR(o, 1), s.StepLR(optimizer(), 1)])


def with_plateau(combine: Callable[[Any, list[Any]], Any]) -> Any:
    o = optimizer()
    return combine(o, [s.StepLR(o, 1), s.ReduceLROnPlateau(o)])


# What raises, or warns.
COMPLAINTS: dict[str, Callable[[], Any]] = {
    "no optimizer": lambda: s.StepLR("x", 1),
    "no optimizer for a plateau": lambda: s.ReduceLROnPlateau("x"),
    "too few lambdas": lambda: s.LambdaLR(optimizer(), [lambda e: 1]),
    "too many lambdas": lambda: s.MultiplicativeLR(optimizer(), [lambda e: 1] * 3),
    "resumed without initial_lr": lambda: s.StepLR(optimizer(), 2, last_epoch=3),
    "constant factor": lambda: s.ConstantLR(optimizer(), factor=2),
    "linear start": lambda: s.LinearLR(optimizer(), start_factor=0),
    "linear end": lambda: s.LinearLR(optimizer(), end_factor=2),
    "restart length": lambda: s.CosineAnnealingWarmRestarts(optimizer(), 0),
    "restart growth": lambda: s.CosineAnnealingWarmRestarts(optimizer(), 1, T_mult=0),
    "restart epoch": lambda: s.CosineAnnealingWarmRestarts(optimizer(), 2).step(-1),
    "cyclic mode": lambda: s.CyclicLR(optimizer(), 0.1, 0.2, mode="x"),
    "cyclic without momentum": lambda: s.CyclicLR(optimizer(kind="Adagrad"), 0.1, 0.2),
    "cyclic lengths": lambda: s.CyclicLR(optimizer(), [0.1], 0.2),
    "one cycle length": lambda: s.OneCycleLR(optimizer(), 1.0),
    "one cycle steps": lambda: s.OneCycleLR(optimizer(), 1.0, total_steps=-1),
    "one cycle epochs": lambda: s.OneCycleLR(optimizer(), 1.0, epochs=-1, steps_per_epoch=2),
    "one cycle share": lambda: s.OneCycleLR(optimizer(), 1.0, total_steps=5, pct_start=2),
    "one cycle strategy": lambda: s.OneCycleLR(optimizer(), 1.0, total_steps=5, anneal_strategy="x"),
    "one cycle too far": too_many_steps,
    "plateau factor": lambda: s.ReduceLROnPlateau(optimizer(), factor=1.5),
    "plateau mode": lambda: s.ReduceLROnPlateau(optimizer(), mode="x"),
    "plateau threshold mode": lambda: s.ReduceLROnPlateau(optimizer(), threshold_mode="x"),
    "plateau lengths": lambda: s.ReduceLROnPlateau(optimizer(), min_lr=[1, 2, 3]),
    "sequence of none": lambda: s.SequentialLR(optimizer(), [], []),
    "sequence milestones": lambda: two_optimizers(lambda o, both: s.SequentialLR(o, both[:1], [1, 2])),
    "sequence of two optimizers": lambda: two_optimizers(lambda o, both: s.SequentialLR(o, both, [1])),
    "sequence with a plateau": lambda: with_plateau(lambda o, both: s.SequentialLR(o, both, [1])),
    "chain of none": lambda: s.ChainedScheduler([]),
    "chain of two optimizers": lambda: two_optimizers(lambda o, both: s.ChainedScheduler(both)),
    "chain with a plateau": lambda: with_plateau(lambda o, both: s.ChainedScheduler(both)),
    "swa strategy": lambda: swa_utils.SWALR(optimizer(), 0.1, anneal_strategy="x"),
    "swa epochs": lambda: swa_utils.SWALR(optimizer(), 0.1, anneal_epochs=-1),
    "get_lr from outside": lambda: s.StepLR(optimizer(), 1).get_lr(),
    "stepped too early": lambda: s.StepLR(optimizer(), 1).step(),
    "stepped to an epoch": lambda: s.StepLR(optimizer(), 1).step(3),
    "the base": lambda: s.LRScheduler(optimizer()),
    "step overridden": step_overridden,
}


def plain(value: Any) -> Any:
    """State as JSON can hold it."""
    if isinstance(value, torch.Tensor):
        return ["tensor", value.tolist()]
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    return value if isinstance(value, int | float | str | bool | None) else type(value).__name__


def run(
    make: Make, *, steps: int = 9, epochs: Any = None, metrics: Any = None, tensor_lr: bool = False, **options: Any
) -> dict[str, Any]:
    """Rates and momenta before every step, and the scheduler's state after the last."""
    o = optimizer(**options)
    if tensor_lr:
        for group in o.param_groups:
            group["lr"] = torch.tensor(group["lr"])
    scheduler = make(o)
    rows = []
    for i in range(steps):
        rows.append([[float(g["lr"]), g.get("momentum", g["betas"][0] if "betas" in g else None)] for g in o.param_groups])
        o.step()
        given = [] if epochs is None and metrics is None else [(epochs or metrics)[i]]
        scheduler.step(*given)
    return {"rows": rows, "state": plain(scheduler.state_dict()), "last": plain(scheduler.get_last_lr())}


def observe(body: Callable[[], Any]) -> list[Any]:
    """What a call gave or raised, and its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = body()
            outcome: Any = result if isinstance(result, dict) else None
        except Exception as error:
            outcome = f"{type(error).__name__}: {str(error)[:120]}"
    said = sorted({f"{w.category.__name__}: {str(w.message)[:60]}" for w in caught})
    return json.loads(json.dumps([outcome, said]))


def observe_run(name: str) -> list[Any]:
    make, options = RUNS[name]
    return observe(lambda: run(make, **options))


def lines(each: dict[str, Any]) -> str:
    return ",\n".join(f"{json.dumps(name)}: {json.dumps(seen)}" for name, seen in each.items())


if __name__ == "__main__":
    recorded = {
        "runs": {name: observe_run(name) for name in RUNS},
        "complaints": {name: observe(call) for name, call in COMPLAINTS.items()},
    }
    parts = [f"{json.dumps(part)}: {{\n{lines(each)}\n}}" for part, each in recorded.items()]
    RECORDED.write_text("{\n" + ",\n".join(parts) + "\n}\n")
    raise SystemExit

import pytest  # noqa: E402  the recording needs PyTorch and nothing else

KNOWN = json.loads(RECORDED.read_text())


def same(got: Any, want: Any) -> bool:
    if isinstance(want, list) and isinstance(got, list):
        return len(got) == len(want) and all(map(same, got, want))
    if isinstance(want, dict) and isinstance(got, dict):
        return got.keys() == want.keys() and all(same(got[k], want[k]) for k in want)
    if isinstance(want, float) and isinstance(got, int | float):
        return got == want or abs(got - want) <= 1e-15 + 1e-12 * abs(want)
    return got == want


@pytest.mark.parametrize("name", RUNS)
def test_rates_and_state(name: str) -> None:
    got, want = observe_run(name), KNOWN["runs"][name]
    assert same(got, want), f"{got}\n{want}"


@pytest.mark.parametrize("name", COMPLAINTS)
def test_complaints(name: str) -> None:
    assert observe(COMPLAINTS[name]) == KNOWN["complaints"][name]


@pytest.mark.parametrize("name", [n for n in RUNS if "plateau" not in n and "epoch" not in n and "fraction" not in n])
def test_a_loaded_scheduler_goes_on_as_the_saved_one(name: str) -> None:
    make, options = RUNS[name]
    chosen = {k: v for k, v in options.items() if k not in ("steps", "tensor_lr")}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        o, other = optimizer(**chosen), optimizer(**chosen)
        scheduler, loaded = make(o), make(other)
        for _ in range(4):
            o.step()
            scheduler.step()
        loaded.load_state_dict(json.loads(json.dumps(scheduler.state_dict(), default=dict), object_hook=_int_keys))
        other.load_state_dict(o.state_dict())
        for _ in range(3):
            for each in (o, other, scheduler, loaded):
                each.step()
            assert [g["lr"] for g in other.param_groups] == [g["lr"] for g in o.param_groups]


def _int_keys(value: dict[str, Any]) -> dict[Any, Any]:
    return {int(k) if k.isdigit() else k: v for k, v in value.items()}
