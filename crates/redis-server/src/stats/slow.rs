//! Commands that took long.

use std::collections::VecDeque;

/// Arguments of a command that are kept.
const ARGUMENTS_MAX: usize = 32;
/// Bytes of an argument that are kept.
const ARGUMENT_SIZE_MAX: usize = 128;

/// A command that took long.
#[derive(Clone, Debug)]
pub struct SlowCommand {
    /// Its number, from 0 on.
    pub id: u64,
    /// When it ended, in seconds since the epoch.
    pub at_s: i64,
    /// How long it took, in microseconds.
    pub micros: u64,
    /// The command, cut.
    pub arguments: Vec<Vec<u8>>,
    /// Who said it.
    pub address: String,
    /// The client's name.
    pub name: Vec<u8>,
}

/// The last ones.
#[derive(Debug, Default)]
pub struct SlowLog {
    /// The newest one first.
    pub commands: VecDeque<SlowCommand>,
    next_id: u64,
}

impl SlowLog {
    /// Keeps a command.
    pub fn note(&mut self, mut command: SlowCommand, len_max: usize) {
        command.id = self.next_id;
        self.next_id += 1;
        self.commands.push_front(command);
        self.commands.truncate(len_max);
    }
}

/// What is kept of a command's arguments.
pub fn cut(args: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let shown = if ARGUMENTS_MAX < args.len() { ARGUMENTS_MAX - 1 } else { args.len() };
    let mut kept: Vec<Vec<u8>> = args.iter().take(shown).map(|arg| cut_one(arg)).collect();
    if shown < args.len() {
        kept.push(format!("... ({} more arguments)", args.len() - shown).into_bytes());
    }
    kept
}

fn cut_one(arg: &[u8]) -> Vec<u8> {
    if arg.len() <= ARGUMENT_SIZE_MAX {
        return arg.to_vec();
    }
    let mut kept = arg[..ARGUMENT_SIZE_MAX].to_vec();
    kept.extend_from_slice(
        format!("... ({} more bytes)", arg.len() - ARGUMENT_SIZE_MAX).as_bytes(),
    );
    kept
}
