"""Files are written whole or not at all, with the permissions that open() would give them, where they were asked for."""

from __future__ import annotations

import ast
import os
import pty
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from file_names import skip_if_impossible

import mindtorch_v2 as torch
from mindtorch_v2._core.files import name_in_folder, path_in_folder, write_whole
from mindtorch_v2.profiler import profile, tensorboard_trace_handler
from mindtorch_v2.utils.tensorboard import SummaryWriter

SOURCE = Path(torch.__file__).parent


def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


def run_python(code, *args, **options):
    return subprocess.run([sys.executable, "-c", code, *map(str, args)], capture_output=True, text=True, check=True, **options)


# ------------------------------------------------------------------------------ permissions


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077, 0o027])
def test_a_new_file_has_the_permissions_of_open(tmp_path, umask):
    code = (
        "import os, sys; from mindtorch_v2._core.files import write_whole; os.umask(int(sys.argv[1]));"
        "open(sys.argv[2] + '/plain', 'w').close(); write_whole(sys.argv[2] + '/whole', [b'x'])"
    )
    run_python(code, umask, tmp_path)
    assert mode(tmp_path / "whole") == mode(tmp_path / "plain") == 0o666 & ~umask


@pytest.mark.parametrize("kept", [0o600, 0o640, 0o666, 0o755])
def test_a_file_that_exists_keeps_its_permissions(tmp_path, kept):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(kept)
    write_whole(path, [b"new"])
    assert path.read_bytes() == b"new" and mode(path) == kept


