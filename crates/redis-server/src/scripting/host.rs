//! What a running script reaches of the server: commands, by `redis.call` and `redis.pcall`.

use super::busy::Busy;
use super::run::Job;
use crate::clients::session::{Needs, Session};
use crate::dispatch::OUT_OF_MEMORY;
use crate::hub::Hub;
use crate::out::{Out, answer_size_max};
use crate::redis::Redis;
use crate::registry::Known;
use crate::scripting::lua::convert::Reader;
use crate::scripting::lua::digits::general;
use crate::scripting::lua::raised::{Raised, error_table};
use kv::commands::{DENY_OOM, MAY_REPLICATE, NO_SCRIPT, READONLY, WRITE};
use kv::number::double_text;
use kv::{Keyspace, Mode};
use mlua::{Lua, MultiValue, Value};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// A script may name one long string many times over.
const TOO_LARGE: &[u8] = b"ERR the command is larger than a share of the memory (--memory-limit)";
/// Bytes of a script's arguments that are kept for the next command.
const KEPT_SIZE_MAX: usize = 64 << 10;

/// The surroundings of a running script.
pub struct Host<'a> {
    redis: &'a Redis,
    session: &'a mut Session,
    keys: &'a mut Keyspace,
    busy: &'a Arc<Busy>,
    version: &'a AtomicU8,
    /// Whether it may change nothing.
    is_read_only: bool,
    /// Whether it may do nothing that needs memory.
    refuses_growth: bool,
    /// The keys that its client said it is about.
    declared: &'a [&'a [u8]],
    /// Where answers go.
    out: Out,
    /// Arguments of a command, one behind the other, and where each ends.
    words: Vec<u8>,
    ends: Vec<usize>,
    /// The panic of a command.
    panic: Option<Box<dyn Any + Send>>,
}

