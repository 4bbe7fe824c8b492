"""Names of torch.distributed outside of its __all__: those that mean something here work, the others refuse at use."""

from __future__ import annotations

import argparse
import json
from importlib import import_module
from pathlib import Path

import pytest

import mindtorch_v2 as torch
import mindtorch_v2.distributed as dist

# `python tests/helpers/distributed_names.py --out FILE`, with torch 2.13.
TORCH = json.loads(Path(__file__).with_name("torch_names.json").read_text())
REFUSED = {
    "tensor": ["empty", "full", "ones", "rand", "randn", "zeros"],
    "_tensor": ["empty", "zeros"],
    "fsdp": ["DataParallelMeshDims", "FlatParameter", "register_fsdp_forward_method", "share_comm_ctx"],
    "checkpoint": ["SavePlanner", "StorageReader", "HuggingFaceStorageWriter"],
    "distributed_c10d": ["AllreduceOptions", "ProcessGroupGloo", "record_comm", "shrink_group"],
    "elastic.rendezvous": ["RendezvousParameters"],
    "elastic.timer": ["expires"],
    "pipelining": ["ScheduleZBVZeroBubble", "build_stage"],
    "pipelining.schedules": ["get_schedule_class"],
    "rpc": ["RRef"],
    "tensor.parallel.style": ["ColwiseParallel"],
}


@pytest.mark.parametrize("module, name", [(module, name) for module, names in REFUSED.items() for name in names])
def test_names_without_a_meaning_here_refuse_at_use(module, name):
    with pytest.raises(NotImplementedError, match=f"torch.distributed.*{name}"):
        getattr(import_module(f"mindtorch_v2.distributed.{module}"), name)(2)


@pytest.mark.parametrize("module", TORCH)
def test_public_functions_and_classes_of_torch_can_be_imported(module):
    ours = import_module(f"mindtorch_v2.{module}")
    assert [name for name in TORCH[module] if not hasattr(ours, name)] == []


def test_debug_level_is_that_of_the_variable_until_it_is_set(monkeypatch):
    before = dist.get_debug_level()
    try:
        monkeypatch.setenv("TORCH_DISTRIBUTED_DEBUG", "detail")
        dist.set_debug_level_from_env()
        assert dist.get_debug_level() is dist.DebugLevel.DETAIL
        dist.set_debug_level(dist.DebugLevel.INFO)
        assert (dist.get_debug_level().name, dist.get_debug_level().value) == ("INFO", 1)
        monkeypatch.setenv("TORCH_DISTRIBUTED_DEBUG", "x")
        with pytest.raises(ValueError, match="The value of TORCH_DISTRIBUTED_DEBUG must be OFF, INFO, or DETAIL."):
            dist.set_debug_level_from_env()
    finally:
        dist.set_debug_level(before)


def test_breakpoint_stops_in_its_rank_and_skips_the_first_calls(monkeypatch):
    stopped = []
    monkeypatch.setattr("pdb.Pdb.set_trace", lambda debugger, frame=None: stopped.append(frame))
    monkeypatch.setattr("pdb.Pdb.message", lambda debugger, text: stopped.append("rank=0" in text))
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        for _ in range(3):
            dist.breakpoint(0, skip=2)
        assert stopped == [True, None]
        dist.breakpoint(1)
        assert len(stopped) == 2
    finally:
        dist.destroy_process_group()


def test_options_take_their_defaults_from_variables(monkeypatch):
    from mindtorch_v2.distributed.argparse_util import check_env, env

    monkeypatch.setenv("PET_NODES", "7")
    monkeypatch.setenv("PET_QUIET", "1")
    parser = argparse.ArgumentParser()
    parser.add_argument("--nodes", action=env, type=int, default=1, required=True)
    parser.add_argument("--quiet", action=check_env)
    parser.add_argument("--loud", action=check_env)
    assert vars(parser.parse_args([])) == {"nodes": 7, "quiet": True, "loud": False}
    assert vars(parser.parse_args(["--nodes", "3", "--loud"])) == {"nodes": 3, "quiet": True, "loud": True}


