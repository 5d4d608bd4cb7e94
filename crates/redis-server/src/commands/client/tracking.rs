//! `CLIENT TRACKING` and what goes with it.

use super::super::Flow;
use super::switch_arg;
use crate::clients::tracking::{Mode, Tracking};
use crate::dispatch::Context;
use kv::error::SYNTAX;
use kv::number::int_arg;
use kv::{CommandError, Reply as _};

/// Prefixes of a client.
const PREFIXES_MAX: usize = 1000;

/// What the options of `CLIENT TRACKING` say.
#[derive(Default)]
struct Options {
    redirect: u64,
    is_broadcast: bool,
    is_opt_in: bool,
    is_opt_out: bool,
    is_noloop: bool,
    prefixes: Vec<Vec<u8>>,
}

fn options(context: &Context<'_, '_>) -> Result<Options, CommandError> {
    let mut options = Options::default();
    let mut at = 3;
    while let Some(word) = context.args.get(at) {
        at += 1;
        let value = context.args.get(at);
        match (word.to_ascii_lowercase().as_slice(), value) {
            (b"redirect", Some(value)) => {
                at += 1;
                if options.redirect != 0 {
                    return Err(CommandError::new(
                        "ERR A client can only redirect to a single other client",
                    ));
                }
                let id = u64::try_from(int_arg(value)?).unwrap_or(0);
                if !context.hub.clients.contains_key(&id) {
                    return Err(CommandError::new(
                        "ERR The client ID you want redirect to does not exist",
                    ));
                }
                options.redirect = id;
            }
            (b"prefix", Some(value)) => {
                at += 1;
                options.prefixes.push(value.to_vec());
            }
            (b"bcast", _) => options.is_broadcast = true,
            (b"optin", _) => options.is_opt_in = true,
            (b"optout", _) => options.is_opt_out = true,
            (b"noloop", _) => options.is_noloop = true,
            _ => return Err(SYNTAX),
        }
    }
    Ok(options)
}

fn check(options: &Options, before: Option<&Tracking>) -> Result<(), CommandError> {
    let refuse = |words: &'static str| Err(CommandError::new(words));
    if !options.is_broadcast && !options.prefixes.is_empty() {
        return refuse("ERR PREFIX option requires BCAST mode to be enabled");
    }
    let was_broadcast = before.is_some_and(|before| before.mode == Mode::Broadcast);
    if before.is_some() && was_broadcast != options.is_broadcast {
        return refuse(
            "ERR You can't switch BCAST mode on/off before disabling tracking for this client, and then re-enabling it with a different mode.",
        );
    }
    if options.is_broadcast && (options.is_opt_in || options.is_opt_out) {
        return refuse("ERR OPTIN and OPTOUT are not compatible with BCAST");
    }
    if options.is_opt_in && options.is_opt_out {
        return refuse("ERR You can't specify both OPTIN mode and OPTOUT mode");
    }
    let mode = before.map(|before| before.mode);
    if options.is_opt_in && mode == Some(Mode::OptOut)
        || options.is_opt_out && mode == Some(Mode::OptIn)
    {
        return refuse(
            "ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and then re-enabling it with a different mode.",
        );
    }
    if PREFIXES_MAX < options.prefixes.len() {
        return refuse("ERR a client may have 1000 prefixes at most");
    }
    let old: &[Vec<u8>] = before.map_or(&[], |before| &before.prefixes);
    check_prefixes(&options.prefixes, old)
}

/// Prefixes must not begin with each other: a client would be told twice.
fn check_prefixes(new: &[Vec<u8>], old: &[Vec<u8>]) -> Result<(), CommandError> {
    for (at, one) in new.iter().enumerate() {
        let overlap = |other: &&Vec<u8>| one.starts_with(other) || other.starts_with(one);
        let shown = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if let Some(other) = old.iter().find(overlap) {
            return Err(CommandError::new(format!(
                "ERR Prefix '{}' overlaps with an existing prefix '{}'. Prefixes for a single client must not overlap.",
                shown(one),
                shown(other)
            )));
        }
        if let Some(other) = new[at + 1..].iter().find(overlap) {
            return Err(CommandError::new(format!(
                "ERR Prefix '{}' overlaps with another provided prefix '{}'. Prefixes for a single client must not overlap.",
                shown(one),
                shown(other)
            )));
        }
    }
    Ok(())
}

