//! Types of PostgreSQL that arrow has as texts, as `uuid` and `varchar`, and arrays of them. A field of such a type has
//! the name of the type in its metadata ([`TYPE_KEY`]), which DataFusion loses in `CASE`, `COALESCE` and their like.
//! A cast to a field with the name restores it (<https://www.postgresql.org/docs/15/typeconv-union-case.html>).

use crate::catalog::regproc::{REGPROC, REGPROC_TEXT};
use crate::functions::json::jsonb_functions::call;
use crate::functions::told_apart::TOLD_APART;
use crate::types::casts::cast_functions::{JSON_IN, JSONB_IN};
use crate::types::casts::special_arrays::array_reader;
use crate::types::categories::is_open;
use crate::types::parameter_types::UUID_PARAMETER;
use crate::types::special_fields::{BPCHAR, JSON, JSONB, TYPE_KEY, UUID, VARCHAR, special_field};
use crate::types::uuids::uuid_in;
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::{Alias, Case, Placeholder, ScalarFunction};
use datafusion::logical_expr::{
    Cast, Expr, ExprSchemable as _, LogicalPlan, LogicalPlanBuilder, Projection, Union, lit,
};
use std::sync::Arc;

/// The name of the special type of a value, as `pg_typeof` shows it; none of other types.
pub fn type_name_literal(expr: &Expr, schema: &DFSchema) -> Option<Expr> {
    let Special(name) = resolve_type(expr, schema) else { return None };
    shown_type(&name).map(|shown| lit(ScalarValue::Utf8View(Some(shown.to_string()))))
}

fn shown_type(name: &str) -> Option<&'static str> {
    Some(match name {
        VARCHAR => "character varying",
        BPCHAR => "character",
        UUID => "uuid",
        JSONB => "jsonb",
        JSON => "json",
        "name" => "name",
        "oid" => "oid",
        "varchar[]" => "character varying[]",
        "bpchar[]" => "character[]",
        "uuid[]" => "uuid[]",
        "jsonb[]" => "jsonb[]",
        "json[]" => "json[]",
        _ => return None,
    })
}

/// A type as PostgreSQL resolves it among others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResolvedType {
    /// A literal in quotes, NULL or a parameter without a type: it takes the type of the others.
    Unknown,
    /// A type that arrow has, too.
    Plain,
    /// A type that a field names.
    Special(String),
}

use ResolvedType::{Plain, Special, Unknown};

fn type_of_field(field: &Field) -> ResolvedType {
    match field.metadata().get(TYPE_KEY) {
        Some(name) => Special(name.clone()),
        None => Plain,
    }
}

/// Resolves the type of an expression, whose field may have lost it.
pub fn resolve_type(expr: &Expr, schema: &DFSchema) -> ResolvedType {
    match expr {
        Expr::Alias(Alias { expr, metadata: None, .. }) => resolve_type(expr, schema),
        Expr::Placeholder(Placeholder { field: None, .. }) => Unknown,
        Expr::Literal(value, metadata) => {
            match metadata.as_ref().and_then(|one| one.inner().get(TYPE_KEY)) {
                Some(name) => Special(name.clone()),
                None if value.is_null() || value.data_type().is_string() => Unknown,
                None => Plain,
            }
        }
        Expr::Cast(Cast { field, .. }) => type_of_field(field),
        Expr::Case(case) => common_type(results_of(case), schema),
        Expr::ScalarFunction(called) => resolve_call(called, schema),
        other => other.to_field(schema).map_or(Plain, |(_, field)| type_of_field(&field)),
    }
}

/// Whether a value is of the special type of that name.
pub fn is_of_type(expr: &Expr, schema: &DFSchema, name: &str) -> bool {
    resolve_type(expr, schema) == Special(name.to_string())
}

/// The results of a `CASE` in PostgreSQL's order: ELSE is the first.
fn results_of(case: &Case) -> impl Iterator<Item = &Expr> {
    let thens = case.when_then_expr.iter().map(|(_, then)| &**then);
    case.else_expr.as_deref().into_iter().chain(thens)
}

