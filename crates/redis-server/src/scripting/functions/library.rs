//! Libraries of functions: loaded once, called by name, kept beside the keys.
//!
//! They are a file in the keys' directory, `functions`, which is what `FUNCTION DUMP` answers; it is
//! replaced as a whole before the command that changed it is answered.

use super::keeping::Keeping;
use super::payload;
use super::registering::{BAD_NAME, Registered, Registrations, is_name};
use crate::scripting::busy::{Busy, Running};
use crate::scripting::lua::raised::text_of;
use crate::scripting::vm::Vm;
use crate::scripting::{Engine, SCRIPT_SIZE_MAX, Scripting};
use kv::libraries::FUNCTIONS_FILE;
use kv::{CommandError, Kv};
use mlua::Value;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Instant;

/// Libraries that there may be.
const LIBRARIES_MAX: usize = 10_000;
/// Bytes of the texts of all of them.
const LIBRARIES_SIZE_MAX: usize = 256 << 20;
/// Bytes of the interpreter's memory that loaded libraries may take: the rest is for calls.
const LOADED_MEMORY_MAX: usize = 128 << 20;

/// A library.
pub struct Library {
    /// Its name.
    pub name: String,
    /// Its text, with the first line.
    pub code: Vec<u8>,
    /// Its functions, by name.
    pub functions: Vec<Registered>,
}

/// What happens to a library of the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conflict {
    /// It stays, and the new one is refused.
    Refuse,
    /// It goes.
    Replace,
}

/// All libraries, by name in lower case.
#[derive(Default)]
pub struct Functions {
    vm: Option<Vm>,
    libraries: BTreeMap<String, Library>,
    /// Where a function is: its library and place there, by name in lower case.
    by_name: BTreeMap<String, (String, usize)>,
}

impl Functions {
    /// Their interpreter, if any was loaded.
    pub fn loaded_vm(&self) -> Option<&Vm> {
        self.vm.as_ref()
    }
}

fn error(words: impl Into<String>) -> CommandError {
    CommandError::new(format!("ERR {}", words.into()))
}

fn lua_error(raised: &mlua::Error) -> CommandError {
    error(String::from_utf8_lossy(&text_of(raised)))
}

/// Writes all libraries to disk, unless they are there as they were noted under that number. It takes
/// the disk its time: not for who has locked the keys while clients are served.
///
/// # Errors
/// When that fails; the libraries are then other ones after a restart.
pub fn keep_libraries(keeping: &Keeping, kv: &Kv, number: u64) -> Result<(), CommandError> {
    let kept = keeping.keep(number, |bytes| kv.write_functions(bytes));
    kept.map_err(|failure| error(format!("the functions cannot be written: {failure}")))
}

impl Scripting {
    /// Notes that libraries may have changed. Returns the number of what they are now, for
    /// [`keep_libraries`].
    pub fn note_libraries(&self, engine: &Engine) -> u64 {
        self.count(engine);
        self.keeping.note(engine.dump())
    }

    /// Reads the libraries that were kept.
    pub fn recall(&self, kv: &Kv) {
        let mut engine = self.engine();
        let fault = match kv.read_functions() {
            Ok(None) => return,
            Ok(Some(bytes)) => {
                let restored = engine.restore(&self.busy, 0, &bytes, Conflict::Refuse, true);
                restored.err().map(|error| {
                    format!("a library in the file {FUNCTIONS_FILE} cannot be loaded: {}", error.0)
                })
            }
            Err(reason) => Some(reason),
        };
        match &fault {
            Some(fault) => tracing::error!("functions are not served: {fault}"),
            None => {
                if let Err(reason) = kv.list_functions() {
                    tracing::warn!("the loss of {FUNCTIONS_FILE} would not be noticed: {reason}");
                }
            }
        }
        *self.fault() = fault;
        self.count(&engine);
    }

    fn fault(&self) -> MutexGuard<'_, Option<String>> {
        self.functions_fault.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Refuses to change libraries while those on disk are damaged: they would be written over.
    ///
    /// # Errors
    /// Fails while a damaged file of libraries awaits a decision.
    pub fn check_libraries(&self) -> Result<(), CommandError> {
        match &*self.fault() {
            None => Ok(()),
            Some(fault) => Err(error(fault.as_str())),
        }
    }

    /// A client has decided to begin without the libraries that are damaged. Sets their file aside.
    ///
    /// # Errors
    /// When it cannot be renamed.
    pub fn give_libraries_up(&self, kv: &Kv) -> Result<(), CommandError> {
        let mut fault = self.fault();
        if fault.is_some() {
            kv.set_functions_aside().map_err(error)?;
            *fault = None;
        }
        Ok(())
    }

