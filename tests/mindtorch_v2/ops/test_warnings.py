"""What ops warn of, in torch's words and at the program's own line; and the class of handles."""

from __future__ import annotations

import math
import warnings

import pytest

import mindtorch_v2 as torch
from mindtorch_v2._ops._support import warn
from mindtorch_v2.utils.hooks import RemovableHandle

HISTORY = "Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior."
FREEDOM = r"\(\): degrees of freedom is <= 0. Correction should be strictly less than the reduction factor"


@pytest.fixture(autouse=True)
def _nothing_said(monkeypatch):
    monkeypatch.setattr(warn, "_said", set())


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: float(torch.tensor(4.0, requires_grad=True)), HISTORY),
        (lambda: math.sqrt(torch.tensor(4.0, requires_grad=True)), HISTORY),
        (lambda: complex(torch.tensor(4.0, requires_grad=True)), HISTORY),
        (lambda: torch.ones(2, 3, 4).T, "The use of `x.T` on tensors of dimension other than 2"),
        (lambda: torch.ones(2).T, "The use of `x.T` on tensors of dimension other than 2"),
        (lambda: torch.tensor(1.0).T, "Tensor.T is deprecated on 0-D tensors"),
        (lambda: torch.tensor(1.0).H, "Tensor.H is deprecated on 0-D tensors"),
        (lambda: torch.ones(1).std(), "^std" + FREEDOM),
        (lambda: torch.ones(1).var(), "^var" + FREEDOM),
        (lambda: torch.std_mean(torch.ones(1)), "^std_mean" + FREEDOM),
        (lambda: torch.ones(1, 2).std(0), "^std" + FREEDOM),
        (lambda: torch.set_float32_matmul_precision("foo"), "foo is not one of 'highest', 'high', or 'medium'"),
    ],
)
def test_warns_at_the_programs_line(call, words):
    with pytest.warns(UserWarning, match=words) as caught:
        call()
    assert len(caught) == 1 and caught[0].filename == __file__


def test_what_is_fine_is_not_warned_of():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with torch.no_grad():
            float(torch.tensor(4.0, requires_grad=True))
        float(torch.tensor(4.0))
        int(torch.tensor(4.0, requires_grad=True))
        assert torch.ones(2, 3).T.shape == (3, 2)
        torch.ones(1).std(unbiased=False)


def test_some_are_said_once():
    with pytest.warns(UserWarning):
        float(torch.tensor(4.0, requires_grad=True))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        float(torch.tensor(4.0, requires_grad=True))


def test_an_unknown_precision_changes_nothing():
    before = torch.get_float32_matmul_precision()
    with pytest.warns(UserWarning):
        torch.set_float32_matmul_precision("foo")
    assert torch.get_float32_matmul_precision() == before


def test_handles_are_removable_handles():
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    for handle in (
        x.register_hook(lambda g: g * 3),
        x.register_post_accumulate_grad_hook(lambda t: None),
        y.grad_fn.register_hook(lambda i, o: None),
        y.grad_fn.register_prehook(lambda g: None),
    ):
        assert isinstance(handle, RemovableHandle)
        handle.remove()
    y.sum().backward()
    assert x.grad.tolist() == [2, 2]


def test_the_hash_of_a_tensor_is_its_id():
    x = torch.ones(2)
    assert hash(x) == id(x) and {x: 1}[x] == 1
