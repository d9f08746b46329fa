// Draws a lane of slices. Slices that share a column are stacked by how much of it each kind covers, never first wins.

import { shortName } from './labels.js';
import { layout, plotWidth, xOf } from './layout.js';
import { colorOf, inkOn } from './palette.js';
import { state } from './state.js';

const NARROW = 3;
const DIMMED = 0.3;
const KINDS = 8;
const cover = new Float64Array(2 * KINDS);
const labelWidths = new Map();

function labelWidth(context, text) {
  if (!labelWidths.has(text)) labelWidths.set(text, context.measureText(text).width);
  return labelWidths.get(text);
}

const run = { kind: -1, left: 0, right: 0, height: 0 };

/** Paints the columns that wait: side by side, of one kind, and equally covered. */
function flushRun(context, row) {
  if (run.kind < 0) return;
  context.globalAlpha = run.kind < KINDS ? 1 : DIMMED;
  context.fillStyle = colorOf(run.kind % KINDS);
  context.fillRect(run.left, row.y, run.right - run.left, run.height);
  context.globalAlpha = 1;
  run.kind = -1;
}

function paintStack(context, column, row, total) {
  let y = row.y;
  for (let kind = 0; kind < cover.length; kind++) {
    if (!cover[kind]) continue;
    const height = (row.height * cover[kind]) / Math.max(1, total);
    context.globalAlpha = kind < KINDS ? 1 : DIMMED;
    context.fillStyle = colorOf(kind % KINDS);
    context.fillRect(column, y, 1, height);
    y += height;
  }
  context.globalAlpha = 1;
}

function paintColumn(context, column, row) {
  let total = 0;
  let only = -1;
  let kinds = 0;
  for (let kind = 0; kind < cover.length; kind++) {
    if (!cover[kind]) continue;
    total += cover[kind];
    only = kind;
    kinds += 1;
  }
  if (kinds === 1) {
    const height = Math.max(1, Math.round(4 * row.height * Math.min(1, total))) / 4; // of a pixel: equal ones join
    if (run.kind !== only || run.right !== column || run.height !== height) {
      flushRun(context, row);
      run.kind = only;
      run.left = column;
      run.height = height;
    }
    run.right = column + 1;
  } else if (kinds > 1) {
    flushRun(context, row);
    paintStack(context, column, row, total);
  }
  cover.fill(0);
}

/** First slice of the lane that may reach into the window. */
function firstAt(slices, lane, time) {
  const rows = slices.byLane[lane];
  let low = 0;
  let high = rows.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (slices.start[rows[middle]] + slices.longest[lane] < time) low = middle + 1;
    else high = middle;
  }
  return low;
}

function paintSlice(context, slices, i, box, hot) {
  const kind = slices.names[slices.name[i]].color;
  const [left, right, row] = box;
  context.globalAlpha = hot ? 1 : DIMMED;
  context.fillStyle = colorOf(kind);
  context.fillRect(left, row.y, right - left - (right - left > 4 ? 1 : 0), row.height);
  const name = slices.names[slices.name[i]].name;
  const room = right - left - 10;
  const label = [name, shortName(name)].find((text) => labelWidth(context, text) < room);
  if (label) {
    context.globalAlpha = hot ? 1 : 0.6;
    context.fillStyle = inkOn(kind);
    context.fillText(label, left + 5, row.y + row.height / 2 + 0.5);
  }
  context.globalAlpha = 1;
}

export function drawLane(context, row) {
  const slices = state.scene.slices;
  const rows = slices.byLane[row.lane];
  const edge = layout.gutter + plotWidth();
  let column = -1;
  context.textAlign = 'left';
  for (let k = firstAt(slices, row.lane, state.view[0]); k < rows.length; k++) {
    const i = rows[k];
    if (slices.start[i] > state.view[1]) break;
    const left = Math.max(layout.gutter, xOf(slices.start[i]));
    const right = Math.min(edge, xOf(slices.start[i] + slices.duration[i]));
    if (right < layout.gutter) continue;
    const hot = !state.hot || state.hot.has(slices.name[i]);
    if (right - left >= NARROW) {
      paintSlice(context, slices, i, [left, right, row], hot);
      continue;
    }
    const kind = slices.names[slices.name[i]].color + (hot ? 0 : KINDS);
    for (let at = Math.floor(left); at <= Math.floor(right) && at < edge; at++) {
      if (at !== column) {
        paintColumn(context, column, row);
        column = at;
      }
      cover[kind] += Math.max(0, Math.min(right, at + 1) - Math.max(left, at));
    }
  }
  paintColumn(context, column, row);
  flushRun(context, row);
}

/** The slice under an instant, or -1. */
export function readLane(lane, time) {
  const slices = state.scene.slices;
  const rows = slices.byLane[lane];
  for (let k = firstAt(slices, lane, time); k < rows.length && slices.start[rows[k]] <= time; k++) {
    const i = rows[k];
    if (time < slices.start[i] + slices.duration[i]) return i;
  }
  return -1;
}
