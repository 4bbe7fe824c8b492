"""ReduceOp: how the values of several processes become one."""

from __future__ import annotations

import enum
from typing import Any


class RedOpType(enum.Enum):
    """The kinds of reduction. As in torch they are no numbers, and int() gives theirs."""

    SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR, PREMUL_SUM = range(9)

    def __repr__(self) -> str:
        return f"<RedOpType.{self.name}: {self.value}>"

    def __int__(self) -> int:
        return int(self.value)

    __index__ = __int__


class _ReduceOpMeta(type):
    """`isinstance(ReduceOp.SUM, ReduceOp)` holds, as in torch."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, RedOpType) or type.__instancecheck__(cls, instance)


class ReduceOp(metaclass=_ReduceOpMeta):
    """How values of several processes become one: `ReduceOp.SUM` and others."""

    RedOpType = RedOpType
    SUM = RedOpType.SUM
    AVG = RedOpType.AVG
    PRODUCT = RedOpType.PRODUCT
    MIN = RedOpType.MIN
    MAX = RedOpType.MAX
    BAND = RedOpType.BAND
    BOR = RedOpType.BOR
    BXOR = RedOpType.BXOR
    PREMUL_SUM = RedOpType.PREMUL_SUM

    def __init__(self, op: Any) -> None:
        self.op: Any = op.op if type(op) is ReduceOp else type(ReduceOp.SUM)(op)

    def __eq__(self, other: object) -> bool:
        return self.op == (other.op if type(other) is ReduceOp else other)

    def __hash__(self) -> int:
        return hash(self.op)

    def __repr__(self) -> str:
        return repr(self.op)


def kind_of(op: Any) -> RedOpType:
    """The kind of reduction of an argument `op`."""
    if not isinstance(op, ReduceOp):
        raise TypeError(f"op must be a torch.distributed.ReduceOp, not {type(op).__name__}")
    return op.op if type(op) is ReduceOp else op  # type: ignore[return-value]
