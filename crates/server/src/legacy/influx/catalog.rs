//! What databases, retention policies, measurements and fields an InfluxDB has: a metric's name does not
//! say where its measurement ends, and nothing is asked for that is not there.

use super::super::backend::Request;
use super::super::rule::Rule;
use super::asking;
use crate::commands::migrate::influxdb::{measurement, quoted};
use crate::measurements::Measurements;
use anyhow::{bail, ensure};
use std::collections::{BTreeMap, BTreeSet};
use wire::influx::{FieldType, TEXT_SUFFIX};

/// Its own database, of what it does itself.
const INTERNAL: &str = "_internal";
/// Databases and policies that are looked at.
const POLICIES_MAX: usize = 10_000;
/// Fields of all databases.
const FIELDS_MAX: usize = 1 << 19;

/// All that it has.
#[derive(Debug, Default)]
pub struct Catalog {
    /// Its databases.
    pub databases: Vec<Database>,
}

/// A database.
#[derive(Debug, Default)]
pub struct Database {
    /// Its name.
    pub name: String,
    /// Its retention policies, which have samples of their own.
    pub policies: Vec<Policy>,
    /// The measurements of all of them.
    pub measurements: Vec<Measurement>,
}

/// A retention policy.
#[derive(Debug, Default)]
pub struct Policy {
    /// Its name.
    pub name: String,
    /// The database that Quipu's label says.
    pub label: String,
}

/// A measurement.
#[derive(Debug, Default)]
pub struct Measurement {
    /// Its name.
    pub name: String,
    /// Its fields; one that has been of two kinds may be there twice.
    pub fields: Vec<(String, FieldType)>,
}

/// The types of fields as shards say them.
type Types = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

impl Catalog {
    /// Whether there is no measurement.
    pub fn is_empty(&self) -> bool {
        self.databases.iter().all(|one| one.policies.is_empty() || one.measurements.is_empty())
    }

    /// The measurements of each database that Quipu's label says; where there is no label, of all
    /// together.
    pub fn measurements(&self, has_label: bool) -> BTreeMap<String, Measurements> {
        let mut all: BTreeMap<String, Measurements> = BTreeMap::new();
        for database in &self.databases {
            for policy in &database.policies {
                let name = if has_label { policy.label.clone() } else { String::new() };
                let known = all.entry(name).or_default();
                for measurement in &database.measurements {
                    let fields = known.entry(measurement.name.clone()).or_default();
                    for (field, kind) in &measurement.fields {
                        let before = fields.get(field).copied();
                        let together =
                            before.map_or(*kind, |b| crate::measurements::joined(b, *kind));
                        fields.insert(field.clone(), together);
                    }
                }
            }
        }
        all
    }
}

/// Asks for all of it.
pub fn read(request: &mut Request<'_>) -> anyhow::Result<Catalog> {
    let rule = request.rule();
    let names = match rule.databases.is_empty() {
        false => rule.databases.clone(),
        true => databases(request)?,
    };
    let (mut catalog, mut policies, mut fields) = (Catalog::default(), 0, 0);
    for name in names {
        let found = database(request, name)?;
        policies += found.policies.len();
        fields += found.measurements.iter().map(|one| one.fields.len()).sum::<usize>();
        ensure!(policies <= POLICIES_MAX, "more than {POLICIES_MAX} databases and policies");
        ensure!(fields <= FIELDS_MAX, "more than {FIELDS_MAX} fields");
        catalog.databases.push(found);
    }
    let has = |name: &String| {
        catalog.databases.iter().any(|one| one.policies.iter().any(|policy| policy.name == *name))
    };
    if let Some(lost) = rule.policies.iter().find(|name| !has(name)) {
        bail!("no retention policy {lost}");
    }
    Ok(catalog)
}

fn databases(request: &mut Request<'_>) -> anyhow::Result<Vec<String>> {
    let mut names = Vec::new();
    asking::names(request, ("", &["SHOW DATABASES"]), None, &mut |_, row| {
        let name = row.text("name");
        if name != INTERNAL && !name.is_empty() {
            ensure!(names.len() < POLICIES_MAX, "more than {POLICIES_MAX} databases");
            names.push(name.to_string());
        }
        Ok(())
    })?;
    Ok(names)
}

fn database(request: &mut Request<'_>, name: String) -> anyhow::Result<Database> {
    let policies = format!("SHOW RETENTION POLICIES ON {}", quoted(&name));
    let fields = format!("SHOW FIELD KEYS ON {}", quoted(&name));
    let rule = request.rule();
    let mut database = Database { name, ..Database::default() };
    let (mut types, mut count) = (Types::new(), 0);
    let texts = [policies.as_str(), fields.as_str()];
    asking::names(request, (&database.name, &texts), None, &mut |statement, row| {
        count += 1;
        ensure!(count <= FIELDS_MAX, "more than {FIELDS_MAX} fields");
        match statement {
            0 => database.policies.extend(policy(rule, &database.name, row)),
            _ => {
                let fields = types.entry(row.name.to_string()).or_default();
                let known = fields.entry(row.text("fieldKey").to_string()).or_default();
                known.insert(row.text("fieldType").to_string());
            }
        }
        Ok(())
    })?;
    database.measurements = types.into_iter().map(|(name, types)| typed(name, types)).collect();
    Ok(database)
}

/// A policy that the rule wants.
fn policy(rule: &Rule, database: &str, row: asking::Row<'_>) -> Option<Policy> {
    let name = row.text("name").to_string();
    if !rule.policies.is_empty() && !rule.policies.contains(&name) {
        return None;
    }
    // As `quipu migrate` calls them.
    let label = match row.is_on("default") {
        true => database.to_string(),
        false => format!("{database}.{name}"),
    };
    Some(Policy { name, label })
}

/// The fields of a measurement with their types, as a copy would have them, and strings.
fn typed(name: String, types: BTreeMap<String, BTreeSet<String>>) -> Measurement {
    let found = measurement(name, types);
    let mut fields = found.fields;
    // Not numbers whose metric would be called as one of texts, which the door refuses.
    fields.retain(|(field, kind)| *kind == FieldType::String || !field.ends_with(TEXT_SUFFIX));
    Measurement { name: found.name, fields }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_have_the_types_that_a_copy_would_have() {
        let types = |names: &[&str]| names.iter().map(|name| (*name).to_string()).collect();
        let fields = BTreeMap::from([
            ("a".to_string(), types(&["float", "integer"])),
            ("b".to_string(), types(&["integer", "string"])),
            ("c".to_string(), types(&["boolean"])),
            ("d:text".to_string(), types(&["float"])),
        ]);
        use FieldType::{Boolean, Float, Integer, String as Text};
        let found = typed("m".to_string(), fields);
        let expected = [("a", Float), ("b", Integer), ("b", Text), ("c", Boolean)];
        assert_eq!(found.fields, expected.map(|(name, kind)| (name.to_string(), kind)));
        let policy = |label: &str| Policy { name: "p".to_string(), label: label.to_string() };
        let database = Database {
            name: "x".to_string(),
            policies: vec![policy("x"), policy("x.p")],
            measurements: vec![found],
        };
        let catalog = Catalog { databases: vec![database] };
        let all = catalog.measurements(true);
        assert_eq!(all.keys().collect::<Vec<_>>(), ["x", "x.p"]);
        assert_eq!(all["x.p"]["m"]["b"], Integer);
        assert_eq!(catalog.measurements(false).keys().collect::<Vec<_>>(), [""]);
    }
}
