// Requests to the server's Prometheus API. Every function returns a promise of plain data and
// throws ApiError with the server's own words.

/** What the server said instead of an answer. */
export class ApiError extends Error {
  constructor(message, kind) {
    super(message);
    this.kind = kind;
  }
}

async function ask(method, path, parameters, signal) {
  const query = new URLSearchParams();
  for (const [name, value] of parameters) {
    if (value !== null) query.append(name, value);
  }
  let response;
  try {
    response = await fetch(`${path}?${query}`, { method, signal, headers: { accept: 'application/json' } });
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new ApiError('the server does not answer', 'network');
  }
  const text = await response.text();
  let body;
  try {
    body = JSON.parse(text);
  } catch {
    throw new ApiError(text.trim() || `status ${response.status}`, 'http');
  }
  if (!response.ok || body.status === 'error') throw new ApiError(body.error, body.errorType);
  return body;
}

function get(path, parameters, signal) {
  return ask('GET', path, parameters, signal);
}

/** A range query: `{ series: [{ metric, values }], notes }`, times in seconds. */
export async function queryRange({ query, dialect, start, end, step }, signal) {
  const parameters = Object.entries({ query, dialect, start, end, step });
  const body = await get('/api/v1/query_range', parameters, signal);
  const notes = [...(body.warnings ?? []), ...(body.infos ?? [])];
  return { series: body.data.result, notes };
}

/** What is missing or rotten: `[{ place, file, what, startMs, endMs, noticed }]`. */
export async function damage() {
  return (await get('/api/v1/status/damage', [])).data.damage;
}

/** The query in the layout of its language. */
export async function prettify(query, dialect) {
  return (await get('/prettify-query', Object.entries({ query, dialect }))).query;
}

/** The functions of a dialect, with usage and a sentence each. */
export async function functions(dialect) {
  return (await get('/api/v1/functions', [['dialect', dialect]])).data;
}

/** The dialect of queries that do not say one. */
export async function serverDialect() {
  return (await get('/api/v1/functions', [])).dialect;
}

/** The queries that run. */
export async function activeQueries() {
  return (await get('/api/v1/status/active_queries', [])).data;
}

/** Ends a query that runs. */
export async function killQuery(id) {
  await ask('POST', `/api/v1/status/active_queries/${encodeURIComponent(id)}/kill`, []);
}

/** The queries that took most of the time lately. */
export async function topQueries(count) {
  return (await get('/api/v1/status/top_queries', [['topN', count]])).topBySumDuration;
}

/** Names of all metrics, or of those that the server finds first. */
export async function metricNames() {
  return (await get('/api/v1/label/__name__/values', [['limit', 20000]])).data;
}

/** Names of the labels of a metric. */
export async function labelNames(metric) {
  return (await get('/api/v1/labels', metric ? [['match[]', metric]] : [])).data;
}

/** Values of a label of a metric. */
export async function labelValues(name, metric) {
  const parameters = [['limit', 2000]];
  if (metric) parameters.push(['match[]', metric]);
  return (await get(`/api/v1/label/${encodeURIComponent(name)}/values`, parameters)).data;
}

/** Which metrics make the series. */
export async function cardinality(limit) {
  return (await get('/api/v1/status/tsdb', [['limit', limit]])).data;
}

/** The server's own metrics of this moment: a map from `name{labels}` to a number. */
export async function ownMetrics() {
  let response;
  try {
    response = await fetch('/metrics');
  } catch {
    throw new ApiError('the server does not answer', 'network');
  }
  if (!response.ok) throw new ApiError(`status ${response.status}`, 'http');
  const found = new Map();
  for (const line of (await response.text()).split('\n')) {
    if (line === '' || line.startsWith('#')) continue;
    const space = line.lastIndexOf(' ');
    found.set(line.slice(0, space), Number(line.slice(space + 1)));
  }
  return found;
}
