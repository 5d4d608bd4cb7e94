//! `ACL`: users and what they may do.

use crate::acl;
use crate::acl::User;
use crate::acl::categories;
use crate::acl::selector::Refusal;
use crate::commands::definition::{
    DoorCommand, Flow, command, container, help, misused_subcommand,
};
use crate::dispatch::Context;
use crate::hub::Hub;
use crate::redis::Redis;
use crate::registry::Known;
use crate::registry::registry;
use crate::settings::Settings;
use kv::commands::{ADMIN, Group, LOADING, NO_SCRIPT, STALE};
use kv::number::{int_arg, parse_i64};
use kv::{CommandError, Keyspace, Reply as _};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The file of users, in the folder of keys.
const FILE_NAME: &str = "users.acl";
/// Bits of a password that is made.
const PASSWORD_BITS: i64 = 256;
const PASSWORD_BITS_MAX: i64 = 4096;
/// Entries of the log that are shown unless somebody wants more.
const SHOWN: usize = 10;

const USUAL: u32 = NO_SCRIPT | LOADING | STALE;
const OF_ADMIN: u32 = USUAL | ADMIN;

/// The family's commands.
#[rustfmt::skip] // a table
pub const COMMANDS: &[DoorCommand] = &[
    command("acl", -2, 0, Group::Server, "6.0.0", "Users and what they may do.", container),
    command("acl|cat", -2, USUAL, Group::Server, "6.0.0", "The categories, or the commands of one.", cat),
    command("acl|deluser", -3, OF_ADMIN, Group::Server, "6.0.0", "Removes users, and closes their connections.", del_user),
    command("acl|dryrun", -4, OF_ADMIN, Group::Server, "7.0.0", "Whether a user may say a command.", dry_run),
    command("acl|genpass", -2, USUAL, Group::Server, "6.0.0", "Makes a password.", gen_pass),
    command("acl|getuser", 3, OF_ADMIN, Group::Server, "6.0.0", "What a user may do.", get_user),
    command("acl|help", 2, LOADING | STALE, Group::Server, "6.0.0", "What ACL can do.", show_help),
    command("acl|list", 2, OF_ADMIN, Group::Server, "6.0.0", "All users with their rules.", list),
    command("acl|load", 2, OF_ADMIN, Group::Server, "6.0.0", "Reads the file of users.", load),
    command("acl|log", -2, OF_ADMIN, Group::Server, "6.0.0", "What was refused lately.", log),
    command("acl|save", 2, OF_ADMIN, Group::Server, "6.0.0", "Writes the file of users.", save),
    command("acl|setuser", -3, OF_ADMIN, Group::Server, "6.0.0", "Makes or changes a user.", set_user),
    command("acl|users", 2, OF_ADMIN, Group::Server, "6.0.0", "The names of all users.", users),
    command("acl|whoami", 2, USUAL, Group::Server, "6.0.0", "Who the client is.", who_am_i),
];

fn show_help(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    help(
        context,
        &[
            "CAT [<category>]",
            "    The categories, or the commands of one.",
            "DELUSER <user> [<user> ...]",
            "    Removes users, and closes their connections.",
            "DRYRUN <user> <command> [<argument> ...]",
            "    Whether a user may say a command.",
            "GENPASS [<bits>]",
            "    Makes a password.",
            "GETUSER <user>",
            "    What a user may do.",
            "LIST",
            "    All users with their rules.",
            "LOAD",
            "    Reads the file of users.",
            "LOG [<count>|RESET]",
            "    What was refused lately.",
            "SAVE",
            "    Writes the file of users.",
            "SETUSER <user> [<rule> ...]",
            "    Makes or changes a user.",
            "USERS",
            "    The names of all users.",
            "WHOAMI",
            "    Who the client is.",
        ],
    )
}

fn who_am_i(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    let name = context.session.user.name.clone();
    context.session.out.bulk(&name);
    Ok(Flow::Next)
}

