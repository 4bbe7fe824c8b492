// Ranks, links, clocks and ops as tables to sort and search.

import { el, heading, matcher, meter, searchBox } from "../../report/assets/widgets/dom.js";
import { bytes, count, time } from "../../report/assets/widgets/format.js";
import { Table } from "../../report/assets/widgets/tables.js";
import { us } from "./model.js";
import { rankDetails } from "./rank_details.js";

const signed = (ratio) => `${ratio >= 1 ? "+" : ""}${((ratio - 1) * 100).toFixed(1)} %`;

function withSearch(section, table, items, text, label) {
  section.table = table;
  section.search = searchBox(label, (wanted) => {
    const fits = matcher(wanted);
    table.update(fits ? items.filter((item) => fits(text(item))) : [...items]);
  });
  table.update([...items]);
  return el("div", { class: "toolbar" }, section.search);
}

export const ranksTable = {
  id: "ranks",
  title: "Ranks",
  build(job, root) {
    const most = Math.max(...job.rows.map((row) => row.charged), 1);
    const columns = [
      { key: "rank", title: "Rank", value: (row) => row.rank, cell: (row) => el("span", {}, `rank ${row.rank} `, el("span", { class: "note", text: row.host })) },
      { key: "ratio", title: "Own time", number: true, value: (row) => row.ratio, cell: (row) => el("span", { class: row.ratio >= 1.025 ? "slower" : "" }, signed(row.ratio)), hint: "beside the median of ranks that communicate alike" },
      { key: "length", title: "A step", number: true, value: (row) => row.length, cell: (row) => us(row.length) },
      { key: "computing", title: "Computing", number: true, value: (row) => row.computing, cell: (row) => us(row.computing) },
      { key: "communication", title: "Communication", number: true, value: (row) => row.communication, cell: (row) => us(row.communication) },
      { key: "exposed", title: "Exposed", number: true, value: (row) => row.exposed, cell: (row) => us(row.exposed) },
      { key: "idle", title: "Idle", number: true, value: (row) => row.idle, cell: (row) => us(row.idle) },
      { key: "charged", title: "Others waited", number: true, value: (row) => row.charged, cell: (row) => [meter(row.charged / most), us(row.charged)], hint: "all other ranks together, in all steps" },
    ];
    if (job.hasMemory) columns.push({ key: "memory", title: "Memory", number: true, value: (row) => row.memory, cell: (row) => bytes(row.memory * 1024) });
    columns.push({ key: "link", title: "Report", value: (row) => (row.link ? 0 : 1), cell: (row) => (row.link ? el("a", { href: row.link, text: "open" }) : el("span", { class: "muted", text: "–" })) });
    const table = new Table({ columns, caption: "Ranks", sort: "ratio", page: 50, details: (row) => rankDetails(job, row.at) });
    root.append(
      heading("Ranks", "Means over the steps. Own time is what is not exposed communication; others waited is charged to the rank that came last, which may have waited for another one itself: see the critical paths."),
      withSearch(this, table, job.rows, (row) => `rank ${row.rank} ${row.host} ${row.source}`, "Search ranks and hosts"),
      table.element,
    );
  },
};

export const linksTable = {
  id: "links",
  title: "Links",
  available: (job) => job.about.groups.length > 0,
  build(job, root) {
    const most = Math.max(...job.about.groups.map((row) => row.ratio), 1);
    const columns = [
      { key: "name", title: "Link", value: (row) => row.name, cell: (row) => el("span", {}, row.kind === "message" ? `rank ${row.name}` : row.name, row.about && el("span", { class: "tag", text: row.about })) },
      { key: "kind", title: "Kind", value: (row) => row.kind },
      { key: "ratio", title: "Beside its like", number: true, value: (row) => row.ratio, cell: (row) => el("span", { class: row.like && row.ratio >= job.about.least_slow_link ? "slower" : "" }, meter(row.ratio / most), row.like ? `${row.ratio.toFixed(2)} ×` : "alone"), hint: "median transfer over that of links with the same kind, ranks and bytes" },
      { key: "us", title: "Transfer", number: true, value: (row) => row.us, cell: (row) => us(row.us), hint: "median of the time of the rank that came last" },
      { key: "bytes", title: "Bytes", number: true, value: (row) => row.bytes, cell: (row) => (row.bytes ? bytes(row.bytes) : "–") },
      { key: "speed", title: "Per second", number: true, value: (row) => row.bytes / row.us, cell: (row) => (row.bytes ? `${bytes((row.bytes / row.us) * 1e6)}/s` : "–") },
      { key: "ranks", title: "Ranks", number: true, value: (row) => row.ranks },
      { key: "count", title: "Times", number: true, value: (row) => row.count, cell: (row) => count(row.count) },
    ];
    const table = new Table({ columns, caption: "Links", sort: "ratio", page: 50 });
    root.append(
      heading("Links", "Pairs of ranks and groups. The rank that comes last does not wait: its time is the transfer itself."),
      withSearch(this, table, job.about.groups, (row) => `${row.name} ${row.kind} ${row.about}`, "Search links"),
      table.element,
    );
  },
};

