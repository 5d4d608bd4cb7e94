//! Templates: the written tree to the tree that is evaluated.
//!
//! A name stands for the template that was defined last before it, which itself sees only what
//! was defined before it: no template can reach itself. Arguments are expanded where they are
//! written, then put in place of the parameters. Both the depth and the size of the result are
//! bounded, the size while it grows, because ten templates that each use the one before twice
//! make a thousand copies.

use crate::NESTING_MAX;
use crate::ast::Grouping;
use crate::error::{ParseError, Span};
use crate::metricsql::ast::{
    Aggregate, Binary, Call, Duration, DurationLiteral, Expr, Join, Matching, Number, Rollup, Text,
    Union,
};
use crate::metricsql::fold;
use crate::metricsql::functions::{self, FunctionKind};
use crate::metricsql::number::seconds;
use crate::metricsql::parser::WRITTEN_NESTING_MAX;
use crate::metricsql::raw::{self, Definition, Length, Piece, Raw};
use crate::metricsql::templates::BUILT_IN;
use crate::patterns::PatternChecker;
use crate::quote::quote;
use std::collections::BTreeSet;

pub(super) type Result<T> = std::result::Result<T, ParseError>;
/// A node and the depth of the tree below it.
pub(super) type Node = (Expr, usize);
/// Where the chain of visible templates begins: the index of the last one defined.
pub(super) type Scope = Option<usize>;

/// What an expression may grow to: the sum of its strings' bytes and of [`NODE_SIZE`] for each
/// node, matcher and label.
pub(crate) const EXPANDED_SIZE_MAX: usize = 4 << 20;
const NODE_SIZE: usize = 16;
/// Templates that are defined at one place; each name is looked for among all of them.
const TEMPLATES_MAX: usize = 500;

/// Expands the templates of `raw`, which was parsed from `text`.
pub(crate) fn expand(text: &str, raw: &Raw) -> Result<Expr> {
    let mut expander = Expander {
        text,
        templates: Vec::new(),
        patterns: PatternChecker::default(),
        size: 0,
        depth: 0,
        call_span: None,
    };
    let scope = expander.define(None, &BUILT_IN, Origin::BuiltIn, Span::default())?;
    Ok(expander.expr(scope, raw)?.0)
}

/// Whose a template is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    BuiltIn,
    Text,
}

/// A name and what it stands for.
struct Template<'a> {
    name: &'a str,
    /// The template that was defined before it.
    before: Scope,
    value: Value<'a>,
}

/// What a template stands for.
pub(super) enum Value<'a> {
    Written {
        parameters: &'a [String],
        body: &'a Raw,
        origin: Origin,
    },
    /// An argument and its size.
    Argument {
        node: Node,
        size: usize,
    },
}

pub(super) struct Expander<'a> {
    text: &'a str,
    templates: Vec<Template<'a>>,
    /// Checks regular expressions; a template may use one many times.
    pub(super) patterns: PatternChecker,
    /// What has been made so far, see [`EXPANDED_SIZE_MAX`].
    size: usize,
    depth: usize,
    /// Set within a built-in template, whose text the user does not see: where it is called.
    call_span: Option<Span>,
}

impl<'a> Expander<'a> {
    /// Expands one node.
    pub(super) fn expr(&mut self, scope: Scope, raw: &'a Raw) -> Result<Node> {
        let span = self.span(raw.span());
        if WRITTEN_NESTING_MAX <= self.depth {
            return Err(self.too_deep(span));
        }
        self.depth += 1;
        self.charge(NODE_SIZE, span)?;
        let node = match raw {
            Raw::Number(value, _) => (Expr::Number(Number { value: *value, span }), 1),
            Raw::Duration(duration, _) => {
                (Expr::Duration(DurationLiteral { duration: *duration, span }), 1)
            }
            Raw::String(value, _) => {
                self.charge(value.len(), span)?;
                (Expr::String(Text { value: value.clone(), span }), 1)
            }
            Raw::Selector(selector) => self.selector(scope, selector)?,
            Raw::Rollup(rollup) => self.rollup(scope, rollup)?,
            Raw::Call(call) => self.call(scope, call)?,
            Raw::Binary(binary) => self.binary(scope, binary)?,
            Raw::Union(items, _) => {
                let (expressions, depth) = self.list(scope, items)?;
                self.node(Expr::Union(Union { expressions, span }), depth)?
            }
            Raw::With(with) => {
                let count = self.templates.len();
                let inner = self.define(scope, &with.definitions, Origin::Text, span)?;
                let node = self.expr(inner, &with.body)?;
                self.templates.truncate(count);
                node
            }
        };
        self.depth -= 1;
        Ok(node)
    }

