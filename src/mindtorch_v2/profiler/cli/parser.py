"""The parser of mtprof's arguments: what is wrong is told on one line, with what was probably meant."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Iterable
from typing import Any, NoReturn

from .._io.terminal import shown
from .exit_codes import USAGE


def near(word: str, known: Iterable[str], before: str = "") -> str:
    """The question whether a known word was meant, with `before` in front of it; "" if none is near."""
    found = difflib.get_close_matches(word, list(known), 1)
    return f"did you mean `{before}{found[0]}`?" if found else ""


class Parser(argparse.ArgumentParser):
    """An ArgumentParser whose errors are one line, without the usage."""

    def error(self, message: str) -> NoReturn:
        """End with the exit code of wrong usage."""
        self.exit(USAGE, f"{self.prog}: {shown(message)} (see `{self.prog} --help`)\n")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            known = [str(choice) for choice in action.choices]
            hint = near(str(value), known) or f"there are {', '.join(known)}"
            raise argparse.ArgumentError(action, f"there is no {value!r}: {hint}")

    def unknown(self, arguments: list[str]) -> NoReturn:
        """End because of arguments that the command does not have, with the option that is nearest to the first."""
        options = [option[2:] for action in self._actions for option in action.option_strings if option.startswith("--")]
        first = arguments[0].partition("=")[0]
        hint = near(first.lstrip("-"), options, "--") if first.startswith("-") else ""
        self.error(f"unknown {' '.join(arguments)}" + (f": {hint}" if hint else ""))