def test_what_replaces_a_private_file_is_never_public(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(0o600)
    seen = []

    def blocks():
        seen.extend(mode(one) for one in tmp_path.iterdir())
        yield b"new"

    write_whole(path, blocks())
    assert seen == [0o600, 0o600]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_a_file_that_exists_keeps_its_owner(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    os.chown(path, 12, 34)
    write_whole(path, [b"new"])
    assert (path.stat().st_uid, path.stat().st_gid) == (12, 34)


def test_no_module_sets_the_umask():
    """It belongs to the process: files that other threads make meanwhile would have it."""
    calls = [
        f"{path.name}:{node.lineno}"
        for path in SOURCE.rglob("*.py")
        if "umask" in (text := path.read_text(encoding="utf-8"))
        for node in ast.walk(ast.parse(text))
        if (isinstance(node, ast.Attribute) and node.attr == "umask") or (isinstance(node, ast.Name) and node.id == "umask")
    ]
    assert calls == []


# What may open a file to write, and why it is not write_whole(); everything else that writes for a user goes through that.
WRITERS = {
    "_core/files.py": "the writer",
    "_core/untyped_storage.py": "a file that is mapped grows",
    "distributed/_store/stores.py": "a file by which processes meet: each change is at its end",
    "_core/shared_memory.py": "memory that processes share, where the system has it as a temporary file",
    "multiprocessing/spawn.py": "a temporary file with what a process raised",
    "serialization.py": "the file that torch.save's caller opened for a block of its own",
    "profiler/retention/stream_file.py": "a recording that is streamed",
    "profiler/formats/detect.py": "a temporary file for what comes out of a pipe",
    "profiler/live/group_statistics.py": "a line more of a file that grows while a job runs",
    "profiler/ranks/recorded_rows.py": "a temporary copy of a remote file",
    "profiler/session/execution_trace.py": "the name of a temporary file",
    "profiler/cli/main.py": "the null device in place of a closed pipe",
    "utils/tensorboard/writer.py": "an event file that stays open",
}
_OPENERS = {"open", "mkstemp", "NamedTemporaryFile", "TemporaryFile", "write_text", "write_bytes", "tofile", "replace"}


def _writes(call):
    """Whether a call opens a file to write, or writes one."""
    function = call.func
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    owner = function.value.id if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) else ""
    if name == "replace":
        return owner == "os"
    if name == "open" and owner in ("", "io"):
        modes = [word.value for word in call.keywords if word.arg == "mode"] + call.args[1:2]
        return any(set(str(getattr(given, "value", "w"))) & set("wax+") for given in modes)
    return name in _OPENERS and (name != "open" or owner == "os")


def test_there_is_one_writer_of_files():
    found = {
        str(path.relative_to(SOURCE))
        for path in SOURCE.rglob("*.py")
        if any(isinstance(node, ast.Call) and _writes(node) for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    }
    assert found == set(WRITERS)


def _in_the_encoding_of_the_locale(call):
    """Whether a call reads or writes text and does not say how it is encoded."""
    function = call.func
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    keywords = {word.arg: word.value for word in call.keywords}
    if "encoding" in keywords:
        return False
    if name in ("read_text", "write_text"):
        return len(call.args) < (1 if name == "read_text" else 2)
    if name in ("run", "Popen", "check_output"):
        return bool({"text", "universal_newlines"} & set(keywords))
    if name == "open" and isinstance(function, ast.Name):
        mode = keywords.get("mode", call.args[1] if len(call.args) > 1 else ast.Constant("r"))
        return isinstance(mode, ast.Constant) and "b" not in mode.value
    return False


def test_text_is_read_and_written_alike_in_every_locale():
    """Under LANG=C, or an old Latin-1 locale, what is read would else be refused or be other characters."""
    calls = [
        f"{path.relative_to(SOURCE)}:{node.lineno}"
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and _in_the_encoding_of_the_locale(node)
    ]
    assert calls == []


# ------------------------------------------------------------------------------ places

NAMES = {
    "255 bytes": "x" * 255,
    "255 bytes of wide characters": "\u6f22" * 85,
    "newline": "a\nb",
    "escape": "a\x1b[31mb",
    "not UTF-8": os.fsdecode(b"a\xffb"),
    "spaces": " a ",
    "dots": "...",
    "dash": "-rf",
    "hidden": ".x",
}


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
@pytest.mark.parametrize("kind", [str, Path, os.fsencode])
def test_every_name_that_open_takes_is_written(tmp_path, name, kind):
    skip_if_impossible(name)
    for content in (b"first", b"second"):
        write_whole(kind(str(tmp_path / name)), [content])
        assert os.listdir(tmp_path) == [name] and (tmp_path / name).read_bytes() == content


@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("", FileNotFoundError),
        ("no/such/file", FileNotFoundError),
        ("folder", IsADirectoryError),
        ("folder/", IsADirectoryError),
        ("new/", IsADirectoryError),
        ("x" * 256, OSError),
        ("file/below", NotADirectoryError),
        ("loop", OSError),
        ("a\0b", ValueError),
    ],
)
def test_what_open_refuses_is_refused(tmp_path, monkeypatch, path, error):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("old")
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(error) as plain, open(path, "w"):
        pass
    with pytest.raises(error) as caught:
        write_whole(path, [b"new"])
    assert getattr(caught.value, "errno", None) == getattr(plain.value, "errno", None)
    assert error is ValueError or caught.value.filename == path
    assert sorted(os.listdir(tmp_path)) == ["file", "folder", "loop"] and (tmp_path / "file").read_text() == "old"


@pytest.mark.parametrize("target", ["real", "missing"])
def test_the_end_of_a_link_is_written(tmp_path, target):
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to(target)
    write_whole(tmp_path / "link", [b"new"])
    assert (tmp_path / "link").is_symlink() and (tmp_path / target).read_text() == "new"


