//! Scripts by their digest.
//!
//! `EVAL` leaves compiled scripts; the least recently used go first. `SCRIPT LOAD` keeps the source: a
//! client relies on it. Its compiled form may go, and is made again when the script runs.

use super::shebang::Flags;
use mlua::RegistryKey;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Scripts that `EVAL` left, as in Redis 7.4.
const EVALUATED_MAX: usize = 500;
/// Loaded scripts that stay compiled.
const COMPILED_MAX: usize = 1000;
/// Bytes of source of all compiled scripts. Compiled code takes up to eight times as much, and the
/// interpreter's memory is for the data of the running script.
const COMPILED_SIZE_MAX: usize = 8 << 20;
/// Bytes of source of loaded scripts.
const LOADED_SIZE_MAX: usize = 64 << 20;

/// A script.
#[derive(Clone)]
pub struct Script {
    /// Compiled form in the interpreter's registry.
    pub function: Option<Arc<RegistryKey>>,
    /// Flags of its first line.
    pub flags: Flags,
    /// Source, if `SCRIPT LOAD` named it.
    pub source: Option<Arc<[u8]>>,
    size: usize,
    used: u64,
}

/// All scripts.
#[derive(Default)]
pub struct Cache {
    scripts: HashMap<String, Script>,
    /// Digests by last use: of scripts that `EVAL` left, of loaded ones, and of compiled loaded ones.
    evaluated: BTreeMap<u64, String>,
    loaded: BTreeMap<u64, String>,
    compiled: BTreeMap<u64, String>,
    clock: u64,
    text_size: usize,
    loaded_size: usize,
    compiled_size: usize,
}

impl Cache {
    /// Number of scripts.
    pub fn len(&self) -> usize {
        self.scripts.len()
    }

    /// Bytes of their source.
    pub fn text_size(&self) -> usize {
        self.text_size
    }

    /// Whether there is a script of that digest.
    pub fn contains(&self, digest: &str) -> bool {
        self.scripts.contains_key(digest)
    }

    /// Returns a script and makes it the most recently used one.
    pub fn get(&mut self, digest: &str) -> Option<Script> {
        let script = self.take(digest)?;
        self.put(digest, script.clone());
        Some(script)
    }

    /// Adds a script that was compiled, or the compiled form of a loaded one.
    pub fn add(&mut self, digest: &str, function: Arc<RegistryKey>, flags: Flags, size: usize) {
        let source = self.take(digest).and_then(|script| script.source);
        let function = Some(function);
        self.put(digest, Script { function, flags, source, size, used: 0 });
        self.evict();
    }

    /// Keeps the source of a script: a client relies on it.
    pub fn keep_source(&mut self, digest: &str, source: &[u8]) {
        let Some(mut script) = self.take(digest) else { return };
        script.source = Some(script.source.unwrap_or_else(|| source.into()));
        self.put(digest, script);
        self.evict();
    }

    /// Drops compiled forms: the interpreter needs their memory.
    pub fn drop_compiled(&mut self) {
        while let Some(digest) = self.oldest_compiled() {
            self.drop_function(&digest);
        }
    }

    /// Removes all scripts.
    pub fn clear(&mut self) {
        *self = Cache { clock: self.clock, ..Cache::default() };
    }

    /// Takes a script out of all lists.
    fn take(&mut self, digest: &str) -> Option<Script> {
        let script = self.scripts.remove(digest)?;
        self.text_size -= script.size;
        match script.source {
            None => self.evaluated.remove(&script.used),
            Some(_) => self.loaded.remove(&script.used),
        };
        self.compiled.remove(&script.used);
        self.loaded_size -= if script.source.is_some() { script.size } else { 0 };
        self.compiled_size -= if script.function.is_some() { script.size } else { 0 };
        Some(script)
    }

    /// Puts a script into the lists as the most recently used one.
    fn put(&mut self, digest: &str, mut script: Script) {
        self.clock += 1;
        script.used = self.clock;
        self.text_size += script.size;
        match script.source {
            None => self.evaluated.insert(self.clock, digest.to_owned()),
            Some(_) => self.loaded.insert(self.clock, digest.to_owned()),
        };
        if script.source.is_some() && script.function.is_some() {
            self.compiled.insert(self.clock, digest.to_owned());
        }
        self.loaded_size += if script.source.is_some() { script.size } else { 0 };
        self.compiled_size += if script.function.is_some() { script.size } else { 0 };
        self.scripts.insert(digest.to_owned(), script);
    }

    /// Evicts what is beyond the limits; never the most recently used script.
    fn evict(&mut self) {
        while EVALUATED_MAX < self.evaluated.len() {
            let Some((_, digest)) = self.evaluated.first_key_value() else { break };
            self.take(&digest.clone());
        }
        while COMPILED_MAX < self.compiled.len() {
            let Some((_, digest)) = self.compiled.first_key_value() else { break };
            self.drop_function(&digest.clone());
        }
        while self.is_over(COMPILED_SIZE_MAX) {
            let Some(digest) = self.oldest_compiled() else { break };
            self.drop_function(&digest);
        }
        while LOADED_SIZE_MAX < self.loaded_size && 1 < self.loaded.len() {
            let Some((_, digest)) = self.loaded.first_key_value() else { break };
            self.take(&digest.clone());
        }
    }

    fn is_over(&self, size_max: usize) -> bool {
        size_max < self.compiled_size && 1 < self.evaluated.len() + self.compiled.len()
    }

    fn oldest_compiled(&self) -> Option<String> {
        let (evaluated, loaded) =
            (self.evaluated.first_key_value(), self.compiled.first_key_value());
        let oldest = evaluated.into_iter().chain(loaded).min();
        oldest.map(|(_, digest)| digest.clone())
    }

    /// Drops the compiled form of a script, and the script itself if it has no source.
    fn drop_function(&mut self, digest: &str) {
        let Some(script) = self.scripts.get(digest) else { return };
        if script.source.is_none() {
            self.take(digest);
            return;
        }
        self.compiled.remove(&script.used);
        self.compiled_size -= script.size;
        if let Some(script) = self.scripts.get_mut(digest) {
            script.function = None;
        }
    }
}
