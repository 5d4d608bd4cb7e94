//! `CREATE TABLE`, `ALTER TABLE`, `DROP TABLE`, `TRUNCATE` and the indexes of ordinary tables.

use crate::ddl_dml::definitions::alters;
use crate::ddl_dml::definitions::defined::{Defined, is_written};
use crate::ddl_dml::definitions::indexes::{create_index, drop_indexes};
use crate::ddl_dml::definitions::maintenance::Maintenance;
use crate::ddl_dml::definitions::role_settings::RoleSetting;
use crate::ddl_dml::definitions::schema_changes::{add_column, add_constraint, check_defaults};
use crate::ddl_dml::hypertables::make_hypertable::{
    check_alone, expect_hypertable, loses_rows, make_hypertable, segment,
};
use crate::ddl_dml::hypertables::removal::{Dropping, drop_chunks};
use crate::ddl_dml::hypertables::unfinished_drops;
use crate::ddl_dml::policies::said::PolicyStatement;
use crate::ddl_dml::prometheus;
use crate::ddl_dml::prometheus::{Creation, is_reserved};
use crate::ddl_dml::rows::copies::create_as;
use crate::ddl_dml::rows::writes::its_turn;
use crate::ddl_dml::runner::Runner;
use crate::ddl_dml::timescale_options::Options;
use crate::ddl_dml::upkeep::Upkeep;
use crate::ddl_dml::views::define::{
    Cascade, check_readers, create_view, drop_readers, drop_views, expect_aggregate,
};
use crate::parse::table_names::table_name;
use crate::tables::heap::prometheus_tables::PrometheusTable;
use crate::tables::heap::retention_policies::Of;
use crate::tables::heap::view::{Fate, View};
use crate::tables::heap::{retention_policies, stored_views};
use crate::tables::hypertables::declare::Asking;
use crate::tables::hypertables::shape::Hypertable;
use crate::types::error::SqlError;
use crate::types::hidden::Hidden;
use datafusion::sql::sqlparser::ast::{
    AlterTable, AlterTableOperation, CreateTable, CreateView, ObjectName, ObjectType, Statement,
    Truncate, TruncateIdentityOption,
};
use datafusion::sql::sqlparser::tokenizer::Token;
use tables::{Change, Schema, Table};

/// A statement about tables themselves.
#[derive(Clone, Debug, PartialEq)]
pub struct Definition(Hidden<Said>);

/// What it says.
#[derive(Debug, PartialEq)]
enum Said {
    Statement(Box<Statement>),
    /// What changes nothing.
    Maintenance(Maintenance),
    /// `ALTER ROLE .. SET` and its kin.
    Setting(RoleSetting),
    /// `CREATE MATERIALIZED VIEW` of a continuous aggregate.
    Aggregate(Box<CreateView>),
    /// `CREATE TABLE` of a hypertable.
    Created(Box<CreateTable>, Asking),
    /// What is done of every hypertable already.
    Already(String, Upkeep),
    /// The columns of a hypertable that rows are told apart by.
    Segment(String, Option<Vec<String>>),
    /// `SELECT create_hypertable(..)`.
    Hypertable(Asking),
    /// `SELECT create_prometheus_table(..)`.
    Prometheus(Creation),
    /// A policy of retention.
    Policy(PolicyStatement),
    /// `SELECT drop_chunks(..)`.
    Chunks(Dropping),
}

/// The function that makes a table a hypertable.
const HYPERTABLE: &str = "create_hypertable";
/// The function that drops rows of a time.
const CHUNKS: &str = "drop_chunks";

impl Definition {
    /// Whether a statement is one.
    pub fn is_one(statement: &Statement) -> bool {
        matches!(
            statement,
            Statement::CreateTable(_)
                | Statement::AlterTable(_)
                | Statement::Truncate(_)
                | Statement::CreateIndex(_)
                | Statement::CreateView(_)
                | Statement::Drop {
                    object_type: ObjectType::Table
                        | ObjectType::Index
                        | ObjectType::View
                        | ObjectType::MaterializedView,
                    ..
                }
        )
    }

    /// Of such a statement.
    pub fn new(statement: Statement) -> Definition {
        debug_assert!(Definition::is_one(&statement), "{statement} defines nothing");
        Definition(Hidden::new(Said::Statement(Box::new(statement))))
    }

