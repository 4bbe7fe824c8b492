"""The incomplete gamma functions have all their digits at any arguments, and take a bounded number of steps there."""

from __future__ import annotations

import numpy as np
import pytest

import mindtorch_v2 as torch
import mindtorch_v2.special
from mindtorch_v2._ops._support import special_math
from mindtorch_v2._ops.special import polynomials
from mindtorch_v2.distributions import Gamma

# a, x, P(a, x) and Q(a, x), computed by mpmath with 40 digits or more: on both sides of every border between two methods.
VALUES = np.array(
    [
        (1e-10, 1e-10, 0.9999999977551365, 2.244863524002411e-09),
        (1e-10, 0.5, 0.9999999999440227, 5.597735948054988e-11),
        (1e-10, 1.0, 0.9999999999780617, 2.1938393441796778e-11),
        (1e-10, 5, 0.9999999999998852, 1.1482955915436805e-13),
        (0.0001, 0.001, 0.9993670382541655, 0.0006329617458344914),
        (0.0001, 1.1, 0.9999813988732251, 1.8601126774926474e-05),
        (0.0001, 1.2, 0.9999841573172772, 1.584268272280585e-05),
        (0.01, 0.01, 0.9603474235215091, 0.039652576478490804),
        (0.01, 2, 0.9995033354627815, 0.0004966645372185268),
        (0.1, 1e-08, 0.16659398838160216, 0.8334060116183979),
        (0.1, 0.09, 0.8195932912448519, 0.18040670875514803),
        (0.1, 1.05, 0.9777177751315577, 0.022282224868442283),
        (0.1, 30, 0.9999999999999996, 4.476766580012692e-16),
        (0.5, 1e-12, 1.1283791670951364e-06, 0.9999988716208329),
        (0.5, 0.25, 0.5204998778130465, 0.4795001221869535),
        (0.5, 0.6, 0.7266783217077019, 0.27332167829229814),
        (0.5, 1.0, 0.8427007929497149, 0.15729920705028513),
        (0.5, 1.15, 0.8706260011637017, 0.12937399883629824),
        (0.5, 8, 0.9999366575163338, 6.334248366623985e-05),
        (0.5, 300, 1.0, 1.674167984691788e-132),
        (1, 1e-05, 9.999950000166666e-06, 0.9999900000499998),
        (1, 1, 0.6321205588285577, 0.36787944117144233),
        (1, 1.1, 0.6671289163019205, 0.33287108369807955),
        (1, 40, 1.0, 4.248354255291589e-18),
        (1.2, 1.05, 0.5665894514560397, 0.43341054854396033),
        (1.5, 0.1, 0.0224107022383506, 0.9775892977616494),
        (2, 1.9, 0.5662510042543584, 0.4337489957456417),
        (2, 2.1, 0.6203850724157561, 0.3796149275842439),
        (2, 600, 1.0, 1.5928883283555908e-258),
        (3.7, 3.7, 0.5691729352471954, 0.4308270647528046),
        (5, 0.001, 8.326391864211503e-18, 1.0),
        (5, 20, 0.9999830552560699, 1.6944743930067385e-05),
        (9.9, 9.8, 0.5296475947709902, 0.4703524052290098),
        (9.99, 15, 0.9305463297998304, 0.0694536702001696),
        (10, 10, 0.5420702855281478, 0.4579297144718522),
        (10.1, 4, 0.007347803889802866, 0.9926521961101972),
        (10, 700, 1.0, 1.1106924650193637e-284),
        (15, 14, 0.4295632871726278, 0.5704367128273722),
        (15, 22, 0.9523069979815548, 0.04769300201844517),
        (19.9, 19.9, 0.5298174021980775, 0.47018259780192256),
        (20, 20, 0.52974273316076, 0.47025726683923996),
        (20, 14.1, 0.08066331008269087, 0.9193366899173091),
        (20, 13.9, 0.07249245593386493, 0.9275075440661351),
        (20, 25.9, 0.8999164187604954, 0.10008358123950452),
        (20, 26.1, 0.9063552134175026, 0.09364478658249745),
        (25, 60, 0.9999998904119288, 1.0958807112599779e-07),
        (50, 30, 0.0005188914625480343, 0.999481108537452),
        (50, 70, 0.994859497541494, 0.005140502458505894),
        (100, 100, 0.5132987982791487, 0.48670120172085135),
        (100, 130.5, 0.9975848190360788, 0.0024151809639211927),
        (100, 60, 1.4815276326460468e-06, 0.9999985184723673),
        (200, 500, 1.0, 3.727281642311179e-53),
        (200, 199, 0.48115858808787204, 0.518841411912128),
        (1000, 690, 1.2213427982960391e-28, 1.0),
        (1000, 1050, 0.9413288886226819, 0.05867111137731808),
        (1000, 1400, 1.0, 8.04132540818483e-30),
        (12345.6, 12000, 0.0008536917731160069, 0.999146308226884),
        (100000.0, 99000, 0.0007574199211747679, 0.9992425800788253),
        (1000000.0, 1000000.0, 0.5001329807608725, 0.4998670192391274),
        (1000000.0, 1004000.0, 0.9999676545526865, 3.234544731347768e-05),
        (1000000.0, 990000.0, 5.446644693010809e-24, 1.0),
    ]
).T


