"""The runs whose traces other programs are to read: an MLP, a CNN, a GPT, two threads, an NPU and a made-up device."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import mindtorch_v2 as torch
from mindtorch_v2 import nn
from mindtorch_v2._dispatch import observer
from mindtorch_v2.profiler import profile, record_function, schedule, tensorboard_trace_handler
from mindtorch_v2.profiler.exporters import chrome
from mindtorch_v2.profiler.profiler import _ExperimentalConfig
from mindtorch_v2.profiler.store.store import EventStore

F = nn.functional
STEPS = 3
FLAGS = {"record_shapes": True, "profile_memory": True, "with_stack": True, "with_modules": True, "with_flops": True}


def trainer(model: nn.Module, inputs: torch.Tensor, classes: int) -> Callable[[], None]:
    targets = torch.randint(classes, inputs.shape[:1])
    optimizer = torch.optim.Adam(model.parameters())

    def step() -> None:
        optimizer.zero_grad()
        with record_function("forward"):
            loss = F.cross_entropy(model(inputs), targets)
        with record_function('backward "quoted" \\ äß'):
            loss.backward()
        optimizer.step()

    return step


def mlp() -> Callable[[], None]:
    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 10))
    return trainer(model, torch.randn(8, 32), 10)


def cnn() -> Callable[[], None]:
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(16, 10),
    )
    return trainer(model, torch.randn(4, 3, 16, 16), 10)


def gpt() -> Callable[[], None]:
    path = Path(__file__).parents[2] / "examples" / "train_gpt.py"
    spec = importlib.util.spec_from_file_location("train_gpt", path)
    assert spec is not None and spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    model = example.GPT(60, context=16, width=32, heads=4, layers=2)
    tokens = torch.randint(60, (4, 17))
    optimizer = torch.optim.AdamW(model.parameters())

    def step() -> None:
        optimizer.zero_grad()
        F.cross_entropy(model(tokens[:, :-1]).view(-1, 60), tokens[:, 1:].reshape(-1)).backward()
        optimizer.step()

    return step


def two_threads() -> Callable[[], None]:
    steps = [mlp(), cnn()]

    def step() -> None:
        threads = [threading.Thread(target=one, name=f"worker-{number}") for number, one in enumerate(steps)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    return step


WORKLOADS = {"mlp": mlp, "cnn": cnn, "gpt": gpt, "two_threads": two_threads}


def write(name: str, folder: Path) -> None:
    """Profile a workload and write its trace the way TensorBoard finds it."""
    torch.manual_seed(0)
    step = WORKLOADS[name]()
    step()
    config = _ExperimentalConfig(profile_all_threads=name == "two_threads")
    with profile(
        schedule=schedule(wait=0, warmup=1, active=STEPS, repeat=1),
        experimental_config=config,
        on_trace_ready=tensorboard_trace_handler(str(folder), name),
        **FLAGS,
    ) as prof:
        for _ in range(STEPS + 1):
            step()
            prof.step()


def write_device(folder: Path, kernels: int = 40) -> None:
    """Ops that launch kernels, copies and fills on two streams: made up, since no device is at hand."""
    kinds = (observer.KERNEL, observer.KERNEL, observer.COPY, observer.FILL)
    names = ("MatMul", "Relu", "Memcpy DtoD (Device -> Device)", "Memset (Device)")
    rows, at, done = [], 10_000, 0
    for number in range(kernels):
        rows.append(
            {
                "name": "cudaLaunchKernel",
                "start": at + 2_000,
                "end": at + 4_000,
                "kind": observer.RUNTIME,
                "correlation": number + 1,
                "thread": 77,
            }
        )
        rows.append({"name": "aten::mm", "start": at, "end": at + 8_000, "thread": 77})
        done = max(done, at + 5_000)
        rows.append(
            {
                "name": names[number % 4],
                "start": done,
                "end": done + 6_000,
                "kind": kinds[number % 4],
                "stream": 7 + number % 2,
                "device_type": 1,
                "device_index": 0,
                "correlation": number + 1,
                "launch_thread": 77,
                "launch_ns": at + 3_000,
            }
        )
        done, at = done + 6_000, at + 10_000
    rows.append({"name": "ProfilerStep#1", "start": 9_000, "end": done + 1_000, "kind": observer.STEP, "thread": 77})
    store = EventStore.from_rows(rows, options={"use_device": "cuda"}, clock_start_ns=0, wall_start_ns=10**18, pid=4242)
    chrome.export(store, folder / "device.1.pt.trace.json")


def write_npu(folder: Path) -> None:
    """Train on the simulator of an NPU, in a process of its own since a driver is loaded once."""
    code = f"""
from workloads import FLAGS, STEPS, F, nn, profile, schedule, tensorboard_trace_handler, torch
model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 10)).to("npu")
inputs, targets = torch.randn(8, 32).to("npu"), torch.randint(10, (8,)).to("npu")
optimizer = torch.optim.Adam(model.parameters())
with profile(
    activities=[torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.NPU],
    schedule=schedule(wait=0, warmup=1, active=STEPS, repeat=1),
    on_trace_ready=tensorboard_trace_handler({str(folder)!r}, "npu"),
    **FLAGS,
) as prof:
    for _ in range(STEPS + 1):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(inputs), targets)
        loss.backward()
        optimizer.step()
        loss.cpu()
        prof.step()
"""
    builder = Path(__file__).parents[1] / "ascend_sim" / "build.py"
    library = subprocess.check_output([sys.executable, str(builder)], text=True).strip()
    environment = {**os.environ, "MINDTORCH_NPU_LIBRARY": library, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)
