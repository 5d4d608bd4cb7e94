//! Series on their way, and what leaves some of them out or changes their labels.

use anyhow::{Context as _, bail};
use clap::{ArgAction, ArgMatches, Command};
use cli::arguments::option;
use index::CompiledMatchers;
use model::{Labels, METRIC_NAME, Matcher, TimeRange};
use promql::matchers_of;
use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};
use wire::remote_write::encode::MillisSample;
use wire::remote_write::encode_histograms::MillisHistogram;

/// Samples of one series.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Whose.
    pub labels: Labels,
    /// Numbers, oldest first.
    pub samples: Vec<MillisSample>,
    /// Native histograms, oldest first.
    pub histograms: Vec<MillisHistogram>,
    /// Milliseconds of samples that were dropped for a later one of the same time and another value.
    pub repeated: Vec<i64>,
}

impl Series {
    /// How many samples there are of both kinds.
    pub fn len(&self) -> usize {
        self.samples.len() + self.histograms.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Only what is of a time, oldest first, of equal times the last: as a store keeps it.
    pub fn tidy(&mut self, range: &TimeRange) {
        let is_within = |millis: i64| range.contains(millis.saturating_mul(1_000_000));
        self.samples.retain(|one| is_within(one.millis));
        self.histograms.retain(|one| is_within(one.millis));
        if !self.samples.is_sorted_by(|a, b| a.millis < b.millis) {
            self.samples.sort_by_key(|one| one.millis);
            let differ =
                |a: &MillisSample, b: &MillisSample| a.value.to_bits() != b.value.to_bits();
            keep_last(&mut self.samples, |one| one.millis, differ, &mut self.repeated);
        }
        if !self.histograms.is_sorted_by(|a, b| a.millis < b.millis) {
            self.histograms.sort_by_key(|one| one.millis);
            let differ = |a: &MillisHistogram, b: &MillisHistogram| a.histogram != b.histogram;
            keep_last(&mut self.histograms, |one| one.millis, differ, &mut self.repeated);
        }
    }
}

/// Characters of a label's value that people are shown.
const VALUE_LEN_SHOWN: usize = 100;

/// Labels as people are shown them: a value may be longer than all other lines together.
pub fn shortened(labels: &Labels) -> Labels {
    let shorten = |value: &str| match value.char_indices().nth(VALUE_LEN_SHOWN) {
        Some((end, _)) => format!("{}..", value.get(..end).unwrap_or_default()),
        None => value.to_string(),
    };
    let pairs: Vec<(&str, String)> =
        labels.iter().map(|(name, value)| (name, shorten(value))).collect();
    let pairs: Vec<(&str, &str)> = pairs.iter().map(|(n, v)| (*n, v.as_str())).collect();
    Labels::from_pairs(&pairs)
}

/// Keeps the last of neighbours of the same time; `repeated` gets the times of dropped ones that differ.
fn keep_last<T>(
    all: &mut Vec<T>,
    time: fn(&T) -> i64,
    differ: fn(&T, &T) -> bool,
    repeated: &mut Vec<i64>,
) {
    all.dedup_by(|next, kept| {
        let is_same = time(next) == time(kept);
        if is_same {
            if differ(next, kept) {
                repeated.push(time(kept));
            }
            std::mem::swap(next, kept);
        }
        is_same
    });
}

/// Which series are copied, and under which labels.
pub struct Filter {
    /// The texts of the selectors, for sources that choose by themselves.
    pub selectors: Vec<String>,
    /// The same, understood.
    pub matchers: Vec<Vec<Matcher>>,
    compiled: Vec<CompiledMatchers>,
    edits: Vec<Edit>,
    collisions: Mutex<Collisions>,
}

/// A change of labels.
#[derive(Clone, Debug, PartialEq)]
enum Edit {
    Drop(String),
    Rename(String, String),
    Set(String, String),
}

/// Series that are remembered to find others with the same new labels.
const SERIES_REMEMBERED_MAX: usize = 1 << 20;

/// Losses by changes of labels: several series that become one, and labels that a renamed label replaces.
#[derive(Default)]
struct Collisions {
    /// Fingerprints of labels in the old place, by those in the new one.
    known: HashMap<u128, u128>,
    /// Fingerprints of series that have the new labels of another one.
    merged: HashSet<u128>,
    /// Labels of one of them in both places.
    merged_example: Option<(Labels, Labels)>,
    /// Fingerprints of series that lose a label to a renamed one.
    replaced: HashSet<u128>,
    replaced_example: Option<Labels>,
}

impl Collisions {
    fn note(&mut self, old: &Labels, new: &Labels, replaces: bool) {
        let print = old.fingerprint();
        let is_full = SERIES_REMEMBERED_MAX <= self.known.len();
        if replaces && !is_full && self.replaced.insert(print) {
            self.replaced_example.get_or_insert_with(|| old.clone());
        }
        let first = match self.known.get(&new.fingerprint()) {
            Some(first) => *first,
            None if is_full => return,
            None => *self.known.entry(new.fingerprint()).or_insert(print),
        };
        if first != print && self.merged.len() < SERIES_REMEMBERED_MAX && self.merged.insert(print)
        {
            self.merged_example.get_or_insert_with(|| (old.clone(), new.clone()));
        }
    }
}

/// Adds the arguments that say it.
pub fn arguments(command: Command) -> Command {
    let many = |name, value, help| option(name, value, help).action(ArgAction::Append);
    command
        .arg(many("match", "SELECTOR", "Series to copy; may be given many times [default: all]"))
        .arg(many("drop-label", "NAME", "Takes a label away; done before --rename-label"))
        .arg(many("rename-label", "OLD=NEW", "Gives a label another name; done before --set-label"))
        .arg(many("set-label", "NAME=VALUE", "Gives every series a label, over one that it has"))
}

impl Filter {
    /// As the arguments say it.
    ///
    /// # Errors
    /// When a selector is none, or a change of labels is not understood.
    pub fn of(matches: &ArgMatches) -> anyhow::Result<Filter> {
        let all = |name: &str| -> Vec<String> {
            matches.get_many(name).into_iter().flatten().cloned().collect()
        };
        let selectors = all("match");
        let matchers: Vec<_> =
            selectors.iter().map(|one| selector(one)).collect::<Result<_, _>>()?;
        let compiled = matchers.iter().map(|one| CompiledMatchers::compile(one));
        let compiled = compiled.collect::<Result<_, _>>()?;
        let mut edits: Vec<Edit> = all("drop-label").into_iter().map(Edit::Drop).collect();
        for (name, made) in
            [("rename-label", Edit::Rename as fn(String, String) -> Edit), ("set-label", Edit::Set)]
        {
            for pair in all(name) {
                match pair.split_once('=') {
                    // Of no name a label would be none: series would become one.
                    Some((a, b)) if !a.is_empty() && (name != "rename-label" || !b.is_empty()) => {
                        edits.push(made(a.to_string(), b.to_string()))
                    }
                    _ => bail!("--{name} {pair}: say two words with = between them"),
                }
            }
        }
        let collisions = Mutex::default();
        Ok(Filter { selectors, matchers, compiled, edits, collisions })
    }

