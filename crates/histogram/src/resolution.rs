//! From a finer schema to a coarser one: neighbouring buckets become one.

use crate::merge::coarsened;
use crate::native::{Histogram, ResetHint};
use crate::schema::{SCHEMA_KNOWN_MAX, SCHEMA_MAX, SCHEMA_MIN, coarser_index};

/// A step from one schema to another that is at most as fine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Resolution {
    from: i8,
    to: i8,
}

impl Resolution {
    /// None if there is nothing to reduce: `to` is as fine, or finer.
    pub(crate) fn between(from: i8, to: i8) -> Option<Resolution> {
        (to < from).then_some(Resolution { from, to })
    }

    pub(crate) fn index(self, index: i32) -> i32 {
        coarser_index(index, self.from, self.to)
    }
}

impl Histogram {
    /// Merges buckets until the schema is `schema`. Nothing happens if it is as coarse already,
    /// or if either has custom bounds.
    pub fn reduce_to(&mut self, schema: i8) {
        if self.has_custom_bounds() || schema < SCHEMA_MIN {
            return;
        }
        if let Some(resolution) = Resolution::between(self.schema, schema) {
            self.positive = coarsened(&self.positive, resolution);
            self.negative = coarsened(&self.negative, resolution);
            self.schema = schema;
        }
    }

    /// A copy in a coarser schema. What was known about resets does not hold for it; if the schema
    /// is the same already, it is a plain copy.
    pub fn reduced_to(&self, schema: i8) -> Histogram {
        let mut copy = self.clone();
        copy.reduce_to(schema);
        if copy.schema != self.schema {
            copy.reset_hint = ResetHint::Unknown;
        }
        copy
    }

    /// What clients may send in a schema that is finer than ours is kept in our finest.
    pub fn adopt_schema(&mut self) {
        if (SCHEMA_MAX + 1..=SCHEMA_KNOWN_MAX).contains(&self.schema) {
            self.reduce_to(SCHEMA_MAX);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::CUSTOM_SCHEMA;
    use crate::testing::buckets;

    #[test]
    fn reducing() {
        let fine = Histogram {
            schema: 2,
            reset_hint: ResetHint::Reset,
            positive: buckets(&[(-4, 1.0), (-3, 2.0), (0, 3.0), (1, 4.0), (4, 5.0), (5, 6.0)]),
            negative: buckets(&[(2, 1.0), (3, 2.0)]),
            ..Histogram::default()
        };
        let coarse = fine.reduced_to(0);
        assert_eq!(coarse.positive, buckets(&[(-1, 1.0), (0, 5.0), (1, 9.0), (2, 6.0)]));
        assert_eq!(coarse.negative, buckets(&[(1, 3.0)]));
        assert_eq!((coarse.schema, coarse.reset_hint), (0, ResetHint::Unknown));
        assert_eq!(fine.reduced_to(2), fine);
        assert_eq!(fine.reduced_to(3), fine);
        assert_eq!(fine.reduced_to(1).reduced_to(0), coarse);
        let custom = Histogram { schema: CUSTOM_SCHEMA, ..fine };
        assert_eq!(custom.reduced_to(0), custom);
    }

    #[test]
    fn finer_schemas_than_ours_are_reduced() {
        let mut histogram = Histogram {
            schema: 10,
            positive: buckets(&[(1, 1.0), (5, 2.0)]),
            ..Histogram::default()
        };
        histogram.adopt_schema();
        assert_eq!((histogram.schema, histogram.positive), (8, buckets(&[(1, 1.0), (2, 2.0)])));
    }
}
