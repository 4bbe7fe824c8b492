"""Memory that cannot be read past its end, that stays shared, and whose writes are counted."""

from __future__ import annotations

import copy
import dis
import gc
import io
import pickle
import threading
import warnings
import weakref

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2._core import resizing
from mindtorch_v2._core.shape_only import MetaArray
from mindtorch_v2._core.storage import Storage
from mindtorch_v2._core.strides import strided
from mindtorch_v2._dispatch.entry_codegen import entry_source
from mindtorch_v2._dispatch.registry import packets
from mindtorch_v2.profiler import profile

REPEATED = "more than one element of the written-to tensor refers to a single memory location"
OVERLAP = "some elements of the input tensor and the written-to tensor refer to a single memory location"
NO_DATA = "Cannot copy out of meta tensor; no data!"
NO_ITEM = "Tensor.item() cannot be called on meta tensors"
ACROSS = "Attempting to copy from device {} to device {}, but cross-device copies are not allowed!"
OTHER_STORAGE = (
    'Attempted to set the storage of a tensor on device "{}" to a storage on different device "{}".  This is no longer '
    "allowed; the devices must match."
)
INT64 = {"dtype": torch.int64}


def meta(*shape, **options):
    return torch.empty(*shape, device="meta", **options)


def outcome(call):
    """`Type: message` of what a call raises, or "" if it does not."""
    try:
        call()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


# ---------------------------------------------------------------- tensors without memory

TO_META, FROM_META = ACROSS.format("cpu", "meta"), ACROSS.format("meta", "cpu")
META_ON_CPU = "RuntimeError: Tensor on device meta is not on the expected device cpu!"
CPU_ON_META = "RuntimeError: Tensor on device cpu is not on the expected device meta!"


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: torch.zeros(3).set_(meta(3)), f"RuntimeError: {OTHER_STORAGE.format('cpu', 'meta')}"),
        (lambda: torch.zeros(3).set_(meta(3).untyped_storage()), f"RuntimeError: {OTHER_STORAGE.format('cpu', 'meta')}"),
        (lambda: torch.zeros(3).set_(meta(3), 0, (3,), (1,)), f"RuntimeError: {OTHER_STORAGE.format('cpu', 'meta')}"),
        (lambda: meta(3).set_(torch.zeros(3)), f"RuntimeError: {OTHER_STORAGE.format('meta', 'cpu')}"),
        (lambda: torch.add(torch.ones(3), 1, out=meta(3)), f"RuntimeError: {TO_META}"),
        (lambda: torch.exp(torch.ones(3), out=meta(2)), f"RuntimeError: {TO_META}"),
        (lambda: torch.mm(torch.ones(3, 3), torch.ones(3, 3), out=meta(3, 3)), f"RuntimeError: {TO_META}"),
        (lambda: torch.cat([torch.ones(3)], out=meta(3)), f"RuntimeError: {TO_META}"),
        (lambda: torch.sort(torch.ones(3), out=(meta(3), meta(3, **INT64))), f"RuntimeError: {TO_META}"),
        (lambda: torch.add(meta(3), 1, out=torch.ones(3)), f"RuntimeError: {FROM_META}"),
        (lambda: torch.mm(meta(3, 3), meta(3, 3), out=torch.ones(3, 3)), f"RuntimeError: {FROM_META}"),
        (lambda: torch.sparse_coo_tensor(meta(2, 3, **INT64), torch.ones(3)), f"NotImplementedError: {NO_DATA}"),
        (
            lambda: torch.sparse_coo_tensor(meta(2, 3, **INT64), torch.ones(3), (4, 4)),
            "RuntimeError: backend of indices (Meta) must match backend of values (CPU)",
        ),
        (
            lambda: torch.sparse_coo_tensor(torch.zeros(2, 3, **INT64), meta(3), (4, 4)),
            "RuntimeError: backend of indices (CPU) must match backend of values (Meta)",
        ),
        (
            lambda: torch.tensor_split(torch.ones(5), meta(2, **INT64)),
            "RuntimeError: tensor_split expected tensor_indices_or_sections to be on cpu, but it's on meta",
        ),
        (lambda: torch.tensor([meta(()), meta(())]), f"RuntimeError: {NO_ITEM}"),
        (
            lambda: torch.ones(3).map_(meta(3), lambda a, b: a),
            "TypeError: map_: expected torch.FloatTensor for 'other' (got MetaFloatType)",
        ),
        (
            lambda: meta(3).map_(torch.ones(3), lambda a, b: a),
            "TypeError: map_: expected MetaFloatType for 'other' (got torch.FloatTensor)",
        ),
        (lambda: torch.ones(3).copy_(meta(3)), f"NotImplementedError: {NO_DATA}"),
        (lambda: torch.ones(3).__setitem__(0, meta(())), f"NotImplementedError: {NO_DATA}"),
        (lambda: torch.ones(3) + meta(3), META_ON_CPU),
        (lambda: torch.ones(3) + meta(()), META_ON_CPU),
        (lambda: torch.cat([meta(3), torch.ones(3)]), CPU_ON_META),
        (lambda: torch.stack([meta(3), torch.ones(3)]), CPU_ON_META),
        (lambda: torch.ones(3).add_(meta(())), META_ON_CPU),
        (lambda: torch.ones(3).index_put_((meta(1, **INT64),), torch.ones(1)), f"NotImplementedError: {NO_DATA}"),
        (
            lambda: setattr(torch.ones(3), "data", meta(3)),
            "RuntimeError: Attempted to call `variable.set_data(tensor)`, but `variable` and `tensor` have incompatible "
            "tensor type.",
        ),
        (
            lambda: setattr(torch.ones(3), "grad", meta(3)),
            "RuntimeError: attempting to assign a gradient with device type 'meta' to a tensor with device type 'cpu'. "
            "Please ensure that the gradient and the tensor are on the same device",
        ),
        (lambda: torch.set_rng_state(meta(5056, dtype=torch.uint8)), "TypeError: RNG state must be a torch.ByteTensor"),
        (lambda: meta(3).untyped_storage()[0], "NotImplementedError: Not available for 'meta' device type"),
    ],
)
def test_a_tensor_without_memory_is_refused_in_torchs_words(call, said):
    assert outcome(call) == said


