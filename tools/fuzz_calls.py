"""Calls the whole public API with random arguments: `python tools/fuzz_calls.py --calls 1000000`.

Calls run in child processes, a chunk at a time, watched by faulthandler and with bounded memory. A finding is an interpreter
that dies, a call that takes longer than --timeout, an exception that is not one of the documented kinds, a warning of NumPy's,
or a setting that stays changed. Each is shortened and printed once, as a line of Python.

    --seed N --start K       calls are numbered; the same seed and number make the same call
    --only PATTERN ...       targets whose name matches: `torch.add`, `Tensor.`, `distributions`
    --try LINE ...           run lines of Python instead, and say what each came to
    --torch PYTHON           an interpreter with PyTorch, which is asked the lines of the findings
"""

from __future__ import annotations

import argparse
import faulthandler
import importlib
import json
import mmap
import os
import re
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from random_calls import Call, Target, random_call, simpler, targets

HERE = Path(__file__).resolve()

MEMORY = 2**31  # bytes of address space beyond what a child has when it begins
CHUNK = 50_000
ARMED_FOR = 50  # calls; the watchdog takes longer to start than most calls take
ALARM = 6  # times --timeout for these, as the machine may be busy; the call that was running is then tried alone

# What torch raises for a bad call.
DOCUMENTED = {
    "RuntimeError",
    "TypeError",
    "ValueError",
    "IndexError",
    "NotImplementedError",
    "LinAlgError",
    "_LinAlgError",
    "Mine",
}
# Others that torch raises as well: the kind of exception, where, and its message.
AS_IN_TORCH: list[tuple[str, str, str]] = [
    # A function in Python that was handed something else than what it takes.
    ("AttributeError", r"torch\.(nn|masked|distributions|optim|sparse|signal|functional)", ""),
    ("AttributeError", r"torch\.(stft|istft|unravel_index|svd_lowrank|pca_lowrank|lobpcg)$|_output_nr", ""),
    ("AttributeError", r"Tensor\.(module_load|__repr__)$", ""),
    ("AssertionError", r"torch\.(nn|masked|distributions)\.", ""),
    ("AssertionError", r"torch\.(_assert|sym_ite)$", ""),
    ("AssertionError", "", "Torch not compiled with"),  # "... CUDA enabled"
    ("UFuncTypeError", "", "StrDType|DateTime64DType|M8|<U"),  # of the argument's own operators: text and dates of NumPy's
    ("AssertionError", r"torch\.optim\.", "capturable"),  # asked of a device that is not there
    ("BufferError", "dlpack", ""),
    ("KeyError", r"torch\.optim\.", "params|0"),  # a dict in place of the parameters, or of a pair of numbers
    ("KeyError", r"torch\.optim\.lr_scheduler\.", "initial_lr"),  # resumed without a state
    ("OverflowError", "", "int too big to convert"),  # a number of more than 64 bits
    ("OverflowError", r"torch\.(nn|optim)\.", ""),
    ("OverflowError", r"Tensor\.__int__|torch\.sym_int$", "cannot convert float infinity"),
    ("MemoryError", r"torch\.nn\.RNNCellBase", ""),  # of Python's own, for `(1,) * 2**62`
    ("ZeroDivisionError", r"torch\.(nn|optim)\.", ""),
]
_NUMPYS_WORDS = re.compile(
    r"ufunc|_UFunc|could not broadcast|operands could not|shape mismatch: |Cannot cast|numpy|setting an array element|"
    r"not supported for the input types|array is not broadcastable|cannot reshape array|buffer is smaller|ndarray|"
    r"zero-size array|[Mm]aximum supported dimension|array is too big|Unable to allocate|negative dimensions are not|"
    r"referenced before assignment|not associated with a value|object has no attribute '_array'|truth value of an array"
)


# ---------------------------------------------------------------- in a child


def namespace(package: str) -> dict[str, Any]:
    """The names that lines of Python use."""
    import numpy as np

    torch = importlib.import_module(package)
    for part in (
        "nn",
        "optim",
        "distributions",
        "special",
        "linalg",
        "fft",
        "sparse",
        "signal.windows",
        "masked",
        "nn.utils.rnn",
    ):
        importlib.import_module(f"{package}.{part}")

    class Subclass(torch.Tensor):
        """A tensor class of a program."""

    class Mine(Exception):
        """An exception of a program."""

    def fails(*args: Any, **kwargs: Any) -> None:
        raise Mine("from the program's own function")

    def P(*shape: int, dtype: Any = torch.float32) -> Any:
        parameter = torch.nn.Parameter(torch.ones(shape or (2,), dtype=dtype))
        parameter.grad = torch.full_like(parameter, 0.5, requires_grad=False)
        return parameter

    return {"torch": torch, "np": np, "nan": float("nan"), "inf": float("inf"), "Subclass": Subclass, "fails": fails, "P": P}


