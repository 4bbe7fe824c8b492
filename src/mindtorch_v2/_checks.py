"""torch._check and its kind: checks of conditions with a message that is made only when it is needed; torch._assert."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ._core.tensor import Tensor
from ._dispatch.errors import need_tensor
from ._dispatch.registry import aten

Message = Callable[[], Any] | None

_UNSAID = (
    "Expected cond to be True, but got False. (Could this error message be improved? If so, please report an enhancement "
    "request to PyTorch.)"
)


def _check_with(error_type: type[Exception], cond: bool, message: Message = None) -> None:
    """`error_type` with the message that a function gives, unless a condition holds."""
    if not isinstance(cond, bool):
        if isinstance(cond, Tensor):
            raise TypeError(
                "cond must be a bool, but got a Tensor. For tensor conditions, use torch._check_tensor_all() to assert that "
                "all elements are true."
            )
        raise TypeError(f"cond must be a bool, but got {type(cond)}")
    if cond:
        return
    if message is None:
        raise error_type(_UNSAID)
    if not callable(message):
        raise TypeError("message must be a callable")
    raise error_type(str(message()))


def _check(cond: bool, message: Message = None) -> None:
    """RuntimeError unless a condition holds."""
    _check_with(RuntimeError, cond, message)


def _check_index(cond: bool, message: Message = None) -> None:
    """IndexError unless a condition holds."""
    _check_with(IndexError, cond, message)


def _check_value(cond: bool, message: Message = None) -> None:
    """ValueError unless a condition holds."""
    _check_with(ValueError, cond, message)


def _check_type(cond: bool, message: Message = None) -> None:
    """TypeError unless a condition holds."""
    _check_with(TypeError, cond, message)


def _check_not_implemented(cond: bool, message: Message = None) -> None:
    """NotImplementedError unless a condition holds."""
    _check_with(NotImplementedError, cond, message)


def _check_is_size(i: int, message: Message = None, *, max: int | None = None) -> None:
    """RuntimeError unless a number can be a size."""
    _check(i >= 0 and (max is None or i <= max), message)


def _check_tensor_all_with(error_type: type[Exception], cond: Tensor, message: Message = None) -> None:
    """`error_type` unless all elements of a bool tensor are True."""
    if not isinstance(cond, Tensor):
        raise TypeError(f"cond must be a tensor, but got {type(cond)}")
    if cond._array.dtype != bool:
        raise TypeError(f"cond tensor must have dtype torch.bool, but got {cond.dtype}")
    _check_with(error_type, bool(cond.all()), message)


def _check_tensor_all(cond: Tensor, message: Message = None) -> None:
    """RuntimeError unless all elements of a bool tensor are True."""
    _check_tensor_all_with(RuntimeError, cond, message)


def _assert_async(input: Tensor, assert_msg: str | None = None) -> None:
    """RuntimeError unless the only element of a tensor is not zero."""
    if not aten.is_nonzero(input):
        raise RuntimeError(assert_msg or "Expected Tensor with single nonzero value, but got zero")


def _debug_has_internal_overlap(input: Tensor) -> int:
    """Whether elements of a tensor share memory: 0 for none, 1 for some, 2 where strides alone do not tell."""
    need_tensor("_debug_has_internal_overlap", input)
    sizes = [(n, step) for n, step in zip(input.shape, input.stride(), strict=True) if n > 1]
    if any(step == 0 for _, step in sizes):
        return 1
    expected = 1
    for n, step in sorted(sizes, key=lambda pair: pair[1]):
        if step != expected:
            return 2
        expected *= n
    return 0


def _assert(condition: Any, message: str) -> None:
    """AssertionError unless a condition holds: an assert that `torch.fx` records."""
    intercepts = getattr(type(condition), "__torch_function__", None)
    if intercepts is not None and not isinstance(condition, Tensor):
        return intercepts(_assert, (type(condition),), (condition, message), {})
    if not condition:
        raise AssertionError(message)
    return None
