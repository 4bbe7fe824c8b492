"""Generated code is compiled once: the file that keeps it, when it is written, and what is not trusted. Counted, not timed."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import threading
import traceback
from importlib.util import MAGIC_NUMBER
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

import mindtorch_v2 as torch
from mindtorch_v2._core import code_cache

PACKAGE = Path(torch.__file__).parent
SOURCE = "def outer(x):\n    def inner(y):\n        return y / x\n    return inner\n"
OTHER = "def outer(x):\n    return x + 1\n"

# A step of training, and a recording with shapes; says how often each ran the compiler, and what came out.
PROGRAM = """
import builtins, json, sys
import mindtorch_v2 as torch
from mindtorch_v2 import nn
from mindtorch_v2.profiler import profile
counts, compile_it = [0], builtins.compile
def counting(*args, **kwargs):
    counts[0] += 1
    return compile_it(*args, **kwargs)
builtins.compile = counting
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 3), nn.GELU(), nn.Linear(3, 2))
optimizer = torch.optim.AdamW(net.parameters())
with profile(record_shapes=True) as recorded:
    loss = nn.functional.cross_entropy(net(torch.ones(5, 4)), torch.tensor([0, 1, 0, 1, 1]))
    loss.backward()
    optimizer.step()
names = sorted({event.key for event in recorded.key_averages(group_by_input_shape=True)})
print(json.dumps([counts[0], loss.item(), names]))
"""


class Process:
    """Runs the program in processes whose bytecode is in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(folder), "PYTHONPATH": str(PACKAGE.parent)}
        self.environment.pop("PYTHONDONTWRITEBYTECODE", None)

    @property
    def file(self) -> Path:
        (found,) = self.folder.rglob("generated.*")
        return found

    def start(self, *options: str) -> subprocess.Popen[str]:
        command = [sys.executable, *options, "-c", PROGRAM]
        return subprocess.Popen(command, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    @staticmethod
    def outcome(process: subprocess.Popen[str]) -> tuple[int, list[object]]:
        """How often a process compiled, and its results."""
        printed, errors = process.communicate()
        assert (process.returncode, errors) == (0, "")
        count, *results = json.loads(printed)
        return count, results

    def run(self, *options: str) -> tuple[int, list[object]]:
        return self.outcome(self.start(*options))


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Process, int, list[object]]:
    """Processes of which one has run: how often it compiled, and its results."""
    process = Process(tmp_path_factory.mktemp("bytecode"))
    return process, *process.run()


def test_a_second_process_compiles_nothing_and_computes_the_same(filled: tuple[Process, int, list[object]]) -> None:
    process, count, results = filled
    assert count > 40
    before = process.file.stat()
    assert process.run() == (0, results)
    after = process.file.stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns), "written without need"


def test_the_file_names_no_folder(filled: tuple[Process, int, list[object]]) -> None:
    assert str(PACKAGE).encode() not in filled[0].file.read_bytes()


def test_each_level_of_optimization_has_its_file(tmp_path: Path) -> None:
    process = Process(tmp_path)
    for option in ("-O", "-OO"):
        assert process.run(option)[0] > 40
        assert process.run(option)[0] == 0
    assert len(list(tmp_path.rglob("generated.*"))) == 2


def test_many_processes_at_once_leave_a_whole_file(tmp_path: Path) -> None:
    process = Process(tmp_path)
    for started in [process.start() for _ in range(4)]:
        assert process.outcome(started)[0] > 0
    assert process.run()[0] == 0
    assert not list(tmp_path.rglob("*.part"))


@pytest.mark.parametrize("option", ["-B", "PYTHONDONTWRITEBYTECODE"])
def test_nothing_is_written_where_python_may_write_no_bytecode(tmp_path: Path, option: str) -> None:
    process = Process(tmp_path / "bytecode")
    process.environment |= {"XDG_CACHE_HOME": str(tmp_path / "cache"), "HOME": str(tmp_path / "home")}
    if not option.startswith("-"):
        process.environment[option] = "1"
    count, results = process.run(*[option] if option.startswith("-") else [])
    assert count > 40 and not list(tmp_path.iterdir())


def test_a_file_is_read_where_none_may_be_written(filled: tuple[Process, int, list[object]]) -> None:
    process, _, results = filled
    assert process.run("-B") == (0, results)


# ---------------------------------------------------------------- one process, as if it began and ended several times


