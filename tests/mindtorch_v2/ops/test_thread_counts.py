"""Results have the same bits for every number of threads."""

from __future__ import annotations

import ast
import sys
from functools import partial
from pathlib import Path

import pytest

import mindtorch_v2 as torch
import mindtorch_v2.nn.functional as F
from mindtorch_v2._core import parallel

_MANY = 3 * (1 << 16) + 17  # elements: several blocks, the last one short
_MORE = 4 * _MANY  # of which few passes are shared, too


def _leaf(*shape):
    return torch.randn(*shape).requires_grad_()


def _trained(function, *leaves):
    """The result of a function and the gradients of its arguments."""
    result = function(*leaves)
    result.backward(torch.randn(result.shape))
    return [result, *[leaf.grad for leaf in leaves]]


def _attention(heads, kv_heads, length, **options):
    leaves = [_leaf(2, count, length, 8) for count in (heads, kv_heads, kv_heads)]
    return _trained(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, enable_gqa=True, **options), *leaves)


def _stepped(optimizer, **options):
    """The weights after two steps of an optimizer."""
    weight = _leaf(_MANY)
    stepping = optimizer([weight], lr=0.1, **options)
    for _ in range(2):
        weight.grad = torch.randn(_MANY)
        stepping.step()
    return [weight]


