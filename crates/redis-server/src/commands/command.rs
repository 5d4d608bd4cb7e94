//! `COMMAND`: what is known of commands, from their tables.

use crate::acl::categories;
use crate::commands::definition::{DoorCommand, Flow, command, help};
use crate::dispatch::Context;
use crate::out::Out;
use crate::registry::Known;
use crate::registry::access;
use crate::registry::access::Spec;
use crate::registry::{Entry, registry};
use kv::commands::{self as flags, Group, Info, Keys, LOADING, STALE};
use kv::error::SYNTAX;
use kv::{CommandError, Reply as _};

const FLAGS: u32 = LOADING | STALE;

/// The family's commands.
#[rustfmt::skip] // a table
pub const COMMANDS: &[DoorCommand] = &[
    command("command", -1, FLAGS, Group::Server, "2.8.13", "All commands with what is known of them.", all),
    command("command|count", 2, FLAGS, Group::Server, "2.8.13", "How many commands there are.", count),
    command("command|docs", -2, FLAGS, Group::Server, "7.0.0", "What commands do, in words.", docs),
    command("command|getkeys", -3, FLAGS, Group::Server, "2.8.13", "The keys among a command's arguments.", get_keys),
    command("command|getkeysandflags", -3, FLAGS, Group::Server, "7.0.0", "The same, with what is done to them.", get_keys_and_flags),
    command("command|help", 2, FLAGS, Group::Server, "5.0.0", "What COMMAND can do.", show_help),
    command("command|info", -2, FLAGS, Group::Server, "2.8.13", "What is known of some commands.", info),
    command("command|list", -2, FLAGS, Group::Server, "7.0.0", "The names of commands.", list),
];

fn show_help(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    help(
        context,
        &[
            "(none)",
            "    All commands with what is known of them.",
            "COUNT",
            "    How many there are.",
            "LIST [FILTERBY MODULE <name>|ACLCAT <category>|PATTERN <pattern>]",
            "    Their names.",
            "INFO [<command> ...]",
            "    What is known of some, or of all.",
            "DOCS [<command> ...]",
            "    What some do, or all.",
            "GETKEYS <command and arguments>",
            "    The keys among the arguments.",
            "GETKEYSANDFLAGS <command and arguments>",
            "    The same, with what is done to them.",
        ],
    )
}

/// Commands that are no subcommands.
fn first_ones() -> impl Iterator<Item = &'static Entry> {
    registry().all().iter().filter(|entry| entry.parent.is_none())
}

fn count(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    context.session.out.len(first_ones().count());
    Ok(Flow::Next)
}

fn all(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    let out = &mut context.session.out;
    out.array(first_ones().count());
    first_ones().for_each(|entry| describe(out, entry));
    Ok(Flow::Next)
}

fn info(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    let names = &context.args[2..];
    if names.is_empty() {
        return all(context);
    }
    let out = &mut context.session.out;
    out.array(names.len());
    for name in names {
        match registry().named(name) {
            Some(entry) => describe(out, entry),
            None => out.null(),
        }
    }
    Ok(Flow::Next)
}

/// Flags with the names that clients know.
const FLAG_NAMES: &[(u32, &str)] = &[
    (flags::WRITE, "write"),
    (flags::READONLY, "readonly"),
    (flags::DENY_OOM, "denyoom"),
    (flags::ADMIN, "admin"),
    (flags::PUBSUB, "pubsub"),
    (flags::NO_SCRIPT, "noscript"),
    (flags::BLOCKING, "blocking"),
    (LOADING, "loading"),
    (STALE, "stale"),
    (flags::SKIP_MONITOR, "skip_monitor"),
    (flags::FAST, "fast"),
    (flags::NO_AUTH, "no_auth"),
    (flags::NO_MULTI, "no_multi"),
    (flags::MOVABLE_KEYS, "movablekeys"),
    (flags::ALLOW_BUSY, "allow_busy"),
];

/// Flags that clients know and Quipu has no use for.
const FURTHER_FLAGS: &[(&str, &[&str])] = &[
    ("asking", &["restore-asking"]),
    ("no_mandatory_keys", &["eval", "eval_ro", "evalsha", "evalsha_ro", "fcall", "fcall_ro"]),
    (
        "no_async_loading",
        &[
            "bgrewriteaof",
            "bgsave",
            "module|load",
            "module|loadex",
            "module|unload",
            "psync",
            "replicaof",
            "save",
            "slaveof",
            "sync",
        ],
    ),
    ("skip_slowlog", &["exec"]),
];

