//! What stands for a placeholder: keys of each type, numbers in and out of range, members, times.

use quipu_bench::resp::Words;
use rng::Random;

/// Keys of a kind.
const KEYS: u64 = 4;
/// The kinds of keys, as placeholders name them: strings, lists, sets, hashes, sorted sets, streams,
/// strings of bits, estimates of counts, places.
pub const KINDS: [char; 9] = ['s', 'l', 'e', 'h', 'z', 'x', 'b', 'p', 'g'];
/// Seconds since the epoch in 2100.
const FAR_S: u64 = 4_102_444_800;

/// What is put where something else should be.
const JUNK: &[&[u8]] = &[
    b"",
    b"-1",
    b"0",
    b"1",
    b"-0",
    b"nan",
    b"inf",
    b"-inf",
    b"+inf",
    b"infinity",
    b"9223372036854775807",
    b"9223372036854775808",
    b"-9223372036854775808",
    b"-9223372036854775809",
    b"18446744073709551615",
    b"18446744073709551616",
    b"4294967296",
    b"1e400",
    b"1.5",
    b"1e3",
    b" 1",
    b"1 ",
    b"+1",
    b"01",
    b"abc",
    b"\x00\xff",
    b"0x10",
    b"(1",
    b"[a",
    b"(a",
    b"(inf",
    b"-",
    b"+",
    b"*",
    b"$",
    b">",
    b"1-1",
    b"0-0",
    b"1-",
    b"-5-1",
    b"1-18446744073709551615",
    b"COUNT",
    b"LIMIT",
    b"WITHSCORES",
    b"NX",
    b"XX",
    b"GET",
    b"STORE",
    b"u8",
    b"i64",
    b"u64",
    b"#1",
    b"~",
    b"=",
];

fn one<'a>(list: &[&'a [u8]], random: &mut Random) -> &'a [u8] {
    list[random.below(list.len() as u64) as usize]
}

fn number(number: impl ToString) -> Vec<u8> {
    number.to_string().into_bytes()
}

/// A word for a placeholder.
pub fn draw(name: &str, random: &mut Random) -> Vec<u8> {
    let below = |bound: u64, random: &mut Random| random.below(bound) as i64;
    match name {
        // One key of each kind is mostly used as what it is.
        "k" => any_key(random),
        "s" | "l" | "e" | "h" | "z" | "x" | "b" | "p" | "g" => key(name, random),
        "i" => number(below(26, random) - 8),
        "n" => number(below(6, random)),
        "N" => number(1 + below(20, random)),
        "f" => float(random),
        "v" => value(random),
        "m" => format!("m{}", random.below(12)).into_bytes(),
        "im" if random.below(4) != 0 => number(below(12, random)),
        "im" => format!("m{}", random.below(6)).into_bytes(),
        "d" => format!("f{}", random.below(8)).into_bytes(),
        "bit" => number(random.below(2)),
        "o" => number(below(300, random)),
        "type" => {
            format!("{}{}", ["u", "i"][random.below(2) as usize], 1 + random.below(64)).into_bytes()
        }
        "at" if random.below(2) == 0 => number(format!("#{}", random.below(20))),
        "at" => number(random.below(200)),
        // Apart enough for which is greater not to depend on when they were sent.
        "sec" if random.below(3) == 0 => number(0 - random.below(2) as i64),
        "sec" => number(5000 + 100 * random.below(1000)),
        "ms" if random.below(3) == 0 => number(-100 * below(2, random)),
        "ms" => number(5_000_000 + 100_000 * random.below(1000)),
        "until" if random.below(5) == 0 => number(1_000_000_000),
        "until" => number(FAR_S + random.below(100)),
        "untilms" if random.below(5) == 0 => number(1_000_000_000_000u64),
        "untilms" => number(FAR_S * 1000 + random.below(100_000)),
        "id" => id(random),
        "newid" => new_id(random),
        "edge" => edge(random),
        "grp" => format!("grp{}", random.below(3)).into_bytes(),
        "con" => format!("con{}", random.below(3)).into_bytes(),
        "zmin" | "zmax" => score_bound(random),
        "lexmin" | "lexmax" => lex_bound(random),
        "lon" => number(float_between(-180, 180, random)),
        "lat" => number(float_between(-85, 85, random)),
        "unit" => one(&[b"m", b"km", b"mi", b"ft"], random).to_vec(),
        "radius" => number([10, 500, 3000, 20_000][random.below(4) as usize]),
        "glob" => one(&[b"*", b"m*", b"f?", b"[ms]*", b"m[0-5]", b"\\m1", b"x"], random).to_vec(),
        "by" => one(&[b"s*", b"h*->f1", b"nosort", b"x", b"h*->f2"], random).to_vec(),
        "getby" => one(&[b"s*", b"h*->f1", b"#", b"*->f1", b"h*"], random).to_vec(),
        "star" => b"*".to_vec(),
        // All its scores are alike: what a range by names is of others nobody says.
        "y" => format!("y{}", random.below(2)).into_bytes(),
        "q" => format!("q{}", random.below(3)).into_bytes(),
        "u" => format!("user:{}", random.below(1500)).into_bytes(),
        "w" => format!("wide:{}", random.below(30)).into_bytes(),
        "json" => json(random).into_bytes(),
        "idle" => number([0, 0, 0, 1_000_000_000][random.below(4) as usize]),
        _ => unreachable!("an unknown placeholder <{name}>"),
    }
}

fn json(random: &mut Random) -> String {
    let (name, more) = (random.below(100_000), random.below(40) as usize);
    let tags = "\"tag\",".repeat(more);
    format!("{{\"name\":\"user {name}\",\"active\":true,\"tags\":[{tags}{}]}}", random.next())
}