pub fn tracking(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    let options = options(context)?;
    let id = context.session.id;
    if !switch_arg(context.args[2])? {
        context.hub.track_no_more(id);
        context.keys.observe(context.hub.is_observed());
        context.session.out.ok();
        return Ok(Flow::Next);
    }
    let before = context.hub.clients.get(&id).and_then(|client| client.tracking.clone());
    check(&options, before.as_ref())?;
    let Options { redirect, is_noloop, mut prefixes, .. } = options;
    let has_no_prefix = prefixes.is_empty();
    prefixes.extend(before.map(|before| before.prefixes).unwrap_or_default());
    if options.is_broadcast && has_no_prefix {
        prefixes.push(Vec::new());
    }
    prefixes.sort();
    prefixes.dedup();
    let mode = match (options.is_broadcast, options.is_opt_in, options.is_opt_out) {
        (true, ..) => Mode::Broadcast,
        (_, true, _) => Mode::OptIn,
        (.., true) => Mode::OptOut,
        _ => Mode::Read,
    };
    let tracking = Tracking { redirect, is_broken: false, mode, is_noloop, next: None, prefixes };
    context.hub.track(id, tracking);
    context.keys.observe(true);
    context.session.out.ok();
    Ok(Flow::Next)
}

pub fn caching(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    let client = context.hub.clients.get_mut(&context.session.id);
    let Some(tracking) = client.and_then(|client| client.tracking.as_mut()) else {
        return Err(CommandError::new(
            "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled",
        ));
    };
    match (context.args[2].to_ascii_lowercase().as_slice(), tracking.mode) {
        (b"yes", Mode::OptIn) => tracking.next = Some(true),
        (b"no", Mode::OptOut) => tracking.next = Some(false),
        (b"yes", _) => {
            return Err(CommandError::new(
                "ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.",
            ));
        }
        (b"no", _) => {
            return Err(CommandError::new(
                "ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.",
            ));
        }
        _ => return Err(SYNTAX),
    }
    context.session.out.ok();
    Ok(Flow::Next)
}

pub fn get_redir(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    let client = context.hub.clients.get(&context.session.id);
    let tracking = client.and_then(|client| client.tracking.as_ref());
    let redirect = tracking.map_or(-1, |tracking| tracking.redirect as i64);
    context.session.out.int(redirect);
    Ok(Flow::Next)
}

pub fn info(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    let client = context.hub.clients.get(&context.session.id);
    let tracking = client.and_then(|client| client.tracking.clone());
    let redirect = tracking.as_ref().map_or(-1, |tracking| tracking.redirect as i64);
    let mut flags = Vec::new();
    match &tracking {
        None => flags.push("off"),
        Some(tracking) => {
            flags.push("on");
            match tracking.mode {
                Mode::Broadcast => flags.push("bcast"),
                Mode::OptIn => flags.push("optin"),
                Mode::OptOut => flags.push("optout"),
                Mode::Read => {}
            }
            match tracking.next {
                Some(true) => flags.push("caching-yes"),
                Some(false) => flags.push("caching-no"),
                None => {}
            }
            if tracking.is_noloop {
                flags.push("noloop");
            }
            let target = tracking.redirect;
            let is_gone = target != 0 && !context.hub.clients.contains_key(&target);
            if tracking.is_broken || is_gone {
                flags.push("broken_redirect");
            }
        }
    }
    let prefixes = tracking.map(|tracking| tracking.prefixes).unwrap_or_default();
    let out = &mut context.session.out;
    out.map(3);
    out.text("flags");
    out.set(flags.len());
    flags.iter().for_each(|flag| out.text(flag));
    out.text("redirect");
    out.int(redirect);
    out.text("prefixes");
    out.array(prefixes.len());
    prefixes.iter().for_each(|prefix| out.bulk(prefix));
    Ok(Flow::Next)
}
