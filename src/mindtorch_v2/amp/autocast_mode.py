"""autocast: ops that gain from it run in fewer bits, ops that would lose too much in float32."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

from .. import _surface as torch
from .._core import dtype as dt
from .._core.cpython import without_signals_at_entry
from .._core.device import device as Device
from .._core.keys import META, NPU
from .._core.restoring import carry_out
from .._core.tensor import Tensor
from .._core.threads import threads
from .._dispatch import interception, observer
from .._dispatch.facts import Autocast
from .._dispatch.registry import OpSpec

_SUPPORTED = {"cpu": (dt.bfloat16, dt.float16)}
# Types of devices that torch knows lower precisions for; here only the CPU's ever takes effect.
_FIRST_DTYPE = {
    "cpu": dt.bfloat16,
    "cuda": dt.float16,
    "mps": dt.float16,
    "xpu": dt.float16,
    "npu": dt.float16,
    "hpu": dt.bfloat16,
    "xla": dt.bfloat16,
    "ipu": dt.float16,
    "mtia": dt.bfloat16,
    "maia": dt.float16,
}


class _Casting(interception.Mode):
    """A thread's autocast state, and the mode that acts on it."""

    def __init__(self) -> None:
        self.enabled: dict[str, bool] = {}
        self.dtypes = dict(_FIRST_DTYPE)
        self.cache_enabled = True
        self.nesting = 0
        self.counted = False  # among the observers of ops

    def follow(self) -> None:
        """Be among the thread's modes while the switch of the CPU is on."""
        modes = threads.state.modes
        others = [mode for mode in modes if mode is not self]
        wanted = self.enabled.get("cpu", False)
        # A block inside an op may switch it while this mode is off for that op, when it is counted and not in the list; `run`
        # looks at the switch as well.
        # From here on no signal is handled, so that the list and the count change together.
        if wanted and self not in modes:
            modes[:] = [*others, self]
            if not self.counted:
                self.counted = True
                observer.acquire()
        elif not wanted and self in modes:
            modes[:] = others
            self.counted = False
            observer.release()

    def run(self, op: OpSpec, args: tuple[Any, ...]) -> Any:
        try:
            return self._run(op, args)
        finally:
            modes = threads.state.modes
            if self in modes:  # from a block inside the op; `run_modes` puts it back
                modes.remove(self)

    def _run(self, op: OpSpec, args: tuple[Any, ...]) -> Any:
        if self.enabled.get("cpu", False):
            target = self._target(op, args)
            if target is not None:
                call = op.call
                assert call is not None
                positional, keywords = interception.call_arguments(op, tuple(_cast(a, target) for a in args))
                return call(*positional, **keywords)
            if op.composite and not op.below_autograd:
                return interception.run_composed(self, op, args)
        return interception.proceed(op, args)

    def _target(self, op: OpSpec, args: tuple[Any, ...]) -> dt.dtype | None:
        """The dtype that floating point arguments are cast to, None for as they are."""
        if op.autocast is Autocast.LOWER:
            return self.dtypes["cpu"]
        if op.autocast is Autocast.FLOAT32:
            return dt.float32
        if isinstance(op.autocast, dt.dtype):  # what `torch.library.register_autocast` said
            return op.autocast
        return _widest(args, self.dtypes["cpu"]) if op.autocast is Autocast.WIDEST else None


def _state() -> _Casting:
    state = threads.state
    if state.autocast is None:
        state.autocast = _Casting()
    return state.autocast


def _eligible(value: Any) -> bool:
    return (
        isinstance(value, Tensor)
        and (not value._keys & (META | NPU) or value.is_cpu)
        and value.is_floating_point()
        and value._array.dtype is not dt.float64.np
    )


def _cast(value: Any, target: dt.dtype) -> Any:
    """An argument with its tensors in a type; float64, integers and tensors elsewhere stay as they are."""
    if _eligible(value):
        return value if value.dtype is target else torch.to(value, target)
    if type(value) in (list, tuple):
        return type(value)(_cast(item, target) for item in value)
    return value


def _widest(values: Any, start: dt.dtype) -> dt.dtype:
    widest = start
    for value in values:
        if type(value) in (list, tuple):
            widest = dt.promote_types(widest, _widest(value, start))
        elif _eligible(value):
            widest = dt.promote_types(widest, value.dtype)
    return widest


