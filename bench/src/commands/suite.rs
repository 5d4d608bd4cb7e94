//! `suite`: every case of record for Quipu and its peers, tables, plots and an overview.

use super::compare::{common_flags, compare_options};
use super::contenders::INSTALLED;
use crate::cases::{Profile, RECORDED, Setting};
use crate::flags;
use crate::suite::{self, SuiteOptions};
use anyhow::Result;
use clap::builder::PossibleValue;
use clap::{ArgMatches, Command};
use std::process::ExitCode;

/// The command's flags.
pub fn command() -> Command {
    let kinds = RECORDED.iter().map(|(name, about, _)| format!("  {name:9} {about}"));
    Command::new("suite")
        .about("Run the cases of record on several servers in turn and write tables and plots")
        .arg(flags::value("profile", Some("small"), "How much of everything").value_parser(
            clap::builder::PossibleValuesParser::new([
                PossibleValue::new("small").help("about 15 minutes"),
                PossibleValue::new("full").help("hours: the numbers of series of record"),
            ]),
        ))
        .arg(flags::value(
            "only",
            None,
            "Kinds of cases or files of tables, by commas; all without",
        ))
        .arg(flags::value("inside", None, "The quipu-inside binary, for the matcher cases"))
        .args(common_flags(INSTALLED, None))
        .args(flags::limit_flags())
        .after_help(format!("Cases:\n{}", kinds.collect::<Vec<_>>().join("\n")))
}

/// Runs the suite.
///
/// # Errors
/// When flags are malformed or results cannot be written.
pub fn run(matches: &ArgMatches) -> Result<ExitCode> {
    let profile = match flags::text(matches, "profile")? {
        "full" => Profile::Full,
        _ => Profile::Small,
    };
    let only = flags::optional_text(matches, "only");
    let only = only.map(|names| names.split(',').map(str::to_string).collect());
    suite::run(&SuiteOptions {
        setting: Setting {
            profile,
            inside: flags::path(matches, "inside"),
            limits: flags::limits(matches)?,
        },
        only: only.unwrap_or_default(),
        repeats: flags::optional_text(matches, "repeat")
            .map(|_| flags::number(matches, "repeat"))
            .transpose()?,
        compare: compare_options(matches)?,
    })?;
    Ok(ExitCode::SUCCESS)
}
