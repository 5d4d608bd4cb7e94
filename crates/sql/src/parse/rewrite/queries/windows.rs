//! Windows in words that DataFusion knows. Named ones: it knows `OVER w` in the select list; of `OVER (w ORDER BY ..)` it
//! loses what `w` says. And calls of window functions that it has no plan for.

use crate::parse::rewrite::functions::toolkit;
use crate::types::error::SqlError;
use crate::types::names::folded;
use crate::types::traversal::walk_mut;
use datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CaseWhen, Expr, Function, Ident, NamedWindowDefinition, NamedWindowExpr,
    OrderBy, Query, Select, Value, VisitMut, VisitorMut, WindowFrame, WindowFrameBound, WindowSpec,
    WindowType,
};
use std::ops::ControlFlow;

/// Writes out the named windows of a select list.
///
/// # Errors
/// `42704` and `42P20`, as PostgreSQL says them.
pub fn write_out_windows(select: &mut Select) -> Result<(), SqlError> {
    let known = definitions(&select.named_window)?;
    let mut writer = Writer { known: &known, queries: 0 };
    for item in &mut select.projection {
        writer.write(item)?;
    }
    Ok(())
}

/// Writes out the named windows of an `ORDER BY`.
///
/// # Errors
/// As [`write_out_windows`].
pub fn write_out_windows_of_order(
    windows: &[NamedWindowDefinition],
    order: &mut OrderBy,
) -> Result<(), SqlError> {
    let known = definitions(windows)?;
    Writer { known: &known, queries: 0 }.write(order)
}

/// Windows by their names, each written out.
type Known = Vec<(String, WindowSpec)>;

fn definitions(windows: &[NamedWindowDefinition]) -> Result<Known, SqlError> {
    let mut known = Known::new();
    for NamedWindowDefinition(name, window) in windows {
        let spec = match window {
            NamedWindowExpr::NamedWindow(other) => window_of(&known, other)?.clone(),
            NamedWindowExpr::WindowSpec(spec) => written_out(&known, spec)?,
        };
        let name = folded(name);
        if known.iter().any(|(other, _)| *other == name) {
            return Err(SqlError::new("42P20", format!("window \"{name}\" is already defined")));
        }
        known.push((name, spec));
    }
    Ok(known)
}

fn window_of<'a>(known: &'a Known, name: &Ident) -> Result<&'a WindowSpec, SqlError> {
    let name = folded(name);
    let found = known.iter().find(|(other, _)| *other == name);
    let unknown = || SqlError::new("42704", format!("window \"{name}\" does not exist"));
    found.map(|(_, spec)| spec).ok_or_else(unknown)
}

/// A window with what it inherits.
fn written_out(known: &Known, spec: &WindowSpec) -> Result<WindowSpec, SqlError> {
    let Some(name) = &spec.window_name else { return Ok(spec.clone()) };
    let (base, name) = (window_of(known, name)?, folded(name));
    let refused = |words: String| Err(SqlError::new("42P20", words));
    if !spec.partition_by.is_empty() {
        return refused(format!("cannot override PARTITION BY clause of window \"{name}\""));
    }
    if !spec.order_by.is_empty() && !base.order_by.is_empty() {
        return refused(format!("cannot override ORDER BY clause of window \"{name}\""));
    }
    if base.window_frame.is_some() {
        let words = format!("cannot copy window \"{name}\" because it has a frame clause");
        return refused(words);
    }
    let order = if spec.order_by.is_empty() { &base.order_by } else { &spec.order_by };
    Ok(WindowSpec {
        window_name: None,
        partition_by: base.partition_by.clone(),
        order_by: order.clone(),
        window_frame: spec.window_frame.clone(),
    })
}

