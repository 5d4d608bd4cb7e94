//! Time series for Redis' clients: `TS.*` on the metric store.
//!
//! ```text
//! key ──────► record in kv (retention, policy, rules, labels)
//!  │ __name__
//!  └─ labels ► samples in the store ◄── every other door
//! ```
//!
//! A key is the series whose `__name__` is the key and whose labels are those that it was given, so
//! that what `TS.ADD` wrote is read by all others at once. Series that other doors wrote are read
//! under a name that says their labels: `up{job="node"}`; they are never changed or deleted here.
//!
//! What holds:
//! - A sample is acknowledged when the log has it on disk, whatever `--kv-durability` says: commands
//!   append at once, and the connection waits for the log before it answers.
//! - Samples go with their key: [`news`] hears of keys that went, before the next command runs.
//! - Times are milliseconds here and nanoseconds in the store: of a millisecond its last sample is
//!   shown.

mod aggregate;
mod arguments;
mod filter;
mod info;
mod madd;
mod multi;
pub mod news;
mod range;
mod read;
mod rules;
mod samples;
mod series;
mod words;
mod write;

use super::commands::DoorCommand;
use kv::commands::command as on;
use kv::commands::{BLOCKING, DENY_OOM, FAST, Group, Keys, ONE_KEY, READONLY, TWO_KEYS, WRITE};

/// All keys of `TS.MADD`: each third argument.
const THIRDS: Keys = Keys::Range { first: 1, last: -1, step: 3 };

/// Keys behind their number.
const COUNTED: Keys = Keys::Counted { count_at: 1 };

/// The family's commands.
#[rustfmt::skip] // a table
pub const COMMANDS: &[DoorCommand] = &[
    on("ts.add", -4, WRITE | DENY_OOM, ONE_KEY, Group::TimeSeries, "1.0.0", "Adds a sample to a series, which is made if need be.", write::add),
    on("ts.alter", -2, WRITE | DENY_OOM, ONE_KEY, Group::TimeSeries, "1.0.0", "Changes the settings of a series.", write::alter),
    on("ts.create", -2, WRITE | DENY_OOM, ONE_KEY, Group::TimeSeries, "1.0.0", "Makes a series.", write::create),
    on("ts.createrule", -6, WRITE | DENY_OOM, TWO_KEYS, Group::TimeSeries, "1.0.0", "Has a series fed with aggregates of another.", rules::create_rule),
    on("ts.decrby", -3, WRITE | DENY_OOM, ONE_KEY, Group::TimeSeries, "1.0.0", "Adds a sample that is so much less than the newest.", write::decrby),
    on("ts.del", 4, WRITE, ONE_KEY, Group::TimeSeries, "1.6.0", "Deletes the samples between two times.", write::del),
    on("ts.deleterule", 3, WRITE, TWO_KEYS, Group::TimeSeries, "1.0.0", "Ends what TS.CREATERULE began.", rules::delete_rule),
    on("ts.get", -2, READONLY | FAST, ONE_KEY, Group::TimeSeries, "1.0.0", "The newest sample of a series.", range::get),
    on("ts.incrby", -3, WRITE | DENY_OOM, ONE_KEY, Group::TimeSeries, "1.0.0", "Adds a sample that is so much more than the newest.", write::incrby),
    on("ts.info", -2, READONLY, ONE_KEY, Group::TimeSeries, "1.0.0", "The settings of a series, and how large it is.", info::info),
    on("ts.madd", -4, WRITE | DENY_OOM, THIRDS, Group::TimeSeries, "1.0.0", "Adds samples to series that are there.", madd::madd),
    on("ts.mget", -3, READONLY, Keys::None, Group::TimeSeries, "1.0.0", "The newest sample of all series with certain labels.", multi::mget),
    on("ts.mrange", -4, READONLY, Keys::None, Group::TimeSeries, "1.0.0", "Samples of all series with certain labels, oldest first.", multi::mrange),
    on("ts.mrevrange", -4, READONLY, Keys::None, Group::TimeSeries, "1.4.0", "Samples of all series with certain labels, newest first.", multi::mrevrange),
    on("ts.nrange", -5, READONLY, COUNTED, Group::TimeSeries, "8.10.0", "Samples of some series beside each other, oldest first.", multi::nrange),
    on("ts.nrevrange", -5, READONLY, COUNTED, Group::TimeSeries, "8.10.0", "Samples of some series beside each other, newest first.", multi::nrevrange),
    on("ts.queryindex", -2, READONLY, Keys::None, Group::TimeSeries, "1.0.0", "The keys of all series with certain labels.", multi::queryindex),
    on("ts.querylabels", -2, READONLY, Keys::None, Group::TimeSeries, "8.10.0", "The labels that series have, or the values of a label.", multi::querylabels),
    on("ts.range", -4, READONLY, ONE_KEY, Group::TimeSeries, "1.0.0", "Samples of a series, oldest first.", range::range),
    on("ts.read", -3, READONLY | BLOCKING, ONE_KEY, Group::TimeSeries, "8.10.0", "Samples of a series from a time on; may wait for them.", read::read),
    on("ts.revrange", -4, READONLY, ONE_KEY, Group::TimeSeries, "1.4.0", "Samples of a series, newest first.", range::revrange),
];
