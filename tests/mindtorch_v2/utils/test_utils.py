"""Small modules: dlpack, tensorboard, benchmark, pytree, and names that scripts import."""

from __future__ import annotations

import importlib
import struct
import subprocess
import sys
import zlib

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2.utils.tensorboard import SummaryWriter
from mindtorch_v2.utils.tensorboard._records import masked_crc

# ---------------------------------------------------------------- memory shared with others


def test_dlpack_shares_memory():
    source = np.arange(3.0, dtype=np.float32)
    t = torch.from_dlpack(source)
    source[0] = 9
    assert t.tolist() == [9.0, 1.0, 2.0]
    assert np.from_dlpack(torch.arange(2)).tolist() == [0, 1]
    assert torch.utils.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(torch.ones(1))).tolist() == [1.0]
    with pytest.raises(BufferError, match="require gradient"):
        np.from_dlpack(torch.ones(1, requires_grad=True))
    with pytest.raises(RuntimeError, match="invalid capsule"):
        torch.from_dlpack(3)


# ---------------------------------------------------------------- tensorboard


def fields(data: bytes) -> list:
    """The fields of a protocol buffer message: (number, value)."""
    found, at = [], 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        key = varint()
        kind = key & 7
        if kind == 0:
            value = varint()
        else:
            size = {1: 8, 5: 4}.get(kind) or varint()
            value = data[at : at + size]
            at += size
            if kind != 2:
                value = struct.unpack("<d" if kind == 1 else "<f", value)[0]
        found.append((key >> 3, value))
    return found


def events(folder) -> list:
    """The events of the one file in a folder, checksums checked."""
    (path,) = [p for p in folder.iterdir() if p.is_file()]
    data, found = path.read_bytes(), []
    while data:
        (length,) = struct.unpack("<Q", data[:8])
        assert struct.unpack("<I", data[8:12])[0] == masked_crc(data[:8])
        body = data[12 : 12 + length]
        assert struct.unpack("<I", data[12 + length : 16 + length])[0] == masked_crc(body)
        found.append(dict(fields(body)))
        data = data[16 + length :]
    return found


def test_checksums_are_crc32c():
    crc = (masked_crc(b"123456789") - 0xA282EAD8) & 0xFFFFFFFF
    assert (crc << 15 | crc >> 17) & 0xFFFFFFFF == 0xE3069283


def test_event_files(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        writer.add_scalar("loss", torch.tensor(1.5), 7)
        writer.add_histogram("weights", torch.tensor([1.0, 1.0, 3.0]), 8)
        writer.add_text("note", "hello")
        writer.add_image("picture", torch.tensor([[[0.0, 1.0]]]), 9)
        writer.add_scalars("both", {"a": 1, "b": 2})
    first, *rest = events(tmp_path)
    assert first[3] == b"brain.Event:2"
    values = [dict(fields(dict(fields(event[5]))[1])) for event in rest]
    assert [event.get(2) for event in rest] == [7, 8, None, 9]
    assert [v[1] for v in values] == [b"loss", b"weights", b"note/text_summary", b"picture"]
    assert values[0][2] == 1.5
    histogram = dict(fields(values[1][5]))
    assert [histogram[i] for i in range(1, 6)] == [1.0, 3.0, 3.0, 5.0, 11.0]
    assert sum(struct.unpack(f"<{len(histogram[7]) // 8}d", histogram[7])) == 3.0
    assert len(histogram[6]) == len(histogram[7])
    assert dict(fields(values[2][8]))[8] == b"hello"
    image = dict(fields(values[3][4]))
    assert (image[1], image[2], image[3]) == (1, 2, 3)
    png = image[4]
    start = png.index(b"IDAT")
    (size,) = struct.unpack(">I", png[start - 4 : start])
    assert zlib.decompress(png[start + 4 : start + 4 + size]) == bytes([0, 0, 0, 0, 255, 255, 255])
    assert sorted(p.name for p in tmp_path.iterdir() if p.is_dir()) == ["both_a", "both_b"]


def test_what_a_writer_cannot_do(tmp_path):
    writer = SummaryWriter(tmp_path)
    with pytest.raises(NotImplementedError, match="add_graph"):
        writer.add_graph(None)
    with pytest.raises(AssertionError, match="one element"):
        writer.add_scalar("x", torch.ones(2))
    with pytest.raises(ValueError, match="no element"):
        writer.add_histogram("x", torch.ones(0))
    writer.close()


# ---------------------------------------------------------------- the rest


@pytest.mark.parametrize(
    "name",
    [
        "_utils",
        "amp",
        "cpu.amp",
        "distributed",
        "distributions",
        "func",
        "hub",
        "multiprocessing",
        "return_types",
        "sparse",
        "storage",
        "testing",
        "types",
        "utils.hooks",
        "utils.benchmark",
    ],
)
def test_modules_that_scripts_import(name):
    assert importlib.import_module(f"mindtorch_v2.{name}")


def test_rare_modules_are_not_imported_with_the_package():
    check = (
        "import sys, mindtorch_v2; print([m for m in ('func', 'testing', 'distributions', 'utils.tensorboard', 'amp')"
        " if 'mindtorch_v2.' + m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True).stdout.strip() == "[]"


def test_hub_fetches_nothing():
    with pytest.raises(NotImplementedError, match="hub.load"):
        torch.hub.load("a/b", "c")


def test_return_types():
    assert isinstance(torch.ones(2).max(0), torch.return_types.max)
    with pytest.raises(AttributeError, match="nothing"):
        _ = torch.return_types.nothing


def test_errors_of_other_threads_come_back():
    try:
        raise KeyError("lost")
    except KeyError:
        wrapped = torch._utils.ExceptionWrapper(where="in thread 3")
    with pytest.raises(KeyError, match="Caught KeyError in thread 3"):
        wrapped.reraise()


def test_flat_tensors():
    parts = [torch.ones(2), torch.zeros(1, 2)]
    flat = torch._utils._flatten_dense_tensors(parts)
    assert flat.tolist() == [1.0, 1.0, 0.0, 0.0]
    assert [t.shape for t in torch._utils._unflatten_dense_tensors(flat, parts)] == [(2,), (1, 2)]
