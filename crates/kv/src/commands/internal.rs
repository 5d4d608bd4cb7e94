//! Effects that are no commands: only the log has them.

use super::{Command, Group, ONE_KEY, WRITE, command};
use crate::call::Call;
use crate::error::CommandError;
use crate::keyspace::Expire;
use crate::number::int_arg;
use crate::value::Value;

const COMMANDS: &[Command] = &[
    command("\x01put", 4, WRITE, ONE_KEY, Group::Generic, "", "A key's whole value.", put),
    command("\x01flush", 1, WRITE, super::Keys::None, Group::Generic, "", "All keys go.", flush),
    command("\x01swap", 2, WRITE, super::Keys::None, Group::Generic, "", "Exchanges.", swap),
    command("\x01gone", 2, WRITE, ONE_KEY, Group::Generic, "", "A key went.", gone),
    command(
        "\x01xdeliver",
        -9,
        WRITE,
        ONE_KEY,
        Group::Stream,
        "",
        "Delivers.",
        super::stream::apply_deliveries,
    ),
];

/// The effect of that name.
pub fn find(name: &[u8]) -> Option<&'static Command> {
    COMMANDS.iter().find(|command| command.info.name.as_bytes() == name)
}

fn put(call: &mut Call<'_>) -> Result<(), CommandError> {
    let expire = match int_arg(call.arg(2))? {
        -1 => Expire::Never,
        at => Expire::At(at),
    };
    let value = Value::decode(call.arg(3));
    let value = value.map_err(|error| CommandError::new(format!("ERR {error}")))?;
    call.put(call.arg(1), value, expire)
}

fn gone(call: &mut Call<'_>) -> Result<(), CommandError> {
    call.remove(call.arg(1)).map(drop)
}

fn flush(call: &mut Call<'_>) -> Result<(), CommandError> {
    call.keys.flush(call.db);
    Ok(())
}

fn swap(call: &mut Call<'_>) -> Result<(), CommandError> {
    let other = u8::try_from(int_arg(call.arg(1))?).map_err(|_| crate::error::OUT_OF_RANGE)?;
    call.keys.swap(call.db, other)
}
