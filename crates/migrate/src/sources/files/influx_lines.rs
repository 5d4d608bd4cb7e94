//! Line protocol in files, as `influx_inspect export` writes it: comments say to which database and retention
//! policy lines belong, and what stands before `# DML` is no line.

use super::{Behind, Cut, Format, LOOKAHEAD, Out, PIECE_SIZE, Piece};
use crate::points::Points;
use crate::source::Given;
use model::{KeyHasher, Labels, LabelsBuilder, METRIC_NAME, WriteBatch};
use std::collections::HashMap;
use std::sync::Arc;
use wire::influx::answer::{AnswerRow, AnswerValue};
use wire::influx::long::exact;
use wire::influx::{
    FieldType, InfluxKeys, LONG_SUFFIX, Options, Precision, TEXT_SUFFIX, TextsRead, decode,
    kinds_by_shape, line_end,
};
use wire::{ExtraLabels, Start};

/// What comments begin with that say something.
const DATABASE: &[u8] = b"# CONTEXT-DATABASE:";
const POLICY: &[u8] = b"# CONTEXT-RETENTION-POLICY:";
const DEFINITIONS: &[u8] = b"# DDL";
const LINES: &[u8] = b"# DML";
/// Rows of a series that are handed on at once.
const ROWS_AT_ONCE: usize = 16 << 10;

/// Lines, and what was said before them.
pub struct InfluxLines {
    /// The retention policy that a database has without being asked.
    default_policy: String,
    database: String,
    policy: String,
    is_in_definitions: bool,
    /// The time of lines that have none.
    now: i64,
}

impl InfluxLines {
    /// At the beginning of a file.
    pub fn new(default_policy: &str, now: i64) -> InfluxLines {
        InfluxLines {
            default_policy: default_policy.to_string(),
            database: String::new(),
            policy: String::new(),
            is_in_definitions: false,
            now,
        }
    }

    /// The database, or `database/policy`: InfluxDB's names have no slash.
    fn context(&self) -> String {
        match self.policy.is_empty() || self.policy == self.default_policy {
            true => self.database.clone(),
            false => format!("{}/{}", self.database, self.policy),
        }
    }

    fn hear(&mut self, line: &[u8]) {
        let said = |rest: &[u8]| String::from_utf8_lossy(rest).trim().to_string();
        if let Some(rest) = line.strip_prefix(DATABASE) {
            self.database = said(rest);
            self.policy.clear();
        } else if let Some(rest) = line.strip_prefix(POLICY) {
            self.policy = said(rest);
        } else {
            self.is_in_definitions = line.starts_with(DEFINITIONS);
        }
    }
}

/// Whether a line says something of those behind it.
fn is_said(line: &[u8]) -> bool {
    [DATABASE, POLICY, DEFINITIONS, LINES].iter().any(|start| line.starts_with(start))
}

impl Format for InfluxLines {
    fn cut(&mut self, coming: &[u8], behind: Behind) -> anyhow::Result<Cut> {
        let (mut at, mut records) = (0, 0u32);
        while at < coming.len().min(PIECE_SIZE) {
            // A string that is open here may have newlines, and ends further behind.
            if behind == Behind::More && coming.len() - at < LOOKAHEAD {
                break;
            }
            let rest = coming.get(at..).unwrap_or_default();
            let is_comment = is_said(rest);
            if is_comment && 0 < at {
                break;
            }
            let end = match self.is_in_definitions {
                true => at + plain_end(rest),
                false => line_end(coming, at),
            };
            let line = coming.get(at..end).unwrap_or_default();
            records += 1 + newlines(line);
            at = (end + 1).min(coming.len());
            if is_comment {
                self.hear(line);
                return Ok(Cut { size: at, records, context: None });
            }
            if self.is_in_definitions {
                return Ok(Cut { size: at, records, context: None });
            }
        }
        Ok(Cut { size: at, records, context: Some(self.context()) })
    }

