//! `CLUSTER`, as of a server that is in none: slots of keys can be asked for.

use super::{DoorCommand, Flow, command, container, help};
use crate::doors::redis::dispatch::Context;
use kv::commands::{ADMIN, FAST, Group, LOADING, STALE};
use kv::number::int_arg;
use kv::{CommandError, Reply as _};

/// Slots of a cluster.
const SLOTS: u16 = 16_384;

/// The family's commands.
#[rustfmt::skip] // a table
pub const COMMANDS: &[DoorCommand] = &[
    command("asking", 1, FAST, Group::Cluster, "3.0.0", "Of clusters alone.", disabled),
    command("cluster", -2, 0, Group::Cluster, "3.0.0", "A cluster, of which there is none.", container),
    command("cluster|countkeysinslot", 3, STALE, Group::Cluster, "3.0.0", "How many keys a slot has.", count_keys),
    command("cluster|getkeysinslot", 4, STALE, Group::Cluster, "3.0.0", "Some keys of a slot.", get_keys),
    command("cluster|help", 2, LOADING | STALE, Group::Cluster, "5.0.0", "What CLUSTER can do.", show_help),
    command("cluster|info", 2, STALE, Group::Cluster, "3.0.0", "The state of the cluster.", info),
    command("cluster|keyslot", 3, STALE, Group::Cluster, "3.0.0", "The slot of a key.", key_slot),
    command("cluster|links", 2, STALE, Group::Cluster, "7.0.0", "Of clusters alone.", disabled),
    command("cluster|myid", 2, STALE, Group::Cluster, "3.0.0", "The server's name.", my_id),
    command("cluster|nodes", 2, STALE, Group::Cluster, "3.0.0", "Of clusters alone.", disabled),
    command("cluster|shards", 2, STALE, Group::Cluster, "7.0.0", "Of clusters alone.", disabled),
    command("cluster|slots", 2, STALE, Group::Cluster, "3.0.0", "Of clusters alone.", disabled),
    command("cluster|addslots", -3, ADMIN | STALE, Group::Cluster, "3.0.0", "Of clusters alone.", disabled),
    command("cluster|delslots", -3, ADMIN | STALE, Group::Cluster, "3.0.0", "Of clusters alone.", disabled),
    command("cluster|meet", -4, ADMIN | STALE, Group::Cluster, "3.0.0", "Of clusters alone.", disabled),
    command("cluster|reset", -2, ADMIN | STALE, Group::Cluster, "3.0.0", "Of clusters alone.", disabled),
    command("cluster|addslotsrange", -4, ADMIN | STALE, Group::Cluster, "7.0.0", "Of clusters alone.", disabled),
    command("cluster|bumpepoch", 2, ADMIN | STALE, Group::Cluster, "3.0.0", "Of clusters alone.", disabled),
    command("cluster|count-failure-reports", 3, ADMIN | STALE, Group::Cluster, "3.0.0", "Of clusters alone.", disabled),
    command("cluster|delslotsrange", -4, ADMIN | STALE, Group::Cluster, "7.0.0", "Of clusters alone.", disabled),
    command("cluster|failover", -2, ADMIN | STALE, Group::Cluster, "3.0.0", "Of clusters alone.", disabled),
    command("cluster|flushslots", 2, ADMIN | STALE, Group::Cluster, "3.0.0", "Of clusters alone.", disabled),
    command("cluster|forget", 3, ADMIN | STALE, Group::Cluster, "3.0.0", "Of clusters alone.", disabled),
    command("cluster|myshardid", 2, LOADING | STALE, Group::Cluster, "7.2.0", "Of clusters alone.", disabled),
    command("cluster|replicas", 3, ADMIN | STALE, Group::Cluster, "5.0.0", "Of clusters alone.", disabled),
    command("cluster|replicate", 3, ADMIN | STALE, Group::Cluster, "3.0.0", "Of clusters alone.", disabled),
    command("cluster|saveconfig", 2, ADMIN | STALE, Group::Cluster, "3.0.0", "Of clusters alone.", disabled),
    command("cluster|set-config-epoch", 3, ADMIN | STALE, Group::Cluster, "3.0.0", "Of clusters alone.", disabled),
    command("cluster|setslot", -4, ADMIN | STALE, Group::Cluster, "3.0.0", "Of clusters alone.", disabled),
    command("cluster|slaves", 3, ADMIN | STALE, Group::Cluster, "3.0.0", "Of clusters alone.", disabled),
    command("readonly", 1, LOADING | STALE | FAST, Group::Cluster, "3.0.0", "Of clusters alone.", disabled),
    command("readwrite", 1, LOADING | STALE | FAST, Group::Cluster, "3.0.0", "Of clusters alone.", disabled),
];

