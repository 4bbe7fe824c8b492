"""torch.utils.flop_counter. The counts and tables are what PyTorch 2.13 gives on the CPU."""

from __future__ import annotations

import subprocess
import sys
from functools import partial

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import nn
from mindtorch_v2.nn import functional as F
from mindtorch_v2.utils import flop_counter as fc
from mindtorch_v2.utils.flop_counter import FlopCounterMode

aten = torch.ops.aten


def data(*shape):
    return torch.full(shape, 0.1)


def leaf(*shape):
    return data(*shape).requires_grad_()


def counted(run, **options):
    """FLOPs by module and name of the op, "Global" last to be asked for, so that it is always there."""
    with FlopCounterMode(display=False, **options) as counter:
        run()
    total = counter.get_total_flops()
    found = {
        module: {str(op).removeprefix("aten."): n for op, n in counts.items()}
        for module, counts in counter.get_flop_counts().items()
    }
    assert sum(found["Global"].values()) == total
    return found


# ---------------------------------------------------------------- ops, forward and backward

OPS = [
    ("mm", torch.mm, [(2, 3), (3, 4)], {"mm": 144}),
    ("addmm", torch.addmm, [(2, 4), (2, 3), (3, 4)], {"addmm": 48, "mm": 96}),
    ("addmm with keywords", partial(torch.addmm, beta=0.5, alpha=2), [(4,), (2, 3), (3, 4)], {"addmm": 48, "mm": 96}),
    ("bmm", torch.bmm, [(5, 2, 3), (5, 3, 4)], {"bmm": 720}),
    ("baddbmm", torch.baddbmm, [(5, 2, 4), (5, 2, 3), (5, 3, 4)], {"baddbmm": 240, "bmm": 480}),
    ("addbmm", torch.addbmm, [(2, 4), (5, 2, 3), (5, 3, 4)], {"bmm": 480}),
    ("mv", torch.mv, [(2, 3), (3,)], {}),
    ("outer", torch.outer, [(2,), (3,)], {}),
    ("matmul 1d 1d", torch.matmul, [(3,), (3,)], {}),
    ("matmul 1d 2d", torch.matmul, [(3,), (3, 4)], {"mm": 72}),
    ("matmul 2d 2d", torch.matmul, [(2, 3), (3, 4)], {"mm": 144}),
    ("matmul 3d 2d", torch.matmul, [(5, 2, 3), (3, 4)], {"mm": 720}),
    ("matmul 2d 3d", torch.matmul, [(2, 3), (5, 3, 4)], {"mm": 720}),
    ("matmul 4d 3d", torch.matmul, [(5, 1, 2, 3), (6, 3, 4)], {"bmm": 4320}),
    ("einsum of matrices", partial(torch.einsum, "ij,jk->ik"), [(2, 3), (3, 4)], {"bmm": 144}),
    ("einsum of batches", partial(torch.einsum, "bij,bjk->bik"), [(5, 2, 3), (5, 3, 4)], {"bmm": 720}),
    ("einsum of heads", partial(torch.einsum, "bqhd,bkhd->bhqk"), [(2, 3, 4, 5), (2, 6, 4, 5)], {"bmm": 4320}),
    ("einsum of three", partial(torch.einsum, "ij,jk,kl->il"), [(2, 3), (3, 4), (4, 5)], {"bmm": 384}),
    ("einsum to a number", partial(torch.einsum, "ij,ij->"), [(2, 3), (2, 3)], {"bmm": 36}),
    ("einsum by elements", partial(torch.einsum, "ij,ij->ij"), [(2, 3), (2, 3)], {}),
    ("tensordot", torch.tensordot, [(2, 3, 4), (3, 4, 5)], {"mm": 720}),
    ("inner", torch.inner, [(2, 3), (4, 3)], {"mm": 144}),
    ("attention", F.scaled_dot_product_attention, [(2, 4, 5, 8)] * 3, {}),
    ("causal attention", partial(F.scaled_dot_product_attention, is_causal=True), [(2, 4, 5, 8)] * 3, {}),
    ("attention of three dims", F.scaled_dot_product_attention, [(2, 5, 8)] * 3, {"bmm": 4800}),
    ("attention of two dims", F.scaled_dot_product_attention, [(5, 8)] * 3, {"mm": 2400}),
    ("attention with dropout", partial(F.scaled_dot_product_attention, dropout_p=0.1), [(2, 4, 5, 8)] * 3, {"bmm": 19200}),
    ("attention with a learned mask", F.scaled_dot_product_attention, [*[(2, 4, 5, 8)] * 3, (5, 5)], {"bmm": 19200}),
    (
        "attention with values of another size",
        F.scaled_dot_product_attention,
        [(2, 4, 5, 8), (2, 4, 7, 8), (2, 4, 7, 6)],
        {"bmm": 23520},
    ),
]


