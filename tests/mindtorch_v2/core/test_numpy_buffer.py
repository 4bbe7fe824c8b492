"""NumPy's buffer, which is shortened where torch-style code runs, and left alone where a program chose its length."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2._core import numpy_buffer, parallel


def _in_a_thread(function):
    found = []
    thread = threading.Thread(target=lambda: found.append(function()))
    thread.start()
    thread.join()
    return found[0]


@pytest.mark.parametrize(("given", "then"), [(8192, 1024), (4096, 4096)])
def test_a_length_that_the_program_chose_stays(given, then):
    def lengths():
        np.setbufsize(given)
        numpy_buffer.shorten()
        return np.getbufsize()

    assert _in_a_thread(lengths) == then


def test_a_thread_is_set_when_it_first_trains():
    def lengths():
        before = np.getbufsize()
        torch.ones(2, requires_grad=True).sum().backward()
        return before, np.getbufsize()

    assert _in_a_thread(lengths) == (8192, 1024)


def test_threads_of_the_pool_are_set():
    threads, barrier, found = torch.get_num_threads(), threading.Barrier(2, timeout=120), []

    def task(_number):
        barrier.wait()
        found.append(np.getbufsize())

    torch.set_num_threads(2)
    try:
        parallel.run(2, task)
    finally:
        torch.set_num_threads(threads)
    assert found == [1024, 1024]