    /// Everything, as it is.
    pub fn all() -> Filter {
        Filter {
            selectors: vec![],
            matchers: vec![],
            compiled: vec![],
            edits: vec![],
            collisions: Mutex::default(),
        }
    }

    /// Whether series of these labels are copied.
    pub fn takes(&self, labels: &Labels) -> bool {
        self.compiled.is_empty() || self.first(labels).is_some()
    }

    /// The first selector that chooses series of these labels.
    pub fn first(&self, labels: &Labels) -> Option<usize> {
        self.compiled.iter().position(|one| one.matches(labels))
    }

    /// Whether series have other labels in the new place.
    pub fn changes_labels(&self) -> bool {
        !self.edits.is_empty()
    }

    /// Whether metrics may have other names in the new place.
    pub fn changes_names(&self) -> bool {
        let is_name = |name: &String| name == METRIC_NAME;
        self.edits.iter().any(|edit| match edit {
            Edit::Drop(name) | Edit::Set(name, _) => is_name(name),
            Edit::Rename(old, new) => is_name(old) || is_name(new),
        })
    }

    /// The labels that a series has in the new place.
    pub fn relabelled(&self, labels: Labels) -> Labels {
        if self.edits.is_empty() {
            return labels;
        }
        let mut builder = labels.to_builder();
        let mut replaces = false;
        for edit in &self.edits {
            match edit {
                Edit::Drop(name) => builder.remove(name),
                Edit::Rename(old, new) => {
                    if let Some(value) = builder.get(old).map(str::to_string) {
                        replaces |= old != new && builder.get(new).is_some();
                        builder.remove(old);
                        builder.set(new, &value);
                    }
                }
                Edit::Set(name, value) => builder.set(name, value),
            }
        }
        let changed = builder.finish();
        let mut collisions = self.collisions.lock().unwrap_or_else(PoisonError::into_inner);
        collisions.note(&labels, &changed, replaces);
        changed
    }

