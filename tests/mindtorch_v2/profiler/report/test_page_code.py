"""Functions of the page's own code, called in a browser."""

from __future__ import annotations

import json
from typing import Any

from mindtorch_v2.profiler.report import html

FAMILIES = {
    "aten::addmm": "Matrix products",
    "aten::bmm": "Matrix products",
    "aten::convolution_backward": "Convolution, pooling",
    "aten::native_layer_norm": "Normalization, softmax, loss",
    "aten::embedding": "Indexing, embedding",
    "aten::t": "Views",
    "aten::zero_": "Copies and new tensors",
    "aten::copy_": "Copies and new tensors",
    "aten::mean": "Reductions, sorting",
    "aten::_foreach_add_": "Element by element",
    "aten::gelu_backward": "Element by element",
    "mine::thing": "Element by element",
}
TEXTS = {
    "time(0)": "0",
    "time(999)": "999 ns",
    "time(1500)": "1.500 µs",
    "time(123456)": "123.5 µs",
    "time(2.5e9)": "2.500 s",
    "bytes(-1536)": "-1.50 KiB",
    "bytes(12)": "12 B",
    "flops(0)": "–",
    "flops(2.5e9)": "2.500 G",
    "percent(1, 0)": "–",
    "percent(1, 8)": "12.5 %",
    "percent(1, 10000)": "<0.1 %",
    "shapes('[[16, 64], [], [64]]')": "16×64, ·, 64",
    "shapes('[]')": "",
    "tickLabel(1500000, 500000)": "1,500 µs",
    "words('OPTIMIZER_STATE')": "Optimizer state",
    "plural(1, 'step')": "1 step",
    "plural(2000, 'step')": "2,000 steps",
}


def run(browser: Any, function: str) -> Any:
    """What a JavaScript function that sees all of the page's own code gives."""
    script = html.joined_script().rsplit("start();", 1)[0]
    page = browser.new_page()
    result = page.evaluate("(script) => (0, eval)(script)", f"(() => {{ {script}; return ({function})(); }})()")
    page.close()
    return result


def test_ops_belong_to_families(browser):
    results = run(browser, f"() => {json.dumps(list(FAMILIES))}.map((name) => FAMILIES[familyOf(name, 'OP')][0])")
    assert dict(zip(FAMILIES, results, strict=True)) == FAMILIES


def test_numbers_as_text(browser):
    results = run(browser, f"() => [{', '.join(TEXTS)}]")
    assert dict(zip(TEXTS, results, strict=True)) == TEXTS


def test_what_is_drawn_covers_every_event(browser):
    """Each event of two pixels or more has a rectangle of its own; each smaller one lies in a mark."""
    assert run(browser, _COVERS) == []


_COVERS = r"""() => {
  const missing = [];
  let seed = 1;
  const random = () => (seed = (seed * 16807) % 2147483647) / 2147483647;
  for (let round = 0; round < 200; round++) {
    const starts = [], ends = [], count = 1 + Math.floor(random() * 80);
    for (let at = 0, now = 0; at < count; at++) {
      now += random() < 0.5 ? random() * 2 : random() * 300;
      starts.push(now);
      now += random() < 0.6 ? random() * 3 : random() * 400;
      ends.push(now);
    }
    const tint = starts.map((_, at) => at % 5), { firstAfter } = Lanes.prototype;
    const lanes = { starts, ends, tint, first: [0, count], firstAfter };
    const scale = 0.02 + random() * 0.4, rectangles = [];
    collectSlot(lanes, 0, -1, 1e9, scale, 0, 0, { add: (color, x, y, width) => rectangles.push([x, x + width, color]) }, []);
    starts.forEach((start, at) => {
      const wide = (ends[at] - start) * scale, x = Math.floor(start * scale), middle = ((start + ends[at]) / 2) * scale;
      const own = ([from, to, color]) => color === at % 5 && from <= middle && middle <= to;
      if (!rectangles.some(wide >= 2 ? own : ([from, to]) => from <= x && x < to)) missing.push([round, at, wide]);
    });
  }
  return missing.slice(0, 5);
}"""
