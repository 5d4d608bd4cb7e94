//! What clients say of the types of parameters. Such a parameter is planned as a value of its type; one of which nothing
//! is said is taken for what stands beside it, as PostgreSQL does.
//!
//! DataFusion's planner is told of the types of the first parameters, `$1` and so on, up to some. So those that are
//! declared are called by the first numbers while it plans.

use crate::context::Context;
use crate::hidden::Hidden;
use crate::rewrite::{
    JSONB_IN, JSONB_PARAMETER, UUID_PARAMETER, call, rename_outer_relations, text_array,
};
use crate::statements::Query;
use crate::uuids::UUID_IN;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{
    Transformed, TransformedResult as _, TreeNode as _, TreeNodeRecursion,
};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::expr::Placeholder;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, ExprSchemable as _, LogicalPlan, Statement as Planned};
use datafusion::sql::parser;
use datafusion::sql::sqlparser::ast::{
    self, ArrayElemTypeDef, DataType as SqlType, ExactNumberInfo, Ident, Statement, TimezoneInfo,
    Value, ValueWithSpan, VisitMut, VisitorMut,
};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;

/// Types of parameters, by their names: `$1` and so on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Declared(Arc<BTreeMap<String, DataType>>);

impl Declared {
    /// Those of the first, the second and so on, where they are said and known here.
    pub fn new(types: impl IntoIterator<Item = Option<DataType>>) -> Declared {
        let named = types.into_iter().enumerate();
        let named = named.filter_map(|(at, ty)| Some((format!("${}", at + 1), ty?)));
        let is_known = |ty: &DataType| sql_type(ty).is_some() || reader(ty).is_some();
        Declared(Arc::new(named.filter(|(_, ty)| is_known(ty)).collect()))
    }

    /// Whether anything is said of a parameter.
    pub fn says(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// A statement that says the types, and what its parameters are called otherwise.
    fn said(
        &self,
        mut statement: Statement,
        parameters: &BTreeSet<String>,
    ) -> (Statement, BTreeMap<String, String>) {
        let mut reads = Reads(&self.0);
        let _: ControlFlow<()> = VisitMut::visit(&mut statement, &mut reads);
        let type_of = |name: &String| self.0.get(name).and_then(sql_type);
        let (said, others): (Vec<&String>, Vec<&String>) =
            parameters.iter().partition(|name| type_of(name).is_some());
        let types = said.iter().filter_map(|name| type_of(name));
        let data_types: Vec<SqlType> = types.collect();
        if data_types.is_empty() {
            return (statement, BTreeMap::new());
        }
        let numbered = said.into_iter().chain(others).enumerate();
        let named = numbered.map(|(at, name)| (name.clone(), format!("${}", at + 1)));
        let mut names = Names(named.collect());
        let _: ControlFlow<()> = VisitMut::visit(&mut statement, &mut names);
        let (name, statement) = (Ident::new("parameters"), Box::new(statement));
        let back = names.0.into_iter().map(|(own, other)| (other, own)).collect();
        (Statement::Prepare { name, data_types, statement }, back)
    }
}

/// Reads parameters of types that arrow has as texts: `$1` becomes `jsonb_in($1)`.
struct Reads<'a>(&'a BTreeMap<String, DataType>);

impl VisitorMut for Reads<'_> {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut ast::Expr) -> ControlFlow<()> {
        if let ast::Expr::Value(value) = expr
            && let Value::Placeholder(name) = &value.value
            && let Some(function) = self.0.get(name).and_then(reader)
        {
            *expr = call(function, vec![expr.clone()]);
        }
        ControlFlow::Continue(())
    }
}

/// The function that reads a text as a type.
fn reader(ty: &DataType) -> Option<&'static str> {
    match ty {
        ty if *ty == JSONB_PARAMETER => Some(JSONB_IN),
        ty if *ty == UUID_PARAMETER => Some(UUID_IN),
        _ => None,
    }
}

/// New names of parameters.
struct Names(BTreeMap<String, String>);

impl VisitorMut for Names {
    type Break = ();

    fn pre_visit_value(&mut self, value: &mut ValueWithSpan) -> ControlFlow<()> {
        if let Value::Placeholder(name) = &mut value.value
            && let Some(other) = self.0.get(name)
        {
            name.clone_from(other);
        }
        ControlFlow::Continue(())
    }
}

