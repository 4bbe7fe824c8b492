"""Copies and pickles: results can be copied and are equal; what runs is refused at once."""

from __future__ import annotations

import copy
import dataclasses
import multiprocessing
import pickle
import weakref

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.profiler import ExecutionTraceObserver, profile, record_function, schedule
from mindtorch_v2.profiler.results.loaded import LoadedProfile, load
from mindtorch_v2.profiler.views.event_list import EventList
from mindtorch_v2.profiler.views.events import FunctionEvent

x = torch.ones(3)


def pickled(value):
    return pickle.loads(pickle.dumps(value))


WAYS = {"copy": copy.copy, "deepcopy": copy.deepcopy, "pickle": pickled}
ways = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)


def recorded(**options):
    with profile(record_shapes=True, with_stack=True, profile_memory=True, with_modules=True, **options) as prof:
        with record_function("label"):
            torch.nn.Linear(3, 3)(x).sum().backward()
    prof.add_metadata("said", "hello")
    return prof


@pytest.fixture(scope="module")
def prof():
    return recorded()


@ways
def test_a_finished_profile_is_its_recording(prof, way, tmp_path):
    other = way(prof)
    assert type(other) is LoadedProfile and other.store is not prof.profiler.store
    assert other.events().to_dict() == prof.events().to_dict()
    assert other.key_averages().to_dict() == prof.key_averages().to_dict()
    assert other.store.metadata["said"] == "hello" and "said" not in prof.profiler.store.metadata
    prof.save(tmp_path / "a.mtp")
    other.save(tmp_path / "b.mtp")
    saved, again = (load(tmp_path / name) for name in ("a.mtp", "b.mtp"))
    assert saved.events().to_dict() == again.events().to_dict() and saved.store.options == again.store.options


@ways
def test_a_loaded_profile(prof, way, tmp_path):
    prof.save(tmp_path / "a.mtp")
    loaded = load(tmp_path / "a.mtp")
    loaded.events()  # so that the store has derived columns and a weak reference to its visible rows
    assert way(loaded).events().to_dict() == loaded.events().to_dict()
    assert way(loaded).recovery == loaded.recovery


@ways
def test_a_list_of_events(prof, way):
    events = prof.events()
    other = way(events)
    assert type(other) is EventList and other.to_dict() == events.to_dict() and other.table() == events.table()
    assert (other[0] is events[0]) == (way is copy.copy)
    assert other[0].cpu_children[0].cpu_parent is other[0]
    other.append(1)
    assert len(other) == len(events) + 1


@ways
def test_averages(prof, way):
    averages = prof.key_averages()
    other = way(averages)
    assert other.to_dict() == averages.to_dict() and other.table() == averages.table()
    assert [one.cpu_parent and one.cpu_parent.name for one in other] == [
        one.cpu_parent and one.cpu_parent.name for one in averages
    ]
    assert way(averages[0]).count == averages[0].count
    assert vars(way(prof.events().total_average()))["cpu_time_total"] == prof.events().total_average().cpu_time_total


@ways
def test_an_event(prof, way):
    event = prof.events()[0]
    other = way(event)
    assert type(other) is FunctionEvent and other is not event
    assert repr(other) == repr(event) and other["step"] == event["step"]
    assert [child.name for child in other.cpu_children] == [child.name for child in event.cpu_children]
    other.name = "changed"
    assert event.name != "changed"


@pytest.mark.parametrize("way", [copy.deepcopy, pickled])
def test_events_of_one_copy_belong_together(prof, way):
    parent = prof.events()[0]
    child, again = way([parent.cpu_children[0], parent])
    assert child.cpu_parent is again and again.cpu_children[0] is child


@pytest.mark.parametrize("way", [copy.deepcopy, pickled])
def test_changed_events_stay_changed(way):
    events = recorded().events()
    events[0].name = "changed"
    other = way(events)
    assert other[0].name == "changed" and other[0] is other[0].cpu_children[0].cpu_parent
    assert other.to_dict() == events.to_dict() and other[0]["step"] == events[0]["step"]
    one = way(events[0].cpu_children[0])
    assert one.cpu_parent.name == "changed"
    assert way(events[0]).name == "changed"


