// Colors by family of op and by phase of a step, distinguishable with color blindness.

import { paintIn } from "./dom.js";

export const FAMILIES = [
  // name, light, dark
  ["Matrix products", "#4477aa", "#6699cc"],
  ["Convolution, pooling", "#2a9d8f", "#44bb99"],
  ["Normalization, softmax, loss", "#aa4499", "#cc77bb"],
  ["Reductions, sorting", "#cc6677", "#e08a98"],
  ["Element by element", "#ddaa33", "#e0b94d"],
  ["Copies and new tensors", "#999933", "#a7a449"],
  ["Views", "#b9bcc6", "#70757f"],
  ["Indexing, embedding", "#77bbdd", "#88ccee"],
  ["Backward nodes", "#882255", "#b7528b"],
  ["Python", "#999a93", "#718a7a"],
  ["Ranges and steps", "#949fc2", "#6d6b98"],
  ["Host calls to a device", "#e8875a", "#faab7d"],
  ["Device", "#117755", "#37a976"],
];

const PRODUCTS =
  "mm bmm addmm baddbmm addbmm mv addmv matmul linear bilinear einsum dot vdot outer ger tensordot chain_matmul multi_dot";
const VIEWS =
  "view view_as unsafe_view _unsafe_view reshape reshape_as _reshape_alias t transpose permute expand expand_as as_strided " +
  "slice select split split_with_sizes chunk squeeze unsqueeze narrow unbind detach alias flatten unflatten movedim swapaxes " +
  "numpy_t diagonal lift_fresh result_type resolve_conj resolve_neg _local_scalar_dense item";
const NEW =
  "copy clone contiguous to _to_copy zero zeros zeros_like ones ones_like cat concat stack arange linspace fill set resize";

// By name first, then by what a name contains; the first rule that fits counts.
const NAMED = new Map();
[PRODUCTS, VIEWS, NEW].forEach((names, at) => names.split(" ").forEach((name) => NAMED.set(name, [0, 6, 5][at])));
const RULES = [
  [0, /attention|gemm|gemv|matmul/],
  [1, /conv|pool|fold|upsample|interpolate|pad/],
  [2, /norm|softmax|logsumexp|loss|entropy|dropout/],
  [7, /embedding|index|gather|scatter|take|put|nonzero|masked|where|one_hot/],
  [5, /copy|empty|full|rand|normal_|uniform|multinomial|repeat|memcpy|memset/],
  [3, /sum|mean|max|min|prod|std|var|any$|all$|sort|topk|arg|median|mode|cum|count|unique|bincount|histc/],
];

const SPECIAL = {
  BACKWARD: 8,
  ENGINE: 8,
  PYTHON: 9,
  MODULE: 9,
  SCOPE: 10,
  STEP: 10,
  MEMORY: 5,
  RUNTIME: 11,
  FIRST_USE: 9,
  COPY: 12,
  FILL: 12,
  KERNEL: 12,
};

export function familyOf(name, kindName) {
  if (kindName in SPECIAL) return SPECIAL[kindName];
  // An op in place, of lists of tensors or of the backward pass is of the family of the op it is named after.
  const base = name
    .slice(name.lastIndexOf(":") + 1)
    .toLowerCase()
    .replace(/^_foreach_|^_fused_|_backward$|_$/g, "");
  if (NAMED.has(base)) return NAMED.get(base);
  for (const [family, rule] of RULES) if (rule.test(base)) return family;
  return 4;
}

export const PHASES = [
  ["Forward ops", "#4974af", "#6699cc"],
  ["Backward", "#882255", "#a87194"],
  ["Optimizer", "#ddaa33", "#e0b94d"],
  ["Data loader", "#cc6677", "#d0879e"],
  ["Python between ops", "#8aa39b", "#67776c"],
  ["Host calls to a device", "#e8875a", "#f9a392"],
  ["First use of ops", "#8159dd", "#c8d0ed"],
  ["Device", "#117755", "#32ac74"],
];
export const PHASE = { FORWARD: 0, BACKWARD: 1, OPTIMIZER: 2, LOADER: 3, PYTHON: 4, RUNTIME: 5, FIRST_USE: 6, DEVICE: 7 };

export const CATEGORY_COLOURS = {
  PARAMETER: ["#117755", "#34b07a"],
  OPTIMIZER_STATE: ["#ddaa33", "#e0b94d"],
  INPUT: ["#6f7582", "#afb2c5"],
  GRADIENT: ["#3b88ba", "#6da9e1"],
  ACTIVATION: ["#e26f81", "#ed92a2"],
  TEMPORARY: ["#aa4499", "#cc77bb"],
  AUTOGRAD_DETAIL: ["#882255", "#bd638f"],
  UNKNOWN: ["#b9bcc6", "#5e6b73"],
};

// What canvases draw with; read anew when the theme changes.
export const theme = { dark: false };

export function readTheme() {
  const chosen = document.documentElement.dataset.theme;
  theme.dark = chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  const style = getComputedStyle(document.documentElement);
  for (const name of ["ink", "muted", "faint", "line", "page", "panel", "accent", "mark", "band"])
    theme[name] = style.getPropertyValue(`--${name}`).trim();
  theme.families = FAMILIES.map((entry) => entry[theme.dark ? 2 : 1]);
  theme.phases = PHASES.map((entry) => entry[theme.dark ? 2 : 1]);
  theme.on = (color) => inkOn(color);
  theme.font = "11px ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace";
  theme.letter = 6.63; // width of a character of that font
}

const inks = new Map();

function inkOn(color) {
  let ink = inks.get(color);
  if (!ink) {
    const [r, g, b] = [1, 3, 5].map((at) => (parseInt(color.slice(at, at + 2), 16) / 255) ** 2.2);
    // Above this luminance the dark ink has the higher contrast: every color has one of 4.5 or more.
    ink = 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.197 ? "#14161a" : "#ffffff";
    inks.set(color, ink);
  }
  return ink;
}

export function categoryColor(name) {
  return CATEGORY_COLOURS[name][theme.dark ? 1 : 0];
}

// Colors of elements that were made under the other theme.
export function repaintElements() {
  const twins = new Map();
  for (const [light, dark] of [
    ...FAMILIES.map((entry) => entry.slice(1)),
    ...PHASES.map((entry) => entry.slice(1)),
    ...Object.values(CATEGORY_COLOURS),
  ]) {
    twins.set(theme.dark ? light : dark, theme.dark ? dark : light);
  }
  for (const node of document.querySelectorAll("[data-color]")) {
    const color = twins.get(node.dataset.color);
    if (color) paintIn(node, color);
  }
}
