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
    check("a \tb=1 1", &["a_b{} 1 1"]);
    check("a\t \0\t b=1 1", &["a\t_b{} 1 1"]);
    check("a\\=b v=1 1", &["a=b_v{} 1 1"]);
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
fn names_of_lines_that_the_server_makes_may_be_any() {
    let body = "%20a%5c,t%0a=x%5c,u=%25%zz f%3d%5c=1i,s%09=2.5 1\n";
    let keys = InfluxKeys::new(ExtraLabels::none()).with_escapes(Escapes::Percent);
    let decoded = decode_all(body.as_bytes(), Precision::Nanosecond, &keys);
    assert_eq!(decoded.errors.kept(), &[]);
    let mut fields: Vec<&str> = Vec::new();
    let row = decoded.batch.rows[0];
    fields.extend(decoded.batch.shapes[row.shape as usize].fields.iter().map(|name| &**name));
    assert_eq!(fields, ["f=\\", "s\t"]);
    let (mut tags, mut name) = (LabelsBuilder::new(), String::new());
    let key = decoded.batch.key(&row);
    decoded.batch.decoder.tags(key, &mut tags).expect("tags");
    let tags = tags.finish();
    let tags: Vec<(&str, &str)> = tags.iter().collect();
    assert_eq!(tags, [("t\n", "x\\"), ("u", "%%zz")]);
    decoded.batch.decoder.metric_name(key, "f", &mut name).expect("a name");
    assert_eq!(name, " a\\_f");
    let lines = kinds_of_lines(body.as_bytes(), &decoded.batch).into_iter();
    let lines: Vec<TypedFields> = lines.map(|line| line.with_escapes(Escapes::Percent)).collect();
    let field = |name: &str, kind| (name.to_string(), kind);
    let fields = vec![field("f=\\", FieldType::Integer), field("s\t", FieldType::Float)];
    assert_eq!(lines, [TypedFields { measurement: " a\\".to_string(), fields }]);
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
    check_error("cpu a=NaN", "invalid number");
    check_error("cpu a=nan", "invalid number");
    check_error("cpu a=Inf", "invalid boolean");
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

#[test]
fn strings_are_left_out_of_their_lines() {
    let keys = InfluxKeys::new(ExtraLabels::none());
    let body = b"m a=1,s=\"x, y=\\\"z \n w\",b=2 5\nm s=\"only\" 6\nm a=3,b=4 7\nm a=5,s=\"\"\nbad";
    let decoded = decode_all(body, Precision::Nanosecond, &keys);
    let want = ["m_a{} 1 5", "m_b{} 2 5", "m_a{} 3 7", "m_b{} 4 7", "m_a{} 5 1700000000123456789"];
    assert_eq!(render(&decoded.batch), want);
    assert_eq!(decoded.counts.strings, 3);
    let positions: Vec<u32> = decoded.errors.kept().iter().map(|error| error.position).collect();
    assert_eq!(positions, [6], "no line is refused for a string; the newline in one counts");
}

#[test]
fn quotes_that_never_close_cost_one_line() {
    check_error("m s=\"half", "unbalanced quotes");
    check_error("m a=1,s=\"x\"y 5", "invalid field format");
    let keys = InfluxKeys::new(ExtraLabels::none());
    let body = format!("m a=1\nm s=\"{}\" 5\nm a=2", "x".repeat(STRING_SIZE_MAX + 1));
    let decoded = decode_all(body.as_bytes(), Precision::Nanosecond, &keys);
    assert_eq!((decoded.batch.rows.len(), decoded.errors.count()), (2, 1));
    assert!(decoded.errors.kept()[0].reason.ends_with("string field of more than 65536 bytes"));
}

#[test]
fn fields_named_time_are_left_out() {
    let keys = InfluxKeys::new(ExtraLabels::none());
    let decoded = decode_all(b"m time=1 1\nm a=1,time=2,b=3 2\n", Precision::Nanosecond, &keys);
    assert_eq!(render(&decoded.batch), ["m_a{} 1 2", "m_b{} 3 2"]);
    assert_eq!(decoded.errors.count(), 1);
    let reason = "invalid field name: input field \"time\" on measurement \"m\" is invalid";
    assert_eq!(decoded.errors.kept()[0].reason, reason);
}

#[test]
fn precisions() {
    for (name, unit) in [
        ("", 1),
        ("ns", 1),
        ("n", 1),
        ("us", 1_000),
        ("u", 1_000),
        ("ms", 1_000_000),
        ("s", 1_000_000_000),
        ("m", 60_000_000_000),
        ("h", 3_600_000_000_000),
    ] {
        let precision = Precision::parse(name).unwrap();
        let keys = InfluxKeys::new(ExtraLabels::none());
        let decoded = decode_all(b"a b=1 -7\na b=1\n", precision, &keys);
        let timestamps: Vec<i64> = decoded.batch.rows.iter().map(|row| row.timestamp).collect();
        assert_eq!(timestamps, [-7 * unit, NOW - NOW % unit], "{name}");
    }
    let keys = InfluxKeys::new(ExtraLabels::none());
    let decoded = decode_all(
        b"a b=1 1700000000\na b=1 1700000000000\na b=1 1700000000000000\na b=1 1700000000000000000",
        Precision::Auto,
        &keys,
    );
    assert!(decoded.batch.rows.iter().all(|row| row.timestamp == 1_700_000_000_000_000_000));
    assert_eq!(Precision::parse("d"), None);
}

#[test]
fn limits_are_named() {
    let long_key = format!("m,a={} b=1", "x".repeat(70_000));
    let many_fields: Vec<String> = (0..5000).map(|idx| format!("f{idx}=1")).collect();
    let many_fields = format!("m {}", many_fields.join(","));
    let long_name = format!("m {}=1", "x".repeat(70_000));
    let long_line = format!("m a={}1", "0".repeat(100));
    let long_line = format!("{long_line}{} 1", " ".repeat(model::limits::LINE_SIZE_MAX));
    for (line, want) in [
        (&long_key, "max key length exceeded: 70004 > 65535"),
        (&long_name, "max key length exceeded: 65536 > 65535"),
        (&many_fields, "more than 4096 fields (max-fields-per-line)"),
        (&long_line, "line of 16777323 bytes, the limit is 16777216 (max-line-size)"),
    ] {
        let keys = InfluxKeys::new(ExtraLabels::none());
        let body = format!("m a=1 1\n{line}\nm a=2 2\n");
        let decoded = decode_all(body.as_bytes(), Precision::Nanosecond, &keys);
        assert_eq!((decoded.batch.rows.len(), decoded.batch.values.len()), (2, 2));
        let reason = &decoded.errors.kept()[0].reason;
        assert!(reason.ends_with(want), "{reason}");
        assert!(reason.len() < 500);
    }
}

#[test]
fn long_bodies_come_in_batches() {
    let count = 2 * crate::decoded::ROWS_PER_BATCH + 10;
    let body: String = (0..count).map(|idx| format!("m a={idx} {idx}\n")).collect();
    let keys = InfluxKeys::new(ExtraLabels::none());
    let options = Options { precision: Precision::Nanosecond, now: NOW };
    let (mut start, mut batches, mut next) = (Start::default(), 0, 0);
    loop {
        let decoded = decode(body.as_bytes(), start, &options, &hasher(), &keys).unwrap();
        for row in &decoded.batch.rows {
            assert_eq!((row.timestamp, row.position), (next, next as u32 + 1));
            next += 1;
        }
        batches += 1;
        let Some(rest) = decoded.rest else { break };
        start = rest;
    }
    assert_eq!((batches, next as usize), (3, count));
}

#[test]
fn pieces_hide_nothing_of_each_other() {
    let pieces = [
        "m a=1,s=\"x\ny\" 1\n",
        "m a=2,s=\"half\n",
        "m a=3 3\\\n",
        "",
        "m\\\n",
        "m a=5,s=\"z\" 5\n",
    ];
    let body = pieces.concat();
    let ends: Vec<usize> = (1..=pieces.len()).map(|count| pieces[..count].concat().len()).collect();
    let keys = InfluxKeys::new(ExtraLabels::none());
    let options = Options { precision: Precision::Nanosecond, now: NOW };
    let body = body.as_bytes();
    let decoded = decode_pieces(body, &ends, Start::default(), &options, &hasher(), &keys).unwrap();
    assert_eq!(render(&decoded.batch), ["m_a{} 1 1", "m_a{} 5 5"]);
    // Half a string, a bad timestamp, no fields.
    let positions: Vec<u32> = decoded.errors.kept().iter().map(|error| error.position).collect();
    assert_eq!(positions, [3, 4, 5]);
    // As one piece, the half string goes on to the next quote.
    let whole = decode(body, Start::default(), &options, &hasher(), &keys).unwrap();
    assert_eq!(whole.batch.rows.len(), 1);
}

#[test]
fn many_pieces_come_in_batches() {
    let count = 2 * crate::decoded::ROWS_PER_BATCH + 10;
    let pieces: Vec<String> = (0..count).map(|idx| format!("m a={idx} {idx}\n")).collect();
    let mut ends = Vec::new();
    let mut body = String::new();
    for piece in &pieces {
        body.push_str(piece);
        ends.push(body.len());
    }
    let keys = InfluxKeys::new(ExtraLabels::none());
    let options = Options { precision: Precision::Nanosecond, now: NOW };
    let (mut start, mut batches, mut next) = (Some(Start::default()), 0, 0);
    while let Some(from) = start {
        let decoded =
            decode_pieces(body.as_bytes(), &ends, from, &options, &hasher(), &keys).unwrap();
        for row in &decoded.batch.rows {
            assert_eq!((row.timestamp, row.position), (next, next as u32 + 1));
            next += 1;
        }
        batches += 1;
        start = decoded.rest;
    }
    assert_eq!((batches, next as usize), (3, count));
}

#[test]
fn inexact_integers_and_booleans_are_counted() {
    let keys = InfluxKeys::new(ExtraLabels::none());
    let body = b"m a=9007199254740993i,b=9007199254740992i,c=9223372036854775807i,d=t,e=F 1";
    let decoded = decode_all(body, Precision::Nanosecond, &keys);
    assert_eq!((decoded.counts.inexact_integers, decoded.counts.booleans), (2, 2));
    assert_eq!(decoded.counts.samples, 5);
}

#[test]
fn low_bits_of_long_integers_come_before_their_line() {
    let keys = InfluxKeys::new(ExtraLabels::none()).with_long_integers();
    let body = b"m,h=a a=9007199254740993i,b=1i 1\nm,h=a a=5i,b=-9223372036854775807i 2\n\
                 m a=9007199254740993i,a=1i 3\nm a=1i,a=9007199254740992i,time=9007199254740993i 4\n\
                 m u=18446744073709551615u 5\nm a=9007199254740993 6\nm a:low53=1 7\n\
                 m,h=a a=9007199254740994i,b=2i 8\nm,h=a a=9007199254740995i,b=9007199254740995i 9";
    let decoded = decode_all(body, Precision::Nanosecond, &keys);
    assert_eq!(
        render(&decoded.batch),
        [
            "m_a:low53{h=\"a\"} 1 1",
            "m_a{h=\"a\"} 9007199254740992 1",
            "m_b{h=\"a\"} 1 1",
            "m_b:low53{h=\"a\"} 1 2",
            "m_a{h=\"a\"} 5 2",
            "m_b{h=\"a\"} -9223372036854776000 2",
            "m_a{} 1 3",
            "m_a:low53{} 0 4",
            "m_a{} 9007199254740992 4",
            "m_u:low53{} 9007199254740991 5",
            "m_u{} 18446744073709552000 5",
            "m_a{} 9007199254740992 6",
            "m_a:low53{h=\"a\"} 2 8",
            "m_a{h=\"a\"} 9007199254740994 8",
            "m_b{h=\"a\"} 2 8",
            "m_a:low53{h=\"a\"} 3 9",
            "m_b:low53{h=\"a\"} 3 9",
            "m_a{h=\"a\"} 9007199254740996 9",
            "m_b{h=\"a\"} 9007199254740996 9",
        ]
    );
    let told: Vec<String> =
        bad_lines(body, &decoded.errors, &[]).into_iter().map(|line| line.reason).collect();
    let reserved = "field names that end in :low53 are those of long integers";
    assert_eq!(told, [reserved]);
}

#[test]
fn a_kind_of_lines_has_a_valid_row_or_none() {
    let keys = InfluxKeys::new(ExtraLabels::none());
    let body = b"m,a= v=1 1\nm,a=1 v=2 2\nm,=1 w=3 3\nn,a=1,a=2 v=4 4\n";
    let decoded = decode_all(body, Precision::Nanosecond, &keys);
    let batch = &decoded.batch;
    let valid: Vec<(String, bool)> = kinds_by_shape(body, batch)
        .into_iter()
        .map(|(kind, line)| {
            let fields: Vec<&str> = line.fields.iter().map(|(name, _)| name.as_str()).collect();
            (format!("{} {}", line.measurement, fields.join(",")), has_valid_row(batch, kind))
        })
        .collect();
    let expected = [("m v", true), ("m w", false), ("n v", false)];
    assert_eq!(valid, expected.map(|(kind, is_valid)| (kind.to_string(), is_valid)));
}

#[test]
fn extra_labels_replace_tags() {
    let extra = ExtraLabels::new(&[("db", "telegraf"), ("host", "b")]).unwrap();
    let keys = InfluxKeys::new(extra);
    let decoded = decode_all(b"m,host=a,x=y v=1 1", Precision::Nanosecond, &keys);
    assert_eq!(render(&decoded.batch), ["m_v{db=\"telegraf\", host=\"b\", x=\"y\"} 1 1"]);
    let plain = InfluxKeys::new(ExtraLabels::none());
    let other = decode_all(b"m,host=a,x=y v=1 1", Precision::Nanosecond, &plain);
    assert_ne!(decoded.batch.rows[0].hash, other.batch.rows[0].hash);
}

#[test]
fn error_texts_are_those_clients_know() {
    let keys = InfluxKeys::new(ExtraLabels::none());
    let body = b"m a=1 1\nbad\nm s=\"x\ny\"\nm,a=1,a=2 a=1\n";
    let decoded = decode_all(body, Precision::Nanosecond, &keys);
    let rejection = model::Rejection {
        position: decoded.batch.rows[1].position,
        reason: "duplicate tags".to_string(),
    };
    let text = error_text(body, &decoded.errors, std::slice::from_ref(&rejection), 1, 1);
    assert_eq!(
        text,
        "partial write: unable to parse 'bad': missing fields\n\
        unable to parse 'm,a=1,a=2 a=1': duplicate tags dropped=2"
    );
    let twice = [rejection.clone(), rejection];
    let text = error_text(body, &decoded.errors, &twice, 2, 1);
    assert!(text.ends_with(": duplicate tags dropped=2") && text.matches("duplicate").count() == 1);
    let text =
        error_text(b"bad", &decode_all(b"bad", Precision::Nanosecond, &keys).errors, &[], 0, 0);
    assert_eq!(text, "unable to parse 'bad': missing fields");
}

/// One line as a slow, plain reading takes it.
#[derive(Debug, PartialEq)]
struct Plain {
    key: Vec<u8>,
    fields: Vec<(Vec<u8>, u64)>,
    timestamp: Option<i64>,
}

/// Splits at separators that no backslash precedes.
fn split_plain(text: &[u8], separator: u8) -> Vec<Vec<u8>> {
    let mut pieces = vec![Vec::new()];
    for (idx, &byte) in text.iter().enumerate() {
        if byte == separator && (idx == 0 || text[idx - 1] != b'\\') {
            pieces.push(Vec::new());
        } else {
            pieces.last_mut().unwrap().push(byte);
        }
    }
    pieces
}

/// Reads a line without strings or newlines; `None` when it is bad.
fn read_plain(line: &str) -> Option<Plain> {
    let mut words = split_plain(line.trim_start_matches([' ', '\t']).as_bytes(), b' ').into_iter();
    let key = words.next().filter(|key| !key.is_empty() && key[0] != b',')?;
    let mut words = words.skip_while(Vec::is_empty);
    let mut fields: Vec<(Vec<u8>, u64)> = Vec::new();
    for field in split_plain(&words.next()?, b',') {
        let sides = split_plain(&field, b'=');
        let name = sides.first().filter(|name| !name.is_empty())?.clone();
        let text = String::from_utf8(sides.get(1..)?.join(&b'=')).ok()?;
        let value = match text.as_str() {
            "t" | "T" | "true" | "True" | "TRUE" => 1.0,
            "f" | "F" | "false" | "False" | "FALSE" => 0.0,
            text if text.ends_with('i') => {
                text[..text.len() - 1].parse::<i64>().ok().filter(|_| !text.contains('+'))? as f64
            }
            text if text.ends_with('u') => {
                text[..text.len() - 1].parse::<u64>().ok().filter(|_| !text.contains('+'))? as f64
            }
            text => {
                let is_number = text.bytes().all(|b| b"0123456789.eE+-".contains(&b));
                let value: f64 =
                    text.parse().ok().filter(|_| is_number && !text.starts_with('+'))?;
                Some(value).filter(|value| value.is_finite())?
            }
        };
        fields.retain(|(known, _)| *known != name);
        fields.push((name, value.to_bits()));
    }
    let mut rest = words.skip_while(Vec::is_empty);
    let timestamp = match rest.next() {
        None => None,
        Some(text) => {
            let text = String::from_utf8(text).ok().filter(|text| !text.starts_with('+'))?;
            let value = text.parse::<i64>().ok()?;
            Some(Some(value).filter(|value| i64::MIN + 2 <= *value && *value < i64::MAX)?)
        }
    };
    rest.all(|word| word.is_empty()).then_some(Plain { key, fields, timestamp })
}

#[test]
fn random_lines_agree_with_a_plain_reading() {
    let pieces = [
        "cpu",
        "m",
        ",",
        ",",
        "=",
        "=",
        " ",
        " ",
        "a",
        "b",
        "\\",
        "\\ ",
        "\\,",
        "1",
        "-1.5",
        "2i",
        "7u",
        "t",
        "false",
        "1e3",
        ".",
        "1451606400000000000",
        "9223372036854775807",
        "i",
        "-",
        "\u{e9}",
        "host=a",
        "x=1",
        "y=2i,z=3",
    ];
    let mut random = rng::Random::seeded(0x5eed);
    for _ in 0..30_000 {
        let count = 1 + random.below(14);
        let mut line: String = (0..count).map(|_| *random.pick(&pieces)).collect();
        if random.below(2) == 0 {
            line = format!("cpu,a=b {line}=5 77");
        }
        let keys = InfluxKeys::new(ExtraLabels::none());
        // Twice, so that the second time the line is what its predecessor lets expect.
        let body = format!("k f=1,g=2 1\n{line}\n{line}");
        let decoded = decode_all(body.as_bytes(), Precision::Nanosecond, &keys);
        let batch = &decoded.batch;
        let plain = |row: &model::Row| Plain {
            key: batch.key(row).to_vec(),
            fields: batch.shapes[row.shape as usize]
                .fields
                .iter()
                .zip(batch.row_values(row))
                .map(|(name, value)| (name.as_bytes().to_vec(), value.to_bits()))
                .collect(),
            timestamp: Some(row.timestamp),
        };
        let want = read_plain(&line).map(|mut plain| {
            plain.timestamp = plain.timestamp.or(Some(NOW));
            for (name, _) in &mut plain.fields {
                let text = String::from_utf8(name.clone()).unwrap();
                let text = text.replace("\\,", ",").replace("\\ ", " ").replace("\\=", "=");
                *name = text.into_bytes();
            }
            plain
        });
        for idx in [1, 2] {
            assert_eq!(batch.rows.get(idx).map(plain), want, "{line:?} {:?}", decoded.errors);
        }
    }
}

/// A line break in quotes made the first line look like one of a few bytes, and the memory taken
/// for its fields grew with the square of the body.
#[test]
fn a_quoted_line_break_does_not_multiply_memory() {
    let fields: Vec<String> = (0..100).map(|number| format!("f{number}=1")).collect();
    let body = format!("m a=\"\n\",{} 1\n", fields.join(","));
    let keys = InfluxKeys::new(ExtraLabels::none());
    let decoded = decode_all(body.as_bytes(), Precision::Nanosecond, &keys);
    assert_eq!(decoded.batch.values.len(), 100);
    assert!(decoded.batch.values.capacity() <= body.len(), "{}", decoded.batch.values.capacity());
}
