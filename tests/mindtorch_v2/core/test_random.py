"""Random numbers: bit for bit those of PyTorch, and generators whose states go back and forth.

recorded_random.json holds what PyTorch gave. Run this file with a Python that has PyTorch to record it again.
"""

from __future__ import annotations

import copy
import hashlib
import importlib
import json
import pickle
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

RECORDED = Path(__file__).with_name("recorded_random.json")
torch = importlib.import_module("torch" if __name__ == "__main__" else "mindtorch_v2")

Case = Callable[[], Any]


def cases() -> dict[str, Case]:
    """What is drawn, in the order in which it is drawn: each case goes on where the one before it has stopped."""
    empty = torch.empty
    weights = torch.linspace(0.1, 1, 12)
    made: dict[str, Case] = {
        "rand": lambda: torch.rand(3, 5),
        "randn": lambda: torch.randn(100),
        "randn in one group": lambda: torch.randn(4, 4),
        "randn with a tail": lambda: torch.randn(37),
        "randn one by one": lambda: torch.randn(3),
        "randn, one waiting": lambda: torch.randn(5),
        "randn, many": lambda: torch.randn(40003),
        "normal_ scaled": lambda: empty(50).normal_(0.3, 1.7),
        "normal_ few": lambda: empty(5).normal_(0.3, 1.7),
        "normal_ double": lambda: empty(50, dtype=torch.float64).normal_(0.3, 1.7),
        "normal_ complex": lambda: empty(9, dtype=torch.complex64).normal_(0.3, 1.7),
        "normal_ transposed": lambda: empty(5, 7).t().normal_(),
        "normal_ with gaps": lambda: empty(80)[::2].normal_(),
        "uniform_ transposed": lambda: empty(5, 7).t().uniform_(-1.3, 2.1),
        "uniform_ double": lambda: empty(20, dtype=torch.float64).uniform_(-1.3, 2.1),
        "uniform_ half": lambda: empty(50, dtype=torch.float16).uniform_(-1.3, 2.1),
        "randint float": lambda: torch.randint(0, 7, (9,), dtype=torch.float32),
        "randint byte": lambda: torch.randint(0, 256, (9,), dtype=torch.uint8),
        "randint_like": lambda: torch.randint_like(torch.zeros(4, 3).t(), 2, 9),
        "rand_like": lambda: torch.rand_like(torch.zeros(4, 3).t()),
        "randn_like": lambda: torch.randn_like(torch.zeros(4, 5, dtype=torch.float64)),
        "random_ to": lambda: empty(13).random_(77),
        "random_ from": lambda: empty(13).random_(-5, 77),
        "random_ whole range": lambda: empty(5, dtype=torch.int64).random_(-(2**63), None),
        "random_ from on": lambda: empty(5).random_(10, None),
        "bernoulli": lambda: torch.bernoulli(torch.linspace(0, 1, 40)),
        "bernoulli double": lambda: torch.bernoulli(torch.linspace(0, 1, 40, dtype=torch.float64)),
        "bernoulli p": lambda: torch.bernoulli(torch.zeros(40), 0.3),
        "bernoulli_": lambda: empty(40).bernoulli_(0.3),
        "bernoulli_ of chances": lambda: empty(6, 4, dtype=torch.int64).t().bernoulli_(weights.repeat(2).view(4, 6)),
        "multinomial": lambda: torch.multinomial(weights.view(3, 4), 2),
        "multinomial one": lambda: torch.multinomial(weights.view(3, 4), 1),
        "multinomial replacing": lambda: torch.multinomial(weights.view(3, 4), 9, replacement=True),
        "multinomial double": lambda: torch.multinomial(weights.double(), 9, replacement=True),
        "exponential_": lambda: empty(30).exponential_(2.5),
        "cauchy_": lambda: empty(30, dtype=torch.float64).cauchy_(1, 2),
        "log_normal_": lambda: empty(30).log_normal_(0.1, 0.3),
        "geometric_": lambda: empty(30).geometric_(0.3),
        "normal of numbers": lambda: torch.normal(1.0, 2.0, (40,)),
        "normal of means": lambda: torch.normal(weights, 2.0),
        "normal of deviations": lambda: torch.normal(1.0, weights),
        "normal of both": lambda: torch.normal(weights, weights),
        "poisson": lambda: torch.poisson(torch.linspace(0, 60, 40)),
        "binomial": lambda: torch.binomial(torch.full((40,), 50.0), torch.linspace(0, 1, 40)),
        "gamma": lambda: torch._standard_gamma(weights.double() * 3),
        "dirichlet": lambda: torch._sample_dirichlet(weights.double().view(3, 4)),
        "own generator": lambda: torch.rand(4, generator=torch.Generator().manual_seed(2**40 + 5)),
        "negative seed": lambda: torch.rand(4, generator=torch.Generator().manual_seed(-7)),
    }
    for name in ("float64", "float16", "bfloat16", "complex64"):
        dtype = getattr(torch, name)
        made[f"rand {name}"] = lambda dtype=dtype: torch.rand(33, dtype=dtype)
        made[f"randn {name}"] = lambda dtype=dtype: torch.randn(7, dtype=dtype)
        made[f"randn {name} grouped"] = lambda dtype=dtype: torch.randn(40, dtype=dtype)
    for name in ("int8", "uint8", "int16", "int32", "int64", "float32", "float64", "float16", "bfloat16", "bool"):
        dtype = getattr(torch, name)
        made[f"random_ {name}"] = lambda dtype=dtype: empty(13, dtype=dtype).random_()
    for high in (5, 2**28 - 4, 2**28 - 3, 2**40):
        made[f"randint {high}"] = lambda high=high: torch.randint(-3, high, (20,))
    for n in (0, 1, 2, 10, 777):
        made[f"randperm {n}"] = lambda n=n: torch.randperm(n)
    return made