    /// Describes what the changes of labels lost of the series so far.
    pub fn losses(&self) -> Vec<String> {
        let collisions = self.collisions.lock().unwrap_or_else(PoisonError::into_inner);
        let Collisions { merged, merged_example, replaced, replaced_example, .. } = &*collisions;
        let mut words = Vec::new();
        if let Some((old, new)) = merged_example {
            words.push(format!(
                "{} series get the labels of another one, so of equal times one sample is kept: {} becomes \
                 {}, as another does. Keep a label that tells them apart",
                merged.len(),
                shortened(old),
                shortened(new)
            ));
        }
        if let Some(old) = replaced_example {
            words.push(format!(
                "{} series lose a label of their own to --rename-label: {}. Choose another new name",
                replaced.len(),
                shortened(old)
            ));
        }
        words
    }
}

fn selector(text: &str) -> anyhow::Result<Vec<Matcher>> {
    let expr = promql::parse_listing(text).with_context(|| format!("--match {text}"))?;
    matchers_of(expr).with_context(|| format!("--match {text}: no selector of series"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(arguments: &[&str]) -> anyhow::Result<Filter> {
        let command = super::arguments(Command::new("x"));
        Filter::of(&command.try_get_matches_from([&["x"], arguments].concat())?)
    }

    #[test]
    fn series_are_chosen_and_their_labels_changed() {
        let labels = Labels::from_pairs(&[("__name__", "up"), ("job", "a"), ("zone", "eu")]);
        let chosen = filter(&["--match", "up{job=~\"a|b\"}", "--match", "down"]).unwrap();
        assert!(chosen.takes(&labels) && !chosen.takes(&Labels::from_pairs(&[("job", "a")])));
        let edits = ["--drop-label=zone", "--rename-label=job=work", "--set-label=dc=x=y"];
        let changed = filter(&edits).unwrap().relabelled(labels);
        let expected = [("__name__", "up"), ("dc", "x=y"), ("work", "a")];
        assert_eq!(changed, Labels::from_pairs(&expected));
        assert!(filter(&["--match", "rate(x[1m])"]).is_err());
        assert!(filter(&["--set-label", "x"]).is_err());
        assert!(filter(&["--rename-label", "x="]).is_err());
    }

    #[test]
    fn series_that_become_one_and_labels_that_are_replaced_are_named() {
        let labels = |db: &str, site: &str| {
            let pairs = [("__name__", "m"), ("db", db), ("site", site)];
            let pairs: Vec<_> = pairs.into_iter().filter(|(_, value)| !value.is_empty()).collect();
            Labels::from_pairs(&pairs)
        };
        let renamed = filter(&["--rename-label", "db=site"]).unwrap();
        for (db, site) in [("a", ""), ("b", "x"), ("b", "x"), ("c", "x")] {
            renamed.relabelled(labels(db, site));
        }
        let words = renamed.losses();
        assert_eq!(words.len(), 1, "{words:?}");
        assert!(words[0].starts_with("2 series lose a label"), "{words:?}");
        renamed.relabelled(labels("b", "y"));
        let words = renamed.losses();
        assert!(words[0].starts_with("1 series get the labels of another"), "{words:?}");
        assert!(words[1].starts_with("3 series lose a label"), "{words:?}");
        let dropped = filter(&["--drop-label", "db"]).unwrap();
        for db in ["a", "a", "b", "c", "b"] {
            dropped.relabelled(labels(db, "x"));
        }
        let words = dropped.losses();
        assert!(words.len() == 1 && words[0].starts_with("2 series get"), "{words:?}");
        assert!(words[0].contains("m{db=\"b\", site=\"x\"}"), "{words:?}");
        let none = filter(&["--drop-label", "zone", "--rename-label", "db=work"]).unwrap();
        for db in ["a", "b"] {
            none.relabelled(labels(db, "x"));
        }
        assert!(none.losses().is_empty());
    }

    #[test]
    fn long_values_are_shown_by_their_beginning() {
        let long = "\u{e9}".repeat(60_000);
        let labels = Labels::from_pairs(&[("__name__", "up"), ("text", &long)]);
        let text = shortened(&labels).to_string();
        assert!(text.starts_with("up{text=\"\u{e9}") && text.ends_with("..\"}"), "{text}");
        assert_eq!(text.chars().count(), VALUE_LEN_SHOWN + "up{text=\"..\"}".len());
    }

    #[test]
    fn of_equal_times_the_last_is_kept() {
        let sample = |(millis, value)| MillisSample { millis, value };
        let samples = [(3, 1.0), (1, 2.0), (3, 3.0), (9, 4.0)].map(sample).to_vec();
        let labels = Labels::from_pairs(&[("__name__", "x")]);
        let mut series = Series { labels, samples, histograms: Vec::new(), repeated: Vec::new() };
        series.tidy(&TimeRange::new(0, 5_000_000));
        assert_eq!(series.samples, [(1, 2.0), (3, 3.0)].map(sample));
    }
}
