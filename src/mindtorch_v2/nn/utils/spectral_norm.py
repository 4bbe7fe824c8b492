"""Spectral norm as hooks, the older form of parametrizations.spectral_norm."""

from __future__ import annotations

from typing import Any

from ..._autograd.grad_mode import no_grad
from ..._dispatch.registry import aten
from .._functional.normalization import normalize
from ..modules.conv import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from ..modules.module import Module
from ..parameter import Parameter, UninitializedParameter

__all__ = [
    "SpectralNorm",
    "SpectralNormLoadStateDictPreHook",
    "SpectralNormStateDictHook",
    "remove_spectral_norm",
    "spectral_norm",
]


class SpectralNorm:
    """The hook that computes `weight` from `weight_orig` before every forward, and follows u and v while training."""

    # 1: v is kept as a buffer as well
    _version = 1

    def __init__(self, name: str = "weight", n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        self.name = name
        self.dim = dim
        if n_power_iterations <= 0:
            raise ValueError(f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}")
        self.n_power_iterations = n_power_iterations
        self.eps = eps

    def reshape_weight_to_matrix(self, weight: Any) -> Any:
        """The weight with `dim` first and all other dims flattened."""
        if self.dim != 0:
            weight = aten.permute(weight, (self.dim, *(d for d in range(weight.dim()) if d != self.dim)))
        return aten.reshape(weight, (weight.size(0), -1))

    def compute_weight(self, module: Module, do_power_iteration: bool) -> Any:
        """The weight divided by its largest singular value, after `n_power_iterations` further steps if asked for."""
        weight = getattr(module, self.name + "_orig")
        u, v = getattr(module, self.name + "_u"), getattr(module, self.name + "_v")
        matrix = self.reshape_weight_to_matrix(weight)
        if do_power_iteration:
            with no_grad():
                for _ in range(self.n_power_iterations):
                    v = normalize(aten.mv(aten.t(matrix), u), dim=0, eps=self.eps, out=v)
                    u = normalize(aten.mv(matrix, v), dim=0, eps=self.eps, out=u)
                if self.n_power_iterations > 0:
                    # Copies, since the next call changes the buffers while this graph may still be needed.
                    u, v = aten.clone(u), aten.clone(v)
        return weight / aten.dot(u, aten.mv(matrix, v))

    def remove(self, module: Module) -> None:
        """Make the weight a plain parameter with its present value."""
        with no_grad():
            weight = self.compute_weight(module, do_power_iteration=False)
        delattr(module, self.name)
        delattr(module, self.name + "_u")
        delattr(module, self.name + "_v")
        delattr(module, self.name + "_orig")
        module.register_parameter(self.name, Parameter(weight.detach()))

    def __call__(self, module: Module, inputs: Any) -> None:
        """The forward pre-hook: set the normalized weight; the estimate follows while training."""
        setattr(module, self.name, self.compute_weight(module, do_power_iteration=module.training))

    def _solve_v_and_rescale(self, weight_mat: Any, u: Any, target_sigma: Any) -> Any:
        """The v that belongs to u, where a file does not have it."""
        gram = aten.mm(aten.t(weight_mat), weight_mat)
        v = aten.squeeze(aten.linalg_pinv(gram) @ (aten.t(weight_mat) @ aten.unsqueeze(u, 1)), 1)
        return v * (target_sigma / aten.dot(u, aten.mv(weight_mat, v)))

    @staticmethod
    def apply(module: Module, name: str, n_power_iterations: int, dim: int, eps: float) -> SpectralNorm:
        """Install the hook on a module and split its parameter into `_orig`, `_u` and `_v`."""
        for hook in module._forward_pre_hooks.values():
            if isinstance(hook, SpectralNorm) and hook.name == name:
                raise RuntimeError(f"Cannot register two spectral_norm hooks on the same parameter {name}")
        normalizer = SpectralNorm(name, n_power_iterations, dim, eps)
        weight = module._parameters[name]
        if weight is None:
            raise ValueError(f"`SpectralNorm` cannot be applied as parameter `{name}` is None")
        if isinstance(weight, UninitializedParameter):
            raise ValueError(
                "The module passed to `SpectralNorm` can't have uninitialized parameters. Make sure to run the dummy "
                "forward before applying spectral normalization"
            )
        with no_grad():
            matrix = normalizer.reshape_weight_to_matrix(weight)
            height, width = matrix.size()
            u = normalize(aten.normal_(aten.new_empty(weight, (height,)), 0, 1), dim=0, eps=eps)
            v = normalize(aten.normal_(aten.new_empty(weight, (width,)), 0, 1), dim=0, eps=eps)
        delattr(module, name)
        module.register_parameter(name + "_orig", weight)
        # A plain attribute with the right value, so that the weight can be looked at before the first forward.
        setattr(module, name, weight.data)
        module.register_buffer(name + "_u", u)
        module.register_buffer(name + "_v", v)
        module.register_forward_pre_hook(normalizer)
        module._register_state_dict_hook(SpectralNormStateDictHook(normalizer))
        module._register_load_state_dict_pre_hook(SpectralNormLoadStateDictPreHook(normalizer))
        return normalizer


class SpectralNormLoadStateDictPreHook:
    """Reads files that were written before v was kept."""

    def __init__(self, fn: SpectralNorm) -> None:
        self.fn = fn

    def __call__(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: Any,
        strict: bool,
        missing_keys: Any,
        unexpected_keys: Any,
        error_msgs: Any,
    ) -> None:
        """Work out `v` for a state dict of version 0, which lacks it."""
        name = self.fn.name
        version = local_metadata.get("spectral_norm", {}).get(name + ".version", None)
        if version is not None and version >= 1:
            return
        key = prefix + name
        if version is None and all(key + suffix in state_dict for suffix in ("_orig", "_u", "_v")) and key not in state_dict:
            return  # written with v, without the metadata
        if any(key + suffix not in state_dict for suffix in ("_orig", "", "_u")):
            if strict:
                missing_keys.extend(key + suffix for suffix in ("_orig", "", "_u") if key + suffix not in state_dict)
            return
        with no_grad():
            original = state_dict[key + "_orig"]
            weight = state_dict.pop(key)
            sigma = (original / weight).mean()
            matrix = self.fn.reshape_weight_to_matrix(original)
            state_dict[key + "_v"] = self.fn._solve_v_and_rescale(matrix, state_dict[key + "_u"], sigma)


class SpectralNormStateDictHook:
    """Notes the version of what is saved."""

    def __init__(self, fn: SpectralNorm) -> None:
        self.fn = fn

    def __call__(self, module: Module, state_dict: Any, prefix: str, local_metadata: Any) -> None:
        """Write the version of the hook into the metadata of the state dict."""
        noted = local_metadata.setdefault("spectral_norm", {})
        key = self.fn.name + ".version"
        if key in noted:
            raise RuntimeError(f"Unexpected key in metadata['spectral_norm']: {key}")
        noted[key] = self.fn._version


def spectral_norm(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Any:
    """Divide a weight by its largest singular value."""
    if dim is None:
        dim = 1 if isinstance(module, ConvTranspose1d | ConvTranspose2d | ConvTranspose3d) else 0
    SpectralNorm.apply(module, name, n_power_iterations, dim, eps)
    return module


def remove_spectral_norm(module: Module, name: str = "weight") -> Any:
    """Make the weight a plain parameter again."""
    for number, hook in module._forward_pre_hooks.items():
        if isinstance(hook, SpectralNorm) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[number]
            break
    else:
        raise ValueError(f"spectral_norm of '{name}' not found in {module}")
    _forget(module._state_dict_hooks, SpectralNormStateDictHook, name)
    _forget(module._load_state_dict_pre_hooks, SpectralNormLoadStateDictPreHook, name)
    return module


def _forget(hooks: dict[int, Any], kind: type, name: str) -> None:
    """Remove the hook of a kind that belongs to a parameter."""
    for number, hook in hooks.items():
        inner = getattr(hook, "hook", hook)
        if isinstance(inner, kind) and inner.fn.name == name:  # type: ignore[attr-defined]
            del hooks[number]
            return
