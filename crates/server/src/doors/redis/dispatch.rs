//! One command: whether it is known and well formed, whether it may run now, where it runs, and what
//! follows from it for others.

use super::commands::{self, DoorCommand, Flow};
use super::connection::Redis;
use super::hub::{Blocked, Hub};
use super::out::Out;
use super::session::{ReplyMode, Session};
use kv::commands::{Command, Info, NO_AUTH, NO_MULTI, PUBSUB};
use kv::{Call, CommandError, Keyspace, Mode, Reply as _};

/// A command that there is.
#[derive(Clone, Copy)]
pub enum Known {
    /// On keys.
    Keys(&'static Command),
    /// On the rest.
    Door(&'static DoorCommand),
}

impl Known {
    /// The command of that name, or the subcommand that its arguments name.
    pub fn find(args: &[&[u8]]) -> Option<Known> {
        let name = args.first()?;
        kv::commands::find(name).map(Known::Keys).or_else(|| commands::find(name).map(Known::Door))
    }

    /// What is known of it.
    pub fn info(self) -> &'static Info {
        match self {
            Known::Keys(command) => &command.info,
            Known::Door(command) => &command.info,
        }
    }
}

/// The surroundings of a command of the door.
pub struct Context<'a> {
    /// The door.
    pub redis: &'a Redis,
    /// Who said it.
    pub session: &'a mut Session,
    /// All keys.
    pub keys: &'a mut Keyspace,
    /// What connections share.
    pub hub: &'a mut Hub,
    /// Its name and what follows.
    pub args: &'a [&'a [u8]],
    /// What it is.
    pub info: &'static Info,
}

impl Redis {
    /// Executes a command as it came from a client; its answer gathers in the session.
    pub fn execute(
        &self,
        session: &mut Session,
        keys: &mut Keyspace,
        hub: &mut Hub,
        args: &[&[u8]],
    ) -> Flow {
        hub.command_count += 1;
        let before = session.out.0.bytes().len();
        let skips = session.reply;
        let flow = match self.check(session, args) {
            Ok(known) => self.queue_or_run(session, keys, hub, known, args),
            Err(error) => {
                if let Some(transaction) = &mut session.transaction {
                    transaction.is_spoiled = true;
                }
                session.out.error(&error.0);
                Flow::Next
            }
        };
        if skips != ReplyMode::On && session.reply == skips {
            session.out.0.bytes_mut().truncate(before);
            if skips == ReplyMode::SkipNext {
                session.reply = ReplyMode::On;
            }
        }
        flow
    }

    /// Whether a command is known, well formed, and allowed now.
    fn check(&self, session: &Session, args: &[&[u8]]) -> Result<Known, CommandError> {
        let Some(known) = Known::find(args) else { return Err(unknown(args)) };
        let info = known.info();
        if !info.takes(args.len()) {
            return Err(CommandError::arity(info.name));
        }
        if !session.is_known && !info.is(NO_AUTH) {
            return Err(CommandError::new("NOAUTH Authentication required."));
        }
        let is_listening = 0 < session.subscription_count() && session.out.version() < 3;
        if is_listening && !info.is(PUBSUB) && !ALLOWED_WHILE_LISTENING.contains(&info.name) {
            let name = info.name;
            return Err(CommandError::new(format!(
                "ERR Can't execute '{name}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context"
            )));
        }
        if let (Some(reason), true) = (self.kv.failure(), info.is(kv::commands::WRITE)) {
            return Err(CommandError::new(format!(
                "MISCONF Quipu takes no writes until it is restarted, for its log failed: {reason}"
            )));
        }
        Ok(known)
    }

    fn queue_or_run(
        &self,
        session: &mut Session,
        keys: &mut Keyspace,
        hub: &mut Hub,
        known: Known,
        args: &[&[u8]],
    ) -> Flow {
        let info = known.info();
        if let Some(transaction) = &mut session.transaction {
            if !NOT_QUEUED.contains(&info.name) {
                if info.is(NO_MULTI) {
                    transaction.is_spoiled = true;
                    session.out.error("ERR Command not allowed inside a transaction");
                    return Flow::Next;
                }
                transaction.commands.push(args.iter().map(|arg| arg.to_vec()).collect());
                session.out.simple("QUEUED");
                return Flow::Next;
            }
        }
        let flow = self.run(session, keys, hub, known, args, Mode::Client);
        self.after(keys, hub);
        flow
    }

