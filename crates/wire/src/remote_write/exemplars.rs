//! Exemplars of both versions.
//!
//! ```text
//! 1.0  { labels = 1 { name = 1, value = 2 }, value = 2, timestamp = 3 }
//! 2.0  { labels_refs = 1, value = 2, timestamp = 3 }
//! ```
//!
//! One whose labels are no good is counted as refused and is no error: its samples are worth more.
//! A timestamp of 0 is none, as Prometheus reads it: the exemplar takes the time of the sample
//! before it in its series, and is refused without one.

use super::Series;
use super::symbols::{symbol, text_of};
use crate::Error;
use crate::decoded::Growing;
use crate::exemplars::{self, ExemplarLabels};
use crate::protobuf::{Message, Value};
use model::limits::EXEMPLAR_CHARS_MAX;
use model::sample::NANOS_PER_MILLI;
use model::{Exemplar, ExemplarRow, LabelError, Labels, Row, Timestamp};

/// References of one exemplar that are kept: each label has a character at least, so with as many it
/// is refused.
const REFS_MAX: usize = 2 * (EXEMPLAR_CHARS_MAX + 1);

/// An exemplar without its labels.
#[derive(Default)]
struct Event {
    value: f64,
    millis: i64,
}

/// Reads an exemplar of version 1.0.
#[cold]
pub(super) fn push_v1(grown: &mut Growing, series: &Series, bytes: &[u8]) -> Result<(), Error> {
    let (mut event, mut labels) = (Event::default(), ExemplarLabels::default());
    let mut pushed = Ok(());
    let mut message = Message::new(bytes);
    while let Some((number, field)) = message.next_field()? {
        match number {
            1 if pushed.is_ok() => {
                let (name, value) = pair(field.bytes()?)?;
                pushed = labels.push(name, value);
            }
            2 => event.value = field.double()?,
            3 => event.millis = field.signed()?,
            _ => {}
        }
    }
    push(grown, series, &event, pushed.and_then(|()| labels.finish()))
}

/// Reads an exemplar of version 2.0, whose labels are symbols.
#[cold]
pub(super) fn push_v2(
    grown: &mut Growing,
    series: &Series,
    bytes: &[u8],
    symbols: &[&[u8]],
) -> Result<(), Error> {
    let (mut event, mut refs) = (Event::default(), Vec::new());
    let mut message = Message::new(bytes);
    while let Some((number, field)) = message.next_field()? {
        match (number, field) {
            (1, Value::Bytes(packed)) => {
                let mut packed = Message::new(packed);
                while !packed.is_done() {
                    push_ref(&mut refs, packed.varint()?);
                }
            }
            (1, _) => push_ref(&mut refs, field.signed()? as u64),
            (2, _) => event.value = field.double()?,
            (3, _) => event.millis = field.signed()?,
            _ => {}
        }
    }
    let (pairs, odd) = refs.as_chunks::<2>();
    if !odd.is_empty() {
        let expected = "an even number of an exemplar's labels_refs";
        return Err(Error::malformed("remote write 2.0", 0, expected));
    }
    let text = |id: u64| {
        let id = u32::try_from(id).unwrap_or(u32::MAX);
        Ok::<_, Error>(text_of(symbol(symbols, id)?))
    };
    let mut labels = ExemplarLabels::default();
    let mut pushed = Ok(());
    for &[name, value] in pairs {
        let (name, value) = (text(name)?, text(value)?);
        if pushed.is_ok() {
            pushed = labels.push(name, value);
        }
    }
    push(grown, series, &event, pushed.and_then(|()| labels.finish()))
}

fn push_ref(refs: &mut Vec<u64>, one: u64) {
    if refs.len() < REFS_MAX {
        refs.push(one);
    }
}

fn pair(bytes: &[u8]) -> Result<(&[u8], &[u8]), Error> {
    let (mut name, mut value) = (&b""[..], &b""[..]);
    let mut message = Message::new(bytes);
    while let Some((number, field)) = message.next_field()? {
        match number {
            1 => name = field.bytes()?,
            2 => value = field.bytes()?,
            _ => {}
        }
    }
    Ok((name, value))
}

