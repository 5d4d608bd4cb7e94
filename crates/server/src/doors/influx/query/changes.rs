//! Statements that are no questions: databases, deletions, and what is not kept here.

use super::super::write::write_made;
use super::may_come;
use super::source::{NAMELESS_DATABASE, StoreSource, database_matcher, table_name};
use crate::doors::http::request::Request;
use crate::doors::http::site;
use crate::failure::{Failure, Kind};
use crate::measurements::DATABASES_MAX;
use influxql::ast::Statement;
use influxql::{Answer, Deletion, EvalError, Evaluator, Source as _};
use model::{Matcher, TimeRange};

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
            Statement::CreateDatabase { name, .. } => self.create(name)?,
            Statement::DropDatabase { name } => self.drop_database(name)?,
            Statement::DropMeasurement { name } => self.drop_measurement(name)?,
            Statement::DropSeries { .. } | Statement::Delete { .. } => self.delete(statement)?,
            // The retention is the server's: one for all.
            Statement::CreateRetentionPolicy { database, .. }
            | Statement::AlterRetentionPolicy { database, .. }
            | Statement::DropRetentionPolicy { database, .. } => {
                match self.source.has_database(database) {
                    Ok(true) => Answer::default(),
                    Ok(false) => Answer::failed(format!("database not found: {database}")),
                    Err(error) => Answer::failed(error.to_string()),
                }
            }
            Statement::ShowStats | Statement::ShowDiagnostics | Statement::ShowQueries => {
                self.about_the_server(statement)
            }
            Statement::KillQuery { id } => Answer::failed(format!("no such query id: {id}")),
            Statement::Users { verb } => Answer::failed(format!(
                "{verb} is not supported: who may come in is said by --http-user and its kin"
            )),
            Statement::Unsupported { what } => Answer::failed(format!("{what} is not supported")),
            Statement::Select(_) => self.select_into(request, statement)?,
            _ => Answer::failed("this statement is not supported"),
        };
        Ok(done)
    }

    /// Stores what a SELECT selects as lines are stored; what is stored before something fails stays.
    fn select_into(&self, request: &Request, statement: &Statement) -> Result<Answer, Failure> {
        let database = match self.evaluator.target_database(statement) {
            Ok(database) => database,
            Err(error) => return Ok(Answer::failed(error.to_string())),
        };
        let mut failure = None;
        let mut sink = |lines: &str| {
            write_made(self.source.app, request, &database, lines).map_err(|error| {
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

    fn create(&self, name: &str) -> Result<Answer, Failure> {
        let app = self.source.app;
        let size_max = app.config.store.limits.label_value_size_max;
        if size_max < name.len() {
            let message =
                format!("a database's name has at most {size_max} bytes (max-label-value-size)");
            return Ok(Answer::failed(message));
        }
        if app.config.insert.database_label.is_empty() || name == NAMELESS_DATABASE {
            return Ok(Answer::default());
        }
        Ok(match app.measurements.create(&app.store, name).map_err(Failure::of_write)? {
            true => Answer::default(),
            false => Answer::failed(format!("there are {DATABASES_MAX} databases, the limit")),
        })
    }

    fn drop_database(&self, name: &str) -> Result<Answer, Failure> {
        let app = self.source.app;
        let Some(matcher) = database_matcher(app, name).filter(|_| name != NAMELESS_DATABASE)
        else {
            let message = format!("the database {name} is all that was written without one");
            return Ok(Answer::failed(message));
        };
        let set = vec![matcher];
        let series = app.store.delete(std::slice::from_ref(&set), EVER)?;
        app.measurements.forget(&app.store, name, None).map_err(Failure::of_write)?;
        // Lines that were stored between the two are noted nowhere.
        app.store.delete(&[set], EVER)?;
        tracing::info!(database = name, series, "dropped a database on request");
        Ok(Answer::default())
    }

    fn drop_measurement(&self, name: &str) -> Result<Answer, Failure> {
        let app = self.source.app;
        if self.database.is_empty() {
            return Ok(Answer::failed("database name required"));
        }
        match self.source.measurements(self.database) {
            Ok(all) if all.iter().any(|other| other == name) => {}
            // A field's metric is no measurement, though it has a name like one.
            Ok(_) => return Ok(Answer::default()),
            Err(error) => return Ok(Answer::failed(error.to_string())),
        }
        if let Some(refused) = self.refuse_shared(name) {
            return Ok(refused);
        }
        let set = self.source.stored_series_of(self.database, name, &[]);
        let series = app.store.delete(std::slice::from_ref(&set), EVER)?;
        let table = table_name(app, self.database);
        app.measurements.forget(&app.store, table, Some(name)).map_err(Failure::of_write)?;
        // Lines that were stored between the two are noted nowhere.
        app.store.delete(&[set], EVER)?;
        tracing::info!(measurement = name, series, "dropped a measurement on request");
        Ok(Answer::default())
    }

    /// The answer to who would delete another measurement's samples with those of this one.
    fn refuse_shared(&self, measurement: &str) -> Option<Answer> {
        let (metric, other) = self.source.shared_metric(self.database, measurement)?;
        Some(Answer::failed(format!(
            "measurements {measurement} and {other} are both stored as metric {metric}: nothing is \
             deleted; use /api/v1/admin/tsdb/delete_series"
        )))
    }

    fn delete(&self, statement: &Statement) -> Result<Answer, Failure> {
        if self.database.is_empty() {
            return Ok(Answer::failed("database name required"));
        }
        let deletions = match self.evaluator.deletions(statement) {
            Ok(deletions) => deletions,
            Err(error) => return Ok(Answer::failed(error.to_string())),
        };
        let label = &self.source.app.config.insert.database_label;
        let sets = || deletions.iter().flat_map(|deletion| &deletion.sets).flatten();
        if !label.is_empty() && sets().any(|matcher| matcher.name == *label) {
            return Ok(Answer::failed(format!(
                "{label} is no tag but the label of databases: nothing is deleted"
            )));
        }
        let mut refused = deletions.iter().map(|deletion| &deletion.measurement);
        if let Some(refused) = refused.find_map(|name| self.refuse_shared(name)) {
            return Ok(refused);
        }
        let mut series = 0;
        for Deletion { measurement, sets, range } in deletions {
            let of =
                |set: &Vec<Matcher>| self.source.stored_series_of(self.database, &measurement, set);
            let sets: Vec<Vec<Matcher>> = sets.iter().map(of).collect();
            series += self.source.app.store.delete(&sets, range)?;
        }
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
