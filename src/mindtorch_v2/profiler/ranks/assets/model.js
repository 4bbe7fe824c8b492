// The job as the page reads it: matrices of ranks x steps, row by row, in microseconds.

import { time } from "../../report/assets/widgets/format.js";

export const PARTS = [
  // key, title, light, dark
  ["computing", "Computing", "#4477aa", "#6699cc"],
  ["exposed", "Exposed communication", "#cc6677", "#e08a98"],
  ["idle", "Idle", "#b9bcc6", "#70757f"],
];

export class Job {
  constructor(about, columns) {
    Object.assign(this, columns);
    this.about = about;
    this.answers = about.answers;
    this.ranks = about.ranks;
    this.steps = about.steps;
    this.count = about.ranks.length;
    this.width = about.steps.length;
    this.placeOf = new Map(this.ranks.map((rank, at) => [rank, at]));
    this.hasMemory = this.memory.some((value) => value > 0);
    this.named = new Set([
      ...this.answers.slow_ranks.map((one) => one.rank),
      ...this.answers.pauses.map((one) => one.rank),
      ...this.answers.slow_links.flatMap((link) => (link.source >= 0 ? [link.source, link.target] : [])),
    ]);
    this.rows = this.ranks.map((rank, at) => this.row(rank, at));
    this.opMedians = about.ops.map((_, op) => median(this.ranks.map((_, at) => this.op_times[at * about.ops.length + op])));
  }

  at(name, rank, step) {
    return this[name][rank * this.width + step];
  }

  sum(name, rank) {
    let total = 0;
    for (let step = 0; step < this.width; step++) total += this.at(name, rank, step);
    return total;
  }

  host(at) {
    return this.about.hosts[this.about.host[at]];
  }

  // What the table and the details show of a rank: means over its steps.
  row(rank, at) {
    const mean = (name) => this.sum(name, at) / this.width;
    const ratios = Array.from({ length: this.width }, (_, step) => this.at("ratio", at, step) / 10000);
    return {
      rank,
      at,
      host: this.host(at),
      length: mean("length"),
      computing: mean("computing"),
      communication: mean("communication"),
      exposed: mean("exposed"),
      idle: mean("idle"),
      ratio: median(ratios),
      charged: this.sum("charged", at),
      memory: Math.max(...Array.from({ length: this.width }, (_, step) => this.at("memory", at, step))),
      offset: this.clock_offset[at],
      error: this.clock_error[at],
      rate: this.clock_rate[at] / 1000,
      part: this.clock_part[at],
      source: this.about.sources[at],
      link: this.about.links[rank],
    };
  }
}

// Microseconds as people read them.
export const us = (value) => time(value * 1000);

export function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted.length ? (sorted[(sorted.length - 1) >> 1] + sorted[sorted.length >> 1]) / 2 : 0;
}
