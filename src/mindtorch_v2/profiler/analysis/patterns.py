"""torch's anti-patterns: code that a recorded tree shows to be slower than it need be, with what to do instead.

In: a finished profile. Out: the events that match, and a report. `prof.advice()` covers more ground, with figures; this is for
scripts that use torch's names. Patterns of CUDA find nothing here, since there is no CUDA, and say so by `skip`.
"""

from __future__ import annotations

import itertools
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import Any

from .._io.files import write_file
from .._io.strict_json import dumps
from .._io.terminal import shown

_LOCATION = re.compile(r"^(.*)\((\d+)\): .*$", re.DOTALL)
_OPTIMIZER_STEP = re.compile(r"Optimizer\.step#(Adam|AdamW|SGD)\.step")
_LEAST_REPEATS = 10  # of a loop over an index
_NO_LOCATION = "No source code location found"


class Pattern:
    """Base of all patterns: walks over the tree, and the events around an event. `match` says whether an event matches."""

    name = "Please specify a name for pattern"
    description = "Please specify a description for pattern"
    url = ""

    def __init__(self, prof: Any, should_benchmark: bool = False) -> None:
        if should_benchmark:
            raise NotImplementedError(f"{type(self).__name__}(should_benchmark=True): patterns are not measured")
        self.prof = prof
        self.should_benchmark = should_benchmark
        if prof.profiler is None or prof.profiler.kineto_results is None:
            raise AssertionError("the profile has recorded nothing")
        self.event_tree: list[Any] = prof.profiler.kineto_results.experimental_event_tree()

    @property
    def skip(self) -> bool:
        """Whether the pattern cannot match on this machine."""
        return False

    def match(self, event: Any) -> bool:
        """Whether an event is an instance of the pattern."""
        raise NotImplementedError(f"{type(self).__name__}.match")

    def eventTreeTraversal(self) -> Iterator[Any]:  # noqa: N802  torch's name
        """All events, parents before their children, in order of start."""
        pending = self.event_tree[::-1]
        while pending:
            event = pending.pop()
            yield event
            pending.extend(event.children[::-1])

    def matched_events(self) -> list[Any]:
        """The events that match, none if the pattern is skipped."""
        return [] if self.skip else [event for event in self.eventTreeTraversal() if self.match(event)]

    def report(self, event: Any) -> str:
        """The description and where the event was called."""
        return f"{self.description}\n[Source Code Location] {_location(event)}"

    def summary(self, events: list[Any]) -> str:
        """One line: how many events match."""
        return f"{self.name}: {len(events)} events matched."

    # ------------------------------------------------------------------ the events around an event

    def root_of(self, event: Any) -> Any:
        """The outermost event around it."""
        while event.parent is not None:
            event = event.parent
        return event

    def siblings_of(self, event: Any) -> tuple[list[Any], list[Any]]:
        """The events of the same parent before it and after it."""
        siblings = event.parent.children if event.parent is not None else self.event_tree
        at = siblings.index(event)
        return list(siblings[:at]), list(siblings[at + 1 :])

    def next_of(self, event: Any) -> Any | None:
        """The event after it among those of the same parent, None if it is the last."""
        return next(iter(self.siblings_of(event)[1]), None)

    def prev_of(self, event: Any) -> Any | None:
        """The event before it among those of the same parent, None if it is the first."""
        return next(reversed(self.siblings_of(event)[0]), None)

    def go_up_until(self, event: Any, predicate: Callable[[Any], bool]) -> Any | None:
        """The event or the nearest one around it for which the predicate holds."""
        while event is not None and not predicate(event):
            event = event.parent
        return event


class NamePattern(Pattern):
    """Events whose name matches a regular expression."""

    def __init__(self, prof: Any, name: str, should_benchmark: bool = False) -> None:
        super().__init__(prof, should_benchmark)
        self.name = name
        self.description = f"Matched Name Event: {name}"

    def match(self, event: Any) -> bool:
        """Whether the expression is found in the name."""
        return re.search(self.name, event.name) is not None


