//! Statements about policies: TimescaleDB's and Promscale's functions.

use crate::ddl_dml::calls::{arguments, called, plain_name, text_of};
use crate::ddl_dml::definitions::defined::Defined;
use crate::ddl_dml::hypertables::make_hypertable::expect_hypertable;
use crate::ddl_dml::policies::carried_out::carry_out;
use crate::ddl_dml::runner::Runner;
use crate::parse::rewrite::expressions::query;
use crate::tables::heap::prometheus_tables::PrometheusTable;
use crate::tables::heap::retention_policies::{Of, forget, policies, put};
use crate::tables::heap::view::View;
use crate::tables::metrics::tables::TABLES;
use crate::types::error::SqlError;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::util::display::array_value_to_string;
use datafusion::sql::sqlparser::ast::{Expr, Function, Query};

/// Such a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyStatement {
    /// The function that is called, and the column of its answer.
    name: String,
    said: Said,
    /// Whether it was `CALL`.
    is_call: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Said {
    Add {
        table: String,
        drop_after: String,
        if_not_exists: bool,
    },
    Remove {
        table: String,
        if_exists: bool,
    },
    Set {
        of: Of,
        drop_after: String,
    },
    Reset(String),
    /// Of a metric that has none of its own, that of all.
    Get(Of),
    /// Carries out one of them, or all.
    Run(Option<i64>),
}

/// The functions, with the names of their arguments in order.
const FUNCTIONS: &[(&str, &[&str])] = &[
    (ADD, &["relation", "drop_after", "if_not_exists", "schedule_interval", "initial_start"]),
    (REMOVE, &["relation", "if_exists"]),
    ("set_default_retention_period", &["retention_period"]),
    ("set_metric_retention_period", &["metric_name", "new_retention_period"]),
    ("reset_metric_retention_period", &["metric_name"]),
    ("get_default_metric_retention_period", &[]),
    ("get_default_retention_period", &[]),
    ("get_metric_retention_period", &["metric_name"]),
    ("run_job", &["job_id"]),
    ("execute_maintenance", &[]),
];
const ADD: &str = "add_retention_policy";
const REMOVE: &str = "remove_retention_policy";

impl PolicyStatement {
    /// Of a query that calls one of the functions, and does nothing else.
    ///
    /// # Errors
    /// When what it is called with makes no sense.
    pub fn of_query(query: &Query) -> Result<Option<PolicyStatement>, SqlError> {
        called(query).map_or(Ok(None), |function| PolicyStatement::of(&function, false))
    }

    /// Of `CALL`.
    ///
    /// # Errors
    /// As [`PolicyStatement::of_query`].
    pub fn of_call(function: &Function) -> Result<Option<PolicyStatement>, SqlError> {
        PolicyStatement::of(function, true)
    }

    fn of(function: &Function, is_call: bool) -> Result<Option<PolicyStatement>, SqlError> {
        let name = function.name.0.last().and_then(|part| part.as_ident());
        let name = name.map(|ident| ident.value.to_ascii_lowercase()).unwrap_or_default();
        let Some((_, places)) = FUNCTIONS.iter().find(|(one, _)| *one == name) else {
            return Ok(None);
        };
        let mut all = arguments(function, places);
        // Promscale's newer ones have the schema of the metric before its name.
        let has_schema = places.first() == Some(&"metric_name") && places.len() < all.len();
        if has_schema {
            all.remove(0);
            for ((name, _), place) in all.iter_mut().zip(*places) {
                *name = (*place).to_string();
            }
        }
        let arguments = Arguments { name: &name, all };
        let said = arguments.said()?;
        Ok(Some(PolicyStatement { name, said, is_call }))
    }

    /// The column of its answer; none where it answers with no row.
    pub fn answers(&self) -> Option<&str> {
        (!self.is_call).then_some(self.name.as_str())
    }

    /// What the statement is called.
    pub fn word(&self) -> &'static str {
        if self.is_call { "CALL" } else { "SELECT" }
    }

    /// Does what it says, within the transaction under way.
    ///
    /// # Errors
    /// When there is no such table, interval or job.
    pub async fn done(&self, runner: &Runner, done: &mut Defined) -> Result<(), SqlError> {
        let answer = self.answer(runner, &mut done.notices).await?;
        done.answer = (!self.is_call).then_some(answer);
        Ok(())
    }

    async fn answer(&self, runner: &Runner, notices: &mut Vec<String>) -> Result<String, SqlError> {
        let view = &runner.view;
        match &self.said {
            Said::Add { table, drop_after, if_not_exists } => {
                let of = relation(view, table)?;
                let drop_after = period(runner, drop_after).await?;
                let known = policies(&view.set()).into_iter().find(|one| one.of == of);
                if let Some(known) = known {
                    let words =
                        format!("retention policy already exists for hypertable \"{table}\"");
                    if !if_not_exists {
                        let hint = "SELECT remove_retention_policy(..) takes it away.";
                        return Err(SqlError::new("42710", words).with_hint(hint));
                    }
                    notices.push(match known.drop_after == drop_after {
                        true => format!("{words}, skipping"),
                        false => format!("{words} with different arguments, skipping"),
                    });
                    return Ok("-1".to_string());
                }
                notices.extend(readers_notice(view, table));
                put(view, &of, &drop_after).map(|job| job.to_string())
            }
            Said::Remove { table, if_exists } => {
                if !forget(view, &relation(view, table)?)? {
                    let words = format!("retention policy not found for hypertable \"{table}\"");
                    if !if_exists {
                        return Err(SqlError::new("42704", words));
                    }
                    notices.push(format!("{words}, skipping"));
                }
                Ok(String::new())
            }
            Said::Set { of, drop_after } => {
                put(view, of, &period(runner, drop_after).await?)?;
                Ok("t".to_string())
            }
            Said::Reset(metric) => {
                forget(view, &Of::Metric(metric.clone()))?;
                Ok("t".to_string())
            }
            Said::Get(of) => {
                let all = policies(&view.set());
                let find = |of: &Of| all.iter().find(|one| one.of == *of);
                let found = find(of).or_else(|| find(&Of::Metrics));
                Ok(found.map(|one| one.drop_after.clone()).unwrap_or_default())
            }
            Said::Run(job) => run(runner, *job).await,
        }
    }
}

