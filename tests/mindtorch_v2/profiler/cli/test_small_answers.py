"""mtprof's answers to wrong sort keys and to --version."""

from __future__ import annotations

import os
from importlib import metadata

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.profiler.cli.commands.table import SORT_KEYS
from mindtorch_v2.profiler.cli.main import main

TRACE = os.path.join(os.path.dirname(__file__), "..", "fixtures", "mlp_everything.json.gz")


@pytest.mark.parametrize("key", ["bogus", "cpu_children", "add"])
def test_a_wrong_sort_key_is_told_the_right_ones(capsys, key):
    assert main(["table", TRACE, "--sort", key]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == f"mtprof table: cannot sort by {key!r}, only by {', '.join(SORT_KEYS)}\n"


@pytest.mark.parametrize("option", ["--sort", "--sort-by"])
@pytest.mark.parametrize("key", [key for key in SORT_KEYS if "device_time" not in key])
def test_the_keys_that_are_told_are_right(capsys, key, option):
    assert main(["table", TRACE, option, key, "-n", "3"]) == 0
    assert "Self CPU time total" in capsys.readouterr().out


@pytest.mark.parametrize("installed", ["1.2.3", None])
def test_version(capsys, monkeypatch, installed):
    def version(name):
        assert name == "mindtorch_v2"
        if installed is None:
            raise metadata.PackageNotFoundError(name)
        return installed

    monkeypatch.setattr(metadata, "version", version)
    assert main(["--version"]) == 0
    own = installed or "(not installed)"
    assert capsys.readouterr().out == f"mtprof of mindtorch_v2 {own}, which follows torch {torch.__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "code", "answer"),
    [
        (["tabel", "x"], 2, "mtprof: there is no command 'tabel': did you mean `table`?\n"),
        (["flps"], 2, "mtprof: there is no command 'flps': did you mean `flops`?\n"),
        ([TRACE], 2, f"mtprof: there is no command {TRACE!r}: to read that file: `mtprof table {TRACE}`; "),
        (["zzzz"], 2, "mtprof: there is no command 'zzzz': there are advice, "),
        (["table", "{empty}"], 3, "mtprof table: {empty}: '{empty}' is empty: nothing was written to it\n"),
        (["events", TRACE, "--step", "99"], 2, "mtprof events: nothing was recorded in step 99: all of it is step 0\n"),
        *(
            (
                ["table", TRACE, "--sort", key],
                2,
                f"mtprof table: cannot sort by {key!r}: no work of a device was recorded, only that of the CPU\n",
            )
            for key in ("cuda_time_total", "self_npu_time_total", *(key for key in SORT_KEYS if "device_time" in key))
        ),
    ],
)
def test_a_wrong_usage_is_told_what_is_right(capsys, tmp_path, arguments, code, answer):
    (empty := tmp_path / "empty.json").touch()
    assert main([argument.format(empty=empty) for argument in arguments]) == code
    printed = capsys.readouterr()
    assert printed.out == "" and printed.err.startswith(answer.format(empty=empty))