@pytest.mark.parametrize(("function", "shapes", "expected"), [row[1:] for row in OPS], ids=[row[0] for row in OPS])
def test_ops(function, shapes, expected):
    assert counted(lambda: function(*[leaf(*shape) for shape in shapes]).sum().backward()) == {"Global": expected}


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        (lambda: torch.matmul(data(5, 2, 3), data(3, 4)), {"mm": 240}),
        (lambda: torch.matmul(data(2, 3), data(5, 3, 4)), {"bmm": 240}),
        (lambda: torch.linalg.multi_dot([data(2, 3), data(3, 4), data(4, 5)]), {"mm": 128}),
        (lambda: torch.matrix_power(data(3, 3), 5), {"mm": 162}),
        (lambda: data(2, 4).addmm_(data(2, 3), data(3, 4)), {}),
        (lambda: torch.mm(data(2, 3).half(), data(3, 4).half()), {"mm": 48}),
        (lambda: torch.empty(2, 3, device="meta") @ torch.empty(3, 4, device="meta"), {"mm": 48}),
        (lambda: data(3).sum(), {}),
    ],
)
def test_forward_alone(run, expected):
    assert counted(run) == {"Global": expected}
    with torch.inference_mode():
        assert counted(run) == {"Global": expected}


def test_second_derivative():
    def run():
        x, w = leaf(3, 4), leaf(4, 5)
        (grad,) = torch.autograd.grad((x @ w).tanh().sum(), x, create_graph=True)
        grad.sum().backward()

    assert counted(run) == {"Global": {"mm": 720}}


def train(module, *args):
    module(*args).sum().backward()


@pytest.mark.parametrize(
    ("make", "shape", "forward", "backward"),
    [
        (partial(nn.Conv1d, 3, 6, 3), (2, 3, 9), 1512, 3024),
        (partial(nn.Conv2d, 2, 4, 3), (2, 5, 5), 1296, 2592),
        (partial(nn.Conv2d, 2, 4, 3, dilation=2), (1, 2, 8, 8), 2304, 4608),
        (partial(nn.Conv2d, 2, 4, 3, padding=1, padding_mode="circular"), (2, 2, 5, 5), 7200, 14400),
        (partial(nn.Conv3d, 2, 4, 2), (2, 2, 4, 4, 4), 6912, 13824),
        (partial(nn.ConvTranspose2d, 3, 6, 3, stride=2, output_padding=1), (2, 3, 5, 5), 16200, 32400),
    ],
)
def test_convolutions(make, shape, forward, backward):
    module = make()
    expected = {"convolution": forward, "convolution_backward": backward}
    assert counted(lambda: train(module, leaf(*shape))) == {"Global": expected, type(module).__name__: expected}


def test_gradients_of_groups_count_as_if_there_were_none():
    expected = {"convolution": 720, "convolution_backward": 1440}
    module = nn.ConvTranspose1d(4, 6, 3, groups=2)
    assert counted(lambda: train(module, data(2, 4, 5)))["Global"] == expected


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: nn.Linear(8, 4)(data(8)), {"addmm": 64}),
        (lambda: nn.Linear(8, 4)(data(2, 3, 8)), {"addmm": 384}),
        (lambda: train(nn.Linear(8, 4, bias=False), leaf(2, 3, 8)), {"mm": 1152}),
        (lambda: train(nn.Linear(8, 4), data(2, 8, 3).transpose(1, 2)), {"mm": 768}),
        (lambda: nn.LSTM(4, 5)(data(3, 2, 4))[0].sum().backward(), {}),
        (lambda: nn.LSTM(4, 5, proj_size=2)(data(3, 2, 4))[0].sum().backward(), {"addmm": 1440, "mm": 2120}),
        (lambda: nn.GRU(4, 5)(data(3, 2, 4))[0].sum().backward(), {"addmm": 1620, "mm": 2220}),
        (lambda: nn.LSTMCell(4, 5)(data(2, 4))[0].sum().backward(), {"addmm": 720, "mm": 720}),
    ],
)
def test_layers(make, expected):
    assert counted(make)["Global"] == expected


