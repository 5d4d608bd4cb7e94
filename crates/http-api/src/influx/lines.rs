//! Lines that came without a way to answer: decoded, stored, counted; what is refused is logged, at
//! most once a minute.

use crate::http::insert::unit_advice;
use app::App;
use app::block_strings::BlockStrings;
use app::ingest::Outcome;
use model::Timestamp;
use model::sample::NANOS_PER_MILLI;
use net::failure::Failure;
use net::logging::Pace;
use net::metrics_page::{Number, Page};
use net::telemetry::{Families, Protocol};
use std::net::SocketAddr;
use std::sync::Arc;
use store::Durability;
use wire::influx::{InfluxKeys, Options, decode_pieces, has_valid_row, kinds_by_shape};
use wire::{ExtraLabels, Start};

/// What all sockets of line protocol share.
pub(super) struct Lines {
    pub app: Arc<App>,
    pub counters: Arc<LineCounters>,
    keys: InfluxKeys,
    /// For lines in the log about refused lines, and about lines that the store did not take.
    refused: Pace,
    /// The same about lines in 1970.
    old: Pace,
    pub not_taken: Pace,
}

/// What is counted of lines over sockets besides what all protocols count.
#[derive(Default)]
pub(super) struct LineCounters {
    /// Lines received, whole ones, comments not counted.
    stream_lines: Number,
    datagram_lines: Number,
    /// Datagrams received.
    pub datagrams: Number,
    /// Datagrams whose lines the store did not take.
    pub datagrams_dropped: Number,
}

impl Families for LineCounters {
    fn write(&self, page: &mut Page) {
        let help = "Lines of line protocol received over sockets.";
        page.family("quipu_influx_socket_lines_total", "counter", help);
        page.sample("", &[("transport", "tcp")], self.stream_lines.get() as f64);
        page.sample("", &[("transport", "udp")], self.datagram_lines.get() as f64);
        let help = "Datagrams of line protocol received.";
        page.single("quipu_influx_datagrams_total", "counter", help, &self.datagrams);
        let help = "Datagrams of line protocol whose lines the store could not take just then.";
        page.single(
            "quipu_influx_datagrams_dropped_total",
            "counter",
            help,
            &self.datagrams_dropped,
        );
    }
}

/// Lines on their way into the store; what was stored is not stored again when it is tried again.
pub(super) struct Block {
    pub bytes: Vec<u8>,
    /// Where the pieces end of which none has a part of another's line.
    ends: Vec<usize>,
    start: Start,
    /// The time of lines that have none: the same however often they are tried.
    now: Timestamp,
    outcome: Outcome,
    /// Who sent them, where it was one sender.
    pub peer: Option<SocketAddr>,
}

impl Block {
    /// Whole lines that have just arrived.
    pub fn new(app: &App, bytes: Vec<u8>) -> Block {
        let ends = vec![bytes.len()];
        Block::of_pieces(app, bytes, ends)
    }

    /// The same of pieces that end there: a quote that is open at the end of one hides no line of
    /// the next.
    pub fn of_pieces(app: &App, bytes: Vec<u8>, ends: Vec<usize>) -> Block {
        let (start, outcome) = (Start::default(), Outcome::default());
        Block { bytes, ends, start, now: app.vfs.now(), outcome, peer: None }
    }

    /// Lines that have not been stored, nor refused.
    pub fn lines_left(&self) -> u64 {
        let left = self.bytes.get(self.start.offset..).unwrap_or_default();
        left.iter().filter(|byte| **byte == b'\n').count() as u64
    }
}

impl Lines {
    /// Sockets of that server, whose counters are in `/metrics`.
    pub fn new(app: Arc<App>) -> Lines {
        let counters = Arc::new(LineCounters::default());
        app.telemetry.register(counters.clone());
        let keys = InfluxKeys::new(ExtraLabels::default())
            .with_names(app.measurements.names_of(""))
            .with_long_integers();
        Lines {
            app,
            counters,
            keys,
            refused: Pace::new(),
            old: Pace::new(),
            not_taken: Pace::new(),
        }
    }

