//! Series read by several threads ahead of the one that evaluates, which gets them in order.
//!
//! ```text
//! thread 0: batches 0, 2, 4 ...  ──┐ one batch waits
//! thread 1: batches 1, 3, 5 ...  ──┴─> batches 0, 1, 2, 3 ...
//! ```

use crate::row::Wanted;
use crate::source::{SeriesSet, SourceError};
use model::Labels;
use std::ops::Range;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// From so many batches on, threads pay: some milliseconds of reading.
pub(crate) const BATCHES_MIN: usize = 8;
/// Threads at most; one evaluates what they read.
const THREADS_MAX: usize = 8;

/// Some series with their samples.
#[derive(Default)]
pub(crate) struct SampleBatch {
    labels: Vec<Labels>,
    timestamps: Vec<i64>,
    values: Vec<f64>,
    /// Where each series' samples end.
    ends: Vec<usize>,
}

impl SampleBatch {
    /// Replaces what is there by the series of `range`.
    pub fn read(
        &mut self,
        set: &dyn SeriesSet,
        range: Range<usize>,
        wanted: Wanted<'_>,
    ) -> Result<(), SourceError> {
        let SampleBatch { labels, timestamps, values, ends } = self;
        read_labels(set, range.clone(), wanted, labels)?;
        timestamps.clear();
        values.clear();
        ends.clear();
        set.read(range, &mut |_, some_timestamps, some_values| {
            debug_assert_eq!(some_timestamps.len(), some_values.len());
            timestamps.extend_from_slice(some_timestamps);
            values.extend_from_slice(some_values);
            ends.push(values.len());
        })
    }

    /// Its series, in order; some may have no samples.
    pub fn series(&self) -> impl Iterator<Item = (&Labels, &[i64], &[f64])> {
        let starts = [0].into_iter().chain(self.ends.iter().copied());
        let spans = starts.zip(&self.ends);
        self.labels.iter().zip(spans).map(|(labels, (start, end))| {
            (labels, &self.timestamps[start..*end], &self.values[start..*end])
        })
    }
}

/// Replaces `labels` by those of the series of `range`.
pub(crate) fn read_labels(
    set: &dyn SeriesSet,
    range: Range<usize>,
    wanted: Wanted<'_>,
    labels: &mut Vec<Labels>,
) -> Result<(), SourceError> {
    labels.clear();
    match wanted {
        Some([]) => labels.resize(range.len(), Labels::default()),
        wanted => {
            labels.reserve(range.len());
            set.read_labels(range, wanted, &mut |_, one| labels.push(one))?;
        }
    }
    Ok(())
}

/// Series read between two looks at the deadline; the store gathers as many at once.
pub(crate) const SERIES_PER_CHECK: usize = 512;

/// Series that a thread reads at once.
pub(crate) fn batch_len(set: &dyn SeriesSet) -> usize {
    set.batch_len().min(SERIES_PER_CHECK)
}

/// How many threads read this many batches; less than two: none but the caller.
pub(crate) fn threads_for(batches: usize) -> usize {
    if batches < BATCHES_MIN {
        return 1;
    }
    std::thread::available_parallelism().map_or(1, usize::from).min(THREADS_MAX)
}

