//! What TimescaleDB's users do to keep a table fast and small: `create_hypertable`, compression and its
//! policies. Here samples are columns from the first, so that there is nothing to do, and a notice says
//! so; `drop_chunks` deletes samples.

use crate::ddl_dml::calls::{arguments, called, plain_name, text_of};
use crate::ddl_dml::definitions::define::Definition;
use crate::ddl_dml::hypertables::removal::Dropping;
use crate::ddl_dml::timescale_options::Options;
use crate::tables::hypertables::declare::Asking;
use crate::tables::metrics::tables::TABLES;
use crate::types::error::SqlError;
use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Query, Value,
};
use datafusion::sql::sqlparser::tokenizer::Token;

/// What such a statement does.
pub enum Done {
    /// Nothing: it is so already.
    Already(Upkeep),
    /// The same, if the table of that name is a hypertable.
    Table(String, Upkeep),
    /// Something.
    Of(Definition),
}

impl Done {
    /// The same by `CALL`, which answers with no row.
    pub fn called(self) -> Done {
        let called = |upkeep| Upkeep { name: "CALL".into(), answer: None, ..upkeep };
        match self {
            Done::Already(upkeep) => Done::Already(called(upkeep)),
            Done::Table(table, upkeep) => Done::Table(table, called(upkeep)),
            Done::Of(definition) => Done::Of(definition),
        }
    }
}

/// Something that is done already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upkeep {
    /// The function that was called, which is the name of its column; `ALTER TABLE` without one.
    pub name: String,
    /// What it answers with; none where it answers with no row.
    pub answer: Option<String>,
    /// Why nothing is done.
    pub notice: &'static str,
}

const COLUMNAR: &str = "samples are always columnar and compressed: there is nothing to be done";
const ONE_DATABASE: &str = "there is one database, whichever name it is asked for by: it stays";
const ONE_SCHEMA: &str = "schema \"public\" already exists, skipping";
const ABSENT: &str = "no such object exists, skipping";
const FRESH: &str =
    "it is worked out from its rows whenever it is asked: there is nothing to be done";

/// What a call answers with.
#[derive(Clone, Copy)]
enum Says {
    /// That nothing was created.
    Hypertable,
    /// The number of a job that there is not.
    NoJob,
    /// The chunk that it was called with.
    Chunk,
    /// That there was nothing.
    False,
    /// Nothing at all.
    Nothing,
}

/// What makes a continuous aggregate new elsewhere.
const REFRESH: &str = "refresh_continuous_aggregate";
/// What is said of a continuous aggregate that is altered.
const ALTERED: &str = "ALTER MATERIALIZED VIEW";

const FUNCTIONS: &[(&str, Says, &str)] = &[
    ("create_hypertable", Says::Hypertable, COLUMNAR),
    ("add_dimension", Says::False, COLUMNAR),
    ("set_chunk_time_interval", Says::False, COLUMNAR),
    ("set_number_partitions", Says::False, COLUMNAR),
    ("add_reorder_policy", Says::NoJob, COLUMNAR),
    ("remove_reorder_policy", Says::False, COLUMNAR),
    ("add_compression_policy", Says::NoJob, COLUMNAR),
    ("add_columnstore_policy", Says::NoJob, COLUMNAR),
    ("compress_chunk", Says::Chunk, COLUMNAR),
    ("decompress_chunk", Says::Chunk, COLUMNAR),
    ("convert_to_columnstore", Says::Chunk, COLUMNAR),
    ("convert_to_rowstore", Says::Chunk, COLUMNAR),
    ("remove_compression_policy", Says::False, COLUMNAR),
    ("remove_columnstore_policy", Says::False, COLUMNAR),
    ("add_continuous_aggregate_policy", Says::NoJob, FRESH),
    ("remove_continuous_aggregate_policy", Says::Nothing, FRESH),
    (REFRESH, Says::Nothing, FRESH),
];

impl Upkeep {
    /// What is said of a database: there is one.
    pub fn database(name: &str) -> Upkeep {
        Upkeep { name: name.to_string(), answer: None, notice: ONE_DATABASE }
    }

