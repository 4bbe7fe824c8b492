"""`set_flush_denormal`: denormal numbers as zero, on the thread that asks for it."""

from __future__ import annotations

import threading

import pytest

import mindtorch_v2 as torch
from mindtorch_v2._core import denormals


def test_denormal_numbers_are_zero_on_the_thread_that_asks():
    tiny = torch.tensor([1e-320, 1.0], dtype=torch.float64)
    elsewhere = []
    if not torch.set_flush_denormal(True):
        pytest.skip("this machine's floating-point environment is not known")
    try:
        flushed = (tiny * 1)[0].item() == 0
        thread = threading.Thread(target=lambda: elsewhere.append(torch.set_flush_denormal(False)))
        thread.start()
        thread.join()
        still = (tiny * 1).tolist()[1] == 1 and (tiny * 1)[0].item() == 0
    finally:
        torch.set_flush_denormal(False)
    assert flushed and still and elsewhere == [True]
    assert (tiny * 1)[0].item() == 1e-320
    with pytest.raises(RuntimeError, match="flush_denormal expects a bool, but got int"):
        torch.set_flush_denormal(1)


def test_where_the_environment_is_not_known_nothing_changes(monkeypatch):
    denormals._library.cache_clear()
    monkeypatch.setattr("platform.machine", lambda: "unknown")
    try:
        assert torch.set_flush_denormal(True) is False
        assert (torch.tensor([1e-320], dtype=torch.float64) * 1).item() == 1e-320
    finally:
        denormals._library.cache_clear()
