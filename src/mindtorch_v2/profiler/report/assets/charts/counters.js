// Counters beside the lanes of the timeline: memory in use, a strip for each device.

import { Drawing } from "../widgets/dom.js";
import { bytes } from "../widgets/format.js";
import { memoryDevices, memoryUse } from "../model/memory_use.js";
import { theme } from "../widgets/palette.js";

const HEAD = 6;

class CounterStrip {
  constructor(host, model, view, device) {
    Object.assign(this, { model, view, name: device.name, use: memoryUse(model, device.key) });
    this.drawing = new Drawing(
      host,
      `Memory in use, ${device.name}: at most ${bytes(this.use.total(this.use.peak))}`,
      (context, width, height) => this.paint(context, width, height),
      false,
    );
    this.drawing.canvas.className = "counter";
  }

  paint(context, width, height) {
    const { use, view, model } = this,
      most = use.total(use.peak) || 1,
      each = view.width / width,
      room = height - HEAD;
    let place = use.at(view.from);
    context.fillStyle = theme.accent;
    context.globalAlpha = 0.45;
    // In each pixel the most that was in use, so that no peak is lost.
    for (let x = 0; x < width; x++) {
      const from = view.from + x * each,
        until = from + each;
      if (until < 0 || from > model.span) continue;
      let top = use.total(place);
      while (place + 1 < use.times.length && use.times[place + 1] < until) top = Math.max(top, use.total(++place));
      const tall = (top / most) * room;
      context.fillRect(x, height - tall, 1, tall);
    }
    context.globalAlpha = 1;
    context.fillStyle = theme.line;
    context.fillRect(0, height - 1, width, 1);
    context.font = theme.font;
    context.textBaseline = "top";
    context.fillStyle = theme.ink;
    context.fillText(`Memory in use, ${this.name} · at most ${bytes(most)}`, 6, 5);
  }
}

export function counterStrips(host, model, view) {
  return model.hasMemory ? memoryDevices(model).map((device) => new CounterStrip(host, model, view, device)) : [];
}
