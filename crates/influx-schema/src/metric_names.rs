//! Names of the metrics of fields: `measurement_field`. The measurement `a` with a field `b_c` and the
//! measurement `a_b` with a field `c` would have one; whichever comes second gets colons before the
//! underscore, `a_b:_c`, as many as make the name its own.
//!
//! Names are given out within a database. They stay given out while the process lives, whatever is
//! dropped: the store finds series by the bytes of lines that it has seen.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

/// Names that are remembered.
const NAMES_MAX: usize = 1 << 21;
/// Colons of the longest name.
const COLONS_MAX: u8 = u8::MAX;

/// Names of one process.
#[derive(Default)]
pub struct MetricNames {
    hasher: RandomState,
    /// Hash of the field that has a name, by the hash of database and name.
    owners: HashMap<u64, u64>,
    /// Colons of fields that have some: by database, measurement and field.
    colons: HashMap<String, HashMap<String, HashMap<String, u8>>>,
}

/// The name of a field's metric.
pub fn joined(measurement: &str, colons: u8, field: &str) -> String {
    format!("{measurement}{}_{field}", ":".repeat(colons.into()))
}

impl MetricNames {
    /// Whether all names are plain.
    pub fn is_plain(&self) -> bool {
        self.colons.is_empty()
    }

    /// Colons in the name of a field.
    pub fn colons(&self, database: &str, measurement: &str, field: &str) -> u8 {
        let of_database = self.colons.get(database).and_then(|all| all.get(measurement));
        of_database.and_then(|fields| fields.get(field)).copied().unwrap_or(0)
    }

    /// Whether so many names are remembered that those of dropped fields should go.
    pub fn is_full(&self) -> bool {
        NAMES_MAX <= self.owners.len()
    }

    /// Whether a field has a name, though it may have been dropped since.
    pub fn has(&self, database: &str, measurement: &str, field: &str) -> bool {
        let own = self.hasher.hash_one((database, measurement, field));
        let name = self.hasher.hash_one((database, joined(measurement, 0, field)));
        let is_plain = || self.owners.get(&name) == Some(&own);
        self.colons(database, measurement, field) != 0 || is_plain()
    }

    /// Chooses the name of a field that comes with one: the name that it has, or the one that it comes
    /// with, or one that no other field of the database has. Gives it to the field.
    pub fn claim(&mut self, of: (&str, &str, &str), colons: u8) -> u8 {
        let (database, measurement, field) = of;
        if !self.has(database, measurement, field) {
            self.give(of, colons);
        }
        let chosen = self.choose(database, measurement, field);
        self.give(of, chosen);
        chosen
    }

    /// Chooses the name of a field: the one that it has, or one that no other field of the database has.
    pub fn choose(&self, database: &str, measurement: &str, field: &str) -> u8 {
        let known = self.colons(database, measurement, field);
        if known != 0 {
            return known;
        }
        let own = self.hasher.hash_one((database, measurement, field));
        let is_free = |colons: &u8| {
            let name = self.hasher.hash_one((database, joined(measurement, *colons, field)));
            self.owners.get(&name).is_none_or(|owner| *owner == own)
        };
        (0..=COLONS_MAX).find(is_free).unwrap_or(COLONS_MAX)
    }

    /// Gives a field the name with that many colons, unless another field has it.
    pub fn give(&mut self, (database, measurement, field): (&str, &str, &str), colons: u8) {
        let own = self.hasher.hash_one((database, measurement, field));
        let name = self.hasher.hash_one((database, joined(measurement, colons, field)));
        let owner = *self.owners.entry(name).or_insert(own);
        if colons != 0 && owner == own {
            let measurements = self.colons.entry(database.to_string()).or_default();
            let fields = measurements.entry(measurement.to_string()).or_default();
            fields.insert(field.to_string(), colons);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_fields_come_with_are_taken_unless_another_field_has_them() {
        let mut names = MetricNames::default();
        assert_eq!(names.claim(("x", "a", "b_c"), 0), 0);
        assert_eq!(names.claim(("x", "a_b", "c"), 0), 1, "another field has the plain name");
        assert_eq!(names.claim(("x", "a_b", "c"), 0), 1, "the field has a name");
        assert_eq!(names.claim(("x", "a_b", "c"), 7), 1, "the field has a name");
        assert_eq!(names.claim(("y", "a_b", "c"), 2), 2, "the name is free");
        assert_eq!(names.claim(("y", "a_b", "c"), 0), 2, "the field has a name");
        assert_eq!(names.claim(("y", "a", "b_c"), 3), 3);
        assert_eq!(names.claim(("z", "a_b", "c"), 0), 0);
        assert_eq!(names.claim(("z", "a_b", "c"), 1), 0, "the field has the plain name");
        assert_eq!(names.claim(("z", "a_b:", "c"), 0), 0);
        assert_eq!(names.claim(("z", "a", "b_c"), 0), 1);
    }

    #[test]
    fn every_field_of_a_database_has_a_name_of_its_own() {
        let mut names = MetricNames::default();
        let mut name = |database: &str, measurement: &str, field: &str| {
            let colons = names.choose(database, measurement, field);
            names.give((database, measurement, field), colons);
            assert_eq!(names.colons(database, measurement, field), colons);
            joined(measurement, colons, field)
        };
        assert_eq!(name("x", "a", "b_c"), "a_b_c");
        assert_eq!(name("x", "a_b", "c"), "a_b:_c");
        assert_eq!(name("y", "a_b", "c"), "a_b_c");
        assert_eq!(name("x", "a_b:", "c"), "a_b::_c");
        assert_eq!(name("x", "a_b", "c"), "a_b:_c");
        assert_eq!(name("x", "a", "b_c"), "a_b_c");
        assert_eq!(name("x", "a", "b:_c"), "a:_b:_c");
    }
}
