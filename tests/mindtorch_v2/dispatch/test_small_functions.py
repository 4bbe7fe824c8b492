"""Names beside the ops: questions as functions, apply_ and map_, unravel_index, windows, channels_last after convolutions."""

from __future__ import annotations

import pickle

import pytest

import mindtorch_v2 as torch
import mindtorch_v2.nn.functional as F
from mindtorch_v2 import nn

I = torch.tensor([1, 5])


def test_questions():
    x = torch.ones(2)
    with torch.inference_mode():
        made = torch.ones(2)
    assert torch.is_inference(made) and not torch.is_inference(x)
    assert torch.is_signed(x) and not torch.is_signed(x.to(torch.uint8))
    assert not torch.is_conj(x) and not x.is_neg() and not x.is_shared()
    with pytest.raises(TypeError, match=r"is_signed\(\): argument 'input' \(position 1\) must be Tensor, not int"):
        torch.is_signed(1)


def test_grad_scaler_is_there():
    assert torch.GradScaler is torch.amp.GradScaler


def test_modules_share_their_memory():
    layer = nn.Linear(1, 1).share_memory()
    assert all(parameter.is_shared() for parameter in layer.parameters())


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda: torch.ones(2, 2).apply_(lambda v: v + 1), [[2, 2], [2, 2]]),
        (lambda: torch.arange(3).apply_(lambda v: v * 1.5), [0, 1, 3]),
        (lambda: torch.tensor([True, False]).apply_(lambda v: not v), [False, True]),
        (lambda: torch.ones(2, 2).map_(torch.full((2,), 3.0), lambda a, b: a + b), [[4, 4], [4, 4]]),
        (lambda: torch.arange(6).view(2, 3).t().apply_(lambda v: -v), [[0, -3], [-1, -4], [-2, -5]]),
    ],
)
def test_python_functions_in_place(call, expected):
    assert call().tolist() == expected


def test_apply_keeps_the_tensor_and_counts_as_a_write():
    x = torch.ones(2)
    assert x.apply_(lambda v: v) is x and x._version == 1


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (
            lambda: torch.ones(2, requires_grad=True).apply_(lambda v: v),
            RuntimeError,
            "Can't call apply_() on Variable that requires grad. Use var.detach().apply_() instead.",
        ),
        (lambda: torch.ones(2).apply_(3), TypeError, "'int' object is not callable"),
        (lambda: torch.ones(2).apply_(lambda v: "x"), TypeError, "must be real number, not str"),
        (
            lambda: torch.ones(2).map_(torch.ones(2).double(), max),
            TypeError,
            "map_: expected torch.FloatTensor for 'other' (got torch.DoubleTensor)",
        ),
        (lambda: torch.ones(2).map_(3, max), TypeError, "map_(): argument 'other' (position 1) must be Tensor, not int"),
        (lambda: torch.unravel_index(I, (2, -3)), ValueError, "'shape' cannot have negative values, but got (2, -3)"),
        (
            lambda: torch.unravel_index(I.float(), (2, 3)),
            TypeError,
            "expected 'indices' to be integer dtype, but got torch.float32",
        ),
        (
            lambda: torch.unravel_index(I, (2, 3.0)),
            TypeError,
            "expected 'shape' sequence to only contain ints, but got <class 'float'>",
        ),
        (lambda: torch.signal.windows.hann(-1), ValueError, "general_cosine requires non-negative window length, got M=-1"),
        (lambda: torch.signal.windows.blackman(-1), ValueError, "blackman requires non-negative window length, got M=-1"),
        (lambda: torch.signal.windows.kaiser(3, beta=-1), ValueError, "beta must be non-negative, got: -1 instead."),
        (lambda: torch.signal.windows.gaussian(3, std=0), ValueError, "Standard deviation must be positive, got: 0 instead."),
        (lambda: torch.signal.windows.exponential(3, center=1), ValueError, "Center must be None for symmetric windows"),
        (
            lambda: torch.signal.windows.hann(3, dtype=torch.long),
            ValueError,
            "general_cosine expects float32 or float64 dtypes, got: torch.int64",
        ),
    ],
)
def test_refused(call, kind, words):
    with pytest.raises(kind) as raised:
        call()
    assert str(raised.value) == words


def test_unravel_index():
    assert [t.tolist() for t in torch.unravel_index(I, (2, 3))] == [[0, 1], [1, 2]]
    assert [t.tolist() for t in torch.unravel_index(torch.tensor([[4], [-1]]), [2, 3])] == [[[1], [1]], [[1], [2]]]
    assert [t.tolist() for t in torch.unravel_index(I, 6)] == [[1, 5]]


