// How the timeline is drawn. `shown` is the Timeline: its lanes, view, choice and colors.

import { tickLabel, tickSize, time } from "../widgets/format.js";
import { collectSlot, LANE_HEAD, SLOT } from "./lanes.js";
import { theme } from "../widgets/palette.js";

export const RULER = 30;
const MOST_ARROWS = 400;

export function paintTimeline(shown, context, width, height) {
  const { view, lanes } = shown,
    scale = width / view.width,
    offset = Math.round(view.from * scale),
    labels = [];
  context.font = theme.font;
  context.textBaseline = "middle";
  paintSteps(shown, context, width, height);
  for (const lane of lanes.lanes) {
    const top = RULER + lane.y - shown.scroll,
      depth = lane.open ? lane.depth : 1;
    if (top > height || top + LANE_HEAD + depth * SLOT < RULER) continue;
    const low = Math.max(0, Math.floor((RULER - top - LANE_HEAD) / SLOT)),
      high = Math.min(depth, Math.ceil((height - top - LANE_HEAD) / SLOT));
    for (let level = low; level < high; level++)
      collectSlot(
        lanes,
        lane.slot + level,
        view.from,
        view.to,
        scale,
        offset,
        top + LANE_HEAD + level * SLOT,
        shown.rectangles,
        labels,
      );
  }
  const colors = [...(shown.color === "phase" ? theme.phases : theme.families)];
  colors[shown.rectangles.lists.length - 1] = theme.line;
  shown.rectangles.paint(context, colors);
  paintLabels(shown, context, labels, colors);
  paintHeads(shown, context, height);
  paintRuler(shown, context, width);
}

function paintLabels(shown, context, labels, colors) {
  const { lanes, model } = shown,
    letter = theme.letter;
  for (let at = 0; at < labels.length; at += 4) {
    const row = lanes.rows[labels[at]],
      room = Math.floor((Math.min(labels[at + 3], shown.base.width - labels[at + 1]) - 6) / letter);
    if (room < 3) continue;
    const name = model.shortNames[model.name[row]],
      color = lanes.tint[labels[at]];
    context.fillStyle = color === shown.rectangles.lists.length - 1 ? theme.muted : theme.on(colors[color]);
    context.fillText(name.length > room ? `${name.slice(0, room - 1)}…` : name, labels[at + 1] + 4, labels[at + 2] + SLOT / 2);
  }
}

function paintHeads(shown, context, height) {
  for (const lane of shown.lanes.lanes) {
    const top = RULER + lane.y - shown.scroll;
    if (top > height || top < RULER - LANE_HEAD) continue;
    context.fillStyle = theme.ink;
    context.globalAlpha = 0.85;
    context.fillText(`${lane.open ? "▾" : "▸"} ${lane.name}`, 6, top + LANE_HEAD / 2);
    context.globalAlpha = 1;
  }
}

function paintRuler(shown, context, width) {
  context.fillStyle = theme.panel;
  context.fillRect(0, 0, width, RULER);
  context.fillStyle = theme.line;
  context.fillRect(0, RULER - 1, width, 1);
  const step = tickSize(shown.view.width, width / 110);
  context.textBaseline = "middle";
  for (let tick = Math.ceil(shown.view.from / step) * step; tick < shown.view.to; tick += step) {
    const x = Math.round(shown.xOf(tick));
    context.fillStyle = theme.line;
    context.fillRect(x, RULER - 7, 1, 6);
    context.fillStyle = theme.muted;
    if (x < width - 70) context.fillText(tickLabel(tick, step), x + 4, RULER - 9);
  }
}

function paintSteps(shown, context, width, height) {
  shown.model.steps.forEach((step, at) => {
    const x = Math.round(shown.xOf(step.start)),
      right = Math.round(shown.xOf(step.end));
    if (right < 0 || x > width) return;
    if (at % 2) {
      context.fillStyle = theme.band;
      context.fillRect(x, RULER, Math.max(1, right - x), height);
    }
    context.fillStyle = theme.mark;
    context.fillRect(x, RULER, 1, height);
  });
}

export function paintChosen(shown, context, width) {
  const { range, lanes } = shown;
  context.font = theme.font;
  if (range) {
    const x = shown.xOf(range[0]),
      wide = shown.xOf(range[1]) - x;
    context.fillStyle = theme.accent;
    context.globalAlpha = 0.16;
    context.fillRect(x, RULER, wide, shown.over.height);
    context.globalAlpha = 1;
    context.fillRect(x, RULER, 1, shown.over.height);
    context.fillRect(x + wide, RULER, 1, shown.over.height);
    context.textBaseline = "top";
    context.fillText(time(range[1] - range[0]), Math.max(2, Math.min(width - 80, x + 5)), RULER + 4);
  }
  context.save();
  context.beginPath();
  context.rect(0, RULER, width, shown.over.height);
  context.clip();
  for (const [row, wide] of [
    [shown.hovered, 1],
    [shown.selected, 2],
  ]) {
    if (row < 0 || lanes.laneOf[row] < 0) continue;
    const x = shown.xOf(shown.model.start[row]),
      right = shown.xOf(shown.model.end[row]);
    context.strokeStyle = theme.ink;
    context.lineWidth = wide;
    context.strokeRect(x - 0.5, RULER + lanes.yOf(row) - shown.scroll - 0.5, Math.max(2, right - x), SLOT);
  }
  paintArrows(shown, context);
  context.restore();
}

function paintArrows(shown, context) {
  const { model, view } = shown;
  context.strokeStyle = theme.accent;
  context.fillStyle = theme.accent;
  context.lineWidth = 1.25;
  if (shown.arrows) {
    let drawn = 0;
    for (const [from, to] of [
      [model.forward, model.backward],
      [model.launch, model.launched],
    ]) {
      for (let at = 0; at < from.length && drawn < MOST_ARROWS; at++) {
        if (
          from[at] < 0 ||
          ((model.start[from[at]] < view.from || model.start[from[at]] > view.to) &&
            (model.start[to[at]] < view.from || model.start[to[at]] > view.to))
        )
          continue;
        paintArrow(shown, context, from[at], to[at], 0.4);
        drawn++;
      }
    }
  }
  if (shown.selected < 0) return;
  for (const [to] of model.flows.out.get(shown.selected) || []) paintArrow(shown, context, shown.selected, to, 1);
  const into = model.flows.into.get(shown.selected);
  if (into) paintArrow(shown, context, into[0], shown.selected, 1);
}

function paintArrow(shown, context, from, to, alpha) {
  const { model, lanes } = shown,
    middle = RULER - shown.scroll + SLOT / 2;
  // A launch may lie anywhere in what is known to have launched.
  const x0 = shown.xOf(Math.min(model.end[from], model.start[to])),
    y0 = lanes.yOf(from) + middle,
    x1 = shown.xOf(model.start[to]),
    y1 = lanes.yOf(to) + middle,
    bend = Math.max(24, Math.abs(x1 - x0) * 0.3);
  context.globalAlpha = alpha;
  context.beginPath();
  context.moveTo(x0, y0);
  context.bezierCurveTo(x0 + bend, y0, x1 - bend, y1, x1 - 4, y1);
  context.stroke();
  context.beginPath();
  context.moveTo(x1, y1);
  context.lineTo(x1 - 6, y1 - 4);
  context.lineTo(x1 - 6, y1 + 4);
  context.fill();
  context.globalAlpha = 1;
}
