//! What databases, retention policies, measurements and fields an InfluxDB has: a metric's name does not
//! say where its measurement ends, and nothing is asked for that is not there.

use super::super::faults::refusal;
use super::super::rule::Rule;
use super::words;
use http_client::influxdb::measurement;
use http_client::influxql::{Row, shared_label};
use influx_schema::schema::Measurements;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use wire::influx::{FieldType, TEXT_SUFFIX};

/// Databases and policies that are looked at.
const POLICIES_MAX: usize = 10_000;
/// Fields of all databases.
pub const FIELDS_MAX: usize = 1 << 19;
/// Bytes of the names of all of them.
const NAMES_SIZE_MAX: usize = 64 << 20;
/// Names that are said in one sentence.
const NAMES_SHOWN: usize = 10;

/// All that it has.
#[derive(Debug, Default)]
pub struct Catalog {
    /// Its databases, a group of retention policies each.
    pub databases: Vec<Database>,
    /// The databases that it has shown since start, where it is asked which there are.
    pub shown: BTreeSet<String>,
    /// What no answer has, in words.
    pub lacks: Vec<String>,
}

/// Retention policies of a database that have the same fields; a database may have several such groups.
#[derive(Debug, Default)]
pub struct Database {
    /// Name of the database.
    pub name: String,
    /// The policies, which have samples of their own.
    pub policies: Vec<Policy>,
    /// The measurements of each of them.
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
#[derive(Debug, Default, PartialEq)]
pub struct Measurement {
    /// Its name.
    pub name: String,
    /// Its fields; one that has been of two kinds may be there twice.
    pub fields: Vec<(String, FieldType)>,
}

/// The types of fields as shards say them.
type Types = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

/// How much of a catalog has come.
#[derive(Clone, Default)]
pub struct Count {
    policies: usize,
    fields: usize,
    names_size: usize,
}

impl Count {
    /// Counts a row of names.
    pub fn row(&mut self, statement: usize, texts: &[&str]) -> anyhow::Result<()> {
        match statement {
            0 => self.policies += 1,
            _ => self.fields += 1,
        }
        self.names_size += texts.iter().map(|text| text.len()).sum::<usize>();
        check(self.policies, POLICIES_MAX, "databases and policies")?;
        check(self.fields, FIELDS_MAX, "fields")?;
        check(self.names_size, NAMES_SIZE_MAX, "bytes of names")
    }
}

/// Fails beyond a limit: it is there, and has too much.
fn check(count: usize, max: usize, what: &str) -> anyhow::Result<()> {
    if max < count {
        return Err(refusal(format!(
            "it has more than {max} {what}: say database= for those that count"
        )));
    }
    Ok(())
}

impl Catalog {
    /// Whether there is no measurement.
    pub fn is_empty(&self) -> bool {
        self.databases.iter().all(|one| one.policies.is_empty() || one.measurements.is_empty())
    }

    /// The measurements of each database that Quipu's label says; where there is no label, of all
    /// together. The policies of a database share what it has.
    ///
    /// # Errors
    /// When databases that share a label have too much together.
    pub fn measurements(
        &self,
        has_label: bool,
    ) -> anyhow::Result<BTreeMap<String, Arc<Measurements>>> {
        let mut all: BTreeMap<String, Arc<Measurements>> = BTreeMap::new();
        let mut fields = 0;
        for database in &self.databases {
            let mut own = Measurements::new();
            database.add_to(&mut own);
            let own = Arc::new(own);
            let label =
                |policy: &Policy| if has_label { policy.label.clone() } else { String::new() };
            for label in database.policies.iter().map(label).collect::<BTreeSet<String>>() {
                match all.entry(label) {
                    Entry::Vacant(place) => drop(place.insert(own.clone())),
                    Entry::Occupied(mut place) => {
                        let known = Arc::make_mut(place.get_mut());
                        database.add_to(known);
                        fields += known.values().map(BTreeMap::len).sum::<usize>();
                        check(fields, FIELDS_MAX, "fields in databases of the same label")?;
                    }
                }
            }
        }
        Ok(all)
    }

    /// Number of measurements of all policies of a database.
    pub fn measurement_count(&self, database: &str) -> usize {
        let groups = self.databases.iter().filter(|one| one.name == database);
        let names = groups.flat_map(|one| &one.measurements).map(|one| one.name.as_str());
        names.collect::<BTreeSet<&str>>().len()
    }

