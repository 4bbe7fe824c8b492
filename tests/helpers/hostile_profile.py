"""Recordings whose names, in every place that has one, are made to break what shows them."""

from __future__ import annotations

from html.parser import HTMLParser

from mindtorch_v2._dispatch import observer
from mindtorch_v2.profiler.store.store import EventStore, InputInfo, ThreadInfo

NAMES = [
    "\x1b[2J\x1b]0;owned\x07",  # clears the screen, sets the title
    "\x9b31m\x90q\x9c",  # the same with C1 controls
    "a\u202egnp.exe\u202c\u2066b\u2069",  # turns the direction of writing
    "line\nerror: forged line",
    "over\rwritten\b\b\b",
    "nul\0",
    "zero\u200bwidth\u2060\ufeff",
    "half\ud800pair\udfff",
    "separators\u2028\u2029\x85\x0b\x0c\x1c",
    '=HYPERLINK("http://x")',
    "+1+cmd|' /C calc'!A0",
    "-2+3",
    "@SUM(A1)",
    "\t=1",
    "</script><script>alert(1)</script><!--",
    "<img src=x onerror=alert(1)> & \"quoted\" 'too'",
    "a;b c;d",
    "| markdown | **bold** | `code` |",
    "\u6f22\u5b57\u6f22\u5b57",  # two columns each
    "e\u0301" * 5 + "\u0300" * 40,  # accents over accents
    "del\x7fete",
    "tag\U000e0041\U000e007f",
    "\ue000 private",
    "back\\slash \\x1b",
    "%s %n {0} ${HOME}",
    "",
    " ",
    "aten::add",
]
_STEPS = 6


def hostile_store(names: list[str] = NAMES, slower: float = 1.0) -> EventStore:
    """A recording of some steps with an op, range, Python call, module and kernel of each name, also as its thread, stack,
    inputs, overload, and metadata; the first ops are `slower` by a factor."""
    rows: list[dict[str, object]] = []
    memory: list[dict[str, object]] = []
    now = 1000
    for step in range(_STEPS):
        begun = now
        for number, name in enumerate(names):
            took = int((50_000 + 100 * step) * (slower if number < len(names) // 2 else 1.0))
            frame = f"/tmp/{name}/file.py({number + 1}): {name}"
            common = {
                "module": name,
                "stack": (frame, name, "main.py(1): main"),
                "step": step,
                "inputs": InputInfo(((2, 3), ()), (name, "Scalar"), ((3, 1), ()), (None, name)),
                "overload": name,
            }
            correlation = len(rows) + 1
            rows.append({"name": name, "start": now + 10, "end": now + took, "flops": 12 * (number + 1), **common})
            memory.append({"time": now + 20, "bytes": 4096, "addr": len(rows)})
            for kind, text in (
                (observer.SCOPE, name),
                (observer.PYTHON, frame),
                (observer.MODULE, f"nn.Module: {name}_{number}"),
            ):
                rows.append({"name": text, "start": now, "end": now + took + 10 * (kind + 1), "kind": kind, **common})
            rows.append(
                {
                    "name": name,
                    "start": now + 20,
                    "end": now + took,
                    "kind": observer.KERNEL,
                    "device_type": 1,
                    "device_index": 0,
                    "stream": 7,
                    "correlation": correlation,
                    "step": step,
                }
            )
            now += took + 1000
        rows.append({"name": f"ProfilerStep#{step}", "start": begun - 5, "end": now, "kind": observer.STEP, "step": step})
        now += 1000
    store = EventStore.from_rows(
        rows,
        memory,
        metadata={**{name: name for name in names}, "deep": {"list": names}, "dropped_events": 3},
        options={
            "verbose": True,
            "with_stack": True,
            "profile_memory": True,
            "with_flops": True,
            "capture_overload_names": True,
            "use_device": "cuda\x1b[31m",
        },
        trace_id=names[0],
    )
    store.threads = [ThreadInfo(thread.ident, names[at % len(names)]) for at, thread in enumerate(store.threads)]
    return store


def unprintable(text: str, allowed: str = "\n") -> set[str]:
    """The characters of a text that a terminal would obey or not show."""
    return {character for character in text if not character.isprintable() and character not in allowed}


class Elements(HTMLParser):
    """Counts the elements of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.counts: dict[str, int] = {}
        self.handlers: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.counts[tag] = self.counts.get(tag, 0) + 1
        self.handlers += [name for name, _ in attrs if name.startswith("on")]