class Lives:
    """Begins and ends the life of the cache in this process; counts what is compiled in between."""

    def __init__(self, patch: pytest.MonkeyPatch, package: Path, home: Path) -> None:
        self.patch = patch
        self.compiled: list[str] = []
        self.read = code_cache._stored.__wrapped__
        patch.setattr(code_cache, "_PACKAGE", str(package))
        patch.setattr(code_cache, "compile", self._compile, raising=False)
        patch.setattr(sys, "pycache_prefix", None)
        patch.setattr(sys, "dont_write_bytecode", False)
        patch.setenv("XDG_CACHE_HOME", str(home))
        patch.setattr(code_cache.atexit, "register", lambda function: None)

    def _compile(self, source: str, *args: object, **options: object) -> CodeType:
        self.compiled.append(source)
        return compile(source, *args, **options)  # type: ignore[call-overload, no-any-return]

    def begin(self) -> None:
        self.patch.setattr(code_cache, "_stored", functools.cache(self.read))
        self.patch.setattr(code_cache, "_new", {})
        self.patch.setattr(code_cache, "_used", {})
        self.compiled = []

    def live(self, *sources: str) -> int:
        """A life that needs these pieces, and ends; how many of them it compiled."""
        self.begin()
        for source in sources:
            code_cache.compiled(source, "<piece>")
        if self.compiled:
            code_cache._save()
        return len(self.compiled)


@pytest.fixture
def package(tmp_path: Path) -> Path:
    return tmp_path / "package"


@pytest.fixture
def lives(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, package: Path) -> Lives:
    package.mkdir()
    return Lives(monkeypatch, package, tmp_path / "home")


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_the_file_is_beside_the_bytecode_of_this_python(lives: Lives, package: Path, tmp_path: Path) -> None:
    assert [lives.live(SOURCE), lives.live(SOURCE), lives.live(SOURCE, OTHER), lives.live(OTHER, SOURCE)] == [1, 0, 1, 0]
    (file,) = files(tmp_path)
    assert file.parent == package / "__pycache__" and f".{sys.implementation.cache_tag}." in file.name


DAMAGE = {
    "empty": lambda whole: b"",
    "a few bytes": lambda whole: whole[:7],
    "cut": lambda whole: whole[:-1],
    "longer": lambda whole: whole + b"\0",
    "one bit": lambda whole: whole[:40] + bytes([whole[40] ^ 1]) + whole[41:],
    "another Python": lambda whole: bytes(len(MAGIC_NUMBER)) + whole[len(MAGIC_NUMBER) :],
    "foreign": lambda whole: b"PK\x03\x04" + os.urandom(1000),
    "bytecode": lambda whole: MAGIC_NUMBER + bytes(12) + whole[12:],
    "too long": lambda whole: whole + bytes(2 * code_cache.LIMIT),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE.keys())
def test_a_damaged_file_is_ignored_and_replaced(lives: Lives, package: Path, damage) -> None:
    lives.live(SOURCE)
    (file,) = files(package)
    file.write_bytes(damage(file.read_bytes()))
    assert [lives.live(SOURCE), lives.live(SOURCE)] == [1, 0]


def test_another_folder_is_used_where_the_package_cannot_be_written(lives: Lives, package: Path, tmp_path: Path) -> None:
    lives.live(SOURCE)
    (file,) = files(package)
    file.chmod(0o444)
    (beside := package / "__pycache__").rename(tmp_path / "kept")
    beside.write_text("not a folder")
    assert [lives.live(OTHER), lives.live(OTHER)] == [1, 0]
    (of_user,) = files(tmp_path / "home")
    assert of_user == tmp_path / "home" / "mindtorch_v2" / file.name


