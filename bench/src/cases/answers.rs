//! Whether two answers to one query are alike.

use crate::http::Answer;
use anyhow::{Context, Result};
use serde_json::Value;
use std::collections::BTreeMap;

/// What a comparison found.
pub enum Verdict {
    /// The same series with the same points.
    Alike,
    /// Neither server has an answer.
    Refused,
    /// Anything else, described.
    Different(String),
}

/// Points of each series, by its labels' JSON: seconds and value.
type Points = BTreeMap<String, Vec<(f64, f64)>>;

/// Compares two answers; `tolerance` is relative.
///
/// # Errors
/// When an answer is no JSON of Prometheus' API.
pub fn compare(ours: &Answer, theirs: &Answer, tolerance: f64) -> Result<Verdict> {
    let refused = |answer: &Answer| answer.status != 200;
    match (refused(ours), refused(theirs)) {
        (true, true) => return Ok(Verdict::Refused),
        (true, false) => return Ok(Verdict::Different(format!("we refuse: {}", ours.excerpt()))),
        (false, true) => {
            return Ok(Verdict::Different(format!("they refuse: {}", theirs.excerpt())));
        }
        (false, false) => {}
    }
    let (ours, theirs) = (points(ours)?, points(theirs)?);
    if let Some(labels) = theirs.keys().find(|labels| !ours.contains_key(*labels)) {
        let first = theirs[labels].first();
        return Ok(Verdict::Different(format!("we lack {labels}, theirs starts {first:?}")));
    }
    if let Some(labels) = ours.keys().find(|labels| !theirs.contains_key(*labels)) {
        let first = ours[labels].first();
        return Ok(Verdict::Different(format!("they lack {labels}, ours starts {first:?}")));
    }
    for (labels, our_points) in &ours {
        if let Some(how) = first_difference(our_points, &theirs[labels], tolerance) {
            return Ok(Verdict::Different(format!("{labels} {how}")));
        }
    }
    Ok(Verdict::Alike)
}

fn first_difference(ours: &[(f64, f64)], theirs: &[(f64, f64)], tolerance: f64) -> Option<String> {
    for ((our_time, our_value), (their_time, their_value)) in ours.iter().zip(theirs) {
        if our_time != their_time {
            return Some(format!("next point: ours at {our_time}, theirs at {their_time}"));
        }
        if !are_close(*our_value, *their_value, tolerance) {
            return Some(format!("at {our_time}: ours {our_value}, theirs {their_value}"));
        }
    }
    let (our_count, their_count) = (ours.len(), theirs.len());
    (our_count != their_count).then(|| format!("ours {our_count} points, theirs {their_count}"))
}

fn are_close(a: f64, b: f64, tolerance: f64) -> bool {
    let scale = a.abs().max(b.abs()).max(1.0);
    let is_close = scale.is_finite() && (a - b).abs() <= tolerance * scale;
    a == b || (a.is_nan() && b.is_nan()) || is_close
}

fn points(answer: &Answer) -> Result<Points> {
    let json: Value = serde_json::from_slice(&answer.body)?;
    let result = json["data"]["result"].as_array().context("the answer has no result")?;
    if json["data"]["resultType"] == "scalar" {
        return Ok(Points::from([("scalar".to_string(), vec![point(&json["data"]["result"])?])]));
    }
    let mut all = Points::new();
    for series in result {
        // Keys of a map of this library are sorted.
        let labels = series["metric"].to_string();
        let list = match series["values"].as_array() {
            Some(values) => values.iter().map(point).collect::<Result<Vec<_>>>()?,
            None => vec![point(&series["value"])?],
        };
        all.insert(labels, list);
    }
    Ok(all)
}

fn point(pair: &Value) -> Result<(f64, f64)> {
    let time = pair[0].as_f64().context("a point without time")?;
    let value = pair[1].as_str().context("a point without value")?;
    Ok((time, value.parse()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_differences_are_found() {
        let ours = [(1.0, 2.0), (2.0, f64::NAN)];
        assert_eq!(first_difference(&ours, &ours, 0.0), None);
        let close = [(1.0, 2.0 + 1e-13), (2.0, f64::NAN)];
        assert_eq!(first_difference(&ours, &close, 1e-12), None);
        assert!(first_difference(&ours, &close, 0.0).is_some());
        assert!(first_difference(&ours, &ours[..1], 1.0).is_some());
        assert!(first_difference(&ours, &[(1.0, 2.0), (3.0, f64::NAN)], 1.0).is_some());
        assert!(first_difference(&[(1.0, f64::INFINITY)], &[(1.0, 3.0)], 0.1).is_some());
    }
}
