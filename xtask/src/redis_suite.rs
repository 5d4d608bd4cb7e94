//! Redis' own suite of tests, in Tcl, against the Redis door: brings the suite from Debian's source
//! package, with Debian's programs of Redis beside it, and runs `redis-suite` of `tests/`.
//!
//! ```text
//! packages tcl, redis-server ─► source of redis-server ─► target/redis-suite/redis-7.0.15 ─► redis-suite
//! ```
//! The source is fetched with a list of sources of its own: the machine's lists stay as they are.

use crate::process::{checked_out, command};
use crate::setup;
use anyhow::{Context, Result, bail, ensure};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The version of the suite that the record is of.
const VERSION: &str = "7.0.15";
/// Where all of it lies in the checkout.
const PLACE: &str = "target/redis-suite";
/// Programs that the suite starts, in the directory where a build would have left them.
const PROGRAMS: &[&str] = &["redis-server", "redis-cli", "redis-benchmark"];
/// Where Debian's sources are, if the machine names no other place.
const DEBIAN: (&str, &str) = ("http://deb.debian.org/debian", "bookworm");
/// The keys that Debian's lists are signed with.
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
/// The server of users, and that of everyday builds.
const RELEASE: &str = "target/release/quipu";
const EVERYDAY: &str = "target/debug/quipu";

/// Builds the release binary, or the everyday one, and runs the suite against it; other arguments go
/// to the runner.
pub fn run(arguments: &[String]) -> Result<()> {
    let is_everyday = arguments.iter().any(|argument| argument == "--debug");
    let rest = arguments.iter().map(String::as_str).filter(|argument| *argument != "--debug");
    let arguments: Vec<&str> = rest.collect();
    let mut build = vec!["build", "--package", "quipu", "--features", "quipu/jemalloc"];
    if !is_everyday {
        build.push("--release");
    }
    command("cargo", &build, &[])?;
    command("cargo", &["build", "--package", "e2e", "--bin", "redis-suite"], &[])?;
    against(if is_everyday { EVERYDAY } else { RELEASE }, &arguments)
}

/// Runs the suite against a binary, with a runner that is built.
pub fn against(binary: &str, arguments: &[&str]) -> Result<()> {
    setup::redis_suite()?;
    let suite = bring()?;
    let binary = checked_out()?.join(binary).display().to_string();
    let suite = suite.display().to_string();
    let mut all = vec![suite.as_str()];
    all.extend(arguments);
    command("target/debug/redis-suite", &all, &[("QUIPU_BINARY", &binary)])
}

/// The directory of the suite, which is fetched if it is not there.
fn bring() -> Result<PathBuf> {
    let place = checked_out()?.join(PLACE);
    let suite = place.join(format!("redis-{VERSION}"));
    if !suite.join("tests/test_helper.tcl").is_file() {
        fs::create_dir_all(&place)?;
        let archive = download(&place)?;
        let (archive, place) = (archive.display().to_string(), place.display().to_string());
        command("tar", &["-xzf", &archive, "-C", &place], &[])?;
    }
    for program in PROGRAMS {
        let link = suite.join("src").join(program);
        if !link.exists() {
            symlink(Path::new("/usr/bin").join(program), &link)?;
        }
    }
    Ok(suite)
}

/// Fetches the archive of the source, whose signature apt checks.
fn download(place: &Path) -> Result<PathBuf> {
    let lists = place.join("apt");
    fs::create_dir_all(lists.join("partial"))?;
    let (server, release) = repository();
    let sources = place.join("sources.list");
    let signed = if Path::new(KEYRING).is_file() {
        format!("[signed-by={KEYRING}] ")
    } else {
        String::new()
    };
    fs::write(&sources, format!("deb-src {signed}{server} {release} main\n"))?;
    let options = [
        format!("Dir::Etc::sourcelist={}", sources.display()),
        "Dir::Etc::sourceparts=/dev/null".to_owned(),
        format!("Dir::State::lists={}", lists.display()),
        "APT::Sandbox::User=root".to_owned(),
    ];
    let options: Vec<&str> = options.iter().flat_map(|option| ["-o", option]).collect();
    let apt = |words: &[&str]| -> Result<()> {
        let done = Command::new("apt-get").args(&options).args(words).current_dir(place).status();
        let done = done.context("cannot start apt-get")?;
        ensure!(done.success(), "apt-get {} failed: {done}", words.join(" "));
        Ok(())
    };
    apt(&["update", "-qq"])?;
    apt(&["source", "-qq", "--download-only", "redis"])?;
    let archive = place.join(format!("redis_{VERSION}.orig.tar.gz"));
    if !archive.is_file() {
        bail!(
            "{server} {release} has no source of Redis {VERSION}: put redis_{VERSION}.orig.tar.gz into {}",
            place.display()
        );
    }
    Ok(archive)
}

/// Where this machine has its packages from, and of which release.
fn repository() -> (String, String) {
    let format =
        ["indextargets", "--format", "$(ORIGIN) $(COMPONENT) $(CODENAME) $(SUITE) $(REPO_URI)"];
    let listed = Command::new("apt-get").args(format).arg("Created-By: Packages").output();
    let listed = listed.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    of_targets(&listed.unwrap_or_default())
}

fn of_targets(listed: &str) -> (String, String) {
    let is_plain = |words: &Vec<&str>| {
        // Not updates, backports or somebody else's.
        words.len() == 5 && words[0] == "Debian" && words[1] == "main" && !words[2].contains('-')
    };
    let found = listed.lines().map(|line| line.split(' ').collect()).find(is_plain);
    match found {
        Some(words) => (words[4].trim_end_matches('/').to_owned(), words[2].to_owned()),
        None => (DEBIAN.0.to_owned(), DEBIAN.1.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_source_comes_from_where_the_packages_do() {
        let listed = "Debian main bookworm-updates stable-updates http://mirror/debian/\n\
                      Debian main bookworm oldstable http://mirror/debian/\n";
        let (server, release) = of_targets(listed);
        assert_eq!((server.as_str(), release.as_str()), ("http://mirror/debian", "bookworm"));
        assert_eq!(of_targets("").1, "bookworm");
    }
}