fn key(kind: &str, random: &mut Random) -> Vec<u8> {
    if random.below(30) == 0 {
        return any_key(random);
    }
    format!("{kind}{}", random.below(KEYS)).into_bytes()
}

fn any_key(random: &mut Random) -> Vec<u8> {
    let kind = KINDS[random.below(KINDS.len() as u64) as usize];
    format!("{kind}{}", random.below(KEYS)).into_bytes()
}

fn float_between(min: i64, max: i64, random: &mut Random) -> String {
    let whole = min + random.below((max - min) as u64) as i64;
    format!("{whole}.{}", random.below(1000))
}

fn float(random: &mut Random) -> Vec<u8> {
    const ODD: &[&[u8]] =
        &[b"inf", b"-inf", b"0", b"-0", b"1e20", b"1.5e-10", b"3.0", b"1e17", b"123456789012"];
    match random.below(8) {
        0 => one(ODD, random).to_vec(),
        1 => number(float_between(-20, 20, random)),
        _ => number(random.below(20) as i64 - 6),
    }
}

fn value(random: &mut Random) -> Vec<u8> {
    match random.below(12) {
        0..=3 => number(random.below(200) as i64 - 50),
        4 => number(float_between(-20, 20, random)),
        5 => one(JUNK, random).to_vec(),
        6 => {
            let size = random.below(200) as usize;
            (0..size).map(|_| b'a' + random.below(4) as u8).collect()
        }
        7 => (0..random.below(20)).map(|_| random.next() as u8).collect(),
        _ => format!("v{}", random.below(20)).into_bytes(),
    }
}

fn id(random: &mut Random) -> Vec<u8> {
    match random.below(12) {
        0 => b"0".to_vec(),
        1 => b"$".to_vec(),
        2 => b"-".to_vec(),
        3 => number(random.below(60)),
        _ => format!("{}-{}", random.below(60), random.below(4)).into_bytes(),
    }
}

fn new_id(random: &mut Random) -> Vec<u8> {
    match random.below(8) {
        0 => format!("{}-*", 1 + random.below(60)).into_bytes(),
        1 => id(random),
        2 => number(1 + random.below(80)),
        _ => format!("{}-{}", random.below(90), random.below(5)).into_bytes(),
    }
}

fn edge(random: &mut Random) -> Vec<u8> {
    match random.below(8) {
        0 | 1 => b"-".to_vec(),
        2 | 3 => b"+".to_vec(),
        4 => [b"(".to_vec(), id(random)].concat(),
        _ => id(random),
    }
}

fn score_bound(random: &mut Random) -> Vec<u8> {
    match random.below(6) {
        0 => b"-inf".to_vec(),
        1 => b"+inf".to_vec(),
        2 => [b"(".to_vec(), float(random)].concat(),
        _ => float(random),
    }
}

fn lex_bound(random: &mut Random) -> Vec<u8> {
    match random.below(5) {
        0 => b"-".to_vec(),
        1 => b"+".to_vec(),
        2 => format!("(m{}", random.below(12)).into_bytes(),
        _ => format!("[m{}", random.below(12)).into_bytes(),
    }
}

/// Makes something else of a command: arguments missing, doubled, exchanged, of another kind.
pub fn spoil(words: &mut Words, random: &mut Random) {
    for _ in 0..1 + random.below(2) {
        let at = 1 + random.below(words.len() as u64) as usize;
        let junk = match random.below(4) {
            0 => value(random),
            1 => any_key(random),
            _ => one(JUNK, random).to_vec(),
        };
        match random.below(6) {
            0 if at < words.len() => drop(words.remove(at)),
            1 => words.insert(at, junk),
            2 if at < words.len() => words.insert(at, words[at].clone()),
            3 if 2 < words.len() => {
                let other = 1 + random.below(words.len() as u64 - 1) as usize;
                let at = at.min(words.len() - 1);
                words.swap(at, other);
            }
            _ if at < words.len() => words[at] = junk,
            _ => words.truncate(at),
        }
    }
}

/// Takes out of a command what two servers would rightly do differently: times that pass while a
/// sequence runs, and ids that are made of the time.
pub fn make_certain(words: &mut Words) {
    let name = super::name_of(words);
    let is_about_times = [
        "set",
        "getex",
        "setex",
        "psetex",
        "expire",
        "pexpire",
        "restore",
        "xclaim",
        "xautoclaim",
        "xpending",
    ];
    let is_small = |word: &Vec<u8>| {
        let number = std::str::from_utf8(word).ok().and_then(|text| text.parse::<i64>().ok());
        number.is_some_and(|number| (1..=9999).contains(&number))
    };
    match name.as_str() {
        "xadd" => words
            .iter_mut()
            .skip(2)
            .filter(|word| *word == b"*")
            .for_each(|word| *word = b"7-*".to_vec()),
        // The word behind one that says what it is, or the one in the place of a time.
        name if is_about_times.contains(&name) => {
            for at in 2..words.len() {
                let before = words[at - 1].to_ascii_lowercase();
                let is_time = [&b"ex"[..], b"px", b"idle"].contains(&before.as_slice());
                let is_in_place = match name {
                    "set" | "getex" | "xpending" => false,
                    "xclaim" | "xautoclaim" => at == 4,
                    _ => at == 2,
                };
                if (is_time || is_in_place) && is_small(&words[at]) {
                    words[at] = b"0".to_vec();
                }
            }
        }
        _ => {}
    }
}
