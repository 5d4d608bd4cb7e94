//! A call of a function: its arguments, and whoever evaluates them.
//!
//! Functions know the evaluator as [`Evaluate`] only: a tree is evaluated by going down and up
//! again, but what is written in `transform` stands below `eval`.

use crate::context::Context;
use crate::error::Result;
use crate::row::{RowSink, Wanted};
use crate::scalar::Scalar;
use crate::time::Grid;
use crate::vector::Vector;
use promql::{Call, Expr, Span};

/// Gives values to expressions.
pub(crate) trait Evaluate {
    /// The value of a string expression.
    fn string(&self, expr: &Expr) -> Result<String>;

    /// The value of a scalar expression at every step.
    fn scalar(&self, expr: &Expr, grid: Grid) -> Result<Scalar>;

    /// The value of an instant vector expression at every step.
    fn vector(&self, expr: &Expr, grid: Grid) -> Result<Vector>;

    /// Hands the rows of an instant vector expression to `sink`, without keeping them if it can.
    /// Rows without any value may be among them; labels that are not `wanted` may be missing.
    fn stream(
        &self,
        expr: &Expr,
        grid: Grid,
        wanted: Wanted<'_>,
        sink: &mut RowSink<'_>,
    ) -> Result<()>;

    /// Hands over a row of ones and gaps for each series of `absent_over_time`'s argument.
    fn stream_presence(&self, call: &Call, grid: Grid, sink: &mut RowSink<'_>) -> Result<()>;
}

/// A call as its kernel sees it.
pub(crate) struct CallContext<'c> {
    pub context: &'c Context<'c>,
    pub call: &'c Call,
    pub grid: Grid,
    pub evaluator: &'c dyn Evaluate,
}

impl<'c> CallContext<'c> {
    /// The expression of an argument.
    pub fn argument(&self, idx: usize) -> &'c Expr {
        &self.call.arguments[idx]
    }

    /// Returns the position of an argument in the query, without the parentheses around it. Annotations report it.
    pub fn span(&self, idx: usize) -> Span {
        self.argument(idx).without_parens().span()
    }

    /// The value of an argument that is a scalar.
    pub fn scalar(&self, idx: usize) -> Result<Scalar> {
        self.evaluator.scalar(self.argument(idx), self.grid)
    }

    /// The value of an argument that is an instant vector.
    pub fn vector(&self, idx: usize) -> Result<Vector> {
        self.evaluator.vector(self.argument(idx), self.grid)
    }

    /// The numbers of an argument that is an instant vector.
    pub fn numbers(&self, idx: usize) -> Result<Vector> {
        let mut vector = self.vector(idx)?;
        vector.drop_histograms();
        Ok(vector)
    }

    /// The values of the arguments from `first` on, which are strings.
    pub fn strings(&self, first: usize) -> Result<Vec<String>> {
        let strings = self.call.arguments[first..].iter();
        strings.map(|argument| self.evaluator.string(argument)).collect()
    }

    /// What is no longer what its metrics' names say.
    pub fn without_names(&self, vector: Vector) -> Result<Vector> {
        vector.without_names(self.context.options.name_removal)
    }
}
