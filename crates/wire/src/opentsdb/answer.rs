//! Answers of OpenTSDB's HTTP API: names, series, samples, and what went wrong.

use super::{labels_of, millis_of};
use crate::Error;
use crate::json_lines::scan::{Fault, Scan};
use crate::number;
use crate::remote_write::encode::MillisSample;
use model::Labels;
use std::collections::BTreeSet;

/// A series of an answer of `/api/query`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answered {
    /// Its metric and tags.
    pub labels: Labels,
    /// In the order of the answer.
    pub samples: Vec<MillisSample>,
    /// When its annotations, and those of no series, begin; with what tells them apart.
    pub annotations: BTreeSet<(String, i64)>,
}

/// Characters of an error that is no object.
const WORDS_LEN_MAX: usize = 200;

fn bad(Fault { offset, expected }: Fault) -> Error {
    Error::malformed("answer of OpenTSDB", offset, expected)
}

/// Reads a list of names: what `/api/suggest` answers.
///
/// # Errors
/// When it is none.
pub fn read_names(text: &[u8]) -> Result<Vec<String>, Error> {
    let (mut names, mut scan) = (Vec::new(), Scan::new(text));
    let read = scan.elements(|scan| {
        names.push(scan.string()?.into_owned());
        Ok(())
    });
    let read = read.and_then(|()| end(&mut scan));
    read.map(|()| names).map_err(bad)
}

/// Reads the numbers of series (TSUIDs): what `/api/search/lookup` answers, where one may come many times.
///
/// # Errors
/// When it is no answer.
pub fn read_tsuids(text: &[u8]) -> Result<BTreeSet<String>, Error> {
    let (mut found, mut scan) = (BTreeSet::new(), Scan::new(text));
    let mut result = |scan: &mut Scan<'_>| {
        scan.members(|scan, name| match name {
            "tsuid" => {
                found.insert(scan.string()?.into_owned());
                Ok(())
            }
            _ => scan.skip(0),
        })
    };
    let read = scan.members(|scan, name| match name {
        "results" => scan.elements(|scan| result(scan)),
        _ => scan.skip(0),
    });
    let read = read.and_then(|()| end(&mut scan));
    read.map(|()| found).map_err(bad)
}

/// Reads the series of an answer of `/api/query`; each is handed on.
///
/// # Errors
/// When it is none, when the server made one series of several, and as `each`.
pub fn read_series<E: From<Error>>(
    text: &[u8],
    each: &mut dyn FnMut(Answered) -> Result<(), E>,
) -> Result<(), E> {
    let (mut scan, mut failed) = (Scan::new(text), None);
    let read = scan.elements(|scan| {
        let given = match series(scan)? {
            Ok(found) => each(found),
            Err(why) => Err(Error::Invalid(why).into()),
        };
        if let Err(error) = given {
            failed = Some(error);
            return scan.fault("no more");
        }
        Ok(())
    });
    match (failed, read) {
        (Some(error), _) => Err(error),
        (None, read) => read.and_then(|()| end(&mut scan)).map_err(|fault| bad(fault).into()),
    }
}

/// That nothing follows: an answer that goes on is another one.
fn end(scan: &mut Scan<'_>) -> Result<(), Fault> {
    match scan.peek() {
        None => Ok(()),
        Some(_) => scan.fault("the end"),
    }
}

/// The status and the words of an answer that says that something went wrong.
pub fn read_error(text: &[u8]) -> Option<(i64, String)> {
    let (mut found, mut scan) = (None, Scan::new(text));
    // What stands behind its words, a trace, may have been cut off.
    let _ = scan.members(|scan, name| match name {
        "error" => {
            found = error_words(scan.text.get(scan.at..).unwrap_or_default());
            scan.skip(0)
        }
        _ => scan.skip(0),
    });
    found
}

/// The status and the words that an object of an error begins with.
fn error_words(text: &[u8]) -> Option<(i64, String)> {
    let (mut code, mut message, mut scan) = (0, None, Scan::new(text));
    let _ = scan.members(|scan, name| {
        match name {
            "code" => code = integer(scan)?,
            "message" => message = Some(scan.string()?.into_owned()),
            _ => scan.skip(0)?,
        }
        Ok(())
    });
    Some((code, message?))
}

