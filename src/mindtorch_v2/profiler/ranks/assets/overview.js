// The first section: the job in figures, what was found, what filled the steps.

import { append, card, Drawing, el, emptyState, heading, hideTip, legend, meter, showTip } from "../../report/assets/widgets/dom.js";
import { count, percent, plural, tickLabel, tickSize, time } from "../../report/assets/widgets/format.js";
import { theme } from "../../report/assets/widgets/palette.js";
import { PARTS } from "./model.js";
import { partColor } from "./rank_details.js";

function cards(job) {
  const { answers } = job,
    { breakdown, clocks, waiting } = answers,
    share = (name) => `${(breakdown[name].share * 100).toFixed(1)} %`;
  return el(
    "div",
    { class: "cards" },
    card("Ranks", count(answers.ranks), `on ${plural(answers.hosts, "host")}${answers.ranks < answers.world_size ? `, of ${count(answers.world_size)}` : ""}`),
    card("A step", time(answers.step_ns), `median of ${plural(answers.steps.count, "step")}, the slowest rank of each`),
    card("Computing", share("computing"), `from rank ${breakdown.computing.least.rank}: ${percent(breakdown.computing.least.share, 1)} to rank ${breakdown.computing.most.rank}: ${percent(breakdown.computing.most.share, 1)}`),
    card("Exposed communication", share("exposed"), `of ${share("communication")} communication`),
    card("Waited for late ranks", `${(waiting.lost * 100).toFixed(1)} %`, { stays: "for the same rank in most steps", moves: "for another rank each step", none: "not worth a word" }[waiting.pattern]),
    card(
      "Clocks",
      clocks.error_ns ? `± ${time(clocks.error_ns)}` : plural(clocks.clocks_in_all, "clock"),
      clocks.collectives ? `${plural(clocks.clocks_in_all, "clock")} by ${count(clocks.collectives)} collectives${clocks.connected ? "" : `, in ${clocks.parts} parts`}` : "nothing to compare them by",
    ),
  );
}

// Steps as stacked bars of the medians over ranks; above slow ones stands the rank that they waited for.
class StepBars {
  constructor(host, job) {
    this.job = job;
    this.steps = job.answers.by_step;
    this.most = Math.max(...this.steps.map((step) => step.ns));
    this.slow = new Map(job.answers.slow_steps.filter((slow) => slow.rank >= 0).map((slow) => [slow.step, slow]));
    this.drawing = new Drawing(host, "Steps by what filled them", (...all) => this.paint(...all), false);
    const { canvas } = this.drawing;
    canvas.classList.add("steps-canvas");
    canvas.addEventListener("pointermove", (event) => {
      const step = this.steps[Math.floor((event.offsetX - 64) / this.each)];
      if (!step) return hideTip();
      showTip(
        event.clientX,
        event.clientY,
        el("strong", { text: `Step ${step.step}: ${time(step.ns)}` }),
        ...PARTS.map((part) => el("span", { text: `${part[1]} ${time(step[`${part[0]}_ns`])}` })),
        el("span", { text: `all ranks together waited ${time(step.waited_ns)}, rank ${step.rank} led` }),
        this.slow.has(step.step) && el("span", { text: slowText(this.slow.get(step.step)) }),
      );
    });
    canvas.addEventListener("pointerleave", hideTip);
  }

  get each() {
    return (this.drawing.width - 64) / this.steps.length;
  }

  paint(context, width, height) {
    const low = height - 22,
      scale = (low - (this.slow.size ? 22 : 8)) / this.most,
      { each } = this,
      wide = Math.max(1, Math.min(each * 0.72, 72));
    context.font = theme.font;
    context.textBaseline = "middle";
    const size = tickSize(this.most, 4);
    for (let tick = 0; tick <= this.most; tick += size) {
      context.fillStyle = theme.line;
      context.fillRect(64, low - tick * scale, width - 64, 1);
      context.fillStyle = theme.muted;
      context.textAlign = "right";
      context.fillText(tickLabel(tick, size), 56, low - tick * scale);
    }
    const apart = Math.max(1, Math.ceil(48 / each));
    let free = 0;
    this.steps.forEach((step, at) => {
      const x = 64 + at * each + (each - wide) / 2;
      let y = low;
      for (const part of PARTS) {
        const tall = Math.max(0, step[`${part[0]}_ns`]) * scale;
        context.fillStyle = partColor(part);
        context.fillRect(x, y - tall, wide, tall);
        y -= tall;
      }
      if (this.slow.has(step.step)) {
        const text = `rank ${this.slow.get(step.step).rank}`,
          half = context.measureText(text).width / 2,
          middle = x + wide / 2;
        context.fillStyle = theme.ink;
        context.textAlign = "center";
        // Slow steps side by side have a mark each where names do not fit.
        context.fillText(middle - half > free ? text : "▾", middle, y - 10);
        free = middle + half + 6;
      }
      if (at % apart === 0) {
        context.fillStyle = theme.muted;
        context.textAlign = "center";
        context.fillText(step.step, x + wide / 2, low + 12);
      }
    });
  }
}

function slowText({ ratio, rank, cause, op }) {
  return `${ratio.toFixed(2)} times the usual: rank ${rank}, ${cause}${op ? `, ${op}` : ""}`;
}

function findingList(job, app) {
  if (!job.about.findings.length) return emptyState("Nothing stands out", "No rank, link or step is far from the others.");
  const whole = Math.max(...job.about.findings.map((finding) => finding.share ?? 0), 0.01);
  return el(
    "ul",
    { class: "found" },
    job.about.findings.slice(0, 8).map((finding) =>
      el(
        "li",
        {},
        el("button", { type: "button", class: "link", onclick: () => app.showFinding(finding), text: finding.title }),
        el("span", { class: "note", text: finding.evidence.slice(0, 3).join("; ") }),
        finding.share != null && el("span", { class: "found-gain" }, meter(finding.share / whole), percent(finding.share, 1)),
      ),
    ),
  );
}

export const overview = {
  id: "overview",
  title: "Overview",
  build(job, root, app) {
    const host = el("div", {});
    const bars = new StepBars(host, job);
    const { answers } = job;
    append(root, [
      heading("Overview", `${count(answers.events)} events of ${plural(answers.ranks, "rank")}, steps ${answers.steps.first} to ${answers.steps.last}.`),
      cards(job),
      el(
        "div",
        { class: "columns" },
        el("div", { class: "panel" }, el("h3", { text: "What stands out" }), findingList(job, app)),
        el(
          "div",
          { class: "panel" },
          el("h3", { text: "Steps: medians over the ranks" }),
          host,
          legend(PARTS.map((part) => [part[1], partColor(part)])),
        ),
      ),
      (answers.left_out_in_all > 0 || answers.notes.length > 0) && leftOut(answers),
    ]);
    app.redraws.push(() => bars.drawing.now());
  },
};

function leftOut(answers) {
  return el(
    "div",
    { class: "panel left-out" },
    el("h3", { text: "What is missing" }),
    el("ul", { class: "plain" }, answers.notes.map((note) => el("li", { text: note }))),
    answers.left_out_in_all > 0 && el("p", { class: "note", text: `${plural(answers.left_out_in_all, "file")} left out:` }),
    el(
      "ul",
      { class: "plain" },
      answers.left_out.map((entry) => el("li", {}, el("span", { class: "mono", text: entry.source }), ` ${entry.reason}`)),
    ),
  );
}
