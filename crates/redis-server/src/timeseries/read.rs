//! `TS.READ`: samples from a time on, oldest first; may wait for them.
//!
//! One that waits is said again by its own connection whenever a sample comes to the key by this door,
//! with the milliseconds that are left. Samples that other doors write wake nobody.

use super::aggregate::Rows;
use super::range::{Query, put_rows, shown_from};
use super::samples::{self, TIME_MS_MAX};
use super::series::{self, Found, record};
use super::words::{NO_KEY, error};
use crate::commands::Flow;
use crate::dispatch::Context;
use crate::hub::Blocked;
use crate::out::Out;
use kv::call::Otherwise;
use kv::number::parse_i64;
use kv::{CommandError, Mode, Reply as _, Wait};

/// Where the milliseconds of a wait stand in the command that is said again.
const WAIT_AT: usize = 4;

/// What is asked behind the time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Options {
    /// How long to wait in milliseconds, 0 for ever, and for how many samples.
    wait: Option<(i64, usize)>,
    count_max: Option<usize>,
}

impl Options {
    fn parse(mut rest: &[&[u8]]) -> Result<Options, CommandError> {
        let mut options = Options::default();
        while let [word, others @ ..] = rest {
            rest = match (word.to_ascii_uppercase().as_slice(), others) {
                (b"BLOCK", [ms, count, others @ ..]) => {
                    let ms = parse_i64(ms).filter(|ms| 0 <= *ms);
                    let ms = ms.ok_or_else(|| error("BLOCK wants milliseconds, 0 for ever"))?;
                    options.wait = Some((ms, positive(count, "min_count")?));
                    others
                }
                (b"MAX_COUNT", [count, others @ ..]) => {
                    options.count_max = Some(positive(count, "max_count")?);
                    others
                }
                _ => {
                    return Err(error(
                        "TS.READ takes BLOCK milliseconds min_count and MAX_COUNT n",
                    ));
                }
            };
        }
        match (options.wait, options.count_max) {
            (Some((_, wanted)), Some(max)) if max < wanted => {
                Err(error("min_count cannot be more than MAX_COUNT"))
            }
            _ => Ok(options),
        }
    }
}

fn positive(text: &[u8], name: &str) -> Result<usize, CommandError> {
    let count = parse_i64(text).and_then(|count| usize::try_from(count).ok());
    count.filter(|count| 0 < *count).ok_or_else(|| error(format!("{name} must be positive")))
}

/// `TS.READ key time [BLOCK milliseconds min_count] [MAX_COUNT n]`
pub fn read(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    let (key, cursor) = (context.args[1], context.args[2]);
    let options = Options::parse(&context.args[3..])?;
    let Some(found) = find(context, key)? else {
        context.session.out.array(0);
        return Ok(Flow::Next);
    };
    let from_ms = resolved(context, &found, cursor)?;
    let shown_ms = shown_from(context, &found, from_ms)?;
    let app = &context.redis.app;
    let samples = samples::read_one(app, &found.sets, shown_ms, TIME_MS_MAX)?;
    let query = Query::of_count(options.count_max);
    match options.wait {
        Some((ms, wanted)) if samples.len() < wanted && context.mode == Mode::Client => {
            let mut otherwise = Out::new(context.session.out.version());
            put_rows(&mut otherwise, &query, &Rows::of(&samples));
            let otherwise = otherwise.0.bytes().to_vec();
            wait(context, (from_ms, ms, wanted), options.count_max, otherwise);
            Ok(Flow::Wait)
        }
        _ => {
            put_rows(&mut context.session.out, &query, &Rows::of(&samples));
            Ok(Flow::Next)
        }
    }
}

/// The series of a key, unless there is nothing.
fn find(context: &mut Context<'_, '_>, key: &[u8]) -> Result<Option<Found>, CommandError> {
    if let Some(record) = record(context, key)? {
        return Ok(Some(Found::own(key, record)));
    }
    match series::find(context, key) {
        Ok(found) => Ok(Some(found)),
        Err(error) if error == NO_KEY => Ok(None),
        Err(error) => Err(error),
    }
}

/// The first millisecond that counts.
fn resolved(
    context: &mut Context<'_, '_>,
    found: &Found,
    text: &[u8],
) -> Result<i64, CommandError> {
    match text {
        b"-" => Ok(0),
        b"+" => Ok(series::newest(context, found)?.map_or(0, |newest| newest.ms)),
        b"$" => Ok(series::newest(context, found)?.map_or(0, |newest| newest.ms + 1)),
        digits => {
            let ms = parse_i64(digits).filter(|ms| 0 <= *ms);
            ms.ok_or_else(|| error("wrong timestamp: milliseconds, -, + or $"))
        }
    }
}

/// Has the client wait for more samples of the key.
fn wait(
    context: &mut Context<'_, '_>,
    (from_ms, ms, wanted): (i64, i64, usize),
    count_max: Option<usize>,
    otherwise: Vec<u8>,
) {
    let deadline_ms = (ms != 0).then(|| context.keys.now_ms().saturating_add(ms));
    let key = context.args[1].to_vec();
    let numbers = [from_ms.to_string(), "BLOCK".to_owned(), ms.to_string(), wanted.to_string()];
    let mut arguments = vec![context.args[0].to_vec(), key.clone()];
    arguments.extend(numbers.map(String::into_bytes));
    if let Some(count) = count_max {
        arguments.extend([b"MAX_COUNT".to_vec(), count.to_string().into_bytes()]);
    }
    let wait = Wait { keys: vec![key], deadline_ms, otherwise: Otherwise::Null, again: None };
    let (db, id) = (context.session.db, context.session.id);
    let blocked =
        Blocked { said_again: Some(WAIT_AT), ..Blocked::new(wait, db, arguments, otherwise) };
    context.hub.block(id, blocked, context.keys);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_in_any_order() {
        let parse = |text: &str| {
            let words: Vec<&[u8]> = text.split_whitespace().map(str::as_bytes).collect();
            Options::parse(&words)
        };
        let all = Options { wait: Some((5, 2)), count_max: Some(3) };
        assert_eq!(parse("max_count 3 BLOCK 5 2"), Ok(all));
        assert_eq!(parse(""), Ok(Options::default()));
        for wrong in
            ["BLOCK 5", "BLOCK -1 1", "BLOCK 5 0", "MAX_COUNT 0", "BLOCK 5 4 MAX_COUNT 3", "x"]
        {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
