"""torch.load and files made to hurt: one of three exceptions, soon, and without taking the machine along."""

from __future__ import annotations

import contextlib
import io
import pickle
import random
import sys
import time
import tracemalloc
import zipfile
from collections import Counter, OrderedDict, defaultdict

import pytest

import mindtorch_v2 as torch
from mindtorch_v2._serialization.rebuild import rebuild_tensor_v2
from mindtorch_v2._serialization.restricted import RestrictedUnpickler

# What is empty; what is in the pickle; what is around it.
DOCUMENTED = (EOFError, pickle.UnpicklingError, RuntimeError)
STATE = {
    "w": torch.arange(6.0).reshape(2, 3),
    "p": torch.nn.Parameter(torch.ones(2)),
    "b": torch.ones(3, dtype=torch.bfloat16),
    "n": [1, (2.5, None, True)],
    "t": "text",
    "c": 1j,
    "s": {1, 2},
    "x": b"bytes",
    "o": OrderedDict(a=1),
}


def saved(obj, **options):
    buffer = io.BytesIO()
    torch.save(obj, buffer, **options)
    return buffer.getvalue()


def zipped(pickled, members=(), **how):
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", **how) as archive:
        archive.writestr("a/data.pkl", pickled)
        for name, data in dict(members).items():
            archive.writestr(name, data)
    return made.getvalue()


def load(data, **options):
    return torch.load(io.BytesIO(data), **options)


def in_bounds(data, seconds=5, megabytes=64, **options):
    """Load what is expected to fail, and look at what that took."""
    tracemalloc.start()
    began = time.process_time()
    try:
        with pytest.raises(DOCUMENTED) as caught:
            load(data, **options)
        assert time.process_time() - began < seconds
        assert tracemalloc.get_traced_memory()[1] < megabytes << 20
    finally:
        tracemalloc.stop()
    return caught.value


# ------------------------------------------------------------------------------ what it reads


@pytest.mark.parametrize("protocol", range(6))
def test_plain_values_of_every_protocol(protocol):
    values = [
        0,
        -1,
        1 << 70,
        -(1 << 70),
        2.5,
        "größe\n",
        b"\xff",
        True,
        False,
        None,
        (),
        (1,),
        (1, 2),
        (1, 2, 3),
        (1, 2, 3, 4),
        [1, [2]],
        {"a": {1: 2}},
        {1, 2},
        frozenset({3}),
        1j,
        OrderedDict(a=1),
        Counter("aab"),
        "x" * 300,
        b"y" * 300,
    ]
    values += [values[5], bytearray(b"z") if protocol != 0 and protocol != 1 else "z"]
    assert load(zipped(pickle.dumps(values, protocol))) == values


def test_references_and_circles_stay():
    circle = [1]
    circle.append(circle)
    found = load(zipped(pickle.dumps(circle, 4)))
    assert found[1] is found
    filled = defaultdict(set)
    filled["a"].add(1)
    with torch.serialization.safe_globals([set]):
        assert load(zipped(pickle.dumps(filled, 4))) == filled


@pytest.mark.filterwarnings("ignore:pickle_load_args")
def test_text_of_python_2():
    assert load(zipped(b"U\x02\xc3\xa9.")) == "é"
    assert load(zipped(b"T\x02\0\0\0\xc3\xa9."), encoding="latin1") == "Ã©"
    assert load(zipped(b"U\x02\xc3\xa9."), encoding="bytes") == b"\xc3\xa9"
    assert load(zipped(b"S'a\\'b'\n.")) == "a'b"


class Slotted:
    __slots__ = ("a",)


class Plain:
    pass


class Careful:
    def __getstate__(self):
        return "state"

    def __setstate__(self, state):
        self.got = state


