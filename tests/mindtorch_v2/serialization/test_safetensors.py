"""Weights in the safetensors format, by this package's functions and by `safetensors.torch` itself."""

from __future__ import annotations

import importlib
import sys

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import as_torch, nn

pytest.importorskip("safetensors")
ours = importlib.import_module("mindtorch_v2.safetensors")


def _tensors():
    return {
        "weight": torch.arange(6.0).reshape(2, 3),
        "half": torch.tensor([1.5, -2], dtype=torch.bfloat16),
        "ids": torch.tensor([1, 2]),
        "empty": torch.zeros(0, 2),
        "flag": torch.tensor(True),
        "complex": torch.tensor([1 + 2j]),
        "small": torch.tensor([1.0, 2.0]).to(torch.float8_e4m3fn),
    }


def _same(a, b):
    return (
        a.dtype is b.dtype
        and a.shape == b.shape
        and torch.equal(a.float() if a.dtype.itemsize == 1 else a, b.float() if b.dtype.itemsize == 1 else b)
    )


@pytest.fixture
def theirs():
    """`safetensors.torch` on top of this package."""
    with as_torch.installed():
        sys.modules.pop("safetensors.torch", None)
        yield importlib.import_module("safetensors.torch")
        sys.modules.pop("safetensors.torch", None)


def test_a_file_and_back(tmp_path):
    path = tmp_path / "w.safetensors"
    ours.save_file(_tensors(), path, metadata={"format": "pt"})
    found = ours.load_file(path)
    assert set(found) == set(_tensors())
    assert all(_same(found[name], tensor) for name, tensor in _tensors().items())
    assert torch.float32 is found["weight"].dtype
    found["weight"].add_(1)  # the file stays as it is
    assert _same(ours.load_file(path)["weight"], _tensors()["weight"])


def test_bytes_and_back():
    found = ours.load(ours.save(_tensors()))
    assert all(_same(found[name], tensor) for name, tensor in _tensors().items())


def test_one_tensor_at_a_time(tmp_path):
    path = tmp_path / "w.safetensors"
    ours.save_file(_tensors(), path, metadata={"format": "pt"})
    with ours.safe_open(path, framework="pt", device="cpu") as file:
        assert file.keys() == sorted(_tensors())
        assert set(file.offset_keys()) == set(file.keys())
        assert file.metadata() == {"format": "pt"}
        assert _same(file.get_tensor("half"), _tensors()["half"])
        part = file.get_slice("weight")
        assert (part.get_shape(), part.get_dtype()) == ([2, 3], "F32")
        assert part[:, 1:].tolist() == [[1, 2], [4, 5]]
        with pytest.raises(Exception, match="File does not contain tensor other"):
            file.get_tensor("other")
    with pytest.raises(NotImplementedError, match="framework='np'"):
        ours.safe_open(path, framework="np")


@pytest.mark.parametrize(
    "tensors, error, message",
    [
        (lambda t: {"a": t.t()}, ValueError, "You are trying to save a non contiguous tensor: `a`"),
        (lambda t: {"a": t, "b": t[:1]}, RuntimeError, "Some tensors share memory"),
        (lambda t: {"a": 3}, ValueError, "Key `a` is invalid, expected torch.Tensor"),
    ],
)
def test_what_is_not_written(tensors, error, message):
    with pytest.raises(error, match=message):
        ours.save(tensors(torch.ones(2, 3)))


def test_models_with_shared_weights(tmp_path):
    def make():
        model = nn.ModuleDict({"embed": nn.Embedding(4, 3), "head": nn.Linear(3, 4, bias=False)})
        model["head"].weight = model["embed"].weight
        return model

    path = tmp_path / "m.safetensors"
    one, other = make(), make()
    ours.save_model(one, path)
    assert ours.load_model(other, path) == (set(), [])
    assert torch.equal(one["head"].weight, other["head"].weight)
    with pytest.raises(RuntimeError, match="Missing key"):
        ours.load_model(nn.Linear(2, 2), path)


def test_the_package_of_safetensors_on_this_runtime(theirs, tmp_path):
    path = tmp_path / "w.safetensors"
    theirs.save_file(_tensors(), path)
    found = ours.load_file(path)
    assert all(_same(found[name], tensor) for name, tensor in _tensors().items())
    found = theirs.load_file(path)
    assert all(type(t) is torch.Tensor and _same(t, _tensors()[name]) for name, t in found.items())
    from safetensors import safe_open

    with safe_open(path, framework="pt") as file:
        assert file.get_slice("weight")[:, 1:].tolist() == [[1, 2], [4, 5]]


def test_storages_of_files(tmp_path):
    path = tmp_path / "bytes"
    path.write_bytes(bytes(range(8)))
    storage = torch.UntypedStorage.from_file(path, False, 6)
    assert storage.untyped().tolist() == [0, 1, 2, 3, 4, 5]
    part = torch.asarray(storage[2:4], dtype=torch.uint8)
    part.fill_(9)
    assert storage.tolist() == [0, 1, 9, 9, 4, 5] and path.read_bytes() == bytes(range(8))
    torch.UntypedStorage.from_file(path, True, 10)[0] = 7
    assert path.read_bytes() == bytes([7, *range(1, 8), 0, 0])
    with pytest.raises(RuntimeError, match="smaller than the required mapping size <99>"):
        torch.UntypedStorage.from_file(path, False, 99)
    with pytest.raises(RuntimeError, match="step of 2"):
        storage[::2]
