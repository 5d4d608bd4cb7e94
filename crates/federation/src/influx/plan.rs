//! Which fields of which measurements a question is about.
//!
//! ```text
//! {__name__="cpu_usage_user", db="x", host=~"a|b"}
//!    └───────────┬─────────┘  └──┬─┘  └─────┬────┘
//!    measurement `cpu`, field `usage_user`  a condition on tags
//!    or `cpu_usage`, field `user`: whichever database x has
//! ```

use super::super::faults::refusal;
use super::catalog::{Catalog, Database, FIELDS_MAX, Measurement, Policy};
use super::words;
use anyhow::ensure;
use index::CompiledMatchers;
use influx_schema::NAMELESS_DATABASE;
use influx_schema::schema::{MeasurementTable, Measurements, metric_of};
use model::{Labels, METRIC_NAME, Matcher};
use std::rc::Rc;
use std::time::Instant;
use wire::influx::FieldType;
use wire::moved_labels;

/// Names between two looks at the time.
const LOOKS: usize = 1 << 12;

/// A measurement, and what is wanted of it under one policy.
#[derive(Debug)]
pub struct Wanted<'c> {
    /// Where it is.
    pub database: &'c Database,
    /// Under which policy.
    pub policy: &'c Policy,
    /// Which it is.
    pub measurement: &'c Measurement,
    /// Those of its fields that are wanted; all policies of the database have one list.
    pub fields: Rc<[&'c (String, FieldType)]>,
    /// What tags have to be, as far as InfluxQL can say it.
    pub condition: Rc<str>,
    /// Whether that is all of its numbers.
    is_whole: bool,
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
    /// Names that were held against matchers: there may be as many as fields and policies together, and not
    /// as both multiplied.
    looked: usize,
    deadline: Instant,
}

/// What a set of matchers wants.
struct Set {
    /// Of metrics' names.
    names: CompiledMatchers,
    /// Of what the label of databases says.
    labels: CompiledMatchers,
    condition: Rc<str>,
}

/// What is wanted of a measurement, whatever the policy.
struct Pick<'c> {
    measurement: &'c Measurement,
    fields: Rc<[&'c (String, FieldType)]>,
    /// Fields that are wanted and cannot be asked for: how many, and one.
    others: (usize, Option<&'c str>),
    is_whole: bool,
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
    /// Names of fields that do not follow from measurement and field alone.
    pub names: Option<&'a MeasurementTable>,
}

impl Naming<'_> {
    /// Whether all names follow from measurement and field alone.
    pub fn is_plain(&self) -> bool {
        self.names.is_none_or(MeasurementTable::has_plain_names)
    }

    /// Name among measurements of what the label of databases says.
    fn table<'l>(&self, label: &'l str) -> &'l str {
        if self.label.is_empty() || label == NAMELESS_DATABASE { "" } else { label }
    }

    /// The metric of a field of a database.
    pub fn metric(&self, label: &str, measurement: &str, field: &str, kind: FieldType) -> String {
        match self.names {
            Some(names) => names.metric(self.table(label), measurement, field, kind),
            None => metric_of(measurement, field, kind),
        }
    }

    /// Labels that all series of a metric have.
    pub fn labels(&self, label: &str, metric: &str) -> Labels {
        match self.label {
            "" => Labels::from_pairs(&[(METRIC_NAME, metric)]),
            name => Labels::from_pairs(&[(METRIC_NAME, metric), (name, label)]),
        }
    }

    /// Gives names to the fields of a database that have none here.
    pub fn claim(&self, label: &str, measurements: &Measurements) {
        let Some(names) = self.names else { return };
        for (measurement, fields) in measurements {
            names.claim_names(self.table(label), measurement, fields);
        }
    }
}

