// Draws the map: axis, gate, first track with its idle level, lanes, other tracks, selection, cursor.

import { formatInstant, formatLong, formatSi, takesPrefix } from './numbers.js';
import { columnTime, layout, plotWidth, xOf } from './layout.js';
import { drawLane } from './lanes.js';
import { colors } from './palette.js';
import { state } from './state.js';
import { drawTrack } from './tracks.js';

const FONT = '11px system-ui, sans-serif';
const BOLD = '600 12px system-ui, sans-serif';
export const canvas = document.getElementById('map');
const context = canvas ? canvas.getContext('2d', { alpha: false }) : null;
export const timing = { last: 0, count: 0 };

/** Round instants inside [left, right], about `wanted` of them, and the step between them. */
function ticks(left, right, wanted) {
  const rough = (right - left) / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].find((factor) => factor * power >= rough) * power;
  const at = [];
  for (let k = Math.ceil(left / step - 1e-9); k * step <= right + step * 1e-9; k++) at.push(k * step);
  return [at, step];
}

const LONG_STEPS = [60, 120, 300, 600, 1200, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800];

/** Instants of the axis: round seconds, or round minutes, hours and days where a step is that long. */
function timeTicks(left, right, wanted) {
  const rough = (right - left) / wanted;
  if (rough <= 30) return ticks(left, right, wanted);
  const step = LONG_STEPS.find((length) => length >= rough) || 604800 * Math.ceil(rough / 604800);
  const at = [];
  for (let k = Math.ceil(left / step - 1e-9); k * step <= right; k++) at.push(k * step);
  return [at, step];
}

function clipPlot(paint) {
  context.save();
  context.beginPath();
  context.rect(layout.gutter, 0, plotWidth(), layout.height);
  context.clip();
  paint();
  context.restore();
}

function drawBands() {
  const bottom = layout.height;
  for (const band of state.scene.bands) {
    const left = xOf(band.start);
    const right = xOf(band.end);
    context.fillStyle = colors.gate;
    context.fillRect(left, layout.top, right - left, bottom - layout.top);
    context.strokeStyle = colors.quiet;
    context.lineWidth = 1;
    context.beginPath();
    for (const x of [left, right]) {
      context.moveTo(Math.round(x) + 0.5, layout.top);
      context.lineTo(Math.round(x) + 0.5, bottom);
    }
    context.stroke();
  }
}

/** Labels of the bands, over the waveform, where the first track has least to show: at its foot. */
function drawBandLabels() {
  context.font = FONT;
  context.fillStyle = colors.quiet;
  context.textAlign = 'left';
  for (const band of state.scene.bands) {
    const x = xOf(band.start);
    if (x >= layout.gutter) context.fillText(band.label, x + 4, layout.rows[0].y + layout.rows[0].height - 8);
  }
}

/** Instants: a small wedge under the axis, with its label where no other stands in the way. */
function drawInstants() {
  let free = layout.gutter;
  let drawn = -Infinity;
  context.font = FONT;
  context.fillStyle = colors.mark;
  context.textAlign = 'left';
  for (const mark of state.scene.marks) {
    const x = xOf(mark.at);
    if (x < layout.gutter || x > layout.gutter + plotWidth() || x < drawn + 3) continue;
    drawn = x;
    context.beginPath();
    context.moveTo(x - 4, layout.top - 6);
    context.lineTo(x + 4, layout.top - 6);
    context.lineTo(x, layout.top);
    context.fill();
    const width = context.measureText(mark.label).width;
    if (x < free || x + 8 + width > layout.gutter + plotWidth()) continue;
    context.fillStyle = colors.card;
    context.globalAlpha = 0.8;
    context.fillRect(x + 5, layout.top + 1, width + 3, 14);
    context.globalAlpha = 1;
    context.fillStyle = colors.mark;
    context.fillText(mark.label, x + 6, layout.top + 8);
    free = x + 16 + width;
  }
}

function drawTimeAxis() {
  const [at, step] = timeTicks(state.view[0], state.view[1], Math.max(3, plotWidth() / 120));
  const end = Math.max(Math.abs(state.view[0]), Math.abs(state.view[1]));
  const unit = end < 1e-6 ? 1e-9 : end < 1e-3 ? 1e-6 : end < 1 ? 1e-3 : 1;
  const name = { 1e-9: 'ns', 1e-6: '\u00b5s', 1e-3: 'ms', 1: 's' }[unit];
  const places = Math.max(0, -Math.floor(Math.log10(step / unit) + 1e-9));
  context.strokeStyle = colors.rule;
  context.fillStyle = colors.quiet;
  context.lineWidth = 1;
  context.textAlign = 'center';
  context.beginPath();
  for (const time of at) {
    const x = Math.round(xOf(time)) + 0.5;
    context.moveTo(x, layout.top - 4);
    context.lineTo(x, layout.height);
    if (x > layout.gutter + 20 && x < layout.width - 24) {
      context.fillText(step >= 60 ? formatLong(time) : `${(time / unit).toFixed(places)}\u2009${name}`, x, 10);
    }
  }
  context.stroke();
}

