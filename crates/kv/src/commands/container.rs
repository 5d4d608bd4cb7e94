//! Commands that hold others: the second argument names one of them.

use crate::call::Call;
use crate::error::CommandError;

/// A command within another.
pub struct Subcommand {
    /// Its name in lower case.
    pub name: &'static str,
    /// How many arguments it takes, both names included; at least so many, if negative.
    pub arity: i32,
    /// Its arguments as help shows them, and what it does.
    pub help: [&'static str; 2],
    /// Does it.
    pub run: fn(&mut Call<'_>) -> Result<(), CommandError>,
}

/// Runs the one that the second argument names.
///
/// # Errors
/// As it does; when there is none of that name, or it takes another number of arguments.
pub fn run(call: &mut Call<'_>, table: &'static [Subcommand]) -> Result<(), CommandError> {
    let container = call.command.info.first_name();
    let word = call.arg(1);
    let name = word.to_ascii_lowercase();
    if name == b"help" {
        if call.argc() != 2 {
            return Err(CommandError::arity(&format!("{container}|help")));
        }
        help(call, table);
        return Ok(());
    }
    let Some(found) = table.iter().find(|one| one.name.as_bytes() == name) else {
        let word = String::from_utf8_lossy(word.get(..SHOWN_SIZE_MAX).unwrap_or(word));
        let upper = container.to_ascii_uppercase();
        let words = format!("ERR unknown subcommand '{word}'. Try {upper} HELP.");
        return Err(CommandError::new(words));
    };
    let wanted = found.arity.unsigned_abs() as usize;
    let fits = if found.arity < 0 { wanted <= call.argc() } else { wanted == call.argc() };
    match fits {
        true => (found.run)(call),
        false => Err(CommandError::arity(&format!("{container}|{}", found.name))),
    }
}

/// Bytes of an unknown name that the error shows.
const SHOWN_SIZE_MAX: usize = 128;

fn help(call: &mut Call<'_>, table: &'static [Subcommand]) {
    let upper = call.command.info.first_name().to_ascii_uppercase();
    call.out.array(1 + 2 * table.len() + 2);
    call.out.simple(&format!("{upper} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"));
    for one in table {
        let [arguments, words] = one.help;
        let name = one.name.to_ascii_uppercase();
        call.out.simple(format!("{name} {arguments}").trim_end());
        call.out.simple(&format!("    {words}"));
    }
    call.out.simple("HELP");
    call.out.simple("    Prints this help.");
}
