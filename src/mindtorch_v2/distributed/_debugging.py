"""The level of debugging, and a debugger in one of several processes.

What torch's level DETAIL adds, a comparison of what the processes call, is done here at every level.
"""

from __future__ import annotations

import enum
import os
import pdb
import sys
from collections import Counter
from datetime import timedelta

from ._groups import default_group

_VARIABLE = "TORCH_DISTRIBUTED_DEBUG"


class DebugLevel(enum.Enum):
    """How much is told about collectives."""

    OFF, INFO, DETAIL = range(3)


class _Kept:
    level: DebugLevel | None = None  # not read yet


_calls: Counter[tuple[str, int]] = Counter()  # of breakpoint(), by file and line


def set_debug_level(level: DebugLevel) -> None:
    """Set what `get_debug_level` answers."""
    _Kept.level = level


def set_debug_level_from_env() -> None:
    """Take the level from TORCH_DISTRIBUTED_DEBUG; ValueError if that is none."""
    text = os.environ.get(_VARIABLE, "").upper() or "OFF"
    if text not in DebugLevel.__members__:
        raise ValueError(f"The value of {_VARIABLE} must be OFF, INFO, or DETAIL.")
    _Kept.level = DebugLevel[text]


def get_debug_level() -> DebugLevel:
    """The level that was set, else that of TORCH_DISTRIBUTED_DEBUG."""
    if _Kept.level is None:
        set_debug_level_from_env()
    assert _Kept.level is not None
    return _Kept.level


def breakpoint(rank: int = 0, skip: int = 0, timeout_s: float = 3600) -> None:
    """Stop in the debugger in one process; the others wait for it in a barrier. The first `skip` calls of a line go on."""
    caller = sys._getframe(1)
    place = (caller.f_code.co_filename, caller.f_lineno)
    if skip > 0:
        _calls[place] += 1
        if _calls[place] <= skip:
            return
    group = default_group()
    if group.rank() == rank:
        debugger = pdb.Pdb()
        debugger.message(f"\n!!! ATTENTION !!!\n\nType 'up' to get to the frame that called dist.breakpoint(rank={rank})\n")
        debugger.set_trace()
    group.barrier(timedelta(seconds=timeout_s)).wait()