# ---------------------------------------------------------------- modules


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(8, 16)
        self.second = nn.Linear(16, 4, bias=False)

    def forward(self, x):
        return self.second(self.first(x).relu())


class Images(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1),
            nn.BatchNorm2d(8),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(8, 8, 3, groups=8, stride=2),
            nn.Conv2d(8, 16, 1, bias=False),
        )
        self.head = nn.Linear(16, 10)

    def forward(self, x):
        return self.head(self.body(x).mean((2, 3)))


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(16, 48)
        self.out = nn.Linear(16, 16)

    def forward(self, x):
        q, k, v = self.qkv(x).view(2, 5, 3, 4, 4).permute(2, 0, 3, 1, 4)
        return self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(2, 5, 16))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(16)
        self.attn = Attention()
        self.mlp = nn.Sequential(nn.Linear(16, 64), nn.GELU(), nn.Linear(64, 16))

    def forward(self, x):
        x = x + self.attn(self.norm(x))
        return x + self.mlp(x)


class Keywords(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, *, x):
        return {"y": [self.lin(x)]}


class Twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        return self.lin(self.lin(x))


def checkpointed():
    torch.utils.checkpoint.checkpoint(MLP(), leaf(2, 8), use_reentrant=False).sum().backward()


def frozen():
    module = MLP()
    module.first.weight.requires_grad_(False)
    train(module, data(2, 8))


def two_steps():
    module = MLP()
    train(module, data(2, 8))
    train(module, data(3, 8))


def not_in_a_module():
    first, second = nn.Linear(4, 4), nn.Linear(4, 4)
    second(first(data(2, 4))).sum().backward()


def heads():
    x = data(2, 5, 16)
    nn.MultiheadAttention(16, 4, batch_first=True)(x, x, x)[0].sum().backward()


