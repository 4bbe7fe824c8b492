// Critical paths: for each step the chain of ranks whose work it had to wait for.

import { el, heading } from "../../report/assets/widgets/dom.js";
import { percent, plural, time } from "../../report/assets/widgets/format.js";
import { theme } from "../../report/assets/widgets/palette.js";

const MOST_PATHS = 60;

// Colors of ranks: those that are named in findings stand out, the others alternate.
function pathColor(job, rank, at) {
  if (job.named.has(rank)) return theme.dark ? "#f0936d" : "#b3421e";
  return at % 2 ? (theme.dark ? "#4d6d86" : "#a9c3d8") : theme.dark ? "#5f86a6" : "#86abc8";
}

export const paths = {
  id: "paths",
  title: "Critical paths",
  available: (job) => job.about.paths.length > 0,
  build(job, root, app) {
    const list = el("ol", { class: "paths" });
    const draw = () => {
      const most = Math.max(...job.about.paths.map((path) => path.us), 1);
      list.replaceChildren(...job.about.paths.slice(0, MOST_PATHS).map((path) => pathRow(job, path, most, app)));
    };
    draw();
    app.redraws.push(draw);
    root.append(
      heading(
        "Critical paths",
        "From left to right: the rank whose work the step had to wait for, until the next collective it came last to. Faster work elsewhere gains nothing.",
      ),
      el("div", { class: "panel" }, list),
    );
  },
};

function pathRow(job, path, most, app) {
  const bar = el("span", { class: "stack-bar tall" });
  const sums = new Map();
  path.segments.forEach(([rank, own, sent, number], at) => {
    sums.set(rank, (sums.get(rank) ?? 0) + own);
    const share = (own + sent) / most,
      piece = el("button", {
        type: "button",
        title: `rank ${rank}: ${time(own * 1000)} of work, ${time(sent * 1000)} in ${plural(number, "transfer")}`,
        "aria-label": `rank ${rank}, ${time(own * 1000)}`,
        onclick: () => app.showRank(rank),
      });
    if (share > 0.06) piece.textContent = rank;
    piece.style.width = `${share * 100}%`;
    piece.style.background = pathColor(job, rank, at);
    piece.style.color = theme.on(pathColor(job, rank, at));
    bar.append(piece);
  });
  const [rank, own] = [...sums].sort((a, b) => b[1] - a[1])[0];
  return el(
    "li",
    {},
    el("span", { class: "number", text: `step ${path.step}` }),
    bar,
    el("span", { class: "note", text: `${time(path.us * 1000)}, ${percent(own, path.us)} by rank ${rank}` }),
  );
}
