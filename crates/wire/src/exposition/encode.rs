//! Series to the text format: `/federate`, `/metrics` and exports.

use super::decode::Format;
use crate::prom_json::number::{push_exposition_value, push_millis};
use model::{Labels, METRIC_NAME, Metadata, MetricKind, Timestamp};

/// The `Content-Type` of a format's answers.
pub fn content_type(format: Format) -> &'static str {
    match format {
        Format::Text => "text/plain; version=0.0.4; charset=utf-8",
        Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
    }
}

/// Appends `# HELP` (unless empty), `# TYPE` and, in OpenMetrics, `# UNIT`.
pub fn push_family(out: &mut Vec<u8>, metadata: &Metadata, format: Format) {
    if !metadata.help.is_empty() {
        out.extend_from_slice(b"# HELP ");
        push_name(out, &metadata.metric);
        out.push(b' ');
        push_help(out, &metadata.help, format);
        out.push(b'\n');
    }
    out.extend_from_slice(b"# TYPE ");
    push_name(out, &metadata.metric);
    out.push(b' ');
    out.extend_from_slice(kind_word(metadata.kind, format).as_bytes());
    out.push(b'\n');
    if format == Format::OpenMetrics && !metadata.unit.is_empty() {
        out.extend_from_slice(b"# UNIT ");
        push_name(out, &metadata.metric);
        out.push(b' ');
        push_help(out, &metadata.unit, format);
        out.push(b'\n');
    }
}

/// Appends one sample's line; without a timestamp where `timestamp` is `None`.
pub fn push_sample(
    out: &mut Vec<u8>,
    labels: &Labels,
    value: f64,
    timestamp: Option<Timestamp>,
    format: Format,
) {
    push_series(out, labels);
    push_point(out, value, timestamp, format);
}

/// Appends a value and the end of its line behind a series.
pub fn push_point(out: &mut Vec<u8>, value: f64, timestamp: Option<Timestamp>, format: Format) {
    out.push(b' ');
    push_exposition_value(out, value);
    if let Some(timestamp) = timestamp {
        let millis = timestamp.div_euclid(model::sample::NANOS_PER_MILLI);
        out.push(b' ');
        match format {
            Format::Text => {
                out.extend_from_slice(itoa::Buffer::new().format(millis).as_bytes());
            }
            Format::OpenMetrics => push_millis(out, millis),
        }
    }
    out.push(b'\n');
}

/// Appends the line that ends an OpenMetrics answer.
pub fn push_eof(out: &mut Vec<u8>, format: Format) {
    if format == Format::OpenMetrics {
        out.extend_from_slice(b"# EOF\n");
    }
}

/// Appends `name{label="value"}`; names that need quotes get them.
pub fn push_series(out: &mut Vec<u8>, labels: &Labels) {
    let metric = labels.metric_name();
    let is_plain = is_metric_name(metric);
    let mut separator = b'{';
    if is_plain {
        out.extend_from_slice(metric.as_bytes());
    } else if !metric.is_empty() {
        out.push(b'{');
        push_quoted(out, metric);
        separator = b',';
    }
    for (name, value) in labels.iter().filter(|(name, _)| *name != METRIC_NAME) {
        out.push(separator);
        separator = b',';
        match is_label_name(name) {
            true => out.extend_from_slice(name.as_bytes()),
            false => push_quoted(out, name),
        }
        out.push(b'=');
        push_quoted(out, value);
    }
    if separator == b',' {
        out.push(b'}');
    } else if metric.is_empty() {
        out.extend_from_slice(b"{}");
    }
}

fn push_name(out: &mut Vec<u8>, metric: &str) {
    if is_metric_name(metric) {
        out.extend_from_slice(metric.as_bytes());
    } else {
        push_quoted(out, metric);
    }
}

fn push_quoted(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    push_escaped(out, text, b"\\\"\n");
    out.push(b'"');
}

/// OpenMetrics escapes quotes in help texts, the text format does not.
fn push_help(out: &mut Vec<u8>, text: &str, format: Format) {
    match format {
        Format::Text => push_escaped(out, text, b"\\\n"),
        Format::OpenMetrics => push_escaped(out, text, b"\\\"\n"),
    }
}

fn push_escaped(out: &mut Vec<u8>, text: &str, escaped: &[u8]) {
    for &byte in text.as_bytes() {
        if !escaped.contains(&byte) {
            out.push(byte);
            continue;
        }
        out.push(b'\\');
        out.push(if byte == b'\n' { b'n' } else { byte });
    }
}

fn kind_word(kind: MetricKind, format: Format) -> &'static str {
    match (format, kind) {
        (Format::OpenMetrics, kind) => kind.as_str(),
        (Format::Text, MetricKind::Counter | MetricKind::Gauge) => kind.as_str(),
        (Format::Text, MetricKind::Histogram | MetricKind::Summary) => kind.as_str(),
        (Format::Text, MetricKind::Info | MetricKind::StateSet) => "gauge",
        (Format::Text, MetricKind::Unknown | MetricKind::GaugeHistogram) => "untyped",
    }
}

pub(super) fn is_metric_name(name: &str) -> bool {
    let is_inside = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b':');
    !name.starts_with(|c: char| c.is_ascii_digit())
        && !name.is_empty()
        && name.bytes().all(is_inside)
}

pub(super) fn is_label_name(name: &str) -> bool {
    is_metric_name(name) && !name.contains(':')
}
