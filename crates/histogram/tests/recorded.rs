//! The answers of Prometheus for random histograms, recorded once in `testdata/recorded.txt`
//! (its head tells the format), are ours, bit by bit where no logarithm is involved.

use histogram::{
    Bucket, ClassicHistogram, Histogram, HistogramMean, HistogramSum, Keep, Notes, QuantileNote,
    ResetHint, parse_notation,
};

const RECORDED: &str = include_str!("../testdata/recorded.txt");

fn number(text: &str) -> f64 {
    text.parse().unwrap()
}

fn buckets(text: &str) -> Vec<Bucket> {
    let pairs = text.split(',').filter_map(|pair| pair.split_once('='));
    pairs
        .map(|(index, count)| Bucket { index: index.parse().unwrap(), count: number(count) })
        .collect()
}

fn histogram(text: &str) -> Histogram {
    let fields: Vec<&str> = text.split(' ').collect();
    let reset_hint = match fields[1] {
        "unknown" => ResetHint::Unknown,
        "reset" => ResetHint::Reset,
        "noreset" => ResetHint::NoReset,
        "gauge" => ResetHint::Gauge,
        other => panic!("hint {other}"),
    };
    Histogram {
        schema: fields[0].parse().unwrap(),
        reset_hint,
        zero_threshold: number(fields[2]),
        zero_count: number(fields[3]),
        count: number(fields[4]),
        sum: number(fields[5]),
        positive: buckets(&fields[6][1..]),
        negative: buckets(&fields[7][1..]),
        custom_bounds: fields[8][1..].split(',').filter(|b| !b.is_empty()).map(number).collect(),
    }
}

/// Runs `check` on each recorded case of the operation; there are at least `cases_min`.
fn each(operation: &str, cases_min: usize, check: impl Fn(&[&str]) -> Result<(), String>) {
    let lines = RECORDED.lines().filter(|line| !line.starts_with('#'));
    let mut failures = Vec::new();
    let mut cases = 0;
    for line in lines {
        let parts: Vec<&str> = line.split('|').collect();
        if parts[0] == operation {
            cases += 1;
            failures.extend(check(&parts[1..]).err().map(|error| format!("{line}\n   {error}")));
        }
    }
    assert!(cases_min <= cases, "{operation}: {cases} cases");
    let shown = failures.iter().take(5).cloned().collect::<Vec<_>>().join("\n");
    assert!(failures.is_empty(), "{operation}: {} of {cases} differ\n{shown}", failures.len());
}

fn same_histogram(found: &Histogram, expected: &str) -> Result<(), String> {
    let expected = histogram(expected);
    match found.same_data(&expected) && found.reset_hint == expected.reset_hint {
        true => Ok(()),
        false => Err(format!("found {found:?}")),
    }
}

fn same(found: impl PartialEq<String> + std::fmt::Debug, expected: &str) -> Result<(), String> {
    match found == expected.to_string() {
        true => Ok(()),
        false => Err(format!("found {found:?}")),
    }
}

/// Logarithms may be rounded otherwise elsewhere.
fn close(found: f64, expected: &str) -> Result<(), String> {
    let expected = number(expected);
    let is_same = found.to_bits() == expected.to_bits() || (found.is_nan() && expected.is_nan());
    match is_same || (found - expected).abs() <= expected.abs() * 1e-14 {
        true => Ok(()),
        false => Err(format!("found {found:?}")),
    }
}

fn noted(notes: Notes) -> String {
    let hints = if notes.hints_collided { "hints" } else { "" };
    format!("{hints}{}", if notes.bounds_reconciled { "bounds" } else { "" })
}

#[test]
fn additions_and_subtractions() {
    for operation in ["add", "sub"] {
        each(operation, 100, |parts| {
            let (mut left, right) = (histogram(parts[0]), histogram(parts[1]));
            let notes = match operation {
                "add" => left.add(&right),
                _ => left.sub(&right),
            };
            match notes {
                Err(_) => same("incompatible".to_string(), parts[2]),
                Ok(notes) => {
                    same_histogram(&left, parts[2])?;
                    same(noted(notes), parts[3])
                }
            }
        });
    }
}

