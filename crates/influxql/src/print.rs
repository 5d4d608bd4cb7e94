//! Trees back to text.

use crate::ast::{DataType, Expr, Field, Fill, Measurement, MeasurementName, Select, Source, Star};
use crate::pattern::Pattern;
use crate::time::{format_duration, format_time};
use crate::token::keyword;
use std::fmt::{Display, Formatter, Result};

/// A name, in quotes where it must be.
pub fn quote_ident(name: &str) -> String {
    let mut characters = name.chars();
    let is_plain = characters.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && characters.all(|c| c.is_ascii_alphanumeric() || c == '_')
        && keyword(name).is_none();
    match is_plain {
        true => name.to_string(),
        false => format!("\"{}\"", escape(name, '"')),
    }
}

fn escape(text: &str, quote: char) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' => out.push_str("\\n"),
            '\\' => out.push_str("\\\\"),
            c if c == quote => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}

impl Display for Pattern {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "/{}/", self.text.replace('/', "\\/"))
    }
}

impl Display for Expr {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Expr::Var { name, kind } => {
                f.write_str(&quote_ident(name))?;
                match kind {
                    DataType::Unknown => Ok(()),
                    kind => write!(f, "::{}", kind.as_str()),
                }
            }
            Expr::Call { name, args } => {
                write!(f, "{}(", quote_ident(name))?;
                for (idx, arg) in args.iter().enumerate() {
                    write!(f, "{}{arg}", if idx == 0 { "" } else { ", " })?;
                }
                f.write_str(")")
            }
            Expr::Binary { op, left, right } => write!(f, "{left} {} {right}", op.as_str()),
            Expr::Paren(inner) => write!(f, "({inner})"),
            Expr::Distinct(name) => write!(f, "DISTINCT {}", quote_ident(name)),
            Expr::Number(value) => write!(f, "{value:.3}"),
            Expr::Integer(value) => write!(f, "{value}"),
            Expr::Unsigned(value) => write!(f, "{value}"),
            Expr::Text(text) => write!(f, "'{}'", escape(text, '\'')),
            Expr::Boolean(value) => write!(f, "{value}"),
            Expr::Duration(nanos) => f.write_str(&format_duration(*nanos)),
            Expr::Time(nanos) => {
                let mut text = String::new();
                format_time(*nanos, None, &mut text);
                write!(f, "'{text}'")
            }
            Expr::Regex(regex) => write!(f, "{regex}"),
            Expr::Star(Star::All) => f.write_str("*"),
            Expr::Star(Star::Fields) => f.write_str("*::field"),
            Expr::Star(Star::Tags) => f.write_str("*::tag"),
        }
    }
}

impl Display for Field {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match &self.alias {
            Some(alias) => write!(f, "{} AS {}", self.expr, quote_ident(alias)),
            None => write!(f, "{}", self.expr),
        }
    }
}

impl Display for Measurement {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        if let Some(database) = &self.database {
            write!(f, "{}.", quote_ident(database))?;
        }
        match &self.policy {
            Some(policy) => write!(f, "{}.", quote_ident(policy))?,
            None if self.database.is_some() => f.write_str(".")?,
            None => {}
        }
        match &self.name {
            MeasurementName::Is(name) => f.write_str(&quote_ident(name)),
            MeasurementName::Matches(regex) => write!(f, "{regex}"),
        }
    }
}

impl Display for Source {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Source::Measurement(measurement) => write!(f, "{measurement}"),
            Source::Query(select) => write!(f, "({select})"),
        }
    }
}

fn list<T: Display>(f: &mut Formatter<'_>, before: &str, items: &[T]) -> Result {
    for (idx, item) in items.iter().enumerate() {
        write!(f, "{}{item}", if idx == 0 { before } else { ", " })?;
    }
    Ok(())
}

impl Display for Select {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        list(f, "SELECT ", &self.fields)?;
        if let Some(target) = &self.target {
            write!(f, " INTO {target}")?;
        }
        list(f, " FROM ", &self.sources)?;
        if let Some(condition) = &self.condition {
            write!(f, " WHERE {condition}")?;
        }
        list(f, " GROUP BY ", &self.dimensions)?;
        match self.fill {
            Fill::Null => {}
            Fill::None => f.write_str(" fill(none)")?,
            Fill::Previous => f.write_str(" fill(previous)")?,
            Fill::Linear => f.write_str(" fill(linear)")?,
            Fill::Number(value) => write!(f, " fill({})", Expr::Number(value))?,
            Fill::Integer(value) => write!(f, " fill({value})")?,
        }
        if self.is_descending {
            f.write_str(" ORDER BY time DESC")?;
        }
        for (word, value) in [
            ("LIMIT", self.page.limit),
            ("OFFSET", self.page.offset),
            ("SLIMIT", self.series_page.limit),
            ("SOFFSET", self.series_page.offset),
        ] {
            if value != 0 {
                write!(f, " {word} {value}")?;
            }
        }
        match &self.zone {
            Some(zone) => write!(f, " TZ('{}')", escape(zone, '\'')),
            None => Ok(()),
        }
    }
}
