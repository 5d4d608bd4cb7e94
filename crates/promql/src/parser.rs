//! Tokens to tree: a Pratt parser.
//!
//! Binary operators are climbed by precedence (`or` < `and unless` < comparisons < `+ -` <
//! `* / % atan2` < `^`, the last one right-associative); a unary sign binds like `*`, and
//! `offset`, `@` and `[...]` bind tighter than any operator. The first error ends the parse.
//! A tree deeper than [`NESTING_MAX`] is refused while it is built, so
//! neither this parser nor anybody who walks its tree can run out of stack.

use crate::ast::*;
use crate::error::{ParseError, Span};
use crate::functions;
use crate::lexer::{self, Tokens};
use crate::number::{parse_duration_ms, parse_number};
use crate::options::{EXPERIMENTAL_FLAG, NESTING_MAX, Options};
use crate::patterns::PatternChecker;
use crate::quote::{INVALID_UTF8, UnquoteError, quote, unquote, unquoting_failed};
use crate::token::{Keyword, OperatorToken, Token, TokenKind, describe};
use model::{METRIC_NAME, MatchOp, Matcher};

mod durations;
mod modifiers;

pub(crate) type Result<T> = std::result::Result<T, ParseError>;

/// A node and the depth of the tree below it.
type Node = (Expr, usize);

/// Parses `text`; types are not checked yet.
pub(crate) fn parse(text: &str, options: &Options, patterns: &mut PatternChecker) -> Result<Expr> {
    let tokens = lexer::lex(text);
    let mut parser = Parser { text, tokens, at: 0, depth: 0, last_closing: 0, options, patterns };
    if parser.peek().kind == TokenKind::Eof {
        let span = Span::default();
        return Err(ParseError::new(text, span, "no expression found in input"));
    }
    let (expr, _) = parser.expression(0)?;
    match parser.peek().kind {
        TokenKind::Eof => Ok(expr),
        _ => Err(parser.unexpected("", "")),
    }
}

struct Parser<'a> {
    text: &'a str,
    tokens: Tokens,
    at: usize,
    /// How many calls of [`Parser::expression`] are open.
    depth: usize,
    /// Where the last token ended that may close an expression.
    last_closing: u32,
    options: &'a Options,
    patterns: &'a mut PatternChecker,
}

