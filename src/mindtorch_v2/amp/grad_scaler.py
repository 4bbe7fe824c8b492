"""GradScaler: scales the loss so that small gradients survive float16, and skips steps whose gradients overflow."""

from __future__ import annotations

import inspect
import warnings
from collections import defaultdict
from collections.abc import Iterable
from enum import Enum
from typing import Any

from .. import _surface as torch
from .._core import dtype as dt
from .._core.device import device as Device
from .._core.keys import SPARSE
from .._core.tensor import Tensor
from ..optim import Optimizer

__all__ = ["GradScaler", "OptState"]


class OptState(Enum):
    """How far an optimizer's step has come since the last update()."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


def _refresh_per_optimizer_state() -> dict[str, Any]:
    return {"stage": OptState.READY, "found_inf_per_device": {}}


class GradScaler:
    """`scaler.scale(loss).backward(); scaler.step(optimizer); scaler.update()`."""

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        self._device = device
        self._enabled = enabled
        if enabled and device != "cpu":
            Device(device)
            warnings.warn(
                f"torch.{device}.amp.GradScaler is enabled, but {device.upper()} is not available.  Disabling.",
                stacklevel=2,
            )
            self._enabled = False
        if self._enabled:
            if growth_factor <= 1.0:
                raise AssertionError("The growth factor must be > 1.0.")
            if backoff_factor >= 1.0:
                raise AssertionError("The backoff factor must be < 1.0.")
            self._init_scale = init_scale
            self._scale: Tensor | None = None
            self._growth_factor = growth_factor
            self._backoff_factor = backoff_factor
            self._growth_interval = growth_interval
            self._init_growth_tracker = 0
            self._growth_tracker: Tensor | None = None
            self._per_optimizer_states: dict[int, dict[str, Any]] = defaultdict(_refresh_per_optimizer_state)

    def _check(self, name: str) -> tuple[Tensor, Tensor]:
        hint = "This may indicate your script did not use scaler.scale(loss or outputs) earlier in the iteration."
        if self._scale is None:
            raise AssertionError(f"Attempted {name} but _scale is None.  {hint}")
        if self._growth_tracker is None:
            raise AssertionError(f"Attempted {name} but _growth_tracker is None.  {hint}")
        return self._scale, self._growth_tracker

    def _begin(self) -> Tensor:
        if self._scale is None:
            self._scale = torch.full((), self._init_scale, dtype=dt.float32)
            self._growth_tracker = torch.full((), self._init_growth_tracker, dtype=dt.int32)
        return self._scale

    def scale(self, outputs: Any) -> Any:
        """The outputs (a tensor, or nested iterables of tensors) times the scale."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            return outputs * self._begin()
        if isinstance(outputs, Iterable) and not isinstance(outputs, str):
            scaled = [self.scale(each) for each in outputs]
            return type(outputs)(scaled) if isinstance(outputs, list | tuple) else iter(scaled)
        raise ValueError("outputs must be a Tensor or an iterable of Tensors")

    def _unscale_grads_(
        self, optimizer: Optimizer, inv_scale: Tensor, found_inf: Tensor, allow_fp16: bool
    ) -> dict[Any, Tensor]:
        by_type: dict[Any, list[Tensor]] = defaultdict(list)
        for group in optimizer.param_groups:
            for param in group["params"]:
                if not isinstance(param, Tensor):
                    raise AssertionError(f"expected torch.Tensor, got {type(param)}")
                grad = param.grad
                if grad is None:
                    continue
                if not allow_fp16 and grad.dtype is dt.float16:
                    raise ValueError("Attempting to unscale FP16 gradients.")
                if grad._keys & SPARSE:
                    # In float16 equal places may overflow when they are added up, so that is done first.
                    if grad.dtype is dt.float16:
                        param.grad = grad = grad.coalesce()
                    grad = grad._values()  # type: ignore[attr-defined]
                by_type[grad.dtype].append(grad)
        for grads in by_type.values():
            torch._amp_foreach_non_finite_check_and_unscale_(grads, found_inf, inv_scale)
        return {Device("cpu"): found_inf} if by_type else {}

    def unscale_(self, optimizer: Optimizer) -> None:
        """Divide the gradients of an optimizer's parameters by the scale, e.g. before clipping them."""
        if not self._enabled:
            return
        scale, _ = self._check("unscale_")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.UNSCALED:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        inverse = torch.to(torch.reciprocal(torch.to(scale, dt.float64)), dt.float32)
        found_inf = torch.full((), 0.0, dtype=dt.float32)
        state["found_inf_per_device"] = self._unscale_grads_(optimizer, inverse, found_inf, False)
        state["stage"] = OptState.UNSCALED

    def _maybe_opt_step(self, optimizer: Optimizer, state: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        if not sum(found.item() for found in state["found_inf_per_device"].values()):
            return optimizer.step(*args, **kwargs)
        return None

    def step(self, optimizer: Optimizer, *args: Any, **kwargs: Any) -> Any:
        """`optimizer.step(*args, **kwargs)`, unless its gradients are infinite or NaN."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        scale, _ = self._check("step")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if getattr(optimizer, "_step_supports_amp_scaling", False):
            result = self._step_that_unscales(optimizer, state, scale, *args, **kwargs)
        else:
            if state["stage"] is OptState.READY:
                self.unscale_(optimizer)
            if not state["found_inf_per_device"]:
                raise AssertionError("No inf checks were recorded for this optimizer.")
            result = self._maybe_opt_step(optimizer, state, *args, **kwargs)
        state["stage"] = OptState.STEPPED
        return result

    def _step_that_unscales(self, optimizer: Any, state: dict[str, Any], scale: Tensor, *args: Any, **kwargs: Any) -> Any:
        """A step of an optimizer that takes scale and check into its own kernel."""
        found_inf = torch.full((), 0.0, dtype=dt.float32)
        unscaled = state["stage"] is OptState.UNSCALED
        if unscaled:
            found_inf = sum(state["found_inf_per_device"].values(), found_inf)
        else:
            unit_scale = torch.full((), 1.0, dtype=dt.float32)
            state["found_inf_per_device"] = self._unscale_grads_(optimizer, unit_scale, found_inf, True)
        if "grad_scaler" in inspect.signature(optimizer.step).parameters:
            warnings.warn(
                "GradScaler is going to stop passing itself as a keyword argument to the passed optimizer. In the near future "
                "GradScaler registers `grad_scale: Tensor` and `found_inf: Tensor` to the passed optimizer and let the "
                "optimizer use them directly.",
                FutureWarning,
                stacklevel=3,
            )
            return optimizer.step(*args, **kwargs, grad_scaler=self)
        optimizer.grad_scale = None if unscaled else scale
        optimizer.found_inf = found_inf
        try:
            return optimizer.step(*args, **kwargs)
        finally:
            del optimizer.grad_scale, optimizer.found_inf

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Adapt the scale to whether steps were skipped, or set it; begins the next iteration."""
        if not self._enabled:
            return
        scale, tracker = self._check("update")
        if isinstance(new_scale, Tensor):
            if new_scale.dtype is not dt.float32 or new_scale.numel() != 1 or new_scale.requires_grad:
                raise AssertionError("new_scale should be a float or a 1-element torch.FloatTensor with requires_grad=False.")
            scale.copy_(new_scale)
        elif new_scale is not None:
            scale.fill_(new_scale)
        else:
            found_infs = [f for s in self._per_optimizer_states.values() for f in s["found_inf_per_device"].values()]
            if not found_infs:
                raise AssertionError("No inf checks were recorded prior to update.")
            combined = sum(found_infs[1:], found_infs[0])
            torch._amp_update_scale_(
                scale,
                tracker,
                combined,
                self._growth_factor,
                self._backoff_factor,
                self._growth_interval,
            )
        self._per_optimizer_states = defaultdict(_refresh_per_optimizer_state)

    def get_scale(self) -> float:
        """The scale, 1.0 if disabled."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else self._scale.item()

    def get_growth_factor(self) -> float:
        """What the scale is multiplied by when it grows."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Set what the scale is multiplied by when it grows."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """What the scale is multiplied by after an overflow."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Set what the scale is multiplied by after infs or NaNs."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """How many steps without overflow it takes to grow."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Set how many steps without infs or NaNs precede a growth."""
        self._growth_interval = new_interval

    def _get_growth_tracker(self) -> int:
        if not self._enabled:
            return 0
        return self._init_growth_tracker if self._growth_tracker is None else int(self._growth_tracker.item())

    def is_enabled(self) -> bool:
        """Whether the scaler scales; a disabled one passes everything through."""
        return self._enabled

    def state_dict(self) -> dict[str, Any]:
        """What load_state_dict needs to go on; empty if disabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._get_growth_tracker(),
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over the state of another scaler."""
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled instance of GradScaler."
            )
        self._init_scale = state_dict["scale"]
        if self._scale is not None:
            self._scale.fill_(state_dict["scale"])
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._init_growth_tracker = state_dict["_growth_tracker"]
        if self._growth_tracker is not None:
            self._growth_tracker.fill_(state_dict["_growth_tracker"])
