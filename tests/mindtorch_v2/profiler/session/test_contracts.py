"""What Lightning's PyTorchProfiler and accelerate's ProfileKwargs take for granted about torch.profiler."""

from __future__ import annotations

import contextlib
import inspect
import json

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import nn
from mindtorch_v2.autograd import profiler as autograd_profiler
from mindtorch_v2.profiler import ProfilerAction, ProfilerActivity, load
from mindtorch_v2.profiler.recording import active

x = torch.ones(4, 4)


def aten(prof):
    return [event.name for event in prof.events() if event.name.startswith("aten")]


# ------------------------------------------------------------------------------ Lightning: names and signatures


@pytest.mark.parametrize("name", ["ProfilerAction", "ProfilerActivity", "profile", "schedule", "tensorboard_trace_handler"])
def test_names_that_lightning_imports_from_profiler(name):
    assert hasattr(torch.profiler, name)


@pytest.mark.parametrize("name", ["EventList", "record_function", "profile", "emit_nvtx", "load_nvprof"])
def test_names_that_lightning_imports_from_autograd_profiler(name):
    assert hasattr(torch.autograd.profiler, name)


def test_what_lightning_finds_elsewhere():
    assert torch.utils.hooks.RemovableHandle.__name__ == "RemovableHandle"
    kinds = torch.profiler.profile | torch.autograd.profiler.profile | torch.autograd.profiler.emit_nvtx
    assert isinstance(torch.profiler.profile(), kinds)
    assert not torch.autograd._profiler_enabled()
    with torch.profiler.profile():
        assert torch.autograd._profiler_enabled()
        torch.autograd._disable_profiler()
        assert not torch.autograd._profiler_enabled()


def test_kineto_is_there():
    assert torch.profiler.kineto_available() is True


def test_lightning_passes_only_arguments_that_the_signature_names():
    arguments = {
        "activities": [ProfilerActivity.CPU],
        "schedule": None,
        "on_trace_ready": None,
        "record_shapes": True,
        "profile_memory": True,
        "with_stack": True,
        "with_flops": True,
        "with_modules": True,
        "use_cuda": None,
        "experimental_config": None,
        "export_to_flame_graph": True,
        "metric": "self_cpu_time_total",
    }
    parameters = inspect.signature(torch.profiler.profile.__init__).parameters
    dropped = sorted(set(arguments) - set(parameters))
    assert dropped == ["export_to_flame_graph", "metric"]
    prof = torch.profiler.profile(**{name: value for name, value in arguments.items() if name in parameters})
    assert isinstance(prof, torch.profiler.profile)
    legacy = inspect.signature(autograd_profiler.profile.__init__).parameters
    assert {"enabled", "use_cuda", "record_shapes", "with_flops", "profile_memory", "with_stack"} <= set(legacy)
    assert {"enabled", "record_shapes"} <= set(inspect.signature(autograd_profiler.emit_nvtx.__init__).parameters)


def test_lightning_checks_table_arguments_by_the_signature_of_table():
    names = set(inspect.signature(autograd_profiler.EventList.table).parameters)
    assert names - {"self", "sort_by", "row_limit"} == {
        "max_src_column_width",
        "max_name_column_width",
        "max_shapes_column_width",
        "header",
        "top_level_events_only",
        "time_unit",
    }


@pytest.mark.parametrize(
    "key",
    [
        "cpu_time",
        "cuda_time",
        "cpu_time_total",
        "cuda_time_total",
        "cpu_memory_usage",
        "cuda_memory_usage",
        "self_cpu_memory_usage",
        "self_cuda_memory_usage",
        "count",
    ],
)
def test_every_sort_key_of_lightning(key):
    with torch.profiler.profile(profile_memory=True) as prof:
        x + x
    averages = prof.events().key_averages(group_by_input_shapes=False)
    assert "aten::add" in averages.table(sort_by=key, row_limit=20)


# ------------------------------------------------------------------------------ Lightning: how it drives a profile


def test_hooks_may_hand_on_what_they_were_given():
    """Lightning's hooks return input and output, which then count as the module's."""
    net = nn.Linear(4, 4)
    handles = [
        net.register_forward_pre_hook(lambda module, given: given),
        net.register_forward_hook(lambda module, given, made: made),
    ]
    with torch.profiler.profile() as prof:
        assert net(x).shape == (4, 4)
    assert all(isinstance(handle, torch.utils.hooks.RemovableHandle) for handle in handles)
    assert "aten::linear" in aten(prof)


