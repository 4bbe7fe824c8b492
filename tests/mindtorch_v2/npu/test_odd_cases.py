"""Odd arguments on the device: every kernel gives the CPU's result, dtype and shape, or raises the CPU's error."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.nn import functional as F

pytestmark = pytest.mark.filterwarnings("ignore:.*has no NPU kernel")


def matrix(dtype: Any = torch.float32) -> Any:
    values = torch.randn(3, 4, generator=torch.Generator().manual_seed(0)) * 3
    return values > 0 if dtype is torch.bool else values.to(dtype)


INPUTS: dict[str, Callable[[], Any]] = {
    "float32": matrix,
    "float16": lambda: matrix(torch.float16),
    "float64": lambda: matrix(torch.float64),
    "int64": lambda: matrix(torch.int64),
    "int8": lambda: matrix(torch.int8),
    "bool": lambda: matrix(torch.bool),
    "uint8": lambda: torch.arange(12, dtype=torch.uint8).view(3, 4),
    "complex": lambda: torch.complex(matrix(), matrix()),
    "no dims": lambda: torch.tensor(2.5),
    "no dims, bool": lambda: torch.tensor(True),
    "nothing": lambda: torch.zeros(0),
    "no rows": lambda: torch.zeros(0, 4),
    "no columns": lambda: torch.zeros(3, 0),
    "transposed": lambda: matrix().view(4, 3).t(),
    "expanded": lambda: matrix()[:1].expand(3, 4),
}


def ids(t: Any, *values: Any) -> Any:
    return torch.tensor(values, device=t.device)


def on_clone(change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """What a tensor is after it was changed in place."""

    def run(t: Any) -> Any:
        made = t.contiguous().clone()
        change(made)
        return made

    return run


def gradient(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def run(t: Any) -> Any:
        leaf = t.detach().contiguous().clone().requires_grad_()
        function(leaf).sum().backward()
        return leaf.grad

    return run


OPS: dict[str, Callable[[Any], Any]] = {
    "neg": lambda t: -t, "abs": lambda t: t.abs(), "relu": F.relu, "exp": torch.exp, "gelu": F.gelu,
    "gelu of no kind": lambda t: F.gelu(t, approximate="fast"), "logical_not": torch.logical_not,
    "plus a number": lambda t: t + 1.5, "plus a bool": lambda t: t + True, "plus a CPU number": lambda t: t + torch.tensor(2),
    "a CPU number minus": lambda t: torch.tensor(2.0) - t, "times itself": lambda t: t * t, "minus itself": lambda t: t - t,
    "divided": lambda t: t / 2, "alpha": lambda t: torch.add(t, t, alpha=2.5), "power": lambda t: t ** 2,
    "negative power": lambda t: t ** -1, "comparison": lambda t: t == 1, "clamp": lambda t: t.clamp(0, 1),
    "clamp without bounds": lambda t: t.clamp(), "clamp by nan": lambda t: t.clamp(float("nan"), 1.0),
    "where": lambda t: torch.where(t != 0, t, 1.5), "maximum": lambda t: torch.maximum(t, torch.tensor(0.5)),
    "addcmul": lambda t: torch.addcmul(t, t, t, value=0.5), "addcdiv": lambda t: torch.addcdiv(t, t, t * t + 9),
    "sum": torch.sum, "sum as int": lambda t: t.sum(dtype=torch.int32), "sum over twice the same": lambda t: t.sum((0, 0)),
    "sum over no such dim": lambda t: t.sum(5), "sum, kept": lambda t: t.sum(-1, keepdim=True), "mean": torch.mean,
    "mean over a dim": lambda t: t.mean(0), "max": torch.max, "max over a dim": lambda t: t.max(0),
    "amax": lambda t: t.amax(-1),
    "any": torch.any, "any over a dim": lambda t: t.any(0), "all": torch.all, "all, kept": lambda t: t.all(-1, True),
    "all over no such dim": lambda t: t.all(7), "any of negatives": lambda t: torch.any(-abs(t * 1), -1),
    "argmax": lambda t: t.argmax(-1), "cumsum": lambda t: t.cumsum(0),
    "matmul": lambda t: t @ t.t(), "matmul that does not fit": lambda t: t @ t,
    "matmul of two dtypes": lambda t: t @ t.t().double(),
    "addmm": lambda t: torch.addmm(t[:, 0], t, t.t(), beta=2, alpha=0.5), "t of few dims": lambda t: t.reshape(-1).t() * 2,
    "softmax": lambda t: F.softmax(t, -1), "softmax over no such dim": lambda t: F.softmax(t, 3),
    "cat": lambda t: torch.cat([t, t], -1), "cat that does not fit": lambda t: torch.cat([t, t[:, :2]]),
    "cat of two dtypes": lambda t: torch.cat([t, t.double()]), "cat with nothing": lambda t: torch.cat([t[:0].reshape(-1), t]),
    "stack": lambda t: torch.stack([t, t], -1), "stack that does not fit": lambda t: torch.stack([t, t[:1]]),
    "masked_fill": lambda t: t.masked_fill(t != 0, 7), "masked_fill by a mask of bytes": lambda t: t.masked_fill(
        torch.ones(3, 4, dtype=torch.uint8, device=t.device), 3),
    "clone": torch.clone, "half": lambda t: t.half(), "as complex": lambda t: t.to(torch.complex64), "full_like": lambda t:
    torch.full_like(t, 2), "view as bytes": lambda t: t.contiguous().view(torch.uint8), "tril": torch.tril,
    "empty_strided": lambda t: torch.empty_strided((2, 3), (1, 2), dtype=t.dtype, device=t.device).fill_(1),
    "out=": lambda t: torch.mul(t, t, out=torch.empty_like(t)), "out= that grows": lambda t: torch.mul(
        t, t, out=torch.empty(0, dtype=t.dtype, device=t.device)),
    "out= of another kind": lambda t: torch.mul(t, 1.5, out=torch.empty_like(t, dtype=torch.int64)),
    "layer_norm": lambda t: F.layer_norm(t, (4,)), "mse_loss of two dtypes": lambda t: F.mse_loss(t, t.double() + 1),
    "avg_pool2d of few dims": lambda t: F.avg_pool2d(t.reshape(-1), 2), "complex full": lambda t: torch.full(
        (2,), 1j, device=t.device), "indexed from the CPU": lambda t: t[torch.tensor([0])] if t.numel() else t,
    "add_ of its own row": on_clone(lambda t: t.add_(t[0])), "add_ of the rows before": on_clone(lambda t: t[1:].add_(t[:-1])),
    "copy_ of the rows before": on_clone(lambda t: t[1:].copy_(t[:-1])), "sub_ of bools": on_clone(lambda t: t.sub_(t != 0)),
    "mul_ by a fraction": on_clone(lambda t: t.mul_(0.5)), "div_": on_clone(lambda t: t.div_(2)),
    "add_ that would grow": on_clone(lambda t: t[:1].add_(t)), "add_ that does not fit": on_clone(
        lambda t: t.add_(torch.ones(7, device=t.device))),
    "add_ to expanded": on_clone(lambda t: t[:1].expand(3, 4).add_(1)),
    "sinh_ of expanded": on_clone(lambda t: t[:1].expand(3, 4).sinh_()), "copy_ that does not fit": on_clone(
        lambda t: t.copy_(torch.ones(7, 7))), "relu_": on_clone(F.relu_),
    "addcmul_": on_clone(lambda t: t.addcmul_(t, t, value=0.5)),
    "zero_ of a part": on_clone(lambda t: t[:, ::2].zero_()), "resize_": on_clone(lambda t: t.resize_(2, 2).fill_(1)),
    "gradient of max": gradient(lambda t: t.max(0)[0]), "gradient of one part": gradient(lambda t: t.split(2, -1)[0]),
    "gradient of one row": gradient(lambda t: t.unbind()[0]), "gradient of cumprod": gradient(lambda t: t.cumprod(0)),
}  # fmt: skip

# Where two things are wrong: the CPU names the other one first.
WORDS_DIFFER = {("add_ to expanded", "bool"), *(("sinh_ of expanded", name) for name in ("int64", "int8", "bool", "uint8"))}
# What the device can do and the CPU refuses.
ONLY_THERE = {("abs", "bool"), ("abs", "no dims, bool")}


def outcome(function: Callable[[Any], Any], t: Any) -> Any:
    try:
        made = function(t)
    except Exception as error:
        return type(error), str(error)
    return list(made) if isinstance(made, tuple) else [made]


@pytest.mark.parametrize("op", OPS)
def test_like_the_cpu(npu: Any, op: str) -> None:
    for name, make in INPUTS.items():
        x = make()
        y = x[:1].npu().expand(3, 4) if name == "expanded" else x.t().npu().t() if name == "transposed" else x.npu()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            here, there = outcome(OPS[op], x), outcome(OPS[op], y)
        if (op, name) in ONLY_THERE:
            assert isinstance(here, tuple) and not isinstance(there, tuple)
            continue
        if isinstance(here, tuple) or isinstance(there, tuple):
            assert there == here or ((op, name) in WORDS_DIFFER and there[0] is here[0]), f"{op} of {name}"
            continue
        for wanted, made in zip(here, there, strict=True):
            assert made.is_npu and made.dtype is wanted.dtype, f"{op} of {name}"
            rounded = {"rtol": 1e-2, "atol": 1e-2} if wanted.dtype is torch.float16 else {}
            torch.testing.assert_close(made.cpu(), wanted.contiguous(), equal_nan=True, msg=f"{op} of {name}", **rounded)


@pytest.mark.parametrize("work", [
    lambda t: t.gather(1, ids(t, [0, 1], [3, 2], [1, 1])), lambda t: t.gather(-1, ids(t, [0], [1], [2])),
    lambda t: t.gather(0, ids(t, [0, 1, 2, 2, 1])), lambda t: t.gather(1, ids(t, 1)), lambda t: t.gather(2, ids(t, [0])),
    lambda t: t.index_select(-1, ids(t, 2, 0)), lambda t: t.index_select(0, torch.zeros(0, dtype=torch.int64, device=t.device)),
    lambda t: t.scatter_add(0, ids(t, [1, 1, 0, 2]), t[:1]), lambda t: t.scatter_add(0, ids(t, [1, 1, 0, 2]), t[:1, :2]),
    lambda t: F.embedding(ids(t, [0, 2], [1, 1]), t), lambda t: F.nll_loss(t, ids(t, 0, 1, 3)),
    lambda t: F.nll_loss(t, ids(t, 0, 1, 3).int()), lambda t: F.nll_loss(t, ids(t, -100, -100, -100)),
    gradient(lambda t: F.embedding(ids(t, [0, 2], [1, 1]), t, padding_idx=-1)),
    gradient(lambda t: t.gather(1, ids(t, [0, 0], [3, 2], [1, 1]))),
])  # fmt: skip
def test_indices_like_the_cpu(npu: Any, work: Callable[[Any], Any]) -> None:
    here, there = outcome(work, matrix()), outcome(work, matrix().npu())
    if isinstance(here, tuple):
        assert there == here
    else:
        torch.testing.assert_close(there[0].cpu(), here[0], equal_nan=True)


def test_out_on_another_device_is_refused(npu: Any) -> None:
    with pytest.raises(RuntimeError, match="at least two devices, npu:0 and cpu!"):
        torch.add(matrix().npu(), 1, out=torch.empty(3, 4))


def test_nothing_to_compute_is_no_fall_back(npu: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINDTORCH_NPU_FALLBACK", "error")
    empty = torch.zeros(0, 4, device="npu")
    assert (empty.sum().item(), (empty @ torch.zeros(4, 2, device="npu")).shape) == (0.0, (0, 2))
    with pytest.raises(NotImplementedError, match="aten::add.Tensor has no NPU kernel"):
        torch.zeros(2, dtype=torch.complex64, device="npu") + 1


def test_complex_tensors_are_kept_and_moved(npu: Any) -> None:
    x = torch.complex(matrix(), matrix())
    y = x.npu()
    assert torch.equal(y.t().cpu(), x.t())
    assert torch.equal(y.to(torch.complex128).cpu(), x.to(torch.complex128))
    assert torch.equal(torch.view_as_real(y).cpu(), torch.view_as_real(x))
    assert y[0, 0].item() == x[0, 0].item()