fn push(
    grown: &mut Growing,
    series: &Series,
    event: &Event,
    labels: Result<Labels, LabelError>,
) -> Result<(), Error> {
    let (Ok(labels), Some(timestamp)) = (labels, time(grown, series, event.millis)) else {
        grown.counts.exemplars += 1;
        return Ok(());
    };
    let row = Row {
        hash: series.hash,
        timestamp,
        key_offset: series.key_offset,
        key_size: series.key_size,
        shape: 0,
        values_start: 0,
        position: series.position,
    };
    let has_timestamp = event.millis != 0;
    let exemplar = Exemplar { labels, value: event.value, timestamp, has_timestamp };
    exemplars::push(grown, ExemplarRow { row, exemplar, may_be_first: false })
}

fn time(grown: &Growing, series: &Series, millis: i64) -> Option<Timestamp> {
    if millis != 0 {
        return millis.checked_mul(NANOS_PER_MILLI);
    }
    let sample = grown.rows.last().filter(|row| row.position == series.position);
    sample.map(|row| row.timestamp)
}

/// Lets exemplars of a series that the request has no sample of be the first of it.
pub(super) fn let_begin(grown: &mut Growing, series: &Series) {
    let of_series = |row: &&mut ExemplarRow| row.row.position == series.position;
    for exemplar in grown.exemplars.iter_mut().rev().take_while(of_series) {
        exemplar.may_be_first = true;
    }
}

/// Corrects the series of its exemplars, once all its labels were found.
pub(super) fn rekey(grown: &mut Growing, series: &Series) {
    let of_series = |row: &&mut ExemplarRow| row.row.position == series.position;
    for exemplar in grown.exemplars.iter_mut().rev().take_while(of_series) {
        exemplar.row.hash = series.hash;
        exemplar.row.key_offset = series.key_offset;
        exemplar.row.key_size = series.key_size;
    }
}

