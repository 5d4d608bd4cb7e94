//! Samples in the store, seen by series and millisecond.
//!
//! Legacy backends are not asked: commands run under the lock of all keys, and keys are made here.

use super::words::error;
use app::App;
use kv::CommandError;
use model::sample::NANOS_PER_MILLI;
use model::{
    KeyDecoder, LabelError, Labels, LabelsBuilder, METRIC_NAME, Matcher, Row, Shape, TimeRange,
    WriteBatch, is_stale_marker,
};
use std::collections::HashMap;
use std::time::Instant;
use store::{Durability, SelectLimits};

/// The last millisecond that the store can tell.
pub const TIME_MS_MAX: i64 = i64::MAX / NANOS_PER_MILLI - 1;
/// Series of one deletion.
const DELETED_TOGETHER_MAX: usize = 500;
/// How far back the newest samples are looked for, in hours: near ones are found without reading
/// those far away. Then everything is read.
const LOOK_BACK_HOURS: &[i64] = &[1, 24, 30 * 24, 366 * 24];

/// A sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// When, in milliseconds since the epoch.
    pub ms: i64,
    /// What.
    pub value: f64,
}

/// Samples of many series, by the fingerprints of their labels.
pub type SampleMap = HashMap<u128, Vec<Sample>>;

/// The labels of a series whose key is `name`.
pub fn labels_of<N: AsRef<str>, V: AsRef<str>>(name: &str, labels: &[(N, V)]) -> Labels {
    let mut builder = LabelsBuilder::new();
    for (label, value) in labels {
        builder.push(label.as_ref(), value.as_ref());
    }
    builder.set(METRIC_NAME, name);
    builder.finish()
}

/// Matchers of series that have at least these labels.
pub fn matchers_of(labels: &Labels) -> Vec<Matcher> {
    labels.iter().map(|(name, value)| Matcher::equal(name, value)).collect()
}

/// What queries of this door may cost.
fn limits(app: &App) -> SelectLimits {
    SelectLimits {
        series_max: app.config.query.series_max,
        deadline: Some(Instant::now() + app.config.query.timeout),
        cancelled: None,
        cost_max: u64::MAX,
    }
}

/// All instants of milliseconds from `from_ms` to `to_ms`.
pub fn time_range(from_ms: i64, to_ms: i64) -> TimeRange {
    let start = from_ms.clamp(0, TIME_MS_MAX).saturating_mul(NANOS_PER_MILLI);
    let end = to_ms.min(TIME_MS_MAX).saturating_mul(NANOS_PER_MILLI) + NANOS_PER_MILLI - 1;
    match to_ms < from_ms || to_ms < 0 || TIME_MS_MAX < from_ms {
        true => TimeRange::new(1, 0),
        false => TimeRange::new(start, end),
    }
}

/// Whether series with exactly these labels have no sample from `from_ms` on, for sure.
pub fn surely_none_since(app: &App, sets: &[Labels], from_ms: i64) -> bool {
    let start = time_range(from_ms, TIME_MS_MAX).start;
    let (hasher, shape) = (app.store.hasher(), shape_of(app));
    sets.iter().all(|labels| {
        let hash = hasher.hash(labels.as_bytes(), shape.hash);
        app.store.surely_none_since(labels, hash, start)
    })
}

/// The labels of all series that match.
///
/// # Errors
/// When the store cannot tell.
pub fn series(app: &App, sets: &[Vec<Matcher>]) -> Result<Vec<Labels>, CommandError> {
    let own = app.store.strict().own();
    let selection = own.select(sets, TimeRange::ALL, &limits(app)).map_err(error)?;
    selection.labels_of(0..selection.len()).map_err(error)
}

/// The samples of all series that match, oldest first, one for each millisecond.
///
/// # Errors
/// When the store cannot tell, or there are more than `query.max-samples`.
pub fn read(app: &App, sets: &[Vec<Matcher>], range: TimeRange) -> Result<SampleMap, CommandError> {
    let mut found = SampleMap::new();
    if range.is_empty() || sets.is_empty() {
        return Ok(found);
    }
    let own = app.store.strict().own();
    let selection = own.select(sets, range, &limits(app)).map_err(error)?;
    let labels = selection.labels_of(0..selection.len()).map_err(error)?;
    let max = app.config.query.samples_max;
    let mut count = 0;
    let read = selection.read(0..selection.len(), &mut |idx, times, values| {
        count += times.len();
        if max < count || times.is_empty() {
            return;
        }
        let mut samples: Vec<Sample> = Vec::with_capacity(times.len());
        for (time, &value) in times.iter().zip(values) {
            if is_stale_marker(value) {
                continue;
            }
            let sample = Sample { ms: time.div_euclid(NANOS_PER_MILLI), value };
            match samples.last_mut() {
                Some(last) if last.ms == sample.ms => *last = sample,
                _ => samples.push(sample),
            }
        }
        if !samples.is_empty() {
            found.insert(labels[idx].fingerprint(), samples);
        }
    });
    read.map_err(error)?;
    match max < count {
        true => Err(error(format!("more than {max} samples (query.max-samples)"))),
        false => Ok(found),
    }
}