def test_lightning_summarises_the_events_of_a_profile_that_ended(tmp_path):
    prof = torch.profiler.profile(activities=[ProfilerActivity.CPU], record_shapes=True).__enter__()
    assert prof is not None
    x + x
    prof.__exit__(None, None, None)
    events = prof.events()
    assert events and isinstance(events, autograd_profiler.EventList)
    table = events.key_averages(group_by_input_shapes=True).table(
        sort_by="cpu_time_total", row_limit=20, max_name_column_width=40, header="records"
    )
    assert "records" in table and "[[4, 4], [4, 4], []]" in table
    events.export_chrome_trace(str(tmp_path / "0_trace.json"))
    assert json.loads((tmp_path / "0_trace.json").read_text())[0]["name"] == "aten::add"


def test_lightning_labels_modules_by_hooks():
    net = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    open_labels = {}

    def begin(module, args, name):
        open_labels[name] = autograd_profiler.record_function("[pl][module]" + name)
        open_labels[name].__enter__()

    def end(module, args, result, name):
        open_labels[name].__exit__(None, None, None)

    handles = []
    for name, module in net.named_modules():
        if name:
            handles.append(module.register_forward_pre_hook(lambda m, a, name=name: begin(m, a, name)))
            handles.append(module.register_forward_hook(lambda m, a, r, name=name: end(m, a, r, name)))
    with torch.profiler.profile() as prof:
        net(x)
    for handle in handles:
        handle.remove()
    labels = [event.name for event in prof.events() if event.is_user_annotation]
    assert labels == ["[pl][module]0", "[pl][module]1"]


class Wrapper:
    """A schedule that goes by its own count and says NONE until told that a step has run, as Lightning's does."""

    def __init__(self, inner):
        self.inner, self.count, self.stepping, self.done = inner, 0, False, False

    def __call__(self, step):
        if not self.stepping or self.done:
            return ProfilerAction.NONE
        self.count += 1
        action = self.inner(self.count)
        self.done = action is ProfilerAction.RECORD_AND_SAVE
        return action


def test_lightning_replaces_the_handler_and_counts_steps_itself(tmp_path):
    windows = []
    plan = Wrapper(torch.profiler.schedule(wait=1, warmup=1, active=3))
    assert isinstance(plan.inner(0), ProfilerAction)
    prof = torch.profiler.profile(activities=[ProfilerActivity.CPU], schedule=plan)
    assert prof.__enter__() is prof

    def on_trace_ready(profiler):
        windows.append(aten(profiler))
        torch.profiler.tensorboard_trace_handler(str(tmp_path), "fit-worker")(profiler)

    for _ in range(6):
        with autograd_profiler.record_function("[pl][profile]training_step"):
            x + x
        plan.stepping = True
        prof.on_trace_ready = on_trace_ready
        prof.step_num = plan.count
        prof.step()
        prof.add_metadata("Framework", "pytorch-lightning")
    prof.__exit__(None, None, None)
    assert windows == [["aten::add"] * 3]
    (written,) = tmp_path.iterdir()
    assert written.name.startswith("fit-worker.") and written.name.endswith(".pt.trace.json")
    assert json.loads(written.read_text())["Framework"] == "pytorch-lightning"
    assert aten(prof) == ["aten::add"] * 3


def test_lightning_takes_the_default_schedule_when_there_are_few_steps():
    always = torch.profiler.profiler._default_schedule_fn
    assert always(0) is always(7) is ProfilerAction.RECORD
    prof = torch.profiler.profile(schedule=torch.profiler.schedule(wait=1, warmup=1, active=3))
    with prof:
        prof.schedule = always
        prof.step()
        x + x
        prof.step()
    assert aten(prof) == ["aten::add"]


def test_lightning_ends_a_profile_that_somebody_left_running():
    assert not autograd_profiler._profiler_enabled()
    left = torch.profiler.profile()
    left.start()
    x + x
    assert autograd_profiler._profiler_enabled()
    autograd_profiler._disable_profiler()
    x * x
    assert not autograd_profiler._profiler_enabled()
    assert not active.running(), "nothing is left to be said of it when the interpreter ends"
    left.stop()
    assert aten(left) == ["aten::add"]


