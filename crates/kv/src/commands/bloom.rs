//! Bloom filters: whether an element was added, or may have been.

use super::{Command, DENY_OOM, FAST, Group, ONE_KEY, READONLY, WRITE, command};
use crate::call::Call;
use crate::error::{CommandError, NOT_INTEGER};
use crate::keyspace::Expire;
use crate::number::{parse_f64, parse_i64};
use crate::reply::Reply;
use crate::value::bloom::{BloomConfig, Full};
use crate::value::{Bloom, Stored};

/// The family's commands.
#[rustfmt::skip] // a table
pub const COMMANDS: &[Command] = &[
    command("bf.add", 3, WRITE | DENY_OOM | FAST, ONE_KEY, Group::Bloom, "1.0.0", "Adds an element to a bloom filter, which is made if it is not there.", add),
    command("bf.card", 2, READONLY | FAST, ONE_KEY, Group::Bloom, "2.4.4", "How many elements were added to a bloom filter.", card),
    command("bf.exists", 3, READONLY | FAST, ONE_KEY, Group::Bloom, "1.0.0", "Whether an element may have been added.", exists),
    command("bf.info", -2, READONLY | FAST, ONE_KEY, Group::Bloom, "1.0.0", "What is known of a bloom filter.", info),
    command("bf.insert", -4, WRITE | DENY_OOM | FAST, ONE_KEY, Group::Bloom, "1.0.0", "Adds elements to a bloom filter, which is made as told if it is not there.", insert),
    command("bf.loadchunk", 4, WRITE | DENY_OOM, ONE_KEY, Group::Bloom, "1.0.0", "Restores a part of a bloom filter that BF.SCANDUMP gave.", load_chunk),
    command("bf.madd", -3, WRITE | DENY_OOM | FAST, ONE_KEY, Group::Bloom, "1.0.0", "Adds elements to a bloom filter, which is made if it is not there.", multi_add),
    command("bf.mexists", -3, READONLY | FAST, ONE_KEY, Group::Bloom, "1.0.0", "Whether elements may have been added.", multi_exists),
    command("bf.reserve", -4, WRITE | DENY_OOM | FAST, ONE_KEY, Group::Bloom, "1.0.0", "Makes an empty bloom filter.", reserve),
    command("bf.scandump", 3, READONLY, ONE_KEY, Group::Bloom, "1.0.0", "A part of a bloom filter, and where to go on.", scan_dump),
];

/// How filters are made about which nothing is said.
const DEFAULT: BloomConfig = BloomConfig { capacity: 100, error: 0.01, growth: 2 };
/// Bytes of a part of a dump.
const CHUNK_SIZE: usize = 16 << 20;

fn words(words: &'static str) -> CommandError {
    CommandError::new(words)
}

fn capacity_arg(text: &[u8], invalid: &'static str) -> Result<u64, CommandError> {
    let capacity = parse_i64(text).ok_or(words(invalid))?;
    match u64::try_from(capacity) {
        Ok(capacity) if 0 < capacity => Ok(capacity),
        _ => Err(words("ERR (capacity should be larger than 0)")),
    }
}

fn error_arg(text: &[u8], invalid: &'static str) -> Result<f64, CommandError> {
    let error = parse_f64(text).ok_or(words(invalid))?;
    match 0.0 < error && error < 1.0 {
        true => Ok(error),
        false => Err(words("ERR (0 < error rate range < 1)")),
    }
}

fn growth_arg(text: &[u8]) -> Result<u32, CommandError> {
    let growth = parse_i64(text).ok_or(words("ERR bad expansion"))?;
    match u32::try_from(growth) {
        Ok(growth) if 0 < growth => Ok(growth),
        _ => Err(words("ERR expansion should be greater or equal to 1")),
    }
}

/// Makes a filter that is not there.
fn create(call: &mut Call<'_>, key: &[u8], config: BloomConfig) -> Result<(), CommandError> {
    call.keys.take_room(config.size().unwrap_or(0))?;
    let bloom = Bloom::new(config).ok_or(words("ERR could not create filter"))?;
    call.put(key, bloom.into_value(), Expire::Never)
}

