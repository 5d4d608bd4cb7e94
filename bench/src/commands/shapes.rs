//! `shapes load`: loads a running server with one of the ugly shapes and reports.

use super::load::{load_flags, run_workload};
use crate::flags;
use crate::shapes::{self, SHAPES, ShapeWorkload};
use anyhow::Result;
use clap::builder::PossibleValue;
use clap::{Arg, ArgMatches, Command};
use std::process::ExitCode;

/// The command's flags.
pub fn command() -> Command {
    Command::new("load")
        .about("Load a running server with an ugly shape of data and report")
        .arg(shape_flag().required(true))
        .args(flags::shape_flags())
        .args(load_flags())
        .after_help(list())
}

fn list() -> String {
    let width = shapes::names().iter().map(|name| name.len()).max().unwrap_or(0);
    let lines = SHAPES.iter().map(|(name, about, _)| format!("  {name:width$}  {about}"));
    format!("Shapes:\n{}", lines.collect::<Vec<_>>().join("\n"))
}

/// Chooses a shape.
pub fn shape_flag() -> Arg {
    let names = SHAPES.iter().map(|(name, about, _)| PossibleValue::new(*name).help(*about));
    flags::value("shape", None, "Which shape")
        .value_parser(clap::builder::PossibleValuesParser::new(names))
}

/// Loads a shape.
///
/// # Errors
/// As `tsbs load`.
pub fn run(matches: &ArgMatches) -> Result<ExitCode> {
    let name = flags::text(matches, "shape")?;
    run_workload(&ShapeWorkload::new(name, flags::shape_scale(matches)?)?, matches)
}