class _DevicePattern(Pattern):
    """A pattern of CUDA devices: it finds nothing, since there are none."""

    @property
    def skip(self) -> bool:
        """Always True."""
        return True

    def match(self, event: Any) -> bool:
        """Always False."""
        return False


class ExtraCUDACopyPattern(_DevicePattern):
    """A tensor that is filled on the host and then copied to a CUDA device."""

    name = "Extra CUDA Copy Pattern"
    description = "Filled a CPU tensor and immediately moved it to GPU. Please initialize it on GPU."


class FP32MatMulPattern(_DevicePattern):
    """A float32 matrix product on a CUDA device that has TF32."""

    name = "FP32 MatMul Pattern"
    description = "You are currently using GPU that supports TF32. Please enable it: torch.backends.cuda.matmul.allow_tf32."


class MatMulDimInFP16Pattern(_DevicePattern):
    """A half-precision product on a CUDA device with dims that are not multiples of 8."""

    name = "Matrix Multiplication Dimension Not Aligned Pattern"
    description = "Detected matmul with dimension not aligned. Please use matmul with aligned dimension."


class ForLoopIndexingPattern(Pattern):
    """A loop that takes elements one by one: the same ops after each of at least ten selects in a row."""

    name = "For Loop Indexing Pattern"
    description = "For loop indexing detected. Vectorization recommended."

    @cached_property
    def _visited(self) -> set[int]:
        return set()

    def match(self, event: Any) -> bool:
        """Whether a loop begins with this select."""
        if event.name != "aten::select" or event.id in self._visited:
            return False
        run = [event, *self.siblings_of(event)[1]]
        names = [each.name for each in run]
        if "aten::select" not in names[1:]:
            return False
        body = names[: names.index("aten::select", 1)]
        repeats = 0
        while names[repeats * len(body) : (repeats + 1) * len(body)] == body:
            self._visited.add(run[repeats * len(body)].id)
            repeats += 1
        return repeats >= _LEAST_REPEATS


class OptimizerSingleTensorPattern(Pattern):
    """A step of Adam, AdamW or SGD that updates one parameter after another."""

    name = "Optimizer Single Tensor Pattern"
    description = (
        "Detected optimizer running with single tensor implementation. "
        "Please enable multi tensor implementation by passing 'foreach=True' into optimizer."
    )

    def match(self, event: Any) -> bool:
        """Whether the event is such a step, with ops below it and none for lists of tensors."""
        if not _OPTIMIZER_STEP.fullmatch(event.name):
            return False
        ops = [each.name for each in _below(event) if each.name.startswith("aten::")]
        return bool(ops) and not any(name.startswith(("aten::_foreach_", "aten::_fused_")) for name in ops)


class SynchronizedDataLoaderPattern(Pattern):
    """A DataLoader without workers: the program waits for each batch."""

    name = "Synchronized DataLoader Pattern"
    description = (
        "Detected DataLoader running with synchronized implementation. "
        "Please enable asynchronous dataloading by setting num_workers > 0 when initializing DataLoader."
    )
    _NEXT = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"

    @cached_property
    def _places(self) -> set[str]:
        return set()

    def match(self, event: Any) -> bool:
        """Whether the event gives the first batch at its place in the program."""
        place = _location(event.parent) if event.name == self._NEXT else None
        if place is None or place in self._places:
            return False
        self._places.add(place)
        return True


class GradNotSetToNonePattern(Pattern):
    """Gradients that are filled with zeros instead of being dropped."""

    name = "Gradient Set To Zero Instead of None Pattern"
    description = "Detected gradient set to zero instead of None. Please add 'set_to_none=True' when calling zero_grad()."

    def match(self, event: Any) -> bool:
        """Whether the event is a zero_grad() of an optimizer with zero_ below it, or has a run of zero_ itself."""
        if event.name.startswith("aten::"):
            return False
        names = [child.name for child in event.children]
        if event.name.startswith("Optimizer.zero_grad#"):
            return "aten::zero_" in names
        # Module.zero_grad() has no event of its own: its zero_ calls come one after another.
        return any(pair == ("aten::zero_", "aten::zero_") for pair in itertools.pairwise(names))


