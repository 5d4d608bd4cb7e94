//! Entries between two numbers.

use super::{end_arg, start_arg, write_entries};
use crate::call::Call;
use crate::error::{CommandError, SYNTAX};
use crate::number::int_arg;
use crate::value::Stream;

/// `XRANGE`
pub fn range(call: &mut Call<'_>) -> Result<(), CommandError> {
    answer(call, false)
}

/// `XREVRANGE`
pub fn rev_range(call: &mut Call<'_>) -> Result<(), CommandError> {
    answer(call, true)
}

fn answer(call: &mut Call<'_>, is_reverse: bool) -> Result<(), CommandError> {
    let (start, end) = if is_reverse { (3, 2) } else { (2, 3) };
    let (start, end) = (start_arg(call.arg(start))?, end_arg(call.arg(end))?);
    let mut count = usize::MAX;
    let mut at = 4;
    while let Some(word) = call.args.get(at) {
        match call.args.get(at + 1) {
            Some(value) if word.eq_ignore_ascii_case(b"count") => {
                count = usize::try_from(int_arg(value)?).unwrap_or(0);
            }
            _ => return Err(SYNTAX),
        }
        at += 2;
    }
    let Some(stream) = call.keys.get::<Stream>(call.db, call.args[1])? else {
        call.out.array(0);
        return Ok(());
    };
    if count == 0 {
        call.out.null_array();
        return Ok(());
    }
    let range = stream.entries.range(start, end);
    let found: Vec<_> = match is_reverse {
        true => range.rev().take(count).collect(),
        false => range.take(count).collect(),
    };
    write_entries(call.out, &found);
    Ok(())
}
