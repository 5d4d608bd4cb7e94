//! Functions of pg_prometheus and pg_prometheus_cx: a sample as a line of exposition text taken apart
//! and put together.
//!
//! Both extensions have types of their own for a sample; here it is the text that those show.

use crate::types::error::SqlError;
use crate::types::json::json_value::{Map, Value as JsonValue};
use crate::types::json::jsonb;
use crate::types::special_fields::jsonb_field;
use crate::types::time::zones::ZONE;
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray as _, BooleanArray, Float64Array, Int32Array, StringViewArray,
    TimestampMicrosecondArray,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    DataType, Field, FieldRef, Float64Type, TimeUnit, TimestampMicrosecondType,
};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    TypeSignature, Volatility,
};
use model::sample::NANOS_PER_MICRO;
use model::{Labels, METRIC_NAME};
use std::sync::Arc;
use wire::exposition::encode::push_sample;
use wire::exposition::{Format, Line, decode_line};

/// The key of the metric's name among labels that are asked for with it.
const NAME_KEY: &str = "metric_name";

/// What a function does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Work {
    Name,
    Time,
    Value,
    Labels,
    Label,
    HasLabel,
    LabelCount,
    Jsonb,
    Construct,
    Classic,
    Utf8,
    Escape,
    Unescape,
    LabelsToText,
    TextToLabels,
}

/// What an argument is.
#[derive(Clone, Copy)]
enum Argument {
    Text,
    Time,
    Value,
    Yes,
}

impl Argument {
    fn data_type(self) -> DataType {
        match self {
            Argument::Text => DataType::Utf8View,
            Argument::Time => instant(),
            Argument::Value => DataType::Float64,
            Argument::Yes => DataType::Boolean,
        }
    }
}

fn instant() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, Some(ZONE.into()))
}

/// What takes from a sample's line that which the store's index may answer.
pub const NAME: &str = "prom_name";
/// See [`NAME`].
pub const LABELS: &str = "prom_labels";

/// What functions of one argument, a line or another text, are called with.
const ONE: &[&[Argument]] = &[&[Argument::Text]];
const TWO: &[&[Argument]] = &[&[Argument::Text, Argument::Text]];
const WITH_NAME: &[&[Argument]] = &[&[Argument::Text], &[Argument::Text, Argument::Yes]];
const PARTS: &[&[Argument]] = &[&[Argument::Time, Argument::Text, Argument::Value, Argument::Text]];

/// All functions, what they do, and what they may be called with.
const ALL: &[(&str, Work, &[&[Argument]])] = &[
    (NAME, Work::Name, ONE),
    ("prom_time", Work::Time, ONE),
    ("prom_value", Work::Value, ONE),
    (LABELS, Work::Labels, WITH_NAME),
    ("prom_label", Work::Label, TWO),
    ("prom_has_label", Work::HasLabel, TWO),
    ("prom_label_count", Work::LabelCount, ONE),
    ("prom_jsonb", Work::Jsonb, ONE),
    ("prom_construct", Work::Construct, PARTS),
    ("prom_construct_cx", Work::Construct, PARTS),
    ("to_prom", Work::Classic, ONE),
    ("prom_from_expo_classic", Work::Classic, ONE),
    ("prom_from_expo_utf8", Work::Classic, ONE),
    ("prom_to_expo_classic", Work::Classic, ONE),
    ("prom_to_expo_utf8", Work::Utf8, ONE),
    ("prom_escape", Work::Escape, ONE),
    ("prom_unescape", Work::Unescape, ONE),
    ("prom_labels_to_expo", Work::LabelsToText, ONE),
    ("prom_expo_to_labels", Work::TextToLabels, ONE),
];

/// All of them.
pub fn functions() -> impl Iterator<Item = ScalarUDF> {
    ALL.iter().map(|(name, work, calls)| {
        let exact = |call: &&[Argument]| {
            TypeSignature::Exact(call.iter().map(|one| one.data_type()).collect())
        };
        let calls = calls.iter().map(exact).collect();
        let signature = Signature::one_of(calls, Volatility::Immutable);
        ScalarUDF::from(Function { name, work: *work, signature })
    })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Function {
    name: &'static str,
    work: Work,
    signature: Signature,
}

impl ScalarUDFImpl for Function {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(match self.work {
            Work::Time => instant(),
            Work::Value => DataType::Float64,
            Work::HasLabel => DataType::Boolean,
            Work::LabelCount => DataType::Int32,
            _ => DataType::Utf8View,
        })
    }

    fn return_field_from_args(&self, _: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        Ok(Arc::new(match self.work {
            Work::Labels | Work::Jsonb | Work::TextToLabels => jsonb_field(self.name, true),
            _ => Field::new(self.name, self.return_type(&[])?, true),
        }))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let arrays = args.args.iter().map(|one| one.to_array(rows)).collect::<Result<Vec<_>>>()?;
        Ok(ColumnarValue::Array(self.of(&arrays, rows)?))
    }
}

