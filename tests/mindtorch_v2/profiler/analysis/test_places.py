"""The user's line: the innermost frame that is not the framework's."""

from __future__ import annotations

import pytest

from mindtorch_v2.profiler.analysis.places import user_frame


@pytest.mark.parametrize(
    ("frames", "found"),
    [
        (("torch/nn/functional.py(3): relu", "train.py(12): step"), "train.py(12)"),
        (("mindtorch_v2/nn/modules/linear.py(9): forward", "/my/mindtorch_v2/a.py(7): main"), "/my/mindtorch_v2/a.py(7)"),
        (("/usr/lib/python3/dist-packages/torch/nn/modules/module.py(1): _call", "a.py(2): f"), "a.py(2)"),
        (("<built-in method run>", "<frozen runpy>(88): _run_code", "b.py(3): g"), "b.py(3)"),
        (("torch/x.py(1): f",), None),
        ((), None),
    ],
)
def test_user_frame(frames, found):
    assert user_frame(frames) == found