    fn count(&self, engine: &Engine) {
        self.libraries.store(engine.functions.libraries.len(), Relaxed);
        self.functions.store(engine.functions.by_name.len(), Relaxed);
    }
}

impl Engine {
    /// All libraries.
    pub fn libraries(&self) -> impl Iterator<Item = &Library> {
        self.functions.libraries.values()
    }

    /// A function, and where it runs.
    pub fn function(&self, name: &str) -> Option<(&Registered, &Vm)> {
        let (library, at) = self.functions.by_name.get(&name.to_ascii_lowercase())?;
        let library = self.functions.libraries.get(library)?;
        Some((library.functions.get(*at)?, self.functions.vm.as_ref()?))
    }

    /// All libraries as bytes.
    pub fn dump(&self) -> Vec<u8> {
        payload::dump(self.libraries().map(|library| library.code.as_slice()))
    }

    /// Loads a library. Returns its name.
    ///
    /// # Errors
    /// When it is none, or its name or that of a function is taken.
    pub fn add_library(
        &mut self,
        busy: &Arc<Busy>,
        seed: u64,
        code: &[u8],
        conflict: Conflict,
    ) -> Result<String, CommandError> {
        self.add(busy, seed, code, conflict, false)
    }

    fn add(
        &mut self,
        busy: &Arc<Busy>,
        seed: u64,
        code: &[u8],
        conflict: Conflict,
        is_restored: bool,
    ) -> Result<String, CommandError> {
        let (name, text) = name_of(code)?;
        let key = name.to_ascii_lowercase();
        if conflict == Conflict::Refuse && self.functions.libraries.contains_key(&key) {
            // A restored one is said without quotes.
            let shown = if is_restored { name } else { format!("'{name}'") };
            return Err(error(format!("Library {shown} already exists")));
        }
        if LIBRARIES_MAX <= self.functions.libraries.len() {
            return Err(error("there are too many libraries"));
        }
        let others = self.functions.libraries.iter().filter(|(other, _)| **other != key);
        let size = others.map(|(_, one)| one.code.len()).sum::<usize>() + code.len();
        if LIBRARIES_SIZE_MAX < size {
            return Err(error(format!(
                "the texts of all libraries may have {LIBRARIES_SIZE_MAX} bytes, and would have {size}"
            )));
        }
        let vm = self.functions.vm(busy, seed)?;
        vm.lua.expire_registry_values();
        let functions = load(vm, busy, text)?;
        if LOADED_MEMORY_MAX < vm.lua.used_memory() {
            vm.lua.gc_collect().map_err(|raised| lua_error(&raised))?;
            let used = vm.lua.used_memory();
            if LOADED_MEMORY_MAX < used {
                return Err(error(format!(
                    "all libraries may take {LOADED_MEMORY_MAX} bytes of the interpreter's memory, \
                     and would take {used}. Delete libraries, or make this one smaller"
                )));
            }
        }
        let library = Library { name: name.clone(), code: code.to_vec(), functions };
        self.functions.insert(key, library)?;
        Ok(name)
    }

    /// Removes a library. Returns whether it was there.
    pub fn remove_library(&mut self, name: &str) -> bool {
        let removed = self.functions.libraries.remove(&name.to_ascii_lowercase());
        self.functions.index();
        removed.is_some()
    }

    /// Removes all libraries, and all that they knew.
    pub fn flush_libraries(&mut self) {
        self.functions = Functions::default();
    }

    /// Adds the libraries of a dump: all, or none.
    ///
    /// # Errors
    /// When the bytes are none, or a library cannot be added.
    pub fn restore(
        &mut self,
        busy: &Arc<Busy>,
        seed: u64,
        bytes: &[u8],
        conflict: Conflict,
        flushes: bool,
    ) -> Result<(), CommandError> {
        let codes = payload::parse(bytes).map_err(error)?;
        let before = if flushes {
            std::mem::take(&mut self.functions)
        } else {
            let vm = self.functions.vm.take();
            let libraries = self.functions.libraries.iter();
            let libraries = libraries.map(|(key, one)| (key.clone(), one.copy())).collect();
            let copy = Functions { vm, libraries, by_name: self.functions.by_name.clone() };
            std::mem::replace(&mut self.functions, copy)
        };
        for code in codes {
            if let Err(error) = self.add(busy, seed, &code, conflict, true) {
                let vm = self.functions.vm.take();
                self.functions = before;
                if self.functions.vm.is_none() {
                    self.functions.vm = vm;
                }
                return Err(error);
            }
        }
        Ok(())
    }
}

