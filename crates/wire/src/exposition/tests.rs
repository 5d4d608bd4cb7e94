//! Both formats as tables: text in, series out; and there and back.

use super::*;
use crate::{Decoded, ExtraLabels, Start};
use model::{ExemplarRow, KeyHasher, Labels, LabelsBuilder, Metadata, MetricKind};

const NOW: i64 = 77_000_000;
/// A second.
const NANOS: i64 = 1_000_000_000;

fn decode_text<'a>(text: &'a str, format: Format, keys: &'a ExpositionKeys) -> Decoded<'a> {
    let options = Options { format, now: NOW, created: Created::Samples };
    decode(text.as_bytes(), Start::default(), &options, &KeyHasher::new(1), keys).unwrap()
}

pub(super) fn labels_of(decoded: &Decoded<'_>, row: &model::Row) -> Result<Labels, String> {
    let batch = &decoded.batch;
    let (mut tags, mut name) = (LabelsBuilder::new(), String::new());
    let key = batch.key(row);
    batch.decoder.tags(key, &mut tags).map_err(|error| error.to_string())?;
    batch.decoder.metric_name(key, "", &mut name).map_err(|error| error.to_string())?;
    tags.push("__name__", &name);
    Ok(tags.finish())
}

fn render(decoded: &Decoded<'_>) -> Vec<String> {
    let rows = decoded.batch.rows.iter();
    rows.map(|row| match labels_of(decoded, row) {
        Ok(labels) => format!("{labels} {} {}", decoded.batch.row_values(row)[0], row.timestamp),
        Err(error) => format!("refused: {error}"),
    })
    .collect()
}

#[track_caller]
fn check(text: &str, want: &[&str]) {
    let keys = ExpositionKeys::new(ExtraLabels::none());
    let decoded = decode_text(text, Format::Text, &keys);
    assert_eq!(decoded.errors.kept(), &[], "{text}");
    assert_eq!(render(&decoded), want, "{text}");
}

#[track_caller]
fn check_error(text: &str, reason: &str) {
    let keys = ExpositionKeys::new(ExtraLabels::none());
    let body = format!("good 1\n{text}\ngood 2\n");
    let decoded = decode_text(&body, Format::Text, &keys);
    assert_eq!(decoded.errors.count(), 1, "{text}");
    assert_eq!(decoded.errors.kept()[0].position, 2);
    assert_eq!(decoded.errors.kept()[0].reason, format!("cannot parse {text:?}: {reason}"));
    assert_eq!(decoded.batch.rows.len(), 2);
}

