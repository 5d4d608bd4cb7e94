//! A SELECT checked and taken apart: its time, its windows, what may stand beside what.

use super::functions::reduce::Constants;
use super::plan::{Plan, PlanSource};
use super::window::Interval;
use crate::ast::{Expr, Fill, MeasurementName, Select, Source};
use crate::source::EvalError;
use crate::time::{TIME_MAX, TIME_MIN, format_duration, format_time, looks_like_time, parse_time};
use crate::token::Op;
use jiff::tz::TimeZone;

type Result<T> = std::result::Result<T, EvalError>;

fn error<T>(message: impl Into<String>) -> Result<T> {
    Err(EvalError::new(message))
}

/// Functions of one row.
const MATH: &[&str] = &[
    "abs", "acos", "asin", "atan", "atan2", "ceil", "cos", "exp", "floor", "ln", "log", "log2",
    "log10", "pow", "round", "sin", "sqrt", "tan",
];

/// Whether a function needs nothing but its row.
pub fn is_math(name: &str) -> bool {
    MATH.contains(&name)
}

/// Whether a function picks samples.
pub fn is_selector(name: &str) -> bool {
    matches!(name, "first" | "last" | "max" | "min" | "percentile" | "sample" | "top" | "bottom")
}

/// Whether a function is of a point and those before it.
pub fn is_transformation(name: &str) -> bool {
    matches!(
        name,
        "derivative"
            | "non_negative_derivative"
            | "difference"
            | "non_negative_difference"
            | "moving_average"
            | "elapsed"
            | "cumulative_sum"
    )
}

/// What a statement is told from outside.
pub struct Circumstances<'a> {
    pub now: i64,
    pub database: &'a str,
}

/// A span of time that conditions ask for.
#[derive(Clone, Copy, Debug, Default)]
struct Bounds {
    min: Option<i64>,
    max: Option<i64>,
}

impl Bounds {
    fn intersect(self, other: Bounds) -> Bounds {
        let min = self.min.into_iter().chain(other.min).max();
        let max = self.max.into_iter().chain(other.max).min();
        Bounds { min, max }
    }
}

/// What is known of the fields of a statement so far.
#[derive(Default)]
struct Seen {
    calls: usize,
    has_variables: bool,
    has_aggregates: bool,
    has_distinct: bool,
    top_or_bottom: Option<String>,
    interval: Interval,
    is_interval_inherited: bool,
    limit: usize,
}

/// Checks a statement and takes it apart.
///
/// # Errors
/// In InfluxDB's words.
pub fn compile(select: &Select, circumstances: &Circumstances<'_>) -> Result<Plan> {
    let mut plan = preprocess(select, circumstances)?;
    finish(&mut plan, select, circumstances)?;
    Ok(plan)
}

fn zone_of(select: &Select) -> Option<TimeZone> {
    crate::time::zone(select.zone.as_deref()?)
}

fn preprocess(select: &Select, circumstances: &Circumstances<'_>) -> Result<Plan> {
    let zone = zone_of(select);
    let constants = Constants { now: Some(circumstances.now), zone: zone.as_ref() };
    let (condition, bounds) = match &select.condition {
        Some(condition) => split(condition.clone(), &constants)?,
        None => (None, Bounds::default()),
    };
    if let Some(condition) = &condition {
        check_condition(condition)?;
    }
    let (dimensions, interval) = dimensions(select, &constants)?;
    let latest = if interval.is_zero() { TIME_MAX } else { circumstances.now };
    let mut fields = select.fields.clone();
    let mut time_name = "time".to_string();
    fields.retain(|field| match (&field.expr, &field.alias) {
        (Expr::Var { name, .. }, alias) if name == "time" => {
            if let Some(alias) = alias {
                time_name.clone_from(alias);
            }
            false
        }
        _ => true,
    });
    for field in &mut fields {
        field.expr.change(&mut |expr| {
            if let Expr::Distinct(name) = expr {
                let args = vec![Expr::var(name.clone())];
                *expr = Expr::Call { name: "distinct".to_string(), args };
            }
        });
        let constant = Constants { now: None, zone: None };
        field.expr = constant.reduce(field.expr.clone());
    }
    Ok(Plan {
        fields,
        sources: Vec::new(),
        condition,
        dimensions,
        interval,
        is_interval_inherited: false,
        range: (bounds.min.unwrap_or(TIME_MIN), bounds.max.unwrap_or(latest)),
        fill: select.fill,
        is_descending: select.is_descending,
        page: select.page,
        series_page: select.series_page,
        zone,
        time_name,
        omits_time: false,
    })
}