/// Leaves out the exemplars of a series that was refused.
pub(super) fn forget(grown: &mut Growing, position: u32) {
    while grown.exemplars.pop_if(|exemplar| exemplar.row.position == position).is_some() {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protobuf::{put_bytes, put_double, put_number};
    use crate::remote_write::{KEY_SIZE_MAX, RemoteWriteKeys, v1, v2};
    use crate::{Decoded, ExtraLabels};
    use model::{KeyHasher, LabelsBuilder};

    /// A message from its fields.
    fn message(fields: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut out = Vec::new();
        fields(&mut out);
        out
    }

    fn label(name: &str, value: &str) -> Vec<u8> {
        message(|out| {
            put_bytes(out, 1, name.as_bytes());
            put_bytes(out, 2, value.as_bytes());
        })
    }

    /// Value and time of an exemplar, or a sample's when they are fields 1 and 2.
    fn event(out: &mut Vec<u8>, first: u8, value: f64, millis: i64) {
        put_double(out, first, value);
        put_number(out, first + 1, millis as u64);
    }

    fn exemplar_v1(labels: &[(&str, &str)], value: f64, millis: i64) -> Vec<u8> {
        message(|out| {
            labels.iter().for_each(|(name, value)| put_bytes(out, 1, &label(name, value)));
            event(out, 2, value, millis);
        })
    }

    fn keys() -> &'static RemoteWriteKeys {
        // Leaked so that tests need not name the keys; a test's process is short.
        Box::leak(Box::new(RemoteWriteKeys::new(ExtraLabels::none())))
    }

    fn series_of(decoded: &Decoded<'_>, row: &Row) -> Labels {
        let (mut labels, mut name) = (LabelsBuilder::new(), String::new());
        decoded.batch.decoder.tags(decoded.batch.key(row), &mut labels).unwrap();
        decoded.batch.decoder.metric_name(decoded.batch.key(row), "", &mut name).unwrap();
        labels.push("__name__", &name);
        labels.finish()
    }

    /// Series, exemplar's labels, value and milliseconds.
    type Found = (String, String, f64, i64);

    fn found(decoded: &Decoded<'_>) -> Vec<Found> {
        let one = |ExemplarRow { row, exemplar, .. }: &ExemplarRow| {
            assert_eq!(row.timestamp, exemplar.timestamp);
            let series = series_of(decoded, row).to_string();
            let millis = exemplar.timestamp / NANOS_PER_MILLI;
            (series, exemplar.labels.to_string(), exemplar.value, millis)
        };
        decoded.exemplars.iter().map(one).collect()
    }

    fn want(series: &str, labels: &str, value: f64, millis: i64) -> Found {
        (series.to_string(), labels.to_string(), value, millis)
    }

    #[test]
    fn version_1() {
        let long = "x".repeat(127);
        let series = message(|out| {
            put_bytes(out, 1, &label("__name__", "a_total"));
            put_bytes(out, 3, &exemplar_v1(&[], 9.0, 0));
            put_bytes(out, 2, &message(|out| event(out, 1, 1.5, 5)));
            put_bytes(out, 3, &exemplar_v1(&[("trace_id", "t"), ("a", "b")], 0.5, 4));
            put_bytes(out, 3, &exemplar_v1(&[], 0.25, 0));
            put_bytes(out, 3, &exemplar_v1(&[("a", &long)], 1.0, 6));
            put_bytes(out, 3, &exemplar_v1(&[("ab", &long)], 1.0, 7));
            put_bytes(out, 3, &exemplar_v1(&[("a", "b"), ("a", "c")], 1.0, 8));
            put_bytes(out, 3, &exemplar_v1(&[], 1.0, i64::MAX));
        });
        // Labels behind, and a series of nothing but an exemplar, as Prometheus sends them.
        let scattered = message(|out| {
            put_bytes(out, 1, &label("__name__", "b"));
            put_bytes(out, 3, &exemplar_v1(&[], 1.0, 3));
            put_bytes(out, 1, &label("job", "j"));
            put_bytes(out, 3, &exemplar_v1(&[], 2.0, 4));
        });
        let request = message(|out| {
            put_bytes(out, 1, &series);
            put_bytes(out, 1, &scattered);
        });
        let decoded = v1::decode(&request, &KeyHasher::new(1), keys()).unwrap();
        let long = format!("{{a={long:?}}}");
        assert_eq!(
            found(&decoded),
            [
                want("a_total{}", "{a=\"b\", trace_id=\"t\"}", 0.5, 4),
                want("a_total{}", "{}", 0.25, 5),
                want("a_total{}", &long, 1.0, 6),
                want("b{job=\"j\"}", "{}", 1.0, 3),
                want("b{job=\"j\"}", "{}", 2.0, 4),
            ]
        );
        let timed = decoded.exemplars.iter().map(|one| one.exemplar.has_timestamp);
        assert_eq!(timed.collect::<Vec<_>>(), [true, false, true, true, true]);
        assert_eq!((decoded.counts.exemplars, decoded.errors.count()), (4, 0));
        assert_eq!(decoded.batch.rows.len(), 1);
    }

    #[test]
    fn exemplars_of_a_series_with_huge_labels_go_with_it() {
        let huge = "x".repeat(KEY_SIZE_MAX);
        let series = message(|out| {
            put_bytes(out, 1, &label("__name__", "a"));
            put_bytes(out, 3, &exemplar_v1(&[], 1.0, 3));
            put_bytes(out, 1, &label("b", &huge));
        });
        let request = message(|out| put_bytes(out, 1, &series));
        let decoded = v1::decode(&request, &KeyHasher::new(1), keys()).unwrap();
        assert_eq!((decoded.exemplars.len(), decoded.errors.count()), (0, 1));
    }

    /// A request of version 2.0 of one series `a` with these exemplars.
    fn request_v2(symbols: &[&str], exemplars: &[Vec<u8>]) -> Vec<u8> {
        message(|out| {
            ["", "__name__", "a"].iter().for_each(|text| put_bytes(out, 4, text.as_bytes()));
            symbols.iter().for_each(|text| put_bytes(out, 4, text.as_bytes()));
            let series = message(|out| {
                put_bytes(out, 1, &[1, 2]);
                exemplars.iter().for_each(|bytes| put_bytes(out, 4, bytes));
                put_bytes(out, 2, &message(|out| event(out, 1, 1.5, 5)));
            });
            put_bytes(out, 5, &series);
        })
    }

    fn exemplar_v2(refs: &[u8], value: f64, millis: i64) -> Vec<u8> {
        message(|out| {
            put_bytes(out, 1, refs);
            event(out, 2, value, millis);
        })
    }

    #[test]
    fn version_2() {
        let unpacked = message(|out| {
            [3, 4].iter().for_each(|id| put_number(out, 1, *id));
            event(out, 2, 2.0, 6);
        });
        let exemplars = [exemplar_v2(&[3, 4, 1, 2], 0.5, 4), unpacked, exemplar_v2(&[], 1.0, 7)];
        let request = request_v2(&["trace_id", "t"], &exemplars);
        let decoded = v2::decode(&request, &KeyHasher::new(1), keys()).unwrap();
        assert_eq!(
            found(&decoded),
            [
                want("a{}", "a{trace_id=\"t\"}", 0.5, 4),
                want("a{}", "{trace_id=\"t\"}", 2.0, 6),
                want("a{}", "{}", 1.0, 7),
            ]
        );
        assert_eq!((decoded.counts.exemplars, decoded.batch.rows.len()), (0, 1));
    }

    #[test]
    fn only_those_without_samples_may_begin_a_series() {
        let request = |field: Option<u8>| {
            message(|out| {
                ["", "__name__", "a"].iter().for_each(|text| put_bytes(out, 4, text.as_bytes()));
                let series = message(|out| {
                    put_bytes(out, 1, &[1, 2]);
                    put_bytes(out, 4, &exemplar_v2(&[], 0.5, 4));
                    if let Some(field) = field {
                        put_bytes(out, field, &message(|out| event(out, 1, 1.5, 5)));
                    }
                });
                // The first one says nothing of the second.
                put_bytes(out, 5, &message(|out| put_bytes(out, 1, &[1, 2])));
                put_bytes(out, 5, &series);
            })
        };
        for (field, expected) in [(None, true), (Some(2), false)] {
            let request = request(field);
            let decoded = v2::decode(&request, &KeyHasher::new(1), keys()).unwrap();
            assert_eq!(decoded.exemplars.len(), 1);
            assert_eq!(decoded.exemplars[0].may_be_first, expected, "{field:?}");
        }
    }

    #[test]
    fn large_symbols_are_refused_before_they_are_copied() {
        let large = "x".repeat(1 << 20);
        let exemplars = vec![exemplar_v2(&[3, 3, 3, 3], 0.5, 4); 1000];
        let request = request_v2(&[&large], &exemplars);
        let decoded = v2::decode(&request, &KeyHasher::new(1), keys()).unwrap();
        assert_eq!((decoded.exemplars.len(), decoded.counts.exemplars), (0, 1000));
    }

    #[test]
    fn floods_of_references_and_symbols_take_no_memory() {
        let refs = [1u8, 2].repeat(KEY_SIZE_MAX);
        let request = request_v2(&[], &[exemplar_v2(&refs, 0.5, 4)]);
        let decoded = v2::decode(&request, &KeyHasher::new(1), keys()).unwrap();
        assert_eq!((decoded.exemplars.len(), decoded.counts.exemplars), (0, 1));
        let request = message(|out| {
            ["", "a"].iter().for_each(|text| put_bytes(out, 4, text.as_bytes()));
            put_bytes(out, 5, &message(|out| put_bytes(out, 1, &[0u8, 1].repeat(KEY_SIZE_MAX))));
        });
        let decoded = v2::decode(&request, &KeyHasher::new(1), keys()).unwrap();
        assert_eq!(decoded.errors.count(), 1, "the labels are too large");
        let request = [4u8 << 3 | 2, 0].repeat(v2::SYMBOLS_MAX + 1);
        let error = v2::decode(&request, &KeyHasher::new(1), keys()).err().unwrap();
        assert_eq!(error.to_string(), "symbols per request: more than 4194304; send less at once");
    }

    #[test]
    fn lies_and_floods_refuse_the_request() {
        for refs in [&[1u8][..], &[1, 99], &[0x80], &[1, 0xff, 0xff, 0xff, 0xff, 0xff, 1]] {
            let request = request_v2(&[], &[exemplar_v2(refs, 1.0, 1)]);
            assert!(v2::decode(&request, &KeyHasher::new(1), keys()).is_err(), "{refs:?}");
        }
        let whole = exemplar_v1(&[("a", "b")], 1.0, 5);
        for cut in 1..whole.len() {
            let series = message(|out| put_bytes(out, 3, &whole[..cut]));
            let request = message(|out| put_bytes(out, 1, &series));
            // Cut between two fields it is a shorter message, without a time: refused, no lie.
            if let Ok(decoded) = v1::decode(&request, &KeyHasher::new(1), keys()) {
                assert_eq!((decoded.exemplars.len(), decoded.counts.exemplars), (0, 1), "{cut}");
            }
        }
        let many = vec![exemplar_v2(&[], 1.0, 1); model::limits::BATCH_EXEMPLARS_MAX + 1];
        let error = v2::decode(&request_v2(&[], &many), &KeyHasher::new(1), keys()).err().unwrap();
        assert_eq!(error.to_string(), "exemplars per request: more than 65536; send less at once");
    }
}
