// The timeline: every event where and when it ran. Only what is visible is drawn.

import { choice, Drawing, el, emptyState, heading, hideTip, matcher, replace, searchBox, showTip, toggle } from "../widgets/dom.js";
import { hasPython } from "../model/calltree.js";
import { eventDetails, eventTip } from "./details.js";
import { count, percent, time } from "../widgets/format.js";
import { attachKeys, attachPointer, TimeView } from "../widgets/gestures.js";
import { grouped } from "../model/groups.js";
import { counterStrips } from "../charts/counters.js";
import { Lanes, Rectangles, SLOT } from "../charts/lanes.js";
import { MiniMap } from "../charts/minimap.js";
import { paintChosen, paintTimeline, RULER } from "../charts/paint.js";
import { FAMILIES, PHASES } from "../widgets/palette.js";

class Timeline {
  constructor(model, host, side, app) {
    Object.assign(this, {
      model,
      side,
      app,
      color: "family",
      arrows: false,
      selected: -1,
      hovered: -1,
      scroll: 0,
      range: null,
    });
    this.lanes = new Lanes(model, true);
    this.rectangles = new Rectangles(Math.max(FAMILIES.length, PHASES.length) + 1);
    this.view = new TimeView(model.span, () => this.changed());
    this.map = new MiniMap(host, model, this.view);
    this.counters = counterStrips(host, model, this.view);
    this.stage = el("div", { class: "stage" });
    host.append(this.stage);
    const paintBase = (context, width, height) => paintTimeline(this, context, width, height);
    this.base = new Drawing(this.stage, "Timeline", paintBase, false);
    this.base.canvas.setAttribute("aria-hidden", "true");
    this.over = new Drawing(
      this.stage,
      "Timeline: A and D move, W and S zoom, arrow up and down scroll, 0 shows all, Tab leaves",
      (context, width) => paintChosen(this, context, width),
    );
    this.canvas = this.over.canvas;
    this.canvas.id = "timeline-canvas";
    this.tint();
    this.fitHeight();
    this.view.fit();
    attachPointer(this.canvas, {
      move: (dx, dy) => {
        this.scrollBy(-dy);
        this.view.pan(-dx / this.base.width);
      },
      zoom: (factor, x) => this.view.zoom(factor, this.timeAt(x)),
      hover: (x, y, event) => this.hover(x, y, event),
      leave: () => {
        this.hovered = -1;
        hideTip();
        this.over.soon();
      },
      click: (x, y) => this.click(x, y),
      select: (a, b, done) => this.measure(this.timeAt(Math.min(a, b)), this.timeAt(Math.max(a, b)), done),
    });
    attachKeys(this.canvas, this.view, {
      ArrowUp: () => this.scrollBy(-3 * SLOT),
      ArrowDown: () => this.scrollBy(3 * SLOT),
      Escape: () => {
        this.range = null;
        this.select(-1);
      },
      f: () => {
        if (this.selected >= 0) this.reveal(this.selected);
      },
      "[": () => this.neighbor(-1),
      "]": () => this.neighbor(1),
    });
  }

  tint() {
    const test = this.test,
      matches = test ? Uint8Array.from(this.model.names, (name) => (test(name) ? 1 : 0)) : null;
    this.matches = matches;
    this.lanes.tintBy(
      this.color === "phase" ? this.model.phase : this.model.family,
      matches,
      this.rectangles.lists.length - 1,
    );
    this.redraw();
  }

  showPython(python) {
    this.lanes = new Lanes(this.model, python);
    if (this.selected >= 0 && this.lanes.laneOf[this.selected] < 0) this.select(-1);
    this.scroll = 0;
    this.fitHeight();
    this.tint();
  }

  redraw() {
    this.base.soon();
    this.over.soon();
    this.map.drawing.soon();
    for (const strip of this.counters) strip.drawing.soon();
  }

  fitHeight() {
    const room = Math.max(260, Math.min(720, innerHeight - 330));
    this.stage.style.height = `${Math.min(room, Math.max(160, this.lanes.height + RULER + 6))}px`;
  }

