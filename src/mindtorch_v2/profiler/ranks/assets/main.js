// Puts the page of a job together.

import { advice } from "../../report/assets/sections/advice.js";
import { openPage, Page } from "../../report/assets/widgets/app.js";
import { count, plural } from "../../report/assets/widgets/format.js";
import { heatMap } from "./heat_map.js";
import { Job } from "./model.js";
import { overview } from "./overview.js";
import { paths } from "./paths.js";
import { clocksTable, linksTable, opsTable, ranksTable } from "./tables.js";

const SECTIONS = [overview, heatMap, advice, ranksTable, linksTable, paths, opsTable, clocksTable];
const KEYS = [
  ["1 … 8", "Go to a section"],
  ["/", "Search in it"],
  ["T", "Light or dark"],
  ["?", "This list"],
  ["← → ↑ ↓", "From cell to cell of the heat map, from row to row"],
  ["Enter", "Choose a rank; open a row"],
  ["Esc", "Close, clear"],
];

class App extends Page {
  showRank(rank) {
    this.go(heatMap);
    heatMap.map.choose(this.model.placeOf.get(rank) ?? 0);
  }

  showFinding(finding) {
    const rank = /rank (\d+)/i.exec(finding.title);
    if (finding.rule === "slow_link") this.go(linksTable);
    else if (rank) this.showRank(Number(rank[1]));
    else this.go(advice);
  }
}

function start() {
  return openPage((about, columns) => {
    const job = new Job(about, columns);
    new App(job, SECTIONS, KEYS);
    return `${plural(job.count, "rank")} · ${count(job.answers.events)} events`;
  });
}

start();
