//! An interpreter of Lua 5.1 with the globals that scripts may see, a limit of memory, and a hook
//! that is called every so many instructions.

use super::busy::Busy;
use super::functions::registering::{Pending, register};
use super::lua::limits::{LOOK_INTERVAL, MEMORY_MAX, memory_left, watch_every};
use super::lua::{bits, json, msgpack, pack, strings};
use crate::scripting::lua::raised::{Raised, handler, unwrap};
use crate::version::REDIS_VERSION;
use mlua::chunk::ChunkMode;
use mlua::{Function, Lua, LuaOptions, MultiValue, StdLib, Table, Value, Variadic};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// Bytes that an interpreter may hold between two scripts before its garbage is collected.
const RESTING_MEMORY_MAX: usize = MEMORY_MAX / 2;
/// Bytes of a line that a script logs.
const LOGGED_SIZE_MAX: usize = 64 << 10;
/// The globals of Lua that scripts see as they are. Not among them: `getfenv` and `setfenv`, by which a
/// script could change what later ones of other users see, and `newproxy`, whose finalizers run in them.
const PLAIN: &[&str] = &[
    "xpcall", "tostring", "next", "assert", "tonumber", "rawequal", "type", "select", "gcinfo",
    "pairs", "ipairs", "_VERSION", "error",
];

/// What `redis` does not have while a library is loaded.
const RUN_ONLY: &[&str] = &[
    "call",
    "pcall",
    "setresp",
    "set_repl",
    "sha1hex",
    "error_reply",
    "status_reply",
    "acl_check_cmd",
];

/// An interpreter.
pub struct Vm {
    /// Lua itself.
    pub lua: Lua,
    /// The globals as they are; scripts see them through a table that cannot be changed.
    pub real: Table,
    /// `redis` as it is while a script runs.
    pub redis: Table,
    /// Calls a script without arguments: whether it ended well, and its answer.
    pub run: Function,
    /// The same with keys and arguments.
    pub run_with: Function,
    /// The version of the protocol that the running script speaks.
    pub version: Arc<AtomicU8>,
    /// What a library that is loaded has registered; none while none is.
    pub pending: Pending,
    /// Raises the error about a name that is not there.
    missing: Function,
    /// The library `math`, which has dice and so is not for loading.
    math: Value,
    /// Whether it runs functions of libraries.
    is_for_functions: bool,
    busy: Arc<Busy>,
}

