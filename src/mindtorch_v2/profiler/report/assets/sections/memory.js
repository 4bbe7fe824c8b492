// The memory section: bytes in use over time, by category where that is known, and the ops that held them at a time.

import { breakable, choice, el, emptyState, heading, legend, meter, swatch } from "../widgets/dom.js";
import { bytes, count, percent, time, words } from "../widgets/format.js";
import { MemoryChart } from "../charts/memory_chart.js";
import { memoryDevices, memoryUse } from "../model/memory_use.js";
import { categoryColor, theme } from "../widgets/palette.js";
import { Table } from "../widgets/tables.js";

// Why a recording does not tell what memory was used for.
function whyUnknown(model, use) {
  const wanted = ["record_shapes", "profile_memory", "with_stack"],
    missing = wanted.filter((option) => !model.about.options[option]);
  if (use.device) return "What memory was used for is worked out for the CPU only.";
  if (missing.length)
    return `What it was used for is not known: that takes ${missing.map((option) => `${option}=True`).join(" and ")}.`;
  return "What it was used for is not known: a trace does not say so; the profile itself tells, with export_html() or save().";
}

export const memory = {
  id: "memory",
  title: "Memory",
  build(model, root, app) {
    const intro = "What was in use when, and who held it. Click the chart for another moment.";
    root.append(heading("Memory", model.hasMemory && intro));
    if (!model.hasMemory) {
      root.append(
        emptyState(
          "Memory was not recorded",
          "Pass profile_memory=True to profile(). With record_shapes=True and with_stack=True as well, " +
            "it is split into parameters, gradients, activations and the rest.",
        ),
      );
      return;
    }
    const devices = memoryDevices(model);
    const host = el("div", { class: "memory-host" }),
      keys = el("div"),
      about = el("p", { class: "note", role: "status" }),
      shares = el("ul", { class: "bars held" });
    let use, chart;
    const mono = (key) => (item) =>
      el("span", { class: "mono", title: item[key], text: item[key].replace(/^.*\//, "") || "–" });
    const columns = () =>
      [
        {
          key: "who",
          title: "Held by",
          value: (item) => item.name,
          cell: (item) =>
            el(
              "span",
              { class: "op-name" },
              swatch(use.known ? categoryColor(item.category) : theme.accent),
              el("span", { class: "mono" }, breakable(item.name)),
            ),
        },
        use.known && {
          key: "category",
          title: "Used for",
          value: (item) => item.category,
          cell: (item) => words(item.category),
        },
        { key: "bytes", title: "Bytes", number: true, value: (item) => item.bytes, cell: (item) => bytes(item.bytes) },
        {
          key: "share",
          title: "Share",
          number: true,
          value: (item) => item.bytes,
          cell: (item) => [meter(item.bytes / held), el("span", { class: "share", text: percent(item.bytes, held) })],
        },
        {
          key: "count",
          title: "Pieces",
          number: true,
          value: (item) => item.count,
          cell: (item) => (item.count ? count(item.count) : "–"),
        },
        model.hasModules && { key: "module", title: "Module", wide: true, value: (item) => item.module, cell: mono("module") },
        model.hasStacks && { key: "line", title: "Source", wide: true, value: (item) => item.line, cell: mono("line") },
      ].filter(Boolean);
    let held = 1;
    const table = new Table({
      columns: [{ key: "bytes", title: "Bytes", number: true, value: () => 0 }],
      caption: "Who held memory",
      sort: "bytes",
      page: 50,
    });
    const pick = (place) => {
      const items = use.held(place);
      held = items.reduce((sum, item) => sum + item.bytes, 0) || 1;
      const when = place === use.peak ? "At the peak" : "At the chosen moment",
        total = use.total(place),
        earlier = use.earlier(place);
      const parts =
        earlier || use.beforeKnown
          ? `${bytes(earlier)} of it from before the recording and ${bytes(total - earlier)} allocated since.`
          : "all of it allocated since the recording began.";
      about.textContent =
        `${when}, ${time(use.time(place))}: ${bytes(total)} in use, ${parts}` +
        (use.beforeKnown ? "" : " What was there before and was not freed meanwhile is not known and not counted.");
      shares.replaceChildren(
        ...(use.known
          ? use.order.map((part) => [use.names[part], use.value(part, place)]).sort((a, b) => b[1] - a[1])
          : []
        ).map(([name, value]) =>
          el(
            "li",
            { "data-category": name, "data-value": value },
            el("span", { class: "bar-name" }, swatch(categoryColor(name)), words(name)),
            meter(value / (use.total(place) || 1), categoryColor(name)),
            el("span", { class: "bar-value", text: bytes(value) }),
            el("span", { class: "bar-share", text: percent(value, use.total(place)) }),
          ),
        ),
      );
      table.setColumns(columns());
      table.update(items);
    };
    const show = (key) => {
      use = memoryUse(model, key);
      keys.replaceChildren(
        ...(use.known
          ? [legend(use.order.map((part) => [words(use.names[part]), categoryColor(use.names[part])]))]
          : [el("p", { class: "note", text: whyUnknown(model, use) })]),
      );
      chart.show(use);
    };
    const first = devices[0].key;
    root.append(
      el(
        "div",
        { class: "toolbar" },
        devices.length > 1 &&
          choice(
            "Device",
            devices.map((device) => [device.key, device.name]),
            first,
            show,
          ),
        el("button", { type: "button", onclick: () => chart.pick(use.peak) }, "Go to the peak"),
      ),
      host,
      keys,
      el("h3", { text: "Who held it" }),
      about,
      shares,
      table.element,
    );
    chart = this.chart = new MemoryChart(host, model, pick);
    show(first);
    app.redraws.push(() => chart.drawing.soon());
  },
};
