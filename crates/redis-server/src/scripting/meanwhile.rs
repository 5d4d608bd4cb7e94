//! What a client hears while a script takes long: without the keys, which the script has.

use super::Refusal;
use crate::clients::session::Session;
use crate::commands::Flow;
use crate::commands::connection::{Login, greet, say_who};
use crate::commands::scripting::{busy_error, function_stats, refused};
use crate::redis::Redis;
use crate::registry::Known;
use kv::{CommandError, Reply as _};

impl Redis {
    /// Answers a command while a script takes long.
    pub fn execute_busy(&self, session: &mut Session, args: &[&[u8]]) -> Flow {
        match self.answer_busy(session, args) {
            Ok(flow) => flow,
            Err(error) => {
                if let Some(transaction) = &mut session.transaction {
                    transaction.is_spoiled = true;
                }
                session.out.error(&error.0);
                Flow::Next
            }
        }
    }

    fn answer_busy(&self, session: &mut Session, args: &[&[u8]]) -> Result<Flow, CommandError> {
        let word = |at: usize| args.get(at).map(|arg| arg.to_ascii_lowercase()).unwrap_or_default();
        let busy = &self.scripting.busy;
        if word(0) == b"quit" {
            session.out.ok();
            return Ok(Flow::Close);
        }
        if [b"auth".as_slice(), b"hello"].contains(&word(0).as_slice()) {
            let now_ms = self.kv.now_ms();
            let mut hub = self.hub();
            let mut login = Login { redis: self, session, hub: &mut hub, args, now_ms };
            Known::check(args)?;
            return if word(0) == b"auth" { say_who(&mut login) } else { greet(&mut login) };
        }
        if !session.is_known {
            return Err(CommandError::new("NOAUTH Authentication required."));
        }
        // What a user may not say it may not say now either.
        if let Some(known) = Known::find(args)
            && session.user.check(known, args).is_err()
        {
            let name = known.info().name;
            return Err(CommandError::new(format!(
                "NOPERM this user has no permissions to run the '{name}' command"
            )));
        }
        match (word(0).as_slice(), word(1).as_slice()) {
            (b"script", b"kill") => kill(session, busy.kill(false), false)?,
            (b"function", b"kill") => kill(session, busy.kill(true), true)?,
            (b"function", b"stats") => function_stats(&self.scripting, &mut session.out),
            (b"multi", _) if session.transaction.is_none() => {
                session.transaction = Some(Default::default());
                session.out.ok();
            }
            (b"discard", _) if session.transaction.take().is_some() => session.out.ok(),
            (b"exec", _) if session.transaction.is_some() => {
                session.transaction = None;
                let reason = busy_error(busy.is_function()).0;
                let words = "EXECABORT Transaction discarded because of";
                session.out.error(&format!("{words}: {reason}"));
            }
            (b"shutdown", b"nosave") => {
                // As at any other end: the script stops, and what was acknowledged stays.
                tracing::warn!("ended by SHUTDOWN NOSAVE while a script ran");
                self.app.stop_wanted.notify_one();
                return Ok(Flow::Close);
            }
            _ => return Err(busy_error(busy.is_function())),
        }
        Ok(Flow::Next)
    }
}

fn kill(
    session: &mut Session,
    killed: Result<(), Refusal>,
    is_function: bool,
) -> Result<(), CommandError> {
    refused(killed, is_function)?;
    session.out.ok();
    Ok(())
}
