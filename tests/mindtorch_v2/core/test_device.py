"""Devices, sizes, memory formats and layouts: the small values that describe a tensor, as PyTorch 2.13 has them."""

from __future__ import annotations

import copy
import pickle
import re
import threading

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2._core import device as devices
from mindtorch_v2._core import memory_format as formats
from mindtorch_v2._core.device import device, get_default_device, set_default_device
from mindtorch_v2._core.size import Size, of_shape


def outcome(call) -> str:
    """The repr of what `call` returns, or the type and message of what it raises."""
    try:
        return repr(call())
    except Exception as error:
        return f"{type(error).__name__}: {error}"


# ---------------------------------------------------------------- device

UNKNOWN_TYPE = (
    "RuntimeError: Expected one of cpu, cuda, ipu, xpu, mkldnn, opengl, opencl, ideep, hip, ve, fpga, maia, xla, lazy, "
    "vulkan, mps, meta, hpu, mtia, npu device type at start of device string: "
)
INDEX_TWICE = "RuntimeError: type (string) must not include an index because index was passed explicitly: "
NO_ACCELERATOR = "RuntimeError: Cannot access accelerator device when none is available."

DEVICES = [
    (("cpu",), "device(type='cpu')"),
    (("cpu:0",), "device(type='cpu', index=0)"),
    (("cpu", 0), "device(type='cpu', index=0)"),
    (("cuda", None), "device(type='cuda')"),
    (("cuda:3",), "device(type='cuda', index=3)"),
    (("cuda", np.int64(3)), "device(type='cuda', index=3)"),
    (("cuda:127",), "device(type='cuda', index=127)"),
    (("meta",), "device(type='meta')"),
    (("meta:1",), "device(type='meta', index=1)"),
    (("mps:0",), "device(type='mps', index=0)"),
    (("npu:1",), "device(type='npu', index=1)"),
    (("privateuseone:1",), "device(type='npu', index=1)"),
    ((device("cuda", 1),), "device(type='cuda', index=1)"),
    (("",), "RuntimeError: Device string must not be empty"),
    (("", 0), "RuntimeError: Device string must not be empty"),
    (("nonsense",), UNKNOWN_TYPE + "nonsense"),
    (("nonsense:0",), UNKNOWN_TYPE + "nonsense"),
    (("nonsense", 0), UNKNOWN_TYPE + "nonsense"),
    (("CPU",), UNKNOWN_TYPE + "CPU"),
    (("cuda:-1",), "RuntimeError: Invalid device string: 'cuda:-1'"),
    (("cuda:01",), "RuntimeError: Invalid device string: 'cuda:01'"),
    (("cuda:",), "RuntimeError: Invalid device string: 'cuda:'"),
    (("cuda:a",), "RuntimeError: Invalid device string: 'cuda:a'"),
    (("cpu:0:0",), "RuntimeError: Invalid device string: 'cpu:0:0'"),
    ((":0",), "RuntimeError: Invalid device string: ':0'"),
    (("cpu ",), "RuntimeError: Invalid device string: 'cpu '"),
    (("cpu\n",), "RuntimeError: Invalid device string: 'cpu\n'"),
    (("cuda:\u0661",), "RuntimeError: Invalid device string: 'cuda:\u0661'"),
    (
        ("cuda:99999999999",),
        "RuntimeError: Could not parse device index '99999999999' in device string 'cuda:99999999999'",
    ),
    (("cuda", 99999999999), "RuntimeError: Device index 99999999999 is too large"),
    (("cpu", -1), "RuntimeError: Device index must not be negative"),
    (("cpu:0", 0), INDEX_TWICE + "cpu:0"),
    (("cpu", "x"), "TypeError: device(): argument 'index' (position 2) must be int, not str"),
    (("cuda", 1.0), "TypeError: device(): argument 'index' (position 2) must be int, not float"),
    (("cuda", True), "TypeError: device(): argument 'index' (position 2) must be int, not bool"),
    ((device("cuda"), 1), "TypeError: device(): argument 'type' (position 1) must be str, not torch.device"),
    ((0,), NO_ACCELERATOR),
    ((np.int64(1),), NO_ACCELERATOR),
    ((-1,), "RuntimeError: Device index must not be negative"),
]


@pytest.mark.parametrize("arguments, expected", DEVICES, ids=str)
def test_making_a_device(arguments, expected):
    assert outcome(lambda: device(*arguments)) == expected


@pytest.mark.parametrize("arguments", [(), (None,), (1.5,), (True,), (None, 1)], ids=str)
def test_arguments_that_make_no_device(arguments):
    with pytest.raises(TypeError, match=r"device\(\) received an invalid combination of arguments - got \("):
        device(*arguments)


