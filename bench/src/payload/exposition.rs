//! Exposition text with times in milliseconds: `name{label="value"} 58 1451606400000`.

use crate::workload::LabelSet;

/// Appends `,name="value"`, or without the comma when it is the first of its braces.
pub fn put_label(name: &str, value: &str, out: &mut Vec<u8>) {
    if out.last().is_some_and(|byte| *byte != b'{') {
        out.push(b',');
    }
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"=\"");
    for byte in value.bytes() {
        match byte {
            b'\n' => out.extend_from_slice(b"\\n"),
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            _ => out.push(byte),
        }
    }
    out.push(b'"');
}

/// Appends a line with all labels of a series.
pub fn put_line(labels: &LabelSet, value: f64, timestamp_ms: i64, out: &mut Vec<u8>) {
    out.extend_from_slice(labels.metric_name().as_bytes());
    out.push(b'{');
    for (name, label_value) in labels.tags() {
        put_label(name, label_value, out);
    }
    out.extend_from_slice(b"} ");
    super::put_float(value, out);
    out.push(b' ');
    out.extend_from_slice(itoa::Buffer::new().format(timestamp_ms).as_bytes());
    out.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_looks_as_the_format_says() {
        let mut labels = LabelSet::default();
        labels.set_metric_name("m");
        labels.push("a", "x \"y\"");
        labels.push("b", "1\\2\n3");
        let mut out = Vec::new();
        put_line(&labels, 1.25, 5, &mut out);
        put_line(&labels, -7.0, 6, &mut out);
        let labels = "m{a=\"x \\\"y\\\"\",b=\"1\\\\2\\n3\"}";
        let expected = format!("{labels} 1.25 5\n{labels} -7 6\n");
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
