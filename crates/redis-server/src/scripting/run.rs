//! One script from its beginning to its answer.

use super::busy::{Busy, Running};
use super::host::Host;
use super::vm::Vm;
use crate::dispatch::Context;
use crate::out::Out;
use crate::scripting::lua::convert::answer;
use crate::scripting::lua::raised::text_of;
use kv::{CommandError, Reply as _};
use mlua::{Function, MultiValue, Table, Value};
use std::cell::RefCell;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// A script to run.
pub struct Job<'a> {
    /// It.
    pub function: Function,
    /// Its digest, or the function's name.
    pub name: &'a str,
    /// Its keys.
    pub keys: &'a [&'a [u8]],
    /// Its other arguments.
    pub arguments: &'a [&'a [u8]],
    /// Whether it may change nothing.
    pub is_read_only: bool,
    /// Whether it is a function of a library.
    pub is_function: bool,
    /// Whether it may do what needs memory though there is none.
    pub allows_growth: bool,
}

/// Bytes that an argument takes in the interpreter besides its own.
const ITEM_SIZE: usize = 64;

/// A script that others see as the running one, until this is dropped.
struct RunningScript<'a>(&'a Busy);

impl<'a> RunningScript<'a> {
    fn begin(busy: &'a Busy, running: Running) -> RunningScript<'a> {
        busy.begin(running);
        RunningScript(busy)
    }
}

impl Drop for RunningScript<'_> {
    fn drop(&mut self) {
        self.0.end();
        if std::thread::panicking() {
            self.0.calm_down();
        }
    }
}

/// Runs a script; its answer gathers in the session.
///
/// # Errors
/// When it fails, in words for the client.
pub fn run(context: &mut Context<'_, '_>, vm: &Vm, job: &Job<'_>) -> Result<(), CommandError> {
    let redis = context.redis;
    let busy = &redis.scripting.busy;
    let db = context.session.db;
    busy.set_threshold(context.hub.settings.hot.busy_after_ms);
    let refuses_growth = context.hub.settings.hot.refuses_growth && !job.allows_growth;
    let running = Running {
        name: job.name.to_owned(),
        command: context.args.iter().map(|arg| arg.to_vec()).collect(),
        is_function: job.is_function,
        is_load: false,
        started: Instant::now(),
    };
    let running = RunningScript::begin(busy, running);
    context.session.counted_error.clear();
    vm.version.store(2, Ordering::Relaxed);
    let mut out = Out::new(context.session.out.version());
    let (session, keys) = (&mut *context.session, &mut *context.keys);
    let host = RefCell::new(Host::new(redis, session, keys, &vm.version, job, refuses_growth));
    // Other connections use the hub between the commands of the script.
    let ended = context.hub.unlock_while(|| call(vm, busy, job, &host, &mut out));
    if let Some(panic) = host.into_inner().take_panic() {
        resume_unwind(panic);
    }
    drop(running);
    vm.lua.gc_restart();
    let rested = vm.rest();
    if busy.is_killed() {
        // The next script is watched as usual again.
        let _ = vm.watch();
    }
    if context.session.db != db {
        context.session.db = db;
        context.session.state.db.store(db, Ordering::Relaxed);
    }
    ended?;
    rested.map_err(|error| CommandError::new(format!("ERR {error}")))?;
    let answers = context.session.out.0.bytes_mut();
    match answers.is_empty() {
        // An answer may be large: it is not copied.
        true => std::mem::swap(answers, out.0.bytes_mut()),
        false => answers.extend_from_slice(out.0.bytes()),
    }
    Ok(())
}

fn call(
    vm: &Vm,
    busy: &Arc<Busy>,
    job: &Job<'_>,
    host: &RefCell<Host<'_>>,
    out: &mut Out,
) -> Result<(), CommandError> {
    let called = vm.lua.scope(|scope| {
        let size = |items: &[&[u8]]| items.iter().map(|item| ITEM_SIZE + item.len()).sum::<usize>();
        vm.check_room(size(job.keys).saturating_add(size(job.arguments)))?;
        let call = scope
            .create_function(|lua, args: MultiValue| host.borrow_mut().command(lua, &args, true))?;
        let pcall = scope.create_function(|lua, args: MultiValue| {
            host.borrow_mut().command(lua, &args, false)
        })?;
        let may = scope.create_function(|_, args: MultiValue| host.borrow_mut().may(&args))?;
        vm.redis.raw_set("call", call)?;
        vm.redis.raw_set("pcall", pcall)?;
        vm.redis.raw_set("acl_check_cmd", may)?;
        let (keys, arguments) = (table(vm, job.keys)?, table(vm, job.arguments)?);
        let (is_ok, value): (bool, Value) = match job.is_function {
            true => vm.run_with.call((&job.function, keys, arguments))?,
            false => {
                vm.real.raw_set("KEYS", keys)?;
                vm.real.raw_set("ARGV", arguments)?;
                vm.run.call(&job.function)?
            }
        };
        if !is_ok {
            return Ok(Some(value));
        }
        answer(&vm.lua, busy, &value, vm.version.load(Ordering::Relaxed), out)?;
        Ok(None)
    });
    match called {
        Ok(None) => Ok(()),
        Ok(Some(raised)) => Err(CommandError::new(words(job, &raised))),
        Err(error) => {
            let text = text_of(&error);
            let text = String::from_utf8_lossy(&text);
            Err(CommandError::new(format!("ERR Error running script {}, {text}", job.name)))
        }
    }
}

fn table(vm: &Vm, items: &[&[u8]]) -> mlua::Result<Table> {
    let table = vm.lua.create_table_with_capacity(items.len(), 0)?;
    for (at, item) in items.iter().enumerate() {
        table.raw_set(at + 1, vm.lua.create_string(item)?)?;
    }
    Ok(table)
}

/// An error that nobody caught, in words for the client.
fn words(job: &Job<'_>, raised: &Value) -> String {
    let name = job.name;
    let Value::Table(table) = raised else {
        let text = raised.to_string().unwrap_or_default();
        let text: String = text.chars().take(100).collect();
        return format!("ERR Error running script {name}, {text}");
    };
    let field = |field: &str| -> Option<String> {
        match table.raw_get(field).ok()? {
            Value::String(text) => Some(text.to_string_lossy()),
            Value::Integer(number) => Some(number.to_string()),
            _ => None,
        }
    };
    let text = field("err").unwrap_or_else(|| "ERR unknown error".to_owned());
    match (field("source"), field("line")) {
        (Some(source), Some(line)) => format!("{text} script: {name}, on {source}:{line}."),
        _ => text,
    }
}
