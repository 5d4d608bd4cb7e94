//! Random commands from patterns: words, `<placeholders>`, `(a|b)`, `[perhaps]`, `many*`, `some+`.
//!
//! What stands between backticks is one word. `;` ends a command: what follows is sent behind it. A
//! pattern that begins with `!` is sent as it is and never spoiled, for commands that would wait for
//! ever or pick at random otherwise.

use super::words;
use quipu_bench::resp::Words;
use rng::Random;

/// How often `*` and `+` repeat at most.
const REPEATS_MAX: u64 = 4;

/// A pattern in pieces.
#[derive(Debug)]
enum Node {
    Word(&'static str),
    All(Vec<Node>),
    One(Vec<Node>),
    Perhaps(Box<Node>),
    Many(Box<Node>, u64),
}

/// A pattern that can be drawn from.
#[derive(Debug)]
pub struct Pattern {
    commands: Vec<Node>,
    /// Whether its arguments may be spoiled.
    pub is_spoilable: bool,
}

impl Pattern {
    /// Reads a pattern, which is one of ours.
    pub fn new(text: &'static str) -> Pattern {
        let (text, is_spoilable) = match text.strip_prefix('!') {
            Some(text) => (text, false),
            None => (text, true),
        };
        let commands = text.split(';').map(|text| {
            let mut parser = Parser { tokens: tokens(text), at: 0 };
            let node = parser.all();
            assert!(parser.at == parser.tokens.len(), "{text:?} is malformed");
            node
        });
        Pattern { commands: commands.collect(), is_spoilable }
    }

    /// Commands of that pattern.
    pub fn draw(&self, random: &mut Random) -> Vec<Words> {
        let draw = |node: &Node| {
            let mut drawing = Drawing { random: &mut *random, words: Vec::new(), count: 1 };
            drawing.node(node);
            drawing.words
        };
        self.commands.iter().map(draw).collect()
    }
}

fn tokens(text: &'static str) -> Vec<&'static str> {
    let mut tokens = Vec::new();
    for (at, piece) in text.split('`').enumerate() {
        if at % 2 == 1 {
            tokens.push(piece);
        } else {
            put_tokens(piece, &mut tokens);
        }
    }
    tokens
}

fn put_tokens(text: &'static str, tokens: &mut Vec<&'static str>) {
    for word in text.split_ascii_whitespace() {
        let mut rest = word;
        while !rest.is_empty() {
            let end = rest.find(['(', ')', '[', ']', '|', '*', '+']).unwrap_or(rest.len());
            let (token, after) = rest.split_at(end.max(1));
            tokens.push(token);
            rest = after;
        }
    }
}

struct Parser {
    tokens: Vec<&'static str>,
    at: usize,
}

impl Parser {
    fn peek(&self) -> Option<&'static str> {
        self.tokens.get(self.at).copied()
    }

    fn all(&mut self) -> Node {
        let mut nodes = Vec::new();
        while let Some(token) = self.peek().filter(|token| ![")", "]", "|"].contains(token)) {
            self.at += 1;
            let node = match token {
                "(" => self.one(),
                "[" => Node::Perhaps(Box::new(self.one())),
                word => Node::Word(word),
            };
            nodes.push(self.repeated(node));
        }
        Node::All(nodes)
    }

    /// Alternatives up to the closing bracket.
    fn one(&mut self) -> Node {
        let mut nodes = vec![self.all()];
        while self.peek() == Some("|") {
            self.at += 1;
            nodes.push(self.all());
        }
        assert!(matches!(self.peek(), Some(")" | "]")), "a bracket is missing");
        self.at += 1;
        Node::One(nodes)
    }

    fn repeated(&mut self, node: Node) -> Node {
        let min = match self.peek() {
            Some("*") => 0,
            Some("+") => 1,
            _ => return node,
        };
        self.at += 1;
        Node::Many(Box::new(node), min)
    }
}

struct Drawing<'a> {
    random: &'a mut Random,
    words: Words,
    /// How many keys the last `<#...>` had.
    count: u64,
}

impl Drawing<'_> {
    fn node(&mut self, node: &Node) {
        match node {
            Node::All(nodes) => nodes.iter().for_each(|node| self.node(node)),
            Node::One(nodes) => {
                let chosen = self.random.below(nodes.len() as u64);
                self.node(&nodes[chosen as usize]);
            }
            Node::Perhaps(node) => {
                if self.random.below(3) == 0 {
                    self.node(node);
                }
            }
            Node::Many(node, min) => {
                for _ in 0..*min + self.random.below(REPEATS_MAX) {
                    self.node(node);
                }
            }
            Node::Word(word) => self.word(word),
        }
    }

    fn word(&mut self, word: &str) {
        let Some(name) = word.strip_prefix('<').and_then(|word| word.strip_suffix('>')) else {
            return self.words.push(word.as_bytes().to_vec());
        };
        match name.strip_prefix('#') {
            // One for each key that was counted.
            Some("w") => (0..self.count).for_each(|_| self.push("f")),
            Some(kind) => {
                self.count = 1 + self.random.below(3);
                self.words.push(self.count.to_string().into_bytes());
                (0..self.count).for_each(|_| self.push(kind));
            }
            None => self.push(name),
        }
    }

    fn push(&mut self, name: &str) {
        self.words.push(words::draw(name, self.random));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quipu_bench::resp::shown;

    #[test]
    fn patterns_are_drawn_from() {
        let pattern = Pattern::new("SET a (b|c) [NX]; DEL a+");
        let mut random = Random(1);
        for _ in 0..100 {
            let drawn = pattern.draw(&mut random);
            let [set, del] = drawn.as_slice() else { panic!("two commands") };
            let set = shown(set);
            assert!(["SET a b", "SET a c", "SET a b NX", "SET a c NX"].contains(&set.as_str()));
            assert!(2 <= del.len() && del.len() <= 5 && del[1] == b"a");
        }
    }
}