def settings_of(torch: Any) -> tuple[Any, ...]:
    """What a call must leave as it was."""
    import numpy as np

    return (
        torch.is_grad_enabled(),
        torch.get_default_dtype(),
        torch.is_inference_mode_enabled(),
        torch.is_autocast_enabled("cpu"),
        tuple(np.geterr().values()),
        sys.getrecursionlimit(),
        *_hidden_settings(torch),
    )


def _hidden_settings(torch: Any) -> tuple[Any, ...]:
    if torch.__name__ != "mindtorch_v2":
        return ()
    from mindtorch_v2._core.threads import threads
    from mindtorch_v2._dispatch import entry_globals

    return len(threads.state.modes or ()), entry_globals.observers_active


def came_to(call: Call, names: dict[str, Any], heard: list[str], words: bool = False) -> str | None:
    """Runs a call; what was found, as a short text that is the same for the same mistake, or None."""
    heard.clear()
    line, target = call.text, call.target.name
    try:
        eval(line, names)
    except Exception as error:
        kind = type(error).__name__
        text = str(error)
        documented = kind in DOCUMENTED or (
            isinstance(error, RuntimeError) and type(error).__module__.startswith("mindtorch_v2")
        )
        if any(kind == name and re.search(where, target) and re.search(said, text) for name, where, said in AS_IN_TORCH):
            return None
        if not documented or type(error).__module__.startswith("numpy"):
            return f"{kind}: {_first_line(text)}"
        if words and _NUMPYS_WORDS.search(text) and not re.search("numpy|np\\.", line):
            return f"{kind} in NumPy's words: {_first_line(text)}"
        return None
    return f"warns: {heard[0]}" if heard else None


def _first_line(text: str) -> str:
    return (text.splitlines() or [""])[0][:160]


def place_of(line: str, names: dict[str, Any]) -> str:
    """Where in the source a line fails."""
    import traceback

    try:
        eval(line, names)
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        return " < ".join(f"{Path(f.filename).name}:{f.lineno} {f.name}" for f in reversed(frames[-3:]))
    return ""


def listen(heard: list[str]) -> None:
    """Collect the warnings that are not torch's: those of NumPy and of Python about this package's code."""

    def show(message: Any, category: type, filename: str, lineno: int, *rest: Any) -> None:
        if issubclass(category, RuntimeWarning | DeprecationWarning) or "numpy" in category.__module__:
            heard.append(f"{category.__name__}: {message} ({Path(filename).name}:{lineno})")

    warnings.simplefilter("always")
    warnings.showwarning = show


def limit_memory(size: int) -> None:
    with open("/proc/self/statm") as file:
        pages = int(file.read().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (size + pages * mmap.PAGESIZE,) * 2)


class Progress:
    """The call that runs, in memory that a file keeps if the process dies."""

    SIZE = 1 << 16
    HEAD = struct.Struct("qii")

    def __init__(self, path: str) -> None:
        with open(path, "r+b") as file:
            self._memory = mmap.mmap(file.fileno(), self.SIZE)

    @classmethod
    def begin(cls, folder: str, number: int) -> str:
        """A new file; returns its path."""
        path = os.path.join(folder, "progress")
        Path(path).write_bytes(cls.HEAD.pack(number, 0, 0).ljust(cls.SIZE))
        return path

    def note(self, number: int, call: Call) -> None:
        name, line = call.target.name.encode(), call.text.encode()[: self.SIZE - 1000]
        self.HEAD.pack_into(self._memory, 0, number, len(name), len(line))
        self._memory[self.HEAD.size : self.HEAD.size + len(name) + len(line)] = name + line

    @classmethod
    def read(cls, path: str) -> tuple[int, str, str]:
        """Number, target and line of the last call."""
        content = Path(path).read_bytes()
        number, name, line = cls.HEAD.unpack_from(content)
        rest = content[cls.HEAD.size :]
        return number, rest[:name].decode(), rest[name : name + line].decode()


def chosen_targets(torch: Any, only: list[str]) -> list[Target]:
    return [t for t in targets(torch) if not only or any(re.search(pattern, t.name) for pattern in only)]


