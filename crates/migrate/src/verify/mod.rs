//! `quipu migrate verify`: whether both sides have the same samples, series by series and day by day.

pub mod tails;

use super::exact::Exact;
use super::later;
use super::series::{Filter, Series, shortened};
use super::source::{Given, Sink, Source, Total, Window};
use crate::arguments::{text, time_of};
use crate::sources::kinds::Kind;
use crate::sources::remote_read::RemoteRead;
use anyhow::Context as _;
use clap::ArgMatches;
use cli::calendar::rfc3339;
use cli::error_text::sentence;
use cli::quantity::format_count;
use histogram::{Histogram, ResetHint};
use http_client::client::Client;
use indicatif::{ProgressBar, ProgressStyle};
use model::sample::{NANOS_PER_DAY, NANOS_PER_MILLI};
use model::{Labels, MatchOp, Matcher, TimeRange};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;
use std::sync::Arc;
use tails::Tails;
use wire::json_lines::{StringLine, histogram_text};

/// Exit code of a comparison that could not be made.
pub const COULD_NOT_RUN: u8 = 2;
const MILLIS_PER_DAY: i64 = NANOS_PER_DAY / NANOS_PER_MILLI;

/// Samples of windows that overlap which are in memory, about: 24 bytes each.
const SAMPLES_AT_ONCE: u64 = 32 << 20;

/// Metrics that are asked for by their names, and bytes of the pattern that does it.
const NAMES_MAX: usize = 200;
const PATTERN_SIZE_MAX: usize = 8 << 10;

/// Samples that are asked for at once, about, where a day has fewer.
const SPAN_SAMPLES_MAX: u64 = 1 << 20;

/// What is compared of a series on one day.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Sums {
    count: u64,
    first_ms: i64,
    last_ms: i64,
    sum: f64,
    /// Of times and bits, in any order.
    digest: u64,
    /// Samples that another one of the same time and another value replaced before the comparison.
    repeated: u64,
}

/// What a sample counts for: in the sum, and in the digest.
#[derive(Clone, Copy)]
struct Worth {
    value: f64,
    bits: u64,
}

/// FNV-1a.
const FNV_START: u64 = 0xcbf2_9ce4_8422_2325;

