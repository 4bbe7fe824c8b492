// What devices did: how busy they were, each step by what it waited for, kernels with launch geometry, copies, launches.

import { append, breakable, card, choice, el, heading, legend, matcher, meter, paintIn, searchBox } from "../widgets/dom.js";
import { bytes, count, percent, time } from "../widgets/format.js";
import { CATEGORY_COLOURS, categoryColor } from "../widgets/palette.js";
import { Table } from "../widgets/tables.js";

// Parts of a step: field, name, and what it means. From "Waiting" on the device is idle. Any two may touch in a bar: the eight
// colors of memory's categories are told apart pairwise.
const STEP_PARTS = [
  [["kernel_ns"], "Kernels", "The device computes"],
  [["communication_ns"], "Communication", "Collectives, while nothing is computed"],
  [["copy_ns", "fill_ns"], "Copies and fills", "And nothing else runs on the device"],
  [["waiting_ns"], "Waiting", "The device is idle, and the host waits for it"],
  [["launching_ns"], "Launching", "The device is idle, and the host launches"],
  [["loader_ns"], "Data loader", "The device is idle, and the host loads data"],
  [["cpu_ns"], "CPU ops", "The device is idle, and the host runs ops"],
  [["idle_ns"], "Neither", "The device is idle, and the host runs no op: Python between ops"],
].map(([fields, name, hint], at) => ({ fields, name, hint, category: Object.keys(CATEGORY_COLOURS)[at] }));

const LIMIT_TEXTS = {
  device: "The device is the limit: only less or faster work on it makes it quicker",
  host: "The host is the limit: the device waits for launches",
  communication: "Communication is the limit, which nothing is computed beside",
  neither: "Neither the host nor the device is the limit",
};

const partTime = (step, part) => part.fields.reduce((sum, field) => sum + step[field], 0);

const geometry = (values) => (values ? values.join("\u00a0×\u00a0") : "–");

const orDash = (value, format) => (value === null || value === undefined ? "–" : format(value));

function figureColumn(key, title, format, hint) {
  const value = (item) => item[key] ?? -1;
  return { key, title, hint, number: true, value, cell: (item) => orDash(item[key], format) };
}

const nameColumn = (key, title) => ({
  key,
  title,
  value: (item) => item[key] ?? "",
  cell: (item) => el("span", { class: "mono" }, breakable(item[key] ?? "–")),
});

const shareColumn = (whole) => ({
  key: "total_ns",
  title: "Time",
  number: true,
  value: (item) => item.total_ns,
  cell: (item) => [meter(item.total_ns / whole), el("span", { class: "share", text: time(item.total_ns) })],
});

function deviceSummary(device, limit) {
  const told = [
    [device.occupancy, "Occupancy", (value) => `${value.toFixed(1)} %`, "of the kernels' time, as the trace estimates it"],
    [device.sm_efficiency, "Multiprocessors in use", (value) => percent(value, 1), "of the kernels' time"],
    [device.tensor_core_share, "Tensor cores", (value) => percent(value, 1), "of the kernels' time in kernels named as using them"],
  ].filter(([value]) => value !== null);
  return [
    el("h3", { text: device.name ? `${device.device}: ${device.name}` : device.device }),
    limit && el("p", { class: "note limit", text: `${LIMIT_TEXTS[limit.limit]}.` }),
    el(
      "div",
      { class: "cards" },
      card("Busy", percent(device.utilization, 1), `${time(device.busy_ns)} of ${time(device.span_ns)}, on ${count(device.streams)} ${device.streams === 1 ? "stream" : "streams"}`),
      card("Kernels", time(device.kernel_ns), `${count(device.kernels)} calls`),
      card("Copies and fills", time(device.copy_ns)),
      device.communication_ns > 0 &&
        card("Communication", time(device.communication_ns), `${time(device.exposed_communication_ns)} of it while nothing was computed`),
      told.map(([value, title, format, note]) => card(title, format(value), note)),
      !told.length && !device.device.startsWith("npu") && card("Occupancy", "–", "not told by the recording"),
    ),
  ];
}

function partsBar(step) {
  const parts = STEP_PARTS.filter((part) => partTime(step, part) > 0).map((part) => {
    const piece = el("span", { title: `${part.name}: ${time(partTime(step, part))}` });
    piece.style.width = `${(100 * partTime(step, part)) / step.duration_ns}%`;
    paintIn(piece, categoryColor(part.category));
    return piece;
  });
  return el("span", { class: "parts-bar", "aria-hidden": "true" }, parts);
}

function stepTable(steps) {
  const used = STEP_PARTS.filter((part) => steps.some((step) => partTime(step, part) > 0));
  const table = new Table({
    caption: "Steps by what they spent their time on",
    sort: "duration_ns",
    page: 20,
    columns: [
      { key: "step", title: "Step", value: (step) => step.step, cell: (step) => String(step.step) },
      figureColumn("duration_ns", "Time", time),
      { key: "parts", title: "Parts", value: (step) => step.duration_ns, cell: partsBar },
      ...used.map((part) => ({
        key: part.fields[0],
        title: part.name,
        hint: part.hint,
        number: true,
        value: (step) => partTime(step, part),
        cell: (step) => percent(partTime(step, part), step.duration_ns),
      })),
    ],
  });
  table.update(steps);
  return [legend(used.map((part) => [part.name, categoryColor(part.category)])), table.element];
}

