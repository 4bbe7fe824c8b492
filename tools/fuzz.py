"""Coverage-guided fuzzing of everything that reads a file: `python tools/fuzz.py trace --seconds 1200`.

Needs atheris (the `fuzz` extra). An input is a file, or a shorter description of one: checksums and zip archives are
added here, since no mutation would get them right. An exception other than the documented ones is a finding, and its input
is written to the folder of findings; a hang of more than --timeout seconds or more than --megabytes of memory ends the run.
"""

from __future__ import annotations

import argparse
import gzip
import io
import os
import pickle
import sys
import tempfile
import time
import traceback
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

try:
    import atheris
except ImportError:
    sys.exit("tools/fuzz.py needs atheris: pip install '.[fuzz]'")

with atheris.instrument_imports(
    include=["mindtorch_v2.profiler.formats", "mindtorch_v2.profiler.formats.saved_file.rebuild", "mindtorch_v2._serialization"]
):
    import mindtorch_v2 as torch
    from mindtorch_v2._serialization import reader as _reader  # noqa: F401  (to be instrumented)
    from mindtorch_v2._serialization.writer import MAGIC_NUMBER, PROTOCOL_VERSION
    from mindtorch_v2.profiler import profile, record_function
    from mindtorch_v2.profiler.formats import Recovery, TraceError, kineto, saved
    from mindtorch_v2.profiler.formats.detect import read_any
    from mindtorch_v2.profiler.formats.saved_file import frames as _frames
    from mindtorch_v2.profiler.formats.validate import validate_store
    from mindtorch_v2.profiler.views.event_list import EventList

FIXTURES = Path(__file__).parent.parent / "tests/mindtorch_v2/profiler/fixtures"
# The first byte of an input says what the rest is.
AS_IT_IS, PACKED, DESCRIBED = range(3)
# Checks that every recording must pass, also one of a file that was tampered with; its times may be wrong.
_ALWAYS_PASS = ("tables", "queries")
# Queries take longer than reading, so they run on small recordings only, and on one in so many.
_MOST_ROWS, _ONE_IN = 400, 8


class Scratch:
    """A temporary file that is overwritten with each input."""

    def __init__(self) -> None:
        folder = "/dev/shm" if os.path.isdir("/dev/shm") else None
        number, self.path = tempfile.mkstemp(prefix="fuzz-", dir=folder)
        os.close(number)

    def close(self) -> None:
        if os.path.exists(self.path):
            os.unlink(self.path)

    def write(self, data: bytes) -> str:
        with open(self.path, "wb") as file:
            file.write(data)
        return self.path


# ---------------------------------------------------------------------- targets


def trace(scratch: Scratch, data: bytes) -> None:
    """A Chrome trace, plain or gzipped."""
    mode, body = data[:1], data[1:]
    content = gzip.compress(body, 1) if mode == bytes([PACKED]) else body
    try:
        store, recovery = kineto.read(scratch.write(content), max_bytes=1 << 24)
    except TraceError:
        return
    _query(store, data)
    str(recovery), recovery.to_dict()


def saved_profile(scratch: Scratch, data: bytes) -> None:
    """A saved profile: as it is, or frames (kind u8, length u16, body) that get their checksums here."""
    mode, body = data[:1], data[1:]
    content = body
    if mode == bytes([DESCRIBED]):
        content = _frames.header() + b"".join(_frames.frame(kind, part) for kind, part in _parts(body))
    try:
        store, recovery = read_any(scratch.write(content), max_bytes=1 << 24)
    except TraceError:
        return
    _query(store, data)
    str(recovery), recovery.to_dict()


def checkpoint(scratch: Scratch, data: bytes) -> None:
    """A checkpoint: as it is, a pickle inside a zip archive, or a pickle behind the head of the older format."""
    mode, body = data[:1], data[1:]
    content = body
    if mode == bytes([PACKED]):
        content = _archive(body)
    elif mode == bytes([DESCRIBED]):
        content = b"".join(pickle.dumps(value, 2) for value in (MAGIC_NUMBER, PROTOCOL_VERSION, {})) + body
    for options in ({}, {"mmap": True}):
        with suppress(pickle.UnpicklingError, RuntimeError, EOFError):
            torch.load(scratch.write(content), map_location="cpu", **options)


