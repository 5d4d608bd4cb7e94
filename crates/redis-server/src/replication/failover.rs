//! `FAILOVER`: this server hands over to a replica of its own, and follows it from then on.
//!
//! ```text
//! FAILOVER ─► writes wait ─► the replica has all ─► PSYNC .. FAILOVER to it ─► it says that it goes on
//!                  │                                          │                  └► writes: READONLY
//!                  └── ABORT, or the time is over ────────────┴► writes go on here
//! ```
//! The command only begins it. The rest is done by a task of the door, which hears of each replica's
//! acknowledgements.

use super::failover_state::{LOOK_INTERVAL, Progress, State};
use super::feed::{Feed, Replica, Stage};
use crate::commands::Flow;
use crate::dispatch::Context;
use crate::redis::Redis;
use kv::error::{NOT_INTEGER, SYNTAX};
use kv::number::parse_i64;
use kv::{CommandError, Mode, Reply as _};
use std::sync::Arc;
use tokio::time::timeout;

/// What the arguments ask for.
#[derive(Default)]
struct Request {
    target: Option<(String, u16)>,
    timeout_ms: Option<i64>,
    is_forced: bool,
    is_end: bool,
}

fn parse(args: &[&[u8]]) -> Result<Request, CommandError> {
    let mut request = Request::default();
    let mut at = 1;
    while let Some(word) = args.get(at) {
        let rest = args.get(at + 1..).unwrap_or_default();
        match (word.to_ascii_lowercase().as_slice(), rest) {
            (b"timeout", [time, ..]) if request.timeout_ms.is_none() => {
                let time_ms = parse_i64(time).ok_or(NOT_INTEGER)?;
                if time_ms <= 0 {
                    return Err(CommandError::new("ERR FAILOVER timeout must be greater than 0"));
                }
                request.timeout_ms = Some(time_ms);
                at += 1;
            }
            (b"abort", _) if args.len() == 2 => request.is_end = true,
            (b"to", [host, port, ..]) if request.target.is_none() => {
                let port = parse_i64(port).and_then(|port| u16::try_from(port).ok());
                let host = String::from_utf8_lossy(host).into_owned();
                request.target = Some((host, port.ok_or(NOT_INTEGER)?));
                at += 2;
            }
            (b"force", _) if !request.is_forced => request.is_forced = true,
            _ => return Err(SYNTAX),
        }
        at += 1;
    }
    Ok(request)
}

/// `FAILOVER`
///
/// # Errors
/// When it is said wrong, or cannot be.
pub fn failover(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    let request = parse(context.args)?;
    if request.is_end {
        return end(context);
    }
    begin(context, request)?;
    context.session.out.ok();
    Ok(Flow::Next)
}

fn end(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    let failover = &context.redis.replication.failover;
    match failover.progress() {
        Progress::None => return Err(CommandError::new("ERR No failover in progress.")),
        Progress::Waiting => {
            tracing::info!("the failover is ended by a client");
            *failover.state() = State::default();
            context.redis.go_on_writing(context.keys, context.hub);
        }
        Progress::Telling | Progress::Ending => {
            failover.end();
            if context.mode != Mode::Client {
                // A transaction has the keys that its end waits for.
                context.session.out.ok();
                return Ok(Flow::Next);
            }
            // Who is answered may write.
            let replication = context.redis.replication.clone();
            context.session.work = Some(Box::new(move |out| {
                replication.failover.wait_for_end();
                out.ok();
            }));
            return Ok(Flow::Work);
        }
    }
    context.session.out.ok();
    Ok(Flow::Next)
}

fn begin(context: &mut Context<'_, '_>, request: Request) -> Result<(), CommandError> {
    let redis = context.redis;
    let error = |words: &'static str| Err(CommandError::new(words));
    if redis.replication.failover.progress() != Progress::None {
        return error("ERR FAILOVER already in progress.");
    }
    if redis.replication.link.is_replica() {
        return error("ERR FAILOVER is not valid when server is a replica.");
    }
    // What came before it in the same batch is told first.
    redis.kv.commit(context.keys).map_err(|error| CommandError::new(format!("ERR {error}")))?;
    let feed = redis.replication.feed();
    if feed.replicas.is_empty() {
        return error("ERR FAILOVER requires connected replicas.");
    }
    if request.is_forced && (request.target.is_none() || request.timeout_ms.is_none()) {
        return error(
            "ERR FAILOVER with force option requires both a timeout and target HOST and IP.",
        );
    }
    if let Some(target) = &request.target {
        let mut all = feed.replicas.values();
        match all.find(|replica| is_at(replica, target)).map(|replica| replica.stage) {
            None => return error("ERR FAILOVER target HOST and PORT is not a replica."),
            Some(Stage::Online) => {}
            Some(_) => return error("ERR FAILOVER target replica is not online."),
        }
    }
    let needed = feed.end();
    drop(feed);
    let now_ms = context.keys.now_ms();
    *redis.replication.failover.state() = State {
        progress: Progress::Waiting,
        target: request.target,
        needed,
        until_ms: request.timeout_ms.map(|time_ms| now_ms.saturating_add(time_ms)),
        is_forced: request.is_forced,
    };
    context.hub.is_failing_over = true;
    context.keys.keeps_expired_until_ms = i64::MAX;
    // They say at once how far they are.
    redis.tell_replicas(&[b"REPLCONF", b"GETACK", b"*"]);
    redis.replication.failover.notify();
    Ok(())
}

fn is_at(replica: &Replica, (host, port): &(String, u16)) -> bool {
    replica.host == *host && replica.port == *port
}

