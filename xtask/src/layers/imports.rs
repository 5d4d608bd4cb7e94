//! Imports of a source file: `use` declarations, and paths that begin with `crate`, `super` or
//! `self`. Code under `#[cfg(test)]` is left out.

use super::tokens::{Token, tokens};

/// A path to something of another module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Import {
    /// Inline modules of the file that the path is in.
    pub inside: Vec<String>,
    /// Segments of the path.
    pub path: Vec<String>,
    /// Name that a `use` declaration binds; `*` for all names of a module.
    pub name: Option<String>,
    /// Whether it is a `use` declaration with a visibility.
    pub is_public: bool,
}

/// Imports and items of a file.
#[derive(Debug, Default)]
pub struct Source {
    pub imports: Vec<Import>,
    /// Modules in files of their own that only tests have.
    pub test_modules: Vec<String>,
    /// Inline modules, as paths inside the file.
    pub inline_modules: Vec<Vec<String>>,
    /// Names of items.
    pub items: Vec<String>,
}

const ITEMS: [&str; 9] =
    ["fn", "struct", "enum", "trait", "type", "const", "static", "union", "mod"];
/// Words that begin an item, behind its attributes and visibility.
const ITEM_STARTS: [&str; 13] = [
    "fn",
    "struct",
    "enum",
    "trait",
    "type",
    "const",
    "static",
    "mod",
    "impl",
    "use",
    "async",
    "unsafe",
    "macro_rules",
];

/// Parses a file.
pub fn parse(text: &str) -> Source {
    let tokens = tokens(text);
    let mut parser =
        Parser { tokens: &tokens, at: 0, depth: 0, inline: Vec::new(), source: Source::default() };
    while parser.at < tokens.len() {
        parser.step();
    }
    parser.source
}

struct Parser<'a> {
    tokens: &'a [Token<'a>],
    at: usize,
    depth: usize,
    /// Open inline modules, and the depth of their braces.
    inline: Vec<(String, usize)>,
    source: Source,
}

