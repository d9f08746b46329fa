// Colours: the operations' from the page's palette, everything else from the style sheet, read anew on a change.

import { page } from './data.js';

const NAMES = ['card', 'ink', 'quiet', 'rule', 'envelope', 'mean', 'mark', 'gate', 'neutral'];
const NEUTRAL = 7;
export const colors = {};

export function readColors() {
  const style = getComputedStyle(document.documentElement);
  for (const name of NAMES) colors[name] = style.getPropertyValue(`--${name}`).trim();
}

export function colorOf(index) {
  return index === NEUTRAL ? colors.neutral : page.palette[index];
}

/** Ink that can be read on a colour: relative luminance of WCAG 2.2. */
export function inkOn(index) {
  if (index === NEUTRAL) return colors.ink;
  const [r, g, b] = [1, 3, 5].map((at) => {
    const c = parseInt(page.palette[index].slice(at, at + 2), 16) / 255;
    return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.19 ? '#111' : '#fff';
}
