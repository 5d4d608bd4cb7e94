//! The samples of the ordeal: all about one follows from its writer and its line, and back.
//!
//! ```text
//! o_v{writer="w1", host="h<n%7>", batch="b<n/64>"}  value: hash  time: start + n ms, every other one
//!                                                   40 days before, in another month
//! ```
//!
//! Each writer speaks another protocol; lines of line protocol have a second field, every fourth of
//! remote write an exemplar.

use quipu_bench::payload::protobuf::{bytes_size, put_bytes, put_head, put_sample, sample_size};
use quipu_bench::payload::remote_write::put_label;
use quipu_bench::random::mix_pair;

/// Lines that share their series' `batch`, and are deleted together.
pub const BATCH: u64 = 64;
const HOSTS: u64 = 7;
/// 2025-03-05.
const START_MS: i64 = 1_741_132_800_000;
const BACK_MS: i64 = 40 * 86_400_000;

/// What a writer speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tongue {
    /// Line protocol.
    Influx,
    /// Remote write 1.0.
    RemoteWrite,
    /// The text format of scrapes.
    Exposition,
}

impl Tongue {
    /// What that writer speaks.
    pub fn of(writer: u64) -> Tongue {
        [Tongue::Influx, Tongue::RemoteWrite, Tongue::Exposition][(writer % 3) as usize]
    }

    /// Where requests go, and their headers.
    pub fn door(self) -> (&'static str, &'static str) {
        match self {
            Tongue::Influx => ("/write?precision=ms", ""),
            Tongue::RemoteWrite => (
                "/api/v1/write",
                "Content-Encoding: snappy\r\nContent-Type: application/x-protobuf\r\n\
                 X-Prometheus-Remote-Write-Version: 0.1.0\r\n",
            ),
            Tongue::Exposition => ("/api/v1/import/prometheus", ""),
        }
    }

    /// The metrics of a line.
    pub fn metrics(self) -> &'static [&'static str] {
        match self {
            Tongue::Influx => &["o_v", "o_u"],
            _ => &["o_v"],
        }
    }
}

/// The request's body for some lines.
pub fn body(writer: u64, lines: std::ops::Range<u64>) -> Vec<u8> {
    let mut body = Vec::new();
    for line in lines {
        put_line(writer, line, &mut body);
    }
    match Tongue::of(writer) {
        Tongue::RemoteWrite => snap::raw::Encoder::new().compress_vec(&body).unwrap_or_default(),
        _ => body,
    }
}

fn put_line(writer: u64, line: u64, body: &mut Vec<u8>) {
    let (batch, host, time) = (line / BATCH, line % HOSTS, timestamp_ms(line));
    let number = value(writer, line, "o_v");
    let text = match Tongue::of(writer) {
        Tongue::Influx => {
            let other = value(writer, line, "o_u");
            format!("o,writer=w{writer},host=h{host},batch=b{batch} v={number},u={other} {time}\n")
        }
        Tongue::Exposition => {
            format!(
                "o_v{{writer=\"w{writer}\",host=\"h{host}\",batch=\"b{batch}\"}} {number} {time}\n"
            )
        }
        Tongue::RemoteWrite => return put_series(writer, line, body),
    };
    body.extend_from_slice(text.as_bytes());
}

fn put_series(writer: u64, line: u64, body: &mut Vec<u8>) {
    let time = timestamp_ms(line);
    let number = value(writer, line, "o_v");
    let mut series = Vec::new();
    for (name, text) in [
        ("__name__", "o_v".to_string()),
        ("batch", format!("b{}", line / BATCH)),
        ("host", format!("h{}", line % HOSTS)),
        ("writer", format!("w{writer}")),
    ] {
        put_label(name, &text, &mut series);
    }
    put_head(2, sample_size(time), &mut series);
    put_sample(number, time, &mut series);
    if has_exemplar(writer, line) {
        let mut label = Vec::new();
        put_label("trace_id", &trace(writer, line), &mut label);
        put_head(3, label.len() + sample_size(time), &mut series);
        series.extend_from_slice(&label);
        put_exemplar_value(number, time, &mut series);
    }
    debug_assert!(series.len() <= bytes_size(series.len()));
    put_bytes(1, &series, body);
}

/// `double value = 2; int64 timestamp = 3`.
fn put_exemplar_value(number: f64, time: i64, out: &mut Vec<u8>) {
    let start = out.len();
    put_sample(number, time, out);
    out[start] = 2 << 3 | 1;
    out[start + 9] = 3 << 3;
}

/// Whether a line has an exemplar: of one series they are in the order of time.
pub fn has_exemplar(writer: u64, line: u64) -> bool {
    Tongue::of(writer) == Tongue::RemoteWrite && line.is_multiple_of(4)
}

/// An exemplar's trace.
pub fn trace(writer: u64, line: u64) -> String {
    format!("{writer}-{line}")
}

/// Writer and line of a trace.
pub fn of_trace(trace: &str) -> Option<(u64, u64)> {
    let (writer, line) = trace.split_once('-')?;
    Some((writer.parse().ok()?, line.parse().ok()?))
}

/// The value that a line's metric has.
pub fn value(writer: u64, line: u64, metric: &str) -> f64 {
    (mix_pair(writer << 8 | metric.len() as u64 ^ u64::from(metric.ends_with('u')), line) >> 20)
        as f64
}

/// The labels of a line besides the metric's name.
pub fn label(writer: u64, line: u64, name: &str) -> Option<String> {
    match name {
        "writer" => Some(format!("w{writer}")),
        "host" => Some(format!("h{}", line % HOSTS)),
        "batch" => Some(format!("b{}", line / BATCH)),
        _ => None,
    }
}

fn timestamp_ms(line: u64) -> i64 {
    START_MS + line as i64 - if line.is_multiple_of(2) { 0 } else { BACK_MS }
}

/// The line of a time.
pub fn line_of(timestamp_ms: i64) -> Option<u64> {
    let offset = timestamp_ms - START_MS;
    let line = if offset < 0 { offset + BACK_MS } else { offset };
    let line = u64::try_from(line).ok()?;
    (self::timestamp_ms(line) == timestamp_ms).then_some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_gives_its_line_and_a_trace_its_place() {
        for line in 0..1000 {
            assert_eq!(line_of(timestamp_ms(line)), Some(line));
            assert_eq!(of_trace(&trace(4, line)), Some((4, line)));
        }
        assert_eq!(line_of(START_MS + 1), None);
        assert_ne!(value(0, 1, "o_v"), value(0, 1, "o_u"));
    }
}
