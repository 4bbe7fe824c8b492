"""Two call trees as one flame graph."""

from __future__ import annotations

import re

from mindtorch_v2._dispatch import observer
from mindtorch_v2.profiler.report.flame_difference import flame_difference, pair_up
from mindtorch_v2.profiler.store.store import EventStore


def store(same, slower, gone=0):
    rows = [{"name": "aten::same", "start": 0, "end": same}, {"name": "aten::<b>", "start": same, "end": same + slower}]
    if gone:
        rows.append({"name": "aten::gone", "start": same + slower, "end": same + slower + gone})
    end = same + slower + gone
    return EventStore.from_rows([*rows, {"name": "ProfilerStep#0", "kind": observer.STEP, "start": 0, "end": end}])


def test_paths_are_paired_and_shaded_by_their_change():
    root = pair_up([store(100, 100, 50)], [store(100, 200), store(100, 220)])
    step = root.children["ProfilerStep*"]
    assert (step.before_ns, step.after_ns) == (250, 310)
    shades = {name: (child.before_ns, child.after_ns, child.shade) for name, child in step.children.items()}
    assert shades == {"aten::same": (100, 100, 0), "aten::<b>": (100, 210, 3), "aten::gone": (50, 0, -3)}


def test_the_drawing_has_a_box_for_each_and_no_markup_of_names():
    text = flame_difference(pair_up([store(100, 100, 50)], [store(100, 200)]))
    assert text.count("<rect") == 5 and "<b>" not in text and "&lt;b&gt;" in text
    widths = [float(width) for width in re.findall(r'width="([\d.]+)" height="20"', text)]
    assert widths[0] == max(widths) and sum(widths[2:]) <= widths[1] + 0.5


def test_nothing_recorded_is_drawn_as_nothing():
    assert flame_difference(pair_up([EventStore.from_rows([])], [EventStore.from_rows([])])) == ""
