//! The examples in `docs/doors/*.md` are what the decoders do.
//!
//! ```text
//! > a line as sent             decoded alone
//! metric{labels} value time    each of its samples, `now` being the server's time
//! a reason                     then each refusal
//! ```

use crate::{Decoded, ExtraLabels, Start, exposition, influx, json_lines};
use model::{KeyHasher, LabelsBuilder};

const NOW: i64 = 1_234_567_890;

/// All that came of a line.
fn render(decoded: &Decoded<'_>) -> Vec<String> {
    let batch = &decoded.batch;
    let mut lines = Vec::new();
    for row in &batch.rows {
        let key = batch.key(row);
        for (field, value) in
            batch.shapes[row.shape as usize].fields.iter().zip(batch.row_values(row))
        {
            let (mut tags, mut name) = (LabelsBuilder::new(), String::new());
            let found = batch
                .decoder
                .tags(key, &mut tags)
                .and_then(|()| batch.decoder.metric_name(key, field, &mut name));
            if let Err(error) = found {
                lines.push(format!("refused: {error}"));
                continue;
            }
            tags.push("__name__", &name);
            let time = row.timestamp;
            let time = if time == NOW { "now".to_string() } else { time.to_string() };
            lines.push(format!("{} {value} {time}", tags.finish()));
        }
    }
    lines.extend(decoded.errors.kept().iter().map(|error| error.reason.clone()));
    lines
}

fn decode(protocol: &str, text: &str) -> Vec<String> {
    let (body, hasher, start) = (text.as_bytes(), KeyHasher::new(1), Start::default());
    match protocol {
        "influx" => {
            let keys = influx::InfluxKeys::new(ExtraLabels::none());
            let precision = influx::Precision::Nanosecond;
            let options = influx::Options { precision, now: NOW };
            render(&influx::decode(body, start, &options, &hasher, &keys).unwrap())
        }
        "exposition" => {
            let keys = exposition::ExpositionKeys::new(ExtraLabels::none());
            let options = exposition::Options {
                format: exposition::Format::Text,
                now: NOW,
                created: exposition::Created::Samples,
            };
            render(&exposition::decode(body, start, &options, &hasher, &keys).unwrap())
        }
        "json_lines" => {
            let keys = json_lines::JsonKeys::new(ExtraLabels::none());
            render(&json_lines::decode(body, start, &hasher, &keys).unwrap())
        }
        _ => panic!("no protocol {protocol}"),
    }
}

#[track_caller]
fn check(document: &str) {
    let mut count = 0;
    for block in document.split("```example ").skip(1) {
        let (protocol, rest) = block.split_once('\n').unwrap();
        let (examples, _) = rest.split_once("```").unwrap();
        for example in examples.split("> ").skip(1) {
            let (text, want) = example.split_once('\n').unwrap();
            assert_eq!(decode(protocol, text), want.lines().collect::<Vec<_>>(), "{text}");
            count += 1;
        }
    }
    assert!(4 <= count, "examples were found");
}

#[test]
fn documents_tell_the_truth() {
    check(include_str!("../../../docs/doors/influx.md"));
    check(include_str!("../../../docs/doors/exposition.md"));
    check(include_str!("../../../docs/doors/json-lines.md"));
}