  changed() {
    this.canvas.dataset.from = this.view.from;
    this.canvas.dataset.to = this.view.to;
    this.redraw();
    clearTimeout(this.keeping);
    this.keeping = setTimeout(() => this.keep(), 150);
  }

  // Which part is shown and what is chosen, for the page's address.
  keep() {
    const { view, model } = this,
      all = view.from <= 0 && view.to >= model.span;
    this.app.keep(timeline, {
      from: all ? "" : Math.round(view.from),
      to: all ? "" : Math.round(view.to),
      event: this.selected >= 0 ? this.selected : "",
    });
  }

  restore(choices) {
    const [from, to, event] = ["from", "to", "event"].map((key) => Number(choices.get(key) ?? NaN));
    if (event >= 0 && event < this.model.size && this.lanes.laneOf[event] >= 0) this.reveal(event);
    if (to > from) this.view.show(from, to);
  }

  timeAt(x) {
    return this.view.from + (x / this.base.width) * this.view.width;
  }

  xOf(moment) {
    return ((moment - this.view.from) / this.view.width) * this.base.width;
  }

  scrollBy(dy) {
    const most = Math.max(0, this.lanes.height + RULER - this.base.height),
      next = Math.min(most, Math.max(0, this.scroll + dy));
    if (next === this.scroll) return;
    this.scroll = next;
    this.redraw();
  }

  // ---------------------------------------------------------------- looking and choosing

  rowAt(x, y) {
    return y < RULER ? -1 : this.lanes.at(y - RULER + this.scroll, this.timeAt(x), (this.view.width / this.base.width) * 1.5);
  }

  hover(x, y, event) {
    const row = this.rowAt(x, y);
    if (row !== this.hovered) {
      this.hovered = row;
      this.over.soon();
    }
    this.canvas.style.cursor = row >= 0 ? "pointer" : "grab";
    if (row < 0) hideTip();
    else showTip(event.clientX, event.clientY, ...eventTip(this.model, row));
  }

  click(x, y) {
    const row = this.rowAt(x, y),
      head = row < 0 && y > RULER ? this.lanes.headAt(y - RULER + this.scroll) : null;
    if (head) {
      head.open = !head.open;
      this.lanes.place();
      this.fitHeight();
      this.scrollBy(0);
      this.redraw();
      return;
    }
    this.range = null;
    this.select(row);
  }

  select(row) {
    this.selected = row;
    this.keep();
    this.over.soon();
    if (row < 0) this.hint();
    else
      replace(
        this.side,
        eventDetails(this.model, row, { show: (target) => this.reveal(target) }),
        el(
          "p",
          { class: "actions" },
          el(
            "button",
            { type: "button", onclick: () => this.app.showOperator(this.model.labels[this.model.label(row)]) },
            "All calls of it",
          ),
        ),
      );
  }

  hint() {
    replace(
      this.side,
      el(
        "div",
        { class: "details" },
        el("h3", { text: "Nothing chosen" }),
        el("p", {
          class: "muted",
          text: "Click an event for everything known of it. Arrows lead to its backward node and to what it launched.",
        }),
        el("p", {
          class: "muted",
          text: matchMedia("(pointer: coarse)").matches
            ? "Two fingers zoom, one moves."
            : "Wheel or W and S zoom, drag or A and D move. Shift-drag measures a stretch of time.",
        }),
      ),
    );
  }

  reveal(row) {
    const length = Math.max(this.model.duration[row], 200),
      lane = this.lanes.lanes[this.lanes.laneOf[row]];
    if (lane && !lane.open) {
      lane.open = true;
      this.lanes.place();
    }
    const y = this.lanes.yOf(row),
      room = this.base.height - RULER;
    if (y < this.scroll || y > this.scroll + room - 2 * SLOT) {
      this.scroll = Math.max(0, Math.min(this.lanes.height - room, y - room / 2));
    }
    this.view.show(this.model.start[row] - 2 * length, this.model.end[row] + 2 * length);
    this.select(row);
  }