/// Hands the series of `range` to `visit`, `batch_len` at a time and in order, and ends at the
/// first error, of reading or of `visit`. Each thread begins with a call of `begin` and fills
/// batches with what that returns; batches that were visited are filled again.
///
/// # Errors
/// The first, in the order of the series.
pub(crate) fn read_ahead<B: Default + Send, E: Send, R>(
    range: Range<usize>,
    batch_len: usize,
    threads: usize,
    begin: &(impl Fn() -> R + Sync),
    mut visit: impl FnMut(&mut B) -> Result<(), E>,
) -> Result<(), E>
where
    R: FnMut(Range<usize>, &mut B) -> Result<(), E>,
{
    let batch_at = |idx: usize| {
        let start = range.start + idx * batch_len;
        start..range.end.min(start + batch_len)
    };
    let batches = range.len().div_ceil(batch_len);
    std::thread::scope(|scope| {
        let start = |first: usize| -> (Receiver<Result<B, E>>, SyncSender<B>) {
            let (sender, receiver) = sync_channel(1);
            let (used_sender, used) = sync_channel(2);
            scope.spawn(move || {
                let mut read = begin();
                for idx in (first..batches).step_by(threads) {
                    let mut batch: B = used.try_recv().unwrap_or_default();
                    let batch = read(batch_at(idx), &mut batch).map(|()| batch);
                    let is_last = batch.is_err();
                    // Nobody waits any more when `visit` failed.
                    if sender.send(batch).is_err() || is_last {
                        break;
                    }
                }
            });
            (receiver, used_sender)
        };
        let readers: Vec<_> = (0..threads.min(batches)).map(start).collect();
        for idx in 0..batches {
            let (receiver, used) = &readers[idx % threads];
            // It fails when the thread panicked, which the scope passes on.
            let Ok(batch) = receiver.recv() else { break };
            let mut batch = batch?;
            visit(&mut batch)?;
            // The thread may be done.
            let _ = used.try_send(batch);
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::{LabelSink, SampleSink};

    /// `len` series, of which number n has n % 3 samples of the value n; `bad` cannot be read.
    struct Numbered {
        len: usize,
        bad: usize,
    }

    impl SeriesSet for Numbered {
        fn len(&self) -> usize {
            self.len
        }

        fn labels(&self, idx: usize) -> Result<Labels, SourceError> {
            Ok(Labels::from_pairs(&[("n", idx.to_string())]))
        }

        fn read_labels(
            &self,
            range: Range<usize>,
            _wanted: Option<&[&str]>,
            sink: &mut LabelSink<'_>,
        ) -> Result<(), SourceError> {
            range.into_iter().try_for_each(|idx| {
                sink(idx, self.labels(idx)?);
                Ok(())
            })
        }

        fn read(&self, range: Range<usize>, sink: &mut SampleSink<'_>) -> Result<(), SourceError> {
            for idx in range {
                if idx == self.bad {
                    return Err(SourceError::Failed(format!("series {idx}")));
                }
                sink(idx, &[1, 2][..idx % 3], &[idx as f64; 2][..idx % 3]);
            }
            Ok(())
        }
    }

    #[test]
    fn series_come_whole_and_in_order() {
        for (len, start, batch_len, threads) in [
            (0, 0, 5, 3),
            (1, 0, 5, 3),
            (100, 7, 5, 3),
            (100, 0, 7, 2),
            (64, 0, 8, 8),
            (9, 0, 2, 1),
        ] {
            let set = Numbered { len, bad: usize::MAX };
            let mut next = start;
            let begin = || |range, batch: &mut SampleBatch| batch.read(&set, range, None);
            read_ahead(start..len, batch_len, threads, &begin, |batch| {
                for (labels, timestamps, values) in batch.series() {
                    assert_eq!(labels.get("n"), Some(next.to_string().as_str()));
                    assert_eq!(timestamps, &[1, 2][..next % 3]);
                    assert_eq!(values, &[next as f64; 2][..next % 3]);
                    next += 1;
                }
                Ok::<_, SourceError>(())
            })
            .unwrap();
            assert_eq!(next, len);
        }
    }

    #[test]
    fn the_first_error_ends_it() {
        let set = Numbered { len: 100, bad: 50 };
        let mut seen = 0;
        let begin = || |range, batch: &mut SampleBatch| batch.read(&set, range, Some(&[]));
        let result = read_ahead(0..100, 10, 3, &begin, |batch| {
            seen += batch.series().count();
            Ok::<_, SourceError>(())
        });
        assert_eq!((result, seen), (Err(SourceError::Failed("series 50".into())), 50));
        let mut seen = 0;
        let result = read_ahead(0..100, 10, 3, &begin, |batch| {
            seen += batch.series().count();
            Err(SourceError::DeadlineExceeded)
        });
        assert_eq!((result, seen), (Err(SourceError::DeadlineExceeded), 10));
    }
}