function drawValueAxis(row, scale, unit) {
  const [at, step] = ticks(scale.low, scale.high, 5);
  context.textAlign = 'right';
  context.strokeStyle = colors.rule;
  context.fillStyle = colors.quiet;
  const most = Math.max(Math.abs(scale.low), Math.abs(scale.high), 1e-30);
  const exponent = !takesPrefix(unit) ? 0 : Math.max(-12, Math.min(9, 3 * Math.floor(Math.log10(most) / 3 + 1e-9)));
  const places = Math.max(0, exponent - Math.floor(Math.log10(step) + 1e-9));
  const symbol = formatSi(10 ** exponent, unit, 1).split('\u2009')[1] || '';
  context.beginPath();
  for (const value of at) {
    const y = Math.round(scale.yOf(value)) + 0.5;
    if (y < row.y - 1 || y > row.y + row.height + 1) continue;
    context.moveTo(layout.gutter, y);
    context.lineTo(layout.gutter + plotWidth(), y);
    context.fillText(`${(value / 10 ** exponent).toFixed(places)}\u2009${symbol}`, layout.gutter - 8, y);
  }
  context.stroke();
}

function drawLevel(row, scale) {
  const level = state.scene.level;
  if (!level) return;
  const y = Math.round(scale.yOf(level.value)) + 0.5;
  if (y < row.y || y > row.y + row.height) return;
  context.setLineDash([5, 4]);
  context.strokeStyle = colors.quiet;
  context.lineWidth = 1;
  context.beginPath();
  context.moveTo(layout.gutter, y);
  context.lineTo(layout.gutter + plotWidth(), y);
  context.stroke();
  context.setLineDash([]);
  context.textAlign = 'right';
  const x = layout.gutter + plotWidth() - 5;
  const width = context.measureText(level.label).width;
  context.fillStyle = colors.card;
  context.globalAlpha = 0.75;
  context.fillRect(x - width - 4, y - 16, width + 8, 14);
  context.globalAlpha = 1;
  context.fillStyle = colors.quiet;
  context.fillText(level.label, x, y - 9);
}

/** Text that fits: what does not is left out of its middle, since beginnings and ends tell names apart. */
function fit(text, width) {
  if (context.measureText(text).width <= width) return text;
  for (let keep = text.length - 1; keep > 2; keep--) {
    const head = Math.ceil(keep * 0.55);
    const cut = `${text.slice(0, head).trimEnd()}\u2026${text.slice(text.length - (keep - head)).trimStart()}`;
    if (context.measureText(cut).width <= width) return cut;
  }
  return '\u2026';
}

function drawRows() {
  const main = { envelope: colors.envelope, mean: colors.mean };
  const other = { envelope: colors.rule, mean: colors.quiet };
  for (const row of layout.rows) {
    context.font = FONT;
    if (row.lane !== undefined) {
      drawLane(context, row);
      context.fillStyle = colors.quiet;
      context.fillText(fit(state.scene.slices.lanes[row.lane], layout.gutter - 14), 10, row.y + row.height / 2);
      continue;
    }
    const track = state.scene.tracks[row.track];
    if (row.track === 0) {
      const under = (values) => drawValueAxis(row, values, track.unit);
      const scale = drawTrack(context, track, row, { ink: main, main: true, under });
      clipPlot(() => drawLevel(row, scale));
      context.textAlign = 'left';
      context.font = BOLD;
      context.fillStyle = colors.ink;
      context.fillText(fit(track.name, layout.gutter + 20), 10, 10);
    } else {
      drawTrack(context, track, row, { ink: other });
      context.textAlign = 'left';
      context.fillStyle = colors.quiet;
      context.fillText(fit(track.name, layout.gutter - 14), 10, row.y + row.height / 2);
    }
  }
}

function drawMarks() {
  context.strokeStyle = colors.mark;
  context.lineWidth = 1;
  if (state.selection) {
    const [left, right] = state.selection.map(xOf);
    context.globalAlpha = 0.18;
    context.fillStyle = colors.mark;
    context.fillRect(left, layout.top, right - left, layout.height - layout.top);
    context.globalAlpha = 1;
    context.strokeRect(left + 0.5, layout.top + 0.5, right - left - 1, layout.height - layout.top - 1);
  }
  const x = state.cursor !== null ? xOf(state.cursor) : state.pointer ? state.pointer.x : -1;
  if (x < layout.gutter) return;
  context.setLineDash(state.cursor !== null ? [3, 2] : []);
  context.beginPath();
  context.moveTo(Math.round(x) + 0.5, layout.top);
  context.lineTo(Math.round(x) + 0.5, layout.height);
  context.stroke();
  context.setLineDash([]);
}

/** Draws everything; `timing.last` is what it took, in ms. */
export function draw() {
  const started = performance.now();
  const ratio = canvas.width / Math.max(1, layout.width);
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.fillStyle = colors.card;
  context.fillRect(0, 0, layout.width, layout.height);
  context.font = FONT;
  context.textBaseline = 'middle';
  clipPlot(drawBands);
  drawTimeAxis();
  drawRows();
  clipPlot(drawBandLabels);
  clipPlot(drawInstants);
  clipPlot(drawMarks);
  timing.last = performance.now() - started;
  timing.count += 1;
}

/** Fits the canvas to its box and the rows to the canvas. */
export function resizeMap() {
  const ratio = Math.min(2, devicePixelRatio || 1);
  canvas.style.height = `${layout.height}px`;
  canvas.width = Math.round(layout.width * ratio);
  canvas.height = Math.round(layout.height * ratio);
}

export function describeWindow() {
  return `${formatInstant(state.view[0], columnTime())} to ${formatInstant(state.view[1], columnTime())}`;
}
