//! Syntax tree of an expression, and its text for the `regex` crate.

/// One part of an expression.
#[derive(Clone, Debug)]
pub(crate) enum Node {
    /// Matches the empty string.
    Empty,
    /// One character; `folds_case` if its other cases match as well.
    Literal { character: char, folds_case: bool },
    /// Any character, or any but a newline.
    Dot { matches_newline: bool },
    /// A bracket expression in the text of the `regex` crate.
    Class { text: String, folds_case: bool },
    /// `^`, `$`, `\b` and their like, in the text of the `regex` crate.
    Assertion(&'static str),
    /// A group that captures.
    Capture(Box<Node>),
    /// Parts one after the other.
    Concat(Vec<Node>),
    /// One of several.
    Alternate(Vec<Node>),
    /// A part several times; without `max` as often as it goes.
    Repeat { inner: Box<Node>, min: u32, max: Option<u32>, is_lazy: bool },
}

impl Node {
    /// One node of several in a row.
    pub(crate) fn concat(mut items: Vec<Node>) -> Node {
        match items.len() {
            0 => Node::Empty,
            1 => items.remove(0),
            _ => Node::Concat(items),
        }
    }

    /// Checks that counts of nested repetitions multiply to `left` at most.
    pub(crate) fn repeats_at_most(&self, left: u32) -> bool {
        match self {
            Node::Repeat { inner, min, max, .. } if is_counted(*min, *max) => {
                let count = max.unwrap_or(*min);
                match count {
                    0 => true,
                    _ if left < count => false,
                    _ => inner.repeats_at_most(left / count),
                }
            }
            Node::Repeat { inner, .. } | Node::Capture(inner) => inner.repeats_at_most(left),
            Node::Concat(items) | Node::Alternate(items) => {
                items.iter().all(|item| item.repeats_at_most(left))
            }
            _ => true,
        }
    }

    /// Writes the node for the `regex` crate.
    pub(crate) fn write(&self, out: &mut String) {
        match self {
            Node::Empty => {}
            Node::Literal { character, folds_case: false } => write_character(*character, out),
            Node::Literal { character, folds_case: true } => write_folded(&[*character], out),
            Node::Dot { matches_newline: true } => out.push_str("(?s:.)"),
            Node::Dot { matches_newline: false } => out.push_str("[^\\n]"),
            Node::Class { text, folds_case: false } => out.push_str(text),
            Node::Class { text, folds_case: true } => out.push_str(&format!("(?i:{text})")),
            Node::Assertion(text) => out.push_str(text),
            Node::Capture(inner) => {
                out.push('(');
                inner.write(out);
                out.push(')');
            }
            Node::Concat(items) => write_concat(items, out),
            Node::Alternate(branches) => {
                for (at, branch) in branches.iter().enumerate() {
                    if at != 0 {
                        out.push('|');
                    }
                    branch.write(out);
                }
            }
            Node::Repeat { inner, min, max, is_lazy } => {
                write_operand(inner, out);
                write_count(*min, *max, out);
                if *is_lazy {
                    out.push('?');
                }
            }
        }
    }
}

/// Tells `{n,m}` from `*`, `+` and `?`, whose repetitions do not multiply.
fn is_counted(min: u32, max: Option<u32>) -> bool {
    !matches!((min, max), (0 | 1, None) | (0, Some(1)))
}

fn write_count(min: u32, max: Option<u32>, out: &mut String) {
    match (min, max) {
        (0, None) => out.push('*'),
        (1, None) => out.push('+'),
        (0, Some(1)) => out.push('?'),
        (min, None) => out.push_str(&format!("{{{min},}}")),
        (min, Some(max)) if min == max => out.push_str(&format!("{{{min}}}")),
        (min, Some(max)) => out.push_str(&format!("{{{min},{max}}}")),
    }
}

fn write_concat(items: &[Node], out: &mut String) {
    let mut at = 0;
    while at < items.len() {
        let folded: Vec<char> = items[at..].iter().map_while(folded_character).collect();
        match &items[at] {
            _ if !folded.is_empty() => write_folded(&folded, out),
            alternate @ Node::Alternate(_) => {
                out.push_str("(?:");
                alternate.write(out);
                out.push(')');
            }
            item => item.write(out),
        }
        at += folded.len().max(1);
    }
}

fn folded_character(node: &Node) -> Option<char> {
    match node {
        Node::Literal { character, folds_case: true } => Some(*character),
        _ => None,
    }
}

fn write_folded(characters: &[char], out: &mut String) {
    out.push_str("(?i:");
    characters.iter().for_each(|character| write_character(*character, out));
    out.push(')');
}

/// Writes what a repetition applies to.
fn write_operand(node: &Node, out: &mut String) {
    let is_single = match node {
        Node::Literal { .. } | Node::Dot { .. } | Node::Class { .. } | Node::Capture(_) => true,
        Node::Empty
        | Node::Assertion(_)
        | Node::Concat(_)
        | Node::Alternate(_)
        | Node::Repeat { .. } => false,
    };
    if is_single {
        return node.write(out);
    }
    out.push_str("(?:");
    node.write(out);
    out.push(')');
}

/// Writes a character that stands for itself, outside and inside of brackets.
pub(crate) fn write_character(character: char, out: &mut String) {
    if regex_syntax::is_meta_character(character) {
        out.push('\\');
    }
    out.push(character);
}
