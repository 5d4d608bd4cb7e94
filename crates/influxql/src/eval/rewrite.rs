//! Types of variables, and stars and patterns replaced by what there is.

use super::plan::{Plan, PlanSource, name_of};
use super::{Evaluator, Result};
use crate::ast::{DataType, Expr, Field, Star};
use crate::source::{EvalError, Place};
use crate::token::Op;
use crate::value::{Value, binary};
use model::TimeRange;
use std::collections::{BTreeMap, BTreeSet};

/// Fields and tags of what a plan reads.
#[derive(Default)]
struct Known {
    fields: BTreeMap<String, DataType>,
    tags: BTreeSet<String>,
}

/// What is done about a variable that is no field.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NoField {
    /// Whether it is a tag is looked up, which takes a while.
    LookUp,
    /// A condition takes what it does not know for a tag, whether there is such a tag or not.
    Unknown,
}

impl Evaluator<'_> {
    /// The plan with types and without stars.
    pub(super) fn rewrite(&self, mut plan: Plan) -> Result<Plan> {
        for source in &mut plan.sources {
            if let PlanSource::Query(inner) = source {
                **inner = self.rewrite((**inner).clone())?;
            }
        }
        self.set_types(&mut plan)?;
        let has_star = plan.fields.iter().any(|field| has_star(&field.expr));
        let has_group_star =
            plan.dimensions.iter().any(|d| matches!(d, Expr::Star(_) | Expr::Regex(_)));
        if has_star || has_group_star {
            let known = self.known(&plan)?;
            expand(&mut plan, known, has_group_star)?;
        }
        Ok(plan)
    }

    fn set_types(&self, plan: &mut Plan) -> Result<()> {
        let mut failure = None;
        let sources = std::mem::take(&mut plan.sources);
        let mut range = plan.range;
        range.1 = range.1.max(range.0);
        let mut set = |expr: &mut Expr, unknown: NoField| {
            let Expr::Var { name, kind } = expr else { return };
            if !matches!(kind, DataType::Unknown | DataType::AnyField) || name == "time" {
                return;
            }
            match self.type_of_variable(name, &sources, range, unknown) {
                Ok(DataType::Tag) if *kind == DataType::AnyField => {}
                Ok(found) => *kind = found,
                Err(error) => failure = Some(error),
            }
        };
        for field in &mut plan.fields {
            field.expr.change(&mut |expr| set(expr, NoField::LookUp));
        }
        if let Some(condition) = &mut plan.condition {
            condition.change(&mut |expr| set(expr, NoField::Unknown));
        }
        plan.sources = sources;
        failure.map_or(Ok(()), Err)
    }

    fn type_of_variable(
        &self,
        name: &str,
        sources: &[PlanSource],
        range: (i64, i64),
        no_field: NoField,
    ) -> Result<DataType> {
        let mut found = DataType::Unknown;
        for source in sources {
            match source {
                PlanSource::Measurement { .. } => {
                    for (database, measurement) in self.measurements_of(source)? {
                        let fields = self.fields(&database, &measurement)?;
                        let kind = match fields.get(name) {
                            Some(kind) => *kind,
                            None if no_field == NoField::Unknown => continue,
                            None if found != DataType::Unknown || fields.is_empty() => continue,
                            None => {
                                let keys = self.tag_keys(&database, &measurement, range)?;
                                match keys.binary_search_by(|key| key.as_str().cmp(name)) {
                                    Ok(_) => DataType::Tag,
                                    Err(_) => continue,
                                }
                            }
                        };
                        found = found.min(kind);
                    }
                }
                PlanSource::Query(inner) => {
                    let field = inner.fields.iter().find(|field| output_name(field) == name);
                    let kind = match field {
                        Some(field) => type_of(&field.expr),
                        None if inner.tag_names().iter().any(|tag| tag == name) => DataType::Tag,
                        None => extra_type(inner, name),
                    };
                    found = found.min(kind);
                }
            }
        }
        Ok(found)
    }

    fn known(&self, plan: &Plan) -> Result<Known> {
        let mut known = Known::default();
        for source in &plan.sources {
            match source {
                PlanSource::Measurement { .. } => {
                    for (database, measurement) in self.measurements_of(source)? {
                        for (name, kind) in self.fields(&database, &measurement)?.iter() {
                            let entry = known.fields.entry(name.clone()).or_default();
                            *entry = (*entry).min(*kind);
                        }
                        let (database, measurement) = (database.as_str(), measurement.as_str());
                        let range = TimeRange::new(plan.range.0, plan.range.1);
                        let place = Place { database, measurement, range };
                        known.tags.extend(self.source.all_tag_keys(&place)?);
                    }
                }
                PlanSource::Query(inner) => {
                    for field in &inner.fields {
                        let kind = type_of(&field.expr);
                        let entry = known.fields.entry(output_name(field)).or_default();
                        *entry = (*entry).min(kind);
                    }
                    known.tags.extend(inner.tag_names());
                }
            }
        }
        Ok(known)
    }
}

