"""Calls: whatever a program passes to the public API, the call ends, and what it raises is documented."""

from __future__ import annotations

import sys
import time
import warnings
from pathlib import Path

from attacks import attack

_ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(_ROOT / "tools"), str(_ROOT / "tests" / "helpers")]


@attack("calls with random arguments end, and raise only what is documented", small=3_000, large=200_000, timeout_s=3600)
def random_calls(size: int) -> str:
    from fuzz_calls import CHUNK, Run

    run = Run(seed=0)
    found = [each for start in range(0, size, CHUNK) for each in run.chunk(start, min(start + CHUNK, size))]
    assert not found, "\n".join(f"{each.kind}: {each.line}" for each in found)
    assert run.calls == size
    return f"{run.calls:,} calls, the slowest {run.slowest[0]:.1f} s"


@attack("special functions of any argument end in bounded time, and without a warning", small=500, large=100_000)
def special_functions(size: int) -> str:
    from special_arguments import CALLS, arguments

    import mindtorch_v2 as torch
    import mindtorch_v2.special

    slowest, name_of_slowest = 0.0, ""
    for name, call in CALLS.items():
        for dtype in (torch.float64, torch.float32):
            vectors = [torch.from_numpy(vector).to(dtype) for vector in arguments(size)]
            begun = time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                result = call(torch, *vectors)
            took = time.process_time() - begun
            assert result.numel() == size, name
            slowest, name_of_slowest = max((slowest, name_of_slowest), (took, name))
            # Most need microseconds for an element; without a bound, one element in a thousand would take seconds.
            assert took < 5 + size * 5e-4, f"{name}: {took:.1f} s for {size:,} elements"
    return f"{len(CALLS)} functions, {size:,} arguments each; the slowest {name_of_slowest}, {slowest:.2f} s"


@attack("memory that is not there is refused at once", small=1, large=20)
def huge_sizes(size: int) -> str:
    import mindtorch_v2 as torch

    calls = [
        lambda n: torch.zeros(n),
        lambda n: torch.arange(n),
        lambda n: torch.linspace(0, 1, n),
        lambda n: torch.eye(n),
        lambda n: torch.randperm(n),
        lambda n: torch.ones(2).repeat(n),
        lambda n: torch.ones(3).expand(n, 3) * 2,
        lambda n: torch.ones(2).repeat_interleave(n),
        lambda n: torch.nn.functional.one_hot(torch.tensor([n])),
        lambda n: torch.nn.functional.pad(torch.ones(2), (n, n)),
        lambda n: torch.bincount(torch.tensor([n])),
        lambda n: torch.ones(3).tensor_split(n),
        lambda n: torch.fft.fft(torch.ones(3), n),
        lambda n: torch.nn.Linear(n, n),
        lambda n: torch.hann_window(n),
        lambda n: torch.mvlgamma(torch.ones(2), n),
        lambda n: torch.tril_indices(n, n),
        lambda n: torch.vander(torch.ones(3), n),
    ]
    refused = 0
    for power in range(42, 42 + size):
        for call in calls:
            begun = time.process_time()
            try:
                call(2**power)
            except RuntimeError as error:
                assert "alloc" in str(error) or "overflowed" in str(error), error
                refused += 1
            else:
                raise AssertionError(f"{2**power} elements were made")
            assert time.process_time() - begun < 2
    return f"{refused:,} sizes from 2^42 elements on, all refused with torch's RuntimeError"
