//! `quipu serve`: runs the database until it is told to stop.

use crate::app::App;
use crate::config::{Config, Settings, check_environment};
use crate::flags::from_command_line;
use crate::listeners::table::Listener;
use crate::logging;
use crate::server::Server;
use crate::shutdown::StopSignals;
use anyhow::Context as _;
use clap::ArgMatches;
use std::net::SocketAddr;
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
    check_environment(std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()))?;
    let command_line = |name: &str| from_command_line(matches, name);
    let environment = |name: &str| std::env::var(name).ok();
    let config = Config::new(Settings::collect(&command_line, &environment)?)?;
    logging::start(config.settings.text("log-level"));
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
    let data_dir = config.data_dir.display().to_string();
    let server = tokio::select! {
        server = Server::start(config, Arc::new(RealVfs::new())) => server?,
        name = signals.next() => anyhow::bail!("{name} while starting"),
    };
    let doors = [server.address_of(Listener::Redis), server.address_of(Listener::Postgres)];
    println!("{}", welcome(server.app(), &data_dir, doors));
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

/// What a person sees first: where it is, and things to try.
fn welcome(app: &App, data_dir: &str, [keys, sql]: [Option<SocketAddr>; 2]) -> String {
    let url = app.url();
    let login = match app.config.credentials.are_required() {
        true => " -u USER:PASSWORD",
        false => "",
    };
    let keys = keys.map(|address| {
        let port = address.port();
        format!("keys    redis-cli -p {port} set greeting hello\n")
    });
    let sql = sql.map(|address| {
        let port = address.port();
        format!("SQL     psql -h 127.0.0.1 -p {port} -c 'SELECT * FROM metrics LIMIT 5'\n")
    });
    let doors = keys.into_iter().chain(sql).zip(4..);
    let doors: String = doors.map(|(one, number)| format!("{number}. {one}")).collect();
    format!(
        "Quipu {version} keeps {data_dir} and listens on {url}\n\
         \n\
         Things to try:\n\
         1. write   curl{login} -d 'weather,city=Cusco temperature=14.5' '{url}/write'\n\
         2. query   curl{login} -g '{url}/api/v1/query?query=weather_temperature'\n\
         3. look    open {url}/ in a browser\n\
         {doors}",
        version = env!("CARGO_PKG_VERSION"),
    )
}
