//! Tokens to the tree as it was written.
//!
//! Binary operators are climbed by priority, `default` the loosest and `^` the tightest and alone
//! right-associative. A unary minus is a subtraction from zero that takes in only what binds
//! tighter than a subtraction: `-a ^ b` is `0 - a ^ b`, and in `x * -a * b` the minus stops at
//! `a`. One suffix of `[...]`, `@` and `offset` binds tighter than all operators.
//! A tree that is too deep or of too many parts is refused while it is built.

use crate::NESTING_MAX;
use crate::error::{ParseError, Span};
use crate::metricsql::ast::{BinaryOp, Duration};
use crate::metricsql::functions::{self, FunctionKind};
use crate::metricsql::lexer::{self, Kind, Token, unescape_name};
use crate::metricsql::number::{parse_duration, parse_number};
use crate::metricsql::raw::{Binary, Call, Definition, Operator, Raw, With};
use crate::quote::{quote, unquote};

pub(crate) type Result<T> = std::result::Result<T, ParseError>;
/// A node and the depth of the tree below it.
type Node = (Raw, usize);

/// Nodes of a text. A dashboard's longest query has some hundreds.
const NODES_MAX: usize = 1 << 18;
/// Levels of the tree as it is written: those of the result and of a constant in it.
pub(crate) const WRITTEN_NESTING_MAX: usize = NESTING_MAX + 2;
/// Levels of operators and parentheses: what the printed form of any tree has at most, in which
/// each operation may be a right operand and in parentheses.
const PARENS_NESTING_MAX: usize = 2 * WRITTEN_NESTING_MAX;

/// Parses a whole text.
pub(crate) fn parse(text: &str) -> Result<Raw> {
    whole(Parser::new(text))
}

/// Parses a whole text in which templates are errors.
pub(crate) fn parse_without_templates(text: &str) -> Result<Raw> {
    whole(Parser { templates: Templates::Refused, ..Parser::new(text) })
}

fn whole(mut parser: Parser<'_>) -> Result<Raw> {
    if parser.peek().kind == Kind::End {
        return Err(parser.error(Span::default(), "no expression found in input"));
    }
    let (raw, _) = parser.expression(Priority::LOOSEST, None)?;
    parser.expect(Kind::End, "an operator or the end")?;
    Ok(raw)
}

/// Parses one `name(parameters) = body`.
pub(crate) fn parse_definition(text: &str) -> Result<Definition> {
    Ok(Parser::new(text).definition()?.0)
}

/// How tightly an operator binds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Priority(u8);

impl Priority {
    const LOOSEST: Priority = Priority(0);
    /// What a unary minus takes in.
    const TIGHTER_THAN_SUB: Priority = Priority(6);

    pub(crate) fn of(op: BinaryOp) -> Priority {
        Priority(match op {
            BinaryOp::Default => 0,
            BinaryOp::If | BinaryOp::IfNot => 1,
            BinaryOp::Or => 2,
            BinaryOp::And | BinaryOp::Unless => 3,
            BinaryOp::Equal | BinaryOp::NotEqual | BinaryOp::Less => 4,
            BinaryOp::LessEqual | BinaryOp::Greater | BinaryOp::GreaterEqual => 4,
            BinaryOp::Add | BinaryOp::Sub => 5,
            BinaryOp::Mul | BinaryOp::Div | BinaryOp::Mod | BinaryOp::Atan2 => 6,
            BinaryOp::Pow => 7,
        })
    }

    /// The loosest operator that may stand in the right operand of `op`.
    fn right_of(op: BinaryOp) -> Priority {
        let Priority(own) = Priority::of(op);
        Priority(if op == BinaryOp::Pow { own } else { own + 1 })
    }
}

pub(super) struct Parser<'a> {
    pub(super) text: &'a str,
    tokens: Vec<Token>,
    at: usize,
    /// How many calls of [`Parser::nested`] are open.
    depth: usize,
    node_count: usize,
    templates: Templates,
}

