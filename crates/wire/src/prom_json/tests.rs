//! Answers as Prometheus writes them.

use super::number::push_exposition_value;
use super::*;
use ::histogram::{Bucket, CUSTOM_SCHEMA, Histogram};
use model::Labels;

fn text(write: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut out = Vec::new();
    write(&mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn values_look_as_in_go() {
    for (value, want) in [
        (0.0, "0"),
        (-0.0, "-0"),
        (1.0, "1"),
        (-1.5, "-1.5"),
        (0.1 + 0.2, "0.30000000000000004"),
        (1234567.0, "1234567"),
        (1e15, "1000000000000000"),
        (123456789012345680000.0, "123456789012345680000"),
        (1e20, "100000000000000000000"),
        (1e21, "1e+21"),
        (-1.25e22, "-1.25e+22"),
        (0.000001, "0.000001"),
        (0.00001234, "0.00001234"),
        (9.9e-7, "9.9e-07"),
        (5e-324, "5e-324"),
        (f64::MAX, "1.7976931348623157e+308"),
        (f64::NAN, "NaN"),
        (model::stale_marker(), "NaN"),
        (f64::INFINITY, "+Inf"),
        (f64::NEG_INFINITY, "-Inf"),
    ] {
        assert_eq!(text(|out| push_value(out, value)), want);
    }
}

#[test]
fn exposition_values_look_as_in_go() {
    for (value, want) in [
        (0.0, "0"),
        (-0.0, "-0"),
        (1.0, "1"),
        (100000.0, "100000"),
        (1e6, "1e+06"),
        (1234567.0, "1.234567e+06"),
        (0.0001, "0.0001"),
        (0.00001, "1e-05"),
        (123456.789, "123456.789"),
        (1.5e300, "1.5e+300"),
        (f64::INFINITY, "+Inf"),
        (f64::NAN, "NaN"),
    ] {
        assert_eq!(text(|out| push_exposition_value(out, value)), want);
    }
}

#[test]
fn values_read_back_to_the_same_bits() {
    let mut random = rng::Random::seeded(0x5eed);
    for _ in 0..50_000 {
        let bits = random.next();
        let value = match bits % 3 {
            0 => f64::from_bits(random.next()),
            1 => random.below(1 << 60) as f64 / 1000.0,
            _ => random.next() as f64,
        };
        if !value.is_finite() {
            continue;
        }
        for shown in
            [text(|out| push_value(out, value)), text(|out| push_exposition_value(out, value))]
        {
            assert_eq!(shown.parse::<f64>().unwrap().to_bits(), value.to_bits(), "{shown}");
        }
    }
}

#[test]
fn timestamps_have_up_to_three_decimals() {
    for (millis, want) in [
        (0, "0"),
        (1_435_781_430_781, "1435781430.781"),
        (1_435_781_430_700, "1435781430.700"),
        (1_435_781_430_007, "1435781430.007"),
        (-1, "-0.001"),
        (-1500, "-1.500"),
        (i64::MIN, "-9223372036854775.808"),
    ] {
        assert_eq!(text(|out| push_millis(out, millis)), want);
    }
}

#[test]
fn strings_are_escaped() {
    let want = r#""a\"b\\c\nd\te\u0001\rü€<>""#;
    assert_eq!(text(|out| push_string(out, "a\"b\\c\nd\te\u{1}\rü€<>")), want);
}

#[test]
fn histograms_are_those_of_prometheus() {
    let bucket = |index, count| Bucket { index, count };
    let histogram = Histogram {
        count: 42.0,
        sum: 34593.34,
        zero_threshold: 0.25,
        zero_count: 3.0,
        positive: vec![bucket(-1, 12.0), bucket(0, 21.0), bucket(1, 0.0), bucket(2, 6.0)],
        negative: vec![bucket(-2, 1.0), bucket(-1, 0.5)],
        ..Histogram::default()
    };
    let shown = r#"{"count":"42","sum":"34593.34","buckets":[[1,"-0.5","-0.25","0.5"],[1,"-0.25","-0.25","1"],[3,"-0.25","0.25","3"],[0,"0.25","0.5","12"],[0,"0.5","1","21"],[0,"2","4","6"]]}"#;
    assert_eq!(text(|out| push_histogram(out, &histogram)), shown);
    let custom = Histogram {
        schema: CUSTOM_SCHEMA,
        count: 3.5,
        sum: f64::NAN,
        positive: vec![bucket(0, 1.0), bucket(1, 2.0), bucket(2, 0.5)],
        custom_bounds: vec![1e-7, 2.0],
        ..Histogram::default()
    };
    let custom_shown = r#"{"count":"3.5","sum":"NaN","buckets":[[3,"-Inf","1e-07","1"],[0,"1e-07","2","2"],[0,"2","+Inf","0.5"]]}"#;
    assert_eq!(text(|out| push_histogram(out, &custom)), custom_shown);
    let empty = Histogram { zero_threshold: 1.0, ..Histogram::default() };
    let empty_shown = r#"{"count":"0","sum":"0"}"#;
    assert_eq!(text(|out| push_histogram(out, &empty)), empty_shown);
    let vector = text(|out| {
        let mut answer = Answer::begin(out, ResultKind::Vector);
        answer.vector_histogram(out, &Labels::default(), 1500, &custom);
        answer.vector_sample(out, &Labels::default(), 1500, 1.0);
        answer.end(out, &Notes::default());
    });
    let start = r#"{"status":"success","data":{"resultType":"#;
    assert_eq!(
        vector,
        format!(
            r#"{start}"vector","result":[{{"metric":{{}},"histogram":[1.500,{custom_shown}]}},{{"metric":{{}},"value":[1.500,"1"]}}]}}}}"#
        )
    );
    let matrix = text(|out| {
        let mut answer = Answer::begin(out, ResultKind::Matrix);
        answer.series(out, &Labels::default());
        answer.histogram(out, 1000, &empty);
        answer.histogram(out, 2000, &custom);
        answer.series(out, &Labels::default());
        answer.point(out, 1000, 1.0);
        answer.histogram(out, 2000, &empty);
        answer.end(out, &Notes::default());
    });
    assert_eq!(
        matrix,
        format!(
            r#"{start}"matrix","result":[{{"metric":{{}},"histograms":[[1,{empty_shown}],[2,{custom_shown}]]}},{{"metric":{{}},"values":[[1,"1"]],"histograms":[[2,{empty_shown}]]}}]}}}}"#
        )
    );
}

#[test]
fn envelopes() {
    let up = Labels::from_pairs(&[("__name__", "up"), ("A", "1"), ("job", "x")]);
    let none = Labels::default();
    let notes = Notes {
        warnings: vec!["w".into()],
        infos: vec!["i".into(), "j".into()],
        ..Notes::default()
    };
    let vector = text(|out| {
        let mut answer = Answer::begin(out, ResultKind::Vector);
        answer.vector_sample(out, &up, 1500, 1.0);
        answer.vector_sample(out, &none, 2000, f64::NAN);
        answer.end(out, &notes);
    });
    assert_eq!(
        vector,
        r#"{"status":"success","data":{"resultType":"vector","result":[{"metric":{"__name__":"up","A":"1","job":"x"},"value":[1.500,"1"]},{"metric":{},"value":[2,"NaN"]}]},"warnings":["w"],"infos":["i","j"]}"#
    );
    let matrix = text(|out| {
        let mut answer = Answer::begin(out, ResultKind::Matrix);
        answer.series(out, &none);
        answer.point(out, 0, 1.0);
        answer.point(out, 1000, 2.5);
        answer.series(out, &none);
        answer.end(out, &Notes::default());
    });
    assert_eq!(
        matrix,
        r#"{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"values":[[0,"1"],[1,"2.5"]]},{"metric":{},"values":[]}]}}"#
    );
    let empty = text(|out| Answer::begin(out, ResultKind::Matrix).end(out, &Notes::default()));
    assert_eq!(empty, r#"{"status":"success","data":{"resultType":"matrix","result":[]}}"#);
    assert_eq!(
        text(|out| push_scalar(out, 1000, 1.0, &Notes::default())),
        r#"{"status":"success","data":{"resultType":"scalar","result":[1,"1"]}}"#
    );
    assert_eq!(
        text(|out| push_string_result(out, 1000, "a\"", &Notes::default())),
        r#"{"status":"success","data":{"resultType":"string","result":[1,"a\""]}}"#
    );
    assert_eq!(
        text(|out| push_error(out, ErrorKind::BadData, "no \"x\"")),
        r#"{"status":"error","errorType":"bad_data","error":"no \"x\""}"#
    );
    let list = text(|out| {
        let mut list = List::begin(out);
        list.string(out, "a");
        list.labels(out, &up);
        list.end(out, &Notes::default());
    });
    assert_eq!(list, r#"{"status":"success","data":["a",{"__name__":"up","A":"1","job":"x"}]}"#);
}

#[test]
fn exemplars_by_series() {
    let up = Labels::from_pairs(&[("__name__", "up"), ("job", "x")]);
    let trace = Labels::from_pairs(&[("trace_id", "a\"b")]);
    let list = text(|out| {
        let mut list = List::begin(out);
        let mut series = list.exemplars(out, &up);
        series.push(out, &trace, 6.0, 1_600_096_945_479);
        series.push(out, &Labels::default(), f64::INFINITY, 1000);
        series.end(out);
        list.exemplars(out, &up).end(out);
        list.end(out, &Notes::default());
    });
    assert_eq!(
        list,
        r#"{"status":"success","data":[{"seriesLabels":{"__name__":"up","job":"x"},"exemplars":[{"labels":{"trace_id":"a\"b"},"value":"6","timestamp":1600096945.479},{"labels":{},"value":"+Inf","timestamp":1}]},{"seriesLabels":{"__name__":"up","job":"x"},"exemplars":[]}]}"#
    );
}
