// The strip above the map: the whole scene in one look, with the window that the map shows.

import { layout, plotWidth } from './layout.js';
import { colors } from './palette.js';
import { showWindow, state } from './state.js';

const HEIGHT = 30;
const canvas = document.getElementById('overview');
const picture = document.createElement('canvas');
let drawnFor = '';

function xOf(time) {
  return layout.gutter + (time / state.scene.span) * plotWidth();
}

/** Draws the waveform once per size, scene and set of colours. */
function drawPicture(ratio) {
  const key = [layout.width, layout.gutter, state.scene.label, colors.card, colors.mean, ratio].join();
  if (key === drawnFor) return;
  drawnFor = key;
  picture.width = canvas.width;
  picture.height = canvas.height;
  const context = picture.getContext('2d', { alpha: false });
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.fillStyle = colors.card;
  context.fillRect(0, 0, layout.width, HEIGHT);
  const { values, count } = state.scene.tracks[0].base;
  const scale = (HEIGHT - 6) / 65534;
  const columns = Math.ceil(plotWidth());
  for (let c = 0; c < columns; c++) {
    const first = Math.floor((c / columns) * count);
    const last = Math.max(first + 1, Math.floor(((c + 1) / columns) * count));
    let low = 65535;
    let high = -1;
    for (let i = first; i < last; i++) {
      if (values[3 * i + 2] === 65535) continue;
      low = Math.min(low, values[3 * i]);
      high = Math.max(high, values[3 * i + 1]);
    }
    if (high < 0) continue;
    context.fillStyle = colors.neutral;
    context.fillRect(layout.gutter + c, HEIGHT - 3 - low * scale, 1, low * scale);
    context.fillStyle = colors.mean;
    context.fillRect(layout.gutter + c, HEIGHT - 3 - high * scale, 1, Math.max(1, (high - low) * scale));
  }
}

export function drawOverview() {
  const ratio = Math.min(2, devicePixelRatio || 1);
  const width = Math.round(layout.width * ratio);
  if (canvas.width !== width) {
    canvas.width = width;
    canvas.height = Math.round(HEIGHT * ratio);
  }
  drawPicture(ratio);
  const context = canvas.getContext('2d', { alpha: false });
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.drawImage(picture, 0, 0);
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  const left = xOf(state.view[0]);
  const right = Math.max(left + 3, xOf(state.view[1]));
  context.fillStyle = colors.mean;
  context.globalAlpha = 0.22;
  context.fillRect(left, 0, right - left, HEIGHT);
  context.globalAlpha = 1;
  context.strokeStyle = colors.mean;
  context.strokeRect(left + 0.5, 0.5, right - left - 1, HEIGHT - 1);
  if (!state.selection) return;
  context.fillStyle = colors.mark;
  context.fillRect(xOf(state.selection[0]), HEIGHT - 3, Math.max(2, xOf(state.selection[1]) - xOf(state.selection[0])), 3);
}

/** Moves the window of the map to where the strip is pressed. */
export function watchOverview() {
  let held = false;
  const move = (event) => {
    const x = event.clientX - canvas.getBoundingClientRect().left;
    const time = ((x - layout.gutter) / plotWidth()) * state.scene.span;
    const half = (state.view[1] - state.view[0]) / 2;
    showWindow(time - half, time + half);
  };
  canvas.addEventListener('pointerdown', (event) => {
    held = true;
    canvas.setPointerCapture(event.pointerId);
    move(event);
  });
  canvas.addEventListener('pointermove', (event) => { if (held) move(event); });
  canvas.addEventListener('pointerup', () => { held = false; });
  canvas.addEventListener('pointercancel', () => { held = false; });
}
