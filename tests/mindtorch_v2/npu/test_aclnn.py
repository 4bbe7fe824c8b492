"""Every operator of the table against NumPy or the CPU ops: the order of arguments, strides, results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2._backends.npu import launch
from mindtorch_v2._backends.npu.operators import OPERATORS

F = torch.nn.functional
rng = np.random.default_rng(7)


class Out(NamedTuple):
    """A result: its shape and dtype."""

    shape: tuple[int, ...]
    dtype: Any = "f4"


class Changed(NamedTuple):
    """An operand that is written into."""

    array: np.ndarray


def uniform(*shape: int) -> np.ndarray:
    return rng.uniform(0.1, 0.9, shape).astype("f4")


def grads(function: Callable[..., Any], *inputs: np.ndarray, seed: np.ndarray) -> list[np.ndarray]:
    """Gradients on the CPU."""
    tensors = [torch.tensor(x, requires_grad=True) for x in inputs]
    function(*tensors).backward(torch.tensor(seed))
    return [t.grad.numpy() for t in tensors]


def cpu(function: Callable[..., Any], *inputs: np.ndarray) -> np.ndarray:
    return function(*[torch.tensor(x) for x in inputs]).numpy()


A, B, C, G = uniform(3, 4), uniform(3, 4), uniform(3, 4), uniform(3, 4)
ROW = uniform(4)
SHAPE = (3, 4)
IMAGE, FILTER, BIAS = uniform(2, 4, 7, 6), uniform(6, 2, 3, 2), uniform(6)
CONVOLVED = cpu(lambda x, w, b: F.conv2d(x, w, b, stride=(2, 1), padding=(1, 0), groups=2), IMAGE, FILTER, BIAS)
SEED = uniform(*CONVOLVED.shape)
POOLED = cpu(lambda x: F.max_pool2d(x, (3, 2), (2, 1), (1, 0)), IMAGE)
POOLED_AT = cpu(lambda x: F.max_pool2d(x, (3, 2), (2, 1), (1, 0), return_indices=True)[1], IMAGE).astype("i4")
LOGITS, CLASSES, WEIGHTS = np.log(uniform(5, 3)), np.array([0, 2, 1, 2, -100]), uniform(3)
TOTAL = WEIGHTS[CLASSES[:4]].sum(dtype="f4")
TABLE, IDS = uniform(6, 4), np.array([[1, 5], [0, 1]])
STATE = (uniform(4), uniform(4))
MEAN, INVSTD = IMAGE.mean((0, 2, 3)), 1 / np.sqrt(IMAGE.var((0, 2, 3)) + 1e-5)


def layer_norm(x: Any, w: Any, b: Any) -> Any:
    return F.layer_norm(x, (4,), w, b)


def batch_norm(x: Any, w: Any, b: Any) -> Any:
    return F.batch_norm(x, None, None, w, b, training=True)


def conv(x: Any, w: Any, b: Any) -> Any:
    return F.conv2d(x, w, b, stride=(2, 1), padding=(1, 0), groups=2)


CONV = ([2, 1], [1, 0], [1, 1])
POOL = ([3, 2], [2, 1], [1, 0], [1, 1], False)

UNARY = {
    "Neg": np.negative,
    "Abs": np.abs,
    "Exp": np.exp,
    "Log": np.log,
    "Sqrt": np.sqrt,
    "Rsqrt": lambda x: 1 / np.sqrt(x),
    "Reciprocal": np.reciprocal,
    "Tanh": np.tanh,
    "Sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "Relu": lambda x: x,
}
COMPARE = {"Eq": np.equal, "Ne": np.not_equal, "Lt": np.less, "Le": np.less_equal, "Gt": np.greater, "Ge": np.greater_equal}

# name: list of (arguments, expected results in order)
CASES: dict[str, list[tuple[tuple[Any, ...], tuple[Any, ...]]]] = {
    "Add": [((A, ROW, 2, Out(SHAPE)), (A + 2 * ROW,)), ((IDS, IDS.T, 3, Out((2, 2), "i8")), (IDS + 3 * IDS.T,))],
    "Adds": [((A, 2.5, 2, Out(SHAPE)), (A + 5,))],
    "Sub": [((A, B, 2, Out(SHAPE)), (A - 2 * B,))],
    "Subs": [((A, 2.5, 1, Out(SHAPE)), (A - 2.5,))],
    "Mul": [((A, B, Out(SHAPE)), (A * B,)), ((A.T, ROW[:, None], Out((4, 3))), (A.T * ROW[:, None],))],
    "Muls": [((A, 2, Out(SHAPE)), (A * 2,))],
    "Div": [((A, B, Out(SHAPE)), (A / B,)), ((IDS, IDS + 1, Out((2, 2))), (IDS / (IDS + 1),))],
    "Divs": [((A, 4, Out(SHAPE)), (A / 4,))],
    "Maximum": [((A, B, Out(SHAPE)), (np.maximum(A, B),))],
    "Minimum": [((A, B, Out(SHAPE)), (np.minimum(A, B),))],
    "PowTensorScalar": [((A, 3, Out(SHAPE)), (A**3,)), ((A, 0.5, Out(SHAPE)), (np.sqrt(A),))],
    "Clamp": [
        ((A, 0.3, 0.6, Out(SHAPE)), (A.clip(0.3, 0.6),)),
        ((A, None, 0.6, Out(SHAPE)), (A.clip(None, 0.6),)),
        ((A, 0.3, None, Out(SHAPE)), (A.clip(0.3),)),
    ],
    "Addcmul": [((A, B, C, 2, Out(SHAPE)), (A + 2 * B * C,))],
    "Addcdiv": [((A, B, C, 2, Out(SHAPE)), (A + 2 * B / C,))],
    "Lerps": [((A, B, 0.25, Out(SHAPE)), (A + 0.25 * (B - A),))],
    "SWhere": [((A > B, A, ROW, Out(SHAPE)), (np.where(A > B, A, ROW),))],
    "LogicalNot": [((A > B, Out(SHAPE, "?")), (A <= B,))],
    "LogicalAnd": [((A > B, A > C, Out(SHAPE, "?")), ((A > B) & (A > C),))],
    "IsFinite": [((np.array([1, np.inf, np.nan], "f4"), Out((3,), "?")), (np.array([True, False, False]),))],
    "Cast": [
        ((A * 9, np.dtype("i4"), Out(SHAPE, "i4")), ((A * 9).astype("i4"),)),
        ((IDS, np.dtype("f2"), Out((2, 2), "f2")), (IDS.astype("f2"),)),
    ],
    "InplaceAdd": [((Changed(A), ROW, 2), (A + 2 * ROW,))],
    "InplaceAdds": [((Changed(A), 2, 2), (A + 4,))],
    "InplaceSub": [((Changed(A), B, 2), (A - 2 * B,))],
    "InplaceSubs": [((Changed(A), 2, 2), (A - 4,))],
    "InplaceMul": [((Changed(A), B), (A * B,))],
    "InplaceMuls": [((Changed(A), 3), (A * 3,))],
    "InplaceDiv": [((Changed(A), B), (A / B,))],
    "InplaceDivs": [((Changed(A), 3), (A / 3,))],
    "InplaceAddcmul": [((Changed(A), B, C, 2), (A + 2 * B * C,))],
    "InplaceAddcdiv": [((Changed(A), B, C, -2), (A - 2 * B / C,))],
    "InplaceLerps": [((Changed(A), B, 0.75), (A + 0.75 * (B - A),))],
    "InplaceRelu": [((Changed(A - 0.5),), (np.maximum(A - 0.5, 0),))],
    "InplaceExp": [((Changed(A),), (np.exp(A),))],
    "InplaceCopy": [
        ((Changed(A), B[::-1]), (B[::-1],)),
        ((Changed(A), ROW), (np.broadcast_to(ROW, SHAPE),)),
        ((Changed(IDS), A[:2, :2] * 9), ((A[:2, :2] * 9).astype("i8"),)),
    ],
    "InplaceFillScalar": [((Changed(A), 2.5), (np.full(SHAPE, 2.5),)), ((Changed(IDS), 7), (np.full((2, 2), 7),))],
    "InplaceZero": [((Changed(A),), (np.zeros(SHAPE),))],
    "InplaceMaskedFillScalar": [((Changed(A), A > B, -1.0), (np.where(A > B, -1, A),))],
    "ThresholdBackward": [((G, A, 0.5, Out(SHAPE)), (np.where(A > 0.5, G, 0),))],
    "GeluV2": [
        ((A, 0, Out(SHAPE)), (cpu(F.gelu, A),)),
        ((A, 1, Out(SHAPE)), (cpu(lambda x: F.gelu(x, approximate="tanh"), A),)),
    ],
    "GeluBackwardV2": [
        ((G, A, "none", Out(SHAPE)), grads(F.gelu, A, seed=G)),
        ((G, A, "tanh", Out(SHAPE)), grads(lambda x: F.gelu(x, approximate="tanh"), A, seed=G)),
    ],
    "TanhBackward": [((G, np.tanh(A), Out(SHAPE)), grads(torch.tanh, A, seed=G))],
    "SigmoidBackward": [((G, cpu(torch.sigmoid, A), Out(SHAPE)), grads(torch.sigmoid, A, seed=G))],
    "Softmax": [((A, dim, Out(SHAPE)), (cpu(lambda x, dim=dim: x.softmax(dim), A),)) for dim in (0, -1)],
    "LogSoftmax": [((A, -1, Out(SHAPE)), (cpu(lambda x: x.log_softmax(-1), A),))],
    "SoftmaxBackward": [((G, cpu(lambda x: x.softmax(0), A), 0, Out(SHAPE)), grads(lambda x: x.softmax(0), A, seed=G))],
    "LogSoftmaxBackward": [
        ((G, cpu(lambda x: x.log_softmax(-1), A), -1, Out(SHAPE)), grads(lambda x: x.log_softmax(-1), A, seed=G))
    ],
    "NLLLoss": [
        (
            (LOGITS, CLASSES, WEIGHTS, 1, -100, Out(()), Out(())),
            (cpu(lambda x, t, w: F.nll_loss(x, t, w), LOGITS, CLASSES, WEIGHTS), TOTAL),
        ),
        (
            (LOGITS, CLASSES, WEIGHTS, 0, -100, Out((5,)), Out(())),
            (cpu(lambda x, t, w: F.nll_loss(x, t, w, reduction="none"), LOGITS, CLASSES, WEIGHTS), TOTAL),
        ),
    ],
    "NLLLossBackward": [
        (
            (np.float32(2), LOGITS, CLASSES, WEIGHTS, 1, -100, TOTAL, Out((5, 3))),
            grads(lambda x: F.nll_loss(x, torch.tensor(CLASSES), torch.tensor(WEIGHTS)), LOGITS, seed=np.float32(2)),
        )
    ],
    "MseLoss": [((A, B, 1, Out(())), (((A - B) ** 2).mean(),)), ((A, B, 0, Out(SHAPE)), ((A - B) ** 2,))],
    "MseLossBackward": [((np.float32(3), A, B, 1, Out(SHAPE)), (6 * (A - B) / A.size,))],
    "LayerNorm": [
        (
            (A, [4], ROW, ROW, 1e-5, Out(SHAPE), Out((3, 1)), Out((3, 1))),
            (cpu(layer_norm, A, ROW, ROW), A.mean(1, keepdims=True), 1 / np.sqrt(A.var(1, keepdims=True) + 1e-5)),
        ),
        ((A, [4], None, None, 1e-5, Out(SHAPE), None, None), (cpu(lambda x: F.layer_norm(x, (4,)), A),)),
    ],
    "LayerNormBackward": [
        (
            (
                G,
                A,
                [4],
                A.mean(1, keepdims=True),
                1 / np.sqrt(A.var(1, keepdims=True) + 1e-5),
                ROW,
                ROW,
                [True, True, True],
                Out(SHAPE),
                Out((4,)),
                Out((4,)),
            ),
            grads(layer_norm, A, ROW, ROW, seed=G),
        )
    ],
    "BatchNorm": [
        (
            (IMAGE, ROW, ROW, Changed(STATE[0]), Changed(STATE[1]), True, 0.1, 1e-5, Out(IMAGE.shape), Out((4,)), Out((4,))),
            (
                0.9 * STATE[0] + 0.1 * MEAN,
                0.9 * STATE[1] + 0.1 * IMAGE.var((0, 2, 3), ddof=1),
                cpu(batch_norm, IMAGE, ROW, ROW),
                MEAN,
                INVSTD,
            ),
        )
    ],
    "BatchNormBackward": [
        (
            (
                IMAGE * 2,
                IMAGE,
                ROW,
                None,
                None,
                MEAN,
                INVSTD,
                True,
                1e-5,
                [True, True, True],
                Out(IMAGE.shape),
                Out((4,)),
                Out((4,)),
            ),
            grads(batch_norm, IMAGE, ROW, ROW, seed=IMAGE * 2),
        )
    ],
    "Mm": [((A, B.T, Out((3, 3)), 0), (A @ B.T,)), ((A.T, B, Out((4, 4)), 0), (A.T @ B,))],
    "Matmul": [
        ((IMAGE, uniform(6, 2), Out((2, 4, 7, 2)), 0), None),
        ((A, ROW, Out((3,)), 0), (A @ ROW,)),
        ((ROW, ROW, Out(()), 0), (ROW @ ROW,)),
        ((ROW, A.T, Out((3,)), 0), (ROW @ A.T,)),
    ],
    "BatchMatMul": [((IMAGE[0], IMAGE[1].swapaxes(1, 2), Out((4, 7, 7)), 0), (IMAGE[0] @ IMAGE[1].swapaxes(1, 2),))],
    "Addmm": [((BIAS[:3], A, B.T, 2, 3, Out((3, 3)), 0), (2 * BIAS[:3] + 3 * A @ B.T,))],
    "Baddbmm": [
        (
            (IMAGE[0, :, :, :1], IMAGE[0], IMAGE[1].swapaxes(1, 2), 2, 3, Out((4, 7, 7)), 0),
            (2 * IMAGE[0, :, :, :1] + 3 * IMAGE[0] @ IMAGE[1].swapaxes(1, 2),),
        )
    ],
    "Convolution": [
        ((IMAGE, FILTER, BIAS, *CONV, False, [0, 0], 2, Out(CONVOLVED.shape), 0), (CONVOLVED,)),
        (
            (IMAGE[:, :, 0], FILTER[:, :, 0], None, [1], [2], [2], False, [0], 2, Out((2, 6, 8)), 0),
            (cpu(lambda x, w: F.conv1d(x, w, padding=2, dilation=2, groups=2), IMAGE[:, :, 0], FILTER[:, :, 0]),),
        ),
    ],
    "ConvolutionBackward": [
        (
            (
                SEED,
                IMAGE,
                FILTER,
                [6],
                *CONV,
                False,
                [0, 0],
                2,
                [True, True, True],
                0,
                Out(IMAGE.shape),
                Out(FILTER.shape),
                Out((6,)),
            ),
            grads(conv, IMAGE, FILTER, BIAS, seed=SEED),
        )
    ],
    "MaxPool2dWithIndices": [((IMAGE, *POOL, Out(POOLED.shape), Out(POOLED.shape, "i4")), (POOLED, POOLED_AT))],
    "MaxPool2dWithIndicesBackward": [
        (
            (POOLED, IMAGE, POOLED_AT, *POOL, Out(IMAGE.shape)),
            grads(lambda x: F.max_pool2d(x, (3, 2), (2, 1), (1, 0)), IMAGE, seed=POOLED),
        )
    ],
    "AvgPool2d": [
        (
            (IMAGE, *POOL[:3], False, counted, 0, 0, Out(POOLED.shape)),
            (cpu(lambda x, c=counted: F.avg_pool2d(x, (3, 2), (2, 1), (1, 0), count_include_pad=c), IMAGE),),
        )
        for counted in (True, False)
    ],
    "AvgPool2dBackward": [
        (
            (POOLED, IMAGE, *POOL[:3], False, True, 0, 0, Out(IMAGE.shape)),
            grads(lambda x: F.avg_pool2d(x, (3, 2), (2, 1), (1, 0)), IMAGE, seed=POOLED),
        )
    ],
    "AdaptiveAvgPool2d": [((IMAGE, [3, 2], Out((2, 4, 3, 2))), (cpu(lambda x: F.adaptive_avg_pool2d(x, (3, 2)), IMAGE),))],
    "AdaptiveAvgPool2dBackward": [
        (
            (IMAGE[:, :, :3, :2], IMAGE, Out(IMAGE.shape)),
            grads(lambda x: F.adaptive_avg_pool2d(x, (3, 2)), IMAGE, seed=IMAGE[:, :, :3, :2]),
        )
    ],
    "ReduceSum": [
        ((IMAGE, [0, -1], False, np.dtype("f4"), Out((4, 7))), (IMAGE.sum((0, -1)),)),
        ((IMAGE, [], False, np.dtype("f4"), Out(())), (IMAGE.sum(),)),
        ((IDS, [0], True, np.dtype("i8"), Out((1, 2), "i8")), (IDS.sum(0, keepdims=True),)),
    ],
    "Mean": [((IMAGE, [1, 2], True, np.dtype("f4"), Out((2, 1, 1, 6))), (IMAGE.mean((1, 2), keepdims=True),))],
    "Max": [((A, Out(())), (A.max(),))],
    "MaxDim": [((IMAGE, 2, False, Out((2, 4, 6)), Out((2, 4, 6), "i8")), (IMAGE.max(2), IMAGE.argmax(2)))],
    "Amax": [((IMAGE, [1, 3], False, Out((2, 7))), (IMAGE.max((1, 3)),))],
    "ArgMax": [((IMAGE, 1, True, Out((2, 1, 7, 6), "i8")), (IMAGE.argmax(1, keepdims=True),))],
    "Cumsum": [((IMAGE, 1, np.dtype("f4"), Out(IMAGE.shape)), (IMAGE.cumsum(1),))],
    "Embedding": [((TABLE, IDS, Out((2, 2, 4))), (TABLE[IDS],))],
    "EmbeddingDenseBackward": [
        (
            (TABLE[IDS] * 2, IDS, 6, 2**64 - 1, False, Out((6, 4))),
            grads(lambda w: F.embedding(torch.tensor(IDS), w), TABLE, seed=TABLE[IDS] * 2),
        )
    ],
    "Cat": [(([A, B[:, :2]], 1, Out((3, 6))), (np.concatenate([A, B[:, :2]], 1),))],
    "Stack": [(([A, B], 1, Out((3, 2, 4))), (np.stack([A, B], 1),)), (([A, B], -1, Out((3, 4, 2))), (np.stack([A, B], -1),))],
    "GatherV2": [((A, 1, np.array([[3, 0], [1, 1]]), Out((3, 2, 2))), (A[:, [[3, 0], [1, 1]]],))],
    "IndexSelect": [((A.T, 0, np.array([3, 0], "i4"), Out((2, 3))), (A.T[[3, 0]],))],
    "Gather": [((A, 1, np.array([[3], [0], [2]]), Out((3, 1))), (np.take_along_axis(A, np.array([[3], [0], [2]]), 1),))],
    "ScatterAdd": [
        (
            (A, 1, np.array([[3, 3], [0, 1], [2, 2]]), B, Out(SHAPE)),
            (cpu(lambda a, i, b: a.scatter_add(1, i, b), A, np.array([[3, 3], [0, 1], [2, 2]]), B),),
        )
    ],
    "Tril": [((A, 1, Out(SHAPE)), (np.tril(A, 1),))],
    "Triu": [((IMAGE, -1, Out(IMAGE.shape)), (np.triu(IMAGE, -1),))],
    "Arange": [((2, 11, 3, Out((3,), "i8")), (np.arange(2, 11, 3),)), ((0.0, 1.0, 0.25, Out((4,))), (np.arange(0, 1, 0.25),))],
}
CASES["Matmul"][0] = (CASES["Matmul"][0][0], (IMAGE @ CASES["Matmul"][0][0][1],))
CASES |= {
    name: [((A, Out(SHAPE)), (function(A),)), ((A.T[::2], Out((2, 3))), (function(A.T[::2]),))]
    for name, function in UNARY.items()
}
CASES |= {name + "Tensor": [((A, B, Out(SHAPE, "?")), (function(A, B),))] for name, function in COMPARE.items()}
CASES |= {name + "Scalar": [((IDS, 1, Out((2, 2), "?")), (function(IDS, 1),))] for name, function in COMPARE.items()}


@pytest.fixture
def run(npu: Any, on_device: Any, on_host: Any) -> Callable[..., list[np.ndarray]]:
    """Launches an operator; returns what it wrote, in the order of the arguments."""
    from mindtorch_v2._backends.npu import memory

    def keeping_strides(array: np.ndarray) -> np.ndarray:
        owner = array
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        if owner is array or owner.dtype != array.dtype or not owner.flags.c_contiguous or min(array.strides, default=0) < 0:
            return on_device(array)
        offset = array.__array_interface__["data"][0] - owner.__array_interface__["data"][0]
        flat = on_device(owner).reshape(-1)[offset // array.itemsize :]
        return np.lib.stride_tricks.as_strided(flat, array.shape, array.strides)

    def launched(name: str, *arguments: Any) -> list[np.ndarray]:
        written, given = [], []
        for value in arguments:
            if isinstance(value, Out):
                value = memory.empty(value.shape, np.dtype(value.dtype))
                written.append(value)
            elif isinstance(value, Changed):
                value = on_device(value.array)
                written.append(value)
            elif isinstance(value, np.ndarray | np.floating):
                value = keeping_strides(np.asarray(value))
            elif isinstance(value, list) and value and isinstance(value[0], np.ndarray):
                value = [keeping_strides(one) for one in value]
            given.append(value)
        launch.launch(name, *given)
        return [on_host(array) for array in written]

    return launched


@pytest.mark.parametrize("name", [name for name in OPERATORS if not name.startswith("Dropout")])
def test_operator(name: str, run: Callable[..., list[np.ndarray]]) -> None:
    for arguments, expected in CASES[name]:
        results = run(name, *arguments)
        assert len(results) == len(expected)
        for result, wanted in zip(results, expected, strict=True):
            np.testing.assert_allclose(result, wanted, rtol=2e-6, atol=2e-6, err_msg=name)


def test_dropout(run: Callable[..., list[np.ndarray]]) -> None:
    count = 10_000
    (mask,) = run("DropoutGenMaskV2", [100, 100], 0.25, 3, 0, np.dtype("f4"), Out(((count + 127) // 128 * 16,), "u1"))
    kept = np.unpackbits(mask, bitorder="little")[:count].astype(bool)
    assert abs(kept.mean() - 0.75) < 0.02
    x = uniform(100, 100)
    (result,) = run("DropoutDoMask", x, mask, 0.25, Out((100, 100)))
    np.testing.assert_allclose(result, np.where(kept.reshape(100, 100), x / 0.75, 0), rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.dtype("f2"), np.dtype(ml_dtypes.bfloat16)], ids=str)
def test_sixteen_bits(dtype: np.dtype, run: Callable[..., list[np.ndarray]]) -> None:
    """Conversions round to nearest, ties to even, with subnormal and infinite results; sums are rounded once."""
    tricky = np.array(
        [
            0.0,
            -0.0,
            1.0,
            1 + 2**-11,
            1 + 3 * 2**-11,
            1 + 2**-8,
            1 + 3 * 2**-8,
            65504.0,
            65519.0,
            65520.0,
            6e-8,
            3e-8,
            2e-8,
            -6.1e-5,
            3.4e38,
            np.inf,
            -np.inf,
            np.nan,
        ],
        "f4",
    )
    values = np.concatenate([tricky, (rng.standard_normal(1000) * 10.0 ** rng.integers(-9, 9, 1000)).astype("f4")])
    with np.errstate(over="ignore"):
        small = values.astype(dtype)
    (converted,) = run("Cast", values, dtype, Out(values.shape, dtype))
    numbers = ~np.isnan(values)
    np.testing.assert_array_equal(converted.view("u2")[numbers], small.view("u2")[numbers])
    (back,) = run("Cast", small, np.dtype("f4"), Out(values.shape))
    np.testing.assert_array_equal(back, small.astype("f4"))
    a, b = A.astype(dtype), B.astype(dtype)
    (total,) = run("Add", a, b, 1, Out(SHAPE, dtype))
    np.testing.assert_array_equal(total, (a.astype("f4") + b.astype("f4")).astype(dtype))
