"""Tensors on the device: making, moving, viewing, changing, and what is refused."""

from __future__ import annotations

import gc
import subprocess
import sys
import warnings
from collections import Counter

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2._backends.npu import fallback
from mindtorch_v2.nn import functional as F


def test_there_and_back(npu):
    x = torch.randn(3, 4)
    y = x.to("npu")
    assert (y.device, y.is_npu, y.is_cpu, y.get_device()) == (torch.device("npu:0"), True, False, 0)
    assert torch.equal(y.cpu(), x)
    assert y.to("npu") is y and y.npu() is y
    assert y.to("npu:1").device.index == 1
    assert torch.equal(y.to("npu:1").cpu(), x)
    assert y.to(torch.float16).cpu().dtype is torch.float16
    assert y.double().cpu().tolist() == x.double().tolist()


@pytest.mark.parametrize("change", [
    lambda t: t.t(), lambda t: t[1:], lambda t: t[:, ::2], lambda t: t.reshape(6, 2), lambda t: t.t().contiguous(),
    lambda t: t.unsqueeze(0).expand(2, 3, 4), lambda t: t.flatten(), lambda t: t.permute(1, 0)[2], lambda t: t.T.reshape(-1),
    lambda t: torch.cat([t, t], 1), lambda t: torch.stack([t, t]), lambda t: t.sum(0), lambda t: t.mean(), lambda t: t.amax(1),
    lambda t: t.max(), lambda t: t.argmax(1), lambda t: (t > 0).float(), lambda t: t.clamp(-0.5, 0.5), lambda t: -t / 3 + 2,
    lambda t: 2 * t, lambda t: t ** 2, lambda t: t.abs().sqrt().log(), lambda t: torch.where(t > 0, t, -t), lambda t: t.tril(),
    lambda t: F.softmax(t, -1), lambda t: F.gelu(t), lambda t: t @ t.t(), lambda t: torch.zeros_like(t) + torch.full_like(t, 3),
    lambda t: t.masked_fill(t > 0, 7.0), lambda t: t.all(), lambda t: (t > 9).any(), lambda t: t.cumsum(0),
])  # fmt: skip
def test_ops_give_the_cpus_results(npu, change):
    x = torch.randn(3, 4, generator=torch.Generator().manual_seed(0))
    made = change(x.npu())
    assert made.is_npu
    torch.testing.assert_close(made.cpu(), change(x).contiguous())


def test_in_place_and_views_share_memory(npu):
    x = torch.zeros(4, 4, device="npu")
    x[1:3] = 5
    x[:, 0].add_(1)
    x.mul_(2)
    want = torch.zeros(4, 4)
    want[1:3] = 5
    want[:, 0].add_(1)
    assert torch.equal(x.cpu(), want * 2)
    version = x._version
    x.add_(1)
    assert x._version == version + 1


def test_gradients(npu):
    w = torch.randn(4, 2)
    a, b = w.clone().requires_grad_(), w.npu().requires_grad_()
    x = torch.randn(3, 4)
    (x @ a).tanh().pow(2).sum().backward()
    (x.npu() @ b).tanh().pow(2).sum().backward()
    assert b.grad.is_npu
    torch.testing.assert_close(b.grad.cpu(), a.grad)


def test_numbers_come_out(npu):
    x = torch.tensor([1.5], device="npu")
    assert (x.item(), float(x), x.tolist(), bool(x > 1)) == (1.5, 1.5, [1.5], True)
    assert repr(x) == "tensor([1.5000], device='npu:0')"
    with pytest.raises(TypeError, match="can't convert npu device type tensor to numpy"):
        x.numpy()
    assert x.numpy(force=True).tolist() == [1.5]


def test_mixed_devices_are_refused_but_numbers_are_not(npu):
    x = torch.ones(3, device="npu")
    with pytest.raises(RuntimeError, match="found at least two devices, npu:0 and cpu!"):
        x + torch.ones(3)
    with pytest.raises(RuntimeError, match="found at least two devices, npu:0 and npu:1!"):
        x + torch.ones(3, device="npu:1")
    assert (x + torch.tensor(2.0)).tolist() == [3.0] * 3
    with pytest.raises(RuntimeError, match="Invalid device id 7"):
        torch.npu.set_device(7)


def test_an_op_without_a_kernel_runs_on_the_cpu_and_says_so_once(npu, monkeypatch):
    monkeypatch.setattr(fallback, "counts", Counter())
    x = torch.ones(2, device="npu")
    with pytest.warns(UserWarning, match="aten::sinh has no NPU kernel"):
        made = x.sinh()
    assert made.is_npu
    assert made.cpu().tolist() == torch.ones(2).sinh().tolist()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x.sinh()
    with pytest.warns(UserWarning, match="aten::sinh_ has no NPU kernel"):
        x.sinh_()
    assert x.cpu().tolist() == torch.ones(2).sinh().tolist()
    assert torch.npu.fallbacks() == {"aten::sinh": 2, "aten::sinh_": 1}


def test_fallback_can_be_forbidden(npu, monkeypatch):
    monkeypatch.setenv("MINDTORCH_NPU_FALLBACK", "error")
    with pytest.raises(NotImplementedError, match="aten::cosh has no NPU kernel"):
        torch.ones(2, device="npu").cosh()


