//! One command at work: its arguments, the keys, where its answer goes, and what is logged of it.

use crate::commands::Command;
use crate::error::CommandError;
use crate::keyspace::{Expire, Keyspace};
use crate::reply::Reply;
use crate::value::{Stored, Value};

/// In which surroundings a command runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// For a client, which may wait.
    Client,
    /// In a transaction or a script: nothing waits.
    Inside,
    /// From the log.
    Replay,
}

/// What a blocking command waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// Any of these keys.
    pub keys: Vec<Vec<u8>>,
    /// Until then, in milliseconds since the epoch; none waits for ever.
    pub deadline_ms: Option<i64>,
    /// What is answered when nothing came in time.
    pub otherwise: Otherwise,
    /// The command to try again instead of the one that came, where it said something relative.
    pub again: Option<Vec<Vec<u8>>>,
}

/// The answer of a command that waited in vain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Otherwise {
    /// Nothing, where an array might be.
    NullArray,
    /// Nothing, where bytes might be.
    Null,
}

/// A command at work.
pub struct Call<'a> {
    /// All keys.
    pub keys: &'a mut Keyspace,
    /// The database that it is about.
    pub db: u8,
    /// Its name and what follows, at least one.
    pub args: &'a [&'a [u8]],
    /// Where its answer goes.
    pub out: &'a mut dyn Reply,
    /// What it is.
    pub command: &'static Command,
    /// For whom it runs.
    pub mode: Mode,
    /// Set by a command that wrote no answer, for it has to wait.
    pub wait: Option<Wait>,
    /// The key whose change makes a command that waited run again.
    pub woken_by: Option<&'a [u8]>,
    /// Whether the command says itself what is logged of it.
    has_own_effects: bool,
}

/// What became of a command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// What it waits for; nothing was answered then.
    pub wait: Option<Wait>,
    /// Whether it answered with an error.
    pub is_error: bool,
    /// Changes that it made.
    pub changes: u64,
}

