"""The list of events: a list in every respect, whose events are made when they are looked at."""

from __future__ import annotations

import copy
import json
import pickle

import pytest

from mindtorch_v2._dispatch import observer
from mindtorch_v2.profiler import exporters
from mindtorch_v2.profiler.results import writers
from mindtorch_v2.profiler.store.store import EventStore
from mindtorch_v2.profiler.views.event_list import EventList
from mindtorch_v2.profiler.views.events import FunctionEvent


def recorded():
    """A step with a label around an op and a backward node, a stray free and a module call."""
    rows = [
        {"name": "aten::mul", "start": 12_000, "end": 15_500, "seq": 3},
        {"name": "MulBackward0", "start": 21_000, "end": 24_000, "seq": 3, "kind": observer.BACKWARD, "fwd_thread": 1},
        {"name": "engine: MulBackward0", "start": 20_000, "end": 25_000, "kind": observer.ENGINE},
        {"name": "block", "start": 11_000, "end": 30_000, "kind": observer.SCOPE},
        {"name": "ProfilerStep#4", "start": 10_000, "end": 40_000, "kind": observer.STEP},
        {"name": "nn.Module: Net_2", "start": 50_000, "end": 60_000, "kind": observer.MODULE},
    ]
    return EventStore.from_rows(rows, [{"time": 45_000, "bytes": -24}])


@pytest.fixture
def events():
    return EventList.from_store(recorded())


def event_list(*rows, **more):
    return EventList(
        [
            FunctionEvent(id=i, name=name, thread=thread, start_us=start, end_us=end, stack=[], **more)
            for i, (name, thread, start, end) in enumerate(rows)
        ]
    )


def test_it_is_a_list_whose_events_are_made_when_looked_at():
    events = EventList.from_store(recorded())
    assert isinstance(events, list)
    assert len(events) == 7
    assert bool(events)
    assert list.__len__(events) == 0
    assert events[2] is events[-5]
    assert sum(event is not None for event in events._rows._events) == 1


@pytest.mark.parametrize(
    "use",
    [
        pytest.param(lambda events: list(events), id="list"),
        pytest.param(lambda events: [*events], id="unpacking"),
        pytest.param(lambda events: tuple(events), id="tuple"),
        pytest.param(lambda events: events[:], id="slice"),
        pytest.param(lambda events: events[::-1][::-1], id="slice backwards"),
        pytest.param(lambda events: list(reversed(events))[::-1], id="reversed"),
        pytest.param(lambda events: events.copy(), id="copy"),
        pytest.param(lambda events: [*events], id="add"),
        pytest.param(lambda events: [*events], id="added to a list"),
        pytest.param(lambda events: events * 1, id="multiply"),
        pytest.param(lambda events: sorted(events, key=lambda e: e.time_range.start), id="sorted"),
        pytest.param(lambda events: [events[i] for i in range(len(events))], id="index"),
        pytest.param(lambda events: [event for _, event in zip(range(99), events, strict=False)], id="zip"),
    ],
)
def test_every_way_of_reading_gives_all_events(use):
    events = EventList.from_store(recorded())
    seen = use(events)
    assert [event.id for event in seen] == [1, 2, 3, 4, 5, 6, 0]
    assert all(event is again for event, again in zip(seen, events, strict=True))


def test_slices_sums_and_copies_are_plain_lists(events):
    assert {type(events[1:3]), type(events + events), type(events.copy()), type([*events])} == {list}
    assert type(copy.copy(events)) is EventList


def test_comparing_and_finding(events):
    same = list(events)
    assert events == same
    assert same == events
    assert events == same
    assert events[3] in events
    assert events.index(events[3]) == 3
    assert events.count(events[3]) == 1
    with pytest.raises(IndexError):
        events[99]
    with pytest.raises(TypeError):
        hash(events)


@pytest.mark.parametrize(
    ("change", "names"),
    [
        (lambda events: events.sort(key=lambda e: e.name), ["MulBackward0", "ProfilerStep*", "[memory]"]),
        (lambda events: events.reverse(), ["nn.Module: Net_2", "[memory]", "MulBackward0"]),
        (lambda events: events.pop(0), ["block", "aten::mul", "engine: MulBackward0"]),
        (lambda events: events.__delitem__(slice(1, 3)), ["ProfilerStep*", "engine: MulBackward0", "MulBackward0"]),
        (lambda events: events.insert(0, events[6]), ["nn.Module: Net_2", "ProfilerStep*", "block"]),
    ],
)
def test_changing_the_list_changes_what_it_shows(change, names):
    events = EventList.from_store(recorded())
    change(events)
    assert [event.name for event in events][:3] == names
    assert [row.key for row in events.key_averages()][:3] == names
    assert events.table(row_limit=1).split("\n")[3].split()[0] == names[0].split()[0]


def test_events_survive_pickling(events):
    again = pickle.loads(pickle.dumps(events))
    assert type(again) is EventList
    assert again.table() == events.table()
    assert again[2].cpu_parent is again[1]
    assert copy.deepcopy(events)[1].cpu_children[0].name == "aten::mul"


def test_text_and_repr(events):
    assert str(events) == events.table()
    assert repr(events).startswith("[<FunctionEvent id=1 name=ProfilerStep*")


def test_exporters_get_what_they_write(events, monkeypatch):
    calls = []
    for name, module in (("event_list", exporters.event_list), ("stacks", exporters.stacks)):
        monkeypatch.setattr(
            module,
            "export",
            lambda events_or_store, path, _name=name, **more: calls.append((_name, events_or_store, path, more)),
        )
    events.export_chrome_trace("t.json")
    events.export_stacks("s.txt", "self_cuda_time_total")
    assert calls[0][1] is events
    assert [(name, path, more) for name, _, path, more in calls] == [
        ("event_list", "t.json", {}),
        ("stacks", "s.txt", {"metric": "self_cuda_time_total", "even_if_empty": True}),
    ]
    assert calls[1][1] is events._rows.whole


def test_events_made_by_hand_become_a_short_trace(tmp_path):
    events = event_list(("a", 3, 0, 10), ("b", 3, 2, 5), ("without a name for traces", 3, 3, 4))
    for event in events[:2]:
        event.trace_name = event.name
    events.export_chrome_trace(tmp_path / "t.json")
    spans = json.loads((tmp_path / "t.json").read_text())
    assert [(s["name"], s["ph"], s["ts"], s["dur"], s["tid"], s["pid"]) for s in spans] == [
        ("a", "X", 0, 10, 3, "CPU functions"),
        ("b", "X", 2, 3, 3, "CPU functions"),
    ]


def test_metrics_of_stacks(events):
    metrics = ["self_cpu_time_total", "self_cuda_time_total", "self_xpu_time_total", "self_privateuse1_time_total"]
    assert events.supported_export_stacks_metrics() == metrics
    with pytest.raises(ValueError, match="metric should be one of"):
        events.export_stacks("s.txt", "cpu_time_total")


def test_unknown_exporters_are_named():
    with pytest.raises(ValueError, match=r"unknown exporter 'nonsense', known are: ascend, .*event_list, .*stacks"):
        writers.get("nonsense")
