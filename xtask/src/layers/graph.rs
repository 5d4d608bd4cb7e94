//! Files of a crate and their imports of each other.
//!
//! An import of a re-exported name leads to the file that has the item, and a re-export of a file's
//! own child modules is no import: façades connect nothing.

use super::imports::{Import, Source, parse};
use anyhow::Result;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Re-exports that are followed from one name.
const HOPS_MAX: usize = 8;

/// Path of a module in its crate.
type ModulePath = Vec<String>;

/// A file of a crate.
pub struct File {
    /// Path below `src`.
    pub name: String,
    module: ModulePath,
    source: Source,
}

/// Files of a crate, and which files they import. Files of tests are only named.
pub struct Graph {
    /// Names of all files.
    pub names: Vec<String>,
    pub files: Vec<File>,
    /// Indexes of the imported files, by the index of the file.
    pub imports: Vec<BTreeSet<usize>>,
}

/// Declarations of a module that bring names into its scope.
#[derive(Default)]
struct Scope<'a> {
    names: BTreeMap<&'a str, &'a Import>,
    globs: Vec<&'a Import>,
}

struct Resolver<'a> {
    files: &'a [File],
    modules: BTreeMap<&'a [String], usize>,
    inline_modules: BTreeSet<ModulePath>,
    scopes: BTreeMap<ModulePath, Scope<'a>>,
}

impl Graph {
    /// Reads the files below a `src` folder.
    ///
    /// # Errors
    /// On I/O errors.
    pub fn read(src: &Path) -> Result<Graph> {
        let mut paths = Vec::new();
        crate::tidy::collect(src, &mut paths)?;
        let mut files = Vec::new();
        for path in paths {
            let name = path.strip_prefix(src)?.display().to_string();
            files.push((name, fs::read_to_string(&path)?));
        }
        let has_library = files.iter().any(|(name, _)| name == "lib.rs");
        // The binary beside a library is a crate of its own.
        files.retain(|(name, _)| !has_library || (name != "main.rs" && !name.starts_with("bin/")));
        Ok(Graph::new(files))
    }

    /// Files by name below `src`, and their text.
    pub fn new(files: Vec<(String, String)>) -> Graph {
        let file = |(name, text): (String, String)| {
            let module = module_of(&name);
            File { name, module, source: parse(&text) }
        };
        let names = files.iter().map(|(name, _)| name.clone()).collect();
        let mut files: Vec<File> = files.into_iter().map(file).collect();
        let tests: Vec<ModulePath> = files.iter().flat_map(test_modules).collect();
        files.retain(|file| !tests.iter().any(|test| file.module.starts_with(test)));
        let resolver = Resolver::new(&files);
        let imports = (0..files.len()).map(|idx| resolver.imports_of(idx)).collect();
        Graph { names, files, imports }
    }

    /// Groups of files that import each other, directly or not; the largest first.
    pub fn cycles(&self) -> Vec<Vec<&str>> {
        let reach: Vec<Vec<bool>> = (0..self.files.len()).map(|idx| self.reach(idx)).collect();
        let mut is_seen = vec![false; self.files.len()];
        let mut cycles: Vec<Vec<&str>> = Vec::new();
        for start in 0..self.files.len() {
            if !reach[start][start] || is_seen[start] {
                continue;
            }
            let is_mutual = |other: &usize| reach[start][*other] && reach[*other][start];
            let cycle: Vec<usize> = (start..self.files.len()).filter(is_mutual).collect();
            cycle.iter().for_each(|idx| is_seen[*idx] = true);
            cycles.push(cycle.iter().map(|idx| self.files[*idx].name.as_str()).collect());
        }
        cycles.sort_by_key(|cycle| std::cmp::Reverse(cycle.len()));
        cycles
    }

