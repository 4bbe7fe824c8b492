"""CANN's library of collectives, libhccl.so: its functions as data, and communicators. Without it NPUs cannot talk.

Followed: the headers hccl/hccl.h and hccl/hccl_types.h of CANN 8.1.RC1. Buffers are row-major arrays in device memory; a call
puts the collective into a stream and returns.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from .devices import activate
from .driver import driver, library_folders
from .errors import DriverNotFoundError, MissingSymbolError, NPUError
from .launch import address, observed
from .signatures import TYPES
from .streams import Stream

LIBRARY = "libhccl.so"
ROOT_INFO_BYTES = 4108
_NAME_BYTES = 128

# Arguments of each function; a stream and a communicator are pointers. All of them return an HcclResult.
FUNCTIONS = {
    "HcclGetRootInfo": "pointer",
    "HcclCommInitRootInfo": "uint32 pointer uint32 pointer",
    "HcclCommDestroy": "pointer",
    "HcclGetCommName": "pointer pointer",
    "HcclGetCommAsyncError": "pointer pointer",
    "HcclAllReduce": "pointer pointer uint64 int32 int32 pointer pointer",
    "HcclReduce": "pointer pointer uint64 int32 int32 uint32 pointer pointer",
    "HcclReduceScatter": "pointer pointer uint64 int32 int32 pointer pointer",
    "HcclBroadcast": "pointer uint64 int32 uint32 pointer pointer",
    "HcclAllGather": "pointer pointer uint64 int32 pointer pointer",
    "HcclScatter": "pointer pointer uint64 int32 uint32 pointer pointer",
    "HcclAlltoAll": "pointer uint64 int32 pointer uint64 int32 pointer pointer",
    "HcclAlltoAllV": "pointer pointer pointer int32 pointer pointer pointer int32 pointer pointer",
    "HcclSend": "pointer uint64 int32 uint32 pointer pointer",
    "HcclRecv": "pointer uint64 int32 uint32 pointer pointer",
    "HcclBatchSendRecv": "pointer uint32 pointer pointer",
    "HcclBarrier": "pointer pointer",
}

RESULTS = {
    1: "HCCL_E_PARA",
    2: "HCCL_E_PTR",
    3: "HCCL_E_MEMORY",
    4: "HCCL_E_INTERNAL",
    5: "HCCL_E_NOT_SUPPORT",
    6: "HCCL_E_NOT_FOUND",
    7: "HCCL_E_UNAVAIL",
    8: "HCCL_E_SYSCALL",
    9: "HCCL_E_TIMEOUT",
    11: "HCCL_E_TCP_CONNECT",
    12: "HCCL_E_ROCE_CONNECT",
    13: "HCCL_E_TCP_TRANSFER",
    14: "HCCL_E_ROCE_TRANSFER",
    15: "HCCL_E_RUNTIME",
    16: "HCCL_E_DRV",
    19: "HCCL_E_NETWORK",
    20: "HCCL_E_AGAIN",
    21: "HCCL_E_REMOTE",
    22: "HCCL_E_SUSPENDING",
}

DATA_TYPES = {
    "int8": 0,
    "int16": 1,
    "int32": 2,
    "float16": 3,
    "float32": 4,
    "int64": 5,
    "uint64": 6,
    "uint8": 7,
    "uint16": 8,
    "uint32": 9,
    "float64": 10,
    "bfloat16": 11,
}
"""HcclDataType by NumPy's name."""

REDUCED = ("int8", "int16", "int32", "int64", "float16", "float32", "bfloat16")
REDUCTIONS = {"SUM": 0, "PRODUCT": 1, "MAX": 2, "MIN": 3}
_BYTES = DATA_TYPES["uint8"]


class HcclError(NPUError):
    """A call of HCCL failed."""

    def __init__(self, call: str, code: int, message: str) -> None:
        super().__init__(call, code, message)
        self.args = (f"{call} failed with {code} ({RESULTS.get(code, 'an unlisted code')}): {message or 'no message'}",)


