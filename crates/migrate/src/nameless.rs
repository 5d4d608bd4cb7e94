//! Series without a metric's name, which Quipu does not take: they are left out, counted and named.

use model::Labels;
use std::collections::BTreeSet;

/// Series that are told apart.
const SERIES_MAX: usize = 100_000;
/// Those that are named.
const SHOWN: usize = 10;

/// What was left out.
#[derive(Clone, Debug, Default)]
pub struct Nameless {
    /// Fingerprints of series.
    series: BTreeSet<u128>,
    named: BTreeSet<String>,
    samples: u64,
}

impl Nameless {
    /// Whether series of these labels are left out; then they are counted with their samples.
    pub fn takes(&mut self, labels: &Labels, samples: usize) -> bool {
        if !labels.metric_name().is_empty() {
            return false;
        }
        self.samples += samples as u64;
        if self.series.len() < SERIES_MAX && self.series.insert(labels.fingerprint()) {
            self.named.insert(labels.to_string());
            if SHOWN < self.named.len() {
                self.named.pop_last();
            }
        }
        true
    }

    /// Adds what was left out elsewhere.
    pub fn add(&mut self, more: Nameless) {
        self.samples += more.samples;
        self.series.extend(more.series.into_iter().take(SERIES_MAX - self.series.len()));
        self.named.extend(more.named);
        while SHOWN < self.named.len() {
            self.named.pop_last();
        }
    }

    /// It in words; nothing where nothing was left out.
    pub fn left_out(&self) -> Option<String> {
        if self.samples == 0 {
            return None;
        }
        let (count, samples) = (self.series.len(), self.samples);
        let at_least = if count < SERIES_MAX { "" } else { " or more" };
        let named: Vec<&str> = self.named.iter().map(String::as_str).collect();
        let more = if named.len() < count { ", .." } else { "" };
        Some(format!(
            "{count}{at_least} series without a metric's name, with {samples} samples: {}{more}; \
             --match that chooses these alone, with --set-label __name__=NAME, copies them",
            named.join(", ")
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_without_a_name_are_counted_and_named() {
        let mut all = Nameless::default();
        assert!(all.left_out().is_none());
        assert!(!all.takes(&Labels::from_pairs(&[("__name__", "up")]), 7));
        for at in 0..12 {
            let mut one = Nameless::default();
            let host = format!("h{at:02}");
            assert!(one.takes(&Labels::from_pairs(&[("host", host.as_str())]), 2));
            assert!(one.takes(&Labels::from_pairs(&[("host", host.as_str())]), 1));
            all.add(one);
        }
        let words = all.left_out().unwrap();
        assert!(
            words.starts_with("12 series without a metric's name, with 36 samples: "),
            "{words}"
        );
        assert!(
            words.contains("h09") && !words.contains("h10") && words.contains(", ..;"),
            "{words}"
        );
    }
}
