"""Signatures of torch.distributed's functions against torch's, and names that stand in two modules.

`torch_signatures.json`: `python tests/helpers/distributed_signatures.py --package torch --out FILE`.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from distributed_signatures import signatures

import mindtorch_v2.distributed as dist
from mindtorch_v2.distributed import distributed_c10d

TORCH = json.loads(Path(__file__).with_name("torch_signatures.json").read_text())
OURS = signatures("mindtorch_v2")
ABSENT = {"record_comm", "shrink_group"}  # docs/compatibility.md


@pytest.mark.parametrize("name", sorted(TORCH.keys() - ABSENT))
def test_functions_take_what_those_of_torch_take(name):
    assert OURS[name] == TORCH[name]


def test_the_package_has_the_names_of_its_module():
    assert set(distributed_c10d.__all__) - set(dist.__all__) == {"default_pg_timeout"}
    for name in dist.__all__:
        assert getattr(dist, name) is getattr(distributed_c10d, name, getattr(dist, name))
    assert OURS.keys() >= TORCH.keys() - ABSENT
