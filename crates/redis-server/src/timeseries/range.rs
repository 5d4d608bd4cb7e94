//! Samples of one series: what was asked for, what is shown.

use super::aggregate::{Aggregation, Aggregator, Around, BucketTime, Rows, aggregate};
use super::filter::Filter;
use super::rules;
use super::samples::{self, Sample, TIME_MS_MAX};
use super::series::{self, Found};
use super::words::{AGGREGATION, UNKNOWN_AGGREGATION, error, put_value};
use crate::commands::Flow;
use crate::dispatch::Context;
use kv::number::{parse_f64, parse_i64};
use kv::{CommandError, Reply};

/// Times of `FILTER_BY_TS`.
const TIMES_MAX: usize = 128;

/// What was asked for.
#[derive(Clone, Debug, Default)]
pub struct Query {
    /// From this instant on, in milliseconds.
    pub from_ms: i64,
    /// Up to this one.
    pub to_ms: i64,
    /// Newest first.
    pub is_reverse: bool,
    /// With what a compaction has not written yet.
    pub is_latest: bool,
    times: Option<Vec<i64>>,
    values: Option<(f64, f64)>,
    /// So many rows.
    pub count: Option<usize>,
    /// By buckets.
    pub aggregation: Option<Aggregation>,
    /// Of how many keys each has aggregators of its own; none if all have the same.
    key_count: Option<usize>,
    /// How many aggregators each of them has.
    widths: Vec<usize>,
    /// Of which series, for commands about many.
    pub multi: Multi,
}

/// What commands about many series are asked besides.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Multi {
    pub has_labels: bool,
    pub selected: Option<Vec<String>>,
    pub filters: Vec<Filter>,
    pub group: Option<(String, Aggregator)>,
    pub leaves_empty_out: bool,
}

/// The beginning of a range.
///
/// # Errors
/// When it is no time.
pub fn from_arg(context: &Context<'_, '_>, text: &[u8]) -> Result<i64, CommandError> {
    bound(context, text).ok_or_else(|| error("wrong fromTimestamp"))
}

/// The end of a range.
///
/// # Errors
/// When it is no time.
pub fn to_arg(context: &Context<'_, '_>, text: &[u8]) -> Result<i64, CommandError> {
    bound(context, text).ok_or_else(|| error("wrong toTimestamp"))
}

fn bound(context: &Context<'_, '_>, text: &[u8]) -> Option<i64> {
    match text {
        b"-" => Some(0),
        b"+" => Some(TIME_MS_MAX),
        b"*" => Some(context.keys.now_ms()),
        digits => parse_i64(digits).filter(|ms| 0 <= *ms).map(|ms| ms.min(TIME_MS_MAX)),
    }
}

/// The words with which an option begins.
const WORDS: &[&str] = &[
    "LATEST",
    "FILTER_BY_TS",
    "FILTER_BY_VALUE",
    "COUNT",
    "ALIGN",
    "AGGREGATION",
    "BUCKETTIMESTAMP",
    "EMPTY",
    "WITHLABELS",
    "SELECTED_LABELS",
    "FILTER",
    "GROUPBY",
    "REDUCE",
    "EXCLUDEEMPTY",
];

/// Whether an argument begins an option.
pub fn is_word(arg: &[u8]) -> bool {
    WORDS.iter().any(|word| word.as_bytes().eq_ignore_ascii_case(arg))
}

/// What `ALIGN` says.
enum Align {
    Start,
    End,
    At(i64),
}

impl Query {
    /// All samples, so many at most.
    pub fn of_count(count: Option<usize>) -> Query {
        Query { count, ..Query::default() }
    }

    /// Reads a range and what follows it: arguments from `at` on.
    ///
    /// # Errors
    /// When it is not understood.
    pub fn parse(
        context: &Context<'_, '_>,
        at: usize,
        is_reverse: bool,
    ) -> Result<Query, CommandError> {
        Query { is_reverse, ..Query::default() }.read(context, at)
    }

    /// The same for so many keys, each with aggregators of its own.
    ///
    /// # Errors
    /// When it is not understood.
    pub fn parse_of_keys(
        context: &Context<'_, '_>,
        key_count: usize,
        is_reverse: bool,
    ) -> Result<Query, CommandError> {
        let query = Query { is_reverse, key_count: Some(key_count), ..Query::default() };
        let query = query.read(context, 2 + key_count)?;
        match query.multi == Multi::default() {
            true => Ok(query),
            false => Err(error("FILTER, GROUPBY and labels are not for keys that are named")),
        }
    }