def child(options: argparse.Namespace) -> int:
    """Runs calls `start` to `stop`, and writes findings to stdout, a JSON line for each."""
    names = namespace(options.package)
    torch = names["torch"]
    report = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # calls may print
    choices = chosen_targets(torch, options.only)
    progress = Progress(options.progress)
    limit_memory(MEMORY)
    faulthandler.dump_traceback_later((ALARM if options.stop - options.start > 1 else 1) * options.timeout, exit=True)
    heard: list[str] = []
    listen(heard)
    before = settings_of(torch)
    seen: set[tuple[str, str]] = set()
    slowest = (0.0, "")
    for number in range(options.start, options.stop):
        call = random_call(choices, options.seed, number)
        progress.note(number, call)
        if not number % ARMED_FOR and number > options.start:
            faulthandler.dump_traceback_later(ALARM * options.timeout, exit=True)
        begun = time.monotonic()
        found = came_to(call, names, heard, options.words)
        took = time.monotonic() - begun
        slowest = max(slowest, (took, call.text))
        if settings_of(torch) != before:
            found = f"setting changed: {settings_of(torch)}"
        if found is None:
            continue
        same = (call.target.name, found.partition(":")[0])
        if same in seen:
            continue
        seen.add(same)
        if not found.startswith("setting"):
            call, found = shortened(call, found, names, heard, options)
        report.write(json.dumps([number, call.target.name, found, call.text, place_of(call.text, names)]) + "\n")
        report.flush()
        if found.startswith("setting"):
            return 3
    faulthandler.cancel_dump_traceback_later()
    report.write(json.dumps(["done", *slowest]) + "\n")
    report.flush()
    return 0


def shortened(call: Call, found: str, names: dict[str, Any], heard: list[str], options: argparse.Namespace) -> tuple[Call, str]:
    """The shortest call of the same target that comes to the same kind of finding."""
    kind = found.partition(":")[0]
    for _ in range(30):
        for candidate in simpler(call):
            faulthandler.dump_traceback_later(options.timeout, exit=True)
            again = came_to(candidate, names, heard, options.words)
            if again is not None and again.partition(":")[0] == kind:
                call, found = candidate, again
                break
        else:
            break
    return call, found


def try_lines(options: argparse.Namespace) -> int:
    """Runs lines, each in a process of its own, and says what each came to."""
    names = namespace(options.package)
    for line in sys.stdin.read().splitlines():
        reading, writing = os.pipe()
        pid = os.fork()
        if not pid:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            limit_memory(MEMORY)
            signal.alarm(int(options.timeout) + 1)
            warnings.simplefilter("ignore")
            try:
                text = f"result {type(eval(line, names)).__name__}"
            except BaseException as error:
                text = f"{type(error).__name__}: {_first_line(str(error))}"
            os.write(writing, text.encode(errors="replace"))
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading, "rb") as pipe:
            answer = pipe.read().decode()
        _, status = os.waitpid(pid, 0)
        print(json.dumps(answer or f"signal {status & 127}"), flush=True)
    return 0


# ---------------------------------------------------------------- the parent


@dataclass
class Finding:
    number: int
    target: str
    kind: str
    line: str
    place: str


