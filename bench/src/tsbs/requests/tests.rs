//! Tests of the generator: shape, order, and the same data in every protocol and split.

use super::*;
use crate::instant::{SECOND_NS, parse_rfc3339};
use crate::payload::copy;
use crate::payload::protobuf::{Field, fields};
use crate::tsbs::CpuOnly;
use crate::workload::Workload;

type Sample = remote_write_v2::DecodedSample;

fn scale(hosts: u32, rows: i64) -> Scale {
    let start_ns = parse_rfc3339("2016-01-01T00:00:00Z").unwrap();
    let interval_ns = 10 * SECOND_NS;
    Scale { hosts, interval_ns, start_ns, end_ns: start_ns + rows * interval_ns, seed: 123 }
}

fn format(protocol: Protocol) -> RequestFormat {
    RequestFormat { protocol, lines_max: 7, samples_max: 70 }
}

fn all_requests(scale: Scale, workers: u64, format: RequestFormat) -> Vec<Vec<u8>> {
    let workload = CpuOnly::new(scale).unwrap();
    let mut bodies = Vec::new();
    let mut samples = 0;
    for idx in 0..workers {
        let mut requests = workload.requests(Share { idx, count: workers }, format);
        let mut plain = Vec::new();
        while let Some(count) = requests.next(&mut plain) {
            samples += count;
            bodies.push(plain.clone());
        }
    }
    assert_eq!(samples, workload.samples());
    bodies
}

fn all_lines(scale: Scale, workers: u64) -> Vec<String> {
    let bodies = all_requests(scale, workers, format(Protocol::Influx));
    let text = String::from_utf8(bodies.concat()).unwrap();
    text.lines().map(str::to_string).collect()
}

fn sorted(mut samples: Vec<Sample>) -> Vec<Sample> {
    samples.sort_by(|a, b| a.partial_cmp(b).unwrap());
    samples
}

fn samples_of_lines(lines: &[String]) -> Vec<Sample> {
    let mut samples = Vec::new();
    for line in lines {
        let parts = line.split(' ').collect::<Vec<_>>();
        let mut tags = parts[0].split(',').skip(1).map(pair).collect::<Vec<_>>();
        tags.sort();
        for field in parts[1].split(',') {
            let (name, value) = pair(field);
            let mut labels = vec![("__name__".to_string(), format!("cpu_{name}"))];
            labels.extend(tags.iter().cloned());
            let value = value.strip_suffix('i').unwrap().parse().unwrap();
            samples.push((labels, value, parts[2].parse::<i64>().unwrap() / 1_000_000));
        }
    }
    sorted(samples)
}

fn pair(text: &str) -> (String, String) {
    let (name, value) = text.split_once('=').unwrap();
    (name.to_string(), value.to_string())
}

fn samples_of_remote_write(body: &[u8]) -> Vec<Sample> {
    let text = |bytes: &[u8]| String::from_utf8(bytes.into()).unwrap();
    let mut samples = Vec::new();
    for series in fields(body) {
        let (1, Field::Bytes(series)) = series else { panic!("{series:?}") };
        let mut labels = Vec::new();
        for field in fields(series) {
            match field {
                (1, Field::Bytes(label)) => match fields(label)[..] {
                    [(1, Field::Bytes(name)), (2, Field::Bytes(value))] => {
                        labels.push((text(name), text(value)));
                    }
                    ref other => panic!("{other:?}"),
                },
                (2, Field::Bytes(sample)) => match fields(sample)[..] {
                    [(1, Field::Fixed(bits)), (2, Field::Varint(timestamp))] => {
                        let value = f64::from_bits(bits);
                        samples.push((std::mem::take(&mut labels), value, timestamp as i64));
                    }
                    ref other => panic!("{other:?}"),
                },
                other => panic!("{other:?}"),
            }
        }
    }
    samples
}

fn samples_of_exposition(body: &[u8]) -> Vec<Sample> {
    let mut samples = Vec::new();
    for line in std::str::from_utf8(body).unwrap().lines() {
        let (name, rest) = line.split_once('{').unwrap();
        let (tags, rest) = rest.split_once("} ").unwrap();
        let (value, timestamp) = rest.split_once(' ').unwrap();
        let mut labels = vec![("__name__".to_string(), name.to_string())];
        labels.extend(tags.split(',').map(pair).map(|(name, value)| {
            (name, value.strip_prefix('"').unwrap().strip_suffix('"').unwrap().to_string())
        }));
        labels.sort();
        samples.push((labels, value.parse().unwrap(), timestamp.parse().unwrap()));
    }
    sorted(samples)
}