fn reserve(call: &mut Call<'_>) -> Result<(), CommandError> {
    let key = call.args[1];
    let mut config = BloomConfig {
        error: error_arg(call.args[2], "ERR bad error rate")?,
        capacity: capacity_arg(call.args[3], "ERR bad capacity")?,
        ..DEFAULT
    };
    let (mut growth, mut is_scaling) = (None, true);
    let mut rest = &call.args[4..];
    while let [word, more @ ..] = rest {
        rest = more;
        match (word.to_ascii_lowercase().as_slice(), more) {
            (b"nonscaling", _) => is_scaling = false,
            (b"expansion", [number, more @ ..]) => {
                growth = Some(growth_arg(number)?);
                rest = more;
            }
            (b"expansion", []) => return Err(words("ERR no expansion")),
            _ => return Err(CommandError::arity(call.command.info.name)),
        }
    }
    config.growth = growth.unwrap_or(DEFAULT.growth);
    if !is_scaling {
        if growth.is_some() {
            return Err(words("ERR Nonscaling filters cannot expand"));
        }
        config.growth = 0;
    }
    if call.get::<Bloom>(key)?.is_some() {
        return Err(words("ERR item exists"));
    }
    create(call, key, config)?;
    call.out.ok();
    Ok(())
}

// ---- elements ----

fn refusal(full: Full) -> &'static str {
    match full {
        Full::NotScaling => "ERR non scaling filter is full",
        Full::TooLarge => "ERR problem inserting into filter",
    }
}

/// Adds elements to a filter that is there, up to the first that is refused.
fn add_all(
    call: &mut Call<'_>,
    key: &[u8],
    elements: &[&[u8]],
) -> Result<Vec<Result<bool, Full>>, CommandError> {
    let mut results = Vec::with_capacity(elements.len());
    let Some(bloom) = call.get_mut::<Bloom>(key)? else { return Ok(results) };
    for element in elements {
        let result = bloom.add(element);
        results.push(result);
        if result.is_err() {
            break;
        }
    }
    if results.contains(&Ok(true)) {
        call.modified(key);
    }
    Ok(results)
}

fn answer_added(call: &mut Call<'_>, result: Result<bool, Full>) {
    match result {
        Ok(is_new) => call.out.bool(is_new),
        Err(full) => call.out.error(refusal(full)),
    }
}

fn ensure(call: &mut Call<'_>, key: &[u8], config: BloomConfig) -> Result<(), CommandError> {
    match call.get::<Bloom>(key)? {
        Some(_) => Ok(()),
        None => create(call, key, config),
    }
}

fn add(call: &mut Call<'_>) -> Result<(), CommandError> {
    let key = call.args[1];
    ensure(call, key, DEFAULT)?;
    for result in add_all(call, key, &call.args[2..])? {
        answer_added(call, result);
    }
    Ok(())
}

fn answer_all(call: &mut Call<'_>, elements: &[&[u8]]) -> Result<(), CommandError> {
    let results = add_all(call, call.args[1], elements)?;
    call.out.array(results.len());
    for result in results {
        answer_added(call, result);
    }
    Ok(())
}

fn multi_add(call: &mut Call<'_>) -> Result<(), CommandError> {
    ensure(call, call.args[1], DEFAULT)?;
    answer_all(call, &call.args[2..])
}

fn insert(call: &mut Call<'_>) -> Result<(), CommandError> {
    let key = call.args[1];
    let (mut config, mut creates, mut is_scaling, mut has_growth) = (DEFAULT, true, true, false);
    let mut rest = &call.args[2..];
    let elements = loop {
        let [word, more @ ..] = rest else {
            return Err(CommandError::arity(call.command.info.name));
        };
        rest = more;
        match (word.to_ascii_lowercase().as_slice(), more) {
            (b"items", []) => return Err(CommandError::arity(call.command.info.name)),
            (b"items", elements) => break elements,
            (b"nocreate", _) => creates = false,
            (b"nonscaling", _) => is_scaling = false,
            (b"capacity", [number, more @ ..]) => {
                config.capacity = capacity_arg(number, "ERR Bad capacity")?;
                rest = more;
            }
            (b"error", [number, more @ ..]) => {
                config.error = error_arg(number, "ERR Bad error rate")?;
                rest = more;
            }
            (b"expansion", [number, more @ ..]) => {
                config.growth = growth_arg(number)?;
                has_growth = true;
                rest = more;
            }
            _ => return Err(words("ERR Unknown argument received")),
        }
    };
    if !is_scaling {
        if has_growth {
            return Err(words("ERR Nonscaling filters cannot expand"));
        }
        config.growth = 0;
    }
    if creates {
        ensure(call, key, config)?;
    } else if call.get::<Bloom>(key)?.is_none() {
        return Err(words("ERR not found"));
    }
    answer_all(call, elements)
}

fn exists(call: &mut Call<'_>) -> Result<(), CommandError> {
    let bloom = call.keys.get::<Bloom>(call.db, call.args[1])?;
    call.out.bool(bloom.is_some_and(|bloom| bloom.has(call.args[2])));
    Ok(())
}