class _Item(ctypes.Structure):
    """HcclSendRecvItem."""

    _fields_ = (
        ("type", ctypes.c_int32),
        ("buffer", ctypes.c_void_p),
        ("count", ctypes.c_uint64),
        ("dtype", ctypes.c_int32),
        ("peer", ctypes.c_uint32),
    )


class Message(NamedTuple):
    """A message of a batch."""

    is_sent: bool
    buffer: np.ndarray
    peer: int


@cache
def _calls() -> dict[str, Callable[..., None]]:
    """The library's functions, which raise if they fail."""
    runtime = driver()
    path = next((folder / LIBRARY for folder in library_folders() if (folder / LIBRARY).is_file()), None)
    if path is None:
        looked = ", ".join(map(str, library_folders()))
        raise DriverNotFoundError(f"CANN's {LIBRARY} was not found, without which NPUs cannot talk. Looked in: {looked}.")
    try:
        library = ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
    except OSError as error:
        raise DriverNotFoundError(f"CANN's {path} could not be loaded: {error}") from error

    def checked(name: str, arguments: str) -> Callable[..., None]:
        try:
            symbol = library[name]
        except AttributeError:
            raise MissingSymbolError(f"{path} has no function {name}: it belongs to another version of CANN than 8.1") from None
        types: list[Any] = [TYPES[word] for word in arguments.split()]
        symbol.argtypes = types
        symbol.restype = ctypes.c_int32

        def run(*values: Any) -> None:
            code = symbol(*values)
            if code:
                raise HcclError(name, code, runtime.recent_message())

        return run

    return {name: checked(name, arguments) for name, arguments in FUNCTIONS.items()}


def why_unavailable() -> str | None:
    """Why NPUs cannot talk here, None if they can."""
    try:
        _calls()
    except (DriverNotFoundError, MissingSymbolError, NPUError) as error:
        return str(error)
    return None


def root_info() -> bytes:
    """What the ranks of a communicator must know to meet; one rank asks for it and tells the others."""
    info = ctypes.create_string_buffer(ROOT_INFO_BYTES)
    _calls()["HcclGetRootInfo"](info)
    return info.raw


def _typed(buffer: np.ndarray) -> tuple[int, int]:
    """How many elements of which data type: bytes, where HCCL has no word for the dtype."""
    code = DATA_TYPES.get(buffer.dtype.name)
    return (buffer.nbytes, _BYTES) if code is None else (buffer.size, code)


