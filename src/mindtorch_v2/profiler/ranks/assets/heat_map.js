// Ranks x steps as colors. Arrow keys move from cell to cell, Enter or a click chooses a rank.

import { Drawing, choice, el, heading, hideTip, replace, showTip } from "../../report/assets/widgets/dom.js";
import { bytes, plural } from "../../report/assets/widgets/format.js";
import { theme } from "../../report/assets/widgets/palette.js";
import { us } from "./model.js";
import { rankDetails } from "./rank_details.js";

// Diverging around 1 for what is beside the peers, from nothing to the most for all others: light and dark ends.
const SLOWER = [179, 66, 30],
  FASTER = [11, 110, 117],
  LARGE = [104, 31, 92];
const SLOWER_DARK = [244, 147, 105],
  FASTER_DARK = [92, 195, 196],
  LARGE_DARK = [226, 150, 214];

const METRICS = {
  ratio: { title: "Own time beside peers", text: (value) => `${((value / 10000 - 1) * 100).toFixed(1)} %`, diverging: true },
  length: { title: "Time of the step", text: us },
  computing: { title: "Computing", text: us },
  exposed: { title: "Exposed communication", text: us },
  idle: { title: "Idle", text: us },
  charged: { title: "Others waited for it", text: us },
  memory: { title: "Peak of memory", text: (value) => bytes(value * 1024), only: (job) => job.hasMemory },
};
const ORDERS = { rank: "By rank", worst: "Largest first" };
const EDGE = { left: 64, bottom: 22 };
const TALLEST = 760;

function mix(from, to, share) {
  return from.map((value, at) => Math.round(value + (to[at] - value) * share));
}

function rgb(text) {
  return [1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16));
}

export class HeatMap {
  constructor(host, job, onchoose) {
    Object.assign(this, { job, onchoose, metric: "ratio", order: "rank", chosen: -1, cursor: [0, 0] });
    this.drawing = new Drawing(host, `Heat map of ${plural(job.count, "rank")} and ${plural(job.width, "step")}`, (...all) =>
      this.paint(...all),
    );
    const { canvas } = this.drawing;
    canvas.id = "heat-map";
    canvas.style.height = `${Math.round(Math.min(TALLEST, Math.max(140, job.count * 15)) + EDGE.bottom)}px`;
    canvas.addEventListener("pointermove", (event) => this.point(event));
    canvas.addEventListener("pointerleave", hideTip);
    canvas.addEventListener("click", (event) => {
      const cell = this.cell(event.offsetX, event.offsetY);
      if (cell) this.choose(cell[0]);
    });
    canvas.addEventListener("keydown", (event) => this.key(event));
    canvas.addEventListener("blur", hideTip);
    this.update();
  }

  update() {
    const { job, metric } = this,
      values = job[metric];
    this.rows = job.ranks.map((_, at) => at);
    const worst = (at) => {
      let most = 0;
      for (let step = 0; step < job.width; step++) most = Math.max(most, job.at(metric, at, step));
      return most;
    };
    if (this.order === "worst") this.rows.sort((a, b) => worst(b) - worst(a) || a - b);
    if (METRICS[metric].diverging) {
      let reach = 300; // 3 %, so that noise stays pale; beyond 10 % all is the same color
      for (const value of values) reach = Math.max(reach, Math.min(1000, Math.abs(value - 10000)));
      this.scale = [10000 - reach, 10000 + reach];
    } else {
      let least = Infinity,
        most = -Infinity;
      for (const value of values) {
        if (value < least) least = value;
        if (value > most) most = value;
      }
      this.scale = [Math.min(least, most * 0.9), Math.max(most, 1)];
    }
    this.drawing.soon();
  }

  color(value) {
    const [low, high] = this.scale,
      base = rgb(theme.dark ? "#23282d" : "#f2f2ee");
    if (METRICS[this.metric].diverging) {
      const share = (value - 10000) / (high - 10000);
      const end = share > 0 ? (theme.dark ? SLOWER_DARK : SLOWER) : theme.dark ? FASTER_DARK : FASTER;
      return mix(base, end, Math.min(1, Math.abs(share)) ** 0.8);
    }
    return mix(base, theme.dark ? LARGE_DARK : LARGE, Math.min(1, Math.max(0, (value - low) / (high - low || 1))));
  }

