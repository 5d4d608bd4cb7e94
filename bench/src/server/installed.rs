//! A kind of server together with the binary to run it from, and what its version can do.

use super::{Peer, Place};
use crate::payload::Protocol;
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A peer and the binary to run it from.
#[derive(Clone, Debug)]
pub struct Installed {
    /// Which kind of server.
    pub peer: &'static Peer,
    /// Its binary.
    pub binary: PathBuf,
    /// What it says of its version.
    pub version: String,
}

impl Installed {
    /// Asks the binary for its version.
    ///
    /// # Errors
    /// When it cannot be run, or a part that the peer needs is not installed.
    pub fn new(peer: &'static Peer, binary: &Path) -> Result<Installed> {
        let output = Command::new(binary)
            .args(peer.version_arguments)
            .output()
            .with_context(|| format!("cannot run {}", binary.display()))?;
        let text = if output.stdout.is_empty() { output.stderr } else { output.stdout };
        let printed = String::from_utf8_lossy(&text).lines().next().unwrap_or_default().to_string();
        let mut version = Some(printed)
            .filter(|version| !version.is_empty())
            .or_else(|| package_version(binary))
            .unwrap_or_else(|| "unknown version".to_string());
        if let Some(extension_version) = peer.extension_version {
            version = format!("{version}, {}", extension_version(binary)?);
        }
        Ok(Installed { peer, binary: binary.to_path_buf(), version })
    }

    /// Where this version takes a protocol, if it does.
    pub fn write_path(&self, protocol: Protocol) -> Option<&'static str> {
        let major_version = major_version(&self.version);
        self.peer
            .doors
            .iter()
            .find(|door| door.protocol == protocol && door.major_version_min <= major_version)
            .map(|door| door.path)
    }

    /// Why this version cannot be sent a protocol, if so.
    pub fn unsupported(&self, protocol: Protocol) -> Option<String> {
        if self.peer.doors.is_empty() {
            return Some(self.peer.doors_missing.to_string());
        }
        let missing = self.write_path(protocol).is_none();
        missing.then(|| format!("does not speak {}", protocol.name()))
    }

    /// The command that serves, for reports: without this machine's paths.
    pub fn shown_command(&self) -> String {
        let name = self.binary.file_name().unwrap_or_default().to_string_lossy();
        let place = Place { data_dir: PathBuf::from("DIR"), port: 0, spare_port: 0 };
        let arguments = (self.peer.serve_arguments)(&place).join(" ");
        let variables = (self.peer.environment)(&place);
        let variables = variables.iter().map(|(name, value)| format!("{name}={value} "));
        format!("{}{name} {arguments}", variables.collect::<String>())
    }
}

/// The first number in a version: `prometheus, version 2.42.0` is 2.
fn major_version(version: &str) -> u32 {
    let digits = version.trim_start_matches(|c: char| !c.is_ascii_digit());
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    digits[..end].parse().unwrap_or(0)
}

/// What Debian's package manager says of the binary's package: some builds print no version.
fn package_version(binary: &Path) -> Option<String> {
    let output = Command::new("dpkg-query")
        .args(["--show", "--showformat=Debian ${Package} ${Version}"])
        .arg(binary.file_name()?)
        .output()
        .ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::super::{POSTGRESQL, PROMETHEUS, REDIS};
    use super::*;

    fn installed(peer: &'static Peer, version: &str) -> Installed {
        Installed { peer, binary: PathBuf::from("server"), version: version.to_string() }
    }

    #[test]
    fn major_versions_are_found() {
        assert_eq!(major_version("prometheus, version 2.42.0+ds (branch: x)"), 2);
        assert_eq!(major_version("InfluxDB v1.6.7~rc0"), 1);
        assert_eq!(major_version("postgres (PostgreSQL) 15.18"), 15);
        assert_eq!(major_version("unknown version"), 0);
    }

    #[test]
    fn protocols_depend_on_the_version() {
        let old = installed(&PROMETHEUS, "prometheus, version 2.42.0");
        assert!(old.write_path(Protocol::RemoteWrite).is_some());
        let expected = Some("does not speak remote-write-v2".to_string());
        assert_eq!(old.unsupported(Protocol::RemoteWriteV2), expected);
        let new = installed(&PROMETHEUS, "prometheus, version 3.1.0");
        assert_eq!(new.unsupported(Protocol::RemoteWriteV2), None);
        let redis = installed(&REDIS, "Redis server v=7.0.15").unsupported(Protocol::Influx);
        assert!(redis.is_some_and(|reason| reason.contains("none of the ingestion protocols")));
    }

    #[test]
    fn shown_commands_have_no_path_of_this_machine() {
        let shown = installed(&POSTGRESQL, "").shown_command();
        assert!(shown.starts_with("server -D DIR"), "{shown}");
    }
}