def test_device_keywords():
    assert device(type="cuda", index=2) is device("cuda:2") is device(device="cuda:2") is device("cuda", index=2)
    with pytest.raises(TypeError, match=r"got \(str, str\)"):
        device("cpu", type="cpu")


def test_device_attributes_and_text():
    plain, indexed = device("cuda"), device("cuda:1")
    assert (plain.type, plain.index, str(plain)) == ("cuda", None, "cuda")
    assert (indexed.type, indexed.index, f"{indexed}") == ("cuda", 1, "cuda:1")


def test_device_equality():
    assert device("cpu") == device("cpu")
    assert device("cpu") != device("cpu", 0)
    assert device("cpu") != "cpu"
    assert len({device("cpu"), device("cpu"), device("cpu:0")}) == 2


@pytest.mark.parametrize("d", [device("cpu"), device("cuda:1")], ids=str)
def test_copies_and_pickles_of_devices(d):
    assert copy.copy(d) == copy.deepcopy(d) == pickle.loads(pickle.dumps(d)) == d


def test_devices_are_read_only_and_final():
    d = device("cuda:1")
    with pytest.raises(AttributeError, match=r"attribute 'index' of 'torch.device' objects is not writable"):
        d.index = 2
    with pytest.raises(AttributeError, match=r"attribute 'index' of 'torch.device' objects is not writable"):
        del d.index
    with pytest.raises(AttributeError, match=r"'torch.device' object has no attribute 'foo'"):
        d.foo = 2
    with pytest.raises(TypeError, match=r"type 'torch.device' is not an acceptable base type"):
        type("Sub", (device,), {})


def test_an_integer_is_a_device_of_the_accelerator(monkeypatch):
    monkeypatch.setattr(devices, "_accelerator", None)
    devices.set_accelerator("npu")
    assert device(1) is device("npu:1")
    devices.set_accelerator(None)
    assert outcome(lambda: device(1)) == NO_ACCELERATOR


# ---------------------------------------------------------------- the default device


@pytest.fixture
def cpu_by_default():
    yield
    set_default_device(None)


def test_with_device(cpu_by_default):
    seen = [get_default_device()]
    with device("meta") as entered:
        seen += [entered, get_default_device()]
        with device("cpu:0"):
            seen.append(get_default_device())
        seen.append(get_default_device())
    seen.append(get_default_device())
    assert list(map(str, seen)) == ["cpu", "meta", "meta", "cpu:0", "meta", "cpu"]


def test_with_device_ends_on_errors_too(cpu_by_default):
    with pytest.raises(KeyError), device("meta"):
        raise KeyError
    assert str(get_default_device()) == "cpu"


def test_set_default_device(cpu_by_default):
    set_default_device("meta:0")
    assert str(get_default_device()) == "meta:0"
    with device("cpu"):
        assert str(get_default_device()) == "cpu"
    assert str(get_default_device()) == "meta:0"
    with pytest.raises(RuntimeError, match="nonsense"):
        set_default_device("nonsense")
    set_default_device(None)
    assert str(get_default_device()) == "cpu"


def test_default_device_set_inside_with_lasts_until_its_end(cpu_by_default):
    with device("meta"):
        set_default_device("cpu")
        assert str(get_default_device()) == "cpu"
    assert str(get_default_device()) == "cpu"


def test_default_device_is_each_threads_own(cpu_by_default):
    set_default_device("meta")
    seen = []
    thread = threading.Thread(target=lambda: seen.append(str(get_default_device())))
    thread.start()
    thread.join()
    assert seen == ["cpu"]


def test_exit_without_enter():
    with pytest.raises(RuntimeError, match="trying to pop from empty mode stack"):
        device("cpu").__exit__(None, None, None)


# ---------------------------------------------------------------- Size

NOT_AN_INT = "TypeError: torch.Size() takes an iterable of 'int' (item {} is '{}')"
S = Size([2, 3, 4])