def test_allowed_classes_get_their_state_back():
    slotted, plain = Slotted(), Plain()
    slotted.a, plain.b = 1, [2]
    with torch.serialization.safe_globals([Slotted, Plain, Careful]):
        got = load(saved([slotted, plain, Careful()]))
    assert (got[0].a, got[1].b, got[2].got) == (1, [2], "state")


# ------------------------------------------------------------------------------ what it refuses

_REBUILD = b"ctorch._utils\n_rebuild_tensor_v2\n"
_STORAGE = b"(X\x07\0\0\0storagectorch\nFloatStorage\nX\x01\0\0\0" + b"0X\x03\0\0\0cpuK\x04tQ"
HOSTILE = {
    "a command": b"cos\nsystem\nX\x02\0\0\0ls\x85R.",
    "a command by other means": b"cbuiltins\neval\nX\x01\0\0\0" + b"1\x85R.",
    "an attribute of a safe thing": b"\x8c\x0btorch._utils\x8c\x1e_rebuild_tensor_v2.__globals__\x93.",
    "a name of the package": b"cmindtorch_v2.serialization\nload\n.",
    "calling a number": b"K\x01)R.",
    "calling with a list": b"cbuiltins\nset\n]R.",
    "calling a dtype": b"ctorch\nfloat32\n)R.",
    "attributes of a function": _REBUILD + b"}X\x0c\0\0\0__defaults__)sb.",
    "attributes of a class": b"ctorch\ndevice\n}X\x01\0\0\0xK\x01sb.",
    "attributes of a number": b"K\x01}b.",
    "state of a list": b"]}b.",
    "an unknown memo": b"h\x05.",
    "a text of gigabytes": b"X\xff\xff\xff\x7fabc.",
    "bytes of exabytes": b"\x8e" + b"\xff" * 7 + b"\x7fx.",
    "a bytearray of exabytes": b"\x96" + b"\xff" * 7 + b"\x7fx.",
    "a long of gigabytes": b"\x8b\xff\xff\xff\x7fx.",
    "a bytearray by number": b"cbuiltins\nbytearray\nJ\xff\xff\xff\x7f\x85R.",
    "a billion laughs as a key": b"}" + b"K\x01" + b"2\x86" * 60 + b"K\x01s.",
    "a tower of tuples as a key": b"}" + b")" + b"\x85" * 100_000 + b"K\x01s.",
    "a tower of tuples in a set": b"\x8f(" + b")" + b"\x85" * 100_000 + b"\x90.",
    "a tower of tuples in a frozenset": b"(" + b")" + b"\x85" * 100_000 + b"\x91.",
    "a tower of tuples as a storage": b"(X\x07\0\0\0storagectorch\nFloatStorage\n)"
    + b"\x85" * 100_000
    + b"X\x03\0\0\0cpuK\x01tQ.",
    "a billion laughs as a device": b"ctorch\ndevice\n" + b"K\x01" + b"2\x86" * 60 + b"\x85R.",
    "a billion laughs as a storage": b"K\x01" + b"2\x86" * 60 + b"Q.",
    "a billion laughs as a size": b"ctorch\nSize\n" + b"K\x01" + b"2\x86" * 60 + b"\x85R.",
    "keys of one hash": b"}("
    + b"".join(b"\x8a\x0a" + ((2**61 - 1) * i).to_bytes(10, "little") + b"N" for i in range(1, 60_000))
    + b"u.",
    "digits without end": b"I" + b"9" * 100_000 + b"\n.",
    "no mark": b"K\x01u.",
    "marks only": b"(((.",
    "a mark as a value": b"(\x85.",
    "an empty stack": b".",
    "no stop": b"]",
    "nothing": b"",
    "an operand that is none": b"\xff.",
    "persistent text": b"P1\n.",
    "an extension": b"\x82\x01.",
    "an instance": b"(ios\nsystem\n.",
    "an object": b"(cbuiltins\nset\no.",
    "a buffer": b"\x97.",
    "a later protocol": b"\x80\x09N.",
    "an odd dict": b"(K\x01d.",
    "a list as a dict": b"]K\x00K\x01s.",
    "a dict as a list": b"}K\x01a.",
    "a list as a key": b"}]K\x01s.",
    "text that is not": b"X\x01\0\0\0\xff.",
    "a float that is not": b"Fabc\n.",
    "a storage of a wrong kind": b"(X\x07\0\0\0storageK\x01X\x01\0\0\0" + b"0X\x03\0\0\0cpuK\x04tQ.",
    "a storage that is not there": _REBUILD + b"(" + _STORAGE.replace(b"\0000X", b"\0009X") + b"K\0(K\x01t(K\x01t\x89}tR.",
    "a tensor beyond its storage": _REBUILD + b"(" + _STORAGE + b"K\0(J\xff\xff\xff\x7ft(K\x01t\x89}tR.",
    "a tensor before its storage": _REBUILD + b"(" + _STORAGE + b"J\xff\xff\xff\xff(K\x01t(K\x01t\x89}tR.",
    "a tensor with a negative stride": _REBUILD + b"(" + _STORAGE + b"K\0(K\x02t(J\xff\xff\xff\xfft\x89}tR.",
    "a tensor of a hundred dimensions": _REBUILD
    + b"("
    + _STORAGE
    + b"K\0("
    + b"K\x01" * 100
    + b"t("
    + b"K\0" * 100
    + b"t\x89}tR.",
    "a tensor of sizes that are text": _REBUILD + b"(" + _STORAGE + b"K\0(X\x01\0\0\0" + b"2t(K\x01t\x89}tR.",
    "a parameter of nothing": b"ctorch._utils\n_rebuild_parameter\n(K\x01\x88}tR.",
}


