"""Layers with what torch 2.13 makes of them: parameters after seeding, outputs, gradients and buffers."""

from __future__ import annotations

import math
import warnings

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import nn

# (layer, shapes of its inputs, torch's [parameters, outputs, gradients of inputs, gradients of parameters, buffers]).
# Each is one number: the sum of all elements, weighed by cosines so that no two places count the same; zeros at the
# end are left out.
LAYERS = [
    ("nn.Linear(4, 3)", "2,4", [0.155583, -0.407164, -0.308513, 1.47392]),
    ("nn.Linear(4, 3, bias=False)", "2,5,4", [-0.13759, -0.357514, -0.157211, 1.056]),
    ("nn.Linear(4, 3)", "4", [0.155583, -0.798761, -0.498244, 2.66595]),
    ("nn.Bilinear(4, 3, 2)", "2,4 2,3", [0.219386, -0.30449, -0.739969, 1.22839]),
    ("nn.Conv1d(2, 4, 3)", "2,2,6", [0.293449, -2.41408, -1.4159, 6.36675]),
    ("nn.Conv1d(2, 4, 3, padding='same', dilation=2)", "2,2,6", [0.293449, 1.28383, 1.03364, -5.59224]),
    ("nn.Conv2d(2, 4, 3, stride=2, padding=1)", "2,2,6,6", [-0.0911464, -1.21005, -0.201812, -3.58117]),
    ("nn.Conv2d(2, 4, (3, 2), groups=2, bias=False)", "2,2,6,6", [0.213802, 2.45944, 5.88702, 21.4846]),
    ("nn.Conv2d(2, 4, 3, padding=(1, 2), padding_mode='replicate')", "1,2,5,5", [-0.0911464, 6.45514, -2.53839, 5.75281]),
    ("nn.Conv2d(2, 4, 3, padding='same', padding_mode='circular')", "1,2,5,5", [-0.0911464, 0.324766, 10.0852, 1.49914]),
    ("nn.Conv3d(2, 2, 2)", "1,2,3,3,3", [0.27026, -0.392055, 1.65742, -2.67181]),
    ("nn.ConvTranspose1d(2, 3, 3, stride=2, output_padding=1)", "1,2,4", [-0.320473, 0.463143, -0.105232, -2.18826]),
    ("nn.ConvTranspose2d(2, 4, 3, stride=2, groups=2)", "1,2,3,3", [0.567895, 0.694544, -0.780462, -1.80108]),
    ("nn.ConvTranspose2d(2, 4, 3, dilation=2, padding=1)", "1,2,4,4", [-0.0644502, -0.539301, -0.231815, 2.51034]),
    ("nn.ConvTranspose3d(2, 2, 2)", "1,2,2,2,2", [0.27026, 0.647169, 1.65742, 20.0371]),
    ("nn.BatchNorm1d(4)", "3,4", [0.134163, 6.00672, 6.03136, 1.71978, -1.88816]),
    ("nn.BatchNorm1d(4, affine=False)", "3,4,2", [0.0, 1.80635, 15.2633, 0.0, -1.87333]),
    ("nn.BatchNorm2d(2, momentum=None)", "2,2,3,3", [1.5403, 1.97955, 18.2484, 7.6879, -0.279145]),
    ("nn.BatchNorm2d(2).eval()", "2,2,3,3", [1.5403, 1.47482, 18.5325, 6.55101, 0.124155]),
    ("nn.BatchNorm3d(2, bias=False)", "2,2,2,2,2", [1.5403, 5.09073, 21.4235, 4.86688, -0.29149]),
    ("nn.SyncBatchNorm(4)", "3,4", [0.134163, 6.00672, 6.03136, 1.71978, -1.88816]),
    ("nn.LayerNorm(4)", "2,3,4", [0.134163, 1.68289, 6.55406, 0.477022]),
    ("nn.LayerNorm((3, 4), bias=False)", "2,3,4", [-0.413022, 1.92241, 14.258, -0.226161]),
    ("nn.LayerNorm(4, elementwise_affine=False)", "2,4", [0.0, 4.4468, 2.25527]),
    ("nn.GroupNorm(2, 4)", "2,4,3", [0.134163, 1.79488, 10.7561, 0.45836]),
    ("nn.GroupNorm(2, 4, affine=False)", "2,4,3,3", [0.0, 5.07568, 50.0531]),
    ("nn.InstanceNorm1d(4)", "2,4,5", [0.0, 0.753518, 13.0378]),
    ("nn.InstanceNorm2d(2, affine=True, track_running_stats=True)", "2,2,3,3", [1.5403, 1.85977, 17.388, 7.62071, 0.125963]),
    ("nn.InstanceNorm2d(2)", "2,3,3", [0.0, 0.941549, 6.8488]),
    ("nn.InstanceNorm3d(2)", "1,2,2,2,2", [0.0, 1.85197, 6.20072]),
    ("nn.RMSNorm(4)", "2,4", [0.134163, 4.74562, 2.40714, 0.00928182]),
    ("nn.RMSNorm((3, 4), eps=0.1)", "2,3,4", [-0.413022, 1.67385, 13.4785, -0.0390738]),
    ("nn.LocalResponseNorm(3)", "1,4,3,3", [0.0, 1.47481, 18.5319]),
    ("nn.LocalResponseNorm(2)", "1,4,3", [0.0, 3.13158, 5.99805]),
    ("nn.RNN(4, 3, 2)", "5,2,4", [-0.791818, -0.439594, 1.34958, 0.271675]),
    (
        "nn.RNN(4, 3, nonlinearity='relu', bidirectional=True, batch_first=True)",
        "2,5,4",
        [0.213614, -5.1153, -3.70154, 4.92604],
    ),
    ("nn.LSTM(4, 3, 2, bidirectional=True)", "5,2,4", [10.0113, 2.76827, -0.436202, 15.0168]),
    ("nn.LSTM(4, 3, proj_size=2)", "5,2,4", [0.424189, 0.0252119, -0.16251, 0.488486]),
    ("nn.LSTM(4, 3, bias=False)", "5,4", [1.66799, -0.646252, 1.02445, -3.0445]),
    ("nn.GRU(4, 3, 2, batch_first=True)", "2,5,4", [2.79534, -0.255758, 0.49641, 0.011365]),
    ("nn.GRU(4, 3, bidirectional=True)", "5,4", [5.33306, 1.55581, -0.545751, -13.8386]),
    ("nn.RNNCell(4, 3)", "2,4", [1.2097, -0.383917, -0.35236, 0.721196]),
    ("nn.RNNCell(4, 3, nonlinearity='relu')", "4", [1.2097]),
    ("nn.LSTMCell(4, 3)", "2,4", [1.31447, -0.00590611, -0.25903, 0.188848]),
    ("nn.LSTMCell(4, 3, bias=False)", "4", [1.66799, 0.0994212, -0.133665, -0.155864]),
    ("nn.GRUCell(4, 3)", "2,4", [2.01735, -0.413565, -0.599072, 0.0718128]),
    ("nn.MultiheadAttention(4, 2)", "3,2,4 3,2,4 3,2,4", [0.182262, -0.314919, 0.153466, -1.48212]),
    (
        "nn.MultiheadAttention(4, 2, batch_first=True, bias=False)",
        "2,3,4 2,5,4 2,5,4",
        [-0.217984, -0.286233, -0.0128531, 0.00682464],
    ),
    (
        "nn.MultiheadAttention(4, 2, add_bias_kv=True, add_zero_attn=True)",
        "3,2,4 5,2,4 5,2,4",
        [-0.638669, -0.184051, 0.0146736, -0.355281],
    ),
    ("nn.MultiheadAttention(4, 2, kdim=3, vdim=5)", "3,2,4 4,2,3 4,2,5", [0.0303356, 0.277508, -0.213667, -0.275917]),
    ("nn.MultiheadAttention(4, 2)", "3,4 3,4 3,4", [0.182262, -0.251063, 0.0586596, -0.707633]),
    ("nn.TransformerEncoderLayer(4, 2, 5, dropout=0.0)", "3,2,4", [-0.00218172, 3.01647, 6.45157, 7.69821]),
    (
        "nn.TransformerEncoderLayer(4, 2, 5, dropout=0.0, norm_first=True, activation='gelu', bias=False, batch_first=True)",
        "2,3,4",
        [2.66572, 1.47365, 12.1715, 1.84419],
    ),
    ("nn.TransformerDecoderLayer(4, 2, 5, dropout=0.0)", "3,2,4 5,2,4", [-2.82043, 0.352568, 7.28239, 2.69387]),
    (
        "nn.TransformerDecoderLayer(4, 2, 5, dropout=0.0, norm_first=True, batch_first=True)",
        "2,3,4 2,5,4",
        [-2.82043, 0.200865, 13.3542, 1.43045],
    ),
    (
        "nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 5, dropout=0.0), 2, nn.LayerNorm(4), "
        "enable_nested_tensor=False)",
        "3,2,4",
        [0.874043, 3.99912, 5.45671, 15.0501],
    ),
    (
        "nn.TransformerDecoder(nn.TransformerDecoderLayer(4, 2, 5, dropout=0.0), 2)",
        "3,2,4 5,2,4",
        [-3.60165, -1.3889, 9.0304, 6.77543],
    ),
    ("nn.Transformer(4, 2, 1, 1, 5, dropout=0.0)", "3,2,4 5,2,4", [-6.6835, 1.06163, 6.4531, 2.76268]),
    ("nn.MaxPool1d(2)", "1,2,6", [0.0, 0.429696, -0.156339]),
    ("nn.MaxPool1d(3, stride=2, padding=1, dilation=1, ceil_mode=True)", "1,2,6", [0.0, 1.52755, 0.0271907]),
    ("nn.MaxPool2d(2)", "1,2,5,5", [0.0, 0.879234, -1.30467]),
    ("nn.MaxPool2d((3, 2), stride=(2, 1), padding=1)", "2,5,5", [0.0, 4.4572, -0.198569]),
    ("nn.MaxPool3d(2)", "1,2,4,4,4", [0.0, 0.454512, -0.962158]),
    ("nn.AvgPool1d(3, stride=1, padding=1, count_include_pad=False)", "1,2,6", [0.0, 1.95722, 4.31022]),
    ("nn.AvgPool2d(3, 2, 1)", "1,2,5,5", [0.0, 0.146435, 0.178299]),
    ("nn.AvgPool3d(2)", "1,2,4,4,4", [0.0, -0.0674701, 0.0416994]),
    ("nn.LPPool1d(2, 3)", "1,2,6", [0.0, -0.0127578, 1.31302]),
    ("nn.LPPool2d(2, 2)", "1,2,4,4", [0.0, 1.82922, 4.67573]),
    ("nn.LPPool3d(2, 2)", "1,1,4,4,4", [0.0, 2.99256, 1.44204]),
    ("nn.AdaptiveAvgPool1d(4)", "1,2,7", [0.0, 0.321989, 0.472187]),
    ("nn.AdaptiveAvgPool2d((2, None))", "1,2,5,4", [0.0, -2.27709, 0.26923]),
    ("nn.AdaptiveAvgPool3d(2)", "1,2,3,4,5", [0.0, 0.0573964, 0.0610969]),
    ("nn.AdaptiveMaxPool1d(3)", "1,2,7", [0.0, 0.437917, -0.83211]),
    ("nn.AdaptiveMaxPool2d(2)", "1,2,5,4", [0.0, 1.09734, 1.00359]),
    ("nn.AdaptiveMaxPool3d(2)", "1,1,3,4,5", [0.0, 1.38367, -0.780878]),
    ("nn.FractionalMaxPool2d(2, output_size=3)", "1,2,6,6", [0.0, 1.04957, -0.623176]),
    ("nn.FractionalMaxPool3d(2, output_size=2)", "1,2,5,5,5", [0.0, 1.22244, 0.298676]),
    ("nn.ReflectionPad1d(2)", "1,2,4", [0.0, 0.347288, 0.485406]),
    ("nn.ReflectionPad2d((1, 2, 0, 1))", "1,2,4,4", [0.0, 13.3938, 1.84778]),
    ("nn.ReflectionPad3d(1)", "1,1,3,3,3", [0.0, -4.56996, -0.133346]),
    ("nn.ReplicationPad1d(2)", "1,2,4", [0.0, -0.49476, 1.14862]),
    ("nn.ReplicationPad2d(1)", "1,2,3,3", [0.0, -7.9864, 0.935968]),
    ("nn.ReplicationPad3d(1)", "1,1,2,2,2", [0.0, 1.02784, 0.174088]),
    ("nn.CircularPad1d((1, 2))", "1,2,4", [0.0, -0.885979, 0.495528]),
    ("nn.CircularPad2d(1)", "1,2,3,3", [0.0, -2.24337, 0.291893]),
    ("nn.CircularPad3d(1)", "1,1,2,2,2", [0.0, -6.5908, -9.74972]),
    ("nn.ConstantPad1d((1, -1), 2.5)", "1,2,4", [0.0, 1.60946, 1.53826]),
    ("nn.ConstantPad3d(1, 2.5)", "1,1,2,2,2", [0.0, -0.680907, -3.61989]),
    ("nn.ZeroPad2d((1, 0, 2, 1))", "1,2,3,3", [0.0, -7.86093, 0.769709]),
    ("nn.Upsample(scale_factor=2)", "1,2,3", [0.0, -2.23296, -0.308488]),
    ("nn.Upsample(scale_factor=1.5)", "1,2,3,4", [0.0, -7.22768, 4.04364]),
    ("nn.Upsample(size=(2, 3, 4))", "1,1,2,2,2", [0.0, 1.62671, 1.2652]),
    ("nn.Upsample(scale_factor=2, mode='linear')", "1,2,3", [0.0, -1.97517, -0.279239]),
    ("nn.Upsample(size=(5, 7), mode='bilinear')", "1,2,3,4", [0.0, 0.565074, 1.18361]),
    ("nn.Upsample(scale_factor=2, mode='bicubic', align_corners=True)", "1,2,3,4", [0.0, -0.697963, 0.40039]),
    ("nn.Upsample(scale_factor=2, mode='trilinear')", "1,1,2,2,2", [0.0, 0.842018, 1.15344]),
    ("nn.Upsample(scale_factor=1.7, mode='bilinear', recompute_scale_factor=True)", "1,2,3,4", [0.0, -12.3553, -1.7047]),
    ("nn.UpsamplingBilinear2d(scale_factor=2)", "1,2,3,4", [0.0, -0.928148, 0.354883]),
    ("nn.PixelShuffle(2)", "1,4,2,2", [0.0, -1.81505, 0.298406]),
    ("nn.PixelUnshuffle(2)", "1,1,4,4", [0.0, -1.46201, 0.298406]),
    ("nn.ChannelShuffle(2)", "1,4,2,2", [0.0, 0.567663, 2.64524]),
    ("nn.Fold((3, 3), 2)", "1,8,4", [0.0, -0.318005, 2.22601]),
    ("nn.Unfold(2, stride=2, padding=1)", "1,2,4,4", [0.0, 0.367272, 0.554092]),
    ("nn.CosineSimilarity()", "3,4 3,4", [0.0, 0.170259, 0.227361]),
    ("nn.PairwiseDistance()", "3,4 3,4", [0.0, 1.95793, 1.30351]),
    ("nn.PairwiseDistance(1, keepdim=True)", "3,4 3,4", [0.0, 2.95371, 3.83072]),
    ("nn.Flatten(0, 1)", "2,3,4", [0.0, 1.30169, 12.2867]),
    ("nn.Unflatten(1, (2, 2))", "3,4", [0.0, 3.13173, 5.99859]),
    ("nn.ReLU()", "2,4", [0.0, 1.93383, 2.4675]),
    ("nn.ReLU6()", "2,4", [0.0, 1.93383, 2.4675]),
    ("nn.Sigmoid()", "2,4", [0.0, 1.49282, 0.984902]),
    ("nn.Tanh()", "2,4", [0.0, 2.60193, 2.96329]),
    ("nn.LogSigmoid()", "2,4", [0.0, 0.509799, 2.12487]),
    ("nn.Softsign()", "2,4", [0.0, 1.7408, 1.92084]),
    ("nn.Tanhshrink()", "2,4", [0.0, 0.594873, 1.47991]),
    ("nn.Threshold(0.2, 3)", "2,4", [0.0, -1.92508, 2.29432]),
    ("nn.RReLU().eval()", "2,4", [0.0, 2.22326, 2.92026]),
    ("nn.Hardtanh(-0.5, 0.5)", "2,4", [0.0, 1.98792, 1.74155]),
    ("nn.ELU(0.7)", "2,4", [0.0, 2.52556, 3.27009]),
    ("nn.CELU(0.7)", "2,4", [0.0, 2.65776, 3.41616]),
    ("nn.SELU()", "2,4", [0.0, 3.51805, 4.60838]),
    ("nn.GELU()", "2,4", [0.0, 1.78062, 2.49053]),
    ("nn.GELU('tanh')", "2,4", [0.0, 1.78054, 2.49046]),
    ("nn.SiLU()", "2,4", [0.0, 1.72151, 2.40609]),
    ("nn.Mish()", "2,4", [0.0, 2.03047, 2.78225]),
    ("nn.Hardswish()", "2,4", [0.0, 1.68709, 2.35721]),
    ("nn.Hardsigmoid()", "2,4", [0.0, 1.27193, 0.740533]),
    ("nn.Hardshrink(0.3)", "2,4", [0.0, 3.31218, 3.70165]),
    ("nn.Softshrink(0.3)", "2,4", [0.0, 1.98385, 3.70165]),
    ("nn.Softplus(2, 1)", "2,4", [0.0, 2.08487, 2.57078]),
    ("nn.LeakyReLU(0.2)", "2,4", [0.0, 2.18643, 2.86264]),
    ("nn.PReLU()", "2,4", [0.25, 2.24957, 2.96142, 1.26296]),
    ("nn.PReLU(4)", "2,4", [0.0335407, 2.24957, 2.96142, -0.429208]),
    ("nn.GLU()", "2,4", [0.0, 0.274898, 0.473727]),
    ("nn.Softmax(1)", "2,4", [0.0, 0.930953, 0.604525]),
    ("nn.Softmax()", "2,4", [0.0, 0.930953, 0.604525]),
    ("nn.Softmin(0)", "2,4", [0.0, -0.283622, -1.59377]),
    ("nn.LogSoftmax(-1)", "2,4", [0.0, 0.598948, 3.62684]),
    ("nn.Softmax2d()", "2,4,2,2", [0.0, 1.3736, 3.24334]),
    ("nn.Dropout(0.5)", "4,8", [0.0, 4.47925, 24.3927]),
    ("nn.Dropout1d(0.5)", "4,8,2", [0.0, 8.04525, 36.9141]),
    ("nn.Dropout1d(0.5)", "8,2", [0.0, 1.55399, 12.1337]),
    ("nn.Dropout2d(0.5)", "4,8,2,2", [0.0, 2.8334, 73.4149]),
    ("nn.Dropout3d(0.5)", "2,4,2,2,2", [0.0, 2.38997, 40.4579]),
    ("nn.Dropout3d(0.5)", "4,2,2,2", [0.0, 7.1186, 24.2859]),
    ("nn.AlphaDropout(0.5)", "4,8", [0.0, 7.36622, 10.8109]),
    ("nn.FeatureAlphaDropout(0.5)", "4,8,2", [0.0, 15.9692, 16.3604]),
    ("nn.RReLU()", "4,8", [0.0, 1.84887, 9.99431]),
    ("nn.Identity()", "2,4", [0.0, 3.1968, 4.4432]),
    ("nn.L1Loss()", "2,4 2,4", [0.0, 0.722298, 0.352572]),
    ("nn.MSELoss(reduction='sum')", "2,4 2,4", [0.0, 6.69858, 3.88946]),
    ("nn.SmoothL1Loss(beta=0.0)", "2,4 2,4", [0.0, 0.722298, 0.352572]),
    ("nn.HuberLoss(delta=0.3)", "2,4 2,4", [0.0, 0.180996, 0.112029]),
    ("nn.KLDivLoss(reduction='batchmean', log_target=True)", "2,4 2,4", [0.0, 1.21507, -1.84989]),
    ("nn.MultiLabelSoftMarginLoss()", "2,4 2,4", [0.0, 0.785927, -0.0497826]),
    ("nn.TripletMarginLoss(swap=True)", "3,4 3,4 3,4", [0.0, 1.17915, -0.427642]),
    ("nn.TripletMarginWithDistanceLoss(swap=True)", "3,4 3,4 3,4", [0.0, 1.17915, -0.427642]),
    (
        "nn.BCEWithLogitsLoss(pos_weight=torch.ones(4)*2, weight=torch.ones(4)*3)",
        "2,4 2,4",
        [0.0, 2.41437, -0.234026, 0.0, -2.63647],
    ),
    (
        "nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4), nn.ReLU(inplace=True), nn.Dropout(0.3), nn.Linear(4, 2))",
        "3,4",
        [-3.36605, 1.52079, 0.675906, 1.00071],
    ),
]


