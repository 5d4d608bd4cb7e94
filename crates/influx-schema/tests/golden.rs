//! Golden stores of earlier versions, whose schema is among the metadata, and of those since: all have the
//! same schema, strings and policies when they are open, and no such metadata.
//!
//! The stores are in `tests/golden`, made by `make.py` there.

use crate::rig::{records_of, store_config};
use influx_schema::records::{OpenedStore, has_records};
use influx_schema::retention_policies::RetentionPolicies;
use influx_schema::schema::{FieldRules, MeasurementTable};
use influx_schema::strings::{TextLimits, TextTable};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use store::{Asks, Need};
use vfs::{RealVfs, Vfs};
use wire::influx::FieldType;

fn golden() -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden");
    let names = RealVfs::new().list(&directory).expect("golden stores");
    let archives = names.into_iter().filter(|name| name.ends_with(".tar.gz"));
    archives.map(|name| directory.join(name)).collect()
}

fn unpack(archive: &Path) -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    let mut tar = Command::new("tar");
    let tar = tar.arg("-xzf").arg(archive).arg("-C").arg(directory.path());
    assert!(tar.status().expect("tar runs").success());
    directory
}

/// Metadata files with names that begin with a zero byte.
fn legacy_files(store: &Path) -> usize {
    let has_legacy = |name: &str| {
        let bytes = RealVfs::new().read(&store.join(name)).unwrap_or_default();
        [&b"\0influx\0"[..], b"\0text\0", b"\0influx-policies\0"]
            .iter()
            .any(|start| bytes.windows(start.len()).any(|window| window == *start))
    };
    ["metadata", "metadata.copy"].iter().filter(|name| has_legacy(name)).count()
}

fn open(store: &Path) -> OpenedStore {
    OpenedStore::open(Arc::new(RealVfs::new()), store, store_config()).expect("it opens")
}

/// Strings and integers that make.py wrote.
fn check_schema(opened: &OpenedStore, has_integers: bool, has_policies: bool) {
    let rules = FieldRules { keeps_texts: true, name_size_max: 1 << 10 };
    let schema = MeasurementTable::read(&opened.schema, rules);
    let field =
        |measurement: &str, field: &str| schema.field("shop", measurement, field, Asks::Own);
    assert_eq!(field("service", "state"), Some(FieldType::String));
    assert_eq!(field("service", "ok"), Some(FieldType::Boolean));
    if has_integers {
        assert_eq!(field("meter", "n"), Some(FieldType::Long));
        assert_eq!(field("meter", "v"), Some(FieldType::Float));
        assert!(schema.has_texts_beside("shop", "meter", "v", Asks::Own));
    }
    let limits = TextLimits { count_max: 1000, size_max: 1000 };
    let strings = TextTable::read(&opened.schema, limits);
    let texts: Vec<String> =
        (1..5000).filter_map(|number| Some(strings.text(f64::from(number))?.to_string())).collect();
    let of_meter: &[&str] = if has_integers { &["text 0", "text 18"] } else { &[] };
    for text in ["up", "down", "half \"up\", ü"].iter().chain(of_meter) {
        assert!(texts.iter().any(|known| known == *text), "{text} among {texts:?}");
    }
    let policies = RetentionPolicies::read(&opened.schema);
    if has_policies {
        let known = policies.noted("shop").expect("policies");
        assert_eq!((known.default.as_str(), known.all.len()), ("autogen", 2));
        assert!(known.get("week").is_some());
        assert!(schema.has("empty"), "a database that was created");
        assert_eq!(field("valve", "turns"), Some(FieldType::Integer), "in the log alone");
        assert!(texts.iter().any(|known| known == "shut"), "in the log alone: {texts:?}");
    }
}

#[test]
fn golden_stores_have_their_schema_and_no_such_metadata() {
    let (mut converted, mut new) = (0, 0);
    for archive in golden() {
        let directory = unpack(&archive);
        let store = directory.path().join("store");
        let said = RealVfs::new().read(&directory.path().join("expected.json")).expect("told");
        let said: serde_json::Value = serde_json::from_slice(&said).expect("JSON");
        let made = |what: &str| said["made"].as_array().expect("made").contains(&what.into());
        let is_new = has_records(&RealVfs::new(), &store).expect("known");
        let legacy = legacy_files(&store);
        let opened = open(&store);
        let records = records_of(&opened);
        println!("{}: {} records", archive.display(), records.len());
        assert_eq!(legacy_files(&store), 0, "{}", archive.display());
        assert!(opened.store.legacy_schema().is_empty());
        assert!(opened.store.damage().is_empty(), "{:?}", opened.store.damage());
        assert_eq!(opened.store.has(Need::Schema), !records.is_empty());
        if made("strings") {
            let has_integers = said["influxql"]["SHOW FIELD KEYS FROM meter"].is_array();
            check_schema(&opened, has_integers, made("policies"));
            assert!(is_new || 0 < legacy, "an earlier version kept it among the metadata");
            converted += usize::from(!is_new);
            new += usize::from(is_new);
        }
        opened.close().expect("closed");
        drop(opened);
        let opened = open(&store);
        assert_eq!(records_of(&opened), records, "{}, opened again", archive.display());
    }
    assert!(0 < converted && 0 < new, "{converted} stores were converted, {new} have records");
}
