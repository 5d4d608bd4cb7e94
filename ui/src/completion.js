// Completion in the query box: metric names, functions, label names and label values, by what
// stands before the cursor. Functions are those of the chosen dialect, as the server lists them.

import { functions, labelNames, labelValues, metricNames } from './api.js';
import { element } from './format.js';

const SHOWN_MAX = 50;
const KEPT_MS = 30_000;

const KEYWORDS = {
  promql: 'by without on ignoring group_left group_right offset bool and or unless'.split(' '),
  metricsql: ('by without on ignoring group_left group_right offset bool and or unless default if ifnot ' +
    'limit keep_metric_names WITH').split(' '),
};

/** Lists that the server gave, for a while. */
class Lists {
  #kept = new Map();

  async get(key, load) {
    const kept = this.#kept.get(key);
    if (kept && performance.now() - kept.at < KEPT_MS) return kept.list;
    const list = load().catch(() => []);
    this.#kept.set(key, { at: performance.now(), list });
    if (this.#kept.size > 200) this.#kept.delete(this.#kept.keys().next().value);
    return list;
  }
}

/**
 * What is being typed at the end of `text`: `{ kind, word, metric, label }`.
 * Kinds: `name` outside braces, `label` and `value` inside, `none` inside other strings.
 */
export function context(text) {
  let quote = null;
  let braces = -1;
  let brackets = 0;
  let stringStart = 0;
  for (let i = 0; i < text.length; i++) {
    const c = text[i];
    if (quote) {
      if (c === '\\') i++;
      else if (c === quote) quote = null;
    } else if (c === '"' || c === "'" || c === '`') {
      quote = c;
      stringStart = i + 1;
    } else if (c === '{') braces = i;
    else if (c === '}') braces = -1;
    else if (c === '[') brackets++;
    else if (c === ']') brackets--;
  }
  const metric = braces < 0 ? '' : (/[a-zA-Z_:][\w:]*$/.exec(text.slice(0, braces).trimEnd()) ?? [''])[0];
  if (quote) {
    const label = /([a-zA-Z_]\w*)\s*(?:=~|!~|!=|=)\s*$/.exec(text.slice(0, stringStart - 1));
    if (braces < 0 || !label) return { kind: 'none', word: '' };
    return { kind: 'value', word: text.slice(stringStart), metric, label: label[1] };
  }
  if (brackets > 0) return { kind: 'none', word: '' };
  const word = (/[a-zA-Z_:][\w:]*$/.exec(text) ?? [''])[0];
  if (braces >= 0) return { kind: 'label', word, metric };
  if (/\b(by|without|on|ignoring)\s*\([^)]*$/.test(text)) return { kind: 'label', word, metric: '' };
  return { kind: 'name', word };
}

/** Those of `words` that hold `part`, better matches first. */
export function rank(words, part) {
  const wanted = part.toLowerCase();
  const scored = [];
  for (const word of words) {
    const at = word.text.toLowerCase().indexOf(wanted);
    if (at < 0 || word.text === part) continue;
    scored.push({ word, score: (at === 0 ? 0 : 1000) + at + word.text.length / 1000 });
  }
  scored.sort((a, b) => a.score - b.score);
  return scored.slice(0, SHOWN_MAX).map(({ word }) => word);
}

/** Completes in a textarea, with a list below it. */
export class Completion {
  #box;
  #list;
  #dialect;
  #lists = new Lists();
  #words = [];
  #chosen = -1;
  #asked = 0;

