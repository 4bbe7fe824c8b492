"""torch.load and torch.save with their rarer arguments and settings; answers are PyTorch 2.13's."""

import gzip
import io
import mmap
import os
import pickle
import zipfile

import pytest
from file_names import skip_if_impossible

import mindtorch_v2 as torch
from mindtorch_v2 import serialization
from mindtorch_v2.utils.serialization import config


class Plain:
    """Something that only a trusted file may hold."""

    def __init__(self, value=0):
        self.value = value


class Sub(torch.Tensor):
    pass


def saved(value, **options):
    buffer = io.BytesIO()
    torch.save(value, buffer, **options)
    buffer.seek(0)
    return buffer


@pytest.fixture(params=[True, False], ids=["zip", "old"])
def as_zip(request):
    return {"_use_new_zipfile_serialization": request.param}


def test_map_location_is_called(as_zip):
    calls = []

    def place(storage, location):
        calls.append((type(storage), location, storage.nbytes()))
        return storage

    tensor = torch.arange(3.0)
    loaded = torch.load(saved([tensor, tensor[1:]], **as_zip), map_location=place)
    assert calls == [(torch.UntypedStorage, "cpu", 12)]
    assert loaded[0].tolist() == [0, 1, 2] and loaded[1].data_ptr() == loaded[0][1:].data_ptr()
    assert torch.load(saved(tensor, **as_zip), map_location=lambda storage, location: None).tolist() == [0, 1, 2]
    other = torch.UntypedStorage(12)
    changed = torch.load(saved(tensor, **as_zip), map_location=lambda storage, location: other)
    assert changed.untyped_storage() == other


@pytest.mark.parametrize(
    ("place", "error", "message"),
    [
        ("cuda", RuntimeError, "Attempting to deserialize object on a CUDA device but torch.cuda.is_available"),
        ("xpu:1", RuntimeError, "Attempting to deserialize object on a XPU device"),
        (
            "cpu:0",
            RuntimeError,
            r"don't know how to restore data location of torch.storage.UntypedStorage \(tagged with cpu:0\)",
        ),
        ("nowhere", RuntimeError, "tagged with nowhere"),
        (5, TypeError, "'int' object is not callable"),
        (lambda storage, location: "cpu", TypeError, "must be UntypedStorage, but got <class 'str'>"),
    ],
)
def test_places_that_are_not_there(place, error, message):
    with pytest.raises(error, match=message):
        torch.load(saved(torch.ones(2)), map_location=place)


def test_registered_packages():
    before = list(serialization._package_registry)
    try:
        serialization.register_package(
            5, lambda storage: "home", lambda storage, location: storage if location == "home" else None
        )
        assert serialization.location_tag(torch.ones(2).untyped_storage()) == "home"
        file = saved(torch.ones(2))
        assert b"home" in file.getvalue()
        assert torch.load(file).tolist() == [1, 1]
    finally:
        serialization._package_registry[:] = before
    file.seek(0)
    with pytest.raises(RuntimeError, match="tagged with home"):
        torch.load(file)


def test_a_pickle_module_reads():
    seen = []

    class Module:
        class Unpickler(pickle.Unpickler):
            def find_class(self, module, name):
                seen.append(name)
                return super().find_class(module, name)

    loaded = torch.load(saved({"a": torch.ones(2), "b": Plain(3)}), pickle_module=Module)
    assert loaded["b"].value == 3 and seen == ["Plain"] and loaded["a"].tolist() == [1, 1]
    with pytest.raises(RuntimeError, match="Can not safely load weights when explicit pickle_module is specified"):
        torch.load(saved(1), pickle_module=pickle, weights_only=True)
    assert torch.load(saved(Plain(4)), pickle_module=pickle).value == 4


