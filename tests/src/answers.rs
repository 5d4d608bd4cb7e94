//! What queries and exports answer, in forms that tests can compare.
//!
//! Numbers stay text wherever text is what the server sends: comparing text compares every bit.

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::collections::BTreeMap;

/// Labels as text, in the order of their names, to the value of an instant query.
pub type Vector = BTreeMap<String, String>;
/// Labels as text to samples: milliseconds and value.
pub type Matrix = BTreeMap<String, Vec<(i64, String)>>;

/// Raw samples: labels as text to samples, milliseconds and value as they were written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Export(pub BTreeMap<String, Vec<(String, String)>>);

impl Export {
    /// Reads JSON lines; the pieces of a series are put together.
    ///
    /// # Errors
    /// When a line is none.
    pub fn parse(text: &str) -> Result<Export> {
        let mut series = BTreeMap::<String, Vec<(String, String)>>::new();
        for line in text.lines() {
            let json: Value = serde_json::from_str(line).with_context(|| line.to_string())?;
            let (timestamps, values) = (items(line, "timestamps")?, items(line, "values")?);
            ensure!(timestamps.len() == values.len(), "{line}");
            let samples = timestamps.into_iter().zip(values);
            series.entry(labels(&json["metric"])).or_default().extend(samples);
        }
        Ok(Export(series))
    }

    /// How many samples there are.
    pub fn len(&self) -> usize {
        self.0.values().map(Vec::len).sum()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The samples of one series, as `timestamp value` each.
    pub fn samples(&self, labels: &str) -> Vec<String> {
        let samples = self.0.get(labels).map(Vec::as_slice).unwrap_or_default();
        samples.iter().map(|(timestamp, value)| format!("{timestamp} {value}")).collect()
    }
}

/// The items of an array of numbers in a line, as they are written; values hold no commas.
fn items(line: &str, name: &str) -> Result<Vec<String>> {
    let start = format!("\"{name}\":[");
    let (_, rest) = line.rsplit_once(&start).with_context(|| format!("no {name} in {line}"))?;
    let (list, _) = rest.split_once(']').with_context(|| format!("no end in {line}"))?;
    Ok(list.split(',').filter(|item| !item.is_empty()).map(str::to_string).collect())
}

/// `{"__name__":"a","job":"b"}` is `a{job="b"}`.
pub fn labels(metric: &Value) -> String {
    let Some(metric) = metric.as_object() else { return "?".to_string() };
    let name = metric.get("__name__").and_then(Value::as_str).unwrap_or("");
    let rest: BTreeMap<&String, &Value> =
        metric.iter().filter(|(name, _)| *name != "__name__").collect();
    let rest: Vec<String> =
        rest.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
    format!("{name}{{{}}}", rest.join(","))
}

/// The `data` of an instant query.
pub(crate) fn vector(data: &Value) -> Result<Vector> {
    ensure!(data["resultType"] == "vector", "no vector: {data}");
    let result = data["result"].as_array().context("result")?;
    let mut found = Vector::new();
    for sample in result {
        let value = sample["value"][1].as_str().context("value")?;
        let before = found.insert(labels(&sample["metric"]), value.to_string());
        ensure!(before.is_none(), "twice: {sample}");
    }
    Ok(found)
}

/// The `data` of a query that answers with ranges.
pub(crate) fn matrix(data: &Value) -> Result<Matrix> {
    ensure!(data["resultType"] == "matrix", "no matrix: {data}");
    let mut found = Matrix::new();
    for series in data["result"].as_array().context("result")? {
        let mut samples = Vec::new();
        for sample in series["values"].as_array().context("values")? {
            let seconds = sample[0].as_f64().context("timestamp")?;
            let value = sample[1].as_str().context("value")?;
            samples.push(((seconds * 1e3).round() as i64, value.to_string()));
        }
        found.insert(labels(&series["metric"]), samples);
    }
    Ok(found)
}

/// The path of an instant query at a time in seconds.
pub fn instant_path(query: &str, time: f64) -> String {
    format!("/api/v1/query?query={}&time={time:.3}", percent(query))
}

/// Text as a part of a path or a form.
pub fn percent(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}
