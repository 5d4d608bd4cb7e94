//! What the observed answers leave open: orders, names of zones, chance.

use super::*;
use crate::time::Grid;
use model::Labels;

fn context(name: &str, grid: Grid) -> CallContext<'_> {
    CallContext { now_ms: 1_700_000_000_500, ..CallContext::new(name, grid) }
}

fn number(value: f64, len: usize) -> Argument {
    let labels = Labels::default();
    Argument::Series(vec![Series { labels, values: vec![value; len] }])
}

fn series(name: &str, values: &[f64]) -> Series {
    Series { labels: Labels::from_pairs(&[("__name__", name)]), values: values.to_vec() }
}

#[track_caller]
fn check(name: &str, arguments: Vec<Argument>, expected: &[f64]) {
    let grid = Grid { start_ms: 0, step_ms: 1000, len: expected.len() };
    let rows = call(&context(name, grid), arguments).unwrap();
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0].values, expected);
}

#[test]
fn all_functions_are_known() {
    let names = "abs absent acos acosh asin asinh atan atanh bitmap_and bitmap_or bitmap_xor \
        buckets_limit ceil clamp clamp_max clamp_min cos cosh day_of_month day_of_week \
        day_of_year days_in_month deg drop_empty_series end exp floor histogram_avg \
        histogram_fraction histogram_quantile histogram_quantiles histogram_share \
        histogram_stddev histogram_stdvar hour interpolate keep_last_value keep_next_value \
        limit_offset ln log2 log10 minute month now pi prometheus_buckets rad rand \
        rand_exponential rand_normal range_avg range_first range_last range_linear_regression \
        range_mad range_max range_median range_min range_normalize range_quantile range_stddev \
        range_stdvar range_sum range_trim_outliers range_trim_spikes range_trim_zscore \
        range_zscore remove_resets round running_avg running_max running_min running_sum scalar \
        sgn sin sinh smooth_exponential sort sort_desc sqrt start step tan tanh time \
        timezone_offset union vector year";
    let grid = Grid { start_ms: 0, step_ms: 1000, len: 2 };
    for name in names.split_whitespace() {
        if let Err(error) = call(&context(name, grid), Vec::new()) {
            let text = error.to_string();
            assert!(text.contains("arguments given"), "{text}");
        }
    }
    for name in ["abss", "range_", "range_modulo", "running_last", "histogram_", "histogram_mean"] {
        let arguments = vec![Argument::Series(Vec::new())];
        let error = call(&context(name, grid), arguments).unwrap_err().to_string();
        assert!(error.ends_with("no such function"), "{error}");
    }
}

#[test]
fn errors_say_which_argument_is_wrong() {
    let grid = Grid { start_ms: 0, step_ms: 1000, len: 2 };
    let error = |name, arguments| call(&context(name, grid), arguments).unwrap_err().to_string();
    let text = || Argument::text("a".to_string());
    let check = |error: String, expected: &str| assert!(error.ends_with(expected), "{error}");
    check(error("abs", vec![]), "abs: 0 arguments given, 1 expected");
    let two = Argument::Series(vec![series("a", &[1.0, 2.0]), series("b", &[1.0, 2.0])]);
    check(
        error("clamp_max", vec![number(1.0, 2), two]),
        "clamp_max: argument 2 must be one series, 2 given",
    );
    check(error("timezone_offset", vec![text()]), "timezone_offset: no time zone \"a\"");
    check(
        error("limit_offset", vec![number(1.0, 2), number(-1.0, 2), number(1.0, 2)]),
        "limit_offset: negative limit 1 or offset -1",
    );
}

#[test]
fn numbers_of_the_query() {
    check("start", vec![], &[0.0; 3]);
    check("end", vec![], &[2.0; 3]);
    check("step", vec![], &[1.0; 3]);
    check("time", vec![], &[0.0, 1.0, 2.0]);
    check("now", vec![], &[1_700_000_000.5; 3]);
}

#[test]
fn zones_follow_their_rules() {
    let times = [150_000_000, 1_711_846_799, 1_711_846_800, 1_729_990_800, 4_086_000_000];
    let cases = [
        ("Europe/Berlin", [3600.0, 3600.0, 7200.0, 3600.0, 7200.0]),
        ("America/New_York", [-14400.0, -14400.0, -14400.0, -14400.0, -14400.0]),
        ("Australia/Lord_Howe", [36000.0, 39600.0, 39600.0, 39600.0, 37800.0]),
        ("Europe/Dublin", [3600.0, 0.0, 3600.0, 0.0, 3600.0]),
        ("Etc/GMT+5", [-18000.0; 5]),
        ("", [0.0; 5]),
    ];
    for (zone, offsets) in cases {
        for (at, expected) in times.iter().zip(offsets) {
            let context = context("timezone_offset", Grid::instant(at * 1000));
            let rows = call(&context, vec![Argument::text(zone.to_string())]).unwrap();
            assert_eq!(rows[0].values, [expected], "{zone} {at}");
        }
    }
}

#[test]
fn seeds_make_chance_repeatable() {
    let grid = Grid { start_ms: 0, step_ms: 1000, len: 50 };
    for name in ["rand", "rand_normal", "rand_exponential"] {
        let row = |seed| call(&context(name, grid), vec![number(seed, 50)]).unwrap();
        assert_eq!(row(7.0), row(7.0));
        assert_ne!(row(7.0), row(8.0));
        for seed in [0.0, -1.0, 1e300, f64::NAN] {
            assert!(row(seed)[0].values.iter().all(|value| value.is_finite()));
        }
        assert_ne!(call(&context(name, grid), vec![]), call(&context(name, grid), vec![]));
    }
}

#[test]
fn pages_skip_empty_series() {
    let all = || {
        let gap = [f64::NAN, f64::NAN];
        let list = [("a", [1.0, 2.0]), ("b", gap), ("c", [3.0, 4.0]), ("d", [5.0, 6.0])];
        Argument::Series(list.iter().map(|(name, values)| series(name, values)).collect())
    };
    let grid = Grid { start_ms: 0, step_ms: 1000, len: 2 };
    let page = |limit, offset| {
        let arguments = vec![number(limit, 2), number(offset, 2), all()];
        let rows = call(&context("limit_offset", grid), arguments).unwrap();
        rows.iter().map(|row| row.labels.metric_name().to_string()).collect::<String>()
    };
    assert_eq!(page(2.0, 0.0), "ac");
    assert_eq!(page(2.9, 1.9), "cd");
    assert_eq!(page(1e300, 2.0), "d");
    assert_eq!(page(1.0, 1e300), "");
}

#[test]
fn a_union_keeps_the_first_of_equals() {
    let grid = Grid { start_ms: 0, step_ms: 1000, len: 1 };
    let one = |name, value| Argument::Series(vec![series(name, &[value])]);
    let rows = |arguments| call(&context("union", grid), arguments).unwrap();
    let found = rows(vec![one("a", 1.0), one("b", 2.0), one("a", 3.0)]);
    assert_eq!(found, [series("a", &[1.0]), series("b", &[2.0])]);
    assert_eq!(rows(vec![number(1.0, 1), number(1.0, 1)]).len(), 2);
}
