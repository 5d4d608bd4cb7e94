//! One command: whether it is known and well formed, whether it may run now, where it runs, and what
//! follows from it for others.

mod context;
mod replies;
mod sweep;

pub use context::Context;
pub use replies::{OUT_OF_MEMORY, silence};

use crate::acl::Entry as Refused;
use crate::acl::selector::Refusal;
use crate::clients::session::{Needs, ReplyMode, Session};
use crate::commands::{self, Flow, describe, transactions};
use crate::hub::{Blocked, Hub, HubGuard};
use crate::out::Out;
use crate::redis::Redis;
use crate::registry::misses::note_misses;
use crate::registry::{Known, Place};
use crate::replication::feed;
use crate::replication::link::Stage;
use crate::replication::obeying::spares_series;
use crate::scripting;
use crate::settings::Settings;
use crate::stats::slow::{self, SlowCommand};
use crate::timeseries;
use kv::commands::{
    ADMIN, DENY_OOM, Group, Info, NO_AUTH, NO_MULTI, PUBSUB, READONLY, SKIP_MONITOR, WRITE,
};
use kv::keyspace::EVENT_KEY_MISS;
use kv::{Call, CommandError, Keyspace, Mode, Reply as _};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

impl Redis {
    /// Executes a command as it came from a client; its answer gathers in the session.
    pub fn execute(
        &self,
        session: &mut Session,
        keys: &mut Keyspace,
        hub: &mut HubGuard<'_>,
        args: &[&[u8]],
    ) -> Flow {
        let before = session.out.0.bytes().len();
        let skips = session.reply;
        let shared = &mut **hub;
        let flow = match self.check(session, keys, shared, args) {
            Ok(known) if self.is_paused(session, keys, shared, (known, args)) => {
                return Flow::Pause;
            }
            Ok(known) => self.queue_or_run(session, keys, hub, known, args),
            Err(_) if is_http(args) => Flow::Close,
            Err(error) => {
                let is_exec = args.first().is_some_and(|name| name.eq_ignore_ascii_case(b"exec"));
                let error = if is_exec { give_up(session, keys, hub, args, &error) } else { error };
                if let Some(transaction) = &mut session.transaction {
                    transaction.is_spoiled = true;
                }
                if let Some(known) = Known::find(args) {
                    hub.stats.commands[known.0.number].rejected += 1;
                }
                hub.stats.error(error.0.as_bytes());
                session.out.error(&error.0);
                Flow::Next
            }
        };
        session.out.settle(before);
        if session.reply == ReplyMode::SkipAgain {
            session.reply = ReplyMode::SkipNext;
        } else if skips != ReplyMode::On && session.reply == skips {
            if let (Flow::Wait, Some(blocked)) = (flow, hub.blocked.get_mut(&session.id)) {
                blocked.is_silent = true;
            }
            silence(session, args, before);
            if let Some(work) = session.work.take() {
                let version = session.out.version();
                session.work = Some(Box::new(move |_| work(&mut Out::new(version))));
            }
            if skips == ReplyMode::SkipNext {
                session.reply = ReplyMode::On;
            }
        }
        flow
    }

    /// Whether a command is known, well formed, and allowed now.
    fn check(
        &self,
        session: &mut Session,
        keys: &mut Keyspace,
        hub: &mut Hub,
        args: &[&[u8]],
    ) -> Result<Known, CommandError> {
        let known = Known::check(args)?;
        let info = known.info();
        if !session.is_known && !info.is(NO_AUTH) {
            return Err(CommandError::new("NOAUTH Authentication required."));
        }
        let context = if session.transaction.is_some() { "multi" } else { "toplevel" };
        self.allow(session, keys, hub, known, args, context)?;
        let is_listening = 0 < session.subscription_count() && session.out.version() < 3;
        if is_listening && !is_for_listeners(info) {
            let name = info.name;
            return Err(CommandError::new(format!(
                "ERR Can't execute '{name}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context"
            )));
        }
        // What was queued may be from before the server was what it is.
        let queued = session.transaction.as_ref().filter(|_| info.name == "exec");
        let needs = queued.map_or(Needs::of(info), |queued| queued.needs);
        if self.replication.link.is_replica() && !session.is_primary {
            self.check_on_replica(&hub.settings, needs)?;
        }
        if hub.settings.hot.refuses_growth && !session.is_primary {
            refuse_growth(session, info)?;
        }
        if needs.writes && 0 < hub.settings.hot.replicas_min && !session.is_primary {
            self.check_replicas(&hub.settings, keys.now_ms())?;
        }
        if needs.writes
            && let Some(reason) = self.refusal_for(session.is_primary)
        {
            return Err(CommandError::new(format!("MISCONF Quipu takes no writes: {reason}")));
        }
        Ok(known)
    }

