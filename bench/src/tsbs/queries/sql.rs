//! The query types in SQL over the tables `tags` and `cpu`.

use super::Query;
use crate::instant::format_rfc3339;

/// The statement; `bucket` is the expression that gives a row's minute or hour.
pub(super) fn statement(query: &Query, bucket: &str) -> String {
    let (start, end) = (format_rfc3339(query.start_ns), format_rfc3339(query.end_ns));
    let range = format!("time >= '{start}' AND time < '{end}'");
    if query.hosts.is_empty() {
        return averages(query, bucket, &range);
    }
    let columns = query.fields().iter().map(|field| format!("max({field}) AS max_{field}"));
    let columns = columns.collect::<Vec<_>>().join(", ");
    let hosts = query.hosts.iter().map(|host| format!("'{host}'")).collect::<Vec<_>>().join(", ");
    format!(
        "SELECT {bucket} AS bucket, {columns} FROM cpu \
         WHERE tags_id IN (SELECT id FROM tags WHERE hostname IN ({hosts})) AND {range} \
         GROUP BY bucket ORDER BY bucket"
    )
}

/// Averages of each host are made before their names are joined to them.
fn averages(query: &Query, bucket: &str, range: &str) -> String {
    let columns = query.fields().iter().map(|field| format!("avg({field}) AS mean_{field}"));
    let columns = columns.collect::<Vec<_>>().join(", ");
    let names = query.fields().iter().map(|field| format!("mean_{field}"));
    let names = names.collect::<Vec<_>>().join(", ");
    format!(
        "WITH means AS (SELECT {bucket} AS bucket, tags_id, {columns} FROM cpu \
         WHERE {range} GROUP BY 1, 2) \
         SELECT bucket, hostname, {names} FROM means JOIN tags ON tags.id = means.tags_id \
         ORDER BY bucket, hostname"
    )
}
