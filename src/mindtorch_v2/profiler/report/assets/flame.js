// The call tree as an icicle on a canvas.

import { Branches } from "./branches.js";
import { CallTree, hasPython } from "./calltree.js";
import {
  append,
  choice,
  Drawing,
  el,
  emptyState,
  heading,
  hideTip,
  matcher,
  replace,
  searchBox,
  showTip,
  toggle,
} from "./dom.js";
import { bytes, count, percent, time } from "./format.js";
import { FAMILIES, theme } from "./palette.js";
import { legend } from "./overview.js";

const ROW = 22;

class Icicle {
  constructor(host, onzoom) {
    this.onzoom = onzoom;
    this.drawing = new Drawing(host, "Flame graph: arrow keys move, Enter zooms, Escape zooms out", (context, width, height) =>
      this.paint(context, width, height),
    );
    this.focus = 0;
    this.cursor = 0;
    this.hover = -1;
    const canvas = this.drawing.canvas;
    canvas.addEventListener("pointermove", (event) => this.point(event));
    canvas.addEventListener("pointerleave", () => {
      this.hover = -1;
      hideTip();
      this.drawing.soon();
    });
    canvas.addEventListener("click", (event) => {
      const at = this.at(event.offsetX, event.offsetY);
      if (at >= 0) this.zoom(at);
    });
    canvas.addEventListener("keydown", (event) => this.key(event));
  }

  show(tree, metric) {
    this.tree = tree;
    this.metric = metric;
    this.begin = tree.layOut(metric);
    [this.values, this.selfs] = tree.values(metric);
    this.from = 0;
    this.to = this.values[0] || 1;
    this.focus = this.cursor = 0;
    this.matches = null;
    this.fitHeight();
    this.onzoom(0);
  }

  fitHeight() {
    let deepest = 0;
    const visit = [this.focus];
    const least = (this.values[this.focus] || 1) / 1500;
    while (visit.length) {
      const at = visit.pop();
      deepest = Math.max(deepest, this.tree.depth[at]);
      for (const child of this.tree.children[at]) {
        if (this.values[child] < least) break;
        visit.push(child);
      }
    }
    this.drawing.canvas.style.height = `${Math.min(900, Math.max(8, deepest + 2) * ROW)}px`;
    this.drawing.resize();
    this.drawing.soon();
  }

  search(test) {
    this.matches = test
      ? Uint8Array.from({ length: this.tree.length }, (_, at) => (at && test(this.tree.name(at)) ? 1 : 0))
      : null;
    this.drawing.soon();
    if (!test) return null;
    // Time under matching nodes, each counted once though matches may lie in one another.
    let sum = 0,
      found = 0;
    const inside = new Uint8Array(this.tree.length);
    for (let at = 1; at < this.tree.length; at++) {
      const above = inside[this.tree.above[at]];
      if (this.matches[at]) {
        found++;
        if (!above) sum += this.values[at];
      }
      inside[at] = above || this.matches[at];
    }
    return { found, sum };
  }

  zoom(at) {
    const before = [this.from, this.to],
      after = [this.begin[at], this.begin[at] + Math.max(this.values[at], 1e-9)];
    this.focus = this.cursor = at;
    hideTip();
    this.fitHeight();
    this.onzoom(at);
    const lasts = matchMedia("(prefers-reduced-motion: reduce)").matches ? 0 : 180,
      began = performance.now();
    const move = (now) => {
      if (this.focus !== at) return;
      const part = lasts ? Math.min(1, Math.max(0, (now - began) / lasts)) : 1,
        eased = 1 - (1 - part) ** 3;
      this.from = before[0] + (after[0] - before[0]) * eased;
      this.to = before[1] + (after[1] - before[1]) * eased;
      this.drawing.now();
      if (part < 1) requestAnimationFrame(move);
    };
    move(lasts ? began : Infinity);
  }

  paint(context, width) {
    if (!this.tree) return;
    context.font = theme.font;
    context.textBaseline = "middle";
    this.scale = width / (this.to - this.from);
    const path = new Set(this.tree.path(this.focus));
    this.paintNode(context, 0, width, path);
  }

  paintNode(context, root, width, path) {
    const { tree, values, begin, scale } = this,
      visit = [root];
    while (visit.length) {
      const at = visit.pop();
      const x = Math.max(0, (begin[at] - this.from) * scale),
        right = Math.min(width, (begin[at] + values[at] - this.from) * scale);
      const wide = right - x;
      const colour = at ? theme.families[tree.family[at]] : theme.faint;
      const dim = (this.matches && !this.matches[at] && at) || (path.has(at) && at !== this.focus);
      context.globalAlpha = dim ? (this.matches ? 0.22 : 0.55) : 1;
      context.fillStyle = colour;
      const y = tree.depth[at] * ROW;
      context.fillRect(x, y, Math.max(0.5, wide - (wide > 3 ? 1 : 0)), ROW - 1);
      if (wide > 30) {
        context.fillStyle = at ? theme.on(colour) : theme.ink;
        context.globalAlpha = dim ? 0.75 : 1;
        if (dim && this.matches) context.fillStyle = theme.ink;
        const room = Math.floor((wide - 10) / theme.letter),
          name = tree.shortName(at);
        context.fillText(name.length > room ? `${name.slice(0, Math.max(1, room - 1))}…` : name, x + 5, y + ROW / 2);
      }
      context.globalAlpha = 1;
      if (at === this.hover || (at === this.cursor && document.activeElement === this.drawing.canvas && this.cursor)) {
        context.strokeStyle = theme.ink;
        context.lineWidth = 1.5;
        context.strokeRect(x + 0.75, y + 0.75, Math.max(1, wide - 2), ROW - 2.5);
      }
      for (const child of tree.children[at]) {
        const left = (begin[child] - this.from) * scale,
          size = values[child] * scale;
        if (left > width) break;
        if (left + size < 0) continue;
        if (size < 0.4) break; // the others are no wider
        visit.push(child);
      }
    }
  }

