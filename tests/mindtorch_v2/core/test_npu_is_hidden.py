"""Tests that are not marked `npu` see a machine without one, whatever ran before them, and so do their fixtures."""

from __future__ import annotations

import sys

import pytest

import mindtorch_v2 as torch


@pytest.mark.npu
def test_a_device_is_loaded(npu):
    assert torch.npu.is_available()


@pytest.fixture(scope="module")
def seen_once_for_the_module():
    return torch.npu.is_available()


def test_fixtures_of_a_module_do_not_see_it(seen_once_for_the_module):
    if "mindtorch_v2._backends.npu.driver" not in sys.modules:
        pytest.skip("the test above ran elsewhere")
    assert not seen_once_for_the_module and not torch.npu.is_available()


@pytest.mark.npu
def test_it_is_there_again(npu):
    assert torch.npu.is_available() and torch.ones(2, device="npu").sum().item() == 2