/// Plans a query; what it is told of its parameters holds. Where the planner takes a relation of an outer query for a
/// column, relations that are named within subqueries get names that no column has.
///
/// # Errors
/// When it makes no sense.
pub(crate) async fn planned(context: &Hidden<Context>, query: &Query) -> Result<LogicalPlan> {
    match planned_once(context, query, false).await {
        Ok(plan) if !names_part(&plan)? => Ok(plan),
        Err(error) if !error.find_root().strip_backtrace().contains("Cannot access field") => {
            Err(error)
        }
        _ => planned_once(context, query, true).await,
    }
}

/// Whether the planner took `x.y` for a part of a column that has none.
fn names_part(plan: &LogicalPlan) -> Result<bool> {
    let mut is_found = false;
    plan.apply_with_subqueries(|node| {
        let schema = merge_schema(&node.inputs());
        node.apply_expressions(|expr| {
            let is_part = |one: &Expr| match one {
                Expr::ScalarFunction(called) if called.name() == "get_field" => {
                    called.args.first().is_some_and(|of| {
                        let ty = of.get_type(&schema);
                        ty.is_ok_and(|ty| !ty.is_nested() && !ty.is_null())
                    })
                }
                _ => false,
            };
            is_found |= expr.exists(|one| Ok(is_part(one)))?;
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    Ok(is_found)
}

async fn planned_once(
    context: &Hidden<Context>,
    query: &Query,
    is_renamed: bool,
) -> Result<LogicalPlan> {
    let rephrased = query.rephrased();
    let said = query.declared().said(rephrased.statement.clone(), &rephrased.parameters);
    let (statement, names) = said;
    let mut statement = statement;
    if is_renamed {
        let renamed = rename_outer_relations(&mut statement);
        renamed.map_err(|error| DataFusionError::External(Box::new(error)))?;
    }
    let statement = parser::Statement::Statement(Box::new(statement));
    let plan = match rephrased.is_reusable {
        true => context.state().statement_to_plan(statement).await?,
        // Arguments of functions in FROM are worked out while it is planned, `now()` among them.
        false => context.plan_now(statement).await?,
    };
    match plan {
        LogicalPlan::Statement(Planned::Prepare(prepare)) => {
            renamed(Arc::unwrap_or_clone(prepare.input), &names)
        }
        other => Ok(other),
    }
}

/// Gives parameters their names again.
fn renamed(plan: LogicalPlan, names: &BTreeMap<String, String>) -> Result<LogicalPlan> {
    if names.iter().all(|(other, own)| other == own) {
        return Ok(plan);
    }
    let named = |expr: Expr| match expr {
        Expr::Placeholder(Placeholder { id, field }) => {
            let id = names.get(&id).cloned().unwrap_or(id);
            Ok(Transformed::yes(Expr::Placeholder(Placeholder { id, field })))
        }
        other => Ok(Transformed::no(other)),
    };
    plan.transform_up_with_subqueries(|node| {
        let kept = NamePreserver::new(&node);
        node.map_expressions(|expr| {
            let name = kept.save(&expr);
            Ok(expr.transform_up(named)?.update_data(|expr| name.restore(expr)))
        })
    })
    .data()
}

/// A type in SQL's words; none of those that are read as what they stand beside.
fn sql_type(ty: &DataType) -> Option<SqlType> {
    Some(match ty {
        DataType::Boolean => SqlType::Boolean,
        DataType::Int16 => SqlType::SmallInt(None),
        DataType::Int32 => SqlType::Int(None),
        DataType::Int64 => SqlType::BigInt(None),
        DataType::Float32 => SqlType::Real,
        DataType::Float64 => SqlType::DoublePrecision,
        DataType::Decimal128(..) | DataType::Decimal256(..) => {
            SqlType::Numeric(ExactNumberInfo::None)
        }
        DataType::Date32 => SqlType::Date,
        DataType::Timestamp(_, zone) => {
            let zone = match zone {
                Some(_) => TimezoneInfo::WithTimeZone,
                None => TimezoneInfo::WithoutTimeZone,
            };
            SqlType::Timestamp(None, zone)
        }
        DataType::Time64(_) => SqlType::Time(None, TimezoneInfo::None),
        DataType::Interval(_) => SqlType::Interval { fields: None, precision: None },
        DataType::Binary => SqlType::Bytea,
        DataType::List(of) if of.data_type().is_string() => text_array(),
        DataType::List(of) => {
            let of = Box::new(sql_type(of.data_type())?);
            SqlType::Array(ArrayElemTypeDef::SquareBracket(of, None))
        }
        _ => return None,
    })
}
