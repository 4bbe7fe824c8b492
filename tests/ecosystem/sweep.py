"""Every architecture of transformers that a small configuration can be made for, on torch and on this runtime.

    ECOSYSTEM=record build/ecosystem/venv-torch/bin/python tests/ecosystem/sweep.py torch.jsonl     # what real torch gives
    ECOSYSTEM=run build/ecosystem/venv/bin/python tests/ecosystem/sweep.py ours.jsonl               # and what we give
    python tests/ecosystem/sweep.py --compare torch.jsonl ours.jsonl

Architectures that torch runs, and how many of them agree; then, by cause, those that do not. Names of model types after the
files choose.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import tempfile
import traceback
import warnings
from collections import defaultdict
from pathlib import Path
from typing import Any

from recording import difference, digest

SECONDS = 120


def run(file: Path, names: list[str]) -> None:
    """Exercise each architecture and append a line for it to the file; those that it has already are left out."""
    if os.environ.get("ECOSYSTEM") != "record":
        from mindtorch_v2 import as_torch

        as_torch.install()
    os.environ.update(HF_HUB_OFFLINE="1", TQDM_DISABLE="1")
    warnings.simplefilter("ignore")
    import torch
    import transformers
    from architectures import architectures, build, exercise

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    done = {json.loads(line)["name"] for line in file.read_text().splitlines()} if file.exists() else set()
    signal.signal(signal.SIGALRM, _too_long)
    chosen = names or architectures()
    print(len(chosen), flush=True)
    with file.open("a") as out:
        for name in chosen:
            if name in done:
                continue
            torch.manual_seed(0)
            signal.alarm(SECONDS)
            line: dict[str, Any] = {"name": name}
            stage = "build"
            try:
                model = build(name)
                stage = "run"
                with tempfile.TemporaryDirectory() as folder:
                    line["figures"] = digest(exercise(model, folder))
            except Exception as error:
                frames = traceback.extract_tb(error.__traceback__)
                line["error"] = f"{type(error).__name__}: {error}"[:400]
                line["stage"] = stage
                line["at"] = [
                    f"{frame.filename.split('site-packages/')[-1]}:{frame.lineno} {frame.line}" for frame in frames[-4:]
                ]
            signal.alarm(0)
            torch.set_grad_enabled(True)
            print(name, line.get("error", "ok")[:150], flush=True)
            out.write(json.dumps(line) + "\n")
            out.flush()


def _too_long(*_: Any) -> None:
    raise TimeoutError(f"took more than {SECONDS} s")


def compare(torchs: Path, ours: Path) -> None:
    """Print how many architectures agree, and the others by cause."""
    base, mine = ({line["name"]: line for line in map(json.loads, file.read_text().splitlines())} for file in (torchs, ours))
    able = sorted(name for name, line in base.items() if "figures" in line)
    causes = defaultdict(list)
    agree = 0
    for name in able:
        if name not in mine:
            causes["not run"].append(name)
        elif "error" in mine[name]:
            causes[mine[name]["error"][:160] + "\n      " + "\n      ".join(mine[name]["at"][-3:])].append(name)
        elif found := difference(mine[name]["figures"], base[name]["figures"], 1e-4):
            causes["differs"].append(f"{name} {found[:200]}")
        else:
            agree += 1
    print(f"{agree} of {len(able)} architectures that torch runs agree to 1e-4")
    for cause, names in sorted(causes.items(), key=lambda item: -len(item[1])):
        print(len(names), cause, "\n    ", "\n     ".join(names) if cause == "differs" else " ".join(names))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--compare", action="store_true")
    parser.add_argument("file", type=Path)
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    if arguments.compare:
        compare(arguments.file, Path(arguments.names[0]))
    else:
        run(arguments.file, arguments.names)


if __name__ == "__main__":
    main()
