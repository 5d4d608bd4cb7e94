//! Lines as a table, then there and back with every kind of value.

use super::*;
use crate::{Decoded, ExtraLabels, Start};
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
        &["refused: missing metric name"],
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
    let mut random = crate::random::Random::new();
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
        let value = |random: &mut crate::random::Random| match random.below(3) {
            0 => f64::from_bits(*random.pick(&special)),
            1 => f64::from_bits(random.next()),
            _ => random.below(1 << 30) as f64 / 100.0,
        };
        let values: Vec<f64> = (0..count).map(|_| value(&mut random)).collect();
        let timestamps: Vec<i64> =
            (0..count).map(|_| random.next() as i64 >> random.below(60)).collect();
        let labels = Labels::from_pairs(&[("__name__", "a\"\u{1}"), ("é", "\n\\")]);
        let mut out = Vec::new();
        LineWriter::new(round % 7).push_series(&mut out, &labels, &timestamps, &values);
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
