"""Kernels as libmspti tells them: every one of every call, each with its launch, whatever the library gets wrong."""

from __future__ import annotations

import ctypes
import threading
import warnings

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2._backends.npu import mspti, mspti_records
from mindtorch_v2._dispatch import observer
from mindtorch_v2._dispatch.observer import ActivityRecords
from mindtorch_v2.profiler import ProfilerActivity, profile
from mindtorch_v2.profiler.recording import device, device_columns, device_join
from mindtorch_v2.profiler.recording.device_join import Launch, Launched, join
from mindtorch_v2.profiler.recording.recorder import Recorder

from .models import MODELS, losses

BOTH = [ProfilerActivity.CPU, ProfilerActivity.NPU]


@pytest.fixture
def kernels_of(npu):
    """How many kernels a call of an operator runs on the simulator."""
    library = ctypes.CDLL(str(npu.paths["libascendcl.so"]))
    if not hasattr(library, "sim_kernels_of"):
        pytest.skip("only the simulator knows")
    return lambda operator: library.sim_kernels_of(operator.encode())


def kernels_by_call(store):
    """The kernels of each launch, by its correlation number, and the name of the call."""
    rows = np.flatnonzero((store.kind == observer.KERNEL) & (store.device_type != 0))
    calls = np.flatnonzero((store.kind == observer.RUNTIME) & (store.correlation >= 0))
    names = {int(store.correlation[row]): store.names[store.name[row]] for row in calls}
    found = {number: [] for number, name in names.items() if name.startswith("aclnn")}
    for row in rows:
        found[int(store.correlation[row])].append(row)
    return names, found


@pytest.mark.parametrize("model", MODELS)
def test_every_kernel_of_every_call_is_there_after_its_launch(npu, kernels_of, model):
    with profile(activities=BOTH) as prof:
        losses(model, "adamw", "npu", 2)
    store = prof.profiler.store
    names, found = kernels_by_call(store)
    assert len(found) > 50
    assert {n: len(rows) for n, rows in found.items()} == {n: kernels_of(names[n].removeprefix("aclnn")) for n in found}
    for number, rows in found.items():
        (call,) = np.flatnonzero((store.kind == observer.RUNTIME) & (store.correlation == number))
        assert (store.start[rows] >= store.start[call]).all()
        assert any(names[number].removeprefix("aclnn") in store.names[store.name[row]] for row in rows)
    assert_streams_do_one_thing_at_a_time(store)
    assert "losses" not in store.metadata


def test_threads_that_launch_at_once_keep_their_own(npu):
    operations = {"first": torch.exp, "second": torch.neg, "third": torch.relu}
    inputs = {name: torch.ones(32, 32, device="npu") for name in operations}
    torch.npu.synchronize()
    barrier = threading.Barrier(len(operations))

    def work(name):
        with torch.npu.stream(torch.npu.Stream()), torch.profiler.record_function(name):
            barrier.wait()
            for _ in range(20):
                operations[name](inputs[name])

    config = torch.profiler._ExperimentalConfig(profile_all_threads=True)
    with profile(activities=BOTH, experimental_config=config) as prof:
        threads = [threading.Thread(target=work, args=(name,)) for name in operations]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    kernels = {
        event.name: [kernel.name for kernel in event.kernels]
        for event in prof.events()
        if event.name.startswith("aten::") and event.kernels
    }
    assert kernels == {f"aten::{o}": [f"aclnn{o.title()}_{o.title()}AiCore_{o.title()}"] for o in ("exp", "neg", "relu")}
    for name, op in (("aten::exp", "Exp"), ("aten::neg", "Neg"), ("aten::relu", "Relu")):
        assert next(row for row in prof.key_averages() if row.key == name).count == 20
        assert next(row for row in prof.key_averages() if row.key == f"aclnn{op}_{op}AiCore_{op}").count == 20