@pytest.mark.parametrize(
    ("call", "shape"),
    [
        (lambda: torch.add(meta(3), 1, out=meta(3)), (3,)),
        (lambda: torch.zeros(3, out=meta(3)), (3,)),
        (lambda: torch.arange(3, out=meta(3)), (3,)),
        (lambda: meta(3).copy_(torch.ones(3)), (3,)),
        (lambda: meta(3).set_(meta(4)), (4,)),
        (lambda: meta(3).set_(), (0,)),
        (lambda: meta(3).set_(meta(4), 3, (2,), (1,)), (2,)),
        (lambda: meta(3).resize_(10), (10,)),
        (lambda: meta(3)[torch.tensor([0, 1])], (2,)),
        (lambda: meta(3).map_(meta(3), lambda a, b: a), (3,)),
        (lambda: torch.ones(()) + meta(3), (3,)),
        (lambda: meta(2, 3).t().view(3, 2, 1), (3, 2, 1)),
        (lambda: meta(2, 3).squeeze_().transpose_(0, 1), (3, 2)),
        (lambda: meta(6).as_strided_((2, 2), (1, 1)), (2, 2)),
        (lambda: meta(1, 3).expand(2, 3).unfold(1, 2, 1), (2, 2, 2)),
        (lambda: pickle.loads(pickle.dumps(meta(2, 3).t())), (3, 2)),
        (lambda: copy.deepcopy(meta(2, 3).t()), (3, 2)),
    ],
)
def test_what_works_on_shapes_stays_without_memory(call, shape):
    result = call()
    assert result.is_meta and result.shape == shape and isinstance(result._array, MetaArray) and not result.data_ptr()


@pytest.mark.parametrize("name", [n for n in dir(np.ndarray) if not n.startswith("_") and callable(getattr(np.ndarray, n))])
def test_no_method_of_its_array_reads_or_writes(name):
    array = meta(3, 3)._array
    for args in ((), (0,), ((9,),), (0, 1)):
        try:
            result = getattr(array, name)(*args)
        except (NotImplementedError, RuntimeError, TypeError, ValueError):
            continue
        assert result is None or isinstance(result, MetaArray)
    assert not array.flags.writeable