    fn read(self, context: &Context<'_, '_>, at: usize) -> Result<Query, CommandError> {
        let args = context.args;
        let mut query = Query {
            from_ms: from_arg(context, args[at])?,
            to_ms: to_arg(context, args[at + 1])?,
            ..self
        };
        let (mut align, mut time, mut is_empty_shown) = (None, None, false);
        let mut next = at + 2;
        while let Some(word) = args.get(next) {
            let rest = args.get(next + 1..).unwrap_or_default();
            next += 1 + match word.to_ascii_uppercase().as_slice() {
                b"ALIGN" => {
                    align = Some(align_arg(rest)?);
                    1
                }
                b"BUCKETTIMESTAMP" => {
                    time = Some(bucket_time_arg(rest)?);
                    1
                }
                b"EMPTY" => {
                    is_empty_shown = true;
                    0
                }
                word => query.take(word, rest)?,
            };
        }
        let bounds = (args[at], args[at + 1]);
        query.finish(align, time, is_empty_shown, bounds)?;
        Ok(query)
    }

    /// The same without a range: options from the first argument on.
    ///
    /// # Errors
    /// When it is not understood.
    pub fn parse_without_range(context: &Context<'_, '_>) -> Result<Query, CommandError> {
        let mut query = Query { to_ms: TIME_MS_MAX, ..Query::default() };
        let mut next = 1;
        while let Some(word) = context.args.get(next) {
            let rest = context.args.get(next + 1..).unwrap_or_default();
            next += 1 + match word.to_ascii_uppercase().as_slice() {
                b"LATEST" => query.take(b"LATEST", rest)?,
                word => query.multi.take(word, rest)?,
            };
        }
        Ok(query)
    }

    /// Takes an option. Returns how many arguments follow it.
    fn take(&mut self, word: &[u8], rest: &[&[u8]]) -> Result<usize, CommandError> {
        match word {
            b"LATEST" => self.is_latest = true,
            b"COUNT" => {
                let count = rest.first().and_then(|text| parse_i64(text));
                let count = count.and_then(|count| usize::try_from(count).ok());
                self.count = Some(count.ok_or_else(|| error("Couldn't parse COUNT"))?);
                return Ok(1);
            }
            b"FILTER_BY_TS" => {
                let times: Vec<i64> = rest.iter().map_while(|text| parse_i64(text)).collect();
                if times.is_empty() {
                    return Err(error("FILTER_BY_TS one or more arguments are missing"));
                }
                if TIMES_MAX < times.len() {
                    return Err(error(format!("FILTER_BY_TS takes at most {TIMES_MAX} times")));
                }
                let count = times.len();
                self.times = Some(times);
                return Ok(count);
            }
            b"FILTER_BY_VALUE" => {
                let [min, max, ..] = rest else {
                    return Err(error("FILTER_BY_VALUE one or more arguments are missing"));
                };
                let min = parse_f64(min).ok_or_else(|| error("Couldn't parse MIN"))?;
                let max = parse_f64(max).ok_or_else(|| error("Couldn't parse MAX"))?;
                self.values = Some((min, max));
                return Ok(2);
            }
            b"AGGREGATION" => {
                let count = self.key_count.unwrap_or(1);
                let (aggregation, widths) = aggregation_arg(rest, count)?;
                (self.aggregation, self.widths) = (Some(aggregation), widths);
                return Ok(count + 1);
            }
            _ => return self.multi.take(word, rest),
        }
        Ok(0)
    }

