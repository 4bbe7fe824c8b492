"""What the device did: use, waits, kernels, copies, launches."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ...._io.strict_json import dumps
from ...._io.terminal import shown
from ....analysis.device import idle
from ....analysis.device import summary as device_time
from ....analysis.device.answer import device_answer
from ....analysis.findings import duration, size
from ....store.store import EventStore
from ... import reading
from ...exit_codes import FINE, Failure

EXAMPLE = "mtprof device trace.json.gz -n 10"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    reading.add_path(parser)
    reading.add_limit(parser, 15, "kernels")
    reading.add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Print each view of the device, or all of them as JSON."""
    store = reading.open_recording(args.path).store
    devices = device_time.device_summaries(store)
    if not devices:
        raise Failure(f"nothing in it ran on a device{_hint(store)}")
    if args.json:
        print(dumps(device_answer(store, None if args.limit < 0 else args.limit), indent=1))
        return FINE
    parts, kernels = device_time.step_breakdown(store), device_time.kernel_groups(store)
    copies, launches = device_time.copy_groups(store), device_time.launch_stats(store)
    overlap, causes, limits = idle.step_overlap(store), idle.idle_causes(store), idle.limits(store)
    for summary, limit in zip(devices, limits, strict=True):
        _print_summary(summary)
        _print_limit(limit)
    _print_overlap(overlap)
    _print_idle(reading.first(causes, args.limit))
    _print_steps(parts)
    _print_kernels(kernels, reading.first(kernels, args.limit))
    _print_copies(copies)
    _print_launches(launches)
    return FINE


def _hint(store: EventStore) -> str:
    """What may be missing, if the host called a device's runtime."""
    calls = store.has_driver_rows
    return ": it has calls of a device's runtime, and no work of a device" if calls else ""


def _print_summary(summary: device_time.DeviceSummary) -> None:
    name = f" ({shown(summary.name)})" if summary.name else ""
    print(
        f"{summary.device}{name}: busy {summary.utilization:.1%} of {duration(summary.span_ns)}, on {summary.streams} "
        + ("stream" if summary.streams == 1 else "streams")
    )
    facts = [f"kernels {duration(summary.kernel_ns)}", f"copies and fills {duration(summary.copy_ns)}"]
    if summary.communication_ns:
        exposed = duration(summary.exposed_communication_ns)
        facts.insert(1, f"communication {duration(summary.communication_ns)} ({exposed} of it while nothing was computed)")
    print(f"  {', '.join(facts)}")
    told = [
        (summary.occupancy, "occupancy {:.1f} %"),
        (None if summary.sm_efficiency is None else summary.sm_efficiency * 100, "multiprocessors in use {:.1f} %"),
        (None if summary.tensor_core_share is None else summary.tensor_core_share * 100, "in tensor-core kernels {:.1f} %"),
    ]
    known = [text.format(value) for value, text in told if value is not None]
    if known:
        print(f"  of the kernels' time: {', '.join(known)}")
    elif not summary.device.startswith("npu"):  # which have none
        print("  the recording tells nothing of occupancy")


def _print_limit(limit: idle.Limit) -> None:
    facts = f"busy {limit.busy_share:.1%} from its first to its last work"
    if limit.busy_share < 1:
        facts += f", {limit.idle_by_host_share:.0%} of the idle time before the host had launched more"
    text = {
        "device": "device-bound: only less or faster work on the device makes it quicker",
        "host": "host-bound: the device waits for launches",
        "communication": "bound by communication that nothing is computed beside",
        "neither": "neither host-bound nor device-bound",
    }
    print(f"  {text[limit.limit]} ({facts})")


def _print_overlap(steps: Sequence[idle.StepOverlap]) -> None:
    names = ("computing", "communication", "not overlapped", "free", "copying in it")
    print(f"\n{'step':>6} {'time':>9} " + " ".join(f"{name:>14}" for name in names) + "  device")
    for step in steps:
        amounts = (step.computing_ns, step.communication_ns, step.not_overlapped_ns, step.free_ns, step.copying_ns)
        cells = " ".join(f"{duration(amount):>14}" for amount in amounts)
        print(f"{step.step:>6} {duration(step.duration_ns):>9} {cells}  {step.device}")


