"""Arguments in orders that torch deprecates."""

from __future__ import annotations

import pytest

import mindtorch_v2 as torch
from mindtorch_v2._dispatch import deprecated_calls

x, m, b = torch.full((2,), 3.0), torch.full((2, 2), 3.0), torch.full((1, 2, 2), 3.0)

CALLS = [
    (lambda: torch.add(x, 2, x), lambda: torch.add(x, x, alpha=2)),
    (lambda: torch.add(x, torch.tensor(2), 5), lambda: torch.add(x, 5, alpha=2)),
    (lambda: torch.add(x, 2, 5), lambda: torch.add(x, 5, alpha=2)),
    (lambda: x.add(2, x), lambda: torch.add(x, x, alpha=2)),
    (lambda: x.clone().add_(2, x), lambda: torch.add(x, x, alpha=2)),
    (lambda: torch.sub(x, 2, x), lambda: torch.sub(x, x, alpha=2)),
    (lambda: torch.addcmul(x, 2, x, x), lambda: torch.addcmul(x, x, x, value=2)),
    (lambda: x.clone().addcdiv_(2, x, x), lambda: torch.addcdiv(x, x, x, value=2)),
    (lambda: torch.addmm(2, m, 4, m, m), lambda: torch.addmm(m, m, m, beta=2, alpha=4)),
    (lambda: torch.addmm(2, m, m, m), lambda: torch.addmm(m, m, m, beta=2)),
    (lambda: m.addmm(2, 4, m, m), lambda: torch.addmm(m, m, m, beta=2, alpha=4)),
    (lambda: torch.addmv(2, x, 4, m, x), lambda: torch.addmv(x, m, x, beta=2, alpha=4)),
    (lambda: torch.addr(2, m, 4, x, x), lambda: torch.addr(m, x, x, beta=2, alpha=4)),
    (lambda: torch.baddbmm(2, b, 4, b, b), lambda: torch.baddbmm(b, b, b, beta=2, alpha=4)),
    (lambda: torch.addbmm(2, m, 4, b, b), lambda: torch.addbmm(m, b, b, beta=2, alpha=4)),
    (lambda: torch.add(x, 2, x, out=torch.empty(2)), lambda: torch.add(x, x, alpha=2)),
]


@pytest.mark.parametrize(("old", "new"), CALLS)
@pytest.mark.filterwarnings("ignore:This overload of")
def test_old_orders_mean_the_new(old, new):
    assert torch.equal(old(), new())


def test_the_first_call_warns(monkeypatch):
    monkeypatch.setattr(deprecated_calls._Said, "once", False)
    with pytest.warns(UserWarning) as caught:
        torch.add(x, 2, x)
        torch.sub(x, 2, x)
    assert [str(w.message) for w in caught] == [
        "This overload of add is deprecated:\n\tadd(Tensor input, Number alpha, Tensor other, *, Tensor out = None)\n"
        "Consider using one of the following signatures instead:\n"
        "\tadd(Tensor input, Tensor other, *, Number alpha = 1, Tensor out = None)"
    ]


@pytest.mark.parametrize("call", [lambda: torch.add(x, x, 2), lambda: torch.addcmul(x, x, x, 2), lambda: torch.add(x, 2, x, 3)])
def test_what_fits_no_order(call):
    with pytest.raises(TypeError, match=r"\(\) takes \d positional arguments but \d were given"):
        call()


def test_a_profile_has_one_row():
    with torch.profiler.profile() as prof:
        deprecated_calls._Said.once = True
        torch.add(x, 2, x)
    assert [e.name for e in prof.events()].count("aten::add") == 1
