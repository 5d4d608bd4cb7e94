//! `CLIENT KILL` and `CLIENT UNBLOCK`.

use super::list::unknown_class;
use crate::clients::client::{Class, Client};
use crate::commands::definition::{Flow, misused_subcommand};
use crate::dispatch::Context;
use kv::error::SYNTAX;
use kv::number::parse_i64;
use kv::{CommandError, Reply as _};

/// Which connections are closed.
#[derive(Default)]
struct Filter {
    id: Option<u64>,
    address: Option<Vec<u8>>,
    local: Option<Vec<u8>>,
    class: Option<Class>,
    user: Option<Vec<u8>>,
    age_min_s: Option<i64>,
    spares_self: bool,
}

impl Filter {
    fn fits(&self, client: &Client, own: u64, now_ms: i64) -> bool {
        let is = |wanted: &Option<Vec<u8>>, found: &[u8]| {
            wanted.as_ref().is_none_or(|wanted| wanted == found)
        };
        self.id.is_none_or(|id| id == client.id)
            && is(&self.address, client.address().as_bytes())
            && is(&self.local, client.local.to_string().as_bytes())
            && self.class.is_none_or(|class| class == client.class())
            && is(&self.user, &client.user)
            && self.age_min_s.is_none_or(|age| age <= (now_ms - client.since_ms) / 1000)
            && !(self.spares_self && client.id == own)
    }
}

fn filter(context: &Context<'_, '_>) -> Result<Filter, CommandError> {
    let options = &context.args[2..];
    let mut filter = Filter { spares_self: true, ..Filter::default() };
    for pair in options.chunks(2) {
        let [word, value] = pair else { return Err(SYNTAX) };
        let word = word.to_ascii_lowercase();
        match word.as_slice() {
            b"id" => {
                let id = parse_i64(value).and_then(|id| u64::try_from(id).ok());
                let id = id.filter(|id| 0 < *id);
                filter.id =
                    Some(id.ok_or(CommandError::new("ERR client-id should be greater than 0"))?);
            }
            b"type" => {
                filter.class = Some(Class::named(value).ok_or_else(|| unknown_class(value))?)
            }
            b"addr" => filter.address = Some(value.to_vec()),
            b"laddr" => filter.local = Some(value.to_vec()),
            b"user" => {
                if !context.knows_user(value) {
                    let user = String::from_utf8_lossy(value);
                    return Err(CommandError::new(format!("ERR No such user '{user}'")));
                }
                filter.user = Some(value.to_vec());
            }
            b"maxage" => {
                let age = parse_i64(value).filter(|age| 0 < *age);
                let wrong = CommandError::new("ERR maxage is not an integer or out of range");
                filter.age_min_s = Some(age.ok_or(wrong)?);
            }
            b"skipme" => match value.to_ascii_lowercase().as_slice() {
                b"yes" => filter.spares_self = true,
                b"no" => filter.spares_self = false,
                _ => return Err(SYNTAX),
            },
            _ => return Err(SYNTAX),
        }
    }
    Ok(filter)
}

pub fn kill(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    let is_old = context.args.len() == 3;
    let filter = match is_old {
        true => Filter { address: Some(context.args[2].to_vec()), ..Filter::default() },
        false => filter(context)?,
    };
    let (own, now_ms) = (context.session.id, context.keys.now_ms());
    let clients = context.hub.clients.values();
    let ids: Vec<u64> =
        clients.filter(|client| filter.fits(client, own, now_ms)).map(|client| client.id).collect();
    let kills_self = ids.contains(&own);
    for id in &ids {
        context.hub.kill(*id, context.keys);
    }
    match (is_old, ids.len()) {
        (true, 0) => return Err(CommandError::new("ERR No such client")),
        (true, _) => context.session.out.ok(),
        (false, count) => context.session.out.len(count),
    }
    Ok(if kills_self { Flow::Close } else { Flow::Next })
}

const UNBLOCKED: &[u8] = b"-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n";

pub fn unblock(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    let fails = match &context.args[3..] {
        [] => false,
        [word] if word.eq_ignore_ascii_case(b"timeout") => false,
        [word] if word.eq_ignore_ascii_case(b"error") => true,
        [_] => {
            return Err(CommandError::new("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR"));
        }
        _ => return Err(misused_subcommand("CLIENT", context.args[1])),
    };
    let id = parse_i64(context.args[2]).ok_or(kv::error::NOT_INTEGER)?;
    let id = u64::try_from(id).unwrap_or(0);
    let Some(blocked) = context.hub.unblock(id, context.keys) else {
        context.session.out.int(0);
        return Ok(Flow::Next);
    };
    if fails {
        context.hub.stats.error(b"UNBLOCKED ");
    }
    if let Some(client) = context.hub.clients.get(&id) {
        match fails {
            true => client.outbox.leave(blocked.heard(UNBLOCKED)),
            false => client.outbox.leave(blocked.heard(&blocked.otherwise)),
        }
    }
    context.session.out.int(1);
    Ok(Flow::Next)
}