    /// Creates the answer of `CREATE SCHEMA IF NOT EXISTS public`.
    pub fn schema(tag: &str) -> Upkeep {
        Upkeep { name: tag.to_string(), answer: None, notice: ONE_SCHEMA }
    }

    /// Creates the answer of `DROP .. IF EXISTS` for objects that cannot be created here.
    pub fn absent(tag: &str) -> Upkeep {
        Upkeep { name: tag.to_string(), answer: None, notice: ABSENT }
    }

    /// Whether it is said of continuous aggregates alone.
    pub fn is_of_aggregate(&self) -> bool {
        self.notice == FRESH
    }

    /// What it is called where it answers with no row.
    pub fn tag(&self) -> &'static str {
        match self.name == ALTERED {
            true => ALTERED,
            false => "CALL",
        }
    }

    /// Of a query that calls one such function, and does nothing else.
    ///
    /// # Errors
    /// Of tables that are not there, and where samples would be dropped.
    pub fn of_query(query: &Query) -> Result<Option<Done>, SqlError> {
        called(query).map_or(Ok(None), |function| Upkeep::of_call(&function))
    }

    /// Of such a function that is called.
    ///
    /// # Errors
    /// As [`Upkeep::of_query`].
    pub fn of_call(function: &Function) -> Result<Option<Done>, SqlError> {
        let name = function.name.0.last().and_then(|part| part.as_ident());
        let name = name.map(|ident| ident.value.to_ascii_lowercase()).unwrap_or_default();
        let Some((_, says, notice)) = FUNCTIONS.iter().find(|(one, _, _)| *one == name) else {
            return Ok(None);
        };
        let Some(table) = first_text(function) else {
            return Err(SqlError::new("42883", format!("{name} needs the name of a table first")));
        };
        let (number, table, is_samples) = match table_of(&table) {
            Ok(at) => (at + 1, TABLES[at].name.to_string(), true),
            Err(_) => (0, plain_name(&table), false),
        };
        let answer = match says {
            Says::Hypertable if !is_samples => return Ok(None),
            Says::Hypertable => format!("({number},public,{table},f)"),
            Says::NoJob => "-1".to_string(),
            Says::Chunk => table.clone(),
            Says::False => "f".to_string(),
            Says::Nothing => String::new(),
        };
        let upkeep = Upkeep { name, answer: Some(answer), notice };
        // A chunk is called as its table is.
        Ok(Some(match is_samples {
            true => Done::Already(upkeep),
            false => Done::Table(plain_name(&table), upkeep),
        }))
    }

    /// `ALTER TABLE .. SET (timescaledb..)`, which the parser does not know.
    ///
    /// # Errors
    /// As [`Upkeep::of_query`].
    pub fn of_words(words: &[&Token]) -> Result<Option<Done>, SqlError> {
        let word = |at: usize| match words.get(at) {
            Some(Token::Word(word)) => Some(word.value.as_str()),
            _ => None,
        };
        let is = |at: usize, one: &str| word(at).is_some_and(|w| w.eq_ignore_ascii_case(one));
        let is_view = is(1, "materialized") && is(2, "view");
        if !(is(0, "alter") && (is(1, "table") || is_view)) {
            return Ok(None);
        }
        let mut at = if is_view { 3 } else { 2 };
        for skipped in ["if", "exists", "only"] {
            at += usize::from(is(at, skipped));
        }
        let mut table = word(at).unwrap_or_default().to_string();
        at += 1;
        if words.get(at) == Some(&&Token::Period) {
            table = format!("{table}.{}", word(at + 1).unwrap_or_default());
            at += 2;
        }
        if !is(at, "set") {
            return Ok(None);
        }
        let Some(options) = Options::of(words, at + 1)? else { return Ok(None) };
        if is_view {
            let upkeep = Upkeep { name: ALTERED.into(), answer: None, notice: FRESH };
            return Ok(Some(Done::Table(plain_name(&table), upkeep)));
        }
        if table_of(&table).is_err() {
            let table = plain_name(&table);
            return Ok(Some(Done::Of(Definition::segment(table, options.segment_by()))));
        }
        Ok(Some(Done::Already(Upkeep {
            name: "ALTER TABLE".into(),
            answer: None,
            notice: COLUMNAR,
        })))
    }
}

