//! Commands of this family: not written yet.

use super::Command;

/// The family's commands.
pub const COMMANDS: &[Command] = &[];
