"""Traces that commands have read are kept: the second command parses nothing, and answers the same."""

import gzip
import os
import shutil

import pytest

from mindtorch_v2.profiler.cli.main import main
from mindtorch_v2.profiler.formats import cache, kineto


@pytest.fixture
def trace(fixtures, tmp_path, monkeypatch):
    """A trace large enough to be kept, and a folder to keep it in."""
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "kept"))
    path = tmp_path / "t.json"
    path.write_bytes(gzip.decompress((fixtures / "gpt_steps.json.gz").read_bytes()))
    assert path.stat().st_size > cache._LEAST_BYTES
    return path


@pytest.fixture
def parsed(monkeypatch):
    """The paths that were parsed as traces."""
    found, read = [], kineto.read
    monkeypatch.setattr(kineto, "read", lambda path, *more: found.append(os.fspath(path)) or read(path, *more))
    return found


def answer(capsys, *command):
    code = main([str(part) for part in command])
    return code, capsys.readouterr().out


def kept(tmp_path):
    return sorted((tmp_path / "kept").glob("*")) if (tmp_path / "kept").exists() else []


def test_the_second_command_parses_nothing(trace, parsed, tmp_path, capsys):
    first = answer(capsys, "table", trace, "-n", "-1")
    assert len(parsed) == 1 and len(kept(tmp_path)) == 1
    assert answer(capsys, "table", trace, "-n", "-1") == first and first[0] == 0
    converted = [tmp_path / "a.json", tmp_path / "b.json"]
    for path in converted:
        answer(capsys, "convert", trace, "--to", "chrome", "-o", path)
        shutil.rmtree(tmp_path / "kept", ignore_errors=True)  # the first is of what was kept, the second of the trace
    assert len(parsed) == 2
    one, two = (path.read_text().replace(path.name, "") for path in converted)
    assert one == two


def test_a_changed_file_is_read_again(trace, parsed, capsys):
    answer(capsys, "events", trace, "-n", "1")
    os.utime(trace, ns=(1, 1))
    answer(capsys, "events", trace, "-n", "1")
    assert len(parsed) == 2


@pytest.mark.parametrize("value", ["off", "", "0"])
def test_it_can_be_turned_off(trace, parsed, tmp_path, capsys, monkeypatch, value):
    monkeypatch.setenv(cache.VARIABLE, value)
    for _ in range(2):
        assert answer(capsys, "events", trace, "-n", "1")[0] == 0
    assert len(parsed) == 2 and not kept(tmp_path)


def test_what_was_not_read_whole_is_not_kept(trace, parsed, tmp_path, capsys):
    trace.write_bytes(trace.read_bytes()[:-20_000])
    for _ in range(2):
        assert main(["events", str(trace), "-n", "1"]) == 0
        assert "cut off" in capsys.readouterr().err
    assert len(parsed) == 2 and not kept(tmp_path)


def test_damage_to_what_is_kept_costs_only_time(trace, parsed, tmp_path, capsys):
    first = answer(capsys, "table", trace)
    (path,) = kept(tmp_path)
    path.write_bytes(path.read_bytes()[:-100])
    assert answer(capsys, "table", trace) == first and len(parsed) == 2
    assert answer(capsys, "table", trace) == first and len(parsed) == 2  # it was written anew


def test_a_folder_that_cannot_be_written_changes_nothing(trace, parsed, tmp_path, capsys, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "file" / "inside"))
    for _ in range(2):
        assert answer(capsys, "events", trace, "-n", "1")[0] == 0
    assert len(parsed) == 2


def test_it_is_bounded(trace, tmp_path, capsys, monkeypatch):
    answer(capsys, "events", trace, "-n", "1")
    (first,) = kept(tmp_path)
    monkeypatch.setattr(cache, "MOST_BYTES", first.stat().st_size * 3 // 2)
    os.utime(first, ns=(1, 1))
    other = shutil.copy(trace, tmp_path / "other.json")
    answer(capsys, "events", other, "-n", "1")
    assert len(kept(tmp_path)) == 1 and first not in kept(tmp_path)


def test_small_traces_are_not_kept(fixtures, trace, tmp_path, capsys):
    answer(capsys, "events", fixtures / "gpu_by_hand.json", "-n", "1")
    assert not kept(tmp_path)
