// Reading the columns that stand in the page: base64 of deflated bytes, lowest bytes of all numbers first.

function fromBase64(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const packed = atob(text),
    found = new Uint8Array(packed.length);
  for (let at = 0; at < packed.length; at++) found[at] = packed.charCodeAt(at);
  return found;
}

async function inflate(text) {
  const stream = new Blob([fromBase64(text)]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// One function for each kind of array: a loop that meets only one kind runs several times faster.
function wholeNumbers(spec, packed) {
  const { count, width, least } = spec,
    found = new Int32Array(count).fill(least);
  for (let plane = 0; plane < width; plane++) {
    const from = plane * count,
      shift = 8 * plane;
    for (let at = 0; at < count; at++) found[at] += packed[from + at] << shift;
  }
  if (spec.delta) for (let at = 1; at < count; at++) found[at] += found[at - 1];
  return found;
}

function largeNumbers(spec, packed) {
  const { count, width, least } = spec,
    found = new Float64Array(count).fill(least);
  for (let plane = 0, factor = 1; plane < width; plane++, factor *= 256) {
    const from = plane * count;
    for (let at = 0; at < count; at++) found[at] += packed[from + at] * factor;
  }
  if (spec.delta) for (let at = 1; at < count; at++) found[at] += found[at - 1];
  return found;
}

function smallNumbers(spec, packed) {
  const found = new Uint8Array(spec.count).fill(spec.least);
  if (spec.width) for (let at = 0; at < spec.count; at++) found[at] += packed[at];
  return found;
}

const READERS = { u8: smallNumbers, i32: wholeNumbers, f64: largeNumbers };

export async function readColumns() {
  if (typeof DecompressionStream === "undefined") {
    throw new Error(
      "This browser cannot unpack the report (no DecompressionStream). Chrome 103, Firefox 113 and Safari 16.4 or later can.",
    );
  }
  const found = {};
  await Promise.all(
    [...document.querySelectorAll("script[data-column]")].map(async (script) => {
      const spec = JSON.parse(script.dataset.spec),
        text = script.textContent;
      const packed = text ? await inflate(text) : null;
      found[script.dataset.column] =
        spec.kind === "json" ? JSON.parse(new TextDecoder().decode(packed)) : READERS[spec.kind](spec, packed);
      script.remove();
    }),
  );
  return found;
}
