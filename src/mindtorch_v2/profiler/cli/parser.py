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


def near_event(name: str, known: Iterable[str]) -> str:
    """The question whether a known event was meant; what stands before "::" is common to most and says nothing."""
    by_end = {each.rpartition("::")[2]: each for each in known}
    found = difflib.get_close_matches(name.rpartition("::")[2], list(by_end), 1)
    return f"did you mean `{by_end[found[0]]}`?" if found else ""


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

    def _get_value(self, action: argparse.Action, text: str) -> Any:
        try:
            return super()._get_value(action, text)
        except argparse.ArgumentError:
            if action.type is not int:
                raise
            raise argparse.ArgumentError(action, f"{text!r} is no whole number") from None

    @property
    def long_options(self) -> list[str]:
        """The options that begin with two hyphens."""
        return [option for action in self._actions for option in action.option_strings if option.startswith("--")]

    def unknown(self, arguments: list[str], hint: str = "") -> NoReturn:
        """End because of arguments that the command does not have, with `hint` or the option that is nearest to the first."""
        first = arguments[0].partition("=")[0]
        if first.startswith("-"):
            hint = near(first.lstrip("-"), [option[2:] for option in self.long_options], "--") or hint
        self.error(f"unknown {' '.join(arguments)}" + (f": {hint}" if hint else ""))
