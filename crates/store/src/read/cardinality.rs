//! Who makes the series: counts by metric, label and pair, of the series of a day, of those that are
//! new, or of those that nobody asks for; and what they cost.

use crate::base::narrow::{to_u16, to_u32};
use crate::partition::histograms::names::{LABEL, RUN_LABEL};
use crate::partition::new_series::HOURS_KEPT;
use crate::partition::{Partition, PartitionState, join_spans};
use crate::read::catalog::for_each_live;
use crate::read::hidden_series::matchers_of_hidden;
use crate::read::live::push_kept;
use crate::read::missing::Watch;
use crate::read::reader::Reader;
use crate::read::select::matchers::compile;
use crate::{Result, SelectLimits};
use index::{BlockMatch, CardinalityQuestion, CompiledMatchers, Completeness, Search};
use model::sample::NANOS_PER_DAY;
use model::time_range::day_of;
use model::{METRIC_NAME, Matcher, TimeRange};
use roaring::RoaringBitmap;

/// A name and how many series (or bytes) it accounts for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameCount {
    /// Metric, label name, or `name=value`.
    pub name: String,
    /// How many.
    pub count: u64,
}

/// What the cardinality explorer asks.
#[derive(Clone, Debug)]
pub struct CardinalityRequest {
    /// How many rows of each list.
    pub top_n: usize,
    /// UTC day number since the epoch; `None` is the newest with data.
    pub day: Option<i32>,
    /// Only series that match one of these; empty is all.
    pub sets: Vec<Vec<Matcher>>,
    /// A label whose values get a list of their own.
    pub focus_label: Option<String>,
    /// When to give up; the number of series has no bound here.
    pub limits: SelectLimits,
}

/// What it gets, each list by falling count.
#[derive(Clone, Debug, Default)]
pub struct Cardinality {
    /// Series in all.
    pub series: u64,
    /// Distinct `name=value` pairs.
    pub label_pairs: u64,
    /// Labels of all series together.
    pub series_labels: u64,
    /// Series by metric.
    pub by_metric: Vec<NameCount>,
    /// Distinct values by label name.
    pub values_by_label: Vec<NameCount>,
    /// Bytes of distinct values by label name.
    pub bytes_by_label: Vec<NameCount>,
    /// Series by label name.
    pub by_label: Vec<NameCount>,
    /// Series by `name=value`.
    pub by_pair: Vec<NameCount>,
    /// Series by value of the label asked about.
    pub by_focus_value: Vec<NameCount>,
    /// Series inside the store that native histograms take, by the metric they belong to; in no
    /// other count of series here.
    pub hidden_by_metric: Vec<NameCount>,
    /// Bytes on disk of all samples of these series, in the partition of the day.
    pub disk_bytes: u64,
    /// The same by metric.
    pub disk_bytes_by_metric: Vec<NameCount>,
    /// The same by `name=value`.
    pub disk_bytes_by_pair: Vec<NameCount>,
    /// Bytes on disk that labels take in the partition's index, whoever has them.
    pub index_bytes_by_label: Vec<NameCount>,
    /// Bytes of memory that knowing a series takes, on average; hidden ones are series, too.
    pub memory_bytes_per_series: f64,
    /// Oldest and newest timestamp of the head, nanoseconds.
    pub time_min_max: Option<(i64, i64)>,
}

/// Series that were registered lately.
#[derive(Clone, Debug, Default)]
pub struct NewSeries {
    /// Hours since the epoch, and how many were registered in each; oldest first.
    pub hours: Vec<(i64, u64)>,
    /// Who they are.
    pub series: Cardinality,
}

/// Entries that lists of hidden series have beyond those asked for: some are told under other names,
/// or not at all.
const HIDDEN_TOP_MORE: usize = 256;

/// Counts the series live on a day, by default the newest with data.
pub(crate) fn cardinality(
    reader: &Reader,
    request: &CardinalityRequest,
    watch: &Watch,
) -> Result<Cardinality> {
    count_live(reader, request, watch, &|_, matches| matches)
}

