// Which language the query box speaks: that of the address, else the one chosen last in this
// browser, else the server's.

/** What the server calls them, what people call them, and an example each. */
export const DIALECTS = [
  { name: 'promql', title: 'PromQL', example: 'rate(process_cpu_seconds_total[1m])' },
  { name: 'metricsql', title: 'MetricsQL', example: 'topk_avg(3, rate(process_cpu_seconds_total))' },
];

const KEPT_AS = 'quipu.dialect';

/** The dialect of that name, or undefined. */
export function dialectOf(name) {
  return DIALECTS.find((dialect) => dialect.name === name);
}

/** The name that was chosen last, or null. */
export function rememberedDialect() {
  try {
    return dialectOf(localStorage.getItem(KEPT_AS))?.name ?? null;
  } catch {
    return null; // storage may be forbidden
  }
}

/** Keeps a name for the next visit. */
export function rememberDialect(name) {
  try {
    localStorage.setItem(KEPT_AS, name);
  } catch {
    // Then the address is all that remembers.
  }
}

/** The dialect that the server's words tell to ask in, unless it is the present one. */
export function suggestedDialect(message, present) {
  const named = dialectOf(/\bask with dialect=(\w+)/.exec(message)?.[1]);
  return named && named.name !== present ? named : undefined;
}
