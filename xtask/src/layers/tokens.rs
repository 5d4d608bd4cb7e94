//! Tokens of Rust source, without comments and literals.

/// A token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token<'a> {
    /// An identifier or a keyword.
    Ident(&'a str),
    /// `::`
    PathSep,
    /// Any other character of code. A literal is one `0`.
    Punct(u8),
}

/// Splits source into tokens.
pub fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut lexer = Lexer { text, at: 0, out: Vec::new() };
    while lexer.at < text.len() {
        lexer.step();
    }
    lexer.out
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    out: Vec<Token<'a>>,
}

fn is_ident(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || 0x80 <= byte
}

impl<'a> Lexer<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn byte(&self, ahead: usize) -> u8 {
        self.text.as_bytes().get(self.at + ahead).copied().unwrap_or(0)
    }

    fn step(&mut self) {
        let byte = self.byte(0);
        match byte {
            _ if byte.is_ascii_whitespace() => self.at += 1,
            b'/' if self.byte(1) == b'/' => {
                self.at += self.rest().find('\n').unwrap_or(self.rest().len());
            }
            b'/' if self.byte(1) == b'*' => self.block_comment(),
            b'"' => self.string(),
            b'\'' => self.quote(),
            b':' if self.byte(1) == b':' => self.push(2, Token::PathSep),
            _ if byte.is_ascii_digit() => {
                let end = self.rest().bytes().take_while(|byte| is_ident(*byte)).count();
                self.push(end, Token::Punct(b'0'));
            }
            _ if is_ident(byte) => self.ident(),
            _ => self.push(1, Token::Punct(byte)),
        }
    }

    fn push(&mut self, size: usize, token: Token<'a>) {
        self.at += size;
        self.out.push(token);
    }

    /// An identifier, or a literal that begins with letters: `r"`, `br#"`, `b'`, `c"`.
    fn ident(&mut self) {
        let end = self.rest().bytes().take_while(|byte| is_ident(*byte)).count();
        let word = &self.rest()[..end];
        let next = self.byte(end);
        match word {
            "r" | "br" | "cr" if next == b'"' || (next == b'#' && self.is_raw_string(end)) => {
                self.at += end;
                self.raw_string();
            }
            // A raw identifier.
            "r" if next == b'#' => self.at += 2,
            "b" | "c" if next == b'"' => {
                self.at += end;
                self.string();
            }
            "b" if next == b'\'' => {
                self.at += end;
                self.quote();
            }
            _ => self.push(end, Token::Ident(word)),
        }
    }

    fn is_raw_string(&self, start: usize) -> bool {
        self.rest()[start..].trim_start_matches('#').starts_with('"')
    }

    /// From the first `#` or quote to the end.
    fn raw_string(&mut self) {
        let hashes = self.rest().bytes().take_while(|byte| *byte == b'#').count();
        self.at += hashes + 1;
        let end = format!("\"{}", "#".repeat(hashes));
        let size = self.rest().find(&end).map_or(self.rest().len(), |found| found + end.len());
        self.push(size, Token::Punct(b'0'));
    }

    fn string(&mut self) {
        let size = self.quoted_size(b'"');
        self.push(size, Token::Punct(b'0'));
    }

    /// Size of a literal from its first quote to its last.
    fn quoted_size(&self, quote: u8) -> usize {
        let mut size = 1;
        while self.at + size < self.text.len() && self.byte(size) != quote {
            size += if self.byte(size) == b'\\' { 2 } else { 1 };
        }
        (size + 1).min(self.text.len() - self.at)
    }

    /// A character, or a lifetime.
    fn quote(&mut self) {
        let mut letters = self.rest()[1..].chars();
        let (first, second) = (letters.next(), letters.next());
        if first == Some('\\') || second == Some('\'') {
            let size = self.quoted_size(b'\'');
            self.push(size, Token::Punct(b'0'));
        } else {
            self.at += 1 + self.rest()[1..].bytes().take_while(|byte| is_ident(*byte)).count();
        }
    }

    fn block_comment(&mut self) {
        let mut depth = 0;
        while self.at < self.text.len() {
            match (self.byte(0), self.byte(1)) {
                (b'/', b'*') => (depth, self.at) = (depth + 1, self.at + 2),
                (b'*', b'/') => (depth, self.at) = (depth - 1, self.at + 2),
                _ => self.at += 1,
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

    fn idents(text: &str) -> Vec<&str> {
        let ident = |token: Token<'static>| match token {
            Token::Ident(name) => Some(name),
            _ => None,
        };
        // Tests only: literals live as long as the program.
        let text: &'static str = Box::leak(text.to_string().into_boxed_str());
        tokens(text).into_iter().filter_map(ident).collect()
    }

    #[test]
    fn comments_are_left_out() {
        assert_eq!(idents("a // b\nc /* d /* e */ f */ g"), ["a", "c", "g"]);
        assert_eq!(idents("//! crate::x\n/// crate::y\nz"), ["z"]);
    }

    #[test]
    fn literals_are_left_out() {
        assert_eq!(idents(r#"a "b \" c" d"#), ["a", "d"]);
        assert_eq!(idents(r###"a r#"b " c"# d br##"e "# f"## g r"h" i"###), ["a", "d", "g", "i"]);
        assert_eq!(idents(r#"a b"c" d b'"' e c"f" g"#), ["a", "d", "e", "g"]);
        assert_eq!(idents(r#"a '"' b '\'' c '\u{1f}' d 'é' e"#), ["a", "b", "c", "d", "e"]);
        assert_eq!(idents("f 0x1f 1_000u64 1.5e3 g"), ["f", "g"]);
    }

    #[test]
    fn lifetimes_and_raw_identifiers_are_no_literals() {
        assert_eq!(idents("fn f<'a>(x: &'a str) -> &'static str"), ["fn", "f", "x", "str", "str"]);
        assert_eq!(idents("r#type rest"), ["type", "rest"]);
        assert_eq!(tokens("a::b"), [Token::Ident("a"), Token::PathSep, Token::Ident("b")]);
    }
}
