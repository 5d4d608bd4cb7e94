//! House rules that no compiler checks: heads of files, sizes of files and functions, words that
//! may not stay, the edges between rooms as ARCHITECTURE.md draws them, and [`layers`].

use crate::layers;
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};

/// Lines of a file, its tests apart.
const FILE_LINES_MAX: usize = 800;
/// Lines of a function.
const FUNCTION_LINES_MAX: usize = 70;
/// Words that may not be in code, and what to do instead.
const BANNED: &[(&str, &str)] = &[
    ("FIXME", "open an issue"),
    ("dbg!(", "remove it"),
    ("todo!(", "write it"),
    ("unimplemented!(", "write it"),
    ("#[ignore", "make the test fast or remove it"),
    ("thread::sleep", "wait for an event"),
];
/// Where the clock rules: these wait for other processes or pace work by design.
const MAY_SLEEP: &[&str] = &[
    "bench/",
    "tests/",
    "xtask/",
    "crates/backup/",
    "crates/http-client/",
    "crates/migrate/",
    "crates/quipu/src/commands/",
];
/// Folders with code.
const ROOTS: &[&str] = &["crates", "tests", "bench", "xtask", "fuzz"];

/// The one folder outside `crates/` whose edges are written down: it is linked to rooms, and no
/// room to it.
const INSIDE: &str = "bench/inside";

/// Fails with a list of everything that is not tidy.
pub fn run() -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("a workspace above")?;
    let mut complaints = Vec::new();
    for folder in ROOTS {
        let mut files = Vec::new();
        collect(&root.join(folder), &mut files)?;
        for file in files {
            let text = fs::read_to_string(&file)?;
            let name = file.strip_prefix(root)?.display().to_string();
            check_file(&name, &text, &mut complaints);
        }
    }
    check_edges(root, &mut complaints)?;
    layers::check(root, &mut complaints)?;
    if !complaints.is_empty() {
        bail!("{} complaints:\n{}", complaints.len(), complaints.join("\n"));
    }
    Ok(())
}

/// Adds the source files below a folder, in order.
pub fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let Ok(entries) = fs::read_dir(folder) else { return Ok(()) };
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() && !path.ends_with("target") {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files.sort();
    Ok(())
}

fn check_file(name: &str, text: &str, complaints: &mut Vec<String>) {
    if !text.starts_with("//!") {
        complaints.push(format!("{name}: begins without a `//!` that says what it is"));
    }
    let code = text.split("\n#[cfg(test)]\nmod tests {").next().unwrap_or(text);
    let lines = code.lines().count();
    let is_test =
        name.contains("/tests/") || name.starts_with("tests/") || name.contains("tests.rs");
    if FILE_LINES_MAX < lines && !is_test {
        complaints.push(format!("{name}: {lines} lines, at most {FILE_LINES_MAX}"));
    }
    for (idx, line) in text.lines().enumerate() {
        for (word, instead) in BANNED {
            let allowed = *word == "thread::sleep" && MAY_SLEEP.iter().any(|p| name.starts_with(p));
            if line.contains(word) && !allowed && name != "xtask/src/tidy.rs" {
                complaints.push(format!("{name}:{}: {word} ({instead})", idx + 1));
            }
        }
    }
    check_regexes(name, code, complaints);
    check_functions(name, code, complaints);
}

/// Crates that may compile regular expressions themselves: Go's dialect, PostgreSQL's, and tools.
const REGEX_CRATES: [&str; 5] = ["crates/re2/", "crates/sql/", "bench/", "tests/", "xtask/"];

/// Regular expressions of users have one dialect, which one crate reads.
fn check_regexes(name: &str, code: &str, complaints: &mut Vec<String>) {
    let is_test =
        name.contains("/tests/") || name.contains("tests.rs") || name.contains("testing.rs");
    if is_test || REGEX_CRATES.iter().any(|start| name.starts_with(start)) {
        return;
    }
    for (idx, line) in code.lines().enumerate() {
        if line.contains("Regex::new(") || line.contains("RegexBuilder::new(") {
            complaints.push(format!("{name}:{}: compile regular expressions with re2", idx + 1));
        }
    }
}