/// The type of the values of an expression whose variables have been told theirs: those of a subquery
/// have, and asking again at each level would take twice as long with each.
fn type_of(expr: &Expr) -> DataType {
    checked_type(expr).unwrap_or(DataType::Unknown)
}

/// Fails for arithmetic of what does not go together, in InfluxDB's words.
pub(super) fn check_types(plan: &Plan) -> Result<()> {
    plan.fields.iter().try_for_each(|field| checked_type(&field.expr).map(|_| ()))
}

fn checked_type(expr: &Expr) -> Result<DataType> {
    Ok(match expr {
        Expr::Var { kind: DataType::AnyField, .. } => DataType::Unknown,
        Expr::Var { kind, .. } => *kind,
        Expr::Call { name, args } => {
            let first = args.first().map_or(Ok(DataType::Unknown), checked_type)?;
            args.iter().skip(1).try_for_each(|arg| checked_type(arg).map(|_| ()))?;
            type_of_call(name, first)
        }
        Expr::Paren(inner) => checked_type(inner)?,
        Expr::Binary { op, left, right } => match (checked_type(left)?, checked_type(right)?) {
            (DataType::Unknown, kind) | (kind, DataType::Unknown) => kind,
            (a, b) => {
                let (Some(a_zero), Some(b_zero)) = (zero(a), zero(b)) else {
                    return Ok(DataType::Unknown);
                };
                // Both of a division's sides may be whole: it is taken for whole, and is none.
                let op = if *op == Op::Div { Op::Mul } else { *op };
                match binary(op, &a_zero, &b_zero) {
                    Value::Float(_) => DataType::Float,
                    Value::Integer(_) => DataType::Integer,
                    Value::Boolean(_) => DataType::Boolean,
                    _ => {
                        let (a, b) = (a.as_str(), b.as_str());
                        let message =
                            format!("type error: {expr}: incompatible types: {a} and {b}");
                        return Err(EvalError::new(message));
                    }
                }
            }
        },
        Expr::Number(_) => DataType::Float,
        Expr::Integer(_) => DataType::Integer,
        Expr::Boolean(_) => DataType::Boolean,
        Expr::Text(_) => DataType::String,
        _ => DataType::Unknown,
    })
}

/// A value of a type.
fn zero(kind: DataType) -> Option<Value> {
    Some(match kind {
        DataType::Float => Value::Float(0.0),
        DataType::Integer | DataType::Unsigned => Value::Integer(0),
        DataType::String | DataType::Tag => Value::text(""),
        DataType::Boolean => Value::Boolean(false),
        _ => return None,
    })
}

/// The name of a column before doubles get a number.
pub(super) fn output_name(field: &Field) -> String {
    field.alias.clone().unwrap_or_else(|| name_of(&field.expr))
}

/// The type of a column that `top` or `bottom` brings along.
fn extra_type(inner: &Plan, name: &str) -> DataType {
    for field in &inner.fields {
        for extra in super::plan::extra_columns(&field.expr) {
            if let Expr::Var { name: other, kind } = extra
                && other == name
            {
                return *kind;
            }
        }
    }
    DataType::Unknown
}

/// The type of a function's values.
pub(super) fn type_of_call(name: &str, arg: DataType) -> DataType {
    match name {
        "count" | "elapsed" => DataType::Integer,
        "mean"
        | "median"
        | "stddev"
        | "integral"
        | "derivative"
        | "non_negative_derivative"
        | "moving_average"
        | "holt_winters"
        | "holt_winters_with_fit" => DataType::Float,
        // Those of one row, too: a root of whole numbers is taken for one, and is none.
        _ => arg,
    }
}

fn has_star(expr: &Expr) -> bool {
    match expr {
        Expr::Star(_) | Expr::Regex(_) => true,
        Expr::Call { args, .. } => args.iter().any(has_star),
        Expr::Binary { left, right, .. } => has_star(left) || has_star(right),
        Expr::Paren(inner) => has_star(inner),
        _ => false,
    }
}

