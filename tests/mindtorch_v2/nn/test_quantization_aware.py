"""torch.ao.quantization in floating point: observers and modules that round, with what torch 2.13 gives."""

from __future__ import annotations

import math
import warnings

import pytest

import mindtorch_v2 as torch
import mindtorch_v2.ao.quantization as Q
from mindtorch_v2 import nn
from mindtorch_v2.ao.nn import qat

# (observer, torch's scales, torch's zero points) after the two tensors below.
OBSERVERS = [
    ("MinMaxObserver()", [0.027451], [146]),
    ("MinMaxObserver(dtype=torch.qint8, qscheme=torch.per_tensor_symmetric)", [0.0313726], [0]),
    ("MinMaxObserver(quant_min=0, quant_max=127)", [0.0551181], [73]),
    ("MinMaxObserver(qscheme=torch.per_tensor_symmetric)", [0.0313726], [128]),
    ("MinMaxObserver(qscheme=torch.per_tensor_symmetric, quant_min=0, quant_max=15)", [0.5333334], [7]),
    ("MinMaxObserver(dtype=torch.uint16, qscheme=torch.per_tensor_symmetric)", [0.0001221], [32768]),
    ("MovingAverageMinMaxObserver(0.1)", [0.0133333], [98]),
    ("PerChannelMinMaxObserver()", [0.0156863, 0.0235294], [64, 170]),
    (
        "PerChannelMinMaxObserver(ch_axis=1, dtype=torch.qint8, qscheme=torch.per_channel_symmetric)",
        [0.0313726, 0.0078431],
        [0, 0],
    ),
    ("PerChannelMinMaxObserver(qscheme=torch.per_channel_affine_float_qparams)", [0.0156863, 0.0235294], [63.75, 170.0]),
    ("MovingAveragePerChannelMinMaxObserver(0.3, dtype=torch.qint8)", [0.0082353, 0.0106863], [-25, -32]),
    ("default_weight_observer()", [0.0313726], [0]),
    ("default_per_channel_weight_observer()", [0.0235294, 0.0313726], [0, 0]),
]
WATCHED = [[[-1.0, 0.5], [2.0, 0.25]], [[3.0, -0.5], [-4.0, 1.0]]]

# (module, torch's result for X after it saw another tensor, the gradient of its sum)
ROUNDED = [
    ("default_fake_quant()", [0.0, 0.501024, 1.01, 0.262441], [0.0, 1.0, 0.0, 1.0]),
    ("default_weight_fake_quant()", [-0.998118, 0.499059, 1.006039, 0.261412], [1.0, 1.0, 0.0, 1.0]),
    ("default_per_channel_weight_fake_quant()", [-0.998902, 0.499451, 0.266451, 0.260157], [1.0, 1.0, 0.0, 1.0]),
]
X = [[-1.0, 0.5], [2.0, 0.26]]


def _made(text):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of reduce_range, as in torch
        return eval(f"Q.{text}", {"Q": Q, "torch": torch})


@pytest.mark.parametrize(("text", "scales", "zero_points"), OBSERVERS)
def test_scales_and_zero_points_are_torchs(text, scales, zero_points):
    observer = _made(text)
    with pytest.warns(UserWarning, match="must run observer"):
        assert [value.tolist() for value in observer.calculate_qparams()] == [[1.0], [0]]
    for values in WATCHED:
        watched = torch.tensor(values)
        assert observer(watched) is watched
    observer(torch.empty(0))
    scale, zero_point = observer.calculate_qparams()
    assert scale.tolist() == pytest.approx(scales, abs=1e-7)
    assert zero_point.tolist() == pytest.approx(zero_points, abs=1e-4)
    again = _made(text)
    again.load_state_dict(observer.state_dict())
    assert again.calculate_qparams()[0].tolist() == scale.tolist()
    observer.reset_min_max_vals()
    with pytest.warns(UserWarning, match="must run observer"):
        observer.calculate_qparams()


@pytest.mark.parametrize(("text", "result", "grad"), ROUNDED)
def test_rounded_values_and_their_gradients_are_torchs(text, result, grad):
    module = _made(text)
    module(torch.tensor([[1.0, 0.5], [0.2, 0.25]]))
    x = torch.tensor(X, requires_grad=True)
    y = module(x)
    y.sum().backward()
    assert y.flatten().tolist() == pytest.approx(result, abs=1e-6)
    assert x.grad.flatten().tolist() == grad
    again = _made(text)
    again.load_state_dict(module.state_dict())
    assert again.scale.tolist() == module.scale.tolist()
    module.apply(Q.disable_observer)
    kept = module.scale.tolist()
    assert not torch.equal(module(x * 100), x * 100)
    assert module.scale.tolist() == kept
    module.apply(Q.disable_fake_quant)
    assert module(x) is x


@pytest.mark.parametrize(
    ("function", "args", "expected"),
    [
        ("fake_quantize_per_tensor_affine", (0.1, 0, -128, 127), [-1.0, 0.3, 12.7, -12.8]),
        ("fake_quantize_per_tensor_affine", (0.1, 5, 0, 255), [-0.5, 0.3, 25.0, -0.5]),
        (
            "fake_quantize_per_tensor_affine",
            (torch.tensor([0.1]), torch.tensor([3], dtype=torch.int32), 0, 15),
            [-0.3, 0.3, 1.2, -0.3],
        ),
    ],
)
def test_extremes(function, args, expected):
    x = torch.tensor([-1.0, 0.26, math.inf, math.nan])
    assert getattr(torch, function)(x, *args).tolist() == pytest.approx(expected, abs=1e-6)


