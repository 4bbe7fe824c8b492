"""torch.distributed.launcher.api: LaunchConfig says how many processes and where, elastic_launch runs something in them."""

from __future__ import annotations

import os
import sys
import tempfile
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..elastic._agent import Job, LocalAgent
from ..elastic._rendezvous import Rendezvous, RendezvousSettings
from ..elastic._workers import Output
from ..elastic.multiprocessing.errors import ChildFailedError, ProcessFailure, SignalException

__all__ = ["ChildFailedError", "LaunchConfig", "ProcessFailure", "SignalException", "elastic_launch", "launch_agent"]

_DEFAULT_PORT = 29500
_CONFIGS = {
    "rank",
    "timeout",
    "join_timeout",
    "last_call_timeout",
    "read_timeout",
    "is_host",
    "close_timeout",
    "keep_alive_interval",
}


@dataclass
class LaunchConfig:
    """How many processes a job has on how many machines, where these meet, and how often they may be started again."""

    min_nodes: int
    max_nodes: int
    nproc_per_node: int
    logs_specs: Any = None
    run_id: str = ""
    role: str = "default_role"
    rdzv_endpoint: str = ""
    rdzv_backend: str = "etcd"
    rdzv_configs: dict[str, Any] = field(default_factory=dict)
    rdzv_timeout: int = -1
    max_restarts: int = 3
    monitor_interval: float = 0.1
    start_method: str = "spawn"
    log_line_prefix_template: str | None = None
    metrics_cfg: dict[str, str] = field(default_factory=dict)
    local_addr: str | None = None
    event_log_handler: str = "null"
    numa_options: Any = None
    signals_to_handle: str = "SIGTERM,SIGINT,SIGHUP,SIGQUIT"
    duplicate_stdout_filters: list[str] | None = None
    duplicate_stderr_filters: list[str] | None = None
    virtual_local_rank: bool = False
    shutdown_timeout: int | None = None

    def __post_init__(self) -> None:
        """Refuse what is not there, before anything starts."""
        for name in ("log_line_prefix_template", "numa_options", "duplicate_stdout_filters", "duplicate_stderr_filters"):
            if getattr(self, name):
                raise NotImplementedError(f"LaunchConfig({name}=)")
        if self.virtual_local_rank:
            raise NotImplementedError("LaunchConfig(virtual_local_rank=True): there are no CUDA devices")
        if self.start_method != "spawn":
            raise NotImplementedError(f"LaunchConfig(start_method={self.start_method!r}): processes are spawned")
        if self.event_log_handler != "null":
            raise NotImplementedError(f"LaunchConfig(event_log_handler={self.event_log_handler!r})")
        if self.rdzv_backend not in ("static", "c10d"):
            raise ValueError(
                f"rendezvous backend {self.rdzv_backend!r} is not registered: there are 'static' and 'c10d'"
                + (", etcd is not supported" if self.rdzv_backend.startswith("etcd") else "")
            )
        unknown = set(self.rdzv_configs) - _CONFIGS
        if unknown:
            raise ValueError(f"rdzv_configs: unknown keys {sorted(unknown)}")


class elastic_launch:
    """`elastic_launch(config, train)(*args)` runs a function, or a command, in the job's processes; results by rank."""

    def __init__(self, config: LaunchConfig, entrypoint: Callable[..., Any] | str | None) -> None:
        self._config, self._entrypoint = config, entrypoint

    def __call__(self, *args: Any) -> dict[int, Any]:
        """Run it with these arguments."""
        return launch_agent(self._config, self._entrypoint, list(args))


def launch_agent(config: LaunchConfig, entrypoint: Callable[..., Any] | str | None, args: list[Any]) -> dict[int, Any]:
    """Run a job's processes on this machine, and wait for them; ChildFailedError if one failed too often."""
    run_id = config.run_id or str(uuid.uuid4().int)
    entry: Callable[..., Any] | str = sys.executable if entrypoint is None else entrypoint
    output = config.logs_specs or Output(Path(tempfile.mkdtemp(prefix="torchelastic_")), role=config.role)
    rendezvous = Rendezvous(_settings(config, run_id))
    job = Job(
        entry,
        tuple(args),
        _name(entry, args),
        config.nproc_per_node,
        config.max_restarts,
        config.monitor_interval,
        _shutdown_timeout(config),
        config.role,
        run_id,
        tuple(name.strip() for name in config.signals_to_handle.split(",") if name.strip()),
    )
    return LocalAgent(job, rendezvous, output).run()


def _settings(config: LaunchConfig, run_id: str) -> RendezvousSettings:
    host, port = _endpoint(config.rdzv_endpoint, config.rdzv_backend)
    more = config.rdzv_configs
    settings = RendezvousSettings(
        config.rdzv_backend,
        host,
        port,
        run_id,
        config.min_nodes,
        config.max_nodes,
        int(more.get("rank", 0)),
        config.local_addr,
    )
    if "is_host" in more:
        settings.is_host = str(more["is_host"]).lower() in ("1", "true", "t", "yes", "y")
    joining = more.get("join_timeout", more.get("timeout", config.rdzv_timeout))
    if float(joining) > 0:
        settings.join_timeout_s = float(joining)
    settings.last_call_timeout_s = float(more.get("last_call_timeout", settings.last_call_timeout_s))
    settings.read_timeout_s = float(more.get("read_timeout", settings.read_timeout_s))
    return settings


def _endpoint(endpoint: str, backend: str) -> tuple[str, int]:
    """Host and port of "host:port"; without one, this machine."""
    host, _, port = endpoint.strip().rpartition(":") if ":" in endpoint and not endpoint.endswith("]") else (endpoint, "", "")
    if port and not port.isdigit():
        raise ValueError(f"The port number of the rendezvous endpoint '{endpoint}' must be an integer between 0 and 65536.")
    default = 0 if backend == "c10d" and not endpoint else _DEFAULT_PORT
    return host.strip("[]") or "localhost", int(port) if port else default


def _shutdown_timeout(config: LaunchConfig) -> float:
    if config.shutdown_timeout is not None:
        return float(config.shutdown_timeout)
    return float(os.environ.get("TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "30"))


def _name(entry: Callable[..., Any] | str, args: list[Any]) -> str:
    """What the job is called: the script or module that python runs, or the command or function."""
    if callable(entry):
        return getattr(entry, "__name__", repr(entry))
    return next((arg for arg in args if isinstance(arg, str) and not arg.startswith("-")), entry)
