//! JSON lines of VictoriaMetrics' export: limits, and the lines of an answer that comes in pieces.

use anyhow::{Context as _, ensure};
use model::sample::NANOS_PER_DAY;

/// Content type of lines.
pub const LINES_TYPE: &str = "application/stream+json";
/// Samples of one line.
pub const ROWS_PER_LINE: usize = 10_000;
/// Bytes of a line.
const LINE_SIZE_MAX: usize = 64 << 20;
/// Start of the second day of 1970. Its index cannot be asked for the first one: it takes a time of 0 for
/// none.
pub const FIRST: i64 = NANOS_PER_DAY;

/// What takes the lines of an answer.
pub type OnLine<'a> = dyn FnMut(&[u8]) -> anyhow::Result<()> + 'a;

/// The lines of an answer that comes in pieces.
#[derive(Default)]
pub struct Lines {
    /// What has come of a line that is not whole.
    rest: Vec<u8>,
    count: u64,
}

impl Lines {
    /// Takes bytes as they come and hands on the lines that are whole.
    ///
    /// # Errors
    /// A line that is too long, or that `sink` does not take.
    pub fn push(&mut self, bytes: &[u8], sink: &mut OnLine<'_>) -> anyhow::Result<()> {
        let Lines { rest, count } = self;
        // Only what is new may have the end of a line.
        let end = bytes.iter().rposition(|byte| *byte == b'\n');
        let whole = end.map_or(0, |at| rest.len() + at + 1);
        rest.extend_from_slice(bytes);
        ensure!(rest.len() - whole < LINE_SIZE_MAX, "a line of more than {LINE_SIZE_MAX} bytes");
        for text in rest[..whole].split(|byte| *byte == b'\n').filter(|text| !text.is_empty()) {
            *count += 1;
            sink(text).with_context(|| format!("line {count} of the answer"))?;
        }
        rest.drain(..whole);
        Ok(())
    }

    /// Hands on what is left, now that all has come.
    ///
    /// # Errors
    /// As [`Lines::push`].
    pub fn end(self, sink: &mut OnLine<'_>) -> anyhow::Result<()> {
        match self.rest.is_empty() {
            true => Ok(()),
            false => sink(&self.rest),
        }
    }
}

/// Milliseconds as it reads them: seconds with a fraction.
pub fn seconds(millis: i64) -> String {
    let (sign, size) = (if millis < 0 { "-" } else { "" }, millis.unsigned_abs());
    format!("{sign}{}.{:03}", size / 1000, size % 1000)
}