def probe(*shape: int, step: float = 1.3, shift: float = 0.4):
    """Values of both signs."""
    return torch.sin(torch.arange(float(math.prod(shape))) * step + shift).view(*shape)


def tensors_in(value) -> list:
    """All tensors of a nested result."""
    if isinstance(value, torch.Tensor):
        return [value]
    return [found for part in value if part is not None for found in tensors_in(part)]


def weighed(tensors) -> float:
    total = 0.0
    for number, tensor in enumerate(tensors):
        if tensor is not None:
            places = torch.arange(float(tensor.numel()), dtype=torch.float64).view(tensor.shape) + number
            total += (tensor.detach().double() * torch.cos(places)).sum().item()
    return total


@pytest.mark.parametrize(("text", "shapes", "expected"), LAYERS, ids=[text for text, _, _ in LAYERS])
def test_layer(text: str, shapes: str, expected: list[float]) -> None:
    torch.manual_seed(3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = eval(text, {"torch": torch, "nn": nn})
        parameters = weighed(module.parameters())
        inputs = [probe(*map(int, shape.split(",")), step=1.3 + i).requires_grad_() for i, shape in enumerate(shapes.split())]
        outputs = [out for out in tensors_in(module(*inputs)) if out.is_floating_point()]
    loss = sum((out * torch.cos(torch.arange(float(out.numel())).view(out.shape))).sum() for out in outputs)
    loss.backward()
    seen = [
        parameters,
        weighed(outputs),
        weighed(x.grad for x in inputs),
        weighed(p.grad for p in module.parameters()),
        weighed(module.buffers()),
    ]
    assert seen == pytest.approx(expected + [0.0] * (5 - len(expected)), rel=2e-4, abs=2e-4)


def test_cross_map_lrn_is_local_response_norm_for_odd_sizes() -> None:
    # In torch the energy of the first channels is never taken off again; the sizes here are the documented ones.
    x = probe(1, 5, 2, 2)
    assert torch.allclose(nn.CrossMapLRN2d(3, k=2)(x), nn.LocalResponseNorm(3, k=2.0)(x), atol=1e-6)
    with pytest.raises(ValueError, match="Expected input to be 4D, got 3D"):
        nn.CrossMapLRN2d(3)(x[0])


# ---------------------------------------------------------------- what the table does not show


def test_batch_norm_follows_the_batches() -> None:
    layer = nn.BatchNorm1d(2)
    x = torch.tensor([[0.0, 2.0], [4.0, 6.0]])
    layer(x)
    layer(x)
    assert layer.running_mean.tolist() == pytest.approx([0.38, 0.76])
    assert layer.running_var.tolist() == pytest.approx([2.33, 2.33])
    assert layer.num_batches_tracked.item() == 2
    layer.eval()(x)
    assert layer.num_batches_tracked.item() == 2
    averaging = nn.BatchNorm1d(2, momentum=None)
    averaging(x)
    averaging(x * 3)
    assert averaging.running_mean.tolist() == pytest.approx([4.0, 8.0])
    layer.reset_running_stats()
    assert layer.running_mean.tolist() == [0.0, 0.0]


def test_sync_batch_norm_takes_over() -> None:
    model = nn.Sequential(nn.BatchNorm2d(2), nn.Sequential(nn.BatchNorm1d(3, affine=False)))
    made = nn.SyncBatchNorm.convert_sync_batchnorm(model)
    assert isinstance(made[0], nn.SyncBatchNorm) and isinstance(made[1][0], nn.SyncBatchNorm)
    assert list(made.state_dict()) == list(model.state_dict())


def test_dropout_only_while_training() -> None:
    x = torch.ones(64, 64)
    torch.manual_seed(0)
    for layer in (nn.Dropout(0.25), nn.AlphaDropout(0.25)):
        assert not torch.equal(layer(x), x)
        assert torch.equal(layer.eval()(x), x)
    kept = (nn.Dropout(0.25)(x) != 0).float().mean().item()
    assert kept == pytest.approx(0.75, abs=0.05)
    whole = nn.Dropout2d(0.5)(torch.ones(8, 8, 3, 3)).flatten(2)
    assert ((whole == 0).all(-1) | (whole == 2).all(-1)).all().item()


def test_embedding_padding_row_stays() -> None:
    layer = nn.Embedding(4, 2, padding_idx=-1)
    assert layer.padding_idx == 3 and layer.weight[3].tolist() == [0.0, 0.0]
    layer(torch.tensor([0, 3, 3])).sum().backward()
    assert layer.weight.grad.tolist() == [[1.0, 1.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]]
    frozen = nn.Embedding.from_pretrained(torch.ones(3, 2))
    assert not frozen.weight.requires_grad and frozen.num_embeddings == 3
    with torch.no_grad():
        capped = nn.Embedding(2, 2, max_norm=1.0, _weight=torch.tensor([[3.0, 4.0], [0.3, 0.4]]))
        assert capped(torch.tensor([0, 1])).flatten().tolist() == pytest.approx([0.6, 0.8, 0.3, 0.4], rel=1e-5)


@pytest.mark.parametrize(("mode", "expected"), [("sum", [4.0, 6.0]), ("mean", [2.0, 3.0]), ("max", [3.0, 4.0])])
def test_embedding_bag(mode: str, expected: list[float]) -> None:
    table = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    layer = nn.EmbeddingBag.from_pretrained(table, mode=mode)
    assert layer(torch.tensor([[0, 1]])).tolist() == [expected]
    assert layer(torch.tensor([2, 0, 1]), torch.tensor([0, 1])).tolist() == [[5.0, 6.0], expected]


def test_unpooling_puts_values_back() -> None:
    x = torch.arange(16.0).view(1, 1, 4, 4)
    values, places = nn.MaxPool2d(2, return_indices=True)(x)
    back = nn.MaxUnpool2d(2)(values, places)
    assert torch.equal(back, torch.where((x == 5) | (x == 7) | (x == 13) | (x == 15), x, 0.0))
    assert list(nn.MaxUnpool2d(2)(values, places, output_size=(5, 5)).shape) == [1, 1, 5, 5]
    with pytest.raises(ValueError, match=r"dim 0 must be between 2 and 6"):
        nn.MaxUnpool2d(2)(values, places, output_size=(7, 7))


def test_transposed_convolution_reaches_the_size_asked_for() -> None:
    layer, x = nn.ConvTranspose2d(1, 1, 3, stride=2), torch.zeros(1, 1, 3, 3)
    assert [list(layer(x, output_size=(n, n)).shape)[2:] for n in (7, 8)] == [[7, 7], [8, 8]]
    with pytest.raises(ValueError, match=r"requested an output size of \(9, 9\), but valid sizes range from \[7, 7\]"):
        layer(x, output_size=(9, 9))


def test_adaptive_log_softmax_agrees_with_itself() -> None:
    torch.manual_seed(0)
    layer = nn.AdaptiveLogSoftmaxWithLoss(8, 12, [3, 7], div_value=2.0)
    x, target = probe(6, 8), torch.tensor([0, 2, 4, 6, 9, 11])
    output, loss = layer(x, target)
    every = layer.log_prob(x)
    assert torch.allclose(output, every.gather(1, target.unsqueeze(1)).squeeze(1), atol=1e-5)
    assert loss.item() == pytest.approx(-output.mean().item(), rel=1e-5)
    assert torch.allclose(every.exp().sum(1), torch.ones(6), atol=1e-4)
    assert layer.predict(x).tolist() == every.argmax(1).tolist()


def test_packed_sequences_run_as_if_alone() -> None:
    torch.manual_seed(0)
    rnn = nn.GRU(3, 2, bidirectional=True)
    sequences = [probe(length, 3, step=0.7 + length) for length in (4, 1, 3)]
    packed = nn.utils.rnn.pack_sequence(sequences, enforce_sorted=False)
    output, hidden = rnn(packed)
    padded, lengths = nn.utils.rnn.pad_packed_sequence(output)
    assert lengths.tolist() == [4, 1, 3]
    for i, sequence in enumerate(sequences):
        alone, last = rnn(sequence)
        assert torch.allclose(padded[: len(sequence), i], alone, atol=1e-6)
        assert torch.allclose(hidden[:, i], last, atol=1e-6)


def test_attention_masks() -> None:
    torch.manual_seed(0)
    layer = nn.MultiheadAttention(4, 2, batch_first=True)
    x = probe(2, 3, 4)
    ahead = torch.triu(torch.ones(3, 3, dtype=torch.bool), 1)
    padding = torch.tensor([[False, False, True], [False, False, False]])
    with_weights, weights = layer(x, x, x, attn_mask=ahead, key_padding_mask=padding)
    without, none = layer(x, x, x, attn_mask=ahead, key_padding_mask=padding, need_weights=False)
    assert none is None and torch.allclose(with_weights, without, atol=1e-5)
    assert (weights[:, 0, 1:] == 0).all() and (weights[0, :, 2] == 0).all()
    assert list(layer(x, x, x, average_attn_weights=False)[1].shape) == [2, 2, 3, 3]
    causal = nn.Transformer.generate_square_subsequent_mask(3)
    assert torch.allclose(
        layer(x, x, x, attn_mask=causal, is_causal=True, need_weights=False)[0], layer(x, x, x, attn_mask=ahead)[0], atol=1e-5
    )


# ---------------------------------------------------------------- refusals

REFUSALS = [
    (lambda: nn.Conv2d(3, 4, 1, groups=2), "ValueError: in_channels must be divisible by groups"),
    (lambda: nn.Conv2d(2, 3, 1, padding="odd"), "ValueError: Invalid padding string 'odd', should be one of {'same', 'valid'}"),
    (
        lambda: nn.Conv2d(2, 2, 1, stride=2, padding="same"),
        "ValueError: padding='same' is not supported for strided convolutions",
    ),
    (
        lambda: nn.ConvTranspose1d(1, 1, 1, padding_mode="reflect"),
        'ValueError: Only "zeros" padding mode is supported for ConvTranspose1d',
    ),
    (
        lambda: nn.BatchNorm1d(2)(torch.zeros(1, 2)),
        "ValueError: Expected more than 1 value per channel when training, got input size torch.Size([1, 2])",
    ),
    (lambda: nn.BatchNorm2d(2)(torch.zeros(3, 2)), "ValueError: expected 4D input (got 2D input)"),
    (lambda: nn.GroupNorm(3, 4), "ValueError: num_channels (4) must be divisible by num_groups (3)"),
    (
        lambda: nn.InstanceNorm1d(3, affine=True)(torch.zeros(1, 2, 4)),
        "ValueError: expected input's size at dim=1 to match num_features (3), but got: 2.",
    ),
    (lambda: nn.Dropout(1.5), "ValueError: dropout probability has to be between 0 and 1, but got 1.5"),
    (
        lambda: nn.Dropout1d()(torch.zeros(2)),
        "RuntimeError: dropout1d: Expected 2D or 3D input, but received a 1D input. Note that dropout1d exists to provide "
        "channel-wise dropout on inputs with 1 spatial dimension, a channel dimension, and an optional batch dimension "
        "(i.e. 2D or 3D inputs).",
    ),
    (lambda: nn.Embedding(3, 2, padding_idx=3), "AssertionError: Padding_idx must be within num_embeddings"),
    (
        lambda: nn.LSTM(3, 2)(torch.zeros(4, 1, 5)),
        "RuntimeError: input.size(-1) must be equal to input_size. Expected 3, got 5",
    ),
    (
        lambda: nn.GRU(3, 2)(torch.zeros(4, 1, 3), torch.zeros(1, 2, 2)),
        "RuntimeError: Expected hidden size (1, 1, 2), got [1, 2, 2]",
    ),
    (lambda: nn.LSTM(3, 2)(torch.zeros(3)), "ValueError: LSTM: Expected input to be 2D or 3D, got 1D instead"),
    (lambda: nn.RNN(1, 1, nonlinearity="sin"), "ValueError: Unknown nonlinearity 'sin'. Select from 'tanh' or 'relu'."),
    (lambda: nn.GRU(1, 2, proj_size=1), "ValueError: proj_size argument is only supported for LSTM, not RNN or GRU"),
    (lambda: nn.LSTM(1, 0), "ValueError: hidden_size must be greater than zero"),
    (lambda: nn.MultiheadAttention(5, 2), "AssertionError: embed_dim must be divisible by num_heads"),
    (
        lambda: nn.Transformer(4, 2, 1, 1, 5)(torch.zeros(3, 2, 4), torch.zeros(3, 1, 4)),
        "RuntimeError: the batch number of src and tgt must be equal",
    ),
    (lambda: nn.TransformerEncoderLayer(4, 2, activation="sin"), "RuntimeError: activation should be relu/gelu, not sin"),
    (lambda: nn.Hardtanh(1, -1), "AssertionError: max_val (-1) must be greater than min_val (1)"),
    (lambda: nn.Softmax2d()(torch.zeros(2)), "ValueError: Softmax2d: expected input to be 3D or 4D, got 1D instead"),
    (lambda: nn.CircularPad2d(1)(torch.zeros(2)), "ValueError: expected 3D or 4D input (got 1D input)"),
    (
        lambda: nn.FractionalMaxPool2d(2),
        "ValueError: FractionalMaxPool2d requires specifying either an output size, or a pooling ratio",
    ),
    (
        lambda: nn.Unflatten(1, (2, "x")),
        "TypeError: unflattened_size must be tuple of ints, but found element of type str at pos 1",
    ),
    (lambda: nn.MultiMarginLoss(p=3), "ValueError: only p == 1 and p == 2 supported"),
    (
        lambda: nn.TripletMarginLoss(margin=0),
        "ValueError: TripletMarginLoss: expected margin to be greater than 0, got 0 instead",
    ),
]


@pytest.mark.parametrize(("call", "expected"), REFUSALS, ids=[expected[:60] for _, expected in REFUSALS])
def test_refusal(call, expected: str) -> None:
    with pytest.raises(Exception) as caught:
        call()
    assert f"{type(caught.value).__name__}: {caught.value}" == expected


def test_linear_refuses_a_single_number():
    with pytest.raises(RuntimeError, match="^both arguments to linear need to be at least 1D, but they are 0D and 2D$"):
        nn.Linear(1, 1)(torch.ones(()))
