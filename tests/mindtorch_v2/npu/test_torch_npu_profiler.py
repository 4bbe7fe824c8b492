"""torch_npu's names: options, schedules, folders, marks. A device is needed by the last test only."""

from __future__ import annotations

import gc
import json
import shutil
import subprocess
import sys
import threading
import warnings

import pytest

import mindtorch_v2 as torch
from mindtorch_v2._backends.npu import mstx as library
from mindtorch_v2._dispatch import observer
from mindtorch_v2.npu import mstx
from mindtorch_v2.npu import profiler as npu_profiler
from mindtorch_v2.npu.profiler import _ExperimentalConfig as Config
from mindtorch_v2.profiler import TraceError, load
from mindtorch_v2.profiler import profile as plain_profile

pytestmark = pytest.mark.filterwarnings("ignore:Profiler won't be using warmup")


def scopes(profiled):
    store = getattr(profiled, "store", None) or profiled._recording()
    return [store.names[name] for name, kind in zip(store.name, store.kind, strict=True) if kind == observer.SCOPE]


def work():
    return torch.ones(3).mul(2)


# ---------------------------------------------------------------- options


@pytest.mark.parametrize(
    "options, said",
    [
        ({"profiler_level": "Level1"}, "counters of AI Cores"),
        ({"l2_cache": True}, "l2_cache"),
        ({"record_op_args": True}, "record_op_args"),
        ({"op_attr": True}, "op_attr"),
        ({"host_sys": ["cpu"]}, "host_sys"),
        ({"sys_io": True}, "sys_io"),
        ({"sys_interconnection": True}, "sys_interconnection"),
        ({"profiler_level": 3}, "Invalid parameter profiler_level, reset it to Level0"),
        ({"aic_metrics": "speed"}, "Invalid parameter aic_metrics"),
        ({"aic_metrics": "ACL_AICORE_MEMORY_UB"}, "Please use level1 or level2"),
        ({"mstx": 1}, "Invalid parameter mstx"),
        ({"export_type": "xml"}, "'xml' is none of text, db"),
        ({"host_sys": ["gpu"]}, "'gpu' is none of cpu"),
        ({"gc_detect_threshold": -1}, "gc_detect_threshold"),
        ({"mstx": True, "mstx_domain_include": ["a"], "mstx_domain_exclude": ["b"]}, "cannot both be set"),
        ({"mstx_domain_include": ["a"]}, "need mstx=True"),
        ({"mstx": True, "mstx_domain_include": "a"}, "must be a list of str"),
    ],
)
def test_options_that_do_nothing_say_so(options, said):
    with pytest.warns(RuntimeWarning, match=said):
        Config(**options)


def test_options_that_are_kept():
    config = Config(export_type=["db", "text"], gc_detect_threshold=2, mstx=True, mstx_domain_exclude=["b"])
    assert config.export_type == ["db", "text"] and config.gc_detect_threshold == 2 and config.with_gc
    assert config.wants_domain("a") and not config.wants_domain("b")
    with pytest.raises(TypeError, match="bandwidth"):
        Config(bandwidth=True)
    with pytest.raises(TypeError, match=r"torch_npu.profiler._ExperimentalConfig"):
        npu_profiler.profile(experimental_config=torch.profiler._ExperimentalConfig())


def test_schedule():
    schedule = npu_profiler.Schedule(wait=2, active=2, warmup=1, repeat=1, skip_first=1, skip_first_wait=1)
    assert [schedule(step).name for step in range(5)] == ["NONE", "WARMUP", "RECORD", "RECORD_AND_SAVE", "NONE"]
    with pytest.warns(UserWarning, match="Invalid parameter active, reset it to 1"):
        assert npu_profiler.schedule(wait=0, active=0, warmup=1).active == 1
    with pytest.raises(ValueError, match="not less than 0"):
        schedule(-1)


# ---------------------------------------------------------------- folders


def recorded(folder, *, config=None, handler=None, **options):
    handler = handler or npu_profiler.tensorboard_trace_handler(folder, "me")
    with npu_profiler.profile(on_trace_ready=handler, experimental_config=config, **options) as prof:
        prof.add_metadata("who", "me")
        work()
        gc.collect()
    return prof


@pytest.mark.parametrize("forms", [["text"], ["db"], ["text", "db"]])
def test_a_handler_writes_folders(tmp_path, forms):
    prof = recorded(tmp_path, config=Config(export_type=forms, gc_detect_threshold=0), record_shapes=True)
    (folder,) = tmp_path.iterdir()
    assert folder.name.startswith("me_") and folder.name.endswith("_ascend_pt")
    files = {path.name for path in (folder / "ASCEND_PROFILER_OUTPUT").iterdir()}
    assert ("trace_view.json" in files) == ("text" in forms) and ("analysis.db" in files) == ("db" in forms)
    info = json.loads((folder / "profiler_info.json").read_text())["config"]
    assert info["experimental_config"]["_export_type"] == forms and info["common_config"]["record_shapes"]
    again = load(folder)
    assert again.recovery.intact, again.recovery
    assert again.store.metadata["who"] == "me"
    names = {event.name: event.cpu_time_total for event in again.events()}
    assert names["aten::mul"] == pytest.approx(next(e.cpu_time_total for e in prof.events() if e.name == "aten::mul"))
    assert "GC" in scopes(again)


