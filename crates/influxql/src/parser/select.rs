//! SELECT and the clauses that other statements share with it.

use super::{Parser, Result};
use crate::ast::{Expr, Field, Fill, Measurement, MeasurementName, Page, Select, Source};
use crate::error::ParseError;
use crate::token::Token;

impl Parser<'_> {
    /// What follows the word SELECT.
    pub(super) fn select(&mut self) -> Result<Select> {
        self.nested(Self::select_clauses)
    }

    fn select_clauses(&mut self) -> Result<Select> {
        let fields = self.fields()?;
        let target = if self.accept("INTO") { Some(self.target()?) } else { None };
        self.expect("FROM")?;
        let sources = self.sources()?;
        let condition = self.condition()?;
        let dimensions = self.dimensions()?;
        let fill = self.fill()?;
        let is_descending = self.order()?;
        let page = self.page("LIMIT", "OFFSET")?;
        let series_page = self.page("SLIMIT", "SOFFSET")?;
        let zone = self.zone()?;
        Ok(Select {
            fields,
            target,
            sources,
            condition,
            dimensions,
            fill,
            is_descending,
            page,
            series_page,
            zone,
        })
    }

    fn fields(&mut self) -> Result<Vec<Field>> {
        let mut fields = Vec::new();
        loop {
            let at = self.peek().at;
            let expr = match self.regex()? {
                Some(regex) => Expr::Regex(regex),
                None => self.expression()?,
            };
            self.check_operators(at, &expr)?;
            let alias = if self.accept("AS") { Some(self.identifier()?) } else { None };
            // One without a letter is none.
            let alias = alias.filter(|name| !name.is_empty());
            fields.push(Field { expr, alias });
            if !self.accept_token(|token| token == Token::Comma) {
                return Ok(fields);
            }
        }
    }

    /// Comparisons are for WHERE.
    fn check_operators(&self, at: usize, expr: &Expr) -> Result<()> {
        let mut found = None;
        expr.walk(&mut |expr| {
            if let Expr::Binary { op, .. } = expr
                && op.precedence() <= 3
            {
                found = found.or(Some(*op));
            }
        });
        let Some(op) = found else { return Ok(()) };
        let message = format!("invalid operator {} in SELECT clause", op.as_str());
        let ParseError::At { line, character, .. } = self.error_at(at, "") else { return Ok(()) };
        Err(ParseError::plain(format!(
            "{message} at line {line}, char {character}; operator is intended for WHERE clause"
        )))
    }

    fn target(&mut self) -> Result<Measurement> {
        let names = self.segments()?;
        // `db.rp.:MEASUREMENT`
        if self.accept_token(|token| token == Token::Colon) {
            self.expect("MEASUREMENT")?;
            return Ok(measurement(names, MeasurementName::Is(String::new())));
        }
        named(names)
    }

    /// The list behind FROM.
    pub(super) fn sources(&mut self) -> Result<Vec<Source>> {
        let mut sources = Vec::new();
        loop {
            sources.push(self.source()?);
            if !self.accept_token(|token| token == Token::Comma) {
                return Ok(sources);
            }
        }
    }

    /// The same without subqueries.
    pub(super) fn measurements(&mut self) -> Result<Vec<Source>> {
        let mut sources = Vec::new();
        loop {
            if self.peek().token == Token::LeftParen {
                return Err(self.unexpected(&["identifier"]));
            }
            sources.push(self.source()?);
            if !self.accept_token(|token| token == Token::Comma) {
                return Ok(sources);
            }
        }
    }

    fn source(&mut self) -> Result<Source> {
        if let Some(regex) = self.regex()? {
            let name = MeasurementName::Matches(regex);
            return Ok(Source::Measurement(measurement(Vec::new(), name)));
        }
        if self.accept_token(|token| token == Token::LeftParen) {
            self.expect("SELECT")?;
            let select = self.select()?;
            self.expect_token(Token::RightParen)?;
            return Ok(Source::Query(Box::new(select)));
        }
        let names = self.segments()?;
        if let Some(regex) = self.regex_at_once()? {
            return Ok(Source::Measurement(measurement(names, regex)));
        }
        Ok(Source::Measurement(named(names)?))
    }

    /// A regular expression right behind a dot.
    fn regex_at_once(&mut self) -> Result<Option<MeasurementName>> {
        if self.lexer.peek() != Some('/') {
            return Ok(None);
        }
        Ok(self.regex()?.map(MeasurementName::Matches))
    }

    pub(super) fn condition(&mut self) -> Result<Option<Expr>> {
        if self.accept("WHERE") { self.expression().map(Some) } else { Ok(None) }
    }

    pub(super) fn dimensions(&mut self) -> Result<Vec<Expr>> {
        let mut dimensions = Vec::new();
        if !self.accept("GROUP") {
            return Ok(dimensions);
        }
        self.expect("BY")?;
        loop {
            dimensions.push(match self.regex()? {
                Some(regex) => Expr::Regex(regex),
                None => self.expression()?,
            });
            if !self.accept_token(|token| token == Token::Comma) {
                return Ok(dimensions);
            }
        }
    }

    fn fill(&mut self) -> Result<Fill> {
        let next = self.peek();
        if next.token != Token::Ident || !next.text.eq_ignore_ascii_case("fill") {
            return Ok(Fill::Null);
        }
        let Expr::Call { args, .. } = self.expression()? else {
            return Err(ParseError::plain("fill must be a function call"));
        };
        let [arg] = args.as_slice() else {
            return Err(ParseError::plain(
                "fill requires an argument, e.g.: 0, null, none, previous, linear",
            ));
        };
        match arg {
            Expr::Var { name, .. } => match name.to_ascii_lowercase().as_str() {
                "null" => Ok(Fill::Null),
                "none" => Ok(Fill::None),
                "previous" => Ok(Fill::Previous),
                "linear" => Ok(Fill::Linear),
                _ => Err(ParseError::plain("expected number argument in fill()".to_string())),
            },
            Expr::Integer(value) => Ok(Fill::Integer(*value)),
            Expr::Number(value) => Ok(Fill::Number(*value)),
            _ => Err(ParseError::plain("expected number argument in fill()")),
        }
    }

    /// Whether it is by descending time.
    pub(super) fn order(&mut self) -> Result<bool> {
        if !self.accept("ORDER") {
            return Ok(false);
        }
        self.expect("BY")?;
        let mut fields = 0;
        let mut is_time = true;
        let is_descending = loop {
            match self.peek().token {
                Token::Keyword("ASC" | "DESC") if fields == 0 => {}
                Token::Ident => is_time = self.identifier()? == "time",
                _ if fields == 0 => return Err(self.unexpected(&["identifier", "ASC", "DESC"])),
                _ => return Err(self.unexpected(&["identifier"])),
            }
            fields += 1;
            let is_descending = self.accept("DESC");
            if !is_descending {
                self.accept("ASC");
            }
            if !self.accept_token(|token| token == Token::Comma) {
                break is_descending;
            }
        };
        if fields != 1 || !is_time {
            return Err(ParseError::plain("only ORDER BY time supported at this time"));
        }
        Ok(is_descending)
    }

    pub(super) fn page(&mut self, limit: &'static str, offset: &'static str) -> Result<Page> {
        Ok(Page { limit: self.bound_of(limit)?, offset: self.bound_of(offset)? })
    }

    fn bound_of(&mut self, word: &'static str) -> Result<usize> {
        if !self.accept(word) {
            return Ok(0);
        }
        let lexeme = self.peek();
        let value = self.integer(i64::MIN)?;
        usize::try_from(value).map_err(|_| self.error_at(lexeme.at, format!("{word} must be >= 0")))
    }

    fn zone(&mut self) -> Result<Option<String>> {
        let next = self.peek();
        if next.token != Token::Ident || !next.text.eq_ignore_ascii_case("tz") {
            return Ok(None);
        }
        let Expr::Call { args, .. } = self.expression()? else {
            return Err(ParseError::plain("tz must be a function call"));
        };
        let name = match args.as_slice() {
            [Expr::Text(name)] => name,
            [_] => return Err(ParseError::plain("expected string argument in tz()")),
            _ => return Err(ParseError::plain("tz requires exactly one argument")),
        };
        if crate::time::zone(name).is_none() {
            return Err(ParseError::plain(format!("unable to find time zone {name}")));
        }
        Ok(Some(name.clone()))
    }
}

/// A measurement with what stands before it.
fn measurement(mut before: Vec<String>, name: MeasurementName) -> Measurement {
    let filled = |text: Option<String>| text.filter(|text| !text.is_empty());
    let policy = filled(before.pop());
    Measurement { database: filled(before.pop()), policy, name }
}

fn named(mut names: Vec<String>) -> Result<Measurement> {
    let name = names.pop().unwrap_or_default();
    Ok(measurement(names, MeasurementName::Is(name)))
}
