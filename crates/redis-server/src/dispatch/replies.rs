//! Replies that dispatch and commands share.

use crate::clients::session::Session;

/// What is said to commands that may need memory when there is none to be had.
pub const OUT_OF_MEMORY: &str = "OOM command not allowed when used memory > 'maxmemory'.";

/// Takes what a command has answered since `before` back, for a client that wants no answers.
pub fn silence(session: &mut Session, args: &[&[u8]], before: usize) {
    if !is_push(args, session.out.0.bytes().get(before..).unwrap_or_default()) {
        session.out.0.bytes_mut().truncate(before);
    }
}

/// Whether what a command wrote are messages, which come whatever is said of answers. Of `EXEC` they
/// are all that is not an error.
fn is_push(args: &[&[u8]], answer: &[u8]) -> bool {
    let name = args.first().copied().unwrap_or_default().to_ascii_lowercase();
    (name.ends_with(b"subscribe") || name == b"exec") && matches!(answer.first(), Some(b'*' | b'>'))
}