/// Checks the fields and goes on to the sources, which may inherit from the statement.
fn finish(plan: &mut Plan, select: &Select, circumstances: &Circumstances<'_>) -> Result<()> {
    let mut seen = Seen {
        interval: plan.interval,
        is_interval_inherited: plan.is_interval_inherited,
        limit: plan.page.limit,
        ..Seen::default()
    };
    for field in &plan.fields {
        seen.expression(&field.expr, true)?;
    }
    seen.check(plan)?;
    for source in &select.sources {
        plan.sources.push(match source {
            Source::Measurement(measurement) => PlanSource::Measurement {
                database: match &measurement.database {
                    Some(database) => database.clone(),
                    None => circumstances.database.to_string(),
                },
                policy: measurement.policy.clone(),
                name: match &measurement.name {
                    MeasurementName::Is(name) => MeasurementName::Is(name.clone()),
                    MeasurementName::Matches(regex) => MeasurementName::Matches(regex.clone()),
                },
            },
            Source::Query(inner) => {
                PlanSource::Query(Box::new(subquery(plan, inner, circumstances)?))
            }
        });
    }
    Ok(())
}

fn subquery(outer: &Plan, select: &Select, circumstances: &Circumstances<'_>) -> Result<Plan> {
    let mut plan = preprocess(select, circumstances)?;
    plan.omits_time = true;
    if plan.is_descending && !outer.is_descending {
        return error("subqueries must be ordered in the same direction as the query itself");
    }
    plan.is_descending = outer.is_descending;
    // The series of an answer are those of what is read in the end, and there their number is bounded.
    plan.series_page.limit += outer.series_page.limit;
    plan.series_page.offset += outer.series_page.offset;
    let mut has_calls = false;
    for field in &plan.fields {
        // Functions of one row make no empty windows.
        field.expr.walk(&mut |expr| {
            has_calls |= matches!(expr, Expr::Call { name, .. } if !is_math(name));
        });
    }
    if has_calls && plan.fill == Fill::Null {
        plan.fill = Fill::None;
    }
    if !outer.interval.is_zero() && plan.interval.is_zero() {
        plan.interval = outer.interval;
        plan.is_interval_inherited = true;
    }
    finish(&mut plan, select, circumstances)?;
    Ok(plan)
}

/// The first and the last time of a condition, as far as it says.
pub type FirstAndLast = (Option<i64>, Option<i64>);

/// A condition without its bounds of time, and these.
///
/// # Errors
/// In InfluxDB's words.
pub fn condition_and_range(
    condition: Option<&Expr>,
    circumstances: &Circumstances<'_>,
) -> Result<(Option<Expr>, FirstAndLast)> {
    let constants = Constants { now: Some(circumstances.now), zone: None };
    let Some(condition) = condition else { return Ok((None, (None, None))) };
    let (condition, bounds) = split(condition.clone(), &constants)?;
    Ok((condition, (bounds.min, bounds.max)))
}

/// The same, with the bounds as they are added up.
fn split(expr: Expr, constants: &Constants<'_>) -> Result<(Option<Expr>, Bounds)> {
    match expr {
        Expr::Binary { op: op @ (Op::And | Op::Or), left, right } => {
            let (left, left_bounds) = split(*left, constants)?;
            let (right, right_bounds) = split(*right, constants)?;
            let bounds = left_bounds.intersect(right_bounds);
            Ok(match (left, right) {
                (Some(left), Some(right)) => {
                    let (left, right) = (Box::new(left), Box::new(right));
                    (Some(Expr::Binary { op, left, right }), bounds)
                }
                (left, right) => (left.or(right), bounds),
            })
        }
        Expr::Binary { op, left, right } => match (is_time(&left), is_time(&right)) {
            (true, _) => Ok((None, bounds_of(op, *right, constants)?)),
            (_, true) => Ok((None, bounds_of(op.swapped(), *left, constants)?)),
            _ => match constants.reduce(Expr::Binary { op, left, right }) {
                condition if may_be_condition(&condition) => {
                    Ok((Some(condition), Bounds::default()))
                }
                other => error(format!("invalid condition expression: {other}")),
            },
        },
        Expr::Paren(inner) => {
            let (inner, bounds) = split(*inner, constants)?;
            Ok((inner.map(|inner| Expr::Paren(Box::new(inner))), bounds))
        }
        Expr::Boolean(value) => Ok((Some(Expr::Boolean(value)), Bounds::default())),
        other => error(format!("invalid condition expression: {other}")),
    }
}

