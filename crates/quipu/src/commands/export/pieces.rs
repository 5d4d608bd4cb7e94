//! The JSON lines of a server's export, as they arrive, to pieces of series: a line is one.

use anyhow::{Context as _, bail};
use histogram::Histogram;
use model::{KeyHasher, Labels, LabelsBuilder, METRIC_NAME, Timestamp};
use std::sync::Arc;
use wire::json_lines::{self, JsonKeys, StringLine, has_strings};
use wire::{Decoded, ExtraLabels, Start};

/// Bytes of lines that are decoded at once.
const LINES_SIZE: usize = 4 << 20;

/// Some samples of a series, in the order of their times; numbers come before histograms, and all pieces of
/// a series follow each other.
#[derive(Debug, Default)]
pub struct Piece {
    /// Whose.
    pub labels: Labels,
    /// Numbers.
    pub samples: Vec<(Timestamp, f64)>,
    /// Native histograms.
    pub histograms: Vec<(Timestamp, Histogram)>,
    /// How many of them say since when they count.
    pub starts: u64,
    /// Strings, which are pieces of their own.
    pub strings: Vec<(Timestamp, Arc<str>)>,
}

/// Takes a piece.
pub type OnPiece<'a> = &'a mut dyn FnMut(&Piece) -> anyhow::Result<()>;

/// Lines that are not decoded yet; the last may lack its end.
pub struct Pieces {
    lines: Vec<u8>,
    /// The metric of the line before, as it stands, and its labels.
    known: (Vec<u8>, Labels),
}

impl Pieces {
    /// None so far.
    pub fn new() -> Pieces {
        Pieces { lines: Vec::new(), known: (Vec::new(), Labels::default()) }
    }

    /// Takes bytes, and hands on the pieces of whole lines.
    ///
    /// # Errors
    /// When the lines are none, or `on_piece` fails.
    pub fn push(&mut self, bytes: &[u8], on_piece: OnPiece<'_>) -> anyhow::Result<()> {
        self.lines.extend_from_slice(bytes);
        if LINES_SIZE <= self.lines.len()
            && let Some(end) = self.lines.iter().rposition(|byte| *byte == b'\n')
        {
            let rest = self.lines.split_off(end + 1);
            let whole = std::mem::replace(&mut self.lines, rest);
            self.decode(&whole, on_piece)?;
        }
        Ok(())
    }

    /// Hands on what is left at the end of an answer.
    ///
    /// # Errors
    /// As [`Pieces::push`].
    pub fn finish(&mut self, on_piece: OnPiece<'_>) -> anyhow::Result<()> {
        let lines = std::mem::take(&mut self.lines);
        self.decode(&lines, on_piece)
    }

    fn decode(&mut self, lines: &[u8], on_piece: OnPiece<'_>) -> anyhow::Result<()> {
        if !has_strings(lines) {
            return self.decode_values(lines, on_piece);
        }
        let (texts, values): (Vec<&[u8]>, Vec<&[u8]>) =
            lines.split_inclusive(|byte| *byte == b'\n').partition(|line| has_strings(line));
        self.decode_values(&values.concat(), on_piece)?;
        for line in texts {
            let line = StringLine::read(line.trim_ascii())
                .context("the server's export cannot be read")?;
            let StringLine { labels, samples: strings, .. } = line;
            on_piece(&Piece { labels, strings, ..Piece::default() })?;
        }
        Ok(())
    }

    fn decode_values(&mut self, lines: &[u8], on_piece: OnPiece<'_>) -> anyhow::Result<()> {
        let (hasher, keys) = (KeyHasher::new(0), JsonKeys::new(ExtraLabels::none()));
        let mut next = Some(Start::default());
        while let Some(start) = next {
            let decoded = json_lines::decode(lines, start, &hasher, &keys)?;
            next = decoded.rest;
            if let Some(error) = decoded.errors.kept().first() {
                bail!("the server's export cannot be read: {}", error.reason);
            }
            self.take(&decoded, on_piece)?;
        }
        Ok(())
    }

