// Where everything lies on the canvas, and what a position means.

import { state } from './state.js';

const TOP = 24;
const MAIN = 132;
const LANE = 18;
const ROW = 22;
const OPEN_TRACKS = 6;
const OPEN_LANES = 12;
const RIGHT = 12;

export const layout = { width: 0, height: 0, gutter: 132, rows: [], top: TOP, hidden: 0 };

/** Lays the rows out for the width at hand: first track, lanes, then the other tracks; twelve and six unless asked. */
export function arrange(width) {
  const scene = state.scene;
  layout.width = width;
  layout.gutter = width < 560 ? 84 : 132;
  layout.rows = [];
  let y = TOP;
  const put = (row, height, gap) => {
    layout.rows.push({ ...row, y, height });
    y += height + gap;
  };
  put({ track: 0 }, MAIN, 12);
  const { lanes } = scene.slices;
  const openLanes = state.allTracks ? lanes.length : Math.min(lanes.length, OPEN_LANES);
  for (let lane = 0; lane < openLanes; lane++) put({ lane }, LANE - 2, 2);
  y += scene.tracks.length > 1 ? 8 : 0;
  const open = state.allTracks ? scene.tracks.length : Math.min(scene.tracks.length, OPEN_TRACKS);
  for (let track = 1; track < open; track++) put({ track }, ROW - 4, 4);
  layout.hidden = scene.tracks.length - open + lanes.length - openLanes;
  layout.height = y + 4;
}

export function plotWidth() {
  return Math.max(1, layout.width - layout.gutter - RIGHT);
}

export function xOf(time) {
  return layout.gutter + ((time - state.view[0]) / (state.view[1] - state.view[0])) * plotWidth();
}

export function timeAt(x) {
  return state.view[0] + ((x - layout.gutter) / plotWidth()) * (state.view[1] - state.view[0]);
}

/** Time that one column of the canvas holds. */
export function columnTime() {
  return (state.view[1] - state.view[0]) / plotWidth();
}

export function rowAt(y) {
  return layout.rows.find((row) => y >= row.y - 2 && y < row.y + row.height + 2) || null;
}
