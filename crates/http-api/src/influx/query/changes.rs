//! Statements that are no questions: databases, deletions, and what is not kept here.

use super::super::policies::stored_name;
use super::super::write::write_made;
use super::may_come;
use super::policies::{answered, is_valid_name, policy_of};
pub use super::source::{NAMELESS_DATABASE, StoreSource, database_matcher, table_name};
use crate::http::request::Request;
use crate::http::site;
use influx_schema::records::{Change, encode_changes};
use influx_schema::retention_policies::change_of_policies;
use influx_schema::schema::DATABASES_MAX;
use influxql::ast::{Policy, Statement};
use influxql::{Answer, Deletion, EvalError, Evaluator, Place, Source as _};
use model::{Matcher, TimeRange};
use net::failure::{Failure, Kind};
use std::collections::BTreeMap;

/// All of time.
const EVER: TimeRange = TimeRange { start: i64::MIN, end: i64::MAX };

/// What changes are made to.
pub(super) struct Changes<'a, 'e> {
    pub source: &'a StoreSource<'a>,
    pub evaluator: &'a Evaluator<'e>,
    pub database: &'a str,
}

impl Changes<'_, '_> {
    /// Does what the statement says.
    ///
    /// # Errors
    /// For a page of another site, and when the store fails.
    pub fn run(&self, request: &Request, statement: &Statement) -> Result<Answer, Failure> {
        if !may_come(request, statement) {
            return Ok(Answer::failed("this statement changes something: send it by POST"));
        }
        if !statement.is_read_only() {
            site::check_headers(&request.headers, None)?;
        }
        let done = match statement {
            Statement::CreateDatabase { name, policy } => self.create(name, policy.as_ref())?,
            Statement::DropDatabase { name } => self.drop_database(name)?,
            Statement::DropMeasurement { name } => self.drop_measurement(name)?,
            Statement::DropSeries { .. } | Statement::Delete { .. } => self.delete(statement)?,
            Statement::CreateRetentionPolicy { database, policy } => {
                answered(self.create_policy(database, policy))?
            }
            Statement::AlterRetentionPolicy { database, policy } => {
                answered(self.alter_policy(database, policy))?
            }
            Statement::DropRetentionPolicy { database, name } => {
                answered(self.drop_policy(database, name))?
            }
            Statement::ShowStats | Statement::ShowDiagnostics | Statement::ShowQueries => {
                self.about_the_server(statement)
            }
            Statement::KillQuery { id } => Answer::failed(format!("no such query id: {id}")),
            Statement::Users { verb } => Answer::failed(format!(
                "{verb} is not supported: who may come in is said by --http-user and its kin"
            )),
            Statement::Unsupported { what } if what.ends_with("CONTINUOUS QUERY") => {
                Answer::failed(format!(
                    "{what} is not supported: send SELECT .. INTO from a scheduler, or use recording \
                     rules of vmalert"
                ))
            }
            Statement::Unsupported { what } => Answer::failed(format!("{what} is not supported")),
            Statement::Select(_) => self.select_into(request, statement)?,
            _ => Answer::failed("this statement is not supported"),
        };
        self.source.app.tag_keys.clear();
        Ok(done)
    }

    /// Stores what a SELECT selects as lines are stored; what is stored before something fails stays.
    fn select_into(&self, request: &Request, statement: &Statement) -> Result<Answer, Failure> {
        let (database, policy) = match self.evaluator.target(statement) {
            Ok(target) => target,
            Err(error) => return Ok(Answer::failed(error.to_string())),
        };
        let named = Some(database.as_str()).filter(|name| *name != NAMELESS_DATABASE);
        let stored = match stored_name(self.source.app, named, policy.as_deref()) {
            Ok(stored) => stored,
            Err(failure) => return Ok(Answer::failed(failure.message)),
        };
        let mut failure = None;
        let mut sink = |lines: &str| {
            write_made(self.source.app, request, stored.clone(), lines).map_err(|error| {
                let words = EvalError::new(error.to_string());
                failure = Some(error);
                words
            })
        };
        let answer = self
            .evaluator
            .write_into(statement, &mut sink)
            .unwrap_or_else(|| Ok(Answer::default()));
        match (answer, failure) {
            (_, Some(failure)) if failure.kind != Kind::BadInput => Err(failure),
            (Err(error), _) => Ok(Answer::failed(error.to_string())),
            (Ok(answer), _) => Ok(answer),
        }
    }

