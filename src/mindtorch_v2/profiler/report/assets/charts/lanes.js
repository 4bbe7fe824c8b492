// Where events are drawn: a lane for each thread and stream, a slot for each depth in it. In a slot nothing overlaps, so
// starts and ends are both in order and what is visible is found by halving.

export const SLOT = 17;
export const LANE_HEAD = 22;

export class Lanes {
  // python: whether Python functions and modules are drawn.
  constructor(model, python) {
    const { size, start, end, parent, kind, KIND } = model;
    this.model = model;
    this.lanes = model.lanesInfo.map((lane) => ({ ...lane, name: model.laneName(lane), ends: [], open: true }));
    const numbers = new Map(this.lanes.map((lane, at) => [lane.key, at]));
    const lane = (this.laneOf = new Int32Array(size).fill(-1)),
      depth = (this.depth = new Int32Array(size));
    for (let row = 0; row < size; row++) {
      if (kind[row] === KIND.MEMORY) continue;
      if (!python && (kind[row] === KIND.PYTHON || kind[row] === KIND.MODULE)) {
        depth[row] = parent[row] >= 0 ? depth[parent[row]] : -1; // those below move up
        continue;
      }
      const at = (lane[row] = numbers.get(model.tid[row] * 64 + model.device_type[row])),
        { ends } = this.lanes[at];
      let level = parent[row] >= 0 ? depth[parent[row]] + 1 : 0;
      // What overlaps without lying inside goes further down.
      while (level < ends.length && ends[level] > start[row]) level++;
      while (ends.length < level) ends.push(-1);
      ends[level] = end[row];
      depth[row] = level;
    }
    let slots = 0;
    for (const one of this.lanes) {
      one.slot = slots;
      one.depth = one.ends.length;
      slots += one.depth;
      delete one.ends;
    }
    // Rows by slot; within a slot they keep their order.
    const first = (this.first = new Int32Array(slots + 1));
    for (let row = 0; row < size; row++) if (lane[row] >= 0) first[this.lanes[lane[row]].slot + depth[row] + 1]++;
    for (let slot = 0; slot < slots; slot++) first[slot + 1] += first[slot];
    const next = first.slice(),
      total = first[slots];
    this.rows = new Int32Array(total);
    this.starts = new Float64Array(total);
    this.ends = new Float64Array(total);
    this.tint = new Uint8Array(total);
    for (let row = 0; row < size; row++) {
      if (lane[row] < 0) continue;
      const at = next[this.lanes[lane[row]].slot + depth[row]]++;
      this.rows[at] = row;
      this.starts[at] = start[row];
      this.ends[at] = end[row];
    }
    this.place();
  }

  // A color number for every event; `shade` is that of events which a search does not match.
  tintBy(column, matches, shade) {
    const { rows, tint } = this,
      names = this.model.name;
    for (let at = 0; at < rows.length; at++) tint[at] = matches && !matches[names[rows[at]]] ? shade : column[rows[at]];
  }

  // Puts the lanes below one another and gives the height of all.
  place() {
    let y = 0;
    for (const lane of this.lanes) {
      lane.y = y;
      y += LANE_HEAD + (lane.open ? lane.depth : 1) * SLOT + 8;
    }
    this.height = y;
  }

  // First place in a slot whose event ends after a time.
  firstAfter(slot, time) {
    let low = this.first[slot],
      high = this.first[slot + 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.ends[middle] > time) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  // The row at a height and a time, or one within `slack` of it; -1 if there is none.
  at(y, time, slack) {
    for (let number = 0; number < this.lanes.length; number++) {
      const lane = this.lanes[number],
        level = Math.floor((y - lane.y - LANE_HEAD) / SLOT);
      if (level < 0 || level >= (lane.open ? lane.depth : 1)) continue;
      const slot = lane.slot + level,
        at = this.firstAfter(slot, time - slack);
      if (at < this.first[slot + 1] && this.starts[at] <= time + slack) return this.rows[at];
    }
    return -1;
  }

  headAt(y) {
    return this.lanes.find((lane) => y >= lane.y && y < lane.y + LANE_HEAD);
  }

  yOf(row) {
    const lane = this.lanes[this.laneOf[row]];
    return lane ? lane.y + LANE_HEAD + (lane.open ? this.depth[row] * SLOT : 0) : 0;
  }
}

// Rectangles of one frame, kept by color so that each color is set once.
export class Rectangles {
  constructor(colors) {
    this.lists = Array.from({ length: colors }, () => []);
  }

  add(color, x, y, width, height) {
    this.lists[color].push(x, y, width, height);
  }

  paint(context, colors) {
    this.lists.forEach((list, color) => {
      if (!list.length) return;
      context.fillStyle = colors[color];
      for (let at = 0; at < list.length; at += 4) context.fillRect(list[at], list[at + 1], list[at + 2], list[at + 3]);
      list.length = 0;
    });
  }
}

// The visible part of a slot. Events narrower than a pixel or two become one mark per pixel. The pixels are counted from time
// zero, not from the edge of the view, so that marks keep their color while the view moves.
export function collectSlot(lanes, slot, from, to, scale, offset, y, rectangles, labels) {
  const { starts, ends, tint, first } = lanes,
    last = first[slot + 1];
  let at = lanes.firstAfter(slot, from),
    runColor = -1,
    runFrom = 0,
    runTo = 0;
  const height = SLOT - 1;
  while (at < last && starts[at] < to) {
    const wide = (ends[at] - starts[at]) * scale;
    if (wide >= 2) {
      const x = Math.round(starts[at] * scale) - offset,
        right = Math.round(ends[at] * scale) - offset;
      rectangles.add(tint[at], x, y, Math.max(1, right - x - (wide > 4 ? 1 : 0)), height);
      if (wide > 28) labels.push(at, Math.max(0, x), y, right - Math.max(0, x));
      at++;
      continue;
    }
    const pixel = Math.floor(starts[at] * scale),
      until = (pixel + 1) / scale;
    // Skip what begins in the same pixel, in growing strides.
    let stride = 1,
      low = at + 1;
    while (low + stride < last && starts[low + stride] < until) {
      low += stride;
      stride *= 2;
    }
    let high = Math.min(last, low + stride);
    while (low < high) {
      const middle = (low + high) >> 1;
      if (starts[middle] < until) low = middle + 1;
      else high = middle;
    }
    const color = tint[(at + low - 1) >> 1];
    if (color === runColor && pixel <= runTo) runTo = pixel + 1;
    else {
      if (runColor >= 0) rectangles.add(runColor, runFrom - offset, y, runTo - runFrom, height);
      runColor = color;
      runFrom = pixel;
      runTo = pixel + 1;
    }
    // Of those that begin in a pixel only the last can be wide: the others end before it.
    const wideLast = low - 1 > at && (ends[low - 1] - starts[low - 1]) * scale >= 2;
    at = wideLast ? low - 1 : low;
  }
  if (runColor >= 0) rectangles.add(runColor, runFrom - offset, y, runTo - runFrom, height);
}
