//! The table of listeners: one row each.
//!
//! A row's name is the start of its flags (`--influx-listen`, `--influx.max-connections`,
//! `--influx.idle-timeout`) and the label of its counters. [`crate::flags`] and the configuration in the
//! crate `app` read the rows; the binary's module `protocols` opens the listeners.

use super::connections::AtLimit;
use crate::flag::{Flag, Group, Kind, flag};

/// Sockets of a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// TCP.
    Streams,
    /// TCP and UDP on the same port.
    StreamsAndDatagrams,
}

/// Whether who comes can say who they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asking {
    /// The protocol has credentials, and they are asked for when they are set.
    Credentials,
    /// The protocol has none: who can reach it is let in.
    Nobody,
}

/// One row.
#[derive(Debug)]
pub struct Row {
    /// The listener's name.
    pub name: &'static str,
    /// What it speaks, for people.
    pub speaks: &'static str,
    /// What everybody who reaches it could do.
    pub allows: &'static str,
    /// Its sockets.
    pub transport: Transport,
    /// Whom it lets in.
    pub asking: Asking,
    /// Who goes when there are too many.
    pub at_limit: AtLimit,
    /// Protocols that a TLS handshake may choose; none where there is nothing to choose.
    pub alpn: &'static [&'static [u8]],
    /// Its flags, unless they stand in the table of flags.
    pub group: Option<Group>,
}

