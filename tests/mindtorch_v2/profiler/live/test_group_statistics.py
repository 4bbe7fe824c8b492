"""Statistics added up over ranks that are threads here: the result, and how many messages of what size it takes."""

import json
import math
import queue
import threading

import pytest

from mindtorch_v2.profiler.live.group_statistics import (
    GroupStatistics,
    GroupSummary,
    json_lines,
    prometheus_file,
    summarize,
)
from mindtorch_v2.profiler.retention.stats import AggregateRow, AggregateStats, Summary


class ThreadTransport:
    """Messages between threads, counted."""

    def __init__(self, rank, size, boxes, sent):
        self.rank, self.size, self._boxes, self._sent = rank, size, boxes, sent

    def send(self, data, rank):
        self._sent.append((self.rank, rank, len(data)))
        self._boxes[self.rank, rank].put(data)

    def receive(self, rank):
        return self._boxes[rank, self.rank].get(timeout=120)


def statistics_of(rank):
    calls = Summary(2, 30 + rank, 10, 20 + rank, {60 + rank % 3: 2})
    steps = Summary(1, 30 + rank, 30 + rank, 30 + rank, {80: 1})
    rows = [
        AggregateRow("aten::add", "", "", 30 + rank, 0, calls, steps),
        AggregateRow(f"op{rank % 2}", "", "", 5, 1, calls, steps),
    ]
    return AggregateStats(rows, 4)


def reduced(size, write=lambda summary: None):
    boxes = {(a, b): queue.Queue() for a in range(size) for b in range(size)}
    sent, results = [], {}

    def work(rank):
        transport = ThreadTransport(rank, size, boxes, sent)
        statistics = GroupStatistics(lambda: statistics_of(rank), 2, write, transport=transport)
        statistics.step()
        results[rank] = statistics.reduce()

    threads = [threading.Thread(target=work, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results, sent


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8])
def test_rank_0_has_what_all_ranks_counted(size):
    results, sent = reduced(size)
    assert [rank for rank, result in sorted(results.items()) if result is not None] == [0]
    whole = results[0]
    expected = summarize(statistics_of(0), 0)
    for rank in range(1, size):
        expected = expected.merged(summarize(statistics_of(rank), rank))
    assert whole == expected or whole.to_dict() == expected.to_dict()
    assert whole.ranks == size
    assert whole.slowest[0] == (30 + size - 1 + 5, size - 1)
    # Each rank but the first sends once; none receives more than log2(N) times.
    assert len(sent) == size - 1
    received = [target for _, target, _ in sent]
    assert max(map(received.count, received), default=0) <= math.ceil(math.log2(size)) if size > 1 else not sent


def test_a_message_does_not_grow_with_the_ranks():
    _, sent = reduced(8)
    sizes = [length for _, _, length in sent]
    assert max(sizes) < 2 * min(sizes)


def test_a_summary_survives_its_message():
    summary = summarize(statistics_of(3), 3)
    assert GroupSummary.decode(summary.encode()).to_dict() == summary.to_dict()


def test_writers(tmp_path):
    reduced(2, json_lines(tmp_path / "lines"))
    reduced(2, json_lines(tmp_path / "lines"))
    lines = [json.loads(line) for line in (tmp_path / "lines").read_text().splitlines()]
    assert [line["ranks"] for line in lines] == [2, 2]
    assert lines[0]["time_ns"] <= lines[1]["time_ns"]
    reduced(3, prometheus_file(tmp_path / "metrics.prom"))
    text = (tmp_path / "metrics.prom").read_text()
    assert "mtprof_ranks 3\n" in text
    assert 'mtprof_rank_self_seconds{rank="2"}' in text
    assert 'mtprof_op_self_seconds_total{op="aten::add"}' in text


def test_steps_are_counted_and_a_silent_group_is_told_of_once():
    written = []
    alone = GroupStatistics(lambda: statistics_of(0), 3, written.append, transport=ThreadTransport(0, 1, {}, []))
    for _ in range(7):
        alone.step()
    assert len(written) == 2

    class Silent(ThreadTransport):
        def receive(self, rank):
            raise RuntimeError("timed out")

    broken = GroupStatistics(lambda: statistics_of(0), 1, written.append, transport=Silent(0, 2, {}, []))
    with pytest.warns(RuntimeWarning, match="given up: timed out"):
        broken.step()
    broken.step()
    assert len(written) == 2
    with pytest.raises(ValueError, match="at least 1"):
        GroupStatistics(lambda: statistics_of(0), 0, written.append, transport=Silent(0, 2, {}, []))
