//! Series read by several threads ahead of the one that evaluates, which gets them in order.
//!
//! ```text
//! thread 0: batches 0, 2, 4 ...  ──┐ one batch waits
//! thread 1: batches 1, 3, 5 ...  ──┴─> batches 0, 1, 2, 3 ...
//! ```

use crate::selector::Wanted;
use crate::source::{SeriesSet, SourceError};
use model::Labels;
use std::ops::Range;
use std::sync::mpsc::{Receiver, sync_channel};

/// From so many batches on, threads pay: some milliseconds of reading.
pub(crate) const BATCHES_MIN: usize = 8;
/// Threads at most; one evaluates what they read.
const THREADS_MAX: usize = 8;

/// Some series with their samples.
#[derive(Default)]
pub(crate) struct Batch {
    labels: Vec<Labels>,
    timestamps: Vec<i64>,
    values: Vec<f64>,
    /// Where each series' samples end.
    ends: Vec<usize>,
}

impl Batch {
    fn read(
        set: &dyn SeriesSet,
        range: Range<usize>,
        wanted: Wanted<'_>,
    ) -> Result<Batch, SourceError> {
        let mut batch = Batch::default();
        batch.labels.reserve(range.len());
        match wanted {
            Some([]) => batch.labels.resize(range.len(), Labels::default()),
            wanted => {
                set.read_labels(range.clone(), wanted, &mut |_, one| batch.labels.push(one))?;
            }
        }
        set.read(range, &mut |_, timestamps, values| {
            debug_assert_eq!(timestamps.len(), values.len());
            batch.timestamps.extend_from_slice(timestamps);
            batch.values.extend_from_slice(values);
            batch.ends.push(batch.values.len());
        })?;
        Ok(batch)
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

/// How many threads read this many batches; less than two: none but the caller.
pub(crate) fn threads_for(batches: usize) -> usize {
    if batches < BATCHES_MIN {
        return 1;
    }
    std::thread::available_parallelism().map_or(1, usize::from).min(THREADS_MAX)
}

/// Hands the series of `range` to `visit`, `batch_len` at a time and in order, and ends at the
/// first error, its own or one of `visit`.
///
/// # Errors
/// The first, in the order of the series.
pub(crate) fn read_ahead<E: From<SourceError>>(
    set: &dyn SeriesSet,
    range: Range<usize>,
    batch_len: usize,
    wanted: Wanted<'_>,
    threads: usize,
    mut visit: impl FnMut(&Batch) -> Result<(), E>,
) -> Result<(), E> {
    let batch_at = |idx: usize| {
        let start = range.start + idx * batch_len;
        start..range.end.min(start + batch_len)
    };
    let batches = range.len().div_ceil(batch_len);
    std::thread::scope(|scope| {
        let start = |first: usize| -> Receiver<Result<Batch, SourceError>> {
            let (sender, receiver) = sync_channel(1);
            scope.spawn(move || {
                for idx in (first..batches).step_by(threads) {
                    let batch = Batch::read(set, batch_at(idx), wanted);
                    let is_last = batch.is_err();
                    // Nobody waits any more when `visit` failed.
                    if sender.send(batch).is_err() || is_last {
                        break;
                    }
                }
            });
            receiver
        };
        let receivers: Vec<_> = (0..threads.min(batches)).map(start).collect();
        for idx in 0..batches {
            match receivers[idx % threads].recv() {
                Ok(batch) => visit(&batch?)?,
                // The thread panicked, which the scope passes on.
                Err(_) => break,
            }
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
            read_ahead(&set, start..len, batch_len, None, threads, |batch| {
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
        let result = read_ahead(&set, 0..100, 10, Some(&[]), 3, |batch| {
            seen += batch.series().count();
            Ok::<_, SourceError>(())
        });
        assert_eq!((result, seen), (Err(SourceError::Failed("series 50".into())), 50));
        let mut seen = 0;
        let result = read_ahead(&set, 0..100, 10, None, 3, |batch| {
            seen += batch.series().count();
            Err(SourceError::DeadlineExceeded)
        });
        assert_eq!((result, seen), (Err(SourceError::DeadlineExceeded), 10));
    }
}