// Facts that only some recordings tell of kernels: their columns are shown where one has a value.
const KERNEL_FACTS = [
  { key: "grid", title: "Grid", value: (item) => geometry(item.grid), cell: (item) => geometry(item.grid) },
  { key: "block", title: "Block", value: (item) => geometry(item.block), cell: (item) => geometry(item.block) },
  figureColumn("occupancy", "Occupancy", (value) => `${value.toFixed(0)} %`, "As the trace estimates it"),
  figureColumn("blocks_per_sm", "Blocks per SM", (value) => value.toPrecision(2)),
  figureColumn("registers", "Registers", count, "Of a thread"),
  figureColumn("shared_memory", "Shared memory", bytes, "Of a block"),
  { key: "core", title: "Core", value: (item) => item.core ?? "", cell: (item) => item.core ?? "–" },
  figureColumn("blocks", "Blocks", (value) => value.toFixed(0), "Cores that ran it at once"),
];

function kernelColumns(whole, kernels) {
  return [
    nameColumn("name", "Kernel"),
    shareColumn(whole),
    figureColumn("calls", "Calls", count),
    { key: "mean", title: "Mean", number: true, value: (item) => item.total_ns / item.calls, cell: (item) => time(item.total_ns / item.calls) },
    figureColumn("longest_ns", "Longest", time),
    ...KERNEL_FACTS.filter(({ key }) => kernels.some((group) => group[key] !== null)),
    nameColumn("op", "Launched by"),
  ];
}

function captionedTable(caption, columns, items, sort = "total_ns") {
  const table = new Table({ caption, columns, sort, page: 20 });
  table.update(items);
  return [el("h3", { text: caption }), table.element];
}

export const deviceSection = {
  id: "device",
  title: "Device",
  available: (model) => Boolean(model.devices),
  build(model, root, app) {
    const { devices, limits, steps, overlap, kernels, copies, launches, idle } = model.devices;
    const chosen = app.choicesOf(this),
      names = devices.map((device) => device.device),
      most = (items) => Math.max(...items.map((item) => item.total_ns), 1);
    let which = names.includes(chosen.get("on")) ? chosen.get("on") : "",
      query = chosen.get("q") || "";
    const table = new Table({ columns: kernelColumns(most(kernels), kernels), caption: "Kernels", sort: "total_ns", page: 30 });
    const show = () => {
      const test = matcher(query);
      table.update(kernels.filter((group) => (!which || group.device === which) && (!test || test(group.name) || test(group.op ?? ""))));
      app.keep(this, { on: which, q: query });
    };
    this.search = searchBox("Filter kernels by name or op", (text) => {
      query = text;
      show();
    });
    this.search.value = query;
    append(root, [
      heading("Device", "How busy each device was, what it waited for, and what ran on it."),
      devices.map((device, at) => deviceSummary(device, limits[at])),
      steps.length > 0 && [el("h3", { text: "Steps by what they spent their time on" }), stepTable(steps)],
      overlap.length > 0 &&
        captionedTable(
          "Computing and communication by step",
          [
            { key: "step", title: "Step", value: (step) => step.step, cell: (step) => String(step.step) },
            figureColumn("duration_ns", "Time", time, "Of the last step until its work was done"),
            figureColumn("computing_ns", "Computing", time),
            figureColumn("communication_ns", "Communication", time),
            figureColumn("not_overlapped_ns", "Not overlapped", time, "Communication while nothing was computed"),
            figureColumn("free_ns", "Free", time, "Neither computing nor communication"),
            figureColumn("copying_ns", "Copying in it", time, "Copies and fills in the free time"),
            { key: "device", title: "Device", value: (step) => step.device },
          ],
          overlap,
          "duration_ns",
        ),
      el("h3", { text: "Kernels" }),
      el(
        "div",
        { class: "toolbar" },
        this.search,
        names.length > 1 &&
          choice("Device", [["", "All"], ...names.map((name) => [name, name])], which, (value) => {
            which = value;
            show();
          }),
      ),
      table.element,
      model.devices.kernels_in_all > kernels.length &&
        el("p", { class: "note", text: `The ${count(kernels.length)} with the most time of ${count(model.devices.kernels_in_all)}.` }),
      copies.length > 0 &&
        captionedTable(
          "Copies and fills",
          [
            nameColumn("name", "Kind"),
            shareColumn(most(copies)),
            figureColumn("calls", "Calls", count),
            figureColumn("blocking", "Blocking", count, "The host waited until the copy was done"),
            figureColumn("bytes", "Bytes", bytes),
            figureColumn("gigabytes_per_second", "GB/s", (value) => value.toPrecision(3)),
            { key: "device", title: "Device", value: (group) => group.device },
          ],
          copies,
        ),
      idle.length > 0 &&
        captionedTable(
          "Idle, by what the host did meanwhile",
          [
            nameColumn("cause", "Host was in"),
            shareColumn(most(idle)),
            figureColumn("gaps", "Gaps", count),
            figureColumn("longest_ns", "Longest", time),
            nameColumn("then", "And then launched for"),
            { key: "device", title: "Device", value: (cause) => cause.device },
          ],
          idle,
        ),
      launches.length > 0 &&
        captionedTable(
          "Launches by stream",
          [
            { key: "stream", title: "Stream", value: (stats) => stats.stream, cell: (stats) => `${stats.device} ${stats.stream < 0 ? stats.lane : `stream ${stats.stream}`}` },
            figureColumn("launches", "Launches", count),
            figureColumn("median_delay_ns", "Median delay", time, "From the call that launched to the start on the device"),
            figureColumn("longest_delay_ns", "Longest delay", time),
            figureColumn("mean_queue", "Mean queue", (value) => value.toFixed(1), "Launched and not yet begun, averaged over time"),
            figureColumn("longest_queue", "Longest queue", count),
            figureColumn("starved_share", "Starved", (value) => percent(value, 1), "Part of the time in which nothing waited and nothing ran"),
          ],
          launches,
          "launches",
        ),
    ]);
    show();
  },
};