@pytest.mark.parametrize(
    "read",
    [
        lambda a: a + 1,
        lambda a: np.add(1, a),
        lambda a: np.zeros((3, 3)).__iadd__(a),
        lambda a: np.sum(a),
        lambda a: a[0, 0],
        lambda a: a[[0]],
        lambda a: a[a],
        lambda a: list(a),
        lambda a: 1 in a,
        lambda a: a.T.reshape(9),
        lambda a: a == a,
        lambda a: a @ a,
        lambda a: a.__setitem__(0, 1),
        lambda a: float(a[0, 0, None]),
        lambda a: np.copyto(np.zeros((3, 3)), a),
        copy.copy,
    ],
)
def test_no_function_reads_its_array(read):
    with pytest.raises((NotImplementedError, RuntimeError)):
        read(meta(3, 3)._array)


def test_an_array_that_lost_its_class_ends_inside_its_addresses():
    tensor = meta(1000, 1000)
    plain = np.asarray(tensor.t()._array)
    assert type(plain) is np.ndarray and not plain.any() and plain.strides == (4, 4000)
    with pytest.raises(ValueError):
        plain.flags.writeable = True
    with pytest.raises(RuntimeError, match="out of bounds for storage of size 12"):
        meta(3).as_strided((4,), (1,))


@pytest.mark.parametrize("index", [[0, 1], np.array([0]), (slice(0, 1), 0), True])
def test_no_index_reads_its_array(index):
    assert outcome(lambda: torch.select(meta(3, 3), 0, index))


def test_addresses_for_models_of_any_size():
    assert meta(2**40).element_size() * meta(2**40).numel() == 2**42
    with pytest.raises(RuntimeError, match="the operating system has none for 4611686018427387904 bytes"):
        meta(2**60)


# ---------------------------------------------------------------- views


@pytest.mark.parametrize(
    ("size", "stride", "offset", "said"),
    [
        ((-1,), (1,), 0, "Storage size calculation overflowed with sizes=[-1] and strides=[1]"),
        ((2,), (-1,), 0, "as_strided: Negative strides are not supported at the moment, got strides: [-1]"),
        ((2,), (1,), -1, "Tensor: invalid storage offset -1"),
        # The products are 2**64 bytes and more, which NumPy's check of strides takes for less.
        ((2**31 + 1,), (2**31,), 0, "Storage size calculation overflowed with sizes=[2147483649] and strides=[2147483648]"),
        ((2**31 + 1,), (2**33,), 0, "Storage size calculation overflowed with sizes=[2147483649] and strides=[8589934592]"),
        ((2,), (2**62,), 0, "Storage size calculation overflowed with sizes=[2] and strides=[4611686018427387904]"),
        ((2,), (1,), 2**62, "Storage size calculation overflowed with sizes=[2] and strides=[1]"),
        ((2, 2), (1,), 0, "mismatch in length of strides and shape"),
        (
            (11,),
            (1,),
            0,
            "setStorage: sizes [11], strides [1], storage offset 0, and itemsize 4 requiring a storage size of",
        ),
    ],
)
def test_views_outside_of_memory_are_refused(size, stride, offset, said):
    for call in (torch.Tensor.as_strided, torch.Tensor.as_strided_):
        assert outcome(lambda call=call: call(torch.ones(10), size, stride, offset)).startswith(f"RuntimeError: {said}")


def test_strides_that_overflow_64_bits_do_not_pass():
    tensor = torch.ones(10, dtype=torch.int8)
    with pytest.raises(RuntimeError, match="overflowed"):
        torch.ops.aten._reshape_alias(tensor, (2**31 + 1,), (2**33,))
    with pytest.raises(RuntimeError, match="out of bounds"):
        torch.ops.aten._reshape_alias(tensor, (20,), (1,))
    with pytest.raises(RuntimeError, match="overflowed"):
        torch.empty_strided((2**31 + 1,), (2**33,), dtype=torch.int8)


@pytest.mark.parametrize("offset", [0, 10, 50, 2**62])
def test_a_view_without_elements_may_begin_anywhere(offset):
    assert torch.ones(10).as_strided((0, 3), (1, 1), offset).shape == (0, 3)
    assert torch.ones(3).set_(torch.ones(5).untyped_storage(), offset, (0,), (1,)).shape == (0,)


# ---------------------------------------------------------------- storages that change their size


def test_a_write_through_an_older_view_is_seen_after_a_resize():
    x = torch.zeros(4)
    view, data, detached = x[1:3], x.data, x.detach()
    x.resize_(1000)
    view.fill_(7)
    assert x[:4].tolist() == data.tolist() == detached.tolist() == [0, 7, 7, 0]
    assert view._base is x and view.untyped_storage().nbytes() == 4000


