"""with_stack="sampled": which ops get a stack, what that may cost, and what says so."""

from __future__ import annotations

import json
import threading

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import profiler
from mindtorch_v2.profiler import profile
from mindtorch_v2.profiler.recording.stack_samples import WIDTH, StackSamples


class Clock:
    """Goes on by `tick` nanoseconds at each reading."""

    def __init__(self, tick: int = 0) -> None:
        self.now, self.tick = 0, tick

    def __call__(self) -> int:
        self.now += self.tick
        return self.now


def sampled_starts(samples):
    return samples.rows[1::WIDTH]


def append_at(clock, append, moments):
    for moment in moments:
        clock.now = moment
        append((7, moment, moment + 1, -1))


def test_ops_are_sampled_at_most_so_many_times_a_second():
    clock, rows = Clock(), []
    samples = StackSamples(clock, per_second=1e6)  # one in 1,000 ns
    append = samples.wrap_append_row(rows.extend)
    append_at(clock, append, [10, 20, 1009, 1010, 1500, 2009, 2010, 9000])
    assert sampled_starts(samples) == [10, 1010, 2010, 9000]
    assert rows[1::4] == [10, 20, 1009, 1010, 1500, 2009, 2010, 9000]  # every row is there
    assert samples.rows[::WIDTH] == [7] * 4
    assert samples.rows[2::WIDTH] == [0] * 4 and len(samples.stacks) == 1  # one place, one stack


def test_a_rest_follows_a_sample_that_took_long():
    clock, rows = Clock(tick=300), []
    samples = StackSamples(clock, per_second=1e6)
    append = samples.wrap_append_row(rows.extend)
    append_at(clock, append, [0, 1500, 6299, 6300, 20000])
    assert sampled_starts(samples) == [0, 6300, 20000]  # begun at 300, took 300: none before 300 + 20 * 300


def inner(x):
    return x + x


def outer(x, function=inner):
    return function(x)


def stacks_of(**options):
    x = torch.ones(2, 2)
    layer = torch.nn.Linear(2, 2)
    with profile(**options) as prof:
        outer(x)
        sorted([1, 2], key=lambda value: outer(x, torch.neg).sum().item())
        layer(x)
    return prof, [(event.name, list(event.stack)) for event in prof.events() if event.name.startswith("aten::")]


@pytest.mark.parametrize("more", [{}, {"record_shapes": True}, {"record_shapes": True, "profile_memory": True}])
def test_sampled_stacks_are_those_of_traced_calls(more):
    _, traced = stacks_of(with_stack=True, **more)
    prof, sampled = stacks_of(with_stack="sampled", stacks_per_second=1e9, **more)
    expected = dict.fromkeys(name for name, _ in traced)
    assert dict.fromkeys(name for name, _ in sampled) == expected
    traced_stacks = {(name, *_user_frames(stack)) for name, stack in traced}
    with_stack = [(name, *_user_frames(stack)) for name, stack in sampled if stack]
    assert with_stack and set(with_stack) <= traced_stacks
    assert not any(event.name.startswith("python") or "(" in event.name for event in prof.events())


def _user_frames(stack):
    """The frames that both recordings have: builtins such as sorted() are calls that only a tracer sees."""
    return [frame for frame in stack if frame.endswith((": inner", ": outer", ": <lambda>"))]


def test_what_was_sampled_is_said(tmp_path):
    prof, _ = stacks_of(with_stack="sampled")
    ops = sum(event.name.startswith("aten::") for event in prof.events())
    note = prof._recording().metadata["sampled_stacks"]
    count = int(note.split()[2])
    assert note == f"stacks of {count} of {ops} ops, sampled at most 1000 times a second" and 1 <= count <= ops
    assert f"Note: {note}" in prof.key_averages().table()
    assert f"Note: {note}" in prof.events().table()
    assert any(note in str(problem) for problem in profiler.validate(prof))
    path = tmp_path / "trace.json"
    prof.export_chrome_trace(str(path))
    trace = json.loads(path.read_text(encoding="utf-8"))
    assert trace["sampled_stacks"] == note and trace["with_stack"] == 1
    prof.export_html(str(tmp_path / "page.html"))
    assert note in (tmp_path / "page.html").read_text(encoding="utf-8")
    saved = tmp_path / "run.mtp"
    prof.save(str(saved))
    assert f"Note: {note}" in profiler.load(str(saved)).key_averages().table()


def test_recordings_without_samples_have_no_note():
    prof, _ = stacks_of(with_stack=True)
    assert "Note:" not in prof.key_averages().table()


def test_threads_have_samples_of_their_own():
    x = torch.ones(2)
    config = torch.profiler._ExperimentalConfig(profile_all_threads=True)
    with profile(with_stack="sampled", stacks_per_second=1e9, experimental_config=config) as prof:
        thread = threading.Thread(target=outer, args=(x,))
        thread.start()
        thread.join()
        outer(x)
    adds = [event for event in prof.events() if event.name == "aten::add"]
    assert len({event.thread for event in adds}) == 2
    assert all("inner" in event.stack[0] for event in adds)


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"with_stack": "sampled", "stacks_per_second": 0}, ValueError, "more than 0"),
        ({"with_stack": "sampled", "stacks_per_second": -1.0}, ValueError, "more than 0"),
        ({"with_stack": "sampled", "stacks_per_second": float("nan")}, ValueError, "more than 0"),
        ({"with_stack": "sampled", "stacks_per_second": float("inf")}, ValueError, "at most 1e9"),
        ({"with_stack": "sampled", "stacks_per_second": "1"}, TypeError, "must be a number, not str"),
        ({"with_stack": "sampled", "stacks_per_second": True}, TypeError, "must be a number, not bool"),
        ({"with_stack": True, "stacks_per_second": 10}, ValueError, "is for with_stack='sampled'"),
        ({"stacks_per_second": 10}, ValueError, "is for with_stack='sampled'"),
        ({"with_stack": "sampled", "max_memory_mb": 1, "mode": "ring"}, ValueError, "keeps its stacks in memory"),
        ({"with_stack": "sampled", "stream_to": "x.mtp"}, ValueError, "keeps its stacks in memory"),
    ],
)
def test_bad_values_are_refused(options, error, text):
    with pytest.raises(error, match=text):
        profile(**options)


def test_other_texts_are_refused_as_torch_refuses_them():
    with pytest.raises(TypeError, match="with_stack must be a bool, not str"), profile(with_stack="samples"):
        pass


def test_a_memory_profile_needs_traced_calls():
    with profile(with_stack="sampled", record_shapes=True, profile_memory=True) as prof:
        outer(torch.ones(2))
    with pytest.raises(ValueError, match="with_stack=True required"):
        prof._memory_profile()
