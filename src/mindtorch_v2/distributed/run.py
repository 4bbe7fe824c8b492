"""torchrun: start a script in several processes, on one machine or more. `mtrun`, `python -m mindtorch_v2.distributed.run`.

    mtrun --nproc-per-node 4 train.py --epochs 3
    mtrun --standalone --nproc-per-node 2 -m package.train
    mtrun --nnodes 2 --node-rank 0 --master-addr 10.0.0.1 --nproc-per-node 8 train.py

Options are torchrun's, also as environment variables (PET_NPROC_PER_NODE). If a process fails, the others are ended and all
are started again, `--max-restarts` times; then the one that failed first is told.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import tempfile
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ._absent import absent_function
from .elastic._streams import parse_streams
from .elastic._workers import Output
from .elastic.multiprocessing.errors import record
from .launcher.api import LaunchConfig, elastic_launch

__all__ = [
    "config_from_args",
    "determine_local_world_size",
    "get_args_parser",
    "get_rdzv_endpoint",
    "get_use_env",
    "main",
    "parse_args",
    "parse_min_max_nnodes",
    "run",
    "run_script_path",
]

_log = logging.getLogger(__name__)
_ABSENT = ("duplicate_stdout_filters", "duplicate_stderr_filters", "logs_specs", "numa_binding")


def get_args_parser() -> argparse.ArgumentParser:
    """The parser of torchrun's options."""
    parser = argparse.ArgumentParser(description="Torch Distributed Elastic Training Launcher")

    def option(name: str, **how: Any) -> None:
        names = [f"--{name}"] if "-" not in name else [f"--{name}", f"--{name.replace('-', '_')}"]
        variable = os.environ.get(f"PET_{name.replace('-', '_').upper()}")
        if variable is not None:
            is_flag = how.get("action") == "store_true"
            how["default"] = bool(int(variable)) if is_flag else how.get("type", str)(variable)
        parser.add_argument(*how.pop("short", ()), *names, **how)

    option("nnodes", default="1:1", help="Number of nodes, or the range of nodes in form <minimum_nodes>:<maximum_nodes>.")
    option("nproc-per-node", default="1", help="Number of workers per node; supported values: [auto, cpu, gpu, int].")
    option("rdzv-backend", default="static", help="Rendezvous backend: static or c10d.")
    option("rdzv-endpoint", default="", help="Rendezvous backend endpoint; usually in form <host>:<port>.")
    option("rdzv-id", default="none", help="User-defined group id.")
    option("rdzv-conf", default="", help="Additional rendezvous configuration (<key1>=<value1>,<key2>=<value2>,...).")
    option("standalone", action="store_true", help="One machine, with a store on a free port; other rdzv options are ignored.")
    option("max-restarts", type=int, default=0, help="Maximum number of worker group restarts before failing.")
    option("monitor-interval", type=float, default=0.1, help="Interval, in seconds, to monitor the state of workers.")
    option("start-method", default="spawn", choices=["spawn", "fork", "forkserver"], help="How functions are started.")
    option("event-log-handler", default="null", help="Only null.")
    option("role", default="default", help="User-defined role for the workers.")
    option("module", short=("-m",), action="store_true", help="Run the script as a Python module, as 'python -m' does.")
    option("no-python", action="store_true", help="Run the script itself, without 'python' before it.")
    option("run-path", action="store_true", help="Not supported: run the training script with runpy.run_path.")
    option("log-dir", default=None, help="Base directory to use for log files.")
    option(
        "redirects", short=("-r",), default="0", help="Streams into log files: 1 stdout, 2 stderr, 3 both, or 0:1,1:2 by rank."
    )
    option("tee", short=("-t",), default="0", help="The same, and also to the console.")
    option("local-ranks-filter", default="", help="Only show logs from specified ranks in console (0,1,2).")
    option("duplicate-stdout-filters", default="", help="Not supported.")
    option("duplicate-stderr-filters", default="", help="Not supported.")
    option("node-rank", type=int, default=0, help="Rank of the node, for static rendezvous.")
    option("master-addr", default="127.0.0.1", help="Address of the master node (rank 0), for static rendezvous.")
    option("master-port", type=int, default=29500, help="Port on the master node, for static rendezvous.")
    option("local-addr", default=None, help="Address of the local node.")
    option("logs-specs", default=None, help="Not supported.")
    option("numa-binding", default=None, choices=["node", "socket", "exclusive", "core-complex"], help="Not supported.")
    option("signals-to-handle", default="SIGTERM,SIGINT,SIGHUP,SIGQUIT", help="Signals that are forwarded to the processes.")
    option("shutdown-timeout", type=int, default=None, help="Seconds that processes have to end before they are killed.")
    option("virtual-local-rank", action="store_true", help="Not supported: there are no CUDA devices.")
    parser.add_argument("training_script", help="Program to be launched in parallel, followed by its arguments.")
    parser.add_argument("training_script_args", nargs=argparse.REMAINDER)
    return parser


