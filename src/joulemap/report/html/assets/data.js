// The data blocks of the page as typed arrays. 65535 stands for what was not seen; it is never a value.

const MISSING = 65535;

function decode(id) {
  const text = atob(document.getElementById(id).textContent);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return bytes.buffer;
}

/** A run of bins of one length: `planes` is 3 for low, high, mean and 1 for raw samples. */
function makeSource(values, planes, start, step, raw) {
  const count = values.length / planes;
  return { values, planes, start, step, count, end: start + count * step, raw };
}

function makeSlices(id, head) {
  const buffer = decode(id);
  const n = head.count;
  const start = Float64Array.from(new Uint32Array(buffer, 0, n), (ticks) => ticks * head.tick);
  const duration = Float64Array.from(new Uint32Array(buffer, 4 * n, n), (ticks) => ticks * head.tick);
  const energy = new Float32Array(buffer, 8 * n, n);
  const name = new Uint16Array(buffer, 12 * n, n);
  const doubt = head.expanded ? new Uint16Array(buffer, 14 * n, n) : null;
  const lane = new Uint8Array(buffer, (head.expanded ? 16 : 14) * n, n);
  const byLane = head.lanes.map(() => []);
  for (let i = 0; i < n; i++) byLane[lane[i]].push(i);
  const longest = byLane.map((rows) => rows.reduce((most, i) => Math.max(most, duration[i]), 0));
  return { start, duration, energy, name, doubt, byLane, longest, lanes: head.lanes, names: head.names, tick: head.tick };
}

function makeScene(head, index) {
  const envelope = new Uint16Array(decode(`envelope-${index}`));
  const finer = new Uint16Array(decode(`excerpts-${index}`));
  const size = 3 * head.bins;
  const tracks = head.tracks.map((track, k) => ({
    ...track,
    quantum: (track.high - track.low) / (MISSING - 1),
    base: makeSource(envelope.subarray(k * size, (k + 1) * size), 3, 0, head.span / head.bins, false),
    finer: [],
  }));
  let at = 0;
  for (const excerpt of head.excerpts) {
    const planes = excerpt.raw ? 1 : 3;
    const values = finer.subarray(at, at + planes * excerpt.count);
    at += planes * excerpt.count;
    tracks[excerpt.track].finer.push(makeSource(values, planes, excerpt.start, excerpt.step, excerpt.raw));
  }
  for (const track of tracks) track.finer.sort((a, b) => a.step - b.step);
  const marks = head.marks.at.map((at, k) => ({ at, label: head.marks.labels[head.marks.index[k]] }));
  return { ...head, tracks, marks, slices: makeSlices(`slices-${index}`, head.slices) };
}

/** Everything that the maps show, or an empty list when the page has no map. */
export const page = JSON.parse(document.getElementById('meta').textContent);
export const scenes = page.scenes.map(makeScene);

/** A stored number in the unit of its track; NaN for what was not seen. */
export function valueOf(track, stored) {
  return stored === MISSING ? NaN : track.low + stored * track.quantum;
}

/** U of a slice's energy; null when none is stored. */
export function expandedOf(slices, index) {
  const stored = slices.doubt[index];
  return stored === MISSING ? null : Math.abs(slices.energy[index]) * 2 ** (stored / 1024 - 32);
}

/** The finest bins that hold a window whose columns are narrower than the coarse ones; else the coarse ones. */
export function sourceFor(track, left, right, column) {
  if (column < track.base.step) {
    for (const source of track.finer) {
      if (source.step < track.base.step && source.start <= left + 1e-12 && right <= source.end + 1e-12) return source;
    }
  }
  return track.base;
}

/** Low, high and mean of a bin, in the unit of the track. */
export function binOf(track, source, index) {
  const at = index * source.planes;
  const mean = valueOf(track, source.values[at + source.planes - 1]);
  if (source.planes === 1) return { low: mean, high: mean, mean };
  return { low: valueOf(track, source.values[at]), high: valueOf(track, source.values[at + 1]), mean };
}

/** Energy, covered time and error of storage of whole bins first..last (exclusive) of a power track. */
export function sumBins(track, source, first, last) {
  let sum = 0;
  let seen = 0;
  for (let i = Math.max(0, first); i < Math.min(source.count, last); i++) {
    const stored = source.values[i * source.planes + source.planes - 1];
    if (stored === MISSING) continue;
    sum += track.low + stored * track.quantum;
    seen += 1;
  }
  return { energy: sum * source.step, covered: seen * source.step,
    quantum: (track.quantum / Math.sqrt(12)) * source.step * Math.sqrt(seen) };
}
