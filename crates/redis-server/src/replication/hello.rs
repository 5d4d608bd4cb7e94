//! Parameters that a replica sends before `PSYNC`.

/// The capability of a replica that takes dumps with the expiry of hash fields. Redis ignores it.
pub const FIELD_EXPIRY: &[u8] = b"hash-field-expiry";

/// What a connection said of itself before it asks to be a replica, and what it asks for.
#[derive(Clone, Debug, Default)]
pub struct Hello {
    /// The port at which it listens.
    pub port: u16,
    /// Its host, if it wants to be known by another than it comes from.
    pub host: String,
    /// Whether it can take a dump whose size is not known before.
    pub takes_eof: bool,
    /// Whether it can take the name of another feed to go on with.
    pub takes_other_id: bool,
    /// Whether it can take a dump with the expiry of hash fields.
    pub takes_field_expiry: bool,
    /// What it wants: the name of a feed and the offset of the next byte; none for all from now on.
    pub wanted: Option<(String, i64)>,
    /// Whether it said `SYNC`, the older way.
    pub is_old: bool,
    /// Whether it is the primary of this server, which is to take over from it.
    pub hands_over: bool,
}