def test_threads_that_share_a_stream_keep_their_own(npu):
    """Calls of several kernels, some of which have the same names whatever launched them."""
    operations = [lambda x: x @ x, lambda x: x.relu(), lambda x: x + 1]
    x = torch.ones(32, 32, device="npu")
    torch.npu.synchronize()
    barrier = threading.Barrier(3)

    def work(first):
        barrier.wait()
        for number in range(30):
            operations[(first + number) % 3](x)

    config = torch.profiler._ExperimentalConfig(profile_all_threads=True)
    with profile(activities=BOTH, experimental_config=config) as prof:
        threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert kernels_by_op(prof) == {op: [kernels] * 30 for op, kernels in BY_RECORDS.items()}


def test_what_kernels_have_in_common_is_written_once(npu, monkeypatch):
    written = []
    dumps = device_columns.dumps
    monkeypatch.setattr(device_columns, "dumps", lambda value: (written.append(value), dumps(value))[1])
    x = torch.ones(8, device="npu")
    with profile(activities=BOTH) as prof:
        for _ in range(20):
            x + 1
    assert sum(event.device_type == "NPU" for event in prof.events()) == 20
    assert written == [{"device": 0, "stream": torch.npu.current_stream().number, "Accelerator Core": "AI_VECTOR_CORE"}]


def test_waits_are_calls_of_their_thread(npu):
    x = torch.ones(8, device="npu")
    with profile(activities=BOTH) as prof:
        (x + 1).cpu()
    names = [event.name for event in prof.events()]
    assert names.count("aclrtSynchronizeStreamWithTimeout") == 1  # and not the one at the end of the recording
    assert names.count("aclnnAdds") == names.count("aclrtMemcpyAsync") == 1


def test_ranges_of_the_device_are_on_its_lane(npu):
    marks = ctypes.CDLL(str(npu.paths["libascendcl.so"].parent / "libms_tools_ext.so"))
    marks.mstxRangeStartA.restype = ctypes.c_uint64
    marks.mstxRangeStartA.argtypes = [ctypes.c_char_p, ctypes.c_void_p]
    marks.mstxRangeEnd.argtypes = [ctypes.c_uint64]
    x = torch.ones(8, device="npu")
    stream = torch.npu.current_stream()
    with profile(activities=BOTH) as prof:
        number = marks.mstxRangeStartA(b"epoch", stream.handle)
        x + 1
        marks.mstxRangeEnd(number)
    store = prof.profiler.store
    (row,) = np.flatnonzero((store.kind == observer.SCOPE) & (store.device_type != 0))
    (kernel,) = np.flatnonzero(store.is_work)
    assert store.names[store.name[row]] == "epoch"
    assert store.tid[row] == store.tid[kernel]
    assert store.start[row] <= store.start[kernel] <= store.end[kernel] <= store.end[row]


def test_two_recordings_share_the_library(npu):
    x = torch.ones(8, device="npu")
    outer = profile(activities=BOTH)
    outer.start()
    x + 1
    with torch.autograd.profiler.profile(use_device="npu") as inner:
        x * 2
    x - 1
    outer.stop()

    def kernels(prof):
        return [event.name.partition("_")[0] for event in prof if event.device_type == "NPU"]

    assert kernels(inner.function_events) == ["aclnnMuls"]
    assert kernels(outer.events()) == ["aclnnAdds", "aclnnMuls", "aclnnSubs"]


def test_without_the_library_events_are_used_and_that_is_said_once(npu, monkeypatch):
    def missing():
        raise mspti.MsptiError("CANN's libmspti.so was not found")

    timing = observer.device_timing("npu")
    monkeypatch.setitem(observer.device_timings, "npu", timing._replace(activities=missing))
    x = torch.ones(8, device="npu")
    with pytest.warns(UserWarning, match=r"by pairs of events, one for each call: CANN's libmspti.so was not found"):
        prof = profile(activities=BOTH)
        prof.start()
    x + 1
    prof.stop()
    assert "Adds" in {event.name for event in prof.events()}
    with profile(activities=BOTH):  # a second warning would be an error
        x + 1


def test_a_recording_that_cannot_start_lets_go_of_the_library(npu, monkeypatch):
    prof = profile(activities=BOTH)

    def fail(self, step=0):
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(Recorder, "start", fail)
        with pytest.raises(MemoryError):
            prof.start()
    assert mspti._collector()._listeners == ()


