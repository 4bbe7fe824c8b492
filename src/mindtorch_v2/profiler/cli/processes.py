"""What commands about running processes share: which process is meant, and what is said if it cannot be asked."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from ..live import client, places
from .exit_codes import USAGE, Failure


def add_pid(parser: argparse.ArgumentParser) -> None:
    """Add the argument `pid`."""
    parser.add_argument("pid", type=int, nargs="?", default=None, help="process id (default: the only armed one)")


def chosen(pid: int | None) -> int:
    """The process that is meant; a Failure if that cannot be told."""
    if pid is not None:
        return pid
    armed = [other for other in places.armed() if _answers(other)]
    if len(armed) == 1:
        return armed[0]
    which = f"which one? Armed are {', '.join(map(str, armed))}" if armed else "no process is armed: start one with MTPROF=arm"
    raise Failure(which, USAGE)


def answers(pid: int, request: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Ask a process; a Failure tells why it cannot be asked, or what it could not do."""
    try:
        yield from client.ask(pid, request)
    except client.NotArmedError as error:
        raise Failure(str(error), USAGE) from None
    except RuntimeError as error:
        raise Failure(str(error)) from None


def _answers(pid: int) -> bool:
    try:
        return any(client.ask(pid, {"request": "status"}, patience_s=2.0))
    except (client.NotArmedError, RuntimeError, OSError):
        return False
