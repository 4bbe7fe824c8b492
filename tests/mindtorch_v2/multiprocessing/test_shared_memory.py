"""Memory that several processes see: share_memory_, queues, spawn, hogwild training, and nothing left behind."""

import gc
import glob
import multiprocessing
import os
import signal
import subprocess
import sys
import time

import pytest

import mindtorch_v2 as torch
import mindtorch_v2.multiprocessing as mp
from mindtorch_v2._core import shared_memory

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="segments are counted in /dev/shm")
STRATEGIES = ("file_descriptor", "file_system")


def segments(process="*"):
    """The names of shared memory that a process made; other tests may run beside these."""
    return set(glob.glob(f"/dev/shm/torch_{process}_*"))


@pytest.fixture(params=STRATEGIES)
def strategy(request):
    before = mp.get_sharing_strategy()
    mp.set_sharing_strategy(request.param)
    yield request.param
    mp.set_sharing_strategy(before)


def test_sharing_moves_a_tensor_with_its_views(strategy):
    tensor = torch.arange(6.0).view(2, 3)
    view, grad = tensor[1:], torch.zeros(2, requires_grad=True)
    assert not tensor.is_shared() and not tensor.untyped_storage().is_shared()
    assert tensor.share_memory_() is tensor
    assert tensor.is_shared() and view.is_shared() and view.untyped_storage().data_ptr() == tensor.untyped_storage().data_ptr()
    view += 1
    assert tensor.tolist() == [[0, 1, 2], [4, 5, 6]]
    pointer = tensor.data_ptr()
    assert tensor.share_memory_().data_ptr() == pointer  # once is enough
    assert grad.share_memory_().requires_grad and grad.is_leaf
    assert torch.empty(0).share_memory_().is_shared()
    with pytest.raises(RuntimeError, match="not resizable"):
        tensor.untyped_storage().resize_(100)


def test_what_cannot_be_shared():
    with pytest.raises(RuntimeError, match="only available on CPU"):
        torch.ones(2, device="meta").share_memory_()
    with pytest.raises(NotImplementedError, match="Cannot access storage of SparseTensorImpl"):
        torch.eye(2).to_sparse().share_memory_()
    with pytest.raises(AssertionError, match="invalid sharing strategy 'x', expected one of"):
        mp.set_sharing_strategy("x")
    assert mp.get_all_sharing_strategies() == set(STRATEGIES) and mp.get_sharing_strategy() == "file_descriptor"


def test_memory_of_a_file(tmp_path):
    path = str(tmp_path / "data")
    first = torch.from_file(path, shared=True, size=3)
    second = torch.from_file(path, shared=True, size=3)
    first.fill_(2)
    assert second.tolist() == [2, 2, 2] and first.is_shared()
    assert first.untyped_storage().filename == path
    private = torch.from_file(path, shared=False, size=3)
    private.zero_()
    assert first.tolist() == [2, 2, 2] and private.untyped_storage().filename is None
    storage = torch.UntypedStorage.from_file(path, shared=True, nbytes=12)
    assert storage.is_shared() and storage.filename == path and storage.nbytes() == 12


def test_handles_of_storages():
    storage = torch.UntypedStorage([1, 2, 3])
    fd, size = storage._share_fd_cpu_()
    other = torch.UntypedStorage._new_shared_fd_cpu(fd, size)
    other[0] = 9
    assert storage.tolist() == [9, 2, 3]
    mp.set_sharing_strategy("file_system")
    try:
        named = torch.UntypedStorage([1, 2])
        manager, name, size = named._share_filename_cpu_()
        again = torch.UntypedStorage._new_shared_filename_cpu(manager, name, size)
        again.fill_(4)
        assert named.tolist() == [4, 4] and f"/dev/shm{name.decode()}" in segments()
        del again, named
        gc.collect()
        assert f"/dev/shm{name.decode()}" not in segments()
    finally:
        mp.set_sharing_strategy("file_descriptor")
    assert torch.UntypedStorage._new_shared(10).tolist() == [0] * 10


def exchange(given, inbox, outbox):
    given += 1
    received = inbox.get()
    received.mul_(3)
    outbox.put(received)
    outbox.put(
        (torch.full((2, 3), 7.0), torch.nn.Parameter(torch.ones(1)), torch.eye(2).to_sparse(), torch.ones(2, device="meta"))
    )
    inbox.get()


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_tensors_travel_without_a_copy(strategy, method):
    before = segments(os.getpid())
    context = mp.get_context(method)
    inbox, outbox = context.Queue(), context.Queue()
    given, sent = torch.zeros(3).share_memory_(), torch.ones(4)
    process = context.Process(target=exchange, args=(given, inbox, outbox))
    process.start()
    inbox.put(sent[1:])
    back = outbox.get(timeout=300)
    tensor, parameter, sparse, meta = outbox.get(timeout=300)
    inbox.put(None)
    process.join(300)
    assert process.exitcode == 0
    assert given.tolist() == [1, 1, 1]  # the other process wrote into it
    assert sent.tolist() == [1, 3, 3, 3] and back.data_ptr() == sent[1:].data_ptr()  # and into this, which came back
    assert tensor.is_shared() and tensor.tolist() == [[7, 7, 7]] * 2
    assert isinstance(parameter, torch.nn.Parameter) and parameter.requires_grad
    assert sparse.to_dense().tolist() == [[1, 0], [0, 1]] and meta.device.type == "meta"
    child = process.pid
    del given, sent, back, tensor, parameter, sparse, inbox, outbox, process
    gc.collect()
    assert segments(os.getpid()) <= before and not segments(child)


