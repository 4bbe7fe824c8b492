"""What PyTorch 2.13 shows of fake tensors; `python recorded_fake_tensors.py` writes it, with PyTorch installed."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

RECORDED = Path(__file__).with_name("recorded_fake_tensors.json")
PREPARE = """
import copy
import numpy as np
from torch import nn
from torch.nn import functional as F
from torch._guards import detect_fake_mode
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode, is_fake

mode = FakeTensorMode()
x = mode.from_tensor(torch.randn(2, 3))
w = mode.from_tensor(nn.Parameter(torch.randn(3)))
p = mode.from_tensor(torch.randn(2, 3, requires_grad=True))
whole = torch.ones(4, 4)
part = mode.from_tensor(whole[1:, 1:])
card = FakeTensor(mode, torch.ones(2, 3, device="meta"), torch.device("cuda"))
real = torch.ones(2)

def trained(optimizer):
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(144, 5))
    steps = optimizer(net.parameters(), lr=0.1)
    for _ in range(2):
        loss = F.cross_entropy(net(torch.randn(2, 3, 8, 8)), torch.randint(0, 5, (2,)))
        loss.backward()
        steps.step()
    return loss, net[0].weight.grad

def written():
    a = torch.zeros(3, 4)
    a[0] = 1
    a[:, 1] = torch.ones(3)
    a[[0, 1]] += 1
    return a

def attended():
    layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True)
    layer(torch.randn(2, 5, 16)).mean().backward()
    return layer.self_attn.in_proj_weight.grad
