//! Exemplars: single events that stand for the many in a sample, such as a request with its trace.

use crate::batch::Row;
use crate::labels::Labels;
use crate::sample::Timestamp;

/// One event.
#[derive(Clone, Debug, PartialEq)]
pub struct Exemplar {
    /// What tells of the event, most often a `trace_id`; not the labels of its series.
    pub labels: Labels,
    /// The event's own value.
    pub value: f64,
    /// When it was.
    pub timestamp: Timestamp,
    /// Whether the sender said when; else the time is that of the sample it came with, and the same
    /// event told again with another sample is still the same.
    pub has_timestamp: bool,
}

impl Exemplar {
    /// Whether both are the same event, told twice.
    pub fn is_same(&self, other: &Exemplar) -> bool {
        let is_timed = self.has_timestamp || other.has_timestamp;
        (!is_timed || self.timestamp == other.timestamp) && self.is_alike(other)
    }

    /// Whether labels and value are the same, whatever the time.
    pub fn is_alike(&self, other: &Exemplar) -> bool {
        let is_equal = self.value == other.value || self.value.to_bits() == other.value.to_bits();
        is_equal && self.labels == other.labels
    }
}

/// An exemplar of a request, with the series it belongs to.
#[derive(Clone, Debug)]
pub struct ExemplarRow {
    /// Names the series as a row of the same batch does; it has no values.
    pub row: Row,
    /// The exemplar.
    pub exemplar: Exemplar,
    /// Whether the request names the series for its exemplars alone, and its protocol lets such a
    /// series be a new one: that nobody has it is then no reason to refuse them.
    pub may_be_first: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_event_told_twice() {
        let one = Exemplar {
            labels: Labels::from_pairs(&[("trace_id", "a")]),
            value: 1.0,
            timestamp: 5,
            has_timestamp: true,
        };
        assert!(one.is_same(&one.clone()));
        let later = Exemplar { timestamp: 6, ..one.clone() };
        assert!(!one.is_same(&later) && one.is_alike(&later));
        assert!(!one.is_same(&Exemplar { has_timestamp: false, ..later.clone() }));
        let untimed = Exemplar { has_timestamp: false, ..one.clone() };
        assert!(untimed.is_same(&Exemplar { has_timestamp: false, ..later }));
        assert!(!one.is_same(&Exemplar { value: 2.0, ..one.clone() }));
        assert!(!one.is_same(&Exemplar { labels: Labels::default(), ..one.clone() }));
        let nan = Exemplar { value: f64::NAN, ..one };
        assert!(nan.is_same(&nan.clone()));
    }
}