impl<'a> Call<'a> {
    /// Runs a command whose number of arguments has been checked. What it changed is among the
    /// keyspace's effects, which the caller commits.
    pub fn run(
        keys: &'a mut Keyspace,
        db: u8,
        command: &'static Command,
        args: &'a [&'a [u8]],
        out: &'a mut dyn Reply,
        mode: Mode,
    ) -> Done {
        let woken_by = None;
        let has_own_effects = false;
        let wait = None;
        Call { keys, db, args, out, command, mode, wait, woken_by, has_own_effects }.start()
    }

    /// Runs a command again that waited, for that key was changed.
    pub fn run_again(
        keys: &'a mut Keyspace,
        db: u8,
        command: &'static Command,
        args: &'a [&'a [u8]],
        out: &'a mut dyn Reply,
        woken_by: &'a [u8],
    ) -> Done {
        let (mode, wait, has_own_effects) = (Mode::Client, None, false);
        let woken_by = Some(woken_by);
        Call { keys, db, args, out, command, mode, wait, woken_by, has_own_effects }.start()
    }

    fn start(mut self) -> Done {
        let call = &mut self;
        call.keys.changes = 0;
        let start = call.out.position();
        let result = (call.command.run)(call);
        let changes = call.keys.changes;
        if 0 < changes && !call.has_own_effects && call.mode != Mode::Replay {
            call.keys.effects.push(call.db, call.args);
        }
        call.keys.log_emptied();
        if let Err(error) = &result {
            // An array that was begun would lack elements, and take later answers for them.
            call.out.truncate(start);
            call.out.error(&error.0);
        }
        call.keys.stats.changes += changes;
        Done { wait: call.wait.take(), is_error: result.is_err(), changes }
    }

    /// How many arguments there are, the name included.
    pub fn argc(&self) -> usize {
        self.args.len()
    }

    /// The argument at that place, empty if there is none.
    pub fn arg(&self, at: usize) -> &'a [u8] {
        self.args.get(at).copied().unwrap_or_default()
    }

    /// The time, in milliseconds since the epoch.
    pub fn now_ms(&self) -> i64 {
        self.keys.now_ms()
    }

    /// Whether the command decides that what expires then has expired: see [`Keyspace::has_passed`].
    pub fn has_passed(&self, expire_ms: i64) -> bool {
        self.mode != Mode::Replay && self.keys.has_passed(expire_ms)
    }

    /// As [`Keyspace::get`] in this database.
    ///
    /// # Errors
    /// As there.
    pub fn get<T: Stored>(&mut self, key: &[u8]) -> Result<Option<&T>, CommandError> {
        self.keys.get(self.db, key)
    }

    /// As [`Keyspace::get_mut`] in this database.
    ///
    /// # Errors
    /// As there.
    pub fn get_mut<T: Stored>(&mut self, key: &[u8]) -> Result<Option<&mut T>, CommandError> {
        self.keys.get_mut(self.db, key)
    }

    /// As [`Keyspace::get_or_insert`] in this database.
    ///
    /// # Errors
    /// As there.
    pub fn get_or_insert<T: Stored + Default>(
        &mut self,
        key: &[u8],
    ) -> Result<&mut T, CommandError> {
        self.keys.get_or_insert(self.db, key)
    }

    /// As [`Keyspace::put`] in this database.
    ///
    /// # Errors
    /// As there.
    pub fn put(&mut self, key: &[u8], value: Value, expire: Expire) -> Result<(), CommandError> {
        self.keys.put(self.db, key, value, expire)
    }

    /// As [`Keyspace::remove`] in this database.
    ///
    /// # Errors
    /// As there.
    pub fn remove(&mut self, key: &[u8]) -> Result<bool, CommandError> {
        self.keys.remove(self.db, key)
    }

    /// As [`Keyspace::modified`] in this database.
    pub fn modified(&mut self, key: &[u8]) {
        self.keys.modified(self.db, key);
    }

    /// As [`Keyspace::event`] in this database.
    pub fn event(&mut self, class: u32, name: &'static str, key: &[u8]) {
        self.keys.event(class, name, self.db, key);
    }

    /// Logs this effect instead of the command as it came; may be called again for more. For
    /// commands about several keys, with times that are not absolute, or with dice.
    pub fn log(&mut self, arguments: &[&[u8]]) {
        self.log_in(self.db, arguments);
    }

    /// The same in another database.
    pub fn log_in(&mut self, db: u8, arguments: &[&[u8]]) {
        self.has_own_effects = true;
        if self.mode != Mode::Replay {
            self.keys.effects.push(db, arguments);
        }
    }

    /// Logs nothing of the command as it came.
    pub fn log_nothing(&mut self) {
        self.has_own_effects = true;
    }

    /// Logs a key as it is now, whatever made it so: its whole value, or that it is gone.
    ///
    /// # Errors
    /// When its record cannot be read.
    pub fn log_key(&mut self, key: &[u8]) -> Result<(), CommandError> {
        self.log_key_in(self.db, key)
    }

    /// The same in another database.
    ///
    /// # Errors
    /// As there.
    pub fn log_key_in(&mut self, db: u8, key: &[u8]) -> Result<(), CommandError> {
        self.has_own_effects = true;
        if self.mode != Mode::Replay {
            self.keys.log_key(db, key)?;
        }
        Ok(())
    }

    /// Waits for any of the keys, until `deadline_ms`; inside of transactions the answer is given at
    /// once.
    pub fn wait_for(&mut self, keys: &[&[u8]], deadline_ms: Option<i64>, otherwise: Otherwise) {
        if self.mode == Mode::Client {
            let keys = keys.iter().map(|key| key.to_vec()).collect();
            self.wait = Some(Wait { keys, deadline_ms, otherwise, again: None });
            return;
        }
        match otherwise {
            Otherwise::NullArray => self.out.null_array(),
            Otherwise::Null => self.out.null(),
        }
    }

    /// What is to be tried again instead of this command, if it waits.
    pub fn wait_with(&mut self, again: &[&[u8]]) {
        if let Some(wait) = &mut self.wait {
            wait.again = Some(again.iter().map(|arg| arg.to_vec()).collect());
        }
    }
}
