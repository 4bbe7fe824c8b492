// Helpers that create elements. Text goes in as text nodes only, so no name of an event is ever read as markup.

export function el(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (key === "class") node.className = value;
    else if (key === "text") node.textContent = value;
    else if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value === true ? "" : value);
  }
  append(node, children);
  return node;
}

export function append(node, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    node.append(child instanceof Node ? child : String(child));
  }
  return node;
}

export function replace(node, ...children) {
  node.replaceChildren();
  return append(node, children);
}

export function emptyState(title, text) {
  return el("div", { class: "empty" }, el("h3", { text: title }), el("p", { text }));
}

export function heading(title, text) {
  return el("div", { class: "heading" }, el("h2", { text: title }), text && el("p", { text }));
}

// A figure with a title and a note below it.
export function card(title, value, note, id) {
  return el(
    "div",
    { class: "card", id },
    el("h3", { text: title }),
    el("p", { class: "figure", text: value }),
    note && el("p", { class: "note", text: note.replace(/(?<=\d) /g, "\u00a0") }),
  );
}

// A long name with places to break it at, so that a narrow column does not break it anywhere.
export function breakable(text) {
  const parts = text.split(/(?<=::|\/)|(?<=[A-Za-z0-9])(?=_)/);
  return parts.flatMap((part, at) => (at ? [document.createElement("wbr"), part] : [part]));
}

// A bar whose length is a share of its cell. The width is set through the object model, which the page's policy allows.
export function meter(share, color) {
  const fill = el("span", { class: "meter-fill" });
  fill.style.width = `${Math.max(0, Math.min(1, share)) * 100}%`;
  if (color) paintIn(fill, color);
  return el("span", { class: "meter", "aria-hidden": "true" }, fill);
}

// The color is stored on the element, so that a change of theme can repaint it.
export function paintIn(node, color) {
  node.dataset.color = color;
  node.style.background = color;
}

export function swatch(color) {
  const node = el("span", { class: "swatch", "aria-hidden": "true" });
  paintIn(node, color);
  return node;
}

export function legend(entries) {
  return el(
    "ul",
    { class: "legend" },
    entries.map(([name, color]) => el("li", {}, swatch(color), name)),
  );
}

export function choice(label, options, value, onchange) {
  const select = el(
    "select",
    { "aria-label": label, onchange: (event) => onchange(event.target.value) },
    options.map(([key, text]) => el("option", { value: key, text })),
  );
  select.value = value;
  return el("label", { class: "field" }, el("span", { text: label }), select);
}

export function searchBox(label, oninput, onenter) {
  let waiting = 0;
  const input = el("input", {
    type: "search",
    placeholder: label,
    "aria-label": label,
    autocomplete: "off",
    spellcheck: "false",
    oninput: () => {
      clearTimeout(waiting);
      waiting = setTimeout(() => oninput(input.value), 60);
    },
    onkeydown: (event) => {
      if (event.key === "Escape") input.value = "";
      else if (event.key !== "Enter") return;
      // Now, not when the wait is over.
      clearTimeout(waiting);
      oninput(input.value);
      if (event.key === "Enter" && onenter) onenter(event.shiftKey);
    },
  });
  // Empties the box without a call of oninput, also one that waits.
  input.reset = () => {
    clearTimeout(waiting);
    input.value = "";
  };
  return input;
}

export function toggle(label, value, onchange) {
  const input = el("input", { type: "checkbox", onchange: () => onchange(input.checked) });
  input.checked = value;
  return el("label", { class: "check" }, input, el("span", { text: label }));
}

// What a search matches: plain text anywhere, or /a pattern/.
export function matcher(text) {
  const wanted = text.trim();
  if (!wanted) return null;
  if (wanted.length > 2 && wanted.startsWith("/") && wanted.endsWith("/")) {
    try {
      const pattern = new RegExp(wanted.slice(1, -1), "i");
      return (name) => pattern.test(name);
    } catch {
      return () => false;
    }
  }
  const lower = wanted.toLowerCase();
  return (name) => name.toLowerCase().includes(lower);
}

// A canvas as sharp as the screen. draw(context, width, height) is called at most once a frame.
export class Drawing {
  // `keys`: whether it handles keys, so that it must be focusable.
  constructor(host, label, draw, keys = true) {
    this.canvas = el("canvas", { tabindex: keys ? "0" : "-1", role: keys ? "application" : "img", "aria-label": label });
    this.context = this.canvas.getContext("2d", { alpha: true });
    this.paint = draw;
    this.width = 0;
    this.height = 0;
    this.waiting = false;
    host.append(this.canvas);
    new ResizeObserver(() => this.resize()).observe(this.canvas);
  }

  resize() {
    const width = this.canvas.clientWidth,
      height = this.canvas.clientHeight,
      ratio = Math.min(window.devicePixelRatio || 1, 2);
    if (!width || !height) return;
    if (width === this.width && height === this.height && ratio === this.ratio) return;
    Object.assign(this, { width, height, ratio });
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.now();
  }

  soon() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.now();
    });
  }

  now() {
    if (!this.width) return;
    const context = this.context;
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    context.clearRect(0, 0, this.width, this.height);
    this.paint(context, this.width, this.height);
  }
}

// One tooltip for the whole page.
const tip = el("div", { class: "tip", role: "tooltip", hidden: true });

export function showTip(x, y, ...children) {
  if (!tip.isConnected) document.body.append(tip);
  replace(tip, ...children);
  tip.hidden = false;
  const width = tip.offsetWidth,
    height = tip.offsetHeight,
    gap = 14;
  const left = x + gap + width > innerWidth ? Math.max(4, x - gap - width) : x + gap;
  const top = y + gap + height > innerHeight ? Math.max(4, y - gap - height) : y + gap;
  tip.style.transform = `translate(${left}px, ${top}px)`;
}

export function hideTip() {
  tip.hidden = true;
}