def test_a_pickle_module_writes():
    seen = []

    class Module:
        class Pickler(pickle._Pickler):
            def save_global(self, obj, name=None):
                seen.append(obj.__name__)
                super().save_global(obj, name)

    assert torch.load(saved(torch.ones(2), pickle_module=pickle)).tolist() == [1, 1]
    file = saved([torch.ones(2), {1}], pickle_module=Module)
    assert torch.load(file)[0].tolist() == [1, 1] and seen == ["OrderedDict", "set"]

    class InC:
        class Pickler(pickle.Pickler):
            pass

        __name__ = "in_c"

    with pytest.raises(NotImplementedError, match="pickle_module="):
        saved(1, pickle_module=InC())


def test_mapped_files_private_and_shared(tmp_path):
    path = tmp_path / "weights.pt"
    torch.save({"w": torch.zeros(4)}, path)
    torch.load(path, mmap=True)["w"][0] = 5
    assert torch.load(path)["w"].tolist() == [0, 0, 0, 0]
    with serialization.set_default_mmap_options(mmap.MAP_SHARED):
        torch.load(path, mmap=True)["w"][0] = 5
    assert torch.load(path)["w"].tolist() == [5, 0, 0, 0]
    assert serialization.get_default_mmap_options() == mmap.MAP_PRIVATE
    with pytest.raises(ValueError, match="expected mmap.MAP_PRIVATE or mmap.MAP_SHARED, but got 7"):
        serialization.set_default_mmap_options(7)
    with (
        pytest.raises(ValueError, match="f must be a file path in order to use the mmap argument"),
        config.patch("load.mmap", True),
    ):
        torch.load(saved(1))


def test_byte_orders():
    tensor = torch.tensor([1.0, 2.0])
    file = saved(tensor, _disable_byteorder_record=True)
    with zipfile.ZipFile(file) as archive:
        assert not any(name.endswith("byteorder") for name in archive.namelist())
    assert serialization.get_default_load_endianness() is None
    for order, expected in (("NATIVE", tensor), ("LITTLE", tensor), ("BIG", torch.tensor([4.6006e-41, 8.9683e-44]))):
        serialization.set_default_load_endianness(serialization.LoadEndianness[order])
        try:
            file.seek(0)
            loaded = torch.load(file)
        finally:
            serialization.set_default_load_endianness(None)
        assert torch.allclose(loaded, expected) and (order != "BIG" or loaded[0] < 1e-30)
    with pytest.raises(TypeError, match="Invalid argument type in function set_default_load_endianness"):
        serialization.set_default_load_endianness("big")


def test_checksums():
    assert serialization.get_crc32_options()
    serialization.set_crc32_options(False)
    try:
        file = saved(torch.ones(3))
    finally:
        serialization.set_crc32_options(True)
    assert torch.load(file).tolist() == [1, 1, 1]
    with pytest.raises(zipfile.BadZipFile, match="Bad CRC-32"), zipfile.ZipFile(file) as archive:
        archive.read("archive/data/0")
    with zipfile.ZipFile(saved(torch.ones(3))) as archive:
        assert archive.testzip() is None


def test_alignment_and_names(tmp_path):
    skip_if_impossible("größe.pt")
    with config.patch({"save.storage_alignment": 4096}):
        torch.save([torch.ones(3), torch.ones(5)], tmp_path / "größe.pt")
    with serialization._open_zipfile_reader(tmp_path / "größe.pt") as archive:
        assert archive.get_record_offset("data/1") % 4096 == 0 and archive.get_record(".storage_alignment") == b"4096"
        assert archive.has_record("byteorder") and not archive.has_record("nothing")
        assert archive.get_all_records()[0] == "data.pkl" and len(archive.serialization_id()) == 40
        with pytest.raises(RuntimeError, match="PytorchStreamReader failed locating file foo: file not found"):
            archive.get_record("foo")
    with pytest.raises(AttributeError, match="torch.utils.serialization.config.load.foo does not exist"):
        config.load.foo = 1
    assert config.get_config_copy()["save.compute_crc32"] is True


