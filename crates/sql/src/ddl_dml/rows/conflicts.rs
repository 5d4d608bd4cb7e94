//! `ON CONFLICT`: what becomes of rows whose keys are there already.

use crate::catalog::schemas::HANDED_SCHEMA;
use crate::ddl_dml::definitions::defaults::Numbers;
use crate::ddl_dml::rows::changes::{ChangePlan, Sets, changed_rows, sets_of};
use crate::ddl_dml::rows::inserts::Row;
use crate::ddl_dml::runner::{Parameters, Runner, add_parameters, relation, selecting};
use crate::parse::rewrite::expressions::expression_of;
use crate::tables::heap::scan::{Ordinary, Rows, Slot, put};
use crate::tables::heap::view::{View, of_tables};
use crate::types::error::SqlError;
use crate::types::names::folded;
use datafusion::common::ScalarValue;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, ConflictTarget, DoUpdate, Expr, ObjectNamePart, OnConflictAction, OnInsert,
    SelectItem,
};
use std::collections::HashSet;
use std::sync::Arc;
use tables::{Change, Datum, Error, RowId, Schema, Table};

/// The tables that `DO UPDATE` reads: rows that are there, and those that were to be inserted.
const EXISTING: &str = "existing";
const EXCLUDED: &str = "excluded";

/// What becomes of rows whose keys are there.
pub struct OnConflict {
    /// The constraint that is meant; any for none.
    constraint: Option<String>,
    /// What is done with the rows that are there; nothing for none.
    update: Option<Update>,
}

struct Update {
    plan: ChangePlan,
    existing: Slot,
    excluded: Slot,
}

impl OnConflict {
    /// Whether the tables that it reads are as they were.
    pub fn is_current(&self, view: &View) -> bool {
        self.update.as_ref().is_none_or(|update| update.plan.is_current(view))
    }
}

/// Plans `ON CONFLICT`.
///
/// # Errors
/// When it makes no sense.
pub async fn plan(
    runner: &Runner,
    on: &OnInsert,
    (table, alias): (&Arc<Table>, &str),
    known: &mut Parameters,
) -> Result<OnConflict, SqlError> {
    let OnInsert::OnConflict(said) = on else {
        return Err(SqlError::invalid("INSERT knows ON CONFLICT"));
    };
    let constraint = match &said.conflict_target {
        Some(target) => Some(constraint_of(table.schema(), target)?),
        None => None,
    };
    let update = match &said.action {
        OnConflictAction::DoNothing => None,
        OnConflictAction::DoUpdate(_) if constraint.is_none() => {
            let words = "ON CONFLICT DO UPDATE requires inference specification or constraint name";
            return Err(SqlError::invalid(words));
        }
        OnConflictAction::DoUpdate(update) => {
            Some(plan_update(runner, update, (table, alias), known).await?)
        }
    };
    Ok(OnConflict { constraint, update })
}

/// The constraint that a target means.
fn constraint_of(schema: &Schema, target: &ConflictTarget) -> Result<String, SqlError> {
    match target {
        ConflictTarget::OnConstraint(name) => {
            let name =
                name.0.last().and_then(ObjectNamePart::as_ident).map(folded).unwrap_or_default();
            let found = schema.constraints.iter().find(|one| one.name == name);
            found.map(|one| one.name.clone()).ok_or_else(|| {
                SqlError::new("42704", format!("constraint \"{name}\" does not exist"))
            })
        }
        ConflictTarget::Columns(names) => {
            let wanted: HashSet<String> = names.iter().map(folded).collect();
            let is_meant = |columns: &[usize]| {
                let names = columns.iter().map(|at| schema.columns[*at].name.clone());
                names.collect::<HashSet<_>>() == wanted
            };
            let found = schema.constraints.iter().find(|one| is_meant(&one.columns));
            found.map(|one| one.name.clone()).ok_or_else(|| {
                let words = "there is no unique or exclusion constraint matching the ON CONFLICT \
                             specification";
                SqlError::new("42P10", words)
            })
        }
    }
}