impl Function {
    fn of(&self, arrays: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
        let given = Given { arrays, rows };
        Ok(match self.work {
            Work::Time => {
                let micros = |line: Line| line.timestamp.map(|one| one.div_euclid(NANOS_PER_MICRO));
                let all: TimestampMicrosecondArray =
                    given.each(|at| Ok(micros(given.line(at)?)))?;
                Arc::new(all.with_timezone(ZONE))
            }
            Work::Value => {
                let all: Float64Array =
                    given.each(|at| Ok(Some(one_nan(given.line(at)?.value))))?;
                Arc::new(all)
            }
            Work::HasLabel => {
                let all: BooleanArray = given.each(|at| {
                    let name = given.text(1, at);
                    Ok(Some(others(&given.line(at)?.labels).any(|(one, _)| one == name)))
                })?;
                Arc::new(all)
            }
            Work::LabelCount => {
                let all: Int32Array = given.each(|at| {
                    let count = others(&given.line(at)?.labels).count();
                    Ok(Some(i32::try_from(count).unwrap_or(i32::MAX)))
                })?;
                Arc::new(all)
            }
            work => {
                let all: StringViewArray = given.each(|at| text_of(work, &given, at))?;
                Arc::new(all)
            }
        })
    }
}

/// A value with the one NaN that SQL knows: marks of staleness are others.
fn one_nan(value: f64) -> f64 {
    if value.is_nan() { f64::NAN } else { value }
}

/// The arguments of a call, row by row.
struct Given<'a> {
    arrays: &'a [ArrayRef],
    rows: usize,
}

impl Given<'_> {
    fn text(&self, argument: usize, at: usize) -> &str {
        self.arrays[argument].as_string_view().value(at)
    }

    fn line(&self, at: usize) -> Result<Line> {
        decode_line(self.text(0, at)).map_err(|words| no_sample(&words))
    }

    /// What is made of each row; of null nothing is.
    fn each<T, A: FromIterator<Option<T>>>(
        &self,
        made: impl Fn(usize) -> Result<Option<T>>,
    ) -> Result<A> {
        let is_null = |at: usize| self.arrays.iter().any(|array| array.is_null(at));
        (0..self.rows).map(|at| if is_null(at) { Ok(None) } else { made(at) }).collect()
    }
}

/// The text that a function makes of a row.
fn text_of(work: Work, given: &Given<'_>, at: usize) -> Result<Option<String>> {
    let text = || given.text(0, at);
    Ok(Some(match work {
        Work::Name => given.line(at)?.labels.metric_name().to_string(),
        Work::Labels => {
            let with_name = given.arrays.get(1).is_some_and(|array| array.as_boolean().value(at));
            labels_json(&given.line(at)?.labels, with_name)
        }
        Work::Label => {
            let (line, name) = (given.line(at)?, given.text(1, at));
            let found = others(&line.labels).find(|(one, _)| *one == name);
            return Ok(found.map(|(_, value)| value.to_string()));
        }
        Work::Jsonb => whole_json(&given.line(at)?),
        Work::Construct => {
            let time = given.arrays[0].as_primitive::<TimestampMicrosecondType>().value(at);
            let value = given.arrays[2].as_primitive::<Float64Type>().value(at);
            let labels = named(given.text(1, at), given.text(3, at))?;
            let timestamp = Some(time.saturating_mul(NANOS_PER_MICRO));
            shown(&Line { labels, value, timestamp })
        }
        Work::Classic => shown(&given.line(at)?),
        Work::Utf8 => shown_quoted(&given.line(at)?),
        Work::Escape => escaped(text()),
        Work::Unescape => unescaped(text()),
        Work::LabelsToText => quoted_pairs(&named("x", text())?).join(","),
        Work::TextToLabels => {
            let line = decode_line(&format!("x{{{}}} 0", text()));
            labels_json(&line.map_err(|words| no_sample(&words))?.labels, false)
        }
        Work::Time | Work::Value | Work::HasLabel | Work::LabelCount => {
            return Err(DataFusionError::Internal(format!("{work:?} makes no text")));
        }
    }))
}

fn no_sample(words: &str) -> DataFusionError {
    let message = format!("invalid input syntax for prometheus sample: {words}");
    DataFusionError::External(Box::new(SqlError::new("22P02", message)))
}

fn others(labels: &Labels) -> impl Iterator<Item = (&str, &str)> {
    labels.iter().filter(|(name, _)| *name != METRIC_NAME)
}

/// Labels as `jsonb`, the metric's name among them if that is wanted.
fn labels_json(labels: &Labels, with_name: bool) -> String {
    let name = with_name.then(|| (NAME_KEY, labels.metric_name()));
    let mut text = String::new();
    jsonb::push_labels(&mut text, others(labels).chain(name));
    text
}