/// The same of those among them whose samples nobody has asked for since start.
pub(crate) fn unqueried(
    reader: &Reader,
    request: &CardinalityRequest,
    watch: &Watch,
) -> Result<Cardinality> {
    count_live(reader, request, watch, &|partition, matches| {
        let queried = partition.queried();
        let mut kept = Vec::with_capacity(matches.len());
        for found in matches {
            let is_kept = |column, slot| !queried.contains(found.block.ordinal(column, slot));
            push_kept(&found, &is_kept, &mut kept);
        }
        kept
    })
}

/// Counts the series registered in the last hours, up to a day of them and since start; of two
/// partitions around a rollover.
pub(crate) fn new_series(
    reader: &Reader,
    request: &CardinalityRequest,
    hours: u32,
) -> Result<NewSeries> {
    let hours = hours.min(to_u32(HOURS_KEPT));
    let now = reader.ground.vfs.now();
    let sets = compile(&request.sets, &request.limits)?;
    let mut new = NewSeries::default();
    for partition in reader.partitions.all() {
        let mut entities = RoaringBitmap::new();
        for one in partition.read().series.new.since(hours, now) {
            entities |= &one.entities;
            new.add_hour(one.hour, one.series);
        }
        if !entities.is_empty() {
            let matches = matches_of(&partition, &sets, &entities)?;
            let watch = reader.watch(None);
            let counted = count(&partition, &partition.read(), &matches, request, &watch)?;
            new.series.add(counted, request.top_n);
        }
    }
    Ok(new)
}

/// Counts what `choose` leaves of the series live on the day.
fn count_live(
    reader: &Reader,
    request: &CardinalityRequest,
    watch: &Watch,
    choose: &dyn Fn(&Partition, Vec<BlockMatch>) -> Vec<BlockMatch>,
) -> Result<Cardinality> {
    let span = stored_span(reader);
    let newest = span.map(|(_, max)| day_of(max));
    let mut cardinality = Cardinality { time_min_max: span, ..Cardinality::default() };
    let Some(day) = request.day.or(newest) else { return Ok(cardinality) };
    let start = i64::from(day).saturating_mul(NANOS_PER_DAY);
    let range = TimeRange::new(start, start.saturating_add(NANOS_PER_DAY - 1));
    let limits = &request.limits;
    let sets = compile(&request.sets, limits)?;
    // A day lies in one partition, so there is at most one partition to count.
    for_each_live(reader, &sets, range, limits, watch, &mut |partition, state, live| {
        let matches = choose(partition, std::mem::take(live));
        let counted = count(partition, state, &matches, request, watch)?;
        cardinality = Cardinality { time_min_max: span, ..counted };
        Ok(())
    })?;
    let hidden = matchers_of_hidden(&sets);
    if has_hidden(reader, &range, watch)? && !hidden.is_empty() {
        for_each_live(reader, &hidden, range, limits, watch, &mut |partition, state, live| {
            let matches = choose(partition, std::mem::take(live));
            let hidden = count_hidden(state, &matches, request)?;
            cardinality.disk_bytes +=
                matches.iter().flat_map(|found| bytes_of(state, found)).sum::<u64>();
            cardinality.add_hidden(hidden, request.top_n);
            Ok(())
        })?;
    }
    Ok(cardinality)
}

/// Whether a partition of this time has hidden series.
fn has_hidden(reader: &Reader, range: &TimeRange, watch: &Watch) -> Result<bool> {
    for partition in reader.partitions.overlapping(range) {
        let mut on_rot =
            |segment: &index::Segment, error| watch.leave_out_segment(&partition, segment, error);
        if partition.read().series.index.knows_tag_noting(LABEL, &mut on_rot)? {
            return Ok(true);
        }
    }
    Ok(false)
}