  at(x, y) {
    const depth = Math.floor(y / ROW),
      moment = this.from + x / this.scale;
    let at = 0;
    while (this.tree.depth[at] < depth) {
      const next = this.tree.children[at].find(
        (child) => this.begin[child] <= moment && moment < this.begin[child] + this.values[child],
      );
      if (next === undefined) return -1;
      at = next;
    }
    return at;
  }

  point(event) {
    const at = this.at(event.offsetX, event.offsetY);
    if (at !== this.hover) {
      this.hover = at;
      this.drawing.soon();
    }
    this.drawing.canvas.style.cursor = at >= 0 ? "pointer" : "default";
    if (at < 0) return hideTip();
    const format = this.metric === "memory" ? bytes : time,
      value = this.values[at],
      [ofAll, ofShown] = [0, this.focus].map((whole) => percent(value, this.values[whole]));
    showTip(
      event.clientX,
      event.clientY,
      el("strong", { class: "mono", text: this.tree.name(at) }),
      el("span", {
        text: `${format(value)} · ${ofAll} of all · ${ofShown} of what is shown`,
      }),
      el("span", { text: `self ${format(this.selfs[at])} · ${count(this.tree.counts[at])} calls` }),
    );
  }

  key(event) {
    const { tree } = this,
      above = tree.above[this.cursor],
      siblings = above >= 0 ? tree.children[above] : [this.cursor],
      place = siblings.indexOf(this.cursor);
    const moves = {
      ArrowDown: () => tree.children[this.cursor][0],
      ArrowUp: () => (above >= 0 ? above : undefined),
      ArrowRight: () => siblings[place + 1],
      ArrowLeft: () => siblings[place - 1],
    };
    if (event.key in moves) {
      const next = moves[event.key]();
      if (next !== undefined) this.cursor = next;
      this.drawing.soon();
    } else if (event.key === "Enter") this.zoom(this.cursor);
    else if (event.key === "Escape" || event.key === "Backspace") this.zoom(Math.max(0, tree.above[this.focus]));
    else return;
    event.preventDefault();
  }
}

export const flame = {
  id: "calls",
  title: "Calls",
  build(model, root, app) {
    root.append(
      heading(
        "Calls",
        "Who called whom, merged over all calls of the same path. Click to zoom; the way back is above the graph.",
      ),
    );
    if (!model.size) return root.append(emptyState("No calls", "Nothing was recorded."));
    let metric = "time",
      python = true,
      query = "",
      tree = new CallTree(model, python);
    const crumbs = el("nav", { class: "crumbs", "aria-label": "Zoomed to" }),
      host = el("div", { class: "flame-host" }),
      found = el("p", { class: "note", role: "status" }),
      branches = new Branches();
    const icicle = new Icicle(host, (at) => {
      replace(
        crumbs,
        [0, ...tree.path(at)].map((one) =>
          el(
            "button",
            {
              type: "button",
              class: "link mono",
              "aria-current": one === at ? "location" : undefined,
              onclick: () => icicle.zoom(one),
            },
            tree.name(one),
          ),
        ),
      );
      branches.show(tree, metric, at);
    });
    const look = () => {
      const test = matcher(query),
        result = icicle.search(test),
        format = metric === "memory" ? bytes : time;
      found.textContent = result
        ? `${count(result.found)} places match, ${format(result.sum)} in all (${percent(result.sum, icicle.values[0])})`
        : "";
    };
    const restart = () => {
      icicle.show(tree, metric);
      look();
    };
    this.search = searchBox("Highlight by name", (text) => {
      query = text;
      look();
    });
    const metrics = [["time", "Time"], ...(model.hasMemory ? [["memory", "Bytes allocated"]] : [])];
    root.append(
      el(
        "div",
        { class: "toolbar" },
        this.search,
        choice("Size by", metrics, metric, (value) => {
          metric = value;
          restart();
        }),
        hasPython(model) &&
          toggle("Python functions", python, (value) => {
            python = value;
            tree = new CallTree(model, python);
            restart();
          }),
      ),
      found,
      crumbs,
      host,
      legend(FAMILIES.map(([name], at) => [name, theme.families[at]]).filter((_, at) => tree.family.includes(at))),
      branches.element,
    );
    if (!model.hasMemory)
      append(root, [
        el("p", { class: "note", text: "Memory was not recorded: pass profile_memory=True to size the graph by bytes." }),
      ]);
    restart();
    app.redraws.push(() => {
      icicle.drawing.soon();
      branches.show(tree, metric, icicle.focus);
    });
    this.icicle = icicle;
  },
};