fn expand(plan: &mut Plan, mut known: Known, has_group_star: bool) -> Result<()> {
    if !has_group_star {
        for dimension in &plan.dimensions {
            if let Expr::Var { name, .. } = dimension {
                known.tags.remove(name);
            }
        }
    }
    let mut variables: Vec<(String, DataType)> = Vec::new();
    if !known.fields.is_empty() {
        variables.extend(known.fields.iter().map(|(name, kind)| (name.clone(), *kind)));
        if !has_group_star {
            variables.extend(known.tags.iter().map(|name| (name.clone(), DataType::Tag)));
        }
        variables.sort();
    }
    let mut fields = Vec::new();
    for field in std::mem::take(&mut plan.fields) {
        expand_field(field, &variables, &mut fields)?;
    }
    plan.fields = fields;
    let mut dimensions = Vec::new();
    for dimension in std::mem::take(&mut plan.dimensions) {
        match dimension {
            Expr::Star(_) => dimensions.extend(known.tags.iter().map(Expr::var)),
            Expr::Regex(regex) => {
                let matching = known.tags.iter().filter(|name| regex.regex().is_match(name));
                dimensions.extend(matching.map(Expr::var));
            }
            other => dimensions.push(other),
        }
    }
    plan.dimensions = dimensions;
    Ok(())
}

fn expand_field(
    field: Field,
    variables: &[(String, DataType)],
    out: &mut Vec<Field>,
) -> Result<()> {
    let var = |(name, kind): &(String, DataType)| Field {
        expr: Expr::Var { name: name.clone(), kind: *kind },
        alias: None,
    };
    match &field.expr {
        Expr::Star(star) => {
            let wanted = variables.iter().filter(|(_, kind)| match star {
                Star::All => true,
                Star::Fields => *kind != DataType::Tag,
                Star::Tags => *kind == DataType::Tag,
            });
            out.extend(wanted.map(var));
        }
        Expr::Regex(regex) => {
            out.extend(variables.iter().filter(|(name, _)| regex.regex().is_match(name)).map(var));
        }
        Expr::Call { .. } if has_star(&field.expr) => expand_call(&field, variables, out)?,
        Expr::Binary { .. } if has_star(&field.expr) => {
            let expr = &field.expr;
            return Err(EvalError::new(format!("unsupported expression with wildcard: {expr}")));
        }
        _ => out.push(field),
    }
    Ok(())
}

/// The star of a function's first argument, or that of the function in it.
fn star_of<'e>(expr: &'e mut Expr, function: &mut String) -> Option<&'e mut Expr> {
    let Expr::Call { name, args } = expr else { return None };
    function.clone_from(name);
    let first = args.first_mut()?;
    match first {
        Expr::Star(_) | Expr::Regex(_) => Some(first),
        Expr::Call { .. } => star_of(first, function),
        _ => None,
    }
}

/// Whether a function is of strings, too.
pub(super) fn takes_text(function: &str) -> bool {
    matches!(function, "count" | "first" | "last" | "distinct" | "elapsed" | "mode" | "sample")
}

/// What InfluxDB calls a function that is not of booleans, where it refuses them.
pub(super) fn refusal_of_truths(function: &str) -> Option<&str> {
    match function {
        "mean" | "sum" | "median" | "spread" | "stddev" | "integral" | "percentile" | "top"
        | "bottom" => Some(function),
        "derivative" | "non_negative_derivative" => Some("derivative"),
        "difference" | "non_negative_difference" => Some("difference"),
        "moving_average" => Some("moving average"),
        "cumulative_sum" => Some("cumulative sum"),
        "holt_winters" | "holt_winters_with_fit" => Some("elapsed"),
        _ => None,
    }
}

fn expand_call(
    field: &Field,
    variables: &[(String, DataType)],
    out: &mut Vec<Field>,
) -> Result<()> {
    let mut function = String::new();
    for (name, kind) in variables.iter().filter(|(_, kind)| *kind != DataType::Tag) {
        let mut expr = field.expr.clone();
        let Some(star) = star_of(&mut expr, &mut function) else {
            out.push(field.clone());
            return Ok(());
        };
        let regex = match star {
            Expr::Star(Star::Tags) => {
                let message = format!("unable to use tag wildcard in {function}()");
                return Err(EvalError::new(message));
            }
            Expr::Regex(regex) => Some(regex.clone()),
            _ => None,
        };
        let takes_text = takes_text(&function);
        let takes_booleans = takes_text || matches!(function.as_str(), "min" | "max");
        let fits = match kind {
            DataType::String => takes_text,
            DataType::Boolean => takes_booleans,
            kind => kind.is_number(),
        };
        if !fits || regex.is_some_and(|regex| !regex.regex().is_match(name)) {
            continue;
        }
        *star = Expr::Var { name: name.clone(), kind: *kind };
        let alias = Some(format!("{}_{name}", output_name(field)));
        out.push(Field { expr, alias });
    }
    Ok(())
}
