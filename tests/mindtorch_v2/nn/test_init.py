"""nn.init: the very bits that torch 2.13 draws from the same seed, and the properties that seeds do not change."""

from __future__ import annotations

import math
import zlib

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import nn
from mindtorch_v2.nn import init


def checksum(*tensors) -> int:
    """A number that stands for all bits of some tensors."""
    sum_ = 0
    for tensor in tensors:
        sum_ = zlib.crc32(tensor.detach().contiguous().numpy().tobytes(), sum_)
    return sum_


# ---------------------------------------------------------------- the same bits

FILLS = [
    ("uniform", lambda w: init.uniform_(w, -2.0, 3.0), 2804494707),
    ("normal", lambda w: init.normal_(w, 1.0, 0.5), 3008103963),
    ("xavier uniform", lambda w: init.xavier_uniform_(w, gain=1.5), 3140337719),
    ("xavier normal", lambda w: init.xavier_normal_(w), 124320388),
    ("kaiming uniform", lambda w: init.kaiming_uniform_(w), 461454486),
    ("kaiming uniform, as Linear", lambda w: init.kaiming_uniform_(w, a=math.sqrt(5)), 2962344741),
    ("kaiming normal", lambda w: init.kaiming_normal_(w, mode="fan_out", nonlinearity="relu"), 3250710967),
    ("sparse", lambda w: init.sparse_(w, 0.3), 3329484198),
]


@pytest.mark.parametrize(("fill", "expected"), [row[1:] for row in FILLS], ids=[row[0] for row in FILLS])
def test_fill(fill, expected: int) -> None:
    torch.manual_seed(7)
    w = torch.empty(17, 5)
    assert fill(w) is w
    assert checksum(w) == expected


LAYERS = [
    ("Linear", lambda: nn.Linear(7, 5), 1658156180),
    ("Bilinear", lambda: nn.Bilinear(3, 4, 5), 1553846613),
    ("Conv2d", lambda: nn.Conv2d(4, 6, 3, groups=2), 3660201881),
    ("ConvTranspose1d", lambda: nn.ConvTranspose1d(4, 6, 3), 1338225012),
    ("Embedding", lambda: nn.Embedding(9, 5, padding_idx=2), 976732498),
    ("EmbeddingBag", lambda: nn.EmbeddingBag(9, 5), 817233282),
    ("BatchNorm2d", lambda: nn.BatchNorm2d(3), 3831318190),
    ("LSTM", lambda: nn.LSTM(4, 3, 2, bidirectional=True), 2810835570),
    ("GRUCell", lambda: nn.GRUCell(4, 3), 2849355504),
    ("MultiheadAttention", lambda: nn.MultiheadAttention(6, 2, add_bias_kv=True), 140862503),
    ("Transformer", lambda: nn.Transformer(4, 2, 1, 2, 5), 862706181),
    ("PReLU", lambda: nn.PReLU(3), 2170569713),
]


@pytest.mark.parametrize(("make", "expected"), [row[1:] for row in LAYERS], ids=[row[0] for row in LAYERS])
def test_layer_starts_with_the_same_bits(make, expected: int) -> None:
    torch.manual_seed(7)
    assert checksum(*make().state_dict().values()) == expected


def test_generator() -> None:
    a, b = torch.empty(3, 4), torch.empty(3, 4)
    for w in (a, b):
        init.xavier_uniform_(w, generator=torch.Generator().manual_seed(5))
    assert torch.equal(a, b)


# ---------------------------------------------------------------- properties


def test_constants() -> None:
    assert init.constant_(torch.empty(2), 3).tolist() == [3.0, 3.0]
    assert init.ones_(torch.empty(2)).tolist() == [1.0, 1.0]
    assert init.zeros_(torch.empty(2)).tolist() == [0.0, 0.0]
    assert init.eye_(torch.empty(2, 3)).tolist() == [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]


def test_dirac_keeps_channels() -> None:
    x = torch.arange(12.0).view(1, 2, 6)
    assert torch.equal(nn.functional.conv1d(x, init.dirac_(torch.empty(2, 2, 3)), padding=1), x)
    grouped = init.dirac_(torch.empty(4, 2, 3), groups=2)
    assert grouped[:, :, 1].tolist() == [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 1.0]]


