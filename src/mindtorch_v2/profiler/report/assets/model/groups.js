// Rows summed up by name and, if asked, by shapes, source line, stack or module: the same keys as key_averages().

const STACK_DEPTH = 5;

export const GROUPINGS = [
  ["name", "Name"],
  ["shape", "Name and shapes"],
  ["line", "Name and source line"],
  ["stack", `Name and stack (${STACK_DEPTH})`],
  ["module", "Name and module"],
];

function secondKey(model, by) {
  if (by === "shape") {
    const none = model.shapeTexts.indexOf("[]"),
      size = model.shapeTexts.length + 1;
    return [size, (row) => (model.shapes[row] >= 0 ? model.inputs[model.shapes[row]][0] : none >= 0 ? none : size - 1)];
  }
  if (by === "module") return [model.modules.length + 1, (row) => model.module[row] + 1];
  if (by === "line" || by === "stack") {
    const depth = by === "line" ? 1 : STACK_DEPTH,
      known = new Map([["", 0]]);
    const numbers = model.stacks.map((stack) => {
      const text = stack.slice(0, depth).join(",");
      if (!known.has(text)) known.set(text, known.size);
      return known.get(text);
    });
    return [known.size, (row) => (model.stack[row] >= 0 ? numbers[model.stack[row]] : 0)];
  }
  return [1, () => 0];
}

// Numbers by key, -1 for a new one: an array where keys are few, which is several times faster than a map.
class KeyNumbers {
  constructor(keys) {
    this.table = keys < 4_000_000 ? new Int32Array(keys).fill(-1) : null;
    this.map = this.table ? null : new Map();
  }

  get(key) {
    return this.table ? this.table[key] : (this.map.get(key) ?? -1);
  }

  set(key, number) {
    if (this.table) this.table[key] = number;
    else this.map.set(key, number);
  }
}

// Which group each row belongs to, and the groups; rows between `from` and `to` (times) only, if given.
export function grouped(model, by, from = -Infinity, to = Infinity) {
  const [width, second] = secondKey(model, by),
    { size, kind, KIND, memory, deviceTotal, self_cost: cost } = model;
  const numbers = new KeyNumbers(64 * 2 * model.labels.length * width),
    group = new Int32Array(size).fill(-1),
    found = [];
  const labels = model.labels.length;
  for (let row = 0; row < size; row++) {
    if (model.start[row] < from || model.start[row] >= to) continue;
    const annotation = kind[row] === KIND.SCOPE || kind[row] === KIND.STEP ? 1 : 0,
      device = model.device_type[row];
    const key = ((device * 2 + annotation) * labels + model.label(row)) * width + second(row);
    let number = numbers.get(key);
    if (number < 0) {
      numbers.set(key, (number = found.length));
      found.push({
        number,
        row,
        name: model.labels[model.label(row)],
        kind: kind[row],
        device,
        family: model.family[row],
        count: 0,
        self: 0,
        corrected: 0,
        total: 0,
        deviceSelf: 0,
        deviceTime: 0,
        flops: 0,
        selfBytes: 0,
        totalBytes: 0,
        selfDeviceBytes: 0,
        totalDeviceBytes: 0,
        shape: by === "shape" ? model.shapeText(row) : "",
        module: by === "module" ? model.module[row] : -1,
        stack: model.stack[row],
      });
    }
    const one = found[number];
    group[row] = number;
    one.count++;
    one.deviceSelf += model.device_time[row];
    one.deviceTime += deviceTotal[row];
    if (!device) {
      one.self += model.self[row];
      if (cost) one.corrected += model.self[row] - cost[row];
      one.total += model.duration[row];
    }
    if (one.stack < 0) one.stack = model.stack[row];
    one.flops += model.flops[row];
    one.selfBytes += memory.self[row];
    one.totalBytes += memory.total[row];
    one.selfDeviceBytes += memory.deviceSelf[row];
    one.totalDeviceBytes += memory.deviceTotal[row];
  }
  return { group, groups: found };
}