async fn plan_update(
    runner: &Runner,
    said: &DoUpdate,
    (table, alias): (&Arc<Table>, &str),
    known: &mut Parameters,
) -> Result<Update, SqlError> {
    let (existing, excluded) = (Slot::default(), Slot::default());
    let Sets { targets, mut items } = sets_of(table, &said.assignments, known)?;
    items.insert(
        0,
        SelectItem::UnnamedExpr(expression_of(&[alias, crate::tables::heap::scan::ROW])),
    );
    let from = vec![
        relation(HANDED_SCHEMA, EXISTING, alias)?,
        relation(HANDED_SCHEMA, EXCLUDED, EXCLUDED)?,
    ];
    let is_of = Expr::BinaryOp {
        left: Box::new(expression_of(&[alias, crate::tables::heap::scan::ROW])),
        op: BinaryOperator::Eq,
        right: Box::new(expression_of(&[EXCLUDED, crate::tables::heap::scan::ROW])),
    };
    let selection = match &said.selection {
        Some(more) => Expr::BinaryOp {
            left: Box::new(is_of),
            op: BinaryOperator::And,
            right: Box::new(Expr::Nested(Box::new(more.clone()))),
        },
        None => is_of,
    };
    let query = selecting(items, from, Some(selection))?;
    let rows_of = |slot| Arc::new(Ordinary::of_slot(slot, table.shared_schema(), true));
    runner.view.hand(EXISTING, rows_of(&existing));
    runner.view.hand(EXCLUDED, rows_of(&excluded));
    let planned = runner.plan_with(query).await;
    runner.view.take_back(EXISTING);
    runner.view.take_back(EXCLUDED);
    let statement = planned?;
    add_parameters(known, &statement)?;
    Ok(Update { plan: ChangePlan { statement, targets }, existing, excluded })
}

/// Inserts rows one by one, within the transaction under way. Returns those that came and those that were
/// changed.
///
/// # Errors
/// When a row is in the way by another constraint, or would be changed twice.
pub async fn insert(
    runner: &Runner,
    plan: &OnConflict,
    table: &Table,
    rows: Vec<Row>,
    parameters: &[ScalarValue],
) -> Result<Vec<RowId>, SqlError> {
    let name = table.name().to_string();
    // Rows in the order in which they came, whatever became of them.
    let (mut touched, mut in_the_way) = (Vec::new(), Vec::new());
    let mut seen = HashSet::new();
    let mut numbers = Numbers::of(table.schema());
    for row in rows {
        let now = runner.view.expect(&name)?;
        let number = now.next_row();
        let row = numbers.fill(&now, row, number)?;
        let change = Change::Insert { table: name.clone(), rows: vec![row.clone()] };
        match runner.view.try_apply(vec![change])? {
            Ok(_) => {
                seen.insert(RowId(number));
                touched.push(RowId(number));
            }
            Err(error @ Error::UniqueViolation { .. }) => {
                // Whatever other key is there, too: the one that is meant decides.
                let Some(meant) = &plan.constraint else { continue };
                let Some(id) = existing(&now, meant, &row)? else { return Err(of_tables(&error)) };
                if plan.update.is_none() {
                    continue;
                }
                if !seen.insert(id) {
                    return Err(twice());
                }
                touched.push(id);
                in_the_way.push((id, row));
            }
            Err(error) => return Err(of_tables(&error)),
        }
    }
    let Some(update) = &plan.update else { return Ok(touched) };
    let passed: HashSet<RowId> = in_the_way.iter().map(|(id, _)| *id).collect();
    let changed: HashSet<RowId> =
        update.run(runner, table, in_the_way, parameters).await?.into_iter().collect();
    touched.retain(|id| !passed.contains(id) || changed.contains(id));
    Ok(touched)
}

fn twice() -> SqlError {
    SqlError::new("21000", "ON CONFLICT DO UPDATE command cannot affect row a second time")
}

/// The row that has the key which another one was to have, if there is one.
fn existing(table: &Table, constraint: &str, row: &[Datum]) -> Result<Option<RowId>, SqlError> {
    let known = table.schema().constraints.iter().find(|one| one.name == constraint);
    let key: Vec<Datum> =
        known.iter().flat_map(|one| &one.columns).map(|at| row[*at].clone()).collect();
    let found = table.find_by(constraint, &key).map_err(|error| of_tables(&error))?;
    Ok(found.map(|row| row.id))
}

impl Update {
    /// Changes rows that are there, each by the one that was to be inserted.
    async fn run(
        &self,
        runner: &Runner,
        table: &Table,
        rows: Vec<(RowId, Vec<Datum>)>,
        parameters: &[ScalarValue],
    ) -> Result<Vec<RowId>, SqlError> {
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        let now = runner.view.expect(table.name())?;
        let ids = rows.iter().map(|(id, _)| *id).collect();
        let _existing = put(&self.existing, Rows::Of(now.clone(), ids));
        let _excluded = put(&self.excluded, Rows::Given(rows.into()));
        let (changed, _held) = changed_rows(runner, &self.plan, &now, parameters).await?;
        let ids = changed.iter().map(|(id, _)| *id).collect();
        runner
            .view
            .apply(vec![Change::Update { table: table.name().to_string(), rows: changed }])?;
        Ok(ids)
    }
}
