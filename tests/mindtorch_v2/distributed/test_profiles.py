"""What a profile has of collectives and of DistributedDataParallel, against what torch 2.13 recorded with gloo.

`torch_profiles.json`: `python tests/helpers/rank_profiles.py --package torch --out FILE`, with two processes.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from rank_profiles import PROGRAMS, run

TORCH = json.loads(Path(__file__).with_name("torch_profiles.json").read_text())
# Rows of torch's C++ and its wrappers around bytes, for which there is no op here: objects are pickled into NumPy arrays, the
# bitmap of used parameters is a list, the views of a bucket are made once, and no sink delays the reduction.
OBJECTS = ("all_gather_object", "broadcast_object_list")
BOOKKEEPING = ("aten::as_strided", "aten::select", "aten::fill_", "aten::item", "_DDPSink", "aten::copy_ [[2],[2],[]]")
BOOKKEEPING += (
    "aten::empty [[],[],[],[],[],[]]",
    "aten::to [[2]",
    "aten::lift_fresh [[2]",
    "aten::detach_ [[2]",
    "aten::clone [[4,64]",
)
ARGUMENTS = ("Concrete Inputs", "Input type", "Input Strides", "Input Dims")
# Of NCCL's traces: gloo's have none of them, ours have all of them on every communication.
OF_NCCL = {
    "Collective name",
    "In msg nelems",
    "Out msg nelems",
    "Group size",
    "dtype",
    "In split size",
    "Out split size",
    "Process Group Name",
    "Process Group Description",
    "Process Group Ranks",
    "Rank",
    "Seq",
    "Is asynchronized op",
    "Comms Id",
}


@pytest.fixture(scope="module")
def ours():
    return run(sys.executable, "mindtorch_v2")


CASES = [(rank, name) for rank in (0, 1) for name in PROGRAMS]


@pytest.mark.parametrize("rank, name", CASES)
def test_the_callers_rows_are_those_of_torch(ours, rank, name):
    assert as_compared(name, ours[rank][name]["rows"]) == as_compared(name, TORCH[rank][name]["rows"])


def as_compared(name, rows):
    if name in OBJECTS:
        return [row for row in rows if "c10d::" in row]
    if name == "reduce_scatter_tensor":  # gloo hands the result over in the caller; here it is part of the work
        return [row for row in rows if not row.startswith(("aten::chunk", "aten::copy_"))]
    if not name.startswith("ddp"):
        return rows
    # A reduction is torch's next row after the node, and the node's own here; `out=` is no input here.
    kept = [row for row in rows if not any(own in row for own in BOOKKEEPING)]
    names = [row.split()[0] for row in kept]
    if name == "ddp_find_unused":  # buckets in the order of the parameters or of the gradients
        return sorted(names)
    return names


@pytest.mark.parametrize("rank, name", CASES)
def test_communication_in_a_trace_has_the_arguments_of_torchs(ours, rank, name):
    def arguments(recorded):
        events = sorted(([cat, name, {key: args.get(key) for key in ARGUMENTS}] for cat, name, args in recorded), key=str)
        if name == "reduce_scatter":  # one reduction of both here
            return [event for event in events if not event[1].startswith("gloo")]
        if name == "monitored_barrier":
            events[0][2]["Input Strides"] = None  # of a tensor without elements
        return events

    assert arguments(ours[rank][name]["communication"]) == arguments(TORCH[rank][name]["communication"])


@pytest.mark.parametrize("rank", (0, 1))
def test_distributed_info_is_that_of_torch(ours, rank):
    for name in PROGRAMS:
        assert ours[rank][name]["distributedInfo"] == TORCH[rank][name]["distributedInfo"]


def test_every_communication_has_group_sequence_number_and_sizes_by_which_ranks_match(ours):
    for name in PROGRAMS:
        by_rank = [
            {args["Comms Id"]: args for _, event, args in ours[rank][name]["communication"] if event.startswith("gloo:")}
            for rank in (0, 1)
        ]
        assert by_rank[0] and by_rank[0].keys() == by_rank[1].keys(), name
        for ident, args in by_rank[0].items():
            other = by_rank[1][ident]
            assert args.keys() >= OF_NCCL and args["Process Group Ranks"] == "[0, 1]"
            assert (args["Seq"], args["Process Group Name"]) == (other["Seq"], other["Process Group Name"])
            assert (args["Rank"], other["Rank"]) == (0, 1)
            if args["Collective name"] in ("send", "recv"):
                assert (args["Src Rank"], args["Dst Rank"]) == (other["Src Rank"], other["Dst Rank"])


@pytest.mark.parametrize(
    "name, collective, sent, received, dtype",
    [
        ("all_reduce", "allreduce", 1024, 1024, "Float"),
        ("all_reduce_coalesced", "allreduce_coalesced", 2048, 2048, "Float"),
        ("all_gather", "all_gather", 1024, 2048, "Float"),
        ("all_gather_into_tensor", "_allgather_base", 1024, 2048, "Float"),
        ("reduce_scatter", "reduce_scatter", 1024, 512, "Float"),
        ("reduce_scatter_tensor", "_reduce_scatter_base", 1024, 512, "Float"),
        ("gather", "gather", 1024, 2048, "Float"),
        ("scatter", "scatter", 2048, 1024, "Float"),
        ("all_to_all", "all_to_all", 1024, 1024, "Float"),
        ("barrier", "barrier", 0, 0, ""),
        ("send_recv", "send", 1024, 0, "Float"),
        ("ddp_fp16_hook", "allreduce", 4160, 4160, "Half"),
    ],
)
def test_sizes_and_dtypes(ours, name, collective, sent, received, dtype):
    (args,) = (args for _, event, args in ours[0][name]["communication"] if event.startswith("gloo:"))
    told = (args["Collective name"], args["In msg nelems"], args["Out msg nelems"], args["dtype"])
    assert told == (collective, sent, received, dtype)
    assert args["Is asynchronized op"] is (name == "ddp_fp16_hook" or name == "send_recv")
