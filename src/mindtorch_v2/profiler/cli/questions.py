"""Reading commands as questions that programs ask: a schema for each, made from its arguments, and bounded answers.

A command is a question if it reads recordings and its --json is an answer, not what it wrote (`reading.add_written_json`):
a new one needs nothing here.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import itertools
import os
import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, NamedTuple

from .._io.strict_json import dumps
from . import command
from .exit_codes import FOUND
from .main import main

MOST_CHARACTERS = 16_000
_KEPT = 32  # answers that can be asked for in parts
_PATHS = ("path", "paths", "to")
_HIDDEN = ("help", "json", "format", "html")  # the form of an answer is JSON, and nothing is written
_JSON = ("json", "format")  # where --json of an answer is kept: diff has other formats, too
_TYPES = {int: "integer", float: "number"}


class Question(NamedTuple):
    """One command as a question: what it is for, the JSON schema of its arguments, and the parser's actions by name."""

    name: str
    description: str
    schema: dict[str, Any]
    actions: Mapping[str, argparse.Action]


class WrongQuestionError(Exception):
    """A question that cannot be asked, or has no answer; the text says why."""


def questions() -> dict[str, Question]:
    """All questions by name."""
    found = (_question(name) for name in command.names())
    return {question.name: question for question in found if question is not None}


def _question(name: str) -> Question | None:
    module = command.load(name)
    parser = argparse.ArgumentParser(add_help=False)
    module.add_arguments(parser)
    actions = {action.dest: action for action in parser._actions}
    answers_json = any("--json" in action.option_strings and action.dest in _JSON for action in parser._actions)
    reads = any(not actions[dest].option_strings for dest in _PATHS if dest in actions)
    if not answers_json or not reads:
        return None
    shown = {
        dest: action
        for dest, action in actions.items()
        if dest not in _HIDDEN and action.metavar != "FILE" and dest != "output" and dest != "csv"
    }
    schema = {
        "type": "object",
        "properties": {dest: _property(action) for dest, action in shown.items()},
        "required": [dest for dest, action in shown.items() if not action.option_strings and action.nargs != "?"],
        "additionalProperties": False,
    }
    return Question(name, (module.__doc__ or "").strip(), schema, shown)


def _property(action: argparse.Action) -> dict[str, Any]:
    text = (action.help or "").replace("%%", "%").replace("; - is standard input", "")
    if action.nargs == 0:
        return {"type": "boolean", "description": text}
    kind: dict[str, Any] = {"type": _TYPES.get(action.type, "string")} if isinstance(action.type, type) else {"type": "string"}
    if action.choices is not None:
        kind["enum"] = list(action.choices)
    if action.nargs in ("+", "*") or isinstance(action, argparse._AppendAction):
        kind = {"type": "array", "items": kind}
    return {**kind, "description": text}


class Answers:
    """Asks questions about recordings below one folder, and keeps answers that are longer than what is sent at once."""

    def __init__(self, folder: str) -> None:
        self._folder = os.path.realpath(folder)
        self._questions = questions()
        self._kept: OrderedDict[str, list[str]] = OrderedDict()
        self._numbers = itertools.count(1)
        self._one_at_a_time = threading.Lock()  # commands print to the process's standard output

    @property
    def questions(self) -> list[Question]:
        """What can be asked."""
        return list(self._questions.values())

    def ask(self, name: str, arguments: Mapping[str, Any]) -> str:
        """The answer as JSON. One of more than MOST_CHARACTERS is cut: {"answer": id, "part": 1, "parts": n, "text": ...}."""
        question = self._questions.get(name)
        if question is None:
            raise WrongQuestionError(f"there is no question {name!r}: there are {', '.join(self._questions)}")
        argv = [name, *self._argv(question, arguments), "--json"]
        out, err = io.StringIO(), io.StringIO()
        with self._one_at_a_time, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                code = main(argv)
            except SystemExit as wrong_usage:
                code = wrong_usage.code if isinstance(wrong_usage.code, int) else 2
        if code > FOUND:
            raise WrongQuestionError((err.getvalue() or out.getvalue()).strip())
        return self._bounded(out.getvalue())

    def more(self, answer: str, part: int) -> str:
        """Another part of an answer that was cut."""
        if answer not in self._kept:
            raise WrongQuestionError(f"there is no answer {answer!r}: the last {_KEPT} that were cut are kept; ask again")
        parts = self._kept[answer]
        if not 1 <= part <= len(parts):
            raise WrongQuestionError(f"answer {answer!r} has the parts 1 to {len(parts)}")
        return dumps({"answer": answer, "part": part, "parts": len(parts), "text": parts[part - 1]})

    def _bounded(self, text: str) -> str:
        if len(text) <= MOST_CHARACTERS:
            return text
        ident = f"a{next(self._numbers)}"
        self._kept[ident] = [text[at : at + MOST_CHARACTERS] for at in range(0, len(text), MOST_CHARACTERS)]
        while len(self._kept) > _KEPT:
            self._kept.popitem(last=False)
        return self.more(ident, 1)

    def _argv(self, question: Question, arguments: Mapping[str, Any]) -> list[str]:
        unknown = [name for name in arguments if name not in question.actions]
        if unknown:
            raise WrongQuestionError(f"{question.name} has no {', '.join(unknown)}: it has {', '.join(question.actions)}")
        positional: list[str] = []
        options: list[str] = []
        for name, value in arguments.items():
            action = question.actions[name]
            values = [str(each) for each in value] if isinstance(value, list) else [str(value)]
            if name in _PATHS:
                values = [self._path(each) for each in values]
            if not action.option_strings:
                positional += values
            elif action.nargs == 0:
                options += [action.option_strings[-1]] if value is True else []
            elif action.nargs in ("+", "*"):
                options += [action.option_strings[-1], *values]
            else:
                options += [f"{action.option_strings[-1]}={each}" for each in values]
        # Values that look like options are values: they stand behind `=`, and positional ones cannot begin with a dash.
        if any(value.startswith("-") for value in positional):
            raise WrongQuestionError("a path or statement cannot begin with a dash")
        return [*positional, *options]

    def _path(self, path: str) -> str:
        """The path, if it is below the folder; links are followed first."""
        whole = os.path.realpath(os.path.join(self._folder, path))
        if whole != self._folder and not whole.startswith(self._folder + os.sep):
            raise WrongQuestionError(f"{path!r} is outside of the folder that is served")
        return whole