fn series(scan: &mut Scan<'_>) -> Result<Result<Answered, String>, Fault> {
    let mut found = Answered::default();
    let (mut metric, mut is_joined, mut wrong) = (None, false, None);
    let mut tags: Vec<(String, String)> = Vec::new();
    scan.members(|scan, name| match name {
        "metric" => {
            metric = Some(scan.string()?.into_owned());
            Ok(())
        }
        // Where it fails behind the first series, it says so among them.
        "error" => {
            let start = scan.at;
            scan.skip(0)?;
            let text = scan.text.get(start..scan.at).unwrap_or_default();
            let words = error_words(text).map_or_else(
                || String::from_utf8_lossy(text).trim().chars().take(WORDS_LEN_MAX).collect(),
                |(_, words)| words,
            );
            wrong = Some(words);
            Ok(())
        }
        "tags" => scan.members(|scan, name| {
            tags.push((name.to_string(), scan.string()?.into_owned()));
            Ok(())
        }),
        "aggregateTags" => scan.elements(|scan| {
            is_joined = true;
            scan.skip(0)
        }),
        "annotations" | "globalAnnotations" => scan.elements(|scan| {
            found.annotations.insert(annotation(scan)?);
            Ok(())
        }),
        "dps" if scan.peek() == Some(b'[') => scan.elements(|scan| pair(scan, &mut found.samples)),
        "dps" => scan.members(|scan, time| {
            let time = number::signed(time.as_bytes()).filter(|time| 0 <= *time);
            let Some(time) = time else { return scan.fault("a time as a member's name") };
            push(&mut found.samples, time, value(scan)?);
            Ok(())
        }),
        _ => scan.skip(0),
    })?;
    if let Some(words) = wrong {
        return Ok(Err(format!("the answer breaks off: {words}")));
    }
    let Some(metric) = metric else { return scan.fault("a series with its metric") };
    if is_joined {
        return Ok(Err(format!("{metric}: the server made one series of several")));
    }
    let pairs = tags.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    Ok(match labels_of(&metric, pairs) {
        Ok(labels) => Ok(Answered { labels, ..found }),
        Err(error) => Err(format!("{metric}: {error}")),
    })
}

fn push(samples: &mut Vec<MillisSample>, time: i64, value: Option<f64>) {
    let millis = millis_of(time);
    samples.extend(value.map(|value| MillisSample { millis, value }));
}

/// A time and a value.
fn pair(scan: &mut Scan<'_>, samples: &mut Vec<MillisSample>) -> Result<(), Fault> {
    let (mut at, mut time) = (0, 0);
    scan.elements(|scan| {
        match at {
            0 => time = integer(scan)?,
            1 => push(samples, time, value(scan)?),
            _ => return scan.fault("a time and a value"),
        }
        at += 1;
        Ok(())
    })?;
    if at == 2 { Ok(()) } else { scan.fault("a time and a value") }
}

fn integer(scan: &mut Scan<'_>) -> Result<i64, Fault> {
    scan.peek();
    let found = number::decimal(scan.text, scan.at);
    let whole = found.as_ref().and_then(|one| number::signed_of(one.integer?, one.is_negative));
    match (found, whole) {
        (Some(found), Some(whole)) if 0 <= whole => {
            scan.at = found.end;
            Ok(whole)
        }
        _ => scan.fault("a whole number"),
    }
}

/// A number; nothing for null. What JSON has no numbers for stands between quotes.
fn value(scan: &mut Scan<'_>) -> Result<Option<f64>, Fault> {
    if scan.peek() == Some(b'"') {
        return match scan.raw_string()? {
            b"NaN" => Ok(Some(f64::NAN)),
            b"Infinity" => Ok(Some(f64::INFINITY)),
            b"-Infinity" => Ok(Some(f64::NEG_INFINITY)),
            _ => scan.fault("a number"),
        };
    }
    if scan.text.get(scan.at..).unwrap_or_default().starts_with(b"null") {
        scan.at += 4;
        return Ok(None);
    }
    match number::decimal(scan.text, scan.at) {
        Some(found) => {
            scan.at = found.end;
            Ok(Some(found.value))
        }
        None => scan.fault("a number"),
    }
}