/// Carries out one policy, or all of them.
async fn run(runner: &Runner, job: Option<i64>) -> Result<String, SqlError> {
    let mut all = policies(&runner.view.set());
    if let Some(job) = job {
        all.retain(|one| one.job == job);
        if all.is_empty() {
            return Err(SqlError::new("42704", format!("job {job} not found")));
        }
    }
    for policy in &all {
        carry_out(runner, policy, None).await?;
    }
    Ok(String::new())
}

/// What a policy of a table is about: it is there, and its rows are samples.
fn relation(view: &View, table: &str) -> Result<Of, SqlError> {
    if TABLES.iter().any(|one| one.name == table) {
        return Ok(Of::Metrics);
    }
    let own = view.get(table).and_then(|table| PrometheusTable::of(table.schema()));
    if let Some(own) = own {
        return Ok(Of::Table(own.of));
    }
    expect_hypertable(view, table)?;
    Ok(Of::Table(table.to_string()))
}

/// That what is dropped is gone from what is worked out of it.
fn readers_notice(view: &View, table: &str) -> Option<String> {
    let found = view.list().into_iter().find(|one| {
        let read = crate::tables::heap::stored_views::View::of(one.schema());
        read.is_some_and(|read| read.reads.iter().any(|read| read == table))
    });
    found.map(|one| {
        format!(
            "\"{}\" is worked out from rows of \"{table}\": what the policy drops is gone from it, too",
            one.name()
        )
    })
}

/// The interval that an argument is, as a text.
async fn period(runner: &Runner, said: &str) -> Result<String, SqlError> {
    let not_said = || {
        let words = format!("{said} is no interval");
        SqlError::new("22023", words).with_hint("Say INTERVAL '30 days'.")
    };
    // In a column of its own: the text of it is what is kept.
    let text = format!("SELECT ({said})::interval, now() - ({said})::interval < now()");
    let statement = runner.plan(query(&text).ok_or_else(not_said)?).await?;
    if !matches!(statement.schema().field(0).data_type(), DataType::Interval(_)) {
        return Err(not_said());
    }
    let mut found = None;
    let read = runner.each(&statement, &[], |batch: &RecordBatch| {
        if batch.num_rows() == 1 {
            let shown = |at: usize| {
                let text = array_value_to_string(batch.column(at), 0);
                text.map_err(|error| SqlError::unexpected(error.to_string()))
            };
            found = Some((shown(0)?, shown(1)?));
        }
        Ok(())
    });
    read.await?;
    match found {
        Some((period, is_past)) if is_past == "true" => Ok(period),
        // All samples, those to come included, would be too old.
        Some((period, _)) => {
            let words = format!("a policy keeps rows for longer than no time, not for {period}");
            Err(SqlError::new("22023", words))
        }
        None => Err(not_said()),
    }
}

/// The arguments of a call.
struct Arguments<'f> {
    name: &'f str,
    all: Vec<(String, &'f Expr)>,
}

impl Arguments<'_> {
    fn get(&self, name: &str) -> Option<&Expr> {
        self.all.iter().find(|(one, _)| one == name).map(|(_, expr)| *expr)
    }

    fn missing(&self, name: &str) -> SqlError {
        let words = format!("{} needs {name}", self.name);
        SqlError::new("42883", words)
    }

    fn text(&self, name: &str) -> Result<String, SqlError> {
        self.get(name).and_then(text_of).ok_or_else(|| self.missing(name))
    }

    fn table(&self) -> Result<String, SqlError> {
        Ok(plain_name(&self.text("relation")?))
    }

    fn interval(&self, name: &str) -> Result<String, SqlError> {
        self.get(name).map(ToString::to_string).ok_or_else(|| self.missing(name))
    }

    fn is_on(&self, name: &str) -> bool {
        self.get(name).is_some_and(|expr| expr.to_string().eq_ignore_ascii_case("true"))
    }

    fn said(&self) -> Result<Said, SqlError> {
        Ok(match self.name {
            ADD => Said::Add {
                table: self.table()?,
                drop_after: self.interval("drop_after")?,
                if_not_exists: self.is_on("if_not_exists"),
            },
            REMOVE => Said::Remove { table: self.table()?, if_exists: self.is_on("if_exists") },
            "set_default_retention_period" => {
                Said::Set { of: Of::Metrics, drop_after: self.interval("retention_period")? }
            }
            "set_metric_retention_period" => Said::Set {
                of: Of::Metric(self.text("metric_name")?),
                drop_after: self.interval("new_retention_period")?,
            },
            "reset_metric_retention_period" => Said::Reset(self.text("metric_name")?),
            "get_metric_retention_period" => Said::Get(Of::Metric(self.text("metric_name")?)),
            "run_job" => {
                let job = self.get("job_id").map(ToString::to_string);
                let job = job.and_then(|job| job.parse().ok());
                Said::Run(Some(job.ok_or_else(|| self.missing("job_id"))?))
            }
            "execute_maintenance" => Said::Run(None),
            _ => Said::Get(Of::Metrics),
        })
    }
}