    /// Why a command that writes is refused. A replica does what its primary did, which has limits of
    /// its own, as long as the log takes it.
    pub fn refusal_for(&self, is_primary: bool) -> Option<String> {
        match is_primary {
            true => self.kv.failure(),
            false => self.kv.write_refusal(),
        }
    }

    /// Whether as many replicas follow closely as `min-replicas-to-write` wants.
    ///
    /// # Errors
    /// When not; a replica itself wants none.
    pub fn check_replicas(&self, settings: &Settings, now_ms: i64) -> Result<(), CommandError> {
        let wanted = settings.hot.replicas_min;
        let has_enough = || self.good_replicas(settings, now_ms) >= wanted;
        if wanted == 0 || self.replication.link.is_replica() || has_enough() {
            return Ok(());
        }
        Err(CommandError::new("NOREPLICAS Not enough good replicas to write."))
    }

    /// How many replicas follow, and were heard lately enough.
    pub fn good_replicas(&self, settings: &Settings, now_ms: i64) -> usize {
        let feed = self.replication.feed();
        let is_good = |replica: &&feed::Replica| {
            let lag_s = now_ms.saturating_sub(replica.acked_ms) / 1000;
            replica.stage == feed::Stage::Online && lag_s <= settings.hot.replicas_lag_max_s
        };
        feed.replicas.values().filter(is_good).count()
    }

    /// Whether a replica does for a client what needs that.
    ///
    /// # Errors
    /// When it changes keys, or wants keys that are not whole.
    pub fn check_on_replica(&self, settings: &Settings, needs: Needs) -> Result<(), CommandError> {
        if needs.writes && !self.replication.link.state().fault.is_empty() {
            return Err(CommandError::new(
                "READONLY the file replica-of is damaged: see INFO replication. REPLICAOF NO ONE or \
                 REPLICAOF HOST PORT writes it anew",
            ));
        }
        if needs.writes && settings.is_on("replica-read-only") {
            return Err(CommandError::new("READONLY You can't write against a read only replica."));
        }
        if needs.all_keys && self.replication.link.is_loading() {
            return Err(CommandError::new(
                "LOADING the keys of the primary are not all here yet: see INFO replication",
            ));
        }
        let is_up = self.replication.link.state().stage == Stage::Connected;
        if needs.link && !is_up && !settings.is_on("replica-serve-stale-data") {
            return Err(CommandError::new(
                "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
            ));
        }
        Ok(())
    }

    /// Whether the client's user may say a command, in a context that the log of refusals names.
    ///
    /// # Errors
    /// When it may not; that is logged.
    pub fn allow(
        &self,
        session: &mut Session,
        keys: &Keyspace,
        hub: &mut Hub,
        known: Known,
        args: &[&[u8]],
        context: &'static str,
    ) -> Result<(), CommandError> {
        if session.user_generation != hub.acl.generation {
            if let Some(user) = hub.acl.user(&session.user.name) {
                session.user = user.clone();
            }
            session.user_generation = hub.acl.generation;
        }
        if session.user.may_all {
            return Ok(());
        }
        let Err(refusal) = session.user.check(known, args) else {
            return session.user.check_patterns(known, args);
        };
        let name = known.info().name;
        // While a transaction is done it is gathered no more.
        let words = match context == "multi" && session.transaction.is_none() {
            true => refusal_words_of_exec(&refusal),
            false => refusal_words(&refusal, name),
        };
        let (reason, object, at) = match refusal {
            Refusal::Command => ("command", name.as_bytes().to_vec(), 0),
            Refusal::Key(key) => ("key", key, 1),
            Refusal::Channel(channel) => ("channel", channel, 2),
        };
        hub.stats.refused[at] += 1;
        let user = session.user.name.to_vec();
        note_refusal(session, keys.now_ms(), hub, (reason, context), object, user);
        Err(CommandError::new(words))
    }