impl Vm {
    /// An interpreter whose scripts are watched by `busy`.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub fn new(busy: &Arc<Busy>, seed: u64, is_for_functions: bool) -> mlua::Result<Vm> {
        let libraries = StdLib::TABLE | StdLib::STRING | StdLib::MATH;
        let lua = Lua::new_with(libraries, LuaOptions::new())?;
        let version = Arc::new(AtomicU8::new(2));
        let names = lua.create_sequence_from(PLAIN.iter().copied())?;
        let native = native(&lua, busy, seed)?;
        let prelude = lua.load(include_str!("prelude.lua")).set_name("=prelude");
        let made: Table = prelude.call((native, lua.globals(), names))?;
        let real: Table = made.raw_get("real")?;
        let redis = lua.create_table()?;
        let protect: Function = made.raw_get("protect")?;
        real.raw_set("redis", protect.call::<Value>(&redis)?)?;
        lua.set_globals(made.raw_get("globals")?)?;
        let (run, run_with) = (made.raw_get("run")?, made.raw_get("run_with")?);
        let busy = busy.clone();
        let pending = Pending::default();
        let (missing, math) = (made.raw_get("missing")?, real.raw_get("math")?);
        let vm = Vm {
            lua,
            real,
            redis,
            run,
            run_with,
            version,
            pending,
            missing,
            math,
            is_for_functions,
            busy,
        };
        vm.add_api()?;
        vm.watch()?;
        Ok(vm)
    }

    /// Compiles a text, within the memory limit.
    ///
    /// # Errors
    /// Those of Lua's compiler.
    pub fn compile(&self, text: &[u8], name: &str) -> mlua::Result<Function> {
        let chunk = self.lua.load(text).set_name(name).set_mode(ChunkMode::Text);
        self.lua.set_memory_limit(MEMORY_MAX)?;
        let compiled = chunk.into_function();
        self.rest()?;
        compiled
    }

    /// Lifts the memory limit behind a script and collects its garbage if there is much.
    ///
    /// Lua ends the process when an allocation fails outside of a script. The limit therefore holds
    /// only while a script runs: the first thing that the prelude does is to set it.
    ///
    /// # Errors
    /// None that this interpreter has.
    pub fn rest(&self) -> mlua::Result<()> {
        self.lua.set_memory_limit(0)?;
        if RESTING_MEMORY_MAX < self.lua.used_memory() {
            self.lua.gc_collect()?;
        }
        Ok(())
    }

    /// Refuses arguments for which there is no memory: they are copied without a limit.
    ///
    /// # Errors
    /// When they are too large.
    pub fn check_room(&self, size: usize) -> mlua::Result<()> {
        if memory_left(&self.lua) < size {
            return Err(mlua::Error::MemoryError("not enough memory".to_owned()));
        }
        Ok(())
    }

    /// Looks at the clock every so many instructions. Before each script whose predecessor was
    /// ended, for the hook is then one for each line.
    pub fn watch(&self) -> mlua::Result<()> {
        watch_every(&self.lua, &self.busy, LOOK_INTERVAL)
    }

    /// A library is loaded, which may do nothing but register.
    ///
    /// # Errors
    /// When there is no memory.
    pub fn begin_load(&self) -> mlua::Result<()> {
        for name in RUN_ONLY {
            self.redis.raw_set(*name, Value::Nil)?;
        }
        self.real.raw_set("math", Value::Nil)?;
        self.redis.raw_set("register_function", register(&self.lua, &self.pending)?)?;
        let meta = self.lua.create_table()?;
        meta.raw_set("__index", &self.missing)?;
        self.redis.set_metatable(Some(meta))
    }

    /// It is loaded.
    ///
    /// # Errors
    /// As above.
    pub fn end_load(&self) -> mlua::Result<()> {
        self.real.raw_set("math", &self.math)?;
        self.redis.raw_set("register_function", Value::Nil)?;
        self.redis.set_metatable(None)?;
        self.add_api()
    }

    /// The parts of `redis` that need no running script.
    fn add_api(&self) -> mlua::Result<()> {
        add_constants(&self.redis)?;
        add_plain(&self.lua, &self.redis)?;
        let version = self.version.clone();
        let set_version = self.lua.create_function(move |lua, args: MultiValue| {
            if args.len() != 1 {
                return Err(Raised::error("redis.setresp() requires one argument."));
            }
            let wanted = args.front().and_then(|arg| lua.coerce_number(arg.clone()).ok().flatten());
            match wanted {
                Some(2.0) => version.store(2, Ordering::Relaxed),
                Some(3.0) => version.store(3, Ordering::Relaxed),
                _ => return Err(Raised::error("RESP version must be 2 or 3.")),
            }
            Ok(())
        })?;
        self.redis.raw_set("setresp", set_version)?;
        let set_repl = self.lua.create_function(|lua, args: MultiValue| {
            if args.len() != 1 {
                return Err(Raised::error("redis.set_repl() requires two arguments."));
            }
            // What changes is always logged: a state that differs from its log would be lost.
            let flags = args.front().and_then(|arg| lua.coerce_number(arg.clone()).ok().flatten());
            // No number is 0, as in C.
            match flags.unwrap_or(0.0) {
                flags if (0.0..=3.0).contains(&flags) => Ok(()),
                _ => Err(Raised::error(
                    "Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.",
                )),
            }
        })?;
        self.redis.raw_set("set_repl", set_repl)?;
        if !self.is_for_functions {
            let yes = self.lua.create_function(|_, _: MultiValue| Ok(true))?;
            self.redis.raw_set("replicate_commands", yes)?;
            let no = self.lua.create_function(|_, _: MultiValue| Ok(false))?;
            self.redis.raw_set("breakpoint", no)?;
            let nothing = self.lua.create_function(|_, _: MultiValue| Ok(()))?;
            self.redis.raw_set("debug", nothing)?;
        }
        let outside = "redis.call/pcall can only be called inside a script invocation";
        for name in ["call", "pcall"] {
            let refuse = self
                .lua
                .create_function(move |_, _: MultiValue| Err::<(), _>(Raised::error(outside)))?;
            self.redis.raw_set(name, refuse)?;
        }
        Ok(())
    }
}

