"""Meshes, functional collectives, samplers, joins, sharded optimizers and models, checkpoints: two processes, beside torch's.

`torch_parts.json`: `python tests/helpers/rank_parts.py --package torch --out FILE`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from rank_parts import PROGRAMS, run

import mindtorch_v2 as torch
import mindtorch_v2.distributed as dist
from mindtorch_v2.distributed import checkpoint, fsdp, pipelining
from mindtorch_v2.distributed.tensor import DTensor, Shard, distribute_tensor, shard_bounds
from mindtorch_v2.profiler import profile

TORCH = json.loads(Path(__file__).with_name("torch_parts.json").read_text())


@pytest.fixture(scope="module")
def ours():
    return run(sys.executable, "mindtorch_v2")


@pytest.mark.parametrize("rank", (0, 1))
@pytest.mark.parametrize("name", PROGRAMS)
def test_both_ranks_answer_as_torch_does(ours, name, rank):
    assert ours[rank][name] == TORCH[rank][name]


@pytest.fixture
def _alone():
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


@pytest.mark.usefixtures("_alone")
def test_a_sharded_model_of_one_process_trains_and_is_seen_in_a_profile():
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 1))
    whole = {name: each.clone() for name, each in model.state_dict().items()}
    fsdp.fully_shard(model[0])
    fsdp.fully_shard(model)
    assert all(isinstance(each, DTensor) for each in model.parameters())
    assert all(torch.equal(each.full_tensor(), whole[name]) for name, each in model.named_parameters())
    with profile() as prof:
        model(torch.ones(2, 3)).sum().backward()
    names = [event.name for event in prof.events() if event.name.startswith("FSDP::")]
    assert [name for name in names if "all_gather" in name] == [
        "FSDP::all_gather (Sequential)",
        "FSDP::all_gather (Linear)",
        "FSDP::all_gather (Sequential)",  # again for the backward pass, which needs its weight
    ]
    assert [name for name in names if "reduce" in name] == [
        "FSDP::post_backward_reduce (Sequential)",
        "FSDP::post_backward_reduce (Linear)",
    ]
    assert all(each.grad is not None and each.grad.shape == each.shape for each in model.parameters())


@pytest.mark.usefixtures("_alone")
def test_a_checkpoint_says_what_is_wrong_with_it(tmp_path):
    checkpoint.save({"a": torch.ones(2), "deep": {"b": [torch.zeros(1), 3]}}, checkpoint_id=tmp_path)
    for state, words in (
        ({"c": torch.ones(2)}, "Missing key in checkpoint state_dict: c."),
        ({"a": torch.ones(3)}, "Size mismatch between saved"),
    ):
        with pytest.raises(checkpoint.CheckpointException, match=words):
            checkpoint.load(state, checkpoint_id=tmp_path)
    state = {"a": torch.zeros(2), "deep": {"b": [torch.ones(1), 0]}}
    checkpoint.load(state, checkpoint_id=tmp_path)
    assert state["a"].tolist() == [1, 1] and state["deep"]["b"][0].tolist() == [0] and state["deep"]["b"][1] == 3
    with pytest.raises(checkpoint.CheckpointException, match="already exists"):
        checkpoint.save({"a": torch.ones(2)}, storage_writer=checkpoint.FileSystemWriter(tmp_path, overwrite=False))
    (tmp_path / "__0_0.distcp").write_bytes(b"")
    with pytest.raises(checkpoint.CheckpointException, match="ends too early"):
        checkpoint.load({"a": torch.ones(2)}, checkpoint_id=tmp_path)


@pytest.mark.usefixtures("_alone")
def test_a_checkpoint_keeps_the_state_of_objects(tmp_path):
    model = torch.nn.Linear(2, 2)
    checkpoint.save({"model": model}, checkpoint_id=tmp_path)
    other = torch.nn.Linear(2, 2)
    checkpoint.load({"model": other}, checkpoint_id=tmp_path)
    assert torch.equal(other.weight, model.weight)


@pytest.mark.usefixtures("_alone")
def test_a_tensor_is_cut_as_chunk_cuts_it():
    assert [shard_bounds(5, 4, number) for number in range(4)] == [(0, 2), (2, 4), (4, 5), (5, 5)]
    made = distribute_tensor(torch.arange(6.0), dist.init_device_mesh("cpu", (1,)), [Shard(0)])
    assert torch.equal(made.full_tensor(), torch.arange(6.0)) and type(made + 1) is torch.Tensor
    assert made.placements == (Shard(0),) and made.detach().full_shape == (6,)


@pytest.mark.usefixtures("_alone")
@pytest.mark.parametrize(
    "refused",
    [
        lambda: fsdp.FullyShardedDataParallel(torch.nn.Linear(1, 1)),
        lambda: pipelining.pipeline(None),
        lambda: pipelining.PipelineStage(),
        lambda: checkpoint.async_save({}),
        lambda: dist.init_device_mesh("npu", (1,)),
        lambda: dist.tensor.distribute_module(torch.nn.Linear(1, 1)),
        lambda: fsdp.fully_shard(torch.nn.Linear(1, 1), shard_placement_fn=lambda each: None),
        lambda: dist.optim.ZeroRedundancyOptimizer([torch.ones(1)], torch.optim.SGD, overlap_with_ddp=True),
    ],
)
def test_what_is_not_there_says_so_at_use(refused):
    with pytest.raises(NotImplementedError):
        refused()