def _query(store: Any, data: bytes) -> None:
    """Run queries on a recording that could be read: none may fail."""
    if len(store) > _MOST_ROWS or zlib.crc32(data) % _ONE_IN:
        return
    broken = [problem for problem in validate_store(store) if problem.severity == "error" and problem.check in _ALWAYS_PASS]
    assert not broken, broken
    events = EventList.from_store(store)
    events.key_averages(True, 3).table(row_limit=5)
    for _ in events[:50]:
        pass


def _parts(body: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + 3 <= len(body):
        kind, length = body[at], int.from_bytes(body[at + 1 : at + 3], "little")
        yield kind, body[at + 3 : at + 3 + length]
        at += 3 + length


def _archive(pickled: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("a/data.pkl", pickled)
        for key in range(3):
            archive.writestr(f"a/data/{key}", bytes(range(64)))
    return buffer.getvalue()


# ---------------------------------------------------------------------- seeds


def _recorded() -> Any:
    model = torch.nn.Linear(2, 2)
    with profile(record_shapes=True, profile_memory=True, with_stack=True, with_modules=True) as prof:
        with record_function('la"bel'):
            model(torch.ones(1, 2)).sum().backward()
    return prof


def trace_seeds() -> Iterator[bytes]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.json"
        _recorded().export_chrome_trace(path)
        yield bytes([AS_IT_IS]) + path.read_bytes()[:3000]
    yield bytes([AS_IT_IS]) + (FIXTURES / "gpu_by_hand.json").read_bytes()
    yield bytes([PACKED]) + gzip.decompress((FIXTURES / "mlp_plain.json.gz").read_bytes())[:2500]
    yield bytes([AS_IT_IS]) + gzip.compress(b'{"traceEvents": [{"ph": "B", "name": "a", "ts": 1, "pid": 1, "tid": 2}]}')
    yield bytes([AS_IT_IS]) + b'[{"ph":"X","name":"a","ts":1.5,"dur":2,"pid":1,"tid":"x","args":{"Input Dims":[[1,2],[]]}},{}]'


def _streamed() -> bytes:
    """A streamed file with every log in it, smaller than any recorded one."""
    writer = saved.Writer(recorded=True)
    tables: dict[str, list[Any]] = {
        "threads": [(1, "main")],
        "names": ["aten::add", "scope"],
        "overloads": ["Tensor"],
        "tasks": [(1, "one"), (2, "two")],
        "calls": [["len"], ["f.py(1): f", "f.py", "f", 1, 0, 0, [[0, 1], [4, 2]]]],
        "module_infos": [[7, "Net", 0, [[8, "fc"]]], [8, "Linear", 0, []]],
    }
    logs = [
        [(-2, 1, 10), (1, -1, 10), (1, 2, 12), (0, 4, 14), (-1, 0, 15), (-1, 0, 30), (-3, 0, 90)],
        [(-2, 0), (0, 11), (1, 13), (-1, 20), (-1, 60), (-3, 90)],
        [(14, 99, 8, 1)],
        [(99,)],
        [(40, 41, 2)],
        [(14, 0)],
        [(0, 0), (50, 1)],
        [(12, 1), (20, 2), (30, 1), (40, 2)],
    ]
    rows = {
        "name": [0, 1, 1],
        "kind": [0, 3, 3],
        "tid": [0, 0, 0],
        "start": [14, 12, 20],
        "end": [18, 35, 50],
        "op": [0, -1, -1],
        "correlation": [-1, -1, -2],
    }
    blocks = [writer.header(), writer.meta({"logs": True, "options": {"with_modules": True, "with_stack": True}})]
    blocks += [block for name, entries in tables.items() for block in writer.table(name, entries)]
    blocks += [block for number, log in enumerate(logs) for block in writer.log(number, 0, np.array(log, np.int64))]
    blocks += writer.rows({name: np.array(values) for name, values in rows.items()})
    blocks += writer.memory({"mem_time": np.array([16]), "mem_bytes": np.array([8]), "mem_tid": np.array([0])})
    return b"".join([*blocks, writer.end()])


def saved_seeds() -> Iterator[bytes]:
    with tempfile.TemporaryDirectory() as folder:
        whole, streamed = Path(folder) / "p.mtp", Path(folder) / "s.mtp"
        saved.save(_recorded().profiler.store, whole)
        streamed.write_bytes(_streamed())
        yield bytes([AS_IT_IS]) + whole.read_bytes()
        for path in (whole, streamed):
            with open(path, "rb") as file:
                parts = [(kind, body) for kind, body in _frames.frames(file, Recovery("saved")) if len(body) < 1 << 12]
            yield bytes([DESCRIBED]) + b"".join(bytes([kind]) + len(body).to_bytes(2, "little") + body for kind, body in parts)


def checkpoint_seeds() -> Iterator[bytes]:
    state = {
        "w": torch.arange(6.0).reshape(2, 3),
        "p": torch.nn.Parameter(torch.ones(2)),
        "n": [1, (2.5, None)],
        "b": torch.ones(2, dtype=torch.bfloat16),
        "t": "text",
        "c": 1j,
        "s": {1, 2},
        "x": b"bytes",
    }
    for zipped in (True, False):
        buffer = io.BytesIO()
        torch.save(state, buffer, _use_new_zipfile_serialization=zipped)
        yield bytes([AS_IT_IS]) + buffer.getvalue()
        if zipped:
            with zipfile.ZipFile(buffer) as archive:
                name = next(name for name in archive.namelist() if name.endswith("data.pkl"))
                yield bytes([PACKED]) + archive.read(name)
        else:
            head = b"".join(pickle.dumps(value, 2) for value in (MAGIC_NUMBER, PROTOCOL_VERSION))
            yield bytes([DESCRIBED]) + buffer.getvalue()[len(head) :]
    for protocol in range(6):
        yield bytes([PACKED]) + pickle.dumps([1, 2.5, "a", {"k": (None, True)}, {3}, b"b", 1 << 70], protocol)


TARGETS: dict[str, tuple[Callable[[Scratch, bytes], None], Callable[[], Iterator[bytes]]]] = {
    "trace": (trace, trace_seeds),
    "saved": (saved_profile, saved_seeds),
    "checkpoint": (checkpoint, checkpoint_seeds),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", choices=TARGETS)
    parser.add_argument("--seconds", type=int, default=1200)
    parser.add_argument("--runs", type=int, default=1_000_000)
    parser.add_argument("--timeout", type=int, default=20)
    parser.add_argument("--megabytes", type=int, default=2048)
    parser.add_argument("--folder", type=Path, default=Path("build/fuzz"))
    parser.add_argument("inputs", nargs="*", type=Path, help="run these and nothing else")
    args = parser.parse_args()
    target, seeds = TARGETS[args.target]
    scratch = Scratch()
    try:
        for path in args.inputs:
            target(scratch, path.read_bytes())
        if not args.inputs:
            _fuzz(target, seeds, scratch, args)
    finally:
        scratch.close()


def _fuzz(
    target: Callable[[Scratch, bytes], None], seeds: Callable[[], Iterator[bytes]], scratch: Scratch, args: argparse.Namespace
) -> None:
    corpus, findings = args.folder / args.target / "corpus", args.folder / args.target / "findings"
    for folder in (corpus, findings):
        folder.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(seeds()):
        (corpus / f"seed-{number}").write_bytes(seed)
    done, began = 0, time.monotonic()
    inputs_by_place: dict[tuple[str, ...], Path] = {}

    def run_input(data: bytes) -> None:
        """Run an input. An exception is reported once for each place that raised it, and the search goes on."""
        nonlocal done
        done += 1
        try:
            target(scratch, data)
        except Exception as error:
            frames = traceback.extract_tb(error.__traceback__)[-3:]
            place = (type(error).__name__, *(f"{frame.filename}:{frame.lineno}" for frame in frames))
            if place not in inputs_by_place:
                path = inputs_by_place[place] = findings / f"exception-{len(inputs_by_place)}-{type(error).__name__}"
                path.write_bytes(data)
                print(f"FOUND {path}", flush=True)
                traceback.print_exc()
        took = time.monotonic() - began
        if done >= args.runs or took >= args.seconds:
            print(
                f"{args.target}: {done} inputs in {took:.0f} s ({done / took:.0f} per second), {len(inputs_by_place)} findings",
                flush=True,
            )
            scratch.close()
            os._exit(bool(inputs_by_place))  # libFuzzer has no way to stop it from a callback

    atheris.Setup(
        [
            sys.argv[0],
            str(corpus),
            f"-artifact_prefix={findings}/",
            f"-timeout={args.timeout}",
            f"-rss_limit_mb={args.megabytes}",
            "-max_len=8192",
        ],
        run_input,
    )
    atheris.Fuzz()


if __name__ == "__main__":
    main()
