"""The recorder, fed by hand: what ops, scopes and modules hand over, and the store it becomes."""

from __future__ import annotations

import _thread
import contextvars
import gc
import threading
import weakref

import numpy as np
import pytest
from retention_cases import Clock

import mindtorch_v2 as torch
from mindtorch_v2._core.storage import Storage, allocation
from mindtorch_v2._core.tensor import Tensor, make_tensor, storage_of
from mindtorch_v2._core.threads import threads
from mindtorch_v2._dispatch import entry_globals, observer
from mindtorch_v2._dispatch.schema import parse
from mindtorch_v2.profiler import profile
from mindtorch_v2.profiler.assembly.freeze import freeze
from mindtorch_v2.profiler.recording import op_inputs
from mindtorch_v2.profiler.recording.record_function import record_function
from mindtorch_v2.profiler.recording.recorder import Options, Recorder, recorders_by_thread


@pytest.fixture
def ops():
    """Two ops of our own at the end of the registry: their ids."""
    first = len(observer.op_names)
    schemas = (
        "pair(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
        "many(Tensor[] tensors, int dim=0, ScalarType? dtype=None, str mode='x') -> Tensor",
    )
    for text in schemas:
        schema = parse(text)
        observer.op_names.append(f"test::{schema.name}")
        observer.op_overloads.append(schema.overload)
        observer.op_schemas.append(schema)
    yield first, first + 1
    for table in (observer.op_names, observer.op_overloads, observer.op_schemas):
        del table[first:]
    op_inputs._codes.clear()


class Holder:
    """As much of a Tensor as the recorder looks at."""

    def __init__(self, *shape, dtype=np.float32):
        self._array = np.zeros(shape, dtype)


def recorded(**options):
    recorder = Recorder(Options(**options), Clock(1000))
    recorder.start()
    return recorder


def rows(store):
    return [(store.names[n], int(s), int(e)) for n, s, e in zip(store.name, store.start, store.end, strict=True)]


def test_rows_become_columns(ops):
    pair, _ = ops
    recorder = recorded()
    state = threads.state
    state.append_row((pair, 2010, 2020, 7))
    state.append_row((pair, 2000, 2030, -1))
    recorder.step(3)
    state.append_row((pair, 3000, 3001, 8))
    recorder.stop()
    store = freeze(recorder)
    assert rows(store) == [("test::pair", 2000, 2030), ("test::pair", 2010, 2020), ("test::pair", 3000, 3001)]
    assert store.seq.tolist() == [-1, 7, 8]
    assert store.parent.tolist() == [-1, 0, -1]
    assert store.kind.tolist() == [observer.OP] * 3
    assert store.op.tolist() == [pair] * 3
    assert [thread.ident for thread in store.threads] == [threading.get_native_id()]


def test_steps_are_numbered_by_when_an_event_began(ops):
    recorder = Recorder(Options(), iter([100, 101, 200, 300, 999]).__next__)
    recorder.start(step=4)
    for start in (150, 250, 350):
        threads.state.append_row((ops[0], start, start + 10, -1))
    recorder.step(5)
    recorder.step(6)
    recorder.stop()
    assert freeze(recorder).step.tolist() == [4, 5, 6]


def test_nothing_is_left_behind(ops):
    state, before = threads.state, entry_globals.observers_active
    recorder = recorded(record_shapes=True, profile_memory=True, with_modules=True, with_stack=True)
    assert entry_globals.observers_active == before + 1 and state.capture_by_op is not None
    recorder.stop()
    assert entry_globals.observers_active == before
    assert (state.append_row, state.capture_by_op, state.span, state.module_enter, state.module_exit) == (None,) * 5
    assert not recorders_by_thread


def test_plain_recording_is_the_buffers_own_extend(ops):
    recorder = recorded()
    assert threads.state.append_row == recorder.thread_recordings[0].rows.extend
    recorder.stop()


