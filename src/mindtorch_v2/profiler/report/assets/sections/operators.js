// The operator table: what key_averages() says, to sort, filter, regroup and open.

import { append, breakable, choice, el, heading, matcher, meter, searchBox, swatch } from "../widgets/dom.js";
import { bytes, count, flops, percent, shapes, time } from "../widgets/format.js";
import { grouped, GROUPINGS } from "../model/groups.js";
import { stackList } from "./details.js";
import { theme } from "../widgets/palette.js";
import { Table } from "../widgets/tables.js";

const MEMORY_HINT = "Allocated minus freed";

const SHOWN = [
  ["all", "Everything"],
  ["ops", "Ops"],
  ["backward", "Backward nodes"],
  ["ranges", "Ranges and steps"],
  ["python", "Python"],
  ["device", "Device"],
];

function belongs(model, group, shown) {
  const K = model.KIND,
    kind = group.kind;
  switch (shown) {
    case "ops":
      return kind === K.OP;
    case "backward":
      return kind === K.BACKWARD || kind === K.ENGINE;
    case "ranges":
      return kind === K.SCOPE || kind === K.STEP;
    case "python":
      return kind === K.PYTHON || kind === K.MODULE;
    case "device":
      return group.device !== 0 || kind === K.RUNTIME;
    default:
      return true;
  }
}