# As PyTorch 2.13 gives them.
WINDOWS = {
    "hann": ({}, [0.0, 0.5, 1.0, 0.5, 0.0]),
    "hamming": ({"sym": False}, [0.08, 0.39785218, 0.91214782, 0.91214782, 0.39785218]),
    "blackman": ({}, [0.0, 0.34, 1.0, 0.34, 0.0]),
    "nuttall": ({}, [0.0003628, 0.2269824, 1.0, 0.2269824, 0.0003628]),
    "bartlett": ({"sym": False}, [0.0, 0.4, 0.8, 0.8, 0.4]),
    "kaiser": ({"beta": 3.0}, [0.2049, 0.7269, 1.0, 0.7269, 0.2049]),
    "gaussian": ({"std": 0.9}, [0.0847, 0.5394, 1.0, 0.5394, 0.0847]),
    "exponential": ({"sym": False, "center": 1, "tau": 2.0}, [0.6065, 1.0, 0.6065, 0.3679, 0.2231]),
    "cosine": ({"sym": False}, [0.2588, 0.7071, 0.9659, 0.9659, 0.7071]),
    "general_cosine": ({"a": [0.46, 0.23, 0.31]}, [0.54, 0.15, 1.0, 0.15, 0.54]),
    "general_hamming": ({"alpha": 0.6, "sym": False}, [0.2, 0.4764, 0.9236, 0.9236, 0.4764]),
}


@pytest.mark.parametrize("name", WINDOWS)
def test_windows(name):
    settings, expected = WINDOWS[name]
    window = getattr(torch.signal.windows, name)
    assert torch.allclose(window(5, **settings), torch.tensor(expected), atol=1e-4)
    assert window(5, dtype=torch.float64, **settings).dtype is torch.float64
    assert window(0, **settings).shape == (0,)


LAST = torch.channels_last


@pytest.mark.parametrize(
    "layer",
    [
        lambda: nn.Conv2d(3, 4, 1),
        lambda: nn.Conv2d(3, 4, 3, padding=1),
        lambda: nn.Conv2d(3, 6, 3, groups=3),
        lambda: nn.ConvTranspose2d(3, 4, 2),
    ],
)
def test_channels_last_survives_a_convolution(layer):
    torch.manual_seed(0)
    layer, x = layer(), torch.randn(2, 3, 4, 5)
    plain, turned = layer(x), layer(x.contiguous(memory_format=LAST))
    assert plain.is_contiguous()
    assert turned.is_contiguous(memory_format=LAST) and not turned.is_contiguous()
    assert torch.equal(plain, turned)


def test_channels_last_of_the_weight_counts_too():
    weight = torch.ones(4, 3, 3, 3).contiguous(memory_format=LAST)
    assert F.conv2d(torch.ones(2, 3, 4, 5), weight).is_contiguous(memory_format=LAST)
    volume = torch.ones(1, 2, 3, 3, 3).contiguous(memory_format=torch.channels_last_3d)
    assert nn.Conv3d(2, 2, 1)(volume).stride() == (54, 1, 18, 6, 2)
    assert nn.Conv1d(3, 4, 1)(torch.ones(2, 5, 3).transpose(1, 2)).is_contiguous()


# ---------------------------------------------------------------- names of classes


@pytest.mark.parametrize(
    ("found", "name"),
    [
        (lambda: type(torch.ones(1)), "Tensor"),
        (lambda: type(torch.ones(1).shape), "Size"),
        (lambda: torch.device, "device"),
        (lambda: torch.dtype, "dtype"),
        (lambda: nn.Parameter, "nn.parameter.Parameter"),
        (lambda: torch.finfo, "finfo"),
        (lambda: torch.no_grad, "autograd.grad_mode.no_grad"),
        (lambda: torch.autograd.Function, "autograd.function.Function"),
        (lambda: torch.autograd.graph.saved_tensors_hooks, "autograd.graph.saved_tensors_hooks"),
        (lambda: torch.autograd.graph.GradientEdge, "autograd.graph.GradientEdge"),
        (lambda: torch.UntypedStorage, "storage.UntypedStorage"),
        (lambda: torch.FloatStorage, "FloatStorage"),
        (lambda: torch.optim.lr_scheduler.StepLR, "optim.lr_scheduler.StepLR"),
        (lambda: torch.optim.Muon, "optim.Muon"),
        (lambda: nn.MultiheadAttention, "nn.modules.activation.MultiheadAttention"),
        (lambda: nn.GRUCell, "nn.modules.rnn.GRUCell"),
        (lambda: nn.ParameterList, "nn.modules.container.ParameterList"),
        (lambda: nn.TransformerEncoderLayer, "nn.modules.transformer.TransformerEncoderLayer"),
        (lambda: nn.utils.rnn.PackedSequence, "nn.utils.rnn.PackedSequence"),
        (lambda: torch.overrides.TorchFunctionMode, "overrides.TorchFunctionMode"),
        (lambda: torch.utils.hooks.RemovableHandle, "utils.hooks.RemovableHandle"),
    ],
)
def test_classes_say_where_users_find_them(found, name):
    kind = found()
    assert repr(kind) == f"<class 'mindtorch_v2.{name}'>"
    assert pickle.loads(pickle.dumps(kind)) is kind