  get size() {
    return [(this.drawing.width - EDGE.left) / this.job.width, (this.drawing.height - EDGE.bottom) / this.job.count];
  }

  paint(context, width, height) {
    const { job } = this,
      [wide, tall] = this.size,
      gap = tall >= 6 && wide >= 6 ? 1 : 0;
    // Where several ranks share a row of pixels, the one that is farthest from usual is shown.
    const rows = tall >= 1 ? job.count : Math.max(1, Math.floor(height - EDGE.bottom)),
      each = (height - EDGE.bottom) / rows;
    const middle = METRICS[this.metric].diverging ? 10000 : this.scale[0];
    for (let row = 0; row < rows; row++) {
      const from = Math.floor((row * job.count) / rows),
        to = Math.max(from + 1, Math.floor(((row + 1) * job.count) / rows));
      for (let step = 0; step < job.width; step++) {
        let value = middle;
        for (let at = from; at < to; at++) {
          const own = job.at(this.metric, this.rows[at], step);
          if (Math.abs(own - middle) >= Math.abs(value - middle)) value = own;
        }
        context.fillStyle = `rgb(${this.color(value).join(" ")})`;
        context.fillRect(EDGE.left + step * wide, row * each, Math.max(1, wide - gap), Math.max(each - gap, each > 1 ? 0.5 : 1));
      }
    }
    this.labels(context, width, height, wide, tall);
    // A mark beside each rank that a finding names: among a thousand rows one is hard to see.
    context.fillStyle = `rgb(${(theme.dark ? SLOWER_DARK : SLOWER).join(" ")})`;
    this.rows.forEach((at, row) => {
      if (job.named.has(job.ranks[at])) context.fillRect(EDGE.left - 5, (row + 0.5) * tall - Math.max(2, tall / 2), 4, Math.max(4, tall));
    });
    if (this.chosen >= 0) this.frame(context, this.rows.indexOf(this.chosen), 0, job.width);
    if (document.activeElement === this.drawing.canvas) this.frame(context, this.cursor[0], this.cursor[1], 1);
  }

  frame(context, row, step, steps) {
    const [wide, tall] = this.size;
    context.strokeStyle = theme.ink;
    context.lineWidth = 1.5;
    context.strokeRect(EDGE.left + step * wide - 0.5, row * tall - 1, steps * wide, Math.max(tall, 3) + 1);
  }

  labels(context, width, height, wide, tall) {
    const { job } = this;
    context.font = theme.font;
    context.textAlign = "right";
    context.textBaseline = "middle";
    // Ranks that findings name come first; others where there is room.
    const taken = [];
    const write = (row, color) => {
      const y = Math.min((row + 0.5) * tall + 4, height - EDGE.bottom - 6);
      if (taken.some((other) => Math.abs(other - y) < 14)) return;
      taken.push(y);
      context.fillStyle = color;
      context.fillText(`rank ${job.ranks[this.rows[row]]}`, EDGE.left - 8, y);
    };
    this.rows.forEach((at, row) => job.named.has(job.ranks[at]) && write(row, `rgb(${(theme.dark ? SLOWER_DARK : SLOWER).join(" ")})`));
    const every = Math.max(1, Math.ceil(16 / tall));
    const round = this.order === "rank" && every > 1 ? Math.ceil(every / 8) * 8 : every;
    for (let row = 0; row < job.count; row += round) write(row, theme.muted);
    context.fillStyle = theme.muted;
    context.textAlign = "center";
    const apart = Math.max(1, Math.ceil(64 / wide));
    for (let step = 0; step < job.width; step += apart)
      context.fillText(job.steps[step], EDGE.left + (step + 0.5) * wide, height - EDGE.bottom / 2 + 2);
  }

  cell(x, y) {
    const [wide, tall] = this.size,
      step = Math.floor((x - EDGE.left) / wide),
      row = Math.floor(y / tall);
    if (step < 0 || step >= this.job.width || row < 0 || row >= this.job.count) return null;
    return [this.rows[row], step];
  }

