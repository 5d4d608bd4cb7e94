//! A statement that is ready to be run: by a plan, or straight from what was read of it.

use crate::functions::text::like_patterns::without_checks;
use crate::parse::explain_options::Shape;
use crate::parse::query::{Query, Rephrased};
use crate::parse::rewrite::rewriter::Hints;
use crate::plan::context::Context;
use crate::plan::explain;
use crate::plan::passes::logical;
use crate::plan::straight::Straight;
use crate::plan::typing::common_types;
use crate::tables::heap::scan::Ordinary;
use crate::tables::heap::view::{ReadsTables, View};
use crate::types::categories::Category;
use crate::types::error::SqlError;
use crate::types::hidden::Hidden;
use crate::types::traversal::{PlanTraversal as _, Traversal as _};
use ::tables::Schema;
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::ScalarValue;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::DefaultTableSource;
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::sqlparser::ast;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A statement that is planned.
#[derive(Clone, Debug)]
pub struct Statement(Hidden<Planned>);

/// Its parts.
#[derive(Debug)]
struct Planned {
    way: Way,
    /// How it is shown, where it is explained and not run.
    explained: Option<Shape>,
    hints: Hints,
    parameters: BTreeSet<String>,
    is_reusable: bool,
    locks: bool,
    /// Charges a long plan.
    _memory: Option<MemoryReservation>,
}

/// How a statement is answered.
#[derive(Debug)]
enum Way {
    /// By a plan.
    Plan(Box<LogicalPlan>),
    /// By what was read of it.
    Straight(Box<Straight>),
}

/// A statement that needs no plan.
pub(crate) fn straight(view: &Arc<View>, query: &Query) -> Option<Statement> {
    if query.rephrased().explained.is_some() {
        return None;
    }
    let straight = Straight::of(view, query)?;
    Some(Statement(Hidden::new(Planned {
        way: Way::Straight(Box::new(straight)),
        explained: None,
        hints: Hints::new(),
        parameters: BTreeSet::new(),
        is_reusable: true,
        locks: false,
        _memory: None,
    })))
}

/// What was planned, with its parameters.
pub(crate) async fn with_parameters(
    context: &Hidden<Context>,
    statement: &Statement,
    parameters: Vec<ScalarValue>,
) -> Result<LogicalPlan, SqlError> {
    let plan = match &statement.0.way {
        Way::Plan(plan) => LogicalPlan::clone(plan),
        Way::Straight(straight) => logical(context, straight.query()).await?,
    };
    match parameters.is_empty() {
        true => Ok(plan),
        false => Ok(without_checks(plan.with_param_values(parameters)?)?),
    }
}

impl ReadsTables for Statement {
    fn locks(&self) -> bool {
        self.0.locks
    }

    fn tables(&self) -> Vec<Arc<str>> {
        self.relied_on().into_iter().map(|(name, _)| name).collect()
    }
}

impl Statement {
    /// One that was planned.
    pub(crate) fn planned(
        plan: LogicalPlan,
        rephrased: &Rephrased,
        is_reusable: bool,
        memory: Option<MemoryReservation>,
    ) -> Statement {
        let statement = &rephrased.statement;
        let locks = matches!(statement, ast::Statement::Query(query) if !query.locks.is_empty());
        Statement(Hidden::new(Planned {
            way: Way::Plan(Box::new(plan)),
            explained: rephrased.explained,
            hints: rephrased.hints.clone(),
            parameters: rephrased.parameters.clone(),
            is_reusable,
            locks,
            _memory: memory,
        }))
    }

    /// Whether its plan says the same at another time.
    pub fn is_reusable(&self) -> bool {
        self.0.is_reusable
    }

    /// Whether it says something else of each row, as `random()` does.
    pub(crate) fn is_volatile(&self) -> bool {
        let Way::Plan(plan) = &self.0.way else { return false };
        let found = plan.exists(|node| {
            Ok(node.expressions().iter().any(datafusion::logical_expr::Expr::is_volatile))
        });
        found.unwrap_or(true)
    }

