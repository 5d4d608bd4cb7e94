//! Statements that go straight from what was read to the store: those that dashboards send, over one hypertable.
//!
//! ```text
//! SELECT time_bucket('1 minute', time) AS minute, host, max(usage) FROM cpu
//! WHERE time >= '..' AND time < '..' AND host IN (..) GROUP BY 1, 2 ORDER BY 1 LIMIT 5       groups
//! SELECT * FROM cpu WHERE usage > 90 AND time >= '..'                                        rows
//! ```
//! The planner takes most of a millisecond for such a statement, the store a tenth of that. What is not understood
//! here to the last word, or turns out to be something else when it is run, is the planner's as ever; the
//! samples are read by the same code on both ways (`hypertables`, `direct`).

pub(crate) mod conditions;
pub(crate) mod groups;
pub(crate) mod rows;
pub(crate) mod words;

use crate::parse::query::Query;
use crate::plan::context::Context;
use crate::plan::straight::conditions::Conditions;
use crate::plan::straight::groups::GroupsOf;
use crate::plan::straight::rows::RowsOf;
use crate::plan::straight::words::{Plain, Scope, own_name};
use crate::tables::heap::scan::Ordinary;
use crate::tables::heap::view::View;
use crate::types::error::SqlError;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::execution::SendableRecordBatchStream;
use std::sync::Arc;
use tables::Schema;

/// What a statement may cost that is answered where it came in, in samples read: half a millisecond
/// (`SelectLimits::cost_max`).
const COST_MAX: u64 = 250_000;

/// A statement of this kind.
pub struct Straight {
    /// The same for the planner.
    query: Query,
    table: Ordinary,
    conditions: Conditions,
    asked: Asked,
    schema: SchemaRef,
}

enum Asked {
    Groups(GroupsOf),
    Rows(RowsOf),
}

impl std::fmt::Debug for Straight {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Straight({:?})", self.query)
    }
}

impl Straight {
    /// What a query asks, if it is one of these.
    pub fn of(view: &Arc<View>, query: &Query) -> Option<Straight> {
        let plain = Plain::of(query.rephrased())?;
        let name = own_name(plain.table)?;
        let found = view.get(&name)?;
        let table = Ordinary::new(view, &found, false);
        let (_, hypertable) = table.hypertable()?;
        let scope = Scope::new(&hypertable, plain.alias);
        let conditions = Conditions::of(&scope, plain.selection, view)?;
        let (asked, schema) = match plain.is_grouped() {
            true => {
                let (groups, schema) = GroupsOf::of(&scope, &plain)?;
                // Groups are made of whole stretches of samples.
                conditions.values.is_empty().then_some((Asked::Groups(groups), schema))?
            }
            false => {
                let (rows, schema) = RowsOf::of(&scope, &plain)?;
                (Asked::Rows(rows), schema)
            }
        };
        Some(Straight { query: query.clone(), table, conditions, asked, schema })
    }

    /// The same for the planner.
    pub fn query(&self) -> &Query {
        &self.query
    }

    /// Its columns.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The tables that it reads, and what they looked like.
    pub fn relied_on(&self) -> Vec<(Arc<str>, Arc<Schema>)> {
        let all = std::iter::once(&self.table).chain(self.conditions.tables());
        all.filter_map(Ordinary::relied_on).collect()
    }

    /// Its rows, where they are so few that nobody is kept waiting for them; none where they are not, and
    /// where it has to be planned.
    pub fn rows_at_once(&self, context: &Context) -> Option<Vec<RecordBatch>> {
        let (series, table) = self.table.hypertable()?;
        let asked = self.conditions.asked(&table)?;
        let made = match &self.asked {
            Asked::Groups(groups) => {
                let direct = groups.direct(series, table, asked, &self.schema);
                direct.at_once(context.task(), COST_MAX).map(|batch| vec![batch])
            }
            Asked::Rows(rows) => {
                let scan = rows.scan(series, table, asked, &self.conditions.values, &self.schema);
                rows.at_once(&scan, context.task(), COST_MAX)
            }
        };
        // What goes wrong is told by the way that takes longer.
        made.ok()
    }

    /// Its rows as they are made; none where it has to be planned.
    ///
    /// # Errors
    /// When it makes no sense.
    pub fn rows(&self, context: &Context) -> Result<Option<SendableRecordBatchStream>, SqlError> {
        let found = self.table.hypertable();
        let asked = found.and_then(|(series, table)| {
            let asked = self.conditions.asked(&table)?;
            Some((series, table, asked))
        });
        let Some((series, table, asked)) = asked else { return Ok(None) };
        Ok(match &self.asked {
            Asked::Groups(groups) => {
                let direct = groups.direct(series, table, asked, &self.schema);
                Some(direct.rows(context.task().clone()))
            }
            Asked::Rows(rows) => {
                let scan = rows.scan(series, table, asked, &self.conditions.values, &self.schema);
                rows.as_made(scan, context.task())
            }
        })
    }
}
