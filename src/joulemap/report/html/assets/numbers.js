// Numbers as joulemap prints them: value and U share one unit and one decimal place, U has two significant digits.
// The same rules as units.py; a test compares the two.

const PREFIXES = new Map([[-30, 'q'], [-27, 'r'], [-24, 'y'], [-21, 'z'], [-18, 'a'], [-15, 'f'], [-12, 'p'], [-9, 'n'],
  [-6, '\u00b5'], [-3, 'm'], [0, ''], [3, 'k'], [6, 'M'], [9, 'G'], [12, 'T'], [15, 'P'], [18, 'E']]);
const THIN = '\u2009';
const COVERAGE = 1.959963984540054;

/** Decimal exponent of the leading digit. */
function exponentOf(value) {
  return value === 0 ? 0 : parseInt(value.toExponential().split('e')[1], 10);
}

/** Rounds to so many decimal places, which may be negative. */
function roundTo(value, places) {
  return places >= 0 ? Number(value.toFixed(Math.min(places, 100))) : Math.round(value * 10 ** places) / 10 ** places;
}

/** Decimal places that leave so many significant digits, counted after rounding. */
function placesOf(value, digits) {
  return digits - 1 - parseInt(value.toExponential(digits - 1).split('e')[1], 10);
}

/** False for units that never take a prefix. */
export function takesPrefix(unit) {
  return !['', '1', '%', '\u00b0C'].includes(unit);
}

function prefixFor(value, unit) {
  if (value === 0 || !takesPrefix(unit)) return 0;
  const exponent = 3 * Math.floor(exponentOf(value) / 3);
  return PREFIXES.has(exponent) ? exponent : 0;
}

function scaled(value, exponent, places) {
  return (value / 10 ** exponent).toFixed(Math.max(0, Math.min(100, places + exponent)));
}

function withUnit(text, exponent, unit) {
  const symbol = (PREFIXES.get(exponent) || '') + (unit === '1' ? '' : unit);
  return symbol ? text + THIN + symbol : text;
}

/** A value with so many significant digits and an SI prefix. */
export function formatSi(value, unit, digits = 3) {
  if (!Number.isFinite(value)) return '\u2014';
  const places = value === 0 ? 0 : placesOf(value, digits);
  const rounded = roundTo(value, places);
  const exponent = prefixFor(rounded, unit);
  return withUnit(scaled(rounded, exponent, places), exponent, unit);
}

/** Value, U (null when nothing is declared) and unit as text. */
export function formatEstimate(value, expanded, unit) {
  if (!Number.isFinite(value)) return '\u2014';
  if (expanded === null || !(expanded > 0)) return formatSi(value, unit, 3) + (expanded === null ? ' (U unknown)' : '');
  const places = placesOf(expanded, 2);
  const [rounded, doubt] = [roundTo(value, places), roundTo(expanded, places)];
  const exponent = prefixFor(Math.max(Math.abs(rounded), doubt), unit);
  return withUnit(`${scaled(rounded, exponent, places)} \u00b1 ${scaled(doubt, exponent, places)}`, exponent, unit);
}

/** The value with the digits that U supports, without U. */
export function formatSupported(value, expanded, unit) {
  if (!Number.isFinite(value)) return '\u2014';
  if (expanded === null || !(expanded > 0)) return formatSi(value, unit, 3);
  const places = placesOf(expanded, 2);
  const rounded = roundTo(value, places);
  const exponent = prefixFor(Math.max(Math.abs(rounded), roundTo(expanded, places)), unit);
  return withUnit(scaled(rounded, exponent, places), exponent, unit);
}

/** An instant, with the digits that a step of the view supports. */
export function formatInstant(time, step) {
  const exponent = prefixFor(Math.max(Math.abs(time), step), 's');
  const places = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  return withUnit(scaled(time, Math.min(0, exponent), places), Math.min(0, exponent), 's');
}

/** An instant on the axis in minutes, hours and days. */
export function formatLong(time) {
  const parts = [['d', 86400], ['h', 3600], ['min', 60]];
  let rest = Math.round(time);
  const said = [];
  for (const [name, length] of parts) {
    const count = Math.floor(rest / length);
    rest -= count * length;
    if (count) said.push(`${count}${THIN}${name}`);
  }
  return said.join(' ') || `0${THIN}min`;
}

/** Time of day in UTC: whole seconds and ns of the origin, s after it, with the digits that a step supports. */
export function formatUtc([seconds, nanoseconds], time, step) {
  const whole = Math.floor(time);
  const places = Math.max(0, Math.min(9, Math.ceil(-Math.log10(step) - 1e-9)));
  let rest = Math.round(nanoseconds + (time - whole) * 1e9);
  const carried = Math.floor(rest / 1e9);
  rest -= carried * 1e9;
  const stamp = new Date((seconds + whole + carried) * 1000).toISOString().slice(0, 19).replace('T', ' ');
  const digits = String(rest).padStart(9, '0').slice(0, places);
  return `${stamp}${places ? `.${digits}` : ''} UTC`;
}

/** Expanded uncertainty of a window's energy; null when the track declares none. See PowerUncertainty. */
export function windowExpanded(track, energy, duration, quantum) {
  const u = track.uncertainty;
  if (!u) return null;
  return COVERAGE * Math.hypot(energy * u.gain, energy * u.clock, duration * u.offset,
    u.noise * Math.sqrt(duration / u.rate), quantum);
}