MODULES = [
    (
        "forward",
        lambda: MLP()(data(2, 8)),
        {
            "Global": {"addmm": 512, "mm": 256},
            "MLP": {"addmm": 512, "mm": 256},
            "MLP.first": {"addmm": 512},
            "MLP.second": {"mm": 256},
        },
    ),
    (
        "training",
        lambda: train(MLP(), data(2, 8)),
        {
            "Global": {"addmm": 512, "mm": 1280},
            "MLP": {"addmm": 512, "mm": 1280},
            "MLP.first": {"addmm": 512, "mm": 512},
            "MLP.second": {"mm": 768},
        },
    ),
    (
        "input that requires grad",
        lambda: train(MLP(), leaf(2, 8)),
        {
            "Global": {"addmm": 512, "mm": 1792},
            "MLP": {"addmm": 512, "mm": 1792},
            "MLP.first": {"addmm": 512, "mm": 1024},
            "MLP.second": {"mm": 768},
        },
    ),
    (
        "frozen",
        frozen,
        {
            "Global": {"addmm": 512, "mm": 768},
            "MLP": {"addmm": 512, "mm": 768},
            "MLP.first": {"addmm": 512},
            "MLP.second": {"mm": 768},
        },
    ),
    (
        "two steps",
        two_steps,
        {
            "Global": {"addmm": 1280, "mm": 3200},
            "MLP": {"addmm": 1280, "mm": 3200},
            "MLP.first": {"addmm": 1280, "mm": 1280},
            "MLP.second": {"mm": 1920},
        },
    ),
    (
        "checkpointed",
        checkpointed,
        {
            "Global": {"addmm": 1024, "mm": 1792},
            "MLP": {"addmm": 1024, "mm": 1792},
            "MLP.first": {"addmm": 1024, "mm": 1024},
            "MLP.second": {"addmm": 512, "mm": 768},
        },
    ),
    (
        "images",
        lambda: train(Images(), data(2, 3, 8, 8)),
        {
            "Global": {"convolution": 56096, "addmm": 640, "mm": 1280, "convolution_backward": 58912},
            "Images": {"convolution": 56096, "addmm": 640, "mm": 1280, "convolution_backward": 58912},
            "Images.body": {"convolution": 56096, "convolution_backward": 58912},
            "Images.body.0": {"convolution": 55296, "convolution_backward": 55296},
            "Images.body.4": {"convolution": 288, "convolution_backward": 2592},
            "Images.body.5": {"convolution": 512, "convolution_backward": 1024},
            "Images.head": {"addmm": 640, "mm": 1280},
        },
    ),
    (
        "attention",
        lambda: train(Attention(), data(2, 5, 16)),
        {
            "Global": {"addmm": 20480, "mm": 25600},
            "Attention": {"addmm": 20480, "mm": 25600},
            "Attention.qkv": {"addmm": 15360, "mm": 15360},
            "Attention.out": {"addmm": 5120, "mm": 10240},
        },
    ),
    (
        "multi-head attention",
        heads,
        {"Global": {"mm": 40960, "bmm": 9600, "addmm": 5120}, "MultiheadAttention": {"mm": 40960, "bmm": 9600, "addmm": 5120}},
    ),
    (
        "keywords and containers",
        lambda: Keywords()(x=leaf(2, 4))["y"][0].sum().backward(),
        {"Global": {"addmm": 64, "mm": 128}, "Keywords": {"addmm": 64, "mm": 128}, "Keywords.lin": {"addmm": 64, "mm": 128}},
    ),
    (
        "a module that is used twice",
        lambda: train(Twice(), data(2, 4)),
        {"Global": {"addmm": 128, "mm": 192}, "Twice": {"addmm": 128, "mm": 192}, "Twice.lin": {"addmm": 128, "mm": 128}},
    ),
    ("two roots of one name", not_in_a_module, {"Global": {"addmm": 128, "mm": 192}, "Linear": {"addmm": 128, "mm": 128}}),
]


@pytest.mark.parametrize(("run", "expected"), [row[1:] for row in MODULES], ids=[row[0] for row in MODULES])
def test_modules(run, expected):
    assert counted(run) == expected


def test_backward_of_a_module_is_its_own_when_it_starts_there():
    found = counted(lambda: MLP()(data(2, 8)).backward(torch.ones(2, 4)))
    assert found["MLP"] == found["Global"] == {"addmm": 512, "mm": 1280}  # in torch MLP has 256 of mm


def test_attention_layers_are_counted_in_eval_mode():
    layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True).eval()
    with torch.no_grad():
        assert sum(counted(lambda: layer(data(2, 5, 16)))["Global"].values()) == 44160  # in torch nothing


# ---------------------------------------------------------------- tables

BLOCK = """\
Module                FLOP    % Total
----------------  --------  ---------
Block             184.320K    100.00%
 - aten.addmm      61.440K     33.33%
 - aten.mm        122.880K     66.67%
 Block.attn        61.440K     33.33%
  - aten.addmm     20.480K     11.11%
  - aten.mm        40.960K     22.22%
  Block.attn.out   15.360K      8.33%
   - aten.addmm     5.120K      2.78%
   - aten.mm       10.240K      5.56%
  Block.attn.qkv   46.080K     25.00%
   - aten.addmm    15.360K      8.33%
   - aten.mm       30.720K     16.67%
 Block.mlp        122.880K     66.67%
  - aten.addmm     40.960K     22.22%
  - aten.mm        81.920K     44.44%
  Block.mlp.0      61.440K     33.33%
   - aten.addmm    20.480K     11.11%
   - aten.mm       40.960K     22.22%
  Block.mlp.2      61.440K     33.33%
   - aten.addmm    20.480K     11.11%
   - aten.mm       40.960K     22.22%"""
PARTS = """\
Module            FLOP    % Total
--------------  ------  ---------
Global             320    100.00%
 - aten.addmm      128     40.00%
 - aten.mm         192     60.00%
 Linear            256     80.00%
  - aten.addmm     128     40.00%
  - aten.mm        128     40.00%"""
NOTHING = """\
Module      FLOP    % Total
--------  ------  ---------
Global         0         0%"""