/// The samples of one series that had several label sets, of which the last one counts most.
pub fn joined(map: &mut SampleMap, sets: &[Labels]) -> Vec<Sample> {
    let mut parts = sets.iter().filter_map(|labels| map.remove(&labels.fingerprint()));
    let Some(mut all) = parts.next() else { return Vec::new() };
    let mut is_sorted = true;
    for part in parts {
        is_sorted = false;
        all.extend(part);
    }
    if !is_sorted {
        // Stable: of equal times the newest label set comes last and stays.
        all.sort_by_key(|sample| sample.ms);
        all.reverse();
        all.dedup_by_key(|sample| sample.ms);
        all.reverse();
    }
    all
}

/// The samples of one series with these label sets.
///
/// # Errors
/// As [`read`].
pub fn read_one(
    app: &App,
    labels: &[Labels],
    from_ms: i64,
    to_ms: i64,
) -> Result<Vec<Sample>, CommandError> {
    let sets: Vec<_> = labels.iter().map(matchers_of).collect();
    let mut map = read(app, &sets, time_range(from_ms, to_ms))?;
    Ok(joined(&mut map, labels))
}

/// The newest samples from `from_ms` to `to_ms` of series that match, by fingerprint; looks on until
/// it knows those of all that are `wanted`.
///
/// # Errors
/// As [`read`].
pub fn newest(
    app: &App,
    sets: &[Vec<Matcher>],
    wanted: &[u128],
    (from_ms, to_ms): (i64, i64),
) -> Result<HashMap<u128, Sample>, CommandError> {
    let mut found: HashMap<u128, Sample> = HashMap::new();
    let now_ms = app.vfs.now() / NANOS_PER_MILLI;
    // Who says where to begin is near to it most often: two looks are enough.
    let looks = if from_ms <= 0 { LOOK_BACK_HOURS } else { &LOOK_BACK_HOURS[..1] };
    let starts = looks.iter().map(|hours| to_ms.min(now_ms) - hours * 3_600_000);
    let (first_ms, mut end_ms) = (from_ms.max(0), to_ms);
    for from_ms in starts.chain([first_ms]) {
        let from_ms = from_ms.max(first_ms);
        if wanted.iter().all(|fingerprint| found.contains_key(fingerprint)) || end_ms < from_ms {
            break;
        }
        for (fingerprint, samples) in read(app, sets, time_range(from_ms, end_ms))? {
            if let Some(last) = samples.last() {
                found.entry(fingerprint).or_insert(*last);
            }
        }
        end_ms = from_ms - 1;
    }
    Ok(found)
}

/// The newest sample from `from_ms` to `to_ms` of one series with these label sets.
///
/// # Errors
/// As [`read`].
pub fn newest_one(
    app: &App,
    labels: &[Labels],
    from_ms: i64,
    to_ms: i64,
) -> Result<Option<Sample>, CommandError> {
    let mut best: Option<Sample> = None;
    for set in labels.iter().rev() {
        let fingerprint = set.fingerprint();
        let found = newest(app, &[matchers_of(set)], &[fingerprint], (from_ms, to_ms))?;
        if let Some(sample) = found.get(&fingerprint)
            && best.is_none_or(|best| best.ms < sample.ms)
        {
            best = Some(*sample);
        }
    }
    Ok(best)
}

/// The first sample from `from_ms` on of one series with these label sets.
///
/// # Errors
/// As [`read`].
pub fn first_one(
    app: &App,
    labels: &[Labels],
    from_ms: i64,
) -> Result<Option<Sample>, CommandError> {
    let mut start_ms = from_ms.max(0);
    let ends = LOOK_BACK_HOURS.iter().map(|hours| from_ms.saturating_add(hours * 3_600_000));
    for end_ms in ends.chain([TIME_MS_MAX]) {
        if let Some(first) = read_one(app, labels, start_ms, end_ms)?.first() {
            return Ok(Some(*first));
        }
        start_ms = end_ms.saturating_add(1);
    }
    Ok(None)
}

