// Puts the page together: buttons, redraw on change, theme, print.

import { page, scenes } from './data.js';
import { watchKeys } from './keys.js';
import { arrange, layout } from './layout.js';
import { readLink, writeLink } from './link.js';
import { canvas, describeWindow, draw, resizeMap, timing } from './map.js';
import { drawOverview, watchOverview } from './overview.js';
import { readColors } from './palette.js';
import { mode, watchPointer } from './pointer.js';
import { describeSelection, measureWindow, readAt } from './reading.js';
import { changed, onChange, select, showScene, showWindow, state, zoom } from './state.js';
import { fitLabels, press, showPressed, watchTables } from './table.js';
import { formatEstimate, formatLong, formatSi, formatSupported, formatUtc } from './numbers.js';

const byId = (id) => document.getElementById(id);
let pending = 0;

function redraw() {
  if (pending) return;
  pending = requestAnimationFrame(() => {
    pending = 0;
    draw();
    drawOverview();
  });
}

function rearrange() {
  const width = canvas.clientWidth;
  if (!width) return;
  arrange(width);
  resizeMap();
  draw();
  drawOverview();
}

function showSelection() {
  byId('selection').textContent = state.selection ? describeSelection(state.selection) : '';
  byId('clear').hidden = byId('look').hidden = !state.selection;
}

function showTrackButton() {
  const button = byId('more');
  button.hidden = layout.hidden === 0 && !state.allTracks;
  button.textContent = state.allTracks ? 'Show fewer rows' : `Show ${layout.hidden} more rows`;
}

function onButton(id, action) {
  const button = byId(id);
  if (button) button.addEventListener('click', () => action(button));
}

function toggle(button, on) {
  button.setAttribute('aria-pressed', String(on));
}

function watchButtons() {
  onButton('in', () => zoom(0.6));
  onButton('out', () => zoom(1 / 0.6));
  onButton('fit', () => showWindow(0, state.scene.span));
  onButton('pick', (button) => { mode.select = !mode.select; toggle(button, mode.select); });
  onButton('tall', (button) => { state.fitHeight = !state.fitHeight; toggle(button, state.fitHeight); changed('height'); });
  onButton('fold', () => showScene(state.scene === scenes[0] ? 1 : 0));
  onButton('clear', () => select(null));
  onButton('look', () => showWindow(...state.selection));
  onButton('more', () => { state.allTracks = !state.allTracks; changed('scene'); });
  for (const button of document.querySelectorAll('[data-window]')) {
    button.addEventListener('click', () => {
      if (state.scene !== scenes[0]) showScene(0);
      showWindow(...button.dataset.window.split(',').map(Number));
      canvas.focus();
    });
  }
}

function onAnyChange(what) {
  if (what === 'scene') {
    rearrange();
    showTrackButton();
    if (byId('fold')) toggle(byId('fold'), state.scene !== scenes[0]);
    const { label, origin } = state.scene;
    byId('what').textContent = origin ? `${label}; ${origin.label}` : label;
  }
  if (what === 'selection' || what === 'scene') showSelection();
  if (what === 'view' && state.selection) showSelection();
  if (what === 'hot') showPressed();
  if (what !== 'pointer') {
    writeLink();
    canvas.setAttribute('aria-valuetext', describeWindow());
  }
  redraw();
}

function watchLooks() {
  const recolor = () => {
    readColors();
    redraw();
  };
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', recolor);
  const forPrint = (on) => () => {
    document.documentElement.toggleAttribute('data-print', on);
    readColors();
    draw();
    drawOverview();
  };
  addEventListener('beforeprint', forPrint(true));
  addEventListener('afterprint', forPrint(false));
}

watchTables();
if (scenes.length) {
  readColors();
  onChange(onAnyChange);
  rearrange();
  showTrackButton();
  watchButtons();
  watchPointer();
  watchOverview();
  watchKeys();
  watchLooks();
  new ResizeObserver(() => { if (canvas.clientWidth !== layout.width) rearrange(); }).observe(canvas);
  readLink(press);
  addEventListener('hashchange', () => readLink(press));
} else {
  onChange((what) => { if (what === 'hot') showPressed(); });
}
fitLabels();
addEventListener('resize', fitLabels);
// What a script or a test may ask: read-only views of what the page shows.
window.joulemap = Object.freeze({ page, scenes, state, layout, timing, draw, readAt, measureWindow, showWindow, select,
  describeSelection, formatEstimate, formatLong, formatSi, formatSupported, formatUtc });