    fn create(&self, name: &str, policy: Option<&Policy>) -> Result<Answer, Failure> {
        let app = self.source.app;
        if let Some(refused) = self.refuse_policy_name(name) {
            return Ok(refused);
        }
        if !is_valid_name(name) {
            return Ok(Answer::failed("invalid name"));
        }
        let size_max = app.config.store.limits.label_value_size_max;
        if size_max < name.len() {
            let message =
                format!("a database's name has at most {size_max} bytes (max-label-value-size)");
            return Ok(Answer::failed(message));
        }
        if let Some(Err(failure)) = policy.map(policy_of) {
            return answered(Err(failure));
        }
        let is_noted = !app.config.insert.database_label.is_empty() && name != NAMELESS_DATABASE;
        if is_noted && !app.measurements.create(name).map_err(Failure::of_write)? {
            let message = format!("there are {DATABASES_MAX} databases, the limit");
            return Ok(Answer::failed(message));
        }
        match policy {
            Some(policy) => answered(self.create_first_policy(name, policy)),
            None => Ok(Answer::default()),
        }
    }

    fn drop_database(&self, name: &str) -> Result<Answer, Failure> {
        let app = self.source.app;
        if let Some(refused) = self.refuse_policy_name(name) {
            return Ok(refused);
        }
        if app.config.insert.database_label.is_empty() || name == NAMELESS_DATABASE {
            let message = format!("the database {name} is all that was written without one");
            return Ok(Answer::failed(message));
        }
        let _changing = app.policies.lock_changes();
        // A dropped first policy may have samples under the database's name that came otherwise.
        let own = std::iter::once(name.to_string());
        let mut stored: Vec<String> = own.chain(app.policies.stored_names(name)).collect();
        stored.sort();
        stored.dedup();
        let sets = stored.iter().filter_map(|stored| Some(vec![database_matcher(app, stored)?]));
        let sets: Vec<Vec<Matcher>> = sets.collect();
        let forgotten: Vec<(&str, Option<&str>)> =
            stored.iter().map(|stored| (stored.as_str(), None)).collect();
        let is_noted = app.policies.noted(name).is_some();
        let changes: Vec<Change> =
            is_noted.then(|| change_of_policies(name, None)).into_iter().collect();
        let noted = || app.policies.set_noted(name, None);
        let series = self.delete_and_forget(&sets, &forgotten, &changes, noted)?;
        tracing::info!(database = name, series, "dropped a database on request");
        Ok(Answer::default())
    }

    /// Deletes samples of all time, forgets measurements (or whole databases, by the names under
    /// which they are stored) and makes `changes` of schema records: after a crash all of it is done, or
    /// nothing. `noted` is called when the records are durable.
    pub(super) fn delete_and_forget(
        &self,
        sets: &[Vec<Matcher>],
        forgotten: &[(&str, Option<&str>)],
        changes: &[Change],
        noted: impl FnOnce(),
    ) -> Result<u64, Failure> {
        let app = self.source.app;
        let gone = forgotten.iter().flat_map(|(database, measurement)| {
            app.measurements.changes_of_forgetting(database, *measurement)
        });
        // Of two changes with the same key, the last one counts.
        let all = gone.chain(changes.iter().cloned()).map(|change| (change.key.clone(), change));
        let all: BTreeMap<String, Change> = all.collect();
        let all: Vec<Change> = all.into_values().collect();
        let series =
            app.store.delete_with_records(sets, EVER, &encode_changes(&all), &mut || {
                for (database, measurement) in forgotten {
                    app.measurements.forget(database, *measurement)?;
                }
                app.schema.apply_deletion(changes)
            })?;
        noted();
        // Lines that were stored between the two are noted nowhere.
        app.store.delete(sets, EVER)?;
        Ok(series)
    }