    /// Hands on line by line: numbers, histograms and start timestamps of a line have its key.
    fn take(&mut self, decoded: &Decoded<'_>, on_piece: OnPiece<'_>) -> anyhow::Result<()> {
        let batch = &decoded.batch;
        let (mut rows, mut histograms) = (batch.rows.as_slice(), decoded.histograms.as_slice());
        let mut starts = decoded.starts.as_slice();
        loop {
            let key = match (rows.first(), histograms.first()) {
                (Some(row), Some(other)) if other.key_offset < row.key_offset => {
                    (other.key_offset, other.key_size)
                }
                (Some(row), _) => (row.key_offset, row.key_size),
                (None, Some(other)) => (other.key_offset, other.key_size),
                (None, None) => return Ok(()),
            };
            let mut piece = Piece { labels: self.labels(decoded, key)?, ..Piece::default() };
            while let Some((row, rest)) =
                rows.split_first().filter(|(row, _)| row.key_offset == key.0)
            {
                let [value] = batch.row_values(row) else { bail!("a line without its value") };
                piece.samples.push((row.timestamp, *value));
                rows = rest;
            }
            while let Some((row, rest)) =
                histograms.split_first().filter(|(row, _)| row.key_offset == key.0)
            {
                piece.histograms.push((row.timestamp, row.histogram.clone()));
                histograms = rest;
            }
            while let Some((_, rest)) =
                starts.split_first().filter(|(row, _)| row.key_offset == key.0)
            {
                piece.starts += 1;
                starts = rest;
            }
            on_piece(&piece)?;
        }
    }

    fn labels(&mut self, decoded: &Decoded<'_>, key: (u32, u32)) -> anyhow::Result<Labels> {
        let (start, batch) = (key.0 as usize, &decoded.batch);
        let end = start + key.1 as usize;
        let bytes = batch.bytes.get(start..end).context("a line without its metric")?;
        if self.known.0 != bytes {
            let (mut labels, mut name) = (LabelsBuilder::new(), String::new());
            batch.decoder.tags(bytes, &mut labels)?;
            batch.decoder.metric_name(bytes, "", &mut name)?;
            labels.push(METRIC_NAME, &name);
            self.known = (bytes.to_vec(), labels.finish());
        }
        Ok(self.known.1.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_pieces_in_their_order() {
        let text = concat!(
            r#"{"metric":{"__name__":"a","b":"é"},"values":[1,"NaN:7ff0000000000002"],"timestamps":[1,2.000001]}"#,
            "\n",
            r#"{"metric":{"__name__":"a","b":"é"},"histograms":[{"schema":0,"count":1,"sum":2,"positive":[[0,1]]}],"histogram_timestamps":[3],"histogram_start_timestamps":[1]}"#,
            "\n",
            r#"{"metric":{"__name__":"c"},"values":[2],"timestamps":[-5]}"#,
            "\n"
        );
        let mut found = Vec::new();
        let mut take = |piece: &Piece| {
            let histograms: Vec<i64> = piece.histograms.iter().map(|one| one.0).collect();
            let times: Vec<i64> = piece.samples.iter().map(|one| one.0).collect();
            found.push((piece.labels.to_string(), times, histograms, piece.starts));
            Ok(())
        };
        let mut pieces = Pieces::new();
        for bytes in text.as_bytes().chunks(7) {
            pieces.push(bytes, &mut take).unwrap();
        }
        pieces.finish(&mut take).unwrap();
        let name = "a{b=\"é\"}".to_string();
        let expected = [
            (name.clone(), vec![1_000_000, 2_000_001], vec![], 0),
            (name, vec![], vec![3_000_000], 1),
            ("c{}".to_string(), vec![-5_000_000], vec![], 0),
        ];
        assert_eq!(found, expected);
        assert!(pieces.push(b"{\"error\":\"x\"}\n", &mut |_| Ok(())).is_ok());
        assert!(pieces.finish(&mut |_| Ok(())).is_err(), "no line");
    }
}
