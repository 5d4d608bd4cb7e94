// The page: what is asked, over which time, how often; and where the answer is shown.
//
// State is in the address behind `#`, so that a page can be reloaded, kept and sent.

import { Activity } from './activity.js';
import { prettify, queryRange, serverDialect } from './api.js';
import { Completion } from './completion.js';
import { DIALECTS, dialectOf, rememberDialect, rememberedDialect, suggestedDialect } from './dialect.js';
import { clock, day, element, moment, seriesName } from './format.js';
import { Graph } from './graph.js';
import { Overview } from './overview.js';
import { Table } from './table.js';

const RANGES = [['15m', 900], ['1h', 3600], ['6h', 21600], ['24h', 86400], ['7d', 604800], ['30d', 2592000]];
const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400];
const FIRST_QUERY = 'sum by (protocol) (rate(quipu_insert_samples_total[1m]))';
const SERIES_SHOWN_MAX = 100;
const PIXELS_PER_STEP = 3;
const OVERVIEW_SECONDS = 10;

const find = (id) => document.getElementById(id);
const box = find('query');
const hidden = new Set();
let state = readAddress();
let running = null;
let refreshTimer = null;

const completion = new Completion(box, find('completion'), () => state.dialect);
const graph = new Graph(find('graph'), {
  onZoom: (start, end) => change({ from: Math.floor(start), to: Math.ceil(end) }),
  onHover: (index) => table.at(index),
});
const table = new Table(find('table'), find('value-head'), {
  onToggle: (index, name) => {
    const isShown = hidden.delete(name) || (hidden.add(name), false);
    graph.toggle(index, isShown);
    return isShown;
  },
  onFocus: (index) => graph.focus(index),
});
const overview = new Overview({
  onMetric: (name) => ask(/^[a-zA-Z_:][\w:]*$/.test(name) ? name : `{${JSON.stringify(name)}}`),
});
const activity = new Activity({ running: find('running-queries'), top: find('top-queries'), onQuery: ask });

function readAddress() {
  const parameters = new URLSearchParams(location.hash.slice(1));
  const seconds = Number(parameters.get('range'));
  const [from, to] = [Number(parameters.get('from')), Number(parameters.get('to'))];
  return {
    query: parameters.get('query') ?? FIRST_QUERY,
    dialect: dialectOf(parameters.get('dialect'))?.name ?? rememberedDialect(),
    range: RANGES.some(([, known]) => known === seconds) ? seconds : 900,
    refresh: parameters.has('refresh') ? Number(parameters.get('refresh')) || 0 : 10,
    from: from > 0 && to > from ? from : null,
    to: from > 0 && to > from ? to : null,
  };
}

function writeAddress() {
  const parameters = new URLSearchParams({ query: state.query, range: state.range, refresh: state.refresh });
  if (state.dialect) parameters.set('dialect', state.dialect);
  if (state.from) {
    parameters.set('from', state.from);
    parameters.set('to', state.to);
  }
  history.replaceState(null, '', `#${parameters}`);
}

/** Takes over what changed and asks again. */
function change(news) {
  state = { ...state, ...news };
  writeAddress();
  showControls();
  schedule();
  return run();
}

function submit() {
  completion.close();
  hidden.clear();
  return change({ query: box.value.trim() });
}

/** Puts a query into the box and runs it. */
function ask(query) {
  box.value = query;
  grow();
  return submit();
}

/** What somebody chose stays chosen on the next visit. */
function choose(dialect) {
  rememberDialect(dialect);
  completion.close();
  return change({ dialect, query: box.value.trim() });
}

/** Lays out the text in the box, and says why it cannot where it has an error. */
async function layOut() {
  completion.close();
  const query = box.value.trim();
  if (query === '') return;
  try {
    box.value = await prettify(query, state.dialect);
    grow();
  } catch (error) {
    showError(error, query);
  }
}

/** Start, end and step, on a grid that does not move with each refresh. */
function grid() {
  const end = state.to ?? Date.now() / 1000;
  const start = state.from ?? end - state.range;
  const wanted = (end - start) / Math.max(100, find('graph').clientWidth / PIXELS_PER_STEP);
  const step = STEPS.find((known) => known >= wanted) ?? Math.ceil(wanted / 86400) * 86400;
  const last = Math.floor(end / step) * step;
  return { start: Math.ceil(start / step) * step, end: Math.max(last, Math.ceil(start / step) * step), step };
}

async function run() {
  running?.abort();
  const mine = running = new AbortController();
  if (state.query === '') return showNothing('Type a query and press Enter.');
  find('query-form').querySelector('.run').classList.add('busy');
  const { start, end, step } = grid();
  const started = performance.now();
  try {
    const answer = await queryRange({ query: state.query, dialect: state.dialect, start, end, step }, mine.signal);
    if (mine !== running) return;
    show(answer, start, end, step, performance.now() - started);
  } catch (error) {
    if (mine === running && error.name !== 'AbortError') showError(error, state.query);
  } finally {
    if (mine === running) find('query-form').querySelector('.run').classList.remove('busy');
  }
}

