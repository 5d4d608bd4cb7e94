//! Reads an expression by the rules of Go's `regexp/syntax` with its Perl flags.

use crate::NESTING_MAX;
use crate::class;
use crate::error::{Error, ErrorCode};
use crate::node::Node;

/// Counts above this are refused, also the product of nested ones.
const REPEAT_MAX: u32 = 1000;

/// Flags that `(?imsU)` sets.
#[derive(Clone, Copy)]
pub(crate) struct Flags {
    pub(crate) folds_case: bool,
    multi_line: bool,
    dot_matches_newline: bool,
    is_lazy: bool,
}

/// A group that is open, or the whole expression.
struct Group {
    captures: bool,
    /// Flags behind the end of the group.
    outer_flags: Flags,
    branches: Vec<Node>,
    /// Nodes of the last branch.
    items: Vec<Node>,
}

impl Group {
    fn new(captures: bool, outer_flags: Flags) -> Group {
        Group { captures, outer_flags, branches: Vec::new(), items: Vec::new() }
    }

    fn end_branch(&mut self) {
        let items = std::mem::take(&mut self.items);
        self.branches.push(Node::concat(items));
    }

    fn into_node(mut self) -> Node {
        self.end_branch();
        let inner = match self.branches.len() {
            1 => self.branches.remove(0),
            _ => Node::Alternate(self.branches),
        };
        if self.captures { Node::Capture(Box::new(inner)) } else { inner }
    }
}

struct Parser<'a> {
    text: &'a str,
    flags: Flags,
    /// The last one is the innermost; the first one is the whole expression.
    groups: Vec<Group>,
    group_count: usize,
    group_names: Vec<(usize, String)>,
    /// Text from the repetition that ended just before, for an error.
    last_repeat: Option<&'a str>,
}

/// Reads an expression. Returns its tree, and numbers and names of its named groups.
pub(crate) fn parse(
    text: &str,
    dot_matches_newline: bool,
) -> Result<(Node, Vec<(usize, String)>), Error> {
    let flags = Flags { folds_case: false, multi_line: false, dot_matches_newline, is_lazy: false };
    let mut parser = Parser {
        text,
        flags,
        groups: vec![Group::new(false, flags)],
        group_count: 0,
        group_names: Vec::new(),
        last_repeat: None,
    };
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let last_repeat = parser.last_repeat.take();
        rest = parser.parse_one(first, rest, last_repeat)?;
    }
    let whole = parser.groups.pop().expect("the first group stays");
    if !parser.groups.is_empty() {
        return Err(Error::new(ErrorCode::MissingParen, text));
    }
    Ok((whole.into_node(), parser.group_names))
}

/// The part of `text` before `rest`, which is its end.
pub(crate) fn before<'a>(text: &'a str, rest: &str) -> &'a str {
    &text[..text.len() - rest.len()]
}