def _channels(scale=(0.1, 0.5), zero=(0, 3), axis=0, low=-8, high=7, scale_dtype=torch.float32, zero_dtype=torch.int32):
    return torch.fake_quantize_per_channel_affine(
        torch.ones(2, 4), torch.tensor(scale, dtype=scale_dtype), torch.tensor(zero, dtype=zero_dtype), axis, low, high
    )


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: torch.fake_quantize_per_tensor_affine(torch.ones(1), 0.1, 0, 5, 3), RuntimeError, "`quant_min` should be"),
        (lambda: torch.fake_quantize_per_tensor_affine(torch.ones(1), 0.1, 9, 0, 3), RuntimeError, "`zero_point` must be"),
        (lambda: torch.fake_quantize_per_tensor_affine(torch.ones(1).int(), 0.1, 0, 0, 3), NotImplementedError, "for 'Int'"),
        (lambda: _channels(axis=1), RuntimeError, "not consistent with input tensor"),
        (lambda: _channels(axis=5), IndexError, "Dimension out of range"),
        (lambda: _channels(scale_dtype=torch.float64), RuntimeError, "Scale must be Float or BFloat16, found Double"),
        (lambda: _channels(zero_dtype=torch.int64), RuntimeError, "Zero-point must be Int32, Float or Half, found Long"),
        (lambda: _channels(scale=[[0.1, 0.5]]), RuntimeError, "scale should be a 1-D tensor"),
        (lambda: _channels(zero=[0]), RuntimeError, "scale and zero-point need to have the same dimensions"),
        (lambda: Q.MinMaxObserver(qscheme=torch.per_channel_affine), NotImplementedError, "only support"),
        (lambda: Q.PerChannelMinMaxObserver(qscheme=torch.per_tensor_affine), NotImplementedError, "only support"),
        (lambda: Q.MinMaxObserver(dtype=torch.float32), AssertionError, "none of the dtypes"),
        (lambda: Q.MinMaxObserver(quant_min=1, quant_max=4), AssertionError, "must include 0"),
        (lambda: Q.MinMaxObserver(quant_min=0, quant_max=0), AssertionError, "strictly less"),
        (lambda: Q.MovingAverageMinMaxObserver(is_dynamic=True), NotImplementedError, "dynamic quantization"),
        (lambda: Q.FakeQuantize(Q.MinMaxObserver, 0, 300), AssertionError, "quant_max out of bound"),
        (lambda: Q.HistogramObserver(), NotImplementedError, "MovingAverageMinMaxObserver"),
        (lambda: Q.get_default_qconfig("nope"), AssertionError, "backend: nope not supported"),
        (lambda: Q.get_default_qconfig(version=3), AssertionError, "Version number: 3"),
        (lambda: Q.QConfig(Q.MinMaxObserver(), None), ValueError, "observer class instead"),
        (lambda: qat.Linear(2, 2), AssertionError, "qconfig must be provided"),
        (lambda: qat.Linear.from_float(nn.Linear(2, 2)), AssertionError, "must have qconfig defined"),
        (lambda: qat.Linear.from_float(nn.ReLU()), AssertionError, "only works for Linear, got ReLU"),
        (
            lambda: torch.cuda.jiterator._create_jit_fn("template <typename T> T f(T x) { return x; }")(torch.ones(1)),
            NotImplementedError,
            "need a GPU",
        ),
        (lambda: torch.cuda.jiterator._create_multi_output_jit_fn("nonsense", 2), ValueError, "Couldn't parse code"),
    ],
)
def test_bad_input(call, error, message):
    with pytest.raises(error) as caught:
        call()
    assert message in str(caught.value)


def test_a_layer_trains_with_rounded_weights():
    torch.manual_seed(0)
    plain = nn.Linear(4, 3)
    plain.qconfig = Q.QConfig(activation=Q.default_fake_quant, weight=Q.default_per_channel_weight_fake_quant)
    layer = qat.Linear.from_float(plain)
    assert layer.weight is plain.weight
    x = torch.randn(2, 4)
    rounded = layer.weight_fake_quant(layer.weight)
    assert not torch.equal(rounded, layer.weight)
    torch.testing.assert_close(layer(x), nn.functional.linear(x, rounded, layer.bias))
    layer(x).sum().backward()
    assert layer.weight.grad is not None
    assert type(layer.to_float()) is nn.Linear
    torch.testing.assert_close(layer.to_float()(x), plain(x))


class _Double(nn.Module):
    def forward(self, x):
        return 2.0 * x


def test_parametrizations_go_to_another_layer_also_where_it_lacks_the_parameter():
    source = nn.Linear(5, 5)
    source.register_parameter("more", nn.Parameter(torch.ones(2)))
    for name in ("weight", "more"):
        nn.utils.parametrize.register_parametrization(source, name, _Double())
    target = qat.Linear(5, 5, qconfig=Q.get_default_qconfig())
    assert nn.utils.parametrize.transfer_parametrizations_and_params(source, target) is target
    assert target.more.tolist() == [2.0, 2.0]
    assert torch.equal(target.weight, source.weight)
    assert target.parametrizations.weight.original is source.parametrizations.weight.original


def test_the_limits_of_quantized_dtypes():
    assert (torch.iinfo(torch.quint8).min, torch.iinfo(torch.quint8).max) == (0, 255)
    assert (torch.iinfo(torch.qint8).min, torch.iinfo(torch.qint8).max) == (-128, 127)
    assert repr(torch.per_tensor_affine) == "torch.per_tensor_affine"