@pytest.mark.parametrize(
    ("run", "expected"), [(lambda: train(Block(), data(2, 5, 16)), BLOCK), (not_in_a_module, PARTS), (lambda: None, NOTHING)]
)
def test_table(run, expected, capsys):
    with FlopCounterMode(depth=None) as counter:
        run()
    assert capsys.readouterr().out == expected + "\n"
    assert counter.get_table(3) == expected


def test_depth(capsys):
    with FlopCounterMode(depth=1) as counter:
        train(Block(), data(2, 5, 16))
    assert capsys.readouterr().out.split("\n")[2:-1] == [
        "Block          184.320K    100.00%",
        " - aten.addmm   61.440K     33.33%",
        " - aten.mm     122.880K     66.67%",
    ]
    assert [line.split()[0] for line in counter.get_table(2).split("\n")[2:] if " - " not in line] == [
        "Block",
        "Block.attn",
        "Block.mlp",
    ]


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0.000"),
        (9999, "9999.000"),
        (10000, "10.000K"),
        (12345678, "12.346M"),
        (123456789, "123.457M"),
        (10**13, "10.000T"),
        (10**20, "100000000.000T"),
    ],
)
def test_units(number, text):
    assert fc.convert_num_with_suffix(number, fc.get_suffix_str(number)) == text


def test_small_helpers():
    assert (fc.convert_to_percent_str(1, 3), fc.convert_to_percent_str(1, 0)) == ("33.33%", "0%")
    assert (fc.normalize_tuple(3), fc.normalize_tuple((3,))) == ((3,), (3,))
    assert (fc.get_shape(data(2, 3)), fc.get_shape(7)) == ((2, 3), 7)


# ---------------------------------------------------------------- formulas

FORWARD = ((2, 6, 6, 6), (2, 3, 8, 8), (6, 3, 3, 3), None, 1, 0, 1, False, 0, 1)
TRANSPOSED = ((2, 6, 10, 10), (2, 3, 8, 8), (3, 6, 3, 3), None, 1, 0, 1, True, 0, 1)
HEADS = (2, 4, 5, 8), (2, 2, 7, 8), (2, 2, 7, 6)


@pytest.mark.parametrize(
    ("formula", "shapes", "out", "flops"),
    [
        (fc.mm_flop, [(2, 3), (3, 4)], None, 48),
        (fc.addmm_flop, [(4,), (2, 3), (3, 4)], None, 48),
        (fc.bmm_flop, [(5, 2, 3), (5, 3, 4)], None, 240),
        (fc.baddbmm_flop, [(1,), (5, 2, 3), (5, 3, 4)], None, 240),
        (fc.conv_flop, [(2, 3, 8, 8), (6, 3, 3, 3), None, 1, 0, 1, False], (2, 6, 6, 6), 23328),
        (fc.conv_flop, [(2, 3, 8, 8), (3, 6, 3, 3), None, 1, 0, 1, True], (2, 6, 10, 10), 41472),
        (fc.conv_backward_flop, [*FORWARD, [True, True, False]], (FORWARD[1], FORWARD[2], None), 46656),
        (fc.conv_backward_flop, [*FORWARD, [False, True, True]], (None, FORWARD[2], None), 23328),
        (fc.conv_backward_flop, [*TRANSPOSED, [True, False, False]], (TRANSPOSED[1], None, None), 41472),
        (fc.conv_backward_flop, [*TRANSPOSED, [True, True, False]], (TRANSPOSED[1], TRANSPOSED[2], None), 82944),
        (fc.sdpa_flop, HEADS, None, 7840),
        (fc.sdpa_backward_flop, [(2, 4, 5, 6), *HEADS], None, 20160),
    ],
)
def test_formulas_take_shapes_and_tensors(formula, shapes, out, flops):
    def tensor(value):
        return torch.empty(value) if isinstance(value, tuple) else value

    assert formula(*shapes, out_val=out) == flops
    results = tuple(map(tensor, out)) if out and isinstance(out[0] or out[1], tuple) else tensor(out)
    assert formula(*map(tensor, shapes), out_val=results) == flops


