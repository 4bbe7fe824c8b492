// Time, memory and FLOPs by nn.Module, along the path under which each module holds the next.

import { breakable, el, emptyState, heading, meter, searchBox, matcher, replace } from "../widgets/dom.js";
import { bytes, count, flops, percent, time } from "../widgets/format.js";
import { PHASE } from "../widgets/palette.js";
import { rowKeys, tableBox } from "../widgets/tables.js";

const SUMS = ["ops", "forward", "backward", "bytes", "flops"];

function blank(name, path, above) {
  return { name, path, above, children: new Map(), ops: 0, forward: 0, backward: 0, bytes: 0, flops: 0 };
}

export function moduleTree(model) {
  const root = blank("", "", null),
    nodes = model.modules.map((path) => {
      let at = root,
        so_far = "";
      for (const part of path.split(".")) {
        so_far = so_far ? `${so_far}.${part}` : part;
        if (!at.children.has(part)) at.children.set(part, blank(part, so_far, at));
        at = at.children.get(part);
      }
      return at;
    });
  const K = model.KIND,
    inherited = new Int32Array(model.size),
    allocated = model.memory.self;
  for (let row = 0; row < model.size; row++) {
    inherited[row] = model.module[row] >= 0 ? model.module[row] : model.parent[row] >= 0 ? inherited[model.parent[row]] : -1;
    const kind = model.kind[row];
    if (inherited[row] < 0 || (kind !== K.OP && kind !== K.BACKWARD && kind !== K.ENGINE)) continue;
    const node = nodes[inherited[row]];
    node.ops++;
    node[model.phase[row] === PHASE.BACKWARD ? "backward" : "forward"] += model.self[row];
    node.bytes += allocated[row];
    node.flops += model.flops[row];
  }
  const sum = (node) => {
    for (const key of SUMS) node[`all_${key}`] = node[key];
    for (const child of node.children.values()) {
      sum(child);
      for (const key of SUMS) node[`all_${key}`] += child[`all_${key}`];
    }
  };
  sum(root);
  return root;
}

export const modules = {
  id: "modules",
  title: "Modules",
  build(model, root) {
    root.append(heading("Modules", "Self time of the ops that each module and those in it called, forward and backward."));
    if (!model.hasModules) {
      root.append(
        emptyState(
          "Modules were not recorded",
          "Pass with_modules=True to profile() to see time, memory and FLOPs along the tree of nn.Modules.",
        ),
      );
      return;
    }
    const tree = moduleTree(model),
      whole = tree.all_forward + tree.all_backward,
      body = el("tbody"),
      closed = new Set();
    let test = null;
    const titles = [
      ["Module", ""],
      ["Share", "number"],
      ["Forward", "number", "Self time of the ops called in it, with the modules in it"],
      ["Backward", "number", "Self time of the backward nodes of those ops"],
      ["Own", "number", "Forward and backward, without the modules in it"],
      ["Ops", "number"],
      model.hasMemory && ["Memory", "number"],
      model.hasFlops && ["FLOPs", "number"],
      model.hasFlops && ["FLOP/s", "number"],
    ].filter(Boolean);
    const row = (node, level) => {
      const opens = node.children.size > 0,
        all = node.all_forward + node.all_backward,
        cell = (text, value) => el("td", { class: "number", text, "data-value": value });
      const name = el(
        "span",
        { class: "branch" },
        el("span", { class: `twist${opens ? "" : " leaf"}`, "aria-hidden": "true" }),
        el("span", { class: "mono", title: node.path }, breakable(node.name)),
      );
      name.style.setProperty("--level", level - 1);
      return el(
        "tr",
        {
          class: "opens",
          tabindex: "-1",
          "data-path": node.path,
          "aria-level": level,
          "aria-expanded": opens ? String(!closed.has(node)) : undefined,
          onclick: () => flip(node),
        },
        el("th", { scope: "row" }, name),
        el("td", { class: "number" }, meter(all / whole), el("span", { class: "share", text: percent(all, whole) })),
        cell(time(node.all_forward), node.all_forward),
        cell(time(node.all_backward), node.all_backward),
        cell(time(node.forward + node.backward), node.forward + node.backward),
        cell(count(node.all_ops), node.all_ops),
        model.hasMemory && cell(bytes(node.all_bytes), node.all_bytes),
        model.hasFlops && cell(flops(node.all_flops), node.all_flops),
        model.hasFlops && cell(node.all_flops && all ? flops(node.all_flops / (all / 1e9)) : "–"),
      );
    };
    const flip = (node) => {
      if (!node.children.size) return;
      if (!closed.delete(node)) closed.add(node);
      render();
      body.querySelector(`tr[data-path="${CSS.escape(node.path)}"]`)?.focus();
    };
    const fits = (node) => test(node.path) || [...node.children.values()].some(fits);
    const render = () => {
      const rows = [],
        visit = (node, level) => {
          if (test && !fits(node)) return;
          rows.push(row(node, level));
          if (!closed.has(node))
            [...node.children.values()]
              .sort((a, b) => b.all_forward + b.all_backward - a.all_forward - a.all_backward)
              .forEach((child) => visit(child, level + 1));
        };
      tree.children.forEach((child) => visit(child, 1));
      replace(body, rows);
      if (rows.length) rows[0].tabIndex = 0;
    };
    const nodeOf = new Map(),
      number = (node) => {
        nodeOf.set(node.path, node);
        node.children.forEach(number);
      };
    tree.children.forEach(number);
    rowKeys(body, (one) => flip(nodeOf.get(one.dataset.path)));
    this.search = searchBox("Filter modules", (text) => {
      test = matcher(text);
      render();
    });
    root.append(
      el("div", { class: "toolbar" }, this.search),
      tableBox(
        "Modules",
        el(
          "table",
          { role: "treegrid", "aria-label": "Modules" },
          el(
            "thead",
            {},
            el(
              "tr",
              {},
              titles.map(([title, kind, hint]) => el("th", { scope: "col", class: kind, title: hint, text: title })),
            ),
          ),
          body,
        ),
      ),
    );
    render();
  },
};
