// Asks for the statistics every second and shows what changed since the last answer.
"use strict";

const INTERVAL_MS = 1000;
const KEPT = 120;
const element = (id) => document.getElementById(id);
const steps = [];
let before = null;

function duration(ns) {
  for (const [unit, size] of [["s", 1e9], ["ms", 1e6], ["us", 1e3]]) {
    if (ns >= size) return `${(ns / size).toPrecision(3)} ${unit}`;
  }
  return `${Math.round(ns)} ns`;
}

function cells(values) {
  const row = document.createElement("tr");
  for (const value of values) row.insertCell().textContent = value;
  return row;
}

function drawTrend() {
  const most = Math.max(...steps, 1);
  const points = steps.map((value, at) => `${(at / (KEPT - 1)) * 600},${80 - (value / most) * 76}`).join(" ");
  const line = document.createElementNS("http://www.w3.org/2000/svg", "polyline");
  line.setAttribute("points", points);
  element("trend").replaceChildren(line);
}

function show(now) {
  document.title = `${now.pid} ${now.command}`;
  element("command").textContent = now.command;
  element("state").textContent = `process ${now.pid}, counted for ${now.seconds.toFixed(0)} s`;
  element("steps").textContent = now.steps.toLocaleString("en");
  if (before && now.seconds > before.seconds) {
    const seconds = now.seconds - before.seconds;
    const rate = (now.steps - before.steps) / seconds;
    element("rate").textContent = rate.toPrecision(3);
    element("step").textContent = rate ? duration(1e9 / rate) : "–";
    element("ops").textContent = Math.round((now.count - before.count) / seconds).toLocaleString("en");
    if (rate) steps.push(1e9 / rate);
    steps.splice(0, steps.length - KEPT);
    drawTrend();
    const earlier = new Map(before.ops.map((op) => [op.name, op]));
    const rows = now.ops.map((op) => {
      const last = earlier.get(op.name) || { self_ns: 0, calls: 0 };
      return { op, share: (op.self_ns - last.self_ns) / (seconds * 1e9), calls: (op.calls - last.calls) / seconds };
    });
    rows.sort((a, b) => b.share - a.share);
    element("rows").replaceChildren(...rows.map(({ op, share, calls }) => cells([
      op.name, `${(100 * share).toFixed(1)} %`, calls.toFixed(0), duration(op.self_ns), op.calls.toLocaleString("en"),
      duration(op.p50_ns), duration(op.p99_ns)])));
  }
  before = now;
}

async function ask() {
  try {
    show(await (await fetch("stats.json")).json());
  } catch {
    element("state").textContent = "the process does not answer: it has ended, or is busy";
  }
  setTimeout(ask, INTERVAL_MS);
}

ask();
