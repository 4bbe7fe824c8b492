"""What an attack is, and the list of them.

An attack tries to break one promise of docs/reliability.md. It is a function of a size (how many tries) that returns the figure
to quote and raises AssertionError where the promise is broken. Each runs in a process of its own, watched by faulthandler: an
interpreter that dies, or that is not done in time, breaks the promise as well.
"""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

_HERE = Path(__file__).parent
# Every other module of this folder holds attacks.
FAMILIES = sorted(path.stem for path in _HERE.glob("*.py") if path.stem not in ("attacks", "run", "test_attacks"))


@dataclass(frozen=True)
class Attack:
    """An attack on one promise."""

    family: str
    name: str
    promise: str  # what holds, as a line of the table in docs/reliability.md
    small: int  # tries in `make test`
    large: int  # tries in `make attack`
    timeout_s: float  # of the large size; the process is killed and the promise counts as broken
    run: Callable[[int], str]


_attacks: dict[str, dict[str, Attack]] = {}


def attack(
    promise: str, *, small: int, large: int, timeout_s: float = 1800
) -> Callable[[Callable[[int], str]], Callable[[int], str]]:
    """Declare a function of this module's family as an attack."""

    def declare(function: Callable[[int], str]) -> Callable[[int], str]:
        family = function.__module__
        _attacks.setdefault(family, {})[function.__name__] = Attack(
            family, function.__name__, promise, small, large, timeout_s, function
        )
        return function

    return declare


def attacks_of(family: str) -> list[Attack]:
    """The attacks of a module, in the order of their declaration."""
    importlib.import_module(family)
    return list(_attacks.get(family, {}).values())


def all_attacks() -> list[Attack]:
    return [one for family in FAMILIES for one in attacks_of(family)]


@dataclass(frozen=True)
class Outcome:
    """What an attack came to: `held`, and the figure it returned or what went wrong."""

    held: bool
    text: str


def carry_out(one: Attack, size: int, timeout_s: float) -> Outcome:
    """Run an attack in a process of its own."""
    command = [sys.executable, "-X", "faulthandler", __file__, one.family, one.name, str(size)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired as late:
        printed = late.stderr.decode(errors="replace") if isinstance(late.stderr, bytes) else late.stderr or ""
        return Outcome(False, f"not done after {timeout_s:.0f} s {printed[-2000:]}".strip())
    if done.returncode:
        how = f"died of signal {-done.returncode}" if done.returncode < 0 else f"exit status {done.returncode}"
        return Outcome(False, f"{how}: {done.stderr.strip()[-4000:]}")
    return Outcome(True, done.stdout.strip().splitlines()[-1])


def main() -> None:
    # The modules must see the one `attacks` that is imported, not this script.
    sys.path.insert(0, str(_HERE))
    attacks = importlib.import_module("attacks")
    family, name, size = sys.argv[1:]
    chosen = {one.name: one for one in attacks.attacks_of(family)}[name]
    print(chosen.run(int(size)))


if __name__ == "__main__":
    main()