    /// One that the parser does not know, if these words are such.
    ///
    /// # Errors
    /// When they make no sense.
    pub fn of_words(words: &[&Token]) -> Result<Option<Definition>, SqlError> {
        let found = Maintenance::of_words(words)?.map(Said::Maintenance);
        let found = match found {
            None => RoleSetting::of_words(words)?.map(Said::Setting),
            found => found,
        };
        Ok(found.map(|one| Definition(Hidden::new(one))))
    }

    /// The setting that it sets for sessions to come, and to what.
    pub fn sets(&self) -> Option<(&str, &str)> {
        match &*self.0 {
            Said::Setting(setting) => setting.sets(),
            _ => None,
        }
    }

    /// Of `create_hypertable`.
    pub(crate) fn hypertable(asking: Asking) -> Definition {
        Definition(Hidden::new(Said::Hypertable(asking)))
    }

    /// The same with TimescaleDB's options.
    ///
    /// # Errors
    /// When it has none.
    pub(crate) fn with_options(self, options: &Options) -> Result<Definition, SqlError> {
        let Said::Statement(statement) = &*self.0 else {
            return Err(SqlError::unexpected("options of no statement"));
        };
        if let (Statement::CreateView(said), true) = (&**statement, options.is_continuous()) {
            return match said.materialized {
                true => Ok(Definition(Hidden::new(Said::Aggregate(Box::new(said.clone()))))),
                false => Err(SqlError::invalid("a continuous aggregate is a MATERIALIZED VIEW")),
            };
        }
        let Statement::CreateTable(said) = &**statement else {
            return Err(SqlError::unsupported("options of TimescaleDB are those of CREATE TABLE"));
        };
        let Some(asking) = options.hypertable(&table_name(&said.name)?) else {
            return Err(SqlError::invalid("WITH (tsdb.hypertable) is what makes a hypertable"));
        };
        if said.query.is_some() {
            return Err(SqlError::unsupported("CREATE TABLE .. AS makes no hypertable"));
        }
        Ok(Definition(Hidden::new(Said::Created(Box::new(said.clone()), asking))))
    }

    /// What is done of every hypertable already.
    pub(crate) fn upkeep(table: String, upkeep: Upkeep) -> Definition {
        Definition(Hidden::new(Said::Already(table, upkeep)))
    }

    /// `ALTER TABLE .. SET (timescaledb..)`.
    pub(crate) fn segment(table: String, segment_by: Option<Vec<String>>) -> Definition {
        Definition(Hidden::new(Said::Segment(table, segment_by)))
    }

    /// Of `create_prometheus_table`.
    pub(crate) fn prometheus(said: Creation) -> Definition {
        Definition(Hidden::new(Said::Prometheus(said)))
    }

    /// Of a policy.
    pub(crate) fn policy(said: PolicyStatement) -> Definition {
        Definition(Hidden::new(Said::Policy(said)))
    }

    /// Of `drop_chunks`.
    pub(crate) fn chunks(dropping: Dropping) -> Definition {
        Definition(Hidden::new(Said::Chunks(dropping)))
    }

    /// The name of the one column that it answers with, if it does.
    pub fn answers(&self) -> Option<&str> {
        match &*self.0 {
            Said::Hypertable(_) => Some(HYPERTABLE),
            Said::Chunks(_) => Some(CHUNKS),
            Said::Policy(said) => said.answers(),
            Said::Prometheus(said) => Some(said.answers()),
            Said::Already(_, upkeep) => upkeep.answer.is_some().then_some(upkeep.name.as_str()),
            Said::Statement(_)
            | Said::Maintenance(_)
            | Said::Setting(_)
            | Said::Aggregate(_)
            | Said::Created(..)
            | Said::Segment(..) => None,
        }
    }

