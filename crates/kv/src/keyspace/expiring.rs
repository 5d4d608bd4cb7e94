//! Keys and fields whose time has come.

use super::*;

/// When a key or the first of its fields expires.
pub(super) fn first_expiry(expire_ms: i64, value: &Value) -> i64 {
    match value {
        Value::Hash(hash) => hash.next_expiry().map_or(expire_ms, |at| at.min(expire_ms)),
        _ => expire_ms,
    }
}

/// Whether fields of a hash have expired by then, or are hidden.
#[inline]
pub(super) fn has_due_fields(slot: &Slot, now_ms: i64) -> bool {
    match &slot.value {
        Value::Hash(hash) => hash.has_due_fields(now_ms),
        _ => false,
    }
}

impl Keyspace {
    /// Whether the running command decides that a key or field has expired, for its time has passed.
    /// Commands of the primary and of the log never do.
    #[inline]
    pub fn has_passed(&self, expire_ms: i64) -> bool {
        expire_ms <= self.now_ms && !self.sees_all()
    }

    /// Whether the running command sees what has expired.
    #[inline]
    pub(super) fn sees_all(&self) -> bool {
        self.is_replaying || self.sees_expired
    }

    /// Whether what has expired stays for now, though clients do not find it. A client that may write
    /// to a replica removes what it writes to.
    pub(super) fn keeps_expired(&self) -> bool {
        let is_paused = self.now_ms < self.keeps_expired_until_ms;
        (is_paused || self.leaves_expired) && !self.is_writing
    }

    /// Settles which fields of a hash the running command finds. Returns whether it finds any; else
    /// the key is not there for it.
    #[cold]
    pub(super) fn settle_fields(&mut self, number: u32, hash: KeyHash) -> bool {
        let (now_ms, sees_all) = (self.now_ms, self.sees_all());
        if !sees_all && !self.keeps_expired() {
            return self.expire_fields(number, hash);
        }
        let Some(slot) = self.slots.get_mut(number) else { return false };
        let Value::Hash(fields) = &mut slot.value else { return true };
        match sees_all {
            true => fields.show_hidden(),
            false => fields.hide_expired(now_ms),
        }
        !fields.is_empty()
    }

    /// The slot of a key, expired or not, as replicas and the log see it.
    ///
    /// # Errors
    /// When its record cannot be read.
    pub(crate) fn stored_slot(
        &mut self,
        db: u8,
        key: &[u8],
    ) -> Result<Option<&Slot>, CommandError> {
        let hash = self.hash(key);
        let found = self.find_as(db, key, hash)?;
        Ok(found.and_then(|number| self.slots.get(number)))
    }

    /// Takes an expired key out, and logs that.
    pub(super) fn expire_slot(&mut self, number: u32, hash: KeyHash) {
        let Some(slot) = self.drop_slot(number, hash) else { return };
        self.stats.expired += 1;
        self.effects.push(slot.db, &[b"del", &slot.key]);
        self.tell_as(slot.db, &slot.key, Touched::Expired);
        self.event(EVENT_EXPIRED, "expired", slot.db, &slot.key);
        self.discard(slot.value);
    }

    /// Takes the expired fields out of a hash, and logs that. Returns whether some are left; else the
    /// key went, too.
    #[cold]
    pub(super) fn expire_fields(&mut self, number: u32, hash: KeyHash) -> bool {
        self.before_change(number);
        let (now_ms, seq) = (self.now_ms, self.seq);
        let Some(slot) = self.slots.get_mut(number) else { return false };
        let Value::Hash(fields) = &mut slot.value else { return true };
        let expired = fields.take_expired(now_ms);
        let is_empty = fields.is_empty();
        let next = fields.next_expiry();
        (slot.is_dirty, slot.seq) = (true, seq);
        let (db, key) = (slot.db, slot.key.clone());
        for fields in expired.chunks(EFFECT_FIELDS_MAX) {
            let mut effect: Vec<&[u8]> = vec![b"hdel", &key];
            effect.extend(fields.iter().map(|field| &**field));
            self.effects.push(db, &effect);
        }
        self.event(EVENT_HASH, "hexpired", db, &key);
        self.tell_as(db, &key, Touched::Expired);
        if !is_empty {
            self.account(number);
            let expire_ms = self.slots.get(number).map_or(NEVER, |slot| slot.expire_ms);
            self.note_later(next.map_or(expire_ms, |at| at.min(expire_ms)), db, hash);
            return true;
        }
        self.event(EVENT_GENERIC, "del", db, &key);
        if let Some(slot) = self.drop_slot(number, hash) {
            self.discard(slot.value);
        }
        false
    }

    /// Notes that fields of a hash expire, so that it is looked at when the first of them does.
    pub(crate) fn note_field_expiry(&mut self, db: u8, key: &[u8]) {
        let hash = self.hash(key);
        let Ok(Some(number)) = self.find_as(db, key, hash) else { return };
        let Some(Value::Hash(fields)) = self.slots.get(number).map(|slot| &slot.value) else {
            return;
        };
        if let Some(at) = fields.next_expiry() {
            self.expiry.add(at, db, hash);
        }
    }

    /// Takes up to `count` keys out whose time has come. Returns how many were looked at.
    ///
    /// # Errors
    /// When a record cannot be read.
    pub fn expire_due(&mut self, count: usize) -> Result<usize, CommandError> {
        let is_kept = self.now_ms < self.keeps_expired_until_ms || self.leaves_expired;
        if !self.expires_by_itself || is_kept {
            // The primary's keys come and go all the while.
            self.tidy_expiry();
            return Ok(0);
        }
        let due = self.expiry.take_due(self.now_ms, count);
        for (db, hash) in &due {
            let mut places = Vec::new();
            self.dbs[usize::from(*db)].find(*hash, |place| {
                places.push(place);
                false
            });
            for place in places {
                let number = match place {
                    Place::Hot(number) => number,
                    Place::Cold(address) => {
                        let record = self.cold.read(address).map_err(unreadable)?;
                        let at = first_expiry(record.expire_ms, &record.value);
                        if self.now_ms < at {
                            self.note_later(at, *db, *hash);
                            continue;
                        }
                        self.admit(record, address, *hash)
                    }
                };
                let Some(slot) = self.slots.get(number) else { continue };
                let at = first_expiry(slot.expire_ms, &slot.value);
                if self.now_ms < at {
                    self.note_later(at, *db, *hash);
                } else if slot.expire_ms <= self.now_ms {
                    self.expire_slot(number, *hash);
                } else {
                    self.expire_fields(number, *hash);
                }
            }
        }
        self.tidy_expiry();
        Ok(due.len())
    }

    /// Drops entries of keys that are gone, once there are many.
    fn tidy_expiry(&mut self) {
        let keys = self.dbs.iter().map(Index::len).sum();
        if self.expiry.is_untidy(keys) {
            let dbs = &self.dbs;
            let index = |db: u8| dbs.get(usize::from(db));
            self.expiry
                .tidy(|db, hash| index(db).is_some_and(|it| it.find(hash, |_| true).is_some()));
        }
    }

    /// A key goes then, or never.
    pub(super) fn note_later(&mut self, at: i64, db: u8, hash: KeyHash) {
        if at != NEVER {
            self.expiry.add(at, db, hash);
        }
    }
}
