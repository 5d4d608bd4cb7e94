//! `CLUSTER`: every subcommand is refused, as by a Redis whose cluster mode is off.

use crate::commands::definition::{DoorCommand, Flow, command, container};
use crate::dispatch::Context;
use kv::CommandError;
use kv::commands::{ADMIN, FAST, Group, LOADING, STALE};

/// The family's commands.
#[rustfmt::skip] // a table
pub const COMMANDS: &[DoorCommand] = &[
    command("asking", 1, FAST, Group::Cluster, "3.0.0", "Refused: cluster mode is off.", disabled),
    command("cluster", -2, 0, Group::Cluster, "3.0.0", "Refused: cluster mode is off.", container),
    command("cluster|countkeysinslot", 3, STALE, Group::Cluster, "3.0.0", "Refused: cluster mode is off.", disabled),
    command("cluster|getkeysinslot", 4, STALE, Group::Cluster, "3.0.0", "Refused: cluster mode is off.", disabled),
    command("cluster|help", 2, LOADING | STALE, Group::Cluster, "5.0.0", "Refused: cluster mode is off.", disabled),
    command("cluster|info", 2, STALE, Group::Cluster, "3.0.0", "Refused: cluster mode is off.", disabled),
    command("cluster|keyslot", 3, STALE, Group::Cluster, "3.0.0", "Refused: cluster mode is off.", disabled),
    command("cluster|links", 2, STALE, Group::Cluster, "7.0.0", "Refused: cluster mode is off.", disabled),
    command("cluster|myid", 2, STALE, Group::Cluster, "3.0.0", "Refused: cluster mode is off.", disabled),
    command("cluster|nodes", 2, STALE, Group::Cluster, "3.0.0", "Refused: cluster mode is off.", disabled),
    command("cluster|shards", 2, STALE, Group::Cluster, "7.0.0", "Refused: cluster mode is off.", disabled),
    command("cluster|slots", 2, STALE, Group::Cluster, "3.0.0", "Refused: cluster mode is off.", disabled),
    command("cluster|addslots", -3, ADMIN | STALE, Group::Cluster, "3.0.0", "Refused: cluster mode is off.", disabled),
    command("cluster|delslots", -3, ADMIN | STALE, Group::Cluster, "3.0.0", "Refused: cluster mode is off.", disabled),
    command("cluster|meet", -4, ADMIN | STALE, Group::Cluster, "3.0.0", "Refused: cluster mode is off.", disabled),
    command("cluster|reset", -2, ADMIN | STALE, Group::Cluster, "3.0.0", "Refused: cluster mode is off.", disabled),
    command("cluster|addslotsrange", -4, ADMIN | STALE, Group::Cluster, "7.0.0", "Refused: cluster mode is off.", disabled),
    command("cluster|bumpepoch", 2, ADMIN | STALE, Group::Cluster, "3.0.0", "Refused: cluster mode is off.", disabled),
    command("cluster|count-failure-reports", 3, ADMIN | STALE, Group::Cluster, "3.0.0", "Refused: cluster mode is off.", disabled),
    command("cluster|delslotsrange", -4, ADMIN | STALE, Group::Cluster, "7.0.0", "Refused: cluster mode is off.", disabled),
    command("cluster|failover", -2, ADMIN | STALE, Group::Cluster, "3.0.0", "Refused: cluster mode is off.", disabled),
    command("cluster|flushslots", 2, ADMIN | STALE, Group::Cluster, "3.0.0", "Refused: cluster mode is off.", disabled),
    command("cluster|forget", 3, ADMIN | STALE, Group::Cluster, "3.0.0", "Refused: cluster mode is off.", disabled),
    command("cluster|myshardid", 2, LOADING | STALE, Group::Cluster, "7.2.0", "Refused: cluster mode is off.", disabled),
    command("cluster|replicas", 3, ADMIN | STALE, Group::Cluster, "5.0.0", "Refused: cluster mode is off.", disabled),
    command("cluster|replicate", 3, ADMIN | STALE, Group::Cluster, "3.0.0", "Refused: cluster mode is off.", disabled),
    command("cluster|saveconfig", 2, ADMIN | STALE, Group::Cluster, "3.0.0", "Refused: cluster mode is off.", disabled),
    command("cluster|set-config-epoch", 3, ADMIN | STALE, Group::Cluster, "3.0.0", "Refused: cluster mode is off.", disabled),
    command("cluster|setslot", -4, ADMIN | STALE, Group::Cluster, "3.0.0", "Refused: cluster mode is off.", disabled),
    command("cluster|migration", -3, ADMIN | STALE, Group::Cluster, "8.4.0", "Refused: cluster mode is off.", disabled),
    command("cluster|slot-stats", -4, STALE, Group::Cluster, "8.2.0", "Refused: cluster mode is off.", disabled),
    command("cluster|slaves", 3, ADMIN | STALE, Group::Cluster, "3.0.0", "Refused: cluster mode is off.", disabled),
    command("readonly", 1, LOADING | STALE | FAST, Group::Cluster, "3.0.0", "Refused: cluster mode is off.", disabled),
    command("readwrite", 1, LOADING | STALE | FAST, Group::Cluster, "3.0.0", "Refused: cluster mode is off.", disabled),
];

fn disabled(_: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    Err(CommandError::new("ERR This instance has cluster support disabled"))
}