    fn read(&self, piece: &Piece, bytes: &[u8], out: &mut Out<'_>) -> anyhow::Result<()> {
        let hasher = KeyHasher::new(1);
        let options = Options { precision: Precision::Nanosecond, now: self.now };
        let mut start = Start { offset: 0, line: piece.first };
        loop {
            let texts = Arc::new(TextsRead::default());
            let keys = InfluxKeys::new(ExtraLabels::none()).with_texts(Some(texts.clone()));
            let keys = keys.with_long_integers();
            let decoded = decode(bytes, start, &options, &hasher, &keys)?;
            out.strings += decoded.counts.strings;
            let kept = decoded.errors.kept();
            for error in kept {
                out.fault(error.position, &error.reason);
            }
            let others = decoded.errors.count() - kept.len() as u64;
            out.faults(others, || "..".to_string());
            give(
                &decoded.batch,
                bytes,
                (&piece.context, &self.default_policy, Arc::new(texts.take())),
                out,
            )?;
            match decoded.rest {
                Some(next) => start = next,
                None => return Ok(()),
            }
        }
    }
}

/// The types of the fields of each measurement and list of fields.
type Types = HashMap<(Vec<u8>, u32), HashMap<String, FieldType>>;

/// Low bits of fields of one line.
type Lows<'b> = HashMap<&'b str, f64>;

/// Hands on the rows of a batch, series by series.
fn give(
    batch: &WriteBatch<'_>,
    bytes: &[u8],
    (context, default_policy, texts): (&str, &str, Arc<Vec<Arc<str>>>),
    out: &mut Out<'_>,
) -> anyhow::Result<()> {
    let mut types = Types::new();
    for ((measurement, shape), line) in kinds_by_shape(bytes, batch) {
        types.insert((measurement.to_vec(), shape), line.fields.into_iter().collect());
    }
    let mut known: HashMap<u128, Option<usize>> = HashMap::new();
    let mut all: Vec<Points> = Vec::new();
    let mut lows = Lows::default();
    // Kinds of lines may share a series and a field: of equal times the last line of the file counts.
    let mut seen: HashMap<(&[u8], i64), usize> = HashMap::new();
    for row in &batch.rows {
        if let Some(found) = lows_of(batch, row) {
            lows = found;
            continue;
        }
        let at = match known.get(&row.hash) {
            Some(at) => *at,
            None => {
                let made = points_of(batch, row, &types, (context, default_policy));
                let made = made.map(|points| Points { texts: texts.clone(), ..points });
                let made = made.map_err(|why| out.fault(row.position, why)).ok();
                let at = made.map(|points| {
                    all.push(points);
                    all.len() - 1
                });
                known.insert(row.hash, at);
                at
            }
        };
        let lows = std::mem::take(&mut lows);
        let Some(at) = at else { continue };
        let place = (batch.key(row), row.timestamp);
        if seen.insert(place, at).is_some_and(|before| before != at) {
            give_pending(&mut all, out)?;
            seen.clear();
            seen.insert(place, at);
        }
        let Some(points) = all.get_mut(at) else { continue };
        let values = points.fields.iter().zip(batch.row_values(row));
        let values = values.map(|((name, kind), value)| {
            let low = lows.get(name.as_str()).copied();
            Some(value_of(*kind, *value, low))
        });
        let values = values.collect();
        points.rows.push(AnswerRow { time: row.timestamp, values });
        if ROWS_AT_ONCE <= points.rows.len() {
            let next = Points { rows: Vec::new(), ..points.clone() };
            out.give(Given::Points(std::mem::replace(points, next)))?;
        }
    }
    give_pending(&mut all, out)
}