fn users(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    let out = &mut context.session.out;
    out.array(context.hub.acl.users.len());
    context.hub.acl.users.keys().for_each(|name| out.bulk(name));
    Ok(Flow::Next)
}

fn list(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    let out = &mut context.session.out;
    out.array(context.hub.acl.users.len());
    context.hub.acl.users.values().for_each(|user| out.bulk(&user.line()));
    Ok(Flow::Next)
}

fn cat(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    let names: Vec<&str> = match &context.args[2..] {
        [] => categories::NAMES.to_vec(),
        [name] => {
            let name = String::from_utf8_lossy(name);
            let bit = categories::bit(&name)
                .ok_or_else(|| CommandError::new(format!("ERR Unknown category '{name}'")))?;
            let all = registry().all().iter();
            all.filter(|entry| categories::of(entry.info) & bit != 0)
                .map(|entry| entry.info.name)
                .collect()
        }
        _ => return Err(misused_subcommand("ACL", context.args[1])),
    };
    let out = &mut context.session.out;
    out.array(names.len());
    names.iter().for_each(|name| out.text(name));
    Ok(Flow::Next)
}

fn gen_pass(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    let bits = match &context.args[2..] {
        [] => PASSWORD_BITS,
        [text] => {
            let bits = Some(int_arg(text)?).filter(|bits| (1..=PASSWORD_BITS_MAX).contains(bits));
            bits.ok_or(CommandError::new("ERR ACL GENPASS argument must be the number of bits for the output password, a positive number up to 4096"))?
        }
        _ => return Err(misused_subcommand("ACL", context.args[1])),
    };
    let digits = usize::try_from((bits + 3) / 4).unwrap_or(0);
    let mut bytes = vec![0u8; digits.div_ceil(2)];
    let random = ring::rand::SystemRandom::new();
    ring::rand::SecureRandom::fill(&random, &mut bytes)
        .map_err(|_| CommandError::new("ERR the system has no randomness"))?;
    let mut text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    text.truncate(digits);
    context.session.out.text(&text);
    Ok(Flow::Next)
}

// ---- changing users ----

/// Whether new users may use all channels.
pub fn has_all_channels(settings: &Settings) -> bool {
    settings.text("acl-pubsub-default") == "allchannels"
}

fn set_user(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    let name = context.args[2];
    if name.iter().any(|byte| byte.is_ascii_whitespace() || *byte == 0) {
        return Err(CommandError::new("ERR Usernames can't contain spaces or null characters"));
    }
    let all_channels = has_all_channels(&context.hub.settings);
    let known = context.hub.acl.user(name).map(|user| User::clone(user));
    let mut user = known.unwrap_or_else(|| User::new(name, all_channels));
    let rules = acl::whole_rules(&context.args[3..]).map_err(CommandError::new)?;
    for rule in rules {
        user.apply(&rule, all_channels).map_err(|reason| {
            let rule = String::from_utf8_lossy(&rule);
            CommandError::new(format!("ERR Error in ACL SETUSER modifier '{rule}': {reason}"))
        })?;
    }
    context.hub.acl.put(user);
    let closes_self = close_revoked(context, name);
    context.session.out.ok();
    Ok(if closes_self { Flow::Close } else { Flow::Next })
}

/// Closes connections that listen to what their user may not listen to any more. Returns whether
/// this one does.
fn close_revoked(context: &mut Context<'_, '_>, name: &[u8]) -> bool {
    let Some(user) = context.hub.acl.user(name).cloned() else { return false };
    let hub = &*context.hub;
    let mut revoked: Vec<u64> = Vec::new();
    let kinds = [(&hub.channels, false), (&hub.shard_channels, false)];
    for (channels, is_pattern) in kinds {
        for (channel, listeners) in channels {
            if !user.may_listen(channel, is_pattern) {
                revoked.extend(listeners);
            }
        }
    }
    for (pattern, listeners) in &hub.patterns {
        if !user.may_listen(pattern, true) {
            revoked.extend(listeners);
        }
    }
    let is_of_user = |id: &u64| hub.clients.get(id).is_some_and(|client| *client.user == *name);
    revoked.retain(is_of_user);
    for id in &revoked {
        context.hub.kill(*id, context.keys);
    }
    revoked.contains(&context.session.id)
}

