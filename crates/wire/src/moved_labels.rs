//! Labels of a series that have the name of a label which the request adds: they are moved aside, as
//! Prometheus moves them when it scrapes.
//!
//! ```text
//! tag             db    exported_db             exported_exported_db
//! label   exported_db   exported_exported_db    ...
//! ```
//!
//! Names that were moved already are moved once more, so that no two names become one.

use model::LabelsBuilder;
use std::borrow::Cow;

/// Prefix of a label that was moved aside.
const PREFIX: &str = "exported_";

/// Whether a label of this name is moved aside where `added` is added.
fn is_moved(name: &str, added: &str) -> bool {
    let Some(mut prefixes) = name.strip_suffix(added).filter(|_| !added.is_empty()) else {
        return false;
    };
    while let Some(rest) = prefixes.strip_prefix(PREFIX) {
        prefixes = rest;
    }
    prefixes.is_empty()
}

/// Name under which a series' own label is stored where `added` is added.
pub fn stored_name<'n>(own: &'n str, added: &str) -> Cow<'n, str> {
    match is_moved(own, added) {
        true => Cow::Owned(format!("{PREFIX}{own}")),
        false => Cow::Borrowed(own),
    }
}

/// A series' own name of a stored label that is not `added` itself: the inverse of [`stored_name`].
pub fn own_name<'n>(stored: &'n str, added: &str) -> &'n str {
    stored.strip_prefix(PREFIX).filter(|own| is_moved(own, added)).unwrap_or(stored)
}

/// Moves a series' own labels aside, but for one that has the same value as the added label.
pub(crate) fn move_aside(labels: &mut LabelsBuilder, added: &str, same: Option<&str>) {
    let is_same = |name: &str, value: &str| name == added && Some(value) == same;
    if !labels.iter().any(|(name, value)| is_moved(name, added) && !is_same(name, value)) {
        return;
    }
    let pair = |(name, value): (&str, &str)| match is_same(name, value) {
        true => (name.to_string(), value.to_string()),
        false => (stored_name(name, added).into_owned(), value.to_string()),
    };
    let pairs: Vec<(String, String)> = labels.iter().map(pair).collect();
    labels.clear();
    for (name, value) in pairs {
        labels.push(&name, &value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_names_come_back_and_never_meet() {
        for (own, stored) in [
            ("db", "exported_db"),
            ("exported_db", "exported_exported_db"),
            ("exported_exported_db", "exported_exported_exported_db"),
            ("mydb", "mydb"),
            ("exported_mydb", "exported_mydb"),
            ("exported_", "exported_"),
            ("", ""),
        ] {
            assert_eq!(stored_name(own, "db"), stored, "{own}");
            assert_eq!(own_name(stored, "db"), own, "{stored}");
        }
        assert_eq!(stored_name("db", ""), "db");
        assert_eq!(own_name("exported_db", ""), "exported_db");
    }
}