def test_both_places_are_read(lives: Lives, package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lives.live(SOURCE)
    paths = code_cache._paths()
    monkeypatch.setattr(code_cache, "_paths", lambda: paths[1:])
    lives.live(OTHER)
    monkeypatch.setattr(code_cache, "_paths", lambda: paths)
    assert lives.live(SOURCE, OTHER) == 0


@pytest.mark.parametrize("value", ["", "relative/folder"])
def test_the_users_folder_is_absolute(lives: Lives, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", value)
    monkeypatch.setenv("HOME", str(tmp_path / "someone"))
    assert Path(code_cache._paths()[1]).is_relative_to(tmp_path / "someone" / ".cache")
    monkeypatch.setenv("HOME", "nowhere")
    assert len(code_cache._paths()) == 1


@pytest.mark.parametrize("place, compiled", [(0, 0), (1, 1)])
def test_a_file_of_somebody_else_is_taken_beside_the_bytecode_alone(lives: Lives, monkeypatch, place, compiled) -> None:
    paths = code_cache._paths()[place:][:1]
    monkeypatch.setattr(code_cache, "_paths", lambda: paths)
    lives.live(SOURCE)
    monkeypatch.setattr(os, "geteuid", lambda: 54321)
    lives.begin()
    code_cache.compiled(SOURCE, "<piece>")
    assert len(lives.compiled) == compiled


def test_no_place_at_all_is_no_error(lives: Lives, package: Path, tmp_path: Path) -> None:
    (package / "__pycache__").write_text("not a folder")
    (tmp_path / "home").write_text("not a folder")
    assert [lives.live(SOURCE), lives.live(SOURCE)] == [1, 1]


def test_a_python_that_caches_no_bytecode(lives: Lives, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.implementation, "cache_tag", None)
    assert [lives.live(SOURCE), lives.live(SOURCE)] == [1, 1]
    assert not files(tmp_path)


def test_what_another_process_wrote_meanwhile_is_kept(lives: Lives) -> None:
    lives.live("x = 0")
    lives.begin()
    code_cache.compiled(SOURCE, "<piece>")
    ours = {name: getattr(code_cache, name) for name in ("_stored", "_new", "_used")}
    lives.live(OTHER)
    for name, value in ours.items():
        lives.patch.setattr(code_cache, name, value)
    code_cache._save()
    assert lives.live("x = 0", SOURCE, OTHER) == 0


def test_the_file_has_a_limit_and_what_is_in_use_stays(lives: Lives, package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code_cache, "LIMIT", 5000)
    first = [f"x = {i}" for i in range(10)]
    lives.live(*first)
    for i in range(100):
        lives.live(*first, f"y = {i}")
    (file,) = files(package)
    assert 4000 < file.stat().st_size < 7000
    assert lives.live(*first, "y = 99") == 0
    assert lives.live("y = 0") == 1


def test_equal_pieces_are_compiled_once_and_have_their_own_names(lives: Lives) -> None:
    lives.begin()
    first, second = code_cache.compiled(SOURCE, "<first>"), code_cache.compiled(SOURCE, "<second>")
    assert len(lives.compiled) == 1
    assert (filenames(first), filenames(second)) == ({"<first>"}, {"<second>"})


def filenames(code: CodeType) -> set[str]:
    return {code.co_filename}.union(*(filenames(inner) for inner in code.co_consts if isinstance(inner, CodeType)))


def test_code_is_as_if_compiled_now(lives: Lives) -> None:
    lives.live(SOURCE)
    lives.begin()
    kept, now = code_cache.compiled(SOURCE, "<piece>"), compile(SOURCE, "<piece>", "exec", dont_inherit=True)
    assert kept == now and filenames(kept) == filenames(now) == {"<piece>"}
    assert [frame_of(kept), frame_of(now)] == [("<piece>", 3, "inner")] * 2


def frame_of(code: CodeType) -> tuple[str, int | None, str]:
    """Where an error inside of the piece is said to be."""
    space: dict[str, Any] = {}
    exec(code, space)
    try:
        space["outer"](0)(1)
    except ZeroDivisionError as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        return last.filename, last.lineno, last.name
    raise AssertionError


def test_threads_may_all_be_first(lives: Lives) -> None:
    lives.live(SOURCE)
    lives.begin()
    results: list[CodeType] = []
    start = threading.Barrier(8)

    def first() -> None:
        start.wait()
        results.extend(code_cache.compiled(source, "<piece>") for source in (SOURCE, OTHER))

    threads = [threading.Thread(target=first) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 16 and set(lives.compiled) == {OTHER}
    code_cache._save()
    assert lives.live(SOURCE, OTHER) == 0


def test_a_forked_process_writes_what_it_compiled(lives: Lives) -> None:
    lives.begin()
    code_cache.compiled(SOURCE, "<piece>")
    child = os.fork()
    if not child:
        try:
            code_cache.compiled(OTHER, "<piece>")
            code_cache._save()
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    code_cache._save()
    assert lives.live(SOURCE, OTHER) == 0