    /// Brings together what belongs to the aggregation.
    fn finish(
        &mut self,
        align: Option<Align>,
        time: Option<BucketTime>,
        is_empty_shown: bool,
        bounds: (&[u8], &[u8]),
    ) -> Result<(), CommandError> {
        let Some(aggregation) = &mut self.aggregation else {
            return match align.is_some() || time.is_some() || is_empty_shown {
                true => Err(error("ALIGN, BUCKETTIMESTAMP and EMPTY need AGGREGATION")),
                false => Ok(()),
            };
        };
        aggregation.time = time.unwrap_or_default();
        aggregation.is_empty_shown = is_empty_shown;
        aggregation.align_ms = match align {
            None => 0,
            Some(Align::At(ms)) => ms,
            Some(Align::Start) if bounds.0 == b"-" => {
                let words = "start alignment can only be used with explicit start timestamp";
                return Err(error(words));
            }
            Some(Align::End) if bounds.1 == b"+" => {
                let words = "end alignment can only be used with explicit end timestamp";
                return Err(error(words));
            }
            Some(Align::Start) => self.from_ms,
            Some(Align::End) => self.to_ms,
        };
        if self.multi.group.is_some() && 1 < aggregation.aggregators.len() {
            return Err(error("GROUPBY takes one aggregator"));
        }
        Ok(())
    }

    /// What is asked of each of the keys.
    pub fn of_keys(&self, key_count: usize) -> Vec<Query> {
        let Some(all) = &self.aggregation else { return vec![self.clone(); key_count] };
        let mut rest = all.aggregators.as_slice();
        let of_key = |width: &usize| {
            let (aggregators, others) = rest.split_at((*width).min(rest.len()));
            rest = others;
            let aggregation = Aggregation { aggregators: aggregators.to_vec(), ..all.clone() };
            Query { aggregation: Some(aggregation), ..self.clone() }
        };
        self.widths.iter().map(of_key).collect()
    }

    /// Whether what lies around the range is needed when there are samples in it.
    fn looks_around(&self) -> bool {
        let aggregators = self.aggregation.iter().flat_map(|one| &one.aggregators);
        aggregators.into_iter().any(|one| *one == Aggregator::Twa)
    }

    /// Whether empty buckets reach to the samples beside the range. Of those nobody knows whether they
    /// would be shown where some are left out.
    fn fills(&self) -> bool {
        self.aggregation.as_ref().is_some_and(|one| one.is_empty_shown)
            && self.times.is_none()
            && self.values.is_none()
    }

    /// Whether a sample is wanted.
    fn takes(&self, sample: &Sample) -> bool {
        self.times.as_ref().is_none_or(|times| times.contains(&sample.ms))
            && self.values.is_none_or(|(min, max)| min <= sample.value && sample.value <= max)
    }

    /// What is shown of samples of the range.
    ///
    /// # Errors
    /// When there is too much of it.
    pub fn rows(&self, samples: Vec<Sample>, around: &Around) -> Result<Rows, CommandError> {
        let samples: Vec<Sample> =
            samples.into_iter().filter(|sample| self.takes(sample)).collect();
        match &self.aggregation {
            Some(aggregation) => aggregate(&samples, aggregation, around),
            None => Ok(Rows::of(&samples)),
        }
    }
}

impl Multi {
    /// Takes an option. Returns how many arguments follow it.
    fn take(&mut self, word: &[u8], rest: &[&[u8]]) -> Result<usize, CommandError> {
        let until_word = || rest.iter().take_while(|arg| !is_word(arg));
        match word {
            b"WITHLABELS" => self.has_labels = true,
            b"EXCLUDEEMPTY" => self.leaves_empty_out = true,
            b"SELECTED_LABELS" => {
                let labels: Vec<String> =
                    until_word().map(|label| String::from_utf8_lossy(label).into_owned()).collect();
                if labels.is_empty() {
                    return Err(error("SELECTED_LABELS should have at least 1 parameter"));
                }
                let count = labels.len();
                self.selected = Some(labels);
                return Ok(count);
            }
            b"FILTER" => {
                self.filters =
                    until_word().map(|text| Filter::parse(text)).collect::<Result<_, _>>()?;
                return Ok(self.filters.len());
            }
            b"GROUPBY" => {
                let [label, reduce, reducer, ..] = rest else {
                    return Err(error("GROUPBY needs a label, REDUCE and a reducer"));
                };
                if !reduce.eq_ignore_ascii_case(b"REDUCE") {
                    return Err(error("GROUPBY needs REDUCE"));
                }
                let reducer = Aggregator::parse(reducer).filter(|one| one.is_reducer());
                let reducer = reducer.ok_or_else(|| error("Invalid reducer type"))?;
                self.group = Some((String::from_utf8_lossy(label).into_owned(), reducer));
                return Ok(3);
            }
            word => {
                let word = String::from_utf8_lossy(word);
                return Err(error(format!("unknown argument {word}")));
            }
        }
        Ok(0)
    }

