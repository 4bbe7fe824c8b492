"""torchrun: the environment of processes, restarts, and what it tells of a process that failed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor

import pytest

from mindtorch_v2.distributed import run
from mindtorch_v2.distributed.elastic._rendezvous import Rendezvous, RendezvousSettings
from mindtorch_v2.distributed.elastic._streams import parse_streams
from mindtorch_v2.distributed.elastic.multiprocessing.errors import ChildFailedError, ProcessFailure, record

VARIABLES = ["RANK", "LOCAL_RANK", "GROUP_RANK", "ROLE_RANK", "ROLE_NAME", "LOCAL_WORLD_SIZE", "WORLD_SIZE", "GROUP_WORLD_SIZE"]
VARIABLES += ["ROLE_WORLD_SIZE", "MASTER_ADDR", "TORCHELASTIC_RESTART_COUNT", "TORCHELASTIC_MAX_RESTARTS"]
VARIABLES += ["TORCHELASTIC_USE_AGENT_STORE", "OMP_NUM_THREADS"]


def torchrun(folder, options, program, *args):
    script = folder / "train.py"
    script.write_text(textwrap.dedent(program))
    command = [sys.executable, "-m", "mindtorch_v2.distributed.run", *options, str(script), *args]
    environment = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    return subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment, check=False)


def test_processes_have_torchruns_environment_and_are_started_again(tmp_path):
    ended = torchrun(
        tmp_path,
        ["--standalone", "--nproc-per-node=2", "--max_restarts", "1", "--tee", "3", "--log-dir", str(tmp_path / "logs")],
        f"""
        import json, os, sys
        attempt = os.environ["TORCHELASTIC_RESTART_COUNT"]
        print(json.dumps([{{name: os.environ[name] for name in {VARIABLES}}}, sys.argv[1:]]))
        sys.exit(3 if (attempt, os.environ["RANK"]) == ("0", "1") else 0)
        """,
        "--epochs",
        "3",
    )
    assert ended.returncode == 0, ended.stderr
    (job,) = (tmp_path / "logs").iterdir()
    for rank in (0, 1):
        variables, args = json.loads((job / "1" / str(rank) / "stdout.log").read_text())
        assert args == ["--epochs", "3"]
        assert [variables[name] for name in VARIABLES] == [
            *(str(rank), str(rank), "0", str(rank), "default", "2", "2", "1", "2", "localhost"),
            *("1", "1", "True", "1"),
        ]
        assert f'[default{rank}]:[{{"RANK": "{rank}"' in ended.stdout
    assert "failed (exitcode: 3) local_rank: 1" in ended.stderr


def test_the_process_that_failed_first_is_named_with_its_traceback(tmp_path):
    ended = torchrun(
        tmp_path,
        ["--standalone", "--nproc-per-node=2"],
        """
        import os, time
        from mindtorch_v2.distributed.elastic.multiprocessing.errors import record

        @record
        def main():
            if os.environ["RANK"] == "1":
                raise ValueError("no batch left")
            time.sleep(60)

        main()
        """,
    )
    assert ended.returncode == 1
    told = ended.stderr.partition("Root Cause (first observed failure):")[2]
    assert "rank      : 1 (local_rank: 1)" in told and "ValueError: no batch left" in told
    assert "rank      : 0 (local_rank: 0)" in ended.stderr and "(SIGTERM)" in ended.stderr
    assert "train.py FAILED" in ended.stderr


def test_the_table_of_failures_is_that_of_torch(monkeypatch):
    monkeypatch.setattr("socket.getfqdn", lambda: "localhost")
    killed, ended = ProcessFailure(1, 8160, -9, "none"), ProcessFailure(0, 8159, -15, "none")
    killed.timestamp = ended.timestamp = 0
    time = killed.timestamp_isoformat()
    assert str(ChildFailedError("die.py", {1: killed, 0: ended})) == (
        "\n======================================================\ndie.py FAILED\n"
        "------------------------------------------------------\nFailures:\n[1]:\n"
        f"  time      : {time}\n  host      : localhost\n  rank      : 0 (local_rank: 0)\n"
        "  exitcode  : -15 (pid: 8159)  (SIGTERM)\n  error_file: <N/A>\n"
        "  traceback : Signal 15 (SIGTERM) received by PID 8159\n"
        "------------------------------------------------------\nRoot Cause (first observed failure):\n[0]:\n"
        f"  time      : {time}\n  host      : localhost\n  rank      : 1 (local_rank: 1)\n"
        "  exitcode  : -9 (pid: 8160)  (SIGKILL)\n  error_file: <N/A>\n"
        "  traceback : Signal 9 (SIGKILL) received by PID 8160\n"
        "======================================================"
    )


def test_record_writes_what_is_raised(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCHELASTIC_ERROR_FILE", str(tmp_path / "error.json"))

    @record
    def main():
        raise KeyError("weights")

    with pytest.raises(KeyError):
        main()
    failure = ProcessFailure(0, 1, 1, str(tmp_path / "error.json"))
    assert "KeyError: 'weights'" in failure.message and failure.error_file.endswith("error.json")


@pytest.mark.parametrize(
    "options, error, text",
    [
        (["--nnodes", "1:2:3"], RuntimeError, 'nnodes=1:2:3 is not in "MIN:MAX" format'),
        (["--nnodes", "2:1", "--rdzv-backend", "c10d"], AssertionError, "--nnodes 2:1"),
        (["--nproc-per-node", "many"], ValueError, "Unsupported nproc_per_node value: many"),
        (["--nproc-per-node", "gpu"], ValueError, "Cuda is not available."),
        (["--rdzv-backend", "etcd-v2"], ValueError, "etcd is not supported"),
        (["--rdzv-backend", "c10d", "--rdzv-endpoint", "host:port"], ValueError, "must be an integer"),
        (["--rdzv-conf", "paint=red"], ValueError, "unknown keys"),
        (["--redirects", "0:9"], ValueError, "does not match"),
        (["--no-python", "-m"], ValueError, "Don't use both"),
        (["--virtual-local-rank"], NotImplementedError, "virtual_local_rank"),
        (["--run-path"], NotImplementedError, "--run-path"),
        (["--numa-binding", "node"], NotImplementedError, "--numa-binding"),
        (["--event-log-handler", "console"], NotImplementedError, "event_log_handler"),
        (["--max-restarts", "-1"], AssertionError, "--max-restarts"),
    ],
)
def test_bad_options_are_refused_before_anything_starts(options, error, text, tmp_path):
    with pytest.raises(error, match=text.replace("[", r"\[")):
        run.run(run.parse_args(["--log-dir", str(tmp_path), *options, "train.py"]))


def test_options_come_from_the_environment_too(monkeypatch):
    monkeypatch.setenv("PET_NPROC_PER_NODE", "3")
    monkeypatch.setenv("PET_STANDALONE", "1")
    args = run.parse_args(["train.py", "--lr", "1"])
    assert (args.nproc_per_node, args.standalone, args.training_script_args) == ("3", True, ["--lr", "1"])
    assert parse_streams("0:1,1:2") == {0: 1, 1: 2} and parse_streams("3") == 3


def _settings(port, **more):
    return RendezvousSettings("c10d", "localhost", port, "job", 2, 3, last_call_timeout_s=0.1, join_timeout_s=20, **more)


def test_launchers_meet_and_meet_again():
    first = Rendezvous(_settings(0, is_host=True))
    second = Rendezvous(_settings(first.port, is_host=False))
    for number in (0, 1):
        with ThreadPoolExecutor(2) as pool:
            rounds = dict(zip((2, 4), pool.map(Rendezvous.join, (first, second), (2, 4)), strict=True))
        assert sorted(rounds[2].local_sizes) == [2, 4] and rounds[2].world_size == 6
        assert {rounds[2].node_rank, rounds[4].node_rank} == {0, 1}
        assert {rounds[2].number, rounds[4].number} == {number}
        first.ask_for_restart()
        assert second.restart_is_asked_for()
    second.give_up("rank 3 ended with -9")
    assert first.failure_elsewhere() == "rank 3 ended with -9"


def test_too_few_launchers_are_an_error():
    alone = Rendezvous(RendezvousSettings("static", "localhost", 0, "job", 2, 2, node_rank=0, is_host=True, join_timeout_s=0.2))
    with pytest.raises(
        RuntimeError, match=r"1 of 2 machines of the job 'job' came within 0.2 s: those with the node ranks \[0\]"
    ):
        alone.join(1)
