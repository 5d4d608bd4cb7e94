//! Histograms as Prometheus' API says them.
//!
//! ```text
//! {"count":"42","sum":"34593.34","buckets":[[3,"-0.25","0.25","3"],[0,"0.25","0.5","39"]]}
//! ```
//!
//! A bucket is a code, its bounds and its count: 0 the upper bound is in it, 1 the lower one,
//! 2 none, 3 both. Empty buckets are left out, and `buckets` when there is none.

use super::push_value;
use histogram::Histogram;

/// Appends a histogram.
pub fn push_histogram(out: &mut Vec<u8>, histogram: &Histogram) {
    out.extend_from_slice(b"{\"count\":");
    push_quoted(out, histogram.count);
    out.extend_from_slice(b",\"sum\":");
    push_quoted(out, histogram.sum);
    let mut is_first = true;
    for range in histogram.ascending().filter(|range| range.count != 0.0) {
        out.extend_from_slice(if is_first { b",\"buckets\":[[" } else { b",[" });
        is_first = false;
        out.push(match (range.has_lower, range.has_upper) {
            (false, true) => b'0',
            (true, false) => b'1',
            (false, false) => b'2',
            (true, true) => b'3',
        });
        for value in [range.lower, range.upper, range.count] {
            out.push(b',');
            push_quoted(out, value);
        }
        out.push(b']');
    }
    if !is_first {
        out.push(b']');
    }
    out.push(b'}');
}

fn push_quoted(out: &mut Vec<u8>, value: f64) {
    out.push(b'"');
    push_value(out, value);
    out.push(b'"');
}
