"""Runs a file of programs as ranks 0 and 1, in PyTorch or here, and collects what each of them answered."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rank_programs import free_port


def run(file: str, python: str, package: str, timeout_s: float = 300) -> list[Any]:
    """The answers of both ranks, from processes of their own."""
    with tempfile.TemporaryDirectory() as folder:
        outs = [Path(folder, f"{rank}.json") for rank in range(2)]
        port = str(free_port())
        processes = [
            subprocess.Popen([python, file, "--package", package, "--rank", str(rank), "--port", port, "--out", str(out)])
            for rank, out in enumerate(outs)
        ]
        try:
            codes = [process.wait(timeout_s) for process in processes]
        finally:
            for process in processes:
                process.kill()
        if any(codes):
            raise RuntimeError(f"the ranks ended with {codes}")
        return [json.loads(out.read_text()) for out in outs]


def main(about: str, file: str, run_rank: Callable[[str, int, int, Path], None]) -> None:
    """The command line of such a file: both ranks, or with --rank one of them."""
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    parser.add_argument("--package", default="torch")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--rank", type=int)
    parser.add_argument("--port", type=int)
    arguments = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    if arguments.rank is None:
        answers = run(file, sys.executable, arguments.package, timeout_s=900)
        arguments.out.write_text(json.dumps(answers, separators=(",", ":")) + "\n")
    else:
        run_rank(arguments.package, arguments.rank, arguments.port, arguments.out)
