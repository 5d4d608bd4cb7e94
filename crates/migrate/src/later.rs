//! Samples of the source that are later than the end of the copy: counted and named, and not copied.
//!
//! A copy ends now, unless `--end` says another time. Forecasts and prices of the next day lie behind that.

use super::series::Filter;
use super::source::{Given, Source};
use cli::calendar::rfc3339;
use cli::error_text::sentence;
use cli::quantity::format_count;
use http_client::retry::retried;
use model::Timestamp;
use std::collections::BTreeSet;
use vfs::{RealVfs, Vfs};

/// Metrics that are named.
const NAMES_SHOWN: usize = 10;

/// Samples after the end of the copy.
#[derive(Default)]
struct Later {
    samples: u64,
    last: Timestamp,
    names: BTreeSet<String>,
}

impl Later {
    fn take(&mut self, given: Given, filter: &Filter) {
        given.each_time(&mut |nanos, count| {
            self.samples += count;
            self.last = self.last.max(nanos);
        });
        let strings = given.strings(filter).into_iter().map(|one| one.labels);
        let numbers = given.into_exact(filter).into_iter().map(|one| one.labels);
        for labels in strings.chain(numbers) {
            if self.names.len() <= NAMES_SHOWN {
                self.names.insert(labels.metric_name().to_string());
            }
        }
    }

    fn add(&mut self, other: Later) {
        self.samples += other.samples;
        self.last = self.last.max(other.last);
        self.names.extend(other.names);
    }

    /// Sentence about it; nothing where nothing is there.
    fn words(&self, end: Timestamp) -> Option<String> {
        let shown: Vec<&str> = self.names.iter().take(NAMES_SHOWN).map(String::as_str).collect();
        let more = if NAMES_SHOWN < self.names.len() { ", .." } else { "" };
        (0 < self.samples).then(|| {
            format!(
                "not copied: {} samples after {}, the last at {}, of {}{more}; say a later --end to copy them",
                format_count(self.samples),
                rfc3339(end),
                rfc3339(self.last),
                shown.join(", ")
            )
        })
    }
}

/// Names the samples in the future of a source, or why they were not counted.
pub fn say(source: &mut dyn Source, filter: &Filter, end: Timestamp) {
    // Clients may write to the source meanwhile: samples up to now do not count.
    let end = end.max(RealVfs::new().now());
    let mut later = Later::default();
    for window in source.later(end.saturating_add(1)) {
        let read = retried(|| {
            let mut found = Later::default();
            source.read(&window, &mut |mut given| {
                if given.tidy(&window.range, filter) {
                    found.take(given, filter);
                }
                Ok(())
            })?;
            Ok(found)
        });
        match read {
            Ok(found) => later.add(found),
            Err(error) => {
                let words = sentence(&error);
                eprintln!("quipu: samples after {} were not counted: {words}", rfc3339(end));
                return;
            }
        }
    }
    if let Some(words) = later.words(end) {
        eprintln!("{words}");
    }
}

#[cfg(test)]
mod tests {
    use super::super::series::Series;
    use super::*;
    use model::Labels;
    use wire::remote_write::encode::MillisSample;

    #[test]
    fn what_is_later_is_counted_and_named() {
        let mut later = Later::default();
        assert_eq!(later.words(0), None);
        for name in 0..12 {
            let sample = MillisSample { millis: 3_600_000 + name, value: 1.0 };
            let labels = Labels::from_pairs(&[("__name__", &format!("m{name:02}"))]);
            let series = Series {
                labels,
                samples: vec![sample; 2],
                histograms: Vec::new(),
                repeated: Vec::new(),
            };
            later.take(series.into(), &Filter::all());
        }
        let words = later.words(0).expect("words");
        assert!(
            words.contains(
                "24 samples after 1970-01-01T00:00:00Z, the last at 1970-01-01T01:00:00.011Z"
            ),
            "{words}"
        );
        assert!(words.contains("m00, m01") && words.contains("m09, ..;"), "{words}");
    }
}
