"""torch.futures: values that are set later, callbacks, and waiting for several."""

from __future__ import annotations

import pickle
import threading

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.futures import Future, collect_all, wait_all


def done(value) -> Future:
    made = Future()
    made.set_result(value)
    return made


def failed(error) -> Future:
    made = Future()
    made.set_exception(error)
    return made


def test_a_value_is_set_once():
    future = Future()
    assert not future.done()
    with pytest.raises(RuntimeError):
        future.value()
    future.set_result(3)
    assert future.done() and future.value() == future.wait() == 3
    for again in (lambda: future.set_result(4), lambda: future.set_exception(ValueError())):
        with pytest.raises(RuntimeError, match="Attempting to mark a completed Future as complete again"):
            again()
    assert future.wait() == 3


def test_an_exception_is_raised_by_those_who_ask():
    future = failed(ValueError("foo"))
    assert future.done()
    for ask in (future.wait, future.value):
        with pytest.raises(ValueError, match="foo"):
            ask()
    with pytest.raises(AssertionError, match="3 is of type <class 'int'>, not an Exception."):
        Future().set_exception(3)


def test_another_thread_sets_the_value():
    future = Future()
    thread = threading.Thread(target=lambda: future.set_result(torch.ones(2) * 3))
    thread.start()
    assert future.wait().tolist() == [3.0, 3.0]
    thread.join()


def test_callbacks_run_in_order_and_at_once_when_done():
    future, log = Future(), []
    future.add_done_callback(lambda f: log.append(("first", f.value())))
    after = future.then(lambda f: (log.append("then"), f.wait() + 1)[1])
    later = after.then(lambda f: f.wait() * 10)
    future.add_done_callback(lambda f: log.append(f is future))
    assert not log
    future.set_result(1)
    assert log == [("first", 1), "then", True] and later.wait() == 20
    future.add_done_callback(lambda f: log.append("late"))
    assert log[-1] == "late"


def test_errors_in_callbacks(caplog):
    future = done(1)
    future.add_done_callback(lambda f: 1 / 0)
    assert "ZeroDivisionError: division by zero" in caplog.text
    with pytest.raises(RuntimeError, match="Got the following error when running the callback: ZeroDivisionError") as caught:
        future.then(lambda f: 1 / 0).wait()
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    with pytest.raises(RuntimeError, match="ValueError: foo"):
        failed(ValueError("foo")).then(lambda f: f.wait()).wait()
    for add in (future.then, future.add_done_callback):
        with pytest.raises(TypeError):
            add(3)


def test_waiting_for_several():
    first, second, third = Future(), Future(), Future()
    together = collect_all([first, second, third])
    second.set_result(2)
    third.set_result(3)
    assert not together.done()
    first.set_result(1)
    assert [f.wait() for f in together.wait()] == [1, 2, 3] == wait_all([first, second, third])
    assert collect_all([]).wait() == wait_all([]) == []
    with pytest.raises(TypeError):
        collect_all([3])


def test_the_first_exception_of_several_when_all_are_done():
    first, second, third = Future(), Future(), Future()
    together = collect_all([first, second, third])
    second.set_exception(ValueError("second"))
    assert not together.done()
    first.set_exception(KeyError("first"))
    third.set_result(1)
    with pytest.raises(KeyError, match="first"):
        together.wait()
    with pytest.raises(ValueError, match="second"):
        wait_all([second, third])


@pytest.mark.parametrize(
    ("devices", "error", "message"),
    [
        (["cpu"], ValueError, "Expected devices to have indices, got cpu"),
        (["cuda:0"], RuntimeError, "PyTorch is not linked with support for cuda devices"),
    ],
)
def test_futures_are_the_cpus(devices, error, message):
    assert not Future(devices=[]).done()
    with pytest.raises(error, match=message):
        Future(devices=devices)


def test_futures_are_not_pickled():
    with pytest.raises(RuntimeError, match="Can not pickle torch.futures.Future"):
        pickle.dumps(Future())
