// Tables: a box whose head stays in sight, rows that keys move through, and a table to sort.

import { el, replace } from "./dom.js";

// Where all columns fit, the page scrolls and the head stays below the page's own; else the box scrolls in itself, and the
// head and the first column stay.
export function tableBox(label, table, ...more) {
  const box = el("div", { class: "table-wrap", tabindex: "0", role: "region", "aria-label": `${label}, table` }, table, more);
  const fit = () => {
    const fits = table.offsetWidth <= box.offsetWidth;
    box.classList.toggle("fits", fits);
    box.tabIndex = fits ? -1 : 0;
  };
  const watch = new ResizeObserver(fit);
  watch.observe(box);
  watch.observe(table);
  return box;
}

// Tab comes to one row of a body, arrows lead on from there; flip(row) opens and closes. Rows to stop at are of class "opens".
export function rowKeys(body, flip) {
  const isStop = (row) => row.classList.contains("opens"),
    level = (row) => Number(row.getAttribute("aria-level") || 1);
  const beside = (row, way) => {
    do row = row[way];
    while (row && !isStop(row));
    return row;
  };
  const above = (row) => {
    const own = level(row);
    while (row && level(row) >= own) row = beside(row, "previousElementSibling");
    return row;
  };
  body.addEventListener("focusin", (event) => {
    const row = event.target.closest("tr");
    if (!isStop(row)) return;
    for (const other of body.querySelectorAll('tr[tabindex="0"]')) other.tabIndex = -1;
    row.tabIndex = 0;
  });
  body.addEventListener("keydown", (event) => {
    const row = event.target;
    if (row.localName !== "tr" || event.ctrlKey || event.metaKey || event.altKey) return;
    const open = row.getAttribute("aria-expanded"),
      stops = () => [...body.rows].filter(isStop);
    const go = (next) => next?.focus();
    if (event.key === "ArrowDown") go(beside(row, "nextElementSibling"));
    else if (event.key === "ArrowUp") go(beside(row, "previousElementSibling"));
    else if (event.key === "Home") go(stops()[0]);
    else if (event.key === "End") go(stops().at(-1));
    else if (event.key === "Enter" || event.key === " " || (event.key === "ArrowRight" && open === "false")) flip(row);
    else if (event.key === "ArrowLeft" && open === "true") flip(row);
    else if (event.key === "ArrowRight" && open === "true") go(beside(row, "nextElementSibling"));
    else if (event.key === "ArrowLeft") go(above(row));
    else return;
    event.preventDefault();
  });
}

// A sortable table. A column: { key, title, number, value(item), cell(item), hint }. It shows `page` rows, more on request.
export class Table {
  constructor({ columns, caption, sort, page = 100, details }) {
    Object.assign(this, { columns, details, page });
    this.sort = sort;
    this.descending = true;
    this.items = [];
    this.itemOf = new WeakMap();
    this.head = el("tr");
    this.body = el("tbody");
    this.more = el("div", { class: "more" });
    this.element = tableBox(
      caption,
      el("table", details ? { role: "treegrid", "aria-label": caption } : {}, el("caption", { class: "unseen", text: caption }), el("thead", {}, this.head), this.body),
      this.more,
    );
    if (details) rowKeys(this.body, (row) => this.expand(row));
  }

  setColumns(columns) {
    this.columns = columns;
    if (!columns.some((column) => column.key === this.sort)) this.sort = columns.find((column) => column.number).key;
  }

  update(items) {
    this.items = items;
    this.shown = this.page;
    this.render();
  }

  showAll() {
    this.shown = Infinity;
    this.render();
  }

  sortBy(key) {
    const column = this.columns.find((one) => one.key === key);
    this.descending = this.sort === key ? !this.descending : Boolean(column.number);
    this.sort = key;
    this.render();
    this.head.querySelector(`[data-key="${key}"] button`).focus();
  }

  render() {
    const sorted = this.columns.find((column) => column.key === this.sort);
    if (sorted) {
      const sign = this.descending ? -1 : 1;
      this.items.sort((a, b) => {
        const x = sorted.value(a),
          y = sorted.value(b);
        return x < y ? -sign : x > y ? sign : 0;
      });
    }
    replace(
      this.head,
      this.columns.map((column) =>
        el(
          "th",
          {
            scope: "col",
            class: column.number ? "number" : "",
            "data-key": column.key,
            title: column.hint,
            "aria-sort": column.key !== this.sort ? "none" : this.descending ? "descending" : "ascending",
          },
          el("button", { type: "button", onclick: () => this.sortBy(column.key) }, column.title),
        ),
      ),
    );
    replace(
      this.body,
      this.items.slice(0, this.shown).map((item) => this.row(item)),
    );
    if (this.details && this.body.rows[0]) this.body.rows[0].tabIndex = 0;
    replace(
      this.more,
      this.items.length > this.shown &&
        el("button", {
          type: "button",
          class: "quiet",
          text: `Show ${Math.min(this.page, this.items.length - this.shown)} more of ${this.items.length}`,
          onclick: () => {
            this.shown += this.page;
            this.render();
          },
        }),
      this.items.length === 0 && el("p", { class: "muted", text: "Nothing matches." }),
    );
  }

  row(item) {
    const row = el(
      "tr",
      {},
      this.columns.map((column, at) => {
        const value = column.value(item);
        return el(
          at ? "td" : "th",
          {
            class: column.number ? "number" : column.wide ? "wide" : "",
            scope: at ? undefined : "row",
            "data-key": column.key,
            "data-value": column.number ? value : undefined,
          },
          column.cell ? column.cell(item) : value,
        );
      }),
    );
    if (this.details) {
      this.itemOf.set(row, item);
      row.classList.add("opens");
      row.tabIndex = -1;
      row.setAttribute("aria-level", 1);
      row.setAttribute("aria-expanded", "false");
      row.addEventListener("click", (event) => {
        if (!event.target.closest("button, a")) this.expand(row);
      });
    }
    return row;
  }

  expand(row) {
    const open = row.getAttribute("aria-expanded") === "true";
    row.setAttribute("aria-expanded", String(!open));
    if (open) row.nextElementSibling.remove();
    else
      row.after(
        el("tr", { class: "detail-row" }, el("td", { colspan: this.columns.length }, this.details(this.itemOf.get(row)))),
      );
  }
}