def test_a_view_that_grows_stays_a_view():
    x = torch.zeros(4)
    view = x[1:3]
    view.resize_(20)
    assert (view.storage_offset(), x.untyped_storage().nbytes(), view._base is x) == (1, 84, True)
    x.fill_(3)
    assert view[:3].tolist() == [3, 3, 3]


def test_a_view_of_a_target_shows_what_was_written():
    x = torch.zeros(4)
    view = x[1:3]
    with pytest.warns(UserWarning, match="was resized since it had shape"):
        torch.add(torch.ones(30), 1, out=x)
    assert view.tolist() == [2, 2] and view._is_view()


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
def test_storages_grow_and_shrink_with_their_tensors():
    x = torch.arange(3.0)
    view = x[:2]
    storage = x.untyped_storage()
    assert storage.resize_(100).nbytes() == 100 and storage.resizable()
    assert x.tolist() == [0, 1, 2] and x.data_ptr() == view.data_ptr() == storage.data_ptr()
    with pytest.raises(RuntimeError, match="requiring a storage size of 12 are out of bounds for storage of size 8"):
        storage.resize_(8)
    assert x.resize_(2).untyped_storage().resize_(8).nbytes() == 8 and view.tolist() == [0, 1]
    typed = torch.FloatStorage([1.0, 2.0])
    typed.resize_(3)
    assert typed.tolist()[:2] == [1, 2] and len(typed) == 3


def test_memory_of_others_is_not_resized():
    array = np.zeros(4)
    for tensor in (torch.from_numpy(array), torch.from_numpy(array).data, torch.frombuffer(bytearray(8), dtype=torch.int8)):
        with pytest.raises(RuntimeError, match="^Trying to resize storage that is not resizable$"):
            tensor.resize_(1000)
        assert tensor.resize_(2).shape == (2,)
    part = torch.zeros(3).untyped_storage()[0:4]
    assert not part.resizable()
    with pytest.raises(RuntimeError, match="not resizable"):
        part.resize_(100)


def test_set_grows_a_storage():
    source = torch.ones(5)
    x = torch.zeros(3).set_(source, 0, (20,), (1,))
    assert x[:5].tolist() == [1] * 5 and source.untyped_storage().nbytes() == 80
    x.fill_(2)
    assert source.tolist() == [2] * 5
    assert torch.ones(3, dtype=torch.int32).set_(torch.ones(5), 0, (2,), (1,)).tolist() == [1065353216] * 2


def test_frozen_views_are_found():
    x = torch.zeros(4)
    view = x[1:3]
    gc.freeze()
    try:
        x.resize_(100)
    finally:
        gc.unfreeze()
    x.fill_(5)
    assert view.tolist() == [5, 5]


