//! Expressions.

use super::{OPERATORS_MAX, Parser, Result};
use crate::ast::{DataType, Expr, Star};
use crate::error::ParseError;
use crate::lexer::Lexeme;
use crate::pattern::Allowance;
use crate::time::parse_duration;
use crate::token::{Op, Token};

impl Parser<'_> {
    /// An expression, as far as it goes.
    pub(super) fn expression(&mut self) -> Result<Expr> {
        self.nested(|parser| parser.binary(0))
    }

    /// What binds tighter than `loosest`.
    fn binary(&mut self, loosest: u8) -> Result<Expr> {
        let mut left = self.unary()?;
        loop {
            let Token::Op(op) = self.peek().token else { return Ok(left) };
            if op.precedence() <= loosest {
                return Ok(left);
            }
            self.next();
            self.count_operator()?;
            let right = match op.is_regex() {
                true => match self.regex()? {
                    Some(regex) => Expr::Regex(regex),
                    None => self.bound_regex()?,
                },
                false => self.nested(|parser| parser.binary(op.precedence()))?,
            };
            left = Expr::Binary { op, left: Box::new(left), right: Box::new(right) };
        }
    }

    fn count_operator(&mut self) -> Result<()> {
        self.operators += 1;
        if OPERATORS_MAX < self.operators {
            let message = format!("more than {OPERATORS_MAX} operators and arguments");
            return Err(ParseError::plain(message));
        }
        Ok(())
    }

    fn bound_regex(&mut self) -> Result<Expr> {
        let lexeme = self.peek();
        let name = lexeme.text.trim_start_matches('$');
        match (lexeme.token, self.parameters.get(name)) {
            (Token::BoundParameter, Some(Expr::Regex(regex))) => {
                let regex = Expr::Regex(regex.clone());
                self.next();
                Ok(regex)
            }
            _ => Err(self.unexpected(&["regex"])),
        }
    }

    fn unary(&mut self) -> Result<Expr> {
        let lexeme = self.peek();
        match lexeme.token {
            Token::LeftParen => {
                self.next();
                let inner = self.expression()?;
                self.expect_token(Token::RightParen)?;
                Ok(Expr::Paren(Box::new(inner)))
            }
            Token::Ident => self.name(),
            Token::Keyword("DISTINCT") => {
                self.next();
                self.distinct()
            }
            Token::Op(Op::Mul) => {
                self.next();
                self.star()
            }
            Token::Op(op @ (Op::Add | Op::Sub)) => {
                self.next();
                self.signed(op)
            }
            Token::BoundParameter => {
                self.next();
                self.parameter(&lexeme.text)
            }
            _ => self.literal(&lexeme),
        }
    }

    fn literal(&mut self, lexeme: &Lexeme<'_>) -> Result<Expr> {
        let text = &*lexeme.text;
        let expr = match lexeme.token {
            Token::String => Expr::Text(text.to_string()),
            Token::True => Expr::Boolean(true),
            Token::False => Expr::Boolean(false),
            Token::Number => {
                let parsed = text.parse::<f64>();
                Expr::Number(
                    parsed.map_err(|_| self.error_at(lexeme.at, "unable to parse number"))?,
                )
            }
            Token::Integer => match (text.parse::<i64>(), text.parse::<u64>()) {
                (Ok(value), _) => Expr::Integer(value),
                (_, Ok(value)) => Expr::Unsigned(value),
                _ => return Err(self.error_at(lexeme.at, "unable to parse integer")),
            },
            Token::Duration => {
                let parsed = parse_duration(text);
                Expr::Duration(parsed.ok_or_else(|| ParseError::plain("invalid duration"))?)
            }
            _ => return Err(self.unexpected(&["identifier", "string", "number", "bool"])),
        };
        self.next();
        Ok(expr)
    }

    /// A value that was sent beside the text.
    fn parameter(&mut self, text: &str) -> Result<Expr> {
        let name = text.trim_start_matches('$');
        if name.is_empty() {
            return Err(ParseError::plain("empty bound parameter"));
        }
        let value = self.parameters.get(name);
        value.cloned().ok_or_else(|| ParseError::plain(format!("missing parameter: {name}")))
    }

    /// A function, if a parenthesis follows at once; else a variable.
    fn name(&mut self) -> Result<Expr> {
        let back = self.lexer.at;
        let name = self.next().text;
        if self.lexer.peek() == Some('(') {
            self.lexer.next();
            return self.call(name.to_ascii_lowercase());
        }
        self.lexer.at = back;
        self.variable()
    }

    fn call(&mut self, name: String) -> Result<Expr> {
        let mut args = Vec::new();
        if self.accept_token(|token| token == Token::RightParen) {
            return Ok(Expr::Call { name, args });
        }
        loop {
            self.count_operator()?;
            args.push(match self.regex()? {
                Some(regex) => Expr::Regex(regex),
                None => self.expression()?,
            });
            if !self.accept_token(|token| token == Token::Comma) {
                break;
            }
        }
        self.expect_token(Token::RightParen)?;
        Ok(Expr::Call { name, args })
    }

    fn variable(&mut self) -> Result<Expr> {
        let name = self.segments()?.join(".");
        let back = self.lexer.at;
        if self.lexer.next().token != Token::DoubleColon {
            self.lexer.at = back;
            return Ok(Expr::Var { name, kind: DataType::Unknown });
        }
        let lexeme = self.peek();
        let kind = match (lexeme.token, lexeme.text.to_ascii_lowercase().as_str()) {
            (Token::Ident, "float") => DataType::Float,
            (Token::Ident, "integer") => DataType::Integer,
            (Token::Ident, "unsigned") => DataType::Unsigned,
            (Token::Ident, "string") => DataType::String,
            (Token::Ident, "boolean") => DataType::Boolean,
            (Token::Keyword("FIELD"), _) => DataType::AnyField,
            (Token::Keyword("TAG"), _) => DataType::Tag,
            _ => {
                let kinds = &["float", "integer", "unsigned", "string", "boolean", "field", "tag"];
                return Err(self.unexpected(kinds));
            }
        };
        self.next();
        Ok(Expr::Var { name, kind })
    }

    /// Names with dots between them; behind the last dot may stand a regular expression, which is
    /// left to the caller, and two dots have an empty name between them.
    pub(super) fn segments(&mut self) -> Result<Vec<String>> {
        let mut names = vec![self.identifier()?];
        loop {
            let back = self.lexer.at;
            if self.lexer.next().token != Token::Dot {
                self.lexer.at = back;
                break;
            }
            match self.lexer.peek() {
                Some('/' | ':') => break,
                Some('.') => names.push(String::new()),
                _ => names.push(self.identifier()?),
            }
        }
        if 3 < names.len() {
            let last = names.pop().unwrap_or_default();
            let quoted: Vec<String> = names.iter().map(|name| format!("\"{name}\".")).collect();
            let last = crate::print::quote_ident(&last);
            let message =
                format!("too many segments in {}{last} at line 1, char 1", quoted.concat());
            return Err(ParseError::plain(message));
        }
        Ok(names)
    }

    fn distinct(&mut self) -> Result<Expr> {
        let next = self.lexer.next();
        match next.token {
            Token::LeftParen => self.call("distinct".to_string()),
            Token::Space => Ok(Expr::Distinct(self.identifier()?)),
            _ => Err(self.unexpected_at(&next, &["(", "identifier"])),
        }
    }

    fn star(&mut self) -> Result<Expr> {
        if !self.accept_token(|token| token == Token::DoubleColon) {
            return Ok(Expr::Star(Star::All));
        }
        let star = match self.peek().token {
            Token::Keyword("FIELD") => Star::Fields,
            Token::Keyword("TAG") => Star::Tags,
            _ => return Err(self.unexpected(&["field", "tag"])),
        };
        self.next();
        Ok(Expr::Star(star))
    }

    fn signed(&mut self, op: Op) -> Result<Expr> {
        let is_negative = op == Op::Sub;
        match self.peek().token {
            Token::Number | Token::Integer | Token::Duration | Token::LeftParen | Token::Ident => {}
            _ => return Err(self.unexpected(&["identifier", "number", "duration", "("])),
        }
        let sign = if is_negative { -1 } else { 1 };
        Ok(match self.nested(Self::unary)? {
            Expr::Number(value) => Expr::Number(value * sign as f64),
            Expr::Integer(value) => Expr::Integer(value.wrapping_mul(sign)),
            // The least of all integers.
            Expr::Unsigned(value) if is_negative && value == 1 << 63 => Expr::Integer(i64::MIN),
            Expr::Unsigned(_) if is_negative => {
                return Err(ParseError::plain("constant overflows signed integer"));
            }
            Expr::Unsigned(value) => Expr::Unsigned(value),
            Expr::Duration(value) => Expr::Duration(value.wrapping_mul(sign)),
            other => {
                let (left, right) = (Box::new(Expr::Integer(sign)), Box::new(other));
                Expr::Binary { op: Op::Mul, left, right }
            }
        })
    }
}