    /// What the statement is called.
    pub fn word(&self) -> &'static str {
        let statement = match &*self.0 {
            Said::Statement(statement) => &**statement,
            Said::Maintenance(one) => return one.word(),
            Said::Setting(one) => return one.word(),
            Said::Policy(said) => return said.word(),
            Said::Aggregate(_) => return "CREATE MATERIALIZED VIEW",
            Said::Hypertable(_) | Said::Chunks(_) | Said::Prometheus(_) => return "SELECT",
            Said::Already(_, upkeep) if upkeep.answer.is_none() => return upkeep.tag(),
            Said::Already(..) => return "SELECT",
            Said::Created(..) => return "CREATE TABLE",
            Said::Segment(..) => return "ALTER TABLE",
        };
        match statement {
            Statement::CreateTable(said) if said.query.is_some() => "CREATE TABLE AS",
            Statement::CreateTable(_) => "CREATE TABLE",
            Statement::CreateView(said) if said.materialized => "CREATE MATERIALIZED VIEW",
            Statement::CreateView(_) => "CREATE VIEW",
            Statement::AlterTable(_) => "ALTER TABLE",
            Statement::Truncate(_) => "TRUNCATE TABLE",
            Statement::CreateIndex(_) => "CREATE INDEX",
            Statement::Drop { object_type: ObjectType::Index, .. } => "DROP INDEX",
            Statement::Drop { object_type: ObjectType::View, .. } => "DROP VIEW",
            Statement::Drop { object_type: ObjectType::MaterializedView, .. } => {
                "DROP MATERIALIZED VIEW"
            }
            _ => "DROP TABLE",
        }
    }
}

/// Does what a statement says: all of it or nothing, durably unless a transaction is under way.
///
/// # Errors
/// When it cannot be done; nothing is changed then.
pub async fn define(
    runner: &Runner,
    definition: &Definition,
    turn: &tokio::sync::Mutex<()>,
    fate: &Fate,
) -> Result<Defined, SqlError> {
    if let Said::Chunks(dropping) = &*definition.0 {
        let (answer, notice) = drop_chunks(runner, dropping, fate).await?;
        let (answer, notices) = (Some(answer), vec![notice]);
        return Ok(Defined { tag: definition.word(), answer, notices, ..Defined::default() });
    }
    let mut done = Defined { tag: definition.word(), ..Defined::default() };
    if let Said::Maintenance(one) = &*definition.0 {
        one.done(&runner.view, &mut done)?;
        return Ok(done);
    }
    if let Said::Prometheus(made) = &*definition.0
        && made.is_there()
    {
        return Ok(Defined { answer: Some(String::new()), ..done });
    }
    let _turn = its_turn(&runner.view, turn).await;
    let changing = runner.view.changing()?;
    match &*definition.0 {
        Said::Hypertable(asking) => {
            done.answer = Some(make_hypertable(&runner.view, asking, &mut done.notices)?);
        }
        Said::Created(said, asking) => {
            create(runner, said, &mut done.notices).await?;
            let asking = Asking { if_not_exists: said.if_not_exists, ..asking.clone() };
            make_hypertable(&runner.view, &asking, &mut done.notices)?;
        }
        Said::Segment(table, segment_by) => {
            segment(runner, table, segment_by.as_ref(), &mut done.notices).await?;
        }
        Said::Already(table, upkeep) => {
            expect_kept_up(&runner.view, table, upkeep)?;
            done.answer.clone_from(&upkeep.answer);
            done.notices.push(upkeep.notice.to_string());
        }
        Said::Aggregate(said) => {
            create_view(runner, said, stored_views::Kind::Continuous, &mut done.notices).await?;
        }
        Said::Setting(setting) => setting.done(&runner.view, &runner.user)?,
        Said::Prometheus(made) => {
            done.answer = Some(made.done(&runner.view, &mut done.notices)?);
        }
        Said::Policy(said) => said.done(runner, &mut done).await?,
        // It is done above.
        Said::Chunks(_) | Said::Maintenance(_) => {}
        Said::Statement(statement) => define_as_said(runner, statement, &mut done).await?,
    }
    tokio::task::block_in_place(|| changing.done(fate))?;
    // No earlier: a statement that fails leaves all as it was.
    tokio::task::block_in_place(|| runner.view.series().forget(&done.emptied))?;
    tokio::task::block_in_place(|| unfinished_drops::remove(&runner.view, &done.emptied))?;
    Ok(done)
}

/// That what is done already of a hypertable, or of a continuous aggregate, is said of such a one.
fn expect_kept_up(view: &View, table: &str, upkeep: &Upkeep) -> Result<(), SqlError> {
    match upkeep.is_of_aggregate() || view.is_view(table) {
        true => expect_aggregate(view, table).map(drop),
        false => expect_hypertable(view, table).map(drop),
    }
}