# ---------------------------------------------------------------- reading and setting the state


def _kind(device_type: str | None) -> str:
    if device_type is None:
        return "cuda"
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    return Device(device_type).type


def is_autocast_available(device_type: str) -> bool:
    """Whether autocast knows a device type."""
    return _kind(device_type) in _FIRST_DTYPE


def is_autocast_enabled(device_type: str | None = None) -> bool:
    """Whether this thread is inside autocast for a device type; for "cuda" if none is given."""
    return _state().enabled.get(_kind(device_type), False)


def set_autocast_enabled(device_type: Any, enabled: bool | None = None) -> None:
    """Switch autocast for a device type on or off in this thread."""
    kind, on = ("cuda", device_type) if enabled is None else (_kind(device_type), enabled)
    state, chosen = _state(), bool(on)
    before = state.enabled.get(kind, False)
    try:
        state.enabled[kind] = chosen
        state.follow()
    except BaseException:
        state.enabled[kind] = before
        carry_out([state.follow])
        raise


def get_autocast_dtype(device_type: str) -> dt.dtype:
    """The lower precision that autocast uses for a device type."""
    kind = _kind(device_type)
    if kind not in _FIRST_DTYPE:
        raise RuntimeError(f"unsupported scalarType for device type {kind} in autocast")
    return _state().dtypes[kind]


def set_autocast_dtype(device_type: str, dtype: dt.dtype) -> None:
    """Choose the lower precision for a device type."""
    get_autocast_dtype(device_type)
    _state().dtypes[_kind(device_type)] = dtype