    /// Fails when no series is asked for, or too much is said of them.
    ///
    /// # Errors
    /// In those cases.
    pub fn check(&self) -> Result<(), CommandError> {
        if self.filters.is_empty() {
            return Err(error("missing FILTER argument"));
        }
        if self.has_labels && self.selected.is_some() {
            return Err(error("cannot accept WITHLABELS and SELECT_LABELS together"));
        }
        if self.leaves_empty_out && self.group.is_some() {
            return Err(error("EXCLUDEEMPTY is not allowed with GROUPBY"));
        }
        Ok(())
    }
}

fn align_arg(rest: &[&[u8]]) -> Result<Align, CommandError> {
    let unknown = || error("unknown ALIGN parameter");
    let text = rest.first().ok_or_else(unknown)?;
    match text.to_ascii_lowercase().as_slice() {
        b"-" | b"start" => Ok(Align::Start),
        b"+" | b"end" => Ok(Align::End),
        digits => parse_i64(digits).filter(|ms| 0 <= *ms).map(Align::At).ok_or_else(unknown),
    }
}

fn bucket_time_arg(rest: &[&[u8]]) -> Result<BucketTime, CommandError> {
    let unknown = || error("unknown BUCKETTIMESTAMP parameter");
    match rest.first().ok_or_else(unknown)?.to_ascii_lowercase().as_slice() {
        b"-" | b"low" | b"start" => Ok(BucketTime::Low),
        b"~" | b"mid" => Ok(BucketTime::Mid),
        b"+" | b"high" | b"end" => Ok(BucketTime::High),
        _ => Err(unknown()),
    }
}

/// The length of a bucket.
///
/// # Errors
/// When it is none.
pub fn bucket_arg(text: &[u8]) -> Result<i64, CommandError> {
    match parse_i64(text) {
        Some(ms) if 0 < ms => Ok(ms.min(TIME_MS_MAX)),
        Some(_) => Err(error("bucketDuration must be greater than zero")),
        None => Err(error("Couldn't parse bucketDuration")),
    }
}

/// Whether a word that is to be a bucket is a list of aggregators.
fn is_aggregators(word: &[u8]) -> bool {
    word.split(|byte| *byte == b',').all(|name| Aggregator::parse(name).is_some())
}

/// The aggregators of so many keys, and how many each has.
fn aggregation_arg(
    rest: &[&[u8]],
    key_count: usize,
) -> Result<(Aggregation, Vec<usize>), CommandError> {
    let too_few = || match key_count {
        1 => AGGREGATION,
        _ => error(format!(
            "the number of AGGREGATION arguments must be that of the keys, {key_count}"
        )),
    };
    let names = rest.get(..key_count).ok_or_else(too_few)?;
    let bucket = rest.get(key_count).ok_or_else(too_few)?;
    if 1 < key_count
        && (names.iter().any(|name| parse_i64(name).is_some()) || is_aggregators(bucket))
    {
        return Err(too_few());
    }
    let (mut aggregators, mut widths) = (Vec::new(), Vec::new());
    for name in names {
        let before = aggregators.len();
        for name in name.split(|byte| *byte == b',') {
            aggregators.push(Aggregator::parse(name).ok_or(UNKNOWN_AGGREGATION)?);
        }
        let width = aggregators.len() - before;
        if Aggregator::COUNT < width {
            return Err(error(format!("more than {} aggregators", Aggregator::COUNT)));
        }
        widths.push(width);
    }
    let aggregation = Aggregation {
        aggregators,
        bucket_ms: bucket_arg(bucket)?,
        align_ms: 0,
        time: BucketTime::Low,
        is_empty_shown: false,
    };
    Ok((aggregation, widths))
}

/// `TS.RANGE key from to ..`
pub fn range(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    one_range(context, false)
}

/// `TS.REVRANGE key from to ..`
pub fn revrange(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    one_range(context, true)
}

fn one_range(context: &mut Context<'_, '_>, is_reverse: bool) -> Result<Flow, CommandError> {
    let query = Query::parse(context, 2, is_reverse)?;
    let found = series::find(context, context.args[1])?;
    let rows = rows_of_key(context, &query, &found)?;
    put_rows(&mut context.session.out, &query, &rows);
    Ok(Flow::Next)
}

