"""The page of a job: whole, small, and made of scripts that fit together."""

import re
from pathlib import Path

import pytest
from synthetic_job import Faults, SyntheticJob

from mindtorch_v2.profiler import ranks
from mindtorch_v2.profiler.cli.main import main
from mindtorch_v2.profiler.ranks import page
from mindtorch_v2.profiler.ranks.digest_file import encode

ASSETS = Path(page.__file__).parent / "assets"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("job")
    SyntheticJob(8, steps=3, events=100, faults=Faults(slow_rank=(3, 1.08))).save(path)
    return path


def test_report_with_pages_of_ranks_beside_it(folder, tmp_path, capsys):
    target = tmp_path / "ranks.html"
    assert main(["ranks", "report", str(folder), "-o", str(target), "--reports", "2"]) == 0
    text = target.read_text(encoding="utf-8")
    assert "Rank 3 on host0000 is slow" in text
    assert (tmp_path / "ranks_ranks" / "rank00003.html").exists()
    assert '"3": "ranks_ranks/rank00003.html"' in text
    assert len(list((tmp_path / "ranks_ranks").iterdir())) == 2
    assert not re.search(r"(?:src|href)=.?https?:", text)


def test_pages_of_ranks_need_recordings_not_digests(folder, tmp_path, capsys):
    assert main(["ranks", "digest", str(folder), "-o", str(tmp_path / "job.mtranks")]) == 0
    assert main(["ranks", "report", str(tmp_path / "job.mtranks"), "-o", str(tmp_path / "ranks.html")]) == 0
    assert not (tmp_path / "ranks_ranks").exists()


def test_all_scripts_are_in_the_page_and_no_name_is_declared_twice():
    assert sorted(page.OWN_SCRIPTS) == sorted(path.name for path in ASSETS.glob("*.js"))
    names = re.findall(r"^(?:async )?(?:const|let|function|class) (\w+)", page._script(), re.MULTILINE)
    assert len(names) == len(set(names))
    assert "import " not in re.sub(r"//.*", "", page._script()).partition("\n")[0]


def test_many_steps_are_averaged_so_that_the_page_stays_small(monkeypatch):
    monkeypatch.setattr(page, "_MOST_CELLS", 8 * 2)
    job = SyntheticJob(8, steps=5, events=60)
    answers = ranks.JobAnswers(ranks.merge(encode(ranks.make_digest(job.rows(rank), f"rank{rank}")) for rank in range(8)))
    columns = {column.name: column.spec for column in page._columns(answers)}
    assert columns["length"]["count"] == 16
    assert page._about(answers, {})["steps"] == ["5 to 6", "7 to 9"]
