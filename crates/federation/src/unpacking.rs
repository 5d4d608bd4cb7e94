//! Blocks of an answer, unpacked while it still arrives, and by several threads where it is large.
//!
//! ```text
//! socket ─► runs 0 1 2 3 4 ..  ─┬─ helpers, while one is free ─┐
//!                               └─ else the thread that reads ─┴─► pieces 0 1 2 .. ─► series
//! ```
//!
//! Pieces are put together in the order of their runs, so that an answer does not depend on who was
//! quick.

use super::backend::{Bounds, Request};
use super::limits::SAMPLE_SIZE;
use anyhow::{Context as _, ensure};
use hashbrown::HashMap;
use model::sample::NANOS_PER_MILLI;
use model::{LabelError, Timestamp};
use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender, SyncSender, TrySendError, channel, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread::{Scope, available_parallelism};
use std::time::Instant;
use store::{Asked, FoundSeries};
use wire::vm_native::stream::{Block, Run, RunReader, Runs, labels_of_key};

/// Runs that are unpacked where they arrive before helpers are called: what is small is done by then.
const ALONE: usize = 2;
/// Helpers of one answer at most.
const HELPERS_MAX: usize = 3;
/// Runs that wait for a helper, for each of them.
const WAITING_MAX: usize = 2;
/// Runs that may be done before one that is older: more wait for that.
const AHEAD_MAX: usize = 64;

/// A series' part of a run.
struct Piece {
    /// What stands for its labels.
    key: Box<[u8]>,
    times: Vec<Timestamp>,
    values: Vec<f64>,
}

/// A run and its number, and what has become of it.
type Numbered<T> = (usize, T);
type Pieces = anyhow::Result<Vec<Piece>>;

/// What unpacks runs.
#[derive(Clone, Copy)]
struct Unpacker<'a> {
    asked: &'a Asked<'a>,
    bounds: Bounds<'a>,
    /// When nobody waits any longer.
    deadline: Instant,
}

/// The series of an answer of blocks.
///
/// # Errors
/// When there is none, it is too large, or is none of blocks.
pub fn series(
    request: &mut Request<'_>,
    (path, query): (&str, &str),
    asked: &Asked<'_>,
) -> anyhow::Result<Vec<FoundSeries>> {
    let unpacker = Unpacker { asked, bounds: request.bounds(), deadline: request.deadline() };
    let waiting = Mutex::new(None);
    std::thread::scope(|scope| {
        let mut team = Team::new(unpacker, scope, &waiting);
        let mut runs = Runs::default();
        let mut take = |run: Run| team.take(run);
        let reply = request.stream(path, query, asked, &mut |bytes| runs.push(bytes, &mut take))?;
        // The time comes first, whatever there is.
        ensure!(
            0 < reply.size,
            "{path}: an empty answer: did a proxy answer instead of the server?"
        );
        runs.end(&mut take)?;
        team.finish()
    })
}

impl Unpacker<'_> {
    /// What a run has of the time that is asked for, neighbours of the same series in one piece.
    fn pieces(self, reader: &mut RunReader, run: &Run) -> Pieces {
        let mut pieces: Vec<Piece> = Vec::new();
        reader.read(run, self.asked.range.whole_millis(), &mut |block: Block<'_>| {
            if block.millis.is_empty() {
                return Ok(());
            }
            // A name may be longer than all samples.
            let count = block.millis.len();
            let weight = count + block.key().len() / SAMPLE_SIZE;
            self.bounds.note_samples(count, weight, self.asked)?;
            if pieces.last().is_none_or(|last| *last.key != *block.key()) {
                let (times, values) = (Vec::with_capacity(count), Vec::with_capacity(count));
                pieces.push(Piece { key: block.key().into(), times, values });
            }
            let last = pieces.last_mut().context("a piece that is not there")?;
            push(last, &block);
            anyhow::Ok(())
        })?;
        Ok(pieces)
    }

    /// What a helper does next.
    fn wait_for(self, done: &Receiver<Numbered<Pieces>>) -> anyhow::Result<Numbered<Pieces>> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        done.recv_timeout(left).context("what came is not unpacked within its time")
    }
}

fn push(Piece { times, values, .. }: &mut Piece, block: &Block<'_>) {
    let nanos = |millis: &i64| millis.saturating_mul(NANOS_PER_MILLI);
    // Markers of where a series ended, which neither lines nor a copy have.
    if block.values.iter().fold(false, |found, value| found | value.is_nan()) {
        let all = block.millis.iter().zip(block.values);
        for (millis, value) in all.filter(|(_, value)| !value.is_nan()) {
            times.push(nanos(millis));
            values.push(*value);
        }
        return;
    }
    times.extend(block.millis.iter().map(nanos));
    values.extend_from_slice(block.values);
}

/// Runs for helpers, of whom one at a time waits for the next.
type Waiting = Mutex<Option<Receiver<Numbered<Run>>>>;

/// The thread that reads an answer, and its helpers.
struct Team<'scope, 'env> {
    unpacker: Unpacker<'env>,
    scope: &'scope Scope<'scope, 'env>,
    waiting: &'env Waiting,
    /// To the helpers, once there are some.
    helpers: Option<Helpers>,
    reader: RunReader,
    /// The number of the next run.
    next: usize,
    joining: Joining,
}

struct Helpers {
    runs: SyncSender<Numbered<Run>>,
    done: Receiver<Numbered<Pieces>>,
}

impl<'scope, 'env> Team<'scope, 'env> {
    fn new(
        unpacker: Unpacker<'env>,
        scope: &'scope Scope<'scope, 'env>,
        waiting: &'env Waiting,
    ) -> Team<'scope, 'env> {
        let (reader, joining) = (RunReader::default(), Joining::default());
        Team { unpacker, scope, waiting, helpers: None, reader, next: 0, joining }
    }

