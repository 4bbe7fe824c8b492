// Memory in use over time, by what it was for where that is known, and who held it at a moment.

import { choice, Drawing, el, emptyState, heading, hideTip, meter, showTip, swatch, Table } from "./dom.js";
import { bytes, count, percent, tickLabel, tickSize, time, words } from "./format.js";
import { attachKeys, attachPointer, TimeView } from "./gestures.js";
import { legend } from "./overview.js";
import { memoryDevices, memoryUse } from "./memory_use.js";
import { categoryColour, theme } from "./palette.js";

const LEFT = 74;
const BOTTOM = 24;

class MemoryChart {
  constructor(host, model, onpick) {
    Object.assign(this, { model, onpick, chosen: 0 });
    this.drawing = new Drawing(
      host,
      "Memory in use over time: A and D move, W and S zoom, 0 shows all",
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
      click: (x) => this.pick(Math.max(0, this.use.at(moment(x)))),
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
              .map(([name, value]) => el("span", {}, swatch(categoryColour(name)), `${words(name)} ${bytes(value)}`)),
        );
      },
    });
    attachKeys(this.drawing.canvas, this.view);
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
      most = (use.totals[use.peak] || 1) * 1.04,
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
    // In each pixel the moment with the most is drawn, so that no peak is lost; equal neighbours become one rectangle.
    const colours = use.names.map((name) => (use.known ? categoryColour(name) : theme.accent));
    let place = use.at(view.from),
      runFrom = 0,
      runPlace = place;
    const flush = (x) => {
      let y = floor;
      for (const part of use.order) {
        const tall = use.value(part, runPlace) * scale;
        if (tall <= 0) continue;
        context.fillStyle = colours[part];
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
      if (stays >= 0 && use.totals[stays] > use.totals[best]) best = stays;
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
    const x = LEFT + (use.times[this.chosen] - view.from) / each;
    if (x >= LEFT) {
      context.fillStyle = theme.ink;
      context.fillRect(Math.round(x), 6, 1.5, floor - 6);
      const text = this.chosen === use.peak ? "peak" : "chosen";
      context.textAlign = x > width - 80 ? "right" : "left";
      context.fillText(`${text} ${bytes(use.totals[this.chosen])}`, x + (x > width - 80 ? -6 : 6), 12);
      context.textAlign = "left";
    }
    context.fillStyle = theme.panel;
    context.fillRect(LEFT - 4, 0, 4, floor);
  }
}

export const memory = {
  id: "memory",
  title: "Memory",
  build(model, root, app) {
    root.append(heading("Memory"));
    if (!model.hasMemory) {
      root.append(
        emptyState(
          "Memory was not recorded",
          "Pass profile_memory=True to profile(). With record_shapes=True and with_stack=True as well, " +
            "it is split into parameters, gradients, activations and the rest.",
        ),
      );
      return;
    }
    const devices = memoryDevices(model);
    const host = el("div", { class: "memory-host" }),
      keys = el("div"),
      about = el("p", { class: "note", role: "status" }),
      shares = el("ul", { class: "bars held" });
    let use, chart;
    const mono = (key) => (item) =>
      el("span", { class: "mono", title: item[key], text: item[key].replace(/^.*\//, "") || "–" });
    const columns = () =>
      [
        {
          key: "who",
          title: "Held by",
          value: (item) => item.name,
          cell: (item) =>
            el(
              "span",
              { class: "op-name" },
              swatch(use.known ? categoryColour(item.category) : theme.accent),
              el("span", { class: "mono", text: item.name || "from before the recording" }),
            ),
        },
        use.known && {
          key: "category",
          title: "Used for",
          value: (item) => item.category,
          cell: (item) => words(item.category),
        },
        { key: "bytes", title: "Bytes", number: true, value: (item) => item.bytes, cell: (item) => bytes(item.bytes) },
        {
          key: "share",
          title: "Share",
          number: true,
          value: (item) => item.bytes,
          cell: (item) => [meter(item.bytes / held), el("span", { class: "share", text: percent(item.bytes, held) })],
        },
        { key: "count", title: "Pieces", number: true, value: (item) => item.count, cell: (item) => count(item.count) },
        model.hasModules && { key: "module", title: "Module", wide: true, value: (item) => item.module, cell: mono("module") },
        model.hasStacks && { key: "line", title: "Source", wide: true, value: (item) => item.line, cell: mono("line") },
      ].filter(Boolean);
    let held = 1;
    const table = new Table({
      columns: [{ key: "bytes", title: "Bytes", number: true, value: () => 0 }],
      caption: "Who held memory",
      sort: "bytes",
      page: 50,
    });
    const pick = (place) => {
      const items = use.held(place);
      held = items.reduce((sum, item) => sum + item.bytes, 0) || 1;
      const pieces = count(items.reduce((sum, item) => sum + item.count, 0)),
        when = place === use.peak ? "At the peak" : "At the chosen moment";
      about.textContent =
        `${when}, ${time(use.times[place])}: ${bytes(use.totals[place])} in use, ` +
        `${pieces} pieces whose allocation is known hold ${bytes(held)}.`;
      shares.replaceChildren(
        ...(use.known
          ? use.order.map((part) => [use.names[part], use.value(part, place)]).sort((a, b) => b[1] - a[1])
          : []
        ).map(([name, value]) =>
          el(
            "li",
            { "data-category": name, "data-value": value },
            el("span", { class: "bar-name" }, swatch(categoryColour(name)), words(name)),
            meter(value / (use.totals[place] || 1), categoryColour(name)),
            el("span", { class: "bar-value", text: bytes(value) }),
            el("span", { class: "bar-share", text: percent(value, use.totals[place]) }),
          ),
        ),
      );
      table.setColumns(columns());
      table.update(items);
    };
    const show = (key) => {
      use = memoryUse(model, key);
      keys.replaceChildren(
        ...(use.known
          ? [legend(use.order.map((part) => [words(use.names[part]), categoryColour(use.names[part])]))]
          : [
              el("p", {
                class: "note",
                text:
                  "What it was used for is not known in this recording: " +
                  "with record_shapes=True, profile_memory=True and with_stack=True a live profile knows.",
              }),
            ]),
      );
      chart.show(use);
    };
    const first = devices[0].key;
    root.append(
      el(
        "div",
        { class: "toolbar" },
        devices.length > 1 &&
          choice(
            "Device",
            devices.map((device) => [device.key, device.name]),
            first,
            show,
          ),
        el("button", { type: "button", onclick: () => chart.pick(use.peak) }, "Go to the peak"),
        el("span", { class: "note", text: "Click the chart to see who holds memory at another moment." }),
      ),
      host,
      keys,
      el("h3", { text: "Who held it" }),
      about,
      shares,
      table.element,
    );
    chart = this.chart = new MemoryChart(host, model, pick);
    show(first);
    app.redraws.push(() => chart.drawing.soon());
  },
};