impl NewSeries {
    fn add_hour(&mut self, hour: i64, series: u64) {
        match self.hours.iter_mut().find(|(known, _)| *known == hour) {
            Some((_, count)) => *count += series,
            None => self.hours.push((hour, series)),
        }
        self.hours.sort_unstable();
    }
}

impl Cardinality {
    /// Adds the counts of another partition: exact but for names that are in neither top list.
    fn add(&mut self, other: Cardinality, top: usize) {
        self.series += other.series;
        self.label_pairs += other.label_pairs;
        self.series_labels += other.series_labels;
        for (own, others) in [
            (&mut self.by_metric, other.by_metric),
            (&mut self.by_label, other.by_label),
            (&mut self.by_pair, other.by_pair),
            (&mut self.values_by_label, other.values_by_label),
            (&mut self.by_focus_value, other.by_focus_value),
        ] {
            join(own, others, top);
        }
    }

    /// Adds what histograms take beside the series that people see, under the metrics' own names;
    /// exact but for names that are in neither top list.
    fn add_hidden(&mut self, hidden: index::Cardinality, top: usize) {
        self.hidden_by_metric = named(hidden.focus_values);
        self.hidden_by_metric.truncate(top);
        join(&mut self.disk_bytes_by_metric, named(hidden.focus_bytes), top);
        let own_name = |(pair, bytes): (String, u64)| {
            let (label, value) = pair.split_once('=')?;
            match label {
                RUN_LABEL => None,
                LABEL => Some((format!("{METRIC_NAME}={value}"), bytes)),
                _ => Some((pair, bytes)),
            }
        };
        let pairs = hidden.pair_bytes.into_iter().filter_map(own_name).collect();
        join(&mut self.disk_bytes_by_pair, named(pairs), top);
    }
}

/// Adds counts to others of the same names, and keeps the largest.
fn join(own: &mut Vec<NameCount>, others: Vec<NameCount>, top: usize) {
    for row in others {
        match own.iter_mut().find(|known| known.name == row.name) {
            Some(known) => known.count += row.count,
            None => own.push(row),
        }
    }
    own.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.name.cmp(&b.name)));
    own.truncate(top);
}

/// Counts hidden series by the metrics that they belong to.
fn count_hidden(
    state: &PartitionState,
    matches: &[BlockMatch],
    request: &CardinalityRequest,
) -> Result<index::Cardinality> {
    let bytes = |found: &BlockMatch| bytes_of(state, found);
    let question = CardinalityQuestion {
        top: request.top_n + HIDDEN_TOP_MORE,
        focus: Some(LABEL),
        bytes: Some(&bytes),
    };
    Ok(state.series.index.cardinality(matches, &question)?)
}

/// The series of these entities that match.
fn matches_of(
    partition: &Partition,
    sets: &[CompiledMatchers],
    entities: &RoaringBitmap,
) -> Result<Vec<BlockMatch>> {
    let ordinals = ordinals_of(&partition.read(), entities)?;
    let search = Search::among(sets, Completeness::AtStart, Some(ordinals));
    let mut kept = Vec::new();
    for found in partition.search(search, &mut index::refuse_rot)? {
        let is_kept = |_, slot| entities.contains(found.block.entity(slot));
        push_kept(&found, &is_kept, &mut kept);
    }
    Ok(kept)
}

/// The ordinals of all series of these entities.
fn ordinals_of(state: &PartitionState, entities: &RoaringBitmap) -> Result<RoaringBitmap> {
    let mut ordinals = RoaringBitmap::new();
    for entity in entities {
        if let Some(block) = state.series.index.block_of(entity)? {
            let slot = block.slot(entity);
            ordinals.extend((0..to_u16(block.columns)).map(|column| block.ordinal(column, slot)));
        }
    }
    Ok(ordinals)
}

