"""Losses: values, first and second derivatives, and errors as torch has them."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

_found = importlib.util.spec_from_file_location("network", Path(__file__).with_name("network.py"))
assert _found is not None and _found.loader is not None
network = importlib.util.module_from_spec(_found)
_found.loader.exec_module(network)

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("expression", network.expressions("loss"))
def test_loss_like_torch(expression):
    network.check("loss", expression)


@pytest.mark.parametrize("expression", network.expressions("loss_error"))
def test_loss_error_like_torch(expression):
    network.check("loss_error", expression)