def test_a_pipe_is_written(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    got = []
    reader = threading.Thread(target=lambda: got.append(path.read_bytes()))
    reader.start()
    write_whole(path, [b"a", b"b"])
    reader.join()
    assert got == [b"ab"] and os.listdir(tmp_path) == ["pipe"]


def test_a_device_stays_a_device():
    """A terminal of the test's own: a fault must not take a device from the machine."""
    master, slave = pty.openpty()
    try:
        name = os.ttyname(slave)
        write_whole(name, [b"x"])
        assert stat.S_ISCHR(os.stat(name).st_mode) and os.read(master, 10) == b"x"
    finally:
        os.close(master)
        os.close(slave)


def test_checkpoints_follow_links_too(tmp_path):
    (tmp_path / "real.pt").write_text("old")
    (tmp_path / "link.pt").symlink_to("real.pt")
    torch.save(torch.ones(2), tmp_path / "link.pt")
    assert (tmp_path / "link.pt").is_symlink() and torch.load(tmp_path / "real.pt").tolist() == [1, 1]


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
@pytest.mark.parametrize("redirected", ["wb", "ab"])
def test_standard_output_is_written_where_it_stands(tmp_path, name, redirected):
    path = tmp_path / "out"
    path.write_bytes(b"old ")
    code = (
        "import sys; from mindtorch_v2._core.files import write_whole; print('before', flush=True);"
        "write_whole(sys.argv[1], [b'whole ']); print('after')"
    )
    with open(path, redirected) as stream:
        subprocess.run([sys.executable, "-c", code, name], stdout=stream, check=True)
    assert path.read_bytes() == (b"old " if redirected == "ab" else b"") + b"before\nwhole after\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="drops root's rights to see what others get")
@pytest.mark.parametrize("locked", ["folder", "file"])
def test_what_may_not_be_written_stays(tmp_path, locked):
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "file").write_text("old")
    for path in (tmp_path, tmp_path.parent, tmp_path.parent.parent):
        path.chmod(0o755)
    (folder / "file").chmod(0o666 if locked == "folder" else 0o444)
    folder.chmod(0o555 if locked == "folder" else 0o777)
    code = (
        "import os, sys; from mindtorch_v2._core.files import write_whole\n"
        "os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        "try: write_whole(sys.argv[1], [b'new'])\n"
        "except PermissionError as error: print(error.filename)"
    )
    assert run_python(code, folder / "file").stdout.strip() == str(folder / "file")
    assert [(one.name, one.read_text()) for one in folder.iterdir()] == [("file", "old")]


def test_saving_to_one_path_from_many_threads_leaves_a_whole_file(tmp_path):
    path, failures = tmp_path / "model.pt", []

    def work(number):
        try:
            for _ in range(20):
                torch.save(torch.full((100,), float(number)), path)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures and len(torch.load(path).unique()) == 1 and os.listdir(tmp_path) == ["model.pt"]


def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "model.pt"
    torch.save(torch.ones(2), path)

    def interrupted(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        torch.save(torch.zeros(2), path)
    assert os.listdir(tmp_path) == ["model.pt"] and torch.load(path).tolist() == [1, 1]


# ------------------------------------------------------------------------------ names that become part of a path

OUTSIDE = ["../outside", "..", ".", "a/b", "/absolute", "a\\b", "a\0b"]


@pytest.mark.parametrize("name", [*OUTSIDE, ""])
def test_a_name_stays_in_its_folder(name):
    with pytest.raises(ValueError, match=r"^worker becomes part"):
        name_in_folder(name, "worker")


@pytest.mark.parametrize("name", ["../outside", "a/../../b", "..", "/absolute", "\\absolute", "a\\..\\..\\b", "a\0b", ""])
def test_a_path_stays_in_its_folder(tmp_path, name):
    with pytest.raises(ValueError, match="must not lead out of there"):
        path_in_folder(str(tmp_path), name, "tag")


@pytest.mark.parametrize("name", ["a", "a/b", "..a", "a..b", "a/../b", "./a"])
def test_a_path_may_have_folders(tmp_path, name):
    assert path_in_folder(str(tmp_path), name, "tag") == os.path.join(tmp_path, name)


@pytest.mark.parametrize("name", OUTSIDE)
def test_tensorboard_files_stay_in_their_folder(tmp_path, name):
    inside = tmp_path / "inside"
    with pytest.raises(ValueError, match="worker_name"):
        tensorboard_trace_handler(str(inside), worker_name=name)
    with pytest.raises(ValueError, match="filename_suffix"):
        SummaryWriter(str(inside), filename_suffix=name)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["/../../outside", "x/../../outside"])
def test_runs_stay_in_their_folder(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="comment"):
        SummaryWriter(comment=name)
    assert not list(tmp_path.iterdir())
    with SummaryWriter(str(tmp_path / "inside")) as writer, pytest.raises(ValueError, match="tag"):
        writer.add_scalars("loss", {name: 1.0})
    assert os.listdir(tmp_path) == ["inside"]


def test_an_empty_worker_name_is_none_given(tmp_path):
    """As in torch."""
    with profile(on_trace_ready=tensorboard_trace_handler(str(tmp_path), worker_name="")):
        torch.ones(2)
    assert str(os.getpid()) in os.listdir(tmp_path)[0]
