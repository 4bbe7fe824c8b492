// The first page: how long, what for, on what, and how it was recorded.

import { card, el, emptyState, heading, meter, swatch } from "../widgets/dom.js";
import { bytes, count, flops, percent, plural, time, words } from "../widgets/format.js";
import { grouped } from "../model/groups.js";
import { memoryDevices, memoryUse } from "../model/memory_use.js";
import { PHASE, PHASES, theme } from "../widgets/palette.js";
import { stepChart } from "../charts/step_chart.js";

function loaderWait(model) {
  let total = 0,
    calls = 0;
  for (let row = 0; row < model.size; row++) {
    if (model.phase[row] !== PHASE.LOADER || (model.parent[row] >= 0 && model.phase[model.parent[row]] === PHASE.LOADER))
      continue;
    total += model.duration[row];
    calls++;
  }
  return { total, calls };
}

function cards(model) {
  const { about, steps } = model,
    lengths = steps.map((step) => step.end - step.start).sort((a, b) => a - b);
  const loader = loaderWait(model),
    found = [
      card(
        "Recorded",
        time(model.span),
        `${count(model.size)} events on ${plural(model.lanesInfo.filter((lane) => !lane.device).length, "thread")}`,
        "card-span",
      ),
      card("Time in events", time(model.hostSelf), "sum of self times on the host", "card-self"),
    ];
  if (lengths.length)
    found.push(
      card(
        plural(lengths.length, "step"),
        time(lengths[lengths.length >> 1]),
        lengths.length > 1 && `median; from ${time(lengths[0])} to ${time(lengths[lengths.length - 1])}`,
        "card-steps",
      ),
    );
  const devices = new Map(model.lanesInfo.filter((lane) => lane.device).map((lane) => [`${lane.device}:${lane.index}`, lane]));
  for (const lane of devices.values()) {
    const busy = model.deviceBusy(lane.device, lane.index);
    found.push(card(model.deviceName(lane.device, lane.index), percent(busy, model.span), `busy ${time(busy)}`, "card-device"));
  }
  found.push(
    loader.calls
      ? card(
          "Waiting for data",
          time(loader.total),
          `${percent(loader.total, model.span)} of the time, ${count(loader.calls)} batches`,
          "card-loader",
        )
      : null,
  );
  if (model.hasMemory) {
    for (const { key, device, name } of memoryDevices(model)) {
      const use = memoryUse(model, key),
        allocated = use.rows.reduce((sum, at) => sum + Math.max(0, model.mem_bytes[at]), 0),
        earlier = use.earlier(use.peak);
      found.push(
        card(
          device ? `Peak memory, ${name}` : "Peak memory",
          bytes(use.total(use.peak)),
          `${earlier ? `with ${bytes(earlier)} from before; ` : ""}${bytes(allocated)} allocated in all`,
          "card-memory",
        ),
      );
    }
  }
  if (model.hasFlops) {
    let sum = 0;
    for (const value of model.flops) sum += value;
    found.push(card("FLOPs", flops(sum), `${flops(sum / (model.span / 1e9))}FLOP/s over the whole recording`, "card-flops"));
  }
  if (about.first_uses?.ops)
    found.push(
      card(
        "First use of ops",
        time(about.first_uses.total_ns),
        `${plural(about.first_uses.ops, "op")} set up, once in a process; in no other row's self time`,
        "card-first-use",
      ),
    );
  if (about.gc.pauses)
    found.push(
      card(
        "Garbage collector",
        time(about.gc.total_ns),
        `${count(about.gc.pauses)} pauses, ${percent(about.gc.total_ns, model.span)} of the time`,
        "card-gc",
      ),
    );
  if (about.overhead) {
    const { per_event_ns: each, total_ns: all, low_ns: low, high_ns: high, share } = about.overhead;
    found.push(
      card(
        "Cost of profiling",
        all != null ? time(all) : "–",
        `${low != null && high != null ? `${time(low)} to ${time(high)}; ` : ""}${each != null ? `${time(each)} an event` : ""}${share != null ? `, ${(share * 100).toFixed(1)} % of the time` : ""}${share > 0.5 ? "; the program took more than twice as long as without" : ""}`,
        "card-overhead",
      ),
    );
  }
  return el("div", { class: "cards" }, found);
}

