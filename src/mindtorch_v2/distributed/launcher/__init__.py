"""torch.distributed.launcher: starting processes from a program, as torchrun does from a command line."""

from __future__ import annotations

from .api import LaunchConfig, elastic_launch, launch_agent

__all__ = ["LaunchConfig", "elastic_launch", "launch_agent"]