/// `create_hypertable` of a table that holds no samples.
///
/// # Errors
/// When what it is called with makes no sense.
pub fn asked_hypertable(query: &Query) -> Result<Option<Asking>, SqlError> {
    let Some(function) = called(query) else { return Ok(None) };
    let is_it = function.name.0.last().and_then(|part| part.as_ident());
    if !is_it.is_some_and(|one| one.value.eq_ignore_ascii_case("create_hypertable")) {
        return Ok(None);
    }
    let Some(table) = first_text(&function) else { return Ok(None) };
    let mut asking = Asking { table: plain_name(&table), ..Asking::default() };
    let places = ["relation", "time_column_name", "partitioning_column", "number_partitions"];
    for (name, expr) in arguments(&function, &places) {
        match name.as_str() {
            "time_column_name" | "dimension" => asking.time = column_text(expr),
            "partitioning_column" => asking.partitioned_by = text_of(expr),
            "if_not_exists" => asking.if_not_exists = expr.to_string().eq_ignore_ascii_case("true"),
            "relation"
            | "migrate_data"
            | "chunk_time_interval"
            | "number_partitions"
            | "replication_factor"
            | "create_default_indexes" => {}
            other => {
                let words = format!("create_hypertable has no argument \"{other}\" here");
                return Err(SqlError::new("42883", words));
            }
        }
    }
    Ok(Some(asking))
}

/// `drop_chunks`.
///
/// # Errors
/// When what it is called with makes no sense.
pub fn asked_chunks(query: &Query) -> Result<Option<Dropping>, SqlError> {
    let Some(function) = called(query) else { return Ok(None) };
    let is_it = function.name.0.last().and_then(|part| part.as_ident());
    if !is_it.is_some_and(|one| one.value.eq_ignore_ascii_case("drop_chunks")) {
        return Ok(None);
    }
    let Some(table) = first_text(&function) else {
        return Err(SqlError::new("42883", "drop_chunks needs the name of a table first"));
    };
    let mut dropping = Dropping { table: plain_name(&table), older_than: None, newer_than: None };
    for (name, expr) in arguments(&function, &["relation", "older_than", "newer_than"]) {
        let said = (!is_null(expr)).then(|| expr.to_string());
        match name.as_str() {
            "relation" | "verbose" => {}
            "older_than" => dropping.older_than = said,
            "newer_than" => dropping.newer_than = said,
            other => {
                let words = format!("drop_chunks has no argument \"{other}\" here");
                return Err(SqlError::new("42883", words));
            }
        }
    }
    Ok(Some(dropping))
}

fn is_null(expr: &Expr) -> bool {
    matches!(expr, Expr::Value(value) if value.value == Value::Null)
}

/// The name of a column, or of that in `by_range('column')`.
fn column_text(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Function(function) => first_text(function),
        plain => text_of(plain),
    }
}

/// The first argument, if it is a text or a cast of one.
fn first_text(function: &Function) -> Option<String> {
    let FunctionArguments::List(list) = &function.args else { return None };
    let (FunctionArg::Unnamed(FunctionArgExpr::Expr(expr))
    | FunctionArg::Named { arg: FunctionArgExpr::Expr(expr), .. }
    | FunctionArg::ExprNamed { arg: FunctionArgExpr::Expr(expr), .. }) = list.args.first()?
    else {
        return None;
    };
    text_of(expr)
}

/// Which table has a name, with or without its schema.
fn table_of(name: &str) -> Result<usize, SqlError> {
    let plain = plain_name(name);
    let found = TABLES.iter().position(|table| table.name.eq_ignore_ascii_case(&plain));
    let words = || format!("relation \"{name}\" does not exist, or holds no samples");
    found.ok_or_else(|| SqlError::new("42P01", words()))
}
