//! The written tree to lines of text: templates, numbers and strings stay as they were written.
//!
//! A node that fits is one line. Otherwise it is broken: an operation before and behind its
//! operator, a call between its arguments, a selector between its sets, templates one by one.

use crate::ast::Grouping;
use crate::error::Span;
use crate::metricsql::lexer::{escape_name, is_plain_name};
use crate::metricsql::print::{is_reserved, write_fills, write_labels, write_name};
use crate::metricsql::raw::{
    Binary, Call, Definition, Filter, Length, Operator, Piece, Raw, Rollup, Selector, With,
};
use crate::quote::quote;
use std::fmt::{Error, Result, Write};

/// Bytes of a line without its indent.
const LINE_SIZE_MAX: usize = 80;
const INDENT: &str = "  ";
/// Indents of a line; without a bound a deep tree would be mostly spaces.
const INDENTS_MAX: usize = 40;

/// Prints `raw`, which was parsed from `text`.
pub(crate) fn print(text: &str, raw: &Raw) -> String {
    let mut printer = Printer { text, out: String::new() };
    printer.block(raw, 0, Parens::No);
    printer.out
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Parens {
    Yes,
    No,
}

impl Parens {
    fn if_needed(is_needed: bool) -> Parens {
        if is_needed { Parens::Yes } else { Parens::No }
    }
}

/// A line that refuses to become too long, so that a long node is given up early.
struct Line(String);

impl Write for Line {
    fn write_str(&mut self, text: &str) -> Result {
        self.0.push_str(text);
        if self.0.len() <= LINE_SIZE_MAX { Ok(()) } else { Err(Error) }
    }
}

struct Printer<'a> {
    text: &'a str,
    out: String,
}