fn multi_exists(call: &mut Call<'_>) -> Result<(), CommandError> {
    let bloom = call.keys.get::<Bloom>(call.db, call.args[1])?;
    call.out.array(call.args.len() - 2);
    for element in &call.args[2..] {
        call.out.bool(bloom.is_some_and(|bloom| bloom.has(element)));
    }
    Ok(())
}

fn card(call: &mut Call<'_>) -> Result<(), CommandError> {
    let count = call.get::<Bloom>(call.args[1])?.map_or(0, Bloom::count);
    call.out.int(i64::try_from(count).unwrap_or(i64::MAX));
    Ok(())
}

/// What `BF.INFO` shows: the word that asks for it, its name, the number.
fn facts(bloom: &Bloom) -> [(&'static [u8], &'static str, Option<u64>); 5] {
    let growth = bloom.is_scaling().then(|| u64::from(bloom.growth()));
    [
        (b"capacity", "Capacity", Some(bloom.capacity())),
        (b"size", "Size", Some(bloom.shown_size() as u64)),
        (b"filters", "Number of filters", Some(bloom.filter_count() as u64)),
        (b"items", "Number of items inserted", Some(bloom.count())),
        (b"expansion", "Expansion rate", growth),
    ]
}

fn answer_fact(out: &mut dyn Reply, number: Option<u64>) {
    match number {
        Some(number) => out.int(i64::try_from(number).unwrap_or(i64::MAX)),
        None => out.null(),
    }
}

fn info(call: &mut Call<'_>) -> Result<(), CommandError> {
    if 3 < call.args.len() {
        return Err(CommandError::arity(call.command.info.name));
    }
    let bloom = call.keys.get::<Bloom>(call.db, call.args[1])?.ok_or(words("ERR not found"))?;
    let facts = facts(bloom);
    if let Some(word) = call.args.get(2) {
        let fact = facts.iter().find(|(name, ..)| word.eq_ignore_ascii_case(name));
        let (_, name, number) = fact.ok_or(words("ERR Invalid information value"))?;
        match call.out.version() {
            3 => {
                call.out.map(1);
                call.out.simple(name);
            }
            _ => call.out.array(1),
        }
        answer_fact(call.out, *number);
        return Ok(());
    }
    call.out.map(facts.len());
    for (_, name, number) in facts {
        call.out.simple(name);
        answer_fact(call.out, number);
    }
    Ok(())
}

// ---- dumps ----

fn iterator_arg(text: &[u8]) -> Result<i64, CommandError> {
    parse_i64(text).ok_or(words("ERR Second argument must be numeric"))
}

/// A dump begins with the head, as number 1; a number behind that is 1 more than a byte's place.
fn scan_dump(call: &mut Call<'_>) -> Result<(), CommandError> {
    let iterator = iterator_arg(call.args[2])?;
    let bloom = call.keys.get::<Bloom>(call.db, call.args[1])?.ok_or(words("ERR not found"))?;
    call.out.array(2);
    if iterator == 0 {
        call.out.int(1);
        call.out.bulk(&bloom.head());
        return Ok(());
    }
    let offset = iterator.checked_sub(1).and_then(|offset| usize::try_from(offset).ok());
    match offset.and_then(|offset| Some((offset, bloom.chunk(offset, CHUNK_SIZE)?))) {
        Some((offset, chunk)) => {
            call.out.len(offset + chunk.len() + 1);
            call.out.bulk(chunk);
        }
        None => {
            call.out.int(0);
            call.out.bulk(b"");
        }
    }
    Ok(())
}

fn load_chunk(call: &mut Call<'_>) -> Result<(), CommandError> {
    let (key, chunk) = (call.args[1], call.args[3]);
    let iterator = iterator_arg(call.args[2])?;
    let is_there = call.get::<Bloom>(key)?.is_some();
    if !is_there && iterator == 1 {
        let bloom = Bloom::of_head(chunk).map_err(|_| words("ERR received bad data"))?;
        call.put(key, bloom.into_value(), Expire::Never)?;
        call.out.ok();
        return Ok(());
    }
    let bloom = call.get_mut::<Bloom>(key)?.ok_or(words("ERR not found"))?;
    let len = i64::try_from(chunk.len()).map_err(|_| NOT_INTEGER)?;
    let offset = iterator.checked_sub(1).and_then(|offset| offset.checked_sub(len));
    let offset = offset.and_then(|offset| usize::try_from(offset).ok());
    let offset = offset.ok_or(words("ERR invalid offset - no link found"))?;
    bloom.set_chunk(offset, chunk).map_err(words)?;
    call.modified(key);
    call.out.ok();
    Ok(())
}