/// The common type of several values: the first that is known.
pub fn common_type<'a>(values: impl Iterator<Item = &'a Expr>, schema: &DFSchema) -> ResolvedType {
    first_known(values.map(|one| resolve_type(one, schema)))
}

/// The first type that is known.
pub fn first_known(mut types: impl Iterator<Item = ResolvedType>) -> ResolvedType {
    types.find(|one| *one != Unknown).unwrap_or(Unknown)
}

fn resolve_call(called: &ScalarFunction, schema: &DFSchema) -> ResolvedType {
    match (called.func.name(), called.args.as_slice()) {
        ("coalesce" | "greatest" | "least", args) => common_type(args.iter(), schema),
        (TOLD_APART, [one, ..]) => resolve_type(one, schema),
        ("nullif", [one, other]) => {
            resolve_nullif(resolve_type(one, schema), resolve_type(other, schema))
        }
        ("make_array", args) => match common_type(args.iter(), schema) {
            Special(name) => Special(format!("{name}[]")),
            _ => Plain,
        },
        ("array_element", [list, _]) => match resolve_type(list, schema) {
            Special(name) => name.strip_suffix("[]").map_or(Plain, |of| Special(of.to_string())),
            _ => Plain,
        },
        _ => {
            let field = Expr::ScalarFunction(called.clone()).to_field(schema);
            field.map_or(Plain, |(_, field)| type_of_field(&field))
        }
    }
}

/// `NULLIF` has the type of the left side of the operator `=` that it calls: `varchar` has none of its own.
fn resolve_nullif(one: ResolvedType, other: ResolvedType) -> ResolvedType {
    let is_text = |one: &ResolvedType, name: &str| matches!(one, Special(of) if of == name);
    match (&one, &other) {
        (Unknown, Special(_)) if !is_text(&other, VARCHAR) => other,
        (Special(_), Plain) if is_text(&one, BPCHAR) => Plain,
        (Special(_), Special(_)) if is_text(&one, VARCHAR) && is_text(&other, BPCHAR) => other,
        (Special(_), _) if !is_text(&one, VARCHAR) => one,
        _ => Plain,
    }
}

/// Restores the special type of an expression that lost it, and reads literals beside a `jsonb` or `uuid` as such.
///
/// # Errors
/// Returns errors of the planner.
pub fn restore_type(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let expr = match expr {
        Expr::Case(case) => {
            let of = common_type(results_of(&case), schema);
            read_results(case, &of)
        }
        Expr::ScalarFunction(mut called) if loses_type(called.func.name()) => {
            if !["array_element", TOLD_APART].contains(&called.func.name()) {
                let of = common_type(called.args.iter(), schema);
                called.args = called.args.into_iter().map(|one| read_as(one, &of)).collect();
            }
            Expr::ScalarFunction(called)
        }
        other => return Ok(Transformed::no(other)),
    };
    match resolve_type(&expr, schema) {
        Special(name) => typed(expr, &name, schema),
        _ => Ok(Transformed::no(expr)),
    }
}

fn loses_type(name: &str) -> bool {
    ["coalesce", "greatest", "least", "nullif", "make_array", "array_element", TOLD_APART]
        .contains(&name)
}

fn read_results(case: Case, of: &ResolvedType) -> Expr {
    let Case { expr, when_then_expr, else_expr } = case;
    let read = |one: Box<Expr>| Box::new(read_as(*one, of));
    let when_then_expr =
        when_then_expr.into_iter().map(|(when, then)| (when, read(then))).collect();
    Expr::Case(Case { expr, when_then_expr, else_expr: else_expr.map(read) })
}

/// Reads a literal in quotes, or a parameter without a type, as a value of a type; returns other expressions as they are.
fn read_as(expr: Expr, of: &ResolvedType) -> Expr {
    let is_text = is_open(&expr);
    if let (Expr::Placeholder(Placeholder { id, field: None }), Special(name)) = (&expr, of)
        && name == UUID
    {
        let field = Some(Arc::new(Field::new(UUID, UUID_PARAMETER, true)));
        return uuid_in().call(vec![Expr::Placeholder(Placeholder { id: id.clone(), field })]);
    }
    match of {
        Special(name) if is_text && name == JSONB => call(JSONB_IN, vec![expr]),
        Special(name) if is_text && name == JSON => call(JSON_IN, vec![expr]),
        Special(name) if is_text && name == UUID => uuid_in().call(vec![expr]),
        Special(name) if is_text => match array_reader(name) {
            Some(reader) => reader.call(vec![expr]),
            None => expr,
        },
        _ => expr,
    }
}

