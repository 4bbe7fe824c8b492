"""Storages, untyped and typed, as programs and checkpoints use them."""

from __future__ import annotations

import copy
import io
import pickle
import warnings

import pytest

import mindtorch_v2 as torch

pytestmark = pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")

LEGACY = {
    "FloatStorage": torch.float32,
    "DoubleStorage": torch.float64,
    "HalfStorage": torch.float16,
    "BFloat16Storage": torch.bfloat16,
    "LongStorage": torch.int64,
    "IntStorage": torch.int32,
    "ShortStorage": torch.int16,
    "CharStorage": torch.int8,
    "ByteStorage": torch.uint8,
    "BoolStorage": torch.bool,
    "ComplexFloatStorage": torch.complex64,
    "ComplexDoubleStorage": torch.complex128,
}


@pytest.fixture
def x() -> torch.Tensor:
    return torch.arange(6.0).reshape(2, 3)


def typed(tensor: torch.Tensor) -> torch.TypedStorage:
    return tensor._typed_storage()


# ---------------------------------------------------------------- typed


@pytest.mark.parametrize(("name", "dtype"), LEGACY.items())
def test_a_class_for_each_dtype(name, dtype):
    kind = getattr(torch, name)
    made = kind([1, 0])
    assert type(made) is torch.TypedStorage is torch.storage.TypedStorage
    assert kind.dtype is made.dtype is dtype and isinstance(made, kind) and made.type() == f"torch.{name}"
    assert not isinstance(made, torch.LongStorage if dtype is not torch.int64 else torch.FloatStorage)
    assert torch.zeros(2, dtype=dtype).storage_type() is kind and made.pickle_storage_type() == name
    assert made.tolist() == [1, 0] and len(kind(3)) == 3 and kind().size() == 0
    assert repr(kind) == f"<class 'mindtorch_v2.{name}'>"


def test_elements_are_those_of_the_tensor(x):
    storage = typed(x)
    assert (len(storage), storage.nbytes(), storage.element_size(), storage.device) == (6, 24, 4, torch.device("cpu"))
    assert storage.data_ptr() == x.data_ptr() and storage._cdata == x.untyped_storage()._cdata
    assert storage[0] == 0.0 and storage[-1] == 5.0 and list(storage) == storage.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    storage[0] = 7
    storage[1:3] = 8
    assert x.tolist() == [[7.0, 8.0, 8.0], [3.0, 4.0, 5.0]]
    storage.fill_(2).copy_(torch.FloatStorage([1, 2, 3, 4, 5, 6]))
    assert x.sum().item() == 21.0
    assert repr(torch.LongStorage([1, 2])) == " 1\n 2\n[torch.storage.TypedStorage(dtype=torch.int64, device=cpu) of size 2]"


def test_views_and_permuted_tensors_share_their_storage(x):
    assert typed(x[1]).tolist() == typed(x.t()).tolist() == typed(x).tolist()
    permuted = torch.empty(2, 3, 4, memory_format=torch.contiguous_format).permute(2, 0, 1).clone()
    typed(permuted).fill_(3)
    assert permuted.eq(3).all()


@pytest.mark.parametrize(
    ("cast", "dtype"),
    [
        ("double", torch.float64),
        ("half", torch.float16),
        ("long", torch.int64),
        ("int", torch.int32),
        ("bool", torch.bool),
        ("complex_float", torch.complex64),
    ],
)
def test_casts_copy(x, cast, dtype):
    made = getattr(typed(x), cast)()
    assert made.dtype is dtype and made.tolist() == x.to(dtype).flatten().tolist()
    same = typed(x).float()
    same[0] = 9
    assert x[0, 0] == 0


def test_tensors_on_a_storage(x):
    storage = torch.FloatStorage([1, 2, 3])
    assert torch.empty(0).set_(storage).tolist() == [1.0, 2.0, 3.0]
    assert torch.empty(0).set_(storage, 1, (2,), (1,)).tolist() == [2.0, 3.0]
    assert torch.empty(0).set_(x.untyped_storage(), 0, (3,), (1,)).tolist() == [0.0, 1.0, 2.0]


def test_wrapping_bytes(x):
    bytes_of = x.untyped_storage()
    assert torch.TypedStorage(wrap_storage=bytes_of, dtype=torch.float32).tolist() == typed(x).tolist()
    assert torch.FloatStorage(wrap_storage=bytes_of).untyped() is bytes_of
    assert torch.TypedStorage(4, dtype=torch.int32).size() == 4 and torch.TypedStorage().dtype is torch.float32
    assert torch.ByteStorage.from_buffer(b"abc").tolist() == [97, 98, 99]
    assert torch.ShortStorage.from_buffer(b"\1\0\0\1", byte_order="big").tolist() == [256, 1]


