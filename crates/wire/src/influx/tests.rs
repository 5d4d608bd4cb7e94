//! Line protocol as tables: the line, what it becomes; then against a slow, plain reading.

use super::*;
use crate::{Decoded, ExtraLabels, Start};
use model::{KeyHasher, LabelsBuilder, WriteBatch};

const NOW: i64 = 1_700_000_000_123_456_789;

fn hasher() -> KeyHasher {
    KeyHasher::new(7)
}

fn decode_all<'a>(body: &'a [u8], precision: Precision, keys: &'a InfluxKeys) -> Decoded<'a> {
    let options = Options { precision, now: NOW };
    decode(body, Start::default(), &options, &hasher(), keys).unwrap()
}

/// Rows as text: `metric{tags} value timestamp`, or the reason of a refusal.
fn render(batch: &WriteBatch<'_>) -> Vec<String> {
    let mut rows = Vec::new();
    for row in &batch.rows {
        let key = batch.key(row);
        let mut tags = LabelsBuilder::new();
        if let Err(error) = batch.decoder.tags(key, &mut tags) {
            rows.push(format!("refused: {error}"));
            continue;
        }
        for (field, value) in
            batch.shapes[row.shape as usize].fields.iter().zip(batch.row_values(row))
        {
            let mut name = String::new();
            batch.decoder.metric_name(key, field, &mut name).unwrap();
            let mut labels = tags.clone();
            labels.push("__name__", &name);
            rows.push(format!("{} {value} {}", labels.finish(), row.timestamp));
        }
    }
    rows
}

#[track_caller]
fn check(line: &str, want: &[&str]) {
    let keys = InfluxKeys::new(ExtraLabels::none());
    let decoded = decode_all(line.as_bytes(), Precision::Nanosecond, &keys);
    assert_eq!(decoded.errors.kept(), &[], "{line}");
    assert_eq!(render(&decoded.batch), want, "{line}");
}

#[track_caller]
fn check_error(line: &str, reason: &str) {
    let keys = InfluxKeys::new(ExtraLabels::none());
    for (before, after) in [("", ""), ("a b=1 1\n", "\na b=2 2\n"), ("a b=1 1\n\n", "\r\na b=2 2")]
    {
        let body = format!("{before}{line}{after}");
        let decoded = decode_all(body.as_bytes(), Precision::Nanosecond, &keys);
        assert_eq!(decoded.errors.count(), 1, "{body}: {:?}", decoded.errors);
        let error = &decoded.errors.kept()[0];
        assert_eq!(error.reason, format!("unable to parse '{line}': {reason}"), "{body}");
        let good = if before.is_empty() { 0 } else { 2 };
        assert_eq!(decoded.batch.rows.len(), good, "{body}");
        assert_eq!(error.position, 1 + before.matches('\n').count() as u32);
    }
}

#[test]
fn lines_become_samples() {
    check("cpu,host=a usage=1 5", &["cpu_usage{host=\"a\"} 1 5"]);
    check("cpu usage=1.5,idle=-2e3 -5\n", &["cpu_usage{} 1.5 -5", "cpu_idle{} -2000 -5"]);
    check("a b=1i,c=2u,d=t,e=FALSE 1\r\n", &["a_b{} 1 1", "a_c{} 2 1", "a_d{} 1 1", "a_e{} 0 1"]);
    check("  \t a b=1 1", &["a_b{} 1 1"]);
    check("# a b=1\n\n \n\r\na b=1 1", &["a_b{} 1 1"]);
    check("a  b=1   1  ", &["a_b{} 1 1"]);
    check("a b=1", &["a_b{} 1 1700000000123456789"]);
    check("a b=1 \n", &["a_b{} 1 1700000000123456789"]);
    check("a b=1 1\na b=2 2", &["a_b{} 1 1", "a_b{} 2 2"]);
    check("a b=1,b=2,c=3 1", &["a_b{} 2 1", "a_c{} 3 1"]);
    check("a b=9223372036854775807i 1", &["a_b{} 9223372036854776000 1"]);
    check(
        "a b=-9223372036854775808i,c=18446744073709551615u 9223372036854775806",
        &[
            "a_b{} -9223372036854776000 9223372036854775806",
            "a_c{} 18446744073709552000 9223372036854775806",
        ],
    );
    check("a b=.5,c=1.,d=1.e+2 1", &["a_b{} 0.5 1", "a_c{} 1 1", "a_d{} 100 1"]);
    check("a b=00000000000000000000007i 1", &["a_b{} 7 1"]);
}