/// Hands on the rows that came so far, and goes on with the same series.
fn give_pending(all: &mut [Points], out: &mut Out<'_>) -> anyhow::Result<()> {
    for points in all.iter_mut().filter(|points| !points.rows.is_empty()) {
        let mut rows = std::mem::take(&mut points.rows);
        rows.sort_by_key(|row| row.time);
        out.give(Given::Points(Points { rows, ..points.clone() }))?;
    }
    Ok(())
}

/// A series of a batch, without its rows.
fn points_of(
    batch: &WriteBatch<'_>,
    row: &model::Row,
    types: &Types,
    (context, default_policy): (&str, &str),
) -> Result<Points, String> {
    let key = batch.key(row);
    let (mut builder, mut measurement) = (LabelsBuilder::new(), String::new());
    batch.decoder.tags(key, &mut builder).map_err(|error| error.to_string())?;
    batch.decoder.metric_name(key, "", &mut measurement).map_err(|error| error.to_string())?;
    // The decoder puts the field behind it.
    measurement.pop();
    builder.remove(METRIC_NAME);
    let tags: Labels = builder.finish();
    let of = types.get(&(raw_measurement(key).to_vec(), row.shape));
    let shape = batch.shapes.get(row.shape as usize).ok_or("a row of no shape")?;
    let kind = |name: &str| of.and_then(|of| of.get(name)).copied().unwrap_or(FieldType::Float);
    let field = |name: &str| match name.strip_suffix(TEXT_SUFFIX) {
        // No field of numbers may be called so.
        Some(plain) => (plain.to_string(), FieldType::String),
        None => (name.to_string(), kind(name)),
    };
    let fields = shape.fields.iter().map(|name| field(name)).collect();
    let (database, policy) = match context.split_once('/') {
        Some((database, policy)) => (format!("{database}.{policy}"), policy.to_string()),
        None => (context.to_string(), String::new()),
    };
    let (texts, default_policy) = (Arc::default(), default_policy.to_string());
    let rows = Vec::new();
    Ok(Points { database, policy, default_policy, measurement, tags, fields, rows, texts })
}

/// The low bits of the long integers of the line whose row is the next, if the row has these.
fn lows_of<'b>(batch: &'b WriteBatch<'_>, row: &model::Row) -> Option<Lows<'b>> {
    let fields = &batch.shapes.get(row.shape as usize)?.fields;
    let names = fields.iter().map(|name| name.strip_suffix(LONG_SUFFIX));
    names.zip(batch.row_values(row)).map(|(name, bits)| Some((name?, *bits))).collect()
}

/// What a sample is: one of strings is the number of a text, from 1.
fn value_of(kind: FieldType, sample: f64, low: Option<f64>) -> AnswerValue {
    let whole = low.and_then(|low| exact(sample, low)).and_then(|whole| i64::try_from(whole).ok());
    match (kind, whole) {
        (FieldType::String, _) => AnswerValue::Text((sample as u32).saturating_sub(1)),
        (_, Some(whole)) => AnswerValue::Long(whole),
        (_, None) => AnswerValue::Number(sample),
    }
}

/// The measurement of a key as it stands there.
fn raw_measurement(key: &[u8]) -> &[u8] {
    let is_end = |at: &usize| key[*at] == b',' && (*at == 0 || key[*at - 1] != b'\\');
    &key[..(0..key.len()).find(is_end).unwrap_or(key.len())]
}

/// Newlines of a text.
fn newlines(text: &[u8]) -> u32 {
    u32::try_from(text.iter().filter(|byte| **byte == b'\n').count()).unwrap_or(u32::MAX)
}