/// Whether an expression may be true or false. A variable may be a field of booleans.
fn may_be_condition(expr: &Expr) -> bool {
    match expr {
        Expr::Binary { op: Op::BitAnd | Op::BitOr | Op::BitXor, left, right } => {
            let is_operand =
                |expr: &Expr| matches!(expr, Expr::Var { .. }) || may_be_condition(expr);
            is_operand(left) && is_operand(right)
        }
        // Comparisons, `AND` and `OR`.
        Expr::Binary { op, .. } => op.precedence() <= 3,
        Expr::Paren(inner) => may_be_condition(inner),
        Expr::Boolean(_) => true,
        _ => false,
    }
}

fn is_time(expr: &Expr) -> bool {
    matches!(expr, Expr::Var { name, .. } if name.eq_ignore_ascii_case("time"))
}

fn bounds_of(op: Op, expr: Expr, constants: &Constants<'_>) -> Result<Bounds> {
    let expr = match expr {
        Expr::Text(text) if looks_like_time(&text) => match parse_time(&text, constants.zone) {
            Some(time) => Expr::Time(time),
            None => return error("invalid timestamp string"),
        },
        other => constants.reduce(other),
    };
    let value = match expr {
        Expr::Time(time) => {
            if !(TIME_MIN + 1..=TIME_MAX).contains(&time) {
                let mut text = String::new();
                format_time(time, None, &mut text);
                let how = if time < 0 { "underflows" } else { "overflows" };
                return error(format!("time {text} {how} time literal"));
            }
            time
        }
        Expr::Duration(nanos) | Expr::Integer(nanos) => nanos,
        Expr::Number(value) => value as i64,
        other => {
            let kind = go_type(&other);
            return error(format!("invalid operation: time and {kind} are not compatible"));
        }
    };
    Ok(match op {
        Op::Greater => Bounds { min: Some(value.saturating_add(1)), max: None },
        Op::GreaterEq => Bounds { min: Some(value), max: None },
        Op::Less => Bounds { min: None, max: Some(value.saturating_sub(1)) },
        Op::LessEq => Bounds { min: None, max: Some(value) },
        Op::Eq => Bounds { min: Some(value), max: Some(value) },
        op => return error(format!("invalid time comparison operator: {}", op.as_str())),
    })
}

/// What InfluxDB calls a kind of expression.
fn go_type(expr: &Expr) -> &'static str {
    match expr {
        Expr::Var { .. } => "*influxql.VarRef",
        Expr::Call { .. } => "*influxql.Call",
        Expr::Binary { .. } => "*influxql.BinaryExpr",
        Expr::Paren(_) => "*influxql.ParenExpr",
        Expr::Distinct(_) => "*influxql.Distinct",
        Expr::Number(_) => "*influxql.NumberLiteral",
        Expr::Integer(_) => "*influxql.IntegerLiteral",
        Expr::Unsigned(_) => "*influxql.UnsignedLiteral",
        Expr::Text(_) => "*influxql.StringLiteral",
        Expr::Boolean(_) => "*influxql.BooleanLiteral",
        Expr::Duration(_) => "*influxql.DurationLiteral",
        Expr::Time(_) => "*influxql.TimeLiteral",
        Expr::Regex(_) => "*influxql.RegexLiteral",
        Expr::Star(_) => "*influxql.Wildcard",
    }
}

fn check_condition(expr: &Expr) -> Result<()> {
    let mut wrong = None;
    expr.walk(&mut |expr| {
        if let Expr::Call { name, args } = expr {
            let found = match is_math(name) {
                true => check_math_args(name, args).err(),
                false => {
                    Some(EvalError::new(format!("invalid function call in condition: {expr}")))
                }
            };
            wrong = wrong.take().or(found);
        }
    });
    wrong.map_or(Ok(()), Err)
}

