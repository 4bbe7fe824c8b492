// Numbers as people read them.

const GROUPED = new Intl.NumberFormat("en-US");

export function count(value) {
  return GROUPED.format(value);
}

export function plural(value, thing) {
  return `${count(value)} ${thing}${value === 1 ? "" : "s"}`;
}

function digits(value) {
  const size = Math.abs(value);
  return size >= 100 ? value.toFixed(1) : size >= 10 ? value.toFixed(2) : value.toFixed(3);
}

export function time(ns) {
  const size = Math.abs(ns);
  if (size === 0) return "0";
  if (size < 1e3) return `${Math.round(ns)} ns`;
  if (size < 1e6) return `${digits(ns / 1e3)} µs`;
  if (size < 1e9) return `${digits(ns / 1e6)} ms`;
  return `${digits(ns / 1e9)} s`;
}

export function bytes(value) {
  const size = Math.abs(value);
  if (size === 0) return "0";
  for (const [unit, factor] of [
    ["TiB", 2 ** 40],
    ["GiB", 2 ** 30],
    ["MiB", 2 ** 20],
    ["KiB", 2 ** 10],
  ]) {
    if (size >= factor) return `${(value / factor).toFixed(size / factor >= 100 ? 1 : 2)} ${unit}`;
  }
  return `${value} B`;
}

export function flops(value) {
  if (!value) return "–";
  for (const [unit, factor] of [
    ["P", 1e15],
    ["T", 1e12],
    ["G", 1e9],
    ["M", 1e6],
    ["k", 1e3],
  ]) {
    if (value >= factor) return `${digits(value / factor)} ${unit}`;
  }
  return String(value);
}

export function percent(part, whole) {
  if (!whole) return "–";
  const share = (part / whole) * 100;
  return share !== 0 && share < 0.05 ? "<0.1 %" : `${share.toFixed(1)} %`;
}

// "[[16, 64], [64]]" -> "16×64, 64"; a scalar's or a missing shape is a dot.
export function shapes(text) {
  if (!text || text === "[]") return "";
  return text
    .slice(1, -1)
    .split(/,(?=\s*\[)/)
    .map((one) => one.trim().slice(1, -1).replaceAll(", ", "×") || "·")
    .join(", ");
}

export function words(name) {
  const text = name.toLowerCase().replaceAll("_", " ");
  return text.charAt(0).toUpperCase() + text.slice(1);
}

// Round steps for an axis: at most `most` of them over a span.
export function tickSize(span, most) {
  const rough = span / Math.max(1, most),
    power = 10 ** Math.floor(Math.log10(rough || 1));
  return [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough) || power;
}

export function tickLabel(ns, step) {
  const [unit, factor] = step >= 1e9 ? ["s", 1e9] : step >= 1e6 ? ["ms", 1e6] : step >= 1e3 ? ["µs", 1e3] : ["ns", 1];
  const places = Math.max(0, Math.min(3, -Math.floor(Math.log10(step / factor) + 1e-9)));
  return `${GROUPED.format(Number((ns / factor).toFixed(places)))} ${unit}`;
}
