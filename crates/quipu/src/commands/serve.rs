//! `quipu serve`: runs the database until it is told to stop.

use super::banner::banner;
use crate::server::Server;
use anyhow::Context as _;
pub use app::config::Config;
use clap::ArgMatches;
use net::flags::from_command_line;
use net::logging;
pub use net::settings::{Settings, check_environment};
use net::shutdown::StopSignals;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use vfs::RealVfs;

/// Exit code when a second signal cuts the stop short, as shells know it for SIGINT.
const INTERRUPTED: i32 = 130;

/// Runs the server.
///
/// # Errors
/// When it cannot start, or cannot stop cleanly.
pub fn run(matches: &ArgMatches) -> anyhow::Result<ExitCode> {
    let command_line = |name: &str| from_command_line(matches, name);
    let environment = |name: &str| std::env::var(name).ok();
    let config = Config::new(Settings::collect(&command_line, &environment)?)?;
    logging::start(config.settings.text("log-level"));
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    check_environment(names).iter().for_each(|warning| tracing::warn!("{warning}"));
    tracing::info!("quipu {} starts", env!("CARGO_PKG_VERSION"));
    if let Err(error) = RealVfs::raise_open_files() {
        tracing::warn!(%error, "cannot raise the limit of open files");
    }
    // Connections have threads of their own (`listeners::cores`).
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .thread_name("quipu")
        .build()
        .context("cannot start threads")?;
    let result = runtime.block_on(serve(config));
    // A request that outlived shutdown-timeout must not keep the process.
    runtime.shutdown_timeout(Duration::from_millis(100));
    result.map(|()| ExitCode::SUCCESS)
}

async fn serve(config: Config) -> anyhow::Result<()> {
    let mut signals = StopSignals::new().context("cannot catch signals")?;
    let server = tokio::select! {
        server = Server::start(config, Arc::new(RealVfs::new())) => server?,
        name = signals.next() => anyhow::bail!("{name} while starting"),
    };
    // A closed standard output must not end the server.
    cli::print_line!("{}", banner(server.app(), server.addresses()));
    let name = tokio::select! {
        name = signals.next() => name,
        () = server.app().stop_wanted.notified() => "SHUTDOWN",
    };
    tracing::info!("{name}: finishing requests, flushing, closing");
    tokio::select! {
        result = server.stop() => result?,
        name = signals.next() => {
            tracing::warn!("{name} again: leaving at once; the log has what was acknowledged");
            std::process::exit(INTERRUPTED);
        }
    }
    tracing::info!("closed");
    Ok(())
}
