//! Types: what may stand where. Runs over a tree that has the right grammar.
//!
//! Children are checked before their parent, left to right, and the first error is returned,
//! which is the error that Prometheus shows.

use crate::ast::*;
use crate::error::{ParseError, Span};
use crate::functions::Arity;
use crate::patterns::PatternChecker;
use crate::quote::{INVALID_UTF8, quote, unquoting_failed};
use model::{METRIC_NAME, MatchOp, Matcher};

type Result<T> = std::result::Result<T, ParseError>;

/// Checks `expr` and everything in it; settles how binary operators match.
pub(crate) fn check(text: &str, expr: &mut Expr, patterns: &PatternChecker) -> Result<()> {
    Checker { text, patterns }.expr(expr).map(|_| ())
}

/// Checks a selector that stands for itself and may match everything.
pub(crate) fn check_selector(
    text: &str,
    selector: &VectorSelector,
    patterns: &PatternChecker,
) -> Result<()> {
    Checker { text, patterns }.named_once(selector)
}

struct Checker<'a> {
    text: &'a str,
    /// Those of the text's matchers were checked.
    patterns: &'a PatternChecker,
}

impl Checker<'_> {
    fn expr(&self, expr: &mut Expr) -> Result<ValueType> {
        match expr {
            Expr::Number(_) => {}
            Expr::String(string) => self.string(string)?,
            Expr::Vector(selector) => self.selector(selector)?,
            Expr::Matrix(matrix) => self.selector(&matrix.selector)?,
            Expr::Subquery(subquery) => self.subquery(subquery)?,
            Expr::Call(call) => self.call(call)?,
            Expr::Aggregate(aggregate) => self.aggregate(aggregate)?,
            Expr::Binary(binary) => self.binary(binary)?,
            Expr::Unary(unary) => self.unary(unary)?,
            Expr::Paren(paren) => {
                self.expr(&mut paren.expr)?;
            }
        }
        Ok(expr.value_type())
    }

    /// Strings are UTF-8.
    fn string(&self, string: &StringLiteral) -> Result<()> {
        if string.odd_bytes.is_none() {
            return Ok(());
        }
        let literal = &self.text[string.span.start as usize..string.span.end as usize];
        self.fail(string.span, unquoting_failed(literal, INVALID_UTF8))
    }

    fn selector(&self, selector: &VectorSelector) -> Result<()> {
        self.named_once(selector)?;
        if selector.matchers.iter().all(|matcher| self.matches_empty(matcher)) {
            let message = "vector selector must contain at least one non-empty matcher";
            return self.fail(selector.span, message);
        }
        Ok(())
    }

    fn named_once(&self, selector: &VectorSelector) -> Result<()> {
        if let Some(name) = &selector.name {
            let others = &selector.matchers[..selector.matchers.len() - 1];
            if let Some(other) = others.iter().find(|matcher| matcher.name == METRIC_NAME) {
                let (first, second) = (quote(name), quote(&other.value));
                let message = format!("metric name must not be set twice: {first} or {second}");
                return self.fail(selector.span, message);
            }
        }
        Ok(())
    }

    fn subquery(&self, subquery: &mut Subquery) -> Result<()> {
        match self.expr(&mut subquery.expr)? {
            ValueType::Vector => Ok(()),
            other => {
                let other = other.as_str();
                let message =
                    format!("subquery is only allowed on instant vector, got {other} instead");
                self.fail(subquery.span, message)
            }
        }
    }

    fn call(&self, call: &mut Call) -> Result<()> {
        let function = call.function;
        let (given, listed) = (call.arguments.len(), function.arguments.len());
        let (min, max) = match function.arity {
            Arity::Exact => (listed, listed),
            Arity::LastUpTo(count) => (listed - 1, listed - 1 + count),
            Arity::LastRepeats => (listed - 1, usize::MAX),
        };
        if given < min || max < given {
            let bound = match function.arity {
                Arity::Exact => format!("{listed}"),
                _ if given < min => format!("at least {min}"),
                _ => format!("at most {max}"),
            };
            let name = quote(function.name);
            let message = format!("expected {bound} argument(s) in call to {name}, got {given}");
            return self.fail(call.span, message);
        }
        for (idx, argument) in call.arguments.iter_mut().enumerate() {
            if idx == 1 && function.name == "info" {
                self.label_selector(argument)?;
                continue;
            }
            let wanted = function.arguments[idx.min(listed - 1)];
            let found = self.expr(argument)?;
            let context = format!("call to function {}", quote(function.name));
            self.expect(argument.span(), wanted, found, &context)?;
        }
        Ok(())
    }

    /// The second argument of `info`: matchers without a name outside the braces, which may match
    /// everything.
    fn label_selector(&self, argument: &Expr) -> Result<()> {
        match argument {
            Expr::Vector(selector) if selector.name.is_none() => Ok(()),
            Expr::Vector(_) => {
                let message = "expected label selectors only, got vector selector instead";
                self.fail(argument.span(), message)
            }
            _ => self.fail(argument.span(), "expected label selectors only"),
        }
    }

    fn aggregate(&self, aggregate: &mut Aggregate) -> Result<()> {
        let found = self.expr(&mut aggregate.expr)?;
        let span = aggregate.expr.span();
        self.expect(span, ValueType::Vector, found, "aggregation expression")?;
        if let (Some(wanted), Some(parameter)) =
            (aggregate.op.parameter(), &mut aggregate.parameter)
        {
            let found = match parameter.without_parens() {
                // What is odd in it is `count_values`' business.
                Expr::String(_) => ValueType::String,
                _ => self.expr(parameter)?,
            };
            self.expect(parameter.span(), wanted, found, "aggregation parameter")?;
        }
        Ok(())
    }

    fn unary(&self, unary: &mut Unary) -> Result<()> {
        let found = self.expr(&mut unary.expr)?;
        if matches!(found, ValueType::Scalar | ValueType::Vector) {
            return Ok(());
        }
        let message = format!(
            "unary expression only allowed on expressions of type scalar or instant vector, got {}",
            quote(found.documented())
        );
        self.fail(unary.span, message)
    }

    fn binary(&self, binary: &mut Binary) -> Result<()> {
        let left = self.expr(&mut binary.left)?;
        let right = self.expr(&mut binary.right)?;
        let op = binary.op;
        let operator = self.operator_span(binary);
        if binary.returns_bool && !op.is_comparison() {
            return self.fail(operator, "bool modifier can only be used on comparison operators");
        }
        let are_scalars = left == ValueType::Scalar && right == ValueType::Scalar;
        if op.is_comparison() && !binary.returns_bool && are_scalars {
            return self.fail(operator, "comparisons between scalars must use BOOL modifier");
        }
        if let Some(matching) = &binary.matching
            && matching.is_on
            && let Some(label) = matching.labels.iter().find(|l| matching.include.contains(*l))
        {
            let label = quote(label);
            let message = format!("label {label} must not occur in ON and GROUP clause at once");
            return self.fail(operator, message);
        }
        for (expr, found) in [(&binary.left, left), (&binary.right, right)] {
            if !matches!(found, ValueType::Scalar | ValueType::Vector) {
                let message = "binary expression must contain only scalar and instant vector types";
                return self.fail(expr.span(), message);
            }
        }
        self.matching(binary, [left, right])
    }

    /// Checks the matching and drops it where it has no meaning.
    fn matching(&self, binary: &mut Binary, sides: [ValueType; 2]) -> Result<()> {
        let span = binary.left.span().to(binary.right.span());
        let operator = quote(binary.op.as_str());
        let fill = binary.matching.as_ref().map_or(Fill::default(), |matching| matching.fill);
        if sides != [ValueType::Vector; 2] {
            if binary.matching.take().is_some_and(|matching| !matching.labels.is_empty()) {
                return self.fail(span, "vector matching only allowed between instant vectors");
            }
            if fill.is_any() {
                let message = "filling in missing series only allowed between instant vectors";
                return self.fail(span, message);
            }
            if binary.op.is_set() {
                let message =
                    format!("set operator {operator} not allowed in binary scalar expression");
                return self.fail(span, message);
            }
            return Ok(());
        }
        if let Some(matching) = &mut binary.matching
            && binary.op.is_set()
        {
            if matching.cardinality != Cardinality::OneToOne {
                return self.fail(span, format!("no grouping allowed for {operator} operation"));
            }
            if matching.fill.is_any() {
                let message = "filling in missing series not allowed for set operators";
                return self.fail(span, message);
            }
            matching.cardinality = Cardinality::ManyToMany;
        }
        Ok(())
    }

    /// Where the operator stands: between the operands, without the space.
    fn operator_span(&self, binary: &Binary) -> Span {
        let (mut start, end) =
            (binary.left.span().end as usize, binary.right.span().start as usize);
        let bytes = self.text.as_bytes();
        while start < end && bytes.get(start).is_some_and(u8::is_ascii_whitespace) {
            start += 1;
        }
        Span::new(start, end.max(start))
    }

    fn expect(&self, span: Span, wanted: ValueType, found: ValueType, context: &str) -> Result<()> {
        if wanted == found {
            return Ok(());
        }
        let (wanted, found) = (wanted.documented(), found.documented());
        self.fail(span, format!("expected type {wanted} in {context}, got {found}"))
    }

    fn matches_empty(&self, matcher: &Matcher) -> bool {
        match matcher.op {
            MatchOp::Equal => matcher.value.is_empty(),
            MatchOp::NotEqual => !matcher.value.is_empty(),
            MatchOp::Regex => self.patterns.matches_empty(&matcher.value),
            MatchOp::NotRegex => !self.patterns.matches_empty(&matcher.value),
        }
    }

    fn fail<T>(&self, span: Span, message: impl Into<String>) -> Result<T> {
        Err(ParseError::new(self.text, span, message))
    }
}
