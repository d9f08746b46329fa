// Mouse, pen and fingers on the map: drag pans, Shift-drag (or the Select button) marks, wheel and pinch zoom.

import { canvas } from './map.js';
import { layout, plotWidth, timeAt } from './layout.js';
import { readAt, snapWindow } from './reading.js';
import { changed, pan, select, showWindow, state, zoom } from './state.js';

const tip = document.getElementById('tip');
const fingers = new Map();
let drag = null;
let pinch = null;
export const mode = { select: false };

function place(event) {
  const box = canvas.getBoundingClientRect();
  return { x: event.clientX - box.left, y: event.clientY - box.top };
}

function element(tag, text) {
  const made = document.createElement(tag);
  made.textContent = text;
  return made;
}

/** Shows the tooltip near the pointer; every word goes in as text. */
export function showTip(reading, clientX, clientY) {
  if (!reading) {
    tip.hidden = true;
    return;
  }
  tip.replaceChildren(element('b', reading.name), ...reading.lines.map((line) => element('div', line)));
  tip.hidden = false;
  const left = clientX + 16 + tip.offsetWidth > innerWidth ? clientX - 16 - tip.offsetWidth : clientX + 16;
  const top = clientY + 16 + tip.offsetHeight > innerHeight ? clientY - 16 - tip.offsetHeight : clientY + 16;
  tip.style.left = `${Math.max(4, left) + scrollX}px`;
  tip.style.top = `${Math.max(4, top) + scrollY}px`;
}

function hideTip() {
  tip.hidden = true;
}

function startPinch() {
  const [a, b] = [...fingers.values()];
  pinch = { distance: Math.max(8, Math.abs(a.x - b.x)), view: [...state.view], time: timeAt((a.x + b.x) / 2) };
  drag = null;
}

function movePinch() {
  const [a, b] = [...fingers.values()];
  const factor = pinch.distance / Math.max(8, Math.abs(a.x - b.x));
  const share = ((a.x + b.x) / 2 - layout.gutter) / plotWidth();
  const width = (pinch.view[1] - pinch.view[0]) * factor;
  showWindow(pinch.time - share * width, pinch.time + (1 - share) * width);
}

function moveDrag(at) {
  if (drag.brush) {
    const ends = [drag.time, timeAt(Math.max(layout.gutter, at.x))].sort((a, b) => a - b);
    select(snapWindow(...ends));
    return;
  }
  const shift = ((drag.x - at.x) / plotWidth()) * (drag.view[1] - drag.view[0]);
  showWindow(drag.view[0] + shift, drag.view[1] + shift);
}

function onDown(event) {
  const at = place(event);
  fingers.set(event.pointerId, at);
  canvas.setPointerCapture(event.pointerId);
  if (fingers.size === 2) startPinch();
  else drag = { x: at.x, time: timeAt(at.x), view: [...state.view], brush: event.shiftKey || mode.select };
}

function onMove(event) {
  const at = place(event);
  if (fingers.has(event.pointerId)) fingers.set(event.pointerId, at);
  if (pinch && fingers.size === 2) movePinch();
  else if (drag) moveDrag(at);
  state.pointer = at;
  state.cursor = null;
  if (at.x < layout.gutter || (drag && !drag.brush)) hideTip();
  else showTip(readAt(at.x, at.y), event.clientX, event.clientY);
  changed('pointer');
}

function onUp(event) {
  fingers.delete(event.pointerId);
  pinch = null;
  drag = null;
}

export function watchPointer() {
  canvas.addEventListener('pointerdown', onDown);
  canvas.addEventListener('pointermove', onMove);
  canvas.addEventListener('pointerup', onUp);
  canvas.addEventListener('pointercancel', onUp);
  canvas.addEventListener('pointerleave', () => {
    state.pointer = null;
    hideTip();
    changed('pointer');
  });
  canvas.addEventListener('wheel', (event) => {
    event.preventDefault();
    if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) pan(event.deltaX / 800);
    else zoom(Math.exp(Math.max(-240, Math.min(240, event.deltaY)) * 0.0015), timeAt(place(event).x));
  }, { passive: false });
}