CASES = {
    "gelu": lambda: _trained(F.gelu, _leaf(_MANY)),
    "gelu tanh": lambda: _trained(lambda x: F.gelu(x, approximate="tanh"), _leaf(_MANY)),
    "silu": lambda: _trained(F.silu, _leaf(_MANY)),
    "silu of half precision": lambda: [F.silu(torch.randn(_MANY).bfloat16())],
    "mish": lambda: _trained(F.mish, _leaf(_MANY)),
    "sigmoid": lambda: _trained(torch.sigmoid, _leaf(_MANY)),
    "casts of float16": lambda: [torch.randn(_MANY).half(), torch.randn(_MANY).half().float()],
    "sum of float16": lambda: [torch.randn(_MANY).half() + torch.randn(_MANY).half()],
    "product of bfloat16": lambda: [torch.randn(_MANY).bfloat16().mul_(torch.randn(_MANY).bfloat16())],
    "erf": lambda: [torch.erf(torch.randn(_MANY))],
    "erfc": lambda: [torch.erfc(torch.randn(_MANY))],
    "erfinv": lambda: [torch.erfinv(torch.rand(_MANY))],
    "lgamma": lambda: [torch.lgamma(torch.randn(_MANY) * 4)],
    "digamma": lambda: [torch.digamma(torch.randn(_MANY) * 4)],
    "erf in float64": lambda: [torch.erf(torch.randn(_MANY, dtype=torch.float64))],
    "fmod": lambda: [torch.fmod(torch.randn(_MANY), torch.randn(_MANY))],
    "remainder": lambda: [torch.randn(_MANY) % 0.7],
    "floor_divide": lambda: [torch.randn(_MANY) // torch.randn(_MANY)],
    "hypot": lambda: [torch.hypot(torch.randn(_MANY), torch.randn(_MANY))],
    "logaddexp": lambda: [torch.logaddexp(torch.randn(_MANY), torch.randn(_MANY))],
    "nextafter": lambda: [torch.nextafter(torch.randn(_MANY), torch.randn(_MANY))],
    "copysign": lambda: [torch.copysign(torch.randn(_MANY), torch.randn(_MANY))],
    "frac": lambda: [torch.randn(_MORE).frac()],
    "rsqrt": lambda: [torch.rand(_MORE).rsqrt()],
    "cubes": lambda: [torch.randn(_MORE) ** 3],
    "nan_to_num": lambda: [(torch.randn(_MORE) / torch.randn(_MORE).trunc()).nan_to_num()],
    "sign": lambda: [torch.randn(_MORE).sign()],
    "lerp": lambda: [torch.lerp(torch.randn(_MORE), torch.randn(_MORE), 0.3)],
    "addcmul_": lambda: [torch.randn(_MORE).addcmul_(torch.randn(_MORE), torch.randn(_MORE), value=0.5)],
    "softmax": lambda: _trained(lambda x: F.softmax(x, -1), _leaf(700, 300)),
    "softmax of large numbers": lambda: [F.softmax(torch.randn(700, 300) * 50, -1)],
    "softmax of one block": lambda: _trained(lambda x: F.softmax(x, -1), _leaf(100, 300)),
    "log_softmax": lambda: _trained(lambda x: F.log_softmax(x, -1), _leaf(700, 300)),
    "cross_entropy": lambda: _trained(lambda x: F.cross_entropy(x, torch.arange(700) % 300), _leaf(700, 300)),
    "attention": lambda: _attention(4, 4, 300),
    "attention, causal": lambda: _attention(2, 2, 300, is_causal=True),
    "attention, shared keys": lambda: _attention(4, 2, 200, is_causal=True),
    "attention, mask": lambda: _attention(2, 2, 200, attn_mask=torch.randn(200, 200)),
    "conv2d": lambda: _trained(lambda x, w: F.conv2d(x, w, padding=1), _leaf(3, 16, 40, 40), _leaf(24, 16, 3, 3)),
    "conv2d by pairs of rows": lambda: _trained(
        lambda x, w: F.conv2d(x, w, padding=1), _leaf(6, 32, 40, 40), _leaf(24, 32, 3, 3)
    ),
    "conv2d, stride": lambda: _trained(lambda x, w: F.conv2d(x, w, stride=2), _leaf(3, 24, 65, 65), _leaf(8, 24, 3, 3)),
    "conv2d, groups": lambda: _trained(
        lambda x, w: F.conv2d(x, w, padding=1, groups=8), _leaf(4, 16, 64, 64), _leaf(16, 2, 3, 3)
    ),
    "conv_transpose2d": lambda: _trained(lambda x, w: F.conv_transpose2d(x, w), _leaf(3, 16, 40, 40), _leaf(16, 16, 3, 3)),
    "layer_norm": lambda: _trained(lambda x, w, b: F.layer_norm(x, (300,), w, b), _leaf(700, 300), _leaf(300), _leaf(300)),
    "layer_norm of one block": lambda: _trained(lambda x, w: F.layer_norm(x, (300,), w), _leaf(100, 300), _leaf(300)),
    "batch_norm": lambda: _trained(
        lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True), _leaf(9, 64, 31, 31), _leaf(64), _leaf(64)
    ),
    "max_pool2d": lambda: _trained(lambda x: F.max_pool2d(x, 3, 2, 1), _leaf(9, 16, 40, 40)),
    "group_norm": lambda: _trained(lambda x, w, b: F.group_norm(x, 4, w, b), _leaf(8, 32, 30, 30), _leaf(32), _leaf(32)),
    "AdamW": lambda: _stepped(torch.optim.AdamW),
    "AdamW, fused": lambda: _stepped(torch.optim.AdamW, fused=True, amsgrad=True),
    "AdamW, foreach": lambda: _stepped(torch.optim.AdamW, foreach=True),
    "SGD, fused": lambda: _stepped(torch.optim.SGD, fused=True, momentum=0.9, weight_decay=0.1),
    "embedding": lambda: _trained(lambda w: F.embedding(torch.arange(3000) % 900, w), _leaf(2000, 64)),
    "embedding of few rows": lambda: _trained(lambda w: F.embedding(torch.arange(3000) % 40, w), _leaf(50, 64)),
    "embedding_bag": lambda: [
        part
        for mode in ("sum", "mean", "max")
        for count in (100, 5000)
        for part in _trained(
            lambda w, mode=mode: F.embedding_bag(torch.arange(9000).view(300, 30) % 97, w, mode=mode), _leaf(count, 64)
        )
    ],
    "gather and scatter": lambda: [
        result
        for x, index in [(torch.randn(500, 600), torch.randint(0, 500, (500, 600)))]
        for dim in (0, 1)
        for result in (
            *_trained(partial(torch.gather, dim=dim, index=index), x.clone().requires_grad_()),
            x.scatter(dim, index, x),
        )
    ],
    "grid_sample": lambda: [
        part
        for mode in ("bilinear", "nearest", "bicubic")
        for part in _trained(
            lambda x, at, mode=mode: F.grid_sample(x, at, mode=mode, align_corners=False),
            _leaf(5, 6, 30, 40),
            (torch.rand(5, 20, 30, 2) * 2.4 - 1.2).requires_grad_(),
        )
    ],
    "index_add": lambda: [torch.randn(900, 100).index_add(0, torch.arange(2000) % 700, torch.randn(2000, 100))],
    "arithmetic of millions": lambda: [
        result
        for x, y in [torch.randn(2, (1 << 21) + 17)]
        for result in (x + y, x - y, x * y, x / y, x * 2, torch.add(x, y, alpha=3), torch.exp(x))
    ],
    "arithmetic of millions that lie otherwise": lambda: [
        result
        for x in [torch.randn(1500, 1500)]
        for result in (x + x.t(), x * x[0], x[:, ::2] / 3, x.double() - 1, (x > 0) + x)
    ],
    "arithmetic of millions in place": lambda: [
        result
        for x, y in [torch.randn(2, 1449, 1449)]
        for result in (x.clone().add_(y), x.clone().mul_(y[0]), x.clone().div_(3), x.clone().relu_(), x > y, x.sin())
    ],
    "copies of millions": lambda: [
        result
        for x in [torch.randn(1449, 1449)]
        for result in (x.clone(), x.t().contiguous(), x[:, ::2].contiguous(), x.double(), torch.cat([x, x[:7]]), x.t().clone())
    ],
    "a transposed copy in tiles": lambda: [torch.randn(1024, 1024).t().contiguous(), torch.randn(3, 512, 640).mT.contiguous()],
    "choices": lambda: [
        result
        for x, mask in [(torch.randn(_MANY), torch.rand(_MANY) > 0.5)]
        for result in (torch.where(mask, x, -x), x.masked_fill(mask, 2), x.clone().masked_fill_(mask, -1), x.where(mask, 0))
    ],
    "relu": lambda: _trained(F.relu, _leaf(_MANY)),
    "leaky_relu": lambda: _trained(F.leaky_relu, _leaf(_MANY)),
    "elu": lambda: [*_trained(F.elu, _leaf(_MANY)), F.celu(torch.randn(_MANY), 0.7)],
    "hardswish": lambda: _trained(F.hardswish, _leaf(_MANY)),
    "hardsigmoid": lambda: _trained(F.hardsigmoid, _leaf(_MANY)),
    "huber_loss": lambda: _trained(lambda x: F.huber_loss(x, -x.detach(), reduction="none"), _leaf(_MANY)),
    "mse_loss": lambda: _trained(lambda x: F.mse_loss(x, -x.detach(), reduction="none"), _leaf(_MANY)),
    "reductions of millions along dims": lambda: [
        result
        for x in [torch.randn(64, 190, 190)]
        for result in (*x.max(2), x.amin((1, 2)), x.argmax(1), x.prod(2), x.double().sum((1, 2)), x.amax(0), (x > 2).any(1))
    ],
    "sums of many millions along dims": lambda: [x.sum(dim) for x in [torch.randn(2900, 2900)] for dim in (0, 1)],
    "sums along dims": lambda: [x.sum(dims) for x in [torch.randn(40, 50, 60)] for dims in (0, 1, 2, (0, 1), (0, 2), (1, 2))],
    "running sums, products and extremes": lambda: [
        result for x in [torch.randn(700, 501)] for result in (x.cumsum(1), x.cumprod(1), *x.cummax(1), *x.cummin(0))
    ],
    "prod": lambda: [x.prod(dim) for x in [1 + torch.randn(1000, 2500) / 50] for dim in (0, 1)],
    "sum": lambda: [torch.randn(5 << 20).sum()],
    "mm": lambda: _trained(torch.mm, _leaf(401, 305), _leaf(305, 190)),
    "mm of columns": lambda: _trained(torch.mm, _leaf(65, 605), _leaf(605, 501)),
    "mm of few rows": lambda: [torch.randn(33, 605) @ torch.randn(2001, 605).t()],
    "mm of float64": lambda: [torch.randn(199, 401).double() @ torch.randn(401, 301).double()],
    "mm of every second column": lambda: [torch.randn(300, 600)[:, ::2] @ torch.randn(400, 300).t()[:, ::2]],
    "addmm": lambda: _trained(F.linear, _leaf(260, 300), _leaf(401, 300), _leaf(401)),
    "bmm": lambda: _trained(torch.bmm, _leaf(33, 64, 100), _leaf(33, 100, 60)),
    "bmm of large matrices": lambda: _trained(torch.bmm, _leaf(2, 401, 305), _leaf(2, 305, 190)),
    "mv": lambda: [torch.mv(torch.randn(700, 300), torch.randn(300))],
    "dot": lambda: [torch.dot(torch.randn(_MANY), torch.randn(_MANY))],
    "linear of bfloat16": lambda: [F.linear(torch.randn(260, 300).bfloat16(), torch.randn(401, 300).bfloat16())],
    "conv2d, 1x1": lambda: _trained(F.conv2d, _leaf(4, 128, 28, 28), _leaf(96, 128, 1, 1)),
    "conv2d, large weight": lambda: _trained(
        lambda x, w: F.conv2d(x, w, stride=2, padding=1), _leaf(4, 128, 9, 9), _leaf(160, 128, 3, 3)
    ),
    "conv2d, 1x1, large weight": lambda: _trained(F.conv2d, _leaf(4, 256, 5, 5), _leaf(320, 256, 1, 1)),
    "conv2d of one block": lambda: _trained(lambda x, w: F.conv2d(x, w, padding=1), _leaf(1, 8, 40, 40), _leaf(24, 8, 3, 3)),
    "conv2d, depthwise": lambda: _trained(
        lambda x, w: F.conv2d(x, w, padding=1, groups=32), _leaf(4, 32, 64, 64), _leaf(32, 1, 3, 3)
    ),
    "LSTM": lambda: _trained(lambda x: torch.nn.LSTM(32, 64)(x)[0], _leaf(20, 16, 32)),
    "randn": lambda: [torch.randn(_MANY)],
    "addcdiv_": lambda: [torch.randn(_MORE).addcdiv_(torch.randn(_MORE), torch.rand(_MORE) + 1, value=0.5)],
}