@pytest.mark.parametrize("way", [copy.deepcopy, pickled])
@pytest.mark.parametrize("constructed", [True, False])
def test_events_may_be_nested_deeply(way, constructed):
    count = 1500  # deeper than the recursion limit
    events = EventList(FunctionEvent(at, f"e{at}", 1, at, 2 * count - at, stack=[]) for at in range(count))
    events._build_tree()
    if not constructed:
        with profile() as prof:
            scopes = [record_function(f"e{at}") for at in range(count)]
            for scope in scopes:
                scope.__enter__()
            for scope in reversed(scopes):
                scope.__exit__(None, None, None)
        events = prof.events()
        for event in events:
            event.count = 2
    other = way(events)
    assert other.to_dict() == events.to_dict() and other[0] is not events[0]
    deepest, depth = other[count - 1], 0
    while deepest.cpu_parent is not None:
        deepest, depth = deepest.cpu_parent, depth + 1
    assert deepest is other[0] and depth == count - 1


@ways
def test_native_events(prof, way):
    results = prof.profiler.kineto_results
    assert [event.name() for event in way(results).events()] == [event.name() for event in results.events()]
    assert [event.start_ns() for event in way(results.events())] == [event.start_ns() for event in results.events()]
    tree = results.experimental_event_tree()
    assert [event.name for event in way(tree)] == [event.name for event in tree]


@ways
def test_answers(prof, way):
    for value in (prof.overhead(), prof.advice(), prof._memory_profile().timeline):
        assert repr(way(value)) == repr(value)
    finding = dataclasses.replace(next(iter(prof.advice()), None) or _finding(), title="other")
    assert way(finding) == finding


def _finding():
    from mindtorch_v2.profiler.analysis.findings import Finding

    return Finding("rule", "title", "detail")


RUNNING = {
    "profile": lambda: profile(),
    "waiting": lambda: profile(schedule=schedule(wait=5, warmup=0, active=1)),
    "streamed": lambda: profile(max_memory_mb=1, mode="ring"),
    "autograd": lambda: torch.autograd.profiler.profile(),
}


@ways
@pytest.mark.parametrize("make", RUNNING.values(), ids=RUNNING)
@pytest.mark.filterwarnings("ignore:Profiler won't be using warmup")
def test_what_runs_is_refused(way, make):
    with make() as prof:
        x + x
        with pytest.raises(TypeError, match="a running profile cannot be copied or pickled"):
            way(prof)
        x * x
    if getattr(prof, "profiler", prof) is not None:
        assert "aten::mul" in [event.name for event in way(prof).events()]


@ways
def test_statistics(way):
    with profile(max_memory_mb=1, mode="aggregate") as prof:
        x + x
    stats = prof.aggregate()
    assert way(stats).to_dict() == stats.to_dict()
    with pytest.raises(RuntimeError, match=r"aggregate\(\) has the statistics"):
        way(prof)


@ways
def test_a_profile_that_never_ran(way):
    other = way(profile(record_shapes=True))
    assert type(other) is profile and other.record_shapes
    with other:
        x + x
    assert len(other.events()) == 1


@ways
def test_an_open_label_is_copied_closed(way):
    with profile() as prof, record_function("outer", "said") as scope:
        with way(scope):
            x + x
        assert way(scope).args == "said"
    names = [event.name() for event in prof.profiler.kineto_results.events()]
    assert names.count("outer") == 2  # events() merges an only child named like its parent


@ways
def test_an_observer_that_runs_is_refused(way, tmp_path):
    observer = ExecutionTraceObserver().register_callback(str(tmp_path / "et.json"))
    observer.start()
    try:
        with pytest.raises(TypeError, match="an observer that is registered cannot be copied or pickled"):
            way(observer)
    finally:
        observer.stop()
        observer.unregister_callback()
    assert way(observer).get_output_file_path() == observer.get_output_file_path()


def _names(events):
    return [event.name for event in events]


def test_results_go_to_another_process(prof):
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(_names, (prof.events(),)) == _names(prof.events())
        assert pool.apply(LoadedProfile.__len__, (prof,)) == len(prof.profiler.store)


def test_weak_references(prof):
    for value in (prof, prof.events(), prof.events()[0], prof.key_averages(), prof.key_averages()[0]):
        assert weakref.ref(value)() is value or isinstance(value, EventList)


def test_comparisons(prof):
    events = prof.events()
    assert events == prof.events() and events[0] == events[0] and events[0] != events[1]
    assert copy.copy(events) == events and events != []
