//! Native histograms in lines: an extension that other databases do not know.
//!
//! ```text
//! {"schema":3,"reset_hint":"gauge","zero_threshold":1e-128,"zero_count":1,"count":4,"sum":2.5,
//!  "positive":[[-2,1],[0,2]],"negative":[[5,1]],"custom_bounds":[0.5,1]}
//! ```
//!
//! A bucket is its index and the observations in it alone. Members that are zero, empty or unknown
//! may be left out. Numbers are as exact as other values are.

use super::scan::{Fault, Scan};
use super::value::{push_exact, value};
use crate::remote_write::histograms::BUCKETS_MAX;
use histogram::{Bucket, Histogram, ResetHint};

/// Names of the reset hints.
const HINTS: [(&str, ResetHint); 4] = [
    ("unknown", ResetHint::Unknown),
    ("reset", ResetHint::Reset),
    ("no_reset", ResetHint::NoReset),
    ("gauge", ResetHint::Gauge),
];

const _: () = assert!(BUCKETS_MAX == 16_384);

/// Appends a histogram.
pub(super) fn push_histogram(out: &mut Vec<u8>, histogram: &Histogram) {
    out.extend_from_slice(b"{\"schema\":");
    push_index(out, i32::from(histogram.schema));
    let hint = HINTS.iter().skip(1).find(|(_, hint)| *hint == histogram.reset_hint);
    if let Some((name, _)) = hint {
        out.extend_from_slice(b",\"reset_hint\":\"");
        out.extend_from_slice(name.as_bytes());
        out.push(b'"');
    }
    for (name, number) in [
        (&b",\"zero_threshold\":"[..], histogram.zero_threshold),
        (b",\"zero_count\":", histogram.zero_count),
        (b",\"count\":", histogram.count),
        (b",\"sum\":", histogram.sum),
    ] {
        if number.to_bits() != 0 {
            out.extend_from_slice(name);
            push_exact(out, number);
        }
    }
    push_buckets(out, b",\"positive\":", &histogram.positive);
    push_buckets(out, b",\"negative\":", &histogram.negative);
    if !histogram.custom_bounds.is_empty() {
        out.extend_from_slice(b",\"custom_bounds\":");
        let mut before = b'[';
        for &bound in &histogram.custom_bounds {
            out.push(before);
            push_exact(out, bound);
            before = b',';
        }
        out.push(b']');
    }
    out.push(b'}');
}

fn push_buckets(out: &mut Vec<u8>, name: &[u8], buckets: &[Bucket]) {
    if buckets.is_empty() {
        return;
    }
    out.extend_from_slice(name);
    let mut before = b'[';
    for bucket in buckets {
        out.extend_from_slice(&[before, b'[']);
        push_index(out, bucket.index);
        out.push(b',');
        push_exact(out, bucket.count);
        out.push(b']');
        before = b',';
    }
    out.push(b']');
}

fn push_index(out: &mut Vec<u8>, index: i32) {
    out.extend_from_slice(itoa::Buffer::new().format(index).as_bytes());
}

/// Takes a histogram, which may still be none: see [`Histogram::validate`].
pub(super) fn histogram(scan: &mut Scan<'_>) -> Result<Histogram, Fault> {
    let mut found = Histogram::default();
    scan.members(|scan, name| {
        match name {
            "schema" => {
                let start = scan.at;
                let fault = Fault { offset: start, expected: "a schema" };
                found.schema = i8::try_from(index(scan)?).map_err(|_| fault)?;
            }
            "reset_hint" => found.reset_hint = hint(scan)?,
            "zero_threshold" => found.zero_threshold = value(scan)?,
            "zero_count" => found.zero_count = value(scan)?,
            "count" => found.count = value(scan)?,
            "sum" => found.sum = value(scan)?,
            "positive" => buckets(scan, &mut found.positive)?,
            "negative" => buckets(scan, &mut found.negative)?,
            "custom_bounds" => {
                let bounds = &mut found.custom_bounds;
                bounds.clear();
                scan.elements(|scan| {
                    if BUCKETS_MAX <= bounds.len() {
                        return scan.fault("at most 16384 custom bounds");
                    }
                    bounds.push(value(scan)?);
                    Ok(())
                })?;
            }
            _ => scan.skip(0)?,
        }
        Ok(())
    })?;
    Ok(found)
}

fn hint(scan: &mut Scan<'_>) -> Result<ResetHint, Fault> {
    let fault = Fault { offset: scan.at, expected: "unknown, reset, no_reset or gauge" };
    let text = scan.string()?;
    HINTS.iter().find(|(name, _)| *name == text).map(|(_, hint)| *hint).ok_or(fault)
}

fn buckets(scan: &mut Scan<'_>, out: &mut Vec<Bucket>) -> Result<(), Fault> {
    out.clear();
    scan.elements(|scan| {
        if BUCKETS_MAX <= out.len() {
            return scan.fault("at most 16384 buckets");
        }
        scan.need(b'[', "a bucket: [index,count]")?;
        let index = index(scan)?;
        scan.need(b',', "a bucket's count")?;
        out.push(Bucket { index, count: value(scan)? });
        scan.need(b']', "a bucket's end")
    })
}

fn index(scan: &mut Scan<'_>) -> Result<i32, Fault> {
    let is_negative = scan.eat(b'-');
    let fault = Fault { offset: scan.at, expected: "a whole number of 32 bits" };
    scan.peek();
    let digits = crate::number::digits(scan.text, scan.at);
    if digits.count == 0 || 10 < digits.count {
        return Err(fault);
    }
    scan.at += digits.count;
    let size = i64::try_from(digits.value).map_err(|_| fault)?;
    i32::try_from(if is_negative { -size } else { size }).map_err(|_| fault)
}
