//! Answers of InfluxQL as a client reads them: a line of a chunked one, with every digit of its numbers.
//!
//! ```text
//! {"results":[{"statement_id":0,"series":[{"name":"cpu","tags":{"host":"a"},"columns":["time","v"],
//!              "values":[[1451606400000000000,1.5]],"partial":true}],"partial":true}]}
//! ```

use super::envelope::{self, Part};
use super::long::is_long;
use crate::Error;
use crate::json_lines::scan::{Fault, Scan};
use crate::narrow::body_offset;
use crate::number;
use std::sync::Arc;

/// A part of a series.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AnswerSeries {
    /// The measurement.
    pub name: String,
    /// Its tags; those that it has not are empty.
    pub tags: Vec<(String, String)>,
    /// Times in nanoseconds, where the question said so, and what stands behind them.
    pub rows: Vec<AnswerRow>,
    /// The texts that rows name.
    pub texts: Vec<Arc<str>>,
    /// Whether more of it follows.
    pub is_cut: bool,
}

/// A row of one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AnswerRow {
    /// What stands in its first column.
    pub time: i64,
    /// What stands in the others.
    pub values: Vec<Option<AnswerValue>>,
}

/// What stands in a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AnswerValue {
    /// A number; a boolean is 1 or 0.
    Number(f64),
    /// A whole number that float64 may have no room for ([`super::long`]), of whatever type.
    Long(i64),
    /// Which of the texts that come with the rows it is, from 0.
    Text(u32),
}

/// What a line says of one statement.
pub type AnswerPart = Part<AnswerSeries>;

/// Reads a line.
///
/// # Errors
/// When it is none, or says that something went wrong: then in the server's words.
pub fn read_answer(line: &[u8]) -> Result<Vec<AnswerPart>, Error> {
    envelope::read(line, series)
}

fn series(scan: &mut Scan<'_>) -> Result<AnswerSeries, Fault> {
    let mut series = AnswerSeries::default();
    scan.members(|scan, name| {
        match name {
            "name" => series.name = scan.string()?.into_owned(),
            "tags" => scan.members(|scan, name| {
                series.tags.push((name.to_string(), scan.string()?.into_owned()));
                Ok(())
            })?,
            "values" => scan.elements(|scan| {
                series.rows.push(row(scan, &mut series.texts)?);
                Ok(())
            })?,
            "partial" => series.is_cut = envelope::yes_or_no(scan)?,
            _ => scan.skip(0)?,
        }
        Ok(())
    })?;
    Ok(series)
}

fn row(scan: &mut Scan<'_>, texts: &mut Vec<Arc<str>>) -> Result<AnswerRow, Fault> {
    let mut values = Vec::new();
    let time = envelope::row(scan, |scan, _| {
        values.push(cell(scan, texts)?);
        Ok(())
    })?;
    Ok(AnswerRow { time, values })
}

fn cell(scan: &mut Scan<'_>, texts: &mut Vec<Arc<str>>) -> Result<Option<AnswerValue>, Fault> {
    if scan.peek() == Some(b'"') {
        let text = scan.string()?;
        let at = body_offset(texts.len());
        texts.push(text.into());
        return Ok(Some(AnswerValue::Text(at)));
    }
    let start = scan.at;
    let value = envelope::number_or_none(scan)?;
    Ok(value.map(|value| whole_at(scan.text, start, value).unwrap_or(AnswerValue::Number(value))))
}

/// The whole number at a place, if its value is one of several that are so near.
fn whole_at(text: &[u8], at: usize, value: f64) -> Option<AnswerValue> {
    let written = Some(at).filter(|_| is_long(value)).and_then(|at| number::decimal(text, at))?;
    number::signed_of(written.integer?, written.is_negative).map(AnswerValue::Long)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_have_tags_and_every_digit() {
        let line = br#"{"results":[{"statement_id":3,"series":[{"name":"a b","tags":{"host":"x\u003c","zone":""},
            "columns":["time","v","n","on"],"values":[[-1451606400000000001,0.1,9007199254740993,true],
            [1, null, 1e-7,"te\"x\u00e9t"]],"partial":true}],"partial":true}]}"#;
        let parts = read_answer(line).unwrap();
        assert_eq!((parts.len(), parts[0].statement), (1, 3));
        let series = &parts[0].series[0];
        assert_eq!((series.name.as_str(), series.is_cut), ("a b", true));
        assert_eq!(series.tags[1], ("zone".to_string(), String::new()));
        let row =
            |time, values: [Option<AnswerValue>; 3]| AnswerRow { time, values: values.to_vec() };
        let number = |value| Some(AnswerValue::Number(value));
        let expected = [
            row(
                -1_451_606_400_000_000_001,
                [number(0.1), Some(AnswerValue::Long(9_007_199_254_740_993)), number(1.0)],
            ),
            row(1, [None, number(1e-7), Some(AnswerValue::Text(0))]),
        ];
        assert_eq!(series.rows, expected);
        assert_eq!(series.texts, ["te\"x\u{e9}t".into()]);
        assert!(read_answer(b"{\"results\":[{\"statement_id\":0}]}").unwrap()[0].series.is_empty());
    }

    #[test]
    fn what_went_wrong_is_said() {
        let words = |line: &[u8]| read_answer(line).unwrap_err().to_string();
        assert_eq!(words(br#"{"error":"no database"}"#), "no database");
        assert_eq!(words(br#"{"results":[{"statement_id":0,"error":"timeout"}]}"#), "timeout");
        assert!(words(b"{}").contains("results"));
        assert!(words(br#"{"results":[{"series":[{"values":[[]]}]}]}"#).contains("a time"));
        assert!(words(br#"{"results":[{"series":[{"values":[[1.5]]}]}]}"#).contains("whole"));
        let whole = br#"{"results":[{"series":[{"name":"a","values":[[1,2]]}]}]}"#;
        assert!((0..whole.len()).all(|size| read_answer(&whole[..size]).is_err()));
    }
}
