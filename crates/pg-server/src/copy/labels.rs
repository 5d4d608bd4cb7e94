//! What a session's settings do to the labels of what it copies.
//!
//! Final labels are those of a line, without those to be removed, with those appended, with
//! `instance` and `job`. A label of the line with the name of an appended one gives way to it.

use crate::session::settings::Settings;
use wire::ExtraLabels;

/// Where these settings come from: both extensions have them.
const PREFIXES: [&str; 2] = ["pg_prometheus", "pg_prometheus_cx"];

/// The labels that a session adds, and those it takes away: they are empty. `own` is one that all samples of a table
/// have.
///
/// # Errors
/// In words, when a setting cannot be understood.
pub fn of(settings: &Settings, own: Option<(&str, String)>) -> Result<ExtraLabels, String> {
    let get = |name: &str| {
        let mut all =
            PREFIXES.iter().rev().filter_map(|prefix| settings.get(&format!("{prefix}.{name}")));
        all.find(|value| !value.is_empty())
    };
    let mut pairs: Vec<(String, String)> = Vec::new();
    if let Some(text) = get("remove_labels") {
        pairs.extend(array(text, "remove_labels")?.into_iter().map(|name| (name, String::new())));
    }
    if let Some(text) = get("append_labels") {
        pairs.extend(appended(text)?);
    }
    for (setting, label) in [("instance_label", "instance"), ("job_label", "job")] {
        pairs.extend(get(setting).map(|value| (label.to_string(), value.to_string())));
    }
    // Behind the others: no setting takes it away.
    pairs.extend(own.map(|(name, value)| (name.to_string(), value)));
    ExtraLabels::new(&pairs).map_err(|error| error.to_string())
}

/// `{"name": "value"}`, or `{name=value,other=value}`.
fn appended(text: &str) -> Result<Vec<(String, String)>, String> {
    let as_object: Result<serde_json::Map<String, serde_json::Value>, _> =
        serde_json::from_str(text);
    if let Ok(map) = as_object {
        return map
            .into_iter()
            .map(|(name, value)| match value {
                serde_json::Value::String(value) => Ok((name, value)),
                other => {
                    Err(format!("append_labels: the value of {name:?} is {other}, not a string"))
                }
            })
            .collect();
    }
    array(text, "append_labels")?
        .into_iter()
        .map(|pair| match pair.split_once('=') {
            Some((name, value)) => Ok((name.trim().to_string(), value.trim().to_string())),
            None => Err(format!(
                "append_labels: {pair:?} is not name=value; an object such as {{\"a\": \"b\"}} is taken, too"
            )),
        })
        .collect()
}

/// PostgreSQL's literal of an array of texts: `{a,"b c"}`.
fn array(text: &str, setting: &str) -> Result<Vec<String>, String> {
    let all = sql::array_of(text);
    let all = all.ok_or_else(|| format!("{setting}: {text:?} is no list such as {{a,b}}"))?;
    Ok(all.into_iter().flatten().filter(|one| !one.is_empty()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> Result<Vec<(String, String)>, String> {
        let mut settings = Settings::default();
        for (name, value) in pairs {
            settings.set(name, value).unwrap();
        }
        let extra = of(&settings, None)?;
        Ok(extra.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect())
    }

    fn owned(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
    }

    #[test]
    fn all_four_do_something() {
        let found = labels(&[
            ("pg_prometheus.append_labels", r#"{"env": "dev", "x": "1"}"#),
            ("pg_prometheus.remove_labels", "{x, \"a b\"}"),
            ("pg_prometheus_cx.instance_label", "h:9100"),
            ("pg_prometheus_cx.job_label", "node"),
        ]);
        let expected =
            [("a b", ""), ("env", "dev"), ("instance", "h:9100"), ("job", "node"), ("x", "1")];
        assert_eq!(found.unwrap(), owned(&expected));
        let found = labels(&[("pg_prometheus_cx.append_labels", "{a=b,c=d}")]);
        assert_eq!(found.unwrap(), owned(&[("a", "b"), ("c", "d")]));
        assert_eq!(labels(&[("pg_prometheus.append_labels", "{}")]).unwrap(), owned(&[]));
    }

    #[test]
    fn what_is_not_understood_is_said() {
        for value in ["{a}", "[1]", "{\"a\": 1}", "{\"a", "a=b"] {
            let found = labels(&[("pg_prometheus.append_labels", value)]);
            assert!(found.is_err_and(|words| words.contains("append_labels")), "{value}");
        }
    }
}