@pytest.fixture
def results_by_threads():
    """A function that runs a case with one, two and four threads, from the same seed."""
    before = torch.get_num_threads()

    def run(case):
        results = []
        for threads in (1, 2, 4):
            torch.set_num_threads(threads)
            torch.manual_seed(0)
            results.append([part.detach().reshape(-1).view(torch.uint8).numpy().tobytes() for part in case()])
        return results

    yield run
    torch.set_num_threads(before)


@pytest.mark.parametrize("name", CASES)
def test_same_bits(name, results_by_threads):
    first, *others = results_by_threads(CASES[name])
    assert all(other == first for other in others)


_OPS = Path(torch.__file__).parent / "_ops"


def _splitting_functions():
    """(file, qualified name) of the functions of `_ops` that split their work among threads."""
    found = set()
    for path in _OPS.rglob("*.py"):
        body = ast.parse(path.read_text(encoding="utf-8")).body
        functions = [(n.name, n) for n in body if isinstance(n, ast.FunctionDef)]
        for kind in (n for n in body if isinstance(n, ast.ClassDef)):
            functions += [(f"{kind.name}.{n.name}", n) for n in kind.body if isinstance(n, ast.FunctionDef)]
        for name, function in functions:
            calls = {ast.unparse(n.func) for n in ast.walk(function) if isinstance(n, ast.Call)}
            decorators = {ast.unparse(d) for d in function.decorator_list}
            if calls & {"parallel.run", "parallel.blocks", "in_blocks"} or "blockwise" in decorators:
                found.add((str(path), name))
    return found


def test_every_split_has_a_case(monkeypatch):
    """Work that is split among threads without a case above would be compared by no test."""
    reached = set()
    plain = parallel.run

    def run(count, task):
        frame = sys._getframe(1)
        while count > 1 and frame is not None:
            codes = [frame.f_code]
            if codes[0].co_filename.endswith("blockwise.py") and "kernel" in frame.f_locals:
                codes.append(frame.f_locals["kernel"].__code__)
            reached.update((code.co_filename, code.co_qualname.partition(".<locals>")[0]) for code in codes)
            frame = frame.f_back
        plain(count, task)

    monkeypatch.setattr(parallel, "run", run)
    for case in CASES.values():
        case()
    missing = _splitting_functions() - reached
    assert not missing