def test_trunc_normal() -> None:
    torch.manual_seed(0)
    w = init.trunc_normal_(torch.empty(200, 100), mean=0.5, std=1.0, a=0.0, b=1.0)
    assert w.min().item() >= 0.0 and w.max().item() <= 1.0 and w.mean().item() == pytest.approx(0.5, abs=0.01)
    with pytest.warns(UserWarning, match="mean is more than 2 std from"):
        init.trunc_normal_(w, mean=10.0)


@pytest.mark.parametrize("shape", [(3, 5), (5, 3), (4, 2, 2)])
def test_orthogonal(shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    w = init.orthogonal_(torch.empty(shape), gain=2.0).flatten(1)
    product = w @ w.t() if w.shape[0] <= w.shape[1] else w.t() @ w
    assert torch.allclose(product, 4 * torch.eye(len(product)), atol=1e-5)


def test_sparse_zeroes_part_of_each_column() -> None:
    assert (init.sparse_(torch.empty(10, 4), 0.3) == 0).sum(0).tolist() == [3, 3, 3, 3]


def test_gradients_are_not_recorded() -> None:
    w = nn.Parameter(torch.empty(3, 4))
    for fill in (init.uniform_, init.kaiming_normal_, init.orthogonal_, init.ones_, init.eye_):
        assert fill(w) is w and w.is_leaf and w.requires_grad


@pytest.mark.parametrize(
    ("name", "param", "gain"),
    [
        ("linear", None, 1),
        ("conv_transpose3d", None, 1),
        ("sigmoid", None, 1),
        ("tanh", None, 5 / 3),
        ("relu", None, math.sqrt(2)),
        ("selu", None, 0.75),
        ("leaky_relu", None, math.sqrt(2 / 1.0001)),
        ("leaky_relu", 0.2, math.sqrt(2 / 1.04)),
    ],
)
def test_gain(name: str, param: float | None, gain: float) -> None:
    assert init.calculate_gain(name, param) == gain


REFUSALS = [
    (lambda: init.calculate_gain("odd"), "ValueError: Unsupported nonlinearity odd"),
    (lambda: init.calculate_gain("leaky_relu", "x"), "ValueError: negative_slope x not a valid number"),
    (
        lambda: init.xavier_uniform_(torch.empty(3)),
        "ValueError: Fan in and fan out can not be computed for tensor with fewer than 2 dimensions",
    ),
    (
        lambda: init.kaiming_uniform_(torch.empty(2, 2), mode="fan"),
        "ValueError: Mode fan not supported, please use one of ['fan_in', 'fan_out']",
    ),
    (lambda: init.eye_(torch.empty(2)), "ValueError: Only tensors with 2 dimensions are supported"),
    (lambda: init.dirac_(torch.empty(2)), "ValueError: Only tensors with 3, 4, or 5 dimensions are supported"),
    (lambda: init.dirac_(torch.empty(3, 2, 2), groups=2), "ValueError: dim 0 must be divisible by groups"),
    (lambda: init.orthogonal_(torch.empty(2)), "ValueError: Only tensors with 2 or more dimensions are supported"),
    (lambda: init.sparse_(torch.empty(2), 0.1), "ValueError: Only tensors with 2 dimensions are supported"),
]


@pytest.mark.parametrize(("call", "expected"), REFUSALS, ids=[expected[12:50] for _, expected in REFUSALS])
def test_refusal(call, expected: str) -> None:
    with pytest.raises(ValueError) as caught:
        call()
    assert f"ValueError: {caught.value}" == expected


def test_old_names_warn() -> None:
    with pytest.warns(FutureWarning, match="`nn.init.uniform` is now deprecated in favor of `nn.init.uniform_`"):
        init.uniform(torch.empty(2))
    with pytest.warns(UserWarning, match="Initializing zero-element tensors is a no-op"):
        init.kaiming_uniform_(torch.empty(0, 2))
