"""Results have the same bits for every number of threads."""

from __future__ import annotations

import pytest

import mindtorch_v2 as torch
import mindtorch_v2.nn.functional as F

_MANY = 3 * (1 << 16) + 17  # elements: several blocks, the last one short


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
    "erf": lambda: [torch.erf(torch.randn(_MANY))],
    "lerp": lambda: [torch.lerp(torch.randn(_MANY), torch.randn(_MANY), 0.3)],
    "addcmul_": lambda: [torch.randn(_MANY).addcmul_(torch.randn(_MANY), torch.randn(_MANY), value=0.5)],
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
    "group_norm": lambda: [F.group_norm(torch.randn(8, 32, 30, 30), 4, torch.randn(32), torch.randn(32))],
    "AdamW": lambda: _stepped(torch.optim.AdamW),
    "AdamW, fused": lambda: _stepped(torch.optim.AdamW, fused=True, amsgrad=True),
    "AdamW, foreach": lambda: _stepped(torch.optim.AdamW, foreach=True),
    "SGD, fused": lambda: _stepped(torch.optim.SGD, fused=True, momentum=0.9, weight_decay=0.1),
    "embedding": lambda: _trained(lambda w: F.embedding(torch.arange(3000) % 900, w), _leaf(2000, 64)),
    "embedding of few rows": lambda: _trained(lambda w: F.embedding(torch.arange(3000) % 40, w), _leaf(50, 64)),
    "index_add": lambda: [torch.randn(900, 100).index_add(0, torch.arange(2000) % 700, torch.randn(2000, 100))],
    "addcdiv_": lambda: [torch.randn(_MANY).addcdiv_(torch.randn(_MANY), torch.rand(_MANY) + 1, value=0.5)],
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