def test_a_stream_that_lightning_ends_is_whole(tmp_path):
    prof = torch.profiler.profile(stream_to=str(tmp_path / "s.mtp"))
    prof.start()
    x + x
    autograd_profiler._disable_profiler()
    assert [event.name for event in load(tmp_path / "s.mtp").events()] == ["aten::add"]
    prof.stop()


def test_lightning_writes_flame_graphs(tmp_path):
    def work():
        for _ in range(100):
            x + x

    with torch.profiler.profile(with_stack=True) as prof:
        work()
    prof.export_stacks(str(tmp_path / "fit.stack"), metric="self_cpu_time_total")
    assert (tmp_path / "fit.stack").read_text()


# ------------------------------------------------------------------------------ accelerate


@pytest.mark.parametrize("name", ["CPU", "CUDA", "XPU", "MTIA", "HPU"])
def test_activities_that_accelerate_maps(name):
    assert isinstance(getattr(torch.profiler.ProfilerActivity, name), ProfilerActivity)


def test_accelerate_ends_the_profile_before_it_exports(tmp_path):
    """Its context manager writes the trace inside the `with` of torch's, after the user's block."""

    @contextlib.contextmanager
    def accelerator_profile(folder):
        with torch.profiler.profile(activities=[ProfilerActivity.CPU], record_shapes=True) as profiler:
            yield profiler
        profiler.export_chrome_trace(str(folder / "profile_0.json"))

    with accelerator_profile(tmp_path) as prof:
        x + x
        prof.step()
    trace = json.loads((tmp_path / "profile_0.json").read_text())
    assert [event["name"] for event in trace["traceEvents"] if event.get("cat") == "cpu_op"] == ["aten::add"]
    assert "aten::add" in prof.key_averages().table(sort_by="cpu_time_total", row_limit=10)


def test_accelerate_builds_and_exports(tmp_path):
    ready = []
    option = {"wait": 1, "warmup": 1, "active": 1, "repeat": 0, "skip_first": 1}
    prof = torch.profiler.profile(
        activities=[ProfilerActivity.CPU],
        schedule=torch.profiler.schedule(**option),
        on_trace_ready=ready.append,
        record_shapes=True,
        profile_memory=True,
        with_stack=False,
        with_flops=True,
        with_modules=False,
    )
    with prof as entered:
        assert entered is prof
        for _ in range(4):
            x + x
            prof.step()
    assert ready == [prof] and aten(prof) == ["aten::add"]
    path = tmp_path / "profile_0.json"
    prof.export_chrome_trace(str(path))
    assert json.loads(path.read_text())["traceEvents"]


def test_accelerate_leaves_out_what_it_was_not_given():
    parameters = inspect.signature(torch.profiler.profile).parameters
    assert parameters["activities"].default is None and parameters["schedule"].default is None
    flags = ("record_shapes", "profile_memory", "with_stack", "with_flops", "with_modules", "acc_events")
    assert [parameters[flag].default for flag in flags] == [False] * len(flags)
    assert all(p.kind is inspect.Parameter.KEYWORD_ONLY for p in parameters.values())
    with torch.profiler.profile(activities=None, schedule=None, on_trace_ready=None) as prof:
        x + x
    assert aten(prof) == ["aten::add"]


def test_information_about_the_process_group_is_top_level(tmp_path):
    info = {
        "backend": "gloo",
        "rank": 3,
        "world_size": 8,
        "pg_count": 1,
        "pg_config": [
            {"pg_name": "0", "pg_desc": "default_pg", "backend_config": "cpu:gloo", "pg_size": 8, "ranks": list(range(8))}
        ],
    }
    with torch.profiler.profile() as prof:
        prof.add_metadata_json("distributedInfo", json.dumps(info))
        x + x
    path = tmp_path / "trace.json"
    prof.export_chrome_trace(path)
    text = path.read_text()
    assert json.loads(text)["distributedInfo"] == info
    assert text.index("distributedInfo") < text.index("traceEvents")
    assert '"rank": 3' in text  # readers look for it with the blank
