"""Recordings as tables of pandas, Arrow and Polars, and questions to DuckDB."""

from __future__ import annotations

import json

import duckdb
import pandas as pd
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import profiler
from mindtorch_v2.profiler.cli.main import main


@pytest.fixture(scope="module")
def profile(tmp_path_factory):
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    with profiler.profile(record_shapes=True, with_stack=True, with_modules=True, profile_memory=True) as prof:
        for _ in range(3):
            model(torch.ones(2, 4)).sum().backward()
            prof.step()
    path = tmp_path_factory.mktemp("tables") / "profile.mtp"
    prof.save(path)
    return path


def test_the_same_rows_everywhere(profile, tmp_path):
    events = profiler.load(profile).events()
    expected = events.to_dict()
    frame, table, polar = events.to_pandas(), events.to_arrow(), events.to_polars()
    assert isinstance(frame, pd.DataFrame) and isinstance(table, pa.Table) and isinstance(polar, polars.DataFrame)
    assert table.to_pydict() == expected and polar.to_dict(as_series=False) == expected
    assert list(frame.columns) == list(expected)
    for name, column in expected.items():
        cells = [None if pd.isna(cell) else cell for cell in frame[name]]
        assert cells == column, name
    joined = frame.merge(frame, left_on="parent_id", right_on="id", suffixes=("", "_parent"))
    assert len(joined) == frame.parent_id.notna().sum()
    averages = profiler.load(profile).key_averages()
    assert averages.to_pandas()["key"].tolist() == averages.to_polars()["key"].to_list() == [row.key for row in averages]
    connection = duckdb.connect()
    connection.register("frame", frame)
    assert connection.execute("select count(*) from frame").fetchone() == (len(frame),)
    assert main(["convert", str(profile), "--to", "parquet", "-o", str(tmp_path / "x.parquet")]) == 0
    assert pq.read_table(tmp_path / "x.parquet").column("name").to_pylist()


def test_sql(profile, capsys):
    query = "select name, count(*) as n from events where kind = 'op' group by name order by n desc, name limit 3"
    assert main(["sql", str(profile), query]) == 0
    header, rule, *rows = capsys.readouterr().out.splitlines()
    assert header.split() == ["name", "n"] and set(rule) <= {"-", " "} and len(rows) == 3
    assert main(["sql", str(profile), query, "--json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [f"{line['name']} {line['n']}".split() for line in lines] == [row.split() for row in rows]
    assert main(["sql", str(profile), query, "--csv"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "name,n"
    assert main(["sql", str(profile), "select key from averages where key = 'aten::mm'"]) == 0


def test_sql_says_what_is_wrong_and_reads_no_files(profile, capsys, tmp_path):
    assert main(["sql", str(profile), "select nothing from events"]) == 2
    said = capsys.readouterr().err
    assert "nothing" in said and "tables: events (" in said and said.count("\n") == 1 and "\\n" not in said and "^" not in said
    (tmp_path / "x.csv").write_text("a\n1\n")
    assert main(["sql", str(profile), f"select * from '{tmp_path}/x.csv'"]) == 2
    assert main(["sql", str(profile), "copy events to 'x.csv'"]) == 2
