"""The demo: it trains, and leaves behind everything that it says it does."""

from __future__ import annotations

import functools
import importlib.util
import json
import sys
from pathlib import Path

PATH = Path(__file__).parents[3] / "examples" / "train_gpt.py"


def test_the_demo_writes_its_files(tmp_path, monkeypatch, capsys):
    spec = importlib.util.spec_from_file_location("train_gpt", PATH)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    # A smaller model, and no poem at the end: this is about the files.
    monkeypatch.setattr(example, "GPT", functools.partial(example.GPT, width=16, heads=2, layers=1))
    monkeypatch.setattr(example, "write", lambda *arguments: "")
    monkeypatch.setattr(sys, "argv", ["train_gpt.py", "--out", str(tmp_path), "--steps", "5"])
    example.main()
    printed = capsys.readouterr().out
    for name in ("trace.json", "stacks.txt", "memory.html", "modules.txt", "report.html", "profile.mtp"):
        assert str(tmp_path / name) in printed and (tmp_path / name).stat().st_size
    assert json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    page = (tmp_path / "memory.html").read_text()
    assert "<svg" in page and "Parameter: at most" in page
    lines = (tmp_path / "modules.txt").read_text().splitlines()
    assert lines[0].split() == ["module", "forward", "backward", "MFLOPs"]
    modules = {line.split()[0]: [float(text) for text in line.split()[1::2]] for line in lines[1:]}
    assert {"GPT.head", "GPT.blocks.0.attention.qkv", "GPT.blocks.0.mlp.2"} <= set(modules)
    forward, backward, *_ = modules["GPT.head"]
    assert forward > 0 and backward > 0