impl Set {
    fn new(set: &[&Matcher], naming: Naming<'_>, condition: String) -> anyhow::Result<Set> {
        let is_of_label = |matcher: &&Matcher| naming.label == matcher.name;
        let (labels, names): (Vec<&Matcher>, Vec<&Matcher>) =
            set.iter().copied().partition(is_of_label);
        let compile = |some: Vec<&Matcher>| {
            let some: Vec<Matcher> = some.into_iter().cloned().collect();
            CompiledMatchers::compile(&some)
        };
        let (names, labels) = (compile(names)?, compile(labels)?);
        Ok(Set { names, labels, condition: condition.into() })
    }
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
            looked: 0,
            deadline,
        };
        for set in sets {
            let is_known = |matcher: &&Matcher| {
                let is_label = !naming.label.is_empty() && matcher.name == naming.label;
                is_label || matcher.name == METRIC_NAME
            };
            let (known, tags): (Vec<&Matcher>, Vec<&Matcher>) = set.iter().partition(is_known);
            plan.is_of_any_tags &= tags.is_empty();
            let tags: Vec<Matcher> = tags.into_iter().map(|one| of_tag(one, naming)).collect();
            let known = Set::new(&known, naming, words::conditions(tags.iter()))?;
            for database in &catalog.databases {
                plan.add(database, &known, naming)?;
            }
            plan.sets.push(CompiledMatchers::compile(set)?);
        }
        Ok(plan)
    }

    /// Policies and fields are looked through one after the other, for each policy has the same fields.
    fn add(&mut self, database: &'c Database, set: &Set, naming: Naming<'_>) -> anyhow::Result<()> {
        ensure!(Instant::now() < self.deadline, "not within its time");
        let mut policies = Vec::new();
        for policy in &database.policies {
            if naming.label.is_empty()
                || self.takes_name(&set.labels, naming.label, &policy.label)?
            {
                policies.push(policy);
            }
        }
        if policies.is_empty() {
            return Ok(());
        }
        let mut picks = Vec::new();
        for measurement in &database.measurements {
            let pick = self.pick((measurement, &policies), set, naming)?;
            if let (count, Some(field)) = pick.others {
                self.unsayable.note(&measurement.name, field, count * policies.len());
            }
            if !pick.fields.is_empty() {
                picks.push(pick);
            }
        }
        policies.into_iter().try_for_each(|policy| self.want(database, policy, &picks, set))
    }

    /// What is wanted of a measurement.
    fn pick(
        &mut self,
        (measurement, policies): (&'c Measurement, &[&'c Policy]),
        set: &Set,
        naming: Naming<'_>,
    ) -> anyhow::Result<Pick<'c>> {
        // All policies have the same names, as long as these follow from measurement and field.
        let policies = policies.get(..1).filter(|_| naming.is_plain()).unwrap_or(policies);
        let (mut fields, mut others) = (Vec::new(), (0, None));
        // Numbers that can be asked for, and those of them that are wanted.
        let (mut numbers, mut wanted_numbers) = (0, 0);
        for one in &measurement.fields {
            let (field, kind) = one;
            let is_text = *kind == FieldType::String;
            let can_be_asked = can_be_asked(&measurement.name, field);
            let is_number = usize::from(!is_text && can_be_asked);
            numbers += is_number;
            let mut is_taken = false;
            for policy in policies {
                let metric = naming.metric(&policy.label, &measurement.name, field, *kind);
                is_taken |= self.takes_name(&set.names, METRIC_NAME, &metric)?;
            }
            if (is_text && !naming.has_texts) || !is_taken {
                continue;
            }
            if can_be_asked {
                fields.push(one);
                wanted_numbers += is_number;
            } else {
                others = (others.0 + 1, others.1.or(Some(field.as_str())));
            }
        }
        let is_whole = wanted_numbers == numbers;
        Ok(Pick { measurement, fields: fields.into(), others, is_whole })
    }

    /// Adds what is wanted under a policy.
    fn want(
        &mut self,
        database: &'c Database,
        policy: &'c Policy,
        picks: &[Pick<'c>],
        set: &Set,
    ) -> anyhow::Result<()> {
        for Pick { measurement, fields, is_whole, .. } in picks {
            self.fields += fields.len();
            if FIELDS_MAX < self.fields {
                let words =
                    format!("more than {FIELDS_MAX} fields of all policies are asked for at once");
                return Err(refusal(words));
            }
            self.list.push(Wanted {
                database,
                policy,
                measurement,
                fields: fields.clone(),
                condition: set.condition.clone(),
                is_whole: *is_whole,
            });
        }
        Ok(())
    }

    /// Whether matchers of one label take a name; looks at the time now and then.
    fn takes_name(
        &mut self,
        matchers: &CompiledMatchers,
        label: &str,
        name: &str,
    ) -> anyhow::Result<bool> {
        self.looked += 1;
        let is_in_time = !self.looked.is_multiple_of(LOOKS) || Instant::now() < self.deadline;
        ensure!(is_in_time, "not within its time");
        Ok(matchers.matches(&Labels::from_pairs(&[(label, name)])))
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
        self.is_of_any_tags && self.list.iter().all(|wanted| wanted.is_whole)
    }
}

