// The strip above the timeline: the whole recording by phase, with a frame around what the timeline shows.

import { Drawing, el } from "../widgets/dom.js";
import { attachKeys, attachPointer } from "../widgets/gestures.js";
import { PHASES, theme } from "../widgets/palette.js";

export class MiniMap {
  constructor(host, model, view) {
    Object.assign(this, { model, view });
    this.drawing = new Drawing(host, "The whole recording; drag to move the view", (context, width, height) =>
      this.paint(context, width, height),
    );
    this.drawing.canvas.className = "minimap";
    this.attach();
  }

  // Time of the innermost events in each pixel, by phase.
  busy(width) {
    const { model } = this,
      phases = PHASES.length,
      parts = new Float32Array(width * phases),
      each = model.span / width,
      inner = new Uint8Array(model.size).fill(1);
    for (let row = 0; row < model.size; row++) if (model.parent[row] >= 0) inner[model.parent[row]] = 0;
    for (let row = 0; row < model.size; row++) {
      if (!inner[row] || (model.device_type[row] && !model.isWork(row))) continue;
      const start = model.start[row],
        end = model.end[row];
      for (let bin = Math.max(0, Math.floor(start / each)); bin < width && bin * each < end; bin++) {
        parts[bin * phases + model.phase[row]] += (Math.min(end, (bin + 1) * each) - Math.max(start, bin * each)) / each;
      }
    }
    return parts;
  }

  paint(context, width, height) {
    const columns = Math.floor(width);
    context.fillStyle = theme.faint;
    context.fillRect(0, 0, width, height);
    if (this.image?.width !== columns || this.image.dark !== theme.dark) this.image = this.drawn(columns, height);
    context.drawImage(this.image, 0, 0);
    const x = (this.view.from / this.model.span) * width,
      wide = (this.view.width / this.model.span) * width;
    context.fillStyle = theme.accent;
    context.globalAlpha = 0.18;
    context.fillRect(x, 0, wide, height);
    context.globalAlpha = 1;
    context.strokeStyle = theme.accent;
    context.lineWidth = 1.5;
    context.strokeRect(Math.max(0.75, x), 0.75, Math.min(width - 1.5, Math.max(3, wide)), height - 1.5);
  }

  // The strip never changes but for its frame, so it is drawn once.
  drawn(width, height) {
    const image = el("canvas", { width, height }),
      context = image.getContext("2d"),
      parts = this.busy(width),
      phases = PHASES.length,
      tall = (height - 4) / Math.max(1, this.model.lanesInfo.length);
    for (let x = 0; x < width; x++) {
      let y = height;
      for (let phase = 0; phase < phases; phase++) {
        const part = parts[x * phases + phase] * tall;
        if (!part) continue;
        context.fillStyle = theme.phases[phase];
        context.fillRect(x, y - part, 1, part);
        y -= part;
      }
    }
    image.dark = theme.dark;
    return image;
  }

  // Drag moves the view, a click puts its middle there.
  attach() {
    const { view } = this,
      length = (pixels) => (pixels / this.drawing.width) * this.model.span;
    attachPointer(this.drawing.canvas, {
      move: (dx) => view.show(view.from + length(dx), view.to + length(dx)),
      zoom: (factor) => view.zoom(factor),
      hover() {},
      leave() {},
      click: (x) => view.show(length(x) - view.width / 2, length(x) + view.width / 2),
    });
    attachKeys(this.drawing.canvas, view);
  }
}