/// The names of a command's flags.
fn shown_flags(info: &Info) -> Vec<&'static str> {
    let moves = is_movable(info) && !info.is(flags::MOVABLE_KEYS);
    let is_shown = |flag: u32| match flag {
        // RESET ends a transaction; it is not queued.
        flags::NO_MULTI if info.name == "reset" => false,
        flags::MOVABLE_KEYS if moves => true,
        flag => info.is(flag),
    };
    let own = FLAG_NAMES.iter().filter(|(flag, _)| is_shown(*flag)).map(|(_, name)| *name);
    let further = FURTHER_FLAGS.iter().filter(|(_, names)| names.contains(&info.name));
    own.chain(further.map(|(flag, _)| *flag)).collect()
}

fn describe(out: &mut Out, entry: &Entry) {
    let info = entry.info;
    out.array(10);
    out.text(info.name);
    out.int(i64::from(info.arity));
    // Redis gives a container command none of the flags of its subcommands.
    let is_container = !entry.children.is_empty() && info.name != "command";
    let named = if is_container { Vec::new() } else { shown_flags(info) };
    out.set(named.len());
    named.iter().for_each(|name| out.simple(name));
    let (first, last, step) = match info.keys {
        _ if is_container => (0, 0, 0),
        Keys::Range { first, last, step } => (first as i64, last as i64, step as i64),
        Keys::TargetAndCounted { .. } => (1, 1, 1),
        Keys::Found(_) => first_of_specs(info),
        _ => (0, 0, 0),
    };
    out.int(first);
    out.int(last);
    out.int(step);
    let of = categories::of(info);
    let bits: Vec<usize> =
        (0..categories::NAMES.len()).filter(|bit| of & (1 << bit) != 0).collect();
    out.set(bits.len());
    bits.iter().for_each(|bit| out.simple(&format!("@{}", categories::NAMES[*bit])));
    out.set(0);
    let specs = if is_container { Vec::new() } else { access::specs_of(info) };
    out.set(specs.len());
    specs.iter().for_each(|spec| describe_spec(out, spec));
    // Redis has a set here only where it is empty.
    match entry.children.len() {
        0 => out.set(0),
        count => out.array(count),
    }
    entry.children.iter().for_each(|child| describe(out, &registry().all()[*child]));
}

/// The keys that stand at a known place, where others do not.
fn first_of_specs(info: &Info) -> (i64, i64, i64) {
    match access::specs_of(info).first().map(|spec| (spec.begin, spec.find)) {
        Some((access::Begin::Index(first), access::Find::Range(last, step, _))) => {
            (first, if last < 0 { last } else { first + last }, step)
        }
        _ => (0, 0, 0),
    }
}

/// Whether keys stand where arguments say.
fn is_movable(info: &Info) -> bool {
    matches!(info.keys, Keys::Counted { .. } | Keys::TargetAndCounted { .. } | Keys::Found(_))
        && access::specs_of(info).iter().any(Spec::is_incomplete_or_counted)
}

fn describe_spec(out: &mut Out, spec: &Spec) {
    out.map(3);
    out.text("flags");
    let names = spec.flag_names();
    out.set(names.len());
    names.iter().for_each(|name| out.simple(name));
    out.text("begin_search");
    out.map(2);
    out.text("type");
    match spec.begin {
        access::Begin::Index(index) => {
            out.text("index");
            out.text("spec");
            out.map(1);
            out.text("index");
            out.int(index);
        }
        access::Begin::Keyword(word, from) => {
            out.text("keyword");
            out.text("spec");
            out.map(2);
            out.text("keyword");
            out.text(word);
            out.text("startfrom");
            out.int(from);
        }
        access::Begin::Unknown => {
            out.text("unknown");
            out.text("spec");
            out.map(0);
        }
    }
    out.text("find_keys");
    out.map(2);
    out.text("type");
    let (kind, numbers): (&str, Vec<(&str, i64)>) = match spec.find {
        access::Find::Range(last, step, limit) => {
            ("range", vec![("lastkey", last), ("keystep", step), ("limit", limit)])
        }
        access::Find::Counted(at, first, step) => {
            ("keynum", vec![("keynumidx", at), ("firstkey", first), ("keystep", step)])
        }
        access::Find::Unknown => ("unknown", Vec::new()),
    };
    out.text(kind);
    out.text("spec");
    out.map(numbers.len());
    for (name, number) in numbers {
        out.text(name);
        out.int(number);
    }
}

