//! Memory for commands: how much keys may still take, and what a command is about to need.

use super::client_memory::ClientMemory;
use crate::registry::Known;
use kv::Keyspace;
use kv::commands::DENY_OOM;
use kv::keyspace::ROOM_CHECK_MIN;
use kv::number::parse_i64;
use net::memory::Memory;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Times that a command waits for room before it is refused.
const ROUNDS_MAX: u32 = 40;
/// Pause between two of them.
pub const PAUSE: Duration = Duration::from_millis(25);
/// Time after a refusal in which commands of the same client do not wait.
const REFUSAL_REST: Duration = Duration::from_secs(5);

/// Sizes of keys and clients' buffers when the watch last looked at the memory of the process.
#[derive(Debug, Default)]
pub struct Room {
    look: AtomicU64,
    counted: AtomicUsize,
}

impl Room {
    /// Bytes that keys may take now. What grew since the last look is not in the process' memory as
    /// it was measured then. The keys are locked.
    pub fn ceiling(&self, memory: &Memory, clients: &ClientMemory, keys: &Keyspace) -> usize {
        let Some((look, left)) = memory.left() else { return usize::MAX };
        let counted = keys.memory_used().saturating_add(clients.used());
        if self.look.swap(look, Relaxed) != look {
            self.counted.store(counted, Relaxed);
        }
        let left = usize::try_from(left).unwrap_or(usize::MAX);
        let all = self.counted.load(Relaxed).saturating_add(left);
        all.saturating_sub(clients.used())
    }
}

/// The wait of a connection's next command for room.
#[derive(Debug, Default)]
pub struct RoomWait {
    rounds: u32,
    refused: Option<Instant>,
}

impl RoomWait {
    /// Whether the command needs memory that may be there soon. One for which there will be none runs,
    /// and is refused where it needs the memory.
    pub fn has_to_wait(&mut self, keys: &Keyspace, args: &[&[u8]]) -> bool {
        let need = need(args);
        let grows = || Known::find(args).is_some_and(|known| known.info().is(DENY_OOM));
        if need < ROOM_CHECK_MIN || need <= keys.room() || !grows() {
            self.rounds = 0;
            return false;
        }
        if self.refused.is_some_and(|at| at.elapsed() < REFUSAL_REST) {
            return false;
        }
        if self.rounds == ROUNDS_MAX {
            (self.rounds, self.refused) = (0, Some(Instant::now()));
            return false;
        }
        self.rounds += 1;
        true
    }

    /// Whether it begins to wait.
    pub fn is_first(&self) -> bool {
        self.rounds == 1
    }
}

/// Bytes that a command may need: what it says, once as a value and once in the log, and the length of
/// the string that it makes.
fn need(args: &[&[u8]]) -> usize {
    let given: usize = args.iter().map(|arg| arg.len()).sum();
    let number = |text: &[u8]| parse_i64(text).and_then(|number| usize::try_from(number).ok());
    let made = match args {
        [name, _, offset, _] if name.eq_ignore_ascii_case(b"setbit") => {
            number(offset).map(|offset| offset / 8)
        }
        [name, _, offset, _] if name.eq_ignore_ascii_case(b"setrange") => number(offset),
        _ => None,
    };
    given.saturating_mul(2).saturating_add(made.unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_need_their_length() {
        let needs: Vec<usize> = ["setbit k 80000 1", "SETRANGE k 9000 xyz", "set k v", "get k"]
            .iter()
            .map(|line| need(&line.split(' ').map(str::as_bytes).collect::<Vec<_>>()))
            .collect();
        assert_eq!(needs, [10_026, 9032, 10, 8]);
    }
}