def test_archives_by_hand(tmp_path):
    records = {"a": b"123", "c/d": b"", "e": bytes(100)}
    for target in (tmp_path / "file", io.BytesIO()):
        with serialization._open_zipfile_writer(target) as archive:
            for name, data in records.items():
                archive.write_record(name, data, len(data))
            archive.write_record_metadata("f", 3)
            assert archive.get_all_written_records() == {*records, "f"}
        if hasattr(target, "seek"):
            target.seek(0)
        with serialization._open_zipfile_reader(target) as archive:
            assert {name: archive.get_record(name) for name in records} == records
            assert archive.get_record("f") == bytes(3)


def test_an_archive_beyond_32_bits(tmp_path):
    """Sizes and places beyond four gigabytes are written as zip64; a file with holes stands for them."""
    pieces = []
    writer = serialization.ArchiveWriter(pieces.append, "archive")
    writer._begin("large", 0, 5 << 30)
    writer._at += 5 << 30
    writer.write_record("small", b"abc")
    writer.write_end_of_file()
    path = tmp_path / "large.zip"
    with open(path, "wb") as file:
        file.write(pieces[0])
        file.seek(5 << 30, os.SEEK_CUR)
        for piece in pieces[1:]:
            file.write(piece)
    with zipfile.ZipFile(path) as archive:
        assert archive.getinfo("archive/large").file_size == 5 << 30 and archive.read("archive/small") == b"abc"


def test_unsafe_globals_are_listed(as_zip):
    file = saved({"a": Plain(), "t": torch.ones(1)}, **as_zip)
    if not as_zip["_use_new_zipfile_serialization"]:
        with pytest.raises(ValueError, match="Expected input to be a checkpoint returned by torch.save"):
            serialization.get_unsafe_globals_in_checkpoint(file)
        return
    name = f"{__name__}.Plain"
    assert serialization.get_unsafe_globals_in_checkpoint(file) == [name]
    for protocol in (2, 5):
        assert serialization.get_unsafe_globals_in_checkpoint(saved(Plain(), pickle_protocol=protocol)) == [name]
    with serialization.safe_globals([Plain]):
        file.seek(0)
        assert serialization.get_unsafe_globals_in_checkpoint(file) == []
    assert serialization.get_unsafe_globals_in_checkpoint(saved(torch.nn.Linear(2, 2).state_dict())) == []


def test_what_is_not_allowed_says_how_to_allow_it():
    with pytest.raises(pickle.UnpicklingError) as caught:
        torch.load(saved(Plain()))
    text = str(caught.value)
    assert text.startswith("Weights only load failed. This file can still be loaded, to do so you have two options, ")
    assert f"Unsupported global: GLOBAL {__name__}.Plain was not an allowed global by default." in text
    assert f"`torch.serialization.safe_globals([{__name__}.Plain])` context manager" in text
    for allowed in ([], [os.execv]):
        with serialization.safe_globals(allowed), pytest.raises(pickle.UnpicklingError, match="whose module posix is blocked"):
            torch.load(saved(os.execv))


def test_the_environment_decides(monkeypatch):
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
    with pytest.warns(UserWarning, match="forcing weights_only=False"):
        assert torch.load(saved(Plain(2))).value == 2
    with pytest.raises(pickle.UnpicklingError):
        torch.load(saved(Plain()), weights_only=True)
    monkeypatch.setenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "1")
    with pytest.raises(RuntimeError, match="Only one of"):
        torch.load(saved(1))
    monkeypatch.delenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD")
    with pytest.raises(pickle.UnpicklingError):
        torch.load(saved(Plain()), weights_only=False)