/// The series and the time of an annotation.
fn annotation(scan: &mut Scan<'_>) -> Result<(String, i64), Fault> {
    let mut found = (String::new(), 0);
    scan.members(|scan, name| {
        match name {
            "tsuid" if scan.peek() == Some(b'"') => found.0 = scan.string()?.into_owned(),
            "startTime" => found.1 = integer(scan)?,
            _ => scan.skip(0)?,
        }
        Ok(())
    })?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Result<Vec<Answered>, Error> {
        let mut found = Vec::new();
        read_series(text.as_bytes(), &mut |one| {
            found.push(one);
            Ok::<(), Error>(())
        })?;
        Ok(found)
    }

    #[test]
    fn both_forms_of_samples_are_read() {
        let text = r#"[{"metric":"a.b","tags":{"host":"x-1/é","dc":"l"},"aggregateTags":[],"tsuids":["01"],
            "annotations":[{"tsuid":"01","description":"d","custom":null,"startTime":5,"endTime":0}],
            "globalAnnotations":[{"tsuid":"","startTime":7},{"startTime":7,"tsuid":null}],
            "dps":{"1788048000000":0.1,"1788048001":9007199254740993,"1788048002000":"NaN"}},
            {"metric":"c","tags":{},"aggregateTags":[],"dps":[[1788048000001,-1.5E300],[1788048000002,"-Infinity"],
            [1788048000003,null], [ 1788048000004 , 4 ]]}]"#;
        let found = all(text).unwrap();
        let expected = [("__name__", "a.b"), ("dc", "l"), ("host", "x-1/é")];
        assert_eq!(found[0].labels, Labels::from_pairs(&expected));
        let pairs = |at: usize| -> Vec<(i64, u64)> {
            let pair = |one: &MillisSample| (one.millis, one.value.to_bits());
            found[at].samples.iter().map(pair).collect()
        };
        let first = [
            (1_788_048_000_000, 0.1),
            (1_788_048_001_000, 2f64.powi(53)),
            (1_788_048_002_000, f64::NAN),
        ];
        assert_eq!(pairs(0), first.map(|(at, value)| (at, f64::to_bits(value))));
        let start = 1_788_048_000_000;
        let second = [(start + 1, -1.5e300), (start + 2, f64::NEG_INFINITY), (start + 4, 4.0)];
        assert_eq!(pairs(1), second.map(|(at, value)| (at, f64::to_bits(value))));
        assert_eq!(found[0].annotations.len(), 2, "of the series and of none");
        assert!(all("[]").unwrap().is_empty());
    }

    #[test]
    fn what_is_no_answer_is_said() {
        let wrong = |text: &str| all(text).unwrap_err().to_string();
        let joined = r#"[{"metric":"a","tags":{},"aggregateTags":["host"],"dps":{}}]"#;
        assert!(wrong(joined).contains("one series of several"));
        assert!(wrong(r#"[{"metric":"a","tags":{},"dps":{"x":1}}]"#).contains("a time"));
        assert!(
            wrong(r#"[{"metric":"a","tags":{},"dps":[[1,2,3]]}]"#).contains("a time and a value")
        );
        assert!(wrong(r#"[{"metric":"a","tags":{"b":"1","b":"2"},"dps":[]}]"#).starts_with("a: "));
        assert!(all(r#"[{"metric":"a","tags":{},"dps":[[1,2]"#).is_err(), "cut short");
        for more in ["[]garbage", "[] []", r#"[{"metric":"a","dps":[]}]{"error":1}"#] {
            assert!(wrong(more).contains("the end"), "{more}");
        }
        let late =
            r#"[{"metric":"a","tags":{},"dps":[]},{"error":{"code":500,"message":"a row lock"}}]"#;
        assert_eq!(wrong(late), "the answer breaks off: a row lock");
        assert_eq!(wrong(r#"[{"error":"x"}]"#), "the answer breaks off: \"x\"");
        assert!(wrong("[{}]").contains("with its metric"), "{}", wrong("[{}]"));
        assert!(read_names(b"[\"a\"]x").is_err() && read_tsuids(b"{\"results\":[]}x").is_err());
        let failed =
            read_series(br#"[{"metric":"a"}]"#, &mut |_| Err(Error::Invalid("mine".to_string())));
        assert_eq!(failed.unwrap_err().to_string(), "mine");
    }

    #[test]
    fn names_numbers_and_words() {
        assert_eq!(read_names(br#"["a","b\u00e9"]"#).unwrap(), ["a", "bé"]);
        assert!(read_names(b"{}").is_err());
        let text = br#"{"type":"LOOKUP","limit":2,"results":[{"tsuid":"01","metric":"m","tags":{"a":"b"}},{"tsuid":"01"}],"totalResults":2}"#;
        assert_eq!(read_tsuids(text).unwrap().len(), 1);
        let text = br#"{"error":{"code":413,"message":"Sorry, more than 1,000","details":"x","trace":"at org.x"#;
        assert_eq!(read_error(text), Some((413, "Sorry, more than 1,000".to_string())));
        assert_eq!(read_error(b"<html>"), None);
    }
}
