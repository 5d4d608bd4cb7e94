//! What a command answers instead of a result, and what keeps a keyspace from opening.

use std::borrow::Cow;
use std::path::PathBuf;

/// Why a command is refused, in the words that clients know: a code and a sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CommandError(pub Cow<'static, str>);

impl CommandError {
    /// An error of those words, code included.
    pub fn new(words: impl Into<Cow<'static, str>>) -> CommandError {
        CommandError(words.into())
    }

    /// The wrong number of arguments.
    pub fn arity(command: &str) -> CommandError {
        CommandError(format!("ERR wrong number of arguments for '{command}' command").into())
    }
}

/// The key holds a value of another type.
pub const WRONG_TYPE: CommandError = CommandError(Cow::Borrowed(
    "WRONGTYPE Operation against a key holding the wrong kind of value",
));
/// An option is unknown or in the wrong place.
pub const SYNTAX: CommandError = CommandError(Cow::Borrowed("ERR syntax error"));
/// An argument is no 64-bit integer.
pub const NOT_INTEGER: CommandError =
    CommandError(Cow::Borrowed("ERR value is not an integer or out of range"));
/// A 64-bit integer has no place in 32 bits.
pub const BEYOND_32_BITS: CommandError = CommandError(Cow::Borrowed(
    "ERR value is out of range, value must between -2147483648 and 2147483647",
));
/// An argument is no float.
pub const NOT_FLOAT: CommandError = CommandError(Cow::Borrowed("ERR value is not a valid float"));
/// There is no such key, where one is needed.
pub const NO_KEY: CommandError = CommandError(Cow::Borrowed("ERR no such key"));
/// An index beyond the value's end.
pub const OUT_OF_RANGE: CommandError = CommandError(Cow::Borrowed("ERR index out of range"));

/// Why a keyspace does not open, or keeps nothing more.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file could not be read or written.
    #[error(transparent)]
    Vfs(#[from] vfs::Error),
    /// The log does not take or keep records.
    #[error(transparent)]
    Wal(#[from] wal::Error),
    /// A file does not hold what it should.
    #[error("{path}: {reason}", path = path.display())]
    Corrupt {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// Clients are to be given fewer databases than there are keys in.
    #[error(
        "--kv-databases={wanted}, but database {used} has keys: start with --kv-databases={} or more, \
         and remove those keys to have fewer",
        used + 1
    )]
    DatabaseInUse {
        /// Number of databases that `--kv-databases` asks for.
        wanted: usize,
        /// The last one with keys.
        used: usize,
    },
    /// No checkpoint could be made, for databases were emptied or exchanged all the while.
    #[error("databases were emptied or exchanged all the while; nothing is lost: try again")]
    Unsettled,
    /// A newer program wrote it.
    #[error("{path} has format {found}, this program knows up to {known}", path = path.display())]
    Newer {
        /// Which file.
        path: PathBuf,
        /// Its format.
        found: u32,
        /// The newest format known.
        known: u32,
    },
}

impl Error {
    /// Whether it is no damage that keeps keys from opening: a newer program wrote them, or the
    /// settings are of other keys.
    pub fn is_no_damage(&self) -> bool {
        matches!(self, Error::Newer { .. } | Error::DatabaseInUse { .. })
    }

    /// Message without the file name.
    pub(crate) fn reason(&self) -> String {
        match self {
            Error::Corrupt { reason, .. } => reason.clone(),
            other => other.to_string(),
        }
    }
}

/// Results of the keyspace's own work.
pub type Result<T> = std::result::Result<T, Error>;
