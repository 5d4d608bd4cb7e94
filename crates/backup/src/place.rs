//! Where backups are kept: names with bytes, a directory or a bucket.
//!
//! A name is there with all its bytes or not at all; what was put is seen by every later list.

use super::directory::Directory;
use super::text;
use anyhow::{Context as _, bail};
use clap::builder::NonEmptyStringValueParser;
use clap::{Arg, ArgMatches, Command, value_parser};
use cli::arguments::option;
use std::path::Path;
use std::sync::Arc;

/// Requests, or files, at the same time if nothing else is said; each holds a piece in memory.
const PARALLEL: &str = "8";
/// At most so many.
const PARALLEL_MAX: i64 = 64;

/// What `--to` takes.
#[cfg(feature = "s3")]
const WHERE: &str = "Where backups are: a directory, or s3://BUCKET/PREFIX";
#[cfg(not(feature = "s3"))]
const WHERE: &str = "Where backups are: a directory";

/// A place with names.
pub trait Place: Send + Sync {
    /// What a person calls it, without secrets.
    fn name(&self) -> &str;

    /// Puts bytes under a name, in place of what was there.
    ///
    /// # Errors
    /// When they are not there for sure.
    fn put(&self, key: &str, bytes: &[u8]) -> anyhow::Result<()>;

    /// The bytes under a name, if there are any; not more than one over `size_max` of them.
    ///
    /// # Errors
    /// When it cannot be told.
    fn get(&self, key: &str, size_max: u64) -> anyhow::Result<Option<Vec<u8>>>;

    /// Everything below a folder.
    ///
    /// # Errors
    /// When it cannot be listed whole.
    fn list(&self, folder: &str) -> anyhow::Result<Vec<Entry>>;

    /// Takes a name away; that it is gone already is fine.
    ///
    /// # Errors
    /// When it may be there still.
    fn remove(&self, key: &str) -> anyhow::Result<()>;

    /// Makes all that was put survive a power cut.
    ///
    /// # Errors
    /// When it may not.
    fn settle(&self) -> anyhow::Result<()>;
}

/// What is under a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The name.
    pub key: String,
    /// Its bytes.
    pub size: u64,
    /// When it was put, in nanoseconds since 1970 by the clock of the place.
    pub modified: i64,
}

/// Adds the arguments that say where backups are.
pub fn arguments(command: Command) -> Command {
    with_place(command, option("to", "PLACE", WHERE).visible_alias("from"))
}

/// The same of a command that takes from there: help shows what people would type.
pub fn arguments_from(command: Command) -> Command {
    with_place(command, option("to", "PLACE", WHERE).long("from").visible_alias("to"))
}

fn with_place(command: Command, place: Arg) -> Command {
    let parser = value_parser!(u16).range(1..=PARALLEL_MAX);
    let command =
        command.arg(place.required(true).value_parser(NonEmptyStringValueParser::new())).arg(
            Arg::new("parallel")
                .long("parallel")
                .value_name("N")
                .default_value(PARALLEL)
                .value_parser(parser)
                .help("Pieces of 8 MiB that are under way at the same time"),
        );
    bucket_arguments(command)
}

#[cfg(feature = "s3")]
fn bucket_arguments(command: Command) -> Command {
    http_client::object_store::arguments(command)
}

#[cfg(not(feature = "s3"))]
fn bucket_arguments(command: Command) -> Command {
    command
}

/// How many pieces may be under way.
pub fn parallel(matches: &ArgMatches) -> usize {
    matches.get_one::<u16>("parallel").map_or(1, |number| usize::from(*number))
}

/// The place that the arguments name.
///
/// # Errors
/// When there can be none.
pub fn open(matches: &ArgMatches) -> anyhow::Result<Arc<dyn Place>> {
    let place = text(matches, "to").context("--to is missing")?;
    match place.split_once("://") {
        None if place.starts_with("s3:") => bail!("--to {place}: a bucket is s3://BUCKET/PREFIX"),
        None => Ok(Arc::new(Directory::new(Path::new(place))?)),
        Some(("s3", rest)) => open_bucket(matches, rest),
        Some((scheme, _)) => {
            bail!("--to {place}: {scheme}:// is not known; give a directory or s3://BUCKET/PREFIX")
        }
    }
}

#[cfg(feature = "s3")]
fn open_bucket(matches: &ArgMatches, rest: &str) -> anyhow::Result<Arc<dyn Place>> {
    use http_client::object_store::{Bucket, Rights};
    Ok(Arc::new(Bucket::open(matches, "--to ", rest, Rights::Write)?))
}

#[cfg(not(feature = "s3"))]
fn open_bucket(_: &ArgMatches, _: &str) -> anyhow::Result<Arc<dyn Place>> {
    bail!("this build is without the feature s3, and knows no buckets; --to takes a directory")
}
