"""The user's line: the innermost frame that is not the framework's."""

from __future__ import annotations

import pytest

from mindtorch_v2.profiler.analysis.source.places import is_users, user_frame


@pytest.mark.parametrize(
    ("frames", "found"),
    [
        (("torch/nn/functional.py(3): relu", "train.py(12): step"), "train.py(12)"),
        (("mindtorch_v2/nn/modules/linear.py(9): forward", "/my/mindtorch_v2/a.py(7): main"), "/my/mindtorch_v2/a.py(7)"),
        (("/usr/lib/python3/dist-packages/torch/nn/modules/module.py(1): _call", "a.py(2): f"), "a.py(2)"),
        (("<built-in method run>", "<frozen runpy>(88): _run_code", "b.py(3): g"), "b.py(3)"),
        (("torch/x.py(1): f",), None),
        (("/env/lib/python3.12/site-packages/einops/einops.py(5): rearrange", "model.py(8): forward"), "model.py(8)"),
        (("transformers/trainer.py(9): step", "json/encoder.py(1): encode", "run.py(2): main"), "run.py(2)"),
        (("pytest/__init__.py(3): main", "/env/bin/mtprof(8): <module>"), None),
        (("mine/transformers.py(4): f",), "mine/transformers.py(4)"),
        ((), None),
    ],
)
def test_user_frame(frames, found):
    assert user_frame(frames) == found


def test_a_file_of_the_working_directory_is_the_users_whatever_its_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bisect.py").write_text("")
    is_users.cache_clear()
    assert is_users("bisect.py")
    assert not is_users("heapq.py")
    is_users.cache_clear()
