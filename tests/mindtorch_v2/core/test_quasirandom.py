"""torch.quasirandom: points of Sobol sequences, to the bit those of torch."""

from __future__ import annotations

import pickle
import zlib

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile
from mindtorch_v2.quasirandom import SobolEngine


def checksum(tensor: torch.Tensor) -> int:
    return zlib.crc32(tensor.contiguous().numpy().tobytes())


# (dims, scrambled, seed): checksums of torch 2.13's state, of 5 points, of 3 in float64 after 100 more, the last as integers.
POINTS = {
    (1, False, None): (2470156188, 1255437294, 284558547, 2755846738),
    (1, True, 0): (2562780198, 2694710966, 298574026, 885425364),
    (2, True, 5): (4014633644, 260358711, 252774255, 1684164597),
    (7, False, None): (2051721350, 2870498495, 3440172835, 97042709),
    (40, True, 12345): (96088923, 1857857631, 370318445, 500649472),
    (111, False, None): (3354727942, 4110594637, 792786961, 4074109038),
    (1111, True, 3): (2166341686, 3212563027, 3019788741, 2053057895),
    (5000, False, None): (597285470, 110222349, 3428350191, 1746381296),
    (21201, False, None): (46336520, 2745968159, 3716817173, 4274464405),
}


@pytest.mark.parametrize("case", POINTS)
def test_points_are_those_of_torch(case):
    dims, scramble, seed = case
    engine = SobolEngine(dims, scramble, seed)
    state, five, later, integers = POINTS[case]
    assert checksum(engine.sobolstate) == state
    assert checksum(engine.draw(5)) == five
    assert checksum(engine.fast_forward(100).draw(3, dtype=torch.float64)) == later
    assert checksum(engine.quasi) == integers
    assert engine.num_generated == 108


@pytest.mark.parametrize("scramble", [False, True])
@pytest.mark.parametrize("skipped", [0, 1, 2, 3, 7, 8, 1000])
def test_passing_over_points_is_drawing_them(scramble, skipped):
    engine, other = (SobolEngine(4, scramble, seed=1) for _ in range(2))
    if skipped:
        engine.draw(skipped)
    other.fast_forward(skipped)
    assert engine.draw(6).tolist() == other.draw(6).tolist()
    assert engine.reset().draw(1).tolist() == SobolEngine(4, scramble, seed=1).draw(1).tolist()


def test_without_a_seed_the_default_generator_is_drawn_from():
    torch.manual_seed(9)
    first = SobolEngine(4, scramble=True).draw(2)
    second = SobolEngine(4, scramble=True).draw(2)
    torch.manual_seed(9)
    assert SobolEngine(4, scramble=True).draw(2).tolist() == first.tolist() != second.tolist()


def test_out_dtype_and_copies():
    engine = SobolEngine(2)
    out = torch.empty(0, dtype=torch.float64)
    assert engine.draw(3, out=out) is out
    assert out.tolist() == [[0, 0], [0.5, 0.5], [0.75, 0.25]]
    assert pickle.loads(pickle.dumps(engine)).draw().tolist() == engine.draw().tolist() == [[0.25, 0.75]]
    torch.set_default_dtype(torch.float64)
    try:
        assert engine.draw().dtype is torch.float64
    finally:
        torch.set_default_dtype(torch.float32)


def test_powers_of_two():
    engine = SobolEngine(1)
    assert engine.draw_base2(2).shape == (4, 1)
    with pytest.raises(ValueError, match=r"4 points have been previously generated, then: n=4\+2\*\*0=5\."):
        engine.draw_base2(0)
    assert repr(SobolEngine(3, True, 7)) == "SobolEngine(dimension=3, scramble=True, seed=7)"


def test_what_is_refused():
    for dims in (0, 21202):
        with pytest.raises(ValueError, match=r"Supported range of dimensionality for SobolEngine is \[1, 21201\]"):
            SobolEngine(dims)
    engine = SobolEngine(2)
    with pytest.raises(NotImplementedError, match="\"_sobol_engine_draw\" not implemented for 'Half'"):
        engine.draw(2, dtype=torch.float16)
    with pytest.raises(RuntimeError, match="negative dimension -2"):
        engine.draw(-1)
    with pytest.raises(RuntimeError, match="has 1073741824 points"):
        engine.fast_forward(2**30).draw()
    with pytest.raises(RuntimeError, match="quasi needs to be of type Long"):
        torch._sobol_engine_draw(torch.zeros(2), 1, engine.sobolstate, 2, 0, None)
    with pytest.raises(RuntimeError, match=r"the state of 3 dims has the shape \[3, 30\]"):
        torch._sobol_engine_draw(engine.quasi, 1, engine.sobolstate, 3, 0, None)


def test_a_profile_shows_torchs_ops():
    with profile() as prof:
        SobolEngine(2, scramble=True, seed=3).draw(2)
    names = [event.name for event in prof.events() if event.cpu_parent is None]
    assert [name for name in names if "sobol" in name] == [
        "aten::_sobol_engine_initialize_state_",
        "aten::_sobol_engine_scramble_",
        "aten::_sobol_engine_draw",
    ]