#[test]
fn escapes_are_those_of_influxdb() {
    check(r"a\,b\ c,d\,e=f\ g b=1 1", &[r#"a,b c_b{d,e="f g"} 1 1"#]);
    check(r"a,d\=e=f\=g b\=\,\ c=1 1", &[r#"a_b=, c{d=e="f=g"} 1 1"#]);
    check(r"a\x,b=c\d e\y=1 1", &[r#"a\x_e\y{b="c\\d"} 1 1"#]);
    check(r#"a"b,c="d" "e"=1 1"#, &[r#"a"b_"e"{c="\"d\""} 1 1"#]);
    check(r"a=b c=1 1", &["a=b_c{} 1 1"]);
    check("\u{e9},\u{fc}=\u{df} \u{20ac}=1 1", &["\u{e9}_\u{20ac}{\u{fc}=\"\u{df}\"} 1 1"]);
}

#[test]
fn faults_have_influxdbs_words() {
    check_error("cpu", "missing fields");
    check_error("cpu,host=a", "missing fields");
    check_error("cpu,host", "missing tag value");
    check_error("cpu,", "missing tag key");
    check_error("cpu ", "missing fields");
    check_error(",a=b c=1", "missing measurement");
    check_error("cpu value", "invalid field format");
    check_error("cpu a=1,b", "invalid field format");
    check_error("cpu a=1, 5", "invalid field format");
    check_error("cpu =1", "missing field key");
    check_error("cpu a=1,=2", "missing field key");
    check_error("cpu a=", "missing field value");
    check_error("cpu a=,b=1", "missing field value");
    check_error("cpu a= 1", "missing field value");
    check_error("cpu a=abc", "invalid boolean");
    check_error("cpu a=tRUE", "invalid boolean");
    check_error("cpu a=+1", "invalid boolean");
    check_error("cpu a=NaN", "invalid boolean");
    check_error("cpu a=9i10", "invalid number");
    check_error("cpu a=-", "invalid number");
    check_error("cpu a=1e", "invalid number");
    check_error("cpu a=1e400", "invalid number");
    check_error("cpu a=0x1", "invalid number");
    check_error("cpu a=1.5i", "invalid number");
    check_error("cpu a=1_000", "invalid number");
    check_error("cpu a=9223372036854775808i", "unable to parse integer: value out of range");
    check_error("cpu a=-1u", "unable to parse integer: value out of range");
    check_error("cpu a=1 1.5", "bad timestamp");
    check_error("cpu a=1 x", "bad timestamp");
    check_error("cpu a=1 5 6", "bad timestamp");
    check_error("cpu a=1 -", "bad timestamp");
    check_error(
        "cpu a=1 9223372036854775807",
        "time outside range -9223372036854775806 - 9223372036854775806",
    );
}

#[test]
fn faults_of_keys_are_found_when_the_store_asks() {
    check("cpu,a= b=1 1", &["refused: missing tag value"]);
    check("cpu,=a b=1 1", &["refused: missing tag key"]);
    check("cpu,,a=b b=1 1", &["refused: missing tag key"]);
    check("cpu,a=b=c b=1 1", &["refused: invalid tag format"]);
    check("cpu,a=1,a=2 b=1 1", &["refused: duplicate tags"]);
    check("cpu,time=1 b=1 1", &["refused: invalid tag key: input tag \"time\" is invalid"]);
    check("cpu,__name__=1 b=1 1", &["refused: invalid tag key: input tag \"__name__\" is invalid"]);
}