impl<'a> Host<'a> {
    /// For a script that begins.
    pub fn new(
        redis: &'a Redis,
        session: &'a mut Session,
        keys: &'a mut Keyspace,
        version: &'a AtomicU8,
        job: &'a Job<'a>,
        refuses_growth: bool,
    ) -> Host<'a> {
        let busy = &redis.scripting.busy;
        let (out, words, ends) = (Out::new(2), Vec::new(), Vec::new());
        let (is_read_only, declared) = (job.is_read_only, job.keys);
        Host {
            redis,
            session,
            keys,
            busy,
            version,
            is_read_only,
            refuses_growth,
            declared,
            out,
            words,
            ends,
            panic: None,
        }
    }

    /// The panic of a command, which no `pcall` of the script may hide.
    pub fn take_panic(&mut self) -> Option<Box<dyn Any + Send>> {
        self.panic.take()
    }

    /// Runs a command for a script. Errors are raised, or a value like others.
    pub fn command(&mut self, lua: &Lua, args: &MultiValue, raises: bool) -> mlua::Result<Value> {
        let done = catch_unwind(AssertUnwindSafe(|| self.execute(args)));
        let done = done.unwrap_or_else(|panic| {
            self.panic = Some(panic);
            Err(b"ERR the command failed inside the server; see its log".to_vec())
        });
        match done {
            Err(text) if raises => Err(Raised::table(text)),
            Err(text) => error_table(lua, &text).map(Value::Table),
            Ok(()) => Reader::new(lua, self.busy, self.out.0.bytes()).value(),
        }
    }

    /// The same with the answer in `out`, or the text of an error.
    fn execute(&mut self, args: &MultiValue) -> Result<(), Vec<u8>> {
        self.gather(args)?;
        let words = std::mem::take(&mut self.words);
        let done = self.execute_words(&words);
        if words.capacity() <= KEPT_SIZE_MAX {
            self.words = words;
        }
        done?;
        match self.out.0.bytes() {
            [b'-', rest @ ..] => {
                let text = rest.strip_suffix(b"\r\n").unwrap_or(rest);
                Err(match text.contains(&b' ') {
                    true => text.to_vec(),
                    false => [b"ERR ", text].concat(),
                })
            }
            _ => Ok(()),
        }
    }

    fn execute_words(&mut self, words: &[u8]) -> Result<(), Vec<u8>> {
        let mut start = 0;
        let mut args = Vec::with_capacity(self.ends.len());
        for end in &self.ends {
            args.push(words.get(start..*end).unwrap_or_default());
            start = *end;
        }
        let mut hub = self.redis.hub();
        let checked = self.check(&hub, &args);
        let checked = checked.and_then(|known| self.allow(&mut hub, known, &args).map(|()| known));
        let known = checked.inspect_err(|text| self.note_rejected(&mut hub, &args, text))?;
        if known.info().is(WRITE) {
            self.busy.note_write();
        }
        self.out.0.bytes_mut().clear();
        self.session.is_script = true;
        self.out.0.set_version(self.version.load(Ordering::Relaxed));
        std::mem::swap(&mut self.session.out, &mut self.out);
        self.redis.run(self.session, self.keys, &mut hub, known, &args, Mode::Inside);
        if known.info().is(READONLY) && 0 < hub.tracked.clients {
            // Its client is told of all that it declared: what it answers may be made of any.
            hub.note_reads(self.session.id, self.declared);
        }
        drop(hub);
        std::mem::swap(&mut self.session.out, &mut self.out);
        self.out.settle(0);
        self.session.is_script = false;
        Ok(())
    }

    /// Counts a command that was not let run.
    fn note_rejected(&mut self, hub: &mut Hub, args: &[&[u8]], text: &[u8]) {
        hub.stats.error(text);
        if let Some(known) = Known::find(args) {
            hub.stats.commands[known.0.number].rejected += 1;
        }
        self.session.counted_error = text.to_vec();
    }

    fn gather(&mut self, args: &MultiValue) -> Result<(), Vec<u8>> {
        self.words.clear();
        self.ends.clear();
        if args.is_empty() {
            let text = b"ERR Please specify at least one argument for this redis lib call";
            return Err(text.to_vec());
        }
        let size_max = answer_size_max();
        for arg in args {
            match arg {
                Value::String(text) => {
                    let text = text.as_bytes();
                    if size_max < self.words.len().saturating_add(text.len()) {
                        return Err(TOO_LARGE.to_vec());
                    }
                    self.words.extend_from_slice(&text);
                }
                Value::Integer(number) if number.unsigned_abs() < 1 << 53 => {
                    self.words.extend_from_slice(itoa_of(*number).as_bytes());
                }
                Value::Integer(number) => {
                    self.words.extend_from_slice(double_text(*number as f64).as_bytes());
                }
                Value::Number(number) => {
                    // An argument that is zero has no sign.
                    let number = if *number == 0.0 { 0.0 } else { *number };
                    self.words.extend_from_slice(double_text(number).as_bytes());
                }
                _ => {
                    let text = b"ERR Lua redis lib command arguments must be strings or integers";
                    return Err(text.to_vec());
                }
            }
            self.ends.push(self.words.len());
        }
        Ok(())
    }

    /// Whether a script may run a command.
    fn check(&self, hub: &Hub, args: &[&[u8]]) -> Result<Known, Vec<u8>> {
        let error = |words: &str| Err(format!("ERR {words}").into_bytes());
        let Some(known) = Known::find(args) else {
            return error("Unknown Redis command called from script");
        };
        let info = known.info();
        if !info.takes(args.len()) {
            return error("Wrong number of args calling Redis command from script");
        }
        if info.is(NO_SCRIPT) && !may_debug(hub, args) {
            return error("This Redis command is not allowed from script");
        }
        if ["xread", "xreadgroup"].contains(&info.name) && waits(args) {
            let name = String::from_utf8_lossy(args.first().copied().unwrap_or_default());
            return error(&format!("{name} command is not allowed with BLOCK option from scripts"));
        }
        if self.is_read_only && info.is(WRITE | MAY_REPLICATE) {
            return error("Write commands are not allowed from read-only scripts.");
        }
        if self.redis.replication.link.is_replica() && !self.session.is_primary {
            let checked = self.redis.check_on_replica(&hub.settings, Needs::of(info));
            checked.map_err(|error| error.0.into_owned().into_bytes())?;
        }
        if info.is(WRITE) && !self.session.is_primary {
            let checked = self.redis.check_replicas(&hub.settings, self.keys.now_ms());
            checked.map_err(|error| error.0.into_owned().into_bytes())?;
        }
        // What has begun to write is let finish.
        if self.refuses_growth && info.is(DENY_OOM) && !self.busy.has_written() {
            return Err(OUT_OF_MEMORY.as_bytes().to_vec());
        }
        if info.is(WRITE)
            && !self.busy.has_written()
            && let Some(reason) = self.redis.refusal_for(self.session.is_primary)
        {
            return Err(format!("MISCONF Quipu takes no writes: {reason}").into_bytes());
        }
        Ok(known)
    }

    /// Whether the user for whom the script runs may say a command; a refusal is logged.
    fn allow(&mut self, hub: &mut Hub, known: Known, args: &[&[u8]]) -> Result<(), Vec<u8>> {
        let allowed = self.redis.allow(self.session, self.keys, hub, known, args, "lua");
        allowed.map_err(|refused| {
            if refused.0.starts_with("ERR ") {
                return refused.0.into_owned().into_bytes();
            }
            let what = if refused.0.contains("one of the keys") {
                "can't access at least one of the keys mentioned in the command arguments"
            } else if refused.0.contains("one of the channels") {
                "can't publish to the channel mentioned in the command"
            } else {
                "can't run this command or subcommand"
            };
            format!("ERR The user executing the script {what}").into_bytes()
        })
    }

    /// Whether the client may run a command.
    pub fn may(&self, args: &MultiValue) -> mlua::Result<bool> {
        let (mut words, mut size) = (Vec::new(), 0_usize);
        for arg in args {
            match arg {
                Value::String(text) => {
                    size = size.saturating_add(text.as_bytes().len());
                    if answer_size_max() < size {
                        return Err(Raised::table(TOO_LARGE.to_vec()));
                    }
                    words.push(text.as_bytes().to_vec());
                }
                Value::Integer(number) => words.push(itoa_of(*number).into_bytes()),
                Value::Number(number) => words.push(general(*number, 17).into_bytes()),
                _ => {
                    let words = "Lua redis lib command arguments must be strings or integers";
                    return Err(Raised::error(words));
                }
            }
        }
        if words.is_empty() {
            let words = "Please specify at least one argument for this redis lib call";
            return Err(Raised::error(words));
        }
        let args: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        match Known::find(&args) {
            Some(known) if known.info().takes(args.len()) => {
                Ok(self.session.user.check(known, &args).is_ok())
            }
            _ => Err(Raised::error("Invalid command passed to redis.acl_check_cmd()")),
        }
    }
}

/// Whether it is `DEBUG`, and `DEBUG SET-DISABLE-DENY-SCRIPTS` has allowed that to scripts.
fn may_debug(hub: &Hub, args: &[&[u8]]) -> bool {
    let is_debug = args.first().is_some_and(|name| name.eq_ignore_ascii_case(b"debug"));
    is_debug && hub.lets_scripts_debug
}

/// Whether a reader of streams says that it would wait.
fn waits(args: &[&[u8]]) -> bool {
    let options = args.iter().take_while(|arg| !arg.eq_ignore_ascii_case(b"streams"));
    options.skip(1).any(|arg| arg.eq_ignore_ascii_case(b"block"))
}

fn itoa_of(number: i64) -> String {
    number.to_string()
}
