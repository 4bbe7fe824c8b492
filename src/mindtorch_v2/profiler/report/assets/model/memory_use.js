// Memory in use over time, by device.

const STACKING = ["PARAMETER", "OPTIMIZER_STATE", "INPUT", "GRADIENT", "ACTIVATION", "TEMPORARY", "AUTOGRAD_DETAIL", "UNKNOWN"];

const EARLIER = "from before the recording";

// The memory of one device: times, totals and, for each category, the bytes from each time on.
class MemoryUse {
  constructor(model, device, index) {
    Object.assign(this, { model, device });
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
    this.beforeKnown = Boolean(known);
    if (known) {
      model.before_bytes.forEach((amount, at) => {
        now[model.before_category[at]] += amount;
        if (model.before_freed[at] >= 0) endsBefore.set(model.before_freed[at], at);
      });
    } else {
      // What a trace counts from before it, and frees without an allocation.
      let least = 0;
      for (const at of rows) least = Math.min(least, model.mem_total[at]);
      const counted = rows.length ? model.mem_total[rows[0]] - model.mem_bytes[rows[0]] : 0;
      now[0] = counted - least;
      this.beforeKnown = counted > 0;
    }
    this.before = now.slice();
    this.start = now.reduce((sum, amount) => sum + amount, 0);
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
    this.peak = this.totals.reduce((best, value, at) => (value > this.total(best) ? at : best), -1);
    this.known = Boolean(known);
    this.order = STACKING.map((name) => this.names.indexOf(name)).filter(
      (part) => part >= 0 && (this.before[part] > 0 || this.parts[part].some((value) => value > 0)),
    );
  }

  // The place of the last change at or before a time, -1 before the first.
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

  time(place) {
    return place < 0 ? 0 : this.times[place];
  }

  total(place) {
    return place < 0 ? this.start : this.totals[place];
  }

  // How much of what is in use was there before the recording.
  earlier(place) {
    return this.held(place).reduce((sum, item) => sum + (item.earlier ? item.bytes : 0), 0);
  }

  value(part, place) {
    return place < 0 ? this.before[part] : this.parts[part][place];
  }

  // Bytes in use at a place, by category and by the op that allocated them.
  held(place) {
    const { model, rows } = this,
      last = place < 0 ? -1 : rows[place],
      found = new Map();
    const add = (category, amount, row, earlier = false) => {
      const name = row >= 0 ? model.labels[model.label(row)] : earlier ? EARLIER : "outside of any op",
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
          earlier,
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
        if (model.before_freed[at] < 0 || model.before_freed[at] > last) add(model.before_category[at], amount, -1, true);
      });
    const items = [...found.values()];
    if (!this.known) {
      const rest = this.total(place) - items.reduce((sum, item) => sum + item.bytes, 0);
      // The number of blocks is not known.
      if (rest > 0)
        items.push({ category: "UNKNOWN", name: EARLIER, line: "", module: "", row: -1, earlier: true, bytes: rest, count: 0 });
    }
    return items;
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