/// What comes next.
enum Step {
    /// Nothing before something changes.
    Wait,
    /// The replica is told.
    Tell((String, u16)),
    /// It is given up, for that reason.
    GiveUp(&'static str),
}

impl State {
    fn step(&self, feed: &Feed, now_ms: i64) -> Step {
        if self.progress == Progress::Ending {
            return Step::GiveUp("the replica refused, or somebody ended it");
        }
        if self.progress != Progress::Waiting {
            return Step::Wait;
        }
        let is_meant = |replica: &&Replica| {
            let is_target = self.target.as_ref().is_none_or(|target| is_at(replica, target));
            is_target && replica.stage == Stage::Online
        };
        let has_all = |replica: &&Replica| self.needed <= replica.acked;
        let found = feed.replicas.values().filter(is_meant).find(has_all);
        if let Some(replica) = found {
            return Step::Tell((replica.host.clone(), replica.port));
        }
        match (self.until_ms.is_some_and(|until_ms| until_ms <= now_ms), &self.target) {
            (false, _) => Step::Wait,
            (true, Some(target)) if self.is_forced => Step::Tell(target.clone()),
            (true, _) => Step::GiveUp("the replica had not all before the time was over"),
        }
    }
}

/// Does what `FAILOVER` begins, for ever.
pub async fn run(door: Arc<Redis>) {
    loop {
        let failover = &door.replication.failover;
        let is_idle = failover.progress() == Progress::None;
        match is_idle {
            true => failover.changed.notified().await,
            // A time that is over is noticed, too.
            false => {
                let _ = timeout(LOOK_INTERVAL, failover.changed.notified()).await;
            }
        }
        let step = {
            let state = failover.state();
            let feed = door.replication.feed();
            state.step(&feed, door.kv.now_ms())
        };
        match step {
            Step::Wait => {}
            Step::Tell(target) => tell(&door, target).await,
            Step::GiveUp(reason) => give_up(&door, reason).await,
        }
    }
}

/// Follows a replica, which is told to take over.
async fn tell(door: &Arc<Redis>, target: (String, u16)) {
    tracing::info!("{}:{} takes over (FAILOVER)", target.0, target.1);
    let to = door.clone();
    let told = tokio::task::spawn_blocking(move || {
        let id = to.hub().replication_id.clone();
        let offset = to.replication.feed().end();
        let mut state = to.replication.failover.state();
        if state.progress != Progress::Waiting {
            return Ok(());
        }
        state.progress = Progress::Telling;
        drop(state);
        to.replication.link.hand_over(&to, target, id, offset)
    });
    if let Ok(Err(reason)) = told.await {
        tracing::error!("the failover: {reason}");
        give_up(door, "it cannot be noted on disk").await;
    }
}

/// Goes on as the primary.
async fn give_up(door: &Arc<Redis>, reason: &str) {
    tracing::warn!("the failover is given up: {reason}");
    let to = door.clone();
    let was_told = door.replication.failover.progress() != Progress::Waiting;
    if was_told {
        let ended = tokio::task::spawn_blocking(move || to.replication.link.set(&to, None));
        if let Ok(Err(reason)) = ended.await {
            tracing::error!("this server stays a replica: {reason}");
        }
    }
    finish(door).await;
}

/// It is over, one way or another: writes wait no more.
pub async fn finish(door: &Redis) {
    door.scripting.busy.calm().await;
    let mut keys = door.kv.lock();
    let mut hub = door.hub();
    *door.replication.failover.state() = State::default();
    door.go_on_writing(&mut keys, &mut hub);
}

impl Redis {
    /// Writes that waited for a failover to end go on.
    fn go_on_writing(&self, keys: &mut kv::Keyspace, hub: &mut crate::hub::Hub) {
        hub.is_failing_over = false;
        keys.keeps_expired_until_ms = hub.pause.until_ms;
        hub.wake_postponed();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(text: &str) -> Result<Request, CommandError> {
        let args: Vec<&[u8]> = text.split(' ').map(str::as_bytes).collect();
        parse(&args)
    }

    #[test]
    fn words() {
        let full = request("failover to localhost 7000 force timeout 500").expect("whole");
        assert_eq!(full.target, Some(("localhost".to_owned(), 7000)));
        assert_eq!((full.timeout_ms, full.is_forced, full.is_end), (Some(500), true, false));
        assert!(request("failover abort").is_ok_and(|request| request.is_end));
        assert!(request("failover").is_ok_and(|request| request.target.is_none()));
        for wrong in ["abort timeout 5", "timeout 0", "timeout", "to localhost", "force force", "x"]
        {
            assert!(request(&format!("failover {wrong}")).is_err(), "{wrong}");
        }
    }

    #[test]
    fn who_has_all_takes_over_and_time_ends_it() {
        let mut feed = Feed::default();
        let replica = |port: u16, acked: u64| Replica {
            host: "h".to_owned(),
            port,
            stage: Stage::Online,
            position: 10,
            acked,
            acked_ms: 0,
            is_cut: None,
            wake: Arc::default(),
        };
        feed.replicas.insert(1, replica(1, 5));
        let mut state = State { progress: Progress::Waiting, needed: 7, ..State::default() };
        assert!(matches!(state.step(&feed, 0), Step::Wait));
        state.until_ms = Some(100);
        assert!(matches!(state.step(&feed, 99), Step::Wait));
        assert!(matches!(state.step(&feed, 100), Step::GiveUp(_)));
        feed.replicas.insert(2, replica(2, 7));
        assert!(matches!(state.step(&feed, 100), Step::Tell((_, 2))));
        state.target = Some(("h".to_owned(), 1));
        assert!(matches!(state.step(&feed, 99), Step::Wait), "it is not the one that is meant");
        state.is_forced = true;
        assert!(matches!(state.step(&feed, 100), Step::Tell((_, 1))));
    }
}
