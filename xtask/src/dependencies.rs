//! What the crates we build on say of themselves: licences that may be shipped, and no version of
//! which a flaw is known.
//!
//! `xtask/advisories.txt` is taken from RustSec's database, so that the check needs no network.
//! `cargo xtask advisories DIR` writes it anew from a checkout of that database.

use anyhow::{Context, Result, bail, ensure};
use semver::{Version, VersionReq};
use serde_json::Value;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Licences whose terms a binary under Apache-2.0 can keep.
const LICENCES: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "NCSA",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];
/// Crates under other terms that we keep, and why.
///
/// - x509-certificate: pgwire's SCRAM cannot be had without it. MPL-2.0 binds its own files alone: who
///   gets a binary may get their source, which is on crates.io, unchanged.
/// - webpki-root-certs: Mozilla's certificates, data and no code, in the lock file for Android alone.
const EXCEPTIONS: &[(&str, &str)] =
    &[("x509-certificate", "MPL-2.0"), ("webpki-root-certs", "CDLA-Permissive-2.0")];
/// The advisories: crate, number, versions with the flaw mended, versions that never had it.
const ADVISORIES: &str = "advisories.txt";

/// A crate in the lock file.
struct Locked {
    name: String,
    version: Version,
    licence: String,
}

/// A flaw that somebody found in a crate.
struct Advisory<'a> {
    name: &'a str,
    id: &'a str,
    /// Versions that do not have it.
    sound: Vec<VersionReq>,
}

/// Fails with every crate that may not be shipped or has a known flaw.
pub fn run() -> Result<()> {
    let text = fs::read_to_string(advisories_path())?;
    let advisories = text.lines().filter(|line| !line.starts_with('#')).map(parse_advisory);
    let advisories = advisories.collect::<Result<Vec<_>>>()?;
    let locked = locked()?;
    let mut complaints = Vec::new();
    for one in &locked {
        let shown = format!("{} {}", one.name, one.version);
        let is_excepted = EXCEPTIONS.contains(&(one.name.as_str(), one.licence.as_str()));
        if !is_excepted && !is_allowed(&one.licence) {
            complaints.push(format!("{shown}: its licence is {}", one.licence));
        }
        let flaws = advisories.iter().filter(|advisory| advisory.concerns(one));
        complaints.extend(flaws.map(|advisory| format!("{shown}: {}", advisory.id)));
    }
    ensure!(complaints.is_empty(), "crates that may not be used:\n{}", complaints.join("\n"));
    println!("   {} crates, {} advisories", locked.len(), advisories.len());
    Ok(())
}

fn advisories_path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(ADVISORIES)
}

/// All crates of the lock file that come from a registry.
fn locked() -> Result<Vec<Locked>> {
    let output = Command::new("cargo")
        .args(["metadata", "--format-version", "1", "--locked"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .context("cannot start cargo")?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let packages = metadata["packages"].as_array().context("cargo metadata lists packages")?;
    let foreign = packages.iter().filter(|package| package["source"].is_string());
    let locked = foreign.map(|package| {
        let text = |field: &str| package[field].as_str().unwrap_or_default().to_string();
        let version = Version::parse(&text("version"))?;
        Ok(Locked { name: text("name"), version, licence: text("license") })
    });
    locked.collect()
}

/// Whether one of the choices that a licence leaves can be kept: "A OR (B AND C)", "A/B".
fn is_allowed(licence: &str) -> bool {
    let choices = split_outside(licence, &[" OR ", "/"]);
    if 1 < choices.len() {
        return choices.iter().any(|choice| is_allowed(choice));
    }
    let parts = split_outside(licence, &[" AND "]);
    if 1 < parts.len() {
        return parts.iter().all(|part| is_allowed(part));
    }
    let bare = licence.trim();
    match bare.strip_prefix('(').and_then(|inner| inner.strip_suffix(')')) {
        Some(inner) => is_allowed(inner),
        None => LICENCES.contains(&bare),
    }
}

/// The pieces between separators that stand in no parentheses.
fn split_outside<'a>(text: &'a str, separators: &[&str]) -> Vec<&'a str> {
    let (mut pieces, mut start, mut depth, mut at) = (Vec::new(), 0, 0, 0);
    while at < text.len() {
        let rest = &text.as_bytes()[at..];
        match rest[0] {
            b'(' => depth += 1,
            b')' => depth -= 1,
            _ => {}
        }
        let separator =
            separators.iter().find(|one| depth == 0 && rest.starts_with(one.as_bytes()));
        match separator {
            Some(separator) => {
                pieces.push(&text[start..at]);
                at += separator.len();
                start = at;
            }
            None => at += 1,
        }
    }
    pieces.push(&text[start..]);
    pieces
}

impl Advisory<'_> {
    fn concerns(&self, locked: &Locked) -> bool {
        self.name == locked.name && !self.sound.iter().any(|sound| sound.matches(&locked.version))
    }
}