def parse_args(args: Sequence[str] | None) -> argparse.Namespace:
    """The options of a command line."""
    return get_args_parser().parse_args(args)


def parse_min_max_nnodes(nnodes: str) -> tuple[int, int]:
    """The least and the most machines of "2" or "1:4"."""
    parts = nnodes.split(":")
    if len(parts) > 2 or not all(part.isdigit() for part in parts):
        raise RuntimeError(f'nnodes={nnodes} is not in "MIN:MAX" format')
    return int(parts[0]), int(parts[-1])


def determine_local_world_size(nproc_per_node: str) -> int:
    """The number of processes on this machine."""
    if nproc_per_node.isdigit():
        return int(nproc_per_node)
    if nproc_per_node == "gpu":
        raise ValueError("Cuda is not available.")
    if nproc_per_node in ("cpu", "auto"):
        count = os.cpu_count() or 1
        _log.info("Using nproc_per_node=%s, setting nproc_per_node to %s.", nproc_per_node, count)
        return count
    raise ValueError(f"Unsupported nproc_per_node value: {nproc_per_node}")


def config_from_args(args: argparse.Namespace) -> tuple[LaunchConfig, str, list[str]]:
    """How the job is launched, and the command with its arguments."""
    for name in _ABSENT:
        if getattr(args, name):
            raise NotImplementedError(f"--{name.replace('_', '-')} is not supported")
    if args.run_path:
        raise NotImplementedError("--run-path is not supported: give the script itself")
    least, most = parse_min_max_nnodes(args.nnodes)
    if not 0 < least <= most:
        raise AssertionError(f"--nnodes {args.nnodes}: at least one machine, and no fewer at most than at least")
    if args.max_restarts < 0:
        raise AssertionError("--max-restarts must not be negative")
    size = determine_local_world_size(args.nproc_per_node)
    if "OMP_NUM_THREADS" not in os.environ and size > 1:
        # The environment of the launcher is that of the processes.
        os.environ["OMP_NUM_THREADS"] = "1"
        line = "*" * 41
        _log.warning(
            "\n%s\nSetting OMP_NUM_THREADS environment variable for each process to be 1 in default, to avoid your system "
            "being overloaded, please further tune the variable for optimal performance in your application as needed. \n%s",
            line,
            line,
        )
    backend, endpoint, run_id = args.rdzv_backend, args.rdzv_endpoint, args.rdzv_id
    configs = dict(pair.split("=", 1) for pair in args.rdzv_conf.split(",") if pair.strip())
    if args.standalone:
        backend, endpoint, run_id = "c10d", "localhost:0", str(uuid.uuid4())
        least = most = 1
    elif backend == "static":
        endpoint = endpoint or f"{args.master_addr}:{args.master_port}"
        configs["rank"] = args.node_rank
        if least != most:
            raise AssertionError(
                f"--nnodes {args.nnodes}: a static rendezvous has one number of machines; use --rdzv-backend c10d"
            )
    config = LaunchConfig(
        least,
        most,
        size,
        logs_specs=_output(args, run_id),
        run_id=run_id,
        role=args.role,
        rdzv_endpoint=endpoint,
        rdzv_backend=backend,
        rdzv_configs=configs,
        max_restarts=args.max_restarts,
        monitor_interval=args.monitor_interval,
        start_method=args.start_method,
        local_addr=args.local_addr,
        event_log_handler=args.event_log_handler,
        signals_to_handle=args.signals_to_handle,
        virtual_local_rank=args.virtual_local_rank,
        shutdown_timeout=args.shutdown_timeout,
    )
    return config, *_command(args)


def _output(args: argparse.Namespace, run_id: str) -> Output:
    base = Path(args.log_dir) if args.log_dir else Path(tempfile.gettempdir())
    base.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=f"{run_id}_" if args.log_dir else "torchelastic_", dir=base))
    ranks = frozenset(int(rank) for rank in args.local_ranks_filter.split(",") if rank.strip()) or None
    return Output(folder, parse_streams(args.redirects), parse_streams(args.tee), ranks, args.role)


def _command(args: argparse.Namespace) -> tuple[str, list[str]]:
    if args.no_python:
        if args.module:
            raise ValueError("Don't use both the '--no-python' flag and the '--module' flag at the same time.")
        return args.training_script, list(args.training_script_args)
    python = os.environ.get("PYTHON_EXEC", sys.executable)
    how = ["-u", *(["-m"] if args.module else [])]
    return python, [*how, args.training_script, *args.training_script_args]


def run(args: argparse.Namespace) -> None:
    """Run the job of parsed options."""
    config, command, command_args = config_from_args(args)
    elastic_launch(config, command)(*command_args)


@record
def main(args: Sequence[str] | None = None) -> None:
    """The command."""
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(message)s")
    run(parse_args(args))


get_rdzv_endpoint = absent_function(__name__, "get_rdzv_endpoint")
get_use_env = absent_function(__name__, "get_use_env")
run_script_path = absent_function(__name__, "run_script_path")


if __name__ == "__main__":
    main()
