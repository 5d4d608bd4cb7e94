// Requests to the server's Prometheus API. Every function returns a promise of plain data and
// throws ApiError with the server's own words.

/** What the server said instead of an answer. */
export class ApiError extends Error {
  constructor(message, kind) {
    super(message);
    this.kind = kind;
  }
}

async function get(path, parameters, signal) {
  const query = new URLSearchParams();
  for (const [name, value] of parameters) query.append(name, value);
  let response;
  try {
    response = await fetch(`${path}?${query}`, { signal, headers: { accept: 'application/json' } });
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
  if (body.status !== 'success') throw new ApiError(body.error, body.errorType);
  return body;
}

/** A range query: `{ series: [{ metric, values }], warnings }`, times in seconds. */
export async function queryRange(query, start, end, step, signal) {
  const parameters = [['query', query], ['start', start], ['end', end], ['step', step]];
  const body = await get('/api/v1/query_range', parameters, signal);
  const notes = [...(body.warnings ?? []), ...(body.infos ?? [])];
  return { series: body.data.result, notes };
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
