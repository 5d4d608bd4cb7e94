// Small tables of the server's work: queries that run, each with an end to it, and those that took
// most of the time lately.

import { activeQueries, killQuery, topQueries } from './api.js';
import { element } from './format.js';

const TOP = 6;

/** Seconds with the unit that makes them short. */
function time(seconds) {
  if (seconds < 1) return `${Number((seconds * 1e3).toPrecision(2))} ms`;
  return `${Number(seconds.toPrecision(3))} s`;
}

/** Fills both tables. `onQuery(text)` is told which query was clicked. */
export class Activity {
  #running;
  #top;
  #onQuery;
  #ending = new Set();

  constructor({ running, top, onQuery }) {
    this.#running = running;
    this.#top = top;
    this.#onQuery = onQuery;
  }

  async refresh() {
    await Promise.all([
      this.#fill(this.#running, activeQueries(), (query) => this.#runningRow(query), 'nothing runs now'),
      this.#fill(this.#top, topQueries(TOP), (query) => this.#topRow(query), 'none of the last ten minutes took long'),
    ]);
  }

  async #fill(table, asked, row, nothing) {
    const body = table.tBodies[0];
    const say = (text) => {
      const cell = element('td', 'label-name', text);
      cell.colSpan = table.tHead.rows[0].cells.length;
      body.replaceChildren(element('tr', '', cell));
    };
    try {
      const rows = (await asked).map(row);
      if (rows.length > 0) body.replaceChildren(...rows);
      else say(nothing);
    } catch (error) {
      say(error.message);
    }
  }

  #runningRow({ id, query, duration }) {
    return element('tr', '', this.#text(query),
      element('td', 'number', time(parseFloat(duration))), element('td', 'number', this.#endButton(id)));
  }

  /** A query ends when it next looks up from its work; until then its button says so. */
  #endButton(id) {
    const isEnding = this.#ending.has(id);
    const button = element('button', 'quiet', isEnding ? 'Ending' : 'End');
    button.type = 'button';
    button.disabled = isEnding;
    button.title = `End the query ${id}`;
    button.addEventListener('click', async () => {
      button.disabled = true;
      try {
        await killQuery(id);
        this.#ending.add(id);
      } catch (error) {
        // One that ended by itself meanwhile is what was wanted.
        if (error.kind !== 'not_found') {
          button.textContent = 'Failed';
          button.title = error.message;
          return;
        }
      }
      await this.refresh();
    });
    return button;
  }

  #topRow({ query, count, sumDurationSeconds }) {
    return element('tr', '', this.#text(query), element('td', 'number', String(count)),
      element('td', 'number', time(sumDurationSeconds / count)), element('td', 'number', time(sumDurationSeconds)));
  }

  #text(query) {
    const button = element('button', 'text', query);
    button.type = 'button';
    button.title = query;
    button.addEventListener('click', () => this.#onQuery(query));
    return element('td', '', button);
  }
}
