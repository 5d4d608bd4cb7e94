//! The condition of a `filter`, taken apart, so that most of it can be asked of the index.
//!
//! Truth has three values: a term that is null, or about what is not known yet, is neither true nor
//! false, and what follows from it follows as in SQL.

use crate::ast::{Body, Expr, ExprKind, Logic};
use crate::builtins::condition;
use crate::error::{Error, Result};
use crate::eval::Evaluation;
use crate::value::{Closure, Names, Value, compare};
use model::{MatchOp, Matcher};
use std::sync::Arc;

/// A condition on a row.
#[derive(Clone, Debug)]
pub(crate) enum Predicate {
    Constant(bool),
    And(Vec<Predicate>),
    Or(Vec<Predicate>),
    Not(Box<Predicate>),
    Compare {
        column: Arc<str>,
        op: &'static str,
        value: Value,
    },
    Match {
        column: Arc<str>,
        regex: Arc<influxql::Pattern>,
        is_wanted: bool,
    },
    Exists(Arc<str>),
    /// Anything else: a body that is evaluated with the row under a name.
    Other {
        body: Arc<Expr>,
        row: Arc<str>,
        names: Names,
    },
}

/// What is known of a row's column.
pub(crate) enum Known {
    Value(Value),
    /// A tag that a series does not have: the index compares it as the empty string.
    NoTag,
    Unknown,
}

impl Predicate {
    /// Takes the function of a `filter` apart.
    ///
    /// # Errors
    /// What is wrong with its constants.
    pub(crate) fn of(evaluation: &Evaluation<'_>, closure: &Closure) -> Result<Predicate> {
        let names = &closure.names;
        match &closure.function.body {
            Body::Expr(body) => Compiler { evaluation, row: "r".into(), names }.compile(body),
            Body::Block(_) => Ok(Predicate::Constant(true)),
        }
    }

    /// Whether it holds; nothing where that depends on what is unknown or null.
    pub(crate) fn test(&self, look: &dyn Fn(&str) -> Known) -> Option<bool> {
        match self {
            Predicate::Constant(value) => Some(*value),
            Predicate::And(terms) => all(terms.iter().map(|term| term.test(look)), Logic::And),
            Predicate::Or(terms) => all(terms.iter().map(|term| term.test(look)), Logic::Or),
            Predicate::Not(term) => term.test(look).map(|value| !value),
            Predicate::Compare { column, op, value } => {
                let left = match look(column) {
                    Known::Value(left) => left,
                    Known::NoTag => Value::text(""),
                    Known::Unknown => return None,
                };
                match compare(op, &left, value) {
                    Some(Value::Boolean(is_true)) => Some(is_true),
                    _ => None,
                }
            }
            Predicate::Match { column, regex, is_wanted } => match look(column) {
                Known::Value(Value::Text(text)) => {
                    Some(regex.regex().is_match(&text) == *is_wanted)
                }
                Known::NoTag => Some(regex.regex().is_match("") == *is_wanted),
                Known::Value(_) | Known::Unknown => None,
            },
            Predicate::Exists(column) => match look(column) {
                Known::Value(value) => Some(!value.is_null()),
                Known::NoTag => Some(false),
                Known::Unknown => None,
            },
            Predicate::Other { .. } => None,
        }
    }

    /// Conditions that it is made of.
    pub(crate) fn nodes(&self) -> usize {
        match self {
            Predicate::And(terms) | Predicate::Or(terms) => {
                1 + terms.iter().map(Predicate::nodes).sum::<usize>()
            }
            Predicate::Not(term) => 1 + term.nodes(),
            _ => 1,
        }
    }

    /// Whether it needs more than columns and constants, or may take long.
    pub(crate) fn has_other(&self) -> bool {
        match self {
            Predicate::And(terms) | Predicate::Or(terms) => terms.iter().any(Predicate::has_other),
            Predicate::Not(term) => term.has_other(),
            Predicate::Other { .. } | Predicate::Match { .. } => true,
            _ => false,
        }
    }

    /// How many values are within each other in the names that it keeps.
    pub(crate) fn depth(&self) -> u32 {
        match self {
            Predicate::And(terms) | Predicate::Or(terms) => {
                terms.iter().map(Predicate::depth).max().unwrap_or(0)
            }
            Predicate::Not(term) => term.depth(),
            Predicate::Other { names, .. } => names.depth(),
            _ => 0,
        }
    }

    /// The terms of which all must hold.
    pub(crate) fn conjuncts(self) -> Vec<Predicate> {
        match self {
            Predicate::And(terms) => terms.into_iter().flat_map(Predicate::conjuncts).collect(),
            other => vec![other],
        }
    }

