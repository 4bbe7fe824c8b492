// The recording as the sections see it: columns as they came, and what follows from them.

import { familyOf, PHASE, PHASES } from "../widgets/palette.js";

const LOADER = "enumerate(DataLoader)";
const OPTIMIZER = "Optimizer.";

// For each row the sum of its own value and those below it; parents come first, so the way back meets complete sums.
function subtreeSums(parent, values) {
  const sums = values.slice();
  for (let row = sums.length - 1; row >= 0; row--) {
    const above = parent[row];
    if (above >= 0) sums[above] += sums[row];
  }
  return sums;
}

export class Model {
  constructor(about, columns) {
    this.about = about;
    Object.assign(this, columns);
    const tables = columns.tables;
    Object.assign(this, {
      names: tables.names,
      threads: tables.threads,
      modules: tables.modules,
      stacks: tables.stacks,
      frames: tables.frames,
      inputs: tables.inputs,
      shapeTexts: tables.shapes,
      typeTexts: tables.types,
    });
    this.size = columns.start.length;
    this.KIND = about.kinds;
    this.kindNames = [];
    for (const [name, number] of Object.entries(about.kinds)) this.kindNames[number] = name;
    this.numberLabels();
    this.derive();
  }

  // What tables show as one row has one label: all steps of the profiler, all first uses of ops.
  numberLabels() {
    const known = new Map();
    const shared = this.tables.labels;
    this.labelOfName = Int32Array.from(this.names, (name, number) => {
      const label = shared[number] ?? name;
      if (!known.has(label)) known.set(label, known.size);
      return known.get(label);
    });
    this.labels = [...known.keys()];
    // For boxes with little room: a Python function without its folders, a backward node without the engine's words.
    const short = (text) =>
      text.replace(/^autograd::engine::evaluate_function: /, "› ").replace(/^[^\s:()]*\/(?=[^\s/]+\.py\(\d+\): )/, "");
    this.shortNames = this.names.map(short);
    this.shortLabels = this.labels.map(short);
  }

  derive() {
    const { size, start, duration, kind, name, device_type: device, KIND } = this;
    const end = (this.end = new Float64Array(size)),
      alone = (this.self = new Float64Array(size));
    const parent = this.parent,
      phase = (this.phase = new Uint8Array(size)),
      family = (this.family = new Uint8Array(size));
    const inherited = new Int8Array(size).fill(-1);
    const special = Int8Array.from(this.names, (text) =>
      text.startsWith(LOADER) ? PHASE.LOADER : text.startsWith(OPTIMIZER) ? PHASE.OPTIMIZER : -1,
    );
    const ofKind = new Uint8Array(this.kindNames.length).fill(PHASE.PYTHON);
    ofKind[KIND.OP] = PHASE.FORWARD;
    ofKind[KIND.RUNTIME] = PHASE.RUNTIME;
    ofKind[KIND.FIRST_USE] = PHASE.FIRST_USE;
    const families = new Int8Array(this.names.length * this.kindNames.length).fill(-1),
      kinds = this.kindNames.length;
    let hostSelf = 0,
      deviceTime = 0;
    for (let row = 0; row < size; row++) {
      end[row] = start[row] + duration[row];
      alone[row] += duration[row];
      // The column holds how far before a row its parent stands; parents come first.
      const above = (parent[row] = parent[row] ? row - parent[row] : -1);
      if (above >= 0) alone[above] -= duration[row];
      const slot = name[row] * kinds + kind[row];
      if (families[slot] < 0) families[slot] = familyOf(this.names[name[row]], this.kindNames[kind[row]]);
      family[row] = families[slot];
      if (device[row]) {
        phase[row] = PHASE.DEVICE;
        continue;
      }
      let own = special[name[row]];
      if (own < 0)
        own = kind[row] === KIND.BACKWARD || kind[row] === KIND.ENGINE ? PHASE.BACKWARD : above >= 0 ? inherited[above] : -1;
      inherited[row] = own;
      phase[row] = own >= 0 && kind[row] !== KIND.FIRST_USE ? own : ofKind[kind[row]];
    }
    for (let row = 0; row < size; row++) {
      if (alone[row] < 0) alone[row] = 0;
      if (!device[row]) hostSelf += alone[row];
      else if (this.isWork(row)) deviceTime += duration[row];
    }
    Object.assign(this, { hostSelf, deviceTime, hasDevice: deviceTime > 0, hasFlops: this.flops.some((value) => value > 0) });
    this.hasMemory = Boolean(this.mem_time);
    this.hasDeviceMemory = this.hasMemory && this.mem_device_type.some(Boolean);
    this.hasHostMemory = this.hasMemory && this.mem_device_type.some((type) => !type);
    this.hasShapes = this.inputs.length > 0;
    this.hasModules = this.module.some((value) => value >= 0);
    this.hasStacks = this.stack.some((value) => value >= 0);
  }

  label(row) {
    return this.labelOfName[this.name[row]];
  }

  // Whether a row is work of a device; a label on a device only covers work.
  isWork(row) {
    return (
      this.device_type[row] !== 0 &&
      this.kind[row] !== this.KIND.SCOPE &&
      this.kind[row] !== this.KIND.STEP &&
      this.kind[row] !== this.KIND.MEMORY
    );
  }

  text(row) {
    return this.names[this.name[row]];
  }

  once(key, make) {
    return ((this._made ??= {})[key] ??= make());
  }

  // Time on devices by row: its own, or that of what it launched, with everything below.
  get deviceTotal() {
    return this.once("deviceTotal", () => (this.hasDevice ? subtreeSums(this.parent, this.device_time) : this.device_time));
  }