async fn define_as_said(
    runner: &Runner,
    statement: &Statement,
    done: &mut Defined,
) -> Result<(), SqlError> {
    match statement {
        Statement::CreateTable(said) => {
            done.rows = create(runner, said, &mut done.notices).await?;
            done.tag = if done.rows.is_some() { "SELECT" } else { done.tag };
        }
        Statement::AlterTable(said) => alter(runner, said, &mut done.notices).await?,
        Statement::Truncate(said) => truncate(&runner.view, said, done)?,
        Statement::CreateIndex(said) => create_index(&runner.view, said, &mut done.notices)?,
        Statement::Drop { object_type: ObjectType::Index, if_exists, names, .. } => {
            drop_indexes(&runner.view, names, *if_exists, &mut done.notices)?;
        }
        Statement::CreateView(said) => {
            let kind = match said.materialized {
                true => stored_views::Kind::Materialized,
                false => stored_views::Kind::Plain,
            };
            create_view(runner, said, kind, &mut done.notices).await?;
        }
        Statement::Drop { object_type, if_exists, names, cascade, .. } => {
            let cascades = if *cascade { Cascade::Yes } else { Cascade::No };
            let is_materialized = *object_type == ObjectType::MaterializedView;
            if is_materialized || *object_type == ObjectType::View {
                let how = (is_materialized, *if_exists);
                return drop_views(&runner.view, names, how, cascades, done);
            }
            drop_tables(&runner.view, names, *if_exists, cascades, done)?;
        }
        other => return Err(SqlError::unexpected(format!("{other} defines nothing"))),
    }
    Ok(())
}

async fn create(
    runner: &Runner,
    said: &CreateTable,
    notices: &mut Vec<String>,
) -> Result<Option<u64>, SqlError> {
    let name = table_name(&said.name).map_err(|_| {
        let hint = "All tables are in the schema public.";
        SqlError::new("3F000", format!("the schema of {} does not exist", said.name))
            .with_hint(hint)
    })?;
    check_options(said)?;
    if is_written(&name) || is_reserved(&runner.view, &name) || runner.view.get(&name).is_some() {
        let words = format!("relation \"{name}\" already exists");
        if !said.if_not_exists {
            return Err(SqlError::new("42P07", words));
        }
        notices.push(format!("{words}, skipping"));
        return Ok(None);
    }
    if let Some(query) = &said.query {
        let statement = runner.plan(query.clone()).await?;
        let filled = create_as(runner, &name, &statement, &said.columns).await?;
        return Ok(Some(filled));
    }
    let mut schema = Schema::default();
    for column in &said.columns {
        add_column(&mut schema, &name, column)?;
    }
    for constraint in &said.constraints {
        add_constraint(&mut schema, &name, constraint)?;
    }
    check_defaults(runner, &schema).await?;
    runner.view.apply(vec![Change::Create { table: name, schema }])?;
    Ok(None)
}

fn check_options(said: &CreateTable) -> Result<(), SqlError> {
    if said.external || said.location.is_some() || said.file_format.is_some() {
        return Err(SqlError::unsupported("tables of files are not known here"));
    }
    if said.temporary {
        let words = "temporary tables are not known here: a table is there until it is dropped";
        return Err(SqlError::unsupported(words));
    }
    if said.like.is_some()
        || said.or_replace
        || said.inherits.is_some()
        || said.partition_by.is_some()
    {
        let words =
            "CREATE TABLE with LIKE, INHERITS, PARTITION BY or OR REPLACE is not known here";
        return Err(SqlError::unsupported(words));
    }
    Ok(())
}