    fn list(&mut self, scope: Scope, items: &'a [Raw]) -> Result<(Vec<Expr>, usize)> {
        let mut depth = 0;
        let mut expressions = Vec::with_capacity(items.len());
        for item in items {
            let (expr, item_depth) = self.expr(scope, item)?;
            expressions.push(expr);
            depth = depth.max(item_depth);
        }
        Ok((expressions, depth))
    }

    fn rollup(&mut self, scope: Scope, rollup: &'a raw::Rollup) -> Result<Node> {
        let (expr, mut depth) = self.expr(scope, &rollup.expr)?;
        let mut at = None;
        if let Some(raw) = &rollup.at {
            let (expr, at_depth) = self.expr(scope, raw)?;
            at = Some(expr);
            depth = depth.max(at_depth);
        }
        let node = Rollup {
            expr,
            window: self.length(scope, rollup.window.as_ref())?,
            step: self.length(scope, rollup.step.as_ref())?,
            has_colon: rollup.has_colon,
            offset: self.length(scope, rollup.offset.as_ref())?,
            at,
            span: self.span(rollup.span),
        };
        self.node(Expr::Rollup(Box::new(node)), depth)
    }

    fn length(&mut self, scope: Scope, length: Option<&'a Length>) -> Result<Option<Duration>> {
        let (name, span) = match length {
            None => return Ok(None),
            Some(Length::Fixed(duration, _)) => return Ok(Some(*duration)),
            Some(Length::Template(name, span)) => (name, self.span(*span)),
        };
        match self.named(scope, name, span)? {
            Expr::Duration(literal) => Ok(Some(literal.duration)),
            Expr::Number(number) if number.value.is_finite() => Ok(Some(seconds(number.value))),
            _ => Err(self.error(span, format!("template {} is no duration", quote(name)))),
        }
    }

    /// A call of a template, else of a function.
    fn call(&mut self, scope: Scope, call: &'a raw::Call) -> Result<Node> {
        let span = self.span(call.span);
        if let Some(idx) = self.find(scope, &call.name) {
            let mut arguments = Vec::with_capacity(call.arguments.len());
            for argument in &call.arguments {
                let before = self.size;
                let node = self.expr(scope, argument)?;
                arguments.push(Value::Argument { node, size: self.size - before });
            }
            return self.apply(idx, arguments, span);
        }
        let Some(function) = functions::find(&call.name) else {
            let message = format!("unknown function {}", quote(&call.name));
            return Err(self.error(self.span(call.name_span), message));
        };
        let (arguments, depth) = self.list(scope, &call.arguments)?;
        let expr = if function.kind == FunctionKind::Aggregate {
            let grouping = match &call.grouping {
                None => None,
                Some(Grouping::By(labels)) => Some(Grouping::By(self.labels(scope, labels, span)?)),
                Some(Grouping::Without(labels)) => {
                    Some(Grouping::Without(self.labels(scope, labels, span)?))
                }
            };
            Expr::Aggregate(Aggregate { function, arguments, grouping, limit: call.limit, span })
        } else {
            let keep_metric_names = call.keep_metric_names;
            Expr::Call(Call { function, arguments, keep_metric_names, span })
        };
        self.node(expr, depth)
    }