fn check_math_args(name: &str, args: &[Expr]) -> Result<()> {
    let expected = if matches!(name, "atan2" | "pow" | "log") { 2 } else { 1 };
    count_args(name, args, expected)
}

fn count_args(name: &str, args: &[Expr], expected: usize) -> Result<()> {
    let got = args.len();
    if got == expected {
        return Ok(());
    }
    error(format!("invalid number of arguments for {name}, expected {expected}, got {got}"))
}

fn dimensions(select: &Select, constants: &Constants<'_>) -> Result<(Vec<Expr>, Interval)> {
    let mut interval = Interval::default();
    let mut out = Vec::new();
    for dimension in &select.dimensions {
        let constant = Constants { now: None, ..*constants };
        match constant.reduce(dimension.clone()) {
            Expr::Var { name, .. } if name.eq_ignore_ascii_case("time") => {
                return error("time() is a function and expects at least one argument");
            }
            Expr::Call { name, args } => {
                if name != "time" {
                    return error("only time() calls allowed in dimensions");
                }
                if args.is_empty() || 2 < args.len() {
                    return error("time dimension expected 1 or 2 arguments");
                }
                let Expr::Duration(duration) = args[0] else {
                    return error("time dimension must have duration argument");
                };
                if !interval.is_zero() {
                    return error("multiple time dimensions not allowed");
                }
                if duration < 0 {
                    return error("time dimension must have a positive duration argument");
                }
                let offset = args.get(1).map(|arg| offset_of(arg, duration, constants));
                interval = Interval { duration, offset: offset.transpose()?.unwrap_or(0) };
            }
            dimension @ (Expr::Var { .. } | Expr::Star(_) | Expr::Regex(_)) => out.push(dimension),
            _ => return error("only time and tag dimensions allowed"),
        }
    }
    Ok((out, interval))
}

fn offset_of(arg: &Expr, duration: i64, constants: &Constants<'_>) -> Result<i64> {
    if duration == 0 {
        return Ok(0);
    }
    match arg {
        Expr::Duration(offset) => Ok(offset % duration),
        Expr::Time(time) => Ok(time.rem_euclid(duration)),
        Expr::Call { name, .. } if name != "now" => {
            error("time dimension offset function must be now()")
        }
        Expr::Call { args, .. } if !args.is_empty() => {
            error("time dimension offset now() function requires no arguments")
        }
        Expr::Call { .. } => Ok(constants.now.unwrap_or(0).rem_euclid(duration)),
        Expr::Text(text) if parse_time(text, constants.zone).is_some() => {
            error(format!("invalid time dimension offset: '{text}'"))
        }
        _ => error("time dimension offset must be duration or now()"),
    }
}

impl Seen {
    fn expression(&mut self, expr: &Expr, may_be_star: bool) -> Result<()> {
        match expr {
            Expr::Var { .. } => {
                self.has_variables = true;
                Ok(())
            }
            Expr::Star(_) if !may_be_star => error("unable to use wildcard in a binary expression"),
            Expr::Regex(_) if !may_be_star => error("unable to use regex in a binary expression"),
            Expr::Star(_) | Expr::Regex(_) => {
                self.has_variables = true;
                Ok(())
            }
            Expr::Call { name, args } if is_math(name) => {
                check_math_args(name, args)?;
                if args.iter().all(Expr::is_literal) {
                    return error("field must contain at least one variable");
                }
                let mut args = args.iter().filter(|arg| !arg.is_literal());
                args.try_for_each(|arg| self.expression(arg, may_be_star))
            }
            Expr::Call { name, args } => {
                self.calls += 1;
                self.call(name, args, may_be_star)
            }
            Expr::Binary { left, right, .. } => match (left.is_literal(), right.is_literal()) {
                (true, true) => error("cannot perform a binary expression on two literals"),
                (true, false) => self.expression(right, false),
                (false, true) => self.expression(left, false),
                (false, false) => {
                    self.expression(left, false)?;
                    self.expression(right, false)
                }
            },
            Expr::Paren(inner) => self.expression(inner, may_be_star),
            _ => error("field must contain at least one variable"),
        }
    }

