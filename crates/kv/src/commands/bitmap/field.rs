//! `BITFIELD`: integers of 1 to 64 bits anywhere within a string.

use super::{check_offset, grow};
use crate::call::Call;
use crate::error::{CommandError, SYNTAX};
use crate::keyspace::EVENT_STRING;
use crate::number::{int_arg, parse_i64};
use crate::value::Str;

/// The type of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Width {
    bits: u32,
    is_signed: bool,
}

/// What becomes of a result that does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Overflow {
    Wrap,
    Saturate,
    Fail,
}

#[derive(Clone, Copy, Debug)]
enum Action {
    Get,
    Set(i64),
    Add(i64),
}

/// One thing to do.
#[derive(Clone, Copy, Debug)]
struct Operation {
    action: Action,
    width: Width,
    offset: usize,
    overflow: Overflow,
}

impl Width {
    fn parse(text: &[u8]) -> Result<Width, CommandError> {
        let invalid = CommandError::new(
            "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.",
        );
        let (is_signed, digits) = match text.split_first() {
            Some((b'i', digits)) => (true, digits),
            Some((b'u', digits)) => (false, digits),
            _ => return Err(invalid),
        };
        let max = if is_signed { 64 } else { 63 };
        let bits = parse_i64(digits).filter(|bits| (1..=max).contains(bits));
        let bits = bits.and_then(|bits| u32::try_from(bits).ok()).ok_or(invalid)?;
        Ok(Width { bits, is_signed })
    }

    /// The place of a field; after `#` it counts fields of this width.
    fn offset(self, text: &[u8]) -> Result<usize, CommandError> {
        match text.split_first() {
            Some((b'#', index)) => {
                let index = parse_i64(index);
                check_offset(index.and_then(|index| index.checked_mul(i64::from(self.bits))))
            }
            _ => check_offset(parse_i64(text)),
        }
    }

    fn limits(self) -> (i128, i128) {
        match self.is_signed {
            true => (-(1 << (self.bits - 1)), (1 << (self.bits - 1)) - 1),
            false => (0, (1 << self.bits) - 1),
        }
    }

    /// The number that the low bits are.
    fn number(self, bits: u64) -> i128 {
        let unused = 64 - self.bits;
        match self.is_signed {
            true => i128::from((bits << unused).cast_signed() >> unused),
            false => i128::from(bits << unused >> unused),
        }
    }

    /// What a field with a sign is set to. Saturated, what is so far below that its distance to the
    /// highest is none of 64 bits counts as above it, as in Redis.
    fn settable(self, number: i64, overflow: Overflow) -> i128 {
        let (_, max) = self.limits();
        let number = i128::from(number);
        match overflow {
            Overflow::Saturate if self.bits < 64 && number < max - i128::from(i64::MAX) => max,
            _ => number,
        }
    }

    /// What is stored for a number, if anything is.
    fn fit(self, number: i128, overflow: Overflow) -> Option<i128> {
        let (min, max) = self.limits();
        match overflow {
            _ if (min..=max).contains(&number) => Some(number),
            Overflow::Wrap => Some(self.number(low_bits(number))),
            Overflow::Saturate if number < min => Some(min),
            Overflow::Saturate => Some(max),
            Overflow::Fail => None,
        }
    }
}

fn low_bits(number: i128) -> u64 {
    (number & i128::from(u64::MAX)) as u64
}

/// Bits from `offset` on, the first one the highest; beyond the end all are zero.
fn read(bytes: &[u8], offset: usize, width: Width) -> i128 {
    let bits = (offset..offset + width.bits as usize).fold(0, |value, at| {
        let byte = bytes.get(at / 8).copied().unwrap_or(0);
        value << 1 | u64::from(byte >> (7 - at % 8) & 1)
    });
    width.number(bits)
}

/// Writes what [`read`] reads; all of it is within the bytes.
fn write(bytes: &mut [u8], offset: usize, width: Width, number: i128) {
    let bits = low_bits(number);
    for (at, shift) in (offset..).zip((0..width.bits).rev()) {
        let mask = 0x80 >> (at % 8);
        let byte = &mut bytes[at / 8];
        *byte = if bits >> shift & 1 == 0 { *byte & !mask } else { *byte | mask };
    }
}

