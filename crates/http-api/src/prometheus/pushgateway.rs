//! Pushgateway's paths: text in, with the labels of its group in the path, and an end to a group.

use super::exposition;
use super::push_path::labels_of_path;
use crate::http::answer::Answer;
use crate::http::request::Request;
use app::App;
use hyper::StatusCode;
use model::{Matcher, TimeRange};
use net::failure::Failure;
use std::sync::Arc;

/// `POST /metrics/job/...`, where Pushgateway's clients expect 200.
pub fn push(app: &Arc<App>, request: &Request) -> Result<Answer, Failure> {
    let labels = labels_of_group(&request.captured)?;
    exposition::store(app, request, labels, Answer::bytes(StatusCode::OK, "", Vec::new()))
}

/// `DELETE /metrics/job/...`, where Pushgateway's clients expect 202: the series of a group, of all
/// time.
///
/// A series does not know which of its labels were its group's, so those of groups with more labels
/// go as well; but a group without `instance` has it empty, as in Pushgateway.
pub fn delete(app: &Arc<App>, request: &Request) -> Result<Answer, Failure> {
    let series =
        app.store.delete(&[group(&request.captured)?], TimeRange::new(i64::MIN, i64::MAX))?;
    tracing::info!(series, "deleted the series of a group on request");
    Ok(Answer::bytes(StatusCode::ACCEPTED, "", Vec::new()))
}

/// The matchers of a group's series.
fn group(captured: &str) -> Result<Vec<Matcher>, Failure> {
    let mut labels = labels_of_group(captured)?;
    if !labels.iter().any(|(name, _)| name == "instance") {
        labels.insert(0, ("instance".to_string(), String::new()));
    }
    Ok(labels.into_iter().map(|(name, value)| Matcher::equal(name, value)).collect())
}

/// The labels of a group's path, each once: of two with one name the last counts.
fn labels_of_group(captured: &str) -> Result<Vec<(String, String)>, Failure> {
    let mut labels: Vec<(String, String)> = Vec::new();
    for (name, value) in labels_of_path(captured)? {
        labels.retain(|(known, _)| *known != name);
        labels.push((name, value));
    }
    if !labels.iter().any(|(name, value)| name == "job" && !value.is_empty()) {
        return Err(Failure::bad_input("a group has a job, which is not empty"));
    }
    Ok(labels)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(captured: &str, expected: &[(&str, &str)]) {
        let matchers = group(captured).expect("a group");
        let pairs: Vec<(&str, &str)> =
            matchers.iter().map(|one| (one.name.as_str(), one.value.as_str())).collect();
        assert_eq!(pairs, expected);
    }

    #[test]
    fn groups() {
        check("/j", &[("instance", ""), ("job", "j")]);
        check("/j/instance/a", &[("job", "j"), ("instance", "a")]);
        check("@base64/YS9i/x/1/x/2", &[("instance", ""), ("job", "a/b"), ("x", "2")]);
        for bad in ["", "/", "//instance/a", "@base64/=", "/j/job@base64/=", "/j/x"] {
            assert!(group(bad).is_err(), "{bad}");
        }
    }
}
