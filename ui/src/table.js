// The table under the graph: one row per series, with its value now (or under the pointer).

import { clock, element, number } from './format.js';
import { colour } from './graph.js';

function statistics(values) {
  let [min, max, sum, count, last] = [Infinity, -Infinity, 0, 0, null];
  for (const value of values) {
    if (value === null) continue;
    min = Math.min(min, value);
    max = Math.max(max, value);
    sum += value;
    count++;
    last = value;
  }
  if (count === 0) return { min: null, max: null, mean: null, last: null };
  return { min, max, mean: sum / count, last };
}

function nameOf(metric) {
  const { __name__: name = '', ...labels } = metric;
  const parts = [name];
  const pairs = Object.entries(labels);
  if (pairs.length > 0 || name === '') parts.push('{');
  pairs.forEach(([label, value], index) => {
    parts.push(index > 0 ? ', ' : '', element('span', 'label-name', `${label}=`), JSON.stringify(value));
  });
  if (pairs.length > 0 || name === '') parts.push('}');
  return parts;
}

const BARS_MAX = 60;

/** A histogram as text and bars: one bar a bucket, of many the fullest of some neighbours. */
function distribution({ count, sum, buckets = [] }) {
  const counts = buckets.map(([, , , size]) => Number(size));
  const merged = Math.ceil(counts.length / BARS_MAX);
  const max = Math.max(...counts);
  const bars = [];
  for (let index = 0; index < counts.length; index += merged) {
    const bar = element('i', '');
    bar.style.height = `${Math.max(2, 100 * Math.max(...counts.slice(index, index + merged)) / max)}%`;
    bars.push(bar);
  }
  const chart = element('span', 'buckets', ...bars);
  if (buckets.length > 0) chart.title = `${buckets.length} buckets from ${buckets[0][1]} to ${buckets.at(-1)[2]}`;
  return element('span', 'distribution', `count ${number(Number(count))}, sum ${number(Number(sum))}`, chart);
}

/** Rows for the series of the graph. */
export class Table {
  #table;
  #body;
  #head;
  #rows = [];
  #data = [[]];
  #onToggle;
  #onFocus;

  constructor(table, head, { onToggle, onFocus }) {
    this.#table = table;
    this.#body = table.tBodies[0];
    this.#head = head;
    this.#onToggle = onToggle;
    this.#onFocus = onFocus;
    this.#body.addEventListener('mouseleave', () => onFocus(null));
  }

  /** `histograms` has the last histogram of each series that has some. */
  draw(metrics, names, data, hidden, histograms = []) {
    this.#data = data;
    this.#head.textContent = 'Now';
    this.#table.hidden = metrics.length === 0;
    this.#rows = metrics.map((metric, index) => this.#row(metric, names[index], index, hidden, histograms[index]));
    this.#body.replaceChildren(...this.#rows.map(({ row }) => row));
  }

  /** Shows the values at one time, or the last ones. */
  at(index) {
    this.#head.textContent = index === null ? 'Now' : clock(this.#data[0][index], true);
    for (const { cell, last, values } of this.#rows) {
      cell.textContent = number(index === null ? last : values[index]);
    }
  }

  #row(metric, name, index, hidden, histogram) {
    const values = this.#data[index + 1];
    const { min, max, mean, last } = statistics(values);
    const swatch = element('span', 'swatch');
    swatch.style.background = colour(index);
    const cell = element('td', 'number', number(last));
    const row = element('tr', hidden.has(name) ? 'off' : '',
      element('td', '', swatch, ...nameOf(metric), ...(histogram ? [distribution(histogram)] : [])), cell,
      element('td', 'number', number(min)), element('td', 'number', number(mean)), element('td', 'number', number(max)));
    row.tabIndex = 0;
    row.title = 'Click to show or hide';
    const toggle = () => row.classList.toggle('off', !this.#onToggle(index, name));
    row.addEventListener('click', toggle);
    row.addEventListener('keydown', (event) => {
      if (event.key !== 'Enter' && event.key !== ' ') return;
      event.preventDefault();
      toggle();
    });
    row.addEventListener('mouseenter', () => this.#onFocus(index));
    return { row, cell, last, values };
  }
}