    /// Notes that a login was refused.
    pub fn refused(&self, session: &Session, now_ms: i64, hub: &mut Hub, name: &[u8]) {
        hub.stats.refused[3] += 1;
        note_refusal(session, now_ms, hub, ("auth", "toplevel"), b"AUTH".to_vec(), name.to_vec());
    }

    /// Whether a command has to wait because somebody said so.
    fn is_paused(
        &self,
        session: &Session,
        keys: &Keyspace,
        hub: &Hub,
        (known, args): (Known, &[&[u8]]),
    ) -> bool {
        let is_on = hub.pause.is_on(keys.now_ms());
        if session.is_primary || !is_on && !hub.is_failing_over {
            return false;
        }
        if is_on && !hub.pause.is_of_writes {
            return !ALLOWED_IN_PAUSE.contains(&known.info().first_name());
        }
        let queued = session.transaction.as_ref().is_some_and(|transaction| transaction.changes);
        match known.info().name {
            "exec" => queued,
            _ if session.transaction.is_some() => false,
            _ => self.may_change(known.info(), args),
        }
    }

    /// Whether a command may change something, or have others do so. Of scripts that say what they
    /// are it is known beforehand.
    fn may_change(&self, info: &Info, args: &[&[u8]]) -> bool {
        if !info.is(WRITE | kv::commands::MAY_REPLICATE) {
            return false;
        }
        let arg = args.get(1).copied().unwrap_or_default();
        match info.name {
            "eval" => !scripting::is_read_only(arg),
            "evalsha" => !self.scripting.engine().is_read_only_script(arg),
            "fcall" => !self.scripting.engine().is_read_only_function(arg),
            _ => true,
        }
    }

    fn queue_or_run(
        &self,
        session: &mut Session,
        keys: &mut Keyspace,
        hub: &mut HubGuard<'_>,
        known: Known,
        args: &[&[u8]],
    ) -> Flow {
        let info = known.info();
        hub.stats.command_count += 1;
        session.state.last_command.store(known.0.number, Relaxed);
        if let Some(transaction) = &mut session.transaction
            && !NOT_QUEUED.contains(&info.name)
        {
            transaction.size += args.iter().map(|arg| arg.len() + QUEUED_COST).sum::<usize>();
            let is_too_large = hub.settings.hot.query_size_max < transaction.size;
            if info.is(NO_MULTI) || is_too_large {
                transaction.is_spoiled = true;
                // Nothing of what was gathered will be done.
                transaction.commands = Vec::new();
                let error = match is_too_large {
                    true => "ERR the transaction is larger than client-query-buffer-limit",
                    false => "ERR Command not allowed inside a transaction",
                };
                hub.stats.error(error.as_bytes());
                hub.stats.commands[known.0.number].rejected += 1;
                session.out.error(error);
                return Flow::Next;
            }
            transaction.grows |= info.is(DENY_OOM);
            transaction.changes |= self.may_change(info, args);
            transaction.needs = transaction.needs.and(Needs::of(info));
            transaction.commands.push(args.iter().map(|arg| arg.to_vec()).collect());
            session.state.queued.store(transaction.commands.len() as i64, Relaxed);
            session.out.simple("QUEUED");
            return Flow::Next;
        }
        let flow = self.run(session, keys, hub, known, args, Mode::Client);
        let hub: &mut Hub = hub;
        self.after(session.id, keys, hub);
        if !session.is_kept_next(info) {
            hub.forget_caching(session.id);
        }
        flow
    }