def test_nothing_is_searched_for_where_nothing_is_shared(monkeypatch):
    def search(*_):
        raise AssertionError("searched")

    monkeypatch.setattr(resizing, "referrers", search)
    assert torch.zeros(4).resize_(100).shape == (100,)
    x = torch.zeros(4)
    x.add_(1)
    assert x.resize_(9).resize_(100)[:4].tolist() == [1, 1, 1, 1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert torch.add(torch.ones(30), 1, out=torch.zeros(4)).shape == (30,)
    with pytest.raises(AssertionError, match="searched"):
        (lambda x, view: x.resize_(100))(*(lambda x: (x, x[:1]))(torch.zeros(4)))


def test_the_profiler_sees_the_old_memory_go_and_the_new_come():
    with profile(profile_memory=True) as prof:
        x = torch.zeros(1000)
        view = x[:10]
        x.resize_(3000)
        del x, view
    changes = [e.self_cpu_memory_usage for e in prof.events()]
    assert sum(changes) == 0 or sum(e.cpu_memory_usage for e in prof.events() if e.cpu_parent is None) == 0, changes
    resize = next(e for e in prof.events() if e.name == "aten::resize_")
    assert resize.cpu_memory_usage == 12000 - 4000


# ---------------------------------------------------------------- writes into repeated memory


@pytest.mark.parametrize(
    "write",
    [
        lambda: torch.zeros(1).expand(3).add_(1),
        lambda: torch.zeros(4).as_strided((3,), (0,)).add_(1),
        lambda: torch.zeros(4).as_strided_((3,), (0,)).mul_(2),
        lambda: torch.zeros(3).set_(torch.zeros(4), 0, (3,), (0,)).copy_(torch.ones(3)),
        lambda: torch.view_as_real(torch.zeros(1, dtype=torch.complex64).expand(3)).add_(1),
        lambda: torch.zeros(1, 4).expand(3, 4).unfold(1, 2, 2).add_(1),
        lambda: copy.deepcopy(torch.zeros(1).expand(3)).add_(1),
        lambda: pickle.loads(pickle.dumps(torch.zeros(1).expand(3))).add_(1),
        lambda: _through_a_checkpoint(torch.zeros(1).expand(3)).add_(1),
        lambda: torch.zeros(1).expand(3).scatter_(0, torch.tensor([0]), 1.0),
        lambda: torch.zeros(1).expand(3).index_add_(0, torch.tensor([0]), torch.ones(1)),
        lambda: torch.add(torch.ones(3), 1, out=torch.zeros(1).expand(3)),
        lambda: torch.mm(torch.ones(2, 2), torch.ones(2, 2), out=torch.zeros(1).expand(2, 2)),
        lambda: torch.cat([torch.ones(2), torch.ones(1)], out=torch.zeros(1).expand(3)),
        lambda: torch.sort(torch.ones(3), out=(torch.zeros(1).expand(3), torch.zeros(3, **INT64))),
        lambda: torch.arange(3, out=torch.zeros(1).expand(3)),
        lambda: _accumulate(torch.zeros(1).expand(3)),
    ],
)
def test_writes_into_repeated_memory_are_refused(write):
    with pytest.raises(RuntimeError, match=REPEATED):
        write()


def _through_a_checkpoint(tensor):
    file = io.BytesIO()
    torch.save(tensor, file)
    return torch.load(io.BytesIO(file.getvalue()))


def _accumulate(grad):
    weight = torch.ones(3, requires_grad=True)
    weight.grad = grad
    (weight * 2).sum().backward()


@pytest.mark.parametrize(
    "write",
    [
        lambda x, i: x.scatter_(0, i, x),
        lambda x, i: x.scatter_add_(0, i, x),
        lambda x, i: x.index_add_(0, i, x[:2]),
        lambda x, i: x.index_copy_(0, i, x[:2]),
        lambda x, i: x.scatter_reduce_(0, i, x[:2], "sum"),
        lambda x, i: x[1:].add_(x[:-1]),
        lambda x, i: torch.add(x[:-1], 1, out=x[1:]),
        lambda x, i: torch.cat([x[:2], x[:1]], out=x),
        lambda x, i: torch.stack([x[:1], x[1:2], x[2:]], out=x.view(3, 1)),
    ],
)
def test_writes_into_what_is_read_are_refused(write):
    x = torch.arange(3.0)
    with pytest.raises(RuntimeError, match=OVERLAP):
        write(x, torch.tensor([1, 2]))
    assert x.tolist() == [0, 1, 2]


def test_parts_of_repeated_memory_that_do_not_repeat_can_be_written():
    x = torch.zeros(1, 2)
    x.expand(3, 2)[0].add_(1)
    x.expand(3, 2)[:1].add_(1)
    torch.zeros(1).expand(3).as_strided((1,), (1,)).add_(1)
    assert x.tolist() == [[2, 2]] and x.expand(3, 2).resize_(2).add_(1).tolist() == [3, 3]


# ---------------------------------------------------------------- versions


@pytest.mark.parametrize("name", ["add_.Tensor", "zero_", "copy_", "relu_", "fill_.Scalar"])
def test_a_version_is_counted_in_one_step(name):
    """Threads change at calls, at jumps backwards and where functions begin: none of them stands inside the count."""
    base, _, overload = name.partition(".")
    source = entry_source(packets[base].overloads[overload])
    assert source.count("version += 1") == 1 and "_shared.version = " not in source
    counting = "def count(_shared):\n    _shared.version += 1\n"
    names = [one.opname for one in dis.get_instructions(compile(counting, "", "exec").co_consts[0])]
    first, last = names.index("LOAD_ATTR"), names.index("STORE_ATTR")
    assert not {n for n in names[first:last] if n.startswith(("CALL", "JUMP", "RESUME"))}


def test_threads_make_one_storage_for_a_tensor():
    for _ in range(50):
        tensor = torch.zeros(3)
        begin, found = threading.Barrier(4), []

        def make(tensor=tensor, begin=begin, found=found):
            begin.wait()
            found.append(tensor[:1]._storage)

        threads = [threading.Thread(target=make) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len({id(each) for each in found}) == 1 and isinstance(found[0], Storage)


def test_what_is_refused_is_not_counted():
    x = torch.zeros(3)
    for write in (lambda: x.add_(torch.ones(4)), lambda: torch.add(x, torch.ones(4), out=x), lambda: x.resize_(-1)):
        with pytest.raises(RuntimeError):
            write()
    assert x._version == 0
    with torch.inference_mode():
        inner = torch.zeros(3)
    for write in (lambda: inner.add_(1), lambda: inner.resize_(9), lambda: torch.zeros(3).set_(inner)):
        with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside InferenceMode"):
            write()
    assert inner.tolist() == [0, 0, 0]


# ---------------------------------------------------------------- sizes

NO_MEMORY = "DefaultCPUAllocator: can't allocate memory: you tried to allocate {} bytes. Error code 12 (Cannot allocate memory)"
TOO_BIG = "Storage size calculation overflowed with sizes="


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: torch.empty(2**62), f"RuntimeError: {TOO_BIG}[4611686018427387904]"),
        (lambda: torch.zeros(2**31, 2**31), f"RuntimeError: {TOO_BIG}[2147483648, 2147483648]"),
        (lambda: torch.empty(2**60), NO_MEMORY.format(2**62)),
        (lambda: torch.full((2**50,), 1.0), NO_MEMORY.format(2**52)),
        (lambda: torch.ones(1).expand(2**50).clone(), NO_MEMORY.format(2**52)),
        (lambda: torch.ones(1).expand(2**50) + 1, NO_MEMORY.format(2**52)),
        (lambda: torch.ones(3).resize_(2**60), NO_MEMORY.format(2**62)),
        (lambda: torch.ones(3).resize_(2**62), f"RuntimeError: {TOO_BIG}[4611686018427387904]"),
        (lambda: torch.UntypedStorage(2**60), NO_MEMORY.format(2**60)),
        (lambda: torch.ones(3).expand(2**31, 2**31, 3), "RuntimeError: numel: integer multiplication overflow"),
        (lambda: torch.zeros(2**63), 'failed to unpack the object at pos 1 with error "Overflow when unpacking long long'),
        (lambda: torch.arange(2**63 - 1), f"RuntimeError: {TOO_BIG}"),
        (lambda: meta(2**31, 2**31), f"RuntimeError: {TOO_BIG}[2147483648, 2147483648]"),
        (lambda: torch.UntypedStorage(-1), "called with negative number: 18446744073709551615"),
    ],
)
def test_sizes_beyond_memory_raise_what_torch_raises(call, said):
    assert said in outcome(call)