impl<'a> Parser<'a> {
    fn token(&self, at: usize) -> Option<Token<'a>> {
        self.tokens.get(at).copied()
    }

    fn ident(&self, at: usize) -> Option<&'a str> {
        match self.token(at) {
            Some(Token::Ident(name)) => Some(name),
            _ => None,
        }
    }

    fn is(&self, at: usize, punct: u8) -> bool {
        self.token(at) == Some(Token::Punct(punct))
    }

    fn before(&self, back: usize) -> Option<Token<'a>> {
        self.at.checked_sub(back).and_then(|at| self.token(at))
    }

    fn inside(&self) -> Vec<String> {
        self.inline.iter().map(|(name, _)| name.clone()).collect()
    }

    fn step(&mut self) {
        match self.tokens[self.at] {
            Token::Punct(b'{') => self.depth += 1,
            Token::Punct(b'}') => {
                self.depth = self.depth.saturating_sub(1);
                if self.inline.last().is_some_and(|(_, depth)| *depth == self.depth) {
                    self.inline.pop();
                }
            }
            Token::Punct(b'#') if self.is_test_attribute() => return self.skip_test_item(),
            Token::Ident("use") if !self.is(self.at + 1, b'<') => return self.declaration(),
            Token::Ident("crate" | "super" | "self") => return self.path(),
            Token::Ident(word) if ITEMS.contains(&word) => self.item(word),
            _ => {}
        }
        self.at += 1;
    }

    fn item(&mut self, word: &str) {
        let Some(name) = self.ident(self.at + 1) else { return };
        self.source.items.push(name.to_string());
        if word == "mod" && self.is(self.at + 2, b'{') {
            self.inline.push((name.to_string(), self.depth));
            let path = self.inside();
            self.source.inline_modules.push(path);
        }
    }

    /// A path in an expression, a type or an attribute.
    fn path(&mut self) {
        let is_inner = self.before(1) == Some(Token::PathSep);
        let is_visibility = self.before(1) == Some(Token::Ident("in"))
            && self.before(2) == Some(Token::Punct(b'('));
        let mut path = Vec::new();
        while let Some(name) = self.ident(self.at) {
            path.push(name.to_string());
            self.at += 1;
            if self.token(self.at) != Some(Token::PathSep) {
                break;
            }
            self.at += 1;
        }
        if 1 < path.len() && !is_inner && !is_visibility {
            let inside = self.inside();
            self.source.imports.push(Import { inside, path, name: None, is_public: false });
        }
    }

    fn declaration(&mut self) {
        let is_public = matches!(self.before(1), Some(Token::Ident("pub") | Token::Punct(b')')));
        self.at += 1;
        self.tree(&[], is_public);
    }

    /// A tree of a `use` declaration, up to the comma, brace or semicolon behind it.
    fn tree(&mut self, prefix: &[String], is_public: bool) {
        let mut path = prefix.to_vec();
        let mut name = None;
        loop {
            match self.token(self.at) {
                Some(Token::Ident("as")) => {
                    name = self.ident(self.at + 1).map(str::to_string);
                    self.at += 2;
                    break;
                }
                Some(Token::Ident("self")) if !path.is_empty() => {}
                Some(Token::Ident(segment)) => path.push(segment.to_string()),
                Some(Token::PathSep) if path.is_empty() => path.push(String::new()),
                Some(Token::PathSep) => {}
                Some(Token::Punct(b'*')) => name = Some("*".to_string()),
                Some(Token::Punct(b'{')) => return self.group(&path, is_public),
                _ => break,
            }
            self.at += 1;
        }
        if let Some(last) = path.last() {
            let name = name.or_else(|| Some(last.clone()));
            let inside = self.inside();
            self.source.imports.push(Import { inside, path, name, is_public });
        }
    }

    fn group(&mut self, prefix: &[String], is_public: bool) {
        self.at += 1;
        while self.at < self.tokens.len() && !self.is(self.at, b'}') {
            if self.is(self.at, b',') {
                self.at += 1;
                continue;
            }
            let start = self.at;
            self.tree(prefix, is_public);
            // Invalid source must not stop the parser.
            self.at = self.at.max(start + 1);
        }
        self.at += 1;
    }

    fn is_test_attribute(&self) -> bool {
        let words = ["cfg", "test"];
        self.is(self.at + 1, b'[')
            && self.ident(self.at + 2) == Some(words[0])
            && self.is(self.at + 3, b'(')
            && self.ident(self.at + 4) == Some(words[1])
            && self.is(self.at + 5, b')')
    }

    /// Skips an item that only tests have; of a statement or a field only the attribute.
    fn skip_test_item(&mut self) {
        while self.is(self.at, b'#') {
            self.at += 1;
            self.skip_brackets();
        }
        let attributes_end = self.at;
        if self.ident(self.at) == Some("pub") {
            self.at += 1;
            if self.is(self.at, b'(') {
                self.skip_brackets();
            }
        }
        let Some(word) = self.ident(self.at).filter(|word| ITEM_STARTS.contains(word)) else {
            self.at = attributes_end;
            return;
        };
        if word == "mod" && self.is(self.at + 2, b';') {
            self.source.test_modules.extend(self.ident(self.at + 1).map(str::to_string));
        }
        while self.at < self.tokens.len() {
            match self.tokens[self.at] {
                Token::Punct(b';') => {
                    self.at += 1;
                    return;
                }
                Token::Punct(b'{') if word != "use" => return self.skip_brackets(),
                Token::Punct(b'(' | b'[' | b'{') => self.skip_brackets(),
                _ => self.at += 1,
            }
        }
    }

    /// Skips from an opening bracket to behind the one that closes it.
    fn skip_brackets(&mut self) {
        let mut depth = 0;
        while let Some(token) = self.token(self.at) {
            self.at += 1;
            match token {
                Token::Punct(b'(' | b'[' | b'{') => depth += 1,
                Token::Punct(b')' | b']' | b'}') => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Paths of a source, with the names that they bind.
    fn paths(text: &str) -> Vec<String> {
        let line = |one: &Import| {
            let path = one.path.join("::");
            match &one.name {
                Some(name) if one.path.last() != Some(name) => format!("{path} as {name}"),
                _ => path,
            }
        };
        parse(text).imports.iter().map(line).collect()
    }

    #[test]
    fn nested_groups_are_taken_apart() {
        let text = "use crate::{a, b::{self, C, d::{E as F, *}}, g::h};";
        let expected =
            ["crate::a", "crate::b", "crate::b::C", "crate::b::d::E as F", "crate::b::d as *"];
        assert_eq!(paths(text)[..5], expected);
        assert_eq!(paths(text)[5..], ["crate::g::h"]);
        assert_eq!(paths("use super::super::x;"), ["super::super::x"]);
        assert_eq!(paths("pub(crate) use child::Name;"), ["child::Name"]);
    }

    #[test]
    fn paths_of_expressions_are_found() {
        let text = "fn f() -> crate::Result<super::T> { crate::a::b(self.x, self::g::<u8>()) }";
        assert_eq!(paths(text), ["crate::Result", "super::T", "crate::a::b", "self::g"]);
        assert_eq!(
            paths("pub(in crate::part) fn f() {} fn g<'a>() -> impl X + use<'a> {}").len(),
            0
        );
    }

    #[test]
    fn comments_and_strings_import_nothing() {
        let text = r###"
            //! [`crate::a`]
            /* use crate::b; /* use crate::c; */ */
            const X: &str = "use crate::d;";
            const Y: &str = r#"use "crate::e"; "#;
            use crate::f;
        "###;
        assert_eq!(paths(text), ["crate::f"]);
    }

    #[test]
    fn inline_modules_are_told() {
        let source = parse("mod m { mod n { use super::x; } use crate::y; } use crate::z;");
        let inside: Vec<String> = source.imports.iter().map(|one| one.inside.join("::")).collect();
        assert_eq!(inside, ["m::n", "m", ""]);
    }

    #[test]
    fn code_of_tests_is_left_out() {
        let text = "
            #[cfg(test)]
            use crate::{a, b};
            #[cfg(test)]
            #[path = \"x.rs\"]
            mod rows;
            #[cfg(test)]
            pub(crate) fn f(x: [u8; 3]) -> u8 { crate::c() }
            #[cfg(test)]
            mod tests { use crate::d; fn g() { { crate::e() } } }
            struct S { #[cfg(test)] field: u8 }
            use crate::h;";
        let source = parse(text);
        assert_eq!(source.test_modules, ["rows"]);
        assert_eq!(paths(text), ["crate::h"]);
    }
}
