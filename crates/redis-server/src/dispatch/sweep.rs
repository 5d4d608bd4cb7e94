//! `KEYS` where there are many: a piece of the database at a time, so that others have their turn
//! between two pieces, and while names are read from disk.
//!
//! Redis has everybody wait until it has gone through all keys. Here it is one look at one moment only
//! where there are few keys, and in transactions and scripts, which nobody may come between.

use super::Context;
use crate::out::Out;
use kv::{CommandError, Kv, Mode, Reply as _, glob};
use std::sync::Arc;
use std::time::Duration;

/// Keys that are gone through at once.
const AT_ONCE_MAX: usize = 20_000;

/// Between two pieces: long enough for who waits for the keys to get them.
const PAUSE: Duration = Duration::from_micros(50);

/// Leaves the command to the session's work, if it is `KEYS` and there are many.
pub fn takes_over(context: &mut Context<'_, '_>) -> bool {
    let db = context.session.db;
    let is_long = context.info.name == "keys"
        && context.mode == Mode::Client
        && AT_ONCE_MAX < context.keys.len(db);
    if is_long {
        let sweep = Sweep { kv: context.redis.kv.clone(), db, pattern: context.args[1].to_vec() };
        context.session.work = Some(Box::new(move |out| match sweep.names(out.0.version()) {
            Ok((count, names)) => out.append_array(count, &names),
            Err(error) => out.error(&error.0),
        }));
    }
    is_long
}

struct Sweep {
    kv: Arc<Kv>,
    db: u8,
    pattern: Vec<u8>,
}

impl Sweep {
    /// How many names fit, and the names as they are answered.
    fn names(&self, version: u8) -> Result<(usize, Out), CommandError> {
        let is_wanted = |name: &[u8]| glob::matches(&self.pattern, name);
        let (mut count, mut names) = (0, Out::new(version));
        let pieces = self.kv.lock().piece_count(self.db);
        for number in 0..pieces {
            let mut piece = {
                let mut keys = self.kv.lock();
                keys.set_now(self.kv.now_ms());
                keys.piece(self.db, number, is_wanted)?
            };
            if !piece.read(is_wanted) {
                piece = self.kv.lock().whole_piece(self.db, number, is_wanted)?;
            }
            piece.check()?;
            for name in piece.names() {
                names.bulk(name);
                count += 1;
            }
            std::thread::park_timeout(PAUSE);
        }
        Ok((count, names))
    }
}