    /// Runs a command that was checked.
    pub fn run(
        &self,
        session: &mut Session,
        keys: &mut Keyspace,
        hub: &mut HubGuard<'_>,
        known: Known,
        args: &[&[u8]],
        mode: Mode,
    ) -> Flow {
        let (info, number) = (known.info(), known.0.number);
        let before = session.out.0.bytes().len();
        let is_first = info.group == Group::Scripting;
        let started = Instant::now();
        if mode == Mode::Client {
            // Time stands still within a transaction or a script.
            keys.set_now(session.clock.ms_at(started));
        }
        if is_first && !hub.monitors.is_empty() {
            show_monitors(session, keys, hub, info, args);
        }
        let missed = match keys.events_wanted & EVENT_KEY_MISS {
            0 => 0..0,
            _ => note_misses(keys, session.db, info, args),
        };
        keys.is_writing = info.is(WRITE);
        keys.leaves_trace = known.0.leaves_trace && (!session.is_traceless || info.name == "touch");
        let (session, keys, hub) = (&mut *session, &mut *keys, &mut *hub);
        let mut context = Context { redis: self, session, keys, hub, args, info, mode };
        let mut flow = run_place(&mut context, known.0.place);
        let Context { session, keys, hub, .. } = context;
        let hub: &mut Hub = hub;
        if flow == Flow::Wait {
            if !hub.monitors.is_empty() {
                show_monitors(session, keys, hub, info, args);
            }
            return flow;
        }
        if mode != Mode::Client
            && let Some(work) = session.work.take()
        {
            // Its answer stands among those of the transaction.
            work(&mut session.out);
            flow = Flow::Next;
        }
        let micros = u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX);
        hub.stats.ran(number, micros, hub.settings.hot.tracks_latency);
        let is_refused = session.out.0.bytes().get(before) == Some(&b'-');
        if !is_refused && TOLD_AS_THEY_ARE.contains(&info.name) {
            self.tell_replicas_in_turn(keys, session.db, args);
        }
        if let Some(b'-') = session.out.0.bytes().get(before) {
            keys.drop_events(missed.start, missed.end);
            self.note_error(session, hub, known, args, (mode, before));
        }
        if !is_first && !hub.monitors.is_empty() {
            show_monitors(session, keys, hub, info, args);
        }
        note_slow(session.id, keys, hub, known, args, micros);
        // What scripts read is noted where they run.
        let is_reading = info.is(READONLY) && !is_first && !session.is_script;
        if 0 < hub.tracked.clients && is_reading {
            let places = info.key_places(args).unwrap_or_default();
            let read: Vec<&[u8]> = places.iter().filter_map(|at| args.get(*at).copied()).collect();
            hub.note_reads(session.id, &read);
        }
        flow
    }

    /// Counts the error that a command answered, from the byte `before` on.
    fn note_error(
        &self,
        session: &mut Session,
        hub: &mut Hub,
        known: Known,
        args: &[&[u8]],
        (mode, before): (Mode, usize),
    ) {
        let text = session.out.0.bytes().get(before + 1..).unwrap_or_default();
        if session.is_primary && mode != Mode::Client {
            self.note_refused(args, text);
        }
        let counted = &session.counted_error;
        let is_script = known.info().group == Group::Scripting;
        if !is_script || counted.is_empty() || !text.starts_with(counted) {
            hub.stats.error(text);
        }
        hub.stats.commands[known.0.number].failed += 1;
        if session.is_script {
            session.counted_error = text.strip_suffix(b"\r\n").unwrap_or(text).to_vec();
        }
    }

    /// Tells others what a client's command changed, and serves those who wait for it.
    pub fn after(&self, by: u64, keys: &mut Keyspace, hub: &mut Hub) {
        loop {
            let events = keys.take_events();
            if !events.is_empty() {
                hub.tell_events(&events, keys.events_wanted);
            }
            let touched = keys.take_touched();
            if !touched.is_empty() {
                hub.tell_watchers(&touched);
            }
            hub.tell_trackers(touched, by);
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

/// Runs a command where it belongs.
fn run_place(context: &mut Context<'_, '_>, place: Place) -> Flow {
    if spares_series(context) {
        return Flow::Next;
    }
    let command = match place {
        Place::Keys(command) => command,
        Place::Server(row) => {
            let start = context.session.out.position();
            let result = commands::function_of(row)(context);
            return result.unwrap_or_else(|error| {
                context.session.out.truncate(start);
                context.session.out.error(&error.0);
                Flow::Next
            });
        }
    };
    if sweep::takes_over(context) {
        return Flow::Work;
    }
    let (db, args) = (context.session.db, context.args);
    let done = Call::run(context.keys, db, command, args, &mut context.session.out, context.mode);
    if context.keys.has_series_events() {
        // Told where it fails; the command itself is done.
        let _ = timeseries::news::settle(context);
    }
    let Some(mut wait) = done.wait else { return Flow::Next };
    let as_it_came = || args.iter().map(|arg| arg.to_vec()).collect();
    let arguments = wait.again.take().unwrap_or_else(as_it_came);
    let mut otherwise = Out::new(context.session.out.version());
    match wait.otherwise {
        kv::call::Otherwise::NullArray => otherwise.null_array(),
        kv::call::Otherwise::Null => otherwise.null(),
    }
    let blocked = Blocked::new(wait, db, arguments, otherwise.0.bytes().to_vec());
    context.hub.block(context.session.id, blocked, context.keys);
    Flow::Wait
}

/// Ends a transaction that cannot be executed. Returns what is said.
fn give_up(
    session: &mut Session,
    keys: &mut Keyspace,
    hub: &mut Hub,
    args: &[&[u8]],
    reason: &CommandError,
) -> CommandError {
    if session.transaction.is_some() {
        transactions::abort(session, keys, hub);
    }
    if let Some(known) = Known::find(args).filter(|_| !hub.monitors.is_empty()) {
        // Monitors have seen MULTI; this shows that the transaction is over.
        show_monitors(session, keys, hub, known.info(), args);
    }
    let words = reason.0.strip_prefix("ERR ").unwrap_or(&reason.0);
    CommandError::new(format!("EXECABORT Transaction discarded because of: {words}"))
}

/// Refuses what may need memory.
fn refuse_growth(session: &Session, info: &Info) -> Result<(), CommandError> {
    let grows = match (&session.transaction, info.name) {
        (Some(transaction), "exec") => transaction.grows,
        (Some(_), "discard" | "quit" | "reset") => false,
        // Commands that wait need memory, whatever they are.
        (Some(_), _) => true,
        (None, _) => info.is(DENY_OOM),
    };
    if !grows {
        return Ok(());
    }
    Err(CommandError::new(OUT_OF_MEMORY))
}

/// Keeps a refusal for `ACL LOG`.
fn note_refusal(
    session: &Session,
    now_ms: i64,
    hub: &mut Hub,
    (reason, context): (&'static str, &'static str),
    object: Vec<u8>,
    user: Vec<u8>,
) {
    let client = hub.clients.get(&session.id);
    let client = client.map(|client| describe(hub, client, now_ms)).unwrap_or_default();
    let entry = Refused {
        id: 0,
        count: 1,
        reason,
        context,
        object,
        user,
        created_ms: now_ms,
        updated_ms: now_ms,
        client,
    };
    let len_max = hub.settings.hot.refusals_max;
    hub.acl.note(entry, len_max);
}

/// Tries the commands again that wait for a key, in the order in which they came.
fn serve_waiting(keys: &mut Keyspace, hub: &mut Hub, db: u8, key: &[u8]) {
    for id in hub.waiting_for(db, key) {
        let Some(blocked) = hub.blocked.get_mut(&id) else { continue };
        let Some(client) = hub.clients.get(&id) else { continue };
        if blocked.said_again.is_some() {
            blocked.is_due = true;
            client.outbox.wake.notify_one();
            continue;
        }
        let arguments = blocked.arguments.clone();
        let args: Vec<&[u8]> = arguments.iter().map(Vec::as_slice).collect();
        let Some(known) = Known::find(&args) else { continue };
        let Place::Keys(command) = known.0.place else { continue };
        let mut out = Out::new(client.version);
        // The user's rules may have changed since the command came.
        let user = hub.acl.user(&client.user);
        if let Err(refusal) = user.map_or(Ok(()), |user| user.check(known, &args)) {
            hub.stats.error(b"NOPERM ");
            hub.stats.commands[known.0.number].rejected += 1;
            out.error(&refusal_words(&refusal, known.info().name));
            hub.serve(id, keys, out.0.bytes());
            continue;
        }
        let started = Instant::now();
        let done = Call::run_again(keys, blocked.db, command, &args, &mut out, key);
        if done.wait.is_some() {
            continue;
        }
        out.settle(0);
        let micros = u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX);
        hub.stats.ran(known.0.number, micros, hub.settings.hot.tracks_latency);
        if done.is_error {
            hub.stats.commands[known.0.number].failed += 1;
            hub.stats.error(out.0.bytes().get(1..).unwrap_or_default());
        }
        note_slow(id, keys, hub, known, &args, micros);
        hub.serve(id, keys, out.0.bytes());
    }
}

/// What a client of version 2 may say while it listens to channels.
fn is_for_listeners(info: &Info) -> bool {
    let is_one = info.is(PUBSUB) && !info.name.contains("publish") && !info.name.contains("pubsub");
    is_one || ["ping", "quit", "reset"].contains(&info.name)
}

/// Bytes of a queued argument besides its own, about.
const QUEUED_COST: usize = 32;

/// What replicas are told as it came, for it is about no keys.
const TOLD_AS_THEY_ARE: &[&str] = &[
    "function|delete",
    "function|flush",
    "function|load",
    "function|restore",
    "publish",
    "spublish",
];

/// What is done at once within a transaction.
const NOT_QUEUED: &[&str] = &["exec", "discard", "multi", "watch", "quit", "reset"];
/// What does not wait while all clients do.
const ALLOWED_IN_PAUSE: &[&str] = &["client", "shutdown"];

/// Whether the words are those of a browser: a page may not command its visitor's server.
fn is_http(args: &[&[u8]]) -> bool {
    let name = args.first().copied().unwrap_or_default();
    name.eq_ignore_ascii_case(b"post") || name.eq_ignore_ascii_case(b"host:")
}

/// Arguments as others may see them: without secrets.
pub fn redacted(info: &Info, args: &[&[u8]]) -> Vec<Vec<u8>> {
    let mut shown: Vec<Vec<u8>> = args.iter().map(|arg| arg.to_vec()).collect();
    let hidden: Vec<usize> = match info.name {
        "auth" => (1..args.len()).collect(),
        "acl|setuser" | "acl|deluser" | "acl|getuser" => (2..args.len()).collect(),
        "hello" => match args.iter().position(|arg| arg.eq_ignore_ascii_case(b"auth")) {
            Some(at) => (at + 1..args.len().min(at + 3)).collect(),
            None => Vec::new(),
        },
        "migrate" => {
            let is = |word: &'static [u8]| {
                args.iter().skip(6).position(|arg| arg.eq_ignore_ascii_case(word)).map(|at| at + 6)
            };
            let one = is(b"auth").map(|at| at + 1..at + 2);
            let two = is(b"auth2").map(|at| at + 1..at + 3);
            one.into_iter().chain(two).flatten().collect()
        }
        "config|set" => {
            let names = (2..args.len()).step_by(2);
            let secret =
                |at: &usize| SECRETS.iter().any(|name| args[*at].eq_ignore_ascii_case(name));
            names.filter(secret).map(|at| at + 1).collect()
        }
        _ => Vec::new(),
    };
    for at in hidden {
        if let Some(arg) = shown.get_mut(at) {
            *arg = b"(redacted)".to_vec();
        }
    }
    shown
}