/// The rows of a series.
///
/// # Errors
/// When the store cannot tell, or there are too many.
pub fn rows_of_key(
    context: &mut Context<'_, '_>,
    query: &Query,
    found: &Found,
) -> Result<Rows, CommandError> {
    let from_ms = shown_from(context, found, query.from_ms)?;
    let app = &context.redis.app;
    let samples = samples::read_one(app, &found.sets, from_ms, query.to_ms)?;
    rows_of(context, query, found, from_ms, samples)
}

/// From when on samples of a series are shown.
///
/// # Errors
/// When the store cannot tell.
pub fn shown_from(
    context: &mut Context<'_, '_>,
    found: &Found,
    from_ms: i64,
) -> Result<i64, CommandError> {
    if found.retention_ms() == 0 {
        return Ok(from_ms);
    }
    let newest = series::newest(context, found)?;
    Ok(newest.map_or(from_ms, |newest| from_ms.max(newest.ms - found.retention_ms())))
}

/// The rows of a series whose samples from `from_ms` on were read.
///
/// # Errors
/// When the store cannot tell, or there are too many.
pub fn rows_of(
    context: &mut Context<'_, '_>,
    query: &Query,
    found: &Found,
    from_ms: i64,
    mut samples: Vec<Sample>,
) -> Result<Rows, CommandError> {
    if query.is_latest
        && let Some(open) = rules::open_bucket(context, found)?
        && (from_ms..=query.to_ms).contains(&open.ms)
    {
        samples.retain(|sample| sample.ms < open.ms);
        samples.push(open);
    }
    let app = &context.redis.app;
    let (mut before, mut after) = (None, None);
    if query.fills() || query.looks_around() && !samples.is_empty() {
        before = samples::newest_one(app, &found.sets, 0, from_ms - 1)?;
        after = samples::first_one(app, &found.sets, query.to_ms.saturating_add(1))?;
    }
    let (from_ms, to_ms) = (query.from_ms, query.to_ms);
    query.rows(samples, &Around { from_ms, to_ms, before, after })
}

/// Writes rows in the order that was asked for, as many as were.
pub fn put_rows(out: &mut dyn Reply, query: &Query, rows: &Rows) {
    put_rows_by(out, query, rows, |out, ms, values| {
        out.array(1 + values.len());
        out.int(ms);
        values.iter().for_each(|value| put_value(out, *value));
    });
}

/// The same, each as `put` writes it.
pub fn put_rows_by(
    out: &mut dyn Reply,
    query: &Query,
    rows: &Rows,
    put: impl Fn(&mut dyn Reply, i64, &[f64]),
) {
    let count = rows.times.len().min(query.count.unwrap_or(usize::MAX));
    out.array(count);
    match query.is_reverse {
        false => rows.iter().take(count).for_each(|(ms, values)| put(out, ms, values)),
        true => rows.iter().rev().take(count).for_each(|(ms, values)| put(out, ms, values)),
    }
}

/// `TS.GET key [LATEST]`
pub fn get(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    let is_latest = match context.args.get(2..).unwrap_or_default() {
        [] => false,
        [word] if word.eq_ignore_ascii_case(b"LATEST") => true,
        _ => return Err(CommandError::arity(context.info.name)),
    };
    let found = series::find(context, context.args[1])?;
    let sample = newest_shown(context, &found, is_latest)?;
    put_sample(&mut context.session.out, sample);
    Ok(Flow::Next)
}

/// The newest sample of a series, or what its source has for it.
///
/// # Errors
/// When the store cannot tell.
pub fn newest_shown(
    context: &mut Context<'_, '_>,
    found: &Found,
    is_latest: bool,
) -> Result<Option<Sample>, CommandError> {
    if is_latest && let Some(open) = rules::open_bucket(context, found)? {
        return Ok(Some(open));
    }
    series::newest(context, found)
}

/// Writes a sample, or an empty array.
pub fn put_sample(out: &mut dyn Reply, sample: Option<Sample>) {
    let Some(sample) = sample else { return out.array(0) };
    out.array(2);
    out.int(sample.ms);
    put_value(out, sample.value);
}
