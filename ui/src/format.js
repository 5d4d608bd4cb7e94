// Numbers, sizes, times and labels as people read them.

const SI = [[1e15, 'P'], [1e12, 'T'], [1e9, 'G'], [1e6, 'M'], [1e3, 'k']];
const BINARY = [[2 ** 50, 'PiB'], [2 ** 40, 'TiB'], [2 ** 30, 'GiB'], [2 ** 20, 'MiB'], [2 ** 10, 'KiB']];

/** `1234567` as `1.235M`; small numbers keep four digits that matter. */
export function number(value) {
  if (value === null || value === undefined) return '–';
  if (!Number.isFinite(value)) return String(value).replace('Infinity', 'Inf');
  const size = Math.abs(value);
  for (const [unit, name] of SI) {
    if (size >= unit * 10 || (size >= unit && unit > 1e3)) return trim(value / unit) + name;
  }
  if (size !== 0 && size < 1e-4) return value.toExponential(2);
  return trim(value);
}

function trim(value) {
  return String(Number(value.toPrecision(4)));
}

/** Bytes with a binary unit. */
export function bytes(value) {
  if (!Number.isFinite(value)) return '–';
  for (const [unit, name] of BINARY) {
    if (value >= unit) return `${trim(value / unit)} ${name}`;
  }
  return `${value} B`;
}

/** Seconds as `3 d 4 h`. */
export function duration(seconds) {
  const units = [[86400, 'd'], [3600, 'h'], [60, 'min'], [1, 's']];
  let first = units.findIndex(([unit]) => seconds >= unit);
  if (first < 0) first = units.length - 1;
  const parts = [];
  let rest = Math.floor(seconds);
  for (const [unit, name] of units.slice(first, first + 2)) {
    const count = Math.floor(rest / unit);
    rest -= count * unit;
    if (count > 0 || parts.length === 0) parts.push(`${count} ${name}`);
  }
  return parts.join(' ');
}

const two = (value) => String(value).padStart(2, '0');

/** `HH:MM` or `HH:MM:SS`, local time. */
export function clock(seconds, withSeconds) {
  const date = new Date(seconds * 1000);
  const text = `${two(date.getHours())}:${two(date.getMinutes())}`;
  return withSeconds ? `${text}:${two(date.getSeconds())}` : text;
}

/** `MM-DD`, local time. */
export function day(seconds) {
  const date = new Date(seconds * 1000);
  return `${two(date.getMonth() + 1)}-${two(date.getDate())}`;
}

/** `YYYY-MM-DD HH:MM:SS`, local time. */
export function moment(seconds) {
  const date = new Date(seconds * 1000);
  return `${date.getFullYear()}-${day(seconds)} ${clock(seconds, true)}`;
}

/** A label set as `name{a="b"}`. */
export function seriesName(metric) {
  const { __name__: name = '', ...labels } = metric;
  const pairs = Object.entries(labels).map(([label, value]) => `${label}=${JSON.stringify(value)}`);
  if (pairs.length === 0) return name || '{}';
  return `${name}{${pairs.join(', ')}}`;
}

/** An element with a class and content. */
export function element(tag, className, ...content) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  made.append(...content);
  return made;
}