/// What a library may say while it is loaded, besides registering.
pub fn add_constants(redis: &Table) -> mlua::Result<()> {
    let numbers = REDIS_VERSION.split('.').map(|part| part.parse().unwrap_or(0));
    let number = numbers.fold(0_i64, |sum, part: i64| (sum << 8) | part);
    redis.raw_set("REDIS_VERSION", REDIS_VERSION)?;
    redis.raw_set("REDIS_VERSION_NUM", number)?;
    for (name, value) in [
        ("LOG_DEBUG", 0),
        ("LOG_VERBOSE", 1),
        ("LOG_NOTICE", 2),
        ("LOG_WARNING", 3),
        ("REPL_NONE", 0),
        ("REPL_AOF", 1),
        ("REPL_SLAVE", 2),
        ("REPL_REPLICA", 2),
        ("REPL_ALL", 3),
    ] {
        redis.raw_set(name, value)?;
    }
    Ok(())
}

/// Functions of `redis` that touch nothing.
fn add_plain(lua: &Lua, redis: &Table) -> mlua::Result<()> {
    let sha1hex = lua.create_function(|lua, args: MultiValue| {
        let [arg] = args.iter().collect::<Vec<_>>()[..] else {
            return Err(Raised::error("wrong number of arguments"));
        };
        let text = lua.coerce_string(arg.clone())?;
        let digest =
            text.map_or_else(|| super::sha1::hex(b""), |text| super::sha1::hex(&text.as_bytes()));
        Ok(digest)
    })?;
    redis.raw_set("sha1hex", sha1hex)?;
    let error_reply = lua.create_function(|lua, args: MultiValue| {
        let text = one_string(&args);
        let text = text.unwrap_or_else(|| b"ERR wrong number or type of arguments".to_vec());
        crate::scripting::lua::raised::error_table(lua, &with_code(&text))
    })?;
    redis.raw_set("error_reply", error_reply)?;
    let status_reply = lua.create_function(|lua, args: MultiValue| {
        let Some(text) = one_string(&args) else {
            return crate::scripting::lua::raised::error_table(
                lua,
                b"ERR wrong number or type of arguments",
            );
        };
        let table = lua.create_table()?;
        table.raw_set("ok", lua.create_string(&text)?)?;
        Ok(table)
    })?;
    redis.raw_set("status_reply", status_reply)?;
    redis.raw_set("log", lua.create_function(log)?)
}

fn one_string(args: &MultiValue) -> Option<Vec<u8>> {
    match (args.len(), args.front()) {
        (1, Some(Value::String(text))) => Some(text.as_bytes().to_vec()),
        _ => None,
    }
}

/// An error's text begins with a code: its first word, or `ERR` before the only one.
fn with_code(text: &[u8]) -> Vec<u8> {
    let text = text.strip_prefix(b"-").unwrap_or(text);
    let end = text.iter().rposition(|byte| !b"\r\n".contains(byte)).map_or(0, |at| at + 1);
    let text = &text[..end];
    match text.contains(&b' ') {
        true => text.to_vec(),
        false => [b"ERR ", text].concat(),
    }
}

fn log(lua: &Lua, args: Variadic<Value>) -> mlua::Result<()> {
    let [level, parts @ ..] = &args[..] else {
        return Err(Raised::error("redis.log() requires two arguments or more."));
    };
    if parts.is_empty() {
        return Err(Raised::error("redis.log() requires two arguments or more."));
    }
    let level = match level {
        Value::Integer(level) => *level,
        Value::Number(level) => *level as i64,
        _ => return Err(Raised::error("First argument must be a number (log level).")),
    };
    if !(0..=3).contains(&level) {
        return Err(Raised::error("Invalid debug level."));
    }
    let mut text = Vec::new();
    for part in parts {
        if let Some(part) = lua.coerce_string(part.clone())? {
            // A script may name one long string many times over.
            let left = LOGGED_SIZE_MAX.saturating_sub(text.len());
            let part = part.as_bytes();
            text.extend_from_slice(part.get(..left).unwrap_or(&part));
            text.push(b' ');
        }
    }
    let text = String::from_utf8_lossy(text.trim_ascii_end());
    match level {
        0 => tracing::trace!("a script says: {text}"),
        1 => tracing::debug!("a script says: {text}"),
        2 => tracing::info!("a script says: {text}"),
        _ => tracing::warn!("a script says: {text}"),
    }
    Ok(())
}