def test_the_one_view_of_memory_checks_its_numbers():
    memory = np.arange(6, dtype=np.uint8)
    view = strided(memory, np.dtype(np.uint8), (2, 2), (2, 1), 1)
    assert view.tolist() == [[1, 2], [3, 4]] and view.flags.writeable
    assert not strided(memory, np.dtype(np.uint8), (2, 2), (0, 1)).flags.writeable
    with pytest.raises(RuntimeError, match="out of bounds for storage of size 6"):
        strided(memory, np.dtype(np.uint16), (2, 2), (2, 2), 1)


def test_copies_have_gradients_of_tensors_that_do_not_require_them():
    x = torch.zeros(2)
    x.grad = torch.ones(2)
    copied = copy.deepcopy([x, x.grad])
    assert copied[0].grad is copied[1] and copied[1].tolist() == [1, 1] and not copied[0].requires_grad


def test_tensors_from_weak_references_are_whole():
    x = torch.ones(2)
    reference = weakref.ref(x)
    x._fix_weakref()
    assert reference() is x and isinstance(x, torch._C.TensorBase) and issubclass(torch.Tensor, torch._C.TensorBase)
    del x
    assert reference() is None
    with pytest.raises(RuntimeError, match="Cannot directly construct TensorBase"):
        torch._C.TensorBase()
    with pytest.raises(RuntimeError, match="Cannot subclass _TensorBase directly"):
        type("Mine", (torch._C.TensorBase,), {})


@pytest.mark.parametrize("left, right", [((2, 3, 4), (4, 2)), ((2, 1, 3, 4), (2, 4, 2)), ((4,), (2, 4, 2)), ((2, 3, 4), (4,))])
def test_no_batched_product_is_written_to_where_there_is_no_memory(left, right):
    x, y = torch.ones(*left), torch.ones(*right)
    with pytest.raises(RuntimeError, match="cross-device copies are not allowed"):
        torch.matmul(x, y, out=(x @ y).to("meta"))