@pytest.mark.parametrize("weights_only", [True, False])
def test_attributes_and_subclasses(weights_only, as_zip):
    tensor = torch.zeros(2)
    tensor.note, tensor.pi = "a note", 3.14
    parameter = torch.nn.Parameter(torch.ones(2))
    parameter.note = "another"
    sub = Sub([1.0, 2.0])
    sub.extra = [1]
    with serialization.safe_globals([Sub]):
        first, second, third = torch.load(saved([tensor, parameter, sub], **as_zip), weights_only=weights_only)
    assert (first.note, first.pi, second.note, third.extra) == ("a note", 3.14, "another", [1])
    assert type(third) is Sub and isinstance(second, torch.nn.Parameter) and third.tolist() == [1, 2]


def test_files_of_all_kinds():
    class Few:
        """A file with the methods that torch asks for, and no more."""

        def __init__(self, data=b""):
            inner = io.BytesIO(data)
            self.read, self.readline, self.seek, self.tell = inner.read, inner.readline, inner.seek, inner.tell
            self.write, self.flush, self.inner = inner.write, inner.flush, inner

    for zipped in (True, False):
        few = Few()
        torch.save(torch.ones(3), few, _use_new_zipfile_serialization=zipped)
        assert torch.load(Few(few.inner.getvalue())).tolist() == [1, 1, 1]
        packed = io.BytesIO(gzip.compress(few.inner.getvalue()))
        assert torch.load(gzip.GzipFile(fileobj=packed)).tolist() == [1, 1, 1]
    with pytest.raises(AttributeError, match="expected 'f' to be string, path, or a file-like object with a 'write' attribute"):
        torch.save(1, 5)
    with pytest.raises(AttributeError, match="'int' object has no attribute 'seek'. You can only torch.load from a file"):
        torch.load(5)


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
def test_storages_are_read_before_the_file_is_closed(tmp_path):
    path = tmp_path / "storage.pt"
    torch.save([torch.FloatStorage([1, 2])], path)
    (storage,) = torch.load(path)
    assert storage.tolist() == [1, 2]


def test_skipped_data():
    with serialization.skip_data(materialize_fake_tensors=True):
        file = saved(torch.ones(3))
    assert torch.load(file).tolist() == [0, 0, 0]
    file = saved(torch.ones(3))
    with serialization.skip_data():
        assert torch.load(file).shape == (3,)


def test_parts_of_storages():
    """Files of PyTorch 0.3 have slices of storages; their tensors had no offsets."""
    system = {"protocol_version": 1001, "little_endian": True, "type_sizes": {"short": 2, "int": 4, "long": 4}}
    head = b"".join(pickle.dumps(value, protocol=2) for value in (0x1950A86A20F9469CFC6C, 1001, system))
    views = b"".join(
        b"(X\x07\0\0\0storagectorch\nFloatStorage\nX\x01\0\0\0aX\x03\0\0\0cpuK\x02X\x01\0\0\0" + name + place + b"K\x01\x87tQ"
        for name, place in ((b"b", b"K\0"), (b"c", b"K\x01"))
    )
    body = b"\x80\x02" + views + b"\x86." + pickle.dumps(["a"], protocol=2) + (2).to_bytes(8, "little")
    first, second = torch.load(io.BytesIO(head + body + torch.tensor([3.0, 4.0]).numpy().tobytes()))
    assert first.tolist() == [3] and second.tolist() == [4] and first.data_ptr() + 4 == second.data_ptr()


def test_helpers():
    assert serialization.check_module_version_greater_or_equal(torch, (1, 2))
    assert not serialization.check_module_version_greater_or_equal(torch, (99, 2))
    assert serialization.normalize_storage_type(torch.FloatStorage) is torch.FloatStorage
    with serialization.mkdtemp() as folder:
        assert os.path.isdir(folder)
    assert not os.path.exists(folder)
    with pytest.raises(RuntimeError, match="Attempting to deserialize object on a CUDA device"):
        serialization.validate_cuda_device("cuda:0")
    with pytest.warns(UserWarning, match="pickle_load_args only works if"):
        torch.load(saved(1), encoding="latin1")
    with pytest.raises(TypeError, match="'blah' is an invalid keyword argument for Unpickler"):
        torch.load(saved(1), blah=1, weights_only=False)
