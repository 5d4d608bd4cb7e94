//! Rules on the files inside a crate: layers, import cycles, and files of a folder.
//!
//! ```text
//! layers    a file imports from its own layer and from those below it
//! cycles    at most three files import each other
//! folders   at most twenty files lie in a folder
//! ```
//!
//! Code of tests may import everything. The tables of exceptions only shrink: a number that is too
//! high is a complaint, too.

mod graph;
mod imports;
mod tokens;

use anyhow::Result;
use graph::Graph;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Folders of a crate that are its layers, the highest first.
const LAYERS: &[(&str, &[&str])] = &[
    (
        "crates/sql",
        &["session", "copy", "ddl_dml", "plan", "parse", "catalog", "tables", "functions", "types"],
    ),
    (
        "crates/store",
        &[
            "store",
            "offline",
            "background",
            "read",
            "write",
            "partition",
            "merge",
            "part",
            "log",
            "base",
        ],
    ),
];

/// Files of the largest cycle of imports.
const CYCLE_FILES_MAX: usize = 3;
/// Crates with a larger one, and its size.
const LARGE_CYCLES: &[(&str, usize)] = &[("crates/flux", 7), ("crates/pg-server", 10)];

/// Files of a folder, `mod.rs`, `lib.rs` and `main.rs` apart.
const FOLDER_FILES_MAX: usize = 20;
/// Folders with more, and their number.
const LARGE_FOLDERS: &[(&str, usize)] = &[
    ("crates/engine/src", 36),
    ("crates/flux/src/builtins", 26),
    ("crates/histogram/src", 22),
    ("crates/tables/src", 23),
];

/// Complains about files and folders that break the rules.
///
/// # Errors
/// On I/O errors.
pub fn check(root: &Path, complaints: &mut Vec<String>) -> Result<()> {
    let mut folders = BTreeMap::new();
    let mut cycles = BTreeMap::new();
    for krate in crates(root)? {
        let graph = Graph::read(&root.join(&krate).join("src"))?;
        if let Some((_, order)) = LAYERS.iter().find(|(name, _)| *name == krate) {
            check_layers(&krate, order, &graph, complaints);
        }
        count_files(&krate, &graph, &mut folders);
        let found = graph.cycles().into_iter().next().unwrap_or_default();
        let files = found.join(" ");
        cycles.insert(krate, (found.len(), files));
    }
    let rule = "files import each other";
    check_ratchet(rule, "LARGE_CYCLES", CYCLE_FILES_MAX, LARGE_CYCLES, &cycles, complaints);
    let rule = "files in a folder";
    check_ratchet(rule, "LARGE_FOLDERS", FOLDER_FILES_MAX, LARGE_FOLDERS, &folders, complaints);
    Ok(())
}

/// Paths of the crates.
fn crates(root: &Path) -> Result<Vec<String>> {
    let mut crates: Vec<String> =
        ["bench", "bench/inside", "tests", "xtask"].map(str::to_string).to_vec();
    for entry in fs::read_dir(root.join("crates"))? {
        crates.push(entry?.path().strip_prefix(root)?.display().to_string());
    }
    crates.sort();
    Ok(crates)
}

/// Complains about imports of a layer above, and of what is in no layer.
fn check_layers(krate: &str, order: &[&str], graph: &Graph, complaints: &mut Vec<String>) {
    let layer = |name: &str| {
        let folder = name.split_once('/').map_or("", |(folder, _)| folder);
        order.iter().position(|one| *one == folder)
    };
    for (file, imports) in graph.files.iter().zip(&graph.imports) {
        let Some(own) = layer(&file.name) else { continue };
        for target in imports.iter().map(|idx| graph.files[*idx].name.as_str()) {
            let above = match layer(target) {
                Some(other) if own <= other => continue,
                Some(other) => format!("`{}` is above `{}`", order[other], order[own]),
                None => "it is in no layer".to_string(),
            };
            complaints.push(format!(
                "{krate}/src/{}: imports {krate}/src/{target}, but {above} ({})",
                file.name,
                order.join(" > "),
            ));
        }
    }
}

