//! What a flag is. The table of them is [`crate::flags`]; listeners bring some of their own
//! ([`crate::listeners::table`]).

/// What the text of a flag must look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Any text.
    Text,
    /// Texts apart by semicolons; the flag may be said many times.
    List,
    /// A path of a file or directory.
    Path,
    /// `host:port`.
    Address,
    /// Bytes: `256MiB`.
    Size,
    /// Time: `30d`.
    Duration,
    /// A whole number.
    Count,
    /// One of a few words.
    Choice(&'static [&'static str]),
    /// On or off.
    Switch,
    /// Text that is never shown.
    Secret,
}

impl Kind {
    /// The word that stands for the value in `--help`.
    pub fn placeholder(self) -> &'static str {
        match self {
            Kind::Text | Kind::List => "TEXT",
            Kind::Path => "PATH",
            Kind::Address => "HOST:PORT",
            Kind::Size => "SIZE",
            Kind::Duration => "DURATION",
            Kind::Count => "N",
            Kind::Choice(_) => "WORD",
            Kind::Switch => "BOOL",
            Kind::Secret => "SECRET",
        }
    }
}

/// One flag of `quipu serve`.
#[derive(Clone, Copy, Debug)]
pub struct Flag {
    /// Its name, without dashes in front.
    pub name: &'static str,
    /// What its value looks like.
    pub kind: Kind,
    /// Its value when nobody says otherwise; empty for none.
    pub default: &'static str,
    /// One or two sentences.
    pub help: &'static str,
}

/// Flags that belong together in `--help`.
#[derive(Debug)]
pub struct Group {
    /// The title above them.
    pub heading: &'static str,
    /// The flags, most wanted first.
    pub flags: &'static [Flag],
}

/// A row of a table of flags.
pub const fn flag(
    name: &'static str,
    kind: Kind,
    default: &'static str,
    help: &'static str,
) -> Flag {
    Flag { name, kind, default, help }
}
