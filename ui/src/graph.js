// The graph: uPlot with our colours, a 24-hour axis, and a selection that becomes the time range.

import uPlot from '../vendor/uPlot.esm.js';
import { clock, day, number } from './format.js';

const COLOURS = [
  '#c2603a', '#3a7ca5', '#5b8c5a', '#8e6bbf', '#c49a2a', '#2f9c95', '#b84a6f', '#7a7f3f', '#5568c8', '#a06a42',
];

/** The colour of the series at that place. */
export function colour(index) {
  return COLOURS[index % COLOURS.length];
}

const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function timeLabels(plot, splits, axis, space, increment) {
  let before = null;
  return splits.map((seconds) => {
    const date = day(seconds);
    const isNewDay = date !== before;
    const isFirst = before === null;
    before = date;
    if (increment >= 86400) return date;
    const time = clock(seconds, increment < 60);
    return isNewDay && !isFirst ? `${time}\n${date}` : time;
  });
}

/** Draws series on one grid of times. */
export class Graph {
  #frame;
  #plot = null;
  #drawn = null;
  #onZoom;
  #onHover;

  /** `onZoom(start, end)` and `onHover(index or null)` are told what the pointer does. */
  constructor(frame, { onZoom, onHover }) {
    this.#frame = frame;
    this.#onZoom = onZoom;
    this.#onHover = onHover;
    new ResizeObserver(() => this.#resize()).observe(frame);
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.#redraw());
  }

  /** Shows `data` (times, then one list of values per series). */
  draw(data, names, hidden) {
    const isSame = this.#drawn && this.#drawn.names.join('\n') === names.join('\n');
    this.#drawn = { data, names, hidden };
    if (isSame && this.#plot) {
      this.#plot.setData(data);
      return;
    }
    this.#redraw();
  }

  clear() {
    this.#plot?.destroy();
    this.#plot = null;
    this.#drawn = null;
  }

  /** Shows or hides one series. */
  toggle(index, isShown) {
    this.#plot?.setSeries(index + 1, { show: isShown });
  }

  /** Brings one series forward, or none. */
  focus(index) {
    this.#plot?.setSeries(index === null ? null : index + 1, { focus: index !== null });
  }

  #size() {
    return { width: this.#frame.clientWidth, height: this.#frame.clientHeight };
  }

  #resize() {
    if (this.#plot && this.#frame.clientWidth > 0) this.#plot.setSize(this.#size());
  }

  #redraw() {
    if (!this.#drawn) return;
    this.#plot?.destroy();
    const { data, names, hidden } = this.#drawn;
    this.#plot = new uPlot(this.#options(names, hidden), data, this.#frame);
  }

  #options(names, hidden) {
    const axis = {
      stroke: style('--faint'),
      grid: { stroke: style('--grid'), width: 1 },
      ticks: { stroke: style('--grid'), width: 1 },
      font: '11px system-ui, sans-serif',
    };
    const isSparse = (plot, index) => {
      // Points alone between gaps would not be seen as a line.
      const values = plot.data[index];
      return values.filter((value) => value !== null).length < 40;
    };
    return {
      ...this.#size(),
      legend: { show: false },
      focus: { alpha: 0.25 },
      cursor: {
        drag: { x: true, y: false, setScale: false },
        focus: { prox: 24 },
        points: { size: 6 },
      },
      scales: { x: { time: true } },
      axes: [
        { ...axis, values: timeLabels, space: 68 },
        { ...axis, size: 58, values: (plot, splits) => splits.map(number) },
      ],
      series: [
        {},
        ...names.map((name, index) => ({
          label: name,
          stroke: colour(index),
          width: 1.5,
          show: !hidden.has(name),
          points: { show: isSparse, size: 4 },
        })),
      ],
      hooks: {
        setSelect: [(plot) => {
          const { left, width } = plot.select;
          if (width < 6) return;
          const [start, end] = [plot.posToVal(left, 'x'), plot.posToVal(left + width, 'x')];
          plot.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
          this.#onZoom(start, end);
        }],
        setCursor: [(plot) => this.#onHover(plot.cursor.idx ?? null)],
      },
    };
  }
}
