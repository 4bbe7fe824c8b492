"""libmspti as data: its functions, the kinds of its records and their layouts, which NumPy reads whole.

Followed: mspti_activity.h, mspti_callback.h and mspti_result.h of CANN's public sources. Records are packed: fields are not
aligned, sizes are multiples of eight. A word of a function is a C type as in signatures.py.
"""

from __future__ import annotations

import numpy as np

from .signatures import Function

LIBRARY = "libmspti.so"
FUNCTIONS: dict[str, Function] = {
    "msptiSubscribe": Function(">pointer pointer pointer"),
    "msptiUnsubscribe": Function("pointer"),
    "msptiActivityRegisterCallbacks": Function("pointer pointer"),
    "msptiActivityEnable": Function("uint32"),
    "msptiActivityDisable": Function("uint32"),
    "msptiActivityFlushAll": Function("uint32"),
}
"""Those that are called. Records are walked by the sizes below: msptiActivityGetNextRecord keeps its place in the thread."""

RESULTS = {
    1: "MSPTI_ERROR_INVALID_PARAMETER",
    2: "MSPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED",
    3: "MSPTI_ERROR_MAX_LIMIT_REACHED",
    4: "MSPTI_ERROR_DEVICE_OFFLINE",
    5: "MSPTI_ERROR_QUEUE_EMPTY",
    6: "MSPTI_ERROR_WITHOUT_LD_PRELOAD",
    999: "MSPTI_ERROR_INNER",
}

MARKER, KERNEL, API, COMMUNICATION, ACL_API = 1, 2, 3, 9, 10

SIZES = {1: 56, 2: 56, 3: 48, 4: 56, 5: 64, 6: 56, 7: 56, 8: 24, 9: 72, 10: 48, 11: 48, 12: 48}
"""Bytes of a record of each kind."""

MARK_INSTANT, MARK_START, MARK_END = (1, 8), (2, 16), (4, 32)  # on the host alone, and with a stream
ON_DEVICE = 1


def _record(size: int, **fields: tuple[str, int]) -> np.dtype:
    formats, offsets = zip(*fields.values(), strict=True)
    return np.dtype({"names": [*fields], "formats": formats, "offsets": offsets, "itemsize": size})  # type: ignore[call-overload,no-any-return]


_API = _record(
    48, start=("<i8", 4), end=("<i8", 12), thread=("<u4", 24), correlation=("<i8", 28), name=("<u8", 36)
)  # fmt: skip
LAYOUTS = {
    MARKER: _record(
        56, flag=("<u4", 4), source=("<u4", 8), time=("<i8", 12), id=("<u8", 20), device=("<u4", 28), stream=("<u4", 32),
        name=("<u8", 36), domain=("<u8", 44),
    ),
    KERNEL: _record(
        56, start=("<i8", 4), end=("<i8", 12), device=("<u4", 20), stream=("<u4", 24), correlation=("<i8", 28),
        type=("<u8", 36), name=("<u8", 44),
    ),
    API: _API,
    ACL_API: _API,
    COMMUNICATION: _record(
        72, dtype=("<u4", 4), count=("<u8", 8), device=("<u4", 16), stream=("<u4", 20), start=("<i8", 24), end=("<i8", 32),
        algorithm=("<u8", 40), name=("<u8", 48), group=("<u8", 56), correlation=("<i8", 64),
    ),
}  # fmt: skip
"""The fields that are used. Names are addresses of text that lives as long as the library."""

DTYPES = {
    0: "int8", 1: "int16", 2: "int32", 3: "fp16", 4: "fp32", 5: "int64", 6: "uint64", 7: "uint8", 8: "uint16", 9: "uint32",
    10: "fp64", 11: "bfp16", 12: "int128",
}  # fmt: skip


def walk(buffer: bytes) -> tuple[dict[int, np.ndarray], int]:
    """The records of a buffer by kind, and how many bytes at its end could not be read.

    Where a record begins follows from those before it. So each word gets the place of the word that would follow it as a
    record, and the words that are reached from the first are found by jumping ever further.
    """
    words = np.frombuffer(buffer, np.uint64, len(buffer) // 8)
    count = len(words)
    kinds = np.append((words & np.uint64(0xFFFFFFFF)).astype(np.int64), 0)
    sizes = np.zeros(max(SIZES) + 1, np.int64)
    for kind, size in SIZES.items():
        sizes[kind] = size // 8
    known = (kinds > 0) & (kinds < len(sizes))
    kinds[~known] = 0
    following = np.arange(count + 1) + sizes[kinds]
    whole = (sizes[kinds] > 0) & (following <= count)
    jump = np.where(whole, following, count)
    places = np.zeros(1, np.int64)
    while True:
        further = jump[places]
        further = further[further < count]
        if not len(further):
            break
        places = np.concatenate([places, further])
        jump = jump[jump]
    places = np.sort(places)
    places = places[whole[places]]
    end = int(following[places[-1]]) if len(places) else 0
    found = {}
    for kind in np.unique(kinds[places]).tolist():
        if kind in LAYOUTS:
            some = places[kinds[places] == kind]
            found[kind] = words[some[:, None] + np.arange(sizes[kind])].view(LAYOUTS[kind]).ravel()
    return found, len(buffer) - 8 * end
