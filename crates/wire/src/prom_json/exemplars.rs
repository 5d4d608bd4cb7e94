//! The exemplars of one series, an item of a [`List`](super::List):
//! `{"seriesLabels":{..},"exemplars":[{"labels":{..},"value":"6","timestamp":1600096945.479},..]}`.

use super::{push_labels, push_millis, push_value};
use model::Labels;

/// A series whose exemplars are being written.
pub struct SeriesExemplars {
    is_empty: bool,
}

impl SeriesExemplars {
    /// Opens the series.
    pub(super) fn begin(out: &mut Vec<u8>, series: &Labels) -> SeriesExemplars {
        out.extend_from_slice(b"{\"seriesLabels\":");
        push_labels(out, series);
        out.extend_from_slice(b",\"exemplars\":[");
        SeriesExemplars { is_empty: true }
    }

    /// The next exemplar; its time in milliseconds.
    pub fn push(&mut self, out: &mut Vec<u8>, labels: &Labels, value: f64, millis: i64) {
        if !self.is_empty {
            out.push(b',');
        }
        self.is_empty = false;
        out.extend_from_slice(b"{\"labels\":");
        push_labels(out, labels);
        out.extend_from_slice(b",\"value\":\"");
        push_value(out, value);
        out.extend_from_slice(b"\",\"timestamp\":");
        push_millis(out, millis);
        out.push(b'}');
    }

    /// Closes the series.
    pub fn end(self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"]}");
    }
}
