//! Scripts and functions of Redis' clients, in Lua 5.1.
//!
//! ```text
//! commands/scripting ─► Engine: cache of scripts, libraries ─► run ─► Lua ─► host: redis.call
//!                                                               │              │ Known, Call::run
//!                                                             busy ◄──── hook, every so many steps
//! ```
//! A script runs with the keys locked, in the thread that serves its client. What its commands change
//! gathers among the keyspace's effects and is logged as one record, as all of a batch is.
//! Locks: keys, then the engine, then the hub.

mod arguments;
mod bits;
mod busy;
mod cache;
mod convert;
mod digits;
mod host;
mod json;
mod keeping;
mod library;
mod meanwhile;
mod msgpack;
mod pack;
mod raised;
mod run;
mod payload;
mod sha1;
mod shebang;
mod vm;

pub use busy::{Busy, Refusal};
pub use keeping::Keeping;
pub use library::{Conflict, Library, keep_libraries};
pub use run::{Job, run};
pub use sha1::hex as sha1_hex;
pub use shebang::Flags;

use cache::{Cache, Script};
use kv::CommandError;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use vm::Vm;

/// Longest text of a script.
const SCRIPT_SIZE_MAX: usize = 16 << 20;

/// What the door has of scripts.
#[derive(Default)]
pub struct Scripting {
    /// What runs, for those who wait.
    pub busy: Arc<Busy>,
    engine: Mutex<Engine>,
    /// The libraries on disk.
    pub keeping: Arc<Keeping>,
    /// Libraries and functions, to be read while a script runs.
    libraries: AtomicUsize,
    functions: AtomicUsize,
    /// What was used when last nothing ran.
    figures: Mutex<Figures>,
}

/// What scripts use of memory, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Figures {
    /// Of the interpreter of scripts.
    pub scripts_vm: usize,
    /// Scripts that are kept.
    pub scripts: usize,
    /// Of their texts.
    pub scripts_text: usize,
    /// Of the interpreter of functions.
    pub functions_vm: usize,
    /// Of the texts of libraries.
    pub functions_text: usize,
}

/// Interpreters and what they know. Held while a script runs.
#[derive(Default)]
pub struct Engine {
    /// Made when the first script comes.
    scripts: Option<Vm>,
    /// Scripts by digest.
    pub cache: Cache,
    /// Libraries of functions.
    functions: library::Functions,
}

/// Whether a script says of itself that it changes nothing.
pub fn is_read_only(body: &[u8]) -> bool {
    shebang::of_script(body).is_ok_and(|(flags, _)| flags.no_writes)
}

impl Scripting {
    /// The engine. Locked after the keys.
    pub fn engine(&self) -> MutexGuard<'_, Engine> {
        self.engine.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What scripts use; while one runs, what they did before.
    pub fn figures(&self) -> Figures {
        let mut figures = self.figures.lock().unwrap_or_else(PoisonError::into_inner);
        if let Ok(engine) = self.engine.try_lock() {
            *figures = engine.figures();
        }
        *figures
    }

    /// How many libraries and functions there are.
    pub fn counts(&self) -> (usize, usize) {
        (self.libraries.load(Relaxed), self.functions.load(Relaxed))
    }
}

impl Engine {
    /// The interpreter of scripts.
    ///
    /// # Errors
    /// When there is no memory for one.
    pub fn scripts_vm(&mut self, busy: &Arc<Busy>, seed: u64) -> Result<&Vm, CommandError> {
        if self.scripts.is_none() {
            let made = Vm::new(busy, seed, false);
            self.scripts = Some(made.map_err(|error| CommandError::new(format!("ERR {error}")))?);
        }
        self.scripts.as_ref().ok_or(CommandError::new("ERR no interpreter"))
    }

    /// The script of that text, compiled if it is new.
    ///
    /// # Errors
    /// When it is no Lua.
    pub fn script(
        &mut self,
        busy: &Arc<Busy>,
        digest: &str,
        body: &[u8],
        seed: u64,
    ) -> Result<Script, CommandError> {
        if let Some(script) = self.cache.get(digest) {
            return Ok(script);
        }
        if SCRIPT_SIZE_MAX < body.len() {
            return Err(CommandError::new("ERR the script is too long"));
        }
        let (flags, text) = shebang::of_script(body)?;
        let vm = self.scripts_vm(busy, seed)?;
        let chunk =
            vm.lua.load(text).set_name("@user_script").set_mode(mlua::chunk::ChunkMode::Text);
        let function = chunk.into_function().map_err(|error| {
            let text = raised::text_of(&error);
            let text = String::from_utf8_lossy(&text);
            CommandError::new(format!("ERR Error compiling script (new function): {text}"))
        })?;
        self.cache.add(digest, function, flags, body.len());
        self.cache.get(digest).ok_or(CommandError::new("ERR the script is too long"))
    }

    fn figures(&self) -> Figures {
        let used = |vm: Option<&Vm>| vm.map_or(0, |vm| vm.lua.used_memory());
        Figures {
            scripts_vm: used(self.scripts.as_ref()),
            scripts: self.cache.len(),
            scripts_text: self.cache.text_size(),
            functions_vm: used(self.functions.loaded_vm()),
            functions_text: self.libraries().map(|library| library.code.len()).sum(),
        }
    }

    /// Whether the script of that digest says of itself that it changes nothing.
    pub fn is_read_only_script(&mut self, digest: &[u8]) -> bool {
        let digest = String::from_utf8_lossy(digest).to_ascii_lowercase();
        self.cache.get(&digest).is_some_and(|script| script.flags.no_writes)
    }

    /// Whether the function of that name says so.
    pub fn is_read_only_function(&self, name: &[u8]) -> bool {
        let function = self.function(&String::from_utf8_lossy(name));
        function.is_some_and(|(function, _)| function.flags.no_writes)
    }

    /// Forgets all scripts.
    pub fn flush(&mut self) {
        self.cache.clear();
        self.scripts = None;
    }
}
