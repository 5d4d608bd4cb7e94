// The right-hand side: ingestion rate, what the server holds and uses, the biggest metrics.

import { cardinality, damage, ownMetrics, queryRange } from './api.js';
import { bytes, duration, element, number } from './format.js';

const SPARK_SECONDS = 1800;
const SPARK_STEP = 15;
const BIGGEST = 10;
const DAMAGE = 10;
const SVG = 'http://www.w3.org/2000/svg';

function path(className, points) {
  const made = document.createElementNS(SVG, 'path');
  made.setAttribute('class', className);
  made.setAttribute('d', points);
  return made;
}

function sparkline(values) {
  const svg = document.createElementNS(SVG, 'svg');
  svg.setAttribute('viewBox', `0 0 ${SPARK_SECONDS} 100`);
  svg.setAttribute('preserveAspectRatio', 'none');
  svg.setAttribute('role', 'img');
  svg.setAttribute('aria-label', 'samples a second during the last half hour');
  const max = Math.max(1e-9, ...values.map(([, value]) => value));
  const end = Date.now() / 1000;
  const points = values.map(([time, value]) => `${(SPARK_SECONDS - (end - time)).toFixed(1)} ${(98 - 94 * value / max).toFixed(2)}`);
  const [first, last] = [points[0].split(' ')[0], points.at(-1).split(' ')[0]];
  svg.append(path('area', `M${first} 100L${points.join('L')}L${last} 100Z`), path('line', `M${points.join('L')}`));
  return svg;
}

/** Fills the tiles. `onMetric(name)` is told which metric was clicked. */
export class Overview {
  #onMetric;
  #before = null;
  #find = (id) => document.getElementById(id);

  constructor({ onMetric }) {
    this.#onMetric = onMetric;
  }

  async refresh() {
    let metrics;
    try {
      metrics = await ownMetrics();
    } catch (error) {
      this.#health(false, error.message);
      return;
    }
    const value = (name) => metrics.get(name) ?? NaN;
    const uptime = Date.now() / 1000 - value('process_start_time_seconds');
    const isReadOnly = value('quipu_store_read_only') === 1;
    this.#health(!isReadOnly, isReadOnly ? 'read-only: see the log' : `up ${duration(Math.max(0, uptime))}`);
    this.#figures(value, isReadOnly);
    await Promise.all([this.#ingestion(value), this.#biggest(), this.#damage(value)]);
  }

  #health(isGood, text) {
    const health = this.#find('health');
    health.textContent = text;
    health.className = `health ${isGood ? 'good' : 'bad'}`;
  }

  #figures(value, isReadOnly) {
    const disk = value('quipu_store_part_size_bytes') + value('quipu_store_index_size_bytes') + value('quipu_store_wal_size_bytes');
    const samples = value('quipu_store_part_samples') + value('quipu_store_head_samples');
    const perSample = value('quipu_store_part_size_bytes') / value('quipu_store_part_samples');
    // Samples are in memory and in the log until the first flush writes a part.
    const flushed = value('quipu_store_part_samples') > 0;
    const rows = [
      ['Series', number(value('quipu_store_series'))],
      ['Samples', number(samples)],
      ['Disk', bytes(disk)],
      ['  a sample', flushed ? `${number(perSample)} B` : 'not flushed yet'],
      ['  free', bytes(value('quipu_store_free_disk_bytes')), isReadOnly],
      ['Memory', bytes(value('process_resident_memory_bytes'))],
      ['  recent samples', bytes(value('quipu_store_head_size_bytes'))],
      ['Queries running', number(value('quipu_queries_running'))],
    ];
    this.#find('figures').replaceChildren(...rows.flatMap(([name, text, isBad]) => [
      element('dt', '', name.replace('  ', '\u2002')), element('dd', isBad ? 'bad' : '', text),
    ]));
  }

  async #ingestion(value) {
    const now = Date.now() / 1000;
    const total = value('quipu_store_samples_appended_total');
    if (this.#before && total >= this.#before.total && now > this.#before.now) {
      this.#find('ingest-rate').textContent = number((total - this.#before.total) / (now - this.#before.now));
    }
    this.#before = { now, total };
    const end = Math.floor(now / SPARK_STEP) * SPARK_STEP;
    const query = 'sum(rate(quipu_store_samples_appended_total{job="quipu"}[1m]))';
    const frame = this.#find('ingest-spark');
    try {
      const { series } = await queryRange({ query, dialect: 'promql', start: end - SPARK_SECONDS, end, step: SPARK_STEP });
      const values = (series[0]?.values ?? []).map(([time, text]) => [time, Number(text)]);
      if (values.length > 1) {
        frame.replaceChildren(sparkline(values));
        if (this.#find('ingest-rate').textContent === '–') this.#find('ingest-rate').textContent = number(values.at(-1)[1]);
      } else {
        frame.replaceChildren(element('span', 'label-name', 'history appears within a minute'));
      }
    } catch (error) {
      frame.replaceChildren(element('span', 'label-name', error.message));
    }
  }

  /** What is missing or rotten; nothing is asked while nothing ever was. */
  async #damage(value) {
    const list = this.#find('damage');
    const found = value('quipu_store_damage_noticed_total') > 0 ? await damage().catch(() => []) : [];
    const day = (ms) => new Date(ms).toISOString().slice(0, 16).replace('T', ' ');
    const time = ({ startMs, endMs }) => (startMs === null ? '' : `, ${day(startMs)} to ${day(endMs)}`);
    const rows = found.slice(0, DAMAGE).map((one) => element('li', '', `${one.file}${time(one)}: ${one.what}`));
    if (found.length > DAMAGE) rows.push(element('li', '', `and ${found.length - DAMAGE} more`));
    list.hidden = found.length === 0;
    list.replaceChildren(...rows);
  }

  async #biggest() {
    const list = this.#find('biggest');
    try {
      const { seriesCountByMetricName: rows } = await cardinality(BIGGEST);
      const max = Math.max(1, ...rows.map(({ value }) => value));
      list.replaceChildren(...rows.map(({ name, value }) => {
        const bar = element('span', 'bar');
        bar.style.width = `${(100 * value / max).toFixed(1)}%`;
        const button = element('button', '', bar, element('span', 'name', name), element('span', 'count', number(value)));
        button.type = 'button';
        button.title = `${name}: ${value} series`;
        button.addEventListener('click', () => this.#onMetric(name));
        return element('li', '', button);
      }));
      if (rows.length === 0) list.replaceChildren(element('li', 'label-name', 'no series yet'));
    } catch (error) {
      list.replaceChildren(element('li', 'label-name', error.message));
    }
  }
}
