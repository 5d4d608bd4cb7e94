//! `TS.INFO`: what is known of a series.

use super::arguments::CHUNK_SIZE;
use super::multi::put_pairs;
use super::samples::{self, Sample, TIME_MS_MAX};
use super::series::{self, Found};
use super::words::put_value;
use crate::commands::Flow;
use crate::dispatch::Context;
use kv::value::Series;
use kv::value::series::DuplicatePolicy;
use kv::{CommandError, Reply};

/// Bytes of a sample as the store keeps it, about; in a chunk without compression.
const SAMPLE_SIZE: usize = 2;
const PLAIN_SAMPLE_SIZE: usize = 16;

/// `TS.INFO key [DEBUG]`
pub fn info(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    let is_debug = match context.args.get(2..).unwrap_or_default() {
        [] => false,
        [word] if word.eq_ignore_ascii_case(b"DEBUG") => true,
        _ => return Err(CommandError::arity(context.info.name)),
    };
    let found = series::find(context, context.args[1])?;
    let from_ms = super::range::shown_from(context, &found, 0)?;
    let samples = samples::read_one(&context.redis.app, &found.sets, from_ms, TIME_MS_MAX)?;
    put(&mut context.session.out, &found, &samples, is_debug);
    Ok(Flow::Next)
}

fn put(out: &mut dyn Reply, found: &Found, samples: &[Sample], is_debug: bool) {
    let foreign = Series::new("", CHUNK_SIZE);
    let record = found.record.as_deref().unwrap_or(&foreign);
    let sample_size = if record.is_uncompressed { PLAIN_SAMPLE_SIZE } else { SAMPLE_SIZE };
    let size = samples.len() * sample_size;
    let chunks = size.div_ceil(record.chunk_size.max(1) as usize).max(1);
    let memory = kv::value::Stored::heap_size(record) + size;
    out.map(if is_debug { 16 } else { 14 });
    let number = |out: &mut dyn Reply, name: &str, value: i64| {
        out.text(name);
        out.int(value);
    };
    let as_int = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    number(out, "totalSamples", as_int(samples.len()));
    number(out, "memoryUsage", as_int(memory));
    number(out, "firstTimestamp", samples.first().map_or(0, |sample| sample.ms));
    number(out, "lastTimestamp", samples.last().map_or(0, |sample| sample.ms));
    number(out, "retentionTime", record.retention_ms);
    number(out, "chunkCount", as_int(chunks));
    number(out, "chunkSize", i64::from(record.chunk_size));
    out.text("chunkType");
    out.simple(if record.is_uncompressed { "uncompressed" } else { "compressed" });
    out.text("duplicatePolicy");
    out.simple(record.policy.unwrap_or(DuplicatePolicy::Block).name());
    out.text("labels");
    let labels = found.labels.iter();
    let labels: Vec<_> =
        labels.map(|(name, value)| (name.as_str(), Some(value.as_str()))).collect();
    put_pairs(out, &labels);
    out.text("sourceKey");
    out.bulk_or_null(record.source.as_deref());
    put_rules(out, record);
    number(out, "ignoreMaxTimeDiff", record.ignore_ms);
    out.text("ignoreMaxValDiff");
    put_value(out, record.ignore_value);
    if is_debug {
        put_chunks(out, found, samples, size);
    }
}

fn put_rules(out: &mut dyn Reply, record: &Series) {
    out.text("rules");
    let is_map = out.version() == 3;
    if is_map {
        out.map(record.rules.len())
    } else {
        out.array(record.rules.len())
    }
    for rule in &record.rules {
        if is_map {
            out.bulk(&rule.target);
            out.array(3);
        } else {
            out.array(4);
            out.bulk(&rule.target);
        }
        out.int(rule.bucket_ms);
        out.simple(&rule.aggregator.to_ascii_uppercase());
        out.int(rule.align_ms);
    }
}

/// All samples as one chunk: the store knows no others.
fn put_chunks(out: &mut dyn Reply, found: &Found, samples: &[Sample], size: usize) {
    out.text("keySelfName");
    out.bulk(&found.key);
    out.text("Chunks");
    out.array(1);
    out.map(5);
    out.text("startTimestamp");
    out.int(samples.first().map_or(0, |sample| sample.ms));
    out.text("endTimestamp");
    out.int(samples.last().map_or(0, |sample| sample.ms));
    out.text("samples");
    out.len(samples.len());
    out.text("size");
    out.len(size);
    out.text("bytesPerSample");
    put_value(out, if samples.is_empty() { 0.0 } else { size as f64 / samples.len() as f64 });
}