// `most` is the self time of the first among the groups: its bar is full.
function columnsFor(model, by, most) {
  const number = (key, title, value, format, hint) => ({
    key,
    title,
    hint,
    number: true,
    value,
    cell: (group) => format(value(group)),
  });
  const share = (key, title, value, whole, most, hint) => ({
    key,
    title,
    hint,
    number: true,
    value,
    cell: (group) => [
      meter(most ? value(group) / most : 0),
      el("span", { class: "share", text: percent(value(group), whole) }),
    ],
  });
  const found = [
    {
      key: "name",
      title: "Name",
      value: (group) => group.name,
      cell: (group) =>
        el(
          "span",
          { class: "op-name" },
          swatch(theme.families[group.family]),
          el("span", { class: "mono" }, breakable(group.name)),
        ),
    },
  ];
  if (by === "shape")
    found.push({
      key: "shape",
      title: "Input shapes",
      wide: true,
      value: (group) => group.shape,
      cell: (group) => el("span", { class: "mono", title: shapes(group.shape), text: shapes(group.shape) }),
    });
  if (by === "module")
    found.push({
      key: "module",
      title: "Module",
      wide: true,
      value: (group) => model.modules[group.module] || "",
      cell: (group) => el("span", { class: "mono", text: model.modules[group.module] || "–" }),
    });
  found.push(
    number("count", "Calls", (group) => group.count, count),
    share("self_share", "Self %", (group) => group.self, model.hostSelf, most, "Share of all self time on the host"),
    number("self", "Self", (group) => group.self, time, "Time outside of what it called"),
    model.self_cost &&
      number(
        "corrected",
        "Corrected",
        (group) => group.corrected,
        time,
        "Self time without what recording itself cost, estimated from the cost of an event",
      ),
    number("total", "Total", (group) => group.total, time, "Time with everything it called"),
    number("average", "Average", (group) => (group.count ? group.total / group.count : 0), time, "Total time by call"),
  );
  if (model.hasDevice)
    found.push(
      number("self_device", "Self device", (group) => group.deviceSelf, time, "Time on a device of what it launched itself"),
      number("device", "Device", (group) => group.deviceTime, time, "Time on a device, with everything it called"),
    );
  if (model.hasDeviceMemory) {
    const [title, alone] = model.hasHostMemory ? ["Device memory", "Self device memory"] : ["Memory", "Self memory"];
    found.push(
      number("device_memory", title, (group) => group.totalDeviceBytes, bytes, `${MEMORY_HINT} on a device, with everything it called`),
      number("self_device_memory", alone, (group) => group.selfDeviceBytes, bytes, `${MEMORY_HINT} on a device, outside of what it called`),
    );
  }
  if (model.hasHostMemory) {
    found.push(
      number("memory", "Memory", (group) => group.totalBytes, bytes, `${MEMORY_HINT}, with everything it called`),
      number("self_memory", "Self memory", (group) => group.selfBytes, bytes, `${MEMORY_HINT}, outside of what it called`),
    );
  }
  if (model.hasFlops) found.push(number("flops", "FLOPs", (group) => group.flops, flops));
  if (model.hasStacks) {
    const line = (group) =>
      group.stack >= 0 && model.stacks[group.stack].length ? model.frame(model.stacks[group.stack][0]) : "";
    found.push({
      key: "source",
      title: "Source",
      wide: true,
      value: line,
      cell: (group) => el("span", { class: "mono", title: line(group), text: line(group).replace(/^.*\//, "") }),
    });
  }
  return found.filter(Boolean);
}

function histogram(values) {
  const bins = new Array(24).fill(0),
    low = Math.log(Math.max(values[0], 1)),
    high = Math.log(Math.max(values[values.length - 1], 2)),
    width = high - low || 1;
  for (const value of values) bins[Math.min(23, Math.floor(((Math.log(Math.max(value, 1)) - low) / width) * 24))]++;
  const most = Math.max(...bins);
  return el(
    "div",
    {
      class: "histogram",
      role: "img",
      "aria-label": `Durations from ${time(values[0])} to ${time(values[values.length - 1])}`,
    },
    bins.map((amount) => {
      const bar = el("span");
      bar.style.height = `${amount ? Math.max(3, (amount / most) * 100) : 0}%`;
      return bar;
    }),
  );
}

function groupDetails(model, found, group, app) {
  const durations = [],
    stacks = new Map(),
    shapesSeen = new Map();
  let longest = group.row;
  for (let row = 0; row < model.size; row++) {
    if (found.group[row] !== group.number) continue;
    durations.push(model.duration[row]);
    if (model.duration[row] > model.duration[longest]) longest = row;
    const amount = model.device_type[row] ? model.duration[row] : model.self[row];
    if (model.stack[row] >= 0) stacks.set(model.stack[row], (stacks.get(model.stack[row]) || 0) + amount);
    if (model.shapes[row] >= 0) shapesSeen.set(model.shapeText(row), (shapesSeen.get(model.shapeText(row)) || 0) + amount);
  }
  durations.sort((a, b) => a - b);
  const quantile = (part) => time(durations[Math.min(durations.length - 1, Math.floor(durations.length * part))]);
  const ranked = (map) => [...map].sort((a, b) => b[1] - a[1]).slice(0, 4);
  return el(
    "div",
    { class: "group-details" },
    el(
      "div",
      {},
      el("h4", { text: "Durations" }),
      histogram(durations),
      el("p", {
        class: "note",
        text: `least ${quantile(0)} · median ${quantile(0.5)} · 95 % ${quantile(0.95)} · most ${quantile(1)}`,
      }),
      el(
        "p",
        { class: "actions" },
        el("button", { type: "button", onclick: () => app.showEvent(longest) }, "Longest call in the timeline"),
        el("button", { type: "button", onclick: () => app.searchTimeline(group.name) }, "Find all there"),
      ),
    ),
    shapesSeen.size > 0 &&
      el(
        "div",
        {},
        el("h4", { text: "Input shapes by self time" }),
        el(
          "ul",
          { class: "plain mono" },
          ranked(shapesSeen).map(([shape, amount]) => el("li", {}, `${time(amount)}  ${shapes(shape) || "none"}`)),
        ),
      ),
    stacks.size > 0 &&
      el(
        "div",
        {},
        el("h4", { text: "Called from, by self time" }),
        ranked(stacks)
          .slice(0, 2)
          .map(([stack, amount]) => [el("p", { class: "note", text: time(amount) }), stackList(model, model.stacks[stack])]),
      ),
  );
}

export const operators = {
  id: "operators",
  title: "Operators",
  build(model, root, app) {
    const chosen = app.choicesOf(this);
    let by = chosen.get("by") || "name",
      shown = chosen.get("show") || "all",
      filter = chosen.get("q") || "",
      found = grouped(model, by);
    if (!GROUPINGS.some(([key]) => key === by)) by = "name";
    const largest = () => found.groups.reduce((most, group) => Math.max(most, group.self), 0);
    const summary = el("p", { class: "note", role: "status" });
    const table = new Table({
      columns: columnsFor(model, by, largest()),
      caption: "Operators",
      sort: "self",
      details: (group) => groupDetails(model, found, group, app),
    });
    const search = searchBox("Filter by name, shape, module or line", (text) => {
      filter = text;
      render();
    });
    const usable = GROUPINGS.filter(
      ([key]) => key === "name" || (key === "shape" ? model.hasShapes : key === "module" ? model.hasModules : model.hasStacks),
    );
    const render = () => {
      const matches = matcher(filter);
      const text = (group) => [
        group.name,
        group.shape,
        model.modules[group.module] || "",
        group.stack >= 0
          ? model.stacks[group.stack]
              .slice(0, 1)
              .map((frame) => model.frame(frame))
              .join("")
          : "",
      ];
      const items = found.groups.filter((group) => belongs(model, group, shown) && (!matches || text(group).some(matches)));
      const self = items.reduce((sum, group) => sum + group.self, 0),
        calls = items.reduce((sum, group) => sum + group.count, 0);
      const share = percent(self, model.hostSelf);
      summary.textContent = `${count(items.length)} rows, ${count(calls)} calls, ${time(self)} of self time (${share})`;
      table.update(items);
      app.keep(this, { by: by === "name" ? "" : by, show: shown === "all" ? "" : shown, q: filter });
    };
    const showChoice = choice("Show", SHOWN, shown, (value) => {
      shown = value;
      render();
    });
    const missing = [
      !model.hasShapes && "record_shapes=True",
      !model.hasStacks && "with_stack=True",
      !model.hasModules && "with_modules=True",
      !model.hasMemory && "profile_memory=True",
      !model.hasFlops && "with_flops=True",
    ].filter(Boolean);
    append(root, [
      heading(
        "Operators",
        "Events of one name summed up, as key_averages() does. Open a row for its durations, shapes and callers." +
          (model.self_cost ? " Corrected is self time without what recording cost, as far as that is known." : ""),
      ),
      el(
        "div",
        { class: "toolbar" },
        search,
        choice("Group by", usable, by, (value) => {
          by = value;
          found = grouped(model, by);
          table.setColumns(columnsFor(model, by, largest()));
          render();
        }),
        showChoice,
      ),
      missing.length > 0 && el("p", { class: "note", text: `Not recorded here; pass ${missing.join(", ")} to see more.` }),
      summary,
      table.element,
    ]);
    app.redraws.push(() => table.render());
    search.value = filter;
    render();
    this.table = table;
    this.filter = (name) => {
      search.value = filter = name;
      showChoice.querySelector("select").value = shown = "all";
      render();
      const row = [...table.body.rows].find((one) => one.querySelector(".op-name .mono")?.textContent === name);
      if (row) row.focus();
    };
    this.search = search;
  },
};