def test_a_forked_child_ends_and_uses_events(in_process):
    code = """
        import os, warnings
        import mindtorch_v2 as torch
        from mindtorch_v2._backends.npu import mspti
        from mindtorch_v2.profiler import ProfilerActivity, profile

        x = torch.ones(3, device="npu")
        torch.npu.synchronize()  # so that its kernel does not run inside of the recording
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.NPU]) as prof:
            x + 1
            child = os.fork()
            if not child:
                try:
                    mspti.Activities().start()
                except mspti.MsptiError as error:
                    print(error, flush=True)
                sys.exit()
            os.waitpid(child, 0)
        print(sum(event.device_type == "NPU" for event in prof.events()))
    """
    run = in_process(code)
    assert run.stdout.splitlines() == [
        "libmspti was loaded before this process was forked, and its threads are the parent's",
        "1",
    ], run.stdout + run.stderr


# ---------------------------------------------------------------- faults of the library

BY_RECORDS = {
    "aten::mm": ["trans_TransData_*", "aclnnMm_MmAiCore_Mm"],
    "aten::relu": ["aclnnRelu_ReluAiCore_Relu"],
    "aten::add": ["aclnnAdds_AddsAiCore_Adds"],
}
BY_EVENTS = {"aten::mm": ["Mm"], "aten::relu": ["Relu"], "aten::add": ["Adds"]}


@pytest.fixture
def recorded(npu, monkeypatch):
    """Records forty kernels and a copy with settings of the simulator; gives the profile and what it warned of."""

    def record(**settings):
        x, w = torch.ones(16, 16, device="npu"), torch.ones(16, 16, device="npu")
        torch.npu.synchronize()
        for name, value in settings.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(device, "_told", set())
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            with profile(activities=BOTH) as prof:
                for _ in range(10):
                    y = (x @ w).relu() + 1
                y.cpu()
        return prof, [str(each.message) for each in told]

    return record


def kernels_by_op(prof):
    """The kernels of each call of the three ops, in order of their starts."""
    calls = {op: [] for op in BY_RECORDS}
    for event in prof.events():
        if event.name in calls:
            calls[event.name].append([kernel.name for kernel in event.kernels])
    return calls


def assert_streams_do_one_thing_at_a_time(store):
    on_device = np.flatnonzero(store.is_work)
    for lane in np.unique(store.tid[on_device]):
        own = on_device[store.tid[on_device] == lane]
        own = own[np.lexsort((store.end[own], store.start[own]))]
        assert (store.start[own][1:] >= store.end[own][:-1]).all()


@pytest.mark.parametrize(
    ("fault", "each", "missing", "note"),
    [
        ("", BY_RECORDS, 0, None),
        ("mspti:subscribed", BY_EVENTS, 0, "by pairs of events, one for each call: msptiSubscribe failed with 2"),
        ("mspti:offline", BY_EVENTS, 0, "by pairs of events, one for each call: msptiActivityEnable failed with 4"),
        ("mspti:old", BY_RECORDS, 0, "libmspti tells nothing of collectives"),
        ("mspti:silent", BY_RECORDS, 40, "the device told nothing of 30 of 31 launches"),
        ("mspti:lost", BY_RECORDS, 13, "the device told nothing of"),
        ("mspti:unlinked", BY_RECORDS, 0, None),
        ("mspti:repeated", BY_RECORDS, 0, None),
        ("mspti:early", BY_RECORDS, 0, "the device's times are moved by"),
        ("mspti:no_marks", BY_RECORDS, 0, "libmspti did not tell of the end of 1 streams"),
        ("mspti:truncated", BY_RECORDS, None, "bytes of libmspti's records could not be read"),
        ("mspti:unknown", BY_RECORDS, 0, "bytes of libmspti's records could not be read"),
    ],
)
def test_each_fault_leaves_a_profile_that_says_what_is_missing(recorded, fault, each, missing, note):
    prof, told = recorded(ASCEND_SIM_FAULT=fault)
    store = prof.profiler.store
    work = np.flatnonzero(store.is_work)
    assert (store.start[work] >= store.launch_ns[work]).all() and (store.launcher[work] >= 0).all()
    assert_streams_do_one_thing_at_a_time(store)
    calls = kernels_by_op(prof)
    assert [len(calls[op]) for op in each] == [10, 10, 10]
    if missing == 0:
        assert calls == {op: [kernels] * 10 for op, kernels in each.items()}
    else:  # what is left is with its own op
        assert all(set(kernels) <= set(each[op]) for op in each for kernels in calls[op])
    whole = 10 * sum(map(len, each.values()))
    there = [int((store.kind[work] == kind).sum()) for kind in (observer.KERNEL, observer.COPY)]
    if missing is None:  # the last record of each buffer lacks its last 12 bytes; the smallest has 48
        unread = sum(int(text.partition(" bytes of")[0].split()[-1]) for text in told if note in text)
        assert 0 <= whole - there[0] <= unread // 36 and there[1] == 1
    else:
        assert there == [whole - missing, 1]
    assert any(note in text for text in told) if note else not told


