//! All commands there are, by name and by number: those on keys, those of the door, and their
//! subcommands, which stand in the tables as `config|get`.

pub mod access;
pub mod later;
pub mod misses;
#[cfg(test)]
mod reference;

#[cfg(test)]
use crate::commands::register;
use kv::CommandError;
use kv::commands::{ByName, Command, Info};
use later::LaterCommands;
use std::sync::OnceLock;

/// Bytes of an unknown command's name and arguments that the error shows.
const SHOWN_SIZE_MAX: usize = 128;

/// Commands whose looking at a key is no use of it.
const TRACELESS: &[&str] =
    &["exists", "expiretime", "pexpiretime", "pttl", "ttl", "type", "object", "dump"];

/// Where a command runs.
#[derive(Clone, Copy)]
pub enum Place {
    /// On keys.
    Keys(&'static Command),
    /// On connections and the server.
    Server(Row),
}

/// Row of a command in the tables of `commands`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Index of its family.
    pub family: usize,
    /// Index in the family's table.
    pub row: usize,
}

/// A command.
pub struct Entry {
    /// Its number, by which is counted and allowed.
    pub number: usize,
    /// What is known of it.
    pub info: &'static Info,
    /// Where it runs.
    pub place: Place,
    /// The command whose subcommand it is.
    pub parent: Option<usize>,
    /// Its subcommands.
    pub children: Vec<usize>,
    /// Whether keys that it looks up count as used.
    pub leaves_trace: bool,
}

/// A command that there is.
#[derive(Clone, Copy)]
pub struct Known(pub &'static Entry);

/// All commands.
pub struct Registry {
    entries: Vec<Entry>,
    by_name: ByName<usize>,
}

/// All commands, in the order of their names.
///
/// # Panics
/// If [`build`] was not called before.
pub fn registry() -> &'static Registry {
    #[cfg(test)]
    register();
    REGISTRY.get().expect("the server registers its commands when it starts")
}

static REGISTRY: OnceLock<Registry> = OnceLock::new();

/// Builds the registry from the commands on keys and those of `commands`, which this module does not
/// import. Does nothing if it is built.
pub fn build(server: impl FnOnce() -> Vec<(&'static Info, Row)>) {
    REGISTRY.get_or_init(|| Registry::new(server()));
}

impl Registry {
    fn new(server: Vec<(&'static Info, Row)>) -> Registry {
        let keys = kv::commands::all().map(|one| (&one.info, Place::Keys(one)));
        let server = server.into_iter().map(|(info, row)| (info, Place::Server(row)));
        let mut all: Vec<(&'static Info, Place)> = keys.chain(server).collect();
        all.sort_by_key(|(info, _)| info.name);
        all.dedup_by_key(|(info, _)| info.name);
        let numbers = all.iter().enumerate().map(|(number, (info, _))| (info.name, number));
        let by_name = ByName::new(numbers);
        let parent_of = |name: &str| {
            let (parent, _) = name.split_once('|')?;
            by_name.get(parent.as_bytes())
        };
        let mut entries: Vec<Entry> = all
            .iter()
            .enumerate()
            .map(|(number, (info, place))| {
                let parent = parent_of(info.name);
                let leaves_trace = !TRACELESS.contains(&info.first_name());
                Entry { number, info, place: *place, parent, children: Vec::new(), leaves_trace }
            })
            .collect();
        for number in 0..entries.len() {
            if let Some(parent) = entries[number].parent {
                entries[parent].children.push(number);
            }
        }
        Registry { entries, by_name }
    }

    /// All of them.
    pub fn all(&'static self) -> &'static [Entry] {
        &self.entries
    }

    /// The command of a whole name, `config|get`, in any case.
    pub fn named(&'static self, name: &[u8]) -> Option<&'static Entry> {
        self.by_name.get(name).and_then(|number| self.entries.get(number))
    }

    /// The subcommand of that name.
    pub fn child(&'static self, entry: &Entry, name: &[u8]) -> Option<&'static Entry> {
        let number = self.by_name.part(&[entry.info.name.as_bytes(), b"|", name]);
        number.and_then(|number| self.entries.get(number))
    }
}

impl Entry {
    /// The command or the one whose subcommand it is.
    pub fn container(&self) -> usize {
        self.parent.unwrap_or(self.number)
    }
}

impl Known {
    /// The command that arguments name, or the subcommand.
    pub fn find(args: &[&[u8]]) -> Option<Known> {
        // A subcommand's whole name is none that clients say.
        let entry = registry().named(args.first()?).filter(|entry| entry.parent.is_none())?;
        match args.get(1) {
            Some(name) if !entry.children.is_empty() => registry().child(entry, name).map(Known),
            _ => Some(Known(entry)),
        }
    }

    /// The same, or why there is none.
    ///
    /// # Errors
    /// When the name, the subcommand's, or the number of arguments is wrong.
    pub fn check(args: &[&[u8]]) -> Result<Known, CommandError> {
        let Some(known) = Known::find(args) else { return Err(unknown(args)) };
        match known.info().takes(args.len()) {
            true => Ok(known),
            false => Err(CommandError::arity(known.info().name)),
        }
    }

    /// What is known of it.
    pub fn info(self) -> &'static Info {
        self.0.info
    }
}

fn unknown(args: &[&[u8]]) -> CommandError {
    let shown = |bytes: &[u8]| {
        let bytes = &bytes[..bytes.len().min(SHOWN_SIZE_MAX)];
        String::from_utf8_lossy(bytes).replace(['\r', '\n'], " ")
    };
    let name = shown(args.first().copied().unwrap_or_default());
    let named = registry().named(args.first().copied().unwrap_or_default());
    if named.is_some_and(|entry| entry.parent.is_none()) {
        let (upper, sub) =
            (name.to_ascii_uppercase(), shown(args.get(1).copied().unwrap_or_default()));
        return CommandError::new(format!("ERR unknown subcommand '{sub}'. Try {upper} HELP."));
    }
    if let Some(later) = later::find(args.first().copied().unwrap_or_default()) {
        let LaterCommands { since, about, instead, .. } = later;
        let words = format!("ERR unknown command '{name}' ({since}, {about}): {instead}");
        return CommandError::new(words);
    }
    let mut rest = String::new();
    for arg in args.iter().skip(1) {
        if SHOWN_SIZE_MAX <= rest.len() {
            break;
        }
        let left = SHOWN_SIZE_MAX - rest.len();
        rest += &format!("'{}' ", shown(&arg[..arg.len().min(left)]));
    }
    CommandError::new(format!("ERR unknown command '{name}', with args beginning with: {rest}"))
}
