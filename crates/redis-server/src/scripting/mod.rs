//! Scripts and functions of Redis' clients, in Lua 5.1.
//!
//! ```text
//! commands/scripting ─► Engine: cache of scripts, libraries ─► run ─► Lua ─► host: redis.call
//!                                                               │              │ Known, Call::run
//!                                                             busy ◄──── hook, every so many steps
//! ```
//! A script runs with keys and engine locked, in the thread that serves its client, and locks the hub
//! for each of its commands (`hub/guard.rs`). What its commands change gathers among the keyspace's
//! effects and is logged as one record, as all of a batch is.

mod busy;
mod cache;
mod functions;
mod host;
mod lua;
mod meanwhile;
mod run;
mod sha1;
mod shebang;
mod vm;

pub use busy::{Busy, Refusal};
pub use functions::keeping::Keeping;
pub use functions::library::{Conflict, Library, keep_libraries};
pub use functions::payload::check as check_libraries;
pub use run::{Job, run};
pub use sha1::hex as sha1_hex;
pub use shebang::Flags;

use cache::{Cache, Script};
use kv::CommandError;
use mlua::{Function, RegistryKey};
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
    /// Reason why the libraries on disk are not here. Until a client gives them up nothing is written.
    functions_fault: Mutex<Option<String>>,
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
    functions: functions::library::Functions,
}

/// A script that can run.
pub struct Compiled {
    /// Compiled function.
    pub function: Function,
    /// Flags of its first line.
    pub flags: Flags,
}

fn is_out_of_memory(error: &mlua::Error) -> bool {
    matches!(error, mlua::Error::MemoryError(_))
}

/// Whether a script says of itself that it changes nothing.
pub fn is_read_only(body: &[u8]) -> bool {
    shebang::of_script(body).is_ok_and(|(flags, _)| flags.no_writes)
}

impl Scripting {
    /// Locks the engine, after the keys. `hub/guard.rs` has the order of locks.
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

    /// The script of that digest, compiled if need be; none if it is unknown and has no `body`.
    ///
    /// # Errors
    /// When it is no Lua.
    pub fn script(
        &mut self,
        busy: &Arc<Busy>,
        digest: &str,
        body: Option<&[u8]>,
        seed: u64,
    ) -> Result<Option<Compiled>, CommandError> {
        let known = self.cache.get(digest);
        if let Some(Script { function: Some(function), flags, .. }) = &known {
            return self.compiled(function, *flags).map(Some);
        }
        let source = known.and_then(|script| script.source);
        let Some(body) = body.or(source.as_deref()) else { return Ok(None) };
        if SCRIPT_SIZE_MAX < body.len() {
            return Err(CommandError::new("ERR the script is too long"));
        }
        let (flags, text) = shebang::of_script(body)?;
        self.scripts_vm(busy, seed)?;
        let function = match self.compile(text) {
            // Scripts that are not running give their memory back.
            Err(error) if is_out_of_memory(&error) => {
                self.cache.drop_compiled();
                self.compile(text)
            }
            compiled => compiled,
        };
        let function = function.map_err(|error| {
            let text = lua::raised::text_of(&error);
            let text = String::from_utf8_lossy(&text);
            CommandError::new(format!("ERR Error compiling script (new function): {text}"))
        })?;
        let function = Arc::new(function);
        self.cache.add(digest, function.clone(), flags, body.len());
        self.compiled(&function, flags).map(Some)
    }

    /// Compiles a script into the registry: references from Rust are limited in number.
    fn compile(&self, text: &[u8]) -> mlua::Result<RegistryKey> {
        let Some(vm) = &self.scripts else { return Err(mlua::Error::runtime("no interpreter")) };
        vm.lua.expire_registry_values();
        let function = vm.compile(text, "@user_script")?;
        vm.lua.create_registry_value(function)
    }

    fn compiled(&self, function: &RegistryKey, flags: Flags) -> Result<Compiled, CommandError> {
        let function = self.scripts.as_ref().map(|vm| vm.lua.registry_value(function));
        match function {
            Some(Ok(function)) => Ok(Compiled { function, flags }),
            Some(Err(error)) => Err(CommandError::new(format!("ERR {error}"))),
            None => Err(CommandError::new("ERR no interpreter")),
        }
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
