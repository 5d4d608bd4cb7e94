//! Pieces to a tree.
//!
//! From loose to tight: `if`, `or`, `and`, `not` and `exists`, comparisons, sums, products, powers,
//! `|>`, signs, calls and members.

use crate::ast::{Body, Expr, ExprKind, Function, Logic, Param, Statement, StatementKind};
use crate::error::{Error, Result, Span};
use crate::lexer::Lexer;
use crate::token::Token;
use influxql::{Allowance, Pattern};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Bytes of a text.
pub const TEXT_SIZE_MAX: usize = 1 << 20;
/// Levels of brackets within each other.
pub const NESTING_MAX: usize = 40;
/// Levels of an expression's tree: `a + b + c` has two more than `a`.
pub const HEIGHT_MAX: usize = 100;
/// Statements of a text, those of functions among them.
pub const STATEMENTS_MAX: usize = 1_000;
/// Regular expressions of a text.
pub const REGEXES_MAX: usize = 100;

/// Comparisons, sums and products, each with how tight it binds.
const BINARY: &[(&str, u8)] = &[
    ("==", 1),
    ("!=", 1),
    ("<=", 1),
    (">=", 1),
    ("<", 1),
    (">", 1),
    ("=~", 1),
    ("!~", 1),
    ("+", 2),
    ("-", 2),
    ("*", 3),
    ("/", 3),
    ("%", 3),
    ("^", 4),
];

/// The statements of a text, and bytes of memory of the regular expressions in it.
pub(crate) fn parse(text: &str) -> Result<(Vec<Statement>, usize)> {
    if TEXT_SIZE_MAX < text.len() {
        let message = format!("the query has {} bytes, the limit is {TEXT_SIZE_MAX}", text.len());
        return Err(Error::limit(message));
    }
    let mut parser = Parser::new(text, 0)?;
    let statements = parser.statements("", &[])?;
    Ok((statements, parser.regexes.size()))
}

/// Regular expressions of a text, or of what comes beside it.
#[derive(Clone, Copy, Default)]
pub(crate) struct Regexes {
    count: usize,
    allowance: Allowance,
}

impl Regexes {
    /// One more.
    ///
    /// # Errors
    /// Why it is none, or that there are too many.
    pub(crate) fn add(&mut self, pattern: &str) -> std::result::Result<Arc<Pattern>, String> {
        self.count += 1;
        if REGEXES_MAX < self.count {
            return Err(format!("more than {REGEXES_MAX} regular expressions"));
        }
        self.allowance.pattern(pattern).map(Arc::new)
    }

    /// Bytes of memory that they take.
    pub(crate) fn size(&self) -> usize {
        self.allowance.memory()
    }
}

/// An expression over others.
pub(crate) fn node(kind: ExprKind, span: Span, below: usize) -> Result<Expr> {
    if HEIGHT_MAX <= below {
        let message = format!("this expression has more than {HEIGHT_MAX} levels");
        return Err(Error::limit(message).at(span));
    }
    Ok(Expr { kind, span, height: below + 1 })
}

/// Names that statements of one block assign: each of them once.
#[derive(Default)]
struct Scope {
    variables: BTreeSet<Arc<str>>,
    options: BTreeSet<Arc<str>>,
}

impl Scope {
    fn add(&mut self, name: &Arc<str>, is_option: bool) -> Result<()> {
        let (kind, own, others) = match is_option {
            true => ("option", &mut self.options, &self.variables),
            false => ("variable", &mut self.variables, &self.options),
        };
        if others.contains(name) {
            let message = format!("variable {name:?} conflicts with option of same name");
            return Err(Error::name(message));
        }
        match own.insert(name.clone()) {
            true => Ok(()),
            false => Err(Error::name(format!("{kind} {name:?} reassigned"))),
        }
    }
}

