"""Statistics in the forms of monitoring systems: Prometheus' text and OpenTelemetry's JSON."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from typing import Any

from ..retention.stats import AggregateRow, AggregateStats
from .meter import largest

# Ranges that a program names itself may be without number; a monitoring system must not get a series for each.
MOST_OPS = 200
QUANTILES = (0.5, 0.9, 0.99)
PROMETHEUS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_CUMULATIVE = 2  # AGGREGATION_TEMPORALITY_CUMULATIVE


def prometheus(stats: AggregateStats, limit: int = MOST_OPS) -> str:
    """The text format of Prometheus: counters by op, and a summary of the durations of calls. Times are seconds."""
    rows = largest(stats, limit)
    return "".join(_prometheus_lines(stats, rows))


def _prometheus_lines(stats: AggregateStats, rows: list[AggregateRow]) -> Iterator[str]:
    yield "# HELP mtprof_steps_total Steps of optimizers.\n# TYPE mtprof_steps_total counter\n"
    yield f"mtprof_steps_total {stats.steps}\n"
    yield "# HELP mtprof_op_self_seconds_total Time in an op, without what it called.\n"
    yield "# TYPE mtprof_op_self_seconds_total counter\n"
    for row in rows:
        yield f"mtprof_op_self_seconds_total{{op={_label(row.name)}}} {row.self_ns / 1e9:.9f}\n"
    yield "# HELP mtprof_op_flops_total Floating point operations, where they are recorded.\n"
    yield "# TYPE mtprof_op_flops_total counter\n"
    for row in rows:
        yield f"mtprof_op_flops_total{{op={_label(row.name)}}} {row.flops}\n"
    yield "# HELP mtprof_op_seconds Durations of calls of an op, with what it called.\n# TYPE mtprof_op_seconds summary\n"
    for row in rows:
        name = _label(row.name)
        for q in QUANTILES:
            yield f'mtprof_op_seconds{{op={name},quantile="{q}"}} {row.quantile(q) / 1e9:.9f}\n'
        yield f"mtprof_op_seconds_sum{{op={name}}} {row.sum_ns / 1e9:.9f}\n"
        yield f"mtprof_op_seconds_count{{op={name}}} {row.count}\n"


def _label(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'.encode("utf-8", "replace").decode()


def otlp(stats: AggregateStats, start_ns: int, now_ns: int, limit: int = MOST_OPS) -> dict[str, Any]:
    """A request of OTLP's metrics service, in its JSON form; start_ns and now_ns count from 1970."""
    rows = largest(stats, limit)
    when = {"startTimeUnixNano": str(start_ns), "timeUnixNano": str(now_ns)}

    def sums(name: str, unit: str, points: list[dict[str, Any]]) -> dict[str, Any]:
        total = {"aggregationTemporality": _CUMULATIVE, "isMonotonic": True, "dataPoints": points}
        return {"name": name, "unit": unit, "sum": total}

    durations = [
        {
            **when,
            "attributes": _attributes(op=row.name),
            "count": str(row.count),
            "sum": row.sum_ns / 1e9,
            "quantileValues": [{"quantile": q, "value": row.quantile(q) / 1e9} for q in QUANTILES],
        }
        for row in rows
    ]
    metrics = [
        sums("mtprof.steps", "{step}", [{**when, "asInt": str(stats.steps)}]),
        sums("mtprof.op.self_time", "s", [_point(row, when, asDouble=row.self_ns / 1e9) for row in rows]),
        sums("mtprof.op.flops", "{operation}", [_point(row, when, asInt=str(row.flops)) for row in rows]),
        {"name": "mtprof.op.duration", "unit": "s", "summary": {"dataPoints": durations}},
    ]
    resource = {
        "service.name": os.environ.get("OTEL_SERVICE_NAME", "mtprof"),
        "host.name": platform.node(),
        "process.pid": os.getpid(),
    }
    scope = {"name": "mindtorch_v2.profiler"}
    return {
        "resourceMetrics": [
            {
                "resource": {"attributes": _attributes(**resource)},
                "scopeMetrics": [{"scope": scope, "metrics": metrics}],
            }
        ]
    }


def _point(row: AggregateRow, when: dict[str, str], **value: Any) -> dict[str, Any]:
    return {**when, "attributes": _attributes(op=row.name), **value}


def _attributes(**values: Any) -> list[dict[str, Any]]:
    return [
        {"key": key, "value": {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}}
        for key, value in values.items()
    ]
