// A bar for each step, stacked by phase. Arrow keys move from bar to bar.

import { Drawing, el, emptyState, hideTip, legend, showTip, swatch } from "../widgets/dom.js";
import { plural, tickLabel, tickSize, time } from "../widgets/format.js";
import { PHASE, PHASES, theme } from "../widgets/palette.js";

const EDGE = { left: 64, bottom: 20, top: 8 };

class StepChart {
  constructor(host, model, onchoose) {
    Object.assign(this, { steps: model.steps, parts: model.phases.each, onchoose, cursor: -1 });
    this.most = Math.max(...this.steps.map((step) => step.end - step.start));
    this.drawing = new Drawing(
      host,
      `Time of ${plural(this.steps.length, "step")}: arrow keys go from step to step, Enter shows one in the timeline`,
      (context, width, height) => this.paint(context, width, height),
    );
    const { canvas } = this.drawing;
    canvas.id = "step-canvas";
    // The role whose value text every screen reader reads when it changes.
    canvas.setAttribute("role", "slider");
    canvas.setAttribute("aria-valuemin", 1);
    canvas.setAttribute("aria-valuemax", this.steps.length);
    this.describe(0);
    const at = (event) => Math.floor((event.offsetX - EDGE.left) / this.each);
    canvas.addEventListener("pointermove", (event) => this.tell(at(event), event.clientX, event.clientY));
    canvas.addEventListener("pointerleave", hideTip);
    canvas.addEventListener("click", (event) => this.choose(at(event)));
    canvas.addEventListener("focus", () => canvas.matches(":focus-visible") && this.move(Math.max(0, this.cursor)));
    canvas.addEventListener("blur", () => {
      hideTip();
      this.drawing.soon();
    });
    canvas.addEventListener("keydown", (event) => this.key(event));
  }

  get each() {
    return (this.drawing.width - EDGE.left) / this.steps.length;
  }

  // Where the bar of a step stands.
  bar(at) {
    const { each } = this,
      gap = each > 12 ? Math.min(10, each * 0.25) : 0,
      wide = Math.max(1, Math.min(each - gap, 96));
    return [EDGE.left + at * each + (each - wide) / 2, wide];
  }

  describe(at) {
    const step = this.steps[at],
      parts = PHASES.map(([name], phase) => this.parts[at][phase] > 0 && `${name} ${time(this.parts[at][phase])}`);
    this.drawing.canvas.setAttribute("aria-valuenow", at + 1);
    this.drawing.canvas.setAttribute(
      "aria-valuetext",
      [`${step.name}, ${time(step.end - step.start)}`, ...parts.filter(Boolean)].join(", "),
    );
  }

  tell(at, x, y) {
    const step = this.steps[at];
    if (!step) return hideTip();
    showTip(
      x,
      y,
      el("strong", { text: step.name }),
      el("span", { text: time(step.end - step.start) }),
      PHASES.map(
        ([name], phase) =>
          this.parts[at][phase] > 0 && el("span", {}, swatch(theme.phases[phase]), `${name} ${time(this.parts[at][phase])}`),
      ),
    );
  }

  move(at) {
    this.cursor = Math.min(this.steps.length - 1, Math.max(0, at));
    this.describe(this.cursor);
    this.drawing.soon();
    const box = this.drawing.canvas.getBoundingClientRect(),
      [x, wide] = this.bar(this.cursor);
    this.tell(this.cursor, box.left + x + wide, box.top + EDGE.top);
  }

  choose(at) {
    const step = this.steps[at];
    if (step) this.onchoose(step);
  }

  key(event) {
    const moves = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 10, PageDown: -10 };
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key in moves) this.move(this.cursor + moves[event.key]);
    else if (event.key === "Home") this.move(0);
    else if (event.key === "End") this.move(this.steps.length - 1);
    else if (event.key === "Enter" || event.key === " ") this.choose(this.cursor);
    else return;
    event.preventDefault();
  }

  paint(context, width, height) {
    const room = height - EDGE.top - EDGE.bottom,
      { each, most } = this,
      tick = tickSize(most, 4);
    context.font = theme.font;
    context.textBaseline = "middle";
    for (let level = 0; level <= most * 1.0001; level += tick) {
      const y = EDGE.top + room * (1 - level / most);
      context.fillStyle = theme.line;
      context.fillRect(EDGE.left, Math.round(y), width - EDGE.left, 1);
      context.fillStyle = theme.muted;
      context.textAlign = "right";
      context.fillText(level ? tickLabel(level, tick) : "0", EDGE.left - 8, y);
    }
    this.steps.forEach((step, at) => {
      const [x, wide] = this.bar(at),
        parts = this.parts[at],
        sum = parts.slice(0, PHASE.DEVICE).reduce((a, b) => a + b, 0),
        scale = ((step.end - step.start) / most) * (room / Math.max(sum, step.end - step.start));
      let y = EDGE.top + room;
      for (let phase = 0; phase < PHASE.DEVICE; phase++) {
        const tall = parts[phase] * scale;
        context.fillStyle = theme.phases[phase];
        context.fillRect(x, y - tall, wide, tall);
        y -= tall;
      }
      if (each > 34 || at % Math.ceil(40 / each) === 0) {
        context.fillStyle = theme.muted;
        context.textAlign = "center";
        context.fillText(step.name.replace(/^\D+/, ""), x + wide / 2, height - EDGE.bottom / 2);
      }
    });
    if (this.cursor >= 0 && document.activeElement === this.drawing.canvas) {
      const [x, wide] = this.bar(this.cursor),
        step = this.steps[this.cursor],
        tall = ((step.end - step.start) / most) * room;
      context.strokeStyle = theme.ink;
      context.lineWidth = 2;
      context.strokeRect(x - 2, EDGE.top + room - tall - 2, wide + 4, tall + 4);
    }
  }
}

export function stepChart(model, app) {
  const { steps, phases } = model;
  if (!steps.length)
    return emptyState("No steps", "Call prof.step() at the end of every step, with a schedule, and each step gets a bar here.");
  const host = el("div", { class: "step-chart" }),
    chart = new StepChart(host, model, (step) => app.showTime(step.start, step.end));
  app.redraws.push(() => chart.drawing.soon());
  return el(
    "div",
    {},
    host,
    legend(PHASES.map(([name], at) => [name, theme.phases[at]]).filter((_, at) => at !== PHASE.DEVICE && phases.all[at] > 0)),
  );
}