/// A matcher on a label as one on the tag that the label is stored for.
fn of_tag(matcher: &Matcher, naming: Naming<'_>) -> Matcher {
    let name = moved_labels::own_name(&matcher.name, naming.label).to_string();
    Matcher { name, ..matcher.clone() }
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
        let (catalog, naming) = (catalog(), Naming { label: "db", has_texts: true, names: None });
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
        let naming = Naming { label: "db", has_texts: true, names: None };
        let deadline = Instant::now() + std::time::Duration::from_secs(60);
        let plan = |set: &[Matcher]| {
            Plan::new(&catalog, &[set.to_vec()], naming, deadline).expect("a plan")
        };
        let wide = plan(&[Matcher::equal("db", "y")]);
        assert_eq!(wide.list.len(), 1);
        assert_eq!(*wide.list[0].fields, [&("v".to_string(), FieldType::Float)]);
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
        let naming = Naming { label: "db", has_texts: true, names: None };
        let deadline = Instant::now() + std::time::Duration::from_secs(600);
        let plan = |set: &[Matcher]| Plan::new(&catalog, &[set.to_vec()], naming, deadline);
        let error = plan(&[]).expect_err("more than may be");
        assert!(error.to_string().contains("524288 fields"), "{error}");
        assert_eq!(plan(&[Matcher::equal(METRIC_NAME, "m_f7")]).expect("few").list.len(), 600);
    }

    #[test]
    fn each_name_is_looked_at_once() {
        let fields = |n: usize| (format!("f{n}"), FieldType::Float);
        let policy = |n: usize| Policy { name: n.to_string(), label: format!("x.{n}") };
        let measurement = |name: &str, count: usize| Measurement {
            name: name.to_string(),
            fields: (0..count).map(fields).collect(),
        };
        let database = Database {
            name: "x".to_string(),
            policies: (0..100).map(policy).collect(),
            measurements: vec![measurement("m", 900), measurement("n", 100)],
        };
        let catalog = Catalog { databases: vec![database], ..Catalog::default() };
        let naming = Naming { label: "db", has_texts: true, names: None };
        let deadline = Instant::now() + std::time::Duration::from_secs(600);
        let plan = |set: &[Matcher]| {
            Plan::new(&catalog, &[set.to_vec()], naming, deadline).expect("a plan")
        };
        let (name, db) = (Matcher::equal(METRIC_NAME, "m_f7"), |db| Matcher::equal("db", db));
        for (set, expected, looked) in [
            (&[name.clone()][..], 100, 1100),
            (&[name.clone(), db("x.7")], 1, 1100),
            (&[name.clone(), db("y")], 0, 100),
            (&[db("x.7")], 2, 1100),
            (&[], 200, 1100),
        ] {
            let plan = plan(set);
            assert_eq!((plan.list.len(), plan.looked), (expected, looked), "{set:?}");
        }
        let narrow = plan(std::slice::from_ref(&name));
        let (first, last) = (&narrow.list[0], &narrow.list[99]);
        assert!(Rc::ptr_eq(&first.fields, &last.fields), "policies have one list");
        assert!(!narrow.is_of_whole_measurements() && plan(&[]).is_of_whole_measurements());
    }

    #[test]
    fn whole_measurements_are_told_from_parts() {
        let (catalog, naming) = (catalog(), Naming { label: "db", has_texts: true, names: None });
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