def test_spans_have_kinds(ops):
    recorder = recorded()
    span = threads.state.span
    span("MulBackward0", observer.BACKWARD, 2010, 2020, 5)
    span("evaluate", observer.ENGINE, 2000, 2030, 5)
    span("MulBackward0", observer.SCOPE, 2100, 2110, -1)
    recorder.stop()
    store = freeze(recorder)
    assert [store.names[n] for n in store.name] == ["evaluate", "MulBackward0", "MulBackward0"]
    assert store.kind.tolist() == [observer.ENGINE, observer.BACKWARD, observer.SCOPE]
    assert store.fwd_tid.tolist() == [0, 0, -1]
    assert store.op.tolist() == [-1, -1, -1]


def test_a_span_that_began_earlier_is_not_ours(ops):
    recorder = recorded()
    threads.state.span("early", observer.SCOPE, 5, 2000, -1)
    recorder.stop()
    assert len(freeze(recorder)) == 0


def test_recorders_of_one_thread_each_get_their_own_time(ops):
    pair, _ = ops
    state = threads.state
    outer = recorded()
    state.append_row((pair, 2000, 2001, -1))
    inner = recorded(record_shapes=True)
    state.capture_by_op[pair](3000, 3001, -1, Holder(2), Holder(2), 1)
    inner.stop()
    state.append_row((pair, 4000, 4001, -1))
    outer.stop()
    assert [start for _, start, _ in rows(freeze(outer))] == [2000, 3000, 4000]
    assert [start for _, start, _ in rows(freeze(inner))] == [3000]
    assert freeze(inner).shapes.tolist() == [0] and freeze(outer).shapes.tolist() == [-1] * 3


def test_another_thread_is_not_recorded(ops):
    recorder = recorded()
    seen = []
    thread = threading.Thread(target=lambda: seen.append(threads.state.append_row))
    thread.start()
    thread.join()
    recorder.stop()
    assert seen == [None]


def test_pause_and_resume(ops):
    recorder = recorded()
    state = threads.state
    state.append_row((ops[0], 2000, 2001, -1))
    recorder.pause()
    assert state.append_row is None
    recorder.resume()
    state.append_row((ops[0], 3000, 3001, -1))
    recorder.stop()
    assert [start for _, start, _ in rows(freeze(recorder))] == [2000, 3000]


def test_what_was_recorded_so_far_can_be_seen(ops):
    recorder = recorded()
    threads.state.append_row((ops[0], 2000, 2001, -1))
    assert len(freeze(recorder)) == 1
    threads.state.append_row((ops[0], 2010, 2011, -1))
    recorder.stop()
    assert len(freeze(recorder)) == 2


def test_open_scopes_end_with_the_recording():
    recorder = Recorder(Options())
    outside, outer, inner = record_function("outside"), record_function("outer"), record_function("inner")
    outside.__enter__()
    recorder.start()
    outer.__enter__()
    inner.__enter__()
    recorder.stop()
    for scope in (inner, outer, outside):
        scope.__exit__(None, None, None)
    store = freeze(recorder)
    assert [store.names[n] for n in store.name] == ["outer", "inner"]
    assert store.end.tolist() == [recorder.clock_end_ns] * 2
    assert store.parent.tolist() == [-1, 0]


def test_scope_open_across_a_pause_is_recorded_once():
    recorder = Recorder(Options())
    recorder.start()
    with record_function("scope"):
        recorder.pause()
        recorder.resume()
    recorder.stop()
    assert len(freeze(recorder)) == 1


# ------------------------------------------------------------------------------ arguments