fn fnv(hash: u64, byte: u8) -> u64 {
    (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
}

impl Worth {
    fn of_sample(value: f64) -> Worth {
        Worth { value, bits: value.to_bits() }
    }

    /// Of a text, which has no value.
    fn of_text(text: &str) -> Worth {
        Worth { value: 0.0, bits: text.bytes().fold(FNV_START, fnv) }
    }

    /// Of all that a histogram says but for where it began anew, which stores find out by themselves, and
    /// for buckets of nothing.
    fn of_histogram(histogram: &Histogram) -> Worth {
        let mut plain = histogram.clone();
        plain.reset_hint = ResetHint::Unknown;
        plain.positive.retain(|bucket| bucket.count != 0.0);
        plain.negative.retain(|bucket| bucket.count != 0.0);
        let bits = histogram_text(&plain).bytes().fold(FNV_START, fnv);
        Worth { value: histogram.sum, bits }
    }
}

impl Sums {
    fn add(&mut self, millis: i64, Worth { value, bits }: Worth) {
        if self.count == 0 || millis < self.first_ms {
            self.first_ms = millis;
        }
        if self.count == 0 || self.last_ms < millis {
            self.last_ms = millis;
        }
        self.count += 1;
        self.sum += value;
        let mixed = (millis as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ bits;
        let mixed = (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        self.digest = self.digest.wrapping_add(mixed ^ mixed >> 32);
    }

    /// In what two differ, in words; nothing where they do not.
    fn difference(&self, here: &Sums) -> Option<String> {
        let time = |millis: i64| rfc3339(millis.saturating_mul(NANOS_PER_MILLI));
        if self.count != here.count {
            return Some(format!("{} samples there, {} here", self.count, here.count));
        }
        if (self.first_ms, self.last_ms) != (here.first_ms, here.last_ms) {
            let (first, last) = (time(self.first_ms), time(self.last_ms));
            let own = (time(here.first_ms), time(here.last_ms));
            return Some(format!("from {first} to {last} there, from {} to {} here", own.0, own.1));
        }
        if self.digest == here.digest {
            return None;
        }
        let sums = format!(
            "other values in {} samples of the same times: their sum is {} there, {} here",
            self.count, self.sum, here.sum
        );
        Some(match self.repeated {
            0 => sums,
            repeated => format!(
                "{sums}. The source has several values at one time {repeated} times; the last of its \
                 answer is compared, and Quipu keeps the one that was written last"
            ),
        })
    }
}

/// What both kinds of series have: numbers, and texts, which the other side is asked for in another way.
#[derive(Default)]
struct Sides {
    numbers: Side,
    texts: Side,
    /// Samples that came of one window, before those of a millisecond became one.
    samples: u64,
    /// Windows that could not be read completely, with the reason.
    unreadable: BTreeSet<String>,
}

impl Sides {
    /// Message about samples that the source counts and that were not read; none if there are none.
    fn unread(&self, total: Total) -> Option<String> {
        let (count, read, what) = match total {
            Total::Samples(count) => (count, self.samples, "samples"),
            Total::Series(count) => {
                let keys = self.numbers.keys().chain(self.texts.keys());
                let labels: BTreeSet<&Labels> = keys.map(|(_, labels)| labels).collect();
                (count, labels.len() as u64, "series")
            }
        };
        (read < count).then(|| {
            format!("the source counts {count} {what} and gave {read}: a part of it was not copied")
        })
    }
}

/// A series on one day.
type Key = (i64, Labels);
/// What a side has of some windows.
type Side = BTreeMap<Key, Sums>;

/// Compares; exit code 1 when something differs.
///
/// # Errors
/// When one side does not answer.
pub fn run(matches: &ArgMatches) -> anyhow::Result<ExitCode> {
    let show = text(matches, "show");
    let show: u64 = show.parse().with_context(|| format!("--show {show}: no number"))?;
    let filter = Arc::new(Filter::of(matches)?);
    let range = time_of(matches)?;
    let mut there = Kind::of(matches)?.open(matches, &filter, range)?;
    // With other labels the selectors mean something else here: then all series are looked at.
    let own_filter = if filter.changes_labels() { Arc::new(Filter::all()) } else { filter.clone() };
    let client = Client::new(matches)?.refusing_partial();
    let mut here = RemoteRead::new(client, own_filter, range);
    let windows = there.windows()?;
    later::say(there.as_mut(), &filter, range.end);
    let mut is_counted = filter.selectors.is_empty() && !filter.changes_labels();
    let groups = match there.is_disjoint() && !filter.changes_labels() {
        true => windows.iter().map(|one| vec![one]).collect(),
        false => groups(&windows),
    };
    let bar = ProgressBar::new(groups.len() as u64);
    let template = "{bar:30} {pos} of {len} windows, {msg}, {eta} left";
    bar.set_style(ProgressStyle::with_template(template)?);
    bar.set_message("0 samples, 0 differences");
    let mut found = Found::default();
    for group in &groups {
        let parts = match group.len() == 1 && !there.is_scattered() {
            true => 1,
            false => parts(group),
        };
        for part in 0..parts {
            let look = Look { filter: &filter, part, parts };
            let theirs = read_there(there.as_mut(), group, &look)?;
            let mut say = |count, words| {
                if count <= show {
                    bar.suspend(|| cli::print_line!("{words}"));
                }
            };
            for words in &theirs.unreadable {
                if found.unreadable.insert(words.clone()) {
                    bar.suspend(|| eprintln!("quipu: {words}"));
                }
            }
            let own = read_here(&mut here, group, &theirs.numbers)?;
            found.compare(&theirs.numbers, &own, &mut say);
            let own = read_texts_here(&mut here, group, &theirs.texts)?;
            found.compare(&theirs.texts, &own, &mut say);
            if let ([window], true) = (group.as_slice(), is_counted && parts == 1) {
                // A comparison is worth something without it.
                match there.count(window) {
                    Ok(total) => {
                        let unread = total.map(|total| theirs.unread(total));
                        found.check_total(window, unread, &mut say);
                    }
                    Err(error) => {
                        let words = sentence(&error);
                        bar.suspend(|| eprintln!("quipu: {window} is not counted: {words}"));
                        is_counted = false;
                    }
                }
            }
        }
        let Found { samples, differing, .. } = &found;
        bar.set_message(format!("{} samples, {differing} differences", format_count(*samples)));
        bar.inc(1);
    }
    bar.finish_and_clear();
    filter.losses().iter().for_each(|words| cli::print_line!("{words}"));
    Ok(found.end())
}

/// What was compared so far.
#[derive(Clone, Debug, Default)]
struct Found {
    compared: u64,
    differing: u64,
    samples: u64,
    /// Samples of the source that a later one of the same time replaced.
    repeated: u64,
    /// Windows whose totals the source has told.
    counted: u64,
    /// Windows that could not be read completely.
    unreadable: BTreeSet<String>,
}

impl Found {
    /// Prints the outcome; returns the exit code.
    fn end(&self) -> ExitCode {
        let Found { compared, differing, samples, repeated, counted, unreadable } = self;
        cli::print_line!(
            "{compared} series and days with {samples} samples compared; {differing} differ"
        );
        if 0 < *repeated {
            cli::print_line!(
                "{repeated} samples of the source have the time of a later one with another value; \
                 of these only the last was compared"
            );
        }
        if 0 < *counted {
            cli::print_line!("{counted} windows were also counted by the source in another way");
        }
        if !unreadable.is_empty() {
            cli::print_line!("{} windows could not be read as a whole", unreadable.len());
        }
        match (differing, unreadable.is_empty()) {
            (0, true) => ExitCode::SUCCESS,
            (0, false) => ExitCode::from(COULD_NOT_RUN),
            _ => ExitCode::FAILURE,
        }
    }
}

impl Found {
    /// Takes what a window's total leaves over, where the source has told it.
    fn check_total(
        &mut self,
        window: &Window,
        unread: Option<Option<String>>,
        say: &mut dyn FnMut(u64, String),
    ) {
        self.counted += u64::from(unread.is_some());
        if let Some(words) = unread.flatten() {
            self.differing += 1;
            say(self.differing, format!("{window}: {words}"));
        }
    }

    /// Compares; `say` gets each difference and its number.
    fn compare(&mut self, theirs: &Side, own: &Side, say: &mut dyn FnMut(u64, String)) {
        for (key, sums) in theirs {
            self.compared += 1;
            self.samples += sums.count;
            self.repeated += sums.repeated;
            let found = own.get(key).copied().unwrap_or_default();
            if let Some(words) = sums.difference(&found) {
                self.differing += 1;
                let day = rfc3339(key.0 * NANOS_PER_DAY);
                let day = day.split('T').next().unwrap_or_default();
                say(self.differing, format!("{day} {}: {words}", shortened(&key.1)));
            }
        }
    }
}

/// Which series are looked at in one go.
struct Look<'a> {
    filter: &'a Filter,
    /// Series fall into so many parts, and this is one.
    part: u128,
    parts: u128,
}

impl Look<'_> {
    /// By the labels that a series has in the new place.
    fn takes(&self, labels: &Labels) -> bool {
        self.parts == 1 || labels.fingerprint() % self.parts == self.part
    }
}

/// How often a group is read: its samples may have to be in memory.
fn parts(group: &[&Window]) -> u128 {
    let samples: u64 = group.iter().filter_map(|one| one.samples).sum();
    u128::from(1 + samples / SAMPLES_AT_ONCE)
}

/// Windows whose times overlap are one to compare, as blocks of several Prometheis are, or those with
/// samples that came late.
fn groups(windows: &[Window]) -> Vec<Vec<&Window>> {
    let mut sorted: Vec<usize> = (0..windows.len()).collect();
    sorted.sort_by_key(|&at| windows[at].range.start);
    let mut groups: Vec<(i64, Vec<usize>)> = Vec::new();
    for at in sorted {
        let TimeRange { start, end } = windows[at].range;
        match groups.last_mut() {
            Some((last, group)) if start <= *last => {
                *last = end.max(*last);
                group.push(at);
            }
            _ => groups.push((end, vec![at])),
        }
    }
    // The newest first, and in a group what is copied first.
    let in_order = |(_, mut group): (i64, Vec<usize>)| {
        group.sort_unstable();
        group.into_iter().map(|at| &windows[at]).collect()
    };
    groups.into_iter().rev().map(in_order).collect()
}

fn read_there(
    there: &mut dyn Source,
    group: &[&Window],
    asked: &Look<'_>,
) -> anyhow::Result<Sides> {
    let (mut side, mut texts, mut samples) = (Side::new(), Side::new(), 0);
    let mut unreadable = BTreeSet::new();
    let all = |_: &Key| Some(i64::MAX);
    if let ([window], false) = (group, there.is_scattered()) {
        let mut tails = Tails::default();
        read_window(there, window, &mut unreadable, &mut |given| {
            given.each_time(&mut |_, count| samples += count);
            given
                .strings(asked.filter)
                .into_iter()
                .for_each(|one| add_texts(&mut texts, tails.texts(one), &all));
            let series = given.into_series(asked.filter).into_iter();
            // One without a name is not copied.
            let named = series.filter(|one| !one.labels.metric_name().is_empty());
            named.for_each(|one| add(&mut side, &tails.series(one), &all));
            Ok(())
        })?;
        if there.has_repeated() {
            return read_there(there, group, asked);
        }
        let (ends, lines) = tails.end();
        ends.iter().for_each(|one| add(&mut side, one, &all));
        lines.into_iter().for_each(|one| add_texts(&mut texts, one, &all));
        return Ok(Sides { numbers: side, texts, samples, unreadable });
    }
    // Samples of the same time are one here: of all windows together.
    let mut whole: BTreeMap<Labels, Exact> = BTreeMap::new();
    let mut whole_texts: BTreeMap<Labels, StringLine> = BTreeMap::new();
    for window in group {
        read_window(there, window, &mut unreadable, &mut |given| {
            for mut line in given.strings(asked.filter) {
                if asked.takes(&line.labels) {
                    match whole_texts.entry(line.labels.clone()) {
                        Entry::Vacant(place) => drop(place.insert(line)),
                        Entry::Occupied(mut place) => {
                            place.get_mut().samples.append(&mut line.samples);
                        }
                    }
                }
            }
            for mut exact in given.into_exact(asked.filter) {
                if exact.labels.metric_name().is_empty() || !asked.takes(&exact.labels) {
                    continue;
                }
                match whole.entry(exact.labels.clone()) {
                    Entry::Vacant(place) => drop(place.insert(exact)),
                    Entry::Occupied(mut place) => {
                        place.get_mut().samples.append(&mut exact.samples);
                        place.get_mut().histograms.append(&mut exact.histograms);
                    }
                }
            }
            Ok(())
        })?;
    }
    for exact in whole.into_values() {
        add(&mut side, &exact.into_series(), &all);
    }
    whole_texts.into_values().for_each(|line| add_texts(&mut texts, line, &all));
    Ok(Sides { numbers: side, texts, samples, unreadable })
}

/// Reads a window. One that says nothing of the others, as a file that cannot be read, does not end the
/// comparison: what came of it counts.
fn read_window(
    there: &mut dyn Source,
    window: &Window,
    unreadable: &mut BTreeSet<String>,
    sink: &mut Sink<'_>,
) -> anyhow::Result<()> {
    match there.read(window, sink) {
        Err(error) if there.is_apart() => {
            unreadable.insert(format!("{window}: {error:#}"));
            Ok(())
        }
        read => read,
    }
}

/// The same as [`read_here`] of texts.
fn read_texts_here(
    here: &mut RemoteRead,
    group: &[&Window],
    theirs: &Side,
) -> anyhow::Result<Side> {
    let whole = time_of_group(group);
    let last = |key: &Key| theirs.get(key).map(|sums| sums.last_ms);
    let mut own = Side::new();
    for span in spans(theirs) {
        let mut tails = Tails::default();
        let selector = span.matcher().map(|matcher| {
            let pattern = matcher.value.replace('\\', "\\\\").replace('"', "\\\"");
            format!("{{__name__=~\"{}\"}}", pattern.replace('\n', "\\n"))
        });
        let selector = selector.unwrap_or_else(|| "{__name__!=\"\"}".to_string());
        here.read_strings(&span.time().intersect(&whole), &[selector], &mut |given| {
            for line in given.strings(&Filter::all()) {
                add_texts(&mut own, tails.texts(line), &last);
            }
            Ok(())
        })?;
        let (_, lines) = tails.end();
        lines.into_iter().for_each(|line| add_texts(&mut own, line, &last));
    }
    Ok(own)
}

/// The time of some windows. Answers are in milliseconds: the one that a window begins in is of it.
fn time_of_group(group: &[&Window]) -> TimeRange {
    let start = group.iter().map(|one| one.range.start.div_euclid(NANOS_PER_MILLI)).min();
    let start = start.unwrap_or_default().saturating_mul(NANOS_PER_MILLI);
    TimeRange::new(start, group.iter().map(|one| one.range.end).max().unwrap_or_default())
}

/// What Quipu has of series that are there, up to their last sample: clients write to it already.
fn read_here(here: &mut RemoteRead, group: &[&Window], theirs: &Side) -> anyhow::Result<Side> {
    let whole = time_of_group(group);
    let mut own = Side::new();
    for span in spans(theirs) {
        let range = span.time().intersect(&whole);
        let window = Window { name: String::new(), range, samples: None };
        let mut take = |given: Given| {
            for series in given.into_series(&Filter::all()) {
                add(&mut own, &series, &|key| theirs.get(key).map(|sums| sums.last_ms));
            }
            Ok(())
        };
        match span.matcher() {
            Some(matcher) => here.read_matching(&window, vec![vec![matcher]], &mut take)?,
            None => here.read(&window, &mut take)?,
        }
    }
    Ok(own)
}

/// Days that are asked for at once.
struct Span<'a> {
    first: i64,
    last: i64,
    samples: u64,
    /// The metrics that are there.
    names: BTreeSet<&'a str>,
}

