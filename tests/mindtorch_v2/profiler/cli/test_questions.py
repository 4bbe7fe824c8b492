"""Questions that programs ask (mtprof mcp), without the protocol: schemas, paths, and answers in parts."""

from __future__ import annotations

import json
import os
import shutil

import pytest

from mindtorch_v2.profiler.cli import questions
from mindtorch_v2.profiler.cli.main import main
from mindtorch_v2.profiler.cli.questions import Answers, WrongQuestionError

FIXTURE = os.path.join(os.path.dirname(__file__), "..", "fixtures", "mlp_everything.json.gz")


@pytest.fixture
def answers(tmp_path):
    shutil.copy(FIXTURE, tmp_path / "run.json.gz")
    return Answers(str(tmp_path))


def test_every_reading_command_is_a_question_and_no_other(answers):
    names = {question.name for question in answers.questions}
    assert {"advice", "diff", "events", "flops", "history", "memory", "sql", "table", "tree", "validate"} <= names
    assert not names & {"attach", "ceilings", "convert", "demo", "mcp", "push", "repair", "report", "run", "top"}


def test_a_schema_is_made_from_the_arguments():
    table = questions.questions()["table"].schema
    assert table["required"] == ["path"] and not table["additionalProperties"]
    assert table["properties"]["limit"]["type"] == "integer"
    assert table["properties"]["by"]["enum"] == ["name", "shape", "stack", "overload"]
    assert table["properties"]["top_level"]["type"] == "boolean"
    diff = questions.questions()["diff"].schema["properties"]
    assert diff["paths"]["type"] == diff["to"]["type"] == "array" and not {"format", "html", "json"} & set(diff)


def test_an_answer_is_that_of_the_command(answers, capsys, tmp_path):
    asked = answers.ask("table", {"path": "run.json.gz", "limit": 2, "by": "shape", "top_level": False})
    assert main(["table", str(tmp_path / "run.json.gz"), "-n", "2", "--by", "shape", "--json"]) == 0
    assert json.loads(asked) == json.loads(capsys.readouterr().out)


def test_a_long_answer_comes_in_parts(answers, capsys, tmp_path):
    first = json.loads(answers.ask("events", {"path": "run.json.gz", "limit": -1}))
    assert first["part"] == 1 < first["parts"] and len(first["text"]) == questions.MOST_CHARACTERS
    texts = [json.loads(answers.more(first["answer"], part))["text"] for part in range(1, first["parts"] + 1)]
    main(["events", str(tmp_path / "run.json.gz"), "-n", "-1", "--json"])
    assert "".join(texts) == capsys.readouterr().out


def test_answers_that_are_kept_are_bounded(answers, monkeypatch):
    monkeypatch.setattr(questions, "_KEPT", 2)
    monkeypatch.setattr(questions, "MOST_CHARACTERS", 10)
    ids = [json.loads(answers.ask("table", {"path": "run.json.gz", "limit": 1}))["answer"] for _ in range(3)]
    with pytest.raises(WrongQuestionError, match="the last 2 that were cut are kept"):
        answers.more(ids[0], 1)
    assert answers.more(ids[2], 2)
    with pytest.raises(WrongQuestionError, match="has the parts 1 to"):
        answers.more(ids[2], 0)


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("run", {"script": "x.py"}, "there is no question 'run'"),
        ("table", {"path": "../secret.json"}, "outside of the folder"),
        ("table", {"path": "/etc/passwd"}, "outside of the folder"),
        ("table", {"path": "link.json"}, "outside of the folder"),
        ("table", {"path": "run.json.gz", "output": "x"}, "table has no output: it has path, "),
        ("table", {"path": "gone.json"}, "there is no file"),
        ("table", {"path": "run.json.gz", "sort": "--json"}, "cannot sort by '--json'"),
        ("table", {}, "the following arguments are required: path"),
        ("sql", {"path": "run.json.gz", "query": "-x"}, "cannot begin with a dash"),
        ("events", {"path": "run.json.gz", "id": 10**9}, "there is no event 1000000000: ids are 1 to"),
        ("diff", {"paths": ["run.json.gz", "run.json.gz"], "html": "x.html"}, "diff has no html"),
    ],
)
def test_wrong_questions(answers, tmp_path, name, arguments, said):
    (tmp_path / "link.json").symlink_to("/etc/hostname")
    with pytest.raises(WrongQuestionError, match=said.replace("(", "\\(")):
        answers.ask(name, arguments)


def test_an_event_can_be_asked_for_again(answers, capsys):
    lines = answers.ask("events", {"path": "run.json.gz", "name": "aten::linear", "limit": 1}).splitlines()
    event = json.loads(lines[0])
    again = json.loads(answers.ask("events", {"path": "run.json.gz", "id": event["id"]}))
    assert event.items() <= again.items() and again["stack"] and again["shapes"]
    inside = [json.loads(line) for line in answers.ask("events", {"path": "run.json.gz", "inside": event["id"]}).splitlines()]
    assert main(["events", FIXTURE, "--id", str(event["id"])]) == 0
    assert [line.strip() for line in capsys.readouterr().out.splitlines()[1:]] == again["stack"]
    assert len(inside) == again["calls"] > 0 and {each["parent_id"] for each in inside} == {event["id"]}