/// Whether a text may define templates.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Templates {
    Taken,
    Refused,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Parser<'a> {
        let (tokens, templates) = (lexer::lex(text), Templates::Taken);
        Parser { text, tokens, at: 0, depth: 0, node_count: 0, templates }
    }

    /// An expression of operators that bind at least as tightly as `loosest`. A
    /// `keep_metric_names` right behind its first operand belongs to the operator before it,
    /// which passes `keep`.
    fn expression(&mut self, loosest: Priority, keep: Option<&mut bool>) -> Result<Node> {
        self.nested(|parser| {
            let mut left = parser.operand(loosest, keep)?;
            while let Some(op) = parser.binary_op() {
                if Priority::of(op) < loosest {
                    break;
                }
                let mut operator = parser.operator(op)?;
                let keep = &mut operator.keep_metric_names;
                let right = parser.expression(Priority::right_of(op), Some(keep))?;
                left = parser.binary(operator, left, right)?;
            }
            Ok(left)
        })
    }

    fn operand(&mut self, loosest: Priority, keep: Option<&mut bool>) -> Result<Node> {
        while self.is_operator(BinaryOp::Add) {
            self.advance();
        }
        if self.is_operator(BinaryOp::Sub) {
            let minus = self.advance().span;
            let inner = self.expression(loosest.max(Priority::TIGHTER_THAN_SUB), keep)?;
            return self.negated(minus, inner);
        }
        let primary = self.primary()?;
        let node = self.suffix(primary)?;
        if let Some(keep) = keep
            && self.accept_word("keep_metric_names")
        {
            *keep = true;
        }
        Ok(node)
    }

    /// Parses the operand of `@`: it has no binary operators, and a suffix only if it begins with a sign.
    pub(super) fn bare_operand(&mut self) -> Result<Node> {
        if self.is_operator(BinaryOp::Add) {
            self.advance();
            return self.nested(Parser::suffixed_operand);
        }
        if !self.is_operator(BinaryOp::Sub) {
            return if self.begins_templates() {
                Err(self.unexpected("an expression without templates"))
            } else {
                self.primary()
            };
        }
        let minus = self.advance().span;
        let inner = self.nested(Parser::suffixed_operand)?;
        self.negated(minus, inner)
    }

    fn suffixed_operand(&mut self) -> Result<Node> {
        if self.begins_templates() {
            return self.with();
        }
        let operand = self.bare_operand()?;
        self.suffix(operand)
    }

    fn begins_templates(&self) -> bool {
        self.peek().kind == Kind::Name
            && self.is_word(self.peek(), "with")
            && self.peek_second().kind == Kind::LeftParen
    }

    fn negated(&mut self, minus: Span, inner: Node) -> Result<Node> {
        let operator = Operator::plain(BinaryOp::Sub);
        self.binary(operator, (Raw::Number(0.0, minus), 1), inner)
    }

    fn binary(&mut self, operator: Operator, left: Node, right: Node) -> Result<Node> {
        let depth = left.1.max(right.1);
        let binary = Binary { operator, left: left.0, right: right.0 };
        self.node(Raw::Binary(Box::new(binary)), depth)
    }

    fn primary(&mut self) -> Result<Node> {
        let token = self.peek();
        let raw = match token.kind {
            Kind::Duration => {
                let parsed = parse_duration(self.text_of(token), false);
                Raw::Duration(parsed.map_err(|why| self.error(token.span, why))?, token.span)
            }
            Kind::Interval => Raw::Duration(Duration { ms: 0.0, steps: 1.0 }, token.span),
            Kind::String => Raw::String(self.unquoted(token)?, token.span),
            Kind::Number => Raw::Number(self.number_of(token)?, token.span),
            Kind::Name if is_special_number(self.text_of(token)) => {
                Raw::Number(self.number_of(token)?, token.span)
            }
            Kind::Name => return self.name(),
            Kind::LeftParen => return self.parens(),
            Kind::LeftBrace => return self.selector(None),
            _ => return Err(self.unexpected("an expression")),
        };
        self.advance();
        self.node(raw, 0)
    }

    /// A call, an aggregation, templates or a selector.
    fn name(&mut self) -> Result<Node> {
        let token = self.peek();
        let is_called = self.peek_second().kind == Kind::LeftParen;
        if is_called && self.is_word(token, "with") {
            return self.with();
        }
        let name = unescape_name(self.text_of(token));
        let function = functions::find(&name);
        let is_aggregate = function.is_some_and(|found| found.kind == FunctionKind::Aggregate);
        let next = self.peek_second();
        let has_prefix = self.is_word(next, "by") || self.is_word(next, "without");
        if is_called || (is_aggregate && has_prefix) {
            self.advance();
            return if is_aggregate {
                self.aggregate(name, token.span)
            } else {
                self.call(name, token.span)
            };
        }
        self.advance();
        self.selector(Some((name, token.span)))
    }

    fn call(&mut self, name: String, name_span: Span) -> Result<Node> {
        let (arguments, depth) = self.arguments()?;
        let keep_metric_names = self.accept_word("keep_metric_names");
        let span = name_span.to(self.previous());
        let (grouping, limit) = (None, 0);
        let call = Call { name, name_span, arguments, keep_metric_names, grouping, limit, span };
        self.node(Raw::Call(Box::new(call)), depth)
    }

    fn aggregate(&mut self, name: String, name_span: Span) -> Result<Node> {
        let mut grouping = self.grouping()?;
        let (arguments, depth) = self.arguments()?;
        if grouping.is_none() {
            grouping = self.grouping()?;
        }
        let limit = if self.accept_word("limit") { self.limit()? } else { 0 };
        let span = name_span.to(self.previous());
        let keep_metric_names = false;
        let call = Call { name, name_span, arguments, keep_metric_names, grouping, limit, span };
        self.node(Raw::Call(Box::new(call)), depth)
    }

    /// Expressions in parentheses: `keep_metric_names` behind them belongs to the operation that
    /// is the only one.
    fn parens(&mut self) -> Result<Node> {
        let open = self.peek().span;
        let (mut items, depth) = self.arguments()?;
        if items.len() != 1 {
            let span = open.to(self.previous());
            return self.node(Raw::Union(items, span), depth);
        }
        let mut only = items.remove(0);
        if let Raw::Binary(binary) = &mut only
            && self.accept_word("keep_metric_names")
        {
            binary.operator.keep_metric_names = true;
        }
        Ok((only, depth))
    }

    /// `(a, b, ...)`, and the depth of the deepest.
    fn arguments(&mut self) -> Result<(Vec<Raw>, usize)> {
        self.expect(Kind::LeftParen, "\"(\"")?;
        let (mut items, mut depth) = (Vec::new(), 0);
        while self.peek().kind != Kind::RightParen {
            let (item, item_depth) = self.expression(Priority::LOOSEST, None)?;
            items.push(item);
            depth = depth.max(item_depth);
            if self.peek().kind != Kind::RightParen {
                self.expect(Kind::Comma, "\",\" or \")\"")?;
            }
        }
        self.advance();
        Ok((items, depth))
    }

    // ---- templates ----

    fn with(&mut self) -> Result<Node> {
        if self.templates == Templates::Refused {
            return Err(self.error(self.peek().span, "templates are not expected here"));
        }
        self.advance();
        self.expect(Kind::LeftParen, "\"(\"")?;
        let mut definitions: Vec<Definition> = Vec::new();
        let mut names = std::collections::BTreeSet::new();
        let mut depth = 0;
        while self.peek().kind != Kind::RightParen {
            let name = self.peek();
            let (definition, body_depth) = self.definition()?;
            if !names.insert(definition.name.clone()) {
                let message = format!("template {} is defined twice", quote(&definition.name));
                return Err(self.error(name.span, message));
            }
            definitions.push(definition);
            depth = depth.max(body_depth);
            if self.peek().kind != Kind::RightParen {
                self.expect(Kind::Comma, "\",\" or \")\"")?;
            }
        }
        self.advance();
        let (body, body_depth) = self.expression(Priority::LOOSEST, None)?;
        self.node(Raw::With(Box::new(With { definitions, body })), depth.max(body_depth))
    }

    fn definition(&mut self) -> Result<(Definition, usize)> {
        let token = self.expect(Kind::Name, "the name of a template")?;
        let name = unescape_name(self.text_of(token));
        let mut parameters = Vec::new();
        if self.peek().kind == Kind::LeftParen {
            let list = self.peek().span;
            parameters = self.labels()?;
            let mut sorted: Vec<&String> = parameters.iter().collect();
            sorted.sort();
            if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
                let message = format!("template has two parameters {}", quote(pair[0]));
                return Err(self.error(list.to(self.previous()), message));
            }
        }
        self.expect(Kind::Assign, "\"=\"")?;
        let (body, depth) = self.expression(Priority::LOOSEST, None)?;
        Ok((Definition { name, parameters, body }, depth))
    }

    // ---- the tree ----

    /// Puts a node on top of a tree of `depth`.
    pub(super) fn node(&mut self, raw: Raw, depth: usize) -> Result<Node> {
        self.node_count += 1;
        if NODES_MAX < self.node_count {
            let message = format!("expression of more than {NODES_MAX} parts");
            return Err(self.error(self.peek().span, message));
        }
        if WRITTEN_NESTING_MAX <= depth {
            return Err(self.too_deep());
        }
        Ok((raw, depth + 1))
    }

    /// Runs `parse` one level deeper.
    fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if PARENS_NESTING_MAX <= self.depth {
            return Err(self.too_deep());
        }
        self.depth += 1;
        let parsed = parse(self);
        self.depth -= 1;
        parsed
    }

    fn too_deep(&self) -> ParseError {
        let message = format!("expression is nested deeper than {NESTING_MAX} levels");
        self.error(self.peek().span, message)
    }

    // ---- tokens ----

    pub(super) fn peek(&self) -> Token {
        self.tokens[self.at]
    }

    /// The token behind the next one.
    pub(super) fn peek_second(&self) -> Token {
        self.tokens[(self.at + 1).min(self.tokens.len() - 1)]
    }

    /// The token that follows the next `count`.
    pub(super) fn peek_after(&self, count: usize) -> Token {
        self.tokens[(self.at + count).min(self.tokens.len() - 1)]
    }

    /// The next token, which is left behind unless it is the last.
    pub(super) fn advance(&mut self) -> Token {
        let token = self.peek();
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        token
    }

    /// Where the token before the next one stands.
    pub(super) fn previous(&self) -> Span {
        self.tokens[self.at.saturating_sub(1)].span
    }

    pub(super) fn expect(&mut self, kind: Kind, expected: &str) -> Result<Token> {
        if self.peek().kind == kind { Ok(self.advance()) } else { Err(self.unexpected(expected)) }
    }

    pub(super) fn text_of(&self, token: Token) -> &'a str {
        &self.text[token.span.start as usize..token.span.end as usize]
    }

    /// Whether a token is a keyword, in any case.
    pub(super) fn is_word(&self, token: Token, word: &str) -> bool {
        token.kind == Kind::Name && self.text_of(token).eq_ignore_ascii_case(word)
    }

    pub(super) fn accept_word(&mut self, word: &str) -> bool {
        let found = self.is_word(self.peek(), word);
        if found {
            self.advance();
        }
        found
    }

    pub(super) fn is_operator(&self, op: BinaryOp) -> bool {
        self.peek().kind == Kind::Operator(op)
    }

    fn binary_op(&self) -> Option<BinaryOp> {
        let token = self.peek();
        match token.kind {
            Kind::Operator(op) => Some(op),
            Kind::Name => BinaryOp::from_word(self.text_of(token)),
            _ => None,
        }
    }

    pub(super) fn number_of(&self, token: Token) -> Result<f64> {
        parse_number(self.text_of(token)).map_err(|why| self.error(token.span, why))
    }

    pub(super) fn unquoted(&self, token: Token) -> Result<String> {
        let literal = self.text_of(token);
        unquote(literal).map_err(|_| self.error(token.span, format!("bad string {literal}")))
    }

    pub(super) fn unexpected(&self, expected: &str) -> ParseError {
        let token = self.peek();
        let found = match token.kind {
            Kind::End => "unexpected end of input".to_string(),
            Kind::Bad(why) => return self.error(token.span, self.describe_bad(token, why)),
            _ => format!("unexpected {}", quote(&shortened(self.text_of(token)))),
        };
        self.error(token.span, format!("{found}, expected {expected}"))
    }

    fn describe_bad(&self, token: Token, why: &str) -> String {
        format!("{why} {}", quote(&shortened(self.text_of(token))))
    }

    pub(super) fn error(&self, span: Span, message: impl Into<String>) -> ParseError {
        ParseError::new(self.text, span, message)
    }
}