/// An expression as one of a special type.
fn typed(expr: Expr, name: &str, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let (_, known) = expr.to_field(schema)?;
    let data_type = match known.data_type() {
        // An array of arrays has parts that are arrays.
        DataType::List(_) if !name.ends_with("[]") => return Ok(Transformed::no(expr)),
        DataType::List(_) | DataType::Int32 => known.data_type().clone(),
        // Literals alone have another kind of texts.
        ty if ty.is_string() || ty.is_null() => DataType::Utf8View,
        _ => return Ok(Transformed::no(expr)),
    };
    if type_of_field(&known) == Special(name.to_string()) {
        return Ok(Transformed::no(expr));
    }
    let field = special_field(name, name, data_type, known.is_nullable());
    Ok(Transformed::yes(Expr::Cast(Cast { expr: Box::new(expr), field: Arc::new(field) })))
}

/// Restores the special types of a union's columns. DataFusion keeps the metadata that all inputs share.
///
/// # Errors
/// Returns errors of the planner.
pub fn restore_union(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Union(union) = &node else { return Ok(Transformed::no(node)) };
    let count = node.schema().fields().len();
    let types = |at: usize| union.inputs.iter().map(move |one| column_type(one, at));
    let wanted = (0..count).map(|at| {
        let known = node.schema().field(at);
        let of = first_known(types(at));
        let is_lost = of != type_of_field(known) || types(at).any(|one| one == Unknown);
        (known.data_type().is_string() && of != Unknown && is_lost).then_some(of)
    });
    let wanted: Vec<Option<ResolvedType>> = wanted.collect();
    if wanted.iter().all(Option::is_none) {
        return Ok(Transformed::no(node));
    }
    let inputs = union.inputs.iter().map(|one| read_columns(one, &wanted).map(Arc::new));
    let node = Union::try_new_with_loose_types(inputs.collect::<Result<_>>()?)?;
    let node = LogicalPlan::Union(node);
    let columns = node.schema().iter().zip(&wanted).map(|((table, known), wanted)| {
        let column = Expr::from((table, known));
        let field = match wanted {
            None => return column,
            Some(Special(name)) => {
                special_field(name, name, DataType::Utf8View, known.is_nullable())
            }
            Some(_) => Field::new("text", DataType::Utf8View, known.is_nullable()),
        };
        let cast = Expr::Cast(Cast { expr: Box::new(column), field: Arc::new(field) });
        cast.alias_qualified(table.cloned(), known.name())
    });
    let columns: Vec<Expr> = columns.collect();
    Ok(Transformed::yes(LogicalPlanBuilder::from(node).project(columns)?.build()?))
}

/// Restores the special types of the elements that an array becomes rows of.
///
/// # Errors
/// Returns errors of the planner.
pub fn restore_unnest(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Unnest(unnest) = &node else { return Ok(Transformed::no(node)) };
    let lists = unnest.input.schema();
    let element = |at: usize| {
        let of = lists.field(at).metadata().get(TYPE_KEY)?.strip_suffix("[]")?;
        let is_list =
            unnest.list_type_columns.iter().any(|(list, one)| *list == at && one.depth == 1);
        is_list.then(|| of.to_string())
    };
    let types: Vec<Option<String>> =
        unnest.dependency_indices.iter().map(|at| element(*at)).collect();
    if types.iter().all(Option::is_none) {
        return Ok(Transformed::no(node));
    }
    let columns = node.schema().iter().zip(&types).map(|((table, known), of)| {
        let column = Expr::from((table, known));
        let Some(of) = of else { return column };
        let field = special_field(of, of, known.data_type().clone(), true);
        let cast = Expr::Cast(Cast { expr: Box::new(column), field: Arc::new(field) });
        cast.alias_qualified(table.cloned(), known.name())
    });
    let columns: Vec<Expr> = columns.collect();
    Ok(Transformed::yes(LogicalPlanBuilder::from(node).project(columns)?.build()?))
}

