// How much memory was in use at each moment, on each device.

const STACKING = ["PARAMETER", "OPTIMIZER_STATE", "INPUT", "GRADIENT", "ACTIVATION", "TEMPORARY", "AUTOGRAD_DETAIL", "UNKNOWN"];

// The memory of one device: moments, totals and, for each category, how much it had from each moment on.
class MemoryUse {
  constructor(model, device, index) {
    this.model = model;
    const rows = (this.rows = []);
    for (let at = 0; at < model.mem_time.length; at++)
      if (model.mem_device_type[at] === device && model.mem_device_index[at] === index) rows.push(at);
    this.times = Float64Array.from(rows, (at) => model.mem_time[at]);
    const known = device === 0 && model.mem_category;
    this.names = known ? model.about.categories : ["UNKNOWN"];
    this.parts = this.names.map(() => new Float64Array(rows.length));
    this.totals = new Float64Array(rows.length);
    const now = new Float64Array(this.names.length),
      unknown = this.names.length - 1;
    const madeBy = new Map();
    for (const at of rows) if (model.mem_freed[at]) madeBy.set(at + model.mem_freed[at], at);
    const endsBefore = new Map();
    if (known) {
      model.before_bytes.forEach((amount, at) => {
        now[model.before_category[at]] += amount;
        if (model.before_freed[at] >= 0) endsBefore.set(model.before_freed[at], at);
      });
    } else {
      // Only differences are known: the least is drawn as zero.
      let least = 0;
      for (const at of rows) least = Math.min(least, model.mem_total[at]);
      now[0] = (rows.length ? model.mem_total[rows[0]] - model.mem_bytes[rows[0]] : 0) - least;
    }
    this.before = now.slice();
    rows.forEach((at, place) => {
      let part = unknown;
      if (known) {
        if (model.mem_bytes[at] > 0) part = model.mem_category[at];
        else if (madeBy.has(at)) part = model.mem_category[madeBy.get(at)];
        else if (endsBefore.has(at)) part = model.before_category[endsBefore.get(at)];
      }
      now[part] += model.mem_bytes[at];
      let sum = 0;
      for (let one = 0; one < now.length; one++) sum += this.parts[one][place] = now[one];
      this.totals[place] = sum;
    });
    this.peak = this.totals.reduce((best, value, at) => (value > this.totals[best] ? at : best), 0);
    this.known = Boolean(known);
    this.order = STACKING.map((name) => this.names.indexOf(name)).filter(
      (part) => part >= 0 && this.parts[part].some((value) => value > 0),
    );
  }

  // The place in force at a time, -1 before the first.
  at(moment) {
    let low = 0,
      high = this.times.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.times[middle] > moment) high = middle;
      else low = middle + 1;
    }
    return low - 1;
  }

  value(part, place) {
    return place < 0 ? this.before[part] : this.parts[part][place];
  }

  // What was allocated up to a place and not yet freed, by category and by who allocated it.
  held(place) {
    const { model, rows } = this,
      last = rows[place],
      found = new Map();
    const add = (category, amount, row) => {
      const name = row >= 0 ? model.labels[model.label(row)] : "",
        stack = row >= 0 ? model.stackOf(row) : [],
        module = row >= 0 ? model.moduleOf(row) : -1;
      const line = stack.length ? model.frame(stack[0]) : "",
        key = JSON.stringify([category, name, line, module]);
      const one = found.get(key);
      if (one) {
        one.bytes += amount;
        one.count++;
      } else
        found.set(key, {
          category: this.names[category],
          name,
          line,
          module: model.modules[module] || "",
          row,
          bytes: amount,
          count: 1,
        });
    };
    for (let at = 0; at <= place; at++) {
      const row = rows[at],
        freed = model.mem_freed[row] ? row + model.mem_freed[row] : Infinity;
      if (model.mem_bytes[row] > 0 && freed > last)
        add(this.known ? model.mem_category[row] : 0, model.mem_bytes[row], model.mem_event[row]);
    }
    if (this.known)
      model.before_bytes.forEach((amount, at) => {
        if (model.before_freed[at] < 0 || model.before_freed[at] > last) add(model.before_category[at], amount, -1);
      });
    return [...found.values()];
  }
}

// The devices of which memory was recorded, the host first.
export function memoryDevices(model) {
  return model.once("memoryDevices", () => {
    const found = new Map();
    for (let at = 0; at < model.mem_time.length; at++) {
      const device = model.mem_device_type[at],
        index = model.mem_device_index[at],
        key = `${device}:${index}`;
      if (!found.has(key)) found.set(key, { key, device, index, name: device ? model.deviceName(device, index) : "CPU" });
    }
    return [...found.values()].sort((a, b) => a.device - b.device || a.index - b.index);
  });
}

export function memoryUse(model, key) {
  const { device, index } = memoryDevices(model).find((one) => one.key === key);
  return model.once(`memoryUse ${key}`, () => new MemoryUse(model, device, index));
}