def observed(value: Any) -> list[Any]:
    """A tensor's dtype, shape and bytes, and the state in which it left the generator."""
    plain = value.float() if value.dtype in (torch.float16, torch.bfloat16) else value
    data = np.ascontiguousarray(plain.numpy()).tobytes()
    state = hashlib.md5(torch.get_rng_state().numpy().tobytes()).hexdigest()
    return [str(value.dtype), list(value.shape), hashlib.md5(data).hexdigest(), plain.reshape(-1)[:3].tolist(), state]


def observe_all() -> dict[str, list[Any]]:
    torch.manual_seed(123)
    return json.loads(json.dumps({name: observed(case()) for name, case in cases().items()}, default=str))


if __name__ == "__main__":
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(seen)}" for name, seen in observe_all().items())
    RECORDED.write_text(f"{{\n{lines}\n}}\n")
    raise SystemExit

import pytest  # noqa: E402  the recording needs PyTorch and nothing else


def test_every_number_is_torch_s() -> None:
    assert observe_all() == json.loads(RECORDED.read_text())


@pytest.mark.parametrize("draw", ["rand", "randn"])
@pytest.mark.parametrize("sizes", [(3, 16, 5, 624, 20, 16, 9000, 1)])
def test_numbers_do_not_depend_on_what_was_drawn_ahead(draw: str, sizes: tuple[int, ...]) -> None:
    torch.manual_seed(5)
    seen = []
    for n in sizes:
        state = torch.get_rng_state()
        values = getattr(torch, draw)(n)
        torch.set_rng_state(state)  # starts a generator that has looked ahead nowhere
        assert getattr(torch, draw)(n).equal(values)
        seen.append(values)
    torch.manual_seed(5)
    assert all(getattr(torch, draw)(n).equal(values) for n, values in zip(sizes, seen, strict=True))


def test_state_has_torch_s_layout() -> None:
    generator = torch.Generator().manual_seed(0)
    words = generator.get_state().numpy().view(np.uint64)
    assert (len(words), words[0], words[1], words[2]) == (632, 0, 2**32 + 1, 0)
    torch.rand(3, generator=generator)
    words = generator.get_state().numpy().view(np.uint64)
    assert (words[1], words[2]) == (2**32 + 622, 3)
    torch.randn(3, generator=generator)  # leaves one normal waiting
    words = generator.get_state().numpy().view(np.uint64)
    assert words[630] == 1 and words.view(np.float64)[628] != 0


@pytest.mark.parametrize("copy_of", [lambda g: pickle.loads(pickle.dumps(g)), copy.deepcopy, lambda g: g.clone_state()])
def test_copies_of_a_generator_go_on_alike(copy_of: Any) -> None:
    generator = torch.Generator().manual_seed(3)
    torch.randn(700, generator=generator)
    torch.randn(3, generator=generator)
    other = copy_of(generator)
    assert other.initial_seed() == 3
    assert torch.randn(5, generator=other).equal(torch.randn(5, generator=generator))


def test_seeding_forgets_the_normal_that_waits() -> None:
    torch.manual_seed(1)
    first = torch.randn(3)
    torch.manual_seed(1)
    assert torch.randn(3).equal(first)


def test_fork_rng_leaves_no_trace() -> None:
    random = importlib.import_module("mindtorch_v2.random")
    torch.manual_seed(2)
    with random.fork_rng():
        inside = torch.rand(2)
    assert torch.rand(2).equal(inside)
    with random.fork_rng(enabled=False):
        torch.rand(2)
    assert not torch.rand(2).equal(inside)


