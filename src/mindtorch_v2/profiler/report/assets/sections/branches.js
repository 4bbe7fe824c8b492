// The call tree as a table of branches to open.

import { breakable, el, meter, replace, swatch } from "../widgets/dom.js";
import { bytes, count, percent, time } from "../widgets/format.js";
import { theme } from "../widgets/palette.js";
import { rowKeys, tableBox } from "../widgets/tables.js";

const MOST_BRANCHES = 40;

// The same nodes as a tree to open; children are made when they are asked for.
export class Branches {
  constructor() {
    this.body = el("tbody");
    this.element = tableBox(
      "Call tree",
      el(
        "table",
        { role: "treegrid", "aria-label": "Call tree" },
        el(
          "thead",
          {},
          el(
            "tr",
            {},
            el("th", { scope: "col", text: "Call" }),
            el("th", { scope: "col", class: "number", text: "Calls" }),
            el("th", { scope: "col", class: "number", text: "Share" }),
            el("th", { scope: "col", class: "number", text: "Total" }),
            el("th", { scope: "col", class: "number", text: "Self" }),
          ),
        ),
        this.body,
      ),
    );
    rowKeys(this.body, (row) => this.flip(row));
  }

  show(tree, metric, root) {
    Object.assign(this, { tree, format: metric === "memory" ? bytes : time, root });
    [this.values, this.selfs] = tree.values(metric);
    const rows = root ? [this.row(root, 1)] : this.rows(0, 1);
    replace(this.body, rows);
    // Open the way down to where it branches.
    let first = this.body.rows[0];
    for (let depth = 0; first && depth < 3 && first.dataset.node; depth++) {
      this.flip(first);
      first = first.nextElementSibling;
    }
    if (this.body.rows[0]) this.body.rows[0].tabIndex = 0;
  }

  rows(at, level) {
    const children = this.tree.children[at],
      shown = children.slice(0, MOST_BRANCHES).map((child) => this.row(child, level));
    if (children.length > MOST_BRANCHES)
      shown.push(
        el(
          "tr",
          { "aria-level": level },
          el("td", { colspan: 5, class: "muted", text: `and ${count(children.length - MOST_BRANCHES)} smaller ones` }),
        ),
      );
    return shown;
  }

  row(at, level) {
    const opens = this.tree.children[at].length > 0;
    const name = el(
      "span",
      { class: "branch" },
      el("span", { class: `twist${opens ? "" : " leaf"}`, "aria-hidden": "true" }),
      swatch(theme.families[this.tree.family[at]]),
      el("span", { class: "mono" }, breakable(this.tree.name(at))),
    );
    name.style.setProperty("--level", Math.min(level - 1, 24));
    return el(
      "tr",
      {
        "data-node": at,
        "aria-level": level,
        "aria-expanded": opens ? "false" : undefined,
        tabindex: "-1",
        class: "opens",
        onclick: (event) => this.flip(event.currentTarget),
      },
      el("th", { scope: "row" }, name),
      el("td", { class: "number", text: count(this.tree.counts[at]) }),
      el(
        "td",
        { class: "number" },
        meter(this.values[at] / (this.values[0] || 1)),
        el("span", { class: "share", text: percent(this.values[at], this.values[0]) }),
      ),
      el("td", { class: "number", text: this.format(this.values[at]) }),
      el("td", { class: "number", text: this.format(this.selfs[at]) }),
    );
  }

  flip(row) {
    const open = row.getAttribute("aria-expanded"),
      level = Number(row.getAttribute("aria-level"));
    if (open === null) return;
    row.setAttribute("aria-expanded", open === "true" ? "false" : "true");
    if (open === "true")
      while (row.nextElementSibling && Number(row.nextElementSibling.getAttribute("aria-level")) > level)
        row.nextElementSibling.remove();
    else row.after(...this.rows(Number(row.dataset.node), level + 1));
  }
}
