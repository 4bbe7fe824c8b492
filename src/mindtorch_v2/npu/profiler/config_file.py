"""profiler_config.json, by which torch_npu's dynamic_profile is told what to record: keys, defaults, checks."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple

from ..._core.files import write_whole
from ..._dispatch import communications
from ...profiler.config import ProfilerActivity
from .experimental_config import _ExperimentalConfig

NAME = "profiler_config.json"
_MOST_BYTES = 1 << 20
_ACTIVITIES = {"CPU": ProfilerActivity.CPU, "NPU": ProfilerActivity.NPU}
_DEFAULTS: dict[str, Any] = {
    "activities": ["CPU", "NPU"],
    "prof_dir": "./",
    "analyse": False,
    "async_mode": False,
    "record_shapes": False,
    "profile_memory": False,
    "with_stack": False,
    "with_flops": False,
    "with_modules": False,
    "active": 1,
    "warmup": 0,
    "start_step": 0,
    "is_rank": False,
    "rank_list": [],
    "experimental_config": {
        "profiler_level": "Level0",
        "aic_metrics": "AiCoreNone",
        "l2_cache": False,
        "op_attr": False,
        "gc_detect_threshold": None,
        "data_simplification": True,
        "record_op_args": False,
        "export_type": ["text"],
        "mstx": False,
        "mstx_domain_include": [],
        "mstx_domain_exclude": [],
        "host_sys": [],
        "sys_io": False,
        "sys_interconnection": False,
    },
    "metadata": {},
}
_LEAST = {"active": 1, "warmup": 0, "start_step": -1}
FLAGS = ("record_shapes", "profile_memory", "with_stack", "with_flops", "with_modules")


class Request(NamedTuple):
    """What a file asks for."""

    start_step: int  # 0: nothing is recorded; -1: from the next step on
    active: int
    warmup: int
    folder: str
    analyse: bool
    async_mode: bool
    activities: list[ProfilerActivity]
    flags: dict[str, bool]
    experimental: _ExperimentalConfig
    metadata: dict[str, Any]


def write_defaults(path: str) -> None:
    """Write the file with all keys, of which start_step says that nothing is recorded."""
    write_whole(path, [json.dumps(_DEFAULTS, indent=4).encode()])


def read(path: str, now: bool = False) -> Request | None:
    """What a file asks of this rank, None if nothing. Keys that there are none of and values that cannot be are warnings.

    now: whatever its start_step is. OSError or ValueError: it cannot be read, or has no JSON object.
    """
    if os.path.getsize(path) > _MOST_BYTES:
        raise ValueError(f"it has more than {_MOST_BYTES} bytes")
    with open(path, encoding="utf-8") as file:
        text = file.read()
    try:
        settings = json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(settings, dict):
        raise ValueError("it must have a JSON object")
    return request(settings, now)


def request(settings: Mapping[str, Any], now: bool = False) -> Request | None:
    """The request of settings; see read()."""
    for name in settings:
        if name not in _DEFAULTS:
            _warn(f"there is no {name}: known are {', '.join(_DEFAULTS)}")
    known = {name: _checked(name, settings.get(name, default), default) for name, default in _DEFAULTS.items()}
    if (known["start_step"] == 0 and not now) or (known["is_rank"] and _rank() not in known["rank_list"]):
        return None
    unknown = [name for name in known["activities"] if str(name).upper() not in _ACTIVITIES]
    if unknown:
        _warn(f"activities are CPU and NPU, not {', '.join(map(repr, unknown))}")
    activities = [_ACTIVITIES[str(name).upper()] for name in known["activities"] if name not in unknown]
    return Request(
        known["start_step"],
        known["active"],
        known["warmup"],
        known["prof_dir"],
        known["analyse"],
        known["async_mode"],
        list(dict.fromkeys(activities)) or [ProfilerActivity.CPU],
        {name: known[name] for name in FLAGS},
        _ExperimentalConfig.from_settings({"aic_metrics": "AiCoreNone", **known["experimental_config"]}),
        known["metadata"],
    )


def _checked(name: str, value: Any, default: Any) -> Any:
    """The value, or the default with a warning if it has another type or is too small."""
    if type(value) is type(default) and not (name in _LEAST and value < _LEAST[name]):
        return value
    _warn(f"{name} cannot be {value!r}, it is reset to {default!r}")
    return default


def _rank() -> int:
    groups = communications.describe_groups()
    if groups is not None:
        return int(groups["rank"])
    text = os.environ.get("RANK", "0")
    return int(text) if text.isdecimal() else 0


def _warn(text: str) -> None:
    warnings.warn(f"{NAME}: {text}", RuntimeWarning, stacklevel=5)