    fn binary(&mut self, scope: Scope, binary: &'a raw::Binary) -> Result<Node> {
        let operator = &binary.operator;
        let span = self.span(binary.left.span().to(binary.right.span()));
        let (left, left_depth) = self.expr(scope, &binary.left)?;
        let (right, right_depth) = self.expr(scope, &binary.right)?;
        let mut matching = None;
        if let Some(written) = &operator.matching {
            let labels = self.labels(scope, &written.labels, span)?;
            matching = Some(Matching { is_on: written.is_on, labels });
        }
        let mut join = None;
        if let Some(written) = &operator.join {
            let labels = self.labels(scope, &written.labels, span)?;
            let prefix = self.text(scope, &written.prefix, span)?;
            join = Some(Join { is_left: written.is_left, labels, prefix });
        }
        let expr = fold::binary(Binary {
            op: operator.op,
            left,
            right,
            returns_bool: operator.returns_bool,
            keep_metric_names: operator.keep_metric_names,
            matching,
            join,
            fill_left: operator.fill_left,
            fill_right: operator.fill_right,
            span,
        });
        match expr {
            Expr::Binary(_) => self.node(expr, left_depth.max(right_depth)),
            constant => Ok((constant, 1)),
        }
    }

    /// A string from its pieces.
    pub(super) fn text(&mut self, scope: Scope, pieces: &'a [Piece], at: Span) -> Result<String> {
        let mut text = String::new();
        for piece in pieces {
            match piece {
                Piece::Literal(literal) => {
                    self.charge(literal.len(), at)?;
                    text.push_str(literal);
                }
                Piece::Name(name, span) => {
                    let span = self.span(*span);
                    let Expr::String(string) = self.named(scope, name, span)? else {
                        let message = format!("template {} is no string", quote(name));
                        return Err(self.error(span, message));
                    };
                    text.push_str(&string.value);
                }
            }
        }
        Ok(text)
    }

    /// A list of labels, in which templates of names or of lists of names may stand.
    fn labels(&mut self, scope: Scope, labels: &[String], span: Span) -> Result<Vec<String>> {
        let mut seen = BTreeSet::new();
        let mut expanded = Vec::with_capacity(labels.len());
        for label in labels {
            let names = match self.find(scope, label) {
                None => vec![label.clone()],
                Some(idx) => self.label_template(idx).ok_or_else(|| {
                    let message = format!("template {} is no list of labels", quote(label));
                    self.error(span, message)
                })?,
            };
            for name in names {
                self.charge(NODE_SIZE + name.len(), span)?;
                if seen.insert(name.clone()) {
                    expanded.push(name);
                }
            }
        }
        Ok(expanded)
    }

    fn label_template(&self, idx: usize) -> Option<Vec<String>> {
        let template = &self.templates[idx];
        match &template.value {
            // Functions mean nothing here: the label has their name.
            Value::Written { parameters, .. } if !parameters.is_empty() => {
                Some(vec![template.name.to_string()])
            }
            Value::Written { body: Raw::Union(items, _), .. } => {
                items.iter().map(|item| item.bare_name().map(str::to_string)).collect()
            }
            Value::Written { body, .. } => body.bare_name().map(|name| vec![name.to_string()]),
            Value::Argument { node: (Expr::Union(union), _), .. } => {
                union.expressions.iter().map(|item| item.bare_name().map(str::to_string)).collect()
            }
            Value::Argument { node: (expr, _), .. } => {
                expr.bare_name().map(|name| vec![name.to_string()])
            }
        }
    }

    // ---- templates ----

    /// Adds templates to those of `scope`; they are to be dropped when the scope ends.
    fn define(
        &mut self,
        scope: Scope,
        definitions: &'a [Definition],
        origin: Origin,
        span: Span,
    ) -> Result<Scope> {
        let mut before = scope;
        for definition in definitions {
            let (parameters, body) = (definition.parameters.as_slice(), &definition.body);
            let value = Value::Written { parameters, body, origin };
            before = self.push(before, &definition.name, value, span)?;
        }
        Ok(before)
    }