    /// Unpacks a run, or has it unpacked.
    fn take(&mut self, run: Run) -> anyhow::Result<()> {
        let number = self.next;
        self.next += 1;
        if number == ALONE {
            self.helpers = call_helpers(self.scope, self.waiting, self.unpacker);
        }
        let left = match &self.helpers {
            None => Some(run),
            Some(helpers) => match helpers.runs.try_send((number, run)) {
                Ok(()) => None,
                Err(TrySendError::Full((_, run)) | TrySendError::Disconnected((_, run))) => {
                    Some(run)
                }
            },
        };
        if let Some(run) = left {
            let pieces = self.unpacker.pieces(&mut self.reader, &run)?;
            self.join(number, pieces)?;
        }
        self.join_done()
    }

    fn join(&mut self, number: usize, pieces: Vec<Piece>) -> anyhow::Result<()> {
        self.joining.push(number, pieces)?;
        self.unpacker.bounds.check_series(self.joining.series.len(), self.unpacker.asked)
    }

    /// Joins what helpers have done; waits for them only where too much is done before it.
    fn join_done(&mut self) -> anyhow::Result<()> {
        while let Some(helpers) = &self.helpers {
            let done = match AHEAD_MAX < self.joining.early.len() {
                true => Some(self.unpacker.wait_for(&helpers.done)?),
                false => helpers.done.try_recv().ok(),
            };
            let Some((number, pieces)) = done else { break };
            self.join(number, pieces?)?;
        }
        Ok(())
    }

    /// All series, now that the last run was taken.
    fn finish(mut self) -> anyhow::Result<Vec<FoundSeries>> {
        if let Some(Helpers { runs, done }) = self.helpers.take() {
            // They end when there is nothing more to do.
            drop(runs);
            while self.joining.next < self.next {
                let (number, pieces) = self.unpacker.wait_for(&done)?;
                self.join(number, pieces?)?;
            }
        }
        Ok(self.joining.series)
    }
}

/// Starts as many helpers as there are cores for; none where there are none.
fn call_helpers<'scope, 'env>(
    scope: &'scope Scope<'scope, 'env>,
    waiting: &'env Waiting,
    unpacker: Unpacker<'env>,
) -> Option<Helpers> {
    let cores = available_parallelism().map_or(1, usize::from);
    let count = (cores - 1).min(HELPERS_MAX);
    let (runs, to_do) = sync_channel(count.max(1) * WAITING_MAX);
    let (send_done, done) = channel();
    *waiting.lock().unwrap_or_else(PoisonError::into_inner) = Some(to_do);
    let start = |_: &usize| {
        let done = send_done.clone();
        let named = std::thread::Builder::new().name("unpacking".to_string());
        named.spawn_scoped(scope, move || help(waiting, unpacker, &done)).is_ok()
    };
    let started = (0..count).filter(start).count();
    (0 < started).then_some(Helpers { runs, done })
}

fn help(waiting: &Waiting, unpacker: Unpacker<'_>, done: &Sender<Numbered<Pieces>>) {
    let mut reader = RunReader::default();
    loop {
        let next = match &*waiting.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(runs) => runs.recv(),
            None => return,
        };
        let Ok((number, run)) = next else { return };
        // Nobody waits any more when something was wrong.
        if done.send((number, unpacker.pieces(&mut reader, &run))).is_err() {
            return;
        }
    }
}

/// Pieces in the order of their runs.
#[derive(Default)]
struct Joining {
    /// The run whose pieces are to be joined next.
    next: usize,
    /// Pieces of later ones.
    early: BTreeMap<usize, Vec<Piece>>,
    places: HashMap<Box<[u8]>, usize>,
    series: Vec<FoundSeries>,
}

impl Joining {
    fn push(&mut self, number: usize, pieces: Vec<Piece>) -> Result<(), LabelError> {
        if self.next < number {
            self.early.insert(number, pieces);
            return Ok(());
        }
        self.join(pieces)?;
        while let Some(pieces) = self.early.remove(&self.next) {
            self.join(pieces)?;
        }
        Ok(())
    }

    fn join(&mut self, pieces: Vec<Piece>) -> Result<(), LabelError> {
        self.next += 1;
        for Piece { key, times, values } in pieces {
            let place = self.places.get(&key).and_then(|place| self.series.get_mut(*place));
            match place {
                Some(known) => {
                    known.times.extend_from_slice(&times);
                    known.values.extend_from_slice(&values);
                }
                None => {
                    let labels = labels_of_key(&key)?;
                    self.places.insert(key, self.series.len());
                    self.series.push(FoundSeries { labels, times, values, ..Default::default() });
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(name: &str, time: i64) -> Piece {
        let key = format!("{name}\u{1}").into_bytes().into_boxed_slice();
        Piece { key, times: vec![time], values: vec![1.0] }
    }

    #[test]
    fn runs_are_joined_in_their_order() {
        let mut joining = Joining::default();
        joining.push(2, vec![piece("b", 5)]).expect("labels");
        joining.push(1, vec![piece("a", 3), piece("b", 4)]).expect("labels");
        assert!(joining.series.is_empty(), "the first is not there");
        joining.push(0, vec![piece("a", 1), piece("a", 2)]).expect("labels");
        joining.push(3, vec![piece("c", 6)]).expect("labels");
        let times: Vec<&[i64]> = joining.series.iter().map(|one| one.times.as_slice()).collect();
        assert_eq!(times, [&[1, 2, 3][..], &[4, 5], &[6]]);
        assert!(joining.early.is_empty());
    }
}
