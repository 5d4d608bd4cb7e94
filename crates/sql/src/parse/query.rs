//! Queries in the words of DataFusion, as they are planned.

use crate::parse::declared_types::Declared;
use crate::parse::explain_options::{Shape, shape_of};
use crate::parse::rewrite::rewriter::{Hints, Rewritten, rewrite};
use crate::types::error::SqlError;
use crate::types::hidden::Hidden;
use crate::types::traversal::walk_relations;
use datafusion::sql::sqlparser::ast;
use datafusion::sql::sqlparser::ast::{ObjectName, Statement};
use std::collections::BTreeSet;
use std::ops::ControlFlow;

/// A statement that DataFusion plans, in words that it knows.
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    rephrased: Hidden<Rephrased>,
    /// Whether its text is so short that it is planned at once.
    is_short: bool,
    /// What its client said of its parameters.
    declared: Declared,
}

impl Query {
    /// Rewrites a statement into words that DataFusion knows.
    ///
    /// # Errors
    /// When DataFusion cannot express it, and when it is nested too deep.
    pub(crate) fn new(mut statement: Statement) -> Result<Query, SqlError> {
        let explained = shape_of(&mut statement)?;
        let Rewritten { hints, parameters, is_reusable } = rewrite(&mut statement)?;
        let rephrased = Rephrased { explained, statement, hints, parameters, is_reusable };
        let (rephrased, declared) = (Hidden::new(rephrased), Declared::default());
        Ok(Query { rephrased, is_short: false, declared })
    }

    /// Of a query that was read.
    pub(crate) fn of(query: Box<ast::Query>) -> Result<Query, SqlError> {
        Query::new(Statement::Query(query))
    }

    /// Returns the query with a mark that says whether its text is short.
    #[must_use]
    pub(crate) fn with_short_text(self, is_short: bool) -> Query {
        Query { is_short, ..self }
    }

    pub(crate) fn rephrased(&self) -> &Rephrased {
        &self.rephrased
    }

    /// The same, of whose parameters something is said.
    #[must_use]
    pub fn with_declared(self, declared: Declared) -> Query {
        Query { declared, ..self }
    }

    /// Returns true for an `EXPLAIN`.
    pub fn is_explain(&self) -> bool {
        self.rephrased.explained.is_some()
            || matches!(self.rephrased.statement, Statement::Explain { .. })
    }

    pub(crate) fn declared(&self) -> &Declared {
        &self.declared
    }

    /// Whether it names a table that `is_one` says.
    pub(crate) fn names(&self, is_one: impl Fn(&ObjectName) -> bool) -> bool {
        let none = walk_relations(&self.rephrased.statement, |name| match is_one(name) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        });
        none.is_break()
    }

    /// Whether its text is short, and it reads no tables but those that `is_one` says.
    pub(crate) fn is_short(&self, is_one: impl Fn(&ObjectName) -> bool) -> bool {
        let all = walk_relations(&self.rephrased.statement, |name| match is_one(name) {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        });
        self.is_short && all.is_continue()
    }
}

/// A statement in DataFusion's words.
#[derive(Debug, PartialEq)]
pub(crate) struct Rephrased {
    /// How it is explained, where it is.
    pub(crate) explained: Option<Shape>,
    pub(crate) statement: Statement,
    pub(crate) hints: Hints,
    pub(crate) parameters: BTreeSet<String>,
    pub(crate) is_reusable: bool,
}