    fn push(
        &mut self,
        before: Scope,
        name: &'a str,
        value: Value<'a>,
        span: Span,
    ) -> Result<Scope> {
        if TEMPLATES_MAX <= self.templates.len() {
            let message = format!("more than {TEMPLATES_MAX} templates at one place");
            return Err(self.error(span, message));
        }
        self.templates.push(Template { name, before, value });
        Ok(Some(self.templates.len() - 1))
    }

    /// The template of a name.
    pub(super) fn find(&self, scope: Scope, name: &str) -> Option<usize> {
        let mut next = scope;
        while let Some(idx) = next {
            let template = &self.templates[idx];
            if template.name == name {
                return Some(idx);
            }
            next = template.before;
        }
        None
    }

    /// Whether a template takes arguments.
    pub(super) fn is_function(&self, idx: usize) -> bool {
        match &self.templates[idx].value {
            Value::Written { parameters, .. } => !parameters.is_empty(),
            Value::Argument { .. } => false,
        }
    }

    /// What the template of that name, which must be there, stands for.
    pub(super) fn named(&mut self, scope: Scope, name: &str, span: Span) -> Result<Expr> {
        let Some(idx) = self.find(scope, name) else {
            return Err(self.error(span, format!("there is no template {}", quote(name))));
        };
        Ok(self.apply(idx, Vec::new(), span)?.0)
    }

    /// What a template makes of its arguments.
    pub(super) fn apply(
        &mut self,
        idx: usize,
        arguments: Vec<Value<'a>>,
        span: Span,
    ) -> Result<Node> {
        let template = &self.templates[idx];
        let wanted = match &template.value {
            Value::Written { parameters, .. } => parameters.len(),
            Value::Argument { .. } => 0,
        };
        if wanted != arguments.len() {
            let (name, found) = (quote(template.name), arguments.len());
            let message = format!("template {name} takes {wanted} argument(s), got {found}");
            return Err(self.error(span, message));
        }
        let (parameters, body, origin) = match &template.value {
            Value::Written { parameters, body, origin } => (*parameters, *body, *origin),
            Value::Argument { node, size } => {
                let size = *size;
                let node = node.clone();
                self.charge(size, span)?;
                return Ok(node);
            }
        };
        let count = self.templates.len();
        let mut scope = template.before;
        for (name, value) in parameters.iter().zip(arguments) {
            scope = self.push(scope, name, value, span)?;
        }
        let outer_call_span = self.call_span;
        if origin == Origin::BuiltIn {
            self.call_span = Some(span);
        }
        let node = self.expr(scope, body)?;
        self.call_span = outer_call_span;
        self.templates.truncate(count);
        Ok(node)
    }

    // ---- bounds ----

    /// Counts what is about to be made.
    pub(super) fn charge(&mut self, size: usize, span: Span) -> Result<()> {
        self.size = self.size.saturating_add(size);
        if EXPANDED_SIZE_MAX < self.size {
            let message = format!(
                "expression with its templates expanded is larger than {EXPANDED_SIZE_MAX} bytes"
            );
            return Err(self.error(span, message));
        }
        Ok(())
    }

    /// Counts a matcher or a label of `size` bytes.
    pub(super) fn charge_part(&mut self, size: usize, span: Span) -> Result<()> {
        self.charge(NODE_SIZE.saturating_add(size), span)
    }

    /// Puts a node on top of a tree of `depth`.
    fn node(&self, expr: Expr, depth: usize) -> Result<Node> {
        if NESTING_MAX <= depth {
            return Err(self.too_deep(expr.span()));
        }
        Ok((expr, depth + 1))
    }

    fn too_deep(&self, span: Span) -> ParseError {
        let message = format!(
            "expression with its templates expanded is nested deeper than {NESTING_MAX} levels"
        );
        self.error(span, message)
    }

    /// Where a node stands in the text that the user sees.
    pub(super) fn span(&self, written: Span) -> Span {
        self.call_span.unwrap_or(written)
    }

    pub(super) fn error(&self, span: Span, message: impl Into<String>) -> ParseError {
        ParseError::new(self.text, span, message)
    }
}
