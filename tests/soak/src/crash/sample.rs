//! The samples of the crash test: everything about one follows from its writer and line number,
//! and back, so a sample read from the server proves or disproves itself.
//!
//! ```text
//! crash,batch=b<n/20000>,host=h<n%61>,writer=w<w> count=<hash>i,ratio=<hash>,level=<hash>i <time>
//! time = start of the writer's month + scrambled(n) ms
//! ```
//!
//! Times are scrambled within 256 lines, so batches are out of order and meet in the same pages;
//! each writer has a month of its own, so several partitions are open at once; `batch` makes new
//! series all the time.

use quipu_bench::instant::DAY_NS;
use quipu_bench::random::mix_pair;

/// The fields of a line: an integer, a float, and an integer that rarely changes.
pub const FIELDS: [&str; 3] = ["count", "ratio", "level"];
/// The start of the first writer's samples: 2025-03-05.
const START_MS: i64 = 1_741_132_800_000;
/// Distance of two writers.
const WRITER_MS: i64 = 31 * DAY_NS / 1_000_000;
/// Lines after which all series are new.
const LINES_PER_BATCH_LABEL: u64 = 20_000;
const HOSTS: u64 = 61;

/// Which sample: writer, line of this writer, field of the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Which writer.
    pub writer: u64,
    /// Which of its lines.
    pub line: u64,
    /// Index into [`FIELDS`].
    pub field: usize,
}

/// Appends a line.
pub fn put_line(writer: u64, line: u64, out: &mut Vec<u8>) {
    let (batch, host) = (line / LINES_PER_BATCH_LABEL, line % HOSTS);
    let value = |field| value(Place { writer, line, field });
    let text = format!(
        "crash,batch=b{batch},host=h{host},writer=w{writer} count={}i,ratio={},level={}i {}\n",
        value(0),
        value(1),
        value(2),
        timestamp_ms(writer, line) * 1_000_000
    );
    out.extend_from_slice(text.as_bytes());
}

/// The value that a sample must have.
pub fn value(place: Place) -> f64 {
    let bits = mix_pair(place.writer << 8 | place.field as u64, place.line);
    match place.field {
        0 => (bits >> 20) as f64,
        1 => (bits >> 11) as f64 / (1u64 << 53) as f64,
        _ => (place.line / 1000) as f64,
    }
}

/// The value of a label that a sample must have; `None` for labels it must not have.
pub fn label(place: Place, name: &str) -> Option<String> {
    match name {
        "__name__" => Some(format!("crash_{}", FIELDS[place.field])),
        "batch" => Some(format!("b{}", place.line / LINES_PER_BATCH_LABEL)),
        "host" => Some(format!("h{}", place.line % HOSTS)),
        "writer" => Some(format!("w{}", place.writer)),
        _ => None,
    }
}

/// How many labels a sample has.
pub const LABELS: usize = 4;

fn timestamp_ms(writer: u64, line: u64) -> i64 {
    START_MS + writer as i64 * WRITER_MS + scramble(line) as i64
}

/// The line of a writer that has that time, if there could be one.
pub fn line_of(writer: u64, timestamp_ms: i64) -> Option<u64> {
    let offset = timestamp_ms - START_MS - writer as i64 * WRITER_MS;
    (0..WRITER_MS).contains(&offset).then(|| unscramble(offset as u64))
}

/// Multiplies the low byte by an odd number, which has an inverse modulo 256.
fn scramble(line: u64) -> u64 {
    (line & !255) | (((line & 255) * 77) & 255)
}

fn unscramble(offset: u64) -> u64 {
    const INVERSE: u64 = 133;
    const _: () = assert!(77 * INVERSE % 256 == 1);
    (offset & !255) | (((offset & 255) * INVERSE) & 255)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_gives_its_line() {
        for writer in [0, 3] {
            for line in 0..1000 {
                let timestamp = timestamp_ms(writer, line);
                assert_eq!(line_of(writer, timestamp), Some(line));
                assert_eq!(line_of(writer + 1, timestamp), None);
            }
        }
    }

    #[test]
    fn a_line_carries_what_its_place_says() {
        let mut out = Vec::new();
        put_line(2, 20_123, &mut out);
        let line = String::from_utf8(out).unwrap();
        let place = |field| Place { writer: 2, line: 20_123, field };
        let expected = format!(
            "crash,batch=b1,host=h{},writer=w2 count={}i,ratio={},level=20i ",
            20_123 % 61,
            value(place(0)),
            value(place(1))
        );
        assert!(line.starts_with(&expected), "{line}\n{expected}");
        assert_eq!(label(place(0), "batch").as_deref(), Some("b1"));
        assert_eq!(label(place(0), "job"), None);
    }
}
