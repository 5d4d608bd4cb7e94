//! The same random commands for Quipu and for Redis: replies must be alike, byte by byte.
//!
//! ```text
//! patterns ─► grammar (words) ─► sequence: some in transactions and scripts, some spoiled
//!                                  │ then all keys are read, dumped and restored by the other server
//!                  Quipu ◄─────────┴────────► Redis
//!                    └─► compare: first difference ─► the shortest sequence that still has it
//! ```

pub mod compare;
pub mod grammar;
pub mod patterns;
pub mod words;

use crate::random::Random;
use crate::resp::{Reply, RespClient, Words, shown, words};
use crate::server::{Installed, RunningServer};
use anyhow::{Context, Result};
use compare::{is_alike, name_of};
use grammar::Pattern;
use indicatif::{ProgressBar, ProgressStyle};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// What runs a command in a script.
const WRAPPER: &[u8] = b"return redis.call(unpack(ARGV))";
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);
/// Commands of a sequence, before all keys are read.
const SEQUENCE: u64 = 400;
/// Differences that are described; all are counted.
const DESCRIBED_MAX: usize = 60;
/// Sequences that are tried to find a short one.
const SHRINKS_MAX: usize = 300;

/// How to run the comparison.
#[derive(Clone, Debug)]
pub struct RedisOptions {
    /// Quipu.
    pub quipu: Installed,
    /// Redis.
    pub peer: Installed,
    /// How many commands, at least.
    pub count: u64,
    /// Chooses them.
    pub seed: u64,
    /// Where directories and logs are made.
    pub dir: PathBuf,
}

/// What came out.
#[derive(Clone, Debug, Default)]
pub struct RedisSummary {
    /// Random commands with like replies.
    pub alike: u64,
    /// Among these, replies that are errors.
    pub refused: u64,
    /// Keys that were dumped by one server and restored by the other, each way.
    pub restored: u64,
    /// Sequences with a difference: the rest of each is left out.
    pub different: u64,
    /// One of each kind, as the shortest sequence that has it.
    pub differences: BTreeMap<String, String>,
}

/// Both servers' connections.
struct Pair {
    ours: RespClient,
    theirs: RespClient,
}

/// Where sequences differ.
struct Difference {
    at: usize,
    ours: Reply,
    theirs: Reply,
}

