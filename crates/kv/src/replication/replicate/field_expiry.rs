//! Expiry of hash fields in the stream for replicas.
//!
//! Fields expire since Redis 7.4. Replicas of all versions read one stream, and none says its version. An
//! unknown command would abort its transaction there. So scripts call the newer commands: a replica that
//! does not know them leaves its fields without expiry and removes them when the primary sends `HDEL`.
//! A replica of this server runs the commands themselves: [`commands`].

use super::Each;
use crate::effects::Effect;
use crate::value::Hash;

/// Sets when fields expire. Arguments: time in milliseconds since the epoch and field by turns.
const SET: &[u8] = b"for i=1,#ARGV,2 do \
local r=redis.pcall('HPEXPIREAT',KEYS[1],ARGV[i],'FIELDS',1,ARGV[i+1]) \
if type(r)=='table' and r.err then return end end";

/// Keeps fields from expiring. Arguments: fields.
const PERSIST: &[u8] = b"redis.pcall('HPERSIST',KEYS[1],'FIELDS',#ARGV,unpack(ARGV))";

/// Sets fields whose expiry stays. Arguments: field and value by turns.
const SET_VALUES: &[u8] = b"for i=1,#ARGV,2 do \
local t=redis.pcall('HPEXPIRETIME',KEYS[1],'FIELDS',1,ARGV[i]) \
redis.call('HSET',KEYS[1],ARGV[i],ARGV[i+1]) \
if type(t)=='table' and t[1] and 0<t[1] then \
redis.pcall('HPEXPIREAT',KEYS[1],string.format('%.0f',t[1]),'FIELDS',1,ARGV[i]) end end";

/// Arguments of one script: Lua unpacks some thousand.
const ARGUMENTS_MAX: usize = 1000;

/// Sends an effect on the expiry of fields. Returns whether it is one.
pub(super) fn send(effect: &Effect<'_>, each: Each<'_>) -> bool {
    let db = effect.db;
    match effect.arguments[..] {
        [b"hpexpireat", key, at, _, _, ref fields @ ..] => set_all(db, key, at, fields, each),
        [b"hpersist", key, _, _, ref fields @ ..] => call(db, PERSIST, key, fields, each),
        [b"hsetex", key, b"keepttl", _, _, ref pairs @ ..] => {
            call(db, SET_VALUES, key, pairs, each);
        }
        [b"hsetex", key, b"pxat", at, _, _, ref pairs @ ..] => {
            set_values(db, key, pairs, each);
            let fields: Vec<&[u8]> = pairs.iter().step_by(2).copied().collect();
            set_all(db, key, at, &fields, each);
        }
        [b"hsetex", key, _, _, ref pairs @ ..] => set_values(db, key, pairs, each),
        _ => return false,
    }
    true
}

/// Sends when the fields of a hash expire.
pub(crate) fn send_hash(db: u8, key: &[u8], hash: &Hash, each: Each<'_>) {
    let times: Vec<(String, &[u8])> =
        hash.expiries().map(|(at, field)| (at.to_string(), field)).collect();
    let pairs = times.iter().flat_map(|(at, field)| [at.as_bytes(), *field]);
    call(db, SET, key, &pairs.collect::<Vec<_>>(), each);
}

/// Bytes of a time and of the frames around it and its field.
const EXPIRY_SIZE: usize = 40;
/// Bytes of the frames around a script and its key.
const SCRIPT_FRAME_SIZE: usize = 64;

/// Bytes that [`send_hash`] sends, about.
pub(crate) fn size(key: &[u8], hash: &Hash) -> usize {
    let (mut size, mut count) = (0, 0_usize);
    for (_, field) in hash.expiries() {
        size += field.len() + EXPIRY_SIZE;
        count += 1;
    }
    let scripts = (2 * count).div_ceil(ARGUMENTS_MAX);
    size + scripts * (SET.len() + key.len() + SCRIPT_FRAME_SIZE)
}

fn set_all(db: u8, key: &[u8], at: &[u8], fields: &[&[u8]], each: Each<'_>) {
    let pairs: Vec<&[u8]> = fields.iter().flat_map(|field| [at, *field]).collect();
    call(db, SET, key, &pairs, each);
}

/// Sets fields that do not expire.
fn set_values(db: u8, key: &[u8], pairs: &[&[u8]], each: Each<'_>) {
    each(db, &[&[&b"HSET"[..], key], pairs].concat());
}

fn call(db: u8, script: &[u8], key: &[u8], arguments: &[&[u8]], each: Each<'_>) {
    for arguments in arguments.chunks(ARGUMENTS_MAX) {
        each(db, &[&[&b"EVAL"[..], script, b"1", key], arguments].concat());
    }
}