def test_random_numbers_are_the_cpus(npu):
    torch.npu.manual_seed(3)
    there = torch.randn(5, device="npu")
    torch.manual_seed(3)
    assert torch.equal(there.cpu(), torch.randn(5))


def test_streams_events_and_memory(npu):
    gc.collect()  # tensors that another test left in a cycle
    torch.npu.empty_cache()
    torch.npu.reset_peak_memory_stats()
    held = torch.npu.memory_allocated()
    x = torch.zeros(1 << 18, device="npu")
    assert torch.npu.memory_allocated() == held + (1 << 20)
    assert torch.npu.max_memory_allocated() >= held + (1 << 20)
    assert torch.npu.memory_reserved() >= torch.npu.memory_allocated()
    begin, end = torch.npu.Event(enable_timing=True), torch.npu.Event(enable_timing=True)
    stream = torch.npu.Stream()
    with torch.npu.stream(stream):
        assert torch.npu.current_stream() == stream
        begin.record()
        x + 1
        end.record()
    assert torch.npu.current_stream() == torch.npu.default_stream()
    end.synchronize()
    assert begin.elapsed_time(end) > 0
    del x
    assert torch.npu.memory_allocated() == held


def test_a_module_moves(npu):
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
    moved = model.npu()
    assert all(p.is_npu and p.requires_grad for p in moved.parameters())
    assert all(b.is_npu for b in moved.buffers())
    out = moved(torch.ones(4, 3, device="npu"))
    assert out.shape == (4, 2)
    assert all(t.is_cpu for t in moved.cpu().state_dict().values())


def test_pinned_memory_and_copies_into_existing_tensors(npu):
    target = torch.empty(4, 4, device="npu")
    source = torch.arange(16.0).view(4, 4)
    target.copy_(source)
    assert torch.equal(target.cpu(), source)
    target.t().copy_(source)
    assert torch.equal(target.cpu(), source.t())
    host = torch.zeros(4, 4)
    host.copy_(target)
    assert torch.equal(host, source.t())
    target.copy_(torch.ones(4, dtype=torch.int64))
    assert target.cpu().tolist() == np.ones((4, 4)).tolist()


def test_importing_the_package_loads_no_npu_code():
    code = (
        "import sys, mindtorch_v2 as t; t.ones(2) + 1; t.npu.manual_seed(1); "
        "print([m for m in sys.modules if '_backends' in m])"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert ended.stdout.strip() == "[]", ended.stderr


@pytest.mark.parametrize("zipped", [True, False])
def test_saved_tensors_come_back_to_their_device(npu, tmp_path, zipped):
    base = torch.arange(6.0, device="npu")
    torch.save({"whole": base, "part": base[2:4]}, tmp_path / "t.pt", _use_new_zipfile_serialization=zipped)
    found = torch.load(tmp_path / "t.pt")
    assert found["whole"].device == torch.device("npu:0")
    found["whole"].mul_(10)
    assert found["part"].tolist() == [20.0, 30.0]  # one storage, as before
    on_cpu = torch.load(tmp_path / "t.pt", map_location="cpu")
    assert on_cpu["part"].is_cpu and on_cpu["part"].tolist() == [2.0, 3.0]


def test_safetensors_take_what_is_on_the_device(npu, tmp_path):
    safetensors = pytest.importorskip("mindtorch_v2.safetensors")
    values = torch.arange(6.0).view(2, 3)
    safetensors.save_file({"w": values.npu(), "h": values.half().npu()}, tmp_path / "w.safetensors")
    found = safetensors.load_file(tmp_path / "w.safetensors")
    assert torch.equal(found["w"], values) and torch.equal(found["h"], values.half())
    assert safetensors.load_file(tmp_path / "w.safetensors", device="npu")["w"].is_npu


def test_the_accelerator_is_the_npu(npu):
    assert torch.accelerator.is_available()
    assert torch.accelerator.current_accelerator() == torch.device("npu")
    assert torch.accelerator.device_count() == torch.npu.device_count()
    torch.accelerator.synchronize()
    assert issubclass(torch.OutOfMemoryError, RuntimeError)
    assert torch.npu.OutOfMemoryError is torch.OutOfMemoryError


def test_page_locked_memory(npu):
    x = torch.arange(6.0).view(2, 3).t()
    held = x.pin_memory()
    assert held.is_pinned() and not x.is_pinned()
    assert held.pin_memory() is held
    assert torch.equal(held, x)
    moved = held.npu(non_blocking=True)
    torch.npu.synchronize()
    assert torch.equal(moved.cpu(), x)
    with pytest.raises(RuntimeError, match="only dense CPU tensors can be pinned"):
        moved.pin_memory()


def test_a_data_loader_pins_its_batches(npu):
    data = torch.utils.data.TensorDataset(torch.ones(4, 2), torch.zeros(4))
    loader = torch.utils.data.DataLoader([{"x": torch.ones(2), "name": "a"}] * 4, batch_size=2, pin_memory=True)
    batch = next(iter(loader))
    assert batch["x"].is_pinned() and batch["name"] == ["a", "a"]
    first, second = next(iter(torch.utils.data.DataLoader(data, batch_size=2, pin_memory=True)))
    assert first.is_pinned() and second.is_pinned()
    assert not next(iter(torch.utils.data.DataLoader(data, batch_size=2)))[0].is_pinned()