def _print_idle(causes: Sequence[idle.IdleCause]) -> None:
    if causes:
        print(f"\n{'idle':>9} {'gaps':>7} {'longest':>9}  while the host was in, and then launched for")
    for cause in causes:
        then = f" -> {shown(cause.then)}" if cause.then else ""
        print(f"{duration(cause.total_ns):>9} {cause.gaps:>7,} {duration(cause.longest_ns):>9}  {shown(cause.cause)}{then}")


def _print_steps(parts: Sequence[device_time.StepParts]) -> None:
    print(f"\n{'step':>6} {'time':>9} " + " ".join(f"{part:>13}" for part in device_time.PARTS))
    for step in parts:
        cells = (f"{amount / step.duration_ns if step.duration_ns else 0:.1%}" for amount in step.parts.values())
        print(f"{step.step:>6} {duration(step.duration_ns):>9} " + " ".join(f"{cell:>13}" for cell in cells))
    print("From `waiting` on the device is idle, and the host waits for it, launches, loads data, runs ops, or none of these.")


def _print_kernels(kernels: Sequence[device_time.KernelGroup], listed: Sequence[device_time.KernelGroup]) -> None:
    total = sum(group.total_ns for group in kernels) or 1
    told = [column for column in _KERNEL_FACTS if any(getattr(group, column.field) is not None for group in listed)]
    titles = "".join(f" {column.title:>{column.width}}" for column in told)
    print(f"\n{'time':>9} {'share':>6} {'calls':>7} {'mean':>9}{titles}  kernel")
    for group in listed:
        cells = "".join(f" {column.cell(group):>{column.width}}" for column in told)
        op = f" by {shown(group.op)}" if group.op else ""
        print(
            f"{duration(group.total_ns):>9} {group.total_ns / total:>6.1%} {group.calls:>7,} "
            f"{duration(group.total_ns / group.calls):>9}{cells}  {shown(_short(group.name))}{op}"
        )
    if len(kernels) > len(listed):
        print(f"... {len(kernels) - len(listed)} more")


def _print_copies(copies: Sequence[device_time.CopyGroup]) -> None:
    if copies:
        print(f"\n{'time':>9} {'calls':>7} {'blocking':>8} {'bytes':>9} {'GB/s':>8}  copy or fill")
    for group in copies:
        speed = group.gigabytes_per_second
        amount: Any = "-" if group.bytes is None else size(group.bytes)
        cells = f"{duration(group.total_ns):>9} {group.calls:>7,} {group.blocking:>8,} {amount:>9}"
        print(f"{cells} {'-' if speed is None else f'{speed:.3g}':>8}  {shown(group.name)}")


def _print_launches(launches: Sequence[device_time.LaunchStats]) -> None:
    if launches:
        print(f"\n{'launches':>8} {'median delay':>12} {'longest':>9} {'mean queue':>10} {'longest':>7} {'starved':>7}  stream")
    for stats in launches:
        print(
            f"{stats.launches:>8,} {duration(stats.median_delay_ns):>12} {duration(stats.longest_delay_ns):>9} "
            f"{stats.mean_queue:>10.1f} {stats.longest_queue:>7,} {stats.starved_share:>7.1%}  "
            f"{stats.device} {shown(stats.lane) if stats.stream < 0 else f'stream {stats.stream}'}"
        )


class _Fact(NamedTuple):
    """A column of the table of kernels that only some recordings have."""

    field: str
    title: str
    width: int
    text: Callable[[Any], str]

    def cell(self, group: device_time.KernelGroup) -> str:
        """Its text for some kernels."""
        value = getattr(group, self.field)
        return "-" if value is None else self.text(value)


def _sizes(sizes: tuple[int, ...]) -> str:
    return ",".join(map(str, sizes))


_KERNEL_FACTS = (
    _Fact("occupancy", "occupancy", 9, "{:.0f} %".format),
    _Fact("grid", "grid", 14, _sizes),
    _Fact("block", "block", 12, _sizes),
    _Fact("core", "core", 14, shown),
    _Fact("blocks", "blocks", 6, "{:.0f}".format),
)


def _short(name: str) -> str:
    """A kernel's name without its template arguments, which may take pages."""
    return name if len(name) <= 80 else name[:77] + "..."