export const clocksTable = {
  id: "clocks",
  title: "Clocks",
  available: (job) => job.answers.clocks.clocks_in_all > 1,
  build(job, root) {
    const { clocks } = job.answers;
    const seen = new Map();
    for (const row of job.rows) {
      const key = `${row.host}\0${row.offset}\0${row.part}`;
      if (seen.has(key)) seen.get(key).ranks.push(row.rank);
      else seen.set(key, { ...row, ranks: [row.rank] });
    }
    const columns = [
      { key: "host", title: "Clock", value: (row) => row.host || `rank ${row.rank}` },
      { key: "offset", title: "Offset", number: true, value: (row) => row.offset, cell: (row) => time(row.offset) },
      { key: "rate", title: "Rate", number: true, value: (row) => row.rate, cell: (row) => `${row.rate.toFixed(2)} ppm` },
      { key: "error", title: "Within", number: true, value: (row) => row.error, cell: (row) => (row.error ? `± ${time(row.error)}` : "reference") },
      { key: "ranks", title: "Ranks", number: true, value: (row) => row.ranks.length, cell: (row) => (row.ranks.length > 1 ? `${row.ranks[0]} to ${row.ranks.at(-1)}` : row.ranks[0]) },
      { key: "part", title: "Part", number: true, value: (row) => row.part },
    ];
    const table = new Table({ columns, caption: "Clocks", sort: "offset", page: 50 });
    const text = `Solved from ${count(clocks.collectives)} collectives, whose ends are ${time(clocks.jitter_ns)} apart; the error is to cover 95 of 100 clocks. ${clocks.connected ? "All are on one clock." : `No collective connects the ${clocks.parts} parts: times of different parts cannot be compared.`}`;
    root.append(
      heading("Clocks", text),
      el("div", {}, clocks.contradictions.map((one) => el("p", { class: "warning", text: `Rank ${one.rank} contradicts the other ranks of ${one.host} by ${time(one.by_ns)}.` }))),
      withSearch(this, table, [...seen.values()], (row) => `${row.host} rank ${row.rank}`, "Search clocks"),
      table.element,
    );
  },
};

export const opsTable = {
  id: "ops",
  title: "Ops",
  available: (job) => job.answers.ops.length > 0,
  build(job, root) {
    const most = Math.max(...job.answers.ops.map((row) => row.step_ns), 1);
    const columns = [
      { key: "op", title: "Op", value: (row) => row.op, cell: (row) => el("span", { class: "mono", text: row.op }) },
      { key: "device", title: "On", value: (row) => (row.device ? "device" : "host") },
      { key: "step", title: "A step", number: true, value: (row) => row.step_ns, cell: (row) => [meter(row.step_ns / most), time(row.step_ns)], hint: "median over the ranks" },
      { key: "calls", title: "Calls", number: true, value: (row) => row.calls, cell: (row) => count(row.calls), hint: "of all ranks" },
      { key: "p50", title: "p50", number: true, value: (row) => row.p50_ns ?? 0, cell: (row) => time(row.p50_ns ?? 0) },
      { key: "p99", title: "p99", number: true, value: (row) => row.p99_ns ?? 0, cell: (row) => time(row.p99_ns ?? 0) },
      { key: "slowest", title: "Slowest rank", number: true, value: (row) => row.slowest.step_ns / Math.max(row.step_ns, 1), cell: (row) => `${row.slowest.rank}: ${signed(row.slowest.step_ns / Math.max(row.step_ns, 1))}` },
    ];
    const table = new Table({ columns, caption: "Ops", sort: "step" });
    root.append(
      heading("Ops", "Self time in a step, in the median of ranks; quantiles of single calls are off by at most 2 %."),
      withSearch(this, table, job.answers.ops, (row) => row.op, "Search ops"),
      table.element,
    );
  },
};