    /// The only values that a column may have, if it says so.
    pub(crate) fn values_of(&self, wanted: &str) -> Option<Vec<Arc<str>>> {
        match self {
            Predicate::Compare { column, op: "==", value: Value::Text(text) }
                if &**column == wanted =>
            {
                Some(vec![text.clone()])
            }
            Predicate::Or(terms) => {
                let lists: Option<Vec<Vec<Arc<str>>>> =
                    terms.iter().map(|term| term.values_of(wanted)).collect();
                lists.map(|lists| lists.concat())
            }
            Predicate::And(terms) => terms.iter().find_map(|term| term.values_of(wanted)),
            _ => None,
        }
    }

    /// The same as a condition on one tag, if it is one.
    pub(crate) fn matcher(&self) -> Option<Matcher> {
        match self {
            Predicate::Compare { column, op, value: Value::Text(text) } if is_tag(column) => {
                let op = match *op {
                    "==" => MatchOp::Equal,
                    "!=" => MatchOp::NotEqual,
                    _ => return None,
                };
                Some(Matcher::new(&**column, op, &**text))
            }
            Predicate::Match { column, regex, is_wanted } if is_tag(column) => {
                let op = if *is_wanted { MatchOp::Regex } else { MatchOp::NotRegex };
                // A matcher wants all of the text to match, Flux a piece of it.
                Some(Matcher::new(&**column, op, format!("(?s:.*)(?:{})(?s:.*)", regex.text)))
            }
            Predicate::Exists(column) if is_tag(column) => {
                Some(Matcher::new(&**column, MatchOp::NotEqual, ""))
            }
            Predicate::Or(terms) => {
                let column = match terms.first() {
                    Some(Predicate::Compare { column, .. }) if is_tag(column) => column,
                    _ => return None,
                };
                let values = self.values_of(column)?;
                let escaped: Vec<String> = values.iter().map(|one| regex::escape(one)).collect();
                Some(Matcher::new(&**column, MatchOp::Regex, escaped.join("|")))
            }
            _ => None,
        }
    }

    /// Whether the matcher says all that this does.
    pub(crate) fn is_exact(&self) -> bool {
        match self {
            Predicate::Or(terms) => {
                let is_equal = |term: &Predicate| matches!(term, Predicate::Compare { .. });
                self.matcher().is_some() && terms.iter().all(is_equal)
            }
            other => other.matcher().is_some(),
        }
    }

    /// Whether the row that `record` makes passes.
    ///
    /// # Errors
    /// What goes wrong in a body.
    pub(crate) fn holds(
        &self,
        evaluation: &Evaluation<'_>,
        look: &dyn Fn(&str) -> Known,
        record: &dyn Fn() -> Value,
    ) -> Result<Option<bool>> {
        match self {
            Predicate::Other { body, row, names } => {
                let found = evaluation.expr(body, &names.with(row.clone(), record()))?;
                condition(&found).map_err(|words| Error::runtime(words).at(body.span))
            }
            Predicate::And(terms) | Predicate::Or(terms) if self.has_other() => {
                let absorbing = matches!(self, Predicate::Or(_));
                let mut found = Some(!absorbing);
                for term in terms {
                    match term.holds(evaluation, look, record)? {
                        Some(value) if value == absorbing => return Ok(Some(absorbing)),
                        Some(_) => {}
                        None => found = None,
                    }
                }
                Ok(found)
            }
            Predicate::Match { column, regex, .. } => {
                if let Known::Value(Value::Text(text)) = look(column) {
                    evaluation.match_through(regex, text.len())?;
                }
                Ok(self.test(look))
            }
            Predicate::Not(term) => Ok(term.holds(evaluation, look, record)?.map(|value| !value)),
            other => Ok(other.test(look)),
        }
    }
}

/// Whether a column is a tag of what is in a bucket.
pub(crate) fn is_tag(column: &str) -> bool {
    let own = ["_measurement", "_field", "_value", "_time", "_start", "_stop"];
    !own.contains(&column) && column != model::METRIC_NAME && !column.is_empty()
}

/// `and` or `or` of all.
fn all(terms: impl Iterator<Item = Option<bool>>, op: Logic) -> Option<bool> {
    let absorbing = op == Logic::Or;
    let mut found = Some(!absorbing);
    for term in terms {
        match term {
            Some(value) if value == absorbing => return Some(absorbing),
            Some(_) => {}
            None => found = None,
        }
    }
    found
}

struct Compiler<'c> {
    evaluation: &'c Evaluation<'c>,
    row: Arc<str>,
    names: &'c Names,
}

