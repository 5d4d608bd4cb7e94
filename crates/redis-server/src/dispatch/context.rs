//! Arguments and surroundings of a command while it runs.

use crate::clients::session::Session;
use crate::hub::HubGuard;
use crate::redis::Redis;
use crate::registry::Known;
use kv::commands::Info;
use kv::{Keyspace, Mode};

/// The surroundings of a command of the door.
pub struct Context<'a, 'h> {
    /// The door.
    pub redis: &'a Redis,
    /// Who said it.
    pub session: &'a mut Session,
    /// All keys.
    pub keys: &'a mut Keyspace,
    /// Clients and what they share. A script releases its lock.
    pub hub: &'a mut HubGuard<'h>,
    /// Its name and what follows.
    pub args: &'a [&'a [u8]],
    /// What it is.
    pub info: &'static Info,
    /// For whom it runs.
    pub mode: Mode,
}

impl Context<'_, '_> {
    /// Whether the client's user may read a key that no argument names, with this command.
    pub fn may_read(&self, key: &[u8]) -> bool {
        let user = &self.session.user;
        let known = || Known::find(self.args);
        user.may_all || known().is_some_and(|known| user.may_read(known, self.args, key))
    }

    /// Whether there is a user of that name.
    pub fn knows_user(&self, name: &[u8]) -> bool {
        self.hub.acl.user(name).is_some()
    }
}