    /// Which files a file imports, directly or not.
    fn reach(&self, start: usize) -> Vec<bool> {
        let mut reached = vec![false; self.files.len()];
        let mut open = vec![start];
        while let Some(idx) = open.pop() {
            for next in &self.imports[idx] {
                if !std::mem::replace(&mut reached[*next], true) {
                    open.push(*next);
                }
            }
        }
        reached
    }
}

/// Module of a file: `a/b.rs` and `a/b/mod.rs` are `a::b`.
fn module_of(name: &str) -> ModulePath {
    let mut segments: ModulePath =
        name.trim_end_matches(".rs").split('/').map(str::to_string).collect();
    if matches!(segments.last().map(String::as_str), Some("mod" | "lib" | "main")) {
        segments.pop();
    }
    segments
}

fn test_modules(file: &File) -> Vec<ModulePath> {
    let child = |name: &String| [&file.module[..], std::slice::from_ref(name)].concat();
    file.source.test_modules.iter().map(child).collect()
}

impl<'a> Resolver<'a> {
    fn new(files: &'a [File]) -> Resolver<'a> {
        let modules = files.iter().enumerate().map(|(idx, file)| (&file.module[..], idx)).collect();
        let mut scopes: BTreeMap<ModulePath, Scope<'a>> = BTreeMap::new();
        let mut inline_modules = BTreeSet::new();
        for file in files {
            let inline = file.source.inline_modules.iter();
            inline_modules.extend(inline.map(|inside| [&file.module[..], inside].concat()));
            for import in &file.source.imports {
                let scope = scopes.entry([&file.module[..], &import.inside].concat()).or_default();
                match import.name.as_deref() {
                    Some("*") => scope.globs.push(import),
                    Some(name) => _ = scope.names.insert(name, import),
                    None => {}
                }
            }
        }
        Resolver { files, modules, inline_modules, scopes }
    }

    fn imports_of(&self, idx: usize) -> BTreeSet<usize> {
        let module = &self.files[idx].module;
        let mut imports = BTreeSet::new();
        for import in &self.files[idx].source.imports {
            let scope = [&module[..], &import.inside].concat();
            let Some(target) = self.resolve(&scope, import, &[], HOPS_MAX) else { continue };
            let is_facade = import.is_public && self.files[target].module.starts_with(module);
            if target != idx && !is_facade {
                imports.insert(target);
            }
        }
        imports
    }

    /// The file with the item that an import in a module names, followed by `rest`; `None` for
    /// other crates.
    fn resolve(
        &self,
        scope: &[String],
        import: &Import,
        rest: &[String],
        hops: usize,
    ) -> Option<usize> {
        let mut segments = import.path.iter().chain(rest).peekable();
        let mut module = scope.to_vec();
        let first = segments.peek()?.as_str();
        match first {
            "crate" => {
                module.clear();
                segments.next();
            }
            "self" | "super" => {
                while let Some(one) =
                    segments.next_if(|one| ["self", "super"].contains(&one.as_str()))
                {
                    if one == "super" {
                        module.pop();
                    }
                }
            }
            _ if !self.is_in_scope(scope, first, import) => return None,
            _ => {}
        }
        let segments: Vec<String> = segments.cloned().collect();
        self.find(module, &segments, hops)
    }

    /// Whether a module of the crate, or an import other than this one, has a name in a scope.
    fn is_in_scope(&self, scope: &[String], name: &str, import: &Import) -> bool {
        let known = self.scopes.get(scope).and_then(|scope| scope.names.get(name));
        self.is_module(&[scope, &[name.to_string()]].concat())
            || known.is_some_and(|known| !std::ptr::eq(*known, import))
    }

    fn is_module(&self, module: &[String]) -> bool {
        self.modules.contains_key(module) || self.inline_modules.contains(module)
    }

    /// The file with the item at a path below a module.
    fn find(&self, mut module: ModulePath, segments: &[String], hops: usize) -> Option<usize> {
        for (idx, segment) in segments.iter().enumerate() {
            let child = [&module[..], std::slice::from_ref(segment)].concat();
            if self.is_module(&child) {
                module = child;
                continue;
            }
            let Some(scope) = self.scopes.get(&module).filter(|_| 0 < hops) else { break };
            let rest = &segments[idx + 1..];
            if let Some(import) = scope.names.get(segment.as_str()) {
                return self.resolve(&module, import, rest, hops - 1);
            }
            let in_globs = scope.globs.iter().find_map(|glob| {
                let target = self.resolve(&module, glob, &[], hops - 1)?;
                self.files[target].source.items.contains(segment).then_some(target)
            });
            if let Some(file) = in_globs.filter(|_| !self.owner_has(&module, segment)) {
                return Some(file);
            }
            break;
        }
        self.owner(&module)
    }

    fn owner_has(&self, module: &[String], item: &String) -> bool {
        self.owner(module).is_some_and(|file| self.files[file].source.items.contains(item))
    }

    /// The file that a module is in.
    fn owner(&self, module: &[String]) -> Option<usize> {
        (0..=module.len()).rev().find_map(|size| self.modules.get(&module[..size]).copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(files: &[(&str, &str)]) -> Graph {
        Graph::new(files.iter().map(|(name, text)| (name.to_string(), text.to_string())).collect())
    }

    /// Imports as lines.
    fn edges(files: &[(&str, &str)]) -> Vec<String> {
        let graph = graph(files);
        let mut lines = Vec::new();
        for (file, imports) in graph.files.iter().zip(&graph.imports) {
            let line = |idx: &usize| format!("{} > {}", file.name, graph.files[*idx].name);
            lines.extend(imports.iter().map(line));
        }
        lines
    }

    #[test]
    fn paths_lead_to_files() {
        let files = [
            ("a/mod.rs", "pub struct A;"),
            ("a/b.rs", "use super::A; use super::c::{self, D}; use std::fmt;"),
            ("a/c.rs", "pub struct D; fn f() { crate::e::g() }"),
            ("e.rs", "use crate::a::{A, b::B};"),
            ("lib.rs", "mod a; mod e;"),
        ];
        let expected = ["a/b.rs > a/mod.rs", "a/b.rs > a/c.rs", "a/c.rs > e.rs", "e.rs > a/mod.rs"];
        let found = edges(&files);
        assert_eq!(found[..4], expected);
        assert_eq!(found[4..], ["e.rs > a/b.rs"]);
    }

    #[test]
    fn reexports_are_followed() {
        let files = [
            ("lib.rs", "pub use low::Error; pub use other::Name; pub use ast::*;"),
            ("low.rs", "pub struct Error;"),
            ("ast.rs", "pub struct Tree;"),
            ("high.rs", "use crate::{Error, Name, Tree};"),
        ];
        assert_eq!(edges(&files), ["high.rs > low.rs", "high.rs > ast.rs"]);
    }

    #[test]
    fn super_of_an_inline_module_is_its_file() {
        let files = [("a.rs", "mod m { use super::X; use super::super::Y; }"), ("lib.rs", "")];
        assert_eq!(edges(&files), ["a.rs > lib.rs"]);
    }

    #[test]
    fn files_of_tests_are_left_out() {
        let files = [
            ("a/mod.rs", "#[cfg(test)]\nmod tests;"),
            ("a/tests.rs", "use crate::b::B;"),
            ("b.rs", "pub struct B;"),
            ("lib.rs", ""),
        ];
        assert_eq!(edges(&files).len(), 0);
    }

    #[test]
    fn cycles_are_groups_of_files_that_import_each_other() {
        let files = [
            ("a.rs", "use crate::b::B;"),
            ("b.rs", "use crate::c::C;"),
            ("c.rs", "use crate::a::A; use crate::d::D;"),
            ("d.rs", ""),
            ("lib.rs", ""),
        ];
        assert_eq!(graph(&files).cycles(), [["a.rs", "b.rs", "c.rs"]]);
    }
}
