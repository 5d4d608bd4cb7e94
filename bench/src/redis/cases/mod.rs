//! The cases, a file for each family.

mod disk;
mod idle;
mod rates;
mod restart;
mod series;

use super::data::Values;
use super::load::{self, Load};
use super::server::{Kind, Server, Setting};
use super::{Bench, Case};
use anyhow::Result;
use std::fs;
use std::path::PathBuf;

/// All of them, in the order in which they run.
pub const CASES: &[Case] = &[
    Case { name: "rates", title: "Commands, keys in memory", run: rates::few_keys },
    Case { name: "rates-many", title: "SET and GET, many keys", run: rates::many_keys },
    Case { name: "always", title: "Every change on disk before its answer", run: rates::always },
    Case { name: "skewed", title: "Skewed keys, values of all sizes", run: rates::skewed },
    Case { name: "cold", title: "More data than memory", run: disk::cold },
    Case { name: "dictionary", title: "Compression on disk", run: disk::dictionary },
    Case { name: "restart", title: "Memory of many keys, and starts", run: restart::restart },
    Case { name: "series", title: "Time series of ten samples", run: series::series },
    Case { name: "idle", title: "While nobody comes", run: idle::idle },
];

impl Bench<'_> {
    /// An empty directory for a server.
    ///
    /// # Errors
    /// When it cannot be emptied.
    fn dir(&self, name: &str) -> Result<PathBuf> {
        let dir = self.options.work_dir.join(format!("{}-{name}", self.case));
        if dir.exists() {
            fs::remove_dir_all(&dir)?;
        }
        Ok(dir)
    }

    /// One of each server, empty.
    fn servers(&self, setting: &Setting) -> Result<Vec<Server>> {
        let start = |program: &super::server::Program| {
            Server::start(program, setting, &self.dir(program.name())?)
        };
        self.programs.iter().map(start).collect()
    }

    /// Removes what the case's servers left.
    fn clean(&self) -> Result<()> {
        for entry in fs::read_dir(&self.options.work_dir)?.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if entry.path().is_dir() && name.starts_with(&format!("{}-", self.case)) {
                fs::remove_dir_all(entry.path())?;
            }
        }
        Ok(())
    }

    /// Quipu alone, empty.
    fn quipu(&self, setting: &Setting, name: &str) -> Result<Server> {
        Server::start(&self.programs[0], setting, &self.dir(name)?)
    }

    /// Where Redis stands among the servers.
    fn redis_at(&self) -> Option<usize> {
        self.programs.iter().position(|program| program.kind == Kind::Redis)
    }
}

/// Sets every key of a server once.
fn fill(server: &Server, keys: u64, values: Values) -> Result<()> {
    load::run(server, &Load::fill(keys, values))?;
    Ok(())
}

/// Memory in which so many keys of 200 bytes stay.
fn roomy(keys: u64) -> u64 {
    (keys * 450).max(256 << 20)
}
