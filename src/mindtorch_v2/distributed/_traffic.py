"""What a collective or message is, apart from its bytes: for the check that all processes call the same, and for profiles."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .._core.tensor import Tensor
from .._dispatch import communications
from .._dispatch.communications import Communication
from .._dispatch.observer import outline
from ._engines.engine import Buffer, Request
from ._errors import DistBackendError

if TYPE_CHECKING:
    from ._process_group import ProcessGroup

_MOST_RANKS = 30  # that a trace lists
_SPLITS_DIFFER = -1  # in place of a number of elements: it may be another one in each process

# By the name that NCCL's traces have of a collective: the one that gloo's have. The order numbers them in checks.
COLLECTIVES = {
    "allreduce": "all_reduce",
    "allreduce_coalesced": "all_reduce",
    "broadcast": "broadcast",
    "reduce": "reduce",
    "all_gather": "all_gather",
    "_allgather_base": "all_gather",
    "reduce_scatter": "all_reduce",
    "_reduce_scatter_base": "all_reduce",
    "gather": "gather",
    "scatter": "scatter",
    "all_to_all": "all_to_all",
    "all_to_allv": "all_to_all",
    "barrier": "barrier",
    "send": "send",
    "recv": "recv",
}
_BY_HCCL = {"reduce_scatter": "reduce_scatter", "_reduce_scatter_base": "reduce_scatter"}  # gloo reduces everything
_NAMES = tuple(COLLECTIVES)
_KINDS = ("", "SUM", "AVG", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR")
# NumPy's names of dtypes, and those of torch's C++, which traces have.
_DTYPES = {
    "": "",
    "float32": "Float",
    "float64": "Double",
    "float16": "Half",
    "bfloat16": "BFloat16",
    "complex64": "ComplexFloat",
    "complex128": "ComplexDouble",
    "int64": "Long",
    "int32": "Int",
    "int16": "Short",
    "int8": "Char",
    "uint8": "Byte",
    "bool": "Bool",
    "uint16": "UInt16",
    "uint32": "UInt32",
    "uint64": "UInt64",
    "float8_e4m3fn": "Float8_e4m3fn",
    "float8_e5m2": "Float8_e5m2",
    "float8_e4m3fnuz": "Float8_e4m3fnuz",
    "float8_e5m2fnuz": "Float8_e5m2fnuz",
}
_DTYPE_NAMES = tuple(_DTYPES)


class Traffic(NamedTuple):
    """One collective or message as this process calls it."""

    collective: str  # its name in NCCL's traces, a key of COLLECTIVES
    inputs: Sequence[Tensor] = ()  # those that gloo's traces list
    sent: int = 0  # elements
    received: int = 0
    kind: str = ""  # of reduction
    root: int = -1  # a rank of the group
    peer: int | None = None  # of a message; None is any
    tag: int = 0
    in_splits: Sequence[int] = ()
    out_splits: Sequence[int] = ()

    @property
    def dtype(self) -> str:
        """NumPy's name of the elements."""
        return str(self.inputs[0]._array.dtype) if self.inputs else ""

    @property
    def nbytes(self) -> int:
        """The most bytes that this process sends or receives."""
        return max(self.sent, self.received) * (self.inputs[0].element_size() if self.inputs else 1)

    def signature(self) -> list[int]:
        """Numbers that must be the same in all processes."""
        uneven = self.collective in ("all_to_all", "all_to_allv")
        dtype = self.dtype
        return [
            _NAMES.index(self.collective),
            _KINDS.index(self.kind),
            # The root of a scatter alone has inputs.
            0 if self.collective == "scatter" or dtype not in _DTYPES else _DTYPE_NAMES.index(dtype),
            _SPLITS_DIFFER if uneven else self.received if self.collective == "scatter" else self.sent,
            self.root,
        ]


def _told(signature: Sequence[int]) -> str:
    """What a process called, from its numbers."""
    name, kind, dtype, count, root = signature
    words = [_NAMES[name]]
    if kind:
        words.append(_KINDS[kind])
    if count >= 0 and _NAMES[name] != "barrier":
        words.append(f"of {count} {_DTYPE_NAMES[dtype]} element{'' if count == 1 else 's'}".replace("  ", " "))
    if root >= 0:
        words.append(f"with root {root}")
    return " ".join(words)


