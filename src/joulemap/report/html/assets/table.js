// The hotspot tables and the icicle: they are in the page already; here they learn to filter, switch and highlight.

import { shortName } from './labels.js';
import { highlight, state } from './state.js';

const tables = [...document.querySelectorAll('table[data-table]')];
const pressable = [...document.querySelectorAll('[data-key]')];
const filter = document.getElementById('filter');
const grouping = document.getElementById('grouping');
const count = document.getElementById('matches');

function namesOf(element) {
  return element.dataset.names ? element.dataset.names.split(',').map(Number) : [];
}

/** Highlights what has the key, if anything has. */
export function press(key) {
  const element = pressable.find((one) => one.dataset.key === key);
  if (element) highlight(key, namesOf(element));
}

export function showPressed() {
  for (const element of pressable) element.setAttribute('aria-pressed', String(element.dataset.key === state.hotKey));
}

function applyFilter() {
  const wanted = filter.value.trim().toLowerCase();
  const shown = tables.find((table) => !table.hidden);
  let matches = 0;
  for (const row of shown.tBodies[0].rows) {
    row.hidden = wanted !== '' && !row.textContent.toLowerCase().includes(wanted);
    matches += row.hidden ? 0 : 1;
  }
  count.textContent = wanted ? `${matches} of ${shown.tBodies[0].rows.length}` : '';
}

function switchTable() {
  for (const table of tables) table.hidden = table.dataset.table !== grouping.value;
  for (const note of document.querySelectorAll('[data-note]')) note.hidden = note.dataset.note !== grouping.value;
  applyFilter();
}

export function watchTables() {
  for (const element of pressable) {
    element.addEventListener('click', () => press(element.dataset.key));
    if (element.namespaceURI.endsWith('svg')) {
      element.addEventListener('keydown', (event) => {
        if (event.key !== 'Enter' && event.key !== ' ') return;
        event.preventDefault();
        press(element.dataset.key);
      });
    }
  }
  if (filter) filter.addEventListener('input', applyFilter);
  if (grouping) grouping.addEventListener('change', switchTable);
}

/** Hides the labels of the icicle that do not fit their box. */
export function fitLabels() {
  for (const box of document.querySelectorAll('#icicle .box')) {
    const label = box.querySelector('text');
    const room = box.querySelector('rect').getBoundingClientRect().width - 10;
    const name = box.dataset.label;
    label.textContent = name;
    if (label.getComputedTextLength() > room) label.textContent = shortName(name);
    if (label.getComputedTextLength() > room) label.textContent = '';
  }
}
