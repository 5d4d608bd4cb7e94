//! Whether two replies to a command are alike, but for what may differ: order where there is none,
//! random picks, times.

use super::patterns::WRAPPER;
use quipu_bench::resp::Reply;
use std::cmp::Ordering;

/// Milliseconds since the epoch begin here: what is larger and stands for a time is one.
const EPOCH_MS_MIN: i64 = 1_000_000_000_000;
/// Milliseconds that may lie between the moments at which two servers do the same command.
const SLACK_MS: i64 = 5000;

/// What a command's name is, in lower case.
pub fn name_of(command: &[Vec<u8>]) -> String {
    let name = command.first().map_or(&[][..], Vec::as_slice);
    String::from_utf8_lossy(name).to_ascii_lowercase()
}

/// Whether two replies to one command are alike. `queued` are the commands that `EXEC` answers.
pub fn is_alike(
    command: &[Vec<u8>],
    queued: &[Vec<Vec<u8>>],
    ours: &Reply,
    theirs: &Reply,
) -> bool {
    if ours == theirs || is_known(ours, theirs) {
        return true;
    }
    let name = name_of(command);
    if name == "exec" {
        let (Reply::List(_, ours), Reply::List(_, theirs)) = (ours, theirs) else { return false };
        let is_same_size = ours.len() == queued.len() && theirs.len() == queued.len();
        let mut pairs = queued.iter().zip(ours.iter().zip(theirs));
        return is_same_size
            && pairs.all(|(command, (ours, theirs))| is_alike(command, &[], ours, theirs));
    }
    if let Some(inner) = in_script(command) {
        return is_alike(inner, &[], ours, theirs);
    }
    if let Some(slack) = slack(&name) {
        return match (ours, theirs) {
            (Reply::Int(ours), Reply::Int(theirs)) => {
                0 < *ours && 0 < *theirs && (ours - theirs).abs() <= slack
            }
            _ => false,
        };
    }
    let (mut ours, mut theirs) = (ours.clone(), theirs.clone());
    normalise(&name, command, &mut ours);
    normalise(&name, command, &mut theirs);
    ours == theirs
}

/// Whether two replies differ for a reason that is known and stays.
fn is_known(ours: &Reply, theirs: &Reply) -> bool {
    let (Reply::Line(b'-', ours), Reply::Line(b'-', theirs)) = (ours, theirs) else { return false };
    // Since 7.2 these take `WITHSCORE`, and that one a command without arguments.
    let newer = [
        &b"ERR wrong number of arguments for 'zrank'"[..],
        b"ERR wrong number of arguments for 'zrevrank'",
        b"ERR wrong number of arguments for 'command|getkeys'",
    ];
    if newer.iter().any(|newer| theirs.starts_with(newer)) {
        return true;
    }
    // Errors are text: where they show bytes of a client that are none, only the words before count.
    let is_odd = ours.windows(3).any(|bytes| bytes == "\u{fffd}".as_bytes()) || ours.contains(&0);
    let words = |line: &Vec<u8>| line.split(|byte| *byte == b'\'').next().map(<[u8]>::to_vec);
    is_odd && words(ours) == words(theirs)
}

/// The command that a script of ours runs.
pub fn in_script(command: &[Vec<u8>]) -> Option<&[Vec<u8>]> {
    (command.get(1).map(Vec::as_slice) == Some(WRAPPER)).then(|| command.get(3..))?
}

/// How far the answers of a command about times may be apart.
fn slack(name: &str) -> Option<i64> {
    match name {
        "ttl" | "expiretime" => Some(SLACK_MS / 1000),
        "pttl" | "pexpiretime" => Some(SLACK_MS),
        _ => None,
    }
}

fn has(command: &[Vec<u8>], word: &str) -> bool {
    command.iter().any(|one| one.eq_ignore_ascii_case(word.as_bytes()))
}