@pytest.mark.parametrize("pickled", HOSTILE.values(), ids=HOSTILE)
def test_hostile_pickles_are_refused(pickled):
    defaults = rebuild_tensor_v2.__defaults__
    in_bounds(zipped(pickled, {"a/data/0": b"\0" * 16}))
    assert rebuild_tensor_v2.__defaults__ == defaults


def test_nothing_is_imported_on_the_way():
    sys.modules.pop("antigravity", None)
    in_bounds(zipped(b"cantigravity\ngeohash\n."))
    assert "antigravity" not in sys.modules


def test_weights_only_is_the_default_and_every_false_value_but_False_is_not_it():
    data = zipped(pickle.dumps(Plain(), 2))
    for options in ({}, {"weights_only": True}, {"weights_only": None}):
        with pytest.raises(pickle.UnpicklingError, match="Weights only load failed"):
            load(data, **options)
    assert isinstance(load(data, weights_only=False), Plain)


# ------------------------------------------------------------------------------ around the pickle


def test_zip_bombs_are_refused():
    zeros = bytes(80 << 20)
    packed = {"compression": zipfile.ZIP_DEFLATED, "compresslevel": 9}
    error = in_bounds(zipped(zeros, **packed), megabytes=8)
    assert isinstance(error, RuntimeError) and "times its size" in str(error)
    pickled = _REBUILD + b"(" + _STORAGE + b"K\0(K\x01t(K\x01t\x89}tR."
    in_bounds(zipped(pickled, {"a/data/0": zeros}, **packed), megabytes=8)


def test_many_small_bombs_are_one():
    megabyte = bytes(1 << 20)
    tensors = b"".join(
        _REBUILD + b"(" + _STORAGE.replace(b"X\x01\0\0\0" + b"0", b"X\x03\0\0\0%03d" % n) + b"K\0(K\x01t(K\x01t\x89}tR"
        for n in range(200)
    )
    members = {f"a/data/{n:03d}": megabyte for n in range(200)}
    in_bounds(zipped(b"(" + tensors + b"l.", members, compression=zipfile.ZIP_DEFLATED), megabytes=80)