def test_inputs_are_told_apart_and_shared(ops):
    pair, many = ops
    recorder = recorded(record_shapes=True)
    detail = threads.state.capture_by_op
    a, b = Holder(2, 3), Holder(3, dtype=np.int64)
    detail[pair](2000, 2001, -1, a, b, 1)
    detail[pair](2010, 2011, -1, a, b, True)
    detail[pair](2020, 2021, -1, a, b, 1.0)
    detail[pair](2030, 2031, -1, Holder(2, 3), b, 1)
    detail[pair](2040, 2041, -1, a, 2.5, None)
    detail[many](2050, 2051, -1, [a, a], 1, None, "mode")
    recorder.stop()
    store = freeze(recorder)
    assert store.shapes[0] == store.shapes[3]
    assert [store.input_infos[at].concrete[2] for at in store.shapes[:5]] == [1, True, 1.0, 1, None]
    info = store.input_infos[store.shapes[0]]
    assert info.dims == ((2, 3), (3,), ()) and info.strides == ((3, 1), (1,), ())
    assert info.types == ("float", "long int", "Scalar")
    assert store.input_infos[store.shapes[4]].types == ("float", "double", "")
    info = store.input_infos[store.shapes[5]]
    assert info.types == ("TensorList", "Scalar", "", "") and info.dims[0] == ((2, 3), (2, 3))


def test_nothing_is_kept_alive(ops):
    recorder = recorded(record_shapes=True)
    held = Holder(2)
    gone = weakref.ref(held._array)
    threads.state.capture_by_op[ops[0]](2000, 2001, -1, held, held, held)
    del held
    gc.collect()
    assert gone() is None
    recorder.stop()


def test_text_of_a_scope_is_an_input_without_shape():
    recorder = Recorder(Options(record_shapes=True))
    recorder.start()
    with record_function("with", "text"):
        pass
    with record_function("without"):
        pass
    recorder.stop()
    store = freeze(recorder)
    assert store.input_infos[store.shapes[0]][:4] == (((),), ("",), ((),), (None,))
    assert store.shapes[1] == -1


# ------------------------------------------------------------------------------ modules


class Layer:
    def __init__(self, **children):
        self._modules = children


def test_ops_know_the_module_they_ran_in(ops):
    leaf = Layer()
    net = Layer(block=Layer(first=leaf))
    recorder = Recorder(Options(with_modules=True))
    recorder.start()
    state = threads.state
    for module in (net, net._modules["block"], leaf):
        state.module_enter(module)
    state.append_row((ops[0], now := recorder.clock(), now + 1, 0))
    while recorder.clock() <= now + 1:
        pass
    for module in (leaf, net._modules["block"], net):
        state.module_exit(module)
    state.append_row((ops[0], after := recorder.clock(), after + 1, -1))
    state.span("PairBackward0", observer.BACKWARD, after + 10, after + 20, 0)
    recorder.stop()
    store = freeze(recorder)
    assert [store.modules[at] if at >= 0 else None for at in store.module] == ["Layer.block.first", None, "Layer.block.first"]


def test_paths_of_modules_that_are_no_submodules_of_their_caller():
    """A ModuleList is not called itself; a module may call one of a submodule's, itself, or one from elsewhere."""
    shared, alone = Layer(), Layer()
    net = Layer(blocks=Layer(**{"0": Layer(lin=Layer()), "1": Layer(lin=shared)}), none=None, near=shared)
    net._modules["self"] = net
    first = net._modules["blocks"]._modules["0"]
    recorder = Recorder(Options(with_modules=True))
    recorder.start()
    state = threads.state
    calls = [(net, first, first._modules["lin"]), (net, first._modules["lin"]), (net, shared), (net, alone), (net, net)]
    for nested in calls:
        for module in nested:
            state.module_enter(module)
        for module in reversed(nested):
            state.module_exit(module)
    recorder.stop()
    paths = [path for path in freeze(recorder).modules if path != "Layer"]
    assert paths == ["Layer.blocks.0", "Layer.blocks.0.lin", "Layer.near", "Layer.Layer"]