def is_autocast_cache_enabled() -> bool:
    """Whether casts of weights are meant to be kept between ops. The setting is remembered; casts are made anew."""
    return _state().cache_enabled


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Remember the setting of the weight cache."""
    _state().cache_enabled = enabled


def clear_autocast_cache() -> None:
    """Forget cached casts: none are kept."""


def autocast_increment_nesting() -> int:
    """Count one more open autocast block of this thread."""
    _state().nesting += 1
    return _state().nesting


def autocast_decrement_nesting() -> int:
    """Count one autocast block fewer."""
    _state().nesting -= 1
    return _state().nesting


def is_autocast_cpu_enabled() -> bool:
    """Whether this thread is inside autocast for the CPU."""
    return is_autocast_enabled("cpu")


def set_autocast_cpu_enabled(enabled: bool) -> None:
    """Switch autocast for the CPU."""
    set_autocast_enabled("cpu", enabled)


def get_autocast_cpu_dtype() -> dt.dtype:
    """The lower precision on the CPU."""
    return get_autocast_dtype("cpu")


def set_autocast_cpu_dtype(dtype: dt.dtype) -> None:
    """Choose the lower precision on the CPU."""
    set_autocast_dtype("cpu", dtype)


def get_autocast_gpu_dtype() -> dt.dtype:
    """The lower precision on CUDA devices."""
    return get_autocast_dtype("cuda")


def set_autocast_gpu_dtype(dtype: dt.dtype) -> None:
    """Choose the lower precision on CUDA devices."""
    set_autocast_dtype("cuda", dtype)


def is_autocast_xla_enabled() -> bool:
    """Whether autocast is on for XLA devices."""
    return is_autocast_enabled("xla")


def set_autocast_xla_enabled(enabled: bool) -> None:
    """Switch autocast for XLA devices."""
    set_autocast_enabled("xla", enabled)


def get_autocast_xla_dtype() -> dt.dtype:
    """The lower precision on XLA devices."""
    return get_autocast_dtype("xla")


def set_autocast_xla_dtype(dtype: dt.dtype) -> None:
    """Choose the lower precision on XLA devices."""
    set_autocast_dtype("xla", dtype)


def is_autocast_ipu_enabled() -> bool:
    """Whether autocast is on for IPU devices."""
    return is_autocast_enabled("ipu")


def set_autocast_ipu_enabled(enabled: bool) -> None:
    """Switch autocast for IPU devices."""
    set_autocast_enabled("ipu", enabled)


def get_autocast_ipu_dtype() -> dt.dtype:
    """The lower precision on IPU devices."""
    return get_autocast_dtype("ipu")


def set_autocast_ipu_dtype(dtype: dt.dtype) -> None:
    """Choose the lower precision on IPU devices."""
    set_autocast_dtype("ipu", dtype)


# ---------------------------------------------------------------- the context manager


class autocast:
    """`with autocast("cpu", dtype=torch.bfloat16):`, or a decorator: mixed precision inside."""

    def __init__(
        self, device_type: str, dtype: dt.dtype | None = None, enabled: bool = True, cache_enabled: bool | None = None
    ) -> None:
        kind = _kind(device_type)
        if kind not in _FIRST_DTYPE:
            raise RuntimeError(f"User specified an unsupported autocast device_type '{kind}'")
        self.device = kind
        self.fast_dtype = get_autocast_dtype(kind) if dtype is None else dtype
        self._cache_enabled = is_autocast_cache_enabled() if cache_enabled is None else cache_enabled
        if enabled and kind != "cpu":
            reason = (
                "CUDA is not available or torch_xla is imported. Disabling autocast."
                if kind == "cuda"
                else f"User provided device_type of '{kind}', but {kind} is not available. Disabling"
            )
            warnings.warn(reason, stacklevel=2)
            enabled = False
        elif enabled and self.fast_dtype not in _SUPPORTED["cpu"]:
            names = ", ".join(map(str, _SUPPORTED["cpu"]))
            warnings.warn(
                "In CPU autocast, but the target dtype is not supported. Disabling autocast.\n"
                f"CPU Autocast only supports dtypes of {names} currently.",
                stacklevel=2,
            )
            enabled = False
        self._enabled = enabled
        # What the open blocks of this object replaced: (state, its values, those around).
        self._outer: Any = ()

    def __enter__(self) -> autocast:
        state, kind = _state(), self.device
        before = state.enabled.get(kind, False), state.dtypes[kind], state.cache_enabled
        try:
            state.enabled[kind], state.dtypes[kind], state.cache_enabled = self._enabled, self.fast_dtype, self._cache_enabled
            state.follow()
        except BaseException:
            state.enabled[kind], state.dtypes[kind], state.cache_enabled = before
            carry_out([state.follow])
            raise
        self._outer = (state, before, self._outer)
        state.nesting += 1
        return self

    @without_signals_at_entry
    def __exit__(self, *exc: Any) -> None:
        kind = self.device
        state, before, self._outer = self._outer
        state.enabled[kind], state.dtypes[kind], state.cache_enabled = before
        state.nesting -= 1
        carry_out([state.follow])

    def __call__(self, func: Callable[..., Any]) -> Callable[..., Any]:
        """Decorate a function: each call runs inside the block."""

        @functools.wraps(func)
        def call(*args: Any, **kwargs: Any) -> Any:
            with self:
                return func(*args, **kwargs)

        return call


# ---------------------------------------------------------------- for autograd.Function


def _cast_all(value: Any, kind: str, dtype: dt.dtype) -> Any:
    if isinstance(value, Tensor):
        wanted = value.is_floating_point() and value.device.type == kind and value.dtype is not dt.float64
        return torch.to(value, dtype) if wanted else value
    if isinstance(value, dict):
        return {_cast_all(k, kind, dtype): _cast_all(v, kind, dtype) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_cast_all(item, kind, dtype) for item in value)
    return value


def custom_fwd(fwd: Callable[..., Any] | None = None, *, device_type: str, cast_inputs: dt.dtype | None = None) -> Any:
    """For `forward` of a custom Function: remembers autocast's state for `custom_bwd`.

    With `cast_inputs`, inputs are cast to that type and the body runs with autocast off.
    """
    _kind(device_type)
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)
    function: Callable[..., Any] = fwd

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        context = args[0]
        context._dtype = get_autocast_dtype(device_type)
        on = is_autocast_enabled(device_type)
        if cast_inputs is None or not on:
            context._fwd_used_autocast = on
            return function(*args, **kwargs)
        context._fwd_used_autocast = False
        with autocast(device_type, enabled=False):
            return function(*_cast_all(args, device_type, cast_inputs), **_cast_all(kwargs, device_type, cast_inputs))

    return call


def custom_bwd(bwd: Callable[..., Any] | None = None, *, device_type: str) -> Any:
    """For `backward` of a custom Function: runs it in the autocast state of its forward."""
    _kind(device_type)
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)
    function: Callable[..., Any] = bwd

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        with autocast(device_type, enabled=args[0]._fwd_used_autocast, dtype=args[0]._dtype):
            return function(*args, **kwargs)

    return call
