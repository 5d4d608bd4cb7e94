//! `CREATE VIEW`, `DROP VIEW`, and what becomes of views when the tables go that they read.

use crate::ddl_dml::definitions::defined::{Defined, is_written};
use crate::ddl_dml::prometheus::is_reserved;
use crate::ddl_dml::rows::copies::column_for;
use crate::ddl_dml::runner::Runner;
use crate::parse::table_names::table_name;
use crate::parse::written::query_text;
use crate::tables::heap::prometheus_tables::PrometheusTable;
use crate::tables::heap::stored_views::{Kind, View};
use crate::tables::heap::view::View as Sight;
use crate::types::error::SqlError;
use crate::types::names::{folded, shown_name};
use crate::types::traversal::walk_relations;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::sql::sqlparser::ast::{self, CreateTableOptions, CreateView, ObjectName};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::Token;
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;
use tables::{Change, Schema, Table};

/// Tables that a view comes to read, with those of the views that it reads.
const TABLES_MAX: usize = 200;
/// Bytes of a query that is kept, as a property of a table.
const QUERY_SIZE_MAX: usize = 16_000;
/// Views that read each other, one above the other.
const DEPTH_MAX: usize = 32;

/// Makes a view, or puts it in place of another.
///
/// # Errors
/// When its query makes no sense, or is none of a view.
pub async fn create_view(
    runner: &Runner,
    said: &CreateView,
    kind: Kind,
    notices: &mut Vec<String>,
) -> Result<(), SqlError> {
    check_words(said)?;
    let name = table_name(&said.name)?;
    let known = runner.view.get(&name);
    if is_written(&name)
        || is_reserved(&runner.view, &name)
        || (known.is_some() && !said.or_replace)
    {
        let words = format!("relation \"{name}\" already exists");
        if !said.if_not_exists {
            return Err(SqlError::new("42P07", words));
        }
        notices.push(format!("{words}, skipping"));
        return Ok(());
    }
    let statement = runner.plan(said.query.clone()).await?;
    if !statement.parameters()?.is_empty() {
        return Err(SqlError::new("42P02", "there is no parameter in the query of a view"));
    }
    let query = query_text(&said.query)?;
    if QUERY_SIZE_MAX < query.len() {
        let words =
            format!("the query of a view has {} bytes; {QUERY_SIZE_MAX} are the most", query.len());
        return Err(SqlError::limit(words));
    }
    if kind == Kind::Continuous {
        check_buckets(&query)?;
    }
    let mut schema = columns_of(&said.columns, &statement.schema())?;
    View { query, kind, reads: reads(&runner.view, &said.query) }.say(&mut schema);
    let change = match known {
        None => Change::Create { table: name, schema },
        Some(known) => replaced(&known, schema)?,
    };
    runner.view.apply(vec![change])?;
    check_depth(&runner.view)?;
    match kind {
        Kind::Plain => {}
        Kind::Materialized => notices.push(format!("it is {FRESH}")),
        Kind::Continuous => notices.push(format!("a continuous aggregate is {FRESH}")),
    }
    Ok(())
}

/// What is said of views that are something kept elsewhere.
const FRESH: &str =
    "worked out from its rows whenever it is asked: it is never old, and keeps none";

fn check_words(said: &CreateView) -> Result<(), SqlError> {
    if said.temporary {
        let words = "temporary views are not known here: a view is there until it is dropped";
        return Err(SqlError::unsupported(words));
    }
    let is_plain = said.options == CreateTableOptions::None
        && said.to.is_none()
        && said.params.is_none()
        && said.comment.is_none()
        && said.cluster_by.is_empty()
        && !(said.or_alter || said.secure || said.copy_grants || said.with_no_schema_binding)
        && !(said.materialized && said.or_replace)
        && (said.materialized || !said.if_not_exists)
        && !said.name_before_not_exists;
    match is_plain {
        true => Ok(()),
        false => Err(SqlError::unsupported("options of views are not known here")),
    }
}

/// That a continuous aggregate is one: TimescaleDB's say so by their time.
fn check_buckets(query: &str) -> Result<(), SqlError> {
    match query.to_ascii_lowercase().contains("time_bucket") {
        true => Ok(()),
        false => {
            let words = "continuous aggregate view must include a valid time bucket function";
            Err(SqlError::unsupported(words)
                .with_hint("GROUP BY time_bucket('1 hour', time) is what it is for."))
        }
    }
}