/// Whether a number may be written by this word.
pub(super) fn is_special_number(word: &str) -> bool {
    word.eq_ignore_ascii_case("inf") || word.eq_ignore_ascii_case("nan")
}

/// The beginning of a text for a message.
fn shortened(text: &str) -> String {
    const CHARS_MAX: usize = 40;
    match text.char_indices().nth(CHARS_MAX) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text.to_string(),
    }
}

impl BinaryOp {
    /// All operators and how they are written.
    const TABLE: [(BinaryOp, &'static str); 19] = [
        (BinaryOp::Add, "+"),
        (BinaryOp::Sub, "-"),
        (BinaryOp::Mul, "*"),
        (BinaryOp::Div, "/"),
        (BinaryOp::Mod, "%"),
        (BinaryOp::Pow, "^"),
        (BinaryOp::Atan2, "atan2"),
        (BinaryOp::Equal, "=="),
        (BinaryOp::NotEqual, "!="),
        (BinaryOp::Less, "<"),
        (BinaryOp::LessEqual, "<="),
        (BinaryOp::Greater, ">"),
        (BinaryOp::GreaterEqual, ">="),
        (BinaryOp::And, "and"),
        (BinaryOp::Or, "or"),
        (BinaryOp::Unless, "unless"),
        (BinaryOp::If, "if"),
        (BinaryOp::IfNot, "ifnot"),
        (BinaryOp::Default, "default"),
    ];

    /// The operator that is written by a word, in any case.
    pub(crate) fn from_word(word: &str) -> Option<BinaryOp> {
        let found = BinaryOp::TABLE.iter().find(|(_, name)| name.eq_ignore_ascii_case(word));
        found.map(|(op, _)| *op)
    }

    /// How it is written.
    pub fn as_str(self) -> &'static str {
        BinaryOp::TABLE.iter().find(|(op, _)| *op == self).map_or("", |(_, name)| name)
    }

    /// Whether it compares.
    pub fn is_comparison(self) -> bool {
        Priority::of(self) == Priority::of(BinaryOp::Equal)
    }

    /// Whether it looks only at which points there are.
    pub fn is_set(self) -> bool {
        Priority::of(self) < Priority::of(BinaryOp::Equal)
    }
}
