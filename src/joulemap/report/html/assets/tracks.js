// Draws a track: min/max envelope and mean line, one column of the canvas at a time.

import { binOf, sourceFor } from './data.js';
import { columnTime, layout, plotWidth, timeAt } from './layout.js';
import { state } from './state.js';

const MISSING_STORED = 65535;
const low = new Float64Array(8192);
const high = new Float64Array(8192);
const mean = new Float64Array(8192);

/** Fills low, high and mean of every column, in stored units; NaN where nothing was seen. Returns their number. */
function fillColumns(track) {
  const columns = Math.min(low.length, Math.ceil(plotWidth()));
  const width = columnTime();
  let source = track.base;
  for (let c = 0; c < columns; c++) {
    const left = timeAt(layout.gutter + c);
    const right = left + width;
    if (track.finer.length) source = sourceFor(track, left, right, width);
    const { values, planes, step, start, count } = source;
    const first = Math.max(0, Math.floor((left - start) / step));
    const last = Math.min(count, Math.max(first + 1, Math.ceil((right - start) / step)));
    let least = Infinity;
    let most = -Infinity;
    let sum = 0;
    let seen = 0;
    for (let i = first; i < last; i++) {
      const at = i * planes;
      const middle = values[at + planes - 1];
      if (middle === MISSING_STORED) continue;
      if (values[at] < least) least = values[at];
      const top = values[planes === 1 ? at : at + 1];
      if (top > most) most = top;
      sum += middle;
      seen += 1;
    }
    low[c] = seen ? least : NaN;
    high[c] = seen ? most : NaN;
    mean[c] = seen ? sum / seen : NaN;
  }
  return columns;
}

/** The range of values that the row shows, in stored units. */
function rangeOf(track, columns, fit) {
  if (!fit) return [0, MISSING_STORED - 1];
  let least = Infinity;
  let most = -Infinity;
  for (let c = 0; c < columns; c++) {
    if (low[c] < least) least = low[c];
    if (high[c] > most) most = high[c];
  }
  if (!(most >= least)) return [0, MISSING_STORED - 1];
  const margin = Math.max(1, (most - least) * 0.06);
  return [least - margin, most + margin];
}

/** Draws one track into its row; `under` is called before, with the scale of its values, for what lies below it. */
export function drawTrack(context, track, row, { ink, main = false, under = null }) {
  const columns = fillColumns(track);
  const [bottom, top] = rangeOf(track, columns, main && state.fitHeight);
  const scale = row.height / (top - bottom);
  const base = row.y + row.height;
  const y = (stored) => base - (stored - bottom) * scale;
  const scaleOf = {
    yOf: (value) => y((value - track.low) / track.quantum),
    low: track.low + bottom * track.quantum,
    high: track.low + top * track.quantum,
  };
  if (under) under(scaleOf);
  const withMean = !(state.scene.period && columnTime() > state.scene.period / 2);
  for (let c = 0; c < columns;) {
    if (Number.isNaN(mean[c])) { c += 1; continue; }
    const begin = c;
    while (c < columns && !Number.isNaN(mean[c])) c += 1;
    const x0 = layout.gutter;
    context.beginPath();
    for (let k = begin; k < c; k++) { context.lineTo(x0 + k, y(high[k])); context.lineTo(x0 + k + 1, y(high[k])); }
    for (let k = c - 1; k >= begin; k--) {
      const floor = Math.max(y(low[k]), y(high[k]) + 0.8);
      context.lineTo(x0 + k + 1, floor);
      context.lineTo(x0 + k, floor);
    }
    context.fillStyle = ink.envelope;
    context.fill();
    if (!withMean) continue;
    context.beginPath();
    for (let k = begin; k < c; k++) context.lineTo(x0 + k + 0.5, y(mean[k]));
    context.strokeStyle = ink.mean;
    context.lineWidth = main ? 1.4 : 1;
    context.stroke();
  }
  return scaleOf;
}

/** The bin under an instant as it is drawn: its window and its three values; null outside. */
export function readTrack(track, time) {
  const source = sourceFor(track, time, time, columnTime());
  const index = Math.floor((time - source.start) / source.step);
  if (index < 0 || index >= source.count) return null;
  return { ...binOf(track, source, index), source, index, start: source.start + index * source.step };
}