/// Keys that are label sets as the store writes them.
struct CanonicalKeys;

impl KeyDecoder for CanonicalKeys {
    fn tags(&self, key: &[u8], tags: &mut LabelsBuilder) -> Result<(), LabelError> {
        let labels = Labels::from_canonical(key).unwrap_or_default();
        for (name, value) in labels.iter().filter(|(name, _)| *name != METRIC_NAME) {
            tags.push(name, value);
        }
        Ok(())
    }

    fn metric_name(&self, key: &[u8], _: &str, name: &mut String) -> Result<(), LabelError> {
        name.push_str(Labels::from_canonical(key).unwrap_or_default().metric_name());
        Ok(())
    }
}

/// The shape of this door's rows.
fn shape_of(app: &App) -> Shape {
    let fields: Vec<Box<str>> = vec!["".into()];
    Shape { hash: app.store.hasher().shape(b"redis", &fields), fields }
}

/// A batch of samples, each with the labels of its series.
fn batch_of<'l>(
    app: &App,
    samples: impl Iterator<Item = (&'l Labels, Sample)>,
) -> WriteBatch<'static> {
    let shape = shape_of(app);
    let (mut bytes, mut rows, mut values) = (Vec::new(), Vec::new(), Vec::new());
    let mut last: Option<(&Labels, usize)> = None;
    for (labels, sample) in samples {
        let key = labels.as_bytes();
        let key_offset = match last.filter(|(before, _)| std::ptr::eq(*before, labels)) {
            Some((_, offset)) => offset,
            None => {
                bytes.extend_from_slice(key);
                bytes.len() - key.len()
            }
        };
        last = Some((labels, key_offset));
        let number = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        rows.push(Row {
            hash: app.store.hasher().hash(key, shape.hash),
            timestamp: sample.ms.saturating_mul(NANOS_PER_MILLI),
            key_offset: number(key_offset),
            key_size: number(key.len()),
            shape: 0,
            values_start: number(rows.len()),
            position: number(rows.len()),
        });
        values.push(sample.value);
    }
    WriteBatch { bytes: bytes.into(), shapes: vec![shape], rows, values, decoder: &CanonicalKeys }
}

/// Appends samples of one series. They are on their way to the log then, and not yet on disk.
///
/// # Errors
/// When the store takes them not.
pub fn append(app: &App, labels: &Labels, samples: &[Sample]) -> Result<(), CommandError> {
    let batch = batch_of(app, samples.iter().map(|sample| (labels, *sample)));
    let appended = app.store.append(&batch, Durability::Relaxed).map_err(error)?;
    match appended.rejections.first() {
        Some(rejection) => Err(error(&rejection.reason)),
        None => Ok(()),
    }
}

/// Appends samples of many series. Returns whether all were taken; if not, some may have been.
pub fn append_all<'l>(app: &App, samples: impl Iterator<Item = (&'l Labels, Sample)>) -> bool {
    let appended = app.store.append(&batch_of(app, samples), Durability::Relaxed);
    appended.is_ok_and(|appended| appended.rejected == 0)
}

/// Deletes the samples of series with exactly these labels; durable on return.
///
/// # Errors
/// When the store cannot.
pub fn delete(app: &App, all: &[Labels], range: TimeRange) -> Result<(), CommandError> {
    for some in all.chunks(DELETED_TOGETHER_MAX) {
        let sets: Vec<_> = some.iter().map(matchers_of).collect();
        let matching = series(app, &sets)?;
        let mut exact = Vec::new();
        for (labels, mut set) in some.iter().zip(sets) {
            if !matching.contains(labels) {
                continue;
            }
            // Series of others that have these labels and more must stay.
            let larger = matching.iter().filter(|one| one.metric_name() == labels.metric_name());
            let names = larger.flat_map(|one| one.iter().map(|(name, _)| name));
            let mut more: Vec<_> = names.filter(|name| labels.get(name).is_none()).collect();
            more.sort_unstable();
            more.dedup();
            set.extend(more.into_iter().map(|name| Matcher::equal(name, "")));
            exact.push(set);
        }
        if !exact.is_empty() {
            app.store.delete(&exact, range).map_err(error)?;
        }
    }
    Ok(())
}
