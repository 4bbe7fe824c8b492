"""What the tests of the report share: recordings, made up and real, and a browser without a network."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2._dispatch import observer
from mindtorch_v2.profiler import ProfilerActivity, profile, record_function, schedule
from mindtorch_v2.profiler.store.store import EventStore, ThreadInfo

HOSTILE = "<img src=x onerror=alert(1)>"


def recorded_steps() -> profile:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
    optimizer = torch.optim.Adam(model.parameters())
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=0, warmup=1, active=3, repeat=1),
        record_shapes=True,
        profile_memory=True,
        with_stack=True,
        with_modules=True,
        with_flops=True,
    ) as prof:
        for _ in range(4):
            with record_function("forward"):
                loss = model(torch.randn(8, 16)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            prof.step()
    return prof


@pytest.fixture(scope="session")
def profiled() -> profile:
    """Three steps of a small model, recorded with everything there is to record."""
    recorded_steps()  # no op is used for the first time in the other recording, whichever tests came before
    return recorded_steps()


@pytest.fixture(scope="session")
def report(profiled: profile, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of that recording."""
    path = tmp_path_factory.mktemp("report") / "report.html"
    profiled.export_html(path, title="Three steps")
    return path


@pytest.fixture
def device_store() -> EventStore:
    """Two steps on two threads and a device with two streams, with exact times and a name that is markup."""
    rows: list[dict[str, Any]] = []
    for step in range(2):
        at, number = step * 1000_000, 10 * step
        rows += [
            {"name": "enumerate(DataLoader)#Iter.__next__", "kind": observer.SCOPE, "start": at + 1000, "end": at + 101_000},
            {
                "name": "cudaLaunchKernel",
                "kind": observer.RUNTIME,
                "start": at + 220_000,
                "end": at + 230_000,
                "correlation": number + 1,
            },
            {
                "name": HOSTILE,
                "start": at + 200_000,
                "end": at + 300_000,
                "seq": number,
                "module": HOSTILE,
                "flops": 1000,
                "stack": (f"{HOSTILE}.py(1): f", "main.py(2): <module>"),
            },
            {"name": "aten::mm", "start": at + 300_000, "end": at + 340_000, "module": HOSTILE + ".inner"},
            {"name": "Optimizer.step#SGD.step", "kind": observer.SCOPE, "start": at + 800_000, "end": at + 900_000},
            {"name": f"ProfilerStep#{step}", "kind": observer.STEP, "start": at, "end": at + 990_000},
            {
                "name": "MulBackward0",
                "kind": observer.BACKWARD,
                "thread": 2,
                "fwd_thread": 1,
                "seq": number,
                "start": at + 400_000,
                "end": at + 500_000,
            },
            {
                "name": "gemm",
                "kind": observer.KERNEL,
                "thread": 7,
                "device_type": 1,
                "device_index": 0,
                "start": at + 240_000,
                "end": at + 640_000,
                "correlation": number + 1,
                "launch_thread": 1,
                "launch_ns": at + 225_000,
            },
            {
                "name": f"ProfilerStep#{step}",
                "kind": observer.STEP,
                "thread": 7,
                "device_type": 1,
                "device_index": 0,
                "start": at + 240_000,
                "end": at + 640_000,
            },
            {
                "name": "Memcpy DtoH",
                "kind": observer.COPY,
                "thread": 8,
                "device_type": 1,
                "device_index": 0,
                "start": at + 600_000,
                "end": at + 700_000,
                "launch_thread": 1,
                "launch_ns": at + 310_000,
            },
        ]
    memory = [
        {"time": 210_000, "bytes": 4096, "addr": 1},
        {"time": 310_000, "bytes": 1024, "addr": 2},
        {"time": 850_000, "bytes": -4096, "addr": 1},
        {"time": 1_210_000, "bytes": 512, "addr": 1},
    ]
    return EventStore.from_rows(rows, memory, options={"use_device": "cuda", "profile_memory": True, "with_flops": True})


@pytest.fixture(scope="session")
def million() -> EventStore:
    """A million events on two threads, ten to a range, four deep."""
    blocks, names = 100_000, ["range", *(f"aten::op{n}" for n in range(20)), "aten::mm", "aten::add", "aten::view"]
    random = np.random.default_rng(0)
    length = random.integers(20_000, 60_000, blocks)[:, None]
    begin = np.cumsum(length + random.integers(1000, 3000, (blocks, 1)))[:, None] - length
    low = np.array([0, 0.05, 0.08, 0.1, 0.36, 0.4, 0.5, 0.66, 0.7, 0.82]) + random.random((blocks, 1)) * 0.009
    high = np.array([1, 0.34, 0.3, 0.2, 0.64, 0.48, 0.6, 0.97, 0.8, 0.95]) + random.random((blocks, 1)) * 0.009
    start, end = (begin + length * low).astype(np.int64), (begin + length * high).astype(np.int64)
    # Each depth has names of its own: an only child named like its parent is not shown.
    depth = np.array([0, 1, 2, 3, 1, 2, 2, 1, 2, 2])
    name = np.where(depth > 0, random.integers(0, 7, start.shape) + 7 * depth - 6, 0)
    kind = np.full(start.shape, observer.OP)
    kind[:, 0] = observer.SCOPE
    order = np.argsort(end.ravel(), kind="stable")
    thread = np.repeat(np.arange(blocks) % 2, start.shape[1])
    columns = {"name": name.ravel(), "kind": kind.ravel(), "tid": thread, "start": start.ravel(), "end": end.ravel()}
    return EventStore.freeze(
        {key: values[order] for key, values in columns.items()},
        names=names,
        threads=[ThreadInfo(1, "MainThread"), ThreadInfo(2, "worker")],
    )


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium without a screen. Playwright's event loop runs in this thread until the end: no longer than its module."""
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright for Python is not installed")
    playwright.expect.set_options(timeout=60_000)  # as below: a busy machine takes its time
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if program is None:
        pytest.skip("there is no Chromium: tools/browser.sh installs it")
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture
def open_page(browser: Any) -> Iterator[Callable[..., Any]]:
    """open_page(path, section) shows a report from disk; at the end nothing may have failed or asked for a network."""
    contexts: list[Any] = []
    problems: list[str] = []

    def show(path: Path, section: str = "overview", *, width: int = 1280, height: int = 800, **options: Any) -> Any:
        context = browser.new_context(viewport={"width": width, "height": height}, reduced_motion="reduce", **options)
        contexts.append(context)
        context.set_default_timeout(120_000)  # a busy machine takes its time
        context.set_offline(True)
        address = path.as_uri()

        def only_the_file(route: Any) -> None:
            if route.request.url.split("#")[0] == address:
                route.continue_()
            else:
                problems.append(f"asked for {route.request.url}")
                route.abort()

        context.route("**/*", only_the_file)
        page = context.new_page()
        page.on("console", lambda said: problems.append(said.text) if said.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("dialog", lambda dialog: (problems.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.goto(f"{address}#{section}")
        page.wait_for_selector("html[data-ready]")
        return page

    show.problems = problems  # type: ignore[attr-defined]
    yield show
    for context in contexts:
        context.close()
    assert problems == []