impl Library {
    fn copy(&self) -> Library {
        let (name, code) = (self.name.clone(), self.code.clone());
        Library { name, code, functions: self.functions.clone() }
    }
}

impl Functions {
    fn vm(&mut self, busy: &Arc<Busy>, seed: u64) -> Result<&Vm, CommandError> {
        if self.vm.is_none() {
            self.vm = Some(Vm::new(busy, seed, true).map_err(|raised| lua_error(&raised))?);
        }
        self.vm.as_ref().ok_or(CommandError::new("ERR no interpreter"))
    }

    /// Puts a library in, in place of one of the same name.
    fn insert(&mut self, key: String, library: Library) -> Result<(), CommandError> {
        for function in &library.functions {
            let taken = self.by_name.get(&function.name.to_ascii_lowercase());
            if taken.is_some_and(|(owner, _)| *owner != key) {
                return Err(error(format!("Function {} already exists", function.name)));
            }
        }
        self.libraries.insert(key, library);
        self.index();
        Ok(())
    }

    fn index(&mut self) {
        let all = self.libraries.iter().flat_map(|(key, library)| {
            let functions = library.functions.iter().enumerate();
            functions.map(move |(at, one)| (one.name.to_ascii_lowercase(), (key.clone(), at)))
        });
        self.by_name = all.collect();
    }
}

/// The name that a library's first line says, and its text from the end of that line on.
fn name_of(code: &[u8]) -> Result<(String, &[u8]), CommandError> {
    if SCRIPT_SIZE_MAX < code.len() {
        return Err(error("the library is too long"));
    }
    if !code.starts_with(b"#!") {
        return Err(error("Missing library metadata"));
    }
    let end = code.iter().position(|byte| *byte == b'\n');
    let (line, text) = code.split_at(end.ok_or_else(|| error("Invalid library metadata"))?);
    // Words may be in quotes, which no name has.
    let line = String::from_utf8_lossy(line).replace(['"', '\''], "");
    let mut words = line.split_ascii_whitespace();
    let engine = words.next().unwrap_or_default().trim_start_matches("#!").to_owned();
    let mut name: Option<String> = None;
    for word in words {
        match word.get(..5) {
            Some(field) if field.eq_ignore_ascii_case("name=") => {
                if name.is_some() {
                    let words = "Invalid metadata value, name argument was given multiple times";
                    return Err(error(words));
                }
                name = word.get(5..).map(str::to_owned);
            }
            _ => return Err(error(format!("Invalid metadata value given: {word}"))),
        }
    }
    let name = name.ok_or_else(|| error("Library name was not given"))?;
    if !is_name(&name) {
        return Err(error(BAD_NAME));
    }
    if !engine.eq_ignore_ascii_case("lua") {
        return Err(error(format!("Engine '{engine}' not found")));
    }
    Ok((name, text))
}

/// Runs a library's text, which registers its functions.
fn load(vm: &Vm, busy: &Arc<Busy>, text: &[u8]) -> Result<Vec<Registered>, CommandError> {
    let function = vm.compile(text, "@user_function").map_err(|raised| {
        let text = text_of(&raised);
        error(format!("Error compiling function: {}", String::from_utf8_lossy(&text)))
    })?;
    let pending = || vm.pending.lock().unwrap_or_else(PoisonError::into_inner);
    *pending() = Some(Registrations::default());
    busy.begin(Running {
        name: "FUNCTION LOAD".to_owned(),
        command: Vec::new(),
        is_function: true,
        is_load: true,
        started: Instant::now(),
    });
    let began = vm.begin_load();
    let ended = began.and_then(|()| vm.run.call::<(bool, Value)>(function));
    busy.end();
    vm.rest().map_err(|raised| lua_error(&raised))?;
    let registered = pending().take().unwrap_or_default().functions;
    if busy.is_killed() {
        vm.watch().map_err(|raised| lua_error(&raised))?;
    }
    vm.end_load().map_err(|raised| lua_error(&raised))?;
    let failure = match ended {
        Ok((true, _)) if registered.is_empty() => return Err(error("No functions registered")),
        Ok((true, _)) => return Ok(registered),
        Ok((false, Value::Table(table))) => {
            let text: Option<mlua::LuaString> = table.raw_get("err").ok();
            text.map_or_else(|| b"ERR unknown error".to_vec(), |text| text.as_bytes().to_vec())
        }
        Ok((false, other)) => other.to_string().unwrap_or_default().into_bytes(),
        Err(raised) => text_of(&raised),
    };
    Err(error(format!("Error registering functions: {}", String::from_utf8_lossy(&failure))))
}
