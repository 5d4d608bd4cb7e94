//! From names to paths: cut behind a pattern's last part, each path once, in the answer's order.
//!
//! Names come sorted, so those that share their first parts are neighbours and so are their cuts.

use model::{PathCut, PathPattern};

/// Which paths an answer is to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// Leaves and inner nodes.
    All,
    /// Paths that a metric has.
    Leaves,
}

/// The concrete paths that a pattern means, sorted.
pub fn whole_paths(names: Vec<String>, pattern: &PathPattern, kept: Kept) -> Vec<String> {
    let cut = |name: &mut String| name.truncate(pattern.cut(name).end);
    cut_all(names, pattern, kept, cut)
}

/// The last of a pattern's parts, sorted: what the nodes at its end are called.
pub fn last_parts(names: Vec<String>, pattern: &PathPattern, kept: Kept) -> Vec<String> {
    let cut = |name: &mut String| {
        let PathCut { last_start, end } = pattern.cut(name);
        name.truncate(end);
        name.drain(..last_start);
    };
    let mut pieces = cut_all(names, pattern, kept, cut);
    // Already so unless the parts before differ.
    if !pieces.is_sorted() {
        pieces.sort_unstable();
    }
    pieces.dedup();
    pieces
}

fn cut_all(
    mut names: Vec<String>,
    pattern: &PathPattern,
    kept: Kept,
    cut: impl Fn(&mut String),
) -> Vec<String> {
    names.iter_mut().for_each(cut);
    names.dedup();
    if kept == Kept::Leaves {
        names.retain(|path| !path.ends_with(pattern.delimiter()));
    }
    names
}

/// Sorts inner nodes before leaves, each path once.
pub fn nodes_first(paths: &mut Vec<String>, delimiter: char) {
    if !paths.is_sorted() {
        paths.sort_unstable();
    }
    paths.dedup();
    paths.sort_by_key(|path| !path.ends_with(delimiter));
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: &[&str] = &["a.b", "a.b.c", "a.b.d", "a.bb.c", "a.x.c", "a.x.y.z"];

    fn pattern(text: &str) -> PathPattern {
        PathPattern::parse(text, ".").expect("a pattern")
    }

    fn names() -> Vec<String> {
        NAMES.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn paths_end_behind_the_last_part() {
        let whole = |text: &str, kept| whole_paths(names(), &pattern(text), kept);
        assert_eq!(whole("*", Kept::All), ["a."]);
        assert_eq!(whole("a.*", Kept::All), ["a.b", "a.b.", "a.bb.", "a.x."]);
        assert_eq!(whole("a.*", Kept::Leaves), ["a.b"]);
        assert_eq!(whole("a.*.", Kept::All), ["a.b", "a.b.", "a.bb.", "a.x."]);
        let last = |text: &str, kept| last_parts(names()[1..].to_vec(), &pattern(text), kept);
        assert_eq!(last("a.*.*", Kept::All), ["c", "d", "y."]);
        assert_eq!(last("a.*.*", Kept::Leaves), ["c", "d"]);
    }

    #[test]
    fn inner_nodes_come_first() {
        let mut paths: Vec<String> = ["b", "a.", "a", "c.", "b"].map(String::from).to_vec();
        nodes_first(&mut paths, '.');
        assert_eq!(paths, ["a.", "c.", "a", "b"]);
        nodes_first(&mut paths, '_');
        assert_eq!(paths, ["a", "a.", "b", "c."]);
    }
}