class Conv2dBiasFollowedByBatchNorm2dPattern(Pattern):
    """A Conv2d with a bias, which the BatchNorm2d after it takes away again. Needs record_shapes and with_stack."""

    name = "Enabling Bias in Conv2d Followed By BatchNorm Pattern"
    description = "Detected bias enabled in Conv2d that is followed by BatchNorm2d. Please set 'bias=False' in Conv2d."

    @property
    def skip(self) -> bool:
        """Whether shapes were not recorded."""
        return not self.prof.record_shapes

    def match(self, event: Any) -> bool:
        """Whether the event is such a convolution."""
        if event.name != "aten::conv2d":
            return False
        kinds = input_dtypes(event)
        if len(kinds) < 3 or kinds[2] is None:
            return False
        layer = self.go_up_until(event, lambda each: each.name.startswith("nn.Module: Conv2d"))
        following = self.next_of(layer) if layer is not None else None
        return following is not None and following.name.startswith("nn.Module: BatchNorm2d")


def input_shapes(event: Any) -> tuple[tuple[int, ...], ...]:
    """The sizes of an op's inputs, () for those that are no tensors."""
    return tuple(tuple(getattr(each, "sizes", ())) for each in event.extra_fields.inputs)


def input_dtypes(event: Any) -> tuple[Any, ...]:
    """The dtypes of an op's inputs, None for those that are no tensors."""
    return tuple(getattr(each, "dtype", None) for each in event.extra_fields.inputs)


_REPORTED: tuple[type[Pattern], ...] = (
    ExtraCUDACopyPattern,
    FP32MatMulPattern,
    OptimizerSingleTensorPattern,
    SynchronizedDataLoaderPattern,
    GradNotSetToNonePattern,
    Conv2dBiasFollowedByBatchNorm2dPattern,
    MatMulDimInFP16Pattern,
)


def report_all_anti_patterns(
    prof: Any, should_benchmark: bool = False, print_enable: bool = True, json_report_dir: str | None = None
) -> None:
    """Look for all patterns, print what was found, and write `torchtidy_report.json` into a folder if one is given.

    The file has by source file a list of {"line_number", "name", "url", "message"}; what it has of other files stays.
    """
    reports: list[str] = []
    summaries: list[str] = []
    found: dict[str, list[dict[str, Any]]] = {}
    for kind in _REPORTED:
        pattern = kind(prof, should_benchmark)
        events = pattern.matched_events()
        if events:
            summaries.append(pattern.summary(events))
        for event in events:
            reports.append(pattern.report(event))
            match = _LOCATION.match(_location(event))
            if match is not None:
                entry = {"line_number": int(match[2]), "name": pattern.name, "url": pattern.url, "message": pattern.description}
                found.setdefault(match[1], []).append(entry)
    if json_report_dir is not None:
        _write_report(os.path.join(json_report_dir, "torchtidy_report.json"), found)
    if print_enable:
        rule = "-" * 40
        print(f"{rule}TorchTidy Report{rule}", "Matched Events:", *map(shown, _distinct(reports)), "Summary:", sep="\n")
        print(*summaries, sep="\n")


def _write_report(path: str, found: dict[str, list[dict[str, Any]]]) -> None:
    known: dict[str, Any] = {}
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            known = json.load(file)
    write_file(path, [dumps({**known, **found}).encode()])


def _distinct(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(texts))


def _below(event: Any) -> Iterator[Any]:
    for child in event.children:
        yield child
        yield from _below(child)


def _location(event: Any) -> str:
    """The innermost Python function around an event that is not the package's own, as the tree names it."""
    while event is not None:
        if ".py(" in event.name and not event.name.startswith("mindtorch_v2/"):
            return str(event.name)
        event = event.parent
    return _NO_LOCATION
