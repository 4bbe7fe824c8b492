// A stretch of time on a canvas, moved by wheel, drag, pinch and keys.

export class TimeView {
  constructor(span, onchange) {
    this.span = span;
    this.onchange = onchange;
    this.from = 0;
    this.to = span;
  }

  show(from, to) {
    const margin = this.span * 0.02,
      least = 20; // nanoseconds
    let width = Math.min(Math.max(to - from, least), this.span + 2 * margin);
    let begin = Math.min(Math.max(from, -margin), this.span + margin - width);
    if (Number.isNaN(begin + width)) return;
    this.from = begin;
    this.to = begin + width;
    this.onchange();
  }

  fit() {
    this.show(-this.span * 0.005, this.span * 1.005);
  }

  get width() {
    return this.to - this.from;
  }

  zoom(factor, at = (this.from + this.to) / 2) {
    this.show(at - (at - this.from) * factor, at + (this.to - at) * factor);
  }

  pan(part) {
    const by = this.width * part;
    this.show(this.from + by, this.to + by);
  }
}

// Handlers: move(dx, dy) | zoom(factor, x) | hover(x, y) | leave() | click(x, y) | select(x0, x1, done)
export function attachPointer(canvas, handlers) {
  const fingers = new Map();
  let last = null,
    selecting = null,
    moved = 0,
    pinch = 0;
  const at = (event) => {
    const box = canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };
  canvas.addEventListener(
    "wheel",
    (event) => {
      event.preventDefault();
      const { x } = at(event),
        lines = event.deltaMode === 1 ? 16 : 1;
      if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY))
        handlers.move(-(event.deltaX || event.deltaY) * lines, 0);
      else handlers.zoom(Math.exp(Math.max(-240, Math.min(240, event.deltaY * lines)) * 0.003), x);
    },
    { passive: false },
  );
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    canvas.setPointerCapture(event.pointerId);
    fingers.set(event.pointerId, at(event));
    last = at(event);
    moved = 0;
    selecting = event.shiftKey && handlers.select ? last.x : null;
    if (fingers.size === 2) {
      const [a, b] = fingers.values();
      pinch = Math.abs(a.x - b.x) || 1;
    }
  });
  canvas.addEventListener("pointermove", (event) => {
    const here = at(event);
    if (!fingers.has(event.pointerId)) {
      handlers.hover(here.x, here.y, event);
      return;
    }
    fingers.set(event.pointerId, here);
    if (fingers.size === 2) {
      const [a, b] = fingers.values(),
        apart = Math.abs(a.x - b.x) || 1;
      handlers.zoom(pinch / apart, (a.x + b.x) / 2);
      pinch = apart;
      moved = 99;
      return;
    }
    const dx = here.x - last.x,
      dy = here.y - last.y;
    moved += Math.abs(dx) + Math.abs(dy);
    if (selecting !== null) handlers.select(selecting, here.x, false);
    else if (moved > 3) handlers.move(dx, dy);
    last = here;
  });
  const up = (event) => {
    if (!fingers.delete(event.pointerId) || fingers.size) return;
    const here = at(event);
    if (selecting !== null && moved > 3) handlers.select(selecting, here.x, true);
    else if (moved <= 3 && event.type === "pointerup") handlers.click(here.x, here.y, event);
    selecting = null;
  };
  canvas.addEventListener("pointerup", up);
  canvas.addEventListener("pointercancel", up);
  canvas.addEventListener("pointerleave", () => handlers.leave());
}

// WASD and arrows, + and -, 0 for everything. `more` maps further keys to functions.
export function attachKeys(canvas, view, more = {}) {
  const keys = {
    a: () => view.pan(-0.15),
    ArrowLeft: () => view.pan(-0.15),
    d: () => view.pan(0.15),
    ArrowRight: () => view.pan(0.15),
    w: () => view.zoom(0.75),
    "+": () => view.zoom(0.75),
    "=": () => view.zoom(0.75),
    s: () => view.zoom(1 / 0.75),
    "-": () => view.zoom(1 / 0.75),
    0: () => view.fit(),
    Home: () => view.pan(-view.span),
    End: () => view.pan(view.span),
    ...more,
  };
  canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const action = keys[event.key] || keys[event.key.toLowerCase()];
    if (!action) return;
    event.preventDefault();
    event.stopPropagation();
    action(event);
  });
}