  point(event) {
    const cell = this.cell(event.offsetX, event.offsetY);
    if (!cell) return hideTip();
    this.tell(cell, event.clientX, event.clientY);
  }

  tell([at, step], x, y) {
    const { job } = this,
      value = (name) => us(job.at(name, at, step));
    showTip(
      x,
      y,
      el("strong", { text: `Rank ${job.ranks[at]}${job.host(at) ? ` on ${job.host(at)}` : ""}, step ${job.steps[step]}` }),
      el("span", { text: `${METRICS.ratio.text(job.at("ratio", at, step)).replace(/^(?!-)/, "+")} beside its peers` }),
      el("span", { text: `${value("length")}: computing ${value("computing")}, exposed ${value("exposed")}, idle ${value("idle")}` }),
      job.at("charged", at, step) > 0 && el("span", { text: `others waited ${value("charged")} for it, all together` }),
    );
  }

  choose(at) {
    this.chosen = at;
    this.drawing.soon();
    this.onchoose(at);
  }

  key(event) {
    const ways = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    if (event.key === "Enter") this.choose(this.rows[this.cursor[0]]);
    else if (ways[event.key]) {
      const [row, step] = ways[event.key];
      this.cursor = [
        Math.min(this.job.count - 1, Math.max(0, this.cursor[0] + row)),
        Math.min(this.job.width - 1, Math.max(0, this.cursor[1] + step)),
      ];
      const [wide, tall] = this.size,
        box = this.drawing.canvas.getBoundingClientRect();
      this.tell(
        [this.rows[this.cursor[0]], this.cursor[1]],
        box.left + EDGE.left + (this.cursor[1] + 0.5) * wide,
        box.top + (this.cursor[0] + 0.5) * tall,
      );
      this.drawing.soon();
    } else return;
    event.preventDefault();
  }

  // The colors and what they mean, as a canvas of their own.
  legend() {
    const host = el("div", { class: "scale" });
    const low = el("span", { class: "note" }),
      high = el("span", { class: "note" });
    const bar = new Drawing(
      el("div", { class: "scale-bar" }),
      "Colors",
      (context, width, height) => {
        for (let x = 0; x < width; x++) {
          const value = this.scale[0] + ((this.scale[1] - this.scale[0]) * x) / width;
          context.fillStyle = `rgb(${this.color(value).join(" ")})`;
          context.fillRect(x, 0, 1.5, height);
        }
      },
      false,
    );
    host.append(low, bar.canvas.parentElement, high);
    this.drawLegend = () => {
      low.textContent = METRICS[this.metric].text(this.scale[0]);
      high.textContent = METRICS[this.metric].text(this.scale[1]).replace(/^(?![-\d])/, "");
      bar.soon();
    };
    this.drawLegend();
    return host;
  }
}

export const heatMap = {
  id: "map",
  title: "Heat map",
  build(job, root, app) {
    const host = el("div", { class: "panel heat" }),
      side = el("aside", { class: "side", "aria-label": "Rank", "aria-live": "polite" });
    const show = (at) => replace(side, rankDetails(job, at));
    const map = new HeatMap(host, job, show);
    this.map = map;
    const set = (name) => (value) => {
      map[name] = value;
      map.update();
      map.drawLegend();
    };
    const metrics = Object.entries(METRICS).filter(([, metric]) => !metric.only || metric.only(job));
    root.append(
      heading(
        "Heat map",
        "A row for each rank, a column for each step. Own time is a step without exposed communication, beside the median of ranks that communicate alike.",
      ),
      el(
        "div",
        { class: "toolbar" },
        choice(
          "Color",
          metrics.map(([key, metric]) => [key, metric.title]),
          map.metric,
          set("metric"),
        ),
        choice("Ranks", Object.entries(ORDERS), map.order, set("order")),
        map.legend(),
      ),
      el("div", { class: "timeline" }, host, side),
    );
    const first = job.answers.slow_ranks[0]?.rank ?? job.answers.pauses[0]?.rank ?? job.ranks[0];
    map.choose(job.placeOf.get(first) ?? 0);
    app.redraws.push(() => {
      map.drawing.now();
      map.drawLegend();
    });
  },
};

