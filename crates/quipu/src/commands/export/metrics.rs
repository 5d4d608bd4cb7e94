//! The metrics that an export has, and requests for one of them.

use super::{Asked, reply_of};
use anyhow::Context as _;
use bytes::Bytes;
use cli::calendar::rfc3339;
use http_client::client::{Client, encode};
use hyper::Method;
use model::{METRIC_NAME, MatchOp, Matcher, Timestamp};
use promql::matchers_of;
use serde::Deserialize;
use wire::influx::TEXT_SUFFIX;

/// The parameters that say which time of an export is meant, first and last instant.
pub fn time_of(asked: &Asked, start: Timestamp, end: Timestamp) -> String {
    let (start, end) = (encode(&rfc3339(start)), encode(&rfc3339(end)));
    // Without the parameter the answer breaks off where damage is found.
    let denies = u8::from(!asked.is_partial_fine);
    format!("start={start}&end={end}&deny_partial_response={denies}")
}

/// The path of all samples of a time.
pub fn export_path(asked: &Asked, start: Timestamp, end: Timestamp) -> String {
    let mut path = format!("/api/v1/export?{}", time_of(asked, start, end));
    for matcher in &asked.matchers {
        path.push_str(&format!("&match[]={}", encode(matcher)));
    }
    path
}

/// The path of the samples of one metric.
///
/// # Errors
/// When a selector is none.
pub fn metric_path(
    asked: &Asked,
    (start, end): (Timestamp, Timestamp),
    name: &str,
) -> anyhow::Result<String> {
    let mut path = format!("/api/v1/export?{}", time_of(asked, start, end));
    for matcher in &asked.matchers {
        let is_it = Matcher::new(METRIC_NAME, MatchOp::Equal, name);
        path.push_str(&format!("&match[]={}", encode(&selector_of(matcher, is_it)?)));
    }
    Ok(path)
}

/// The metrics that may have samples of a time, sorted.
///
/// # Errors
/// When the server does not say.
pub fn names(
    client: &mut Client,
    asked: &Asked,
    (start, end): (Timestamp, Timestamp),
) -> anyhow::Result<Vec<String>> {
    let mut path = format!("/api/v1/label/__name__/values?{}", time_of(asked, start, end));
    for matcher in &asked.matchers {
        path.push_str(&format!("&match[]={}", encode(matcher)));
    }
    #[derive(Deserialize)]
    struct Names {
        data: Vec<String>,
    }
    let mut names: Names = serde_json::from_slice(&answer(client, &path)?)?;
    names.data.sort_unstable();
    Ok(names.data)
}

/// The metrics of strings that may have samples of a time, sorted.
///
/// # Errors
/// When the server does not say, or a selector is none.
pub fn names_of_strings(client: &mut Client, asked: &Asked) -> anyhow::Result<Vec<String>> {
    let is_text = || Matcher::new(METRIC_NAME, MatchOp::Regex, format!(".+{TEXT_SUFFIX}"));
    let matchers = asked.matchers.iter().map(|one| selector_of(one, is_text()));
    let matchers = matchers.collect::<anyhow::Result<_>>()?;
    let of_strings = Asked { matchers, ..asked.clone() };
    names(client, &of_strings, (asked.start, asked.end))
}

/// The whole answer to a path.
///
/// # Errors
/// When there is none.
pub fn answer(client: &mut Client, path: &str) -> anyhow::Result<Vec<u8>> {
    let mut text = Vec::new();
    let mut collect = |bytes: &[u8]| {
        text.extend_from_slice(bytes);
        Ok(())
    };
    reply_of(client.send(Method::GET, path, Bytes::new(), &mut collect))?;
    Ok(text)
}

/// The selector, of the metrics alone that a matcher chooses.
fn selector_of(text: &str, of_names: Matcher) -> anyhow::Result<String> {
    let parsed = promql::parse_listing(text).with_context(|| format!("--match {text}"))?;
    let matchers = matchers_of(parsed);
    let mut matchers = matchers.with_context(|| format!("--match {text}: it is no selector"))?;
    matchers.push(of_names);
    let quoted = |text: &str| {
        format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
    };
    let shown = |matcher: &Matcher| {
        let op = match matcher.op {
            MatchOp::Equal => "=",
            MatchOp::NotEqual => "!=",
            MatchOp::Regex => "=~",
            MatchOp::NotRegex => "!~",
        };
        let is_plain = matcher.name.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'_');
        let label = if is_plain { matcher.name.clone() } else { quoted(&matcher.name) };
        format!("{label}{op}{}", quoted(&matcher.value))
    };
    let all: Vec<String> = matchers.iter().map(shown).collect();
    Ok(format!("{{{}}}", all.join(",")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_are_of_one_metric() {
        let named = |name: &str| Matcher::new(METRIC_NAME, MatchOp::Equal, name);
        let text = "up{job=~\"a\\\\.b\",\"a.b\"!=\"c\\\"\"}";
        let selector = selector_of(text, named("up\\\n")).unwrap();
        let matchers = matchers_of(promql::parse_listing(&selector).unwrap()).unwrap();
        let found: Vec<_> = matchers.iter().map(|one| (one.name.as_str(), &*one.value)).collect();
        for expected in
            [("__name__", "up"), ("__name__", "up\\\n"), ("job", "a\\.b"), ("a.b", "c\"")]
        {
            assert!(found.contains(&expected), "{selector}");
        }
        assert!(selector_of("sum(up)", named("up")).is_err());
    }
}
