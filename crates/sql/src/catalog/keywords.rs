//! PostgreSQL's words, as `pg_get_keywords()` tells them: those of 15.

use crate::catalog::cells::{Table, text, yes};
use crate::types::keywords::{KEYWORDS, WORDS};

/// All of them.
pub fn table() -> Table {
    let row = |word: &str, kind: char, is_label: bool| {
        let said = match kind {
            'U' => "unreserved",
            'C' => "unreserved (cannot be function or type name)",
            'T' => "reserved (can be function or type name)",
            _ => "reserved",
        };
        let label = if is_label { "can be bare label" } else { "requires AS" };
        vec![text(word), text(&kind.to_string()), yes(is_label), text(said), text(label)]
    };
    let rows = WORDS.iter().flat_map(|(kind, is_label, words)| {
        words.split(' ').map(move |word| row(word, *kind, *is_label))
    });
    let columns = "word:t catcode:c barelabel:b catdesc:t baredesc:t";
    Table { name: KEYWORDS, columns, rows: rows.collect() }
}
