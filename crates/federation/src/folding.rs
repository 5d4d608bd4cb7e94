//! Aggregations that a VictoriaMetrics makes itself: a number for each group and step comes, and no
//! samples (decision 50).
//!
//! Only what it makes of the same samples as we would: rollups of windows that are written out, by
//! labels that are named. Where it refuses, its samples are asked for instead.

use super::backend::Request;
use super::faults::is_refusal;
use super::lists::LabelsOf;
use super::rule::{Aggregates, Kind, Rule};
use super::{matrix, selector};
use anyhow::{Context as _, bail, ensure};
use http_client::client::encode;
use model::sample::NANOS_PER_MILLI;
use model::{Labels, MatchOp, Matcher, Timestamp};
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::borrow::Cow;
use std::fmt;
use store::{Asked, Fold, FoldedRow, SeriesFold, WindowFold};

/// Where a query over a range is answered.
const PATH: &str = "/api/v1/query_range";
/// What a row takes besides its numbers, in samples of 16 bytes.
const ROW_WEIGHT: usize = 8;
/// Bytes of an answer, which is read as a whole; of more groups and steps samples are the lesser evil.
const ANSWER_SIZE_MAX: usize = 32 << 20;
/// How long ago the last step must be: of what is newer than its own clock it makes something else.
const AGE_MIN_MS: i64 = 5 * 60 * 1000;

/// More than aggregates may take: its samples are asked for instead.
#[derive(Debug, thiserror::Error)]
#[error("too large for an aggregate")]
struct Unfit;

/// Whether it is asked at all, now, in nanoseconds.
pub fn can(rule: &Rule, fold: &Fold<'_>, now: Timestamp) -> bool {
    let age_ms = (now / NANOS_PER_MILLI).saturating_sub(fold.at_ms(fold.len - 1));
    let is_there = rule.kind == Kind::VictoriaMetrics && rule.aggregates == Aggregates::There;
    let times = [fold.step_ms, fold.at_ms(0), fold.at_ms(fold.len - 1)];
    is_there && AGE_MIN_MS <= age_ms && times.into_iter().all(is_said_exactly)
}

/// Whether a VictoriaMetrics takes a time in seconds for these milliseconds: it multiplies by a thousand
/// and cuts, so that a step of 1.001 s is one of 1,000 ms.
fn is_said_exactly(millis: i64) -> bool {
    (millis as f64 / 1000.0 * 1000.0) as i64 == millis
}

