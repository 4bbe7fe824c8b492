"""Second names: ops that torch lists under two names, each recorded under the one it was called by."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._dispatch.registry import OpSpec, aten, composite, packets
from . import nn, pointwise, special  # noqa: F401  the ops that get a second name

# second name -> first name; in-place forms come along.
_NAMES = {
    "absolute": "abs",
    "arccos": "acos",
    "arccosh": "acosh",
    "arcsin": "asin",
    "arcsinh": "asinh",
    "arctan": "atan",
    "arctan2": "atan2",
    "arctanh": "atanh",
    "divide": "div",
    "multiply": "mul",
    "negative": "neg",
    "subtract": "sub",
    "greater": "gt",
    "greater_equal": "ge",
    "less": "lt",
    "less_equal": "le",
    "not_equal": "ne",
    "special_digamma": "digamma",
    "special_erf": "erf",
    "special_erfc": "erfc",
    "special_erfinv": "erfinv",
    "special_exp2": "exp2",
    "special_expit": "sigmoid",
    "special_expm1": "expm1",
    "special_gammainc": "igamma",
    "special_gammaincc": "igammac",
    "special_gammaln": "lgamma",
    "special_i0": "i0",
    "special_log1p": "log1p",
    "special_logit": "logit",
    "special_multigammaln": "mvlgamma",
    "special_polygamma": "polygamma",
    "special_psi": "digamma",
    "special_round": "round",
    "special_sinc": "sinc",
    "special_xlogy": "xlogy",
}


def _forward(spec: OpSpec) -> Callable[..., Any]:
    """Tensor code that calls an op with the same arguments."""
    keywords = tuple(a.python_name for a in spec.schema.arguments if a.keyword_only)
    positional = len(spec.schema.arguments) - len(keywords)

    def body(*args: Any) -> Any:
        return spec(*args[:positional], **dict(zip(keywords, args[positional:], strict=True)))

    return body


def _declare(name: str, spec: OpSpec) -> None:
    composite(name + spec.schema.text[len(spec.schema.name) :], _forward(spec), samples=spec.samples)


def _declare_all(name: str, first: str) -> None:
    for spec in list(packets[first]):
        if spec.schema.overload == "Scalar":
            continue
        _declare(name, spec)
        if len(spec.promoted) == 2 and "tensors" not in spec.tags and all(a.is_tensor for a in spec.schema.arguments[:2]):
            _declare_with_number(name, spec)


def _declare_with_number(name: str, spec: OpSpec) -> None:
    """The same for a number in place of the second tensor, which only kernels take under one declaration."""
    head, _, rest = spec.schema.text.partition("(")
    overload = head.partition(".")[2].replace("Tensor", "Scalar") or "Scalar"
    arguments = rest.replace(f"Tensor {spec.schema.arguments[1].name}", f"Scalar {spec.schema.arguments[1].name}", 1)
    composite(
        f"{name}.{overload}({arguments}",
        _forward(spec),
        samples=lambda make: [(make(3, 4), 0.5)] if not any(a.keyword_only for a in spec.schema.arguments) else [],
    )


for _second, _first in _NAMES.items():
    _declare_all(_second, _first)
    if _first + "_" in packets and not _second.startswith("special_"):
        _declare_all(_second + "_", _first + "_")

composite(
    "special_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
    lambda self, dim, dtype: aten.softmax(self, dim, dtype),
    samples=lambda make: [(make(3, 4), 1)],
)
composite(
    "special_log_softmax(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
    lambda self, dim, dtype: aten.log_softmax(self, dim, dtype),
    samples=lambda make: [(make(3, 4), 1)],
)
composite(
    "special_logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor",
    lambda self, dim, keepdim: aten.logsumexp(self, dim, keepdim),
    samples=lambda make: [(make(3, 4), 1)],
)