/// Reads the quoted literals of a projection as values of the wanted types.
fn read_columns(plan: &LogicalPlan, wanted: &[Option<ResolvedType>]) -> Result<LogicalPlan> {
    let LogicalPlan::Projection(made) = plan else { return Ok(plan.clone()) };
    let columns = made.expr.iter().zip(wanted).zip(plan.schema().iter());
    let columns =
        columns.map(|((expr, wanted), (table, known))| match (wanted, expr.clone().unalias()) {
            (Some(of), literal @ Expr::Literal(..)) => {
                read_as(literal, of).alias_qualified(table.cloned(), known.name())
            }
            _ => expr.clone(),
        });
    let columns: Vec<Expr> = columns.collect();
    let made = Projection::try_new(columns, made.input.clone())?;
    Ok(LogicalPlan::Projection(made))
}

/// The type of a column of a plan, by the expression that makes it.
pub fn column_type(plan: &LogicalPlan, at: usize) -> ResolvedType {
    match plan {
        LogicalPlan::Projection(made) => match made.expr.get(at) {
            Some(expr) => resolve_type(expr, made.input.schema()),
            None => Plain,
        },
        LogicalPlan::Sort(sort) => column_type(&sort.input, at),
        LogicalPlan::Limit(limit) => column_type(&limit.input, at),
        other => type_of_field(other.schema().field(at)),
    }
}

/// A cast of a `regproc` to a text; none of other casts.
pub fn regproc_cast(value: &Expr, to: &DataType, schema: &DFSchema) -> Option<Expr> {
    let is_text = to.is_string() && is_of_type(value, schema, REGPROC);
    is_text.then(|| REGPROC_TEXT.call(vec![value.clone()]))
}

/// Whether an expression is a `jsonb`.
///
/// # Errors
/// When nothing is known of it, as of a parameter that no type was given.
pub fn is_jsonb(expr: &Expr, schema: &DFSchema) -> Result<bool> {
    if !matches!(expr, Expr::Cast(_) | Expr::TryCast(_)) {
        expr.to_field(schema)?;
    }
    let of = resolve_type(expr, schema);
    Ok(matches!(of, Special(name) if name == JSONB || name == JSON))
}

/// Whether an expression is a `uuid`, and no parameter.
pub fn is_uuid(side: &Expr, schema: &DFSchema) -> bool {
    let Ok((_, field)) = side.to_field(schema) else { return false };
    !matches!(side, Expr::Placeholder(_))
        && field.metadata().get(TYPE_KEY).is_some_and(|name| name == "uuid")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_known_type_is_the_common_one() {
        let special = |name: &str| Special(name.to_string());
        let of = |types: &[ResolvedType]| first_known(types.iter().cloned());
        assert_eq!(of(&[Unknown, special(VARCHAR), Plain]), special(VARCHAR));
        assert_eq!(of(&[Plain, special(VARCHAR)]), Plain);
        assert_eq!(of(&[Unknown, Unknown]), Unknown);
        assert_eq!(resolve_type(&lit("a"), &DFSchema::empty()), Unknown);
        assert_eq!(resolve_type(&lit(1), &DFSchema::empty()), Plain);
    }

    #[test]
    fn nullif_has_the_type_of_its_operator() {
        let special = |name: &str| Special(name.to_string());
        for (one, other, expected) in [
            (special(VARCHAR), special(VARCHAR), Plain),
            (special(BPCHAR), special(BPCHAR), special(BPCHAR)),
            (special(BPCHAR), special(VARCHAR), special(BPCHAR)),
            (special(VARCHAR), special(BPCHAR), special(BPCHAR)),
            (special(BPCHAR), Plain, Plain),
            (Plain, special(BPCHAR), Plain),
            (Unknown, special(UUID), special(UUID)),
            (special(UUID), Unknown, special(UUID)),
            (special(JSONB), special(JSONB), special(JSONB)),
        ] {
            let shown = format!("{one:?} {other:?}");
            assert_eq!(resolve_nullif(one, other), expected, "{shown}");
        }
    }
}