fn del_user(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    let names = &context.args[2..];
    if names.contains(&b"default".as_slice()) {
        return Err(CommandError::new("ERR The 'default' user cannot be removed"));
    }
    let mut count = 0;
    let mut closes_self = false;
    for name in names {
        if context.hub.acl.take(name) {
            count += 1;
            closes_self |= close_user(context.hub, context.keys, name, context.session.id);
        }
    }
    context.session.out.int(count);
    Ok(if closes_self { Flow::Close } else { Flow::Next })
}

/// Closes a user's connections. Returns whether one of them is that client.
fn close_user(hub: &mut Hub, keys: &mut Keyspace, name: &[u8], own: u64) -> bool {
    let of_user = hub.clients.values().filter(|client| *client.user == *name);
    let ids: Vec<u64> = of_user.map(|client| client.id).collect();
    for id in &ids {
        hub.kill(*id, keys);
    }
    ids.contains(&own)
}

// ---- the file ----

fn load(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    let before: BTreeMap<Vec<u8>, Arc<User>> = context.hub.acl.users.clone();
    let loaded = context
        .redis
        .load_users(context.hub)
        .map_err(|reason| CommandError::new(format!("ERR {reason}")))?;
    if !loaded {
        return Err(CommandError::new(
            "ERR This Redis instance is not configured to use an ACL file. ACL SAVE makes one in the data directory",
        ));
    }
    let mut closes_self = false;
    for (name, user) in before {
        let is_same = context.hub.acl.user(&name).is_some_and(|after| after.line() == user.line());
        if !is_same {
            closes_self |= close_user(context.hub, context.keys, &name, context.session.id);
        }
    }
    context.session.out.ok();
    Ok(if closes_self { Flow::Close } else { Flow::Next })
}

fn save(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    let lines = context.hub.acl.users.values().map(|user| user.line());
    let mut text = lines.collect::<Vec<_>>().join(&b'\n');
    text.push(b'\n');
    let kv = context.redis.kv.clone();
    context.session.work =
        Some(Box::new(move |out| match kv.write_credentials(FILE_NAME, &text) {
            Ok(()) => out.ok(),
            Err(error) => out.error(&format!("ERR the file of users cannot be written: {error}")),
        }));
    Ok(Flow::Work)
}

impl Redis {
    /// Replaces the users by those of `users.acl`. Returns false without such a file. Changes
    /// nothing if the file is damaged.
    ///
    /// # Errors
    /// When the file is damaged, lost or has a wrong rule.
    pub fn load_users(&self, hub: &mut Hub) -> Result<bool, String> {
        let Some(file) = self.kv.read_credentials(FILE_NAME)? else { return Ok(false) };
        let users = acl::Acl::read(&file.bytes, has_all_channels(&hub.settings));
        let path = self.file_of(FILE_NAME);
        let users = users.map_err(|reason| format!("{}:{reason}", path.display()))?;
        let default = hub.acl.users.get(b"default".as_slice()).cloned();
        hub.acl.users = default.into_iter().map(|user| (user.name.to_vec(), user)).collect();
        users.into_iter().for_each(|user| hub.acl.put(user));
        if !(file.is_sealed && file.is_listed) {
            self.kv.write_credentials(FILE_NAME, &file.bytes)?;
        }
        Ok(true)
    }
}

// ---- asking ----

