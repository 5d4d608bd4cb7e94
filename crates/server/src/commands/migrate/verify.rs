//! `quipu migrate verify`: whether both sides have the same samples, series by series and day by day.

use super::days;
use super::remote_read::RemoteRead;
use super::series::{Filter, Series};
use super::source::Source;
use super::{source_of, text, time_of};
use crate::calendar::rfc3339;
use crate::commands::client::Client;
use crate::quantity::format_count;
use anyhow::Context as _;
use clap::ArgMatches;
use indicatif::{ProgressBar, ProgressStyle};
use model::sample::{NANOS_PER_DAY, NANOS_PER_MILLI};
use model::{Labels, TimeRange};
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Arc;
use wire::remote_write::encode_histograms::MillisHistogram;

const MILLIS_PER_DAY: i64 = NANOS_PER_DAY / NANOS_PER_MILLI;

/// What is compared of a series on one day.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Sums {
    count: u64,
    first_ms: i64,
    last_ms: i64,
    sum: f64,
    /// Of times and bits, in any order.
    digest: u64,
}

impl Sums {
    fn add(&mut self, millis: i64, value: f64) {
        if self.count == 0 || millis < self.first_ms {
            self.first_ms = millis;
        }
        if self.count == 0 || self.last_ms < millis {
            self.last_ms = millis;
        }
        self.count += 1;
        self.sum += value;
        let mixed = (millis as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ value.to_bits();
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
        let is_other = self.digest != here.digest;
        is_other.then(|| format!("sums {} there, {} here, of as many samples", self.sum, here.sum))
    }
}

/// What a side has of a window.
type Side = BTreeMap<(i64, Labels), Sums>;

/// Compares; exit code 1 when something differs.
///
/// # Errors
/// When one side does not answer.
pub fn run(matches: &ArgMatches) -> anyhow::Result<ExitCode> {
    let show = text(matches, "show");
    let show: u64 = show.parse().with_context(|| format!("--show {show}: no number"))?;
    let filter = Arc::new(Filter::of(matches)?);
    let range = time_of(matches)?;
    let mut there = source_of(matches, &filter, range)?;
    // With other labels the selectors mean something else here: then all series are looked at.
    let own_filter = if filter.changes_labels() { Arc::new(Filter::all()) } else { filter.clone() };
    let mut here = RemoteRead::new(Client::new(matches)?, own_filter, range);
    let windows = there.windows()?;
    let bar = ProgressBar::new(windows.len() as u64);
    let template = "{bar:30} {pos} of {len} windows, {msg}, {eta} left";
    bar.set_style(ProgressStyle::with_template(template)?);
    let (mut compared, mut differing, mut samples) = (0u64, 0u64, 0u64);
    for window in &windows {
        let mut theirs = Side::new();
        there.read(window, &mut |mut series| {
            series.labels = filter.relabelled(series.labels);
            add(&mut theirs, &series);
            Ok(())
        })?;
        let mut own = Side::new();
        read_here(&mut here, &window.range, &mut own)?;
        for ((day, labels), sums) in &theirs {
            compared += 1;
            samples += sums.count;
            let found = own.get(&(*day, labels.clone())).copied().unwrap_or_default();
            if let Some(words) = sums.difference(&found) {
                differing += 1;
                if differing <= show {
                    let day = rfc3339(day * NANOS_PER_DAY);
                    let day = day.split('T').next().unwrap_or_default();
                    bar.suspend(|| println!("{day} {labels}: {words}"));
                }
            }
        }
        bar.set_message(format!("{} samples, {differing} differences", format_count(samples)));
        bar.inc(1);
    }
    bar.finish_and_clear();
    println!("{compared} series and days with {samples} samples compared; {differing} differ");
    Ok(ExitCode::from(u8::from(0 < differing)))
}

fn read_here(here: &mut RemoteRead, range: &TimeRange, own: &mut Side) -> anyhow::Result<()> {
    for window in days::windows(range) {
        here.read(&window, &mut |series| {
            add(own, &series);
            Ok(())
        })?;
    }
    Ok(())
}

fn add(side: &mut Side, series: &Series) {
    add_values(side, &series.labels, series.samples.iter().map(|one| (one.millis, one.value)));
    // A histogram is compared by its count and sum.
    let worth = |one: &MillisHistogram| one.histogram.count + one.histogram.sum;
    add_values(side, &series.labels, series.histograms.iter().map(|one| (one.millis, worth(one))));
}

/// Adds values in the order of their times: a day's are looked up once.
fn add_values(side: &mut Side, labels: &Labels, values: impl Iterator<Item = (i64, f64)>) {
    let mut values = values.peekable();
    while let Some(&(millis, _)) = values.peek() {
        let day = millis.div_euclid(MILLIS_PER_DAY);
        let sums = side.entry((day, labels.clone())).or_default();
        let is_same_day = |(millis, _): &(i64, f64)| millis.div_euclid(MILLIS_PER_DAY) == day;
        while let Some((millis, value)) = values.next_if(is_same_day) {
            sums.add(millis, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::remote_write::encode::MillisSample;

    fn sums(samples: &[(i64, f64)]) -> Sums {
        let mut sums = Sums::default();
        samples.iter().for_each(|(millis, value)| sums.add(*millis, *value));
        sums
    }

    #[test]
    fn days_are_apart() {
        let sample = |(millis, value)| MillisSample { millis, value };
        let samples = [(-1, 1.0), (0, 2.0), (MILLIS_PER_DAY - 1, 3.0), (MILLIS_PER_DAY, 4.0)];
        let labels = Labels::from_pairs(&[("__name__", "x")]);
        let samples = samples.map(sample).to_vec();
        let mut side = Side::new();
        add(&mut side, &Series { labels: labels.clone(), samples, histograms: Vec::new() });
        let found: Vec<_> =
            side.iter().map(|((day, _), sums)| (*day, sums.count, sums.sum)).collect();
        assert_eq!(found, [(-1, 1, 1.0), (0, 2, 5.0), (1, 1, 4.0)]);
    }

    #[test]
    fn what_differs_is_said() {
        let whole = sums(&[(1, 1.0), (2, f64::NAN)]);
        assert_eq!(whole.difference(&sums(&[(2, f64::NAN), (1, 1.0)])), None);
        let words = |other: &[(i64, f64)]| whole.difference(&sums(other)).unwrap();
        assert!(words(&[(1, 1.0)]).contains("2 samples there, 1 here"));
        assert!(words(&[(1, 1.0), (3, f64::NAN)]).starts_with("from 1970"));
        assert!(words(&[(1, 2.0), (2, f64::NAN)]).starts_with("sums"));
    }
}