  neighbor(way) {
    if (this.selected < 0 || this.lanes.laneOf[this.selected] < 0) return;
    const slot = this.lanes.lanes[this.lanes.laneOf[this.selected]].slot + this.lanes.depth[this.selected];
    let at = this.lanes.firstAfter(slot, this.model.start[this.selected]);
    while (this.lanes.rows[at] < this.selected) at++;
    at += way;
    if (at >= this.lanes.first[slot] && at < this.lanes.first[slot + 1]) this.reveal(this.lanes.rows[at]);
  }

  // The next event that the search matches, after the one chosen or from the left edge.
  next(backwards) {
    if (!this.matches) return;
    const { model } = this,
      step = backwards ? -1 : 1;
    let row = this.selected;
    if (row < 0) row = model.start.findIndex((start) => start >= this.view.from) - step;
    for (let tried = 0; tried < model.size; tried++) {
      row = (row + step + model.size) % model.size;
      if (this.matches[model.name[row]] && this.lanes.laneOf[row] >= 0) return this.reveal(row);
    }
  }

  measure(from, to, done) {
    this.range = [from, to];
    this.over.soon();
    if (!done) return;
    const { groups } = grouped(this.model, "name", from, to),
      own = (group) => (group.device ? group.deviceSelf : group.self),
      top = groups.sort((a, b) => own(b) - own(a)).slice(0, 10);
    const events = groups.reduce((sum, group) => sum + group.count, 0);
    replace(
      this.side,
      el(
        "div",
        { class: "details", id: "measure" },
        el("h3", { text: time(to - from) }),
        el("p", { class: "muted", text: `from ${time(from)} to ${time(to)}; ${count(events)} events begin in it.` }),
        el(
          "ul",
          { class: "plain" },
          top.map((group) =>
            el(
              "li",
              { class: "pair" },
              el("span", { class: "mono", text: group.name }),
              el("span", { text: `${time(own(group))} · ${percent(own(group), to - from)}` }),
            ),
          ),
        ),
        el("p", { class: "actions" }, el("button", { type: "button", onclick: () => this.view.show(from, to) }, "Zoom to it")),
      ),
    );
  }
}

export const timeline = {
  id: "timeline",
  title: "Timeline",
  build(model, root, app) {
    root.append(heading("Timeline"));
    if (!model.size) return root.append(emptyState("No events", "Nothing was recorded."));
    const main = el("div", { class: "timeline-main" }),
      side = el("aside", { class: "side", "aria-label": "Details", "aria-live": "polite" });
    const built = (this.timeline = new Timeline(model, main, side, app));
    this.search = searchBox(
      "Find events (Enter: next)",
      (text) => {
        built.test = matcher(text);
        built.tint();
      },
      (backwards) => built.next(backwards),
    );
    const button = (text, label, action) =>
      el("button", { type: "button", class: "icon", "aria-label": label, title: label, onclick: action }, text);
    root.append(
      el(
        "div",
        { class: "toolbar" },
        this.search,
        choice(
          "Color by",
          [
            ["family", "Kind of op"],
            ["phase", "Phase"],
          ],
          "family",
          (value) => {
            built.color = value;
            built.tint();
          },
        ),
        hasPython(model) && toggle("Python", true, (value) => built.showPython(value)),
        (model.forward.length > 0 || model.launch.length > 0) &&
          toggle("Arrows", false, (value) => {
            built.arrows = value;
            built.over.soon();
          }),
        el(
          "span",
          { class: "buttons" },
          button("−", "Zoom out", () => built.view.zoom(1.5)),
          button("+", "Zoom in", () => built.view.zoom(1 / 1.5)),
          button("⤢", "Show all", () => built.view.fit()),
        ),
      ),
      el("div", { class: "timeline" }, main, side),
    );
    built.hint();
    built.base.resize();
    built.restore(app.choicesOf(this));
    this.restore = (choices) => built.restore(choices);
    app.redraws.push(() => built.redraw());
    addEventListener("resize", () => built.fitHeight());
  },
};