impl<'a> Span<'a> {
    fn new(day: i64) -> Span<'a> {
        Span { first: day, last: day, samples: 0, names: BTreeSet::new() }
    }

    fn time(&self) -> TimeRange {
        let nanos = |day: i64| day.saturating_mul(NANOS_PER_DAY);
        TimeRange::new(nanos(self.first), nanos(self.last + 1).saturating_sub(1))
    }

    /// What chooses its metrics, where they are few.
    fn matcher(&self) -> Option<Matcher> {
        let quoted: Vec<String> = self.names.iter().map(|name| regex::escape(name)).collect();
        let pattern = quoted.join("|");
        let is_short = self.names.len() <= NAMES_MAX && pattern.len() <= PATTERN_SIZE_MAX;
        is_short.then(|| Matcher::new(model::METRIC_NAME, MatchOp::Regex, &pattern))
    }
}

/// The days that are there, many together where they have few samples of few metrics.
fn spans(theirs: &Side) -> Vec<Span<'_>> {
    let mut spans: Vec<Span<'_>> = Vec::new();
    for ((day, labels), sums) in theirs {
        let name = labels.metric_name();
        let is_full = |span: &Span<'_>| {
            span.last != *day && (SPAN_SAMPLES_MAX <= span.samples || NAMES_MAX <= span.names.len())
        };
        if spans.last().is_none_or(is_full) {
            spans.push(Span::new(*day));
        }
        if let Some(span) = spans.last_mut() {
            span.last = *day;
            span.samples += sums.count;
            span.names.insert(name);
        }
    }
    spans
}

