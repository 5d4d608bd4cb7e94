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
use crate::number::{DURATION_MS_MAX, parse_duration_ms, parse_number};
use crate::quote::{UnquoteError, quote, unquote};
use crate::token::{Keyword, OperatorToken, Token, TokenKind, describe};
use crate::{NESTING_MAX, Options};
use model::{METRIC_NAME, MatchOp, Matcher};

pub(crate) type Result<T> = std::result::Result<T, ParseError>;

/// A node and the depth of the tree below it.
type Node = (Expr, usize);

/// Parses `text`; types are not checked yet.
pub(crate) fn parse(text: &str, options: &Options) -> Result<Expr> {
    let tokens = lexer::lex(text);
    let mut parser = Parser { text, tokens, at: 0, depth: 0, last_closing: 0, options };
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
                TokenKind::Keyword(keyword @ (Keyword::Anchored | Keyword::Smoothed)) => {
                    let word = if keyword == Keyword::Anchored { "anchored" } else { "smoothed" };
                    let message = format!("{word} modifier is experimental and not enabled");
                    return Err(self.error(node.0.span(), message));
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
                let value = self.unquoted(&token)?;
                Ok((Expr::String(StringLiteral { value, span: token.span }), 1))
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
        let selector = VectorSelector { name, matchers, offset_ms: 0, at: None, span };
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
            crate::check::check_matcher(&matcher.value)
                .map_err(|message| self.error(name.span.to(value.span), message))?;
        }
        Ok(matcher)
    }

    /// `[range]`, `[range:]` or `[range:step]`.
    fn brackets(&mut self, (expr, depth): Node) -> Result<Node> {
        let open = self.advance();
        let range_ms = self.bracket_duration(
            "subquery or range selector",
            "number, duration, step(), or range()",
        )?;
        let close = self.peek();
        match close.kind {
            TokenKind::RightBracket => {
                self.advance();
                let matrix = self.matrix_selector(expr, range_ms, open.span.to(close.span))?;
                self.node(matrix, depth)
            }
            TokenKind::Colon => {
                self.advance();
                let step_ms = match self.peek().kind {
                    TokenKind::RightBracket => None,
                    _ => Some(self.bracket_duration(
                        "subquery selector",
                        "number, duration, step(), range(), or \"]\"",
                    )?),
                };
                let close = self.peek();
                if close.kind != TokenKind::RightBracket {
                    return Err(self.unexpected("subquery selector", "\"]\""));
                }
                self.advance();
                let span = expr.span().to(close.span);
                let (offset_ms, at) = (0, None);
                let subquery = Subquery { expr, range_ms, step_ms, offset_ms, at, span };
                self.node(Expr::Subquery(Box::new(subquery)), depth)
            }
            _ => Err(self.unexpected("subquery or range", "\":\" or \"]\"")),
        }
    }

    fn matrix_selector(&self, expr: Expr, range_ms: i64, brackets: Span) -> Result<Expr> {
        let message = match &expr {
            Expr::Vector(selector) if selector.offset_ms != 0 => {
                "no offset modifiers allowed before range"
            }
            Expr::Vector(selector) if selector.at.is_some() => {
                "no @ modifiers allowed before range"
            }
            Expr::Vector(_) => "",
            _ => "ranges only allowed for vector selectors",
        };
        match expr {
            Expr::Vector(selector) if message.is_empty() => {
                let span = selector.span.to(brackets);
                Ok(Expr::Matrix(MatrixSelector { selector, range_ms, span }))
            }
            _ => Err(self.error(brackets, message)),
        }
    }

    /// A positive duration inside brackets, in milliseconds.
    fn bracket_duration(&mut self, context: &str, expected: &str) -> Result<i64> {
        let start = self.peek().span;
        let sign = self.sign();
        let token = self.peek();
        match token.kind {
            TokenKind::Number | TokenKind::Duration => {}
            TokenKind::LeftParen
            | TokenKind::Keyword(
                Keyword::Step | Keyword::Range | Keyword::MaxOf | Keyword::MinOf,
            ) => {
                return Err(self.error(start, "experimental duration expression is not enabled"));
            }
            _ => return Err(self.unexpected(context, expected)),
        }
        let number = self.number_literal()?;
        if let TokenKind::Operator(_) = self.peek().kind {
            return Err(self.error(start, "experimental duration expression is not enabled"));
        }
        let span = start.to(number.span);
        let ms = self.duration_of(number.value * sign, span)?;
        if number.value * sign <= 0.0 {
            return Err(self.error(span, "duration must be greater than 0"));
        }
        Ok(ms)
    }

    fn duration_of(&self, seconds: f64, span: Span) -> Result<i64> {
        if seconds.is_nan() || DURATION_MS_MAX as f64 <= seconds.abs() * 1000.0 {
            return Err(self.error(span, "duration out of range"));
        }
        // Prometheus rounds to nanoseconds, then cuts to milliseconds.
        Ok((seconds * 1e9).round() as i64 / 1_000_000)
    }

    /// Reads a sign, if there is one, as the factor it stands for.
    fn sign(&mut self) -> f64 {
        match self.peek().kind {
            TokenKind::Operator(OperatorToken::Add) => {
                self.advance();
                1.0
            }
            TokenKind::Operator(OperatorToken::Sub) => {
                self.advance();
                -1.0
            }
            _ => 1.0,
        }
    }

    fn offset(&mut self, expr: &mut Expr) -> Result<()> {
        self.advance();
        let start = self.peek().span;
        let sign = self.sign();
        match self.peek().kind {
            TokenKind::Number | TokenKind::Duration => {}
            TokenKind::LeftParen
            | TokenKind::Keyword(
                Keyword::Step | Keyword::Range | Keyword::MaxOf | Keyword::MinOf,
            ) => {
                return Err(self.error(start, "experimental duration expression is not enabled"));
            }
            _ => return Err(self.unexpected("offset", "number, duration, step(), or range()")),
        }
        let number = self.number_literal()?;
        let offset_ms = self.duration_of(number.value * sign, start.to(number.span))?;
        let span = expr.span();
        let (slot, end) = match expr {
            Expr::Vector(node) => (&mut node.offset_ms, &mut node.span.end),
            Expr::Matrix(node) => (&mut node.selector.offset_ms, &mut node.span.end),
            Expr::Subquery(node) => (&mut node.offset_ms, &mut node.span.end),
            _ => {
                return Err(ParseError::new(
                    self.text,
                    span,
                    "offset modifier must be preceded by an instant vector selector or \
                     range vector selector or a subquery",
                ));
            }
        };
        if *slot != 0 {
            let message = "offset may not be set multiple times";
            return Err(ParseError::new(self.text, span, message));
        }
        *slot = offset_ms;
        *end = self.last_closing;
        Ok(())
    }

    fn at_modifier(&mut self, expr: &mut Expr) -> Result<()> {
        self.advance();
        let token = self.peek();
        let span = expr.span();
        let at = match token.kind {
            TokenKind::Keyword(keyword @ (Keyword::Start | Keyword::End)) => {
                self.advance();
                self.expect(TokenKind::LeftParen)?;
                self.expect(TokenKind::RightParen)?;
                if keyword == Keyword::Start { At::Start } else { At::End }
            }
            TokenKind::Operator(OperatorToken::Add | OperatorToken::Sub)
            | TokenKind::Number
            | TokenKind::Duration => {
                let sign = self.sign();
                if !matches!(self.peek().kind, TokenKind::Number | TokenKind::Duration) {
                    return Err(self.unexpected("@", "timestamp"));
                }
                At::Timestamp(self.timestamp(sign, span)?)
            }
            _ => return Err(self.unexpected("@", "timestamp")),
        };
        let (slot, end) = match expr {
            Expr::Vector(node) => (&mut node.at, &mut node.span.end),
            Expr::Matrix(node) => (&mut node.selector.at, &mut node.span.end),
            Expr::Subquery(node) => (&mut node.at, &mut node.span.end),
            _ => {
                return Err(ParseError::new(
                    self.text,
                    span,
                    "@ modifier must be preceded by an instant vector selector or range \
                     vector selector or a subquery",
                ));
            }
        };
        if slot.is_some() {
            let message = "@ <timestamp> may not be set multiple times";
            return Err(ParseError::new(self.text, span, message));
        }
        *slot = Some(at);
        *end = self.last_closing;
        Ok(())
    }

    fn timestamp(&mut self, sign: f64, span: Span) -> Result<i64> {
        let seconds = self.number_literal()?.value * sign;
        if seconds.abs() < 9_223_372_036_854_775_000.0 {
            return Ok((seconds * 1000.0).round() as i64);
        }
        let shown = if seconds.is_finite() {
            format!("{seconds:.6}")
        } else {
            crate::number::format_number(seconds)
        };
        Err(self.error(span, format!("timestamp out of bounds for @ modifier: {shown}")))
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
            let message = format!("function {} is not enabled", quote(text));
            return Err(self.error(name.span, message));
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
            let message = format!(
                "{}() is experimental and must be enabled with \
                 --enable-feature=promql-experimental-functions",
                op.as_str()
            );
            return Err(self.error(span, message));
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
            OperatorToken::And => BinaryOp::And,
            OperatorToken::Or => BinaryOp::Or,
            OperatorToken::Unless => BinaryOp::Unless,
            OperatorToken::TrimLower
            | OperatorToken::TrimUpper
            | OperatorToken::RegexEqual
            | OperatorToken::RegexNotEqual
            | OperatorToken::At => return None,
        })
    }

    /// `bool`, `on (...)`, `ignoring (...)`, `group_left (...)`, `group_right (...)`.
    fn binary_modifier(&mut self) -> Result<(bool, VectorMatching)> {
        let returns_bool = self.skip_keyword(Keyword::Bool);
        let mut matching = VectorMatching {
            cardinality: Cardinality::OneToOne,
            is_on: false,
            labels: Vec::new(),
            include: Vec::new(),
        };
        if self.skip_keyword(Keyword::On) {
            matching.is_on = true;
        } else if !self.skip_keyword(Keyword::Ignoring) {
            self.refuse_fill()?;
            return Ok((returns_bool, matching));
        }
        matching.labels = self.labels()?;
        if self.skip_keyword(Keyword::GroupLeft) {
            matching.cardinality = Cardinality::ManyToOne;
        } else if self.skip_keyword(Keyword::GroupRight) {
            matching.cardinality = Cardinality::OneToMany;
        }
        let is_grouped = matching.cardinality != Cardinality::OneToOne;
        if is_grouped && self.peek().kind == TokenKind::LeftParen {
            matching.include = self.labels()?;
        }
        self.refuse_fill()?;
        Ok((returns_bool, matching))
    }

    fn refuse_fill(&self) -> Result<()> {
        match self.peek().kind {
            TokenKind::Keyword(Keyword::Fill | Keyword::FillLeft | Keyword::FillRight) => {
                let message = "binop fill modifiers are experimental and not enabled";
                Err(self.error(self.peek().span, message))
            }
            _ => Ok(()),
        }
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

    fn unquoted(&self, token: &Token) -> Result<String> {
        let literal = self.text_of(token);
        unquote(literal).map_err(|error| {
            let reason = match error {
                UnquoteError::Syntax => "invalid syntax",
                UnquoteError::InvalidUtf8 => "invalid UTF-8",
            };
            let message = format!("error unquoting string {}: {reason}", quote(literal));
            self.error(token.span, message)
        })
    }

    fn error(&self, span: Span, message: impl Into<String>) -> ParseError {
        ParseError::new(self.text, span, message)
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
