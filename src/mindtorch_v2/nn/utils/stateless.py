"""Calling a module with other parameters and buffers than its own."""

from __future__ import annotations

import warnings
from typing import Any

from ..._core.restoring import Actions, restoring
from ..._core.tensor import Tensor

__all__ = ["functional_call"]


_ABSENT: Any = object()


def _place_of(module: Any, name: str) -> tuple[dict[str, Any], str]:
    """The dict that holds an attribute with a dotted name, and its name there."""
    path, _, last = name.rpartition(".")
    holder = module
    for part in path.split(".") if path else ():
        if not hasattr(holder, part):
            raise AttributeError(f"{holder._get_name()} has no attribute `{part}`")
        holder = getattr(holder, part)
    members = next((current for current in (holder._parameters, holder._buffers) if last in current), holder.__dict__)
    current = members.get(last)
    if current is not None and not isinstance(current, Tensor):
        raise TypeError(f"attribute `{last}`: {current} is not an instance of torch.Tensor")
    return members, last


def _with_tied_weights(module: Any, given: dict[str, Any]) -> dict[str, Any]:
    """`given`, and the same value for every other name of a tied parameter."""
    names: dict[int, list[str]] = {}
    for name, tensor in (*module.named_parameters(remove_duplicate=False), *module.named_buffers(remove_duplicate=False)):
        names.setdefault(id(tensor), []).append(name)
    spread = dict(given)
    for tied in names.values():
        values = {id(given[name]): given[name] for name in tied if name in given}
        if len(values) > 1:
            listed = sorted(name for name in tied if name in given)
            raise ValueError(
                f"functional_call got multiple values for keys {listed}, which are tied. Consider using tie_weights=False"
            )
        for value in values.values():
            spread.update(dict.fromkeys(tied, value))
    return spread


@restoring
def _reparametrize_module(
    undo: Actions,
    module: Any,
    parameters_and_buffers: dict[str, Any],
    tie_weights: bool = False,
    strict: bool = False,
    stack_weights: bool = False,
) -> None:
    """Inside, the module has the given parameters and buffers."""
    replacements = _with_tied_weights(module, parameters_and_buffers) if tie_weights else parameters_and_buffers
    if strict:
        known = {
            name
            for name, _ in (*module.named_parameters(remove_duplicate=False), *module.named_buffers(remove_duplicate=False))
        }
        problems = [
            f"{kind} key(s): {', '.join(map(repr, sorted(names)))}."
            for kind, names in (("Unexpected", replacements.keys() - known), ("Missing", known - replacements.keys()))
            if names
        ]
        if problems:
            raise RuntimeError(f"Error(s) in reparametrizing for {module._get_name()}:\n\t" + "\n\t".join(problems))
    for value in replacements.values():
        if not isinstance(value, Tensor):
            raise TypeError(f"{value} is not an instance of torch.Tensor")
    places = [(*_place_of(module, name), value) for name, value in replacements.items()]
    before = [(members, name, members.get(name, _ABSENT)) for members, name, _ in places]

    def restore() -> None:
        for members, name, value in before:
            if value is _ABSENT:
                members.pop(name, None)
            else:
                members[name] = value

    def give_back() -> None:
        """What the module assigned to a buffer while it ran is the caller's to see."""
        for (members, name, _), key in zip(places, replacements, strict=True):
            if key in parameters_and_buffers:
                parameters_and_buffers[key] = members[name]

    undo.append(restore)
    for members, name, value in places:
        members[name] = value
    undo.append(give_back)


def _functional_call(
    module: Any,
    parameters_and_buffers: dict[str, Any],
    args: Any = None,
    kwargs: Any = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    if args is None:
        args = ()
    elif not isinstance(args, tuple):
        args = (args,)
    with _reparametrize_module(module, parameters_and_buffers, tie_weights, strict):
        return module(*args, **(kwargs or {}))


def functional_call(
    module: Any,
    parameters_and_buffers: dict[str, Tensor],
    args: Any = None,
    kwargs: Any = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call a module as if its parameters and buffers were the given ones; now torch.func.functional_call."""
    warnings.warn(
        "`torch.nn.utils.stateless.functional_call` is deprecated as of PyTorch 2.0 and will be removed in a "
        "future version of PyTorch. Please use `torch.func.functional_call` instead which is a drop-in "
        "replacement.",
        FutureWarning,
        stacklevel=2,
    )
    return _functional_call(module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights, strict=strict)