impl Printer<'_> {
    // ---- blocks ----

    /// Prints a node in as few lines as it needs.
    fn block(&mut self, raw: &Raw, indent: usize, parens: Parens) {
        let mut line = Line(String::new());
        if self.operand(&mut line, raw, parens).is_ok() {
            return self.line(indent, &line.0);
        }
        if parens == Parens::Yes {
            self.line(indent, "(\n");
            self.broken(raw, indent + 1);
            self.out.push('\n');
            return self.line(indent, ")");
        }
        self.broken(raw, indent);
    }

    fn broken(&mut self, raw: &Raw, indent: usize) {
        match raw {
            Raw::With(with) => self.broken_with(with, indent),
            Raw::Binary(binary) if binary.operator.keep_metric_names => {
                self.line(indent, "(\n");
                self.broken_binary(binary, indent + 1);
                self.out.push('\n');
                self.line(indent, ") keep_metric_names");
            }
            Raw::Binary(binary) => self.broken_binary(binary, indent),
            Raw::Rollup(rollup) => {
                self.block(&rollup.expr, indent, rollup_parens(&rollup.expr));
                let mut suffix = String::new();
                let _ = self.suffix(&mut suffix, rollup);
                self.out.push_str(&suffix);
            }
            Raw::Call(call) => {
                let name = self.source(call.name_span).to_string();
                self.broken_list(&name, &call.arguments, indent);
                let mut modifiers = String::new();
                let _ = call_modifiers(&mut modifiers, call);
                self.out.push_str(&modifiers);
            }
            Raw::Union(items, _) => self.broken_list("", items, indent),
            Raw::Selector(selector) if selector.sets.iter().any(|set| !set.is_empty()) => {
                self.broken_selector(selector, indent);
            }
            Raw::Selector(_) | Raw::Number(..) | Raw::String(..) | Raw::Duration(..) => {
                let mut line = String::new();
                let _ = self.one_line(&mut line, raw);
                self.line(indent, &line);
            }
        }
    }

    fn broken_with(&mut self, with: &With, indent: usize) {
        self.line(indent, "WITH (\n");
        for definition in &with.definitions {
            let mut line = Line(String::new());
            if self.definition(&mut line, definition).is_ok() {
                self.line(indent + 1, &line.0);
            } else {
                let mut head = String::new();
                let _ = definition_head(&mut head, definition);
                self.line(indent + 1, &head);
                self.out.push_str("(\n");
                self.block(&definition.body, indent + 2, Parens::No);
                self.out.push('\n');
                self.line(indent + 1, ")");
            }
            self.out.push_str(",\n");
        }
        self.line(indent, ")\n");
        self.block(&with.body, indent, Parens::No);
    }

    fn broken_binary(&mut self, binary: &Binary, indent: usize) {
        if self.is_negation(binary) {
            self.line(indent, "0");
        } else {
            self.block(&binary.left, indent, operand_parens(&binary.left));
        }
        self.out.push('\n');
        let mut operator = String::new();
        let _ = write_operator(&mut operator, &binary.operator);
        self.line(indent + 1, &operator);
        self.out.push('\n');
        self.block(&binary.right, indent, right_parens(binary));
    }

    fn broken_list(&mut self, name: &str, items: &[Raw], indent: usize) {
        self.line(indent, name);
        self.out.push_str("(\n");
        for (idx, item) in items.iter().enumerate() {
            self.block(item, indent + 1, Parens::No);
            self.out.push_str(if idx + 1 < items.len() { ",\n" } else { "\n" });
        }
        self.line(indent, ")");
    }

    fn broken_selector(&mut self, selector: &Selector, indent: usize) {
        let quoted = quoted_name(selector);
        let name = selector.name.as_ref().filter(|_| quoted.is_none());
        self.line(indent, name.map_or("", |(name, _)| name));
        self.out.push_str("{\n");
        for (idx, set) in selector.sets.iter().enumerate() {
            if 0 < idx {
                self.line(indent + 2, "or\n");
            }
            let mut line = String::new();
            let _ = write_set(&mut line, quoted.as_deref(), set);
            self.line(indent + 1, &line);
            self.out.push('\n');
        }
        self.line(indent, "}");
    }

    fn line(&mut self, indent: usize, text: &str) {
        self.out.extend(std::iter::repeat_n(INDENT, indent.min(INDENTS_MAX)));
        self.out.push_str(text);
    }

    // ---- single lines ----

    fn operand(&self, f: &mut dyn Write, raw: &Raw, parens: Parens) -> Result {
        if parens == Parens::No {
            return self.one_line(f, raw);
        }
        f.write_char('(')?;
        self.one_line(f, raw)?;
        f.write_char(')')
    }

    fn one_line(&self, f: &mut dyn Write, raw: &Raw) -> Result {
        match raw {
            Raw::Number(_, span) | Raw::String(_, span) | Raw::Duration(_, span) => {
                f.write_str(self.source(*span))
            }
            Raw::Selector(selector) => write_selector(f, selector),
            Raw::Rollup(rollup) => {
                self.operand(f, &rollup.expr, rollup_parens(&rollup.expr))?;
                self.suffix(f, rollup)
            }
            Raw::Call(call) => {
                f.write_str(self.source(call.name_span))?;
                self.list(f, &call.arguments)?;
                call_modifiers(f, call)
            }
            Raw::Binary(binary) => self.binary(f, binary),
            Raw::Union(items, _) => self.list(f, items),
            Raw::With(with) => {
                f.write_str("WITH (")?;
                for (idx, definition) in with.definitions.iter().enumerate() {
                    f.write_str(if idx == 0 { "" } else { ", " })?;
                    self.definition(f, definition)?;
                }
                f.write_str(") ")?;
                self.one_line(f, &with.body)
            }
        }
    }

    fn binary(&self, f: &mut dyn Write, binary: &Binary) -> Result {
        let keeps = binary.operator.keep_metric_names;
        f.write_str(if keeps { "(" } else { "" })?;
        if self.is_negation(binary) {
            f.write_char('-')?;
        } else {
            self.operand(f, &binary.left, operand_parens(&binary.left))?;
            f.write_char(' ')?;
            write_operator(f, &binary.operator)?;
            f.write_char(' ')?;
        }
        self.operand(f, &binary.right, right_parens(binary))?;
        f.write_str(if keeps { ") keep_metric_names" } else { "" })
    }

    fn list(&self, f: &mut dyn Write, items: &[Raw]) -> Result {
        f.write_char('(')?;
        for (idx, item) in items.iter().enumerate() {
            f.write_str(if idx == 0 { "" } else { ", " })?;
            self.one_line(f, item)?;
        }
        f.write_char(')')
    }

    fn definition(&self, f: &mut dyn Write, definition: &Definition) -> Result {
        definition_head(f, definition)?;
        self.one_line(f, &definition.body)
    }

    fn suffix(&self, f: &mut dyn Write, rollup: &Rollup) -> Result {
        if rollup.window.is_some() || rollup.step.is_some() || rollup.has_colon {
            f.write_char('[')?;
            self.length(f, rollup.window.as_ref())?;
            f.write_str(if rollup.step.is_some() || rollup.has_colon { ":" } else { "" })?;
            self.length(f, rollup.step.as_ref())?;
            f.write_char(']')?;
        }
        if rollup.offset.is_some() {
            f.write_str(" offset ")?;
            self.length(f, rollup.offset.as_ref())?;
        }
        if let Some(at) = &rollup.at {
            f.write_str(" @ ")?;
            let needs = matches!(at, Raw::Binary(_) | Raw::Rollup(_) | Raw::With(_));
            self.operand(f, at, Parens::if_needed(needs))?;
        }
        Ok(())
    }

    fn length(&self, f: &mut dyn Write, length: Option<&Length>) -> Result {
        match length {
            None => Ok(()),
            Some(Length::Fixed(_, span)) => f.write_str(self.source(*span)),
            Some(Length::Template(name, _)) => f.write_str(&escape_name(name)),
        }
    }

    /// Whether an operation was written as a sign; its zero stands where the sign does.
    fn is_negation(&self, binary: &Binary) -> bool {
        matches!(&binary.left, Raw::Number(_, span) if self.source(*span) == "-")
    }

    fn source(&self, span: Span) -> &str {
        &self.text[span.start as usize..span.end as usize]
    }
}