/// One line: crate, number, and versions that are sound, with tabs between.
fn parse_advisory(line: &str) -> Result<Advisory<'_>> {
    let mut fields = line.split('\t');
    let mut field = || fields.next().with_context(|| format!("{ADVISORIES}: {line:?}"));
    let (name, id) = (field()?, field()?);
    let sound = fields.map(VersionReq::parse).collect::<Result<_, _>>();
    Ok(Advisory { name, id, sound: sound.with_context(|| format!("{ADVISORIES}: {line:?}"))? })
}

/// Writes the advisories anew from a checkout of RustSec's database.
pub fn update(arguments: &[String]) -> Result<()> {
    let [database] = arguments else { bail!("usage: cargo xtask advisories DIR") };
    let mut lines = Vec::new();
    for folder in fs::read_dir(Path::new(database).join("crates"))? {
        for file in fs::read_dir(folder?.path())? {
            let file = file?.path();
            let text = fs::read_to_string(&file)?;
            let line = line_of(&text).with_context(|| file.display().to_string())?;
            lines.extend(line);
        }
    }
    ensure!(!lines.is_empty(), "{database} holds no advisories: is it a checkout of RustSec's?");
    lines.sort();
    let mut text = String::from(
        "# Known flaws: crate, RustSec's number, versions without it. Written by `cargo xtask advisories`.\n",
    );
    lines.iter().for_each(|line| text.extend([line.as_str(), "\n"]));
    fs::write(advisories_path(), text)?;
    println!("{} advisories", lines.len());
    Ok(())
}

/// A file's line; none when it was withdrawn.
fn line_of(markdown: &str) -> Result<Option<String>> {
    let front = markdown.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next());
    let front: toml::Table = toml::from_str(front.context("no TOML at its head")?)?;
    let advisory = front["advisory"].as_table().context("no advisory")?;
    if advisory.contains_key("withdrawn") {
        return Ok(None);
    }
    let text = |field: &str| advisory[field].as_str().unwrap_or_default();
    let mut line = format!("{}\t{}", text("package"), text("id"));
    let versions = front.get("versions").and_then(|versions| versions.as_table());
    for list in ["patched", "unaffected"] {
        let list =
            versions.and_then(|versions| versions.get(list)).and_then(|list| list.as_array());
        for range in list.into_iter().flatten().filter_map(|range| range.as_str()) {
            write!(line, "\t{range}")?;
        }
    }
    Ok(Some(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `deny.toml` tells cargo-deny what this file tells CI.
    #[test]
    fn the_licences_of_cargo_deny_are_these() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deny.toml");
        let deny: toml::Table = toml::from_str(&fs::read_to_string(path).unwrap()).unwrap();
        let licenses = deny["licenses"].as_table().unwrap();
        let allowed = licenses["allow"].as_array().unwrap().iter();
        assert_eq!(allowed.map(|one| one.as_str().unwrap()).collect::<Vec<_>>(), LICENCES);
        let exceptions = licenses["exceptions"].as_array().unwrap().iter();
        let exceptions = exceptions.map(|one| {
            let [licence] = &one["allow"].as_array().unwrap()[..] else { panic!("{one:?}") };
            (one["name"].as_str().unwrap(), licence.as_str().unwrap())
        });
        assert_eq!(exceptions.collect::<Vec<_>>(), EXCEPTIONS);
    }

    #[test]
    fn licences_are_read_as_they_are_written() {
        for good in ["MIT", "MIT/Apache-2.0", "GPL-3.0 OR MIT", "(MIT OR X) AND Unicode-3.0"] {
            assert!(is_allowed(good), "{good}");
        }
        for bad in ["", "GPL-3.0", "MIT AND GPL-3.0", "GPL-3.0 OR (MIT AND X)", "(MIT"] {
            assert!(!is_allowed(bad), "{bad}");
        }
    }

    #[test]
    fn an_advisory_concerns_versions_before_it_was_mended() {
        let advisory = parse_advisory("h2\tRUSTSEC-2024-0332\t^0.3.26\t>= 0.4.4").unwrap();
        let locked = |version: &str| Locked {
            name: "h2".to_string(),
            version: Version::parse(version).unwrap(),
            licence: String::new(),
        };
        for (version, concerns) in [("0.3.25", true), ("0.3.26", false), ("0.4.3", true)] {
            assert_eq!(advisory.concerns(&locked(version)), concerns, "{version}");
        }
        assert!(parse_advisory("h2").is_err() && parse_advisory("h2\tX\tno range").is_err());
        let text = "```toml\n[advisory]\nid = \"R\"\npackage = \"p\"\n[versions]\npatched = [\">= 2\"]\n```\n# T";
        assert_eq!(line_of(text).unwrap().unwrap(), "p\tR\t>= 2");
    }
}
