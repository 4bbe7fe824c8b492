"""Floating-point errors: the kernels never warn of them, and a program's own NumPy code does as before."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import warnings

import numpy as np
import pytest

import mindtorch_v2 as torch
import mindtorch_v2.nn.functional as F

QUIET = {
    "divide by zero": lambda: torch.log(torch.zeros(1)),
    "0 / 0": lambda: torch.zeros(2) / torch.zeros(2),
    "overflow": lambda: torch.exp(torch.full((2,), 1000.0)),
    "invalid": lambda: torch.sqrt(torch.tensor([-1.0])),
    "in place": lambda: torch.ones(2).div_(0),
    "softmax of -inf": lambda: F.softmax(torch.full((2, 3), -float("inf")), dim=1),
    "backward": lambda: torch.zeros(2, requires_grad=True).log().sum().backward(),
    "a cast": lambda: torch.tensor([float("nan"), 1e30]).to(torch.int32),
    "to half": lambda: torch.tensor([1e10]).half(),
    "bfloat16": lambda: torch.log(torch.zeros(2, dtype=torch.bfloat16)),
    "mean of nothing": lambda: torch.zeros(0).mean(),
    "var of nothing": lambda: torch.zeros(0, 3).var(0, correction=0),
    "by a number": lambda: torch.tensor([1, 2]) // 0.0,
    "std of inf": lambda: torch.tensor([float("inf"), 1.0]).std(),
    "matmul": lambda: torch.full((2, 2), float("inf")) @ torch.zeros(2, 2),
    "pow": lambda: torch.tensor([0.0]) ** -1,
}


@pytest.mark.filterwarnings("ignore:var.*degrees of freedom is <= 0:UserWarning")  # torch's own, of the case without elements
@pytest.mark.parametrize("what", QUIET)
def test_kernels_are_silent_whatever_the_filters_are(what):
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        QUIET[what]()


def test_own_numpy_code_warns_in_numpys_words():
    with pytest.warns(RuntimeWarning, match="^divide by zero encountered in log$") as caught:
        np.log(np.zeros(1))
    assert caught[0].filename == __file__
    with pytest.warns(RuntimeWarning, match="^invalid value encountered in"):
        np.std(np.array([np.inf, 1.0]))


def test_a_kernel_of_the_programs_own_warns():
    class Log(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return torch.from_numpy(np.log(x.detach().numpy()))

        @staticmethod
        def backward(ctx, g):
            return g

    with pytest.warns(RuntimeWarning, match="divide by zero"):
        Log.apply(torch.zeros(1, requires_grad=True))


def test_underflow_stays_silent_and_errstate_is_obeyed():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.exp(np.array([-1e4]))
        with np.errstate(all="ignore"):
            np.log(np.zeros(1))
    with np.errstate(all="raise"), pytest.raises(FloatingPointError):
        np.log(np.zeros(1))


def test_threads_with_a_state_are_silent_too():
    failed = []

    def work():
        try:
            with torch.no_grad():
                torch.log(torch.zeros(1))
        except RuntimeWarning as error:
            failed.append(error)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert not failed


PROGRAM = """
import threading, warnings
import numpy as np
import mindtorch_v2
for text in "a file cannot be written", "divide by zero encountered in log":
    warnings.warn_explicit(text, RuntimeWarning, "x.py", 1, module="mindtorch_v2.profiler.live.push")
"""


def test_only_numpys_warnings_are_left_out_of_the_packages_own():
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONWARNINGS"}
    shown = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, env=environment).stderr
    assert "a file cannot be written" in shown
    assert "divide by zero" not in shown