    fn call(&mut self, name: &str, args: &[Expr], may_be_star: bool) -> Result<()> {
        match name {
            "max" | "min" | "first" | "last" => {}
            "count" | "sum" | "mean" | "median" | "mode" | "stddev" | "spread" => {
                self.has_aggregates = true;
            }
            "percentile" => {
                count_args(name, args, 2)?;
                if !matches!(args[1], Expr::Integer(_) | Expr::Number(_)) {
                    return error("expected float argument in percentile()");
                }
                return self.symbol(name, &args[0], may_be_star);
            }
            "sample" => {
                count_args(name, args, 2)?;
                return match args[1] {
                    Expr::Integer(count) if count <= 0 => {
                        error(format!("sample window must be greater than 1, got {count}"))
                    }
                    Expr::Integer(_) => self.symbol(name, &args[0], may_be_star),
                    _ => error("expected integer argument in sample()"),
                };
            }
            "distinct" => return self.distinct(args, false),
            "top" | "bottom" => return self.top(name, args),
            "derivative"
            | "non_negative_derivative"
            | "elapsed"
            | "difference"
            | "non_negative_difference"
            | "cumulative_sum"
            | "moving_average" => {
                return self.transformation(name, args, may_be_star);
            }
            "integral" => return self.integral(args, may_be_star),
            "holt_winters" | "holt_winters_with_fit" => {
                return self.holt_winters(name, args, may_be_star);
            }
            _ => return error(format!("undefined function {name}()")),
        }
        count_args(name, args, 1)?;
        match &args[0] {
            Expr::Call { name: inner, args } if name == "count" && inner == "distinct" => {
                self.distinct(args, true)
            }
            arg => self.symbol(name, arg, may_be_star),
        }
    }

    fn symbol(&mut self, name: &str, arg: &Expr, may_be_star: bool) -> Result<()> {
        match arg {
            Expr::Var { .. } => Ok(()),
            Expr::Star(_) if !may_be_star => {
                error(format!("unsupported expression with wildcard: {name}()"))
            }
            Expr::Regex(_) if !may_be_star => {
                error(format!("unsupported expression with regex field: {name}()"))
            }
            Expr::Star(_) | Expr::Regex(_) => {
                self.has_aggregates = true;
                Ok(())
            }
            _ => error(format!("expected field argument in {name}()")),
        }
    }

    fn distinct(&mut self, args: &[Expr], is_nested: bool) -> Result<()> {
        match args {
            [] => return error("distinct function requires at least one argument"),
            [Expr::Var { .. }] => {}
            [_] => return error("expected field argument in distinct()"),
            _ => return error("distinct function can only have one argument"),
        }
        self.has_distinct |= !is_nested;
        self.has_aggregates = true;
        Ok(())
    }

    fn top(&mut self, name: &str, args: &[Expr]) -> Result<()> {
        if let Some(other) = &self.top_or_bottom {
            let message =
                format!("selector function {other}() cannot be combined with other functions");
            return error(message);
        }
        let [first, between @ .., last] = args else {
            let got = args.len();
            return error(format!(
                "invalid number of arguments for {name}, expected at least 2, got {got}"
            ));
        };
        let Expr::Integer(limit) = *last else {
            return error(format!("expected integer as last argument in {name}(), found {last}"));
        };
        if limit <= 0 {
            return error(format!("limit ({limit}) in {name} function must be at least 1"));
        }
        if 0 < self.limit && (self.limit as i64) < limit {
            let most = self.limit;
            return error(format!(
                "limit ({limit}) in {name} function can not be larger than the LIMIT ({most}) in \
                 the select statement"
            ));
        }
        if !matches!(first, Expr::Var { .. }) {
            let message =
                format!("expected first argument to be a field in {name}(), found {first}");
            return error(message);
        }
        if let Some(other) = between.iter().find(|arg| !matches!(arg, Expr::Var { .. })) {
            return error(format!("only fields or tags are allowed in {name}(), found {other}"));
        }
        self.top_or_bottom = Some(name.to_string());
        Ok(())
    }