def test_questions(x):
    for storage in (x.untyped_storage(), typed(x), torch.FloatStorage(2)):
        assert torch.is_storage(storage) and not storage.is_cuda and not storage.is_shared() and not storage.is_pinned()
    assert not torch.is_storage(x) and not torch.is_storage(3)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda s, u: s[1:3], RuntimeError, "slices are only supported in UntypedStorage.__getitem__"),
        (lambda s, u: s[6], IndexError, "index 6 out of range for storage of size 6"),
        (lambda s, u: s["a"], RuntimeError, "can't index a <class 'mindtorch_v2.storage.TypedStorage'> with <class 'str'>"),
        (lambda s, u: u[24], IndexError, "index 24 out of range for storage of size 24"),
        (lambda s, u: torch.FloatStorage("a"), TypeError, "invalid data type 'str'"),
        (lambda s, u: torch.FloatStorage(1, 2), RuntimeError, "Too many positional arguments"),
        (lambda s, u: torch.FloatStorage(u), TypeError, "Argument type not recognized"),
        (lambda s, u: torch.TypedStorage(1, dtype=3), RuntimeError, "expected torch.dtype, but got <class 'int'>"),
        (lambda s, u: torch.TypedStorage(wrap_storage=u), RuntimeError, "invalid combination of arguments"),
        (lambda s, u: torch.UntypedStorage(torch.ones(2)), RuntimeError, "Expected a sequence type, but got Tensor"),
        (
            lambda s, u: torch.UntypedStorage([1, 1.5]),
            RuntimeError,
            r"a sequence \(list\), but one .* of type float instead of int",
        ),
        (lambda s, u: torch.UntypedStorage([2**63]), ValueError, "Overflow when unpacking long long"),
        (lambda s, u: s.copy_(torch.FloatStorage(2)), RuntimeError, "self was 24 bytes but src was 8 bytes"),
        (lambda s, u: u.resize_(-1), RuntimeError, "called with negative number: 18446744073709551615"),
        (lambda s, u: torch.UntypedStorage(2, device="xla"), RuntimeError, "Storage device not recognized: xla"),
        (lambda s, u: torch.TypedStorage(0, wrap_storage=u, dtype=torch.int8), RuntimeError, "No positional arguments"),
        (lambda s, u: torch.TypedStorage(wrap_storage=u, dtype=0), TypeError, "Argument 'dtype' must be torch.dtype"),
        (lambda s, u: torch.TypedStorage(wrap_storage=s, dtype=torch.int8), TypeError, "must be UntypedStorage"),
        (lambda s, u: torch.FloatStorage(dtype=torch.float32), RuntimeError, "'dtype' cannot be specified"),
        (lambda s, u: torch.FloatStorage(other=1), TypeError, "unexpected keyword argument 'other'"),
        (lambda s, u: torch.storage._LegacyStorage(), RuntimeError, "Only child classes of _LegacyStorage"),
        (lambda s, u: torch._C.StorageBase(), RuntimeError, "Cannot directly construct StorageBase"),
        (lambda s, u: s.fill_(s), RuntimeError, "cannot set item with value type"),
        (lambda s, u: torch.cuda.FloatStorage.from_buffer(), RuntimeError, "Not available for CUDA storage"),
        (lambda s, u: torch.cuda.FloatStorage(2), AssertionError, "not compiled with CUDA"),
        (lambda s, u: torch.ones(1).type(torch.cuda.FloatTensor), TypeError, "not compiled with CUDA"),
        (lambda s, u: torch.FloatStorage.from_buffer(b"abcd"), RuntimeError, "missing required argument 'byte_order'"),
        (lambda s, u: torch.UntypedStorage.from_buffer(b"abcd", byte_order="x"), ValueError, "invalid byte_order 'x'"),
    ],
)
def test_what_is_refused(x, call, error, message):
    with pytest.raises(error, match=message):
        call(typed(x), x.untyped_storage())


def test_storage_says_once_that_it_is_deprecated(x, monkeypatch):
    monkeypatch.setattr(torch._typed_storage._Told, "deprecated", False)
    with pytest.warns(UserWarning, match="TypedStorage is deprecated") as caught:
        assert x.storage().tolist() == typed(x).tolist()
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x.storage()


@pytest.mark.parametrize(
    "use",
    [lambda s: s.fill_(0), lambda s: s.is_cuda, lambda s: s.untyped(), len, lambda s: s[0], lambda s: torch.FloatStorage()],
)
def test_each_public_use_of_a_typed_storage_may_say_so(x, use):
    storage = typed(x)
    torch.storage._set_always_warn_typed_storage_removal(True)
    try:
        with pytest.warns(UserWarning, match="TypedStorage is deprecated") as caught:
            use(storage)
    finally:
        torch.storage._set_always_warn_typed_storage_removal(False)
    assert len(caught) == 1 and caught[0].filename == __file__


# ---------------------------------------------------------------- on the meta device