/// The groups' rows; `None` where it cannot make them.
pub fn fold(
    request: &mut Request<'_>,
    fold: &Fold<'_>,
    asked: &Asked<'_>,
) -> anyhow::Result<Option<Vec<FoldedRow>>> {
    let Some(text) = text_of(fold, asked) else { return Ok(None) };
    // Neither what it keeps of other answers nor what came too lately to be shown is to count.
    let query = format!(
        "query={}&start={}&end={}&step={}&nocache=1&latency_offset=1ms&deny_partial_response=1",
        encode(&text),
        seconds(fold.at_ms(0)),
        seconds(fold.at_ms(fold.len - 1)),
        seconds(fold.step_ms),
    );
    let mut answer = Vec::new();
    let came = request.stream(PATH, &query, asked, &mut |bytes| {
        ensure!(answer.len() + bytes.len() <= ANSWER_SIZE_MAX, Unfit);
        answer.extend_from_slice(bytes);
        Ok(())
    });
    let (row_weight, weight_max) = (fold.len / 2 + ROW_WEIGHT, request.bounds().weight_max());
    let mut take = |rows: usize| {
        let weight = rows.saturating_mul(row_weight);
        ensure!(rows <= asked.series_max && weight <= weight_max, Unfit);
        Ok(())
    };
    match came.and_then(|_| parse(&answer, fold, &mut take)) {
        Ok(rows) => {
            request.note_aggregate();
            Ok(Some(rows))
        }
        Err(error) if is_refusal(&error) || error.is::<Unfit>() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether a regular expression has a dot that stands for any one character: some servers are told
/// to take it for itself, but in `.*` and `.+`.
fn has_lone_dot(matcher: &Matcher) -> bool {
    let is_regex = matches!(matcher.op, MatchOp::Regex | MatchOp::NotRegex);
    let without = [r"\\", r"\.", ".*", ".+"];
    let rest = without.iter().fold(matcher.value.clone(), |text, part| text.replace(part, ""));
    is_regex && rest.contains('.')
}

/// The aggregation in MetricsQL, where its labels can be named there.
fn text_of(fold: &Fold<'_>, asked: &Asked<'_>) -> Option<String> {
    let texts = selector::texts(Kind::VictoriaMetrics, asked.sets);
    let [selector] = texts.as_slice() else { return None };
    let is_plain = |name: &String| {
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        name.bytes().all(is_word) && name.starts_with(|c: char| !c.is_ascii_digit())
    };
    if !fold.by.iter().all(is_plain) || asked.sets.iter().flatten().any(has_lone_dot) {
        return None;
    }
    let series = match fold.series {
        SeriesFold::Min => "min",
        SeriesFold::Max => "max",
        SeriesFold::Sum => "sum",
        SeriesFold::Avg => "avg",
        SeriesFold::Count => "count",
        SeriesFold::Group => "group",
    };
    let window = match fold.window {
        WindowFold::Min => "min",
        WindowFold::Max => "max",
        WindowFold::Avg => "avg",
        WindowFold::Last => "last",
    };
    let (by, window_ms) = (fold.by.join(","), fold.window_ms);
    Some(format!("{series}({window}_over_time({selector}[{window_ms}ms])) by ({by})"))
}

/// Milliseconds as seconds, exactly.
fn seconds(millis: i64) -> String {
    let sign = if millis < 0 { "-" } else { "" };
    let millis = millis.unsigned_abs();
    format!("{sign}{}.{:03}", millis / 1000, millis % 1000)
}

/// An answer's rows. `take` is told before each how many there are before it.
fn parse(
    text: &[u8],
    fold: &Fold<'_>,
    take: &mut dyn FnMut(usize) -> anyhow::Result<()>,
) -> anyhow::Result<Vec<FoldedRow>> {
    // What it does not allow is read once more, for the reason.
    let mut allows = |rows: usize| take(rows).is_ok();
    let quick = std::str::from_utf8(text).ok();
    if let Some(rows) = quick.and_then(|text| matrix::rows(text, fold, &mut allows)) {
        return Ok(rows);
    }
    let mut reading = Reading { fold, take, rows: Vec::new(), failed: None };
    let mut reply = Reply::default();
    let mut json = serde_json::Deserializer::from_slice(text);
    let part = Part { of: Of::Answer(&mut reply), reading: &mut reading };
    let read = part.deserialize(&mut json).and_then(|()| json.end());
    if let Some(error) = reading.failed {
        return Err(error);
    }
    read.context("not the JSON that was expected")?;
    ensure!(!reply.is_partial, "a part of its cluster does not answer");
    match reply.status.as_str() {
        "success" => {
            ensure!(reply.is_matrix && reply.has_rows, "not the JSON that was expected: no matrix");
            Ok(reading.rows)
        }
        _ => bail!(
            "it answers with the status {:?}",
            reply.status.chars().take(32).collect::<String>()
        ),
    }
}

/// What an answer says of itself.
#[derive(Default)]
struct Reply {
    status: String,
    is_partial: bool,
    is_matrix: bool,
    has_rows: bool,
}

/// What is read of an answer so far.
struct Reading<'r> {
    fold: &'r Fold<'r>,
    take: &'r mut dyn FnMut(usize) -> anyhow::Result<()>,
    rows: Vec<FoldedRow>,
    /// Which limit ended it.
    failed: Option<anyhow::Error>,
}

/// A part of an answer, read into it.
struct Part<'p, 'r> {
    of: Of<'p>,
    reading: &'p mut Reading<'r>,
}

enum Of<'p> {
    /// `{"status": .., "data": ..}`
    Answer(&'p mut Reply),
    /// `{"resultType": .., "result": ..}`
    Data(&'p mut Reply),
    /// `[row, ..]`
    Rows,
    /// `{"metric": .., "values": ..}`
    Row,
    /// `[[time, "value"], ..]`, the last row's.
    Points,
}

impl<'de> DeserializeSeed<'de> for Part<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        match self.of {
            Of::Answer(_) | Of::Data(_) | Of::Row => deserializer.deserialize_map(self),
            Of::Rows | Of::Points => deserializer.deserialize_seq(self),
        }
    }
}