def test_what_ran_before_the_device_was_lost_is_kept(in_process):
    code = """
        import warnings
        import mindtorch_v2 as torch
        from mindtorch_v2.profiler import ProfilerActivity, profile

        x = torch.ones(16, 16, device="npu")
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.NPU]) as prof:
                try:
                    while True:
                        x + 1
                        torch.npu.synchronize()
                except RuntimeError:
                    pass
        kernels = sum(event.device_type == "NPU" for event in prof.events())
        ops = sum(event.name == "aten::add" for event in prof.events())
        print(kernels > 10, ops - kernels < 3, *(each.message for each in told), sep="; ")
    """
    run = in_process(code, ASCEND_SIM_FAULT="device_lost:5000")
    assert run.stdout.startswith("True; True; the device no longer tells when its work ran"), run.stdout + run.stderr


@pytest.mark.parametrize("setting", [{"ASCEND_SIM_MSPTI_DELAY_MS": "300"}, {"ASCEND_SIM_MSPTI_FULL": "200"}])
def test_late_records_and_many_buffers_are_waited_for(recorded, setting):
    prof, told = recorded(**setting)
    assert (kernels_by_op(prof), told) == ({op: [kernels] * 10 for op, kernels in BY_RECORDS.items()}, [])


def test_without_memory_for_buffers_the_rest_is_kept(npu, monkeypatch):
    collector = mspti._collector()
    x = torch.ones(8, device="npu")

    class NoMemory(list):
        def __bool__(self):
            raise MemoryError

    monkeypatch.setattr(collector, "_spare", NoMemory())
    prof = profile(activities=BOTH)
    prof.start()
    x + 1
    with pytest.warns(RuntimeWarning) as told:
        prof.stop()
    assert any("no memory for libmspti's records" in str(each.message) for each in told)
    assert "aten::add" in {event.name for event in prof.events()}


# ---------------------------------------------------------------- records and launches that are made up


def made_up_records(**columns):
    empty = {"device": [], "stream": [], "start": [], "end": [], "correlation": [], "name": [], "details": []}
    calls = {"thread": [], "start": [], "end": [], "correlation": [], "name": []}

    def arrays(given):
        return {key: values if key in ("name", "details") else np.array(values, np.int64) for key, values in given.items()}

    kernels = {**empty, **columns.get("kernels", {})}
    kernels["details"] = [{}] * len(kernels["name"])
    return ActivityRecords(arrays(kernels), arrays(empty), arrays({**calls, **columns.get("calls", {})}), arrays(empty), [])


class Stream:
    device_index, number = 0, 7


STREAM = Stream()


def launches(*spans, thread=1):
    return [Launched(Launch("kernel", name, thread, STREAM, began, None, 0), ended, None) for name, began, ended in spans]


