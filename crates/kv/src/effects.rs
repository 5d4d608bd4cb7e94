//! What commands did to keys, as the log keeps it.
//!
//! ```text
//! record    number varint │ effects
//! effect    database u8 │ arguments varint │ (size varint │ bytes) each
//! ```
//!
//! An effect is a command on one key whose answer depends on nothing but that key: times are
//! absolute, picks are made. So a record can be replayed over keys some of which are newer.

use codec::bytes::{Reader, put_varint};

/// Arguments of an effect, at most: those of a command.
const ARGUMENTS_MAX: u64 = 1 << 20;

/// A key's whole value: key, expiry (-1 never), encoded value. The name is none that a client may say.
pub const PUT: &[u8] = b"\x01put";
/// All keys of a database go.
pub const FLUSH: &[u8] = b"\x01flush";
/// Two databases are exchanged: the other's number.
pub const SWAP: &[u8] = b"\x01swap";
/// A key went with its last element, as the effect before has done if all was there.
pub const GONE: &[u8] = b"\x01gone";
/// Entries of a stream became pending with a consumer of a group.
pub const DELIVER: &[u8] = b"\x01xdeliver";

/// Effects that were not logged yet.
#[derive(Debug, Default)]
pub struct Effects {
    bytes: Vec<u8>,
    count: u64,
    for_replicas: Vec<ForReplicas>,
}

/// A command that changes no key and is sent to replicas, in order with effects. The log does not keep
/// it.
#[derive(Debug)]
pub struct ForReplicas {
    /// Number of effects before it.
    pub effect_count: u64,
    /// The database of its client.
    pub db: u8,
    /// The command and its arguments.
    pub arguments: Vec<Vec<u8>>,
}

impl Effects {
    /// Adds one.
    pub fn push(&mut self, db: u8, arguments: &[&[u8]]) {
        self.bytes.push(db);
        put_varint(&mut self.bytes, arguments.len() as u64);
        for argument in arguments {
            put_varint(&mut self.bytes, argument.len() as u64);
            self.bytes.extend_from_slice(argument);
        }
        self.count += 1;
    }

    /// Adds a command for replicas alone.
    pub fn push_for_replicas(&mut self, db: u8, arguments: &[&[u8]]) {
        let arguments = arguments.iter().map(|argument| argument.to_vec()).collect();
        self.for_replicas.push(ForReplicas { effect_count: self.count, db, arguments });
    }

    /// Commands for replicas alone.
    pub fn for_replicas(&self) -> &[ForReplicas] {
        &self.for_replicas
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// They, one by one.
    ///
    /// # Errors
    /// Never: these bytes are its own.
    pub fn decode(&self) -> Result<Vec<Effect<'_>>, codec::Error> {
        decode_effects(&mut Reader::new(&self.bytes))
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Their bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Those are logged.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(1 << 20);
        self.count = 0;
        self.for_replicas.clear();
    }
}

/// One effect of a record.
#[derive(Debug)]
pub struct Effect<'a> {
    /// Its database.
    pub db: u8,
    /// The command and its arguments.
    pub arguments: Vec<&'a [u8]>,
}

/// The number of a record and its effects.
///
/// # Errors
/// When the bytes are none.
pub fn decode(payload: &[u8]) -> Result<(u64, Vec<Effect<'_>>), codec::Error> {
    let mut reader = Reader::new(payload);
    let seq = reader.varint()?;
    Ok((seq, decode_effects(&mut reader)?))
}

fn decode_effects<'a>(reader: &mut Reader<'a>) -> Result<Vec<Effect<'a>>, codec::Error> {
    let mut effects = Vec::new();
    while !reader.is_empty() {
        let db = reader.u8()?;
        let count = reader.varint()?;
        if ARGUMENTS_MAX < count || reader.remaining() < usize::try_from(count).unwrap_or(0) {
            return Err(reader.corrupt("more arguments than bytes"));
        }
        let mut arguments = Vec::new();
        for _ in 0..count {
            let size = reader.varint()?;
            let size = usize::try_from(size).map_err(|_| reader.corrupt("size overflows"))?;
            arguments.push(reader.slice(size)?);
        }
        effects.push(Effect { db, arguments });
    }
    Ok(effects)
}