impl Compiler<'_> {
    fn compile(&self, expr: &Expr) -> Result<Predicate> {
        Ok(match &expr.kind {
            ExprKind::Logical { op, terms } => {
                let terms: Result<Vec<_>> = terms.iter().map(|term| self.compile(term)).collect();
                match op {
                    Logic::And => Predicate::And(terms?),
                    Logic::Or => Predicate::Or(terms?),
                }
            }
            ExprKind::Unary { op: "not", operand } => {
                Predicate::Not(Box::new(self.compile(operand)?))
            }
            ExprKind::Unary { op: "exists", operand } => match self.column(operand) {
                Some(column) => Predicate::Exists(column),
                None => self.other(expr)?,
            },
            ExprKind::Binary { op, left, right } => self.comparison(expr, op, left, right)?,
            _ if !mentions(expr, &self.row) => {
                let found = self.evaluation.expr(expr, self.names)?;
                match condition(&found).map_err(|words| Error::runtime(words).at(expr.span))? {
                    Some(value) => Predicate::Constant(value),
                    None => self.other(expr)?,
                }
            }
            _ => self.other(expr)?,
        })
    }

    fn other(&self, expr: &Expr) -> Result<Predicate> {
        // Its text says how large the tree is, about, of which this makes a copy.
        let text_size = expr.span.end.saturating_sub(expr.span.start);
        self.evaluation.hold(text_size.saturating_mul(size_of::<Expr>() / 4))?;
        let (body, row) = (Arc::new(expr.clone()), self.row.clone());
        Ok(Predicate::Other { body, row, names: self.names.clone() })
    }

    /// The column that an expression is.
    fn column(&self, expr: &Expr) -> Option<Arc<str>> {
        match &expr.kind {
            ExprKind::Member { object, name } => match &object.kind {
                ExprKind::Name(found) if *found == self.row => Some(name.clone()),
                _ => None,
            },
            _ => None,
        }
    }

    fn comparison(
        &self,
        expr: &Expr,
        op: &'static str,
        left: &Expr,
        right: &Expr,
    ) -> Result<Predicate> {
        let (column, op, constant) = match (self.column(left), self.column(right)) {
            (Some(column), None) if !mentions(right, &self.row) => (column, op, right),
            (None, Some(column)) if !mentions(left, &self.row) => match mirrored(op) {
                Some(op) => (column, op, left),
                None => return self.other(expr),
            },
            _ => return self.other(expr),
        };
        let value = self.evaluation.expr(constant, self.names)?;
        Ok(match (op, value) {
            ("=~" | "!~", Value::Regex(regex)) => {
                Predicate::Match { column, regex, is_wanted: op == "=~" }
            }
            ("==" | "!=" | "<" | "<=" | ">" | ">=", value) if value.kind().is_some() => {
                Predicate::Compare { column, op, value }
            }
            _ => self.other(expr)?,
        })
    }
}

/// `b op a` for `a op b`.
fn mirrored(op: &str) -> Option<&'static str> {
    Some(match op {
        "==" => "==",
        "!=" => "!=",
        "<" => ">",
        "<=" => ">=",
        ">" => "<",
        ">=" => "<=",
        _ => return None,
    })
}

/// Whether a name occurs in an expression.
fn mentions(expr: &Expr, name: &Arc<str>) -> bool {
    let any = |list: &[Expr]| list.iter().any(|one| mentions(one, name));
    match &expr.kind {
        ExprKind::Name(found) => found == name,
        ExprKind::Parts(list) | ExprKind::Array(list) => any(list),
        ExprKind::Dictionary(entries) => {
            entries.iter().any(|(key, value)| mentions(key, name) || mentions(value, name))
        }
        ExprKind::Record { with, fields } => {
            with.as_ref().is_some_and(|with| mentions(with, name))
                || fields.iter().any(|(_, field)| mentions(field, name))
        }
        // What a function sees is not looked into: it may well.
        ExprKind::Function(_) => true,
        ExprKind::Call { callee, args } => {
            mentions(callee, name) || args.iter().any(|(_, arg)| mentions(arg, name))
        }
        ExprKind::Pipe { head, calls } => mentions(head, name) || any(calls),
        ExprKind::Member { object, .. } => mentions(object, name),
        ExprKind::Index { object, index } => mentions(object, name) || mentions(index, name),
        ExprKind::Unary { operand, .. } => mentions(operand, name),
        ExprKind::Binary { left, right, .. } => mentions(left, name) || mentions(right, name),
        ExprKind::Logical { terms, .. } => any(terms),
        ExprKind::If { condition, then, otherwise } => {
            mentions(condition, name) || mentions(then, name) || mentions(otherwise, name)
        }
        ExprKind::Integer(_)
        | ExprKind::Float(_)
        | ExprKind::Text(_)
        | ExprKind::Duration(_)
        | ExprKind::Time(_)
        | ExprKind::Regex(_) => false,
    }
}
