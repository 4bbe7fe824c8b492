// The panel with all fields of one event.

import { el, swatch } from "../widgets/dom.js";
import { bytes, count, flops, shapes, time, words } from "../widgets/format.js";
import { PHASES, theme } from "../widgets/palette.js";

function fact(name, ...value) {
  return [el("dt", { text: name }), el("dd", {}, ...value)];
}

export function stackList(model, stack) {
  return el(
    "ol",
    { class: "stack" },
    stack.map((frame) => el("li", { text: model.frame(frame) })),
  );
}

// app.show(row) jumps to another event.
export function eventDetails(model, row, app) {
  const lane = { tid: model.tid[row], device: model.device_type[row], index: model.device_index[row] };
  const jump = (target) =>
    el("button", { type: "button", class: "link mono", onclick: () => app.show(target) }, model.text(target));
  const facts = [
    fact("Duration", time(model.duration[row])),
    fact("Self", time(model.self[row])),
    model.backward_wait?.[row] > 0 && fact("Waited", `${time(model.backward_wait[row])} for its backward pass, on another thread`),
    model.self_cost?.[row] > 0 && fact("Corrected", `${time(model.self[row] - model.self_cost[row])} without recording it`),
    fact("Start", time(model.start[row])),
    fact("Where", model.laneName(lane)),
    fact("Kind", `${words(model.kindNames[model.kind[row]])} · ${PHASES[model.phase[row]][0].toLowerCase()}`),
  ];
  const steps = model.steps.filter((step) => step.start <= model.start[row] && model.start[row] < step.end);
  if (steps.length && model.kind[row] !== model.KIND.STEP) facts.push(fact("Step", steps[0].name));
  if (model.shapes[row] >= 0) {
    const [shape, types, values] = model.inputs[model.shapes[row]];
    if (shapes(model.shapeTexts[shape])) facts.push(fact("Inputs", shapes(model.shapeTexts[shape])));
    const kinds = model.typeTexts[types].split(", ");
    if (kinds.some(Boolean)) facts.push(fact("Types", kinds.map((kind) => kind || "·").join(", ")));
    if (values) facts.push(fact("Values", values));
  }
  const module = model.moduleOf(row);
  if (module >= 0) facts.push(fact("Module", el("span", { class: "mono", text: model.modules[module] })));
  if (model.flops[row])
    facts.push(fact("FLOPs", `${count(model.flops[row])} (${flops(model.flops[row] / (model.duration[row] / 1e9))}FLOP/s)`));
  if (model.hasMemory) {
    const { self, total, deviceSelf, deviceTotal } = model.memory;
    facts.push(fact("Memory", `${bytes(total[row] + deviceTotal[row])}, self ${bytes(self[row] + deviceSelf[row])}`));
  }
  if (model.sequence[row] >= 0) facts.push(fact("Sequence", count(model.sequence[row])));
  if (model.parent[row] >= 0) facts.push(fact("Called by", jump(model.parent[row])));
  const from = model.flows.into.get(row);
  if (from) facts.push(fact(from[1] === "launch" ? "Launched by" : "Backward of", jump(from[0])));
  const out = model.flows.out.get(row) || [];
  out.slice(0, 3).forEach(([target, kind]) => facts.push(fact(kind === "launch" ? "Launched" : "Backward", jump(target))));
  const stack = model.stackOf(row);
  return el(
    "div",
    { class: "details" },
    el("h3", { class: "mono" }, swatch(theme.families[model.family[row]]), model.text(row)),
    el("dl", { class: "facts" }, facts),
    stack.length > 0 && el("div", {}, el("h4", { text: "Called from" }), stackList(model, stack)),
  );
}

export function eventTip(model, row) {
  const lines = [
    el("strong", { class: "mono", text: model.text(row) }),
    el("span", { text: `${time(model.duration[row])} · self ${time(model.self[row])} · at ${time(model.start[row])}` }),
  ];
  const shape = shapes(model.shapeText(row));
  if (shape) lines.push(el("span", { text: shape }));
  const module = model.moduleOf(row);
  if (module >= 0) lines.push(el("span", { class: "mono", text: model.modules[module] }));
  return lines;
}
