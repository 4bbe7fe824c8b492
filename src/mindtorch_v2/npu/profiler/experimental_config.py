"""torch_npu's `_ExperimentalConfig`: what its options mean here, and which have no source."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping
from typing import Any

__all__ = [
    "AiCMetrics",
    "ExportType",
    "HostSystem",
    "ProfilerLevel",
    "_ExperimentalConfig",
    "supported_ai_core_metrics",
    "supported_export_type",
    "supported_profiler_level",
]


class ProfilerLevel:
    """How much of the device is recorded: nothing with Level_none, else kernels, copies, collectives and the calls of CANN."""

    Level_none = "Level_none"
    Level0 = "Level0"
    Level1 = "Level1"
    Level2 = "Level2"


class AiCMetrics:
    """Counters of the AI Cores, which only CANN's own recorder reads."""

    PipeUtilization = "ACL_AICORE_PIPE_UTILIZATION"
    ArithmeticUtilization = "ACL_AICORE_ARITHMETIC_UTILIZATION"
    Memory = "ACL_AICORE_MEMORY_BANDWIDTH"
    MemoryL0 = "ACL_AICORE_L0B_AND_WIDTH"
    MemoryUB = "ACL_AICORE_MEMORY_UB"
    ResourceConflictRatio = "ACL_AICORE_RESOURCE_CONFLICT_RATIO"
    L2Cache = "ACL_AICORE_L2_CACHE"
    MemoryAccess = "ACL_AICORE_MEMORY_ACCESS"
    AiCoreNone = "ACL_AICORE_NONE"


class ExportType:
    """The form of the files in a folder."""

    Text = "text"
    Db = "db"


class HostSystem:
    """Counters of the host's operating system."""

    CPU = "cpu"
    MEM = "mem"
    DISK = "disk"
    NETWORK = "network"
    OSRT = "osrt"
    NUMA = "numa"


def values_of(names: type) -> dict[str, str]:
    """The values of a class of names."""
    return {name: value for name, value in vars(names).items() if not name.startswith("_")}


def supported_profiler_level() -> set[str]:
    """The levels that a profile takes."""
    return set(values_of(ProfilerLevel).values())


def supported_ai_core_metrics() -> set[str]:
    """The counters that can be recorded here: none."""
    return {AiCMetrics.AiCoreNone}


def supported_export_type() -> set[str]:
    """The forms that folders are written in."""
    return set(values_of(ExportType).values())


# Options that are left out with a warning that says why.
_WITHOUT_SOURCE = {
    "_l2_cache": "l2_cache: hit rates of the L2 cache",
    "record_op_args": "record_op_args: the arguments of operators for tuning (record_shapes=True has shapes and values)",
    "_op_attr": "op_attr: attributes of operators",
    "_host_sys": "host_sys: counters of the host",
    "_sys_io": "sys_io: counters of network cards",
    "_sys_interconnection": "sys_interconnection: counters of links",
}


