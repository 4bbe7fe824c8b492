"""Programs that need no advice, and programs that need one piece of it, in several sizes.

A program is a function of `step`, which it calls at the end of each of its steps if it has any.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import mindtorch_v2 as torch
from mindtorch_v2 import nn
from mindtorch_v2.profiler import profile
from mindtorch_v2.utils.data import DataLoader, Dataset

F = nn.functional
Program = Callable[[Callable[[], None]], None]

OPTIONS: dict[str, Any] = {"record_shapes": True, "profile_memory": True}


_warm: list[Program] = []


def advice_for(program: Program, **options: Any) -> list[str]:
    """The rules that fire on a recording of a program. What it does only once, such as compiling its ops, is not in it."""
    if program not in _warm:
        program(lambda: None)
        _warm.append(program)
    gc.collect()
    with profile(**options) as prof:
        program(prof.step)
    return [finding.rule for finding in prof.advice()]


def _net(width: int = 256) -> Any:
    return nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 10))


def _train(step: Callable[[], None], optimizer: str, net: Any, x: Any, steps: int = 8, read: bool = False) -> None:
    target = torch.randint(0, 10, (x.shape[0],))
    update = getattr(torch.optim, optimizer)(net.parameters(), lr=1e-3)
    for _ in range(steps):
        update.zero_grad()
        loss = F.cross_entropy(net(x), target)
        loss.backward()
        update.step()
        if read:
            loss.item()
        step()


def train_mlp(step: Callable[[], None]) -> None:
    _train(step, "SGD", _net(), torch.randn(256, 256))


def train_and_log(step: Callable[[], None]) -> None:
    _train(step, "SGD", _net(), torch.randn(256, 256), read=True)


def train_cnn(step: Callable[[], None]) -> None:
    net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(8 * 15 * 15, 10))
    _train(step, "SGD", net, torch.randn(16, 3, 32, 32), steps=5)


def accumulate_gradients(step: Callable[[], None]) -> None:
    net = _net()
    update = torch.optim.SGD(net.parameters(), lr=1e-3)
    for _ in range(3):
        for _ in range(4):
            net(torch.randn(256, 256)).sum().backward()
            step()
        update.step()
        update.zero_grad()


def one_backward_for_several_steps(step: Callable[[], None]) -> None:
    net = _net()
    for _ in range(4):
        total = torch.zeros(())
        for _ in range(3):
            total = total + net(torch.randn(256, 256)).sum()
            step()
        total.backward()


def forward_only(step: Callable[[], None]) -> None:
    """Its backward would come after the recording."""
    net = nn.Sequential(*[layer for _ in range(6) for layer in (nn.Linear(256, 256), nn.LayerNorm(256))], nn.Linear(256, 1))
    net(torch.randn(256, 256)).sum()


def inference(step: Callable[[], None]) -> None:
    net = _net()
    with torch.no_grad():
        for _ in range(10):
            net(torch.randn(256, 256)).argmax(1)
            step()


def inference_mode(step: Callable[[], None]) -> None:
    net = _net()
    with torch.inference_mode():
        for _ in range(10):
            net(torch.randn(256, 256))


def gradient_of_a_function(step: Callable[[], None]) -> None:
    x = torch.randn(100_000, requires_grad=True)
    for _ in range(20):
        (gradient,) = torch.autograd.grad((x.sin() * x).sum(), x)
        gradient.norm()


def linear_algebra(step: Callable[[], None]) -> None:
    x = torch.randn(120, 120)
    for _ in range(10):
        torch.linalg.solve(x @ x.T + torch.eye(120), x)


def power_iteration(step: Callable[[], None]) -> None:
    matrix, vector = torch.randn(800, 800), torch.randn(800, 1)
    for _ in range(60):
        vector = matrix @ vector
        vector = vector / vector.norm()
        step()


def detached_parameters(step: Callable[[], None]) -> None:
    weight = nn.Parameter(torch.randn(100, 100))
    for _ in range(15):
        torch.linalg.qr(weight.detach())


def statistics(step: Callable[[], None]) -> None:
    x = torch.randn(400, 400)
    for _ in range(30):
        (x - x.mean(0)) / x.std(0)
        x.var()


def sorting(step: Callable[[], None]) -> None:
    x = torch.randn(50_000)
    for _ in range(20):
        torch.sort(x)
        torch.topk(x, 10)


def einsum(step: Callable[[], None]) -> None:
    a, b = torch.randn(8, 64, 64), torch.randn(8, 64, 64)
    for _ in range(30):
        torch.einsum("bij,bjk->bik", a, b)


def spectra(step: Callable[[], None]) -> None:
    x = torch.randn(64, 2048)
    for _ in range(20):
        torch.fft.irfft(torch.fft.rfft(x))


def random_numbers(step: Callable[[], None]) -> None:
    for _ in range(30):
        torch.randn(300, 300).clamp(-1, 1).mean()


def double_precision(step: Callable[[], None]) -> None:
    x = torch.randn(300, 300, dtype=torch.float64)
    for _ in range(10):
        (x @ x) * 0.5


def windows(step: Callable[[], None]) -> None:
    x = torch.randn(16, 1, 2000)
    kernel = torch.randn(4, 1, 31)
    for _ in range(10):
        F.conv1d(x, kernel).abs().amax(-1)


class _Ready(Dataset):
    def __init__(self) -> None:
        self.x = torch.randn(64, 512)

    def __len__(self) -> int:
        return 64

    def __getitem__(self, at: int) -> Any:
        return self.x[at]


def loads_in_time(step: Callable[[], None]) -> None:
    weight = torch.randn(512, 2048)
    for batch in DataLoader(_Ready(), batch_size=16):
        for _ in range(5):
            (batch @ weight) @ weight.T
        step()


CLEAN: dict[str, Program] = {
    program.__name__: program
    for program in (
        train_mlp,
        train_and_log,
        train_cnn,
        accumulate_gradients,
        one_backward_for_several_steps,
        forward_only,
        inference,
        inference_mode,
        gradient_of_a_function,
        linear_algebra,
        power_iteration,
        detached_parameters,
        statistics,
        sorting,
        einsum,
        spectra,
        random_numbers,
        double_precision,
        windows,
        loads_in_time,
    )
}


class _Slow(Dataset):
    def __init__(self, ns: int) -> None:
        self.ns = ns

    def __len__(self) -> int:
        return 24

    def __getitem__(self, at: int) -> Any:
        until = time.perf_counter_ns() + self.ns
        while time.perf_counter_ns() < until:
            pass
        return np.float32(at)


def waits_for_data(step: Callable[[], None], ns: int) -> None:
    x = torch.randn(200, 200)
    for _ in DataLoader(_Slow(ns), batch_size=4):
        x.abs().sum()
        step()


def reads_values(step: Callable[[], None], reads: int) -> None:
    x = torch.randn(1000, 1000)
    for _ in range(6):
        total = (x * x).sum()
        for _ in range(reads):
            total.item()
        step()


# What these loops work on is made once: that a single long op was interrupted cannot be told from its work.
_NUMBERS, _ZEROS = torch.randn(100), torch.zeros(8)


def loop_of_scalars(step: Callable[[], None], calls: int) -> None:
    x = _NUMBERS[:4]
    for _ in range(calls):
        x = x * 0.9 + 0.1


def loop_over_elements(step: Callable[[], None], calls: int) -> None:
    x, total = _NUMBERS, _ZEROS[0]
    for at in range(calls):
        total = total + x[at % 100] * x[at % 100]


def loop_of_many_kinds(step: Callable[[], None], calls: int) -> None:
    x, total = _NUMBERS[:8], _ZEROS
    for at in range(calls):
        total = torch.maximum(total + torch.sin(x * at), -total)


def copies_again_and_again(step: Callable[[], None], size: int) -> None:
    x = torch.randn(size, size)
    for _ in range(40):
        x.t().contiguous().amax()


def mixes_types(step: Callable[[], None], size: int) -> None:
    x, weight = torch.randn(size, size), torch.randn(size, size, dtype=torch.float64)
    for _ in range(10):
        x * weight


def evaluates_with_graph(step: Callable[[], None], batches: int, stepped: bool = False) -> None:
    net = _net()
    for _ in range(batches):
        net(torch.randn(256, 256)).argmax(1)
        if stepped:
            step()


def drops_gradients(step: Callable[[], None], steps: int) -> None:
    net = _net()
    update = torch.optim.SGD(net.parameters(), lr=1e-3)
    for _ in range(steps):
        net(torch.randn(256, 256)).sum().backward()
        update.zero_grad()
        step()


def one_parameter_at_a_time(step: Callable[[], None], parameters: int) -> None:
    weights = [nn.Parameter(torch.randn(4000)) for _ in range(parameters)]
    update = torch.optim.Adam(weights, lr=1e-3, foreach=False)
    for _ in range(10):
        update.zero_grad()
        torch.cat(weights).sum().backward()
        update.step()
        step()


def keeps_results(step: Callable[[], None], size: int) -> None:
    x, kept = torch.randn(size, size), []
    for _ in range(10):
        kept.append(x * x)
        step()


def collects_garbage(step: Callable[[], None], rings: int) -> None:
    x = torch.randn(100, 100)
    for _ in range(5):
        for _ in range(rings):
            ring: list[Any] = []
            ring.append(ring)
        gc.collect()
        x * x
        step()


SICK: dict[str, tuple[Program, ...]] = {
    "data_loader_wait": tuple(partial(waits_for_data, ns=ns) for ns in (300_000, 1_000_000)),
    "host_sync": tuple(partial(reads_values, reads=reads) for reads in (2, 3)),
    "tiny_ops": tuple(
        partial(program, calls=calls)
        for program in (loop_of_scalars, loop_over_elements, loop_of_many_kinds)
        for calls in (1500, 5000)
    ),
    "copies": tuple(partial(copies_again_and_again, size=size) for size in (500, 1000)),
    "promotion": tuple(partial(mixes_types, size=size) for size in (50, 500)),
    "unused_graph": (
        partial(evaluates_with_graph, batches=12),
        partial(evaluates_with_graph, batches=40),
        partial(evaluates_with_graph, batches=12, stepped=True),
    ),
    "unused_gradients": tuple(partial(drops_gradients, steps=steps) for steps in (4, 12)),
    "single_tensor_optimizer": tuple(partial(one_parameter_at_a_time, parameters=number) for number in (16, 30)),
    "memory_growth": tuple(partial(keeps_results, size=size) for size in (150, 400)),
    "gc_pauses": tuple(partial(collects_garbage, rings=rings) for rings in (3000, 10_000)),
}