def test_numbers_that_come_again_are_told_apart_by_order():
    launched = launches(("Exp", 0, 10), ("Neg", 20, 30), ("Exp", 40, 50))
    calls = {"thread": [1, 1, 1], "start": [2, 22, 42], "end": [8, 28, 48], "correlation": [5, 6, 5], "name": ["a", "b", "c"]}
    kernels = {
        "device": [0] * 3, "stream": [7] * 3, "start": [100, 200, 300], "end": [150, 250, 350], "correlation": [5, 6, 5],
        "name": ["x", "y", "z"],
    }  # fmt: skip
    joined = join(launched, made_up_records(calls=calls, kernels=kernels), lambda times: times)
    assert [(work.name, work.launch) for work in joined.work] == [("x", 0), ("y", 1), ("z", 2)]
    assert joined.calls == [] and joined.notes == []


def test_a_kernel_without_a_number_is_of_the_call_that_follows():
    """Kernels that come before a call's own have names that do not tell whose they are."""
    launched = launches(("Exp", 0, 10), ("Mm", 20, 30))
    calls = {"thread": [1, 1], "start": [2, 22], "end": [8, 28], "correlation": [5, 6], "name": ["a", "b"]}
    kernels = {
        "device": [0] * 3, "stream": [7] * 3, "start": [100, 200, 300], "end": [150, 250, 350], "correlation": [5, 0, 6],
        "name": ["x", "trans_TransData_0", "z"],
    }  # fmt: skip
    joined = join(launched, made_up_records(calls=calls, kernels=kernels), lambda times: times)
    assert [(work.name, work.launch) for work in joined.work] == [("x", 0), ("trans_TransData_0", 1), ("z", 1)]


def test_kernels_that_overlap_by_the_error_of_the_clock_are_put_one_after_another():
    launched = launches(("Exp", 0, 10), ("Neg", 20, 30), ("Abs", 40, 50))
    calls = {"thread": [1] * 3, "start": [2, 22, 42], "end": [8, 28, 48], "correlation": [5, 6, 7], "name": ["a", "b", "c"]}
    kernels = {
        "device": [0] * 3, "stream": [7] * 3, "start": [100, 199, 350], "end": [200, 300, 400], "correlation": [5, 6, 7],
        "name": ["x", "y", "z"],
    }  # fmt: skip
    joined = join(launched, made_up_records(calls=calls, kernels=kernels), lambda times: times)
    apart = device_join.APART_NS
    assert [(work.start, work.end) for work in joined.work] == [(100, 200), (200 + apart, 300), (350, 400)]


def test_a_kernel_without_a_launch_is_kept_and_counted():
    kernels = {
        "device": [0] * 2,
        "stream": [9] * 2,
        "start": [100, 200],
        "end": [150, 250],
        "correlation": [5, 4],
        "name": ["x", "y"],
    }
    calls = {"thread": [3], "start": [2], "end": [8], "correlation": [5], "name": ["aclOther"]}
    joined = join(launches(("Exp", 0, 10)), made_up_records(kernels=kernels, calls=calls), lambda times: times)
    assert [(work.name, work.launch) for work in joined.work] == [("x", -1)]  # y was launched before the recording
    assert joined.notes == [
        "the device told nothing of 1 of 1 launches",
        "1 of 1 kernels could not be linked to the call that launched them",
    ]


def test_calls_of_other_threads_own_no_launch():
    calls = {"thread": [2], "start": [2], "end": [8], "correlation": [5], "name": ["aclrtWait"]}
    joined = join(launches(("Exp", 0, 10)), made_up_records(calls=calls), lambda times: times)
    assert joined.calls == [device_join.Call("aclrtWait", 2, 2, 8)]


def test_buffers_are_walked_by_the_sizes_of_their_records():
    kinds = [2, 10, 9, 8, 1, 3, 2]
    buffer = bytearray()
    for number, kind in enumerate(kinds):
        record = bytearray(mspti_records.SIZES[kind])
        record[:4] = kind.to_bytes(4, "little")
        record[4:12] = number.to_bytes(8, "little")
        buffer += record
    found, unread = mspti_records.walk(bytes(buffer))
    assert {kind: len(records) for kind, records in found.items()} == {1: 1, 2: 2, 3: 1, 9: 1, 10: 1}
    assert found[2]["start"].tolist() == [0, 6]
    assert unread == 0
    assert mspti_records.walk(bytes(buffer[:-8]))[1] == 48
    assert mspti_records.walk(b"") == ({}, 0)
