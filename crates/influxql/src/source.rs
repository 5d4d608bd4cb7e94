//! Where samples come from: the seam between the language and a store.

use crate::ast::DataType;
use model::{Labels, Matcher, TimeRange};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// The fields of a measurement and their types.
pub type Fields = BTreeMap<String, DataType>;

/// Receives a series' index, its timestamps and its values.
pub type SampleSink<'s> = dyn FnMut(usize, &[i64], &[f64]) + 's;

/// The same of whole numbers.
pub type IntegerSink<'s> = dyn FnMut(usize, &[i64], &[i64]) + 's;

/// Why a statement has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct EvalError(pub String);

impl EvalError {
    /// In these words.
    pub fn new(message: impl Into<String>) -> EvalError {
        EvalError(message.into())
    }
}

/// What a statement is asked of.
pub trait Source: Sync {
    /// Fails once there is no time left.
    ///
    /// # Errors
    /// Then.
    fn check(&self) -> Result<(), EvalError> {
        Ok(())
    }

    /// Whether there is such a database.
    ///
    /// # Errors
    /// A failed read.
    fn has_database(&self, database: &str) -> Result<bool, EvalError>;

    /// The names of all databases, sorted.
    ///
    /// # Errors
    /// A failed read.
    fn databases(&self) -> Result<Vec<String>, EvalError>;

    /// Retention policies of a database, in the order of their creation.
    ///
    /// # Errors
    /// A failed read.
    fn policies(&self, database: &str) -> Result<Vec<RetentionPolicy>, EvalError> {
        let _ = database;
        Ok(vec![RetentionPolicy::autogen()])
    }

    /// Name under which the samples of a retention policy are stored; without a name, those of the
    /// default policy.
    ///
    /// # Errors
    /// `retention policy not found`, and a failed read.
    fn policy_database(&self, database: &str, policy: Option<&str>) -> Result<String, EvalError> {
        let _ = policy;
        Ok(database.to_string())
    }

    /// Names under which the samples of all retention policies of a database are stored.
    ///
    /// # Errors
    /// A failed read.
    fn policy_databases(&self, database: &str) -> Result<Vec<String>, EvalError> {
        Ok(vec![database.to_string()])
    }

    /// The names of all measurements of a database, sorted.
    ///
    /// # Errors
    /// A failed read.
    fn measurements(&self, database: &str) -> Result<Vec<String>, EvalError>;

    /// The fields of a measurement; none if there is no such measurement.
    ///
    /// # Errors
    /// A failed read.
    fn fields(&self, database: &str, measurement: &str) -> Result<Fields, EvalError>;

    /// The tag keys of a measurement's series that match, sorted.
    ///
    /// # Errors
    /// A failed read.
    fn tag_keys(&self, place: &Place<'_>, matchers: &[Matcher]) -> Result<Vec<String>, EvalError>;

    /// Tag keys that `*` expands to, sorted: all of the measurement, independent of the time range.
    ///
    /// # Errors
    /// A failed read.
    fn all_tag_keys(&self, place: &Place<'_>) -> Result<Vec<String>, EvalError> {
        let range = TimeRange { start: i64::MIN, end: i64::MAX };
        self.tag_keys(&Place { range, ..*place }, &[])
    }

    /// The values of a tag of a measurement's series that match, sorted.
    ///
    /// # Errors
    /// A failed read.
    fn tag_values(
        &self,
        place: &Place<'_>,
        key: &str,
        matchers: &[Matcher],
    ) -> Result<Vec<String>, EvalError>;

    /// The tags of a measurement's series that match, whatever their fields; sorted, none twice.
    ///
    /// # Errors
    /// A failed read.
    fn tag_sets(&self, place: &Place<'_>, matchers: &[Matcher]) -> Result<Vec<Labels>, EvalError>;

    /// The series of one field that match and may have samples in the place's time.
    ///
    /// # Errors
    /// A failed read.
    fn select(
        &self,
        place: &Place<'_>,
        field: &str,
        matchers: &[Matcher],
    ) -> Result<Box<dyn SeriesSet + '_>, EvalError>;

    /// Whether a field of numbers or booleans has strings besides, which `::string` reads.
    fn has_texts_beside(&self, database: &str, measurement: &str, field: &str) -> bool {
        let _ = (database, measurement, field);
        false
    }

    /// As [`Source::select`], the strings that a field of numbers or booleans has besides.
    ///
    /// # Errors
    /// A failed read.
    fn select_texts_beside(
        &self,
        place: &Place<'_>,
        field: &str,
        matchers: &[Matcher],
    ) -> Result<Box<dyn SeriesSet + '_>, EvalError> {
        self.select(place, field, matchers)
    }

    /// The series of a field of floats for who reads it as integers, if some of its values are integers
    /// beyond float64: it was a field of integers before.
    ///
    /// # Errors
    /// A failed read.
    fn select_integers(
        &self,
        place: &Place<'_>,
        field: &str,
        matchers: &[Matcher],
    ) -> Result<Option<Box<dyn SeriesSet + '_>>, EvalError> {
        let _ = (place, field, matchers);
        Ok(None)
    }

