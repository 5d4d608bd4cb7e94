//! Labels of a series as an object of JSON.

use crate::types::error::SqlError;
use crate::types::json::jsonb;
use model::METRIC_NAME;
use serde::de::{Deserializer as _, IgnoredAny, MapAccess, Visitor};
use std::fmt;

/// The pairs of a `jsonb` object of texts, no more than 1,000.
///
/// # Errors
/// When it is none, or a label cannot be called so.
pub fn labels_of(text: &str) -> Result<Vec<(String, String)>, SqlError> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let read = reader.deserialize_map(Pairs).and_then(|read| reader.end().map(|()| read));
    let ReadPairs { pairs, count } =
        read.map_err(|_| not_that(format!("labels are an object of texts, not {}", shown(text))))?;
    if LABELS_MAX < count {
        let words = format!("{count} labels, the limit is {LABELS_MAX}");
        return Err(SqlError::limit(words));
    }
    let pair = |(name, value): (String, _)| match value {
        serde_json::Value::String(_) if name == METRIC_NAME || name.is_empty() => {
            Err(not_that(format!("a label cannot be called {name:?}")))
        }
        serde_json::Value::String(value) if name.contains('\0') || value.contains('\0') => {
            Err(SqlError::new("22P05", jsonb::ZERO_REFUSED))
        }
        serde_json::Value::String(value) => Ok((name, value)),
        other => {
            let (name, other) = (shown(&name), shown(&other.to_string()));
            Err(not_that(format!("label {name:?} is {other}, which is no text")))
        }
    };
    pairs.into_iter().map(pair).collect()
}

/// Labels of a sample that are read. The store takes fewer, by a flag of its own; this bounds what is
/// made of a text before it is asked.
pub(crate) const LABELS_MAX: usize = 1000;

/// Characters of a text that an error shows.
pub(crate) const SHOWN_LEN_MAX: usize = 100;

pub(crate) fn shown(text: &str) -> String {
    text.chars().take(SHOWN_LEN_MAX).collect()
}

/// What was read of an object: as many pairs as may be kept, and how many there are.
#[derive(Default)]
pub(crate) struct ReadPairs {
    pairs: serde_json::Map<String, serde_json::Value>,
    count: usize,
}

/// Reads an object.
pub(crate) struct Pairs;

impl<'de> Visitor<'de> for Pairs {
    type Value = ReadPairs;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ReadPairs, A::Error> {
        let mut read = ReadPairs::default();
        while read.pairs.len() < LABELS_MAX {
            let Some((name, value)) = map.next_entry()? else {
                read.count = read.pairs.len();
                return Ok(read);
            };
            // The last of one name wins, as in PostgreSQL.
            read.pairs.insert(name, value);
        }
        read.count = read.pairs.len();
        // Only counted, without heed to those that are there twice.
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {
            read.count += 1;
        }
        Ok(read)
    }
}

pub(crate) fn not_that(message: String) -> SqlError {
    SqlError::new("22P02", message)
}