/// What the prelude is given.
fn native(lua: &Lua, busy: &Arc<Busy>, seed: u64) -> mlua::Result<Table> {
    let native = lua.create_table()?;
    native.raw_set("strings", strings::library(lua, busy)?)?;
    native.raw_set("gmatch_step", strings::gmatch_step(lua, busy)?)?;
    let fail = |lua: &Lua, words: String| Err::<(), _>(Raised::placed(lua, &words));
    native.raw_set("fail", lua.create_function(fail)?)?;
    let refuse = |lua: &Lua, (at, name, words): (usize, String, String)| {
        Err::<(), _>(Raised::argument(lua, at, &name, &words))
    };
    native.raw_set("refuse_argument", lua.create_function(refuse)?)?;
    native.raw_set("unwrap", lua.create_function(unwrap)?)?;
    native.raw_set("handler", lua.create_function(handler)?)?;
    for (name, limit) in [("set_memory_limit", MEMORY_MAX), ("lift_memory_limit", 0)] {
        let set = move |lua: &Lua, ()| lua.set_memory_limit(limit).map(drop);
        native.raw_set(name, lua.create_function(set)?)?;
    }
    let dice = Arc::new(AtomicU64::new(seed));
    let thrown = dice.clone();
    let random = lua.create_function(move |lua, args: MultiValue| random(lua, &thrown, &args))?;
    native.raw_set("random", random)?;
    let randomseed = lua.create_function(move |lua, args: MultiValue| {
        let seed = crate::scripting::lua::arguments::integer(lua, &args, 0, "randomseed")?;
        dice.store(seed as u64, Ordering::Relaxed);
        Ok(())
    })?;
    native.raw_set("randomseed", randomseed)?;
    let libraries = lua.create_table()?;
    libraries.raw_set("cjson", json::library(lua, busy)?)?;
    libraries.raw_set("cmsgpack", msgpack::library(lua, busy)?)?;
    libraries.raw_set("struct", pack::library(lua)?)?;
    libraries.raw_set("bit", bits::library(lua)?)?;
    native.raw_set("libraries", libraries)?;
    Ok(native)
}

fn random(lua: &Lua, dice: &AtomicU64, args: &MultiValue) -> mlua::Result<f64> {
    let counter = dice.fetch_add(rng::GOLDEN, Ordering::Relaxed).wrapping_add(rng::GOLDEN);
    // 53 bits make a float in [0, 1).
    let part = (rng::mix(counter) >> 11) as f64 / (1_u64 << 53) as f64;
    let bound = |at| crate::scripting::lua::arguments::integer(lua, args, at, "random");
    let (low, high) = match args.len() {
        0 => return Ok(part),
        1 => (1, bound(0)?),
        2 => (bound(0)?, bound(1)?),
        _ => return Err(Raised::placed(lua, "wrong number of arguments")),
    };
    if high < low {
        let at = args.len();
        return Err(Raised::argument(lua, at, "random", "interval is empty"));
    }
    let span = high.wrapping_sub(low) as u64 as f64 + 1.0;
    Ok((part * span).floor() + low as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The seeds that scripts set give the numbers that every implementation of SplitMix64 gives.
    #[test]
    fn random_numbers_of_a_seed_stay_the_same() {
        let vm = Vm::new(&Arc::default(), 1_234_567, false).expect("an interpreter");
        let text = b"local first = math.random() math.randomseed(1234567) \
                     return {first, math.random(), math.random(10), math.random(5, 6)}";
        let script = vm.compile(text, "@user_script").expect("a script");
        let (is_ok, numbers): (bool, Vec<f64>) = vm.run.call(script).expect("numbers");
        // Of 6457827717110365317, 3203168211198807973 and 9817491932198370423.
        let first = (6_457_827_717_110_365_317_u64 >> 11) as f64 / (1_u64 << 53) as f64;
        assert!(is_ok);
        assert_eq!(numbers, [first, first, 2.0, 6.0]);
    }
}
