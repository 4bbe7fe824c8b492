"""The figures of the last full run, which stand in for torch where there is none."""

from __future__ import annotations

import json
from pathlib import Path

import rows as registry

FIGURES = Path(__file__).resolve().parent / "figures.json"


class Stored:
    """A side whose samples were taken earlier, on another day and maybe another machine: read the ratios as a trend."""

    def __init__(self):
        self.figures = json.loads(FIGURES.read_text())
        self.version = self.figures["meta"]["started"]

    def sample(self, row, size, threads, quick):
        suffix = (f"@{registry.short(size)}" if size else "") + (f" t{threads}" if row.id.startswith("train:") else "")
        found = {name: self.figures["rows"].get(name + suffix) for name, _, _ in row.outputs}
        return (
            {name: value for name, value in found.items() if value is not None},
            {name: "no stored figure" for name, value in found.items() if value is None},
            None,
        )

    def stop(self):
        pass


def store(meta, records):
    """Keep the host's figures of a run for later ones; rows that were not run keep theirs."""
    known = json.loads(FIGURES.read_text())["rows"] if FIGURES.exists() else {}
    known.update({record["name"]: record["host"]["value"] for record in records if record["host"]["value"] is not None})
    FIGURES.write_text(json.dumps({"meta": meta, "rows": dict(sorted(known.items()))}, indent=1) + "\n")
