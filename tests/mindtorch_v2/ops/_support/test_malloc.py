"""The allocator's limits: raised at import, unless the user has set them."""

from __future__ import annotations

import pytest

from mindtorch_v2._ops._support import malloc


class Library:
    """Stands in for the C library and notes what it is told."""

    def __init__(self):
        self.told = []

    def mallopt(self, parameter, value):
        self.told.append((parameter, value))
        return 1


@pytest.fixture
def library(monkeypatch):
    made = Library()
    monkeypatch.setattr(malloc.ctypes, "CDLL", lambda name: made)
    for name in ("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", "MALLOC_TOP_PAD_", "GLIBC_TUNABLES"):
        monkeypatch.delenv(name, raising=False)
    return made


def test_both_limits_are_raised(library):
    assert malloc.keep_freed_memory()
    assert library.told == [(-3, 32 << 20), (-1, 64 << 20)]


@pytest.mark.parametrize(
    "name, value",
    [("MALLOC_MMAP_THRESHOLD_", "1"), ("MALLOC_TRIM_THRESHOLD_", "1"), ("GLIBC_TUNABLES", "glibc.malloc.trim_threshold=1")],
)
def test_the_environment_is_respected(library, monkeypatch, name, value):
    monkeypatch.setenv(name, value)
    assert not malloc.keep_freed_memory()
    assert library.told == []


def test_a_library_without_limits_is_left_alone(monkeypatch, library):
    monkeypatch.setattr(malloc.ctypes, "CDLL", lambda name: object())
    assert not malloc.keep_freed_memory()