  /** `dialect()` gives the name of the chosen one. */
  constructor(box, list, dialect) {
    this.#box = box;
    this.#list = list;
    this.#dialect = dialect;
    box.addEventListener('input', () => this.#update());
    box.addEventListener('blur', () => setTimeout(() => this.close(), 150));
    list.addEventListener('mousedown', (event) => {
      event.preventDefault();
      const item = event.target.closest('li');
      if (item) this.#accept(Number(item.dataset.index));
    });
  }

  /** Whether the key was one for the list. */
  handleKey(event) {
    if (event.key === ' ' && event.ctrlKey) {
      this.#update(true);
      return true;
    }
    if (this.#list.hidden) return false;
    const count = this.#words.length;
    switch (event.key) {
      case 'ArrowDown': this.#choose((this.#chosen + 1) % count); return true;
      case 'ArrowUp': this.#choose(this.#chosen <= 0 ? count - 1 : this.#chosen - 1); return true;
      case 'Escape': this.close(); return true;
      case 'Tab': this.#accept(Math.max(this.#chosen, 0)); return true;
      case 'Enter':
        if (this.#chosen < 0) return false;
        this.#accept(this.#chosen);
        return true;
      default: return false;
    }
  }

  close() {
    this.#asked++;
    this.#list.hidden = true;
    this.#words = [];
    this.#chosen = -1;
    this.#box.setAttribute('aria-expanded', 'false');
  }

  async #update(evenIfEmpty = false) {
    const asked = ++this.#asked;
    const before = this.#box.value.slice(0, this.#box.selectionStart);
    const found = context(before);
    const wantsNothing = found.kind === 'none' || (found.kind === 'name' && found.word === '' && !evenIfEmpty);
    if (wantsNothing) return this.close();
    const words = await this.#candidates(found);
    if (asked !== this.#asked) return;
    this.#show(rank(words, found.word), found.word);
  }

  async #candidates({ kind, metric, label }) {
    const named = (list, note) => list.map((text) => ({ text, note }));
    if (kind === 'value') {
      const key = `value ${label} ${metric}`;
      return named(await this.#lists.get(key, () => labelValues(label, metric)), 'value');
    }
    if (kind === 'label') {
      return named(await this.#lists.get(`label ${metric}`, () => labelNames(metric)), 'label');
    }
    const dialect = this.#dialect();
    const [names, known] = await Promise.all([
      this.#lists.get('names', metricNames),
      this.#lists.get(`functions ${dialect}`, () => functions(dialect)),
    ]);
    return [
      ...named(names, 'metric'),
      ...known.filter(({ name, experimental }) => name !== '' && !experimental).map(functionWord),
      ...named(KEYWORDS[dialect] ?? [], 'keyword'),
    ];
  }

  #show(words, part) {
    this.#words = words;
    this.#chosen = -1;
    if (words.length === 0) return this.close();
    this.#list.replaceChildren(...words.map((word, index) => item(word, part, index)));
    this.#list.hidden = false;
    this.#list.scrollTop = 0;
    this.#box.setAttribute('aria-expanded', 'true');
  }

  #choose(index) {
    this.#chosen = index >= this.#words.length ? -1 : index;
    [...this.#list.children].forEach((child, at) => {
      child.setAttribute('aria-selected', String(at === this.#chosen));
      if (at === this.#chosen) child.scrollIntoView({ block: 'nearest' });
    });
  }

  #accept(index) {
    const word = this.#words[index];
    if (!word) return;
    const cursor = this.#box.selectionStart;
    const found = context(this.#box.value.slice(0, cursor));
    const start = cursor - found.word.length;
    const after = this.#box.value.slice(cursor).replace(/^[\w:]*/, '');
    let text = found.kind === 'value' ? word.text.replace(/["\\]/g, '\\$&') : word.text;
    if (word.isCalled && !after.startsWith('(')) text += '(';
    this.#box.value = this.#box.value.slice(0, start) + text + after;
    this.#box.setSelectionRange(start + text.length, start + text.length);
    this.close();
    this.#box.dispatchEvent(new Event('change'));
    this.#box.focus();
  }
}

function functionWord({ name, kind, usage, doc }) {
  return { text: name, note: kind, isCalled: true, usage, doc };
}

function item(word, part, index) {
  const at = word.text.toLowerCase().indexOf(part.toLowerCase());
  const name = element('span', '', word.text.slice(0, at), element('b', '', word.text.slice(at, at + part.length)), word.text.slice(at + part.length));
  const made = element('li', '', name, element('small', '', word.note));
  if (word.isCalled) made.append(element('p', '', element('code', '', word.usage), ` ${word.doc}`));
  made.dataset.index = index;
  made.setAttribute('role', 'option');
  made.setAttribute('aria-selected', 'false');
  return made;
}
