// FLOPs beside bytes moved: what limits each op or module, and how near it comes to that limit.

import { append, breakable, choice, el, emptyState, heading, meter, replace } from "../widgets/dom.js";
import { bytes, count, flops, percent, time } from "../widgets/format.js";
import { rooflineChart } from "../charts/roofline_chart.js";
import { Table } from "../widgets/tables.js";

const POINTS_BY = { op: "Op", shape: "Op and shapes", module: "Module" };

// A point of the table as an object, with what follows from its figures.
function pointOf([name, calls, spent, work, moved], ceilings) {
  const intensity = moved ? work / moved : Infinity,
    speed = spent ? work / (spent / 1e9) : 0,
    stream = spent ? moved / (spent / 1e9) : 0,
    limit = !ceilings ? "" : intensity < ceilings.ridge ? "memory" : "compute",
    share = !ceilings ? 0 : limit === "memory" ? stream / ceilings.copy_bytes_s : speed / ceilings.float32_flops_s;
  const text = `${name}: ${time(spent)}, ${flops(speed)}FLOP/s, ${bytes(stream)}/s, ${intensity.toPrecision(3)} FLOPs per byte`;
  return { name, calls, time: spent, flops: work, bytes: moved, intensity, speed, stream, limit, share, text };
}

function pointColumns(ceilings, most) {
  const number = (key, title, value, format, hint) => ({
    key,
    title,
    hint,
    number: true,
    value,
    cell: (point) => format(value(point)),
  });
  return [
    { key: "name", title: "Name", value: (point) => point.name, cell: (point) => el("span", { class: "mono" }, breakable(point.name)) },
    number("calls", "Calls", (point) => point.calls, count),
    {
      key: "time",
      title: "Time",
      number: true,
      value: (point) => point.time,
      cell: (point) => [meter(point.time / most), el("span", { class: "share", text: time(point.time) })],
    },
    number("flops", "FLOPs", (point) => point.flops, flops),
    number("bytes", "Bytes moved", (point) => point.bytes, bytes, "Of inputs, of what is written, and of results"),
    number(
      "intensity",
      "FLOPs per byte",
      (point) => point.intensity,
      (value) => (Number.isFinite(value) ? value.toPrecision(3) : "–"),
    ),
    number("speed", "FLOP/s", (point) => point.speed, flops),
    number("stream", "Bytes/s", (point) => point.stream, bytes),
    ceilings && { key: "limit", title: "Limit", value: (point) => point.limit, cell: (point) => (point.limit === "memory" ? "Memory" : "Computing") },
    ceilings && number("share", "Of limit", (point) => point.share, (value) => percent(value, 1), "Over 100 % of memory: it was in a cache"),
  ].filter(Boolean);
}

export const rooflineSection = {
  id: "roofline",
  title: "Roofline",
  available: (model) => model.size > 0,
  build(model, root, app) {
    const { points, ceilings, results_counted: whole } = model.roofline,
      groupings = Object.keys(points);
    root.append(heading("Roofline", "Few FLOPs per byte moved, and memory is the limit; many, and computing is. The larger, the more time."));
    if (!groupings.length)
      return root.append(
        emptyState(
          "FLOPs and shapes were not recorded",
          "Pass with_flops=True, record_shapes=True and profile_memory=True to profile() to see what limits each op.",
        ),
      );
    const host = el("div", { class: "roofline-host" });
    const chosen = app.choicesOf(this).get("by");
    let by = groupings.includes(chosen) ? chosen : groupings[0];
    const table = new Table({ columns: pointColumns(ceilings, 1), caption: "Roofline", sort: "time", page: 60 });
    const show = () => {
      const found = points[by].map((values) => pointOf(values, ceilings));
      replace(
        host,
        rooflineChart(found, ceilings, (point) => {
          if (by === "op") app.showOperator(point.name);
        }),
      );
      table.setColumns(pointColumns(ceilings, Math.max(...found.map((point) => point.time), 1)));
      table.update(found);
      app.keep(this, { by: by === groupings[0] ? "" : by });
    };
    append(root, [
      el(
        "div",
        { class: "toolbar" },
        choice(
          "Group by",
          groupings.map((key) => [key, POINTS_BY[key]]),
          by,
          (value) => {
            by = value;
            show();
          },
        ),
        ceilings &&
          el(
            "ul",
            { class: "legend limits" },
            el("li", {}, el("span", { class: "limit-mark memory", "aria-hidden": "true" }), "Memory is the limit"),
            el("li", {}, el("span", { class: "limit-mark compute", "aria-hidden": "true" }), "Computing is the limit"),
          ),
      ),
      host,
      el("p", {
        class: "note",
        text: ceilings
          ? `Ceilings of ${ceilings.machine}, measured ${new Date(ceilings.measured * 1000).toISOString().slice(0, 10)} by mtprof ceilings.`
          : model.hasDevice
            ? "The ops ran on a device, whose ceilings are not known."
            : "The ceilings of this machine are not known: mtprof ceilings measures them.",
      }),
      !whole && el("p", { class: "note", text: "Memory was not recorded: bytes are those of inputs only, without results." }),
      table.element,
    ]);
    show();
  },
};
