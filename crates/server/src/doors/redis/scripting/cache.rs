//! Scripts by their digest, so many at most.

use super::shebang::Flags;
use mlua::Function;
use std::collections::{BTreeMap, HashMap};

/// Scripts that `EVAL` left, the least recently used of which go first.
const EVALUATED_MAX: usize = 500;
/// Bytes of all scripts' texts.
const TEXT_SIZE_MAX: usize = 64 << 20;

/// A script.
#[derive(Clone)]
pub struct Script {
    /// Its function.
    pub function: Function,
    /// What it says of itself.
    pub flags: Flags,
    /// Bytes of its text.
    pub size: usize,
    /// Whether `SCRIPT LOAD` named it, so that a client relies on it.
    pub is_loaded: bool,
    used: u64,
}

/// All scripts.
#[derive(Default)]
pub struct Cache {
    scripts: HashMap<String, Script>,
    /// Digests by their last use: of those that `EVAL` left, and of the others.
    evaluated: BTreeMap<u64, String>,
    loaded: BTreeMap<u64, String>,
    clock: u64,
    text_size: usize,
}

impl Cache {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.scripts.len()
    }

    /// Bytes of their texts.
    pub fn text_size(&self) -> usize {
        self.text_size
    }

    /// Whether there is one.
    pub fn contains(&self, digest: &str) -> bool {
        self.scripts.contains_key(digest)
    }

    /// The script of that digest, which is used now.
    pub fn get(&mut self, digest: &str) -> Option<Script> {
        let script = self.scripts.get_mut(digest)?;
        self.clock += 1;
        let order = if script.is_loaded { &mut self.loaded } else { &mut self.evaluated };
        let name = order.remove(&script.used).unwrap_or_else(|| digest.to_owned());
        script.used = self.clock;
        order.insert(self.clock, name);
        Some(script.clone())
    }

    /// Notes that a client relies on it.
    pub fn mark_loaded(&mut self, digest: &str) {
        let Some(script) = self.scripts.get_mut(digest) else { return };
        if !script.is_loaded {
            script.is_loaded = true;
            if let Some(name) = self.evaluated.remove(&script.used) {
                self.loaded.insert(script.used, name);
            }
        }
    }

    /// Adds a script; others go if there are too many.
    pub fn add(&mut self, digest: &str, function: Function, flags: Flags, size: usize) {
        self.clock += 1;
        let script = Script { function, flags, size, is_loaded: false, used: self.clock };
        self.evaluated.insert(self.clock, digest.to_owned());
        self.text_size += size;
        self.scripts.insert(digest.to_owned(), script);
        while EVALUATED_MAX < self.evaluated.len()
            || TEXT_SIZE_MAX < self.text_size && 1 < self.scripts.len()
        {
            let oldest = self.evaluated.pop_first().or_else(|| self.loaded.pop_first());
            let Some((_, oldest)) = oldest else { return };
            if let Some(gone) = self.scripts.remove(&oldest) {
                self.text_size -= gone.size;
            }
        }
    }

    /// Removes all.
    pub fn clear(&mut self) {
        *self = Cache { clock: self.clock, ..Cache::default() };
    }
}