#[test]
fn lines_become_samples() {
    check("up 1", &["up{} 1 77000000"]);
    check("up{} 1 5\n", &["up{} 1 5000000"]);
    check("up{job=\"x\",} -1.5e3 -5\r\n", &["up{job=\"x\"} -1500 -5000000"]);
    check("  up \t{ job = \"x\" , a=\"b\" }\t 1  \t 5 ", &["up{a=\"b\", job=\"x\"} 1 5000000"]);
    check("a{b=\"\\\\ \\\" \\n \\x } é\"} 1 1", &[r#"a{b="\\ \" \n \\x } é"} 1 1000000"#]);
    check(
        "a NaN\nb +Inf\nc -inf\nd +5",
        &["a{} NaN 77000000", "b{} inf 77000000", "c{} -inf 77000000", "d{} 5 77000000"],
    );
    check("# c\n#\n\n \na 1", &["a{} 1 77000000"]);
    check(
        "{\"my.metric\",\"l.l\"=\"v\",m=\"w\"} 1 1",
        &["my.metric{l.l=\"v\", m=\"w\"} 1 1000000"],
    );
    check("{__name__=\"x\",a=\"1\"} 1 1", &["x{a=\"1\"} 1 1000000"]);
    check("a:b_C9{_x=\"\"} 1 1", &["a:b_C9{} 1 1000000"]);
    check("a.b 1 1", &["a.b{} 1 1000000"]);
}

#[test]
fn faults_name_the_line() {
    check_error("a", "missing value");
    check_error("a{b=\"c\"}", "missing value");
    check_error("a x", "invalid value");
    check_error("a 1e", "invalid value");
    check_error("a +-1", "invalid value");
    check_error("a 1 2 3", "unexpected text behind the sample");
    check_error("a 1 x", "invalid timestamp");
    check_error("a 1 1.5", "invalid timestamp");
    check_error("a 1 9223372036855", "timestamp outside the years 1677 to 2262");
    check_error("a{b=\"c 1", "labels without a closing brace");
    check_error("a{b=\"c\" 1", "labels without a closing brace");
}

#[test]
fn faults_of_keys_are_found_when_the_store_asks() {
    check("a{b=c} 1", &["refused: expected '\"' in labels near \"c}\""]);
    check("a{b} 1", &["refused: expected '=' in labels near \"}\""]);
    check(
        "a{b=\"1\" c=\"2\"} 1",
        &["refused: expected ',' or '}' in labels near \"c=\\\"2\\\"}\""],
    );
    check("a{9=\"1\"} 1", &["refused: invalid label name \"9\""]);
    check("a{b=\"1\",b=\"2\"} 1", &["refused: duplicate label name \"b\""]);
    check("9a 1", &["refused: invalid metric name \"9a\""]);
    check("<html> 1", &["refused: invalid metric name \"<html>\""]);
    check("{a=\"b\"} 1", &["refused: missing metric name (label __name__)"]);
    check("a{\"b\"} 1", &["refused: duplicate label name \"__name__\""]);
}

#[test]
fn metadata_exemplars_and_the_end() {
    let text = "# HELP a first \\\\ \\n line\n# TYPE a counter\n# UNIT a seconds\n\
        a_total{x=\"1\"} 3 1.5 # {trace=\"abc # }\"} 0.5 1\n\
        # TYPE \"b.c\" histogram\n{\"b.c\"} 1 1520879607.789123456\nd 1 2e0\n# EOF\n";
    let keys = ExpositionKeys::new(ExtraLabels::new(&[("job", "j")]).unwrap());
    let decoded = decode_text(text, Format::OpenMetrics, &keys);
    assert_eq!(decoded.errors.kept(), &[]);
    assert_eq!(decoded.counts.exemplars, 0);
    let [ExemplarRow { row, exemplar, .. }] = decoded.exemplars.as_slice() else { panic!("one") };
    assert_eq!(labels_of(&decoded, row), labels_of(&decoded, &decoded.batch.rows[0]));
    assert_eq!(exemplar.labels, Labels::from_pairs(&[("trace", "abc # }")]));
    assert_eq!((exemplar.value, exemplar.timestamp, row.timestamp), (0.5, NANOS, NANOS));
    assert_eq!(
        render(&decoded),
        [
            "a_total{job=\"j\", x=\"1\"} 3 1500000000",
            "b.c{job=\"j\"} 1 1520879607789123456",
            "d{job=\"j\"} 1 2000000000",
        ]
    );
    let a = Metadata {
        metric: "a".into(),
        kind: MetricKind::Counter,
        help: "first \\ \n line".into(),
        unit: "seconds".into(),
    };
    let b = Metadata { metric: "b.c".into(), kind: MetricKind::Histogram, ..Metadata::default() };
    assert_eq!(decoded.metadata, [a, b]);
    let late = decode_text("a 1\n# EOF\nb 1\n", Format::OpenMetrics, &keys);
    assert_eq!((late.batch.rows.len(), late.errors.count()), (1, 1));
    let text_format = decode_text("a 1\n# EOF\nb 1\n", Format::Text, &keys);
    assert_eq!((text_format.batch.rows.len(), text_format.errors.count()), (2, 0));
}

#[test]
fn bad_exemplars_are_told_and_their_samples_kept() {
    let text = "a 1 # {t=\"1\"} 2\nb 1 # {t=\"1\"} 2 x\nc 1 5 # {t=\"1\"} 2\n";
    let keys = ExpositionKeys::new(ExtraLabels::none());
    let decoded = decode_text(text, Format::Text, &keys);
    assert_eq!(decoded.batch.rows.len(), 3);
    let reason = "the sample is stored, its exemplar is not: invalid timestamp";
    let [error] = decoded.errors.kept() else { panic!("one error") };
    assert_eq!((error.position, error.reason.as_str()), (2, reason));
    assert_eq!((decoded.counts.exemplars, decoded.exemplars.len()), (1, 2));
    let times = decoded.exemplars.iter().map(|one| (one.exemplar.timestamp, one.row.position));
    assert_eq!(times.collect::<Vec<_>>(), [(NOW, 1), (5_000_000, 3)]);
    assert!(decoded.exemplars.iter().all(|one| !one.exemplar.has_timestamp));
}

#[test]
fn a_batch_full_of_exemplars_ends() {
    let text = "a 1 # {t=\"1\"} 2\n".repeat(model::limits::BATCH_EXEMPLARS_MAX + 1);
    let keys = ExpositionKeys::new(ExtraLabels::none());
    let options = Options { format: Format::Text, now: NOW, created: Created::Samples };
    let hasher = KeyHasher::new(1);
    let first = decode(text.as_bytes(), Start::default(), &options, &hasher, &keys).unwrap();
    assert_eq!(first.exemplars.len(), model::limits::BATCH_EXEMPLARS_MAX);
    let rest = decode(text.as_bytes(), first.rest.unwrap(), &options, &hasher, &keys).unwrap();
    assert_eq!((rest.exemplars.len(), rest.rest), (1, None));
}

#[test]
fn what_is_written_reads_back() {
    let mut random = rng::Random::seeded(0x5eed);
    let texts = ["a", "b_c", "x.y", "é", "\"", "\\", "\n", "q}{", "a b", "9", "=", ",", "__n", "#"];
    for _ in 0..2_000 {
        let word = |random: &mut rng::Random| {
            (0..1 + random.below(3)).map(|_| *random.pick(&texts)).collect::<String>()
        };
        let mut builder = LabelsBuilder::new();
        builder.set("__name__", &word(&mut random));
        for _ in 0..random.below(4) {
            let (name, value) = (word(&mut random), word(&mut random));
            builder.set(&name, &value);
        }
        let labels = builder.finish();
        let value = f64::from_bits(random.next());
        let millis = random.next() as i64 >> 22;
        for format in [Format::Text, Format::OpenMetrics] {
            let mut out = Vec::new();
            encode::push_sample(&mut out, &labels, value, Some(millis * 1_000_000), format);
            encode::push_eof(&mut out, format);
            let text = String::from_utf8(out).unwrap();
            let keys = ExpositionKeys::new(ExtraLabels::none());
            let decoded = decode_text(&text, format, &keys);
            assert_eq!(decoded.errors.kept(), &[], "{text}");
            let row = decoded.batch.rows[0];
            assert_eq!(labels_of(&decoded, &row), Ok(labels.clone()), "{text}");
            assert_eq!(row.timestamp, millis * 1_000_000, "{text}");
            let got = decoded.batch.values[0];
            assert!(got.to_bits() == value.to_bits() || got.is_nan() && value.is_nan(), "{text}");
        }
    }
}

#[test]
fn families_are_written_as_prometheus_does() {
    let metadata = Metadata {
        metric: "a".into(),
        kind: MetricKind::GaugeHistogram,
        help: "x \"y\" \\ \n".into(),
        unit: "s".into(),
    };
    let mut out = Vec::new();
    encode::push_family(&mut out, &metadata, Format::Text);
    encode::push_family(&mut out, &metadata, Format::OpenMetrics);
    let want = "# HELP a x \"y\" \\\\ \\n\n# TYPE a untyped\n\
        # HELP a x \\\"y\\\" \\\\ \\n\n# TYPE a gaugehistogram\n# UNIT a s\n";
    assert_eq!(String::from_utf8(out).unwrap(), want);
}

fn decode_created<'a>(text: &'a str, start: Start, keys: &'a ExpositionKeys) -> Decoded<'a> {
    let options = Options { format: Format::OpenMetrics, now: NOW, created: Created::Starts };
    decode(text.as_bytes(), start, &options, &KeyHasher::new(1), keys).unwrap()
}

/// Series, start in milliseconds and time in seconds of each start timestamp.
fn starts_of(decoded: &Decoded<'_>) -> Vec<(String, i64, i64)> {
    let bytes = &decoded.batch.bytes;
    let key = |offset: u32, size: u32| &bytes[offset as usize..(offset + size) as usize];
    let rows = decoded.starts.iter().map(|row| {
        let key = String::from_utf8_lossy(key(row.key_offset, row.key_size)).into_owned();
        (key, row.start_ms, row.timestamp / NANOS)
    });
    rows.collect()
}

#[test]
fn created_lines_are_start_timestamps_of_their_metric() {
    let text = "\
# TYPE a counter
# HELP a of two metrics
a_total{p=\"/\",q=\"1\"} 17 5
a_created{q=\"1\",p=\"/\"} 1520430000.123
a_created{p=\"x\"} 2.5
a_total{p=\"x\"} 18 6
a_total{p=\"none\"} 19 6
# TYPE h histogram
h_bucket{le=\"1\"} 1 7
h_bucket{le=\"+Inf\"} 2 7
h_count 2 7
h_sum 3 7
h_created 4
# TYPE s summary
s{quantile=\"0.5\"} 1 8
s_count 2 8
s_created -1.5
# TYPE g gauge
g_created 9 9
# TYPE u unknown
u_created 9 9
other 1 9
# EOF
";
    let keys = ExpositionKeys::new(ExtraLabels::none());
    let decoded = decode_created(text, Start::default(), &keys);
    assert_eq!(decoded.errors.kept(), &[]);
    let expected = [
        ("a_total{p=\"/\",q=\"1\"}", 1_520_430_000_123, 5),
        ("a_total{p=\"x\"}", 2_500, 6),
        ("h_bucket{le=\"1\"}", 4_000, 7),
        ("h_bucket{le=\"+Inf\"}", 4_000, 7),
        ("h_count", 4_000, 7),
        ("h_sum", 4_000, 7),
        ("s{quantile=\"0.5\"}", -1_500, 8),
        ("s_count", -1_500, 8),
    ];
    assert_eq!(starts_of(&decoded), expected.map(|(key, start, time)| (key.into(), start, time)));
    let names = render(&decoded);
    assert_eq!(names.iter().filter(|name| name.contains("_created")).count(), 2, "{names:?}");
    assert_eq!((names.len(), decoded.counts.created_timestamps), (12, 0));

    // As samples they are what they were, and so they are in the text format.
    let plain = decode_text(text, Format::OpenMetrics, &keys);
    assert_eq!((plain.batch.rows.len(), plain.starts.len()), (16, 0));
    let options = Options { format: Format::Text, now: NOW, created: Created::Starts };
    let text = "# TYPE a counter\na_total 1\na_created 2\n";
    let start = Start::default();
    let decoded = decode(text.as_bytes(), start, &options, &KeyHasher::new(1), &keys).unwrap();
    assert_eq!((decoded.batch.rows.len(), decoded.starts.len()), (2, 0));
}

#[test]
fn created_lines_without_a_metric_or_sense_are_counted() {
    let keys = ExpositionKeys::new(ExtraLabels::none());
    for (lines, lost) in [
        ("a_created 5", 1),
        ("a_created{x=\"1\"} 5\na_total 1 1", 1),
        ("a_total 1 1\na_created 0", 1),
        ("a_total 1 1\na_created NaN", 1),
        ("a_total 1 1\na_created +Inf", 1),
        ("a_total 1 1\na_created 1e300", 1),
        ("other 1 1\na_created 5", 1),
        ("a_total 1 1\nother 2 2\na_created 5", 1),
        ("a_total 1 1", 0),
    ] {
        let text = format!("# TYPE a counter\n{lines}\n");
        let decoded = decode_created(&text, Start::default(), &keys);
        assert_eq!(decoded.counts.created_timestamps, lost, "{lines}");
        assert!(decoded.starts.is_empty(), "{lines}");
        assert!(render(&decoded).iter().all(|row| !row.contains("_created")), "{lines}");
    }
}

#[test]
fn a_batch_ends_between_metrics() {
    use crate::decoded::ROWS_PER_BATCH;
    let mut text = String::from("# HELP a x\n# TYPE a histogram\n");
    let mut metrics = 0;
    // Seven rows each, so that a batch would end within one.
    while 7 * metrics < ROWS_PER_BATCH + 100 {
        for le in 0..6 {
            text.push_str(&format!("a_bucket{{m=\"{metrics}\",le=\"{le}\"}} 1 1\n"));
        }
        text.push_str(&format!("a_count{{m=\"{metrics}\"}} 1 1\na_created{{m=\"{metrics}\"}} 5\n"));
        metrics += 1;
    }
    let keys = ExpositionKeys::new(ExtraLabels::none());
    let (mut start, mut rows, mut starts, mut batches) = (Some(Start::default()), 0, 0, 0);
    while let Some(next) = start {
        let decoded = decode_created(&text, next, &keys);
        assert_eq!((decoded.errors.count(), decoded.counts.created_timestamps), (0, 0));
        rows += decoded.batch.rows.len();
        starts += decoded.starts.len();
        batches += 1;
        start = decoded.rest;
    }
    assert_eq!((rows, starts, batches), (7 * metrics, 7 * metrics, 2));
}
