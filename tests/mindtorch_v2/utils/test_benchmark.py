"""torch.utils.benchmark: timers on a made-up clock, and tables as PyTorch 2.13 draws them."""

from __future__ import annotations

import copy
import pickle

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.utils.benchmark import Compare, Measurement, TaskSpec, Timer, select_unit, trim_sigfig, unit_to_english


def measured(sub_label, description, times, *, label="ops", threads=1, env=None, stmt="x + y", number=1):
    task = TaskSpec(stmt, "pass", label=label, sub_label=sub_label, description=description, env=env, num_threads=threads)
    return Measurement(number, times, task)


def steady(seconds):
    return [seconds * (1 + 0.01 * i) for i in range(10)]


FOUR = [
    measured(row, column, steady(scale * factor), threads=threads)
    for threads in (1, 2)
    for row, scale in (("small", 1e-6), ("big", 1.5e-3))
    for column, factor in (("add", 1), ("mul", 2.3456))
]
BEST, BAD, WORST, END = "\033[92m\033[1m", "\033[2m\033[91m", "\033[31m\033[1m", "\033[0m\033[0m"


def test_a_timer_counts_by_its_clock():
    ticks = iter(range(1000))
    timer = Timer("f()", globals={"f": lambda: None}, timer=lambda: float(next(ticks)), label="nothing", env="here")
    result = timer.timeit(2)
    assert (result.median, result.number_per_run, result.title, result.env) == (0.5, 2, "nothing", "here")
    assert "nothing" in repr(result)


def test_only_python_is_timed():
    with pytest.raises(NotImplementedError, match="only Python statements"):
        Timer("x", language="c++")


def test_rows_and_columns():
    assert str(Compare(FOUR)) == (
        "[------------- ops -------------]\n"
        "             |   add    |   mul  \n"
        "1 threads: ----------------------\n"
        "      small  |     1.0  |     2.5\n"
        "      big    |  1567.5  |  3676.7\n"
        "2 threads: ----------------------\n"
        "      small  |     1.0  |     2.5\n"
        "      big    |  1567.5  |  3676.7\n"
        "\nTimes are in microseconds (us).\n"
    )


def test_a_cell_without_measurement_is_empty():
    assert str(Compare(FOUR[:3])) == (
        "[----------- ops ------------]\n"
        "             |   add    |  mul\n"
        "1 threads: -------------------\n"
        "      small  |     1.0  |  2.5\n"
        "      big    |  1567.5  |     \n"
        "\nTimes are in microseconds (us).\n"
    )


def test_figures_are_those_that_the_spread_allows(capsys):
    table = Compare([*FOUR[:4], measured("exact", "add", [1.25e-4] * 5)])
    table.trim_significant_figures()
    table.print()
    rows = capsys.readouterr().out.splitlines()[3:6]
    assert rows == ["      small  |     1  |     2", "      big    |  2000  |  4000", "      exact  |   125  |      "]


@pytest.mark.parametrize(
    "by_row, small, big",
    [
        (False, (BEST, BEST), (WORST, WORST)),
        (True, (BEST, BAD), (BEST, BAD)),
    ],
)
def test_colors_tell_the_distance_from_the_best_of_the_same_threads(by_row, small, big):
    table = Compare(FOUR)
    table.colorize(rowwise=by_row)
    lines = str(table).splitlines()
    assert lines[3] == lines[6] == f"      small  |  {small[0]}   1.0{END}  |  {small[1]}   2.5{END}"
    assert lines[4] == lines[7] == f"      big    |  {big[0]}1567.5{END}  |  {big[1]}3676.7{END}"


def test_measurements_that_spread_are_marked():
    table = Compare([*FOUR, measured("s", "add", [2.0, 5.0, 9.0], label="other")])
    table.highlight_warnings()
    assert str(table)[str(table).index("[------- other") :] == (
        "[------- other -------]\n"
        "         |      add    \n"
        "1 threads: ------------\n"
        "      s  |  5.0 (! 70%)\n"
        "\nTimes are in seconds (s).\n"
        "(! XX%) Measurement has high variance, where XX is the IQR / median * 100.\n"
    )


def test_environments_are_rows_and_equal_tasks_are_merged():
    both = Compare([measured("s", "add", [1e-6] * 5, env="A"), measured("s", "add", [2e-6] * 5, env="B")])
    assert [line for line in str(both).splitlines() if "|" in line][1:] == ["  (A)  s  |  1.0", "  (B)  s  |  2.0"]
    merged = Compare([measured("s", "add", [1e-6] * 5)])
    merged.extend_results([measured("s", "add", [3e-6] * 5)])
    assert "s  |  2.0" in str(merged)


def test_what_is_no_measurement_is_refused():
    with pytest.raises(ValueError, match="Expected an instance of `Measurement`"):
        Compare([1.0])


@pytest.mark.parametrize(
    "times, lines, figures",
    [
        (
            [2.0, 2.2, 2.1, 2.4, 3.0],
            [
                "  Median: 1.10 s",
                "  IQR:    0.15 s (1.05 to 1.20)",
                "  5 measurements, 2 runs per measurement, 1 thread",
                "  WARNING: Interquartile range is 13.6% of the median measurement.",
                "           This could indicate system fluctuation.",
            ],
            1,
        ),
        (
            [2.0, 9, 2.1, 2.4],
            [
                "  Median: 1.12 s",
                "  IQR:    0.99 s (1.04 to 2.02)",
                "  4 measurements, 2 runs per measurement, 1 thread",
                "  WARNING: Interquartile range is 87.8% of the median measurement.",
                "           This suggests significant environmental influence.",
            ],
            1,
        ),
        ([2.0], ["  1.00 s", "  1 measurement, 2 runs, 1 thread"], 4),
    ],
)
def test_what_a_measurement_tells(times, lines, figures):
    result = measured("sub", "d", times, label="L", number=2)
    assert repr(result).splitlines()[1:] == ["L: sub", "d", *lines]
    assert result.significant_figures == figures and result.has_warnings == any("WARNING" in line for line in lines)


@pytest.mark.parametrize(
    "label, stmt, expected",
    [("L", "x", "L: s"), (None, "x", "x: s"), (None, "x\ny", "stmt: (s)\n  x\n  y")],
)
def test_titles(label, stmt, expected):
    result = measured("s", None, [1.0], label=label, stmt=stmt)
    assert result.title == expected and result.as_row_name == "s"
    assert copy.deepcopy(result) == pickle.loads(pickle.dumps(result)) == result


def test_units_and_figures():
    assert [select_unit(t) for t in (1e-9, 5e-7, 1e-6, 0.02, 400.0)] == [
        ("ns", 1e-9),
        ("ns", 1e-9),
        ("us", 1e-6),
        ("ms", 1e-3),
        ("s", 1),
    ]
    assert [unit_to_english(u) for u in ("ns", "us", "ms", "s")] == ["nanosecond", "microsecond", "millisecond", "second"]
    assert [trim_sigfig(1234.5, 2), trim_sigfig(0.001234, 3), trim_sigfig(9.99, 1), trim_sigfig(0, 2)] == [1200, 0.00123, 10, 0]
    with pytest.raises(ValueError, match="positive integer"):
        trim_sigfig(1.0, 0)


def test_threads_are_those_of_the_block():
    before = torch.get_num_threads()
    with torch.utils.benchmark.set_torch_threads(3):
        assert torch.get_num_threads() == 3
    assert torch.get_num_threads() == before