class Run:
    """Chunks of calls in child processes, and what they found."""

    def __init__(self, seed: int, only: list[str] | None = None, timeout: float = 10.0, words: bool = False) -> None:
        self.seed, self.only, self.timeout, self.words = seed, only or [], timeout, words
        self.findings: list[Finding] = []
        self.agreed: list[Finding] = []  # findings that torch answers with the same exception
        self.calls = 0
        self.slowest: tuple[float, str] = (0.0, "")
        self._seen: set[tuple[str, str]] = set()

    def _command(self, start: int, stop: int, progress: str) -> list[str]:
        only = ["--only", *self.only] if self.only else []
        only += ["--words"] if self.words else []
        numbers = ["--seed", str(self.seed), "--start", str(start), "--stop", str(stop), "--timeout", str(self.timeout)]
        return [sys.executable, str(HERE), "--child", "--progress", progress, "--package", "mindtorch_v2", *numbers, *only]

    def chunk(self, start: int, stop: int) -> Iterator[Finding]:
        """Runs calls `start` to `stop`, in as many processes as it takes, and gives the new findings."""
        while start < stop:
            with tempfile.TemporaryDirectory() as folder:
                progress = Progress.begin(folder, start)
                ended = run_process(self._command(start, stop, progress), folder)
                last, target, line = Progress.read(progress)
            done = False
            for written in ended.stdout.splitlines():
                row = json.loads(written)
                if row[0] == "done":
                    done = True
                    self.slowest = max(self.slowest, (row[1], row[2]))
                elif (row[1], row[2].partition(":")[0]) not in self._seen:
                    self._seen.add((row[1], row[2].partition(":")[0]))
                    yield Finding(*row)
            self.calls += (stop if done else last + 1) - start
            if done:
                return
            late = "Timeout (" in ended.stderr
            if ended.returncode != 3 and not (late and not self._dies(last, last + 1)):  # late alone: not the calls before it
                yield self._death(start, last, target, line, ended)
            start = last + 1

    def _death(self, start: int, last: int, target: str, line: str, ended: subprocess.CompletedProcess[str]) -> Finding:
        """The finding for a child that died in the call `last`: alone if that is enough, else with the calls before it."""
        how = f"signal {-ended.returncode}" if ended.returncode < 0 else f"exit status {ended.returncode}"
        if "Timeout (" in ended.stderr:
            how = f"longer than {self.timeout:g} s"
        place = " | ".join(re.findall(r'File ".*?([^/]*", line \d+ in \w+)', ended.stderr)[:6]) or ended.stderr[-500:]
        first = last
        while first > start and not self._dies(first, last + 1):
            first = max(start, last - 2 * (last - first) - 1)
        while last - first > 1 and self._dies((first + last + 1) // 2, last + 1):
            first = (first + last + 1) // 2
        needed = "" if first == last else f", only after calls {first} to {last - 1} of seed {self.seed}"
        if not needed and ended.returncode < 0:
            line = self._shortest_crash(last)
        return Finding(last, target, f"died: {how}{needed}", line, place)

    def _shortest_crash(self, number: int) -> str:
        call = random_call(chosen_targets(namespace("mindtorch_v2")["torch"], self.only), self.seed, number)
        for _ in range(30):
            shorter = list(simpler(call))
            answers = ask(sys.executable, "mindtorch_v2", [each.text for each in shorter], self.timeout)
            crashing = [each for each, answer in zip(shorter, answers, strict=True) if answer.startswith("signal")]
            if not crashing:
                break
            call = crashing[0]
        return call.text

    def _dies(self, start: int, stop: int) -> bool:
        with tempfile.TemporaryDirectory() as folder:
            return run_process(self._command(start, stop, Progress.begin(folder, start)), folder).returncode not in (0, 3)


def run_process(command: list[str], folder: str, text: str = "") -> subprocess.CompletedProcess[str]:
    """Runs a child in a folder of its own; on one core, since chunks are what is run beside each other."""
    paths = [str(Path(path).resolve()) for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(paths)}
    return subprocess.run(command, capture_output=True, text=True, errors="replace", cwd=folder, env=environment, input=text)


def ask(python: str, package: str, lines: list[str], timeout: float = 10) -> list[str]:
    """What each line comes to in another package, as `try_lines` says it."""
    with tempfile.TemporaryDirectory() as folder:
        command = [python, str(HERE), "--lines", "--package", package, "--timeout", str(timeout)]
        ended = run_process(command, folder, "\n".join(lines) + "\n")
    if ended.returncode:
        raise RuntimeError(ended.stderr[-2000:])
    return [json.loads(line) for line in ended.stdout.splitlines()]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="end after the chunk in which they are over")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--start", type=int, default=0, help="the number of the first call")
    parser.add_argument("--only", nargs="+", default=[], metavar="PATTERN")
    parser.add_argument("--timeout", type=float, default=10.0, help="seconds for one call")
    parser.add_argument("--torch", metavar="PYTHON", help="an interpreter with PyTorch")
    parser.add_argument("--words", action="store_true", help="messages in NumPy's words are findings as well")
    parser.add_argument("--try", nargs="+", dest="lines_to_try", metavar="LINE")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--lines", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--stop", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--progress", help=argparse.SUPPRESS)
    parser.add_argument("--package", default="mindtorch_v2", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        return child(options)
    if options.lines:
        return try_lines(options)
    if options.lines_to_try:
        for line, here in zip(options.lines_to_try, ask(sys.executable, options.package, options.lines_to_try), strict=True):
            there = f"\n    torch: {ask(options.torch, 'torch', [line])[0]}" if options.torch else ""
            print(f"{line}\n    here:  {here}{there}")
        return 0
    return fuzz(options)


def fuzz(options: argparse.Namespace) -> int:
    run = Run(options.seed, options.only, options.timeout, options.words)
    begun = time.monotonic()
    start = options.start
    print(f"seed {options.seed}", flush=True)
    while start < options.start + options.calls and time.monotonic() - begun < options.seconds:
        stop = min(start + CHUNK, options.start + options.calls)
        found = list(run.chunk(start, stop))
        there = (
            ask(options.torch, "torch", [finding.line for finding in found]) if options.torch and found else [""] * len(found)
        )
        for finding, answer in zip(found, there, strict=True):
            if answer.partition(":")[0] == finding.kind.partition(":")[0]:
                run.agreed.append(finding)
                continue
            run.findings.append(finding)
            shown = f"\n    torch: {answer}" if answer else ""
            print(f"#{finding.number} {finding.kind}\n    {finding.line}\n    at {finding.place}{shown}", flush=True)
        start = stop
        print(f"{run.calls:,} calls in {time.monotonic() - begun:.0f} s", flush=True)
    took = time.monotonic() - begun
    for finding in run.agreed:
        print(f"as in torch: {finding.kind}\n    {finding.line}")
    print(
        f"{run.calls:,} calls in {took:.0f} s, {len(run.findings)} findings; slowest {run.slowest[0]:.1f} s: {run.slowest[1]}"
    )
    return 1 if run.findings else 0


if __name__ == "__main__":
    sys.exit(main())
