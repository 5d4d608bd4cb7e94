//! Series that a merge drops while a query reads them: the query selects again.

use engine::{LabelSink, SampleSink, Value, instant};
use engine::{
    MemorySource, QueryError, QueryOptions, SelectLimits, SeriesSet, Source, SourceError,
};
use model::{Labels, Matcher, TimeRange};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Its first selections cannot be read.
struct Changing {
    source: MemorySource,
    failures_left: AtomicUsize,
}

/// A selection whose series are gone.
struct Gone;

impl SeriesSet for Gone {
    fn len(&self) -> usize {
        1
    }

    fn labels(&self, _: usize) -> Result<Labels, SourceError> {
        Err(SourceError::Changed)
    }

    fn read_labels(
        &self,
        _: Range<usize>,
        _: Option<&[&str]>,
        _: &mut LabelSink<'_>,
    ) -> Result<(), SourceError> {
        Err(SourceError::Changed)
    }

    fn read(&self, _: Range<usize>, _: &mut SampleSink<'_>) -> Result<(), SourceError> {
        Err(SourceError::Changed)
    }
}

impl Source for Changing {
    fn select(
        &self,
        sets: &[Vec<Matcher>],
        range: TimeRange,
        limits: &SelectLimits,
    ) -> Result<Box<dyn SeriesSet + '_>, SourceError> {
        let left = |left: usize| left.checked_sub(1);
        match self.failures_left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, left) {
            Ok(_) => Ok(Box::new(Gone)),
            Err(_) => self.source.select(sets, range, limits),
        }
    }
}

fn ask(failures: usize) -> Result<f64, QueryError> {
    let mut source = MemorySource::new();
    source.append(&Labels::from_pairs(&[("__name__", "up")]), 1_000_000, 1.0);
    let source = Changing { source, failures_left: AtomicUsize::new(failures) };
    match instant(&source, "sum(up)", 1, &QueryOptions::default())?.value {
        Value::Vector(samples) => Ok(samples[0].value),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_query_selects_again_some_times() {
    assert_eq!(ask(0), Ok(1.0));
    assert_eq!(ask(3), Ok(1.0));
    assert_eq!(ask(4), Err(QueryError::Changed));
}