/// Why a user may not say a command that it might say when it was queued.
fn refusal_words_of_exec(refusal: &Refusal) -> String {
    let reason = match refusal {
        Refusal::Command => "no permission to execute the command or subcommand",
        Refusal::Key(_) => "no permission to touch the specified keys",
        Refusal::Channel(_) => "no permission to access one of the channels used as arguments",
    };
    format!(
        "NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC \
         call. This command is no longer allowed for the following reason: {reason}"
    )
}

/// Why a user may not say a command.
fn refusal_words(refusal: &Refusal, name: &str) -> String {
    let what = match refusal {
        Refusal::Command => format!("run the '{name}' command"),
        Refusal::Key(_) => "access one of the keys used as arguments".to_owned(),
        Refusal::Channel(_) => "access one of the channels used as arguments".to_owned(),
    };
    format!("NOPERM this user has no permissions to {what}")
}

/// Parameters that nobody else is to see.
const SECRETS: &[&[u8]] = &[
    b"requirepass",
    b"masterauth",
    b"masteruser",
    b"tls-key-file-pass",
    b"tls-client-key-file-pass",
];

/// Shows a command to those who want to see all.
fn show_monitors(session: &Session, keys: &Keyspace, hub: &Hub, info: &Info, args: &[&[u8]]) {
    // Those that run others are shown before them, by what runs them.
    let is_runner = info.group == Group::Scripting && info.is(SKIP_MONITOR);
    if info.is(ADMIN | SKIP_MONITOR) && !is_runner {
        return;
    }
    let now_ms = keys.now_ms();
    let peer = session.peer.map_or_else(|| "?:0".to_owned(), |peer| peer.to_string());
    let source = if session.is_script { "lua" } else { &peer };
    let mut line =
        format!("+{}.{:06} [{} {source}]", now_ms / 1000, now_ms % 1000 * 1000, session.db);
    for arg in redacted(info, args) {
        line.push(' ');
        line += &quoted(&arg);
    }
    line += "\r\n";
    hub.leave_with_monitors(line);
}