fn columns_of(named: &[ast::ViewColumnDef], answered: &SchemaRef) -> Result<Schema, SqlError> {
    if answered.fields().len() < named.len() {
        return Err(SqlError::invalid("CREATE VIEW specifies more column names than columns"));
    }
    let (mut schema, mut names) = (Schema::default(), BTreeSet::new());
    for (at, field) in answered.fields().iter().enumerate() {
        let given = named.get(at).map(|one| folded(&one.name));
        let name = given.unwrap_or_else(|| shown_name(field.name()).to_string());
        if !names.insert(name.clone()) {
            let words = format!("column \"{name}\" specified more than once");
            return Err(SqlError::new("42701", words).with_hint("Say .. AS another name."));
        }
        schema.columns.push(column_for(&name, field)?);
    }
    Ok(schema)
}

/// A view in place of another: who reads that finds its columns where they were.
fn replaced(known: &Arc<Table>, schema: Schema) -> Result<Change, SqlError> {
    let name = known.name();
    if View::of(known.schema()).is_none_or(|view| view.kind != Kind::Plain) {
        return Err(SqlError::new("42809", format!("\"{name}\" is not a view")));
    }
    let before = &known.schema().columns;
    let is_as_it_was = before.len() <= schema.columns.len()
        && before
            .iter()
            .zip(&schema.columns)
            .all(|(one, other)| (&one.name, one.ty) == (&other.name, other.ty));
    if !is_as_it_was {
        let words = format!("cannot drop or change columns of view \"{name}\"");
        let hint = "New columns stand behind the others; DROP VIEW begins anew.";
        return Err(SqlError::new("42P16", words).with_hint(hint));
    }
    let value = |_: &tables::Column| tables::Source::Value(tables::Datum::Null);
    let from = schema.columns.iter().map(value).collect();
    Ok(Change::Alter { table: name.to_string(), name: name.to_string(), schema, from })
}

/// The tables that somebody has made and a query names.
fn reads(sight: &Sight, query: &ast::Query) -> Vec<String> {
    let mut all = Vec::new();
    let _ = walk_relations(query, |name: &ObjectName| {
        let name = table_name(name).ok();
        all.extend(name.filter(|name| sight.get(name).is_some()));
        ControlFlow::<()>::Continue(())
    });
    all
}

/// Views, and what each reads.
fn all_views(sight: &Sight) -> Vec<(Arc<Table>, View)> {
    let all = sight.list().into_iter();
    all.filter_map(|table| View::of(table.schema()).map(|view| (table, view))).collect()
}

/// That no view reads itself, and none too much: what it reads stands in the plan of who asks it.
fn check_depth(sight: &Sight) -> Result<(), SqlError> {
    for (table, view) in all_views(sight) {
        let (mut left, mut level, mut depth) = (TABLES_MAX, view.reads, 0);
        while !level.is_empty() {
            let Some(rest) = left.checked_sub(level.len()).filter(|_| depth < DEPTH_MAX) else {
                let words = format!(
                    "view \"{}\" comes to read more than {TABLES_MAX} tables, or views more than \
                     {DEPTH_MAX} above each other, or itself",
                    table.name()
                );
                return Err(SqlError::new("54001", words));
            };
            (left, depth) = (rest, depth + 1);
            let views = level.iter().filter_map(|name| View::of(sight.get(name)?.schema()));
            level = views.flat_map(|view| view.reads).collect();
        }
    }
    Ok(())
}

/// The views that read one of some tables, and those that read them.
fn readers(sight: &Sight, tables: &[String]) -> Vec<(String, Kind, String)> {
    let (all, mut gone) = (all_views(sight), tables.to_vec());
    let mut found: Vec<(String, Kind, String)> = Vec::new();
    loop {
        let next = all.iter().find_map(|(table, view)| {
            let is_new = !gone.iter().any(|one| one == table.name());
            let read = view.reads.iter().find(|read| gone.contains(read)).filter(|_| is_new)?;
            Some((table.name().to_string(), view.kind, read.clone()))
        });
        let Some(next) = next else { return found };
        gone.push(next.0.clone());
        found.push(next);
    }
}

