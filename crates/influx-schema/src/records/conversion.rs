//! Conversion of the entries that earlier versions kept among the metadata of the store, under names that
//! begin with a zero byte.
//!
//! ```text
//! entries of the metadata ─► feature flag ─► both files of schema records ─► metadata without them
//!                              │                │
//!                    older programs refuse      from here on the files count, and entries that the
//!                                               log still has are dropped each time it is read
//! ```
//!
//! Each start converts the entries again until the files exist. The entries do not change before that,
//! because the first change writes the files.
//!
//! ```text
//! \0influx \0 DATABASE \0 MEASUREMENT \0 FIELD        unit: type, help: colons in the metric's name
//! \0influx \0 DATABASE \0 MEASUREMENT \0 FIELD:text   unit: string, of a field that has numbers, too
//! \0influx \0 DATABASE                                a database that was created
//! \0text \0 NUMBER                                    help: string
//! \0influx-policies \0 DATABASE                       help: JSON of the policies
//! ```
//!
//! The unit `gone` marked entries that were removed.

use super::SchemaRecords;
use super::changes::Change;
use super::files::SCHEMA_DIR;
use super::key::{Key, KeyKind};
use super::opening::{is_for_want_of_room, lost_records};
use crate::schema::field_value;
use model::Metadata;
use store::{Need, Result};
use wire::influx::TEXT_SUFFIX;

/// Unit of entries that were removed.
const REMOVED: &str = "gone";

/// Converts the entries of a store of an earlier version, and removes them. On a full disk they stay
/// where they are and are converted in memory; the next change, or the next start, tries again.
///
/// # Errors
/// On I/O errors.
pub(super) fn convert(schema: &SchemaRecords) -> Result<()> {
    let store = &schema.store;
    if !schema.log.is_begun() {
        let records: Vec<Change> = store.legacy_schema().iter().filter_map(convert_entry).collect();
        if !records.is_empty() {
            tracing::info!("converting {} schema records of an earlier version", records.len());
            schema.log.add_converted(&records);
            match schema.begin() {
                Err(error) if is_for_want_of_room(&error) => {
                    tracing::warn!("schema records are converted in memory only: {error}");
                }
                begun => begun?,
            }
        }
        note_lost_dictionary(schema);
    } else if let Err(error) = store.need(Need::Schema) {
        tracing::warn!("an older version could open this store and miss its schema: {error}");
    }
    match schema.log.is_begun() {
        true => store.drop_legacy_schema(),
        false => Ok(()),
    }
}

/// Notes a dictionary that is gone though numbers of it may be in use.
fn note_lost_dictionary(schema: &SchemaRecords) {
    let mut has_strings = false;
    schema.log.for_each(KeyKind::String, &mut |_, _| has_strings = true);
    if has_strings || !schema.store.has(Need::Schema) {
        return;
    }
    let is_used = schema.store.reserved_string_number().is_some_and(|number| 0 < number);
    let is_noted = || schema.store.damage().iter().any(|one| one.file.starts_with(SCHEMA_DIR));
    if is_used && !is_noted() {
        schema.store.note_damage(lost_records());
    }
}

/// The record of an entry; `None` for one that was removed or that no version has written.
fn convert_entry(entry: &Metadata) -> Option<Change> {
    if entry.unit == REMOVED {
        return None;
    }
    let (kind, names) = entry.metric.strip_prefix('\0')?.split_once('\0')?;
    let names: Vec<&str> = names.split('\0').collect();
    match (kind, &names[..]) {
        ("influx", &[database]) => Some(Change::put(Key::Database { database }, "")),
        ("influx", &[database, measurement, field]) => {
            let kind = crate::schema::type_of(&entry.unit)?;
            match field.strip_suffix(TEXT_SUFFIX) {
                Some(field) if kind == wire::influx::FieldType::String => {
                    Some(Change::put(Key::AlsoString { database, measurement, field }, ""))
                }
                _ => {
                    let colons = entry.help.parse().unwrap_or(0);
                    let value = field_value(kind, colons);
                    Some(Change::put(Key::Field { database, measurement, field }, value))
                }
            }
        }
        ("text", &[number]) => {
            let number = u32::from_str_radix(number, 16).ok()?;
            Some(Change::put(Key::String { number }, entry.help.as_str()))
        }
        ("influx-policies", &[database]) => {
            Some(Change::put(Key::Policies { database }, entry.help.as_str()))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(metric: &str, help: &str, unit: &str) -> Metadata {
        let (metric, help, unit) = (metric.into(), help.into(), unit.into());
        Metadata { metric, help, unit, ..Metadata::default() }
    }

    #[test]
    fn each_kind_of_entry_becomes_a_record() {
        for (given, key, value) in [
            (entry("\0influx\0d\0m\0f", "", "long"), "field\0d\0m\0f", "long"),
            (entry("\0influx\0d\0m\0f", "2", "boolean"), "field\0d\0m\0f", "boolean 2"),
            (entry("\0influx\0d\0m\0f:text", "", "string"), "strings\0d\0m\0f", ""),
            (entry("\0influx\0d\0m\0f:text", "", "float"), "field\0d\0m\0f:text", "float"),
            (entry("\0influx\0d", "", ""), "database\0d", ""),
            (entry("\0text\x000000000c", "OPEN", ""), "string\x000000000c", "OPEN"),
            (entry("\0influx-policies\0d", "{}", ""), "policies\0d", "{}"),
        ] {
            let expected = Change { key: key.to_string(), value: Some(value.into()) };
            assert_eq!(convert_entry(&given), Some(expected));
        }
        for none in [
            entry("\0influx\0d\0m\0f", "", "gone"),
            entry("\0influx\0d", "", "gone"),
            entry("\0influx-policies\0d", "", "gone"),
            entry("\0influx\0d\0m\0f", "", "what"),
            entry("\0other\0d", "", ""),
            entry("\0", "", ""),
            entry("cpu", "", ""),
        ] {
            assert_eq!(convert_entry(&none), None, "{none:?}");
        }
    }
}
