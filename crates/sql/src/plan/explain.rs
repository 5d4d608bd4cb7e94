//! `EXPLAIN` in the shape that PostgreSQL's clients bear: one column, `QUERY PLAN`, a line for each step of
//! the plan, or all of it as one JSON or XML.
//!
//! What the steps are called is DataFusion's.

use crate::parse::explain_options::Shape;
use datafusion::arrow::array::{ArrayRef, AsArray as _, RecordBatch, StringArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::Result;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::{FutureExt as _, StreamExt as _, stream};
use serde_json::{Map, json};
use std::sync::Arc;

/// The one column.
pub fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("QUERY PLAN", DataType::Utf8, false)]))
}

/// What a plan says of itself, in that shape.
pub fn shaped(rows: SendableRecordBatchStream, shape: Shape) -> SendableRecordBatchStream {
    let made = rows.collect::<Vec<Result<RecordBatch>>>().map(move |all| batch_of(all, shape));
    Box::pin(RecordBatchStreamAdapter::new(schema(), stream::once(made)))
}

fn batch_of(all: Vec<Result<RecordBatch>>, shape: Shape) -> Result<RecordBatch> {
    let all = all.into_iter().collect::<Result<Vec<RecordBatch>>>()?;
    let lines = lines_of(&all)?;
    let lines = match shape {
        Shape::Text => lines,
        Shape::Json => vec![as_json(&lines)],
        Shape::Xml => vec![as_xml(&lines)],
    };
    let column: ArrayRef = Arc::new(StringArray::from(lines));
    Ok(RecordBatch::try_new(schema(), vec![column])?)
}

/// The lines of the plan that would be run.
fn lines_of(all: &[RecordBatch]) -> Result<Vec<String>> {
    let mut lines = Vec::new();
    for batch in all.iter().filter(|batch| batch.num_columns() == 2) {
        let text = |at: usize| cast(batch.column(at), &DataType::Utf8View);
        let (kinds, plans) = (text(0)?, text(1)?);
        for (kind, plan) in kinds.as_string_view().iter().zip(plans.as_string_view()) {
            if kind != Some("logical_plan") {
                lines.extend(plan.unwrap_or_default().lines().map(str::to_string));
            }
        }
    }
    Ok(lines)
}

/// A step of a plan, with those that are under it.
#[derive(Default)]
struct Step {
    name: String,
    says: String,
    under: Vec<Step>,
}

impl Step {
    fn json(&self) -> serde_json::Value {
        let mut map = Map::new();
        map.insert("Node Type".into(), self.name.clone().into());
        if !self.says.is_empty() {
            map.insert("Output".into(), json!([self.says]));
        }
        if !self.under.is_empty() {
            let under: Vec<serde_json::Value> = self.under.iter().map(Step::json).collect();
            map.insert("Plans".into(), under.into());
        }
        map.into()
    }

    fn write_xml(&self, indent: usize, out: &mut String) {
        let pad = " ".repeat(indent);
        out.push_str(&format!(
            "{pad}<Plan>\n{pad}  <Node-Type>{}</Node-Type>\n",
            escaped(&self.name)
        ));
        if !self.says.is_empty() {
            let item = format!("<Item>{}</Item>", escaped(&self.says));
            out.push_str(&format!("{pad}  <Output>{item}</Output>\n"));
        }
        if !self.under.is_empty() {
            out.push_str(&format!("{pad}  <Plans>\n"));
            self.under.iter().for_each(|one| one.write_xml(indent + 4, out));
            out.push_str(&format!("{pad}  </Plans>\n"));
        }
        out.push_str(&format!("{pad}</Plan>\n"));
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn as_json(lines: &[String]) -> String {
    let plan = tree_of(lines).map(|step| step.json()).unwrap_or_default();
    let all = json!([{ "Plan": plan }]);
    serde_json::to_string_pretty(&all).unwrap_or_default()
}

fn as_xml(lines: &[String]) -> String {
    let mut out =
        "<explain xmlns=\"http://www.postgresql.org/2009/explain\">\n  <Query>\n".to_string();
    if let Some(step) = tree_of(lines) {
        step.write_xml(4, &mut out);
    }
    out.push_str("  </Query>\n</explain>");
    out
}

/// Lines that stand in each other by their indentation, as steps. Deeper than a plan may be is none.
fn tree_of(lines: &[String]) -> Option<Step> {
    let mut open: Vec<(usize, Step)> = Vec::new();
    let close = |open: &mut Vec<(usize, Step)>, depth: usize| {
        while 1 < open.len() && open.last().is_some_and(|(of, _)| depth <= *of) {
            let closed = open.pop();
            if let (Some((_, step)), Some((_, over))) = (closed, open.last_mut()) {
                over.under.push(step);
            }
        }
    };
    for line in lines.iter().filter(|line| !line.trim().is_empty()) {
        let depth = line.len() - line.trim_start().len();
        let (name, says) = line.trim().split_once(": ").unwrap_or((line.trim(), ""));
        close(&mut open, depth);
        let step = Step { name: name.to_string(), says: says.to_string(), under: Vec::new() };
        open.push((depth, step));
    }
    close(&mut open, 0);
    open.into_iter().next().map(|(_, step)| step)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::explain_options::shape_of;
    use crate::types::dialect::Postgres;
    use datafusion::sql::sqlparser::parser::Parser;

    #[test]
    fn options_are_taken() {
        let of = |text: &str| {
            let mut all = Parser::parse_sql(&Postgres::new(0), text).unwrap();
            let shape = shape_of(&mut all[0]).map_err(|error| error.code);
            shape.map(|shape| (shape, all[0].to_string()))
        };
        assert_eq!(of("SELECT 1"), Ok((None, "SELECT 1".into())));
        assert_eq!(of("EXPLAIN SELECT 1"), Ok((Some(Shape::Text), "EXPLAIN SELECT 1".into())));
        assert_eq!(
            of("EXPLAIN (ANALYZE, FORMAT JSON, BUFFERS off) SELECT 1"),
            Ok((Some(Shape::Json), "EXPLAIN ANALYZE SELECT 1".into()))
        );
        assert_eq!(of("EXPLAIN (FORMAT yaml) SELECT 1"), Err("0A000"));
        assert_eq!(of("EXPLAIN (MOON) SELECT 1"), Err("42601"));
        assert_eq!(of("EXPLAIN (ANALYZE perhaps) SELECT 1"), Err("42601"));
    }

    #[test]
    fn steps_stand_in_each_other() {
        let lines = ["Join: a", "  Scan: b", "    Leaf", "  Scan: c"].map(str::to_string);
        let made: serde_json::Value = serde_json::from_str(&as_json(&lines)).unwrap();
        let plan = &made[0]["Plan"];
        assert_eq!(plan["Node Type"], "Join");
        assert_eq!(plan["Plans"][0]["Plans"][0]["Node Type"], "Leaf");
        assert_eq!(plan["Plans"][1]["Output"][0], "c");
        let xml = as_xml(&["Join: a < b".to_string(), "  Scan: c".to_string()]);
        assert!(
            xml.contains("<Item>a &lt; b</Item>") && xml.matches("</Plan>").count() == 2,
            "{xml}"
        );
        assert_eq!(as_json(&[]).replace(char::is_whitespace, ""), "[{\"Plan\":null}]");
    }
}