"""
# Outside of a mode, on tensors that belong to one.
OUTSIDE = [
    *("x", "x.device", "x.fake_device", "x.is_meta", "x.is_cpu", "x.fake_mode is mode", "x.constant", "w", "w.is_leaf", "p"),
    *("isinstance(w, nn.Parameter)", "x + 1", "x + p", "(x + p).sum()", "(x + p).sum().backward()", "p.grad", "x.item()"),
    *("x[0, 0].item()", "x.tolist()", "x.numpy()", "bool(x[0, 0])", "float(x[0, 0])", "int(x[0, 0])", "np.asarray(x)"),
    *("x.nonzero()", "x[x > 0]", "torch.masked_select(x, x > 0)", "torch.unique(x)", "torch.where(x > 0)", "x.equal(x)"),
    *("torch.allclose(x, x)", "torch.bincount(x.long().flatten())", "x + torch.ones(2, 3)", "x + torch.ones(())"),
    *("torch.add(torch.ones(2, 3), x)", "x.copy_(torch.ones(2, 3))", "x[torch.tensor([0])]", "x.clone()", "x.detach()"),
    *("x.to('meta')", "x.to('cpu')", "x.t()", "x.T.device", "x.data_ptr()", "x.untyped_storage().device", "x.stride()"),
    *("x.view(3, 2)", "x.view(6)._base is x", "x.new_zeros(3)", "torch.zeros_like(x)", "x.mul_(2) is x", "x.data"),
    *("torch.cat([x, x])", "torch.mm(x, x.t())", "x.abs().max(dim=1)", "copy.deepcopy(x)", "copy.deepcopy(w)", "list(x)"),
    *("FakeTensor(mode, torch.ones(2), torch.device('cpu'))", "card", "card.device", "card + 1", "card + x", "card + x[0, 0]"),
    *(
        "mode.from_tensor(x) is x",
        "mode.from_tensor(whole) is mode.from_tensor(whole)",
        "part.stride()",
        "part.storage_offset()",
    ),
    *("part._base is not None", "FakeTensor.from_tensor(torch.ones(2), mode)", "is_fake(x)", "is_fake(torch.ones(2))"),
    *("mode.from_tensor(torch.ones(2, device='meta'))", "x.type()", "(p * 2).grad_fn is not None", "torch.linalg.svd(x)"),
    *("torch.sort(x)", "torch.bernoulli(p)", "torch.multinomial(x, 1)", "x.bool().any()", "torch.where(x > 0, x, x)"),
    *(
        "x.to(torch.float64)",
        "x == x",
        "x.get_device()",
        "x[mode.from_tensor(torch.tensor([0]))]",
        "mode(1)",
        "mode.from_tensor(3)",
    ),
    *("F.linear(x, mode.from_tensor(torch.ones(4, 3)))", "detect_fake_mode([x]) is mode", "detect_fake_mode(None)"),
    *("mode.allow_non_fake_inputs", "mode.shape_env", "mode.static_shapes", "torch.is_tensor(x)", "x.resize_(2, 2)", "x"),
]
# Inside of a new one.
INSIDE = [
    *("torch.ones(2)", "torch.ones(2) + 1", "torch.tensor(3.0)", "torch.tensor(3.0).item()", "torch.tensor([1, 2]).tolist()"),
    *("torch.tensor([1.0, 2])[0].item()", "(torch.tensor(3.0) + 1).item()", "bool(torch.tensor(True))", "int(torch.tensor(3))"),
    *("torch.tensor(3.0).constant", "torch.tensor(3.0).add_(1).item()", "torch.tensor(3.0).add_(torch.ones(())).item()"),
    *(
        "torch.ones(2).constant",
        "torch.ones(()).item()",
        "torch.empty(3, device='cuda')",
        "torch.empty(3, device='cuda').cpu()",
    ),
    *(
        "torch.empty(3, device='cuda') + torch.ones(3)",
        "torch.empty(3, device='cuda') + torch.ones(())",
        "real + 1",
        "real.sum()",
    ),
    *(
        "torch.ones(3, device='meta')",
        "torch.ones(3, device='mps').device",
        "real + torch.ones(2)",
        "real.item()",
        "real.tolist()",
    ),
    *("nn.Linear(3, 4)", "nn.Linear(3, 4).weight", "nn.Linear(3, 4)(torch.ones(5, 3))", "torch.arange(5)", "torch.randperm(4)"),
    *("torch.from_numpy(np.ones(3))", "torch.as_tensor([1])", "torch.eye(3)", "nn.Parameter(torch.ones(2))", "real.clone()"),
    *("nn.init.normal_(torch.empty(3))", "torch.rand(3, generator=torch.Generator())", "written()", "attended()"),
    *("trained(torch.optim.SGD)", "trained(torch.optim.AdamW)", "trained(torch.optim.RMSprop)"),
    *(
        "nn.LSTM(4, 5, 2)(torch.randn(2, 3, 4))[0]",
        "nn.Embedding(10, 4)(torch.tensor([1, 2]))",
        "torch.fft.rfft(torch.ones(8))",
    ),
    *("torch.vmap(lambda row: row.sum())(torch.ones(3, 4))", "torch.einsum('ij,jk->ik', torch.ones(2, 3), torch.ones(3, 4))"),
    "torch.empty_like(torch.ones(2, 3, 4, 4).to(memory_format=torch.channels_last)).stride()",
    "list(nn.Linear(3, 4).state_dict().items())",
]
# Inside of one that takes real tensors.
ALLOWED = ["real + 1", "real + torch.ones(2)", "torch.add(real, 1)", "real[0].item()", "real", "nn.Linear(2, 3)(real)"]


def answers(torch: Any) -> dict[str, list[str]]:
    """The answer to each expression, by the table that it stands in."""
    names: dict[str, Any] = {"torch": torch}
    exec(PREPARE, names)
    told = {"outside": [answer(expression, names) for expression in OUTSIDE]}
    with names["FakeTensorMode"]():
        told["inside"] = [answer(expression, names) for expression in INSIDE]
    with names["FakeTensorMode"](allow_non_fake_inputs=True):
        told["allowed"] = [answer(expression, names) for expression in ALLOWED]
    return told


def answer(expression: str, names: dict[str, Any]) -> str:
    """What an expression gives, or what it raises, as text."""
    try:
        text = repr(eval(expression, names))
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
    return re.sub(r"0x[0-9a-f]+", "0x", text)


if __name__ == "__main__":
    import logging

    import torch

    logging.disable()
    told = answers(torch)
    RECORDED.write_text(json.dumps(told, indent=0) + "\n")