    /// Runs a command that was checked.
    pub fn run(
        &self,
        session: &mut Session,
        keys: &mut Keyspace,
        hub: &mut Hub,
        known: Known,
        args: &[&[u8]],
        mode: Mode,
    ) -> Flow {
        match known {
            Known::Keys(command) => {
                let done = Call::run(keys, session.db, command, args, &mut session.out, mode);
                let Some(mut wait) = done.wait else { return Flow::Next };
                let as_it_came = || args.iter().map(|arg| arg.to_vec()).collect();
                let arguments = wait.again.take().unwrap_or_else(as_it_came);
                let blocked = Blocked { wait, db: session.db, arguments };
                hub.block(session.id, blocked, keys);
                Flow::Wait
            }
            Known::Door(command) => {
                let info = &command.info;
                let mut context = Context { redis: self, session, keys, hub, args, info };
                let result = (command.run)(&mut context);
                result.unwrap_or_else(|error| {
                    session.out.error(&error.0);
                    Flow::Next
                })
            }
        }
    }

    /// Tells others what a command changed, and serves those who wait for it.
    pub fn after(&self, keys: &mut Keyspace, hub: &mut Hub) {
        loop {
            let events = keys.take_events();
            if !events.is_empty() {
                hub.tell_events(&events, keys.events_wanted);
            }
            let touched = keys.take_touched();
            if !touched.is_empty() {
                hub.tell_watchers(&touched);
            }
            let ready = keys.take_ready();
            if ready.is_empty() {
                return;
            }
            for (db, key) in ready {
                serve_waiting(keys, hub, db, &key);
            }
        }
    }
}

/// Tries the commands again that wait for a key, in the order in which they came.
fn serve_waiting(keys: &mut Keyspace, hub: &mut Hub, db: u8, key: &[u8]) {
    for id in hub.waiting_for(db, key) {
        let Some(blocked) = hub.blocked.get(&id) else { continue };
        let Some(client) = hub.clients.get(&id) else { continue };
        let arguments = blocked.arguments.clone();
        let args: Vec<&[u8]> = arguments.iter().map(Vec::as_slice).collect();
        let Some(Known::Keys(command)) = Known::find(&args) else { continue };
        let mut out = Out::new(client.version);
        let outbox = client.outbox.clone();
        let done = Call::run_again(keys, blocked.db, command, &args, &mut out, key);
        if done.wait.is_some() {
            continue;
        }
        hub.unblock(id, keys);
        outbox.leave(out.0.bytes());
    }
}

/// What a client of version 2 may say while it listens to channels.
const ALLOWED_WHILE_LISTENING: &[&str] = &["ping", "quit", "reset"];
/// What is done at once within a transaction.
const NOT_QUEUED: &[&str] = &["exec", "discard", "multi", "watch", "quit", "reset"];
/// Bytes of an unknown command's arguments that the error shows.
const SHOWN_SIZE_MAX: usize = 128;

fn unknown(args: &[&[u8]]) -> CommandError {
    let shown = |bytes: &[u8]| {
        String::from_utf8_lossy(&bytes[..bytes.len().min(SHOWN_SIZE_MAX)]).into_owned()
    };
    let name = shown(args.first().copied().unwrap_or_default());
    let mut rest = String::new();
    for arg in args.iter().skip(1) {
        if SHOWN_SIZE_MAX <= rest.len() {
            break;
        }
        let left = SHOWN_SIZE_MAX - rest.len();
        rest += &format!("'{}' ", shown(&arg[..arg.len().min(left)]));
    }
    CommandError::new(format!("ERR unknown command '{name}', with args beginning with: {rest}"))
}