def test_seed_and_initial_seed() -> None:
    seed = torch.seed()
    assert torch.initial_seed() == seed
    assert torch.manual_seed(-1).initial_seed() == 2**64 - 1
    assert torch.manual_seed(11) is torch.default_generator


def test_threads_share_a_generator_without_drawing_anything_twice() -> None:
    torch.manual_seed(0)
    drawn: list[Any] = []

    def draw() -> None:
        drawn.extend(torch.rand(7).numpy() for _ in range(400))

    threads = [threading.Thread(target=draw) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    torch.manual_seed(0)
    expected = torch.rand(7 * 1600).numpy()
    assert sorted(np.concatenate(drawn).tolist()) == sorted(expected.tolist())


def test_uniform_half_never_reaches_its_upper_bound() -> None:
    torch.manual_seed(0)
    values = torch.rand(100_000, dtype=torch.float16)
    assert float(values.max()) < 1 and float(values.min()) >= 0


def test_in_place_fills_count_as_changes_and_pass_no_gradient() -> None:
    x = torch.ones(3, requires_grad=True)
    y = (x * 2).normal_()
    assert y.grad_fn.name() == "NormalBackward0"
    y.sum().backward()
    assert x.grad.tolist() == [0, 0, 0]
    z = torch.ones(3)
    before = z._version
    z.uniform_()
    assert z._version == before + 1


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: torch.randint(5, 5, (1,)), RuntimeError, "from=5 >= to=5"),
        (lambda: torch.randint(0, 300, (1,), dtype=torch.uint8), RuntimeError, "to - 1 is out of bounds for unsigned char"),
        (lambda: torch.randint(-5, 3, (1,), dtype=torch.uint8), RuntimeError, "from is out of bounds for unsigned char"),
        (lambda: torch.rand(2, dtype=torch.int64), NotImplementedError, "not implemented for 'Long'"),
        (lambda: torch.randn(2, dtype=torch.int64), NotImplementedError, "not implemented for 'Long'"),
        (lambda: torch.rand(-4, -4), RuntimeError, "negative dimension -4"),
        (lambda: torch.empty(2).normal_(0, -1), RuntimeError, "std >= 0.0"),
        (lambda: torch.empty(2).uniform_(2, 1), RuntimeError, "from=2 > to=1"),
        (lambda: torch.empty(2).exponential_(0), RuntimeError, "lambda > 0.0"),
        (lambda: torch.empty(2, dtype=torch.int64).exponential_(), RuntimeError, "specified Long"),
        (lambda: torch.empty(2).bernoulli_(2.0), RuntimeError, r"p to be in \[0, 1\]"),
        (lambda: torch.bernoulli(torch.tensor([2.0])), RuntimeError, "p_in >= 0 && p_in <= 1"),
        (lambda: torch.empty(2).geometric_(1), RuntimeError, r"p to be in \(0, 1\)"),
        (lambda: torch.empty(2).cauchy_(0, -1), RuntimeError, "sigma > 0.0"),
        (lambda: torch.randperm(-1), RuntimeError, "negative dimension"),
        (lambda: torch.randperm(300, dtype=torch.uint8), RuntimeError, "without overflow"),
        (lambda: torch.multinomial(torch.ones(2), 3), RuntimeError, "without replacement"),
        (lambda: torch.multinomial(torch.zeros(2), 1), RuntimeError, "sum of probabilities <= 0"),
        (lambda: torch.multinomial(torch.tensor([-1.0, 1.0]), 1), RuntimeError, "element < 0"),
        (lambda: torch.multinomial(torch.ones(2, 2, 2), 1), RuntimeError, "1 or 2 dim"),
        (lambda: torch.normal(torch.zeros(2), torch.tensor([-1.0, 1.0])), RuntimeError, "elements of std >= 0.0"),
        (lambda: torch.set_rng_state(torch.zeros(3)), TypeError, "ByteTensor"),
        (lambda: torch.set_rng_state(torch.zeros(3, dtype=torch.uint8)), RuntimeError, "size 5056"),
        (lambda: torch.Generator().manual_seed(1.5), RuntimeError, "expected a long, but got float"),
        (lambda: torch.manual_seed(2**64), ValueError, "Overflow"),
    ],
)
def test_errors_are_torch_s(call: Case, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call()


def test_long_permutations_are_those_of_swaps_one_by_one() -> None:
    from mindtorch_v2._ops.random import integers

    random = np.random.RandomState(0)
    for n in (*[2, 3, 4, 5] * 50, 30, 1000):
        others = random.randint(np.arange(n - 1), n)
        assert np.array_equal(integers._shuffled(n, others), integers._shuffled_one_by_one(n, others))