/// That nobody reads a table that changes so that who reads it would be lost.
///
/// # Errors
/// When somebody does.
pub fn check_readers(sight: &Sight, table: &str, word: &str) -> Result<(), SqlError> {
    let Some((view, kind, read)) = readers(sight, &[table.to_string()]).into_iter().next() else {
        return Ok(());
    };
    let words = format!("cannot {word} {table} because other objects depend on it");
    let detail = format!("{} {view} depends on {read}", kind.word());
    let hint = "Use DROP ... CASCADE to drop the dependent objects too.";
    Err(SqlError::new("2BP01", words).with_detail(detail).with_hint(hint))
}

/// Drops the views that read tables which are dropped, if that was said.
///
/// # Errors
/// When it was not, and there are some.
pub fn drop_readers(
    sight: &Sight,
    tables: &[String],
    cascades: Cascade,
    notices: &mut Vec<String>,
) -> Result<(), SqlError> {
    for (view, kind, read) in readers(sight, tables) {
        if cascades == Cascade::No {
            return check_readers(sight, &read, "drop");
        }
        notices.push(format!("drop cascades to {} {view}", kind.word()));
        sight.apply(vec![Change::Drop { table: view }])?;
    }
    Ok(())
}

/// Whether who reads something goes with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cascade {
    Yes,
    No,
}

/// `DROP VIEW`, or `DROP MATERIALIZED VIEW`.
///
/// # Errors
/// When one is not there, or somebody reads it.
pub fn drop_views(
    sight: &Sight,
    names: &[ObjectName],
    (is_materialized, if_exists): (bool, bool),
    cascades: Cascade,
    done: &mut Defined,
) -> Result<(), SqlError> {
    let word = if is_materialized { "materialized view" } else { "view" };
    let mut gone = Vec::new();
    for name in names {
        let name = table_name(name)?;
        match sight.get(&name).map(|table| View::of(table.schema())) {
            Some(Some(view)) if (view.kind != Kind::Plain) == is_materialized => gone.push(name),
            // The view over samples that are kept apart.
            Some(None) if !is_materialized && is_of_samples(sight, &name) => gone.push(name),
            None if if_exists => {
                done.notices.push(format!("{word} \"{name}\" does not exist, skipping"));
            }
            None if !is_written(&name) => {
                return Err(SqlError::new("42P01", format!("{word} \"{name}\" does not exist")));
            }
            _ => return Err(SqlError::new("42809", format!("\"{name}\" is not a {word}"))),
        }
    }
    drop_readers(sight, &gone, cascades, &mut done.notices)?;
    let changes = gone.into_iter().map(|table| Change::Drop { table });
    sight.apply(changes.collect()).map(drop)
}

fn is_of_samples(sight: &Sight, name: &str) -> bool {
    let found = sight.get(name).and_then(|table| PrometheusTable::of(table.schema()));
    found.is_some_and(|one| one.is_view())
}

/// A continuous aggregate of a name.
///
/// # Errors
/// When there is none.
pub fn expect_aggregate(sight: &Sight, name: &str) -> Result<View, SqlError> {
    let found = sight.get(name).and_then(|table| View::of(table.schema()));
    found
        .filter(|view| view.kind == Kind::Continuous)
        .ok_or_else(|| SqlError::new("42P01", format!("\"{name}\" is not a continuous aggregate")))
}

/// A `CREATE MATERIALIZED VIEW` without `WITH DATA` or `WITH NO DATA`, which say when it is filled and mean nothing
/// here. `words` are `tokens` without spaces.
pub fn without_data(tokens: &[Token], words: &[&Token]) -> Option<Vec<Token>> {
    let is = |token: Option<&&Token>, wanted: Keyword| matches!(token, Some(Token::Word(word)) if word.keyword == wanted);
    let behind = |back: usize| words.len().checked_sub(back).and_then(|at| words.get(at));
    let is_one = is(words.first(), Keyword::CREATE)
        && is(words.get(1), Keyword::MATERIALIZED)
        && is(words.get(2), Keyword::VIEW);
    let count = match is_one && is(behind(1), Keyword::DATA) {
        true if is(behind(2), Keyword::WITH) => 2,
        true if is(behind(2), Keyword::NO) && is(behind(3), Keyword::WITH) => 3,
        _ => return None,
    };
    let said = tokens.iter().filter(|one| !matches!(one, Token::Whitespace(_)));
    // Spaces mean nothing to the parser.
    Some(said.take(words.len() - count).cloned().collect())
}
