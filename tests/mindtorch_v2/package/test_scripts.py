"""Whole scripts written for torch, run unchanged: their losses are PyTorch's.

recorded_scripts.json holds what PyTorch 2.13 computed. Run this file with a Python that has PyTorch to record it again.
"""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
from pathlib import Path

SCRIPTS = Path(__file__).parents[2] / "scripts"
RECORDED = Path(__file__).with_name("recorded_scripts.json")
# A name for each run: the script and its arguments.
RUNS: dict[str, tuple[str, ...]] = {
    "mnist_cnn": ("mnist_cnn.py", "--epochs", "2"),
    "vae": ("vae.py",),
    "dcgan": ("dcgan.py",),
    "word_lm_lstm": ("word_lm.py", "--model", "LSTM"),
    "word_lm_transformer": ("word_lm.py", "--model", "Transformer"),
    "regression": ("regression.py",),
    "char_gpt": ("char_gpt.py",),
}


def record() -> None:
    results = {}
    for name, (script, *arguments) in RUNS.items():
        sys.argv = [script, *arguments]
        results[name] = runpy.run_path(str(SCRIPTS / script), run_name="__main__")["RESULT"]
    RECORDED.write_text(json.dumps(results, indent=0) + "\n")


if __name__ == "__main__":
    record()
    sys.exit()

import pytest  # noqa: E402  not needed to record

from mindtorch_v2 import as_torch  # noqa: E402

EXPECTED = json.loads(RECORDED.read_text())


@pytest.mark.parametrize("name", RUNS)
def test_losses_are_those_of_torch(name):
    script, *arguments = RUNS[name]
    assert as_torch.run(SCRIPTS / script, arguments)["RESULT"] == pytest.approx(EXPECTED[name], rel=1e-4, abs=1e-5)
    assert not as_torch.is_installed()


def test_a_script_from_the_command_line(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import sys, helper, torch\nfrom mindtorch_v2 import as_torch\n"
        "print(sys.argv[1:], helper.f(torch.ones(2)).item(), as_torch.is_installed(), __name__)\n"
    )
    (tmp_path / "helper.py").write_text("import torch.nn.functional as F\nf = lambda x: F.relu(x).sum()\n")
    command = [sys.executable, "-m", "mindtorch_v2.as_torch", str(script), "--flag"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.stdout.strip(), done.stderr) == ("['--flag'] 2.0 True __main__", "")


def test_the_command_line_without_a_script():
    done = subprocess.run([sys.executable, "-m", "mindtorch_v2.as_torch"], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith("usage: python -m mindtorch_v2.as_torch script.py")