fn list(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    let fits: Box<dyn Fn(&Entry) -> bool> = match &context.args[2..] {
        [] => Box::new(|_| true),
        [word, kind, value] if word.eq_ignore_ascii_case(b"filterby") => {
            let value = value.to_vec();
            match kind.to_ascii_lowercase().as_slice() {
                b"module" => Box::new(|_| false),
                b"aclcat" => {
                    let bit = categories::bit(&String::from_utf8_lossy(&value)).unwrap_or(0);
                    Box::new(move |entry| categories::of(entry.info) & bit != 0)
                }
                b"pattern" => Box::new(move |entry| {
                    kv::glob::matches_ignoring_case(&value, entry.info.name.as_bytes())
                }),
                _ => return Err(SYNTAX),
            }
        }
        _ => return Err(SYNTAX),
    };
    let names: Vec<&str> =
        registry().all().iter().filter(|entry| fits(entry)).map(|entry| entry.info.name).collect();
    let out = &mut context.session.out;
    out.set(names.len());
    names.iter().for_each(|name| out.text(name));
    Ok(Flow::Next)
}

fn docs(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    let named: Vec<&Entry> = match &context.args[2..] {
        [] => first_ones().collect(),
        names => names.iter().filter_map(|name| registry().named(name)).collect(),
    };
    let out = &mut context.session.out;
    out.map(named.len());
    named.iter().for_each(|entry| document(out, entry));
    Ok(Flow::Next)
}

fn document(out: &mut Out, entry: &Entry) {
    out.text(entry.info.name);
    let has_children = !entry.children.is_empty();
    out.map(3 + usize::from(has_children));
    out.text("summary");
    out.text(entry.info.summary);
    out.text("since");
    out.text(entry.info.since);
    out.text("group");
    out.text(group_name(entry.info.group));
    if has_children {
        out.text("subcommands");
        out.map(entry.children.len());
        entry.children.iter().for_each(|child| document(out, &registry().all()[*child]));
    }
}

/// The group's name, as documentation has it.
pub fn group_name(group: Group) -> &'static str {
    match group {
        Group::Generic => "generic",
        Group::String => "string",
        Group::Bitmap => "bitmap",
        Group::List => "list",
        Group::Set => "set",
        Group::SortedSet => "sorted-set",
        Group::Hash => "hash",
        Group::Geo => "geo",
        Group::HyperLogLog => "hyperloglog",
        Group::Stream => "stream",
        Group::Bloom => "bf",
        Group::TimeSeries => "timeseries",
        Group::PubSub => "pubsub",
        Group::Transactions => "transactions",
        Group::Scripting => "scripting",
        Group::Connection => "connection",
        Group::Server => "server",
        Group::Cluster => "cluster",
    }
}

/// A command, its arguments, and where its keys stand among them.
type KeyPlaces<'a> = (&'static Info, &'a [&'a [u8]], Vec<usize>);

/// The places of keys in the command that stands among the arguments from the third on.
fn places<'a>(context: &'a Context<'_, '_>) -> Result<KeyPlaces<'a>, CommandError> {
    let args = &context.args[2..];
    let known = Known::find(args).ok_or(CommandError::new("ERR Invalid command specified"))?;
    let info = known.info();
    if matches!(info.keys, Keys::None) {
        return Err(CommandError::new("ERR The command has no key arguments"));
    }
    if !info.takes(args.len()) {
        return Err(CommandError::new("ERR Invalid number of arguments specified for command"));
    }
    let places = info.key_places(args);
    let places = match places {
        Some(places) if !places.is_empty() => places,
        _ if ALLOWED_WITHOUT_KEYS.contains(&info.name) => Vec::new(),
        _ => return Err(CommandError::new("ERR Invalid arguments specified for command")),
    };
    Ok((info, args, places))
}

/// Those that may say that they have no key.
const ALLOWED_WITHOUT_KEYS: &[&str] =
    &["eval", "evalsha", "eval_ro", "evalsha_ro", "fcall", "fcall_ro"];

fn get_keys(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    let (_, args, places) = places(context)?;
    let keys: Vec<Vec<u8>> = places.iter().map(|place| args[*place].to_vec()).collect();
    let out = &mut context.session.out;
    out.array(keys.len());
    keys.iter().for_each(|key| out.bulk(key));
    Ok(Flow::Next)
}

fn get_keys_and_flags(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    let (info, args, places) = places(context)?;
    let accesses = access::of_places(info, args, &places);
    let keys: Vec<(Vec<u8>, u32)> = places
        .iter()
        .zip(accesses)
        .map(|(place, access)| (args[*place].to_vec(), access))
        .collect();
    let out = &mut context.session.out;
    out.array(keys.len());
    for (key, flags) in keys {
        out.array(2);
        out.bulk(&key);
        let names = access::names_of(flags);
        out.set(names.len());
        names.iter().for_each(|name| out.simple(name));
    }
    Ok(Flow::Next)
}
