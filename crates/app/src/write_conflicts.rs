//! Samples of one series and time that exclude each other.
//!
//! - A stale marker never replaces a number or a native histogram. Replicas of a scraper send both
//!   when only one of them loses its target.
//! - The last of a number and a native histogram in one request wins. Both have lists of their own in
//!   a decoded batch, and the histograms are appended last.

use crate::app::App;
use model::{KeyDecoder, Labels, LabelsBuilder, Matcher, Row, Shape, TimeRange, is_stale_marker};
use std::collections::{BTreeMap, HashMap, HashSet};
use store::SelectLimits;
use wire::Decoded;

/// Series of one selection.
const SELECTED_TOGETHER_MAX: usize = 500;

/// A series by the fingerprint of its labels, and a time.
type Instant = (u128, i64);

/// Stale markers of a batch, taken out of it.
#[derive(Default)]
pub struct StaleMarkers {
    rows: Vec<Row>,
    histograms: Vec<histogram::HistogramRow>,
}

/// The labels of a key, `None` for a key that the store refuses.
fn labels_of(decoder: &dyn KeyDecoder, key: &[u8]) -> Option<Labels> {
    let (mut labels, mut name) = (LabelsBuilder::new(), String::new());
    decoder.tags(key, &mut labels).ok()?;
    decoder.metric_name(key, "", &mut name).ok()?;
    labels.set(model::METRIC_NAME, &name);
    labels.sorted().ok().map(model::SortedLabels::into_labels)
}

/// Whether rows of a shape are one sample each, whose key is the whole series.
fn is_one_series(shape: &Shape) -> bool {
    matches!(&shape.fields[..], [field] if field.is_empty())
}

/// Removes native histograms behind which the batch has a number of the same series and time. Returns
/// their count.
pub fn drop_replaced_histograms(decoded: &mut Decoded<'_>) -> u64 {
    if decoded.histograms.is_empty() || decoded.batch.rows.is_empty() {
        return 0;
    }
    let (bytes, decoder) = (&decoded.batch.bytes, decoded.batch.decoder);
    let key_of = |offset: u32, size: u32| &bytes[offset as usize..offset as usize + size as usize];
    // Few metrics have both: most rows are done once their metric's name is read.
    let mut names = HashSet::new();
    for row in &decoded.histograms {
        let mut name = String::new();
        if decoder.metric_name(key_of(row.key_offset, row.key_size), "", &mut name).is_ok() {
            names.insert(name);
        }
    }
    let mut numbers: HashMap<Instant, u32> = HashMap::new();
    let (mut name, mut known) = (String::new(), (u32::MAX, None));
    for row in &decoded.batch.rows {
        if known.0 != row.key_offset {
            let key = decoded.batch.key(row);
            name.clear();
            let is_shared = is_one_series(&decoded.batch.shapes[row.shape as usize])
                && decoder.metric_name(key, "", &mut name).is_ok()
                && names.contains(&name);
            let labels = if is_shared { labels_of(decoder, key) } else { None };
            known = (row.key_offset, labels.map(|labels| labels.fingerprint()));
        }
        if let Some(fingerprint) = known.1 {
            numbers.insert((fingerprint, row.timestamp), row.position);
        }
    }
    if numbers.is_empty() {
        return 0;
    }
    let before = decoded.histograms.len();
    decoded.histograms.retain(|row| {
        let labels = labels_of(decoder, key_of(row.key_offset, row.key_size));
        let instant = labels.map(|labels| (labels.fingerprint(), row.timestamp));
        let number = instant.and_then(|instant| numbers.get(&instant));
        number.is_none_or(|position| *position <= row.position)
    });
    (before - decoded.histograms.len()) as u64
}

