//! Series to lines, for those who move to a database that takes them: the way back of the decoder.
//!
//! ```text
//! cpu_usage{host="a"}  ->  cpu_usage,host=a value=1.5 1451606400000000000
//!                 split    cpu,host=a usage=1.5 1451606400000000000
//! ```

use super::typed::FieldType;
use crate::narrow::{whole, whole_unsigned};
use crate::prom_json::number::push_value;
use model::{Labels, METRIC_NAME, Timestamp};

/// What becomes of a metric's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Naming {
    /// It is the measurement, and the field is called so.
    Whole(String),
    /// The measurement goes to the first `_`, the field is what follows; names that cannot be cut so have
    /// the field `value`.
    Split,
}

/// The field of a name that is the measurement as a whole.
pub const FIELD: &str = "value";

/// Why a series is no line: line protocol has no way to say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsayable {
    /// A newline ends a line wherever it stands in names and tags.
    Newline,
    /// A backslash would escape what follows a name or value that ends in it; and before a comma, an equals
    /// sign or a space databases read it differently, and some leave the line out.
    Backslash,
    /// A tag called `time`, which the decoders of InfluxDB and Quipu refuse; or no measurement.
    Name,
}

/// What lines of a series begin with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LineHead {
    bytes: Vec<u8>,
    has_doubled: bool,
}

impl LineHead {
    /// That of a series.
    ///
    /// # Errors
    /// Why its labels cannot be said.
    pub fn new(labels: &Labels, naming: &Naming) -> Result<LineHead, Unsayable> {
        let (measurement, field) = names(labels.metric_name(), naming);
        if measurement.contains("\\\"") {
            // InfluxDB reads it as the quote alone, there and nowhere else.
            return Err(Unsayable::Backslash);
        }
        let mut bytes = Vec::new();
        push_key(&mut bytes, measurement, labels)?;
        bytes.push(b' ');
        push_field_name(&mut bytes, field)?;
        let texts = labels.iter().flat_map(|(name, value)| [name, value]);
        let has_doubled = texts.into_iter().any(|text| text.contains("\\\\"));
        Ok(LineHead { bytes, has_doubled })
    }

    /// Whether two backslashes stand side by side in a name or label: VictoriaMetrics reads them as one.
    pub fn has_doubled_backslash(&self) -> bool {
        self.has_doubled
    }

    /// Appends the line of a number; false of what is no number in line protocol.
    pub fn push_sample(&self, out: &mut Vec<u8>, timestamp: Timestamp, value: f64) -> bool {
        if !value.is_finite() {
            return false;
        }
        out.extend_from_slice(&self.bytes);
        push_value(out, value);
        out.push(b' ');
        out.extend_from_slice(itoa::Buffer::new().format(timestamp).as_bytes());
        out.push(b'\n');
        true
    }
}

impl LineHead {
    /// Appends the line of a text.
    pub fn push_text(&self, out: &mut Vec<u8>, timestamp: Timestamp, text: &str) {
        out.extend_from_slice(&self.bytes);
        push_field_text(out, text);
        out.push(b' ');
        out.extend_from_slice(itoa::Buffer::new().format(timestamp).as_bytes());
        out.push(b'\n');
    }
}

/// Measurement and field.
fn names<'a>(metric: &'a str, naming: &'a Naming) -> (&'a str, &'a str) {
    let field = match naming {
        Naming::Whole(field) => return (metric, field),
        Naming::Split => FIELD,
    };
    // No name begins or ends where it is cut.
    let cut = metric.char_indices().skip(1).find(|(_, letter)| *letter == '_');
    let parts = cut.and_then(|(at, _)| Some((metric.get(..at)?, metric.get(at + 1..)?)));
    // A field called so would be refused, as the time is no field.
    parts.filter(|(_, field)| !field.is_empty() && *field != "time").unwrap_or((metric, field))
}

/// Appends what a line begins with: the measurement, and all labels but the metric's name as tags.
///
/// # Errors
/// Why they cannot be said.
pub fn push_key(out: &mut Vec<u8>, measurement: &str, tags: &Labels) -> Result<(), Unsayable> {
    if measurement.is_empty() || measurement.starts_with('#') {
        return Err(Unsayable::Name);
    }
    push_escaped(out, measurement, b", ")?;
    for (name, value) in tags.iter().filter(|(name, _)| *name != METRIC_NAME) {
        if name == "time" {
            return Err(Unsayable::Name);
        }
        out.push(b',');
        push_escaped(out, name, b",= ")?;
        out.push(b'=');
        push_escaped(out, value, b",= ")?;
    }
    Ok(())
}

