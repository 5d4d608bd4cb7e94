//! Arguments of the client commands.

use clap::{Arg, ArgAction};

/// An argument of the client commands: `--name VALUE`.
pub fn option(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).value_name(value).help(help)
}

/// An argument that is there or not: `--name`.
pub fn switch(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).action(ArgAction::SetTrue).help(help)
}
