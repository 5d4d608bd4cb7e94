//! The lists of a backend's JSON: `{"status": "success", "data": [..]}`, no more of them in memory than may be.

use anyhow::{Context as _, bail, ensure};
use model::{Labels, LabelsBuilder};
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess,
    Visitor,
};
use std::borrow::Cow;
use std::fmt;

/// Labels of a series that is read.
const LABELS_MAX: usize = 4096;

/// An answer, read up to a bound of its list.
struct Reply<T> {
    status: String,
    is_partial: bool,
    list: Vec<T>,
}

/// The list of an answer; of one that has more than `max` entries the first of them, for a few bytes of
/// text may be hundreds in memory.
pub fn parse<T: DeserializeOwned>(text: &[u8], max: usize) -> anyhow::Result<Vec<T>> {
    let mut reply = Reply { status: String::new(), is_partial: false, list: Vec::new() };
    let mut json = serde_json::Deserializer::from_slice(text);
    let read = Filling { reply: &mut reply, max }.deserialize(&mut json).and_then(|()| json.end());
    if max <= reply.list.len() {
        return Ok(reply.list);
    }
    read.context("not the JSON that was expected")?;
    ensure!(!reply.is_partial, "a part of its cluster does not answer");
    match reply.status.as_str() {
        "success" => Ok(reply.list),
        _ => bail!(
            "it answers with the status {:?}",
            reply.status.chars().take(32).collect::<String>()
        ),
    }
}

/// Fills an answer; fails behind the last entry that may be.
struct Filling<'r, T> {
    reply: &'r mut Reply<T>,
    max: usize,
}

impl<'de, T: DeserializeOwned> DeserializeSeed<'de> for Filling<'_, T> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, T: DeserializeOwned> Visitor<'de> for Filling<'_, T> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an answer")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Filling { reply, max } = self;
        while let Some(name) = map.next_key::<Cow<'de, str>>()? {
            match &*name {
                "status" => reply.status = map.next_value()?,
                "isPartial" => reply.is_partial = map.next_value()?,
                "data" => map.next_value_seed(List { list: &mut reply.list, max })?,
                _ => {
                    let IgnoredAny = map.next_value()?;
                }
            }
        }
        Ok(())
    }
}

struct List<'r, T> {
    list: &'r mut Vec<T>,
    max: usize,
}

impl<'de, T: DeserializeOwned> DeserializeSeed<'de> for List<'_, T> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, T: DeserializeOwned> Visitor<'de> for List<'_, T> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    /// `null`: there is none.
    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        while let Some(entry) = entries.next_element()? {
            self.list.push(entry);
            if self.max <= self.list.len() {
                return Err(Error::custom("more than may be"));
            }
        }
        Ok(())
    }
}

/// The labels of a series.
pub struct LabelsOf(pub Labels);

impl<'de> serde::Deserialize<'de> for LabelsOf {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<LabelsOf, D::Error> {
        deserializer.deserialize_map(Pairs)
    }
}

struct Pairs;

impl<'de> Visitor<'de> for Pairs {
    type Value = LabelsOf;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<LabelsOf, A::Error> {
        let (mut labels, mut count) = (LabelsBuilder::new(), 0);
        while let Some((name, value)) = map.next_entry::<Cow<'de, str>, Cow<'de, str>>()? {
            count += 1;
            if LABELS_MAX < count {
                return Err(Error::custom("a series with more than 4096 labels"));
            }
            labels.push(&name, &value);
        }
        Ok(LabelsOf(labels.finish()))
    }
}

const _: () = assert!(LABELS_MAX == 4096);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_or_refused() {
        let names = |text: &str| parse::<String>(text.as_bytes(), 10);
        let good = r#"{"status":"success","isPartial":false,"data":["a","b"],"warnings":["x"]}"#;
        assert_eq!(names(good).expect("names"), ["a", "b"]);
        assert!(names(r#"{"status":"success","data":null}"#).expect("none").is_empty());
        for bad in [
            r#"{"status":"success","isPartial":true,"data":[]}"#,
            r#"{"status":"error","errorType":"x","error":"y"}"#,
            r#"{"status":"success","data":{"a":1}}"#,
            r#"{"status":"success","data":["#,
            "<html>",
        ] {
            assert!(names(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn no_more_is_read_than_may_be() {
        let all = format!(r#"{{"status":"success","data":[{}"#, r#"{"a":""},"#.repeat(1000));
        let found = parse::<LabelsOf>(all.as_bytes(), 5).expect("some of them");
        assert_eq!(found.len(), 5);
        let one = r#"{"status":"success","data":[{"b":"2","a":"1","c":""}]}"#;
        let found = parse::<LabelsOf>(one.as_bytes(), 5).expect("one");
        assert_eq!(found[0].0, Labels::from_pairs(&[("a", "1"), ("b", "2")]));
        let labels = r#""a":"","#.repeat(5000);
        let many = format!(r#"{{"data":[{{{labels}"b":""}}]}}"#);
        assert!(parse::<LabelsOf>(many.as_bytes(), 5).is_err());
        assert!(parse::<String>(br#"{"status":"success","data":[]} x"#, 5).is_err());
    }
}
