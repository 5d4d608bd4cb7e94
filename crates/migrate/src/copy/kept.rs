//! Whether the target still has what an earlier run of a copy sent to it: databases can be dropped and logs
//! can be lost, and progress counts only for what is still there.
//!
//! Behind a window the target counts the samples that it has in the window's time, and the progress file keeps
//! the count. A later run counts again: fewer samples mean that the target lost some.

use super::overlap::ask;
use super::progress::{Part, Progress};
use crate::source::Window;
use anyhow::Context as _;
use cli::calendar::rfc3339;
use cli::error_text::sentence;
use http_client::client::{Client, encode};
use model::TimeRange;
use model::sample::NANOS_PER_MILLI;
use std::time::{Duration, Instant};

/// Time for one count.
const COUNT_TIME_MAX: Duration = Duration::from_secs(10);
/// Time for all counts before a copy goes on.
const CHECK_TIME_MAX: Duration = Duration::from_secs(60);
/// Time that counts may take in any copy; in a long one they may take a share of its time.
const FREE_TIME: Duration = Duration::from_secs(5);
const SHARE: u32 = 20;
/// Windows of a progress file without counts that are looked at.
const UNCOUNTED_MAX: usize = 20;
/// Longest time that is counted, in nanoseconds: a hundred years.
const SPAN_MAX: i64 = 100 * 365 * 86_400 * 1_000_000_000;
/// Series of the copy and of others, but those of the server itself; strings have to be named.
const SELECTORS: [&str; 2] = ["{__name__!=\"\",job!=\"quipu\"}", "{__name__=~\".+:text\"}"];

/// Counts of one run of a copy.
#[derive(Debug, Default)]
pub struct KeptCounts {
    spent: Duration,
}

impl KeptCounts {
    /// Counts what the target has in the time of a window that is done, unless counting takes too much of
    /// the copy's time.
    pub fn note(
        &mut self,
        client: &mut Client,
        progress: &mut Progress,
        (window, started): (&Window, Instant),
    ) {
        if FREE_TIME < self.spent && started.elapsed() < self.spent * SHARE {
            return;
        }
        let began = Instant::now();
        let counted = count(client, &window.range, progress.time.1, began + COUNT_TIME_MAX);
        self.spent += began.elapsed();
        // Without a count nothing is checked later; the copy itself is not concerned.
        if let Ok(count) = counted {
            progress.counts.insert(window.name.clone(), count);
        }
    }
}

/// Samples that the target has in the time of a window, up to an end.
fn count(
    client: &mut Client,
    range: &TimeRange,
    end_max: i64,
    deadline: Instant,
) -> anyhow::Result<u64> {
    let end = range.end.min(end_max);
    let start = range.start.max(end.saturating_sub(SPAN_MAX));
    let millis = end.saturating_sub(start) / NANOS_PER_MILLI + 1;
    let mut total = 0;
    for selector in SELECTORS {
        let query = encode(&format!("sum(count_over_time({selector}[{millis}ms]))"));
        let time = encode(&rfc3339(end));
        let path = format!(
            "/api/v1/query?nolegacy=1&nocache=1&dialect=metricsql&query={query}&time={time}"
        );
        let answer = ask(client, deadline, &path)?;
        let result = answer["data"]["result"].as_array().context("an answer without a result")?;
        for point in result {
            let text = point["value"][1].as_str().context("a count without a value")?;
            total += text.parse::<f64>().context("a count that is no number")? as u64;
        }
    }
    Ok(total)
}

/// Why earlier progress does not count any more; none if the target has what it had, or does not say so.
pub fn find_loss(
    client: &mut Client,
    progress: &mut Progress,
    windows: &[Window],
) -> Option<String> {
    let lost = look_for_loss(progress, windows, &mut |range, end_max, deadline| {
        count(client, range, end_max, deadline)
    });
    lost.unwrap_or_else(|error| {
        let error = sentence(&error);
        eprintln!("quipu: the server was not asked whether it has what was sent before: {error}");
        None
    })
}

/// Counts the samples of a time up to an end before a deadline.
type Count<'a> = dyn FnMut(&TimeRange, i64, Instant) -> anyhow::Result<u64> + 'a;

fn look_for_loss(
    progress: &mut Progress,
    windows: &[Window],
    count: &mut Count<'_>,
) -> anyhow::Result<Option<String>> {
    let (end, deadline) = (progress.time.1, Instant::now() + CHECK_TIME_MAX);
    let done = windows.iter().filter(|one| progress.done.contains_key(&one.name));
    let mut uncounted = 0;
    for window in done {
        let sent = progress.done.get(&window.name).copied().unwrap_or_default();
        let before = match progress.counts.get(&window.name) {
            Some(before) => *before,
            // A window that sent samples has some.
            None if progress.counts.is_empty() && uncounted < UNCOUNTED_MAX => {
                uncounted += 1;
                sent.min(1)
            }
            None => continue,
        };
        if before == 0 {
            continue;
        }
        let now = count(&window.range, end, deadline)?;
        if now < before {
            let words = format!(
                "the server lost samples since the run before: in the time of {window} it had {before} and \
                 has {now}"
            );
            return Ok(Some(words));
        }
    }
    // A window under way is sent again where it is in doubt.
    if let Some(Part { window, samples, .. }) = &progress.part
        && let Some(window) = windows.iter().find(|one| one.name == *window)
        && count(&window.range, end, deadline)? < *samples
    {
        progress.part = None;
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Mark;

    fn window(name: &str, start: i64) -> Window {
        Window { name: name.to_string(), range: TimeRange::new(start, start + 9), samples: None }
    }

    /// What is found where the target has that many samples in windows that begin at 10, 20 and 30.
    #[track_caller]
    fn check(progress: &mut Progress, has: [u64; 3], expected: Option<&str>) {
        let windows = [window("c", 30), window("b", 20), window("a", 10)];
        let mut count = |range: &TimeRange, end: i64, _: Instant| {
            assert_eq!(end, 35);
            Ok(has[(range.start / 10 - 1) as usize])
        };
        let found = look_for_loss(progress, &windows, &mut count).expect("counts");
        assert_eq!(found.is_some(), expected.is_some(), "{found:?}");
        let words = found.unwrap_or_default();
        assert!(words.contains(expected.unwrap_or_default()), "{words}");
    }

    #[test]
    fn progress_counts_only_while_the_target_has_what_was_sent() {
        let done = [("c", 5), ("b", 0)].map(|(name, sent)| (name.to_string(), sent));
        let mut progress =
            Progress { time: (0, 35), done: done.into_iter().collect(), ..Progress::default() };
        // Of a run that counted nothing.
        check(&mut progress, [0, 0, 1], None);
        check(&mut progress, [9, 9, 0], Some("in the time of c it had 1 and has 0"));
        progress.counts = [("c".to_string(), 4), ("b".to_string(), 2)].into_iter().collect();
        check(&mut progress, [0, 2, 4], None);
        check(&mut progress, [0, 7, 9], None);
        check(&mut progress, [9, 9, 3], Some("in the time of c it had 4 and has 3"));
        check(&mut progress, [9, 1, 4], Some("in the time of b it had 2 and has 1"));
        let part = Part { window: "a".to_string(), mark: Mark { at: 1, count: 1 }, samples: 3 };
        progress.part = Some(part.clone());
        check(&mut progress, [3, 2, 4], None);
        assert_eq!(progress.part, Some(part));
        check(&mut progress, [2, 2, 4], None);
        assert_eq!(progress.part, None);
    }
}
