//! End-to-end tests: the real binary, real sockets, real clients.
//!
//! ```text
//! tests/<what>.rs ─► launch (quipu as a child) ─► http (a plain client) ─► answers (what came back)
//!                 └► programs (prometheus, curl, python, ... as children)
//! ```
//!
//! Every server listens on a port that the system chose, keeps its data in a temporary directory
//! and is killed when the test lets go of it. Waiting is for events; only where another program
//! gives none, [`poll`] looks again and again until a deadline.

#![allow(clippy::disallowed_methods, reason = "tests own their files and threads")]

pub mod clients;
pub mod answers;
pub mod fake_server;
pub mod http;
pub mod influx;
pub mod launch;
pub mod migration;
pub mod opentsdb;
pub mod postgres;
pub mod programs;
pub mod prometheus;
pub mod protobuf;
pub mod redis;
pub mod routes;
pub mod s3;
pub mod tls;
pub mod victoria;

pub use answers::{Export, Matrix, Vector, percent};
pub use http::{Client, Response};
pub use launch::{Launch, Server};
pub use postgres::Psql;
pub use programs::{Program, free_port, is_installed, run};
pub use prometheus::Prometheus;
pub use redis::{Redis, RedisClient};

use anyhow::{Result, bail};
use std::time::{Duration, Instant};

/// Pause between two looks.
const LOOK_PAUSE: Duration = Duration::from_millis(20);

/// Looks until `look` returns something; fails after `patience` with the last reason.
///
/// # Errors
/// When the deadline passes.
pub fn poll<T>(what: &str, patience: Duration, mut look: impl FnMut() -> Result<T>) -> Result<T> {
    let start = Instant::now();
    loop {
        match look() {
            Ok(found) => return Ok(found),
            Err(error) if patience < start.elapsed() => {
                bail!("{what}: not within {patience:?}: {error:#}")
            }
            Err(_) => std::thread::sleep(LOOK_PAUSE),
        }
    }
}