/// The last millisecond of a series' day that counts; none where none does.
type Last<'a> = &'a dyn Fn(&Key) -> Option<i64>;

fn add(side: &mut Side, series: &Series, last: Last<'_>) {
    let labels = &series.labels;
    let samples = series.samples.iter().map(|one| (one.millis, Worth::of_sample(one.value)));
    add_values(side, labels, samples, last);
    let histograms = series.histograms.iter();
    let histograms = histograms.map(|one| (one.millis, Worth::of_histogram(&one.histogram)));
    add_values(side, labels, histograms, last);
    for millis in &series.repeated {
        let key = (millis.div_euclid(MILLIS_PER_DAY), labels.clone());
        if let Some(sums) = side.get_mut(&key) {
            sums.repeated += 1;
        }
    }
}

/// Adds texts: of one millisecond the last.
fn add_texts(side: &mut Side, mut line: StringLine, last: Last<'_>) {
    line.samples.sort_by_key(|(nanos, _)| *nanos);
    let mut values: Vec<(i64, Worth)> = Vec::with_capacity(line.samples.len());
    for (nanos, text) in &line.samples {
        let value = (nanos.div_euclid(NANOS_PER_MILLI), Worth::of_text(text));
        match values.last_mut() {
            Some(before) if before.0 == value.0 => *before = value,
            _ => values.push(value),
        }
    }
    add_values(side, &line.labels, values.into_iter(), last);
}

