// Puts the page of a recording together.

import { advice } from "./sections/advice.js";
import { deviceSection } from "./sections/device.js";
import { openPage, Page } from "./widgets/app.js";
import { count, time } from "./widgets/format.js";
import { flame } from "./sections/flame.js";
import { memory } from "./sections/memory.js";
import { Model } from "./model/model.js";
import { modules } from "./sections/modules.js";
import { operators } from "./sections/operators.js";
import { overview } from "./sections/overview.js";
import { rooflineSection } from "./sections/roofline.js";
import { source } from "./sections/source.js";
import { timeline } from "./sections/timeline.js";

const SECTIONS = [overview, advice, operators, source, flame, timeline, deviceSection, memory, modules, rooflineSection];
const KEYS = [
  ["1 … 9", "Go to a section"],
  ["/", "Search in it"],
  ["T", "Light or dark"],
  ["?", "This list"],
  ["Esc", "Close, clear, zoom out"],
  ["W S + −", "Zoom the timeline"],
  ["A D ← →", "Move the timeline"],
  ["↑ ↓", "Scroll its lanes"],
  ["0", "Show all of it"],
  ["F", "Zoom to the chosen event"],
  ["[ ]", "The event, or the moment of the memory chart, before or after"],
  ["← → ↑ ↓", "From step to step, from call to call, from row to row"],
  ["Shift-drag", "Measure a stretch of time"],
  ["Enter", "Next match; open a row or a step; zoom the flame graph"],
];

class App extends Page {
  showOperator(name) {
    this.go(operators);
    operators.filter(name);
  }

  showEvent(row) {
    this.go(timeline);
    timeline.timeline.base.resize();
    timeline.timeline.reveal(row);
  }

  showTime(from, to) {
    this.go(timeline);
    timeline.timeline.view.show(from - (to - from) * 0.03, to + (to - from) * 0.03);
    document.getElementById("timeline-canvas").focus({ preventScroll: true });
  }

  searchTimeline(text) {
    this.go(timeline);
    timeline.search.value = text;
    timeline.search.dispatchEvent(new Event("input"));
    timeline.search.focus();
  }
}

function start() {
  return openPage((about, columns) => {
    const model = new Model(about, columns);
    new App(model, SECTIONS, KEYS);
    return `${count(model.size)} events · ${time(model.span)}`;
  });
}

start();
