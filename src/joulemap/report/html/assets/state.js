// What the reader looks at: scene, window, selection, highlight. Everything else is drawn from it.

import { scenes } from './data.js';

const SMALLEST = 1e-7;
const listeners = [];

export const state = {
  scene: scenes[0] || null,
  view: scenes[0] ? [...scenes[0].open] : [0, 1],
  selection: null,
  hot: null,
  hotKey: '',
  pointer: null,
  cursor: null,
  fitHeight: false,
  allTracks: false,
};

/** Calls the listener after every change; `what` names it. */
export function onChange(listener) {
  listeners.push(listener);
}

export function changed(what) {
  for (const listener of listeners) listener(what);
}

/** Shows the window [left, right], moved and widened until it is one that can be shown. */
export function showWindow(left, right) {
  const span = state.scene.span;
  const width = Math.min(span, Math.max(span * SMALLEST, right - left));
  const start = Math.max(0, Math.min(span - width, left));
  state.view = [start, start + width];
  changed('view');
}

export function zoom(factor, around = (state.view[0] + state.view[1]) / 2) {
  showWindow(around - (around - state.view[0]) * factor, around + (state.view[1] - around) * factor);
}

export function pan(share) {
  const step = (state.view[1] - state.view[0]) * share;
  showWindow(state.view[0] + step, state.view[1] + step);
}

/** Highlights slices by name; the same key again takes the highlight away. */
export function highlight(key, names) {
  const same = key === state.hotKey || key === '';
  state.hotKey = same ? '' : key;
  state.hot = same || !names.length ? null : new Set(names);
  changed('hot');
}

export function showScene(index) {
  state.scene = scenes[index];
  state.view = [...state.scene.open];
  state.selection = null;
  state.cursor = null;
  changed('scene');
}

export function select(window) {
  state.selection = window;
  changed('selection');
}
