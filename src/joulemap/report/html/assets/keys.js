// The keyboard on the map: zoom, pan, a reading cursor, a selection made with it.

import { columnTime } from './layout.js';
import { canvas } from './map.js';
import { readCursor, snapWindow } from './reading.js';
import { changed, highlight, pan, select, showWindow, state, zoom } from './state.js';

const said = document.getElementById('said');
let anchor = null;

/** Moves the reading cursor by so many columns and says what stands there. */
function moveCursor(columns) {
  const middle = (state.view[0] + state.view[1]) / 2;
  const from = state.cursor === null ? middle : state.cursor;
  state.cursor = Math.max(0, Math.min(state.scene.span, from + columns * columnTime()));
  const width = state.view[1] - state.view[0];
  if (state.cursor < state.view[0] || state.cursor > state.view[1]) {
    showWindow(state.cursor - width / 2, state.cursor + width / 2);
  }
  said.textContent = readCursor(state.cursor);
  if (anchor !== null) select(snapWindow(...[anchor, state.cursor].sort((a, b) => a - b)));
  changed('cursor');
}

function toggleAnchor() {
  if (state.cursor === null) moveCursor(0);
  anchor = anchor === null ? state.cursor : null;
  said.textContent = anchor === null ? 'selection ends' : 'selection starts at the cursor';
}

function clear() {
  anchor = null;
  state.cursor = null;
  said.textContent = '';
  highlight('', []);
  select(null);
}

const ACTIONS = {
  '+': () => zoom(0.6),
  '=': () => zoom(0.6),
  '-': () => zoom(1 / 0.6),
  _: () => zoom(1 / 0.6),
  0: () => showWindow(0, state.scene.span),
  ArrowLeft: () => pan(-0.15),
  ArrowRight: () => pan(0.15),
  Home: () => showWindow(0, state.view[1] - state.view[0]),
  End: () => showWindow(state.scene.span, state.scene.span + state.view[1] - state.view[0]),
  s: toggleAnchor,
  Escape: clear,
};
const SHIFTED = { ArrowLeft: () => moveCursor(-12), ArrowRight: () => moveCursor(12) };
const ALONE = { ',': () => moveCursor(-1), '.': () => moveCursor(1) };

export function watchKeys() {
  canvas.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const action = (event.shiftKey && SHIFTED[event.key]) || ALONE[event.key] || ACTIONS[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  });
}