impl Parser<'_> {
    /// An expression of operators that bind at least as tightly as `precedence_min`.
    fn expression(&mut self, precedence_min: u8) -> Result<Node> {
        self.depth += 1;
        if NESTING_MAX < self.depth {
            return Err(self.too_deep());
        }
        let mut left = self.unary()?;
        while let Some(op) = self.binary_operator() {
            let precedence = op.precedence();
            if precedence < precedence_min {
                break;
            }
            self.advance();
            let (returns_bool, matching) = self.binary_modifier()?;
            // Right-associative: the right operand may hold the same operator.
            let right_min = if op == BinaryOp::Pow { precedence } else { precedence + 1 };
            let right = self.expression(right_min)?;
            let depth = left.1.max(right.1);
            let matching = Some(matching);
            let binary = Binary { op, left: left.0, right: right.0, returns_bool, matching };
            left = self.node(Expr::Binary(Box::new(binary)), depth)?;
        }
        self.depth -= 1;
        Ok(left)
    }

    /// Puts a node on top of a tree of `depth`.
    fn node(&self, expr: Expr, depth: usize) -> Result<Node> {
        if NESTING_MAX <= depth {
            // Dropping a tree of this depth is safe, one level more would not be built.
            return Err(self.too_deep());
        }
        Ok((expr, depth + 1))
    }

    fn too_deep(&self) -> ParseError {
        let message = format!("expression is nested deeper than {NESTING_MAX} levels");
        ParseError::new(self.text, self.peek().span, message)
    }

    fn unary(&mut self) -> Result<Node> {
        let token = self.peek();
        let op = match token.kind {
            TokenKind::Operator(OperatorToken::Add) => UnaryOp::Plus,
            TokenKind::Operator(OperatorToken::Sub) => UnaryOp::Minus,
            _ => return self.postfix(),
        };
        self.advance();
        let (expr, depth) = self.expression(BinaryOp::Pow.precedence())?;
        let span = token.span.to(expr.span());
        if let Expr::Number(mut number) = expr {
            if op == UnaryOp::Minus {
                number.value = -number.value;
            }
            number.span = span;
            return Ok((Expr::Number(number), depth));
        }
        self.node(Expr::Unary(Box::new(Unary { op, expr, span })), depth)
    }

    /// A primary expression and the modifiers behind it.
    fn postfix(&mut self) -> Result<Node> {
        let mut node = self.primary()?;
        loop {
            match self.peek().kind {
                TokenKind::LeftBracket => node = self.brackets(node)?,
                TokenKind::Keyword(Keyword::Offset) => self.offset(&mut node.0)?,
                TokenKind::Operator(OperatorToken::At) => self.at_modifier(&mut node.0)?,
                TokenKind::Keyword(Keyword::Anchored) => {
                    self.edges_modifier(&mut node.0, Edges::Anchored)?;
                }
                TokenKind::Keyword(Keyword::Smoothed) => {
                    self.edges_modifier(&mut node.0, Edges::Smoothed)?;
                }
                _ => return Ok(node),
            }
        }
    }

    fn primary(&mut self) -> Result<Node> {
        let token = self.peek();
        match token.kind {
            TokenKind::Number | TokenKind::Duration => {
                let number = self.number_literal()?;
                Ok((Expr::Number(number), 1))
            }
            TokenKind::String => {
                self.advance();
                Ok((Expr::String(self.string(&token)?), 1))
            }
            TokenKind::LeftParen => self.paren(),
            TokenKind::LeftBrace => self.vector_selector(None),
            TokenKind::Aggregate(op) if self.is_aggregate() => self.aggregate(op),
            TokenKind::Identifier | TokenKind::Keyword(_)
                if self.peek_second() == TokenKind::LeftParen && self.may_be_function(&token) =>
            {
                self.call()
            }
            kind if kind.is_metric_name() => {
                self.advance();
                self.vector_selector(Some(token))
            }
            _ => Err(self.unexpected("", "")),
        }
    }

    fn paren(&mut self) -> Result<Node> {
        let open = self.advance();
        let (expr, depth) = self.expression(0)?;
        let close = self.expect(TokenKind::RightParen)?;
        let span = open.span.to(close.span);
        self.node(Expr::Paren(Box::new(Paren { expr, span })), depth)
    }

    fn number_literal(&mut self) -> Result<NumberLiteral> {
        let token = self.advance();
        let text = self.text_of(&token);
        let is_duration = token.kind == TokenKind::Duration;
        let value = if is_duration {
            parse_duration_ms(text).map(|ms| ms as f64 / 1000.0)
        } else {
            parse_number(text).map_err(|message| format!("error parsing number: {message}"))
        };
        let value = value.map_err(|message| self.error(token.span, message))?;
        Ok(NumberLiteral { value, is_duration, span: token.span })
    }

    // ---- selectors ----

    /// A selector whose name, if it has one before the braces, has been read.
    fn vector_selector(&mut self, name: Option<Token>) -> Result<Node> {
        let mut span = name.map_or(self.peek().span, |token| token.span);
        let mut matchers = Vec::new();
        if self.peek().kind == TokenKind::LeftBrace {
            self.advance();
            let close = self.label_matchers(&mut matchers)?;
            span = span.to(close.span);
        }
        let name = name.map(|token| self.text_of(&token).to_string());
        if let Some(name) = &name {
            matchers.push(Matcher::equal(METRIC_NAME, name));
        }
        let selector = VectorSelector {
            name,
            matchers,
            offset_ms: 0,
            offset_expr: None,
            at: None,
            edges: Edges::Samples,
            span,
        };
        Ok((Expr::Vector(selector), 1))
    }

    /// The matchers up to the closing brace, which is returned.
    fn label_matchers(&mut self, matchers: &mut Vec<Matcher>) -> Result<Token> {
        const WHERE: &str = "label matching";
        if self.peek().kind == TokenKind::RightBrace {
            return Ok(self.advance());
        }
        loop {
            matchers.push(self.label_matcher()?);
            match self.peek().kind {
                TokenKind::Comma => {
                    self.advance();
                    if self.peek().kind == TokenKind::RightBrace {
                        return Ok(self.advance());
                    }
                }
                TokenKind::RightBrace => return Ok(self.advance()),
                _ => return Err(self.unexpected(WHERE, "\",\" or \"}\"")),
            }
        }
    }

    fn label_matcher(&mut self) -> Result<Matcher> {
        const WHERE: &str = "label matching";
        let name = self.peek();
        if !matches!(name.kind, TokenKind::Identifier | TokenKind::String) {
            return Err(self.unexpected(WHERE, "identifier or \"}\""));
        }
        self.advance();
        let is_quoted = name.kind == TokenKind::String;
        let label = if is_quoted { self.unquoted(&name)? } else { self.text_of(&name).to_string() };
        let op = match self.peek().kind {
            TokenKind::Assign => MatchOp::Equal,
            TokenKind::Operator(OperatorToken::NotEqual) => MatchOp::NotEqual,
            TokenKind::Operator(OperatorToken::RegexEqual) => MatchOp::Regex,
            TokenKind::Operator(OperatorToken::RegexNotEqual) => MatchOp::NotRegex,
            TokenKind::Comma | TokenKind::RightBrace if is_quoted => {
                return Ok(Matcher::equal(METRIC_NAME, label));
            }
            _ if is_quoted => return Err(self.unexpected(WHERE, "\",\" or \"}\"")),
            _ => return Err(self.unexpected(WHERE, "label matching operator")),
        };
        self.advance();
        let value = self.peek();
        if value.kind != TokenKind::String {
            return Err(self.unexpected(WHERE, "string"));
        }
        self.advance();
        let matcher = Matcher::new(label, op, self.unquoted(&value)?);
        if matches!(op, MatchOp::Regex | MatchOp::NotRegex) {
            let checked = self.patterns.check(&matcher.value);
            checked.map_err(|message| self.error(name.span.to(value.span), message))?;
        }
        Ok(matcher)
    }

    // ---- calls and aggregations ----

    fn may_be_function(&self, token: &Token) -> bool {
        matches!(
            token.kind,
            TokenKind::Identifier
                | TokenKind::Keyword(
                    Keyword::Start
                        | Keyword::End
                        | Keyword::Step
                        | Keyword::Range
                        | Keyword::MaxOf
                        | Keyword::MinOf
                )
        )
    }

    fn call(&mut self) -> Result<Node> {
        let name = self.advance();
        let (arguments, depth) = self.arguments()?;
        let text = self.text_of(&name);
        let Some(function) = functions::find(text) else {
            let message = format!("unknown function with name {}", quote(text));
            return Err(self.error(name.span, message));
        };
        if function.is_experimental && !self.options.experimental_functions {
            let what = format!("function {} is not enabled", quote(text));
            return Err(self.not_enabled(name.span, &what));
        }
        let span = Span { start: name.span.start, end: self.last_closing };
        self.node(Expr::Call(Call { function, arguments, span }), depth)
    }

    /// `(a, b, ...)` and the depth of the deepest.
    fn arguments(&mut self) -> Result<(Vec<Expr>, usize)> {
        self.expect(TokenKind::LeftParen)?;
        let mut arguments = Vec::new();
        let mut depth = 0;
        if self.peek().kind == TokenKind::RightParen {
            self.advance();
            return Ok((arguments, depth));
        }
        loop {
            let (argument, argument_depth) = self.expression(0)?;
            arguments.push(argument);
            depth = depth.max(argument_depth);
            match self.peek().kind {
                TokenKind::Comma => {
                    let comma = self.advance();
                    if self.peek().kind == TokenKind::RightParen {
                        let message = "trailing commas not allowed in function call args";
                        return Err(self.error(comma.span, message));
                    }
                }
                TokenKind::RightParen => {
                    self.advance();
                    return Ok((arguments, depth));
                }
                _ => return Err(self.unexpected("", "")),
            }
        }
    }

    /// Whether the aggregation operator at hand is one, not a metric of that name.
    fn is_aggregate(&self) -> bool {
        matches!(
            self.peek_second(),
            TokenKind::LeftParen | TokenKind::Keyword(Keyword::By | Keyword::Without)
        )
    }

    fn aggregate(&mut self, op: AggregateOp) -> Result<Node> {
        let start = self.advance().span;
        let before = self.grouping()?;
        if before.is_some() && self.peek().kind != TokenKind::LeftParen {
            return Err(self.unexpected("aggregation", ""));
        }
        let (mut arguments, depth) = self.arguments()?;
        let end_of_arguments = self.last_closing;
        let grouping = match before {
            Some(grouping) => grouping,
            None => self.grouping()?.unwrap_or(Grouping::By(Vec::new())),
        };
        let span = Span { start: start.start, end: self.last_closing.max(end_of_arguments) };
        if arguments.is_empty() {
            let message = "no arguments for aggregate expression provided";
            return Err(self.error(span, message));
        }
        let desired = 1 + usize::from(op.parameter().is_some());
        if op.is_experimental() && !self.options.experimental_functions {
            let what = format!("{}() is experimental and not enabled", op.as_str());
            return Err(self.not_enabled(span, &what));
        }
        if arguments.len() != desired {
            let message = format!(
                "wrong number of arguments for aggregate expression provided, \
                 expected {desired}, got {}",
                arguments.len()
            );
            return Err(self.error(span, message));
        }
        let expr = arguments.remove(desired - 1);
        let parameter = arguments.pop();
        let aggregate = Aggregate { op, parameter, expr, grouping, span };
        self.node(Expr::Aggregate(Box::new(aggregate)), depth)
    }

    /// `by (...)` or `without (...)`, if it stands here.
    fn grouping(&mut self) -> Result<Option<Grouping>> {
        Ok(match self.peek().kind {
            TokenKind::Keyword(Keyword::By) => {
                self.advance();
                Some(Grouping::By(self.labels()?))
            }
            TokenKind::Keyword(Keyword::Without) => {
                self.advance();
                Some(Grouping::Without(self.labels()?))
            }
            _ => None,
        })
    }

    /// `(label, "label", ...)`, maybe with a comma at the end.
    fn labels(&mut self) -> Result<Vec<String>> {
        const WHERE: &str = "grouping opts";
        if self.peek().kind != TokenKind::LeftParen {
            return Err(self.unexpected(WHERE, "\"(\""));
        }
        self.advance();
        let mut labels = Vec::new();
        if self.peek().kind == TokenKind::RightParen {
            self.advance();
            return Ok(labels);
        }
        loop {
            let token = self.peek();
            let label = match token.kind {
                TokenKind::String => self.unquoted(&token)?,
                kind if kind.is_label_name() => self.text_of(&token).to_string(),
                _ => return Err(self.unexpected(WHERE, "label")),
            };
            if label.is_empty() {
                let message = format!("invalid label name for grouping: {}", quote(&label));
                return Err(self.error(token.span, message));
            }
            self.advance();
            labels.push(label);
            match self.peek().kind {
                TokenKind::Comma => {
                    self.advance();
                    if self.peek().kind == TokenKind::RightParen {
                        self.advance();
                        return Ok(labels);
                    }
                }
                TokenKind::RightParen => {
                    self.advance();
                    return Ok(labels);
                }
                _ => return Err(self.unexpected(WHERE, "\",\" or \")\"")),
            }
        }
    }

    // ---- binary operators ----

    fn binary_operator(&self) -> Option<BinaryOp> {
        let TokenKind::Operator(op) = self.peek().kind else { return None };
        Some(match op {
            OperatorToken::Add => BinaryOp::Add,
            OperatorToken::Sub => BinaryOp::Sub,
            OperatorToken::Mul => BinaryOp::Mul,
            OperatorToken::Div => BinaryOp::Div,
            OperatorToken::Mod => BinaryOp::Mod,
            OperatorToken::Pow => BinaryOp::Pow,
            OperatorToken::Atan2 => BinaryOp::Atan2,
            OperatorToken::Equal => BinaryOp::Equal,
            OperatorToken::NotEqual => BinaryOp::NotEqual,
            OperatorToken::Less => BinaryOp::Less,
            OperatorToken::LessEqual => BinaryOp::LessEqual,
            OperatorToken::Greater => BinaryOp::Greater,
            OperatorToken::GreaterEqual => BinaryOp::GreaterEqual,
            OperatorToken::TrimUpper => BinaryOp::TrimUpper,
            OperatorToken::TrimLower => BinaryOp::TrimLower,
            OperatorToken::And => BinaryOp::And,
            OperatorToken::Or => BinaryOp::Or,
            OperatorToken::Unless => BinaryOp::Unless,
            OperatorToken::RegexEqual | OperatorToken::RegexNotEqual | OperatorToken::At => {
                return None;
            }
        })
    }

    // ---- tokens ----

    fn peek(&self) -> Token {
        self.tokens.list[self.at.min(self.tokens.list.len() - 1)]
    }

    fn peek_second(&self) -> TokenKind {
        self.tokens.list.get(self.at + 1).map_or(TokenKind::Eof, |token| token.kind)
    }

    fn advance(&mut self) -> Token {
        let token = self.peek();
        if matches!(
            token.kind,
            TokenKind::RightBrace
                | TokenKind::RightParen
                | TokenKind::RightBracket
                | TokenKind::Duration
                | TokenKind::Number
        ) {
            self.last_closing = token.span.end;
        }
        self.at += 1;
        token
    }

    fn skip_keyword(&mut self, keyword: Keyword) -> bool {
        let found = self.peek().kind == TokenKind::Keyword(keyword);
        if found {
            self.advance();
        }
        found
    }

    fn expect(&mut self, kind: TokenKind) -> Result<Token> {
        if self.peek().kind == kind { Ok(self.advance()) } else { Err(self.unexpected("", "")) }
    }

    fn text_of(&self, token: &Token) -> &str {
        &self.text[token.span.start as usize..token.span.end as usize]
    }

    /// A string for an argument; whether it may have odd bytes is checked with the types.
    fn string(&self, token: &Token) -> Result<StringLiteral> {
        let span = token.span;
        if let Err(UnquoteError::InvalidUtf8(bytes)) = unquote(self.text_of(token)) {
            let value = String::from_utf8_lossy(&bytes).into_owned();
            return Ok(StringLiteral { value, odd_bytes: Some(bytes.into()), span });
        }
        Ok(StringLiteral { value: self.unquoted(token)?, odd_bytes: None, span })
    }

    fn unquoted(&self, token: &Token) -> Result<String> {
        let literal = self.text_of(token);
        unquote(literal).map_err(|error| {
            let reason = match error {
                UnquoteError::Syntax => "invalid syntax",
                UnquoteError::InvalidUtf8(_) => INVALID_UTF8,
            };
            self.error(token.span, unquoting_failed(literal, reason))
        })
    }

    fn error(&self, span: Span, message: impl Into<String>) -> ParseError {
        ParseError::new(self.text, span, message)
    }

    /// What stands at `span` is experimental, and such things are refused.
    fn not_enabled(&self, span: Span, what: &str) -> ParseError {
        self.error(span, format!("{what}; start with {EXPERIMENTAL_FLAG}"))
    }

    /// The token at hand should not be here; if it is the lexer's error, that is the error.
    fn unexpected(&self, context: &str, expected: &str) -> ParseError {
        let token = self.peek();
        if let (TokenKind::Error, Some(message)) = (token.kind, &self.tokens.error) {
            return self.error(token.span, message.clone());
        }
        let mut message = format!("unexpected {}", describe(&token, self.text));
        if !context.is_empty() {
            message.push_str(" in ");
            message.push_str(context);
        }
        if !expected.is_empty() {
            message.push_str(", expected ");
            message.push_str(expected);
        }
        self.error(token.span, message)
    }
}
