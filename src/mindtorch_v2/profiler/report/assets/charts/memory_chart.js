// Memory in use over time on a canvas, one layer for each use.

import { Drawing, el, hideTip, showTip, swatch } from "../widgets/dom.js";
import { bytes, tickLabel, tickSize, time, words } from "../widgets/format.js";
import { attachKeys, attachPointer, TimeView } from "../widgets/gestures.js";
import { categoryColor, theme } from "../widgets/palette.js";

const LEFT = 74;
const BOTTOM = 24;

export class MemoryChart {
  constructor(host, model, onpick) {
    Object.assign(this, { model, onpick, chosen: 0 });
    this.drawing = new Drawing(
      host,
      "Memory in use over time: [ and ] choose the moment before or after, A and D move, W and S zoom, 0 shows all",
      (context, width, height) => this.paint(context, width, height),
    );
    this.drawing.canvas.id = "memory-canvas";
    this.view = new TimeView(model.span, () => this.drawing.soon());
    this.view.fit();
    const moment = (x) => this.view.from + ((x - LEFT) / (this.drawing.width - LEFT)) * this.view.width;
    attachPointer(this.drawing.canvas, {
      move: (dx) => this.view.pan(-dx / (this.drawing.width - LEFT)),
      zoom: (factor, x) => this.view.zoom(factor, moment(x)),
      leave: hideTip,
      click: (x) => this.pick(this.use.at(moment(x))),
      hover: (x, y, event) => {
        if (x < LEFT) return hideTip();
        const place = this.use.at(moment(x)),
          lines = this.use.order
            .map((part) => [this.use.names[part], this.use.value(part, place)])
            .filter(([, value]) => value > 0);
        showTip(
          event.clientX,
          event.clientY,
          el("strong", { text: bytes(lines.reduce((sum, [, value]) => sum + value, 0)) }),
          el("span", { text: `at ${time(moment(x))}` }),
          this.use.known &&
            lines
              .reverse()
              .map(([name, value]) => el("span", {}, swatch(categoryColor(name)), `${words(name)} ${bytes(value)}`)),
        );
      },
    });
    attachKeys(this.drawing.canvas, this.view, { "[": () => this.step(-1), "]": () => this.step(1) });
  }

  // To the nearest change of memory on one side that is a pixel away.
  step(way) {
    const { times } = this.use,
      least = this.view.width / (this.drawing.width - LEFT);
    let next = this.chosen + way;
    while (next > 0 && next < times.length - 1 && Math.abs(times[next] - times[this.chosen]) < least) next += way;
    this.pick(Math.min(times.length - 1, Math.max(-1, next)));
  }

  show(use) {
    this.use = use;
    this.pick(use.peak);
  }

  pick(place) {
    this.chosen = place;
    this.drawing.soon();
    this.onpick(place);
  }

  paint(context, width, height) {
    const { use, view } = this;
    if (!use) return;
    const room = height - BOTTOM - 10,
      wide = width - LEFT,
      most = (use.total(use.peak) || 1) * 1.04,
      scale = room / most,
      each = view.width / wide;
    const floor = 10 + room;
    context.font = theme.font;
    context.textBaseline = "middle";
    const step = 2 ** Math.ceil(Math.log2(most / 4));
    for (let level = 0; level <= most; level += step) {
      const y = Math.round(floor - level * scale);
      context.fillStyle = theme.line;
      context.fillRect(LEFT, y, wide, 1);
      context.fillStyle = theme.muted;
      context.textAlign = "right";
      context.fillText(bytes(level), LEFT - 8, y);
    }
    // In each pixel the moment with the most is drawn, so that no peak is lost; equal neighbors become one rectangle.
    const colors = use.names.map((name) => (use.known ? categoryColor(name) : theme.accent));
    let place = use.at(view.from),
      runFrom = 0,
      runPlace = place;
    const flush = (x) => {
      let y = floor;
      for (const part of use.order) {
        const tall = use.value(part, runPlace) * scale;
        if (tall <= 0) continue;
        context.fillStyle = colors[part];
        context.fillRect(LEFT + runFrom, y - tall, x - runFrom, tall);
        y -= tall;
      }
    };
    const lastPixel = Math.min(wide, Math.ceil((this.model.span - view.from) / each)),
      firstPixel = Math.max(0, Math.floor(-view.from / each));
    runFrom = firstPixel;
    for (let x = firstPixel; x < lastPixel; x++) {
      const until = view.from + (x + 1) * each;
      let best = place;
      const stays = place;
      while (place + 1 < use.times.length && use.times[place + 1] < until) {
        place++;
        if (best === stays || use.totals[place] > use.totals[best]) best = place;
      }
      if (use.total(stays) > use.total(best)) best = stays;
      if (best !== runPlace) {
        flush(x);
        runFrom = x;
        runPlace = best;
      }
    }
    flush(lastPixel);
    const tick = tickSize(view.width, wide / 110);
    context.textAlign = "left";
    for (let at = Math.ceil(view.from / tick) * tick; at < view.to; at += tick) {
      const x = LEFT + (at - view.from) / each;
      context.fillStyle = theme.muted;
      context.fillRect(Math.round(x), floor, 1, 5);
      if (x < width - 70) context.fillText(tickLabel(at, tick), x + 4, floor + 13);
    }
    const x = LEFT + (use.time(this.chosen) - view.from) / each;
    if (x >= LEFT) {
      context.fillStyle = theme.ink;
      context.fillRect(Math.round(x), 6, 1.5, floor - 6);
      const text = this.chosen === use.peak ? "peak" : "chosen";
      context.textAlign = x > width - 80 ? "right" : "left";
      context.fillText(`${text} ${bytes(use.total(this.chosen))}`, x + (x > width - 80 ? -6 : 6), 12);
      context.textAlign = "left";
    }
    context.fillStyle = theme.panel;
    context.fillRect(LEFT - 4, 0, 4, floor);
  }
}
