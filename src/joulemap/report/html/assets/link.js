// The address of a view: #t=start,end&sel=start,end&hot=key&fold=1, in seconds. Written after a pause, read at the start.

import { scenes } from './data.js';
import { snapWindow } from './reading.js';
import { changed, select, showScene, showWindow, state } from './state.js';

const PAUSE = 250;
let waiting = 0;
let written = '';

function numbers(text) {
  const pair = (text || '').split(',').map(Number);
  return pair.length === 2 && pair.every(Number.isFinite) && pair[0] < pair[1] ? pair : null;
}

function text(window) {
  return window.map((time) => Number(time.toPrecision(12))).join(',');
}

export function writeLink() {
  clearTimeout(waiting);
  waiting = setTimeout(() => {
    const parts = [`t=${text(state.view)}`];
    if (state.selection) parts.push(`sel=${text(state.selection)}`);
    if (state.hotKey) parts.push(`hot=${encodeURIComponent(state.hotKey)}`);
    if (state.scene !== scenes[0]) parts.push('fold=1');
    written = `#${parts.join('&')}`;
    history.replaceState(null, '', written);
  }, PAUSE);
}

/** Restores the view that the address names; `press` finds what a key of a highlight belongs to. */
export function readLink(press) {
  if (location.hash === written || location.hash.length < 2) return;
  const asked = new URLSearchParams(location.hash.slice(1));
  const fold = asked.get('fold') === '1' && scenes.length > 1;
  if (fold !== (state.scene !== scenes[0])) showScene(fold ? 1 : 0);
  const view = numbers(asked.get('t'));
  if (view) showWindow(...view);
  const selection = numbers(asked.get('sel'));
  if (selection) select(snapWindow(Math.max(0, selection[0]), Math.min(state.scene.span, selection[1])));
  if (asked.get('hot')) press(asked.get('hot'));
  changed('link');
}
