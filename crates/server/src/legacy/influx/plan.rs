//! Which fields of which measurements a question is about.
//!
//! ```text
//! {__name__="cpu_usage_user", db="x", host=~"a|b"}
//!    └───────────┬─────────┘  └──┬─┘  └─────┬────┘
//!    measurement `cpu`, field `usage_user`  a condition on tags
//!    or `cpu_usage`, field `user`: whichever database x has
//! ```

use super::super::backend::refusal;
use super::catalog::{Catalog, Database, FIELDS_MAX, Measurement, Policy};
use super::words;
use crate::measurements::metric_of;
use anyhow::ensure;
use index::CompiledMatchers;
use model::{Labels, METRIC_NAME, Matcher};
use std::time::Instant;
use wire::influx::FieldType;

/// A measurement, and what is wanted of it.
#[derive(Debug)]
pub struct Wanted<'c> {
    /// Where it is.
    pub database: &'c Database,
    /// Under which policy.
    pub policy: &'c Policy,
    /// Which it is.
    pub measurement: &'c Measurement,
    /// Those of its fields that are wanted.
    pub fields: Vec<&'c (String, FieldType)>,
    /// What tags have to be, as far as InfluxQL can say it.
    pub condition: String,
}

/// All that a question is about.
#[derive(Debug)]
pub struct Plan<'c> {
    /// Each measurement.
    pub list: Vec<Wanted<'c>>,
    /// Whether tags may be what they like.
    pub is_of_any_tags: bool,
    sets: Vec<CompiledMatchers>,
    /// Fields of all of them.
    fields: usize,
    unsayable: Unsayable,
}

/// Fields that are wanted and cannot be asked for.
#[derive(Debug, Default)]
struct Unsayable {
    count: usize,
    first: String,
}

/// How series are called here.
#[derive(Clone, Copy, Debug)]
pub struct Naming<'a> {
    /// The label of a database; empty where there is none.
    pub label: &'a str,
    /// Whether there are strings.
    pub has_texts: bool,
}

impl<'c> Plan<'c> {
    /// What matchers are about.
    pub fn new(
        catalog: &'c Catalog,
        sets: &[Vec<Matcher>],
        naming: Naming<'_>,
        deadline: Instant,
    ) -> anyhow::Result<Plan<'c>> {
        let everything = [Vec::new()];
        let sets = if sets.is_empty() { &everything } else { sets };
        let mut plan = Plan {
            list: Vec::new(),
            is_of_any_tags: true,
            sets: Vec::new(),
            fields: 0,
            unsayable: Unsayable::default(),
        };
        for set in sets {
            let is_known = |matcher: &&Matcher| {
                let is_label = !naming.label.is_empty() && matcher.name == naming.label;
                is_label || matcher.name == METRIC_NAME
            };
            let (known, tags): (Vec<&Matcher>, Vec<&Matcher>) = set.iter().partition(is_known);
            let known: Vec<Matcher> = known.into_iter().cloned().collect();
            let known = CompiledMatchers::compile(&known)?;
            plan.is_of_any_tags &= tags.is_empty();
            let condition = words::conditions(tags.into_iter());
            for database in &catalog.databases {
                for policy in &database.policies {
                    ensure!(Instant::now() < deadline, "not within its time");
                    plan.add((database, policy), (&known, &condition), naming)?;
                }
            }
            plan.sets.push(CompiledMatchers::compile(set)?);
        }
        Ok(plan)
    }

    fn add(
        &mut self,
        (database, policy): (&'c Database, &'c Policy),
        (known, condition): (&CompiledMatchers, &str),
        naming: Naming<'_>,
    ) -> anyhow::Result<()> {
        for measurement in &database.measurements {
            let is_wanted = |field: &&(String, FieldType)| {
                let (field, kind) = *field;
                let is_kept = *kind != FieldType::String || naming.has_texts;
                let metric = metric_of(&measurement.name, field, *kind);
                let pairs = [(METRIC_NAME, metric.as_str()), (naming.label, &policy.label)];
                let count = if naming.label.is_empty() { 1 } else { 2 };
                is_kept && known.matches(&Labels::from_pairs(&pairs[..count]))
            };
            let wanted = measurement.fields.iter().filter(is_wanted);
            let (fields, others): (Vec<_>, Vec<_>) =
                wanted.partition(|(field, _)| can_be_asked(&measurement.name, field));
            if let Some((field, _)) = others.first() {
                self.unsayable.note(&measurement.name, field, others.len());
            }
            if !fields.is_empty() {
                let condition = condition.to_string();
                self.fields += fields.len();
                self.list.push(Wanted { database, policy, measurement, fields, condition });
            }
            if FIELDS_MAX < self.fields {
                let words =
                    format!("more than {FIELDS_MAX} fields of all policies are asked for at once");
                return Err(refusal(words));
            }
        }
        Ok(())
    }

    /// What is wanted and not asked for, in words.
    pub fn left_out(&self) -> Option<String> {
        let Unsayable { count, first } = &self.unsayable;
        let words = || format!("{count} fields whose names InfluxQL cannot say, as {first}");
        (0 < *count).then(words)
    }

    /// Whether a series is asked for.
    pub fn takes(&self, labels: &Labels) -> bool {
        self.sets.iter().any(|set| set.matches(labels))
    }

    /// Whether its measurements are wanted with all of their numbers, whatever their tags: then lists of
    /// a whole measurement answer it.
    pub fn is_of_whole_measurements(&self) -> bool {
        let is_whole = |wanted: &Wanted<'_>| {
            let is_in = |field: &(String, FieldType)| {
                let is_asked = can_be_asked(&wanted.measurement.name, &field.0);
                field.1 == FieldType::String || !is_asked || wanted.fields.contains(&field)
            };
            wanted.measurement.fields.iter().all(is_in)
        };
        self.is_of_any_tags && self.list.iter().all(is_whole)
    }
}

