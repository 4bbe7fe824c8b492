// FLOPs per second over FLOPs per byte, both in powers of ten, under the machine's ceilings. Drawn as SVG, so that it prints.

import { flops } from "../widgets/format.js";

const WIDE = 900;
const HIGH = 420;
const FRAME = { left: 86, right: 24, top: 18, bottom: 48 };

export function shape(tag, props = {}, ...children) {
  const node = document.createElementNS(document.getElementById("blank").namespaceURI, tag);
  for (const [key, value] of Object.entries(props)) if (value !== undefined) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

// The least and greatest power of ten around values, with room.
function powers(values, fallback) {
  const found = values.filter((value) => value > 0 && Number.isFinite(value)).map(Math.log10);
  if (!found.length) return fallback;
  return [Math.floor(Math.min(...found) - 0.15), Math.ceil(Math.max(...found) + 0.15)];
}

function powerText(power) {
  return power >= 0 && power <= 3 ? String(10 ** power) : power < 0 && power >= -2 ? (10 ** power).toFixed(-power) : `1e${power}`;
}

// points: { name, time, intensity, speed, limit }; onchoose(point) when one is chosen.
export function rooflineChart(points, ceilings, onchoose) {
  const drawn = points.filter((point) => point.speed > 0 && point.intensity > 0 && Number.isFinite(point.intensity)),
    roof = ceilings ? ceilings.float32_flops_s : 0;
  const [left, right] = powers([...drawn.map((point) => point.intensity), ...(ceilings ? [ceilings.ridge] : [])], [-1, 2]),
    [bottom, top] = powers([...drawn.map((point) => point.speed), roof], [6, 12]);
  const x = (value) => FRAME.left + ((Math.log10(value) - left) / (right - left)) * (WIDE - FRAME.left - FRAME.right),
    y = (value) => HIGH - FRAME.bottom - ((Math.log10(value) - bottom) / (top - bottom)) * (HIGH - FRAME.top - FRAME.bottom);
  const chart = shape("svg", {
    viewBox: `0 0 ${WIDE} ${HIGH}`,
    class: "roofline-chart",
    role: "group",
    "aria-label": "Roofline: FLOPs per second over FLOPs per byte",
  });
  for (let power = left; power <= right; power++) {
    const at = x(10 ** power);
    chart.append(
      shape("line", { class: "grid", x1: at, x2: at, y1: FRAME.top, y2: HIGH - FRAME.bottom }),
      shape("text", { class: "tick", x: at, y: HIGH - FRAME.bottom + 18, "text-anchor": "middle" }, powerText(power)),
    );
  }
  for (let power = bottom; power <= top; power++) {
    const at = y(10 ** power);
    chart.append(
      shape("line", { class: "grid", x1: FRAME.left, x2: WIDE - FRAME.right, y1: at, y2: at }),
      shape("text", { class: "tick", x: FRAME.left - 10, y: at + 4, "text-anchor": "end" }, flops(10 ** power).replace(/\.0+ /, " ")),
    );
  }
  chart.append(
    shape("text", { class: "axis", x: (FRAME.left + WIDE - FRAME.right) / 2, y: HIGH - 8, "text-anchor": "middle" }, "FLOPs per byte moved"),
    shape("text", { class: "axis", x: -(FRAME.top + HIGH - FRAME.bottom) / 2, y: 16, "text-anchor": "middle", transform: "rotate(-90)" }, "FLOP/s"),
  );
  if (ceilings) {
    const lowest = Math.max(10 ** left, 10 ** bottom / ceilings.copy_bytes_s),
      path = `M ${x(lowest)} ${y(lowest * ceilings.copy_bytes_s)} L ${x(ceilings.ridge)} ${y(roof)} H ${WIDE - FRAME.right}`;
    chart.append(
      shape("path", { class: "roof", d: path }),
      shape("text", { class: "roof-name", x: WIDE - FRAME.right - 4, y: y(roof) - 7, "text-anchor": "end" }, `${flops(roof)}FLOP/s`),
      shape(
        "text",
        { class: "roof-name", x: x(lowest) + 4, y: y(lowest * ceilings.copy_bytes_s) - 24 },
        `${(ceilings.copy_bytes_s / 1e9).toFixed(1)} GB/s`,
      ),
    );
  }
  const most = Math.max(...drawn.map((point) => point.time), 1);
  // Small ones last, so that a large one does not cover them.
  for (const point of [...drawn].sort((a, b) => b.time - a.time)) {
    const dot = shape(
      "circle",
      {
        class: `dot ${point.limit || "unknown"}`,
        cx: x(point.intensity),
        cy: y(point.speed),
        r: 4 + 16 * Math.sqrt(point.time / most),
        tabindex: 0,
        role: "button",
        "aria-label": point.text,
      },
      shape("title", {}, point.text),
    );
    dot.addEventListener("click", () => onchoose(point));
    dot.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      onchoose(point);
    });
    chart.append(dot);
  }
  // Names of those that took most time, where there is room.
  const taken = ceilings ? [[WIDE - FRAME.right - 130, y(roof) - 22, WIDE, y(roof)]] : [];
  for (const point of drawn.slice(0, 12)) {
    const size = 4 + 16 * Math.sqrt(point.time / most),
      full = point.name.replace(/^aten::/, ""),
      short = full.length > 34 ? `${full.slice(0, 33)}…` : full,
      wide = short.length * 6.7,
      onLeft = x(point.intensity) + size + 4 + wide > WIDE - FRAME.right,
      at = onLeft ? x(point.intensity) - size - 4 - wide : x(point.intensity) + size + 4,
      box = [at, y(point.speed) - 8, at + wide, y(point.speed) + 8];
    if (taken.some((other) => box[0] < other[2] && other[0] < box[2] && box[1] < other[3] && other[1] < box[3])) continue;
    taken.push(box);
    chart.append(shape("text", { class: "dot-name", x: at, y: y(point.speed) + 4, "aria-hidden": "true" }, short));
  }
  return chart;
}