fn write_operator(f: &mut dyn Write, operator: &Operator) -> Result {
    f.write_str(operator.op.as_str())?;
    if operator.returns_bool {
        f.write_str(" bool")?;
    }
    if let Some(matching) = &operator.matching {
        write_labels(f, if matching.is_on { " on" } else { " ignoring" }, &matching.labels)?;
    }
    if let Some(join) = &operator.join {
        let word = if join.is_left { " group_left" } else { " group_right" };
        if join.labels.len() == 1 && join.labels[0] == "*" {
            write!(f, "{word}(*)")?;
        } else {
            write_labels(f, word, &join.labels)?;
        }
        if !join.prefix.is_empty() {
            f.write_str(" prefix ")?;
            write_pieces(f, &join.prefix)?;
        }
    }
    write_fills(f, operator.fill_left, operator.fill_right)
}

fn call_modifiers(f: &mut dyn Write, call: &Call) -> Result {
    match &call.grouping {
        Some(Grouping::By(labels)) => write_labels(f, " by", labels)?,
        Some(Grouping::Without(labels)) => write_labels(f, " without", labels)?,
        None => {}
    }
    if 0 < call.limit {
        write!(f, " limit {}", call.limit)?;
    }
    f.write_str(if call.keep_metric_names { " keep_metric_names" } else { "" })
}

fn definition_head(f: &mut dyn Write, definition: &Definition) -> Result {
    f.write_str(&escape_name(&definition.name))?;
    if !definition.parameters.is_empty() {
        write_labels(f, "", &definition.parameters)?;
    }
    f.write_str(" = ")
}

fn write_selector(f: &mut dyn Write, selector: &Selector) -> Result {
    let quoted = quoted_name(selector);
    if let (Some((name, _)), None) = (&selector.name, &quoted) {
        f.write_str(name)?;
        if selector.sets.iter().all(Vec::is_empty) {
            return Ok(());
        }
    }
    f.write_char('{')?;
    for (idx, set) in selector.sets.iter().enumerate() {
        f.write_str(if idx == 0 { "" } else { " or " })?;
        write_set(f, quoted.as_deref(), set)?;
    }
    f.write_char('}')
}

/// The name before the braces, if it has to stand in quotes between them.
fn quoted_name(selector: &Selector) -> Option<String> {
    let (name, _) = selector.name.as_ref()?;
    (!is_plain_name(name) || is_reserved(name)).then(|| quote(name))
}

fn write_set(f: &mut dyn Write, name: Option<&str>, set: &[Filter]) -> Result {
    f.write_str(name.unwrap_or_default())?;
    for (idx, filter) in set.iter().enumerate() {
        f.write_str(if 0 < idx || name.is_some() { "," } else { "" })?;
        match filter {
            Filter::Metric(name, _) => f.write_str(&quote(name))?,
            Filter::Template(name, _) => f.write_str(&escape_name(name))?,
            Filter::Matcher { label, op, value, .. } => {
                write_name(f, label)?;
                write!(f, "{op}")?;
                write_pieces(f, value)?;
            }
        }
    }
    Ok(())
}

fn write_pieces(f: &mut dyn Write, pieces: &[Piece]) -> Result {
    for (idx, piece) in pieces.iter().enumerate() {
        f.write_str(if idx == 0 { "" } else { " + " })?;
        match piece {
            Piece::Literal(text) => f.write_str(&quote(text))?,
            Piece::Name(name, _) => f.write_str(&escape_name(name))?,
        }
    }
    Ok(())
}

fn operand_parens(raw: &Raw) -> Parens {
    Parens::if_needed(match raw {
        // One that keeps names has its own.
        Raw::Binary(binary) => !binary.operator.keep_metric_names,
        Raw::Rollup(rollup) => rollup.offset.is_some() || rollup.at.is_some(),
        Raw::With(_) => true,
        _ => false,
    })
}

fn right_parens(binary: &Binary) -> Parens {
    match &binary.right {
        // A `keep_metric_names` behind a call is the call's.
        Raw::Call(call) => {
            Parens::if_needed(call.keep_metric_names || binary.operator.keep_metric_names)
        }
        right => operand_parens(right),
    }
}

fn rollup_parens(raw: &Raw) -> Parens {
    Parens::if_needed(match raw {
        Raw::Binary(_) | Raw::Rollup(_) | Raw::With(_) => true,
        Raw::Call(call) => call.grouping.is_some() || 0 < call.limit,
        _ => false,
    })
}
