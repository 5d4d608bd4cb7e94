//! Names of rollups: as Prometheus has them wherever Prometheus has an answer.

use engine::{MemorySource, NameRemoval, QueryOptions, Value, instant};
use model::Labels;

fn source() -> MemorySource {
    let mut source = MemorySource::new();
    for (name, value) in [("cpu_user", 1.0), ("cpu_idle", 2.0)] {
        let labels = Labels::from_pairs(&[("__name__", name), ("host", "a")]);
        source.append(&labels, 0, value);
    }
    source
}

fn names(text: &str, name_removal: NameRemoval) -> Result<Vec<String>, String> {
    let options = QueryOptions { name_removal, ..QueryOptions::default() };
    match instant(&source(), text, 0, &options).map_err(|error| error.to_string())?.value {
        Value::Vector(samples) => {
            Ok(samples.iter().map(|sample| sample.labels.metric_name().to_string()).collect())
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn grouping_by_name_keeps_names_only_where_prometheus_fails() {
    let of_two = r#"max by (__name__) (max_over_time({host="a"}[1m]))"#;
    assert_eq!(names(of_two, NameRemoval::AtOnce).unwrap(), ["cpu_idle", "cpu_user"]);
    let of_one = "max by (__name__) (max_over_time(cpu_user[1m]))";
    assert_eq!(names(of_one, NameRemoval::AtOnce).unwrap(), [""], "as Prometheus");
    assert_eq!(names(of_one, NameRemoval::KeepOverTime).unwrap(), ["cpu_user"]);
    for still_fails in [
        r#"max_over_time({host="a"}[1m])"#,
        r#"max by (host) (max_over_time({host="a"}[1m]))"#,
        r#"sum by (__name__) (rate({host="a"}[1m]))"#,
    ] {
        let error = names(still_fails, NameRemoval::AtOnce);
        // Two metrics with one sample have no rate, hence no duplicates either.
        let is_rate = still_fails.contains("rate");
        assert_eq!(error.is_err(), !is_rate, "{still_fails}: {error:?}");
    }
}