  // Bytes by row: allocated minus freed on the CPU and on devices, alone and with everything below, and allocated alone.
  get memory() {
    return this.once("memory", () => {
      const size = this.size,
        made = () => new Float64Array(size);
      const found = { self: made(), total: null, deviceSelf: made(), deviceTotal: null, allocated: made() };
      if (!this.hasMemory) return { ...found, total: found.self, deviceTotal: found.deviceSelf };
      const { mem_event: event, mem_bytes: amount, mem_device_type: device } = this;
      for (let at = 0; at < event.length; at++) {
        if (event[at] < 0) continue;
        (device[at] ? found.deviceSelf : found.self)[event[at]] += amount[at];
        if (amount[at] > 0) found.allocated[event[at]] += amount[at];
      }
      found.total = subtreeSums(this.parent, found.self);
      found.deviceTotal = device.some(Boolean) ? subtreeSums(this.parent, found.deviceSelf) : found.deviceSelf;
      return found;
    });
  }

  // Rows of the profiler's steps, or stretches of equal step number where no rows mark them.
  get steps() {
    return this.once("steps", () => {
      const found = [];
      for (let row = 0; row < this.size; row++) {
        if (this.kind[row] === this.KIND.STEP && !this.device_type[row])
          found.push({ name: this.text(row), start: this.start[row], end: this.end[row] });
      }
      if (found.length) return found;
      const known = new Map();
      for (let row = 0; row < this.size; row++) {
        const one = known.get(this.step[row]);
        if (!one) known.set(this.step[row], { name: `Step ${this.step[row]}`, start: this.start[row], end: this.end[row] });
        else if (this.end[row] > one.end) one.end = this.end[row];
      }
      return known.size > 1 ? [...known.values()].sort((a, b) => a.start - b.start) : [];
    });
  }

  // Self time by phase: for the whole recording and for each step. A thread that waits for its backward pass, which runs on another
  // thread, does nothing meanwhile.
  get phases() {
    return this.once("phases", () => {
      const all = new Float64Array(PHASES.length),
        steps = this.steps,
        each = steps.map(() => new Float64Array(PHASES.length));
      for (let row = 0, at = 0; row < this.size; row++) {
        const own = this.self[row] - (this.backward_wait?.[row] ?? 0);
        const amount = !this.device_type[row] ? Math.max(0, own) : this.isWork(row) ? this.duration[row] : 0;
        all[this.phase[row]] += amount;
        while (at < steps.length && this.start[row] >= steps[at].end) at++;
        if (at < steps.length && this.start[row] >= steps[at].start) each[at][this.phase[row]] += amount;
      }
      return { all, each };
    });
  }

  // For each thread and stream: rows, when it was busy, and whether it is a device's.
  get lanesInfo() {
    return this.once("lanesInfo", () => {
      const found = new Map();
      for (let row = 0; row < this.size; row++) {
        if (this.kind[row] === this.KIND.MEMORY) continue;
        const device = this.device_type[row],
          key = this.tid[row] * 64 + device;
        let lane = found.get(key);
        if (!lane)
          found.set(
            key,
            (lane = {
              key,
              tid: this.tid[row],
              device,
              index: this.device_index[row],
              rows: 0,
              busy: 0,
              until: -1,
              first: this.start[row],
            }),
          );
        lane.rows++;
        if (device && !this.isWork(row)) continue;
        if (this.end[row] > lane.until) {
          lane.busy += this.end[row] - Math.max(lane.until, this.start[row]);
          lane.until = this.end[row];
        }
      }
      return [...found.values()].sort(
        (a, b) => (a.device ? 1 : 0) - (b.device ? 1 : 0) || a.device - b.device || a.index - b.index || a.tid - b.tid,
      );
    });
  }

  laneName(lane) {
    const [ident, name] = this.threads[lane.tid] || [lane.tid, ""];
    if (lane.device) return `${this.deviceName(lane.device, lane.index)} · ${name || `stream ${ident}`}`;
    return name.includes(String(ident)) ? name : `${name} · ${ident}`;
  }

  deviceName(device, index) {
    return `${device === 1 ? "CUDA" : device === 20 ? "NPU" : `Device ${device}`} ${Math.max(0, index)}`;
  }

  // Time in which a device was busy with anything on any stream.
  deviceBusy(device, index) {
    let busy = 0,
      until = -1;
    for (let row = 0; row < this.size; row++) {
      if (this.device_type[row] !== device || this.device_index[row] !== index || !this.isWork(row)) continue;
      if (this.end[row] > until) {
        busy += this.end[row] - Math.max(until, this.start[row]);
        until = this.end[row];
      }
    }
    return busy;
  }

  // Row of the forward op of a backward node and the other way round, of a launch and of what it launched.
  get flows() {
    return this.once("flows", () => {
      const out = new Map(),
        into = new Map();
      const add = (from, to, kind) => {
        if (!out.has(from)) out.set(from, []);
        out.get(from).push([to, kind]);
        into.set(to, [from, kind]);
      };
      for (let at = 0; at < this.forward.length; at++) add(this.forward[at], this.backward[at], "backward");
      for (let at = 0; at < this.launch.length; at++)
        if (this.launch[at] >= 0) add(this.launch[at], this.launched[at], "launch");
      return { out, into };
    });
  }

  stackOf(row) {
    for (let at = row; at >= 0; at = this.parent[at]) if (this.stack[at] >= 0) return this.stacks[this.stack[at]];
    return [];
  }

  frame(number) {
    return this.frames[number];
  }

  moduleOf(row) {
    for (let at = row; at >= 0; at = this.parent[at]) if (this.module[at] >= 0) return this.module[at];
    return -1;
  }

  shapeText(row) {
    const at = this.shapes[row];
    return at >= 0 ? this.shapeTexts[this.inputs[at][0]] : "";
  }

  get span() {
    return Math.max(1, this.about.span_ns);
  }
}
