// What a place on the map says: the same numbers for the tooltip, the reading cursor and the tests.

import { expandedOf, sourceFor, sumBins } from './data.js';
import { columnTime, rowAt, timeAt } from './layout.js';
import { readLane } from './lanes.js';
import { formatEstimate, formatInstant, formatSi, formatSupported, formatUtc,
  windowExpanded } from './numbers.js';
import { state } from './state.js';
import { readTrack } from './tracks.js';

const COVERAGE = 1.96;

function expandedOfPower(track, power, duration, quantum) {
  const expanded = windowExpanded(track, power * duration, duration, quantum * duration);
  return expanded === null ? null : expanded / duration;
}

function trackLines(track, time) {
  const bin = readTrack(track, time);
  if (!bin) return null;
  const { source } = bin;
  if (Number.isNaN(bin.mean)) return { name: track.name, lines: ['nothing was recorded here'] };
  const length = formatSi(source.step, 's', 3);
  const stored = track.quantum / 2;
  const expanded = track.unit === 'W' ? expandedOfPower(track, bin.mean, source.step, track.quantum / 3.46) : null;
  const quantity = (value) => (track.uncertainty
    ? formatSupported(value, expandedOfPower(track, value, 1 / track.uncertainty.rate, stored), track.unit)
    : formatSi(value, track.unit, 3));
  const lines = [];
  if (source.raw) {
    lines.push(`sample ${track.uncertainty ? formatEstimate(bin.mean, expanded, track.unit) : quantity(bin.mean)}`,
      `one sample of ${length}`);
  } else {
    lines.push(`mean ${track.uncertainty ? formatEstimate(bin.mean, expanded, track.unit) : quantity(bin.mean)}`,
      `${track.spread}: ${quantity(bin.low)}, ${quantity(bin.high)}`, `bin of ${length}`);
  }
  if (track.note) lines.push(track.note);
  lines.push(`stored in 16 bits: \u00b1 ${formatSi(stored, track.unit, 2)}`);
  return { name: track.name, lines, bin };
}

function sliceLines(index) {
  const { slices, tracks } = state.scene;
  const name = slices.names[slices.name[index]];
  const duration = slices.duration[index];
  const energy = slices.energy[index];
  const lines = [...name.facts];
  if (Number.isFinite(energy)) {
    const expanded = slices.doubt ? expandedOf(slices, index) : windowExpanded(tracks[0], energy, duration, 0);
    const power = expanded === null ? null : expanded / duration;
    lines.push(`here: ${formatEstimate(energy, expanded, 'J')} in ${formatSi(duration, 's', 4)}`);
    if (duration > 0) lines.push(`mean ${formatSupported(energy / duration, power, 'W')}`);
  } else {
    const why = tracks[0].unit === 'W' ? `, ${name.none || 'not wholly recorded'}` : '';
    lines.push(`here: ${formatSi(duration, 's', 4)}${why}`);
  }
  return { name: name.name, lines, slice: index };
}

/** What stands in a row at an instant: name and lines; null where there is nothing. */
export function readRow(row, time) {
  if (row.track !== undefined) return trackLines(state.scene.tracks[row.track], time);
  const index = readLane(row.lane, time);
  return index < 0 ? null : sliceLines(index);
}

/** The instant as the axis counts it and, on a clock that says UTC, as the time of day. */
function instantLines(time) {
  const lines = [`t = ${formatInstant(time, columnTime())}`];
  const { origin } = state.scene;
  if (origin && origin.utc) lines.push(formatUtc(origin.utc, time, columnTime()));
  return lines;
}

/** What stands under a position of the canvas. */
export function readAt(x, y) {
  const row = rowAt(y);
  if (!row) return null;
  const time = timeAt(x);
  const reading = readRow(row, time);
  return reading && { ...reading, time, lines: [...reading.lines, ...instantLines(time)] };
}

/** The reading cursor: every row that says something, in one sentence. */
export function readCursor(time) {
  const parts = [];
  state.scene.slices.lanes.forEach((_, lane) => {
    const index = readLane(lane, time);
    if (index >= 0) parts.push(state.scene.slices.names[state.scene.slices.name[index]].name);
  });
  const power = trackLines(state.scene.tracks[0], time);
  if (power) parts.push(power.lines[0]);
  return `${formatInstant(time, columnTime())}: ${parts.join(', ')}`;
}

/** Moves both ends of a window to the edges of the bins that it is read from, so that no bin is cut. */
export function snapWindow(left, right) {
  const source = sourceFor(state.scene.tracks[0], left, right, columnTime());
  const snap = (time) => source.start + Math.round((time - source.start) / source.step) * source.step;
  const start = Math.max(source.start, snap(left));
  return [start, Math.min(source.end, Math.max(start + source.step, snap(right)))];
}

/** Energy and mean power of a snapped window of the first track, each with U. */
export function measureWindow([left, right]) {
  const track = state.scene.tracks[0];
  const source = sourceFor(track, left, right, columnTime());
  const sum = sumBins(track, source, Math.round((left - source.start) / source.step),
    Math.round((right - source.start) / source.step));
  const expanded = windowExpanded(track, sum.energy, sum.covered, sum.quantum * COVERAGE);
  return { ...sum, expanded, duration: right - left, step: source.step };
}

export function describeSelection(window) {
  const m = measureWindow(window);
  if (state.scene.tracks[0].unit !== 'W') return `Selected ${formatSi(m.duration, 's', 4)}`;
  const power = m.expanded === null ? null : m.expanded / m.covered;
  const missing = m.covered < m.duration * (1 - 1e-9) ? `, ${((100 * m.covered) / m.duration).toFixed(0)} % recorded` : '';
  if (!m.covered) return `Selected ${formatSi(m.duration, 's', 4)}: nothing was recorded there`;
  return `Selected ${formatSi(m.duration, 's', 4)}: ${formatEstimate(m.energy, m.expanded, 'J')}, `
    + `mean ${formatEstimate(m.energy / m.covered, power, 'W')}${missing}`;
}