#[test]
fn sums_and_means() {
    each("sum", 100, |parts| {
        let inputs: Vec<Histogram> = parts[0].split('&').map(histogram).collect();
        let mut sum = HistogramSum::of(&inputs[0]);
        inputs[1..].iter().for_each(|input| sum.add(input).unwrap());
        let (total, notes) = sum.finish();
        same_histogram(&total, parts[1])?;
        same(noted(notes), parts[2])
    });
    each("avg", 100, |parts| {
        let inputs: Vec<Histogram> = parts[0].split('&').map(histogram).collect();
        let mut mean = HistogramMean::of(&inputs[0]);
        inputs[1..].iter().for_each(|input| mean.add(input).unwrap());
        let (mean, notes) = mean.finish();
        same_histogram(&mean, parts[1])?;
        same(noted(notes), parts[2])
    });
}

#[test]
fn resets_and_resolutions() {
    each("reset", 400, |parts| {
        let is_reset = histogram(parts[0]).is_reset_after(&histogram(parts[1]));
        same(is_reset.to_string(), parts[2])
    });
    each("reduce", 100, |parts| {
        let reduced = histogram(parts[0]).reduced_to(parts[1].parse().unwrap());
        same_histogram(&reduced, parts[2])
    });
}

#[test]
fn what_histograms_tell() {
    each("quantile", 200, |parts| {
        let found = histogram(parts[0]).quantile(number(parts[1]));
        close(found.value, parts[2])?;
        let note = match found.note {
            None => "",
            Some(QuantileNote::IsNan) => "nan",
            Some(QuantileNote::IsSkewed) => "skewed",
        };
        same(note.to_string(), parts[3])
    });
    each("fraction", 200, |parts| {
        let found = histogram(parts[0]).fraction(number(parts[1]), number(parts[2]));
        close(found.value, parts[3])?;
        same(if found.has_nans { "nans" } else { "" }.to_string(), parts[4])
    });
    each("variance", 200, |parts| close(histogram(parts[0]).variance(), parts[1]));
}

#[test]
fn trims() {
    for (operation, keep) in
        [("below", Keep::Below as fn(f64) -> Keep), ("above", Keep::Above as fn(f64) -> Keep)]
    {
        each(operation, 200, |parts| {
            let mut found = histogram(parts[0]);
            found.trim(keep(number(parts[1])));
            let expected = histogram(parts[2]);
            close(found.count, &expected.count.to_string())?;
            close(found.sum, &expected.sum.to_string())?;
            close(found.zero_count, &expected.zero_count.to_string())?;
            match expected.is_nearly(&found, Some(expected.reset_hint)) {
                true => Ok(()),
                false => Err(format!("found {found:?}")),
            }
        });
    }
}

#[test]
fn texts() {
    each("text", 100, |parts| {
        let histogram = histogram(parts[0]);
        same(histogram.to_string(), parts[1])?;
        same(histogram.to_notation(), parts[2])?;
        let (read, rest) = parse_notation(parts[2]).unwrap();
        assert_eq!(rest, "");
        match histogram.is_nearly(&read.histogram, Some(histogram.reset_hint)) {
            true => Ok(()),
            false => Err(format!("read {read:?}")),
        }
    });
}

#[test]
fn classic_histograms() {
    each("classic", 100, |parts| {
        let mut classic = ClassicHistogram::default();
        for (bound, count) in parts[0].split(',').filter_map(|pair| pair.split_once('=')) {
            classic.set_bucket(number(bound), number(count));
        }
        if !parts[1].is_empty() {
            classic.set_count(number(parts[1]));
        }
        classic.set_sum(number(parts[2]));
        match classic.convert() {
            Err(_) => same("error".to_string(), parts[3]),
            Ok(found) if found.validate().is_err() => same("invalid".to_string(), parts[3]),
            Ok(found) => same_histogram(&found, parts[3]),
        }
    });
}