/// The commands that one of the scripts of this module calls, for a replica that knows all of them; none
/// for any other command.
pub fn commands<'a>(words: &[&'a [u8]]) -> Option<Vec<Vec<&'a [u8]>>> {
    let [name, script, _, key, arguments @ ..] = words else { return None };
    let key = *key;
    if !name.eq_ignore_ascii_case(b"eval") {
        return None;
    }
    let pairs = arguments.chunks_exact(2);
    let commands = match *script {
        script if script == SET => pairs
            .map(|pair| vec![&b"HPEXPIREAT"[..], key, pair[0], b"FIELDS", b"1", pair[1]])
            .collect(),
        script if script == SET_VALUES => pairs
            .map(|pair| vec![&b"HSETEX"[..], key, b"KEEPTTL", b"FIELDS", b"1", pair[0], pair[1]])
            .collect(),
        script if script == PERSIST => arguments
            .iter()
            .map(|field| vec![&b"HPERSIST"[..], key, b"FIELDS", b"1", *field])
            .collect(),
        _ => return None,
    };
    Some(commands)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::{self, Info, WRITE};
    use crate::replication::replicate::is_newer;

    #[test]
    fn effects_become_commands_of_redis_7_0_and_scripts() {
        let sent = |arguments: &[&[u8]]| {
            let mut lines = Vec::new();
            let effect = Effect { db: 0, arguments: arguments.to_vec() };
            assert!(send(&effect, &mut |_, words| {
                lines.push(words.iter().map(|word| word.to_vec()).collect::<Vec<_>>());
            }));
            lines
        };
        let both = sent(&[b"hsetex", b"h", b"pxat", b"9", b"fields", b"2", b"a", b"1", b"b", b"2"]);
        assert_eq!(both[0], [&b"HSET"[..], b"h", b"a", b"1", b"b", b"2"]);
        assert_eq!(both[1], [&b"EVAL"[..], SET, b"1", b"h", b"9", b"a", b"9", b"b"]);
        let plain = sent(&[b"hsetex", b"h", b"fields", b"1", b"keepttl", b"1"]);
        assert_eq!(plain, [[&b"HSET"[..], b"h", b"keepttl", b"1"]]);
        let many: Vec<Vec<u8>> = (0..1200).map(|n: u32| n.to_string().into_bytes()).collect();
        let head: [&[u8]; 4] = [b"hpersist", b"h", b"fields", b"1200"];
        let fields: Vec<&[u8]> = many.iter().map(Vec::as_slice).collect();
        let lines = sent(&[&head[..], &fields].concat());
        assert_eq!(lines.iter().map(Vec::len).collect::<Vec<_>>(), [1004, 204]);
        let words: Vec<&[u8]> = lines[1].iter().map(Vec::as_slice).collect();
        let called = commands(&words).expect("a script of this module");
        assert_eq!(called[199], [&b"HPERSIST"[..], b"h", b"FIELDS", b"1", b"1199"]);
        assert_eq!(commands(&[b"eval", b"return 1", b"1", b"h", b"a"]), None);
    }

    #[test]
    fn the_size_of_what_is_sent_is_known() {
        for (field_count, key) in [(0, "h"), (1, "h"), (1, "a longer key"), (500, "h"), (1234, "h")]
        {
            let mut hash = Hash::default();
            for number in 0..field_count {
                let field = format!("field {number}");
                hash.insert(field.as_bytes(), b"v");
                hash.set_expiry(field.as_bytes(), Some(1_700_000_000_000));
            }
            let mut sent = 0;
            send_hash(0, key.as_bytes(), &hash, &mut |_, words| {
                sent += words.iter().map(|word| word.len() + 10).sum::<usize>();
            });
            let size = size(key.as_bytes(), &hash);
            assert!(
                (sent..=sent * 2).contains(&size),
                "{field_count} of {key}: {size}, not {sent}"
            );
        }
    }

    #[test]
    fn every_newer_command_that_writes_is_logged_as_another() {
        // A new command that is logged as it is needs words of Redis 7.0 in `send`.
        let known = [
            "hexpire",
            "hexpireat",
            "hgetdel",
            "hgetex",
            "hpersist",
            "hpexpire",
            "hpexpireat",
            "hsetex",
        ];
        let is_newer = |info: &Info| info.is(WRITE) && is_newer(info.since);
        let newer = commands::all().map(|command| &command.info).filter(|info| is_newer(info));
        let mut names: Vec<&str> = newer.map(|info| info.name).collect();
        names.sort_unstable();
        assert_eq!(names, known);
    }
}