/// Appends the name of a field, with what parts it from its value.
///
/// # Errors
/// Why it cannot be said.
pub fn push_field_name(out: &mut Vec<u8>, field: &str) -> Result<(), Unsayable> {
    if field.is_empty() || field == "time" {
        return Err(Unsayable::Name);
    }
    push_escaped(out, field, b",= ")?;
    out.push(b'=');
    Ok(())
}

/// Appends a number as a field of that type; one that is no value of the type is written as a float.
pub fn push_field_value(out: &mut Vec<u8>, kind: FieldType, value: f64) {
    // What is beyond is a float64 that the text names, too.
    const TWO_TO_THE_63: f64 = 9_223_372_036_854_775_808.0;
    match kind {
        FieldType::Boolean if value == 0.0 => out.push(b'f'),
        FieldType::Boolean if value == 1.0 => out.push(b't'),
        FieldType::Integer | FieldType::Long
            if value.fract() == 0.0 && value.abs() < TWO_TO_THE_63 =>
        {
            out.extend_from_slice(itoa::Buffer::new().format(whole(value)).as_bytes());
            out.push(b'i');
        }
        FieldType::Integer | FieldType::Long
            if (TWO_TO_THE_63..2.0 * TWO_TO_THE_63).contains(&value) =>
        {
            out.extend_from_slice(itoa::Buffer::new().format(whole_unsigned(value)).as_bytes());
            out.push(b'u');
        }
        _ => push_value(out, value),
    }
}

/// Appends a whole number as a field of that type.
pub fn push_whole_value(out: &mut Vec<u8>, kind: FieldType, number: i64) {
    match kind {
        FieldType::Integer | FieldType::Long => {
            out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
            out.push(b'i');
        }
        kind => push_field_value(out, kind, number as f64),
    }
}

/// Appends a text as a field of strings, in quotes.
pub fn push_field_text(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    for byte in text.bytes() {
        if matches!(byte, b'"' | b'\\') {
            out.push(b'\\');
        }
        out.push(byte);
    }
    out.push(b'"');
}

