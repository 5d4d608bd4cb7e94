//! Replacement templates of `label_replace` and its like, as `Regexp.Expand` of Go reads them.

use crate::Regexp;
use regex::{Captures, Regex};
use std::sync::LazyLock;

/// Names of groups in templates.
static NAME: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\A[\p{L}\p{Nd}_]+").expect("the expression is valid"));

/// Size of an expanded template at most, in bytes: each reference may stand for the whole text.
pub fn expanded_size_max(template: &str, text: &str) -> usize {
    let references = template.matches('$').count();
    references.saturating_mul(text.len()).saturating_add(template.len())
}

impl Regexp {
    /// Replaces `$1`, `$name` and `${name}` by what the groups matched, `$$` by `$`, and appends the
    /// result to `out`. A group that is not there is empty; a `$` without a name stays.
    pub fn expand(&self, template: &str, captures: &Captures<'_>, out: &mut String) {
        let mut rest = template;
        while let Some((before, after)) = rest.split_once('$') {
            out.push_str(before);
            if let Some(tail) = after.strip_prefix('$') {
                out.push('$');
                rest = tail;
            } else if let Some((name, tail)) = split_reference(after) {
                out.push_str(self.group_text(captures, name));
                rest = tail;
            } else {
                out.push('$');
                rest = after;
            }
        }
        out.push_str(rest);
    }

    /// Text that a group matched. Several groups may share a name: the first that matched counts.
    fn group_text<'a>(&self, captures: &Captures<'a>, name: &str) -> &'a str {
        if let Some(number) = group_number(name) {
            return captures.get(number).map_or("", |group| group.as_str());
        }
        let named = self.group_names.iter().filter(|(_, other)| other == name);
        let mut matches = named.filter_map(|(number, _)| captures.get(*number));
        matches.next().map_or("", |group| group.as_str())
    }
}

/// The number that a reference says. One with a leading zero is a name.
fn group_number(name: &str) -> Option<usize> {
    let is_number = name.bytes().all(|byte| byte.is_ascii_digit());
    let has_leading_zero = name.starts_with('0') && 1 < name.len();
    if is_number && !has_leading_zero { name.parse().ok() } else { None }
}

/// Splits the name off a reference behind `$`. None if there is no name or its brace does not end.
fn split_reference(text: &str) -> Option<(&str, &str)> {
    let inner = text.strip_prefix('{').unwrap_or(text);
    let (name, tail) = inner.split_at(NAME.find(inner)?.end());
    if inner.len() == text.len() {
        Some((name, tail))
    } else {
        Some((name, tail.strip_prefix('}')?))
    }
}