fn whole_json(line: &Line) -> String {
    let labels = others(&line.labels);
    let labels: Map = labels.map(|(name, value)| (name.to_string(), value.into())).collect();
    let mut whole = Map::new();
    whole.insert("name".into(), line.labels.metric_name().into());
    if let Some(nanos) = line.timestamp {
        let micros = TimestampMicrosecondArray::from(vec![nanos.div_euclid(NANOS_PER_MICRO)]);
        let micros: ArrayRef = Arc::new(micros.with_timezone(ZONE));
        if let Some(shown) = crate::types::text::shown::column(&micros)
            && let Ok(shown) = cast(&shown, &DataType::Utf8View)
        {
            whole.insert("time".into(), shown.as_string_view().value(0).into());
        }
    }
    whole.insert(
        "value".into(),
        JsonValue::from_float(&crate::types::text::shown::float(line.value)),
    );
    whole.insert("labels".into(), labels.into());
    jsonb::shown(&whole.into())
}

/// The series of a name and an object of labels.
fn named(name: &str, labels: &str) -> Result<Labels> {
    let pairs = crate::types::json::labels::labels_of(labels)
        .map_err(|error| DataFusionError::External(Box::new(error)))?;
    let name = (METRIC_NAME.to_string(), name.to_string());
    Ok(Labels::from_pairs(&pairs.into_iter().chain([name]).collect::<Vec<_>>()))
}

fn shown(line: &Line) -> String {
    let mut out = Vec::new();
    push_sample(&mut out, &line.labels, line.value, line.timestamp, Format::Text);
    String::from_utf8_lossy(out.trim_ascii_end()).into_owned()
}

/// `{"name","label"="value"} 1 1500`.
fn shown_quoted(line: &Line) -> String {
    let name = format!("\"{}\"", escaped(line.labels.metric_name()));
    let parts: Vec<String> = [name].into_iter().chain(quoted_pairs(&line.labels)).collect();
    let nameless = Labels::from_pairs(&[(METRIC_NAME, "x")]);
    let rest = shown(&Line { labels: nameless, ..line.clone() });
    format!("{{{}}} {}", parts.join(","), rest.trim_start_matches("x "))
}

fn quoted_pairs(labels: &Labels) -> Vec<String> {
    others(labels)
        .map(|(name, value)| format!("\"{}\"=\"{}\"", escaped(name), escaped(value)))
        .collect()
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some('n') => out.push('\n'),
                Some(other) => out.push(other),
                None => out.push('\\'),
            },
            plain => out.push(plain),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str, texts: &[&str]) -> Result<String> {
        let function = functions().find(|one| one.name() == name).unwrap();
        let (_, work, _) = ALL.iter().find(|(one, ..)| *one == name).unwrap();
        let signature = function.signature().clone();
        let arrays: Vec<ArrayRef> =
            texts.iter().map(|text| Arc::new(StringViewArray::from(vec![*text])) as _).collect();
        let made = Function { name: "f", work: *work, signature }.of(&arrays, 1)?;
        Ok(match crate::types::text::shown::column(&made) {
            Some(shown) => cast(&shown, &DataType::Utf8View)?.as_string_view().value(0).to_string(),
            None => cast(&made, &DataType::Utf8View)?.as_string_view().value(0).to_string(),
        })
    }

    #[test]
    fn samples_are_taken_apart_and_put_together() {
        let line = "cpu{service=\"n\\\"x\",host=\"a,b=c}\"} 1.5e+09 1494595898000";
        for (name, others, expected) in [
            ("prom_name", &[][..], "cpu"),
            ("prom_time", &[], "2017-05-12 13:31:38+00"),
            ("prom_value", &[], "1500000000"),
            ("prom_labels", &[], r#"{"host": "a,b=c}", "service": "n\"x"}"#),
            ("prom_label", &["service"], "n\"x"),
            ("prom_has_label", &["host"], "true"),
            ("prom_label_count", &[], "2"),
            (
                "prom_jsonb",
                &[],
                r#"{"name": "cpu", "time": "2017-05-12 13:31:38+00", "value": 1500000000, "labels": {"host": "a,b=c}", "service": "n\"x"}}"#,
            ),
            ("to_prom", &[], "cpu{host=\"a,b=c}\",service=\"n\\\"x\"} 1.5e+09 1494595898000"),
            (
                "prom_to_expo_utf8",
                &[],
                "{\"cpu\",\"host\"=\"a,b=c}\",\"service\"=\"n\\\"x\"} 1.5e+09 1494595898000",
            ),
        ] {
            let all: Vec<&str> = [line].into_iter().chain(others.iter().copied()).collect();
            assert_eq!(of(name, &all).unwrap(), expected, "{name}");
        }
        assert_eq!(of("prom_unescape", &["a\\\\n\\n\\\""]).unwrap(), "a\\n\n\"");
        assert_eq!(of("prom_escape", &["a\\n\n\""]).unwrap(), "a\\\\n\\n\\\"");
        let pairs = r#""a b"="1,2","c"="=""#;
        let json = r#"{"c": "=", "a b": "1,2"}"#;
        assert_eq!(of("prom_expo_to_labels", &[pairs]).unwrap(), json);
        assert_eq!(of("prom_labels_to_expo", &[json]).unwrap(), pairs);
        for text in ["cpu", "# HELP x y", "", "cpu{a} 1"] {
            let failure = of("prom_name", &[text]).unwrap_err();
            assert_eq!(SqlError::from(failure).code, "22P02", "{text}");
        }
    }
}