fn parse(call: &Call<'_>) -> Result<Vec<Operation>, CommandError> {
    let mut operations = Vec::new();
    let mut overflow = Overflow::Wrap;
    let mut rest = call.args.get(2..).unwrap_or_default();
    while let Some((word, more)) = rest.split_first() {
        let word = word.to_ascii_lowercase();
        let (action, width, offset) = match (word.as_slice(), more) {
            (b"overflow", [kind, more @ ..]) => {
                overflow = match kind.to_ascii_lowercase().as_slice() {
                    b"wrap" => Overflow::Wrap,
                    b"sat" => Overflow::Saturate,
                    b"fail" => Overflow::Fail,
                    _ => return Err(CommandError::new("ERR Invalid OVERFLOW type specified")),
                };
                rest = more;
                continue;
            }
            (b"get", [width, offset, more @ ..]) => {
                rest = more;
                (None, width, offset)
            }
            (b"set" | b"incrby", [width, offset, number, more @ ..]) => {
                rest = more;
                (Some(number), width, offset)
            }
            _ => return Err(SYNTAX),
        };
        let width = Width::parse(width)?;
        let offset = width.offset(offset)?;
        let action = match action.map(|number| int_arg(number)).transpose()? {
            None => Action::Get,
            Some(number) if word == b"set" => Action::Set(number),
            Some(number) => Action::Add(number),
        };
        operations.push(Operation { action, width, offset, overflow });
    }
    Ok(operations)
}

fn answer(call: &mut Call<'_>, answers: &[Option<i128>]) {
    call.out.array(answers.len());
    for answer in answers {
        match answer {
            Some(number) => call.out.int(i64::try_from(*number).unwrap_or(i64::MAX)),
            None => call.out.null(),
        }
    }
}

/// Reads fields; a key that is not there has zeros.
fn read_all(call: &mut Call<'_>, operations: &[Operation]) -> Result<(), CommandError> {
    let string = call.get::<Str>(call.args[1])?;
    let read_one = |bytes: &[u8]| -> Vec<_> {
        operations.iter().map(|one| Some(read(bytes, one.offset, one.width))).collect()
    };
    let answers = string.map_or_else(|| read_one(&[]), |string| string.with_bytes(read_one));
    answer(call, &answers);
    Ok(())
}

pub(super) fn bitfield_ro(call: &mut Call<'_>) -> Result<(), CommandError> {
    let operations = parse(call)?;
    if operations.iter().any(|one| !matches!(one.action, Action::Get)) {
        return Err(CommandError::new("ERR BITFIELD_RO only supports the GET subcommand"));
    }
    read_all(call, &operations)
}

pub(super) fn bitfield(call: &mut Call<'_>) -> Result<(), CommandError> {
    let operations = parse(call)?;
    let writes = operations.iter().filter(|one| !matches!(one.action, Action::Get));
    let Some(end) = writes.map(|one| one.offset + one.width.bits as usize).max() else {
        return read_all(call, &operations);
    };
    let key = call.args[1];
    let (bytes, mut has_changed) = grow(call, key, end.div_ceil(8))?;
    let mut is_written = false;
    let mut answers = Vec::with_capacity(operations.len());
    for Operation { action, width, offset, overflow } in operations {
        let before = read(bytes, offset, width);
        let wanted = match action {
            Action::Get => {
                answers.push(Some(before));
                continue;
            }
            // A negative number for a field without a sign is far beyond it.
            Action::Set(number) if !width.is_signed => i128::from(number.cast_unsigned()),
            Action::Set(number) => width.settable(number, overflow),
            Action::Add(number) => before + i128::from(number),
        };
        let Some(after) = width.fit(wanted, overflow) else {
            answers.push(None);
            continue;
        };
        write(bytes, offset, width, after);
        is_written = true;
        has_changed |= before != after;
        answers.push(Some(if matches!(action, Action::Set(_)) { before } else { after }));
    }
    if has_changed {
        call.modified(key);
    }
    if has_changed && is_written {
        call.event(EVENT_STRING, "setbit", key);
    }
    answer(call, &answers);
    Ok(())
}
