//! Answers of SQL beside PostgreSQL 15's. Each case has a statement and PostgreSQL's rows, or `0A000` where it is
//! refused because DataFusion would answer wrongly.

use sql::datafusion::arrow::array::{Array, ArrayRef, AsArray as _};
use sql::datafusion::arrow::datatypes::DataType;
use sql::datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use sql::statements::Parsed;
use sql::{Database, Facts, Limits, SqlError};
use std::sync::Arc;
use std::time::Duration;
use store::{Store, StoreConfig};
use vfs::SimVfs;

mod cases;

/// Tables of all cases.
const TABLES: &str = "WITH fa(id, z, w) AS (VALUES (1, 10, 1), (2, 20, 1), (NULL, 30, 2), (4, 40, 2), (5, NULL, 1), \
     (NULL, NULL, 2)), fb(id, z, w) AS (VALUES (1, 5, 1), (NULL, 50, 1), (4, NULL, 2), (NULL, NULL, 2), (2, 20, 3)), \
     fc(id, z, w) AS (VALUES (1, 5, 1), (3, 6, 2)), fnn(x, y) AS (VALUES (1, 1), (2, 5), (3, 3)), \
     n(x, y) AS (VALUES (1, 1), (1, 4), (1, 4), (2, 3), (3, 3), (4, 1)), ng(i) AS (VALUES ((-2147483648)::int)) ";

struct Somebody;

impl Facts for Somebody {
    fn user(&self) -> String {
        "somebody".into()
    }

    fn database(&self) -> String {
        "metrics".into()
    }

    fn pid(&self) -> i32 {
        1
    }

    fn version(&self) -> String {
        "PostgreSQL 15".into()
    }

    fn setting(&self, _: &str) -> Option<String> {
        None
    }

    fn set(&self, _: &str, _: &str, _: bool) -> Result<(), SqlError> {
        Ok(())
    }
}

/// A value as PostgreSQL's clients see it, as far as the cases have such.
fn shown(column: &ArrayRef, row: usize) -> String {
    if column.is_null(row) {
        return String::new();
    }
    match column.data_type() {
        DataType::Boolean => if column.as_boolean().value(row) { "t" } else { "f" }.to_string(),
        DataType::List(_) => {
            let values = column.as_list::<i32>().value(row);
            let one = |at| match values.is_null(at) {
                true => "NULL".to_string(),
                false => shown(&values, at),
            };
            let all: Vec<String> = (0..values.len()).map(one).collect();
            format!("{{{}}}", all.join(","))
        }
        _ => {
            let column = sql::shown::column(column).unwrap_or_else(|| column.clone());
            let options = FormatOptions::default();
            let formatter = ArrayFormatter::try_new(&column, &options).unwrap();
            formatter.value(row).to_string()
        }
    }
}

async fn answer(session: &sql::Session, statement: &str) -> Result<Vec<String>, SqlError> {
    let text = format!("{TABLES}{statement}");
    let Some(Parsed::Query(query)) = session.parse(&text).await?.pop() else {
        panic!("{statement}: not a query")
    };
    let mut answer = session.ask(query).await?;
    let mut rows = Vec::new();
    while let Some(batch) = answer.batches.next().await {
        let batch = batch?;
        for row in 0..batch.num_rows() {
            let values: Vec<String> =
                batch.columns().iter().map(|column| shown(column, row)).collect();
            rows.push(values.join("|"));
        }
    }
    Ok(rows)
}

#[test]
fn answers_are_those_of_postgresql() {
    let config = StoreConfig { background: false, ..StoreConfig::standard() };
    let store = Store::open(Arc::new(SimVfs::new(1)), "store".as_ref(), config).unwrap();
    let limits = Limits {
        series_max: 1000,
        timeout: Duration::from_secs(600),
        waiting_max: 1,
        memory_max: 256 << 20,
        query: engine::QueryOptions::default(),
    };
    let database = Database::new(store, None, limits).unwrap();
    let facts: Arc<dyn Facts> = Arc::new(Somebody);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let only = std::env::var("ONLY").ok();
    let mut failures = Vec::new();
    let all = cases::ALL.iter().chain(cases::query_forms::ALL).chain(cases::numeric_types::ALL);
    let all = all.chain(cases::bits::ALL).chain(cases::array_literals::ALL);
    let all = all.chain(cases::implicit_casts::ALL).chain(cases::array_functions::ALL);
    let all = all.chain(cases::outer_names::ALL).chain(cases::common_types::ALL);
    let all = all.chain(cases::operator_types::ALL).chain(cases::joined_rows::ALL);
    let all = all.chain(cases::plain_values::ALL);
    let all = all.chain(cases::special_types::ALL).chain(cases::literal_values::ALL);
    let all = all.chain(cases::counterexamples::ALL).chain(cases::client_queries::ALL);
    let all = all.chain(cases::function_calls::ALL);
    for (statement, expected) in all {
        if only.as_ref().is_some_and(|only| !statement.contains(only.as_str())) {
            continue;
        }
        if only.is_some() {
            eprintln!("{statement}");
        }
        let session = database.session(&facts);
        let said = match runtime.block_on(answer(&session, statement)) {
            Ok(mut rows) => {
                // An order that is not asked for is not compared.
                let end = statement.rsplit(')').next().unwrap_or_default();
                if !end.contains("order by") {
                    rows.sort();
                }
                rows.join("; ")
            }
            Err(error) => format!("{}: {error}", error.code),
        };
        let is_right = said == *expected || said.starts_with(&format!("{expected}: "));
        if !is_right {
            failures.push(format!("{statement}\n   said  {said}\n   right {expected}"));
        }
    }
    assert!(failures.is_empty(), "{}\n{} failures", failures.join("\n"), failures.len());
}