impl Unsayable {
    fn note(&mut self, measurement: &str, field: &str, count: usize) {
        if self.count == 0 {
            self.first = format!("{field:?} of measurement {measurement:?}");
        }
        self.count += count;
    }
}

/// Whether a statement can name a field.
fn can_be_asked(measurement: &str, field: &str) -> bool {
    words::is_sayable(measurement) && words::is_sayable(field)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::MatchOp;

    fn catalog() -> Catalog {
        let measurement = |name: &str, fields: &[(&str, FieldType)]| Measurement {
            name: name.to_string(),
            fields: fields.iter().map(|(name, kind)| ((*name).to_string(), *kind)).collect(),
        };
        let policy =
            |name: &str, label: &str| Policy { name: name.to_string(), label: label.to_string() };
        let database = |name: &str, more: Option<Policy>| Database {
            name: name.to_string(),
            policies: [policy("autogen", name)].into_iter().chain(more).collect(),
            measurements: vec![
                measurement("cpu", &[("usage_user", FieldType::Float), ("n", FieldType::Integer)]),
                measurement("cpu_usage", &[("user", FieldType::Float), ("s", FieldType::String)]),
            ],
        };
        let long = policy("long", "x.long");
        let databases = vec![database("x", Some(long)), database("y", None)];
        Catalog { databases, ..Catalog::default() }
    }

    #[track_caller]
    fn check(set: &[Matcher], expected: &[&str]) {
        let (catalog, naming) = (catalog(), Naming { label: "db", has_texts: true });
        let deadline = Instant::now() + std::time::Duration::from_secs(60);
        let plan = Plan::new(&catalog, &[set.to_vec()], naming, deadline).expect("matchers");
        let shown = |wanted: &Wanted<'_>| {
            let fields: Vec<&str> = wanted.fields.iter().map(|(name, _)| name.as_str()).collect();
            let (policy, fields) = (&wanted.policy.label, fields.join(","));
            format!("{policy}/{}/{fields}{}", wanted.measurement.name, wanted.condition)
        };
        assert_eq!(plan.list.iter().map(shown).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_name_may_be_of_several_measurements() {
        let name = |value: &str| Matcher::equal(METRIC_NAME, value);
        let db = |value: &str| Matcher::equal("db", value);
        check(
            &[name("cpu_usage_user"), db("y"), Matcher::equal("host", "a")],
            &[
                "y/cpu/usage_user AND \"host\"::tag = 'a'",
                "y/cpu_usage/user AND \"host\"::tag = 'a'",
            ],
        );
        check(
            &[name("cpu_n"), Matcher::new("db", MatchOp::Regex, "x.*")],
            &["x/cpu/n", "x.long/cpu/n"],
        );
        check(&[name("cpu"), db("y")], &[]);
        check(&[name("cpu_usage_s:text"), db("y")], &["y/cpu_usage/s"]);
        let others = Matcher::new(METRIC_NAME, MatchOp::NotRegex, ".*user");
        check(&[others, db("y")], &["y/cpu/n", "y/cpu_usage/s"]);
        check(&[db("")], &[]);
    }

    #[test]
    fn names_that_cannot_be_said_are_left_out_and_named() {
        let fields = |names: &[&str]| -> Vec<(String, FieldType)> {
            names.iter().map(|name| ((*name).to_string(), FieldType::Float)).collect()
        };
        let mut catalog = catalog();
        let measurement = |name: &str, names: &[&str]| Measurement {
            name: name.to_string(),
            fields: fields(names),
        };
        catalog.databases[1].measurements =
            vec![measurement("a\rb", &["v", "w"]), measurement("m", &["v", "x\0y", "z\u{fffd}"])];
        let naming = Naming { label: "db", has_texts: true };
        let deadline = Instant::now() + std::time::Duration::from_secs(60);
        let plan = |set: &[Matcher]| {
            Plan::new(&catalog, &[set.to_vec()], naming, deadline).expect("a plan")
        };
        let wide = plan(&[Matcher::equal("db", "y")]);
        assert_eq!(wide.list.len(), 1);
        assert_eq!(wide.list[0].fields, [&("v".to_string(), FieldType::Float)]);
        let words = wide.left_out().expect("what is left out");
        let expected =
            "4 fields whose names InfluxQL cannot say, as \"v\" of measurement \"a\\rb\"";
        assert_eq!(words, expected);
        assert!(wide.is_of_whole_measurements(), "of those that can be asked for");
        let narrow = plan(&[Matcher::equal("db", "y"), Matcher::equal(METRIC_NAME, "m_v")]);
        assert_eq!((narrow.left_out(), narrow.list.len()), (None, 1));
    }

    #[test]
    fn a_plan_has_so_many_fields() {
        let fields = |n: usize| (format!("f{n}"), FieldType::Float);
        let policy = |n: usize| Policy { name: n.to_string(), label: format!("x.{n}") };
        let measurements =
            vec![Measurement { name: "m".to_string(), fields: (0..1000).map(fields).collect() }];
        let policies = (0..600).map(policy).collect();
        let databases = vec![Database { name: "x".to_string(), policies, measurements }];
        let catalog = Catalog { databases, ..Catalog::default() };
        let naming = Naming { label: "db", has_texts: true };
        let deadline = Instant::now() + std::time::Duration::from_secs(600);
        let plan = |set: &[Matcher]| Plan::new(&catalog, &[set.to_vec()], naming, deadline);
        let error = plan(&[]).expect_err("more than may be");
        assert!(error.to_string().contains("524288 fields"), "{error}");
        assert_eq!(plan(&[Matcher::equal(METRIC_NAME, "m_f7")]).expect("few").list.len(), 600);
    }

    #[test]
    fn whole_measurements_are_told_from_parts() {
        let (catalog, naming) = (catalog(), Naming { label: "db", has_texts: true });
        let deadline = Instant::now() + std::time::Duration::from_secs(60);
        let plan = |set: &[Matcher]| {
            Plan::new(&catalog, &[set.to_vec()], naming, deadline).expect("a plan")
        };
        assert!(plan(&[]).is_of_whole_measurements());
        assert!(
            plan(&[Matcher::new(METRIC_NAME, MatchOp::NotRegex, ".*:text")])
                .is_of_whole_measurements()
        );
        assert!(!plan(&[Matcher::equal(METRIC_NAME, "cpu_n")]).is_of_whole_measurements());
        assert!(!plan(&[Matcher::new("host", MatchOp::NotEqual, "")]).is_of_whole_measurements());
        let late = Plan::new(&catalog, &[], naming, Instant::now());
        assert!(late.is_err(), "a deadline");
    }
}
