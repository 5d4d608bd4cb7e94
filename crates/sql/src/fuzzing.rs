//! Statements from outside, for the fuzzers.

use crate::names::shown_name;
use crate::statements::{Parsed, parse};
use crate::{array_of, interval_text};
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
    crate::copy_rows::fuzz_rows(data);
}

fn read(text: &str) {
    let _ = (array_of(text), interval_text(text), shown_name(text));
    let Ok(all) = parse(text) else { return };
    for parsed in all {
        if let Parsed::Declare { text, .. } = parsed {
            let _ = parse(&text);
        }
    }
}
