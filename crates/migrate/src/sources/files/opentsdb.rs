//! Lines as `tsdb scan --import` writes them: `metric timestamp value tag=value ..`.

use super::{Behind, Cut, Format, Out, Piece, cut_lines};
use crate::series::Series;
use crate::source::Given;
use std::collections::HashMap;
use wire::opentsdb::line::{Line, read_line};
use wire::remote_write::encode::MillisSample;

/// Samples of a series that are handed on at once.
const SAMPLES_AT_ONCE: usize = 32 << 10;

/// Lines, in any order.
pub struct OpenTsdbLines;

/// The series of a piece, by their metric and tags as they stand.
#[derive(Default)]
struct Found<'a> {
    places: HashMap<(&'a str, &'a str), Option<usize>>,
    all: Vec<Series>,
}

impl Format for OpenTsdbLines {
    fn cut(&mut self, coming: &[u8], behind: Behind) -> anyhow::Result<Cut> {
        Ok(cut_lines(coming, behind))
    }

    fn read(&self, piece: &Piece, bytes: &[u8], out: &mut Out<'_>) -> anyhow::Result<()> {
        let mut found = Found::default();
        for (text, number) in bytes.split(|byte| *byte == b'\n').zip(piece.first..) {
            if text.trim_ascii().is_empty() {
                continue;
            }
            let line = match read_line(text) {
                Ok(line) => line,
                Err(why) => {
                    out.fault(number, why);
                    continue;
                }
            };
            match found.series(&line) {
                Ok(series) => {
                    series.samples.push(MillisSample { millis: line.millis, value: line.value });
                    if SAMPLES_AT_ONCE <= series.samples.len() {
                        let samples = std::mem::take(&mut series.samples);
                        out.give(Given::Series(Series { samples, ..series.clone() }))?;
                    }
                }
                Err(why) => out.fault(number, why),
            }
        }
        let all = found.all.into_iter().filter(|series| !series.is_empty());
        all.map(Given::Series).try_for_each(|given| out.give(given))
    }
}

impl<'a> Found<'a> {
    /// The series of a line.
    fn series(&mut self, line: &Line<'a>) -> Result<&mut Series, String> {
        let key = (line.metric, line.tags);
        let at = match self.places.get(&key) {
            Some(at) => *at,
            None => {
                let labels = line.labels();
                let at = labels.is_ok().then_some(self.all.len());
                self.places.insert(key, at);
                let labels = labels?;
                self.all.push(Series {
                    labels,
                    samples: Vec::new(),
                    histograms: Vec::new(),
                    repeated: Vec::new(),
                });
                at
            }
        };
        let wrong = || line.labels().err().unwrap_or_default();
        at.and_then(|at| self.all.get_mut(at)).ok_or_else(wrong)
    }
}
