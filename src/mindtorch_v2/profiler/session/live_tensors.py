"""live_tensors(): every tensor of the process by size, with its role, its owner, and the stack of its allocation."""

from __future__ import annotations

import gc
import os
import sys
import time
import warnings
from dataclasses import asdict, dataclass
from typing import Any

from ..._core.storage import owner_of
from ..._core.tensor import Tensor
from ..._dispatch import observer
from .._io.files import write_file
from .._io.strict_json import dumps
from .._io.terminal import shown
from ..assembly.freeze import freeze
from ..recording.recorder import active_recorders


@dataclass(frozen=True)
class LiveTensor:
    """One storage, with the tensors that share it.

    category: parameter, gradient, optimizer state, buffer, activation (kept for backward), or other. owner: the module path
    of a parameter or buffer, or the optimizer. stack: where it was allocated, and age_s how long ago: known while a profile
    with profile_memory (and for the stack with_stack) records, else () and None.
    """

    bytes: int
    shape: tuple[int, ...]
    dtype: str
    device: str
    category: str
    owner: str
    tensors: int
    stack: tuple[str, ...] = ()
    age_s: float | None = None


def live_tensors(limit: int | None = None) -> list[LiveTensor]:
    """The tensors that are alive, the largest first, at most `limit`; those that share memory are one entry."""
    # A tracer of Python calls would be told of some calls for each of the millions of objects that a process may have.
    live: list[LiveTensor] = observer.call_untraced(_live_tensors)
    return live if limit is None else live[:limit]


def _live_tensors() -> list[LiveTensor]:
    roles = _roles()
    origins = _origins()
    by_storage: dict[int, list[Tensor]] = {}
    for tensor in _instances(Tensor):
        array = getattr(tensor, "_array", None)
        if array is not None and not getattr(tensor, "is_meta", False):
            by_storage.setdefault(id(owner_of(array)), []).append(tensor)
    live = [_described(key, tensors, roles, origins) for key, tensors in by_storage.items()]
    live.sort(key=lambda storage: -storage.bytes)
    return live


def write_live_tensors(path: str | os.PathLike[str], limit: int | None = 1000) -> None:
    """Write live_tensors() as JSON, with the totals of each category, which `limit` does not affect."""
    live = live_tensors()
    totals: dict[str, int] = {}
    for storage in live:
        totals[storage.category] = totals.get(storage.category, 0) + storage.bytes
    report = {
        "pid": os.getpid(),
        "bytes": sum(storage.bytes for storage in live),
        "bytes_by_category": dict(sorted(totals.items(), key=lambda item: -item[1])),
        "count": len(live),
        "tensors": [asdict(storage) for storage in live[:limit]],
    }
    write_file(path, [dumps(report, indent=1).encode()])


def write_after_failure() -> None:
    """After an out-of-memory error in a profile: write the list to the current folder, and warn where it is."""
    path = os.path.abspath(f"live-tensors-{os.getpid()}-{time.strftime('%Y%m%d-%H%M%S')}.json")
    try:
        write_live_tensors(path)
    except (OSError, MemoryError) as error:
        warnings.warn(f"memory ran out, and live tensors could not be listed: {error}", RuntimeWarning, stacklevel=3)
    else:
        warnings.warn(f"memory ran out; what was alive is listed in {shown(path)}", RuntimeWarning, stacklevel=3)


def _described(
    key: int, tensors: list[Tensor], roles: dict[int, tuple[str, str]], origins: dict[int, tuple[float, tuple[str, ...]]]
) -> LiveTensor:
    whole = max(tensors, key=lambda tensor: tensor._array.nbytes)
    category, owner = next((roles[id(t)] for t in tensors if id(t) in roles), ("", ""))
    if not category:
        category = "activation" if any(t.grad_fn is not None for t in tensors) else "other"
    age, stack = origins.get(key, (None, ()))
    return LiveTensor(
        int(owner_of(whole._array).nbytes),
        tuple(whole._array.shape),
        str(whole.dtype).removeprefix("torch."),
        str(whole.device),
        category,
        owner,
        len(tensors),
        stack,
        age,
    )


def _instances(kind: type) -> list[Any]:
    """All objects of a class and its subclasses. Each class is looked at once: isinstance() runs Python code for Tensor."""
    fits: dict[int, bool] = {}
    found = []
    for each in gc.get_objects():
        its_class = type(each)
        fitting = fits.get(id(its_class))
        if fitting is None:
            fitting = fits[id(its_class)] = kind in its_class.__mro__
        if fitting:
            found.append(each)
    return found


def _roles() -> dict[int, tuple[str, str]]:
    """Category and owner of parameters, gradients, buffers and optimizer states, by id() of the tensor."""
    roles: dict[int, tuple[str, str]] = {}
    module = getattr(sys.modules.get("mindtorch_v2.nn.modules.module"), "Module", None)
    optimizer = getattr(sys.modules.get("mindtorch_v2.optim.optimizer"), "Optimizer", None)
    if module is not None:
        modules = _instances(module)
        inner = {id(child) for each in modules for child in each._modules.values() if child is not None}
        for top in modules:
            if id(top) not in inner:
                _name_contents(top, roles)
    if optimizer is not None:
        for each in _instances(optimizer):
            for state in each.state.values():
                for name, value in state.items():
                    if isinstance(value, Tensor):
                        roles[id(value)] = "optimizer state", f"{type(each).__name__}.{name}"
    return roles


def _name_contents(top: Any, roles: dict[int, tuple[str, str]]) -> None:
    for path, module in top.named_modules():
        place = ".".join(filter(None, (type(top).__name__, path)))
        for kind, contents in (("parameter", module._parameters), ("buffer", module._buffers)):
            for name, value in contents.items():
                if value is not None:
                    roles[id(value)] = kind, f"{place}.{name}"
                    grad = value.grad if kind == "parameter" else None
                    if grad is not None:
                        roles[id(grad)] = "gradient", f"{place}.{name}"


def _origins() -> dict[int, tuple[float, tuple[str, ...]]]:
    """Age in seconds and stack of memory whose allocation a running profile recorded, by id() of the array that owns it."""
    recorder = next((each for each in reversed(active_recorders) if each.memory is not None), None)
    if recorder is None:
        return {}
    store = freeze(recorder)
    now = recorder.clock()
    origins: dict[int, tuple[float, tuple[str, ...]]] = {}
    columns = (store.mem_addr, store.mem_bytes, store.mem_time, store.mem_event)
    for address, amount, when, event in zip(*(column.tolist() for column in columns), strict=True):
        if amount <= 0:
            origins.pop(address, None)
            continue
        stack = int(store.call_stack[event]) if event >= 0 else -1
        origins[address] = (now - when) / 1e9, store.stacks[stack] if stack >= 0 else ()
    return origins
