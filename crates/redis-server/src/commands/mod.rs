//! Commands that are about connections, channels, transactions and the server, a file for each
//! family; commands on keys are in `kv`.

mod acl;
mod client;
mod cluster;
mod command;
mod config;
pub mod connection;
mod debug;
mod definition;
mod info;
mod latency;
mod memory;
mod monitor;
mod persistence;
mod pubsub;
mod replication;
pub mod scripting;
mod server;
mod slowlog;
pub mod transactions;

pub use acl::has_all_channels;
pub use client::describe;
#[cfg(test)]
pub use command::group_name;
pub use config::read_settings;
pub use definition::{DoorCommand, Flow};

use crate::registry::{self, Row};
use definition::Run;

const FAMILIES: &[&[DoorCommand]] = &[
    acl::COMMANDS,
    client::COMMANDS,
    cluster::COMMANDS,
    command::COMMANDS,
    config::COMMANDS,
    connection::COMMANDS,
    debug::COMMANDS,
    info::COMMANDS,
    latency::COMMANDS,
    memory::COMMANDS,
    monitor::COMMANDS,
    persistence::COMMANDS,
    pubsub::COMMANDS,
    replication::COMMANDS,
    scripting::COMMANDS,
    server::COMMANDS,
    slowlog::COMMANDS,
    transactions::COMMANDS,
    super::timeseries::COMMANDS,
];

/// All commands of the door.
#[cfg(test)]
pub fn all() -> impl Iterator<Item = &'static DoorCommand> {
    FAMILIES.iter().flat_map(|family| family.iter())
}

/// Builds the registry of all commands, once. The server does so before it reads a file or a command.
pub fn register() {
    registry::build(|| {
        let rows = FAMILIES.iter().enumerate().flat_map(|(family, rows)| {
            rows.iter().enumerate().map(move |(row, one)| (&one.info, Row { family, row }))
        });
        rows.collect()
    });
}

/// The function of a command, by its row.
pub fn function_of(row: Row) -> Run {
    FAMILIES[row.family][row.row].run
}
