"""The thread pool: every task once, errors and interrupts after the last task, forks, and threads that are not seen."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time

import pytest

import mindtorch_v2 as torch
from mindtorch_v2._core import blas, parallel


@pytest.fixture(autouse=True)
def threads():
    """Four threads, whatever the machine has."""
    before = torch.get_num_threads()
    torch.set_num_threads(4)
    yield
    torch.set_num_threads(before)


def _blas_threads():
    library = blas.openblas()
    return library.control("get_num_threads")() if library is not None else None


def test_every_task_runs_once():
    for count in (1, 2, 3, 50):
        seen = []
        parallel.run(count, seen.append)
        assert sorted(seen) == list(range(count))


def test_blocks_cover_the_range():
    seen = []
    parallel.blocks(10, 4, lambda part: seen.append((part.start, part.stop)))
    assert sorted(seen) == [(0, 4), (4, 8), (8, 10)]


def test_several_threads_take_part():
    barrier = threading.Barrier(4, timeout=120)
    idents = set()

    def task(_number):
        barrier.wait()  # passes only if four threads work at once
        idents.add(threading.get_ident())

    parallel.run(4, task)
    assert len(idents) == 4


def test_the_calling_thread_begins_at_the_front_and_the_others_at_the_back():
    torch.set_num_threads(2)
    barrier, taken = threading.Barrier(2, timeout=120), {}

    def task(number):
        taken.setdefault(threading.get_ident(), []).append(number)
        barrier.wait()

    parallel.run(6, task)
    assert sorted(taken.values()) == [[0, 1, 2], [5, 4, 3]]


@pytest.mark.parametrize(("count", "threads"), [(1, 1), (2, 2), (4, 1)])
def test_two_threads_take_one_of_both_functions_each(count, threads):
    """More threads share the work of each, one after another."""
    torch.set_num_threads(count)
    idents, barrier = set(), threading.Barrier(threads, timeout=120)

    def function(result):
        idents.add(threading.get_ident())
        barrier.wait()
        return result

    assert parallel.both(lambda: function("first"), lambda: function("second")) == ("first", "second")
    assert len(idents) == threads


def test_one_thread_works_alone_and_in_order():
    torch.set_num_threads(1)
    idents, order = set(), []
    parallel.run(5, lambda number: (order.append(number), idents.add(threading.get_ident())))
    assert order == list(range(5)) and idents == {threading.get_ident()}


def test_a_nested_call_stays_on_its_thread():
    outer = {}

    def task(number):
        ident = threading.get_ident()
        inner = set()
        parallel.run(3, lambda _: inner.add(threading.get_ident()))
        outer[number] = inner == {ident}

    parallel.run(4, task)
    assert outer == dict.fromkeys(range(4), True)


def test_an_error_is_raised_when_no_task_runs_any_more():
    running = []

    def task(number):
        running.append(number)
        try:
            if number == 1:
                raise ValueError("of a task")
            time.sleep(0.01)
        finally:
            running.remove(number)

    with pytest.raises(ValueError, match="of a task"):
        parallel.run(20, task)
    assert not running


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_an_interrupt_waits_for_the_tasks_that_run():
    barrier = threading.Barrier(2, timeout=120)
    main, running = threading.get_ident(), []

    def task(number):
        running.append(number)
        barrier.wait()
        if threading.get_ident() == main:
            signal.raise_signal(signal.SIGINT)
        time.sleep(0.05)
        running.remove(number)

    torch.set_num_threads(2)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # which a job in the background does not have
    try:
        with pytest.raises(KeyboardInterrupt):
            parallel.run(2, task)
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(running) == 1  # that of the thread that was interrupted


def test_blas_has_one_thread_inside_and_all_outside():
    if _blas_threads() is None:
        pytest.skip("NumPy has another BLAS")
    inside = []
    parallel.run(8, lambda _: inside.append(_blas_threads()))
    assert set(inside) == {1} and _blas_threads() == 4


def test_programs_do_not_see_the_threads():
    parallel.run(8, lambda _: None)
    assert not [thread for thread in threading.enumerate() if "parallel" in type(thread).__module__]
    assert threading.active_count() == len([t for t in threading.enumerate() if t.is_alive()])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_process_has_threads_of_its_own():
    parallel.run(8, lambda _: None)
    child = os.fork()
    if not child:
        barrier = threading.Barrier(4, timeout=120)
        code = 1
        try:
            parallel.run(4, lambda _: barrier.wait())
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    parallel.run(8, lambda _: None)  # and here they come again