async fn alter(
    runner: &Runner,
    said: &AlterTable,
    notices: &mut Vec<String>,
) -> Result<(), SqlError> {
    let mut name = table_name(&said.name)?;
    if is_written(&name) {
        let words = format!("table \"{name}\" is always as it is: it holds samples");
        return Err(SqlError::unsupported(words));
    }
    if runner.view.get(&name).is_none() && said.if_exists {
        notices.push(format!("relation \"{name}\" does not exist, skipping"));
        return Ok(());
    }
    for operation in &said.operations {
        let table = match operation {
            AlterTableOperation::RenameTable { .. } => runner.view.get(&name),
            _ => None,
        };
        let table = table.map_or_else(|| runner.view.expect(&name), Ok)?;
        if Hypertable::is_one(table.schema()) {
            let words = format!("ALTER TABLE .. {operation} of a hypertable is not known here");
            let hint = "Make another with the columns that you want, and INSERT INTO it .. SELECT.";
            return Err(SqlError::unsupported(words).with_hint(hint));
        }
        if loses_columns(operation) {
            check_readers(&runner.view, &name, "alter")?;
        }
        if let Some(change) = alters::change(runner, &table, operation, notices).await? {
            if let Change::Alter { name: new, .. } = &change {
                if is_written(new) || is_reserved(&runner.view, new) {
                    return Err(SqlError::new(
                        "42P07",
                        format!("relation \"{new}\" already exists"),
                    ));
                }
                name.clone_from(new);
            }
            runner.view.apply(vec![change])?;
        }
    }
    Ok(())
}

/// Whether who reads a table by its name and those of its columns is lost afterwards.
fn loses_columns(operation: &AlterTableOperation) -> bool {
    matches!(
        operation,
        AlterTableOperation::DropColumn { .. }
            | AlterTableOperation::RenameColumn { .. }
            | AlterTableOperation::RenameTable { .. }
    )
}

fn truncate(view: &View, said: &Truncate, done: &mut Defined) -> Result<(), SqlError> {
    if said.identity == Some(TruncateIdentityOption::Restart) {
        let words = "TRUNCATE .. RESTART IDENTITY is not known here: rows are numbered on";
        return Err(
            SqlError::unsupported(words).with_hint("DROP TABLE and CREATE TABLE begin anew.")
        );
    }
    let mut changes = Vec::new();
    for target in &said.table_names {
        let table = table_name(&target.name)?;
        if is_written(&table) {
            return Err(SqlError::unsupported("samples are not truncated").with_hint(
                "SELECT drop_metric('name'), or POST /api/v1/admin/tsdb/delete_series over HTTP.",
            ));
        }
        if loses_rows(view, &table, "TRUNCATE")? {
            done.emptied.push(table.clone());
        }
        changes.push(Change::Truncate { table });
    }
    view.apply(changes).map(drop)
}

fn drop_tables(
    view: &View,
    names: &[ObjectName],
    if_exists: bool,
    cascades: Cascade,
    done: &mut Defined,
) -> Result<(), SqlError> {
    for name in names {
        let table = table_name(name)?;
        if is_written(&table) {
            return Err(SqlError::new("42809", format!("\"{table}\" holds samples and stays")));
        }
        match (view.get(&table), if_exists) {
            (None, true) => {
                done.notices.push(format!("table \"{table}\" does not exist, skipping"));
            }
            (None, false) => {
                return Err(SqlError::new("42P01", format!("table \"{table}\" does not exist")));
            }
            (Some(known), _) => {
                if let Some(found) = stored_views::View::of(known.schema()) {
                    let hint = found.kind.dropped_by();
                    return Err(SqlError::new("42809", format!("\"{table}\" is not a table"))
                        .with_hint(hint));
                }
                drop_readers(view, std::slice::from_ref(&table), cascades, &mut done.notices)?;
                if let Some(one) = PrometheusTable::of(known.schema()) {
                    drop_samples(view, &known, &one, cascades, done)?;
                    continue;
                }
                if loses_rows(view, &table, "DROP TABLE")? {
                    unfinished_drops::record(view, &table, &known)?;
                    done.emptied.push(table.clone());
                }
                retention_policies::forget(view, &Of::Table(table.clone()))?;
                view.apply(vec![Change::Drop { table }])?;
            }
        }
    }
    Ok(())
}

/// Takes a relation of samples away, and them with their values.
fn drop_samples(
    view: &View,
    table: &Table,
    one: &PrometheusTable,
    cascades: Cascade,
    done: &mut Defined,
) -> Result<(), SqlError> {
    if one.keeps_samples() {
        check_alone(view, "DROP TABLE")?;
    }
    let gone = prometheus::drop_one(view, table.name(), one, cascades, &mut done.notices)?;
    if let Some(of) = gone {
        unfinished_drops::record(view, &of, table)?;
        retention_policies::forget(view, &Of::Table(of.clone()))?;
        done.emptied.push(of);
    }
    Ok(())
}
