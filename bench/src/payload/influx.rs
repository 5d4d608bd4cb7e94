//! Line protocol: `measurement,tag=value field=1.5 1451606400000000000`.

use crate::workload::LabelSet;

/// Appends a line with one field. The metric's name is cut at its last `_` into measurement and
/// field, because servers join the two with `_`: the series is the same in every protocol.
pub fn put_line(labels: &LabelSet, value: f64, timestamp_ns: i64, out: &mut Vec<u8>) {
    let (measurement, field) =
        labels.metric_name().rsplit_once('_').unwrap_or((labels.metric_name(), "value"));
    put_escaped(measurement, out);
    for (name, label_value) in labels.tags() {
        out.push(b',');
        put_escaped(name, out);
        out.push(b'=');
        put_escaped(label_value, out);
    }
    out.push(b' ');
    put_escaped(field, out);
    out.push(b'=');
    super::put_float(value, out);
    out.push(b' ');
    out.extend_from_slice(itoa::Buffer::new().format(timestamp_ns).as_bytes());
    out.push(b'\n');
}

/// Escapes what separates: comma, equals sign, space.
fn put_escaped(text: &str, out: &mut Vec<u8>) {
    // Nearly all texts have nothing to escape: they go out in one piece.
    if !text.bytes().any(|byte| matches!(byte, b',' | b'=' | b' ')) {
        return out.extend_from_slice(text.as_bytes());
    }
    for byte in text.bytes() {
        if matches!(byte, b',' | b'=' | b' ') {
            out.push(b'\\');
        }
        out.push(byte);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_looks_as_the_protocol_says() {
        let mut labels = LabelSet::default();
        labels.set_metric_name("shape_value");
        labels.push("a", "x y");
        labels.push("b", "1,2=3");
        let mut out = Vec::new();
        put_line(&labels, 1.25, 5, &mut out);
        put_line(&labels, -7.0, 6, &mut out);
        let expected = "shape,a=x\\ y,b=1\\,2\\=3 value=1.25 5\n\
                        shape,a=x\\ y,b=1\\,2\\=3 value=-7 6\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
