//! Statements from outside, for the fuzzers.

use crate::copy::parquet::errors::MAGIC;
use crate::copy::parquet::reader::FileReader;
use crate::copy::parquet::samples::{Sample, SampleRows};
use crate::copy::parquet::source::Source;
use crate::copy::parquet::writer::RowsWriter;
use crate::session::parsed::Parsed;
use crate::session::statements::parse;
use crate::types::names::shown_name;
use crate::types::text::array_literals::array_of;
use crate::types::time::interval_texts::interval_text;
use model::Labels;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{LazyLock, Mutex, PoisonError};

/// As deep as the stacks of the threads on which statements run: the deepest that are let in need it.
const STACK_SIZE: usize = 256 << 20;

type Work = (String, SyncSender<bool>);

/// A thread that reads statements, one after the other.
static READER: LazyLock<Mutex<SyncSender<Work>>> = LazyLock::new(|| {
    let (sender, work): (_, Receiver<Work>) = sync_channel(1);
    let read = move || {
        for (text, done) in work {
            read(&text);
            // Whoever asked has gone when this fails.
            let _ = done.send(true);
        }
    };
    let thread = std::thread::Builder::new().stack_size(STACK_SIZE).spawn(read);
    thread.expect("a thread");
    Mutex::new(sender)
});

/// Reads a text of statements, as the door does before anything is planned.
///
/// # Panics
/// When reading does.
pub fn fuzz_statements(data: &[u8]) {
    let text = String::from_utf8_lossy(data).into_owned();
    let (done, told) = sync_channel(1);
    let sender = READER.lock().unwrap_or_else(PoisonError::into_inner);
    sender.send((text, done)).expect("the reader lives");
    assert!(told.recv().is_ok(), "the reader panicked");
}

/// Reads bytes as rows of `COPY`, in each format.
///
/// # Panics
/// When reading does, or pieces of another size give other lines.
pub fn fuzz_rows(data: &[u8]) {
    crate::copy::copy_rows::fuzz_rows(data);
}

/// A small file with all columns that there are, for bytes of it to be changed.
static FILE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut rows = SampleRows::default();
    let series = Labels::from_pairs(&[("__name__", "up"), ("job", "a")]);
    for (time, histogram) in [(1, None), (2, None), (3, Some("{\"schema\":0}"))] {
        let sample = Sample { time, value: 0.5, start_ms: 7, histogram };
        rows.push(&series, sample).expect("a row");
    }
    let batch = rows.take().expect("rows");
    let mut writer = RowsWriter::new(&batch.schema(), Vec::new()).expect("a file");
    writer.push(&batch).expect("rows");
    writer.finish().expect("a file")
});

/// Reads bytes as a Parquet file where they begin as one; else they say which bytes of a small file are
/// others: two for the place, one for the byte.
///
/// # Panics
/// When reading does.
pub fn fuzz_parquet(data: &[u8]) {
    let bytes = match data.starts_with(MAGIC) {
        true => data.to_vec(),
        false => {
            let mut bytes = FILE.clone();
            for change in data.chunks_exact(3) {
                let at = usize::from(u16::from_le_bytes([change[0], change[1]])) % bytes.len();
                bytes[at] = change[2];
            }
            bytes
        }
    };
    let Ok(mut reader) = FileReader::open(Source::Memory(bytes.into()), None, 0) else { return };
    let (mut out, mut turns) = (Vec::new(), 0);
    while let Ok(progress) = reader.push_lines(true, &mut out) {
        out.clear();
        turns += 1;
        if !progress.has_more || PARQUET_TURNS_MAX < turns {
            return;
        }
    }
}

/// A few bytes may say that there are very many rows.
const PARQUET_TURNS_MAX: usize = 100;

fn read(text: &str) {
    let _ = (array_of(text), interval_text(text), shown_name(text));
    let Ok(all) = parse(text) else { return };
    for parsed in all {
        if let Parsed::Declare { text, .. } = parsed {
            let _ = parse(&text);
        }
    }
}