/// Parameters out of a JSON object.
///
/// # Errors
/// What is wrong with it.
pub fn parameters(text: &str) -> std::result::Result<super::Parameters, String> {
    use serde_json::Value;
    let parsed: Value = serde_json::from_str(text)
        .map_err(|error| format!("error parsing query parameters: {error}"))?;
    let object = match parsed {
        Value::Object(object) => object,
        Value::Null => serde_json::Map::new(),
        _ => return Err("error parsing query parameters: an object is wanted".to_string()),
    };
    let mut out = super::Parameters::new();
    let mut regexes = Allowance::default();
    for (name, value) in object {
        let expr = match &value {
            Value::Bool(value) => Expr::Boolean(*value),
            Value::String(text) => Expr::Text(text.clone()),
            Value::Number(number) => number_of(number),
            Value::Object(typed) => typed_parameter(typed, &mut regexes)?,
            _ => return Err(format!("unable to bind parameter with type of {value}")),
        };
        out.insert(name, expr);
    }
    Ok(out)
}

fn number_of(number: &serde_json::Number) -> Expr {
    match number.as_i64() {
        Some(value) => Expr::Integer(value),
        None => Expr::Number(number.as_f64().unwrap_or(f64::NAN)),
    }
}

/// `{"regex": "a.*"}` and its kin.
fn typed_parameter(
    typed: &serde_json::Map<String, serde_json::Value>,
    regexes: &mut Allowance,
) -> std::result::Result<Expr, String> {
    let mut entries = typed.iter();
    let (Some((kind, value)), None) = (entries.next(), entries.next()) else {
        return Err("bound object parameter value must have exactly one entry".to_string());
    };
    let text = value.as_str().unwrap_or_default();
    match (kind.to_ascii_lowercase().as_str(), value) {
        ("ident" | "identifier", _) if value.is_string() => Ok(Expr::var(text)),
        ("regex", _) if value.is_string() => Ok(Expr::Regex(regexes.pattern(text)?)),
        ("string", _) if value.is_string() => Ok(Expr::Text(text.to_string())),
        ("float" | "number", serde_json::Value::Number(number)) => {
            Ok(Expr::Number(number.as_f64().unwrap_or(f64::NAN)))
        }
        ("int" | "integer", serde_json::Value::Number(number)) => Ok(number_of(number)),
        ("duration", _) if value.is_string() => {
            let parsed = parse_duration(text);
            parsed.map(Expr::Duration).ok_or_else(|| format!("invalid duration: {text}"))
        }
        ("duration", serde_json::Value::Number(number)) => {
            Ok(Expr::Duration(number.as_i64().unwrap_or_default()))
        }
        _ => Err(format!("unknown bind object type: {kind}")),
    }
}