struct Parser<'t> {
    text: &'t str,
    lexer: Lexer<'t>,
    token: Token,
    span: Span,
    /// The end of the piece before.
    end: usize,
    nesting: usize,
    regexes: Regexes,
    statement_count: usize,
}

impl<'t> Parser<'t> {
    fn new(text: &'t str, at: usize) -> Result<Parser<'t>> {
        let lexer = Lexer::new(text, at);
        let span = Span { start: at, end: at };
        let mut parser = Parser {
            text,
            lexer,
            token: Token::End,
            span,
            end: at,
            nesting: 0,
            regexes: Regexes::default(),
            statement_count: 0,
        };
        parser.advance()?;
        parser.end = at;
        Ok(parser)
    }

    fn advance(&mut self) -> Result<Token> {
        let (token, span) = self.lexer.next()?;
        self.end = self.span.end;
        self.span = span;
        Ok(std::mem::replace(&mut self.token, token))
    }

    fn is(&self, sign: &str) -> bool {
        matches!(self.token, Token::Sign(found) if found == sign)
    }

    fn take(&mut self, sign: &str) -> Result<bool> {
        let is_there = self.is(sign);
        if is_there {
            self.advance()?;
        }
        Ok(is_there)
    }

    fn expected(&self, what: &str) -> Error {
        Error::syntax(self.span, format!("expected {what}, found {}", self.token.words()))
    }

    fn expect(&mut self, sign: &str) -> Result<()> {
        match self.take(sign)? {
            true => Ok(()),
            false => Err(self.expected(&format!("{sign:?}"))),
        }
    }

    fn name(&mut self) -> Result<Arc<str>> {
        match &self.token {
            Token::Name(name) => {
                let name = name.clone();
                self.advance()?;
                Ok(name)
            }
            _ => Err(self.expected("an identifier")),
        }
    }

    fn since(&self, start: usize) -> Span {
        Span { start, end: self.end }
    }

    /// One level deeper; [`Parser::leave`] undoes it.
    fn enter(&mut self) -> Result<()> {
        self.nesting += 1;
        if NESTING_MAX < self.nesting {
            let message = format!("more than {NESTING_MAX} levels of brackets");
            return Err(Error::limit(message).at(self.span));
        }
        Ok(())
    }

    fn leave(&mut self) {
        self.nesting -= 1;
    }

    /// Statements of a text or of a function, whose parameters are names of the same scope.
    fn statements(&mut self, closing: &str, params: &[Param]) -> Result<Vec<Statement>> {
        let mut scope = Scope::default();
        scope.variables.extend(params.iter().map(|param| param.name.clone()));
        let mut statements = Vec::new();
        loop {
            if self.token == Token::End {
                match closing {
                    "" => return Ok(statements),
                    closing => return Err(self.expected(&format!("{closing:?}"))),
                }
            }
            if !closing.is_empty() && self.take(closing)? {
                return Ok(statements);
            }
            self.statement_count += 1;
            if STATEMENTS_MAX < self.statement_count {
                let message = format!("more than {STATEMENTS_MAX} statements");
                return Err(Error::limit(message).at(self.span));
            }
            let is_option = self.is("option");
            if is_option && !closing.is_empty() {
                return Err(Error::syntax(self.span, "option statement in a function"));
            }
            let Some(statement) = self.statement()? else { continue };
            if let StatementKind::Assign { name, .. } = &statement.kind {
                scope.add(name, is_option).map_err(|error| error.at(statement.span))?;
            }
            statements.push(statement);
        }
    }

    fn statement(&mut self) -> Result<Option<Statement>> {
        let start = self.span.start;
        let kind = match &self.token {
            Token::Sign("package") => {
                self.advance()?;
                self.name()?;
                return Ok(None);
            }
            Token::Sign("import") => self.import()?,
            Token::Sign("return") => {
                self.advance()?;
                StatementKind::Return(self.expression()?)
            }
            Token::Sign("option") => {
                self.advance()?;
                let name = self.name()?;
                if self.take(".")? {
                    let (package, name) = (name, self.name()?);
                    self.expect("=")?;
                    StatementKind::SetOption { package, name, value: self.expression()? }
                } else {
                    self.expect("=")?;
                    StatementKind::Assign { name, value: self.expression()? }
                }
            }
            Token::Sign(word @ ("builtin" | "test" | "testcase")) => {
                return Err(Error::syntax(
                    self.span,
                    format!("{word} statements are not for queries"),
                ));
            }
            Token::Name(_) if self.is_assignment() => {
                let name = self.name()?;
                self.expect("=")?;
                StatementKind::Assign { name, value: self.expression()? }
            }
            _ => StatementKind::Expr(self.expression()?),
        };
        Ok(Some(Statement { kind, span: self.since(start) }))
    }

    fn is_assignment(&self) -> bool {
        let next = self.lexer.clone().next();
        matches!(next, Ok((Token::Sign("="), _)))
    }

    fn import(&mut self) -> Result<StatementKind> {
        self.advance()?;
        let alias = match self.token {
            Token::Name(_) => Some(self.name()?),
            _ => None,
        };
        let Token::Text { start, end } = self.token else {
            return Err(self.expected("the path of a package"));
        };
        let path: Arc<str> = self.text.get(start..end).unwrap_or("").into();
        self.advance()?;
        let last = path.rsplit('/').next().unwrap_or("").into();
        Ok(StatementKind::Import { name: alias.unwrap_or(last), path })
    }

    fn expression(&mut self) -> Result<Expr> {
        self.enter()?;
        let found = if self.is("if") { self.conditional() } else { self.logical(Logic::Or) };
        self.leave();
        found
    }

    fn conditional(&mut self) -> Result<Expr> {
        let start = self.span.start;
        self.expect("if")?;
        let condition = self.expression()?;
        self.expect("then")?;
        let then = self.expression()?;
        self.expect("else")?;
        let otherwise = self.expression()?;
        let below = condition.height.max(then.height).max(otherwise.height);
        let kind = ExprKind::If {
            condition: Box::new(condition),
            then: Box::new(then),
            otherwise: Box::new(otherwise),
        };
        node(kind, self.since(start), below)
    }

    fn logical(&mut self, op: Logic) -> Result<Expr> {
        let start = self.span.start;
        let word = if op == Logic::Or { "or" } else { "and" };
        let mut terms = Vec::new();
        loop {
            terms.push(match op {
                Logic::Or => self.logical(Logic::And)?,
                Logic::And => self.negation()?,
            });
            if !self.take(word)? {
                break;
            }
        }
        if terms.len() == 1
            && let Some(only) = terms.pop()
        {
            return Ok(only);
        }
        let below = terms.iter().map(|term| term.height).max().unwrap_or(0);
        node(ExprKind::Logical { op, terms }, self.since(start), below)
    }

    fn negation(&mut self) -> Result<Expr> {
        let start = self.span.start;
        for op in ["not", "exists"] {
            if self.take(op)? {
                self.enter()?;
                let operand = self.negation()?;
                self.leave();
                let below = operand.height;
                let kind = ExprKind::Unary { op, operand: Box::new(operand) };
                return node(kind, self.since(start), below);
            }
        }
        self.binary(1)
    }

    fn binary(&mut self, least: u8) -> Result<Expr> {
        let start = self.span.start;
        let mut left = self.piped()?;
        loop {
            let Token::Sign(sign) = self.token else { return Ok(left) };
            let found = BINARY.iter().find(|(op, _)| *op == sign);
            let Some((op, tightness)) = found.filter(|(_, tightness)| least <= *tightness) else {
                return Ok(left);
            };
            self.advance()?;
            let right = self.binary(tightness + 1)?;
            let below = left.height.max(right.height);
            let (left_box, right) = (Box::new(left), Box::new(right));
            let kind = ExprKind::Binary { op, left: left_box, right };
            left = node(kind, self.since(start), below)?;
        }
    }

    fn piped(&mut self) -> Result<Expr> {
        let start = self.span.start;
        let head = self.signed()?;
        let mut calls = Vec::new();
        while self.take("|>")? {
            let call = self.signed()?;
            if !matches!(call.kind, ExprKind::Call { .. }) {
                return Err(Error::syntax(call.span, "pipe destination must be a function call"));
            }
            calls.push(call);
        }
        if calls.is_empty() {
            return Ok(head);
        }
        let below = calls.iter().map(|call| call.height).max().unwrap_or(0).max(head.height);
        node(ExprKind::Pipe { head: Box::new(head), calls }, self.since(start), below)
    }

    fn signed(&mut self) -> Result<Expr> {
        let start = self.span.start;
        for op in ["-", "+"] {
            if self.take(op)? {
                self.enter()?;
                let operand = self.signed()?;
                self.leave();
                let below = operand.height;
                let kind = ExprKind::Unary { op, operand: Box::new(operand) };
                return node(kind, self.since(start), below);
            }
        }
        self.postfix()
    }

    fn postfix(&mut self) -> Result<Expr> {
        let start = self.span.start;
        let mut object = self.primary()?;
        loop {
            let below = object.height;
            if self.take(".")? {
                let name = self.name()?;
                let kind = ExprKind::Member { object: Box::new(object), name };
                object = node(kind, self.since(start), below)?;
            } else if self.is("[") {
                self.advance()?;
                let index = self.expression()?;
                self.expect("]")?;
                object = indexed(object, index, self.since(start))?;
            } else if self.is("(") {
                self.advance()?;
                let args = self.properties(")")?;
                let below = args.iter().map(|(_, arg)| arg.height).max().unwrap_or(0).max(below);
                let kind = ExprKind::Call { callee: Box::new(object), args };
                object = node(kind, self.since(start), below)?;
            } else {
                return Ok(object);
            }
        }
    }

    /// `name: value, "name": value, name`, up to the closing sign.
    fn properties(&mut self, closing: &str) -> Result<Vec<(Arc<str>, Expr)>> {
        let mut found = Vec::new();
        while !self.take(closing)? {
            let span = self.span;
            let name = self.property_name()?;
            let value = match self.take(":")? {
                true => self.expression()?,
                false => node(ExprKind::Name(name.clone()), span, 0)?,
            };
            found.push((name, value));
            if !self.take(",")? && !self.is(closing) {
                return Err(self.expected(&format!("\",\" or {closing:?}")));
            }
        }
        Ok(found)
    }

    fn property_name(&mut self) -> Result<Arc<str>> {
        match self.token {
            Token::Text { start, end } => {
                let name = unescape(self.text.get(start..end).unwrap_or(""), self.span)?;
                self.advance()?;
                Ok(name.into())
            }
            Token::Sign(word) if word.starts_with(|c: char| c.is_ascii_lowercase()) => {
                self.advance()?;
                Ok(word.into())
            }
            _ => self.name(),
        }
    }

    fn primary(&mut self) -> Result<Expr> {
        let span = self.span;
        let kind = match self.token.clone() {
            Token::Integer(value) => ExprKind::Integer(value),
            Token::Float(value) => ExprKind::Float(value),
            Token::Duration(value) => ExprKind::Duration(value),
            Token::Time(value) => ExprKind::Time(value),
            Token::Name(name) => ExprKind::Name(name),
            Token::Text { start, end } => return self.text(start, end),
            Token::Sign("/") => return self.regex(),
            Token::Sign("(") if self.is_function() => return self.function(),
            Token::Sign("(") => {
                self.advance()?;
                let inner = self.expression()?;
                self.expect(")")?;
                return Ok(inner);
            }
            Token::Sign("[") => return self.array(),
            Token::Sign("{") => return self.record(),
            _ => return Err(self.expected("an expression")),
        };
        self.advance()?;
        node(kind, span, 0)
    }

    fn regex(&mut self) -> Result<Expr> {
        let start = self.span.start;
        let pattern = self.lexer.regex(start)?;
        self.span.end = start + 1;
        self.advance()?;
        let span = Span { start, end: start + pattern.len() + 2 };
        let regex = self.regexes.add(&pattern).map_err(|message| Error::syntax(span, message))?;
        node(ExprKind::Regex(regex), span, 0)
    }

    /// An array, or a dictionary, whose items have keys.
    fn array(&mut self) -> Result<Expr> {
        let start = self.span.start;
        self.advance()?;
        if self.take(":")? {
            self.expect("]")?;
            return node(ExprKind::Dictionary(Vec::new()), self.since(start), 0);
        }
        let (mut items, mut keys) = (Vec::new(), Vec::new());
        while !self.take("]")? {
            let mut item = self.expression()?;
            let has_key = self.is(":");
            if !items.is_empty() && has_key == keys.is_empty() {
                return Err(self.expected("keys for all items of a dictionary, or for none"));
            }
            if self.take(":")? {
                keys.push(std::mem::replace(&mut item, self.expression()?));
            }
            items.push(item);
            if !self.take(",")? && !self.is("]") {
                return Err(self.expected("\",\" or \"]\""));
            }
        }
        let below = items.iter().chain(&keys).map(|item| item.height).max().unwrap_or(0);
        let kind = match keys.is_empty() {
            true => ExprKind::Array(items),
            false => ExprKind::Dictionary(keys.into_iter().zip(items).collect()),
        };
        node(kind, self.since(start), below)
    }

    fn record(&mut self) -> Result<Expr> {
        let start = self.span.start;
        self.advance()?;
        let mut with = None;
        if let Token::Name(name) = self.token.clone()
            && matches!(self.lexer.clone().next(), Ok((Token::Sign("with"), _)))
        {
            with = Some(Box::new(node(ExprKind::Name(name), self.span, 0)?));
            self.advance()?;
            self.advance()?;
        }
        let fields = self.properties("}")?;
        let below = fields.iter().map(|(_, field)| field.height).max().unwrap_or(1);
        node(ExprKind::Record { with, fields }, self.since(start), below)
    }

    /// Whether the bracket here begins a list of parameters.
    fn is_function(&self) -> bool {
        let mut lexer = self.lexer.clone();
        match lexer.next() {
            Ok((Token::Sign(")"), _)) => true,
            Ok((Token::Name(_), _)) => match lexer.next() {
                Ok((Token::Sign("," | "="), _)) => true,
                Ok((Token::Sign(")"), _)) => matches!(lexer.next(), Ok((Token::Sign("=>"), _))),
                _ => false,
            },
            _ => false,
        }
    }

    fn function(&mut self) -> Result<Expr> {
        let start = self.span.start;
        self.advance()?;
        let mut params = Vec::new();
        let mut below = 0;
        while !self.take(")")? {
            let name = self.name()?;
            let (mut default, mut is_pipe) = (None, false);
            if self.take("=")? {
                is_pipe = self.take("<-")?;
                if !is_pipe {
                    let value = self.expression()?;
                    below = below.max(value.height);
                    default = Some(value);
                }
            }
            params.push(Param { name, default, is_pipe });
            if !self.take(",")? && !self.is(")") {
                return Err(self.expected("\",\" or \")\""));
            }
        }
        self.expect("=>")?;
        let body = match self.take("{")? {
            false => Body::Expr(self.expression()?),
            true => {
                self.enter()?;
                let statements = self.statements("}", &params)?;
                self.leave();
                Body::Block(statements)
            }
        };
        let below = body_height(&body).max(below);
        node(ExprKind::Function(Arc::new(Function { params, body })), self.since(start), below)
    }

    /// A string, or one with `${}` in it.
    fn text(&mut self, start: usize, end: usize) -> Result<Expr> {
        let span = self.span;
        let raw = self.text.get(start..end).unwrap_or("");
        let mut parts = Vec::new();
        let mut from = start;
        while let Some(open) = interpolation(self.text.get(from..end).unwrap_or("")) {
            let open = from + open;
            parts.push(self.plain(from, open, span)?);
            // A parser of its own goes on in the same text, so that places are right.
            let mut inner = Parser::new(self.text.get(..end).unwrap_or(""), open + 2)?;
            inner.nesting = self.nesting;
            (inner.regexes, inner.statement_count) = (self.regexes, self.statement_count);
            parts.push(inner.expression()?);
            (self.regexes, self.statement_count) = (inner.regexes, inner.statement_count);
            if !inner.is("}") {
                return Err(inner.expected("\"}\""));
            }
            from = inner.span.end;
        }
        self.advance()?;
        if parts.is_empty() {
            return node(ExprKind::Text(unescape(raw, span)?.into()), span, 0);
        }
        parts.push(self.plain(from, end, span)?);
        let below = parts.iter().map(|part| part.height).max().unwrap_or(0);
        node(ExprKind::Parts(parts), span, below)
    }

    fn plain(&self, from: usize, to: usize, span: Span) -> Result<Expr> {
        let text = unescape(self.text.get(from..to).unwrap_or(""), span)?;
        node(ExprKind::Text(text.into()), span, 0)
    }
}

fn body_height(body: &Body) -> usize {
    match body {
        Body::Expr(expr) => expr.height,
        Body::Block(statements) => {
            let heights = statements.iter().map(|statement| match &statement.kind {
                StatementKind::Assign { value: expr, .. }
                | StatementKind::SetOption { value: expr, .. }
                | StatementKind::Expr(expr)
                | StatementKind::Return(expr) => expr.height,
                StatementKind::Import { .. } => 0,
            });
            heights.max().unwrap_or(0)
        }
    }
}

/// `object[index]`; `r["name"]` is `r.name`.
fn indexed(object: Expr, index: Expr, span: Span) -> Result<Expr> {
    let below = object.height.max(index.height);
    let object = Box::new(object);
    let kind = match index.kind {
        ExprKind::Text(name) => ExprKind::Member { object, name },
        _ => ExprKind::Index { object, index: Box::new(index) },
    };
    node(kind, span, below)
}

/// Where `${` stands, not escaped.
fn interpolation(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\\' => at += 1,
            b'$' if bytes.get(at + 1) == Some(&b'{') => return Some(at),
            _ => {}
        }
        at += 1;
    }
    None
}

fn unescape(raw: &str, span: Span) -> Result<String> {
    let mut out = String::with_capacity(raw.len());
    let mut bytes: Vec<u8> = Vec::new();
    let mut chars = raw.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('n') => out.push('\n'),
            Some('r') => out.push('\r'),
            Some('t') => out.push('\t'),
            Some(c @ ('\\' | '"' | '$')) => out.push(c),
            Some('x') => {
                let digits: String = chars.by_ref().take(2).collect();
                let byte = u8::from_str_radix(&digits, 16)
                    .map_err(|_| Error::syntax(span, "\\x wants two hexadecimal digits"))?;
                bytes.push(byte);
                // Bytes of one character may come in several escapes.
                if let Ok(text) = std::str::from_utf8(&bytes) {
                    out.push_str(text);
                    bytes.clear();
                } else if 4 <= bytes.len() {
                    return Err(Error::syntax(span, "these escapes are no UTF-8"));
                }
                continue;
            }
            _ => return Err(Error::syntax(span, "unknown escape in a string")),
        }
    }
    match bytes.is_empty() {
        true => Ok(out),
        false => Err(Error::syntax(span, "these escapes are no UTF-8")),
    }
}