class CheckedRequest:
    """A collective's request that is done only if all processes have called the same collective with the same sizes."""

    def __init__(self, check: Request, signatures: Buffer, request: Request) -> None:
        """`check` gathers one row of `signatures` from each process."""
        self._check, self._signatures, self._request = check, signatures, request
        self._agreed = False

    def test(self) -> bool:
        """Whether it is done; DistBackendError if the processes do not agree."""
        if not self._agreed:
            if not self._check.test():
                return False
            rows = self._signatures
            if not (rows == rows[0]).all():
                calls = "; ".join(f"rank {rank}: {_told(row)}" for rank, row in enumerate(rows.tolist()))
                raise DistBackendError(f"the processes do not call the same: {calls}")
            self._agreed = True
        return self._request.test()

    def source(self) -> int:
        """-1: it is no message."""
        return -1


def begin_checked(group: ProcessGroup, traffic: Traffic, begin: Callable[[], Request]) -> Request:
    """Begin a collective and the check that all processes call the same one."""
    if group._communicator.is_alone:
        return begin()
    mine = np.array(traffic.signature(), np.int64)
    signatures = np.empty((group.size(), len(mine)), np.int64)
    check = group._communicator.all_gather(mine, signatures)
    return CheckedRequest(check, signatures, begin())


# ---------------------------------------------------------------------- profiles


def told_to_profiles(
    group: ProcessGroup, traffic: Traffic, sequence: Callable[[], int], by_hccl: bool = False
) -> Communication | None:
    """Tell recordings that a communication begins; None if there are none."""
    own = _BY_HCCL if by_hccl else {}
    backend = "hccl" if by_hccl else group.name()
    name = f"{backend}:{own.get(traffic.collective) or COLLECTIVES[traffic.collective]}"
    lane = f"{backend}: group {group.group_name} ({group.group_desc})"

    def describe(communication: Communication) -> dict[str, Any]:
        return _arguments(group, traffic, sequence(), communication.is_async)

    return communications.begin(name, lane, lambda: outline(traffic.inputs), describe)


class SeveralCommunications:
    """Communications that end together."""

    def __init__(self, every: Sequence[Communication | None]) -> None:
        self._every = [each for each in every if each is not None]
        self.is_async = True

    def end(self) -> None:
        """Note that they have ended now."""
        for each in self._every:
            each.end()


def _arguments(group: ProcessGroup, traffic: Traffic, sequence: int, is_async: bool) -> dict[str, Any]:
    """What NCCL's traces tell of a collective, under the same names."""
    ranks = list(group._ranks)
    listed = ", ".join(map(str, ranks))
    if len(ranks) > _MOST_RANKS:
        listed = f"{', '.join(map(str, ranks[: _MOST_RANKS - 1]))}, ..., {ranks[-1]}"
    stride = ranks[1] - ranks[0] if len(ranks) > 1 else 0
    is_even = all(after - before == stride for before, after in itertools.pairwise(ranks))
    source, target = _ends(group, traffic)
    arguments: dict[str, Any] = {
        "Collective name": traffic.collective,
        "In msg nelems": traffic.sent,
        "Out msg nelems": traffic.received,
        "Group size": group.size(),
        "dtype": _DTYPES.get(traffic.dtype, traffic.dtype),
        "In split size": str(list(traffic.in_splits)),
        "Out split size": str(list(traffic.out_splits)),
        "Process Group Name": group.group_name,
        "Process Group Description": group.group_desc,
        "Process Group Ranks": f"[{listed}]",
        "Rank": ranks[group.rank()],
        "Seq": sequence,
        "Is asynchronized op": is_async,
        "Comms Id": _comms_id(group, traffic, sequence, source, target),
    }
    if is_even:
        arguments["Global rank start"], arguments["Global rank stride"] = ranks[0], stride
    if source >= 0:
        arguments["Src Rank"] = ranks[source]
    if target >= 0:
        arguments["Dst Rank"] = ranks[target]
    if traffic.root >= 0:
        arguments["Root Rank"] = ranks[traffic.root]
    return arguments


def _ends(group: ProcessGroup, traffic: Traffic) -> tuple[int, int]:
    """The ranks in the group that a message goes from and to, -1 if unknown or for a collective."""
    peer = -1 if traffic.peer is None else traffic.peer
    if traffic.collective == "send":
        return group.rank(), peer
    return (peer, group.rank()) if traffic.collective == "recv" else (-1, -1)


def _comms_id(group: ProcessGroup, traffic: Traffic, sequence: int, source: int, target: int) -> int:
    """A number that all processes have of one communication, and of no other."""
    what: tuple[Any, ...] = (group.group_name, tuple(group._ranks), sequence)
    if source >= 0 or target >= 0:
        what = (*what, source, target, traffic.tag)
    return int.from_bytes(hashlib.blake2b(repr(what).encode(), digest_size=7).digest(), "big")
