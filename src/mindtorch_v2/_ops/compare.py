"""Comparison and logic: results are bool and have no derivative."""

from __future__ import annotations

import numpy as np

from .._dispatch.registry import aten, composite, op

for _name, _ufunc in (("eq", np.equal), ("ne", np.not_equal), ("lt", np.less), ("le", np.less_equal),
                      ("gt", np.greater), ("ge", np.greater_equal)):
    op(f"{_name}.Tensor(Tensor self, Tensor other) -> Tensor", _ufunc, promote="compare", nondiff=True)

for _name, _ufunc in (("logical_and", np.logical_and), ("logical_or", np.logical_or), ("logical_xor", np.logical_xor)):
    op(f"{_name}(Tensor self, Tensor other) -> Tensor", _ufunc, promote="compare", nondiff=True, inplace=True)

op("logical_not(Tensor self) -> Tensor", np.logical_not, promote="compare", nondiff=True, inplace=True)

for _name, _ufunc in (("bitwise_and", np.bitwise_and), ("bitwise_or", np.bitwise_or), ("bitwise_xor", np.bitwise_xor)):
    op(f"{_name}.Tensor(Tensor self, Tensor other) -> Tensor", _ufunc, promote="same", nondiff=True, inplace=True)

op("bitwise_not(Tensor self) -> Tensor", np.invert, promote="same", nondiff=True, inplace=True)

composite("__and__.Tensor(Tensor self, Tensor other) -> Tensor", lambda self, other: aten.bitwise_and(self, other))
composite("__or__.Tensor(Tensor self, Tensor other) -> Tensor", lambda self, other: aten.bitwise_or(self, other))
composite("__xor__.Tensor(Tensor self, Tensor other) -> Tensor", lambda self, other: aten.bitwise_xor(self, other))

op("isnan(Tensor self) -> Tensor", np.isnan, promote="compare", nondiff=True)


@op("where.self(Tensor condition, Tensor self, Tensor other) -> Tensor", promote="same", promoted=("self", "other"))
def where(condition, self, other):
    if condition.dtype != np.bool_:
        raise RuntimeError(f"where expected condition to be a boolean tensor, but got a tensor with dtype {condition.dtype}")
    return np.where(condition, self, other)


where.vjp(self=lambda g, condition: aten.where(condition, g, 0.0),
          other=lambda g, condition: aten.where(condition, 0.0, g))


@op("masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor", inplace=True)
def masked_fill(self, mask, value):
    return np.where(mask, np.asarray(value).astype(self.dtype), self)


masked_fill.vjp(self=lambda g, mask: g.masked_fill(mask, 0))