impl<'de> Visitor<'de> for Part<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a matrix")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Part { mut of, reading } = self;
        while let Some(name) = map.next_key::<Cow<'de, str>>()? {
            match (&mut of, &*name) {
                (Of::Answer(reply), "status") if reply.status.is_empty() => {
                    reply.status = map.next_value()?;
                }
                (Of::Answer(reply), "isPartial") => reply.is_partial |= map.next_value::<bool>()?,
                (Of::Answer(reply), "data") => {
                    map.next_value_seed(Part { of: Of::Data(reply), reading })?;
                }
                (Of::Data(reply), "resultType") => {
                    reply.is_matrix = map.next_value::<Cow<'de, str>>()? == "matrix";
                }
                (Of::Data(reply), "result") if !reply.has_rows => {
                    reply.has_rows = true;
                    map.next_value_seed(Part { of: Of::Rows, reading })?;
                }
                (_, "status" | "result") => {
                    return Err(Error::custom("a name that is there twice"));
                }
                (Of::Row, "metric") => {
                    let LabelsOf(labels) = map.next_value()?;
                    last(reading)?.labels = labels;
                }
                (Of::Row, "values") => map.next_value_seed(Part { of: Of::Points, reading })?,
                _ => {
                    let IgnoredAny = map.next_value()?;
                }
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        let reading = self.reading;
        if let Of::Points = self.of {
            while let Some((time, value)) = entries.next_element::<(f64, Cow<'de, str>)>()? {
                let value =
                    value.parse().map_err(|_| Error::custom("a value that is no number"))?;
                let step = step_of(time, reading.fold);
                let values = &mut last::<A::Error>(reading)?.values;
                let place = step.and_then(|step| values.get_mut(step));
                *place.ok_or_else(|| Error::custom("a time that was not asked for"))? = value;
            }
            return Ok(());
        }
        loop {
            // An empty one first: what it takes counts before it is taken.
            if let Err(error) = (reading.take)(reading.rows.len()) {
                reading.failed = Some(error);
                return Err(Error::custom("more than may be"));
            }
            let values = vec![f64::NAN; reading.fold.len];
            reading.rows.push(FoldedRow { labels: Labels::default(), values });
            if entries.next_element_seed(Part { of: Of::Row, reading })?.is_none() {
                reading.rows.pop();
                return Ok(());
            }
        }
    }
}

fn last<'x, E: Error>(reading: &'x mut Reading<'_>) -> Result<&'x mut FoldedRow, E> {
    reading.rows.last_mut().ok_or_else(|| Error::custom("a row outside of the list"))
}