def test_formulas_without_an_op():
    assert fc.conv_flop_count([2, 3, 8, 8], [6, 3, 3, 3], [2, 6, 6, 6]) == 23328
    assert fc.sdpa_flop_count(*HEADS) == 7840
    assert fc.sdpa_backward_flop_count((2, 4, 5, 6), *HEADS) == 20160


@pytest.mark.parametrize(
    ("formula", "shapes", "message"),
    [
        (fc.mm_flop, [(2, 3), (4, 4)], r"matmul: inner dimensions must match \(k == k2\), got 3 and 4"),
        (fc.bmm_flop, [(5, 2, 3), (4, 3, 4)], r"bmm: batch dimensions must match \(b == b2\), got 5 and 4"),
        (fc.bmm_flop, [(5, 2, 3), (5, 2, 4)], r"bmm: inner dimensions must match \(k == k2\), got 3 and 2"),
        (fc.sdpa_flop_count, [(2, 4, 5, 8), (2, 3, 7, 8), (2, 3, 7, 6)], r"query heads \(4\) must be a multiple of"),
        (fc.sdpa_flop_count, [(2, 4, 5, 8), (2, 2, 7, 9), (2, 2, 7, 6)], "query/key/value shapes are incompatible: q="),
        (fc.sdpa_flop_count, [(2, 4, 5, 8), (3, 2, 7, 8), (2, 2, 7, 6)], "query/key/value shapes are incompatible: q="),
        (fc.sdpa_backward_flop_count, [(1, 4, 5, 6), *HEADS], "batch/heads mismatch among tensors"),
        (fc.sdpa_backward_flop_count, [(2, 4, 5, 7), *HEADS], "grad_out/value/key/query shapes are incompatible"),
        (fc.sdpa_backward_flop_count, [(2, 4, 5, 6), HEADS[0], (2, 3, 7, 8), (2, 3, 7, 6)], r"query heads \(4\) must be"),
    ],
)
def test_shapes_that_do_not_fit(formula, shapes, message):
    with pytest.raises(AssertionError, match=message):
        formula(*shapes)


@pytest.fixture
def registry(monkeypatch):
    monkeypatch.setattr(fc, "flop_registry", dict(fc.flop_registry))
    return fc.flop_registry


def test_registered_formulas(registry):
    @fc.register_flop_formula(aten.relu)
    def of_shapes(x, *args, out_shape=None, **kwargs):
        return 7 * x[0] + out_shape[1]

    @fc.register_flop_formula([aten.sigmoid, aten.tanh], get_raw=True)
    def of_tensors(x, *args, out_val=None, **kwargs):
        return x.numel() + out_val.numel()

    assert registry[aten.relu] is of_shapes and registry[aten.tanh] is of_tensors
    assert counted(lambda: data(2, 3).relu().sigmoid().tanh())["Global"] == {"relu": 17, "sigmoid": 12, "tanh": 12}


def test_registered_wrongly(registry):
    with pytest.raises(RuntimeError, match="duplicate registrations for aten.mm"):
        fc.register_flop_formula(aten.mm)(fc.mm_flop)
    for target in (aten.add.Tensor, torch.mm):
        with pytest.raises(ValueError, match=r"expected each target to be OpOverloadPacket \(i.e. torch.ops.mylib.foo\)"):
            fc.register_flop_formula([target])(fc.mm_flop)


def test_custom_mapping():
    def of_shapes(x, y, *args, out_shape=None, **kwargs):
        return 2.5 * out_shape[0]

    def of_tensors(x, *args, out_val=None, **kwargs):
        return 3 if isinstance(x, torch.Tensor) else 0

    of_tensors._get_raw = True
    x = data(2, 3)
    found = counted(
        lambda: ((x + x) * x, torch.mm(x, x.t())),
        custom_mapping={aten.add: of_shapes, aten.mul: of_tensors, aten.mm: of_shapes},
    )
    assert found["Global"] == {"add": 5.0, "mul": 3, "mm": 5.0}
    assert aten.add not in fc.flop_registry


def test_composites_count_by_their_parts(registry):
    fc.register_flop_formula(aten.linear)(lambda *args, **kwargs: 10**6)
    assert counted(lambda: F.linear(data(2, 8), data(4, 8), data(4))) == {"Global": {"addmm": 128}}