def test_a_memo_number_reserves_nothing():
    assert load(zipped(b"]r\xff\xff\xff\x7fj\xff\xff\xff\x7fa.")) != []


@pytest.mark.parametrize(
    "make",
    [
        lambda: b"PK\x03\x04",
        lambda: b"PK\x05\x06" + bytes(18),
        lambda: zipped(b"N.")[:-1],
        lambda: b"PK\x03\x04" + bytes(4000),
        lambda: zipped(b"N.").replace(b"data.pkl", b"data.pkm"),
        lambda: b"hello world",
        lambda: b"",
        lambda: b"\x80\x02N.",
        lambda: saved(STATE).replace(b"PK\x01\x02", b"PK\x01\x03", 1),
    ],
    ids=range(9),
)
def test_what_is_no_checkpoint(make):
    in_bounds(make())


def test_the_old_format_reserves_no_more_than_the_file_has():
    whole = saved({"w": torch.arange(4.0)}, _use_new_zipfile_serialization=False)
    count = b"K\x04"
    assert whole.count(count + b"N") + whole.count(count + b"t") >= 1
    huge = whole.replace(count + b"N", b"J\xff\xff\xff\x7fN", 1).replace(count + b"t", b"J\xff\xff\xff\x7ft", 1)
    in_bounds(huge, megabytes=8)


# ------------------------------------------------------------------------------ damage

FILES = {
    "zip": saved(STATE),
    "old": saved(STATE, _use_new_zipfile_serialization=False),
    "packed": zipped(pickle.dumps([1, "a" * 50, {"k": (2.5, None)}], 4), compression=zipfile.ZIP_DEFLATED),
}


@pytest.mark.parametrize("kind", FILES)
def test_every_truncation(kind):
    whole = FILES[kind]
    for end in range(0, len(whole), 1 if kind == "packed" else 7):
        with contextlib.suppress(*DOCUMENTED):
            load(whole[:end])
    with pytest.raises(DOCUMENTED):
        load(whole[: len(whole) // 2])


@pytest.mark.parametrize("mmap", [False, True])
@pytest.mark.parametrize("kind", FILES)
def test_flipped_bits(kind, mmap, tmp_path):
    chance, whole = random.Random(kind), FILES[kind]
    path = tmp_path / "flipped.pt"
    for _ in range(300):
        data = bytearray(whole)
        for _ in range(chance.choice((1, 1, 2, 8))):
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        path.write_bytes(data)
        with contextlib.suppress(*DOCUMENTED):
            torch.load(path, mmap=mmap)


def test_random_pickles():
    """Steps of a pickle in any order: much of it is nonsense that a stack machine understands."""
    chance = random.Random(3)
    pieces = [
        b"(",
        b")",
        b"]",
        b"}",
        b"N",
        b"\x88",
        b"K\x01",
        b"X\x01\0\0\0a",
        b"\x85",
        b"\x86",
        b"\x87",
        b"t",
        b"l",
        b"d",
        b"a",
        b"e",
        b"s",
        b"u",
        b"2",
        b"0",
        b"1",
        b"q\x00",
        b"h\x00",
        b"\x94",
        b"R",
        b"b",
        b"\x81",
        b"Q",
        b"\x8f",
        b"\x90",
        b"\x91",
        _REBUILD,
        _STORAGE,
        b"ccollections\nOrderedDict\n",
        b"ctorch\nSize\n",
        b"ctorch\ndevice\n",
        b"cbuiltins\nset\n",
        b"ctorch._utils\n_rebuild_parameter\n",
        b"ctorch\nfloat32\n",
        b"\x92",
        b"c_codecs\nencode\n",
    ]
    for _ in range(4000):
        pickled = b"".join(chance.choices(pieces, k=chance.randrange(1, 14))) + b"."
        with contextlib.suppress(*DOCUMENTED):
            RestrictedUnpickler(io.BytesIO(pickled), len(pickled), lambda *args: None, {}).load()
