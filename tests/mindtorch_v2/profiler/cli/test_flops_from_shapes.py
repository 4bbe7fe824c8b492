"""mtprof flops of recordings without FLOPs: worked out from input shapes, or what is missing."""

from __future__ import annotations

import gzip
import json
import os

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import nn
from mindtorch_v2.profiler import load, profile
from mindtorch_v2.profiler.cli.flops_from_shapes import flops_from_shapes
from mindtorch_v2.profiler.cli.main import main

FIXTURES = os.path.join(os.path.dirname(__file__), "..", "fixtures")


def work():
    """Ops of many kinds, among them overloads of one name that differ in what they take."""
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3),
        nn.BatchNorm2d(8),
        nn.GELU(),
        nn.AdaptiveAvgPool2d(2),
        nn.Flatten(),
        nn.Linear(32, 16),
        nn.LayerNorm(16),
        nn.Sigmoid(),
        nn.Linear(16, 4),
    )
    attention = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    loss = model(torch.randn(2, 3, 8, 8)).log_softmax(1).mean() + attention(torch.randn(2, 5, 16)).sum()
    loss.backward()
    torch.optim.AdamW(model.parameters()).step()
    a, b = torch.randn(3, 4), torch.randn(4, 5)
    torch.mm(a, b, out=torch.empty(3, 5))
    torch.sum(a, 0, out=torch.empty(4))
    a.add_(a, alpha=2)
    for result in (
        a + 1,
        a * 2,
        2 - a,
        a**2,
        a.pow(a.abs()),
        a.sum(0),
        a.sum(),
        a.norm(),
        a.norm(dim=1),
        a.var(0),
        a.prod(1),
        torch.addmm(torch.zeros(5), a, b),
        torch.lerp(a, a, 0.5),
        torch.mv(a, b[:, 0]),
        torch.cat([a, a]),
    ):
        assert result is not None


@pytest.mark.parametrize("ending", [".mtp", ".json"])
def test_the_shapes_in_a_file_tell_what_would_have_been_recorded(tmp_path, ending):
    path = str(tmp_path / f"run{ending}")
    with profile(record_shapes=True, with_flops=True) as prof:
        work()
    if ending == ".mtp":
        prof.save(path)
    else:
        prof.export_chrome_trace(path)
    want, store = prof.profiler.store, load(path).store
    assert [store.names[name] for name in store.name] == [want.names[name] for name in want.name]
    np.testing.assert_array_equal(flops_from_shapes(store), want.flops)


@pytest.mark.parametrize(
    ("name", "want"),
    [
        ("mlp_everything.json.gz", {"aten::addmm", "aten::mm"}),
        ("cnn_verbose.json.gz", {"aten::addmm", "aten::mm", "aten::conv2d"}),
        ("gpt_steps.json.gz", {"aten::addmm", "aten::mm"}),
    ],
)
def test_a_trace_of_torch(capsys, name, want):
    assert main(["flops", os.path.join(FIXTURES, name), "-n", "-1"]) == 0
    head, *rows, last = capsys.readouterr().out.splitlines()
    assert head.split()[0] == "FLOPs"
    assert want <= {row.split()[-1] for row in rows}
    assert last.endswith(" FLOPs in all, worked out from the input shapes in the file")


def test_figures_of_a_trace_are_those_of_torch():
    store = load(os.path.join(FIXTURES, "cnn_verbose.json.gz")).store
    flops = flops_from_shapes(store)
    rows = [row for row in range(len(store)) if store.names[store.name[row]] == "aten::conv2d"]
    for row in rows:
        (batch, _, height, width), (out, into, *kernel), *_ = store.input_infos[store.shapes[row]].dims
        stride, padding, dilation, _groups = store.input_infos[store.shapes[row]].concrete[3:]
        sizes = [
            (size + 2 * pad - dil * (k - 1) - 1) // step + 1
            for size, pad, dil, k, step in zip((height, width), padding, dilation, kernel, stride, strict=True)
        ]
        assert flops[row] == 2 * batch * out * np.prod(sizes) * into * np.prod(kernel)
    assert rows


def test_what_an_op_has_others_do_is_counted_once(capsys, tmp_path):
    # As in torch, where mean() calls sum() and div_(), and a sum() another.
    spans = [("aten::mean", 1, 8), ("aten::sum", 2, 3), ("aten::div_", 5, 3), ("aten::sum", 10, 6), ("aten::sum", 11, 4)]
    events = [
        {
            "ph": "X",
            "cat": "cpu_op",
            "name": name,
            "pid": 1,
            "tid": 1,
            "ts": start,
            "dur": took,
            "args": {"Input Dims": [[4, 5], []], "Input type": ["float", ""]},
        }
        for name, start, took in spans
    ]
    path = tmp_path / "nested.json"
    path.write_text(json.dumps({"traceEvents": events}))
    store = load(str(path)).store
    assert {store.names[store.name[row]]: store.parent[row] for row in np.flatnonzero(flops_from_shapes(store))} == {
        "aten::mean": -1,
        "aten::sum": -1,
    }
    assert main(["flops", str(path)]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[1:-1]]
    assert [(row[-1], row[-2], row[2]) for row in rows] == [("aten::mean", "1", "8"), ("aten::sum", "1", "6")]


def one_op(path, name, dims, types, **more):
    event = {
        "ph": "X",
        "cat": "cpu_op",
        "name": name,
        "pid": 1,
        "tid": 1,
        "ts": 1,
        "dur": 1,
        "args": {"Input Dims": dims, "Input type": types, **more},
    }
    path.write_bytes(gzip.compress(json.dumps({"with_flops": 1, "traceEvents": [event]}).encode()))
    return str(path)


@pytest.mark.parametrize(
    ("name", "dims", "types", "flops"),
    [
        ("aten::mm", [[3, 4], [4, 5]], ["float", "float"], 120),
        ("aten::mm", [[3, 4], [4, 5], [3, 5]], ["float", "float", "float"], 120),  # out=
        ("aten::mul", [[3], []], ["float", "Scalar"], 3),
        ("aten::mm", [[3, 4]], ["float"], 0),
        ("aten::mm", [[[3, 4]], [4, 5]], ["float", "float"], 0),
        ("aten::mm", [[1 << 40, 1 << 40], [1 << 40, 1 << 40]], ["float", "float"], 0),
        ("mylib::mm", [[3, 4], [4, 5]], ["float", "float"], 0),
    ],
)
def test_one_op(capsys, tmp_path, name, dims, types, flops):
    path = one_op(tmp_path / "one.json.gz", name, dims, types)
    assert flops_from_shapes(load(path).store).tolist() == [flops]
    assert main(["flops", path]) == (0 if flops else 3)
    if not flops:
        assert capsys.readouterr().err == (
            "mtprof flops: no FLOPs: there is no formula for any op of which the file has input shapes\n"
        )


@pytest.mark.parametrize("name", ["mlp_plain.json.gz"])
def test_without_shapes_it_says_what_is_missing(capsys, name):
    assert main(["flops", os.path.join(FIXTURES, name)]) == 3
    said = capsys.readouterr().err
    assert "neither FLOPs nor input shapes" in said and "record_shapes=True" in said and "with_flops" not in said
