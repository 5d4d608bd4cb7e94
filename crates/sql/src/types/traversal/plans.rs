//! Traversals of DataFusion's expressions and plans.

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{Expr, LogicalPlan};

type Transform<'a, N> = &'a mut dyn FnMut(N) -> Result<Transformed<N>>;

/// The methods of [`TreeNode`] that this crate uses, by the same names.
pub(crate) trait Traversal: TreeNode {
    /// See [`TreeNode::apply`].
    fn apply<'n>(
        &'n self,
        mut visit: impl FnMut(&'n Self) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        let visit: &mut dyn FnMut(&'n Self) -> Result<TreeNodeRecursion> = &mut visit;
        TreeNode::apply(self, visit)
    }

    /// See [`TreeNode::exists`].
    fn exists(&self, mut test: impl FnMut(&Self) -> Result<bool>) -> Result<bool> {
        let test: &mut dyn FnMut(&Self) -> Result<bool> = &mut test;
        TreeNode::exists(self, test)
    }

    /// See [`TreeNode::transform_up`].
    fn transform_up(
        self,
        mut transform: impl FnMut(Self) -> Result<Transformed<Self>>,
    ) -> Result<Transformed<Self>> {
        TreeNode::transform_up(self, &mut transform as Transform<'_, Self>)
    }

    /// See [`TreeNode::transform_down`].
    fn transform_down(
        self,
        mut transform: impl FnMut(Self) -> Result<Transformed<Self>>,
    ) -> Result<Transformed<Self>> {
        TreeNode::transform_down(self, &mut transform as Transform<'_, Self>)
    }

    /// See [`TreeNode::map_children`].
    fn map_children(
        self,
        mut transform: impl FnMut(Self) -> Result<Transformed<Self>>,
    ) -> Result<Transformed<Self>> {
        TreeNode::map_children(self, &mut transform as Transform<'_, Self>)
    }
}

impl<N: TreeNode> Traversal for N {}

/// Traversals that [`LogicalPlan`] has beside those of trees.
pub(crate) trait PlanTraversal: Sized {
    /// Calls a function for each plan, with those of subqueries. See [`LogicalPlan::apply_with_subqueries`].
    fn visit_plans(
        &self,
        visit: impl FnMut(&LogicalPlan) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion>;

    /// Transforms inputs and subqueries before each plan. See [`LogicalPlan::transform_up_with_subqueries`].
    fn transform_plans_up(
        self,
        transform: impl FnMut(LogicalPlan) -> Result<Transformed<LogicalPlan>>,
    ) -> Result<Transformed<Self>>;

    /// Transforms each plan before its inputs and subqueries. See
    /// [`LogicalPlan::transform_down_with_subqueries`].
    fn transform_plans_down(
        self,
        transform: impl FnMut(LogicalPlan) -> Result<Transformed<LogicalPlan>>,
    ) -> Result<Transformed<Self>>;

    /// Calls a function for the expressions of this plan alone. See [`LogicalPlan::apply_expressions`].
    fn visit_expressions(
        &self,
        visit: impl FnMut(&Expr) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion>;

    /// Transforms the expressions of this plan alone. See [`LogicalPlan::map_expressions`].
    fn transform_expressions(
        self,
        transform: impl FnMut(Expr) -> Result<Transformed<Expr>>,
    ) -> Result<Transformed<Self>>;
}

impl PlanTraversal for LogicalPlan {
    fn visit_plans(
        &self,
        mut visit: impl FnMut(&Self) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        let visit: &mut dyn FnMut(&Self) -> Result<TreeNodeRecursion> = &mut visit;
        self.apply_with_subqueries(visit)
    }

    fn transform_plans_up(
        self,
        mut transform: impl FnMut(Self) -> Result<Transformed<Self>>,
    ) -> Result<Transformed<Self>> {
        self.transform_up_with_subqueries(&mut transform as Transform<'_, Self>)
    }

    fn transform_plans_down(
        self,
        mut transform: impl FnMut(Self) -> Result<Transformed<Self>>,
    ) -> Result<Transformed<Self>> {
        self.transform_down_with_subqueries(&mut transform as Transform<'_, Self>)
    }

    fn visit_expressions(
        &self,
        mut visit: impl FnMut(&Expr) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        let visit: &mut dyn FnMut(&Expr) -> Result<TreeNodeRecursion> = &mut visit;
        self.apply_expressions(visit)
    }

    fn transform_expressions(
        self,
        mut transform: impl FnMut(Expr) -> Result<Transformed<Expr>>,
    ) -> Result<Transformed<Self>> {
        self.map_expressions(&mut transform as Transform<'_, Expr>)
    }
}