/// Counts the files of each folder.
fn count_files(krate: &str, graph: &Graph, folders: &mut BTreeMap<String, (usize, String)>) {
    for file in &graph.names {
        let (folder, name) = file.rsplit_once('/').unwrap_or(("", file));
        if !matches!(name, "mod.rs" | "lib.rs" | "main.rs") {
            let folder = format!("{krate}/src/{folder}");
            let folder = folder.trim_end_matches('/').to_string();
            folders.entry(folder).or_default().0 += 1;
        }
    }
}

/// Compares sizes with their bound, and with the table of exceptions.
fn check_ratchet(
    rule: &str,
    table: &str,
    max: usize,
    exceptions: &[(&str, usize)],
    found: &BTreeMap<String, (usize, String)>,
    complaints: &mut Vec<String>,
) {
    for (name, (size, detail)) in found {
        let exception = exceptions.iter().find(|(exception, _)| exception == name);
        let allowed = exception.map_or(max, |(_, size)| *size);
        if allowed < *size {
            let detail = if detail.is_empty() { String::new() } else { format!(": {detail}") };
            complaints.push(format!("{name}: {size} {rule}, at most {allowed}{detail}"));
        } else if exception.is_some() && *size <= max {
            complaints.push(format!("{name}: remove it from {table} in xtask/src/layers"));
        } else if *size < allowed && exception.is_some() {
            complaints.push(format!("{name}: lower it to {size} in {table} in xtask/src/layers"));
        }
    }
    for (name, _) in exceptions.iter().filter(|(name, _)| !found.contains_key(*name)) {
        complaints.push(format!("{name}: remove it from {table} in xtask/src/layers"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(files: &[(&str, &str)]) -> Graph {
        Graph::new(files.iter().map(|(name, text)| (name.to_string(), text.to_string())).collect())
    }

    #[test]
    fn imports_of_a_layer_above_are_complained_about() {
        let graph = graph(&[
            ("lib.rs", "pub use high::Name;\npub fn helper() {}"),
            ("high/mod.rs", "pub struct Name; use crate::low::deep::file::Low;"),
            ("low/mod.rs", ""),
            ("low/deep/mod.rs", ""),
            ("low/deep/file.rs", "use crate::{Name, helper}; use crate::low::other::Other;"),
            ("low/other.rs", "pub struct Other;"),
        ]);
        let mut complaints = Vec::new();
        check_layers("c", &["high", "low"], &graph, &mut complaints);
        complaints.sort();
        let expected = [
            "c/src/low/deep/file.rs: imports c/src/high/mod.rs, but `high` is above `low` (high > low)",
            "c/src/low/deep/file.rs: imports c/src/lib.rs, but it is in no layer (high > low)",
        ];
        assert_eq!(complaints, expected);
    }

    #[test]
    fn exceptions_only_shrink() {
        let found = [("a", 4), ("b", 5), ("c", 3), ("d", 9), ("e", 3)];
        let found = found.map(|(name, size)| (name.to_string(), (size, String::new()))).into();
        let exceptions = [("b", 6), ("c", 7), ("d", 9), ("f", 8)];
        let mut complaints = Vec::new();
        check_ratchet("files", "T", 3, &exceptions, &found, &mut complaints);
        let expected = [
            "a: 4 files, at most 3",
            "b: lower it to 5 in T in xtask/src/layers",
            "c: remove it from T in xtask/src/layers",
            "f: remove it from T in xtask/src/layers",
        ];
        assert_eq!(complaints, expected);
    }

    #[test]
    fn files_are_counted_by_folder() {
        let graph = graph(&[("lib.rs", ""), ("a.rs", ""), ("b/mod.rs", ""), ("b/c.rs", "")]);
        let mut folders = BTreeMap::new();
        count_files("k", &graph, &mut folders);
        let counts: Vec<(&str, usize)> =
            folders.iter().map(|(name, (count, _))| (name.as_str(), *count)).collect();
        assert_eq!(counts, [("k/src", 1), ("k/src/b", 1)]);
    }
}
