// The call tree: nodes with the sums of all calls on the same path of names.

export function hasPython(model) {
  return model.once("python", () => [model.kind.includes(model.KIND.PYTHON) || model.kind.includes(model.KIND.MODULE)])[0];
}

export class CallTree {
  // python: whether calls of Python functions and modules are nodes of their own.
  constructor(model, python) {
    this.model = model;
    const { size, parent, kind, KIND, device_type: device } = model;
    const node = new Int32Array(size).fill(-1),
      known = new Map(),
      labels = model.labels.length;
    this.label = [-1];
    this.above = [-1];
    this.family = [-1];
    const counts = [0],
      totals = [0],
      selfs = [0],
      allocated = [0];
    const bytesOf = model.memory.allocated;
    for (let row = 0; row < size; row++) {
      if (device[row] || kind[row] === KIND.MEMORY) {
        allocated[0] += bytesOf[row];
        continue;
      }
      const over = parent[row] >= 0 ? node[parent[row]] : 0;
      if (!python && (kind[row] === KIND.PYTHON || kind[row] === KIND.MODULE)) {
        node[row] = over;
        selfs[over] += model.self[row];
        allocated[over] += bytesOf[row];
        if (over === 0) totals[0] += model.self[row];
        continue;
      }
      const label = model.label(row),
        key = over * labels + label;
      let at = known.get(key);
      if (at === undefined) {
        known.set(key, (at = this.label.length));
        this.label.push(label);
        this.above.push(over);
        this.family.push(model.family[row]);
        counts.push(0);
        totals.push(0);
        selfs.push(0);
        allocated.push(0);
      }
      node[row] = at;
      counts[at]++;
      totals[at] += model.duration[row];
      selfs[at] += model.self[row];
      allocated[at] += bytesOf[row];
      if (over === 0) totals[0] += model.duration[row];
    }
    // Children come after their parents, so going backwards every sum is complete when it is passed on.
    const sums = allocated.slice();
    for (let at = sums.length - 1; at > 0; at--) sums[this.above[at]] += sums[at];
    Object.assign(this, { counts, totals, selfs, allocatedSelf: allocated, allocated: sums, node, length: counts.length });
    this.children = Array.from({ length: counts.length }, () => []);
    for (let at = 1; at < counts.length; at++) this.children[this.above[at]].push(at);
  }

  // A tree of the same recording with only "All" in it, and the function that gives its node below `over` for a call like `at`.
  blank() {
    const found = Object.create(CallTree.prototype),
      known = new Map(),
      labels = this.model.labels.length;
    Object.assign(found, { model: this.model, label: [-1], above: [-1], family: [-1], counts: [0], totals: [0], selfs: [0] });
    Object.assign(found, { allocated: [0], allocatedSelf: [0] });
    const child = (over, at) => {
      const key = over * labels + this.label[at];
      let one = known.get(key);
      if (one === undefined) {
        known.set(key, (one = found.label.length));
        found.label.push(this.label[at]);
        found.above.push(over);
        found.family.push(this.family[at]);
        for (const list of [found.counts, found.totals, found.selfs, found.allocated, found.allocatedSelf]) list.push(0);
      }
      return one;
    };
    return { found, child };
  }

  // The same calls from the inside out: below "All" each function by its self time, below that its callers. With a label, only
  // that one, by its whole time.
  inverted(label = -1) {
    const { found, child } = this.blank();
    for (let at = 1; at < this.length; at++) {
      if (label >= 0 && (this.label[at] !== label || this.path(at).slice(0, -1).some((one) => this.label[one] === label))) continue;
      const spent = label >= 0 ? this.totals[at] : this.selfs[at],
        bytes = label >= 0 ? this.allocated[at] : this.allocatedSelf[at];
      if (!spent && !bytes) continue;
      found.totals[0] += spent;
      found.allocated[0] += bytes;
      for (let one = at, over = 0; one > 0; one = this.above[one]) {
        over = child(over, one);
        found.counts[over] += this.counts[at];
        found.totals[over] += spent;
        found.allocated[over] += bytes;
        if (this.above[one] === 0) {
          found.selfs[over] += spent;
          found.allocatedSelf[over] += bytes;
        }
      }
    }
    return found.finished();
  }

  // All calls of one label as one node, with what they called below it.
  below(label) {
    const { found, child } = this.blank(),
      node = new Int32Array(this.length).fill(-1);
    for (let at = 1; at < this.length; at++) {
      const over = node[this.above[at]] > 0 ? node[this.above[at]] : this.label[at] === label ? 0 : -1;
      if (over < 0) continue;
      const one = child(over, at);
      node[at] = one;
      found.counts[one] += this.counts[at];
      found.totals[one] += this.totals[at];
      found.selfs[one] += this.selfs[at];
      found.allocated[one] += this.allocated[at];
      found.allocatedSelf[one] += this.allocatedSelf[at];
      if (over === 0) {
        found.totals[0] += this.totals[at];
        found.allocated[0] += this.allocated[at];
      }
    }
    return found.finished();
  }

  finished() {
    this.length = this.counts.length;
    this.children = Array.from({ length: this.length }, () => []);
    for (let at = 1; at < this.length; at++) this.children[this.above[at]].push(at);
    return this;
  }

  // The numbers that a metric draws and its self part.
  values(metric) {
    return metric === "memory" ? [this.allocated, this.allocatedSelf] : [this.totals, this.selfs];
  }

  // Puts the largest child first and says where each node begins, in units of the metric.
  layOut(metric) {
    const [values] = this.values(metric),
      begin = new Float64Array(this.length);
    this.depth = new Int32Array(this.length);
    for (let at = 0; at < this.length; at++) {
      this.children[at].sort((a, b) => values[b] - values[a]);
      let x = begin[at];
      for (const child of this.children[at]) {
        begin[child] = x;
        this.depth[child] = this.depth[at] + 1;
        x += values[child];
      }
    }
    return begin;
  }

  name(at) {
    return at ? this.model.labels[this.label[at]] : "All";
  }

  shortName(at) {
    return at ? this.model.shortLabels[this.label[at]] : "All";
  }

  path(at) {
    const found = [];
    for (let one = at; one > 0; one = this.above[one]) found.unshift(one);
    return found;
  }
}