/// Asks both servers.
///
/// # Errors
/// When a server cannot be started or asked.
pub fn run(options: &RedisOptions) -> Result<RedisSummary> {
    let start = |installed: &Installed, name: &str| -> Result<RunningServer> {
        let dir = options.dir.join(name);
        std::fs::create_dir_all(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
        RunningServer::start(installed, &dir, &options.dir.join(format!("{name}.log")))
    };
    let (quipu, peer) = (start(&options.quipu, "quipu")?, start(&options.peer, "peer")?);
    let servers = [quipu.authority(), peer.authority()];
    let patterns = Patterns::new(patterns::FAMILIES);
    let mut summary = RedisSummary::default();
    let style = ProgressStyle::with_template("{pos}/{len} {bar:40} {elapsed}, {eta} left")?;
    let progress = ProgressBar::new(options.count).with_style(style);
    let mut seed = options.seed;
    while summary.alike < options.count && summary.differences.len() < DESCRIBED_MAX {
        let mut random = Random::new(seed);
        let protocol = [b"2", b"3"][random.below(2) as usize];
        let sequence = patterns.sequence(&mut random);
        check(servers, protocol, &sequence, seed, &mut summary)?;
        seed += 1;
        progress.set_position(summary.alike);
    }
    progress.finish_and_clear();
    quipu.stop()?;
    peer.stop()?;
    Ok(summary)
}

/// Runs a sequence and notes what differs.
fn check(
    servers: [&str; 2],
    protocol: &[u8],
    sequence: &[Words],
    seed: u64,
    summary: &mut RedisSummary,
) -> Result<()> {
    let mut pair = Pair::fresh(servers, protocol)?;
    let compared = pair.compare(sequence);
    let (difference, refused) = compared.with_context(|| format!("seed {seed}"))?;
    summary.refused += refused;
    let Some(difference) = difference else {
        summary.alike += sequence.len() as u64;
        match pair.exchange()? {
            Ok(restored) => summary.restored += restored,
            Err(what) => {
                summary.different += 1;
                let kind = what.split(' ').next().unwrap_or_default().to_string();
                summary.differences.entry(kind).or_insert(format!("seed {seed}: {what}"));
            }
        }
        return Ok(());
    };
    summary.alike += difference.at as u64;
    summary.different += 1;
    let kind = kind_of(&sequence[difference.at], &difference);
    if !summary.differences.contains_key(&kind) {
        let (short, difference) = shrink(servers, protocol, sequence, difference);
        let kind = kind_of(&short[difference.at], &difference);
        let mut text = format!("seed {seed}, RESP{}:", String::from_utf8_lossy(protocol));
        short.iter().for_each(|command| text += &format!("\n    {}", shown(command)));
        let cut = |reply: &Reply| reply.shown().chars().take(1500).collect::<String>();
        text += &format!("\n  ours   {}", cut(&difference.ours));
        text += &format!("\n  theirs {}", cut(&difference.theirs));
        summary.differences.insert(kind, text);
    }
    Ok(())
}

/// What differences are likely to have the same cause.
fn kind_of(command: &[Vec<u8>], difference: &Difference) -> String {
    let inner = compare::in_script(command).unwrap_or(command);
    let kind = |reply: &Reply| match reply {
        Reply::Line(b'-', line) => String::from_utf8_lossy(line).chars().take(24).collect(),
        Reply::Line(first, _) | Reply::Null(first) | Reply::List(first, _) => {
            char::from(*first).to_string()
        }
        Reply::Int(_) => "an integer".to_string(),
        Reply::Bulk(_) | Reply::Verbatim(_) => "a string".to_string(),
    };
    format!("{} {} / {}", name_of(inner), kind(&difference.ours), kind(&difference.theirs))
}

/// The shortest sequence found that still differs at a command of that name.
fn shrink(
    servers: [&str; 2],
    protocol: &[u8],
    sequence: &[Words],
    difference: Difference,
) -> (Vec<Words>, Difference) {
    let name = name_of(&sequence[difference.at]);
    let mut best = (sequence[..=difference.at].to_vec(), difference);
    let (mut size, mut tried) = (best.0.len() / 2, 0);
    while 0 < size && tried < SHRINKS_MAX {
        let mut end = best.0.len() - 1;
        while 0 < end && tried < SHRINKS_MAX {
            let start = end.saturating_sub(size);
            let mut shorter = best.0.clone();
            shorter.drain(start..end);
            tried += 1;
            end = start;
            let compared =
                Pair::fresh(servers, protocol).and_then(|mut pair| pair.compare(&shorter));
            let Ok((Some(difference), _)) = compared else { continue };
            if name_of(&shorter[difference.at]) == name {
                shorter.truncate(difference.at + 1);
                end = end.min(shorter.len() - 1);
                best = (shorter, difference);
            }
        }
        size /= 2;
    }
    best
}

impl Pair {
    /// New connections to servers without keys.
    fn fresh(servers: [&str; 2], protocol: &[u8]) -> Result<Pair> {
        let connect = |authority: &str| -> Result<RespClient> {
            let mut client = RespClient::connect(authority, ANSWER_TIMEOUT)?;
            let (hello, flush) = (words(&[b"HELLO", protocol]), words(&["FLUSHALL"]));
            let scripts = [words(&["SCRIPT", "FLUSH"]), words(&["FUNCTION", "FLUSH"])];
            client.pipeline(&[[flush, hello].as_slice(), &scripts].concat())?;
            Ok(client)
        };
        Ok(Pair { ours: connect(servers[0])?, theirs: connect(servers[1])? })
    }

    /// The first difference, and how many replies before it were errors.
    fn compare(&mut self, sequence: &[Words]) -> Result<(Option<Difference>, u64)> {
        let (ours, theirs) = (self.ours.pipeline(sequence), self.theirs.pipeline(sequence));
        let (ours, theirs) = (ours.context("Quipu")?, theirs.context("Redis")?);
        let (mut queued, mut refused) = (Vec::new(), 0);
        for (at, (ours, theirs)) in ours.into_iter().zip(theirs).enumerate() {
            let command = &sequence[at];
            if !is_alike(command, &queued, &ours, &theirs) {
                return Ok((Some(Difference { at, ours, theirs }), refused));
            }
            refused += u64::from(ours.is_error());
            match ours {
                Reply::Line(b'+', line) if line == b"QUEUED" => queued.push(command.clone()),
                _ if ["exec", "discard"].contains(&name_of(command).as_str()) => queued.clear(),
                _ => {}
            }
        }
        Ok((None, refused))
    }

    /// Has each server restore what the other one dumps, and compares all that comes of it. Returns
    /// how many keys that were, or what went wrong.
    fn exchange(&mut self) -> Result<std::result::Result<u64, String>> {
        let keys = words::keys();
        let dumps: Vec<Words> = keys.iter().map(|key| words(&[b"DUMP", key.as_slice()])).collect();
        let (ours, theirs) = (self.ours.pipeline(&dumps)?, self.theirs.pipeline(&dumps)?);
        let mut count = 0;
        for (key, (ours, theirs)) in keys.iter().zip(ours.into_iter().zip(theirs)) {
            let (Reply::Bulk(ours), Reply::Bulk(theirs)) = (&ours, &theirs) else { continue };
            let restore =
                |dump: &Vec<u8>| words(&[b"RESTORE", key.as_slice(), b"0", dump, b"REPLACE"]);
            for (client, dump) in [(&mut self.theirs, ours), (&mut self.ours, theirs)] {
                let reply = client.call(&restore(dump))?;
                if reply.is_error() {
                    let dump = dump.escape_ascii();
                    return Ok(Err(format!(
                        "RESTORE of {}: {}: {dump}",
                        key.escape_ascii(),
                        reply.shown()
                    )));
                }
            }
            count += 1;
        }
        let reads = reads();
        Ok(match self.compare(&reads)?.0 {
            None => Ok(count),
            Some(Difference { at, ours, theirs }) => {
                let (ours, theirs) = (ours.shown(), theirs.shown());
                Err(format!(
                    "{} after RESTORE:\n  ours   {ours}\n  theirs {theirs}",
                    shown(&reads[at])
                ))
            }
        })
    }
}

/// Commands that read all there is.
fn reads() -> Vec<Words> {
    let mut reads = vec![words(&["DISCARD"]), words(&["SELECT", "0"]), words(&["DBSIZE"])];
    for key in words::keys() {
        for pattern in [
            "TYPE k",
            "PTTL k",
            "GET k",
            "LRANGE k 0 -1",
            "SMEMBERS k",
            "HGETALL k",
            "ZRANGE k 0 -1 WITHSCORES",
            "XRANGE k - +",
            "XINFO STREAM k FULL COUNT 0",
        ] {
            let word = |word: &str| if word == "k" { key.clone() } else { word.into() };
            reads.push(pattern.split(' ').map(word).collect());
        }
    }
    reads.push(words(&["KEYS", "*"]));
    reads
}

/// Patterns by family.
pub struct Patterns {
    families: Vec<(u64, Vec<Pattern>)>,
    total: u64,
}

impl Patterns {
    /// Those of some families.
    pub fn new(families: &[patterns::Family]) -> Patterns {
        let family = |(_, weight, patterns): &patterns::Family| {
            (*weight, patterns.iter().map(|text| Pattern::new(text)).collect())
        };
        let families: Vec<(u64, Vec<Pattern>)> = families.iter().map(family).collect();
        let total = families.iter().map(|(weight, _)| weight).sum();
        Patterns { families, total }
    }

    /// A sequence, and what reads all it left. Half of them are of one family for the most part.
    fn sequence(&self, random: &mut Random) -> Vec<Words> {
        let mut sequence = Vec::new();
        let favourite = (random.below(2) == 0).then(|| self.family(random));
        let mut is_queueing = false;
        while (sequence.len() as u64) < SEQUENCE {
            let any = self.family(random);
            let family = favourite.filter(|_| random.below(10) != 0).unwrap_or(any);
            let pattern = &family[random.below(family.len() as u64) as usize];
            let drawn = self.spoiled(pattern, random);
            if random.below(60) == 0 {
                sequence.push(words(&[if is_queueing { "EXEC" } else { "MULTI" }]));
                is_queueing = !is_queueing;
            }
            sequence.extend(drawn);
        }
        sequence.extend(reads());
        sequence
    }

    fn family(&self, random: &mut Random) -> &[Pattern] {
        let mut left = random.below(self.total);
        for (weight, patterns) in &self.families {
            if left < *weight {
                return patterns;
            }
            left -= weight;
        }
        &[]
    }

    /// Commands of any pattern.
    pub fn draw(&self, random: &mut Random) -> Vec<Words> {
        let family = self.family(random);
        self.spoiled(&family[random.below(family.len() as u64) as usize], random)
    }

    /// Commands of a pattern, perhaps spoiled or put into a script.
    fn spoiled(&self, pattern: &Pattern, random: &mut Random) -> Vec<Words> {
        let mut drawn = pattern.draw(random);
        if pattern.is_spoilable && random.below(12) == 0 {
            drawn.iter_mut().for_each(|command| words::spoil(command, random));
        }
        drawn.iter_mut().for_each(words::make_certain);
        if drawn.len() == 1 && pattern.is_spoilable && random.below(25) == 0 {
            let mut script = words(&[b"EVAL", WRAPPER, b"0"]);
            script.append(&mut drawn[0]);
            return vec![script];
        }
        drawn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_follow_from_their_seed() {
        let patterns = Patterns::new(patterns::FAMILIES);
        let draw = |seed| patterns.sequence(&mut Random::new(seed));
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
        for seed in 0..50 {
            assert!(SEQUENCE <= draw(seed).len() as u64);
        }
    }
}