    fn drop_measurement(&self, name: &str) -> Result<Answer, Failure> {
        let app = self.source.app;
        if self.database.is_empty() {
            return Ok(Answer::failed("database name required"));
        }
        if let Some(refused) = self.refuse_policy_name(self.database) {
            return Ok(refused);
        }
        let mut databases = Vec::new();
        for database in app.policies.stored_names(self.database) {
            match self.source.measurements(&database) {
                Ok(all) if all.iter().any(|other| other == name) => databases.push(database),
                // A field's metric is no measurement, though it has a name like one.
                Ok(_) => {}
                Err(error) => return Ok(Answer::failed(error.to_string())),
            }
        }
        if let Some(refused) = databases.iter().find_map(|one| self.refuse_shared(one, name)) {
            return Ok(refused);
        }
        if databases.is_empty() {
            return Ok(Answer::default());
        }
        let sets = databases.iter().map(|one| self.source.stored_series_of(one, name, &[]));
        let sets: Vec<Vec<Matcher>> = sets.collect();
        let forgotten: Vec<(&str, Option<&str>)> =
            databases.iter().map(|one| (table_name(app, one), Some(name))).collect();
        let series = self.delete_and_forget(&sets, &forgotten, &[], || ())?;
        tracing::info!(measurement = name, series, "dropped a measurement on request");
        Ok(Answer::default())
    }

    /// The answer to who would delete another measurement's samples with those of this one.
    fn refuse_shared(&self, database: &str, measurement: &str) -> Option<Answer> {
        let (metric, other) = self.source.shared_metric(database, measurement)?;
        Some(Answer::failed(format!(
            "measurements {measurement} and {other} are both stored as metric {metric}: nothing is \
             deleted; use /api/v1/admin/tsdb/delete_series"
        )))
    }

    /// The answer to a condition that means the label of databases: no series of the measurement has a
    /// tag of that name.
    fn refuse_database_label(&self, deletions: &[Deletion]) -> Result<Option<Answer>, EvalError> {
        let label = &self.source.app.config.insert.database_label;
        for Deletion { database, measurement, sets, .. } in deletions {
            let is_named = sets.iter().flatten().any(|matcher| matcher.name == *label);
            let place = Place { database, measurement, range: EVER };
            if is_named
                && !label.is_empty()
                && self.source.tag_values(&place, label, &[])?.is_empty()
            {
                return Ok(Some(Answer::failed(format!(
                    "measurement {measurement} has no tag {label}, which is the label of databases: \
                     nothing is deleted"
                ))));
            }
        }
        Ok(None)
    }

    fn delete(&self, statement: &Statement) -> Result<Answer, Failure> {
        if self.database.is_empty() {
            return Ok(Answer::failed("database name required"));
        }
        let deletions = match self.evaluator.deletions(statement) {
            Ok(deletions) => deletions,
            Err(error) => return Ok(Answer::failed(error.to_string())),
        };
        match self.refuse_database_label(&deletions) {
            Ok(None) => {}
            Ok(Some(refused)) => return Ok(refused),
            Err(error) => return Ok(Answer::failed(error.to_string())),
        }
        let mut refused = deletions.iter();
        if let Some(refused) =
            refused.find_map(|one| self.refuse_shared(&one.database, &one.measurement))
        {
            return Ok(refused);
        }
        // All at once: after a crash it is done, or not begun.
        let Some(range) = deletions.first().map(|one| one.range) else {
            return Ok(Answer::default());
        };
        let mut all = Vec::new();
        for Deletion { database, measurement, sets, .. } in &deletions {
            all.extend(
                sets.iter().map(|set| self.source.stored_series_of(database, measurement, set)),
            );
        }
        let series = self.source.app.store.delete_within(&all, range, &self.source.limits)?;
        tracing::info!(series, "deleted samples on request");
        Ok(Answer::default())
    }

    fn about_the_server(&self, statement: &Statement) -> Answer {
        use influxql::{Series, Value};
        let table = |name: &str, columns: &[&str], row: Vec<Value>| Series {
            name: name.to_string(),
            tags: Vec::new(),
            columns: columns.iter().map(|column| (*column).to_string()).collect(),
            rows: if row.is_empty() { Vec::new() } else { vec![row] },
        };
        Answer::of(vec![match statement {
            Statement::ShowDiagnostics => {
                let row = vec![Value::text("quipu"), Value::text(super::VERSION)];
                table("build", &["Server", "Version"], row)
            }
            Statement::ShowStats => {
                let count = i64::try_from(self.source.app.store.stats().series_active);
                table("store", &["series"], vec![Value::Integer(count.unwrap_or(i64::MAX))])
            }
            _ => table("", &["qid", "query", "database", "duration", "status"], Vec::new()),
        }])
    }
}