def relative_error(got: np.ndarray, expected: np.ndarray) -> np.ndarray:
    return np.abs(got - expected) / np.abs(expected)


def test_values_in_float64() -> None:
    a, x, lower, upper = (torch.from_numpy(column.copy()) for column in VALUES)
    assert relative_error(torch.igamma(a, x).numpy(), lower.numpy()).max() < 5e-14
    assert relative_error(torch.igammac(a, x).numpy(), upper.numpy()).max() < 5e-14


def test_values_in_float32() -> None:
    exact = np.array([column for column in VALUES.T if np.array_equal(column[:2], column[:2].astype(np.float32))]).T
    a, x = (torch.from_numpy(column.astype(np.float32)) for column in exact[:2])
    normal = np.minimum(exact[2], exact[3]) > np.finfo(np.float32).tiny
    for result, expected in ((torch.igamma(a, x), exact[2]), (torch.igammac(a, x), exact[3])):
        assert result.dtype == torch.float32
        assert relative_error(result.numpy(), expected)[normal].max() < 1.2e-7


def test_gamma_cdf() -> None:
    a, x, lower, _ = VALUES
    rate = np.full_like(a, 4.0)
    cdf = Gamma(torch.from_numpy(a), torch.from_numpy(rate)).cdf(torch.from_numpy(x / 4))
    assert relative_error(cdf.numpy(), lower).max() < 5e-14


@pytest.mark.parametrize("shape", [(), (0,), (3, 1), (2, 0, 3)])
def test_shapes(shape: tuple[int, ...]) -> None:
    a = torch.full(shape, 2.0)
    assert torch.igamma(a, torch.tensor(3.0)).shape == shape
    assert torch.special.zeta(a, -torch.full(shape, 0.5)).shape == shape


class Steps:
    """How often each element was iterated on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.most = self.elements = 0
        converge = special_math.converge

        def counted(step, *state):
            def counted_step(n, *state):
                self.most = max(self.most, n)
                self.elements += state[0].size
                return step(n, *state)

            return converge(counted_step, *state)

        monkeypatch.setattr(special_math, "converge", counted)


def test_steps_are_bounded_at_any_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = Steps(monkeypatch)
    random = np.random.default_rng(0)
    a = 10 ** random.uniform(-20, 20, 20_000)
    near = a + np.sqrt(a) * random.normal(size=a.size) * 6
    for x in (np.abs(near), a * 10 ** random.uniform(-1, 1, a.size), 10 ** random.uniform(-20, 20, a.size)):
        lower, upper = special_math.gammainc(a, x), special_math.gammaincc(a, x)
        assert ((lower >= 0) & (lower <= 1) & (np.abs(lower + upper - 1) < 1e-15)).all()
    assert steps.most <= 120


def test_slow_elements_do_not_hold_up_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = Steps(monkeypatch)
    special_math.gammainc(np.array([0.1]), np.array([1.2]))
    alone = steps.elements
    steps.elements = 0
    special_math.gammainc(np.array([0.1] + [1.0] * 1000), np.array([1.2] + [1e3] * 1000))
    assert alone > 60
    assert steps.elements < alone + 8 * 1000


def test_zeta_takes_the_same_steps_at_all_negative_arguments() -> None:
    # ζ(2, q) tends to π² / sin²(πq) as q goes to minus infinity.
    got = torch.special.zeta(torch.tensor(2.0, dtype=torch.float64), torch.tensor([-1e12 - 0.5, -25.5], dtype=torch.float64))
    assert relative_error(got.numpy(), np.array([np.pi**2 - 1e-12, 9.831147601489777])).max() < 1e-15


def test_a_polynomial_stops_at_its_own_order() -> None:
    steps = 0

    def step(k, now, before, x):
        nonlocal steps
        steps += now.size
        return x * now - before

    x = np.full(101, 0.5)
    polynomials._by_recurrence(np.array([50] + [2] * 100), x, x, step)
    assert steps == 100 + 49


def test_a_polynomial_that_overflows_stops() -> None:
    got = torch.special.laguerre_polynomial_l(torch.tensor([-1e30, 0.0]), torch.tensor([10**18, 3]))
    assert got.isnan().tolist() == [True, False]