fn normalise(name: &str, command: &[Vec<u8>], reply: &mut Reply) {
    match name {
        "smembers" | "sunion" | "sinter" | "sdiff" | "keys" | "hkeys" | "hvals" | "spop" => {
            sort(reply, 1)
        }
        "hgetall" => sort(reply, 2),
        // By a key of no use the order is that of the set.
        "sort" | "sort_ro" if has(command, "by") => sort(reply, 1),
        "scan" | "sscan" => scanned(reply, 1),
        "hscan" | "zscan" => scanned(reply, 2),
        "srandmember" | "hrandfield" | "zrandmember" | "randomkey" => shape(reply),
        "geosearch"
        | "georadius"
        | "georadiusbymember"
        | "georadius_ro"
        | "georadiusbymember_ro"
            if !has(command, "asc") && !has(command, "desc") =>
        {
            sort(reply, 1);
        }
        "xpending" => each(reply, &mut |entry| {
            if let Reply::List(_, fields) = entry
                && let [_, _, idle @ Reply::Int(_), Reply::Int(_)] = fields.as_mut_slice()
            {
                *idle = Reply::Int(0);
            }
        }),
        "xinfo" => info_of_stream(reply),
        "function" => each(reply, &mut |one| {
            // Functions of a library have no order.
            if let Reply::List(_, items) = one
                && items.iter().all(|item| matches!(item, Reply::List(..)))
            {
                items.sort();
            }
        }),
        _ => {}
    }
}

/// Sorts a list whose entries are so many elements each.
fn sort(reply: &mut Reply, size: usize) {
    let Reply::List(_, items) = reply else { return };
    let mut entries: Vec<Vec<Reply>> = items.chunks(size).map(<[Reply]>::to_vec).collect();
    entries.sort_by(|a, b| a.partial_cmp(b).unwrap_or(Ordering::Equal));
    *items = entries.concat();
}

fn scanned(reply: &mut Reply, size: usize) {
    let Reply::List(_, parts) = reply else { return };
    let [cursor, items] = parts.as_mut_slice() else { return };
    if *cursor == Reply::Bulk(b"0".to_vec()) {
        return sort(items, size);
    }
    // How far a scan comes is the server's to choose.
    parts.clear();
}

/// Leaves of random picks how many there are.
fn shape(reply: &mut Reply) {
    match reply {
        Reply::Bulk(bytes) => bytes.clear(),
        Reply::List(_, items) => items.iter_mut().for_each(shape),
        Reply::Line(b',', number) => number.clear(),
        _ => {}
    }
}

fn each(reply: &mut Reply, change: &mut dyn FnMut(&mut Reply)) {
    change(reply);
    if let Reply::List(_, items) = reply {
        items.iter_mut().for_each(|item| each(item, change));
    }
}

/// Forgets times, and how Redis keeps a stream inside.
fn info_of_stream(reply: &mut Reply) {
    each(reply, &mut |one| match one {
        Reply::Int(number) if EPOCH_MS_MIN < *number => *number = 0,
        Reply::List(_, items) => {
            for at in 1..items.len() {
                let Reply::Bulk(name) = &items[at - 1] else { continue };
                let is_inside = [&b"radix-tree-keys"[..], b"radix-tree-nodes", b"idle"];
                if is_inside.contains(&name.as_slice()) {
                    items[at] = Reply::Int(0);
                }
            }
            // What Redis has since 7.2.
            let is_newer = |item: &Reply| matches!(item, Reply::Bulk(name) if name == b"inactive" || name == b"active-time");
            while let Some(at) = items.iter().position(is_newer) {
                items.drain(at..items.len().min(at + 2));
            }
        }
        _ => {}
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use quipu_bench::resp::words;

    fn list(items: &[&str]) -> Reply {
        Reply::List(b'*', items.iter().map(|item| Reply::Bulk(item.as_bytes().to_vec())).collect())
    }

    #[test]
    fn order_counts_where_there_is_one() {
        let (one, other) = (list(&["a", "1", "b", "2"]), list(&["b", "2", "a", "1"]));
        let is_alike = |name: &str| is_alike(&words(&[name]), &[], &one, &other);
        assert!(is_alike("HGETALL") && is_alike("smembers"));
        assert!(!is_alike("LRANGE"));
        let crossed = list(&["a", "2", "b", "1"]);
        assert!(!super::is_alike(&words(&["hgetall"]), &[], &one, &crossed));
    }

    #[test]
    fn what_a_transaction_answers_is_compared_one_by_one() {
        let queued = [words(&["PTTL", "a"]), words(&["GET", "a"])];
        let reply = |ttl| Reply::List(b'*', vec![Reply::Int(ttl), Reply::Null(b'$')]);
        let exec = words(&["EXEC"]);
        assert!(is_alike(&exec, &queued, &reply(100_000), &reply(99_990)));
        assert!(!is_alike(&exec, &queued, &reply(100_000), &reply(-1)));
        assert!(!is_alike(&exec, &queued[..1], &reply(100_000), &reply(99_990)));
    }
}