/// Bytes as a person can read them, in quotes.
pub fn quoted(bytes: &[u8]) -> String {
    let mut text = String::from("\"");
    for byte in bytes {
        match byte {
            b'\\' | b'"' => {
                text.push('\\');
                text.push(char::from(*byte));
            }
            b'\n' => text += "\\n",
            b'\r' => text += "\\r",
            b'\t' => text += "\\t",
            7 => text += "\\a",
            8 => text += "\\b",
            b' '..=b'~' => text.push(char::from(*byte)),
            _ => text += &format!("\\x{byte:02x}"),
        }
    }
    text.push('"');
    text
}

/// Keeps a command that took long.
#[inline]
fn note_slow(id: u64, keys: &Keyspace, hub: &mut Hub, known: Known, args: &[&[u8]], micros: u64) {
    let hot = &hub.settings.hot;
    let is_late = 0 < hot.latency_from_ms && hot.latency_from_ms <= micros / 1000;
    let is_slow = 0 <= hot.slow_from_us && hot.slow_from_us.unsigned_abs() <= micros;
    if is_late {
        let name = if known.info().is(kv::commands::FAST) { "fast-command" } else { "command" };
        hub.latency.note(name, keys.now_ms() / 1000, micros / 1000);
    }
    if is_slow {
        keep_slow(id, keys, hub, known.info(), args, micros);
    }
}

/// Adds a command to `SLOWLOG`.
#[cold]
fn keep_slow(id: u64, keys: &Keyspace, hub: &mut Hub, info: &Info, args: &[&[u8]], micros: u64) {
    let len_max = hub.settings.hot.slow_len_max;
    if len_max == 0 || SLOW_SKIPPED.contains(&info.name) {
        return;
    }
    let client = hub.clients.get(&id);
    let command = SlowCommand {
        id: 0,
        at_s: keys.now_ms() / 1000,
        micros,
        arguments: slow::cut(&redacted(info, args)),
        address: client.map(|client| client.address()).unwrap_or_default(),
        name: client.map(|client| client.name.clone()).unwrap_or_default(),
    };
    hub.slow.note(command, len_max);
}

/// What is never noted as slow: it waits, or its parts are noted.
const SLOW_SKIPPED: &[&str] = &["exec"];
