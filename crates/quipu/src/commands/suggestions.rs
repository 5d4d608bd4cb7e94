//! Suggestions for misspelled commands and for values of a fixed list.

use clap::Command;
use clap::error::{ContextKind, ContextValue, Error, ErrorKind};
use model::similar_name::similar_name;
use std::ffi::OsString;

/// A question that names what an unknown command or value was perhaps meant to be.
pub fn suggestion(error: &Error, command: &Command, arguments: &[OsString]) -> Option<String> {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let given = text(ContextKind::InvalidSubcommand)?;
            let (path, parent) = parent_of(given, command, arguments);
            let names = parent.get_subcommands().map(Command::get_name);
            let known = similar_name(given, names.chain(["help"]))?;
            Some(format!("did you mean {path} {known}?"))
        }
        ErrorKind::InvalidValue => {
            let given = text(ContextKind::InvalidValue)?;
            let Some(ContextValue::Strings(known)) = error.get(ContextKind::ValidValue) else {
                return None;
            };
            let known = similar_name(given, known.iter().map(String::as_str))?;
            Some(format!("did you mean {known}?"))
        }
        _ => None,
    }
}

/// The command whose subcommand was given wrong, with its words.
fn parent_of<'a>(
    given: &str,
    command: &'a Command,
    arguments: &[OsString],
) -> (String, &'a Command) {
    let (mut path, mut parent) = ("quipu".to_string(), command);
    let words = arguments.iter().skip(1).filter_map(|argument| argument.to_str());
    for word in words.take_while(|word| *word != given) {
        if let Some(child) = parent.find_subcommand(word) {
            path = format!("{path} {word}");
            parent = child;
        }
    }
    (path, parent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::command;

    #[test]
    fn misspelled_commands_have_a_suggestion() {
        for (line, expected) in [
            ("quipu serv", Some("did you mean quipu serve?")),
            ("quipu exprot", Some("did you mean quipu export?")),
            ("quipu backup craete", Some("did you mean quipu backup create?")),
            ("quipu kv analize", Some("did you mean quipu kv analyze?")),
            ("quipu migrate prom http://a", Some("did you mean prometheus?")),
            ("quipu migrate victoria http://a", Some("did you mean victoriametrics?")),
            ("quipu blah", None),
        ] {
            let arguments: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let error = command().try_get_matches_from(&arguments).expect_err(line);
            let found = suggestion(&error, &command(), &arguments);
            assert_eq!(found.as_deref(), expected, "{line}");
        }
    }
}
