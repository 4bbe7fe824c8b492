"""torch.distributed.elastic.utils.api: helpers of launchers."""

from __future__ import annotations

import os
import socket
from string import Template
from typing import Any

__all__ = ["get_env_variable_or_raise", "get_socket_with_port", "macros"]


def get_env_variable_or_raise(env_name: str) -> str:
    """A variable of the environment; ValueError if it is not set."""
    value = os.environ.get(env_name)
    if value is None:
        raise ValueError(f"Environment variable {env_name} expected, but not set")
    return value


def get_socket_with_port() -> socket.socket:
    """A socket on a free port of this machine, which stays free for others only when it is closed."""
    found = socket.socket(socket.AF_INET6 if socket.has_ipv6 and _has_ipv6() else socket.AF_INET)
    found.bind(("localhost", 0))
    found.listen(0)
    return found


def _has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as found:
            found.bind(("localhost", 0))
    except OSError:
        return False
    return True


class macros:
    """Words in arguments of a program that a launcher replaces."""

    local_rank = "${local_rank}"

    @staticmethod
    def substitute(args: list[Any], local_rank: str) -> list[str]:
        """The arguments with a process's rank on its machine in place of the word."""
        return [Template(str(each)).safe_substitute(local_rank=local_rank) for each in args]