class Comm:
    """Ranks that call the same collectives in the same order, each with one device."""

    def __init__(self, info: bytes, rank: int, size: int, device: int) -> None:
        """Meet the others; returns when all have come."""
        self.rank, self.size, self.device_index = rank, size, device
        self._call = _calls()
        activate(device)
        handle = ctypes.c_void_p()
        self._call["HcclCommInitRootInfo"](size, ctypes.create_string_buffer(info, ROOT_INFO_BYTES), rank, ctypes.byref(handle))
        self._handle: ctypes.c_void_p | None = handle

    @property
    def name(self) -> str:
        """HCCL's name of it, which CANN's tools show."""
        text = ctypes.create_string_buffer(_NAME_BYTES)
        self._call["HcclGetCommName"](self._handle, text)
        return text.value.decode(errors="replace")

    def failure(self) -> str | None:
        """What failed while it ran, as far as HCCL tells."""
        code = ctypes.c_int32()
        self._call["HcclGetCommAsyncError"](self._handle, ctypes.byref(code))
        return RESULTS.get(code.value, f"code {code.value}") if code.value else None

    def destroy(self) -> None:
        """Give it back; nothing of it may be under way."""
        handle, self._handle = self._handle, None
        if handle is not None:
            self._call["HcclCommDestroy"](handle)

    def _run(self, name: str, stream: Stream, nbytes: int, *arguments: Any) -> None:
        if self._handle is None:
            raise RuntimeError(f"{name}: the communicator was destroyed")
        activate(self.device_index)
        with observed("kernel", name, stream, nbytes):
            self._call[name](*arguments, self._handle, stream.handle)

    def all_reduce(self, buffer: np.ndarray, op: str, stream: Stream) -> None:
        """The buffer becomes the reduction of all, in place."""
        at, (count, dtype) = address(buffer), _typed(buffer)
        self._run("HcclAllReduce", stream, buffer.nbytes, at, at, count, dtype, REDUCTIONS[op])

    def reduce(self, buffer: np.ndarray, op: str, root: int, stream: Stream) -> None:
        """The root's buffer becomes the reduction of all."""
        at, (count, dtype) = address(buffer), _typed(buffer)
        self._run("HcclReduce", stream, buffer.nbytes, at, at, count, dtype, REDUCTIONS[op], root)

    def reduce_scatter(self, parts: np.ndarray, part: np.ndarray, op: str, stream: Stream) -> None:
        """`part` becomes this rank's row of the reduction of all `parts`."""
        count, dtype = _typed(part)
        self._run("HcclReduceScatter", stream, parts.nbytes, address(parts), address(part), count, dtype, REDUCTIONS[op])

    def broadcast(self, buffer: np.ndarray, root: int, stream: Stream) -> None:
        """The buffer becomes the root's."""
        self._run("HcclBroadcast", stream, buffer.nbytes, address(buffer), *_typed(buffer), root)

    def all_gather(self, part: np.ndarray, parts: np.ndarray, stream: Stream) -> None:
        """`parts` becomes every rank's part, by rank."""
        self._run("HcclAllGather", stream, parts.nbytes, address(part), address(parts), *_typed(part))

    def scatter(self, parts: np.ndarray | None, part: np.ndarray, root: int, stream: Stream) -> None:
        """`part` becomes this rank's row of the root's `parts`."""
        source = None if parts is None else address(parts)
        self._run("HcclScatter", stream, part.nbytes, source, address(part), *_typed(part), root)

    def all_to_all(
        self,
        sent: np.ndarray,
        counts: Sequence[int],
        received: np.ndarray,
        received_counts: Sequence[int],
        stream: Stream,
    ) -> None:
        """Every rank gets its elements of what each other one sent, by rank."""
        dtype = DATA_TYPES.get(sent.dtype.name, _BYTES)
        width = 1 if sent.dtype.name in DATA_TYPES else sent.itemsize
        if len({*counts, *received_counts}) == 1:
            count = counts[0] * width
            sides: tuple[Any, ...] = (address(sent), count, dtype, address(received), count, dtype)
            self._run("HcclAlltoAll", stream, sent.nbytes, *sides)
            return
        numbers = []
        for each in (counts, received_counts):
            whole = np.array(each, np.uint64) * np.uint64(width)
            numbers += [whole, np.concatenate([[np.uint64(0)], np.cumsum(whole)[:-1]]).astype(np.uint64)]
        at = [number.ctypes.data for number in numbers]  # HCCL copies them before it returns
        self._run("HcclAlltoAllV", stream, sent.nbytes, address(sent), *at[:2], dtype, address(received), *at[2:], dtype)

    def messages(self, messages: Sequence[Message], stream: Stream) -> None:
        """Send and receive messages, none of which waits for another."""
        if len(messages) == 1:
            ((is_sent, buffer, peer),) = messages
            name = "HcclSend" if is_sent else "HcclRecv"
            self._run(name, stream, buffer.nbytes, address(buffer), *_typed(buffer), peer)
            return
        items = (_Item * len(messages))(
            *(_Item(int(not each.is_sent), address(each.buffer), *_typed(each.buffer), each.peer) for each in messages)
        )
        nbytes = sum(each.buffer.nbytes for each in messages)
        self._run("HcclBatchSendRecv", stream, nbytes, items, len(messages))

    def barrier(self, stream: Stream) -> None:
        """The stream goes on when every rank's has come here."""
        self._run("HcclBarrier", stream, 0)
