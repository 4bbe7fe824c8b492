"""Takes the pictures in docs/images: views of the report, pages of comparisons, histories and running processes, a notebook.

    python tools/pictures.py [NAME ...]      # of what `python tools/command_pages.py` recorded; it calls this, too

Needs Chromium and Playwright; the picture of a notebook also what `make interop` installs.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from mindtorch_v2._dispatch import observer
from mindtorch_v2.profiler.results import writers
from mindtorch_v2.profiler.store.store import EventStore

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ROOT / "docs" / "images"
DEMO = ROOT / "build" / "demo"
MADE = ROOT / "build" / "pictures"
NOTEBOOKS = ROOT / "build" / "interop" / "venv" / "bin" / "python"
WIDTH = 1280


class Picture(NamedTuple):
    """What is shown (an address, or a function that opens one while it is shown), how high, and from which element on."""

    source: str | Callable[[], Any]
    height: int
    below: str = ""


def mtprof(*arguments: str) -> None:
    """Run a command from the root of the checkout."""
    subprocess.run([sys.executable, "-m", "mindtorch_v2.profiler", *arguments], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


def difference() -> str:
    """The comparison of the demo with another activation."""
    sides = [[str(path) for path in sorted(DEMO.glob(f"{name}[0-9].mtp"))] for name in ("gelu", "relu")]
    subprocess.run(  # its exit code says that something changed
        [
            sys.executable,
            "-m",
            "mindtorch_v2.profiler",
            "diff",
            *sides[0],
            "--to",
            *sides[1],
            "--html",
            str(MADE / "diff.html"),
        ],
        cwd=ROOT,
        check=False,
        stdout=subprocess.DEVNULL,
    )
    return (MADE / "diff.html").as_uri()


def device() -> str:
    """The report of a trace with a GPU."""
    trace = "tests/mindtorch_v2/profiler/fixtures/gpu_by_hand.json"
    mtprof("report", trace, "-o", str(MADE / "device.html"))
    return f"{(MADE / 'device.html').as_uri()}#device"


def trend() -> str:
    """Six made-up recordings: one became slower and larger, the last one faster."""
    folder = MADE / "nightly"
    folder.mkdir(exist_ok=True)
    for number, (milliseconds, kilobytes) in enumerate([(10, 64), (10, 64), (10, 64), (15, 96), (15, 96), (7, 96)]):
        rows: list[dict[str, Any]] = []
        memory: list[dict[str, Any]] = []
        at = 0
        for step in range(30):
            begin = at
            for op, share in OPS.items():
                length = int(1e6 * share * (milliseconds if op == "aten::mm" else 10)) + 1000 * (step * 7 % 5)
                rows.append({"name": op, "start": at, "end": at + length})
                at += length + 500
            rows.append({"name": f"ProfilerStep#{step}", "kind": observer.STEP, "start": begin, "end": at})
            memory += [{"time": begin + 2000, "bytes": kilobytes << 10, "addr": 1}]
            memory += [{"time": begin + 9000, "bytes": -kilobytes << 10, "addr": 1}]
            at += 500
        store = EventStore.from_rows(rows, memory, options={"profile_memory": True})
        store.wall_start_ns = int(1.79e18) + number * 86_400_000_000_000
        writers.get("saved")(store, folder / f"night{number + 1}.mtp")
    mtprof("history", str(folder), "--html", str(MADE / "trend.html"))
    return (MADE / "trend.html").as_uri()


OPS = {"aten::mm": 0.5, **{f"aten::{name}": 0.1 for name in ("gelu", "add", "mul", "softmax", "native_layer_norm")}}


@contextmanager
def live() -> Iterator[str]:
    """The page about the demo while it trains."""
    folders = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # the page shows the command line: without paths
    command = ["python", "examples/train_gpt.py", "--steps", "100000", "--out", "build/pictures/live"]
    environment = {**os.environ, "PATH": folders, "MTPROF": "listen=0", "OPENBLAS_NUM_THREADS": "1"}
    with subprocess.Popen(
        command, cwd=ROOT, text=True, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, env=environment
    ) as process:
        assert process.stderr is not None
        try:
            address = next(found[0] for line in process.stderr if (found := re.search(r"http://\S+", line)))
            yield address
        finally:
            process.kill()


CELLS = (
    "%load_ext mindtorch_v2.profiler\n\nimport mindtorch_v2 as torch\n\n"
    "model = torch.nn.TransformerEncoderLayer(64, 4, batch_first=True)\n"
    "x = torch.randn(8, 128, 64)",
    "%%profile --shapes --stack --flame prof\nfor _ in range(3):\n    model(x).square().mean().backward()",
)
EXECUTE = """
import sys
import nbformat
from nbconvert.exporters import HTMLExporter
from nbconvert.preprocessors import ExecutePreprocessor

book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in sys.argv[2:]])
ExecutePreprocessor(timeout=300, kernel_name="python3").preprocess(book, {"metadata": {"path": "."}})
open(sys.argv[1], "w").write(HTMLExporter().from_notebook_node(book)[0])
"""


def notebook() -> str | None:
    """A notebook with a profiled cell, executed by nbconvert; None without it."""
    if not NOTEBOOKS.exists():
        return None
    page = MADE / "notebook.html"
    subprocess.run([NOTEBOOKS, "-W", "ignore", "-c", textwrap.dedent(EXECUTE), page, *CELLS], cwd=MADE, check=True)
    return page.as_uri()


REPORT = (DEMO / "report.html").as_uri()
PICTURES = {
    "report": Picture(f"{REPORT}#overview", 660),
    "timeline": Picture(f"{REPORT}#timeline", 620),
    "memory": Picture(f"{REPORT}#memory", 600),
    "source": Picture(f"{REPORT}#source", 790),
    "roofline": Picture(f"{REPORT}#roofline", 790),
    "calls": Picture(f"{REPORT}#calls", 620),
    "callers": Picture(f"{REPORT}#calls?around=aten::linear", 620),
    "difference": Picture(difference, 620, below=".flame"),
    "device": Picture(device, 840),
    "trend": Picture(trend, 620),
    "live": Picture(live, 620),
    "notebook": Picture(notebook, 620, below="svg"),
}


def take(names: list[str]) -> list[str]:
    """Take the pictures of these names; returns those that could not be taken here."""
    from playwright.sync_api import sync_playwright

    IMAGES.mkdir(exist_ok=True)
    MADE.mkdir(parents=True, exist_ok=True)
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
    missing = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        for name in names:
            picture = PICTURES[name]
            opened = picture.source() if callable(picture.source) else picture.source
            if opened is None:
                missing.append(name)
            elif isinstance(opened, str):
                _take_one(browser, opened, picture, IMAGES / f"{name}.png")
            else:
                with opened as address:
                    _take_one(browser, address, picture, IMAGES / f"{name}.png", seconds=15)
        browser.close()
    return missing


def _take_one(browser: Any, address: str, picture: Picture, target: Path, seconds: float = 1.5) -> None:
    page = browser.new_page(viewport={"width": WIDTH, "height": picture.height})
    page.goto(address)
    page.wait_for_timeout(seconds * 1000)  # until everything is drawn, and a process that runs has something to show
    if picture.below:
        page.locator(picture.below).first.evaluate("node => scrollTo(0, node.getBoundingClientRect().top - 80)")
    page.screenshot(path=target)
    page.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[*PICTURES, []], metavar="NAME")
    names = parser.parse_args().names or list(PICTURES)
    for name in take(names):
        print(f"{name}: not taken; `make interop` installs what it needs")
    return 0


if __name__ == "__main__":
    sys.exit(main())
