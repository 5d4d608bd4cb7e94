//! What statements make of hypertables themselves: they are made, changed while they are empty, and emptied.

use crate::ddl_dml::definitions::schema_changes::same_columns;
use crate::ddl_dml::hypertables::unfinished_drops;
use crate::ddl_dml::runner::{Runner, quoted};
use crate::parse::rewrite::expressions::query;
use crate::tables::heap::view::View;
use crate::tables::hypertables::declare::{Asking, declare};
use crate::tables::hypertables::shape::Hypertable;
use crate::types::error::SqlError;
use std::sync::Arc;
use tables::Table;

/// Makes a table one whose rows are samples. Returns what `create_hypertable` answers.
pub fn make_hypertable(
    view: &View,
    asking: &Asking,
    notices: &mut Vec<String>,
) -> Result<String, SqlError> {
    let table = view.expect(&asking.table)?;
    let answer = |is_new: bool| {
        let is_new = if is_new { "t" } else { "f" };
        format!("({},public,{},{is_new})", table.id(), table.name())
    };
    if Hypertable::is_one(table.schema()) {
        let words = format!("table \"{}\" is already a hypertable", table.name());
        if !asking.if_not_exists {
            return Err(SqlError::new("TS110", words));
        }
        notices.push(format!("{words}, skipping"));
        return Ok(answer(false));
    }
    let schema = declare(table.schema().clone(), table.row_count(), asking)?;
    if let Some(made) = Hypertable::of(table.name(), &schema) {
        notices.extend(crate::tables::hypertables::declare::notices(&made, asking));
    }
    tokio::task::block_in_place(|| unfinished_drops::finish(view, table.name()))?;
    view.apply(vec![same_columns(&table, table.name(), schema)])?;
    Ok(answer(true))
}

/// Whether a table is a hypertable, whose rows no transaction brings back once they are deleted.
///
/// # Errors
/// When a transaction is under way.
pub fn loses_rows(view: &View, table: &str, word: &str) -> Result<bool, SqlError> {
    let is_one = Hypertable::is_one(view.expect(table)?.schema());
    if is_one {
        check_alone(view, word)?;
    }
    Ok(is_one)
}

/// That what deletes samples, which do not come back, is a transaction of its own; once it has begun to change
/// something.
///
/// # Errors
/// When it is not.
pub fn check_alone(view: &View, word: &str) -> Result<(), SqlError> {
    if view.is_alone() {
        return Ok(());
    }
    let words = format!("{word} of samples cannot run inside a transaction block");
    let hint = "Samples are gone at once: say it outside of BEGIN, and by itself.";
    Err(SqlError::new("25001", words).with_hint(hint))
}

/// A hypertable of a name.
///
/// # Errors
/// When there is none.
pub fn expect_hypertable(view: &View, name: &str) -> Result<(Arc<Table>, Hypertable), SqlError> {
    let table = view.expect(name)?;
    let Some(made) = Hypertable::of(name, table.schema()) else {
        let words = format!("table \"{name}\" is not a hypertable");
        let hint = "SELECT create_hypertable('table', 'column of the time') makes one of an empty table; \
                    rows of others are deleted by DELETE.";
        return Err(SqlError::new("TS001", words).with_hint(hint));
    };
    Ok((table, made))
}

/// `ALTER TABLE .. SET (timescaledb.segmentby = ..)`: which columns tell rows apart.
///
/// # Errors
/// When there are no such columns, or they cannot.
pub async fn segment(
    runner: &Runner,
    name: &str,
    segment_by: Option<&Vec<String>>,
    notices: &mut Vec<String>,
) -> Result<(), SqlError> {
    let (table, made) = expect_hypertable(&runner.view, name)?;
    let time = made.schema.columns[made.time].name.clone();
    let asking = Asking {
        table: name.to_string(),
        time: Some(time),
        segment_by: segment_by.cloned(),
        ..Asking::default()
    };
    let wanted = declare(Hypertable::unsaid(table.schema().clone()), 0, &asking)?;
    if segment_by.is_none() || wanted == *table.schema() {
        notices
            .push("samples are always columnar and compressed: there is nothing to be done".into());
        return Ok(());
    }
    let asked = query(&format!("SELECT 1 FROM {} LIMIT 1", quoted(name)));
    let asked = runner.plan(asked.ok_or_else(|| SqlError::unexpected("nothing is asked"))?).await?;
    let mut is_empty = true;
    let read = runner.each(&asked, &[], |batch| {
        is_empty &= batch.num_rows() == 0;
        Ok(())
    });
    read.await?;
    if !is_empty {
        notices.push(format!("\"{name}\" has rows: they are told apart as before"));
        return Ok(());
    }
    if let Some(made) = Hypertable::of(name, &wanted) {
        notices.extend(crate::tables::hypertables::declare::notices(&made, &asking));
    }
    runner.view.apply(vec![same_columns(&table, name, wanted)]).map(drop)
}
