"""The pytest plugin's door: `pytest --mtprof` records tests and checks budgets that `@pytest.mark.mtprof(...)` sets.

It stands outside of the package, whose import brings NumPy along: pytest imports plugins in every run, also of projects that
never ask for this one. What does the work is imported by --mtprof.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

MARKER = (
    "mtprof(max_ops=None, max_bytes=None, max_syncs=None, max_time=None, runs=None): budgets of the test, checked with --mtprof"
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("mtprof", "profiling of tests")
    group.addoption("--mtprof", action="store_true", help="record every test; check the budgets of @pytest.mark.mtprof(...)")
    group.addoption("--mtprof-save", metavar="DIR", default=None, help="with --mtprof: save recordings of tests over budget")
    group.addoption("--mtprof-json", metavar="FILE", default=None, help="with --mtprof: write the figures of all tests")


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known, and with --mtprof bring in what does the work."""
    config.addinivalue_line("markers", MARKER)
    for option in ("save", "json"):
        if config.getoption(f"mtprof_{option}") is not None and not config.getoption("mtprof"):
            from pytest import UsageError  # here, because the module is imported by runs that never need it

            raise UsageError(f"--mtprof-{option} needs --mtprof: without it nothing is recorded")
    if config.getoption("mtprof"):
        from mindtorch_v2.profiler.testing import Recorded

        config.pluginmanager.register(Recorded(config), "mtprof-recorded")