/// Where the line that a text begins with ends.
fn plain_end(text: &[u8]) -> usize {
    text.iter().position(|byte| *byte == b'\n').unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the pieces of a text say: their contexts, and what they have.
    fn pieces(text: &str) -> Vec<(String, Vec<String>)> {
        let mut format = InfluxLines::new("autogen", 0);
        let (mut found, mut at, mut first) = (Vec::new(), 0, 1);
        while at < text.len() {
            let cut = format.cut(&text.as_bytes()[at..], Behind::Nothing).unwrap();
            let bytes = &text.as_bytes()[at..at + cut.size];
            if let Some(context) = cut.context {
                let piece = Piece {
                    file: 0,
                    offset: 0,
                    size: 0,
                    first,
                    context: context.clone(),
                    broken: None,
                };
                let mut lines = Vec::new();
                let mut sink = |given: Given| {
                    let Given::Points(points) = given else { unreachable!("points") };
                    let text = points.lines(&crate::series::Filter::all()).unwrap().text;
                    lines.push(String::from_utf8(text).unwrap());
                    Ok(())
                };
                let mut out =
                    Out { sink: &mut sink, strings: 0, faults: Vec::new(), fault_count: 0 };
                format.read(&piece, bytes, &mut out).unwrap();
                let faults = std::mem::take(&mut out.faults);
                lines.extend(faults);
                found.push((context, lines));
            }
            (at, first) = (at + cut.size, first + cut.records);
        }
        found
    }

    #[test]
    fn the_last_line_of_a_series_and_time_comes_last() {
        let text = "m v=1i 1\nm w=t,v=2i 2\nm v=3i 2\nm,h=a v=4i 2\nm v=5i 3\nm w=f,v=6i 3\n";
        let found = pieces(text);
        let lines: String = found.iter().flat_map(|(_, lines)| lines.clone()).collect();
        let at = |line: &str| lines.find(line).expect("every line");
        assert!(at("m w=t,v=2i 2\n") < at("m v=3i 2\n"), "{lines}");
        assert!(at("m v=5i 3\n") < at("m w=f,v=6i 3\n"), "{lines}");
        assert_eq!(lines.lines().count(), 6, "{lines}");
    }

    #[test]
    fn comments_say_where_lines_belong() {
        let text = "# INFLUXDB EXPORT: a - b\n# DDL\nCREATE DATABASE x WITH NAME autogen\n# DML\n\
                    # CONTEXT-DATABASE:x\n# CONTEXT-RETENTION-POLICY:autogen\n# writing tsm data\n\
                    m,h=a v=1i 1\nm,h=a v=2i 2\nm,h=a s=\"# CONTEXT-DATABASE:z\n\" 3\nn,h=b v=t 1\n\
                    # CONTEXT-RETENTION-POLICY:long\nm v=0.5 7\n\
                    # CONTEXT-DATABASE:y\nm bad 1\n\
                    # CONTEXT-DATABASE:z\nm v=9007199254740993i,w=1i 1\nm v=3i,w=2i 2\n\
                    m v=9007199254740995i,w=-9223372036854775807i 3\nm v=9007199254740993,w=1i 4\n";
        let found = pieces(text);
        let shown: Vec<(&str, &[String])> =
            found.iter().map(|(context, lines)| (context.as_str(), lines.as_slice())).collect();
        let lines = |texts: &[&str]| texts.iter().map(|one| one.to_string()).collect::<Vec<_>>();
        assert_eq!(
            shown[1],
            (
                "x",
                lines(&[
                    "m,h=a v=1i 1\nm,h=a v=2i 2\n",
                    "m,h=a s=\"# CONTEXT-DATABASE:z\n\" 3\n",
                    "n,h=b v=t 1\n"
                ])
                .as_slice()
            )
        );
        assert_eq!(shown[2], ("x/long", lines(&["m v=0.5 7\n"]).as_slice()));
        assert_eq!(shown[3].0, "y");
        let longs = "m v=9007199254740993i,w=1i 1\nm v=3i,w=2i 2\n\
                     m v=9007199254740995i,w=-9223372036854775807i 3\nm v=9007199254740992i,w=1i 4\n";
        assert_eq!(shown[4], ("z", lines(&[longs]).as_slice()));
        assert!(shown[3].1[0].starts_with("16: unable to parse 'm bad 1'"), "{shown:?}");
    }
}
