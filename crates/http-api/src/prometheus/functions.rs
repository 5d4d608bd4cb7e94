//! `/api/v1/functions`: the functions of a dialect as pages and editors want them.

use crate::http::answer::Answer;
use crate::http::request::Request;
use crate::http::request::selection;
use app::App;
use net::failure::Failure;
use promql::Dialect;
use promql::reference::{self, Entry};
use serde_json::{Value, json};
use std::sync::Arc;

/// `/api/v1/functions?dialect=...`
pub fn list(app: &Arc<App>, request: &Request) -> Result<Answer, Failure> {
    let dialect = selection::dialect(app, request)?;
    let entries: Vec<Value> = reference::entries(dialect).iter().map(describe).collect();
    let mut answer = json!({ "status": "success", "data": entries });
    // Who did not ask for a dialect learns which one the server takes it for.
    answer["dialect"] = json!(match dialect {
        Dialect::PromQl => "promql",
        Dialect::MetricsQl => "metricsql",
    });
    Ok(Answer::json(&answer))
}

fn describe(entry: &Entry) -> Value {
    json!({
        "name": entry.name,
        "kind": entry.kind,
        "usage": entry.usage,
        "doc": entry.doc,
        "example": entry.example,
        "answer": entry.answer,
        "experimental": entry.is_experimental,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_of_both_tables_is_described() {
        let names = |dialect| -> Vec<String> {
            let described = reference::entries(dialect).iter().map(describe).collect::<Vec<_>>();
            let name = |row: &Value| row["name"].as_str().expect("a name").to_string();
            described.iter().map(name).collect()
        };
        let promql = names(Dialect::PromQl);
        assert!(promql::FUNCTIONS.iter().all(|one| promql.iter().any(|name| name == one.name)));
        assert!(promql.contains(&"topk".to_string()));
        let metricsql = names(Dialect::MetricsQl);
        let mut table = promql::metricsql::FUNCTIONS.iter().map(|one| one.name);
        assert!(table.all(|one| metricsql.iter().any(|name| name == one)));
        let mut templates = promql::metricsql::TEMPLATES.iter().map(|one| one.name);
        assert!(templates.all(|one| metricsql.iter().any(|name| name == one)));
    }

    #[test]
    fn a_function_has_its_usage_and_example() {
        let entries = reference::entries(Dialect::MetricsQl);
        let abs = entries.iter().find(|entry| entry.name == "abs").map(describe);
        let expected = json!({
            "name": "abs", "kind": "transform", "usage": "abs(q)", "doc": "The absolute value.",
            "example": "abs(-2)", "answer": "{} 2", "experimental": false,
        });
        assert_eq!(abs, Some(expected));
    }
}