/// Joins rows of COPY to the tags that were inserted before them.
fn samples_of_rows(bodies: &[Vec<u8>]) -> Vec<Sample> {
    let mut tags_of_id = std::collections::HashMap::new();
    let mut samples = Vec::new();
    for body in bodies {
        let (statement, rows) = copy::split(body).unwrap();
        let Some(rows) = rows else {
            let rows = statement.strip_prefix("INSERT INTO tags VALUES (").unwrap();
            let rows = rows.strip_suffix(") ON CONFLICT (id) DO NOTHING").unwrap();
            for row in rows.split("),\n(") {
                let (id, values) = row.split_once(',').unwrap();
                let values = values.split(',').map(|value| value.trim_matches('\'').to_string());
                let tags = TAG_NAMES.map(str::to_string).into_iter().zip(values);
                assert!(tags_of_id.insert(id, tags.collect::<Vec<_>>()).is_none(), "{id} twice");
            }
            continue;
        };
        for row in std::str::from_utf8(rows).unwrap().lines() {
            let columns = row.split('\t').collect::<Vec<_>>();
            assert_eq!(columns.len(), 2 + FIELDS.len());
            let timestamp_ms = parse_rfc3339(columns[0]).unwrap() / 1_000_000;
            for (field, value) in FIELDS.iter().zip(&columns[2..]) {
                let mut labels = vec![("__name__".to_string(), format!("cpu_{field}"))];
                labels.extend(tags_of_id[columns[1]].iter().cloned());
                labels.sort();
                samples.push((labels, value.parse().unwrap(), timestamp_ms));
            }
        }
    }
    sorted(samples)
}

#[test]
fn lines_have_the_shape_of_the_suite() {
    let lines = all_lines(scale(3, 2), 1);
    assert_eq!(lines.len(), 6);
    let (tags, rest) = lines[0].split_once(' ').unwrap();
    let (values, timestamp) = rest.split_once(' ').unwrap();
    assert_eq!(timestamp, "1451606400000000000");
    assert!(tags.starts_with("cpu,hostname=host_0,region="), "{tags}");
    let names = tags.split(',').skip(1).map(|tag| pair(tag).0).collect::<Vec<_>>();
    assert_eq!(names, TAG_NAMES);
    let names = values.split(',').map(|field| pair(field).0).collect::<Vec<_>>();
    assert_eq!(names, FIELDS);
    for field in values.split(',') {
        let value: u8 = pair(field).1.strip_suffix('i').unwrap().parse().unwrap();
        assert!(value <= 100);
    }
}

#[test]
fn for_each_instant_all_hosts_follow() {
    let lines = all_lines(scale(11, 5), 1);
    for (n, line) in lines.iter().enumerate() {
        let (row, host) = (n as i64 / 11, n % 11);
        assert!(line.starts_with(&format!("cpu,hostname=host_{host},")), "{line}");
        let timestamp = 1_451_606_400_000_000_000 + row * 10 * SECOND_NS;
        assert!(line.ends_with(&format!(" {timestamp}")), "{line}");
    }
}

#[test]
fn workers_and_protocols_do_not_change_the_data() {
    let scale = scale(23, 9);
    let expected = samples_of_lines(&all_lines(scale, 1));
    assert_eq!(expected.len(), 23 * 9 * 10);
    for workers in [2, 3, 30] {
        assert!(samples_of_lines(&all_lines(scale, workers)) == expected, "{workers} workers");
        let bodies = all_requests(scale, workers, format(Protocol::RemoteWrite));
        let spelled = bodies.iter().flat_map(|body| samples_of_remote_write(body)).collect();
        assert!(sorted(spelled) == expected, "{workers} workers, remote write");
        let bodies = all_requests(scale, workers, format(Protocol::RemoteWriteV2));
        let referring = bodies.iter().flat_map(|body| remote_write_v2::decode(body)).collect();
        assert!(sorted(referring) == expected, "{workers} workers, remote write 2.0");
        let bodies = all_requests(scale, workers, format(Protocol::Exposition));
        assert!(samples_of_exposition(&bodies.concat()) == expected, "{workers} workers, text");
        let bodies = all_requests(scale, workers, format(Protocol::Copy));
        assert!(samples_of_rows(&bodies) == expected, "{workers} workers, COPY");
    }
}

#[test]
fn requests_are_full_but_the_last() {
    let http =
        [Protocol::Influx, Protocol::RemoteWrite, Protocol::RemoteWriteV2, Protocol::Exposition];
    for protocol in http {
        let workload = CpuOnly::new(scale(10, 3)).unwrap();
        let mut requests = workload.requests(Share { idx: 0, count: 1 }, format(protocol));
        let mut plain = Vec::new();
        let counts = std::iter::from_fn(|| requests.next(&mut plain)).collect::<Vec<_>>();
        assert_eq!(counts, [70, 70, 70, 70, 20], "{protocol:?}");
    }
    let workload = CpuOnly::new(scale(10, 3)).unwrap();
    let mut requests = workload.requests(Share { idx: 0, count: 1 }, format(Protocol::Copy));
    let mut plain = Vec::new();
    let counts = std::iter::from_fn(|| requests.next(&mut plain)).collect::<Vec<_>>();
    assert_eq!(counts, [0, 0, 70, 70, 70, 70, 20], "the hosts' tags come first");
}