/// Computes the bounds of a frame that are sums or products of integers: the planner wants numbers.
fn compute_bounds(frame: &mut WindowFrame) {
    for bound in std::iter::once(&mut frame.start_bound).chain(frame.end_bound.as_mut()) {
        let (WindowFrameBound::Preceding(Some(rows)) | WindowFrameBound::Following(Some(rows))) =
            bound
        else {
            continue;
        };
        if matches!(**rows, Expr::BinaryOp { .. } | Expr::Nested(_))
            && let Some(number) = integer(rows).filter(|number| 0 <= *number)
        {
            **rows = Expr::Value(Value::Number(number.to_string(), false).into());
        }
    }
}

/// The value of an expression of integers alone.
fn integer(expr: &Expr) -> Option<i64> {
    match expr {
        Expr::Nested(inner) => integer(inner),
        Expr::Value(value) => match &value.value {
            Value::Number(digits, _) => digits.parse().ok(),
            _ => None,
        },
        Expr::BinaryOp { left, op, right } => {
            let (left, right) = (integer(left)?, integer(right)?);
            match op {
                BinaryOperator::Plus => left.checked_add(right),
                BinaryOperator::Minus => left.checked_sub(right),
                BinaryOperator::Multiply => left.checked_mul(right),
                BinaryOperator::Divide => left.checked_div(right),
                _ => None,
            }
        }
        _ => None,
    }
}

/// Writes out windows, but not those of queries within.
struct Writer<'a> {
    known: &'a Known,
    queries: usize,
}

impl Writer<'_> {
    fn write(&mut self, node: &mut impl VisitMut) -> Result<(), SqlError> {
        match walk_mut(node, self) {
            ControlFlow::Break(error) => Err(*error),
            ControlFlow::Continue(()) => Ok(()),
        }
    }
}

impl VisitorMut for Writer<'_> {
    type Break = Box<SqlError>;

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<Self::Break> {
        self.queries += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<Self::Break> {
        self.queries -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Self::Break> {
        let Expr::Function(function) = expr else { return ControlFlow::Continue(()) };
        if 0 < self.queries {
            return ControlFlow::Continue(());
        }
        if let Some(WindowType::WindowSpec(spec)) = &mut function.over {
            spec.window_frame.iter_mut().for_each(compute_bounds);
        }
        let written = match &function.over {
            Some(WindowType::NamedWindow(name)) => window_of(self.known, name).cloned(),
            Some(WindowType::WindowSpec(spec)) if spec.window_name.is_some() => {
                written_out(self.known, spec)
            }
            _ => return ControlFlow::Continue(()),
        };
        match written {
            Ok(spec) => {
                function.over = Some(WindowType::WindowSpec(spec));
                ControlFlow::Continue(())
            }
            Err(error) => ControlFlow::Break(Box::new(error)),
        }
    }
}

/// `lag(value, offset, default)` and `lead` with a default that is no constant, for which DataFusion has no plan:
///
/// ```text
/// CASE WHEN lag(1, offset) OVER w IS NULL THEN default ELSE lag(value, offset) OVER w END
/// ```
pub fn computed_default(
    function: &Function,
    value: &Expr,
    offset: &Expr,
    default: &Expr,
) -> Option<Expr> {
    if is_constant(default) || function.over.is_none() {
        return None;
    }
    let name = function.name.to_string();
    let of = |value: Expr| toolkit::like(function, &name, vec![value, offset.clone()]);
    let one = Expr::Value(Value::Number("1".into(), false).into());
    Some(Expr::Case {
        case_token: AttachedToken::empty(),
        end_token: AttachedToken::empty(),
        operand: None,
        conditions: vec![CaseWhen {
            condition: Expr::IsNull(Box::new(of(one))),
            result: default.clone(),
        }],
        else_result: Some(Box::new(of(value.clone()))),
    })
}

fn is_constant(expr: &Expr) -> bool {
    match expr {
        Expr::Value(_) | Expr::TypedString(_) | Expr::Interval(_) => true,
        Expr::Nested(inner) | Expr::UnaryOp { expr: inner, .. } => is_constant(inner),
        Expr::Cast { expr, .. } => is_constant(expr),
        _ => false,
    }
}