macro_rules! listeners {
    ($($(#[$doc:meta])* $variant:ident: $row:expr,)*) => {
        /// A listener.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Listener { $($(#[$doc])* $variant,)* }
        impl Listener {
            /// All of them.
            pub const ALL: &[Listener] = &[$(Listener::$variant,)*];
            /// Its row.
            pub fn row(self) -> &'static Row {
                match self { $(Listener::$variant => { static ROW: Row = $row; &ROW })* }
            }
        }
    };
}

/// The flags that every listener has, and some of its own.
macro_rules! flags {
    ($name:literal, $address:literal, $listen:literal, $connections:expr, [$($own:expr),*]) => {
        &[
            flag(concat!($name, "-listen"), Kind::Address, $address, $listen),
            flag(concat!($name, ".max-connections"), Kind::Count, $connections.0, $connections.1),
            flag(concat!($name, ".idle-timeout"), Kind::Duration, "0", IDLE_TIMEOUT),
            $($own),*
        ]
    };
}

const CONNECTIONS: (&str, &str) = (
    "1000",
    "Open connections. At the limit the longest idle one is closed; when none is idle, the new one is. All listeners together never have more than half of the process' file limit.",
);
/// As many as a Redis takes, and its way to say that there are too many.
const REDIS_CONNECTIONS: (&str, &str) = (
    "10000",
    "Open connections. At the limit a new one is closed (\"max number of clients reached\"). All listeners together never have more than half of the process' file limit.",
);
const IDLE_TIMEOUT: &str = "Close a connection that has been silent for this long. 0 never does.";

#[rustfmt::skip] // one flag, one line
const INFLUX_FLAGS: &[Flag] = flags!("influx", "", "Address where line protocol is taken over TCP and UDP, without answers, such as 127.0.0.1:8089. Empty: nowhere. Anything but loopback needs --allow-anonymous, since it has no credentials. With --tls-cert its TCP speaks TLS.", CONNECTIONS, [
    flag("influx.max-line-size", Kind::Size, "1MiB", "Bytes of a line over TCP. A longer one closes its connection. 16 MiB at most."),
    flag("influx.retry-duration", Kind::Duration, "1m", "How long lines from TCP that the store cannot take just now are tried again, while nothing more is read, before their connection is closed.")
]);

#[rustfmt::skip] // one flag, one line
const REDIS_FLAGS: &[Flag] = flags!("redis", "127.0.0.1:7379", "Address where Redis' clients find keys. Empty: nowhere, and the keys stay where they are. Anything but loopback needs credentials or --allow-anonymous. With --tls-cert it speaks TLS.", REDIS_CONNECTIONS, [
    flag("kv-memory", Kind::Size, "256MiB", "Memory for keys: their index (some 27 bytes for each) and the values that are in use. The others are on disk. Where the index alone needs more, an eighth on top is for values. A quarter of memory-limit at most."),
    flag("kv-durability", Kind::Choice(&["always", "everysec", "no"]), "everysec", "When a change of a key is answered: once it is on disk; or at once, on disk a second later at most; or at once, on disk when the log is next written."),
    flag("kv-databases", Kind::Count, "16", "Databases that SELECT numbers. 254 at most. A smaller number than databases with keys is refused."),
    flag("kv-compression", Kind::Switch, "true", "Compress values on disk."),
    flag("redis.command-timeout", Kind::Duration, "60s", "Close a connection whose command is not complete after this time and one second more for each 16 KiB of it."),
    flag("redis.enable-debug-command", Kind::Choice(&["no", "local", "yes"]), "no", "Clients that may use DEBUG, which can block the server for minutes or fill it with keys: none, those on this machine, or all.")
]);

#[rustfmt::skip] // one flag, one line
const POSTGRES_FLAGS: &[Flag] = flags!("postgres", "127.0.0.1:5433", "Address where PostgreSQL's clients copy samples in and ask in SQL. Empty: nowhere. Anything but loopback needs credentials or --allow-anonymous. With --tls-cert clients must ask for TLS. Only builds with the feature sql have this door.", CONNECTIONS, [
    flag("postgres.allow-cleartext", Kind::Switch, "false", "With --tls-cert, serve clients that do not ask for TLS. Their passwords are not sent, but statements and rows are readable on the way. Requests to cancel are taken in the clear always."),
    flag("sql.files-dir", Kind::Path, "", "Directory whose Parquet files COPY .. FROM 'name' and COPY .. TO 'name' read and write, for everybody who may ask in SQL; none outside of it, and no folders within it. Not within --data-dir. Empty: COPY knows no files on the server.")
]);

listeners! {
    /// HTTP/1.1 and HTTP/2, for most protocols; its flags are those of the table of flags.
    Http: Row {
        name: "http",
        speaks: "HTTP",
        allows: "read, write and delete",
        transport: Transport::Streams,
        asking: Asking::Credentials,
        at_limit: AtLimit::LongestIdle,
        alpn: &[b"h2", b"http/1.1"],
        group: None,
    },
    /// Line protocol without answers.
    Influx: Row {
        name: "influx",
        speaks: "line protocol",
        allows: "write",
        transport: Transport::StreamsAndDatagrams,
        asking: Asking::Nobody,
        at_limit: AtLimit::LongestIdle,
        alpn: &[],
        group: Some(Group { heading: "Line protocol over sockets", flags: INFLUX_FLAGS }),
    },
    /// Keys, for Redis' clients.
    Redis: Row {
        name: "redis",
        speaks: "RESP",
        allows: "read, write and delete keys",
        transport: Transport::Streams,
        asking: Asking::Credentials,
        at_limit: AtLimit::Newest,
        alpn: &[],
        group: Some(Group { heading: "Keys", flags: REDIS_FLAGS }),
    },
    /// SQL, for PostgreSQL's clients.
    Postgres: Row {
        name: "postgres",
        speaks: "PostgreSQL's protocol",
        allows: "read and write samples",
        transport: Transport::Streams,
        asking: Asking::Credentials,
        at_limit: AtLimit::LongestIdle,
        alpn: &[],
        group: Some(Group { heading: "SQL", flags: POSTGRES_FLAGS }),
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags;

    #[test]
    fn every_listener_has_its_flags() {
        for listener in Listener::ALL {
            let name = listener.row().name;
            for (flag, kind) in [
                (format!("{name}-listen"), Kind::Address),
                (format!("{name}.max-connections"), Kind::Count),
                (format!("{name}.idle-timeout"), Kind::Duration),
            ] {
                assert_eq!(flags::find(&flag).map(|flag| flag.kind), Some(kind), "{flag}");
            }
        }
    }
}