    /// The same of several fields, in their order: some sources look for all of them at once.
    ///
    /// # Errors
    /// A failed read.
    fn select_together(
        &self,
        place: &Place<'_>,
        fields: &[&str],
        matchers: &[Matcher],
    ) -> Result<Vec<SharedSet<'_>>, EvalError> {
        fields.iter().map(|field| self.select(place, field, matchers).map(Arc::from)).collect()
    }
}

/// Retention policy as `SHOW RETENTION POLICIES` lists it. Durations are nanoseconds, 0 is infinite.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetentionPolicy {
    /// The name.
    pub name: String,
    /// Duration for which samples are kept.
    pub duration: i64,
    /// Time span of a shard group of InfluxDB.
    pub shard_duration: i64,
    /// Copies in a cluster of InfluxDB.
    pub replication: i64,
    /// Whether statements and writes without a policy use it.
    pub is_default: bool,
}

/// Name of the policy that a new database has.
pub const AUTOGEN: &str = "autogen";

const HOUR: i64 = 3_600_000_000_000;

impl RetentionPolicy {
    /// Policy of a database that was made without saying one.
    pub fn autogen() -> RetentionPolicy {
        RetentionPolicy {
            name: AUTOGEN.to_string(),
            duration: 0,
            shard_duration: shard_duration(0),
            replication: 1,
            is_default: true,
        }
    }
}

/// Shard duration that InfluxDB chooses for a policy's duration.
pub fn shard_duration(duration: i64) -> i64 {
    match duration {
        0 => 168 * HOUR,
        duration if 180 * 24 * HOUR <= duration => 168 * HOUR,
        duration if 48 * HOUR <= duration => 24 * HOUR,
        _ => HOUR,
    }
}

/// Selected series, of which several functions may have a share.
pub type SharedSet<'s> = Arc<dyn SeriesSet + 's>;

/// A measurement and a span of time.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// The database.
    pub database: &'a str,
    /// The measurement.
    pub measurement: &'a str,
    /// The time, both ends included.
    pub range: TimeRange,
}

/// Selected series of one field.
pub trait SeriesSet: Send + Sync {
    /// How many there are.
    fn len(&self) -> usize;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of memory that the set holds itself, about.
    fn memory_size(&self) -> usize {
        0
    }

    /// The tags of all series, in order. When names are `wanted`, others may be missing.
    ///
    /// # Errors
    /// A failed read.
    fn tags(&self, wanted: Option<&[&str]>) -> Result<Vec<Labels>, EvalError>;

    /// The text that a sample of a field of strings stands for.
    fn text(&self, sample: f64) -> Option<Arc<str>> {
        let _ = sample;
        None
    }

    /// Calls `sink` for each series of `range`, in order, with its samples in the selected time,
    /// oldest first.
    ///
    /// # Errors
    /// A failed read.
    fn read(&self, range: Range<usize>, sink: &mut SampleSink<'_>) -> Result<(), EvalError>;

    /// The same series for who reads them as whole numbers, if some of these are beyond what float64
    /// holds: [`SeriesSet::read`] has the nearest ones.
    fn integers(&self) -> Option<&dyn IntegerSeries> {
        None
    }
}

/// Selected series of one field of whole numbers.
pub trait IntegerSeries {
    /// As [`SeriesSet::read`], all bits of the numbers; samples that mark a series' end are left out.
    ///
    /// # Errors
    /// A failed read.
    fn read(&self, range: Range<usize>, sink: &mut IntegerSink<'_>) -> Result<(), EvalError>;
}
