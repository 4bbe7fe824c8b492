// The call tree as an icicle on a canvas: the wider, the more time or memory.

import { Drawing, el, hideTip, showTip } from "../widgets/dom.js";
import { bytes, percent, plural, time } from "../widgets/format.js";
import { theme } from "../widgets/palette.js";

const ROW = 22;
const LEAST = 0.4; // pixels: what is narrower is not drawn

export class Icicle {
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
    canvas.addEventListener("focus", () => this.drawing.soon());
    canvas.addEventListener("blur", () => {
      hideTip();
      this.drawing.soon();
    });
    canvas.setAttribute("aria-roledescription", "flame graph");
    this.said = el("p", { class: "unseen", "aria-live": "polite" });
    host.append(this.said);
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
      const color = at ? theme.families[tree.family[at]] : theme.faint;
      const dim = (this.matches && !this.matches[at] && at) || (path.has(at) && at !== this.focus);
      context.globalAlpha = dim ? (this.matches ? 0.22 : 0.55) : 1;
      context.fillStyle = color;
      const y = tree.depth[at] * ROW;
      context.fillRect(x, y, Math.max(0.5, wide - (wide > 3 ? 1 : 0)), ROW - 1);
      if (wide > 30) {
        context.fillStyle = at ? theme.on(color) : theme.ink;
        context.globalAlpha = dim ? 0.75 : 1;
        if (dim && this.matches) context.fillStyle = theme.ink;
        const room = Math.floor((wide - 10) / theme.letter),
          name = tree.shortName(at);
        context.fillText(name.length > room ? `${name.slice(0, Math.max(1, room - 1))}…` : name, x + 5, y + ROW / 2);
      }
      context.globalAlpha = 1;
      const cursor = at === this.cursor && document.activeElement === this.drawing.canvas;
      if (at === this.hover || cursor) {
        context.strokeStyle = theme.ink;
        context.lineWidth = cursor ? 3 : 1.5;
        context.strokeRect(x + context.lineWidth / 2, y + context.lineWidth / 2, Math.max(1, wide - 2), ROW - 2.5);
      }
      for (const child of tree.children[at]) {
        const left = (begin[child] - this.from) * scale,
          size = values[child] * scale;
        if (left > width) break;
        if (left + size < 0) continue;
        if (size < LEAST) break; // the others are no wider
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
    this.tell(at, event.clientX, event.clientY);
  }

  // What is known of a node: its name, its size and its calls.
  facts(at) {
    const format = this.metric === "memory" ? bytes : time,
      value = this.values[at],
      [ofAll, ofShown] = [0, this.focus].map((whole) => percent(value, this.values[whole]));
    return [
      this.tree.name(at),
      `${format(value)} · ${ofAll} of all · ${ofShown} of what is shown`,
      at > 0 && `self ${format(this.selfs[at])} · ${plural(this.tree.counts[at], "call")}`,
    ].filter(Boolean);
  }

  tell(at, x, y) {
    const [name, ...lines] = this.facts(at);
    showTip(x, y, el("strong", { class: "mono", text: name }), ...lines.map((text) => el("span", { text })));
  }

  // Brings the cursor to a node that is drawn.
  move(at) {
    this.cursor = at;
    this.drawing.now();
    const box = this.drawing.canvas.getBoundingClientRect(),
      x = Math.max(0, (this.begin[at] - this.from) * this.scale),
      y = (this.tree.depth[at] + 1) * ROW;
    this.tell(at, box.left + Math.min(x, box.width - 40), box.top + y - 10);
    this.said.textContent = this.facts(at).join(", ");
  }

  key(event) {
    const { tree } = this,
      above = tree.above[this.cursor],
      drawn = (at) => at !== undefined && this.values[at] * this.scale >= LEAST,
      siblings = above >= 0 ? tree.children[above] : [this.cursor],
      place = siblings.indexOf(this.cursor);
    const moves = {
      ArrowDown: () => tree.children[this.cursor][0],
      ArrowUp: () => (above >= 0 ? above : undefined),
      ArrowRight: () => siblings[place + 1],
      ArrowLeft: () => siblings[place - 1],
    };
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key in moves) {
      const next = moves[event.key]();
      this.move(drawn(next) ? next : this.cursor);
    } else if (event.key === "Enter" || event.key === " ") this.zoom(this.cursor);
    else if (event.key === "Escape" || event.key === "Backspace") this.zoom(Math.max(0, tree.above[this.focus]));
    else return;
    event.preventDefault();
  }
}