def test_tensors_with_history_are_refused():
    queue = mp.SimpleQueue()
    with pytest.raises(RuntimeError, match="Cowardly refusing to serialize non-leaf tensor which requires_grad"):
        queue.put(torch.ones(2, requires_grad=True) * 2)
    queue.put(torch.ones(2, requires_grad=True))
    assert queue.get().requires_grad


def test_plain_queues_share_too():
    queue = multiprocessing.SimpleQueue()
    tensor = torch.zeros(2)
    queue.put(tensor)
    received = queue.get()
    received += 5
    assert tensor.tolist() == [5, 5] and received._storage is tensor._storage


def double(tensor):
    return tensor * 2


def test_pool():
    with mp.get_context("fork").Pool(2) as pool:
        assert [t.tolist() for t in pool.map(double, [torch.ones(1), torch.zeros(2)])] == [[2], [0, 0]]


def train(rank, model, data, steps):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(steps):
        optimizer.zero_grad()
        (model(data) - data).pow(2).mean().backward()
        optimizer.step()


def test_hogwild():
    torch.manual_seed(0)
    model, data = torch.nn.Linear(3, 3), torch.randn(20, 3)
    with torch.no_grad():
        start = (model(data) - data).pow(2).mean().item()
    before = [p.clone() for p in model.parameters()]
    assert model.share_memory() is model and all(p.is_shared() for p in model.parameters())
    mp.start_processes(train, (model, data, 60), nprocs=2, start_method="fork")
    with torch.no_grad():
        assert (model(data) - data).pow(2).mean().item() < start / 4
    assert not torch.equal(before[0], model.weight)


def die():
    tensor = torch.zeros(1000).share_memory_()
    assert tensor.is_shared()
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_killed_process_leaves_no_segment():
    process = mp.get_context("fork").Process(target=die)
    process.start()
    process.join(300)
    assert process.exitcode == -signal.SIGKILL and not segments(process.pid)


PROGRAM = """
import mindtorch_v2 as torch, mindtorch_v2.multiprocessing as mp, os, signal
mp.set_sharing_strategy("file_system")
tensor = torch.zeros(4).share_memory_()
print(tensor.untyped_storage()._share_filename_cpu_()[1].decode(), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_program_leaves_no_name():
    run = subprocess.run([sys.executable, "-W", "ignore", "-c", PROGRAM], capture_output=True, text=True, timeout=300)
    name = run.stdout.strip()
    assert name.startswith("/torch_")
    for _ in range(600):  # the tracker's process comes after
        if f"/dev/shm{name}" not in segments():
            break
        time.sleep(0.1)
    assert f"/dev/shm{name}" not in segments()


def raises(rank, wanted):
    if rank == wanted:
        raise ValueError("what is wrong")
    time.sleep(30)


def exits(rank):
    sys.exit(3)


def killed(rank):
    os.kill(os.getpid(), signal.SIGKILL)


def test_failures_of_processes():
    with pytest.raises(
        mp.ProcessRaisedException, match=r"-- Process 1 terminated with the following error:\n(.*\n)+ValueError: what"
    ):
        mp.start_processes(raises, (1,), nprocs=2, start_method="fork")
    with pytest.raises(mp.ProcessExitedException, match="process 0 terminated with exit code 3") as caught:
        mp.start_processes(exits, nprocs=1, start_method="fork")
    assert caught.value.exit_code == 3 and caught.value.error_index == 0 and caught.value.signal_name is None
    with pytest.raises(mp.ProcessExitedException, match="process 0 terminated with signal SIGKILL") as caught:
        mp.start_processes(killed, nprocs=1, start_method="fork")
    assert caught.value.signal_name == "SIGKILL"
    context = mp.start_processes(double, nprocs=2, join=False, start_method="fork")
    assert len(context.pids()) == 2
    while not context.join(timeout=30):
        pass
    assert context.join()


def test_spawn_warns_of_other_methods(monkeypatch):
    module = sys.modules["mindtorch_v2.multiprocessing.spawn"]
    monkeypatch.setattr(module, "start_processes", lambda *args, start_method: start_method)
    with pytest.warns(FutureWarning, match="This method only supports start_method=spawn"):
        assert mp.spawn(double, start_method="fork") == "spawn"


def test_counts_of_a_name():
    mp.set_sharing_strategy("file_system")
    try:
        segment = shared_memory.new_segment(5)
        other = shared_memory.open_named(segment.name, 5)
        other.data[:] = 3
        assert segment.data.tolist() == [3] * 5
        path = f"/dev/shm{segment.name}"
        del other
        assert path in segments()
        del segment
        assert path not in segments()
    finally:
        mp.set_sharing_strategy("file_descriptor")