/// In formatted code a function ends with a brace in the column where its first line begins.
fn check_functions(name: &str, code: &str, complaints: &mut Vec<String>) {
    let lines: Vec<&str> = code.lines().collect();
    for (idx, line) in lines.iter().enumerate() {
        let trimmed = line.trim_start();
        let is_function = ["fn ", "pub fn ", "pub(crate) fn ", "pub(super) fn ", "async fn "]
            .iter()
            .chain(&["pub async fn ", "pub(crate) async fn "])
            .any(|start| trimmed.starts_with(start));
        if !is_function || line.ends_with('}') || line.ends_with(';') {
            continue;
        }
        let end = format!("{}}}", " ".repeat(line.len() - trimmed.len()));
        let length = lines[idx..].iter().position(|line| **line == end).unwrap_or(0) + 1;
        if FUNCTION_LINES_MAX < length {
            let at = idx + 1;
            complaints.push(format!(
                "{name}:{at}: a function of {length} lines, at most {FUNCTION_LINES_MAX}"
            ));
        }
    }
}

/// Every room uses only the rooms that its line in ARCHITECTURE.md allows.
fn check_edges(root: &Path, complaints: &mut Vec<String>) -> Result<()> {
    let architecture = fs::read_to_string(root.join("ARCHITECTURE.md"))?;
    let rows: Vec<(String, String)> = architecture.lines().filter_map(table_row).collect();
    let mut folders = vec![root.join(INSIDE)];
    for entry in fs::read_dir(root.join("crates"))? {
        folders.push(entry?.path());
    }
    for folder in folders {
        let path = folder.strip_prefix(root)?.display().to_string();
        // A room goes by its folder's name below crates/, all else by its path.
        let room = path.strip_prefix("crates/").unwrap_or(&path);
        let Some((_, allowed)) = rows.iter().find(|(name, _)| name == room) else {
            complaints.push(format!("{path}: not in ARCHITECTURE.md's table of rooms"));
            continue;
        };
        let manifest = fs::read_to_string(folder.join("Cargo.toml"))?;
        let after = manifest.split("[dependencies]").nth(1).unwrap_or("");
        let dependencies = after.split("\n[").next().unwrap_or("");
        for (used, _) in &rows {
            let forms = [format!("{used}.workspace"), format!("{used} = {{ workspace = true")];
            let is_used_by = |text: &str| forms.iter().any(|form| text.starts_with(form));
            let is_used = dependencies.lines().any(is_used_by);
            let is_allowed = allowed == "all" || allowed.split(' ').any(|name| name == used);
            if is_used && !is_allowed {
                complaints.push(format!("{path} uses {used}, which ARCHITECTURE.md forbids"));
            }
        }
    }
    Ok(())
}

/// Room and allowed rooms, from a line such as "| `wal` | codec vfs | ... |".
fn table_row(line: &str) -> Option<(String, String)> {
    let mut cells = line.strip_prefix("| `")?.split(" | ");
    let room = cells.next()?.strip_suffix('`')?.to_string();
    Some((room, cells.next()?.trim().to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_house_is_tidy() {
        run().unwrap();
    }

    #[test]
    fn untidy_files_are_noticed() {
        let mut complaints = Vec::new();
        let long = format!("fn f() {{\n{}}}\n", "    x();\n".repeat(80));
        check_file("a.rs", &format!("{long}dbg!(1);\n"), &mut complaints);
        assert_eq!(complaints.len(), 3, "{complaints:?}");
        check_file("b.rs", "//! B.\nlet r = Regex::new(text);\n", &mut complaints);
        assert_eq!(complaints.len(), 4, "{complaints:?}");
    }
}