/// Adds values in the order of their times: a day's are looked up once.
fn add_values(
    side: &mut Side,
    labels: &Labels,
    values: impl Iterator<Item = (i64, Worth)>,
    last: Last<'_>,
) {
    let mut values = values.peekable();
    while let Some(&(millis, _)) = values.peek() {
        let day = millis.div_euclid(MILLIS_PER_DAY);
        let key = (day, labels.clone());
        let last_ms = last(&key);
        let mut sums = last_ms.map(|_| side.entry(key).or_default());
        let is_same_day = |(millis, _): &(i64, Worth)| millis.div_euclid(MILLIS_PER_DAY) == day;
        while let Some((millis, worth)) = values.next_if(is_same_day) {
            if let (Some(sums), Some(last_ms)) = (sums.as_mut(), last_ms)
                && millis <= last_ms
            {
                sums.add(millis, worth);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use histogram::Bucket;
    use wire::remote_write::encode::MillisSample;

    fn sums(samples: &[(i64, f64)]) -> Sums {
        let mut sums = Sums::default();
        let mut add = |millis, value| sums.add(millis, Worth::of_sample(value));
        samples.iter().for_each(|(millis, value)| add(*millis, *value));
        sums
    }

    #[test]
    fn histograms_are_compared_bucket_by_bucket() {
        let bucket = |index, count| Bucket { index, count };
        let of =
            |positive: Vec<Bucket>| Histogram { count: 10.0, positive, ..Histogram::default() };
        let bits = |histogram: &Histogram| Worth::of_histogram(histogram).bits;
        let one = of(vec![bucket(0, 1.0), bucket(1, 2.0), bucket(2, 7.0)]);
        let turned = of(vec![bucket(0, 7.0), bucket(1, 2.0), bucket(2, 1.0)]);
        assert_ne!(bits(&one), bits(&turned));
        assert_ne!(bits(&one), bits(&Histogram { zero_threshold: 0.5, ..one.clone() }));
        let mut same = Histogram { reset_hint: ResetHint::NoReset, ..one.clone() };
        same.positive.push(bucket(9, 0.0));
        assert_eq!(bits(&one), bits(&same));
    }

    #[test]
    fn days_are_apart() {
        let sample = |(millis, value)| MillisSample { millis, value };
        let samples = [(-1, 1.0), (0, 2.0), (MILLIS_PER_DAY - 1, 3.0), (MILLIS_PER_DAY, 4.0)];
        let labels = Labels::from_pairs(&[("__name__", "x")]);
        let samples = samples.map(sample).to_vec();
        let mut side = Side::new();
        let series = Series {
            labels: labels.clone(),
            samples,
            histograms: Vec::new(),
            repeated: Vec::new(),
        };
        add(&mut side, &series, &|_| Some(i64::MAX));
        let found: Vec<_> =
            side.iter().map(|((day, _), sums)| (*day, sums.count, sums.sum)).collect();
        assert_eq!(found, [(-1, 1, 1.0), (0, 2, 5.0), (1, 1, 4.0)]);
        // Of one that is not there nothing, of the others what is not newer.
        let mut own = Side::new();
        add(&mut own, &series, &|(day, _)| (*day != 1).then_some(0));
        let found: Vec<_> = own.iter().map(|((day, _), sums)| (*day, sums.count)).collect();
        assert_eq!(found, [(-1, 1), (0, 1)]);
    }

    #[test]
    fn days_of_few_samples_are_asked_for_together() {
        let mut side = Side::new();
        let mut put = |day, name: &str, count| {
            let labels = Labels::from_pairs(&[("__name__", name)]);
            side.insert((day, labels), Sums { count, ..Sums::default() });
        };
        put(1, "a.b", 5);
        put(3, "c", SPAN_SAMPLES_MAX);
        put(3, "d", 1);
        put(9, "a.b", 1);
        (0..=NAMES_MAX).for_each(|name| put(20, &format!("m{name}"), 1));
        put(21, "z", 1);
        let found: Vec<(i64, i64)> =
            spans(&side).iter().map(|span| (span.first, span.last)).collect();
        assert_eq!(found, [(1, 3), (9, 20), (21, 21)]);
        assert_eq!(spans(&side)[0].matcher().unwrap().value, "a\\.b|c|d");
        assert!(spans(&side)[1].matcher().is_none());
    }

    #[test]
    fn totals_that_are_larger_than_what_came_are_named() {
        let mut sides = Sides { samples: 5, ..Sides::default() };
        for (day, name) in [(1, "a"), (2, "a"), (2, "b")] {
            let key = (day, Labels::from_pairs(&[("__name__", name)]));
            sides.numbers.insert(key, Sums::default());
        }
        for total in [Total::Samples(4), Total::Samples(5), Total::Series(2)] {
            assert_eq!(sides.unread(total), None, "{total:?}");
        }
        let words = |total| sides.unread(total).expect("not all of it");
        assert!(words(Total::Samples(6)).contains("counts 6 samples and gave 5"));
        assert!(words(Total::Series(3)).contains("counts 3 series and gave 2"));
    }

    #[test]
    fn windows_that_overlap_are_compared_together() {
        let window = |name: &str, start, end| Window {
            name: name.into(),
            range: TimeRange::new(start, end),
            samples: None,
        };
        let all = [window("d", 30, 40), window("c", 12, 25), window("b", 5, 12), window("a", 0, 4)];
        let names: Vec<String> = groups(&all)
            .iter()
            .map(|group| group.iter().map(|one| one.name.as_str()).collect())
            .collect();
        assert_eq!(names, ["d", "cb", "a"]);
    }

    #[test]
    fn what_differs_is_said() {
        let whole = sums(&[(1, 1.0), (2, f64::NAN)]);
        assert_eq!(whole.difference(&sums(&[(2, f64::NAN), (1, 1.0)])), None);
        let words = |other: &[(i64, f64)]| whole.difference(&sums(other)).unwrap();
        assert!(words(&[(1, 1.0)]).contains("2 samples there, 1 here"));
        assert!(words(&[(1, 1.0), (3, f64::NAN)]).starts_with("from 1970"));
        assert!(words(&[(1, 2.0), (2, f64::NAN)]).starts_with("other values in 2 samples"));
    }

    #[test]
    fn several_values_at_one_time_are_named() {
        let sample = |(millis, value)| MillisSample { millis, value };
        let side = |samples: &[(i64, f64)]| {
            let mut series = Series {
                labels: Labels::from_pairs(&[("__name__", "x")]),
                samples: samples.iter().copied().map(sample).collect(),
                histograms: Vec::new(),
                repeated: Vec::new(),
            };
            series.tidy(&TimeRange::ALL);
            let mut side = Side::new();
            add(&mut side, &series, &|_| Some(i64::MAX));
            side.into_values().next().expect("one day")
        };
        // Two samples of the same value are one.
        let theirs = side(&[(1, 5.0), (1, 6.0), (2, 7.0), (2, 7.0)]);
        assert_eq!((theirs.count, theirs.repeated), (2, 1));
        let words = theirs.difference(&side(&[(1, 5.0), (2, 7.0)])).expect("other values");
        assert!(words.contains("several values at one time 1 times"), "{words}");
        assert_eq!(theirs.difference(&side(&[(1, 6.0), (2, 7.0)])), None);
    }
}
