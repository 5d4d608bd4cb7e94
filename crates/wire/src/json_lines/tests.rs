//! Lines as a table, then there and back with every kind of value.

use super::*;
use crate::{Decoded, ExtraLabels, Start};
use histogram::{Bucket, CUSTOM_SCHEMA, Histogram, ResetHint};
use model::{KeyHasher, Labels, LabelsBuilder};

fn decode_text<'a>(text: &'a str, keys: &'a JsonKeys) -> Decoded<'a> {
    decode(text.as_bytes(), Start::default(), &KeyHasher::new(1), keys).unwrap()
}

fn labels_of(decoded: &Decoded<'_>, row: &model::Row) -> Result<Labels, String> {
    let batch = &decoded.batch;
    let (mut tags, mut name) = (LabelsBuilder::new(), String::new());
    let key = batch.key(row);
    batch.decoder.tags(key, &mut tags).map_err(|error| error.to_string())?;
    batch.decoder.metric_name(key, "", &mut name).map_err(|error| error.to_string())?;
    tags.push("__name__", &name);
    Ok(tags.finish())
}

#[track_caller]
fn check(line: &str, want: &[&str]) {
    let keys = JsonKeys::new(ExtraLabels::none());
    let decoded = decode_text(line, &keys);
    assert_eq!(decoded.errors.kept(), &[], "{line}");
    let rows = decoded.batch.rows.iter().map(|row| match labels_of(&decoded, row) {
        Ok(labels) => format!("{labels} {:?} {}", decoded.batch.row_values(row)[0], row.timestamp),
        Err(error) => format!("refused: {error}"),
    });
    assert_eq!(rows.collect::<Vec<_>>(), want, "{line}");
}

#[track_caller]
fn check_error(line: &str, reason: &str) {
    let keys = JsonKeys::new(ExtraLabels::none());
    let good = r#"{"metric":{"__name__":"a"},"values":[1],"timestamps":[1]}"#;
    let text = format!("{good}\n{line}\n{good}");
    let decoded = decode_text(&text, &keys);
    assert_eq!(decoded.errors.count(), 1, "{line}");
    assert_eq!(decoded.errors.kept()[0].position, 2);
    assert_eq!(decoded.errors.kept()[0].reason, format!("cannot parse JSON line: {reason}"));
    assert_eq!(decoded.batch.rows.len(), 2);
    assert_eq!(decoded.batch.values, [1.0, 1.0]);
}