def test_memory_rows_of_this_thread(ops):
    recorder = recorded(profile_memory=True)
    array = np.zeros(50)
    address = id(array)
    tensors = [make_tensor(array)]
    # The first thing that another thread does here has it told apart from this one.
    elsewhere = threading.Thread(target=lambda: threads.state and make_tensor(np.zeros(99)))
    elsewhere.start()
    elsewhere.join()
    tensors.clear()
    recorder.stop()
    store = freeze(recorder)
    assert store.mem_bytes.tolist() == [400, -400]
    assert store.mem_total.tolist() == [400, 0]
    assert store.mem_addr.tolist() == [address, address]


@pytest.mark.parametrize("watched", [1, 2])
def test_nothing_is_left_on_the_classes_when_memory_is_not_watched(watched):
    recorders = [Recorder(Options(profile_memory=True)) for _ in range(watched)]
    for recorder in recorders:
        recorder.start()
    make_tensor(np.zeros(4))
    for recorder in recorders:
        recorder.stop()
    assert [freeze(recorder).mem_bytes.tolist() for recorder in recorders] == [[32, -32]] * watched
    assert allocation.on_alloc is None
    assert "__del__" not in vars(Tensor) and "__del__" not in vars(Storage)


def test_memory_seen_through_a_view_counts_as_a_whole():
    recorder = Recorder(Options(profile_memory=True))
    recorder.start()
    whole = np.zeros((4, 4))
    tensor = make_tensor(whole[1:3])
    storage_of(tensor)
    del tensor
    recorder.stop()
    store = freeze(recorder)
    assert store.mem_bytes.tolist() == [128, -128]
    assert store.mem_addr.tolist() == [id(whole)] * 2


def test_nodes_of_the_backward_pass_have_the_shapes_of_their_gradients():
    weight = torch.ones(3, 2, requires_grad=True)
    with profile(record_shapes=True) as prof:
        torch.mm(torch.ones(4, 3), weight).sum().backward()
    shapes = {event.name: event.input_shapes for event in prof.events()}
    assert shapes["SumBackward0"] == [[]]
    assert shapes["MmBackward0"] == [[4, 2]]
    assert shapes["torch::autograd::AccumulateGrad"] == [[3, 2]]
    assert shapes["autograd::engine::evaluate_function: MmBackward0"] == []


# ------------------------------------------------------------------------------ other threads


def run_in_thread(work):
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def run_in_a_copied_context(work):
    """As asyncio.to_thread does: what the context says of the thread that it comes from is not true there."""
    context = contextvars.copy_context()
    run_in_thread(lambda: context.run(work))


def run_in_a_raw_thread(work):
    done = threading.Event()
    _thread.start_new_thread(lambda: (work(), done.set()), ())
    assert done.wait(120)


@pytest.mark.parametrize("elsewhere", [run_in_thread, run_in_a_copied_context, run_in_a_raw_thread])
@pytest.mark.parametrize("options", [{}, {"record_shapes": True}, {"with_stack": True}])
def test_ops_of_a_thread_that_begins_while_recording_are_not_ours(elsewhere, options):
    tensor = make_tensor(np.ones(3))
    recorder = Recorder(Options(**options))
    recorder.start()
    tensor + tensor
    elsewhere(lambda: tensor * tensor)
    tensor - tensor
    recorder.stop()
    store = freeze(recorder)
    assert [store.names[n] for n, kind in zip(store.name, store.kind, strict=True) if kind == observer.OP] == [
        "aten::add",
        "aten::sub",
    ]
    assert threading.getprofile() is None


@pytest.mark.parametrize("run", [lambda work: work(), contextvars.Context().run])
def test_ops_are_recorded_in_any_context_of_the_thread(run):
    one = make_tensor(np.ones(3))
    recorder = Recorder(Options())
    recorder.start()
    run(lambda: one + one)
    recorder.stop()
    assert len(freeze(recorder)) == 1


def test_somebody_elses_thread_profile_is_left_alone():
    def theirs(frame, event, arg):
        pass

    threading.setprofile(theirs)
    try:
        recorder = Recorder(Options())
        recorder.start()
        recorder.stop()
        assert threading.getprofile() is theirs
    finally:
        threading.setprofile(None)
