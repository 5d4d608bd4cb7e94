//! The piece of C that stands between a server and its disk: compiled when it is needed, told by a
//! file what the disk does.

use anyhow::{Context, Result, ensure};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

const SOURCE: &str = include_str!("shim.c");

/// What the disk does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Weather {
    /// What it should.
    #[default]
    Calm,
    /// Writes and syncs wait.
    Stall,
    /// It has room for so many bytes.
    Full(i64),
    /// So many syncs fail.
    FailingSyncs(i64),
}

/// The compiled shim and its control file.
pub struct Shim {
    library: PathBuf,
    control_path: PathBuf,
    control: File,
}

impl Shim {
    /// Compiles it in `dir`.
    ///
    /// # Errors
    /// When there is no C compiler.
    pub fn build(dir: &Path) -> Result<Shim> {
        let dir = std::path::absolute(dir)?;
        let (source, library) = (dir.join("shim.c"), dir.join("shim.so"));
        std::fs::write(&source, SOURCE)?;
        let mut command = Command::new("cc");
        command.args(["-shared", "-fPIC", "-O2", "-o"]).arg(&library).arg(&source).arg("-ldl");
        let output = command.output().context("cc, the C compiler, cannot be run")?;
        let text = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "cc failed: {text}");
        let control_path = dir.join("control");
        let mut options = File::options();
        let control = options.read(true).write(true).create(true).truncate(true);
        let control = control.open(&control_path)?;
        let shim = Shim { library, control_path, control };
        shim.set(Weather::Calm)?;
        Ok(shim)
    }

    /// Sets what the disk does from now on.
    ///
    /// # Errors
    /// When the control file cannot be written.
    pub fn set(&self, weather: Weather) -> Result<()> {
        let [stall, room, syncs] = match weather {
            Weather::Calm => [0, -1, 0],
            Weather::Stall => [1, -1, 0],
            Weather::Full(room) => [0, room, 0],
            Weather::FailingSyncs(count) => [0, -1, count],
        };
        let bytes: Vec<u8> =
            [stall, room, syncs].iter().flat_map(|n: &i64| n.to_le_bytes()).collect();
        Ok(self.control.write_all_at(&bytes, 0)?)
    }

    /// Puts it between a command and its disk.
    pub fn load(&self, command: &mut Command) {
        command.env("LD_PRELOAD", &self.library).env("ORDEAL_CONTROL", &self.control_path);
    }
}