/// The step of a time in seconds; `None` of one that is none.
fn step_of(time: f64, fold: &Fold<'_>) -> Option<usize> {
    matrix::step_at((time * 1000.0).round() as i64, fold)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::parse as parse_rule;
    use model::{METRIC_NAME, TimeRange};
    use store::{Lacks, Taken};

    fn fold(by: &[String]) -> Fold<'_> {
        let (window, series) = (WindowFold::Avg, SeriesFold::Max);
        Fold { window, window_ms: 90_000, series, by, start_ms: 1_500, step_ms: 500, len: 3 }
    }

    #[test]
    fn steps_that_would_be_cut_are_told() {
        for exact in [1, 999, 1000, 60_000, 300_000, 86_400_000, 1_700_000_000_000] {
            assert!(is_said_exactly(exact), "{exact}");
        }
        for cut in [1001, 1003, 2002, 2006] {
            assert!(!is_said_exactly(cut), "{cut}");
        }
    }

    #[test]
    fn texts_ask_for_what_is_wanted() {
        let (taken, lacks) = (Taken::default(), Lacks::default());
        let sets =
            [vec![Matcher::equal(METRIC_NAME, "cpu"), Matcher::new("h", MatchOp::Regex, "a|b")]];
        let range = TimeRange::new(0, 1);
        let (taken, lacks) = (&taken, &lacks);
        let mut asked = Asked { sets: &sets, range, deadline: None, series_max: 9, taken, lacks };
        let text = |by: &[&str], asked: &Asked<'_>| {
            let by: Vec<String> = by.iter().map(ToString::to_string).collect();
            text_of(&fold(&by), asked)
        };
        let expected = r#"max(avg_over_time({__name__="cpu",h=~"a|b"}[90000ms])) by (h,__name__)"#;
        assert_eq!(text(&["h", "__name__"], &asked).as_deref(), Some(expected));
        assert_eq!(text(&["a.b"], &asked), None, "it has no word for that label");
        for (value, is_asked) in [("a.b", false), (r"a\.b|c.*d.+", true), (r"a\\.b", false)] {
            let dotted = [vec![Matcher::new("h", MatchOp::Regex, value)]];
            let asked = Asked { sets: &dotted, ..asked };
            assert_eq!(text(&[], &asked).is_some(), is_asked, "{value}");
        }
        let two = [sets[0].clone(), sets[0].clone()];
        asked.sets = &two;
        assert_eq!(text(&[], &asked), None, "several selectors");
        assert_eq!([seconds(-1_500), seconds(1_788_048_000_025)], ["-1.500", "1788048000.025"]);
    }

    #[test]
    fn answers_are_rows_or_none() {
        let by = ["h".to_string()];
        let fold = fold(&by);
        let read = |result: &str| {
            let text = format!(
                r#"{{"status":"success","data":{{"resultType":"matrix","result":[{result}]}}}}"#
            );
            parse(text.as_bytes(), &fold, &mut |_| Ok(()))
        };
        let rows = read(
            r#"{"metric":{"h":"a"},"values":[[1.5,"1"],[2.5,"+Inf"]]},{"metric":{},"values":[[2,"-3e-2"]]}"#,
        );
        let rows = rows.expect("rows");
        assert_eq!(rows[0].labels, Labels::from_pairs(&[("h", "a")]));
        assert_eq!((rows[0].values[0], rows[0].values[2]), (1.0, f64::INFINITY));
        assert!(rows[0].values[1].is_nan() && rows[1].labels.is_empty());
        assert_eq!(rows[1].values[1], -0.03);
        assert!(read("").expect("none").is_empty());
        for bad in [
            r#"{"metric":{"h":"a"},"values":[[1.6,"1"]]}"#,
            r#"{"metric":{"h":"a"},"values":[[1,"1"]]}"#,
            r#"{"metric":{"h":"a"},"values":[[3,"1"]]}"#,
            r#"{"metric":{"h":"a"},"values":[[1e300,"1"]]}"#,
            r#"{"metric":{"h":"a"},"values":[[-1e300,"1"]]}"#,
            r#"{"metric":{"h":"a"},"values":[[1.5,"x"]]}"#,
            r#"{"metric":{"h":"a"},"values":[[1.5,"1"]"#,
            r#"[{"metric":{}}]"#,
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
        for bad in [
            "",
            "<html>",
            r#"{"status":"error"}"#,
            r#"{"status":"success"}"#,
            r#"{"status":"success","isPartial":true}"#,
            r#"{"status":"success","data":{"resultType":"vector","result":[]}}"#,
            r#"{"status":"success","data":{"resultType":"matrix"}}"#,
            r#"{"status":"error","status":"success","data":{"resultType":"matrix","result":[]}}"#,
            r#"{"isPartial":true,"isPartial":false,"status":"success","data":{"resultType":"matrix","result":[]}}"#,
        ] {
            assert!(parse(bad.as_bytes(), &fold, &mut |_| Ok(())).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_limit_ends_it() {
        let fold = fold(&[]);
        let rows = r#"{},"#.repeat(100);
        let text = format!(r#"{{"status":"success","data":{{"result":[{rows}"#);
        let mut seen = 0;
        let error = parse(text.as_bytes(), &fold, &mut |rows| {
            seen = rows;
            ensure!(rows < 10, "the limit");
            Ok(())
        });
        assert_eq!((seen, error.expect_err("a limit").to_string().as_str()), (10, "the limit"));
    }

    #[test]
    fn a_rule_may_want_samples() {
        let rule = "url=http://a kind=victoriametrics until=1";
        assert_eq!(parse_rule(rule).expect("a rule")[0].aggregates, Aggregates::There);
        let here = parse_rule(&format!("{rule} aggregates=here")).expect("a rule");
        assert_eq!(here[0].aggregates, Aggregates::Here);
        let (there, fold) = (parse_rule(rule).expect("a rule"), fold(&[]));
        let later = (fold.at_ms(2) + AGE_MIN_MS) * NANOS_PER_MILLI;
        let can = [(&there[0], later), (&there[0], later - 1_000_000), (&here[0], later)];
        assert_eq!(can.map(|(rule, now)| super::can(rule, &fold, now)), [true, false, false]);
    }
}
