//! Totals of a source by a query, for a comparison that shares neither lists nor readers with the copy.

pub use super::remote_read::json_of;
pub use super::victoriametrics::seconds;
use crate::source::{Total, Window};
use http_client::client::{Client, StatusError, encode};
use model::Timestamp;

/// Counts the series of a window by a query of a Prometheus, a VictoriaMetrics or a Quipu; `None` where the
/// server refuses it, as for a limit of its own. Series that have but a marker of their end, or a sample in
/// the first millisecond alone, may not be counted.
///
/// # Errors
/// When the server does not answer.
pub fn by_query(client: &mut Client, window: &Window) -> anyhow::Result<Option<Total>> {
    let (first, last) = window.range.whole_millis();
    if window.range.start == Timestamp::MIN || last <= first {
        return Ok(None);
    }
    // Samples cannot be counted so: one that VictoriaMetrics was sent twice counts twice, and Prometheus
    // refuses series of different names. The first millisecond is in a range of some versions alone.
    let query = format!("count(last_over_time({{__name__!=\"\"}}[{}ms]))", last - first);
    let path = format!(
        "/api/v1/query?query={}&time={}&nocache=1&latency_offset=1ms&nolegacy=1&deny_partial_response=1",
        encode(&query),
        seconds(last)
    );
    let answer = match json_of(client, &path) {
        Ok(answer) => answer,
        Err(error) => match error.downcast_ref::<StatusError>() {
            Some(StatusError { status, .. }) if status.is_client_error() => return Ok(None),
            _ => return Err(error),
        },
    };
    let value = answer["data"]["result"][0]["value"][1].as_str();
    let count = value.and_then(|text| text.parse::<f64>().ok()).unwrap_or_default();
    Ok(Some(Total::Series(count as u64)))
}