// Equal rows: a color, a name, a bar and a figure.
function bars(entries, whole) {
  const most = Math.max(...entries.map((entry) => entry.value), 1);
  return el(
    "ul",
    { class: "bars" },
    entries.map((entry) =>
      el(
        "li",
        { "data-value": entry.value },
        el(
          "span",
          { class: "bar-name" },
          entry.color && swatch(entry.color),
          entry.onclick
            ? el("button", { type: "button", class: "link mono", title: entry.name, onclick: entry.onclick }, entry.name)
            : entry.name,
        ),
        meter(entry.value / most, entry.color),
        el("span", { class: "bar-value", text: time(entry.value) }),
        el("span", { class: "bar-share", text: percent(entry.value, whole) }),
      ),
    ),
  );
}

function facts(entries) {
  return el(
    "dl",
    { class: "facts" },
    Object.entries(entries)
      .filter(([, value]) => value !== "")
      .map(([name, value]) => [
        el("dt", { text: name }),
        el("dd", { text: value === true ? "yes" : typeof value === "object" ? JSON.stringify(value) : String(value) }),
      ]),
  );
}

export const overview = {
  id: "overview",
  title: "Overview",
  build(model, root, app) {
    const { about, phases } = model;
    if (!model.size) {
      root.append(
        heading("Overview"),
        emptyState("Nothing was recorded", "The profile holds no events: run something inside of `with profile() as prof:`."),
      );
      return;
    }
    const host = phases.all.slice(0, PHASE.DEVICE),
      whole = host.reduce((a, b) => a + b, 0);
    const kinds = PHASES.map(([name], at) => ({ name, value: phases.all[at], color: theme.phases[at] })).filter(
      (entry) => entry.value > 0,
    );
    const top = grouped(model, "name")
      .groups.filter((group) => !group.device)
      .sort((a, b) => b.self - a.self)
      .slice(0, 8);
    const lanes = model.lanesInfo.slice(0, 12);
    root.append(
      heading("Overview", [about.recorded && `Recorded ${about.recorded}`].filter(Boolean).join(" · ")),
      cards(model),
      el(
        "div",
        { class: "columns" },
        el(
          "div",
          { class: "pile" },
          el("section", { class: "panel", id: "steps-panel" }, el("h3", { text: "Steps" }), stepChart(model, app)),
          el(
            "section",
            { class: "panel", id: "top-panel" },
            el("h3", { text: "Most self time" }),
            bars(
              top.map((group) => ({
                name: group.name,
                value: group.self,
                color: theme.families[group.family],
                onclick: () => app.showOperator(group.name),
              })),
              model.hostSelf,
            ),
          ),
          Object.keys(about.metadata).length > 0 &&
            el("section", { class: "panel" }, el("h3", { text: "Metadata" }), facts(about.metadata)),
        ),
        el(
          "div",
          { class: "pile" },
          el("section", { class: "panel", id: "kinds-panel" }, el("h3", { text: "Time by kind" }), bars(kinds, whole)),
          el(
            "section",
            { class: "panel", id: "lanes-panel" },
            el("h3", { text: "Threads and devices" }),
            bars(
              lanes.map((lane) => ({
                name: model.laneName(lane),
                value: lane.busy,
                color: lane.device ? theme.phases[PHASE.DEVICE] : undefined,
              })),
              model.span,
            ),
            el("p", { class: "note", text: "Share of the recorded time in which each was busy." }),
          ),
          el(
            "section",
            { class: "panel halves" },
            el(
              "div",
              {},
              el("h3", { text: "Options" }),
              facts(Object.fromEntries(Object.entries(about.options).map(([key, value]) => [words(key), value]))),
            ),
            el("div", {}, el("h3", { text: "Recording" }), facts(about.recording)),
          ),
        ),
      ),
    );
    root.append(el("p", { class: "note colophon", text: `Report written with ${about.environment}.` }));
  },
};