function show({ series, notes }, start, end, step, took) {
  find('error').hidden = true;
  find('graph').classList.remove('stale');
  find('notes').hidden = notes.length === 0;
  find('notes').replaceChildren(...notes.map((note) => element('li', '', note)));
  if (series.length === 0) {
    return showNothing('No samples in this time. Try a longer range, or check the names with completion.');
  }
  find('empty').hidden = true;
  find('graph').hidden = false;
  const shown = series.slice(0, SERIES_SHOWN_MAX);
  const data = align(shown, start, end, step);
  const metrics = shown.map(({ metric }) => metric);
  const names = metrics.map(seriesName);
  graph.draw(data, names, hidden);
  table.draw(metrics, names, data, hidden, shown.map(({ histograms }) => histograms?.at(-1)?.[1]));
  const rest = series.length > shown.length ? `, the first ${shown.length} shown` : '';
  const count = series.length === 1 ? '1 series' : `${series.length} series`;
  const counts = shown.some(({ histograms }) => histograms) ? ' · histograms are drawn by their count' : '';
  find('summary').textContent = `${count}${rest}${counts} · step ${step} s · ${Math.round(took)} ms`;
}

/** One list of times, one list of values per series; `null` where there is no sample. Of a histogram, its count. */
function align(series, start, end, step) {
  const length = Math.floor((end - start) / step) + 1;
  const times = Array.from({ length }, (_, index) => start + index * step);
  const rows = series.map(({ values = [], histograms = [] }) => {
    const row = new Array(length).fill(null);
    for (const [time, text] of [...values, ...histograms.map(([at, { count }]) => [at, count])]) {
      const index = Math.round((time - start) / step);
      const value = Number(text.replace('Inf', 'Infinity'));
      if (index >= 0 && index < length && Number.isFinite(value)) row[index] = value;
    }
    return row;
  });
  return [times, ...rows];
}

function showNothing(text) {
  graph.clear();
  table.draw([], [], [[]], hidden);
  find('error').hidden = true;
  find('graph').hidden = true;
  find('empty').hidden = false;
  find('empty').textContent = text;
  find('summary').textContent = '';
}

/** Shows the server's words; for a parse error also the line with a mark under the place. */
function showError(error, query) {
  find('graph').classList.add('stale');
  find('notes').hidden = true;
  find('error').hidden = false;
  find('error-text').textContent = error.message;
  const place = /\b(\d+):(\d+): parse error/.exec(error.message);
  const line = place && query.split('\n')[Number(place[1]) - 1];
  find('error-place').textContent = line === undefined || line === null ? '' : `${line}\n${' '.repeat(characters(line, Number(place[2]) - 1))}^`;
  const suggested = suggestedDialect(error.message, state.dialect);
  const button = find('error-switch');
  button.hidden = !suggested;
  button.textContent = suggested ? `Ask in ${suggested.title}` : '';
  button.value = suggested?.name ?? '';
}

/** Columns of the server are bytes of UTF-8. */
function characters(line, bytes) {
  return new TextDecoder().decode(new TextEncoder().encode(line).slice(0, bytes)).length;
}

function showControls() {
  for (const button of find('ranges').children) {
    button.setAttribute('aria-pressed', String(!state.from && Number(button.value) === state.range));
  }
  find('zoom-out').hidden = !state.from;
  const isOneDay = state.from && day(state.from) === day(state.to);
  find('window').textContent = state.from ? `${moment(state.from)} – ${isOneDay ? clock(state.to, true) : moment(state.to)}` : '';
  find('refresh').value = String(state.refresh);
  const { title, example } = dialectOf(state.dialect) ?? DIALECTS[0];
  find('dialect').value = state.dialect;
  box.placeholder = `${title}, such as ${example}`;
}

function schedule() {
  clearInterval(refreshTimer);
  if (state.refresh > 0 && !state.from) {
    refreshTimer = setInterval(() => document.hidden || run(), state.refresh * 1000);
  }
}

/** The box is as high as its text. */
function grow() {
  box.style.height = 'auto';
  box.style.height = `${box.scrollHeight + 2}px`;
}

/** The server decides for those who never chose; one that does not answer will say so itself. */
async function settleDialect() {
  if (state.dialect) return;
  const name = await serverDialect().catch(() => null);
  state.dialect ??= dialectOf(name)?.name ?? DIALECTS[0].name;
}

function refreshOverview() {
  overview.refresh();
  activity.refresh();
}

async function begin() {
  find('dialect').replaceChildren(...DIALECTS.map(({ name, title }) => new Option(title, name)));
  find('dialect').addEventListener('change', (event) => choose(event.target.value));
  find('error-switch').addEventListener('click', (event) => choose(event.target.value));
  find('format').addEventListener('click', layOut);
  find('ranges').replaceChildren(...RANGES.map(([name, seconds]) => {
    const button = element('button', '', name);
    button.type = 'button';
    button.value = seconds;
    button.addEventListener('click', () => change({ range: seconds, from: null, to: null }));
    return button;
  }));
  if (![...find('refresh').options].some((option) => Number(option.value) === state.refresh)) state.refresh = 10;
  box.value = state.query;
  grow();
  box.addEventListener('input', grow);
  box.addEventListener('change', grow);
  box.addEventListener('keydown', (event) => {
    if (completion.handleKey(event)) return event.preventDefault();
    if (event.key === 'Enter' && !event.shiftKey) {
      event.preventDefault();
      submit();
    }
  });
  find('query-form').addEventListener('submit', (event) => {
    event.preventDefault();
    submit();
  });
  find('refresh').addEventListener('change', (event) => change({ refresh: Number(event.target.value) }));
  find('zoom-out').addEventListener('click', () => change({ from: null, to: null }));
  addEventListener('hashchange', () => {
    const { dialect } = state;
    state = readAddress();
    state.dialect ??= dialect;
    box.value = state.query;
    grow();
    change({});
  });
  refreshOverview();
  setInterval(() => document.hidden || refreshOverview(), OVERVIEW_SECONDS * 1000);
  await settleDialect();
  change({});
}

begin();