impl<'a> Parser<'a> {
    /// Reads what starts with `first` at the start of `rest`; returns what follows it.
    fn parse_one(
        &mut self,
        first: char,
        rest: &'a str,
        last_repeat: Option<&'a str>,
    ) -> Result<&'a str, Error> {
        let tail = &rest[first.len_utf8()..];
        match first {
            '(' if tail.starts_with('?') => return self.parse_perl_group(rest),
            '(' => self.open_group(true, self.flags)?,
            ')' => self.close_group()?,
            '|' => self.innermost().end_branch(),
            '^' if self.flags.multi_line => self.push(Node::Assertion("(?m:^)")),
            '^' => self.push(Node::Assertion("\\A")),
            '$' if self.flags.multi_line => self.push(Node::Assertion("(?m:$)")),
            '$' => self.push(Node::Assertion("\\z")),
            '.' => {
                let matches_newline = self.flags.dot_matches_newline;
                self.push(Node::Dot { matches_newline });
            }
            '[' => return self.parse_class(rest),
            '*' => return self.repeat(0, None, rest, tail, last_repeat),
            '+' => return self.repeat(1, None, rest, tail, last_repeat),
            '?' => return self.repeat(0, Some(1), rest, tail, last_repeat),
            '{' => return self.parse_count(rest, last_repeat),
            '\\' => return self.parse_backslash(rest),
            character => self.push_literal(character),
        }
        Ok(tail)
    }

    fn innermost(&mut self) -> &mut Group {
        self.groups.last_mut().expect("the first group stays")
    }

    fn push(&mut self, node: Node) {
        self.innermost().items.push(node);
    }

    fn push_literal(&mut self, character: char) {
        let folds_case =
            self.flags.folds_case && (character.is_alphabetic() || !character.is_ascii());
        self.push(Node::Literal { character, folds_case });
    }

    fn open_group(&mut self, captures: bool, outer_flags: Flags) -> Result<(), Error> {
        if NESTING_MAX < self.groups.len() {
            return Err(Error::new(ErrorCode::NestingDepth, self.text));
        }
        self.group_count += usize::from(captures);
        self.groups.push(Group::new(captures, outer_flags));
        Ok(())
    }

    fn close_group(&mut self) -> Result<(), Error> {
        if self.groups.len() == 1 {
            return Err(Error::new(ErrorCode::UnexpectedParen, self.text));
        }
        let group = self.groups.pop().expect("more than one");
        self.flags = group.outer_flags;
        self.push(group.into_node());
        Ok(())
    }

    /// Reads `(?flags)`, `(?flags:`, `(?P<name>` or `(?<name>`.
    fn parse_perl_group(&mut self, rest: &'a str) -> Result<&'a str, Error> {
        let named = rest.strip_prefix("(?P<").or_else(|| rest.strip_prefix("(?<"));
        // Go wants something behind the bracket to take it for the start of a name.
        if let Some(inner) = named.filter(|inner| !inner.is_empty()) {
            return self.parse_named_group(rest, inner);
        }
        let outer_flags = self.flags;
        let mut flags = self.flags;
        let mut tail = &rest[2..];
        let (mut value, mut has_flag) = (true, false);
        while let Some(character) = tail.chars().next() {
            tail = &tail[character.len_utf8()..];
            match character {
                'i' => flags.folds_case = value,
                'm' => flags.multi_line = value,
                's' => flags.dot_matches_newline = value,
                'U' => flags.is_lazy = value,
                '-' if value => value = false,
                ':' | ')' if value || has_flag => {
                    if character == ':' {
                        self.open_group(false, outer_flags)?;
                    }
                    self.flags = flags;
                    return Ok(tail);
                }
                _ => return Err(Error::new(ErrorCode::InvalidPerlOp, before(rest, tail))),
            }
            has_flag = character != '-';
        }
        Err(Error::new(ErrorCode::InvalidPerlOp, rest))
    }

    fn parse_named_group(&mut self, rest: &'a str, inner: &'a str) -> Result<&'a str, Error> {
        let Some((name, tail)) = inner.split_once('>') else {
            return Err(Error::new(ErrorCode::InvalidNamedCapture, rest));
        };
        let is_word = |byte: u8| byte == b'_' || byte.is_ascii_alphanumeric();
        if name.is_empty() || !name.bytes().all(is_word) {
            return Err(Error::new(ErrorCode::InvalidNamedCapture, before(rest, tail)));
        }
        self.open_group(true, self.flags)?;
        self.group_names.push((self.group_count, name.to_string()));
        Ok(tail)
    }

    fn parse_class(&mut self, rest: &'a str) -> Result<&'a str, Error> {
        let (text, tail) = class::parse_brackets(rest)?;
        self.push(Node::Class { text, folds_case: self.flags.folds_case });
        Ok(tail)
    }

    /// Reads a backslash and what belongs to it.
    fn parse_backslash(&mut self, rest: &'a str) -> Result<&'a str, Error> {
        let tail = rest.get(2..).unwrap_or("");
        match rest.as_bytes().get(1) {
            Some(b'A') => self.push(Node::Assertion("\\A")),
            Some(b'z') => self.push(Node::Assertion("\\z")),
            Some(b'b') => self.push(Node::Assertion("(?-u:\\b)")),
            Some(b'B') => self.push(Node::Assertion("(?-u:\\B)")),
            Some(b'C') => return Err(Error::new(ErrorCode::InvalidEscape, &rest[..2])),
            Some(b'Q') => {
                let (quoted, tail) = tail.split_once("\\E").unwrap_or((tail, ""));
                quoted.chars().for_each(|character| self.push_literal(character));
                return Ok(tail);
            }
            _ => {
                if let Some((text, tail)) = class::parse_named_escape(rest)? {
                    let text = format!("[{text}]");
                    self.push(Node::Class { text, folds_case: self.flags.folds_case });
                    return Ok(tail);
                }
                let (code, tail) = class::parse_escape(rest)?;
                match char::from_u32(code) {
                    Some(character) => self.push_literal(character),
                    None => self.push(class::nothing()),
                }
                return Ok(tail);
            }
        }
        Ok(tail)
    }

    /// Reads `{n}`, `{n,}` or `{n,m}`; any other brace is a character.
    fn parse_count(
        &mut self,
        rest: &'a str,
        last_repeat: Option<&'a str>,
    ) -> Result<&'a str, Error> {
        let Some((min, max, tail)) = split_count(rest) else {
            self.push_literal('{');
            return Ok(&rest[1..]);
        };
        let is_reversed = max.is_some_and(|max| max < min);
        if REPEAT_MAX < min || max.is_some_and(|max| REPEAT_MAX < max) || is_reversed {
            return Err(Error::new(ErrorCode::InvalidRepeatSize, before(rest, tail)));
        }
        self.repeat(min, max, rest, tail, last_repeat)
    }

    /// Applies a repetition to the last node. `tail` follows its sign, which starts `rest`.
    fn repeat(
        &mut self,
        min: u32,
        max: Option<u32>,
        rest: &'a str,
        tail: &'a str,
        last_repeat: Option<&'a str>,
    ) -> Result<&'a str, Error> {
        let unmarked = tail;
        let tail = tail.strip_prefix('?').unwrap_or(tail);
        let is_lazy = self.flags.is_lazy != (tail.len() < unmarked.len());
        if let Some(start) = last_repeat {
            return Err(Error::new(ErrorCode::InvalidRepeatOp, before(start, tail)));
        }
        let Some(inner) = self.innermost().items.pop() else {
            return Err(Error::new(ErrorCode::MissingRepeatArgument, before(rest, tail)));
        };
        let node = Node::Repeat { inner: Box::new(inner), min, max, is_lazy };
        let is_counted = rest.starts_with('{');
        if is_counted && !node.repeats_at_most(REPEAT_MAX) {
            return Err(Error::new(ErrorCode::InvalidRepeatSize, before(rest, tail)));
        }
        self.push(node);
        self.last_repeat = Some(rest);
        Ok(tail)
    }
}

/// Splits `{n}`, `{n,}` or `{n,m}` off the start of `text`. Numbers that are too large are all the same.
fn split_count(text: &str) -> Option<(u32, Option<u32>, &str)> {
    let (min, tail) = split_number(text.strip_prefix('{')?)?;
    let Some(tail) = tail.strip_prefix(',') else {
        return Some((min, Some(min), tail.strip_prefix('}')?));
    };
    if let Some(tail) = tail.strip_prefix('}') {
        return Some((min, None, tail));
    }
    let (max, tail) = split_number(tail)?;
    Some((min, Some(max), tail.strip_prefix('}')?))
}

/// Splits a decimal number without leading zeros off the start of `text`.
fn split_number(text: &str) -> Option<(u32, &str)> {
    let size = text.bytes().take_while(u8::is_ascii_digit).count();
    let (digits, tail) = text.split_at(size);
    if digits.is_empty() || (digits.starts_with('0') && 1 < size) {
        return None;
    }
    Some((digits.parse().unwrap_or(u32::MAX), tail))
}