class _ExperimentalConfig:
    """torch_npu's switches. A value that cannot be is a warning and counts as the default, as there.

    What has no source here, because only CANN's own recorder (aclprof) reads it, is a warning that names it, and is not
    recorded: counters of AI Cores (`aic_metrics`), `l2_cache`, `record_op_args`, `op_attr`, `host_sys`, `sys_io`,
    `sys_interconnection`. The others: `profiler_level` is told in the folder, and "Level_none" records no device. `mstx` (or
    `msprof_tx`) records marks, of the domains that `mstx_domain_include` names or `mstx_domain_exclude` does not. With
    `data_simplification=False` a folder keeps the recording beside what is computed of it. `gc_detect_threshold` puts
    collections of at least that many milliseconds into folders. `export_type` is "text", "db" or a list of both.
    """

    def __init__(
        self,
        profiler_level: str = ProfilerLevel.Level0,
        aic_metrics: str = AiCMetrics.PipeUtilization,
        l2_cache: bool = False,
        msprof_tx: bool = False,
        mstx: bool = False,
        data_simplification: bool = True,
        record_op_args: bool = False,
        op_attr: bool = False,
        gc_detect_threshold: float | None = None,
        export_type: str | list[str] = ExportType.Text,
        host_sys: list[str] | None = None,
        mstx_domain_include: list[str] | None = None,
        mstx_domain_exclude: list[str] | None = None,
        sys_io: bool = False,
        sys_interconnection: bool = False,
    ) -> None:
        self._profiler_level = _one_of(profiler_level, "profiler_level", ProfilerLevel, ProfilerLevel.Level0)
        by_level = AiCMetrics.AiCoreNone if self._profiler_level in _WITHOUT_COUNTERS else AiCMetrics.PipeUtilization
        self._aic_metrics = _one_of(aic_metrics, "aic_metrics", AiCMetrics, by_level)
        if self._profiler_level in _WITHOUT_COUNTERS:
            if self._aic_metrics not in (AiCMetrics.AiCoreNone, AiCMetrics.PipeUtilization):
                _warn("Please use level1 or level2 if you want to collect aic metrics, reset aic metrics to None!")
            self._aic_metrics = AiCMetrics.AiCoreNone
        self._l2_cache = _flag(l2_cache, "l2_cache")
        self._msprof_tx = _flag(msprof_tx, "msprof_tx")
        self._mstx = _flag(mstx, "mstx")
        self._data_simplification = _flag(data_simplification, "data_simplification", True)
        self.record_op_args = _flag(record_op_args, "record_op_args")
        self._op_attr = _flag(op_attr, "op_attr")
        self._gc_detect_threshold = _milliseconds(gc_detect_threshold)
        self._export_type = _several(export_type, "export_type", ExportType) or [ExportType.Text]
        self._host_sys = _several(host_sys or [], "host_sys", HostSystem)
        self._mstx_domain_include = _texts(mstx_domain_include, "mstx_domain_include")
        self._mstx_domain_exclude = _texts(mstx_domain_exclude, "mstx_domain_exclude")
        if self._mstx_domain_include and self._mstx_domain_exclude:
            _warn("mstx_domain_include and mstx_domain_exclude cannot both be set: mstx_domain_exclude is not used")
            self._mstx_domain_exclude = []
        if (self._mstx_domain_include or self._mstx_domain_exclude) and not self.with_marks:
            _warn("mstx_domain_include and mstx_domain_exclude need mstx=True")
        self._sys_io = _flag(sys_io, "sys_io")
        self._sys_interconnection = _flag(sys_interconnection, "sys_interconnection")
        self._leave_out_what_has_no_source()

    def _leave_out_what_has_no_source(self) -> None:
        missing = [text for name, text in _WITHOUT_SOURCE.items() if getattr(self, name)]
        if self._aic_metrics != AiCMetrics.AiCoreNone:
            missing.insert(0, f"aic_metrics: counters of AI Cores ({self._aic_metrics})")
        for name in _WITHOUT_SOURCE:
            setattr(self, name, [] if name == "_host_sys" else False)
        self._aic_metrics = AiCMetrics.AiCoreNone
        if missing:
            _warn(f"not recorded, because only CANN's own recorder has it: {'; '.join(missing)}")

    @property
    def export_type(self) -> list[str]:
        """The forms of the files in a folder."""
        return self._export_type

    @property
    def with_gc(self) -> bool:
        """Whether folders have garbage collections."""
        return self._gc_detect_threshold is not None

    @property
    def gc_detect_threshold(self) -> float | None:
        """The shortest garbage collection that folders have, in milliseconds."""
        return self._gc_detect_threshold

    @property
    def with_marks(self) -> bool:
        """Whether marks of mstx are recorded."""
        return self._mstx or self._msprof_tx

    def wants_domain(self, domain: str) -> bool:
        """Whether marks of a domain are recorded."""
        if not self.with_marks:
            return False
        if self._mstx_domain_include:
            return domain in self._mstx_domain_include
        return domain not in self._mstx_domain_exclude

    def settings(self) -> dict[str, Any]:
        """What applies, under the names of profiler_info.json."""
        return dict(vars(self))

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> _ExperimentalConfig:
        """The switches of a file, where levels and counters may have the names of their classes' attributes.

        A switch that there is none of is a warning.
        """
        known = {}
        arguments = cls.__init__.__code__.co_varnames[1 : cls.__init__.__code__.co_argcount]
        for name, value in settings.items():
            if name in arguments:
                known[name] = value
            else:
                _warn(f"experimental_config has no {name}: known are {', '.join(arguments)}")
        for name, names in (("profiler_level", ProfilerLevel), ("aic_metrics", AiCMetrics)):
            if isinstance(known.get(name), str):
                known[name] = values_of(names).get(known[name], known[name])
        if isinstance(known.get("export_type"), str):
            known["export_type"] = known["export_type"].lower()
        return cls(**known)


_WITHOUT_COUNTERS = (ProfilerLevel.Level_none, ProfilerLevel.Level0)


def _warn(text: str) -> None:
    warnings.warn(text, RuntimeWarning, stacklevel=4)


def _one_of(value: Any, name: str, names: type, default: str) -> str:
    if value in values_of(names).values():
        return str(value)
    _warn(f"Invalid parameter {name}, reset it to {default}.")
    return default


def _flag(value: Any, name: str, default: bool = False) -> bool:
    if isinstance(value, bool):
        return value
    _warn(f"Invalid parameter {name}, which must be of boolean type, reset it to {default}.")
    return default


def _milliseconds(value: Any) -> float | None:
    if value is None or (type(value) in (int, float) and math.isfinite(value) and value >= 0):
        return value  # type: ignore[no-any-return]
    _warn("Invalid parameter gc_detect_threshold, which must be a number of milliseconds, reset it to None.")
    return None


def _texts(value: Any, name: str) -> list[str]:
    if value is None:
        return []
    if isinstance(value, Iterable) and not isinstance(value, str):
        texts = list(value)
        if all(isinstance(text, str) for text in texts):
            return texts
    _warn(f"Invalid parameter {name}, which must be a list of str, reset it to None.")
    return []


def _several(value: Any, name: str, names: type) -> list[str]:
    wanted = _texts([value] if isinstance(value, str) else value, name)
    known = values_of(names).values()
    for unknown in [text for text in wanted if text not in known]:
        _warn(f"Invalid parameter {name}: {unknown!r} is none of {', '.join(known)}.")
    return [text for text in dict.fromkeys(wanted) if text in known]