    fn transformation(&mut self, name: &str, args: &[Expr], may_be_star: bool) -> Result<()> {
        let got = args.len();
        match name {
            "derivative" | "non_negative_derivative" | "elapsed" => {
                if got == 0 || 2 < got {
                    return error(format!(
                        "invalid number of arguments for {name}, expected at least 1 but no more \
                         than 2, got {got}"
                    ));
                }
                match args.get(1) {
                    None => {}
                    Some(Expr::Duration(unit)) if *unit <= 0 => {
                        let unit = format_duration(*unit);
                        return error(format!("duration argument must be positive, got {unit}"));
                    }
                    Some(Expr::Duration(_)) => {}
                    Some(other) => {
                        let kind = go_type(other);
                        let message =
                            format!("second argument to {name} must be a duration, got {kind}");
                        return error(message);
                    }
                }
            }
            "moving_average" => {
                count_args(name, args, 2)?;
                match &args[1] {
                    Expr::Integer(count) if *count <= 1 => {
                        return error(format!(
                            "moving_average window must be greater than 1, got {count}"
                        ));
                    }
                    Expr::Integer(_) => {}
                    other => {
                        let kind = go_type(other);
                        return error(format!(
                            "second argument for moving_average must be an integer, got {kind}"
                        ));
                    }
                }
            }
            _ => count_args(name, args, 1)?,
        }
        self.has_aggregates = true;
        match &args[0] {
            Expr::Call { .. } if self.interval.is_zero() => {
                error(format!("{name} aggregate requires a GROUP BY interval"))
            }
            inner @ Expr::Call { .. } => self.expression(inner, may_be_star),
            _ if !self.interval.is_zero() && !self.is_interval_inherited => {
                error(format!("aggregate function required inside the call to {name}"))
            }
            arg => self.symbol(name, arg, may_be_star),
        }
    }

    fn holt_winters(&mut self, name: &str, args: &[Expr], may_be_star: bool) -> Result<()> {
        count_args(name, args, 3)?;
        match args[1] {
            Expr::Integer(count) if count <= 0 => {
                return error(format!("second arg to {name} must be greater than 0, got {count}"));
            }
            Expr::Integer(_) => {}
            _ => return error(format!("expected integer argument as second arg in {name}")),
        }
        match args[2] {
            Expr::Integer(count) if count < 0 => {
                return error(format!("third arg to {name} cannot be negative, got {count}"));
            }
            Expr::Integer(_) => {}
            _ => return error(format!("expected integer argument as third arg in {name}")),
        }
        self.has_aggregates = true;
        match &args[0] {
            Expr::Call { .. } if self.interval.is_zero() => {
                error(format!("{name} aggregate requires a GROUP BY interval"))
            }
            inner @ Expr::Call { .. } => self.expression(inner, may_be_star),
            _ => error(format!("must use aggregate function with {name}")),
        }
    }

    fn integral(&mut self, args: &[Expr], may_be_star: bool) -> Result<()> {
        let got = args.len();
        if got == 0 || 2 < got {
            return error(format!(
                "invalid number of arguments for integral, expected at least 1 but no more than 2, \
                 got {got}"
            ));
        }
        match args.get(1) {
            None => {}
            Some(Expr::Duration(unit)) if *unit <= 0 => {
                let unit = format_duration(*unit);
                return error(format!("duration argument must be positive, got {unit}"));
            }
            Some(Expr::Duration(_)) => {}
            Some(_) => return error("second argument must be a duration"),
        }
        self.has_aggregates = true;
        self.symbol("integral", &args[0], may_be_star)
    }

    fn check(&self, plan: &Plan) -> Result<()> {
        if plan.fields.is_empty() {
            return error("at least 1 non-time field must be queried");
        }
        if let Some(name) = &self.top_or_bottom
            && 1 < self.calls
        {
            let message =
                format!("selector function {name}() cannot be combined with other functions");
            return error(message);
        }
        if self.calls == 0 {
            match plan.fill {
                Fill::None => return error("fill(none) must be used with a function"),
                Fill::Linear => return error("fill(linear) must be used with a function"),
                _ => {}
            }
            if !plan.interval.is_zero() && !plan.is_interval_inherited {
                return error("GROUP BY requires at least one aggregate function");
            }
        }
        if self.has_distinct && (self.calls != 1 || self.has_variables) {
            return error(
                "aggregate function distinct() cannot be combined with other functions or fields",
            );
        }
        if self.has_variables && self.has_aggregates {
            return error("mixing aggregate and non-aggregate queries is not supported");
        }
        if self.has_variables && 1 < self.calls {
            return error(
                "mixing multiple selector functions with tags or fields is not supported",
            );
        }
        Ok(())
    }
}