def test_garbage_collections_below_the_threshold_are_left_out(tmp_path):
    recorded(tmp_path, config=Config(gc_detect_threshold=60_000))
    assert "GC" not in scopes(load(next(tmp_path.iterdir())))


def test_what_was_only_recorded_is_read_and_analyzed_later(tmp_path):
    handler = npu_profiler.tensorboard_trace_handler(tmp_path, "me", analyse_flag=False)
    recorded(tmp_path, config=Config(export_type="db"), handler=handler)
    (folder,) = tmp_path.iterdir()
    assert not (folder / "ASCEND_PROFILER_OUTPUT").exists()
    before = [event.name for event in load(folder).events()]
    shutil.copytree(folder, tmp_path / "copy_ascend_pt")
    assert npu_profiler.analyse(tmp_path / "copy_ascend_pt", export_type="text") == [str(tmp_path / "copy_ascend_pt")]
    assert (tmp_path / "copy_ascend_pt" / "ASCEND_PROFILER_OUTPUT" / "trace_view.json").exists()
    (tmp_path / "bare_ascend_pt").mkdir()
    with pytest.warns(RuntimeWarning, match="bare_ascend_pt could not be analyzed: .* raw data of CANN"):
        assert npu_profiler.analyse(tmp_path, max_process_number=1) == [str(folder)]
    assert (folder / "ASCEND_PROFILER_OUTPUT" / "analysis.db").exists()
    assert [event.name for event in load(folder).events()] == before
    with pytest.raises(TraceError, match="has none in it"):
        npu_profiler.analyse(tmp_path / "copy_ascend_pt" / "ASCEND_PROFILER_OUTPUT")
    for wrong in ({"max_process_number": 0}, {"export_type": "xml"}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            npu_profiler.analyse(tmp_path, **wrong)


def test_the_recording_stays_without_simplification_and_threads_write_aside(tmp_path, monkeypatch):
    monkeypatch.setenv("ASCEND_WORK_PATH", str(tmp_path))
    handler = npu_profiler.tensorboard_trace_handler(async_mode=True)
    recorded(tmp_path, config=Config(data_simplification=False), handler=handler)
    for thread in threading.enumerate():
        if thread.name == "profiler folder":
            thread.join()
    (folder,) = (tmp_path / "profiling_data").iterdir()
    assert (folder / "FRAMEWORK" / "recording.mtp").exists() and (folder / "ASCEND_PROFILER_OUTPUT").exists()


def test_threads_of_the_program_are_recorded():
    with npu_profiler.profile() as prof:
        npu_profiler.profile.enable_profiler_in_child_thread(record_shapes=False)
        with pytest.raises(NotImplementedError, match="with_stack=True"):
            npu_profiler.profile.enable_profiler_in_child_thread(with_stack=True)
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        npu_profiler.profile.disable_profiler_in_child_thread()
    assert "aten::mul" in {event.name for event in prof.events()}
    with pytest.raises(RuntimeError, match="no profile is running"):
        npu_profiler.profile.enable_profiler_in_child_thread()


# ---------------------------------------------------------------- marks


def marked():
    mstx.mark("now")
    mstx().mark("here", domain="data")
    first = mstx.range_start("outer")
    second = mstx.range_start("inner", domain="data")
    mstx.range_end(first)  # ranges need not be nested
    mstx.range_end(second, "data")
    assert mstx.range_push("a") == 0 and mstx.range_push("b") == 1
    assert mstx.range_pop() == 1 and mstx.range_pop() == 0
    with mstx.annotate("block"):
        pass

    @mstx.annotate()
    def called():
        return 1

    @mstx.mstx_range("ranged", domain="data")
    def ranged():
        return 2

    assert called() + ranged() == 3


OF_DEFAULT = ["now", "outer", "a", "b", "block", "called"]
OF_DATA = ["[data] here", "[data] inner", "[data] ranged"]


def test_marks_are_user_annotations():
    with plain_profile() as prof:
        marked()
    assert sorted(scopes(prof)) == sorted([*OF_DEFAULT, *OF_DATA])


@pytest.mark.parametrize(
    "options, expected",
    [
        ({}, []),
        ({"mstx": True}, [*OF_DEFAULT, *OF_DATA]),
        ({"msprof_tx": True, "mstx_domain_include": ["data"]}, OF_DATA),
        ({"mstx": True, "mstx_domain_exclude": ["data"]}, OF_DEFAULT),
    ],
)
def test_options_say_which_marks_are_recorded(options, expected):
    with npu_profiler.profile(experimental_config=Config(**options)) as prof:
        marked()
    assert sorted(scopes(prof)) == sorted(expected)


def test_marks_that_cannot_be():
    with pytest.warns(UserWarning, match="no open range 77 in domain 'default'"):
        mstx.range_end(77)
    number = mstx.range_start("x", domain="data")
    with pytest.warns(UserWarning, match=f"no open range {number} in domain 'default'"):
        mstx.range_end(number)
    mstx.range_end(number, "data")
    with pytest.warns(UserWarning, match="this thread has no open range"):
        assert mstx.range_pop("other") == -1
    with pytest.raises(TypeError, match="stream must be a torch.npu.Stream, not int"):
        mstx.mark("x", 3)
    with pytest.raises(TypeError, match="message and domain must be str"):
        mstx.range_start(3)


def test_the_library_of_cann_is_told(tmp_path, monkeypatch):
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler")
    source = """
    #include <stdint.h>
    #include <stdio.h>
    #include <stdlib.h>
    static void say(const char *what, const char *text, void *where) {
        FILE *file = fopen(getenv("TOLD"), "a"); fprintf(file, "%s %s %p\\n", what, text, where); fclose(file);
    }
    void *mstxDomainCreateA(const char *name) { say("domain", name, 0); return (void *)0x20; }
    void mstxDomainMarkA(void *domain, const char *text, void *stream) { say("dmark", text, domain); }
    uint64_t mstxDomainRangeStartA(void *domain, const char *text, void *s) { say("dstart", text, domain); return 1ull << 40; }
    void mstxDomainRangeEnd(void *domain, uint64_t id) { say("dend", "", (void *)id); }
    void mstxMarkA(const char *text, void *stream) { say("mark", text, stream); }
    uint64_t mstxRangeStartA(const char *text, void *stream) { say("start", text, stream); return 5; }
    void mstxRangeEnd(uint64_t id) { say("end", "", (void *)id); }
    """
    (tmp_path / "marks.c").write_text(source)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", tmp_path / library.LIBRARY, tmp_path / "marks.c"], check=True)
    monkeypatch.setenv("TOLD", str(tmp_path / "told"))
    marks = library.Marks(tmp_path / library.LIBRARY)
    marks.mark("now\0", 16, "default")
    marks.range_end(marks.range_start("r", None, "default"), "default")
    marks.mark("x", None, "data")
    marks.range_end(marks.range_start("y", None, "data"), "data")
    told = (tmp_path / "told").read_text().splitlines()
    assert told == [
        "mark now  0x10",
        "start r (nil)",
        "end  0x5",
        "domain data (nil)",
        "dmark x 0x20",
        "dstart y 0x20",
        "dend  0x10000000000",
    ]


# ---------------------------------------------------------------- scripts written for torch_npu

SCRIPT = """
import sys
import torch, torch_npu
from torch_npu.profiler import dynamic_profile as dp
from torch_npu.profiler.profiler import analyse

config = torch_npu.profiler._ExperimentalConfig(profiler_level=torch_npu.profiler.ProfilerLevel.Level0, mstx=True)
with torch_npu.profiler.profile(
    activities=[torch_npu.profiler.ProfilerActivity.CPU],
    schedule=torch_npu.profiler.schedule(wait=0, warmup=1, active=1, repeat=1),
    on_trace_ready=torch_npu.profiler.tensorboard_trace_handler(sys.argv[1]),
    experimental_config=config,
) as prof:
    for _ in range(3):
        torch_npu.npu.mstx.mark("step")
        torch.ones(2).add(1)
        prof.step()
assert torch_npu.npu is torch.npu and torch_npu.profiler is torch.npu.profiler
try:
    import torch_npu.contrib
except ModuleNotFoundError as error:
    print(error)
print(hasattr(torch_npu, "npu_fusion_attention"))
"""


def test_scripts_for_torch_npu_run(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    command = [sys.executable, "-m", "mindtorch_v2.as_torch", tmp_path / "script.py", tmp_path / "out"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "No module named 'torch_npu.contrib': mindtorch_v2 stands in for torch_npu" in done.stdout
    assert done.stdout.splitlines()[-1] == "False"
    (folder,) = (tmp_path / "out").iterdir()
    assert scopes(load(folder)) == ["step"]


def test_a_device_is_recorded_and_left_out_by_level(npu, tmp_path):
    torch.npu.init()
    for level, recorded_work in (("Level0", True), ("Level_none", False)):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            handler = npu_profiler.tensorboard_trace_handler(tmp_path / level)
            with npu_profiler.profile(on_trace_ready=handler, experimental_config=Config(profiler_level=level)):
                torch.ones(8, device="npu").mul(2)
                torch.npu.synchronize()
        loaded = load(next((tmp_path / level).iterdir()))
        assert loaded.store.has_device_rows is recorded_work