    /// Stores what is left of a block, on a worker thread and when it is its turn.
    ///
    /// # Errors
    /// When the store takes nothing just now; the block then knows how far it came.
    pub async fn store(
        self: &Arc<Lines>,
        mut block: Block,
        durability: Durability,
    ) -> (Block, Result<(), Failure>) {
        let permit = match self.app.inserts.enter().await {
            Ok(permit) => permit,
            Err(failure) => return (block, Err(failure)),
        };
        let lines = self.clone();
        let stored = tokio::task::spawn_blocking(move || {
            let result = lines.append(&mut block, durability);
            drop(permit);
            (block, result)
        });
        stored.await.unwrap_or_else(|error| {
            // The panic is in the log already; nobody can say how much of the block was stored.
            let failure = Failure::internal(format!("storing lines: {error}"));
            (Block::new(&self.app, Vec::new()), Err(failure))
        })
    }

    fn append(&self, block: &mut Block, durability: Durability) -> Result<(), Failure> {
        let precision = self.app.config.insert.default_precision;
        let options = Options { precision, now: block.now };
        let hasher = self.app.store.hasher();
        let strings = BlockStrings::new(&self.app.texts);
        let keys = self.keys.clone().with_texts(strings.for_decoder());
        loop {
            let Block { bytes, ends, start, outcome, .. } = &mut *block;
            let mut decoded = decode_pieces(bytes, ends, *start, &options, &hasher, &keys)?;
            let rest = decoded.rest;
            let table = &self.app.measurements;
            let batch = &decoded.batch;
            let (places, kinds): (Vec<_>, Vec<_>) =
                kinds_by_shape(bytes, batch).into_iter().unzip();
            let has_valid_row = |kind: usize| has_valid_row(batch, places[kind]);
            let learned = table.learn("", kinds, &has_valid_row);
            let learned = learned.map_err(Failure::of_write)?;
            strings.settle(&self.app, &mut decoded, outcome)?;
            outcome.append(&self.app, decoded, durability)?;
            table.confirm("", &learned).map_err(Failure::of_write)?;
            match rest {
                Some(next) => *start = next,
                None => return Ok(()),
            }
        }
    }

    /// Counts a block that is given up: what was stored of it, and what was not.
    pub fn give_up(&self, block: Block, protocol: Protocol) {
        self.app.telemetry.protocol(protocol).lines_refused.add(block.lines_left());
        self.finish(block, protocol);
    }

    /// Counts a block that was stored, and says what was refused of it.
    pub fn finish(&self, block: Block, protocol: Protocol) {
        let Block { bytes, outcome, peer, .. } = block;
        let lines = match protocol {
            Protocol::InfluxUdp => &self.counters.datagram_lines,
            _ => &self.counters.stream_lines,
        };
        lines.add(outcome.counts.lines);
        let postponed = outcome.finish(&self.app, protocol, bytes.len()).err();
        let counters = self.app.telemetry.protocol(protocol);
        // Nobody can be told to send them again, and waiting would hold up the known series.
        counters.rows_refused.add(outcome.postponed_rows);
        if outcome.is_all_in_1970() && self.old.is_due(self.now_ms()) {
            let advice = unit_advice(protocol);
            tracing::warn!("{}: all samples that came are in 1970; {advice}", protocol.as_str());
        }
        if (!outcome.is_complete() || postponed.is_some()) && self.refused.is_due(self.now_ms()) {
            let name = protocol.as_str();
            let sender = peer.map_or(String::new(), |peer| format!(" from {peer}"));
            let reason = match postponed {
                Some(failure) => failure.to_string(),
                None => outcome.report("line").replacen(":\n", ": ", 1).replace('\n', "; "),
            };
            // Bytes from outside must not write on the owner's terminal.
            let reason = reason.replace(char::is_control, " ");
            tracing::warn!(
                "{name}{sender}: {reason}; see quipu_insert_lines_refused_total and \
                 quipu_insert_rows_refused_total"
            );
        }
    }

    /// The wall clock in milliseconds.
    pub fn now_ms(&self) -> u64 {
        (self.app.vfs.now() / NANOS_PER_MILLI) as u64
    }
}