/// Takes the stale markers out of a batch.
pub fn take_stale_markers(decoded: &mut Decoded<'_>) -> StaleMarkers {
    let mut markers = StaleMarkers::default();
    let batch = &mut decoded.batch;
    if batch.values.iter().any(|value| is_stale_marker(*value)) {
        let (shapes, values) = (&batch.shapes, &batch.values);
        let is_marker = |row: &Row| {
            let value = values.get(row.values_start as usize);
            is_one_series(&shapes[row.shape as usize])
                && value.is_some_and(|value| is_stale_marker(*value))
        };
        markers.rows = batch.rows.extract_if(.., |row| is_marker(row)).collect();
    }
    if decoded.histograms.iter().any(|row| row.histogram.is_stale()) {
        let stale = decoded.histograms.extract_if(.., |row| row.histogram.is_stale());
        markers.histograms = stale.collect();
    }
    markers
}

impl StaleMarkers {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.histograms.is_empty()
    }

    /// Puts the markers back that replace no sample of the store. `decoded` has had its rows and
    /// histograms appended. Returns the number of the others.
    pub fn put_back(mut self, app: &App, decoded: &mut Decoded<'_>) -> u64 {
        let count = self.rows.len() + self.histograms.len();
        let decoder = decoded.batch.decoder;
        let mut unsure = BTreeMap::<i64, Vec<Labels>>::new();
        let (hasher, shape) = (app.store.hasher(), decoded.batch.shapes.first());
        let shape_hash = shape.map_or(0, |shape| shape.hash);
        let mut look_up = |key: &[u8], hash: Option<u128>, timestamp: i64| {
            let labels = labels_of(decoder, key)?;
            let hash = hash.unwrap_or_else(|| hasher.hash(key, shape_hash));
            let fingerprint = labels.fingerprint();
            if !app.store.surely_none_since(&labels, hash, timestamp) {
                unsure.entry(timestamp).or_default().push(labels);
            }
            Some(fingerprint)
        };
        let bytes = &decoded.batch.bytes;
        let key_of =
            |offset: u32, size: u32| &bytes[offset as usize..offset as usize + size as usize];
        let mut all: Vec<Option<Instant>> = Vec::with_capacity(count);
        for row in &self.rows {
            let key = key_of(row.key_offset, row.key_size);
            let fingerprint = look_up(key, Some(row.hash), row.timestamp);
            all.push(fingerprint.map(|fingerprint| (fingerprint, row.timestamp)));
        }
        for row in &self.histograms {
            let key = key_of(row.key_offset, row.key_size);
            let fingerprint = look_up(key, None, row.timestamp);
            all.push(fingerprint.map(|fingerprint| (fingerprint, row.timestamp)));
        }
        let taken = stored_samples(app, &unsure);
        let mut is_free =
            all.iter().map(|instant| instant.is_none_or(|instant| !taken.contains(&instant)));
        self.rows.retain(|_| is_free.next().unwrap_or(true));
        self.histograms.retain(|_| is_free.next().unwrap_or(true));
        let left_out = count - self.rows.len() - self.histograms.len();
        decoded.batch.rows = self.rows;
        decoded.histograms = self.histograms;
        left_out as u64
    }
}

/// The series and times at which the store has a number or a native histogram. Where it cannot be
/// read it has none: the marker is stored then.
fn stored_samples(app: &App, series: &BTreeMap<i64, Vec<Labels>>) -> HashSet<Instant> {
    let mut found = HashSet::new();
    for (&timestamp, all) in series {
        for some in all.chunks(SELECTED_TOGETHER_MAX) {
            let matchers = |labels: &Labels| -> Vec<Matcher> {
                labels.iter().map(|(name, value)| Matcher::equal(name, value)).collect()
            };
            let sets: Vec<_> = some.iter().map(matchers).collect();
            let range = TimeRange::new(timestamp, timestamp);
            let Ok(selection) =
                app.store.strict().own().select(&sets, range, &SelectLimits::UNLIMITED)
            else {
                continue;
            };
            let _ = selection.read_mixed(0..selection.len(), &mut |idx, _, values, times, _| {
                let has_sample =
                    !times.is_empty() || values.iter().any(|value| !is_stale_marker(*value));
                if let (true, Ok(labels)) = (has_sample, selection.labels(idx)) {
                    found.insert((labels.fingerprint(), timestamp));
                }
            });
        }
    }
    found
}