fn push_escaped(out: &mut Vec<u8>, text: &str, separators: &[u8]) -> Result<(), Unsayable> {
    let is_before = |pair: &[u8]| pair.first() == Some(&b'\\') && b",= ".contains(&pair[1]);
    if text.ends_with('\\') || text.as_bytes().windows(2).any(is_before) {
        return Err(Unsayable::Backslash);
    }
    for &byte in text.as_bytes() {
        match byte {
            b'\n' => return Err(Unsayable::Newline),
            _ if separators.contains(&byte) => out.extend_from_slice(&[b'\\', byte]),
            _ => out.push(byte),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::influx::{InfluxKeys, Options, Precision, decode};
    use crate::{ExtraLabels, Start};
    use model::{KeyHasher, LabelsBuilder};
    use rng::Random;

    fn line(labels: &Labels, naming: &Naming, value: f64) -> Result<String, Unsayable> {
        let mut out = Vec::new();
        let head = LineHead::new(labels, naming)?;
        assert_eq!(head.push_sample(&mut out, -7, value), value.is_finite());
        Ok(String::from_utf8(out).unwrap())
    }

    /// What the decoder makes of a line.
    fn read(line: &str) -> (Labels, f64, i64) {
        let hasher = KeyHasher::new(1);
        let keys = InfluxKeys::new(ExtraLabels::none());
        let options = Options { precision: Precision::Nanosecond, now: 0 };
        let decoded = decode(line.as_bytes(), Start::default(), &options, &hasher, &keys).unwrap();
        assert!(decoded.errors.is_empty(), "{line}: {:?}", decoded.errors.kept());
        let (batch, row) = (&decoded.batch, &decoded.batch.rows[0]);
        let (mut labels, mut name) = (LabelsBuilder::new(), String::new());
        batch.decoder.tags(batch.key(row), &mut labels).unwrap();
        let field = &batch.shapes[row.shape as usize].fields[0];
        batch.decoder.metric_name(batch.key(row), field, &mut name).unwrap();
        labels.push(METRIC_NAME, &name);
        (labels.finish(), batch.row_values(row)[0], row.timestamp)
    }

    #[test]
    fn metrics_are_measurements() {
        let labels = Labels::from_pairs(&[("__name__", "cpu_usage_user"), ("host", "a b,c=d")]);
        let whole = Naming::Whole("value".to_string());
        let shown = |naming, value| line(&labels, naming, value).unwrap();
        assert_eq!(shown(&whole, 1.5), "cpu_usage_user,host=a\\ b\\,c\\=d value=1.5 -7\n");
        assert_eq!(shown(&Naming::Split, -0.0), "cpu,host=a\\ b\\,c\\=d usage_user=-0 -7\n");
        assert_eq!(shown(&whole, f64::NAN), "");
        for (metric, parts) in [
            ("_x_y", ("_x", "y")),
            ("up", ("up", "value")),
            ("x_", ("x_", "value")),
            ("x_time", ("x_time", "value")),
            ("é_é", ("é", "é")),
        ] {
            assert_eq!(names(metric, &Naming::Split), parts);
        }
    }

    #[test]
    fn what_no_line_can_say_is_none() {
        let refused = |pairs: &[(&str, &str)]| {
            line(&Labels::from_pairs(pairs), &Naming::Split, 1.0).unwrap_err()
        };
        assert_eq!(refused(&[("__name__", "a"), ("b", "c\nd")]), Unsayable::Newline);
        assert_eq!(refused(&[("__name__", "a"), ("b", "c\\")]), Unsayable::Backslash);
        for text in ["c\\,d", "c\\=d", "c\\ d", "\\\\,"] {
            assert_eq!(refused(&[("__name__", "a"), ("b", text)]), Unsayable::Backslash);
            assert_eq!(refused(&[("__name__", "a"), (text, "b")]), Unsayable::Backslash);
            assert_eq!(refused(&[("__name__", text)]), Unsayable::Backslash);
        }
        assert_eq!(refused(&[("__name__", "a\\\"b")]), Unsayable::Backslash);
        let doubled = |text: &str| {
            let labels = Labels::from_pairs(&[("__name__", "a"), ("b", text)]);
            LineHead::new(&labels, &Naming::Split).unwrap().has_doubled_backslash()
        };
        assert_eq!(["c:\\d", "\\\\c"].map(doubled), [false, true]);
        assert_eq!(refused(&[("__name__", "a"), ("time", "c")]), Unsayable::Name);
        assert_eq!(refused(&[("__name__", "#a")]), Unsayable::Name);
        assert_eq!(refused(&[("a", "b")]), Unsayable::Name);
    }

    #[test]
    fn fields_are_written_in_their_types() {
        let shown = |kind, value| {
            let mut out = Vec::new();
            push_field_value(&mut out, kind, value);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(shown(FieldType::Integer, -3.0), "-3i");
        let whole = |kind, number| {
            let mut out = Vec::new();
            push_whole_value(&mut out, kind, number);
            String::from_utf8(out).expect("text")
        };
        assert_eq!(whole(FieldType::Long, i64::MAX - 1), "9223372036854775806i");
        assert_eq!(whole(FieldType::Float, (1 << 53) + 1), "9007199254740992");
        assert_eq!(shown(FieldType::Integer, 1.5), "1.5");
        assert_eq!(shown(FieldType::Integer, 9_223_372_036_854_775_808.0), "9223372036854775808u");
        assert_eq!(shown(FieldType::Float, 3.0), "3");
        assert_eq!(shown(FieldType::Boolean, 1.0), "t");
        assert_eq!(shown(FieldType::Boolean, 2.0), "2");
    }

    #[test]
    fn random_series_are_read_back() {
        let mut random = Random::seeded(0x11ae);
        let letters = ['a', '_', ' ', ',', '=', '\\', '"', 'é', '#', '\n', '{', 't'];
        let mut lines = 0;
        for _ in 0..20_000 {
            let mut text =
                || -> String { (0..1 + random.below(6)).map(|_| *random.pick(&letters)).collect() };
            let (metric, name, value) = (text(), text(), text());
            let labels = Labels::from_pairs(&[("__name__", &metric), (&name, &value)]);
            let number = f64::from_bits(random.next());
            let Ok(line) = line(&labels, &Naming::Split, number) else { continue };
            if line.is_empty() {
                continue;
            }
            lines += 1;
            let (found, value, at) = read(&line);
            assert_eq!((value.to_bits(), at), (number.to_bits(), -7), "{line}");
            let is_cut = names(&metric, &Naming::Split).1 != FIELD;
            let expected = if is_cut { metric.clone() } else { format!("{metric}_value") };
            assert_eq!(found.metric_name(), expected, "{line}");
            assert_eq!(found.get(&name), labels.get(&name), "{line}");
        }
        assert!(3000 < lines, "{lines}");
    }
}
