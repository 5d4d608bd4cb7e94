//! `tsbs generate`: the data set to a file or standard output.
//!
//! Line protocol and exposition text are plain text. Others are a sequence of request bodies, each behind its size
//! as 4 bytes, little endian.

use crate::flags;
use crate::payload::{Packer, Protocol};
use crate::tsbs::CpuOnly;
use crate::workload::{RequestFormat, Share, Workload};
use anyhow::{Context, Result};
use clap::{ArgMatches, Command};
use indicatif::HumanCount;
use std::fs::File;
use std::io::Write;
use std::process::ExitCode;
use std::time::Instant;

/// The command's flags.
pub fn command() -> Command {
    Command::new("generate")
        .about("Write the data set to a file or standard output")
        .args(flags::scale_flags())
        .arg(
            flags::value(
                "format",
                Some("influx"),
                "Text lines, or request bodies behind their size",
            )
            .value_parser(clap::builder::PossibleValuesParser::new(Protocol::NAMES)),
        )
        .arg(flags::value("out", None, "The file; standard output without"))
}

/// Writes the data set.
///
/// # Errors
/// When flags are malformed or writing fails.
pub fn run(matches: &ArgMatches) -> Result<ExitCode> {
    let workload = CpuOnly::new(flags::scale(matches)?)?;
    let protocol = Protocol::parse(flags::text(matches, "format")?)?;
    let format = RequestFormat { protocol, lines_max: 1000, samples_max: 10_000 };
    let mut out: Box<dyn Write> = match flags::path(matches, "out") {
        Some(path) => Box::new(
            File::create(&path).with_context(|| format!("cannot create {}", path.display()))?,
        ),
        None => Box::new(std::io::stdout().lock()),
    };
    let start = Instant::now();
    let bytes = write_all(&workload, format, &mut out)?;
    let seconds = start.elapsed().as_secs_f64();
    let samples = workload.samples();
    let rate = (samples as f64 / seconds) as u64;
    eprintln!(
        "{} samples of {} series, {} bytes in {seconds:.2} s, {} samples/s",
        HumanCount(samples),
        HumanCount(workload.series()),
        HumanCount(bytes),
        HumanCount(rate)
    );
    Ok(ExitCode::SUCCESS)
}

fn write_all(workload: &dyn Workload, format: RequestFormat, out: &mut dyn Write) -> Result<u64> {
    let mut requests = workload.requests(Share { idx: 0, count: 1 }, format);
    let mut packer = Packer::new(format.protocol);
    let (mut plain, mut written) = (Vec::new(), 0);
    while requests.next(&mut plain).is_some() {
        let body = packer.pack(&plain)?;
        if !format.protocol.is_plain_text() {
            out.write_all(&u32::try_from(body.len())?.to_le_bytes())?;
            written += 4;
        }
        out.write_all(body)?;
        written += body.len() as u64;
    }
    out.flush()?;
    Ok(written)
}