    /// Checks that no two policies have one label.
    ///
    /// # Errors
    /// Which do.
    pub fn check_labels(&self) -> anyhow::Result<()> {
        let mut known = BTreeMap::new();
        for database in &self.databases {
            for policy in &database.policies {
                let table = (database.name.as_str(), policy.name.as_str());
                if let Some(other) = known.insert(policy.label.as_str(), table) {
                    let words = shared_label(&policy.label, other, table);
                    return Err(refusal(format!("{words}: say database= or retention-policy=")));
                }
            }
        }
        Ok(())
    }

    /// The names that answer for all that there is: which databases, and what is wrong with that.
    pub fn choose(&mut self, names: Vec<String>, before: Option<&Catalog>) -> Vec<String> {
        let (names, unsayable): (Vec<String>, Vec<String>) =
            names.into_iter().partition(|name| words::is_sayable(name));
        if !unsayable.is_empty() {
            self.lacks.push(format!("databases that InfluxQL cannot name: {}", listed(&unsayable)));
        }
        self.shown = names.iter().cloned().collect();
        let before = before.map(|one| &one.shown).into_iter().flatten();
        let gone: Vec<String> =
            before.filter(|name| !self.shown.contains(*name)).take(POLICIES_MAX).cloned().collect();
        if !gone.is_empty() {
            self.lacks.push(format!(
                "databases that it does not show any more: {}: they were dropped, or who asks may not \
                 read them now; say database= for those that count",
                listed(&gone)
            ));
        } else if names.is_empty() {
            let words = "it shows no databases: it has none, or who asks may not read them";
            self.lacks.push(words.to_string());
        }
        self.shown.extend(gone);
        names
    }
}

impl Database {
    /// Adds its measurements to others.
    fn add_to(&self, all: &mut Measurements) {
        for Measurement { name, fields } in &self.measurements {
            let known = all.entry(name.clone()).or_default();
            for (field, kind) in fields {
                let together = |before: &FieldType| influx_schema::schema::joined(*before, *kind);
                let kind = known.get(field).map_or(*kind, together);
                known.insert(field.clone(), kind);
            }
        }
    }
}

/// Some names, the first of them in words.
pub fn listed(names: &[String]) -> String {
    let shown: Vec<String> =
        names.iter().take(NAMES_SHOWN).map(|name| format!("{name:?}")).collect();
    let more = if NAMES_SHOWN < names.len() { ", .." } else { "" };
    shown.join(", ") + more
}

/// Collects the fields of a database's policies; policies with the same fields share them.
pub struct Schemas<'c> {
    database: &'c str,
    pub found: Vec<Database>,
    /// Size of the catalog so far.
    count: &'c mut Count,
    /// The same with the policy that is being read.
    with_open: Count,
    /// Fields of that policy.
    open: Types,
}

impl<'c> Schemas<'c> {
    pub fn new(database: &'c str, count: &'c mut Count) -> Schemas<'c> {
        let with_open = count.clone();
        Schemas { database, found: Vec::new(), count, with_open, open: Types::new() }
    }

    /// Counts a policy.
    pub fn policy(&mut self, name: &str) -> anyhow::Result<()> {
        self.count.row(0, &[name, self.database])?;
        self.with_open.row(0, &[name, self.database])
    }

    /// Takes a field of the open policy.
    pub fn field(&mut self, row: Row<'_>) -> anyhow::Result<()> {
        let (field, kind) = (row.text("fieldKey"), row.text("fieldType"));
        self.with_open.row(1, &[row.name, field, kind])?;
        let fields = self.open.entry(row.name.to_string()).or_default();
        fields.entry(field.to_string()).or_default().insert(kind.to_string());
        Ok(())
    }

    /// Ends the list of the open policy's fields; ignored without an open policy.
    pub fn close(&mut self, policy: Option<Policy>) {
        let types = std::mem::take(&mut self.open);
        if let Some(policy) = policy {
            let measurements: Vec<Measurement> =
                types.into_iter().map(|(name, types)| typed(name, types)).collect();
            match self.found.iter_mut().find(|one| one.measurements == measurements) {
                Some(same) => same.policies.push(policy),
                None => {
                    let (name, policies) = (self.database.to_string(), vec![policy]);
                    self.found.push(Database { name, policies, measurements });
                    self.count.clone_from(&self.with_open);
                }
            }
        }
        self.with_open.clone_from(self.count);
    }
}