#[test]
fn lines_become_samples() {
    check(
        r#"{"metric":{"__name__":"up","job":"x"},"values":[1,-2.5e3],"timestamps":[5,-6]}"#,
        &[r#"up{job="x"} 1.0 5000000"#, r#"up{job="x"} -2500.0 -6000000"#],
    );
    check(
        r#" { "timestamps" : [ 5.000001 ] , "x":{"y":[1,null,{"z":"\""}]}, "values" : ["1.5"] , "metric" : { "__name__" : "a" } } "#,
        &["a{} 1.5 5000001"],
    );
    check(
        r#"{"metric":{"__name__":"a","b":"\"\\\/\n\t\u00e9\ud83d\ude00"},"values":[0],"timestamps":[0]}"#,
        &["a{b=\"\\\"\\\\/\\n\\té😀\"} 0.0 0"],
    );
    check(
        r#"{"metric":{"__name__":"a"},"values":["Infinity","-Infinity","NaN",null,"null"],"timestamps":[1,2,3,4,5]}"#,
        &[
            "a{} inf 1000000",
            "a{} -inf 2000000",
            "a{} NaN 3000000",
            "a{} NaN 4000000",
            "a{} NaN 5000000",
        ],
    );
    check("\n \r\n", &[]);
    check(
        r#"{"metric":{"a":"b"},"values":[0],"timestamps":[0]}"#,
        &["refused: missing metric name (label __name__)"],
    );
    check(
        r#"{"metric":{"a":1},"values":[0],"timestamps":[0]}"#,
        &["refused: labels: expected a string at byte 5"],
    );
    check(
        r#"{"metric":{"__name__":"x","a":"1","a":"2"},"values":[0],"timestamps":[0]}"#,
        &["refused: duplicate label name \"a\""],
    );
    check(
        r#"{"metric":{"__name__":"x","a":"\ud800"},"values":[0],"timestamps":[0]}"#,
        &["refused: labels: expected valid escapes in the string at byte 20"],
    );
}

#[test]
fn faults_name_the_line() {
    check_error("x", "expected '{' at byte 0");
    check_error(
        r#"{"metric":{"__name__":"a"},"values":[1],"timestamps":[1"#,
        "expected ',' or ']' at byte 55",
    );
    check_error(
        r#"{"metric":{"__name__":"a"},"values":[1,2],"timestamps":[1]}"#,
        "2 values but 1 timestamps",
    );
    check_error(
        r#"{"metric":{"__name__":"a"},"value":[1],"timestamps":[1]}"#,
        "missing \"values\", the list of samples beside \"timestamps\"",
    );
    check_error(
        r#"{"metric":{"__name__":"a"},"values":[1]}"#,
        "missing \"timestamps\", the list of milliseconds beside \"values\"",
    );
    check_error(
        r#"{"metric":{"__name__":"a"},"values":[],"timestamps":[1]}"#,
        "0 values but 1 timestamps",
    );
    check_error(r#"{"metric":{"__name__":"a"},"values":[],"timestamps":[]}"#, "no values");
    check_error(r#"{"values":[1],"timestamps":[1]}"#, "missing \"metric\"");
    check_error(
        r#"{"metric":"a","values":[1],"timestamps":[1]}"#,
        "expected an object with labels at byte 10",
    );
    check_error(
        r#"{"metric":{},"values":[true],"timestamps":[1]}"#,
        "expected a number at byte 23",
    );
    check_error(r#"{"metric":{},"values":["x"],"timestamps":[1]}"#, "expected a number at byte 23");
    check_error(
        r#"{"metric":{},"values":["NaN:7"],"timestamps":[1]}"#,
        "expected a number at byte 23",
    );
    check_error(
        r#"{"metric":{},"values":["NaN:3ff0000000000000"],"timestamps":[1]}"#,
        "expected a number at byte 23",
    );
    check_error(
        r#"{"metric":{},"values":[1],"timestamps":[9223372036855]}"#,
        "expected a timestamp in the years 1677 to 2262 at byte 40",
    );
    check_error(
        r#"{"metric":{},"values":[1],"timestamps":[1e3]}"#,
        "expected a timestamp without an exponent at byte 40",
    );
    check_error(
        r#"{"metric":{},"metric":{},"values":[1],"timestamps":[1]}"#,
        "expected each member once at byte 22",
    );
    check_error(
        r#"{"metric":{},"values":[1],"timestamps":[1]} x"#,
        "expected the line's end at byte 44",
    );
    let deep = format!("{{\"x\":{}", "[".repeat(1000));
    check_error(&deep, "expected less nesting at byte 37");
}

#[test]
fn every_bit_comes_back() {
    let mut random = rng::Random::seeded(0x5eed);
    let special = [
        0,
        1 << 63,
        1,
        0x7ff0_0000_0000_0000,
        0xfff0_0000_0000_0000,
        model::sample::STALE_NAN_BITS,
        NORMAL_NAN_BITS,
        f64::NAN.to_bits(),
        0xffff_ffff_ffff_ffff,
        0x7ff0_0000_0000_0001,
    ];
    for round in 0..300 {
        let count = 1 + random.below(40) as usize;
        let value = |random: &mut rng::Random| match random.below(3) {
            0 => f64::from_bits(*random.pick(&special)),
            1 => f64::from_bits(random.next()),
            _ => random.below(1 << 30) as f64 / 100.0,
        };
        let values: Vec<f64> = (0..count).map(|_| value(&mut random)).collect();
        let timestamps: Vec<i64> =
            (0..count).map(|_| random.next() as i64 >> random.below(60)).collect();
        let labels = Labels::from_pairs(&[("__name__", "a\"\u{1}"), ("é", "\n\\")]);
        let mut out = Vec::new();
        let times = Times::plain(&timestamps);
        LineWriter::new(round % 7).push_series(&mut out, &labels, times, &values);
        let text = String::from_utf8(out).unwrap();
        let keys = JsonKeys::new(ExtraLabels::none());
        let decoded = decode_text(&text, &keys);
        assert_eq!(decoded.errors.kept(), &[], "{text}");
        assert_eq!(decoded.batch.rows.len(), count);
        for (idx, row) in decoded.batch.rows.iter().enumerate() {
            assert_eq!(row.timestamp, timestamps[idx]);
            assert_eq!(decoded.batch.values[idx].to_bits(), values[idx].to_bits(), "{text}");
            assert_eq!(labels_of(&decoded, row), Ok(labels.clone()));
        }
    }
}

fn histogram_rows(mut decoded: Decoded<'_>) -> Vec<(u32, i64, Histogram)> {
    let batch = decoded.histogram_batch();
    let rows = batch.rows.iter();
    rows.map(|row| {
        let mut name = String::new();
        batch.decoder.metric_name(batch.key(row), "", &mut name).unwrap();
        assert_eq!(name, "latency");
        (row.position, row.timestamp, row.histogram.clone())
    })
    .collect()
}

#[test]
fn histograms_come_back() {
    let mut random = rng::Random::seeded(0x5eed);
    let hints = [ResetHint::Unknown, ResetHint::Reset, ResetHint::NoReset, ResetHint::Gauge];
    let labels = Labels::from_pairs(&[("__name__", "latency"), ("job", "a b")]);
    for round in 0..100 {
        let values = [0.0, 1e-128, f64::NAN, f64::INFINITY, 1.0 / 3.0, 5e300];
        let mut made = |at: u64| {
            let mut buckets = || -> Vec<Bucket> {
                let first = random.next() as i32 >> 2;
                let count = random.below(30 + 400 * (round % 20 / 19)) as i32;
                (0..count)
                    .map(|idx| Bucket { index: first + idx * 2, count: f64::from(idx) / 3.0 })
                    .collect()
            };
            Histogram {
                schema: at as i8 % 13 - 4,
                positive: buckets(),
                negative: buckets(),
                reset_hint: *random.pick(&hints),
                zero_threshold: values[1],
                zero_count: 7.0,
                count: *random.pick(&values[3..]),
                sum: *random.pick(&values[3..]),
                custom_bounds: Vec::new(),
            }
        };
        let custom = Histogram {
            schema: CUSTOM_SCHEMA,
            positive: vec![Bucket { index: 2, count: f64::NAN }],
            custom_bounds: vec![-0.0, 1.0 / 3.0],
            ..Histogram::default()
        };
        let mut histograms: Vec<Histogram> = (0..round).map(&mut made).collect();
        histograms.push(custom);
        let timestamps: Vec<i64> = (0..=round as i64).map(|at| at * 1_000_001 - 5).collect();
        let mut out = Vec::new();
        let writer = LineWriter::new([0, 1, 7][round as usize % 3]);
        writer.push_histograms(&mut out, &labels, Times::plain(&timestamps), &histograms);
        let text = String::from_utf8(out).unwrap();
        let keys = JsonKeys::new(ExtraLabels::none());
        let decoded = decode_text(&text, &keys);
        assert_eq!(decoded.errors.kept(), &[]);
        let found = histogram_rows(decoded);
        assert_eq!(found.len(), histograms.len());
        for (idx, (_, at, histogram)) in found.into_iter().enumerate() {
            assert_eq!(at, timestamps[idx]);
            // As text, in which a NaN equals itself and zeros have signs.
            assert_eq!(format!("{histogram:?}"), format!("{:?}", histograms[idx]));
        }
    }
}

#[test]
fn a_line_may_have_values_and_histograms() {
    let text = concat!(
        r#"{"metric":{"__name__":"latency"},"values":[1],"timestamps":[5],"#,
        r#""histogram_timestamps":[6,7],"histograms":[{"schema":-53,"count":3,"x":[1],"#,
        r#""positive":[[0,1],[ 1 , 2]],"custom_bounds":[0.5]},{"sum":"NaN:7ff0000000000002"}]}"#,
    );
    let keys = JsonKeys::new(ExtraLabels::none());
    let decoded = decode_text(text, &keys);
    assert_eq!(decoded.errors.kept(), &[]);
    assert_eq!((decoded.batch.rows.len(), decoded.histograms.len()), (1, 2));
    let rows = histogram_rows(decoded);
    assert_eq!((rows[0].0, rows[0].1, rows[1].1), (1, 6_000_000, 7_000_000));
    assert_eq!(rows[0].2.positive[1], Bucket { index: 1, count: 2.0 });
    assert!(rows[1].2.is_stale());
}

#[test]
fn bad_histograms_refuse_their_line() {
    for (members, reason) in [
        (r#""histograms":[{}]"#, "1 histograms but 0 histogram_timestamps"),
        (r#""histograms":[{}],"histograms":[{}]"#, "each member once"),
        (r#""histograms":[1]"#, "expected '{'"),
        (r#""histograms":[{"schema":128}]"#, "expected a schema"),
        (r#""histograms":[{"schema":1.5}]"#, "',' or '}'"),
        (r#""histograms":[{"count":"x"}]"#, "expected a number"),
        (r#""histograms":[{"reset_hint":"maybe"}]"#, "unknown, reset, no_reset or gauge"),
        (r#""histograms":[{"positive":[[1]]}]"#, "a bucket's count"),
        (r#""histograms":[{"positive":[[1,2,3]]}]"#, "a bucket's end"),
        (r#""histograms":[{"positive":[[2147483648,2]]}]"#, "a whole number of 32 bits"),
        (r#""histograms":[{"positive":[[x,2]]}]"#, "a whole number of 32 bits"),
        (
            &format!("\"histograms\":[{{\"positive\":[{}[0,0]]}}]", "[0,0],".repeat(16384)),
            "at most 16384 buckets",
        ),
        (
            &format!("\"histograms\":[{{\"custom_bounds\":[{}0]}}]", "0,".repeat(16384)),
            "at most 16384 custom bounds",
        ),
    ] {
        let bad = format!(r#"{{"metric":{{"__name__":"latency"}},{members}}}"#);
        let good =
            r#"{"metric":{"__name__":"latency"},"histograms":[{}],"histogram_timestamps":[5]}"#;
        let text = format!("{bad}\n{good}");
        let keys = JsonKeys::new(ExtraLabels::none());
        let decoded = decode_text(&text, &keys);
        let [error] = decoded.errors.kept() else { panic!("{members}: {:?}", decoded.errors) };
        assert!(error.reason.contains(reason), "{reason}: {}", error.reason);
        assert_eq!((error.position, decoded.histograms.len()), (1, 1));
        assert_eq!(decoded.histograms[0].position, 2);
    }
}

/// Time, start timestamp and line of each.
fn starts_of(decoded: &Decoded<'_>) -> Vec<(i64, i64, u32)> {
    let rows = decoded.starts.iter();
    rows.map(|row| (row.timestamp / 1_000_000, row.start_ms, row.position)).collect()
}

#[test]
fn start_timestamps_stand_beside_the_timestamps() {
    let keys = JsonKeys::new(ExtraLabels::none());
    let text = r#"{"metric":{"__name__":"a"},"values":[1,2,3],"timestamps":[10,20,30],"start_timestamps":[5,0,-25]}
{"start_timestamps":[9007199254740992],"metric":{"__name__":"b"},"timestamps":[40],"values":[1]}
{"metric":{"__name__":"c"},"histograms":[{"schema":0}],"histogram_timestamps":[50],"histogram_start_timestamps":[7]}"#;
    let decoded = decode_text(text, &keys);
    assert_eq!(decoded.errors.kept(), &[]);
    let expected = [(10, 5, 1), (30, -25, 1), (40, 1 << 53, 2), (50, 7, 3)];
    assert_eq!(starts_of(&decoded), expected);
    for row in &decoded.starts {
        let (start, size) = (row.key_offset as usize, row.key_size as usize);
        let key = &decoded.batch.bytes[start..start + size];
        assert!(key.starts_with(b"{\"__name__\":") && key.ends_with(b"}"));
    }
    let line = |starts: &str| {
        format!(r#"{{"metric":{{"__name__":"a"}},"values":[1,2],"timestamps":[1,2],{starts}}}"#)
    };
    check_error(&line(r#""start_timestamps":[1]"#), "1 start_timestamps but 2 timestamps");
    check_error(
        &line(r#""histogram_start_timestamps":[1]"#),
        "1 histogram_start_timestamps but 0 histogram_timestamps",
    );
    for bad in ["1.5", "1e3", "9007199254740993", "\"1\"", "null", "", "99999999999999999999"] {
        let text = line(&format!(r#""start_timestamps":[1,{bad}]"#));
        let decoded = decode_text(&text, &keys);
        assert_eq!((decoded.errors.count(), decoded.starts.len()), (1, 0), "{bad}");
    }
}

#[test]
fn start_timestamps_go_around() {
    let mut labels = LabelsBuilder::new();
    labels.push("__name__", "a");
    let labels = labels.finish();
    let timestamps: Vec<i64> = (1..=10).map(|idx| idx * 1_000_000).collect();
    let starts_ms = [0, 0, 0, 1, 2, 0, 0, 0, 0, -3];
    let times = Times { timestamps: &timestamps, starts_ms: &starts_ms };
    let histograms = vec![Histogram::default(); 10];
    for rows_per_line in 1..12 {
        let mut out = Vec::new();
        let writer = LineWriter::new(rows_per_line);
        writer.push_series(&mut out, &labels, times, &[1.5; 10]);
        writer.push_histograms(&mut out, &labels, times, &histograms);
        let text = String::from_utf8(out).unwrap();
        let keys = JsonKeys::new(ExtraLabels::none());
        let decoded = decode_text(&text, &keys);
        assert_eq!(decoded.errors.kept(), &[], "{text}");
        let found: Vec<(i64, i64)> =
            starts_of(&decoded).into_iter().map(|(time, start, _)| (time, start)).collect();
        assert_eq!(found, [(4, 1), (5, 2), (10, -3)].repeat(2), "{text}");
        let said = text.lines().filter(|line| line.contains("start_timestamps")).count();
        assert!(said <= 6, "lines without any say nothing: {text}");
    }
}

#[test]
fn what_clients_read_is_a_series_or_an_error() {
    use super::read_line;
    let (labels, samples) =
        read_line(br#"{"metric":{"a":"b"},"values":[1,null],"timestamps":[1,2]}"#).unwrap();
    assert_eq!((labels.get("a"), samples.len()), (Some("b"), 2));
    let (_, samples) =
        read_line(br#"{"metric":{},"values":[+Inf,-Inf,NaN],"timestamps":[1,2,3]}"#).unwrap();
    assert_eq!((samples[0].value, samples[1].value), (f64::INFINITY, f64::NEG_INFINITY));
    assert!(samples[2].value.is_nan());
    for line in [
        r#"{"metric":{"a":"b"},"values":[+Info],"timestamps":[1]}"#,
        r#"{"status":"error","errorType":"422","error":"cannot export"}"#,
        "{}",
        r#"{"metric":{"a":"b"},"values":[1]}"#,
        r#"{"metric":{"a":"b"},"values":[1],"timestamps":[1,2]}"#,
        r#"{"metric":{"a":"b"},"values":[1],"timestamps":[1]} x"#,
    ] {
        assert!(read_line(line.as_bytes()).is_err(), "{line}");
    }
}
