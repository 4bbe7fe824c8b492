"""`@pytest.mark.like_torch("view")`: one test per expression that PyTorch has answered, see torch_values.py."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
import torch_values

import mindtorch_v2

_RECORDED = json.loads(torch_values.VALUES.read_text())


def difference(expected: Any, got: Any, where: str = "") -> str | None:
    """What is not as expected, in words; None if all is."""
    if isinstance(expected, dict):
        if not isinstance(got, dict) or expected.keys() != got.keys():
            return f"{where}: expected {expected}, got {got}"
        return next(filter(None, (difference(expected[k], got[k], f"{where}.{k}") for k in expected)), None)
    if isinstance(expected, list):
        if not isinstance(got, list) or len(expected) != len(got):
            return f"{where}: expected {expected}, got {got}"
        return next(
            filter(None, (difference(e, g, f"{where}[{k}]") for k, (e, g) in enumerate(zip(expected, got, strict=True)))), None
        )
    if isinstance(expected, float) and isinstance(got, float):
        near = expected == got or abs(expected - got) <= 1e-6 + 1e-5 * abs(expected)
        return None if near or (expected != expected and got != got) else f"{where}: expected {expected}, got {got}"
    return None if expected == got and type(expected) is type(got) else f"{where}: expected {expected!r}, got {got!r}"


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "like_torch(*sections): one test per expression of these parts of the data file")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    marker = metafunc.definition.get_closest_marker("like_torch")
    if marker is not None:
        cases = [(name, expression) for name in marker.args for expression in _RECORDED[name]]
        metafunc.parametrize(("section", "expression"), cases, ids=[f"{name}-{e}" for name, e in cases])


@pytest.fixture(scope="session")
def compare() -> Callable[[str, str], None]:
    """`compare(section, expression)` fails unless the runtime answers what PyTorch did."""

    def check(section: str, expression: str) -> None:
        got = torch_values.answer(mindtorch_v2, mindtorch_v2.from_numpy, section, expression)
        problem = difference(_RECORDED[section][expression], json.loads(json.dumps(got)))
        assert problem is None, f"{expression} {problem}"

    return check
