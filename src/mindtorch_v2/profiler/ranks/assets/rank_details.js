// One rank: what its steps consist of, which ops take longer than elsewhere, and where its own report is.

import { el, legend } from "../../report/assets/widgets/dom.js";
import { bytes, count, time } from "../../report/assets/widgets/format.js";
import { theme } from "../../report/assets/widgets/palette.js";
import { PARTS, us } from "./model.js";

const MOST_STEPS = 40,
  MOST_OPS = 8;

export const partColor = (part) => part[theme.dark ? 3 : 2];

// Stacked bars, one for each step.
function stepBars(job, at) {
  const most = Math.max(...job.rows.map((row) => row.length), 1);
  const shown = Math.min(job.width, MOST_STEPS);
  return el(
    "ol",
    { class: "step-bars", "aria-label": "Steps of the rank" },
    Array.from({ length: shown }, (_, step) => {
      const length = job.at("length", at, step);
      const bar = el("span", { class: "stack-bar", "aria-hidden": "true" });
      for (const part of PARTS) {
        const piece = el("span", {});
        piece.style.width = `${(Math.max(0, job.at(part[0], at, step)) / Math.max(length, most * 1.5)) * 100}%`;
        piece.style.background = partColor(part);
        bar.append(piece);
      }
      return el(
        "li",
        {},
        el("span", { class: "note", text: job.steps[step] }),
        bar,
        el("span", { class: "note number", text: time(length * 1000) }),
      );
    }),
  );
}

// Ops by how much longer they take here than in the median of ranks.
function opList(job, at) {
  const { ops } = job.about;
  const list = ops
    .map((op, number) => {
      const own = job.op_times[at * ops.length + number],
        usual = job.opMedians[number];
      return { ...op, own, beyond: own - usual, ratio: usual ? own / usual : 1 };
    })
    .sort((a, b) => Math.abs(b.beyond) - Math.abs(a.beyond))
    .slice(0, MOST_OPS);
  return el(
    "ul",
    { class: "op-list" },
    list.map((op) =>
      el(
        "li",
        { title: op.name },
        el("span", { class: "mono name", text: op.name }),
        el("span", { class: op.ratio > 1.02 ? "slower" : op.ratio < 0.98 ? "faster" : "muted", text: `${((op.ratio - 1) * 100).toFixed(1)} %` }),
        el("span", { class: "muted", text: time(op.own * 1000) }),
      ),
    ),
  );
}

export function rankDetails(job, at) {
  const row = job.rows[at],
    ratio = (row.ratio - 1) * 100;
  const findings = job.about.findings.filter((finding) => new RegExp(`rank ${row.rank}\\b`, "i").test(finding.title));
  const fact = (name, value) => [el("dt", { text: name }), el("dd", { text: value })];
  return el(
    "div",
    { class: "details" },
    el("h3", { text: `Rank ${row.rank}` }),
    row.host && el("p", { class: "note", text: row.host }),
    findings.map((finding) => el("p", { class: "warning", text: finding.title })),
    el(
      "dl",
      { class: "facts" },
      fact("Own time", `${ratio >= 0 ? "+" : ""}${ratio.toFixed(1)} % beside its peers`),
      fact("A step", us(row.length)),
      fact("Waited for", `${us(row.charged)} by all others`),
      job.hasMemory && fact("Memory", bytes(row.memory * 1024)),
      fact("Clock", `${time(row.offset)} off, within ${time(row.error)}`),
      fact("File", row.source),
    ),
    el(
      "p",
      { class: "actions" },
      row.link
        ? el("a", { class: "button", href: row.link, text: "Open its report" })
        : el("span", { class: "note" }, "Its own report: ", el("code", { class: "mono", text: `mtprof report ${row.source}` })),
    ),
    el("h4", { text: `Steps${job.width > MOST_STEPS ? `, the first ${count(MOST_STEPS)}` : ""}` }),
    stepBars(job, at),
    legend(PARTS.map((part) => [part[1], partColor(part)])),
    job.about.ops.length > 0 && [el("h4", { text: "Ops beside the median of ranks, a step" }), opList(job, at)],
  );
}