/// A policy that the rule wants.
pub fn policy(rule: &Rule, database: &str, row: Row<'_>) -> Option<Policy> {
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
        let catalog = Catalog { databases: vec![database], ..Catalog::default() };
        let all = catalog.measurements(true).expect("few");
        assert_eq!(all.keys().collect::<Vec<_>>(), ["x", "x.p"]);
        assert_eq!(all["x.p"]["m"]["b"], Integer);
        let together = catalog.measurements(false).expect("few");
        assert_eq!(together.keys().collect::<Vec<_>>(), [""]);
        // A thousand policies have one list.
        assert!(Arc::ptr_eq(&all["x"], &all["x.p"]));
    }

    #[test]
    fn policies_with_the_same_fields_share_them() {
        let (mut count, policy) = (Count::default(), |name: &str| Policy {
            name: name.to_string(),
            label: format!("x.{name}"),
        });
        let mut schemas = Schemas::new("x", &mut count);
        for (name, fields) in [("a", 2), ("b", 1), ("c", 2), ("d", 0)] {
            for field in 0..fields {
                let columns = ["fieldKey", "fieldType"].map(str::to_string);
                let values = [field.to_string(), "float".to_string()].map(serde_json::Value::from);
                schemas.field(Row::new("m", &columns, &values)).expect("few");
            }
            schemas.close(Some(policy(name)));
        }
        let found = schemas.found;
        let shown = |one: &Database| {
            let names: Vec<&str> = one.policies.iter().map(|one| one.name.as_str()).collect();
            (names.concat(), one.measurements.iter().map(|one| one.fields.len()).sum())
        };
        let expected = [("ac".to_string(), 2), ("b".to_string(), 1), ("d".to_string(), 0)];
        assert_eq!(found.iter().map(shown).collect::<Vec<(String, usize)>>(), expected);
        assert_eq!(count.fields, 3, "what is shared counts once");
    }

    #[test]
    fn two_policies_of_one_label_are_refused() {
        let database = |name: &str, label: &str| {
            let policies = vec![Policy { name: "p".to_string(), label: label.to_string() }];
            Database { name: name.to_string(), policies, ..Database::default() }
        };
        let check = |labels: [&str; 2]| {
            let databases = vec![database("d", labels[0]), database("d.p", labels[1])];
            Catalog { databases, ..Catalog::default() }.check_labels()
        };
        check(["d", "d.p"]).expect("two labels");
        let error = check(["d.p", "d.p"]).expect_err("one label").to_string();
        assert!(error.contains("would both be the database \"d.p\""), "{error}");
    }

    #[test]
    fn databases_that_share_a_label_are_joined_and_bounded() {
        let database = |name: &str, label: &str, field: String| Database {
            name: name.to_string(),
            policies: vec![Policy { name: "p".to_string(), label: label.to_string() }],
            measurements: vec![Measurement {
                name: "m".to_string(),
                fields: vec![(field, FieldType::Float)],
            }],
        };
        let of = |count: usize| {
            let one = |n: usize| database(&n.to_string(), "x.p", format!("f{n}"));
            Catalog { databases: (0..count).map(one).collect(), ..Catalog::default() }
        };
        assert_eq!(of(2).measurements(true).expect("few")["x.p"]["m"].len(), 2);
        let error = of(1100).measurements(true).expect_err("each is a copy of those before");
        assert!(error.to_string().contains(&FIELDS_MAX.to_string()), "{error}");
    }

    #[test]
    fn databases_that_vanish_are_said_for_good() {
        let names =
            |all: &[&str]| -> Vec<String> { all.iter().map(|one| one.to_string()).collect() };
        let look = |all: &[&str], before: Option<&Catalog>| {
            let mut catalog = Catalog::default();
            let chosen = catalog.choose(names(all), before);
            (chosen, catalog)
        };
        let (chosen, first) = look(&["a", "b", "c\rd"], None);
        assert_eq!(chosen, ["a", "b"]);
        assert_eq!(first.lacks, ["databases that InfluxQL cannot name: \"c\\rd\""]);
        let (_, second) = look(&["a"], Some(&first));
        assert!(second.lacks[0].contains("not show any more: \"b\": they were dropped"));
        let (_, third) = look(&["a"], Some(&second));
        assert_eq!(third.lacks, second.lacks);
        assert!(look(&["a", "b"], Some(&third)).1.lacks.is_empty(), "it is there again");
        assert!(look(&[], None).1.lacks[0].contains("shows no databases"));
    }
}