def test_ops_of_a_library_count_by_their_formula(registry):
    @torch.library.custom_op("flop_counter_test::product", mutates_args=())
    def product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return a @ b

    assert counted(lambda: product(data(2, 3), data(3, 4))) == {"Global": {}}
    fc.register_flop_formula(torch.ops.flop_counter_test.product)(lambda a, b, out_shape: 5 * out_shape[0])
    assert counted(lambda: product(data(2, 3), data(3, 4))) == {"Global": {"flop_counter_test.product": 10}}


# ---------------------------------------------------------------- the counter among other things


def test_entering_again_starts_anew():
    counter = FlopCounterMode(display=False)
    for rows in (2, 3):
        with counter:
            torch.mm(data(rows, 3), data(3, 4))
        torch.mm(data(9, 3), data(3, 4))
        assert counter.get_total_flops() == 24 * rows
    assert counter.get_flop_counts() == {"Global": {aten.mm: 72}}


def test_ends_with_an_exception(capsys):
    with pytest.raises(KeyError), FlopCounterMode() as counter:
        torch.mm(data(2, 3), data(3, 4))
        raise KeyError
    MLP()(data(2, 8))
    assert counter.get_flop_counts() == {"Global": {aten.mm: 48}}
    assert "aten.mm" in capsys.readouterr().out
    with pytest.raises(AssertionError, match="mode is None"):
        counter.__exit__(None, None, None)


def test_mods_are_not_needed():
    with pytest.warns(UserWarning, match="mods argument is not needed anymore") as caught:
        FlopCounterMode(MLP())
    assert caught[0].filename == __file__


def test_a_counter_in_a_counter():
    with FlopCounterMode(display=False) as outer:
        torch.mm(data(2, 3), data(3, 4))
        with FlopCounterMode(display=False) as inner:
            torch.mm(data(2, 3), data(3, 4))
    assert (outer.get_total_flops(), inner.get_total_flops()) == (96, 48)


def test_nothing_else_changes():
    x = torch.ones(2, requires_grad=True)
    with FlopCounterMode(display=False):
        y = x * 2
        y.mul_(y.detach() * 3).relu_()
        y.sum().backward()
        for wrong, error in (
            (lambda: data(2, 3) + data(4), RuntimeError),
            (lambda: x.sum(5), IndexError),
            (lambda: torch.matmul(x, "x"), TypeError),
        ):
            with pytest.raises(error) as caught:
                wrong()
            assert caught.type is error
    assert x.grad.tolist() == [12.0, 12.0]


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        (lambda: torch.vmap(torch.mm)(data(3, 2, 4), data(3, 4, 5)), {"bmm": 240}),
        (lambda: torch.vmap(torch.mm, in_dims=(0, None))(data(3, 2, 4), data(4, 5)), {"mm": 240}),
        (lambda: torch.vmap(torch.vmap(torch.mm))(data(3, 4, 2, 3), data(3, 4, 3, 5)), {"bmm": 720}),
        (lambda: torch.vmap(nn.Conv2d(2, 3, 3))(data(3, 1, 2, 5, 5)), {"convolution": 2916}),
        (lambda: torch.func.grad(lambda w: (data(2, 3) @ w).sum())(data(3, 4)), {"mm": 96}),
    ],
)
def test_function_transforms(run, expected):
    assert counted(run)["Global"] == expected


def test_counters_inside_vmap():
    counters = [FlopCounterMode(display=False) for _ in range(3)]

    def product(a, b):
        with counters[1], counters[2]:
            return torch.dropout(a @ b, 0.5, True)

    with counters[0]:
        made = torch.vmap(product, randomness="different")(data(3, 2, 4), data(3, 4, 5))
    assert made.shape == (3, 2, 5)
    assert [counter.get_flop_counts() for counter in counters] == [{"Global": {aten.bmm: 240}}] * 3


def test_is_loaded_when_asked_for():
    text = (
        "import sys, mindtorch_v2 as torch\n"
        "assert not {'mindtorch_v2.utils.flop_counter', 'mindtorch_v2.utils.module_tracker'} & set(sys.modules)\n"
        "torch.utils.flop_counter.FlopCounterMode, torch.utils.module_tracker.ModuleTracker"
    )
    subprocess.run([sys.executable, "-c", text], check=True)