fn count(
    partition: &Partition,
    state: &PartitionState,
    matches: &[BlockMatch],
    request: &CardinalityRequest,
    watch: &Watch,
) -> Result<Cardinality> {
    let bytes = |found: &BlockMatch| bytes_of(state, found);
    let question = CardinalityQuestion {
        top: request.top_n,
        focus: request.focus_label.as_deref(),
        bytes: Some(&bytes),
    };
    let counted = state.series.index.cardinality(matches, &question)?;
    let series_in_all = state.series.index.series_count().max(1);
    let mut out = Cardinality {
        series: counted.series_count,
        label_pairs: counted.pair_count,
        series_labels: counted.series_label_count,
        by_metric: named(counted.metrics),
        by_label: named(counted.labels),
        by_pair: named(counted.pairs),
        values_by_label: named(counted.label_values),
        by_focus_value: named(counted.focus_values),
        disk_bytes: matches.iter().flat_map(&bytes).sum(),
        disk_bytes_by_metric: named(counted.metric_bytes),
        disk_bytes_by_pair: named(counted.pair_bytes),
        memory_bytes_per_series: series_memory(state) as f64 / series_in_all as f64,
        ..Cardinality::default()
    };
    for label in &out.values_by_label {
        let values = state.series.index.label_values(&label.name, matches)?;
        let count = values.iter().map(|value| value.len() as u64).sum();
        out.bytes_by_label.push(NameCount { name: label.name.clone(), count });
    }
    sort_by_count(&mut out.bytes_by_label);
    let mut on_rot =
        |segment: &index::Segment, error| watch.leave_out_segment(partition, segment, error);
    let sizes = state.series.index.label_sizes_noting(&mut on_rot)?;
    out.index_bytes_by_label = index_bytes_by_label(sizes, request.top_n);
    Ok(out)
}

/// Bytes of the index by label; what tells hidden series apart is one more name of a metric.
fn index_bytes_by_label(sizes: Vec<(String, u64)>, top: usize) -> Vec<NameCount> {
    let (of_hidden, own): (Vec<_>, Vec<_>) =
        sizes.into_iter().partition(|(name, _)| name == LABEL || name == RUN_LABEL);
    let of_hidden = of_hidden.into_iter().map(|(_, size)| (METRIC_NAME.to_string(), size));
    let mut out = Vec::new();
    join(&mut out, named(own), usize::MAX);
    join(&mut out, named(of_hidden.collect()), top);
    out
}

fn sort_by_count(list: &mut [NameCount]) {
    list.sort_by_key(|row| std::cmp::Reverse(row.count));
}

/// Bytes on disk of a match's columns, about: slots of a column count alike.
fn bytes_of(state: &PartitionState, found: &BlockMatch) -> Vec<u64> {
    let mut bytes = vec![0; found.columns.len()];
    for part in state.disk.parts() {
        let part = &part.part;
        for idx in part.find(found.block.series_start) {
            let slots = u64::from(part.slice(idx).slots.max(1));
            let matched = found.slots.len() as u64;
            let sizes: Vec<u64> = part.column_sizes(idx).collect();
            for (column, bytes) in found.columns.iter().zip(&mut bytes) {
                let size = sizes.get(usize::from(column)).copied().unwrap_or(0);
                *bytes += size * matched.min(slots) / slots;
            }
        }
    }
    bytes
}

/// Bytes of memory that knowing the series takes: keys, ids of newest rows, label sets that no
/// segment holds yet.
fn series_memory(state: &PartitionState) -> usize {
    state.series.memory_size() + size_of::<u32>() * state.series.entities_end()
}

fn named(counted: Vec<index::Counted>) -> Vec<NameCount> {
    counted.into_iter().map(|(name, count)| NameCount { name, count }).collect()
}

/// From the oldest sample that is stored to the newest; `None` when there is none.
fn stored_span(reader: &Reader) -> Option<(i64, i64)> {
    let spans = reader.partitions.all().into_iter().map(|one| one.read().time_min_max());
    spans.fold(None, join_spans)
}