SIZES = [
    (lambda: S, "torch.Size([2, 3, 4])"),
    (lambda: str(S), "'torch.Size([2, 3, 4])'"),
    (lambda: Size(), "torch.Size([])"),
    (lambda: Size(i for i in (1, 2)), "torch.Size([1, 2])"),
    (lambda: Size(np.array([1, 2])), "torch.Size([1, 2])"),
    (lambda: Size([True]), "torch.Size([1])"),
    (lambda: Size([-1]), "torch.Size([-1])"),
    (lambda: of_shape((1, 2)), "torch.Size([1, 2])"),
    (lambda: S[0], "2"),
    (lambda: S[-1:], "torch.Size([4])"),
    (lambda: S[::2], "torch.Size([2, 4])"),
    (lambda: S[:0], "torch.Size([])"),
    (lambda: S + (5,), "torch.Size([2, 3, 4, 5])"),
    (lambda: (5,) + S, "torch.Size([5, 2, 3, 4])"),
    (lambda: S + S[:1], "torch.Size([2, 3, 4, 2])"),
    (lambda: S[:1] * 2, "torch.Size([2, 2])"),
    (lambda: 2 * S[:1], "torch.Size([2, 2])"),
    (lambda: S * 0, "torch.Size([])"),
    (lambda: S.numel(), "24"),
    (lambda: Size().numel(), "1"),
    (lambda: Size([0, 3]).numel(), "0"),
    (lambda: tuple(S), "(2, 3, 4)"),
    (lambda: copy.deepcopy(S), "torch.Size([2, 3, 4])"),
    (lambda: pickle.loads(pickle.dumps(S)), "torch.Size([2, 3, 4])"),
    (lambda: Size([1, "a"]), NOT_AN_INT.format(1, "str")),
    (lambda: Size([1, 2.5]), NOT_AN_INT.format(1, "float")),
    (lambda: Size("ab"), NOT_AN_INT.format(0, "str")),
    (lambda: Size([None]), NOT_AN_INT.format(0, "NoneType")),
    (lambda: S + ("a",), NOT_AN_INT.format(3, "str")),
    (lambda: ("a",) + S, NOT_AN_INT.format(0, "str")),
    (lambda: Size(3), "TypeError: 'int' object is not iterable"),
]


@pytest.mark.parametrize("call, expected", SIZES)
def test_size(call, expected):
    assert outcome(call) == expected


def test_size_is_a_tuple():
    assert S == (2, 3, 4) and S != [2, 3, 4] and hash(S) == hash((2, 3, 4)) and isinstance(S, tuple)
    assert type(Size([True])[0]) is int
    for call in (lambda: S + [1], lambda: [1] + S, lambda: S + 5, lambda: S * 1.5):
        with pytest.raises(TypeError):
            call()
    with pytest.raises(AttributeError):
        S.foo = 1


# ---------------------------------------------------------------- memory formats and layouts

NAMED = [
    (formats.memory_format, ["contiguous_format", "preserve_format", "channels_last", "channels_last_3d"]),
    (
        formats.layout,
        ["strided", "sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc", "jagged", "_mkldnn"],
    ),
]


@pytest.mark.parametrize("kind, name", [(kind, name) for kind, names in NAMED for name in names])
def test_memory_formats_and_layouts(kind, name):
    value = getattr(formats, name)
    assert isinstance(value, kind)
    assert repr(value) == str(value) == f"torch.{name}"
    assert copy.copy(value) is copy.deepcopy(value) is pickle.loads(pickle.dumps(value)) is value
    with pytest.raises(TypeError, match=re.escape(f"cannot create 'torch.{kind.__name__}' instances")):
        kind()
    with pytest.raises(AttributeError, match=f"'torch.{kind.__name__}' object has no attribute 'a'"):
        value.a = 1


def test_memory_formats_are_distinct():
    assert formats.legacy_contiguous_format is formats.contiguous_format
    assert len({getattr(formats, name) for _, names in NAMED for name in names}) == 12


def test_meta_and_cpu_tensors_do_not_mix():
    with pytest.raises(RuntimeError, match="Tensor on device meta is not on the expected device cpu!"):
        torch.ones(2) + torch.ones(2, device="meta")
    assert (torch.tensor(1.0) + torch.ones(2, device="meta")).is_meta


# ---------------------------------------------------------------- streams and events


def test_the_cpu_has_streams_and_events_that_do_nothing():
    event, stream = torch.Event("cpu"), torch.Stream(device="cpu")
    assert event.query() and event.synchronize() is None and event.wait() is None and event.device == torch.device("cpu")
    assert stream.query() and stream == torch.Stream() and stream.synchronize() is None and stream.wait_event(event) is None
    with stream:
        pass
    assert repr(event) == "torch.Event device_type=cpu, device_index=-1, event_flag=0, event_id=0"
    for call in (event.record, stream.record_event, lambda: stream.wait_stream(stream)):
        assert outcome(call) == "RuntimeError: cpu backend doesn't support events."
    assert (
        outcome(lambda: event.elapsed_time(event))
        == "ValueError: Both events must be created with argument 'enable_timing=True'."
    )
    for kind in (torch.Event, torch.Stream):
        assert outcome(lambda kind=kind: kind("cuda")) == "RuntimeError: PyTorch is not linked with support for cuda devices"


def test_streams_of_device_neutral_scripts():
    first = torch.cpu.current_stream()
    mine = torch.cpu.Stream()
    with torch.cpu.stream(mine):
        assert torch.cpu.current_stream() is mine
        with torch.cpu.StreamContext(None):
            assert torch.cpu.current_stream() is mine
    assert torch.cpu.current_stream() is first
    event = torch.cpu.Event()
    assert event.query() and mine.wait_stream(first) is event.record() is event.wait() is event.synchronize() is None