def test_helpers_of_launchers(monkeypatch):
    from mindtorch_v2.distributed.elastic import utils
    from mindtorch_v2.distributed.elastic.multiprocessing import Std
    from mindtorch_v2.distributed.elastic.utils.distributed import get_free_port
    from mindtorch_v2.distributed.elastic.utils.logging import get_logger

    assert utils.macros.substitute(["--x", "${local_rank}", "a${local_rank}b"], "3") == ["--x", "3", "a3b"]
    with pytest.raises(ValueError, match="Environment variable NOT_THERE expected, but not set"):
        utils.get_env_variable_or_raise("NOT_THERE")
    assert 0 < get_free_port() < 1 << 16
    monkeypatch.setenv("LOGLEVEL", "DEBUG")
    assert (get_logger("ranks").level, get_logger().name) == (10, __name__)
    assert Std.from_str("3") is Std.ALL
    assert Std.from_str("0:1,1:2") == {0: Std.OUT, 1: Std.ERR}


def test_data_of_jobs_that_begin_again():
    from mindtorch_v2.distributed.elastic.utils.data import CyclingIterator, ElasticDistributedSampler

    assert list(CyclingIterator(3, lambda epoch: iter([epoch] * epoch), start_epoch=0)) == [1, 2, 2]
    sampler = ElasticDistributedSampler(range(10), 2, 1, start_index=3)
    assert (list(sampler), len(sampler)) == ([3, 6, 9, 7], 4)  # torch's
    sampler.set_epoch(2)
    assert list(sampler) == [7, 3, 4, 5]
    with pytest.raises(ValueError, match="Start index 10 should be less than dataset size 10"):
        ElasticDistributedSampler(range(10), 2, 1, start_index=10)


def test_former_names_of_saving_and_loading_warn_and_work(tmp_path):
    from mindtorch_v2.distributed import checkpoint

    state = {"x": torch.arange(3.0)}
    with pytest.warns(FutureWarning, match="Please use `save` instead"):
        checkpoint.save_state_dict(state, checkpoint.FileSystemWriter(tmp_path), no_dist=True)
    loaded = {"x": torch.zeros(3)}
    with pytest.warns(FutureWarning, match="Please use `load` instead"):
        checkpoint.load_state_dict(loaded, checkpoint.FileSystemReader(tmp_path), no_dist=True)
    assert loaded["x"].tolist() == [0, 1, 2]


def test_private_collectives_of_libraries_work():
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        source, target = torch.arange(4.0), torch.zeros(4)
        with pytest.warns(FutureWarning):
            dist._all_gather_base(target, source)
        assert torch.equal(target, source)
        with pytest.warns(FutureWarning):
            dist._reduce_scatter_base(target, source * 2)
        assert torch.equal(target, source * 2)
        assert dist._get_process_group_name(dist.group.WORLD) == dist.group.WORLD.group_name
        assert not dist._rank_not_in_group(None)
    finally:
        dist.destroy_process_group()


def test_former_and_joined_names_are_the_same_objects():
    from mindtorch_v2.distributed import _tensor, algorithms, tensor

    assert all(getattr(_tensor, name) is getattr(tensor, name) for name in tensor.__all__)
    assert _tensor.__all__ == tensor.__all__
    assert algorithms.Join is import_module("mindtorch_v2.distributed.algorithms.join").Join


def test_groups_are_listed_while_they_are_there():
    assert dist.distributed_c10d._pg_map == {}
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        (group,) = dist.distributed_c10d._pg_map
        assert group is dist.group.WORLD
        assert dist.distributed_c10d._pg_map[group][0] == "gloo"
    finally:
        dist.destroy_process_group()


@pytest.mark.parametrize(
    "size, parts, expected",
    [
        (10, 4, [(3, 0), (3, 3), (3, 6), (1, 9)]),
        (8, 4, [(2, 0), (2, 2), (2, 4), (2, 6)]),
        (3, 4, [(1, 0), (1, 1), (1, 2), (0, 3)]),
    ],
)
def test_parts_along_a_dim(size, parts, expected):
    shard = import_module("mindtorch_v2.distributed.tensor").Shard
    assert [shard.local_shard_size_and_offset(size, parts, rank) for rank in range(parts)] == expected