@pytest.mark.parametrize("values", [(), (0,), (100,), ([1, 2, 3],)])
def test_storages_without_memory(values):
    there, here = (
        torch.TypedStorage(*values, dtype=torch.float64, device="meta"),
        torch.TypedStorage(*values, dtype=torch.float64),
    )
    assert there.device.type == "meta" and (there.nbytes(), there.size()) == (here.nbytes(), here.size())
    assert there.data_ptr() == 0 and repr(there).startswith(
        "...\n[torch.storage.TypedStorage(dtype=torch.float64, device=meta)"
    )
    for part in (there, there.untyped()):
        with pytest.raises(NotImplementedError, match="Not available for 'meta' device type"):
            part.tolist()
        part.fill_(1)
    there.resize_(12)
    assert there.size() == there.clone().size() == there.int().size() == 12
    for call in (there.share_memory_, there._share_fd_cpu_, there._share_filename_cpu_):
        with pytest.raises(RuntimeError, match="only available on CPU"):
            call()
    for call in (
        there.cpu,
        lambda: torch.DoubleStorage(12).copy_(there),
        lambda: there._write_file(io.BytesIO(), False, True, 8),
    ):
        with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor"):
            call()


# ---------------------------------------------------------------- untyped


def test_one_object_for_each_memory(x):
    storage = x.untyped_storage()
    storage.note = 1
    assert x[1:].untyped_storage() is storage is typed(x).untyped() and torch.tensor(storage).untyped_storage() is storage
    del storage
    assert x.untyped_storage().note == 1
    assert torch.FloatTensor(typed(x)).data_ptr() == x.new(typed(x)).data_ptr() == x.data_ptr()


def test_storages_of_ones_own():
    class Mine(torch.UntypedStorage):
        ended = 0

        def __del__(self):
            Mine.ended += 1

    tensor = torch.tensor(Mine(8))
    assert type(tensor.untyped_storage()) is Mine and Mine.ended == 0
    del tensor
    assert Mine.ended == 1


def test_bytes_as_numbers():
    storage = torch.UntypedStorage([1, 0, 2])
    assert storage.float().tolist() == [1.0, 0.0, 2.0] and storage.bool().tolist() == [True, False, True]
    assert torch.ShortStorage.from_buffer(b"\1\2", "big").tolist() == [258]
    assert torch.BoolStorage.from_buffer(b"\x80\0", "big").tolist() == [True, False]


def test_bytes(x):
    storage = torch.UntypedStorage([1, 2, 3])
    assert storage.tolist() == [1, 2, 3] and storage[0:2].tolist() == [1, 2] and torch.UntypedStorage(4).size() == 4
    assert torch.UntypedStorage((-1, 300, True)).tolist() == [255, 44, 1]  # the lowest byte of each
    storage[0] = 9
    storage[1:] = 7
    assert storage.clone().tolist() == storage.to(device="cpu").tolist() == [9, 7, 7]
    x.untyped_storage().fill_(0)
    assert x.eq(0).all() and torch.typename(storage) == storage.type() == "mindtorch_v2.storage.UntypedStorage"


# ---------------------------------------------------------------- copies and files


def test_copies(x):
    storage = typed(x)
    for copied in (copy.copy(storage), copy.deepcopy(storage), pickle.loads(pickle.dumps(storage)), storage.clone()):
        assert copied.dtype is torch.float32 and copied.tolist() == storage.tolist()
        copied[0] = 100
    assert x[0, 0] == 0


@pytest.mark.parametrize("zipped", [True, False])
def test_storages_in_checkpoints(x, zipped):
    def again(value, **options):
        buffer = io.BytesIO()
        torch.save(value, buffer, _use_new_zipfile_serialization=zipped)
        buffer.seek(0)
        return torch.load(buffer, **options)

    for options in ({}, {"weights_only": False}):
        storage, tensor = again((typed(x), x), **options)
        assert isinstance(storage, torch.FloatStorage) and storage.tolist() == typed(x).tolist()
        storage[0] = 5
        assert tensor[0, 0] == 5
        assert again(x.untyped_storage(), **options).tolist() == x.untyped_storage().tolist()
    with pytest.raises(RuntimeError, match="Cannot save multiple tensors or storages that view the same data as different"):
        again((x, x.view(torch.int32)))


def test_room_without_data(x, tmp_path):
    path = tmp_path / "room.pt"
    with torch.serialization.skip_data():
        torch.save({"x": x}, path)
        with pytest.raises(RuntimeError, match="skip_data=True with _use_new_zipfile_serialization=False"):
            torch.save(x, io.BytesIO(), _use_new_zipfile_serialization=False)
    loaded = torch.load(path)["x"]
    assert loaded.shape == x.shape and loaded.eq(0).all()
    torch.save({"x": x}, path)
    assert torch.load(path)["x"].equal(x)
