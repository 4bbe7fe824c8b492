"""The exit codes of mtprof, and the error that carries one out of a command."""

from __future__ import annotations

FINE, FOUND, USAGE, UNREADABLE, NOTHING, INTERRUPTED = 0, 1, 2, 3, 4, 130

MEANING = {
    FINE: "fine",
    FOUND: "something was found (validate: a problem, diff: a change over the limit)",
    USAGE: "wrong usage",
    UNREADABLE: "a file cannot be read or written",
    NOTHING: "run: the schedule recorded nothing; else run has the script's own code",
    INTERRUPTED: "interrupted",
}


class Failure(Exception):
    """Ends a command with one line on stderr and an exit code."""

    def __init__(self, text: str, code: int = UNREADABLE) -> None:
        super().__init__(text)
        self.code = code