    /// The category and the name of the type of a column of its rows; none if a client's text may be read as any type.
    pub(crate) fn known_type(&self, at: usize) -> Option<(Category, String)> {
        match &self.0.way {
            Way::Plan(plan) => common_types::column_type(plan, at),
            Way::Straight(_) => None,
        }
    }

    /// What was read of it, if it needs no plan.
    pub(crate) fn straight(&self) -> Option<&Straight> {
        match &self.0.way {
            Way::Plan(_) => None,
            Way::Straight(straight) => Some(straight),
        }
    }

    /// How it is shown, where it is explained and not run.
    pub(crate) fn explained(&self) -> Option<Shape> {
        self.0.explained
    }

    /// Its columns.
    pub fn schema(&self) -> SchemaRef {
        if self.0.explained.is_some() {
            return explain::schema();
        }
        match &self.0.way {
            Way::Plan(plan) => plan.schema().inner().clone(),
            Way::Straight(straight) => straight.schema().clone(),
        }
    }

    /// Whether the ordinary tables that it reads are as they were when it was planned.
    pub(crate) fn is_current(&self, view: &View) -> bool {
        let is_as_it_was = |(name, seen): &(Arc<str>, Arc<Schema>)| {
            view.get(name).is_some_and(|table| *table.schema() == **seen)
        };
        self.relied_on().iter().all(is_as_it_was)
    }

    /// The ordinary tables that it reads, and what they looked like.
    fn relied_on(&self) -> Vec<(Arc<str>, Arc<Schema>)> {
        let plan = match &self.0.way {
            Way::Plan(plan) => plan,
            Way::Straight(straight) => return straight.relied_on(),
        };
        let mut all = Vec::new();
        // What is given to it says nothing but that it goes on.
        let _ = plan.visit_plans(|node| {
            if let LogicalPlan::TableScan(scan) = node
                && let Some(source) = scan.source.downcast_ref::<DefaultTableSource>()
                && let Some(table) = source.table_provider.downcast_ref::<Ordinary>()
            {
                all.extend(table.relied_on());
            }
            Ok(TreeNodeRecursion::Continue)
        });
        all
    }

    /// Its parameters, `$1` and so on, with their types as far as they are known.
    ///
    /// # Errors
    /// When the plan makes no sense.
    pub(crate) fn parameter_types(&self) -> Result<BTreeMap<String, Option<DataType>>, SqlError> {
        let Planned { way, hints, parameters, .. } = &*self.0;
        let mut known = match way {
            Way::Plan(plan) => plan.get_parameter_types()?,
            Way::Straight(_) => Default::default(),
        };
        known.extend(
            parameters
                .iter()
                .filter(|one| !known.contains_key(*one))
                .map(|one| (one.clone(), None))
                .collect::<Vec<_>>(),
        );
        Ok(known
            .into_iter()
            .map(|(name, known)| {
                let hinted = hints.get(&name).cloned();
                (name, hinted.or(known))
            })
            .collect())
    }

    /// The types of `$1`, `$2`, ..., as far as they are known.
    ///
    /// # Errors
    /// When the plan makes no sense, or one between others is never used.
    pub fn parameters(&self) -> Result<Vec<Option<DataType>>, SqlError> {
        in_order(self.parameter_types()?)
    }
}

/// Parameters in their order.
///
/// # Errors
/// When one between others is never used: nobody knows its type.
pub(crate) fn in_order(
    mut known: BTreeMap<String, Option<DataType>>,
) -> Result<Vec<Option<DataType>>, SqlError> {
    let mut all = Vec::with_capacity(known.len());
    while !known.is_empty() {
        let name = format!("${}", all.len() + 1);
        let found = known.remove(&name);
        all.push(found.ok_or_else(|| {
            SqlError::invalid(format!("could not determine data type of parameter {name}"))
        })?);
    }
    Ok(all)
}