fn get_user(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    let Some(user) = context.hub.acl.user(context.args[2]).cloned() else {
        context.session.out.null();
        return Ok(Flow::Next);
    };
    let out = &mut context.session.out;
    out.map(6);
    out.text("flags");
    let mut flags = vec![if user.is_on { "on" } else { "off" }];
    flags.extend(user.needs_no_password.then_some("nopass"));
    out.set(flags.len());
    flags.iter().for_each(|flag| out.text(flag));
    out.text("passwords");
    out.array(user.passwords.len());
    user.passwords.iter().for_each(|hash| out.text(hash));
    let describe = |out: &mut crate::out::Out, selector: &acl::selector::Selector| {
        out.text("commands");
        out.text(&selector.commands_text());
        out.text("keys");
        out.bulk(&selector.keys_text());
        out.text("channels");
        out.bulk(&selector.channels_text());
    };
    let (root, others) =
        user.selectors.split_first().map_or((None, &[][..]), |(root, others)| (Some(root), others));
    root.into_iter().for_each(|root| describe(out, root));
    out.text("selectors");
    out.array(others.len());
    for selector in others {
        out.map(3);
        describe(out, selector);
    }
    Ok(Flow::Next)
}

fn dry_run(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    let (name, args) = (context.args[2], &context.args[3..]);
    let Some(user) = context.hub.acl.user(name).cloned() else {
        let name = String::from_utf8_lossy(name);
        return Err(CommandError::new(format!("ERR User '{name}' not found")));
    };
    let Some(known) = Known::find(args) else {
        let command = String::from_utf8_lossy(args[0]);
        return Err(CommandError::new(format!("ERR Command '{command}' not found")));
    };
    if !known.info().takes(args.len()) {
        return Err(CommandError::arity(known.info().name));
    }
    let shown = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match user.check(known, args) {
        Ok(()) => context.session.out.ok(),
        Err(Refusal::Command) => {
            let name = known.info().name;
            let text = format!("This user has no permissions to run the '{name}' command");
            context.session.out.text(&text);
        }
        Err(Refusal::Key(key)) => {
            let text = format!("This user has no permissions to access the '{}' key", shown(&key));
            context.session.out.text(&text);
        }
        Err(Refusal::Channel(channel)) => {
            let channel = shown(&channel);
            let text = format!("This user has no permissions to access the '{channel}' channel");
            context.session.out.text(&text);
        }
    }
    Ok(Flow::Next)
}

fn log(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    let count = match &context.args[2..] {
        [] => SHOWN,
        [word] if word.eq_ignore_ascii_case(b"reset") => {
            context.hub.acl.refusals.clear();
            context.session.out.ok();
            return Ok(Flow::Next);
        }
        [text] => {
            let count = parse_i64(text).ok_or(kv::error::NOT_INTEGER)?;
            usize::try_from(count).unwrap_or(0)
        }
        _ => return Err(misused_subcommand("ACL", context.args[1])),
    };
    let now_ms = context.keys.now_ms();
    let out = &mut context.session.out;
    let count = count.min(context.hub.acl.refusals.len());
    out.array(count);
    for entry in context.hub.acl.refusals.iter().take(count) {
        out.map(10);
        out.text("count");
        out.int(i64::try_from(entry.count).unwrap_or(i64::MAX));
        out.text("reason");
        out.text(entry.reason);
        out.text("context");
        out.text(entry.context);
        out.text("object");
        out.bulk(&entry.object);
        out.text("username");
        out.bulk(&entry.user);
        out.text("age-seconds");
        out.double((now_ms - entry.created_ms) as f64 / 1000.0);
        out.text("client-info");
        out.text(&entry.client);
        out.text("entry-id");
        out.int(i64::try_from(entry.id).unwrap_or(i64::MAX));
        out.text("timestamp-created");
        out.int(entry.created_ms);
        out.text("timestamp-last-updated");
        out.int(entry.updated_ms);
    }
    Ok(Flow::Next)
}