fn disabled(_: &mut Context<'_>) -> Result<Flow, CommandError> {
    Err(CommandError::new("ERR This instance has cluster support disabled"))
}

fn show_help(context: &mut Context<'_>) -> Result<Flow, CommandError> {
    help(
        context,
        &[
            "COUNTKEYSINSLOT <slot>",
            "    How many keys a slot has.",
            "GETKEYSINSLOT <slot> <count>",
            "    Some of them.",
            "INFO",
            "    That there is no cluster.",
            "KEYSLOT <key>",
            "    The slot of a key.",
            "MYID",
            "    The server's name.",
        ],
    )
}

fn info(context: &mut Context<'_>) -> Result<Flow, CommandError> {
    let text = "cluster_enabled:0\r\ncluster_state:ok\r\ncluster_slots_assigned:0\r\n\
                cluster_known_nodes:1\r\ncluster_size:0\r\n";
    context.session.out.verbatim("txt", text.as_bytes());
    Ok(Flow::Next)
}

fn my_id(context: &mut Context<'_>) -> Result<Flow, CommandError> {
    let id = context.redis.run_id.clone();
    context.session.out.text(&id);
    Ok(Flow::Next)
}

/// CRC-16/XMODEM.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc: u16, byte| {
        (0..8).fold(crc ^ u16::from(*byte) << 8, |crc, _| {
            if crc & 0x8000 != 0 { crc << 1 ^ 0x1021 } else { crc << 1 }
        })
    })
}

/// The slot of a key, which what stands between its first braces decides, if anything does.
fn slot_of(key: &[u8]) -> u16 {
    let tag = key.iter().position(|byte| *byte == b'{').and_then(|open| {
        let rest = &key[open + 1..];
        let close = rest.iter().position(|byte| *byte == b'}')?;
        (0 < close).then(|| &rest[..close])
    });
    crc16(tag.unwrap_or(key)) % SLOTS
}

fn key_slot(context: &mut Context<'_>) -> Result<Flow, CommandError> {
    let slot = slot_of(context.args[2]);
    context.session.out.int(i64::from(slot));
    Ok(Flow::Next)
}

fn slot_arg(text: &[u8]) -> Result<u16, CommandError> {
    let slot = int_arg(text).map_err(|_| CommandError::new("ERR Invalid or out of range slot"))?;
    let slot = u16::try_from(slot).ok().filter(|slot| *slot < SLOTS);
    slot.ok_or(CommandError::new("ERR Invalid slot"))
}

/// The keys of a slot, all of them looked at; clusters have one database.
fn keys_of(context: &mut Context<'_>, slot: u16) -> Result<Vec<Vec<u8>>, CommandError> {
    let mut found = Vec::new();
    let scan = context.keys.scan(0, 0, usize::MAX, |key, _| {
        if slot_of(key) == slot {
            found.push(key.to_vec());
        }
    })?;
    scan.complete()?;
    Ok(found)
}

fn count_keys(context: &mut Context<'_>) -> Result<Flow, CommandError> {
    let slot = slot_arg(context.args[2])?;
    let count = keys_of(context, slot)?.len();
    context.session.out.len(count);
    Ok(Flow::Next)
}

fn get_keys(context: &mut Context<'_>) -> Result<Flow, CommandError> {
    let slot = slot_arg(context.args[2])?;
    let count = int_arg(context.args[3])?;
    let count = usize::try_from(count)
        .map_err(|_| CommandError::new("ERR Invalid slot or number of keys"))?;
    let mut keys = keys_of(context, slot)?;
    keys.truncate(count);
    let out = &mut context.session.out;
    out.array(keys.len());
    keys.iter().for_each(|key| out.bulk(key));
    Ok(Flow::Next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_of_keys() {
        assert_eq!(crc16(b"123456789"), 0x31c3);
        for (key, slot) in
            [("foo", 12_182), ("{foo}.bar", 12_182), ("x{foo}.bar{y}", 12_182), ("", 0)]
        {
            assert_eq!(slot_of(key.as_bytes()), slot, "{key}");
        }
        assert_ne!(slot_of(b"{}foo"), slot_of(b"foo"));
    }
}
